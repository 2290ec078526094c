#!/usr/bin/perl

# The helper stands still, or is gone: writes are refused, reads go on and
# say how old they are.

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use Time::HiRes 'time';


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
kill 'STOP', $helper;

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
cmp_ok($max, '<', 2, 'and none of them waits for the deadline');
is($ready, 0, 'readiness is lost');
cmp_ok($flipped, '>=', 0.4, 'not before committer_lag_max');
cmp_ok($last, '<', 0.5 + 0.2, 'and within 200 ms after it');

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
cmp_ok($r->{headers}{'retry-after'} || 0, '>=', 1, 'and when');

$r = $s->get('/v1/balance?account=never&asset=ron',
             headers => { 'Request-Timeout' => 1 });
is($r->{status}, 503, 'what only the helper knows is not invented');

$r = $s->get('/readyz', token => undef);
is($r->{status}, 503, 'not ready');
is(json_get($r->{body}, 'degraded'), 'true', 'but degraded');

kill 'CONT', $helper;
ok($s->wait_ready, 'ready again');
is($s->post('/v1/transfer', { %pay, nonce => 1 }, key => 't1')->{status},
   200, 'the refused write was not burnt');
$r = $s->get($path);
is(json_get($r->{body}, 'amount_minor'), '99', 'its balance');
cmp_ok(json_get($r->{body}, 'stale_ms'), '<=', 250, 'is fresh again');

$s->quit;
done_testing();
