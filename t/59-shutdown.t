#!/usr/bin/perl

# The steps of a shutdown, in their order, from the log and from what clients
# see: intake stops, workers say so, what was admitted is finished, they say
# so, the last root is told, threads are joined, processes end.  And a drain
# that is too long for its deadline: aborting, then stopped.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

my $key = 0;


# Requests that are under way: one connection each.

sub begin {
    my ($s, $n) = @_;

    return map {
        my $c = $s->connect;
        $s->send_request($c, 'POST', '/v1/issue', { to => 'a',
            asset => 'ron', amount_minor => '1' }, key => 'k' . ++$key);
        $c;
    } 1 .. $n;
}

sub metric {
    my ($s, $name) = @_;

    my ($v) = $s->get('/metrics')->{body} =~ /^\Q$name\E (\d+)$/m;
    return $v || 0;
}

sub entered {
    return metric($_[0], 'lifecycle_transitions_total{service="ledger",'
                         . "state=\"$_[1]\"}");
}

# Where the n-th line of a pattern is in the log; -1: nowhere.
sub place {
    my ($log, $pattern, $n) = @_;

    my @lines = split /\n/, $log;
    my @at = grep { $lines[$_] =~ $pattern } 0 .. $#lines;

    return @at > ($n || 0) ? $at[$n || 0] : -1;
}

sub in_order {
    my ($name, @places) = @_;

    my $ok = !grep { $places[$_] < 0 || $_ && $places[$_] <= $places[$_ - 1] }
        0 .. $#places;
    ok($ok, $name) or diag("places: @places");
}


# ---- in time ----------------------------------------------------------------

my $s = RonTest->new(workers => 1,
    main => 'ron_batch 1; ron_commit_delay 100ms; ron_committer_lag_max 60s;'
            . ' ron_drain_deadline 5s;');
$s->start or BAIL_OUT('no server');
is($s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '1' },
            key => 'first')->{status}, 200, 'a payment');
is(entered($s, 'running'), 1, 'running');

my $stream = $s->connect;
$s->send_request($stream, 'GET', '/ledger/roots/stream', undef, keep => 1);

my @under_way = begin($s, 8);
ok(until_ok(10, sub {
    metric($s, 'queue_depth{service="ledger",q="preval"}') > 0
        || metric($s, 'queue_depth{service="ledger",q="commit"}') > 0
        || json_get($s->get('/readyz')->{body}, 'seq') > 1
}), 'more are admitted');

my $r = $s->post('/ledger/admin/drain', undef);
is($r->{status}, 200, 'drain');

$r = $s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '1' },
              key => 'late');
is($r->{status}, 503, 'intake has stopped');
is(json_get($r->{body}, 'code'), 'DRAINING', 'as draining');

my @status = map { RonTest::read_response($_)->{status} } @under_way;
is(scalar(grep { $_ == 200 } @status), 8, 'what was admitted is answered')
    or diag("@status");
ok(until_ok(10, sub {
    json_get($s->get('/readyz')->{body}, 'state') eq 'stopped'
}), 'stopped');

my $said = '';
ok(until_ok(10, sub {
    IO::Select->new($stream)->can_read(0.1)
        && sysread $stream, $said, 65536, length $said;
    $said =~ /event: final/;
}), 'a stream is told the last root');
my ($root) = $said =~ /event: final.*?"root":"(\w+)"/s;

is(entered($s, $_), 1, "it came once into $_") for qw(draining stopped);
is(entered($s, 'aborting'), 0, 'and never into aborting');

$s->quit;
my $log = $s->log;

in_order('draining; the worker stops intake; its calls end; stopped; joined',
         place($log, qr/ron: ledger is draining/),
         place($log, qr/ron: ledger is stopped/),
         place($log, qr/"event":"shutdown"/));
in_order('the worker: intake first, then the last call, then its end',
         place($log, qr/ron: intake stopped, \d+ calls wait/),
         place($log, qr/ron: no call waits any more/),
         place($log, qr/ron: connection to the helper closed: the worker/),
         place($log, qr/"event":"shutdown"/));
is(place($log, qr/ron: intake stopped/, 1), -1, 'each step once');
my ($last) = reverse grep { /"event":"shutdown"/ } split /\n/, $log;
like($last, qr/"drained":true,"aborted":0,"canceled":0,"leaked":0,
               "seq":9,"root":"$root"/x, 'nothing was lost or left');


# ---- an operator's word ------------------------------------------------------

# a helper that dies does not take it back

$s = RonTest->new(workers => 1);
$s->start or BAIL_OUT('no server');
is($s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '7' },
            key => 'some')->{status}, 200, 'a payment');
is($s->post('/ledger/admin/drain', undef)->{status}, 200, 'drain');
ok(until_ok(10, sub {
    json_get($s->get('/readyz')->{body}, 'state') eq 'stopped'
}), 'stopped');

ok($s->kill_helper, 'the helper is killed');
ok(until_ok(10, sub { entered($s, 'stopped') == 2 }),
   'the next one drains as well') or diag($s->log);
ok(until_ok(2, sub {
    $r = $s->get('/readyz');
    json_get($r->{body}, 'state') eq 'stopped'
}), 'it is stopped');
is($r->{status}, 503, 'not ready');
is(entered($s, 'running'), 1, 'and it was never running');
$r = $s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '1' },
              key => 'later');
is($r->{status}, 503, 'a write is refused');
is(json_get($r->{body}, 'code'), 'DRAINING', 'as draining');
$r = $s->get('/v1/balance?account=a&asset=ron');
is(json_get($r->{body}, 'amount_minor'), 7, 'reads go on');

# a reload does

ok($s->reload, 'a reload');
ok($s->wait_ready, 'is a start');
is($s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '1' },
            key => 'again')->{status}, 200, 'a payment');
ok($s->kill_helper, 'the helper is killed');
ok(until_ok(10, sub {
    $s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '1' },
             key => 'and-again')->{status} == 200
}), 'and the drain is forgotten');
$s->quit;


# ---- before it has the ledger ------------------------------------------------

# a reload and a quit: the new helper still waits for the one before

$s = RonTest->new(workers => 1, main => 'ron_drain_deadline 5s;');
$s->start or BAIL_OUT('no server');

my $before = $s->helper;
ok(freeze($before), 'a helper is stopped');
ok($s->reload, 'a reload');
ok(until_ok(10, sub { $s->log =~ /ron: ledger is following/ }),
   'its successor waits for the ledger');

my $half = $s->connect;
my $text = $s->request_text('POST', '/v1/issue', { to => 'a', asset => 'ron',
    amount_minor => '1' }, key => 'half');

syswrite $half, substr $text, 0, -1;
ok(until_ok(10, sub {
    metric($s, 'wallet_inflight{service="wallet",endpoint="issue"}')
}), 'half a request');
kill 'QUIT', $s->{pid};
ok(until_ok(10, sub { $s->log =~ /ron: waiting for \d workers/ }),
   'told to quit, it waits for a worker that it has not met');
kill 'CONT', $before;
syswrite $half, substr $text, -1;
is(RonTest::read_response($half)->{status}, 200, 'the request is answered');
close $half;
$s->quit;


# ---- too long ---------------------------------------------------------------

$s = RonTest->new(workers => 1,
    main => 'ron_batch 1; ron_commit_delay 400ms; ron_committer_lag_max 60s;'
            . ' ron_drain_deadline 1s;');
$s->start or BAIL_OUT('no server');
is($s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '1' },
            key => 'first-2')->{status}, 200, 'a payment');

@under_way = begin($s, 10);
ok(until_ok(10, sub { json_get($s->get('/readyz')->{body}, 'seq') > 1 }),
   'ten are admitted, one is done');
is($s->post('/ledger/admin/drain', undef)->{status}, 200, 'drain');

my %seen;

ok(until_ok(20, sub {
    my $state = json_get($s->get('/readyz')->{body}, 'state') || '';
    $seen{$state}++;
    $state eq 'stopped';
}), 'it ends');
is(join(' ', sort keys %seen), 'aborting draining stopped',
   'draining, aborting, stopped are seen');

my %answers;
$answers{ RonTest::read_response($_)->{status} }++ for @under_way;
is($answers{200} + $answers{503}, 10, 'each is answered');
cmp_ok($answers{200}, '>', 0, 'some were done');
cmp_ok($answers{503}, '>', 0, 'some were given up');
is(metric($s, 'tasks_aborted_total{service="wallet",kind="worker"}'),
   $answers{503}, 'which are counted as aborted');
is(entered($s, $_), 1, "it came once into $_")
    for qw(draining aborting stopped);

$r = $s->get('/v1/balance?account=a&asset=ron');
is(json_get($r->{body}, 'amount_minor'), 1 + $answers{200},
   'what was given up did not happen');

$s->quit;
$log = $s->log;
in_order('draining, aborting, stopped, the end',
         place($log, qr/ron: ledger is draining/),
         place($log, qr/ron:\ ledger\ is\ aborting:\ the\ deadline\ of\ the\ drain
                        \ passed,\ \d+\ given\ up/x),
         place($log, qr/ron: ledger is stopped/),
         place($log, qr/"event":"shutdown"/));

done_testing();
