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

use JSON::PP ();
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
    $s->{connections} = $o{connections} || 1024;
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

sub episodes { return scalar(() = $s->log =~ /\[warn\].*committer is behind/g) }

sub number { my ($got, $code) = @_; return scalar @{ $got->{$code} || [] } }


# capacities

for my $case (
    [ qr/the queues are ingress, preval, commit, work, parse and proofs/,
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

is($s->metric('queue_capacity', 'queue="work"'), 512, 'work has 512 places');
is($s->metric('queue_capacity', 'q="ingress"'), 2000, 'ingress 2000');
is($s->metric('queue_capacity', 'q="preval"'), 2000, 'preval 2000');
is($s->metric('queue_capacity', 'q="commit"'), 1000, 'commit 1000');

my @socks = connections(515);
asleep();
at_once(\&transfer, @socks);

my $got = answers(@socks);
is(number($got, 'ok'), 512, '512 of 515 are taken');
is(number($got, 'BUSY'), 3, 'three are not');
is($got->{BUSY}[0]{status}, 429, 'which is 429');
like($got->{BUSY}[0]{headers}{'retry-after'}, qr/^\d+$/, 'with Retry-After');
is($s->metric('busy_rejections_total', 'endpoint="transfer"'), 3,
   'and counted exactly');
is(json_get($s->get('/v1/balance?account=bob&asset=ron')->{body},
            'amount_minor'), 513, 'each of the 512 was paid, and no other');
ok(until_ok(5, sub { $s->metric('queue_depth', 'queue="work"') == 0 }),
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
cmp_ok($took[15], '<', slow(0.005), 'in less than 5 ms, there and back');
is($s->metric('busy_rejections_total', 'endpoint="transfer"'), 15,
   'each is counted');
is($s->metric('busy_rejections_total', 'q="ingress"'), 15, 'where it was');

$got = answers(@full);
is(number($got, 'ok'), 8, 'and all that was taken is done');


# who has not sent all of its body yet takes nobody's place

begin('ron_queue work=4 ingress=4;');

# The beginning of a request, and what is left of it.

sub half {
    my ($sock, $method, $path, $body, %o) = @_;

    my $text = $s->request_text($method, $path, $body, %o, keep => 1);
    my $rest = substr $text, -20, 20, '';

    syswrite $sock, $text;
    return $rest;
}

my @half = connections(20);
my @rest = ((map { half($half[$_], issue()) } 0 .. 9),
            (map { half($half[$_], ingest()) } 10 .. 19));

ok(until_ok(5, sub {
    $s->metric('inflight_requests', '/v1/issue') == 10
        && $s->metric('inflight_requests', '/ledger/ingest') == 10
        && $s->metric('queue_depth', 'queue="work"') == 0
        && $s->metric('queue_depth', 'q="ingress"') == 0
}), 'twenty halves, and nobody waits in a queue');
is($s->http(issue())->{status}, 200, 'the wallet pays');
is($s->http(ingest())->{status}, 200, 'the ledger takes entries');

for my $i (0 .. 19) {
    syswrite $half[$i], $rest[$i];
    is(RonTest::read_response($half[$i], 'POST', 10)->{status}, 200,
       "half $i is done when the other half has come");
}

# and then it is one like any other

begin('ron_queue work=4 ingress=4; ron_commit_delay 900ms;');

@full = connections(4);
@half = connections(1);
@rest = half($half[0], issue());
ok(until_ok(5, sub { $s->metric('inflight_requests', '/v1/issue') == 1 }),
   'half of one');
asleep();
at_once(\&issue, @full);
ok(until_ok(0.3, sub { $s->metric('queue_depth', 'queue="work"') == 4 }),
   'work is full');
syswrite $half[0], $rest[0];
is(RonTest::read_response($half[0], 'POST', 5)->{status}, 429,
   'the other half finds no place');
is($s->metric('busy_rejections_total', 'endpoint="issue"'), 1, 'is counted');
$got = answers(@full);
is(number($got, 'ok'), 4, 'the others are done');

# lines: a stream that has none is not in the queue either

begin('ron_queue ingress=2;');
@half = connections(5);

sub line {
    return '{"id":"s' . ++$id . '","ts":1700000000000,"kind":"Mint","account":'
           . '"y","amount":"1","nonce":"' . nonce16() . '","v":1}' . "\n";
}

sub chunk { return sprintf "%x\r\n%s\r\n", length $_[0], $_[0] }

for my $i (0 .. 4) {
    syswrite $half[$i], $s->request_text('POST', '/ledger/ingest', '',
        type => 'application/x-ndjson', keep => 1,
        headers => { 'Transfer-Encoding' => 'chunked' }) . chunk(line());
    ok(until_ok(5, sub {
        json_get($s->get('/ledger/accounts/y')->{body}, 'amount_minor')
            == $i + 1
    }), "stream $i: a line is done, it waits for more");
}

is($s->http(ingest())->{status}, 200, 'another is served');

for my $sock (@half) {
    syswrite $sock, chunk(line()) . "0\r\n\r\n";
    my $r = RonTest::read_response($sock, 'POST', 10);
    is($r->{status}, 200, 'a stream goes on');
    like($r->{body}, qr/\A(?:.*"accepted":1,"rejected":0.*\n){2}\z/,
         'and its second line is done');
}


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
ok(until_ok(0.4, sub { $s->metric('queue_depth', 'q="preval"') == 5 }),
   'the other five wait');
is($s->metric('queue_depth', 'q="commit"'), 2, 'behind two batches');

$got = answers(@before, @waiting[2 .. 6]);
is(number($got, 'ok'), 7, 'and are done, as are those before');
ok(until_ok(3, sub { $s->metric('drops_total', 'q="preval"') == 2 }),
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
ok(until_ok(3, sub { $s->metric('drops_total', 'q="preval"') >= 2 }),
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
ok(until_ok(3, sub { $s->metric('busy_rejections_total', 'q="commit"') == 5 }),
   'and counted exactly');

# again and again, and with room between: one episode is one line

my @more = connections(8);
for (1 .. 2) {
    ok(until_ok(5, sub { $s->get('/readyz', token => undef)->{status} == 200
                         && $s->metric('queue_depth', 'q="commit"') == 0 }),
       'there is room');
    asleep();
    at_once(\&ingest, @more);
    $got = answers(@more);
    is(number($got, 'COMMIT_BACKPRESSURE'), 2, 'and then there is none');
}

ok(until_ok(5, sub { $s->metric('busy_rejections_total', 'q="commit"') == 9 }),
   'nine in all');
ok(until_ok(5, sub { episodes() == 1 }), 'and somebody is told')
    or diag($s->log =~ /committer/ ? episodes() : 'nobody');
ok(until_ok(15, sub { $s->log
        =~ /the committer keeps up again: 9 writes were refused/ }),
   'and that it is over, with how many');

asleep();
at_once(\&ingest, @more);
answers(@more);
ok(until_ok(5, sub { episodes() == 2 }), 'the next one is another');
ok(until_ok(5, sub { $s->get('/readyz', token => undef)->{status} == 200 }),
   'ready when there is room');
is(json_get($s->get('/ledger/accounts/x')->{body}, 'amount_minor'), 24,
   'none of those that were refused was committed');
is(json_get($s->http(ingest())->{body}, 'seq_start'), 30, 'nor left a gap');


# Five times what the committer can do, in open loop: 1 000 a second and 5 000,
# or 5 000 and 25 000 with RON_OVERLOAD=1, for which a machine must be quiet.
# The committer sleeps for 19 ms behind each batch.

my $long = $ENV{RON_OVERLOAD};
my $batch = $long ? 100 : 20;
my $nominal = 50 * $batch;
my $window = $long ? 10 : 4;

$s->{http} .= ' log_format took "$status $request_time";';
$s->{config} = "access_log $s->{dir}/took.log took buffer=64k flush=1s;";
begin("ron_batch $batch; ron_commit_delay 19ms;", workers => 2,
      connections => 4096);

my $calm = bench('--connections', 4 * $batch);
my $peak = $calm->{operations_per_s};

cmp_ok($peak, '>', $nominal / 3, "the committer is slowed, to $peak a second");
cmp_ok($peak, '<=', 1.05 * $nominal, 'and not less');

my $was = $s->metric('busy_rejections_total', 'endpoint="transfer"');
my $had = $s->metric('ledger_entries_total');
truncate "$s->{dir}/took.log", 0;

my $flood = bench('--connections', $long ? 2000 : 1000,
                  '--rate', 5 * $nominal);
my ($goodput, $ok, $refused) = ($flood->{operations_per_s},
                                map { $flood->{status}{$_} || 0 } 200, 429);

diag(sprintf 'overload: peak %.0f/s, %d/s offered, %.0f/s sent, goodput %.0f/s'
     . ' (%.0f %%), p50 %.0f ms', $peak, 5 * $nominal,
     $flood->{sent} / ($window + 1), $goodput, 100 * $goodput / $peak,
     $flood->{latency_us}{p50} / 1000);

cmp_ok($goodput, '>=', 0.9 * $peak / slow(1), 'nine tenths of the peak go through');
cmp_ok($flood->{sent}, '>', 3 * $ok, 'of many more');
cmp_ok($flood->{late}, '<', $flood->{sent} / 100, 'as many as were due')
    if $long;
is($ok + $refused, $flood->{sent}, 'and the rest is told to come again');
is($flood->{unanswered}, 0, 'nobody was left without an answer');
ok(until_ok(5, sub {
    $s->metric('busy_rejections_total', 'endpoint="transfer"')
        == $was + $refused
}), "each of $refused refusals is counted");
ok(until_ok(5, sub {
    $s->metric('ledger_entries_total')
        == $had + $flood->{setup_acknowledged} + $flood->{acknowledged}
}), 'and what was acknowledged is in the journal, and nothing else');

# from the request parsed to the answer written, by NGINX's clock

my @refusals;
ok(until_ok(5, sub {
    @refusals = sort { $a <=> $b }
                RonTest::slurp("$s->{dir}/took.log") =~ /^429 (\S+)$/mg;
    return @refusals == $refused;
}), 'each refusal is in the access log');
diag(sprintf 'refusals: %s', join ', ', map { sprintf '%s %% within %.0f ms',
    100 * $_, 1000 * $refusals[@refusals * $_] } 0.9, 0.99, 0.999, 0.9999)
    if $long;
my $late = $long ? 0.999 : 0.9;
cmp_ok($refusals[@refusals * $late], '<=', slow(0.005),
       sprintf '%.1f %% of them within 5 ms', 100 * $late);


# One load, and what it says of itself.

sub bench {
    my (@args) = @_;

    my $out = `$BUILD/ronctl bench --url http://127.0.0.1:$s->{port} \\
                   --keys $s->{dir}/ron.keys --workload transfer --json \\
                   --accounts 4000 --duration ${window}s @args 2>&1`;

    my ($json) = $out =~ /^(\{"ok".*\})$/m or BAIL_OUT("bench: $out");

    return JSON::PP::decode_json($json);
}

$s->quit;

done_testing();
