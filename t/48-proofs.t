#!/usr/bin/perl

# Many inclusion proofs at once: they are read in batches by threads, and each
# client gets its own, whoever leaves meanwhile.

use strict;
use warnings;

use lib 't/lib';
use RonChaos;
use RonProofs;
use RonTest;


my $entries = 700;                      # three tiles, the last one partial
my $clients = 150;                      # several batches

for my $cache ('8m', '0') {
    my $s = RonTest->new(workers => 1);
    $s->{http} = "ron_proof_cache $cache;";
    $s->start or BAIL_OUT('no server');

    for my $n (0 .. $entries / 100 - 1) {
        $s->post('/v1/batch', { ops => [ map { +{ op => 'issue',
                     to => "a$_", asset => 'ron', amount_minor => '1' } }
                     1 .. 100 ] }, key => "k$n")->{status} == 200
            or BAIL_OUT('no entries');
    }

    my $proof = sub {
        my ($seq, $size) = @_;
        return "/ledger/proof/inclusion?seq=$seq&size=$size";
    };

    # the answers as they come one by one, from a server that has just begun

    my %want;
    for my $seq (1, 255, 256, 257, 512, 513, $entries) {
        my $r = $s->get($proof->($seq, $entries), token => undef);
        $want{$seq} = $r->{body};
        is($r->{status}, 200, "$cache: proof of $seq");
    }

    ok($s->reload, "$cache: a reload empties the cache");

    # all are sent before the first is read; every third client leaves

    my @asked;
    for my $i (0 .. $clients - 1) {
        my $seq = (sort { $a <=> $b } keys %want)[$i % keys %want];
        my $sock = $s->connect;
        $s->send_request($sock, 'GET', $proof->($seq, $entries), undef,
                         token => undef);
        $i % 3 ? push @asked, [ $seq, $sock ] : close $sock;
    }

    my $wrong = 0;
    for (@asked) {
        my $r = RonTest::read_response($_->[1], 'GET');
        $wrong += $r->{status} != 200 || $r->{body} ne $want{$_->[0]};
    }

    is($wrong, 0, "$cache: " . @asked . ' at once, each its own');

    # what is not there is refused, beside what is

    my @mixed = map { [ $_, $s->connect ] } 1, $entries + 1, 257, 1 << 40;
    $s->send_request($_->[1], 'GET', $proof->($_->[0], 0), undef,
                     token => undef) for @mixed;
    is(join(' ', map { RonTest::read_response($_->[1], 'GET')->{status} }
                 @mixed), '200 404 200 404', "$cache: good and bad together");

    # two of one connection, one behind the other

    my $sock = $s->connect;
    print $sock map { "GET $_ HTTP/1.1\r\nHost: x\r\n\r\n" }
        $proof->(1, $entries), $proof->(513, $entries);
    is(RonTest::read_response($sock, 'GET')->{body}, $want{1},
       "$cache: the first of two");
    is(RonTest::read_response($sock, 'GET')->{body}, $want{513},
       "$cache: and the second");

    $s->quit;
    is(scalar(() = $s->log =~ /\[(?:error|crit|alert)\]/g), 0,
       "$cache: nothing went wrong");
}

full();
batch();

done_testing();


# A queue with 40 places, filled in one turn of a worker whose threads can read
# only slowly: the gauge says so, one more is refused and counted, nobody is
# lost.

sub full {
    my $s = RonTest->new(workers => 1, main => 'ron_queue proofs=40;',
                         http => 'ron_proof_cache 0;');
    $s->start or BAIL_OUT('no server');

    $s->post('/v1/batch', { ops => [ map { +{ op => 'issue', to => "a$_",
                 asset => 'ron', amount_minor => '1' } } 1 .. 100 ] },
             key => 'k')->{status} == 200 or BAIL_OUT('no entries');

    my $q = 'q="proofs"';
    is($s->metric('queue_capacity', $q), 40, 'a queue of 40 proofs');
    is($s->metric('queue_depth', $q), 0, 'which is empty');
    is($s->metric('drops_total', $q), 0, 'and drops none');

    my @socks = map { $s->connect } 1 .. 43;
    for my $sock (@socks) {
        $s->send_request($sock, 'GET', '/version', undef, token => undef,
                         keep => 1);
        RonTest::read_response($sock, 'GET')->{status} == 200
            or BAIL_OUT('no connection');
    }

    my ($worker) = $s->workers;
    my $strace = $s->inject('pread64', 'delay_enter=300000', pid => $worker,
                            files => [ 'ledger.db', 'ledger.db-wal' ]);

    kill 'STOP', $worker;
    for my $i (0 .. $#socks) {
        $s->send_request($socks[$i], 'GET', '/ledger/proof/inclusion?seq='
                         . ($i + 1) . '&size=100', undef, token => undef,
                         keep => 1);
    }
    kill 'CONT', $worker;

SKIP: {
        skip 'no strace here', 1 if !$strace;
        ok(until_ok(10, sub { $s->metric('queue_depth', $q) == 40 }),
           'all 40 places are taken, and it says so');
        kill 'TERM', $strace;
        waitpid $strace, 0;
    }

    my %got;
    $got{ $_->{status} == 200 ? json_get($_->{body}, 'seq') && 'proof'
                              : "$_->{status} " . json_get($_->{body}, 'code')
        }++ for map { RonTest::read_response($_, 'GET', 20) } @socks;

    is_deeply(\%got, { proof => 40, '429 BUSY' => 3 },
              '40 of 43 are proven, three are refused');
    is($s->metric('busy_rejections_total', $q), 3, 'and counted exactly');
    ok(until_ok(5, sub { $s->metric('queue_depth', $q) == 0 }),
       'the queue is empty again');
    $s->quit;
}


# A batch with proofs: each of its receipts has one, and it holds.
sub batch {
    my $s = RonTest->new(workers => 2);
    $s->start or BAIL_OUT('no server');

    my %batch = (ops => [ map { +{ op => 'issue', to => "b$_", asset => 'ron',
                                   amount_minor => "$_" } } 1 .. 999 ]);
    push @{ $batch{ops} }, { op => 'burn', from => 'b1', asset => 'ron',
                             amount_minor => '2', nonce => 1 };
    my ($r, @got);

    # the first head may not be signed by then, a later one is

    ok(until_ok(10, sub {
        $r = $s->post('/v1/batch?proof=1', \%batch, key => 'many');
        @got = $r->{body} =~ /\{"txid":[^{}]*,"proof":\{[^{}]*\}\}/g;
        $r->{status} == 207 && $r->{body} !~ /"checkpoint":null/;
    }), 'a batch of 1000, one is refused') or diag(substr $r->{body}, 0, 500);
    is(scalar @got, 999, 'every receipt has its proof');
    like($r->{body}, qr/\}\}\],"reasons":\[\{"idx":999,/, 'and the other none');

    my $plain = $s->post('/v1/batch', \%batch, key => 'many');
    (my $bare = $r->{body}) =~ s/,"proof":\{[^{}]*\}//g;
    is($bare, $plain->{body}, 'without them it is the answer to the byte');

    my $proofs = RonProofs->new(server => $s, b3 => RonChaos::tool('b3'),
        pub => RonTest::slurp($s->dir . '/ledger/signing.pub'));
    my (@wrong, @all);

    for my $text (@got) {
        (my $receipt = $text) =~ s/,"proof":.*/}/;
        push @all, $proofs->proof(json_get($text, 'txid'), "$text\n",
                                  $receipt, \@wrong);
    }

    push @wrong, $proofs->fold(@all);
    is(scalar @all, 999, 'all of them are read');
    is("@wrong[0 .. ($#wrong > 3 ? 3 : $#wrong)]", '', 'and all hold');

    $r = $s->post('/v1/batch?proof=1', { ops => [ $batch{ops}[-1] ] },
                  key => 'none');
    is($r->{status}, 409, 'of a batch that was refused there is nothing');
    $s->quit;
}
