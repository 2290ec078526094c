#!/usr/bin/perl

# The seeds' queues, each filled to its last place and then by one more:
# ingress, work, preval, commit.  And what is left of a server that is
# offered five times what its committer can write.
#
# A worker is stopped while requests are written to connections that it knows
# already, so that it finds all of them at once; the committer is slowed.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use Time::HiRes qw(sleep time);


my $BUILD = $ENV{RON_BUILD} || 'build';

my $s = RonTest->new(workers => 1, main =>
    'worker_rlimit_nofile 8192; ron_committer_lag_max 60s;',
    http => 'ron_deadline 20s; keepalive_requests 100000;');

my ($n, $id) = (0, 0);

sub transfer {
    $n++;

    return ('POST', '/v1/transfer', { from => 'alice', to => 'bob',
            asset => 'ron', amount_minor => '1', nonce => $n },
            key => "k$n");
}

sub ingest {
    return ('POST', '/ledger/ingest', { batch => [
        { id => 'e' . ++$id, ts => 1_700_000_000_000, kind => 'Mint',
          account => 'x', amount => '1', nonce => nonce16(), v => 1 } ] });
}

sub metric {
    my ($name, @labels) = @_;

    my $text = $s->get('/metrics', token => undef)->{body};

    LINE: for my $line ($text =~ /^\Q$name\E(\{.*)$/mg) {
        for (@labels) { next LINE unless index($line, $_) >= 0 }
        return $line =~ /\} (\S+)$/ ? $1 : undef;
    }

    return undef;
}

sub issue {
    $n++;

    return ('POST', '/v1/issue', { to => 'bob', asset => 'ron',
                                   amount_minor => '1' }, key => "i$n");
}

# Restarted with other queues and an empty ledger.

sub begin {
    my ($main, %o) = @_;

    $s->quit if $s->{pid};
    File::Path::remove_tree("$s->{dir}/ledger");
    $s->{main} = 'worker_rlimit_nofile 8192; ron_committer_lag_max 60s; '
                 . $main;
    $s->{workers} = $o{workers} || 1;
    $s->start or BAIL_OUT('no server');
    ($n, $id) = (0, 0);

    is($s->post('/v1/issue', { to => 'alice', asset => 'ron',
                               amount_minor => '1000000' }, key => 'money')
       ->{status}, 200, $main);
}

# Behind a batch the committer sleeps: it has just begun to.  What is done
# meanwhile finds it asleep.  A call that hears nothing for 1 s would be sent
# again, so it sleeps less than that.

sub asleep {
    is($s->http(issue())->{status}, 200, 'the committer sleeps');
}

sub connections {
    my ($count) = @_;

    my @socks = map { $s->connect } 1 .. $count;

    for my $sock (@socks) {
        $s->send_request($sock, 'GET', '/version', undef, token => undef,
                         keep => 1);
    }

    for my $sock (@socks) {
        RonTest::read_response($sock, 'GET', 10)->{status} == 200
            or BAIL_OUT('no connection');
    }

    return @socks;
}

# All of them in one turn of the worker's loop.

sub at_once {
    my ($make, @socks) = @_;

    my @workers = $s->workers;

    kill 'STOP', @workers;
    $s->send_request($_, $make->(), keep => 1) for @socks;
    sleep 0.05;
    kill 'CONT', @workers;
}

sub answers {
    my (@socks) = @_;

    my %got;

    for my $sock (@socks) {
        my $r = RonTest::read_response($sock, 'POST', 30);
        my $code = $r->{status} == 200 ? 'ok'
                                       : json_get($r->{body}, 'code') || 'none';

        push @{ $got{$code} }, $r;
    }

    return \%got;
}

sub number { my ($got, $code) = @_; return scalar @{ $got->{$code} || [] } }


# capacities

for my $case (
    [ qr/the queues are ingress, preval, commit and work/,
      'ron_queue colour=1;' ],
    [ qr/duplicate queue "work"/, 'ron_queue work=1 work=2;' ],
    [ qr/invalid number in "work=x"/, 'ron_queue work=x;' ],
    [ qr/must be at most 60s/, 'ron_commit_delay 2m;' ],
) {
    my ($says, $main) = @$case;
    my $bad = RonTest->new(main => $main);
    my ($code, $said) = $bad->test_config;
    isnt($code, 0, "$main is refused");
    like($said, $says, "says $says");
}


# work: 512, reject.  The default, filled by transfers.

begin('ron_commit_delay 900ms;');

is(metric('queue_capacity', 'queue="work"'), 512, 'work has 512 places');
is(metric('queue_capacity', 'q="ingress"'), 2000, 'ingress 2000');
is(metric('queue_capacity', 'q="preval"'), 2000, 'preval 2000');
is(metric('queue_capacity', 'q="commit"'), 1000, 'commit 1000');

my @socks = connections(515);
asleep();
at_once(\&transfer, @socks);

my $got = answers(@socks);
is(number($got, 'ok'), 512, '512 of 515 are taken');
is(number($got, 'BUSY'), 3, 'three are not');
is($got->{BUSY}[0]{status}, 429, 'which is 429');
like($got->{BUSY}[0]{headers}{'retry-after'}, qr/^\d+$/, 'with Retry-After');
is(metric('busy_rejections_total', 'endpoint="transfer"'), 3,
   'and counted exactly');
is(json_get($s->get('/v1/balance?account=bob&asset=ron')->{body},
            'amount_minor'), 513, 'each of the 512 was paid, and no other');
ok(until_ok(5, sub { metric('queue_depth', 'queue="work"') == 0 }),
   'the queue is empty again');


# how soon a full queue says so

begin('ron_queue work=4 ingress=4; ron_commit_delay 900ms;');

my @full = connections(8);
my ($probe) = connections(1);
my (@took, %status);

asleep();
at_once(\&transfer, @full[0 .. 3]);
at_once(\&ingest, @full[4 .. 7]);

ok(until_ok(0.3, sub {
    my $text = $s->get('/metrics', token => undef)->{body};
    return $text =~ /^queue_depth\{[^}]*queue="work"\} 4$/m
           && $text =~ /^queue_depth\{[^}]*q="ingress"\} 4$/m;
}), 'work and ingress are full');

for my $make (\&transfer, \&ingest) {
    for (1 .. 15) {
        my @request = $make->();
        my $t = time;
        $s->send_request($probe, @request, keep => 1);
        my $r = RonTest::read_response($probe, 'POST', 5);
        push @took, time - $t;
        $status{"$r->{status} " . (json_get($r->{body}, 'code') || 'ok')}++;
    }
}

@took = sort { $a <=> $b } @took;
is(join(', ', %status), '429 BUSY, 30', 'what is full refuses');
cmp_ok($took[15], '<', 0.005, 'in less than 5 ms, there and back');
is(metric('busy_rejections_total', 'endpoint="transfer"'), 15,
   'each is counted');
is(metric('busy_rejections_total', 'q="ingress"'), 15, 'where it was');

$got = answers(@full);
is(number($got, 'ok'), 8, 'and all that was taken is done');


# preval: drop the oldest; it is told

begin('ron_queue preval=5; ron_commit_delay 600ms;');

# two batches fit between sequencer and committer

sub occupy {
    my @socks = connections(2);

    asleep();

    for my $sock (@socks) {
        $s->send_request($sock, issue(), keep => 1);
        sleep 0.05;
    }

    return @socks;
}

my @waiting = connections(7);
my @before = occupy();

for my $sock (@waiting) {
    $s->send_request($sock, ingest(), keep => 1);
    sleep 0.01;
}

my @first = map { RonTest::read_response($_, 'POST', 0.5) } @waiting[0, 1];
is($_->{status}, 429, 'the oldest is told') for @first;
is(json_get($_->{body}, 'code'), 'PREVAL_DROPPED', 'that it was dropped')
    for @first;
ok(until_ok(0.4, sub { metric('queue_depth', 'q="preval"') == 5 }),
   'the other five wait');
is(metric('queue_depth', 'q="commit"'), 2, 'behind two batches');

$got = answers(@before, @waiting[2 .. 6]);
is(number($got, 'ok'), 7, 'and are done, as are those before');
ok(until_ok(3, sub { metric('drops_total', 'q="preval"') == 2 }),
   'two were dropped');
is(json_get($s->get('/ledger/accounts/x')->{body}, 'amount_minor'), 5,
   'and never committed');


# a wallet never loses an older payment to a newer one

begin('ron_queue preval=3; ron_commit_delay 120ms;');
@waiting = connections(5);
@before = occupy();
at_once(\&issue, @waiting);
$got = answers(@before, @waiting);
is(number($got, 'ok'), 7, 'all are done');
ok(until_ok(3, sub { metric('drops_total', 'q="preval"') >= 2 }),
   'also those that were dropped, which were sent again');

# and is told when there is no room to the last try

begin('ron_queue preval=1; ron_commit_delay 600ms;');
@waiting = connections(3);
@before = occupy();
at_once(\&issue, @waiting);
$got = answers(@waiting, @before);
is(number($got, 'PREVAL_DROPPED'), 2, 'two cannot get in');
is($got->{PREVAL_DROPPED}[0]{status}, 429, 'and are told');
is(number($got, 'ok') + number($got, 'TIMEOUT'), 3, 'one waits, behind two');
ok(until_ok(5, sub {
    json_get($s->get('/v1/balance?account=bob&asset=ron')->{body},
             'amount_minor') == 4
}), 'and is done, however long that took');


# commit: reject before a seq is consumed

begin('ron_queue commit=6; ron_commit_delay 900ms;');

@waiting = connections(9);
my @late = connections(2);
asleep();

# the sequencer finds nine, and has room for six

at_once(\&ingest, @waiting);

# and at nine tenths of it the worker sends no more

ok(until_ok(0.3, sub { $s->get('/readyz', token => undef)->{status} == 503 }),
   'at nine tenths nobody is to send more');
at_once(\&ingest, @late);

$got = answers(@waiting, @late);
is(number($got, 'ok'), 6, 'six are taken');
is(number($got, 'COMMIT_BACKPRESSURE'), 5, 'five are not');
is($got->{COMMIT_BACKPRESSURE}[0]{status}, 429, 'which is 429');
like($got->{COMMIT_BACKPRESSURE}[0]{headers}{'retry-after'}, qr/^\d+$/,
     'with Retry-After');
ok(until_ok(3, sub { metric('busy_rejections_total', 'q="commit"') == 5 }),
   'and counted exactly');
ok($s->log =~ /the committer is behind: 6 units wait/,
   'and somebody is told');
ok(until_ok(5, sub { $s->get('/readyz', token => undef)->{status} == 200 }),
   'ready when there is room');
is(json_get($s->get('/ledger/accounts/x')->{body}, 'amount_minor'), 6,
   'none of the five was committed');
is(json_get($s->http(ingest())->{body}, 'seq_start'), 9, 'nor left a gap');


# five times what the committer can do

begin('ron_batch 16; ron_commit_delay 40ms;', workers => 2);

# What became durable in three seconds in the middle of a load.

sub bench {
    my (@args) = @_;

    my $pid = fork;
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        open STDOUT, '>', "$s->{dir}/bench";
        open STDERR, '>&', \*STDOUT;
        exec "$BUILD/ronctl", 'bench', '--url', "http://127.0.0.1:$s->{port}",
             '--keys', "$s->{dir}/ron.keys", '--workload', 'transfer',
             '--json', @args or POSIX::_exit(127);
    }

    my $setup = metric('ledger_entries_total') + 1000;
    until_ok(20, sub { metric('ledger_entries_total') > $setup + 300 });

    my ($n, $t) = (metric('ledger_entries_total'), time);
    sleep 3;
    my $rate = (metric('ledger_entries_total') - $n) / (time - $t);

    waitpid $pid, 0;

    open my $f, '<', "$s->{dir}/bench" or die "bench: $!";
    my ($out) = join '', <$f>;
    my ($sent) = $out =~ /"sent":(\d+)/ or diag($out);
    my ($ok) = $out =~ /"status":\{[^}]*"200":(\d+)/;
    my ($refused) = $out =~ /"status":\{[^}]*"429":(\d+)/;

    return ($rate, $sent, $ok || 0, $refused || 0);
}

my ($peak) = bench(qw(--connections 64 --duration 5s));
my $offered = int($peak * 5);
my ($goodput, $sent, $ok, $refused) =
    bench('--rate', $offered, qw(--connections 768 --duration 5s));

cmp_ok($peak, '>', 100, "the committer is slowed, to $peak a second");
cmp_ok($peak, '<=', 400, 'and not more');
cmp_ok($goodput, '>=', 0.9 * $peak,
       "offered $offered, nine tenths of the peak go through: $goodput");
cmp_ok($sent, '>', 3 * $ok, 'of many more');
is($ok + $refused, $sent, 'and the rest is told to come again');

$s->quit;

done_testing();
