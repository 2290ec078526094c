#!/usr/bin/perl

# The helper stands still, or is gone: writes are refused, reads go on and
# say how old they are.

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use Time::HiRes qw(sleep time);


my $s = RonTest->new(workers => 2, main => 'ron_committer_lag_max 500ms;');
$s->start or BAIL_OUT('no server');

is($s->post('/v1/issue', { to => 'a', asset => 'ron',
                           amount_minor => '100' }, key => 'i')->{status},
   200, 'money');

my %pay = (from => 'a', to => 'b', asset => 'ron', amount_minor => '1');
my $path = '/v1/balance?account=a&asset=ron';

my $r = $s->get($path);
is($r->{status}, 200, 'a balance');
cmp_ok(json_get($r->{body}, 'stale_ms'), '<=', 250, 'at most 250 ms old');
my $tag = $r->{headers}{etag};


# stopped: asked for a moment, then what the zone has

my $helper = $s->helper;
my $stopped = time;
freeze($helper);

my ($ready, $flipped, $last, $max, $n, $bad) = (1, 0, 0, 0, 0, 0);

# until half a second after readiness must have been lost

while (time - $stopped < 1.2) {
    my $begin = time;
    $r = $s->get($path);
    my $took = time - $begin;

    $max = $took if $took > $max;
    $bad++ if $r->{status} != 200
              || json_get($r->{body}, 'amount_minor') ne '100';
    $n++;

    next unless $ready;

    $begin = time - $stopped;

    if ($s->get('/readyz', token => undef)->{status} == 503) {
        $ready = 0;
        $flipped = time - $stopped;
    } else {
        $last = $begin;
    }
}

is($bad, 0, "all of $n balances are answered, with the last value");
cmp_ok($max, '<', slow(2), 'and none of them waits for the deadline');
is($ready, 0, 'readiness is lost');
cmp_ok($flipped, '>=', 0.4, 'not before committer_lag_max');
cmp_ok($last, '<', slow(0.5 + 0.2), 'and within 200 ms after it');

$r = $s->get($path);
my $age = (time - $stopped) * 1000;
my $stale = json_get($r->{body}, 'stale_ms');
cmp_ok($stale, '<=', $age + 250, 'it is as old as it says');
cmp_ok($stale, '>=', 800, 'and not younger');
is($r->{headers}{etag}, $tag, 'its version is the same');
like(json_get($r->{body}, 'as_of'), qr/^\d{4}-/, 'as of a time');

$r = $s->post('/v1/transfer', { %pay, nonce => 1 }, key => 't1');
is($r->{status}, 503, 'a write is refused');
is(json_get($r->{body}, 'code'), 'RETRY_LATER', 'to be tried later');
is($r->{headers}{'retry-after'}, 2, 'and when');

$r = $s->get('/v1/balance?account=never&asset=ron',
             headers => { 'Request-Timeout' => 1 });
is($r->{status}, 503, 'what only the helper knows is not invented');

$r = $s->get('/readyz', token => undef);
is($r->{status}, 503, 'not ready');
is(json_get($r->{body}, 'degraded'), 'true', 'but degraded');
is($r->{headers}{'retry-after'}, json_get($r->{body}, 'retry_after'),
   'head and body say when it may be');

kill 'CONT', $helper;
ok($s->wait_ready, 'ready again');
is($s->post('/v1/transfer', { %pay, nonce => 1 }, key => 't1')->{status},
   200, 'the refused write was not burnt');
$r = $s->get($path);
is(json_get($r->{body}, 'amount_minor'), '99', 'its balance');
cmp_ok(json_get($r->{body}, 'stale_ms'), '<=', 250, 'is fresh again');

$s->quit;


# a balance is the zone's while the helper was heard of within ron_wallet_stale;
# later the helper is asked, for 100 ms

{
    my $s = RonTest->new(main => 'ron_committer_lag_max 60s;',
                         http => 'ron_wallet_stale 5s;');
    $s->start or BAIL_OUT('no server');
    is($s->post('/v1/issue', { to => 'a', asset => 'ron',
                               amount_minor => '7' }, key => 'stale')
       ->{status}, 200, 'a payment');
    my $helper = $s->helper;

    # not in the middle of what follows a commit

    sleep 0.5;
    freeze($helper);

    my $frozen = time;
    my $read = sub {
        my $begin = time;
        my $r = $s->get('/v1/balance?account=a&asset=ron');
        return (time - $begin, json_get($r->{body}, 'amount_minor'),
                json_get($r->{body}, 'stale_ms'));
    };
    my (@took, @wrong, $stale);

    while (time - $frozen < 4.5) {
        my ($took, $amount, $ms) = $read->();
        push @took, $took;
        push @wrong, $amount if $amount ne '7';
        $stale = $ms;
        sleep 0.1;
    }

    @took = sort { $a <=> $b } @took;
    is("@wrong", '', @took . ' balances of a helper that stands still');
    cmp_ok($took[@took / 2], '<', slow(0.08), 'are answered at once');
    cmp_ok($stale, '>=', 4000, 'and say that they are old');

    sleep 1;
    my ($took, $amount) = $read->();
    is($amount, 7, 'a balance after 5 s');
    cmp_ok($took, '>=', 0.09, 'was asked for before');

    kill 'CONT', $helper;
    ok($s->wait_ready, 'it goes on');
    $s->quit;
}


# a breaker: what nobody answers is not asked for long

$s = RonTest->new(workers => 2, main => 'ron_committer_lag_max 60s;',
                  http => 'ron_deadline 1500ms; '
                          . 'ron_wallet_breaker errors=5 open=2s probes=2;');
$s->start or BAIL_OUT('no server');

is($s->post('/v1/issue', { to => 'a', asset => 'ron',
                           amount_minor => '100' }, key => 'i')->{status},
   200, 'money');

$helper = $s->helper;
freeze($helper);

# clients without patience do not open it

my @socks = map { $s->connect } 1 .. 8;
$s->send_request($socks[$_], 'POST', '/v1/transfer',
                 { %pay, nonce => 1 + $_ }, key => "hasty$_",
                 headers => { 'Request-Timeout' => 0 }) for 0 .. 7;
is(scalar(grep { RonTest::read_response($_, 'POST')->{status} == 503 }
          @socks), 8, 'eight without patience');
$r = $s->get('/metrics', token => undef);
like($r->{body}, qr/^breaker_state\{[^}]*target="ledger"[^}]*\} 0$/m,
     'the breaker is closed');

@socks = map { $s->connect } 1 .. 5;
$s->send_request($socks[$_], 'POST', '/v1/transfer',
                 { %pay, nonce => 1 + $_ }, key => "t$_") for 0 .. 4;
my @r = map { RonTest::read_response($_, 'POST') } @socks;
is(scalar(grep { $_->{status} == 503
                 && json_get($_->{body}, 'code') eq 'TIMEOUT' } @r), 5,
   'five that nobody answers');

my $begin = time;
$r = $s->post('/v1/transfer', { %pay, nonce => 9 }, key => 't9');
cmp_ok(time - $begin, '<', slow(1), 'the next hears at once');
is($r->{status}, 503, 'that it is not done');
is(json_get($r->{body}, 'code'), 'UPSTREAM_UNAVAILABLE', 'and why');
cmp_ok($r->{headers}{'retry-after'}, '>=', 1, 'and when to come again');
cmp_ok($r->{headers}{'retry-after'}, '<=', 2, 'which is when it may close');
is($s->get($path)->{status}, 200, 'a balance is served');

$r = $s->get('/readyz', token => undef);
is($r->{status}, 503, 'it is not ready');
like($r->{body}, qr/"missing":\[[^\]]*"ledger"/, 'the ledger is missing');
like($r->{body}, qr/"breaker":\[\{"svc":"ledger","state":"open"\}\]/,
     'its breaker is open');
$r = $s->get('/metrics', token => undef);
like($r->{body}, qr/^breaker_state\{[^}]*target="ledger"[^}]*\} [12]$/m,
     'the breaker is open');
like($r->{body}, qr/^circuit_open_total\{[^}]*svc="ledger"[^}]*\} 1$/m,
     'it opened once');

kill 'CONT', $helper;
$n = 9;

ok(until_ok(10, sub {
    $r = $s->post('/v1/transfer', { %pay, nonce => 100 + ++$n },
                  key => "after$n");
    return $r->{status} == 200;
}), 'it closes when the ledger answers');
ok($s->wait_ready, 'and is ready');

# open again, with a helper that is there; its two probes are of clients who
# hang up, and who comes then is not kept out

SKIP: {
    my $strace = $s->inject('fdatasync', 'delay_enter=4000000');

    if (!$strace) {
        ok(0, 'strace is there') if $ENV{CI};
        skip('no strace here: probes whose clients hang up', 3);
    }

    @socks = map { $s->connect } 1 .. 5;
    $s->send_request($socks[$_], 'POST', '/v1/transfer',
                     { %pay, nonce => 1001 + $_ }, key => "s$_") for 0 .. 4;
    is(scalar(grep { RonTest::read_response($_, 'POST')->{status} == 503 }
              @socks), 5, 'five wait for a sync in vain');
    sleep(2.1);

    @socks = map { $s->connect } 1 .. 2;
    $s->send_request($socks[$_], 'POST', '/v1/transfer',
                     { %pay, nonce => 1011 + $_ }, key => "gone$_") for 0 .. 1;
    sleep(0.3);
    $r = $s->post('/v1/transfer', { %pay, nonce => 1020 }, key => 't60');
    is(json_get($r->{body}, 'code'), 'UPSTREAM_UNAVAILABLE',
       'two probes are under way, a third is not made');
    close $_ for @socks;
    sleep(0.2);
    kill 'TERM', $strace;
    waitpid $strace, 0;
    $r = $s->post('/v1/transfer', { %pay, nonce => 1030 }, key => 't70');
    is($r->{status}, 200, 'they hang up: others are asked instead')
        or diag($r->{body});
}

# exactly once: what timed out was executed then, or can be now

@r = map { $s->post('/v1/transfer', { %pay, nonce => 1 + $_ },
                    key => "t$_")->{status} } 0 .. 4;
is(scalar(grep { $_ == 200 || $_ == 409 } @r), 5,
   'what timed out has one fate');

$s->quit;
done_testing();
