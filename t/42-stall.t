#!/usr/bin/perl

# A disk that stands still while all processes live: readiness is lost in
# time, reads go on, and everything drains when it is over.  And the breaker
# before the ledger, with the numbers that it has unless told otherwise.

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonChaos;
use Time::HiRes qw(sleep time);

# not transfers: of several at once one may overtake another's nonce
my %pay = (to => 'b', asset => 'ron', amount_minor => '1');
my $nonce = 0;
my ($c, $s);

sub begin {
    my (%o) = @_;

    $c = RonChaos->new(shim => 1, %o);
    $s = $c->{s};
    $c->start;
    is($s->post('/v1/issue', { to => 'a', asset => 'ron',
                               amount_minor => '1000' }, key => 'i')->{status},
       200, 'money');
}

# So many payments at once; their sockets.
sub pay {
    my ($n) = @_;

    my @socks = map { $s->connect } 1 .. $n;

    $s->send_request($_, 'POST', '/v1/issue',
                     { %pay, nonce => ++$nonce }, key => "p$nonce")
        for @socks;

    return @socks;
}

sub answers {
    return map { my $r = RonTest::read_response($_, 'POST', 20);
                 $r->{status} == 200 ? 200 : json_get($r->{body}, 'code') }
           @_;
}

sub circuit {
    return $s->metric('circuit_open_total', 'svc="ledger"');
}


# A sync of 2.5 s.  Both ends of each look are known, and the answer says how
# long the sync has lasted, by the clock of the server: what is compared can
# only be less than what was.

begin(main => 'ron_committer_lag_max 500ms;');

{
    $c->shim(delay => 2_500_000);

    my @socks = pay(3);
    my ($ok_until, $begun, $first);
    my $end = time + slow(10);

    while (time < $end && !defined $first) {
        my $asked = time;
        my $r = $s->get('/readyz', token => undef);
        my $told = time;

        if ($r->{status} == 200) {
            $ok_until = $asked;
        } else {
            my $lag = json_get($r->{body}, 'committer_lag_ms') / 1000;

            cmp_ok($lag, '>', 0.5, 'not before ron_committer_lag_max');
            $begun = $told - $lag;
            $first = $asked;
        }
    }

    ok(defined $first, 'readiness is lost');
    cmp_ok($ok_until - $begun, '<=', 0.5 + 0.2,
           sprintf 'within 200 ms after it: it was ready %.3f s after the '
                   . 'sync began', $ok_until - $begun);

    my ($code) = answers(pay(1));
    is($code, 'RETRY_LATER', 'a write is refused');
    is($s->get('/v1/balance?account=a&asset=ron')->{status}, 200,
       'a balance is answered');

    $c->shim(delay => 0);
    is(join(' ', answers(@socks)), '200 200 200', 'what was in is done');
    ok($s->wait_ready(15), 'ready when it is over');

    for my $queue ('q="ingress"', 'q="preval"', 'q="commit"', 'queue="work"') {
        ok(until_ok(10, sub { $s->metric('queue_depth', $queue) == 0 }),
           "$queue is empty again");
    }

    is($s->metric('ledger_backlog'), 0, 'nothing is left');
    is($s->metric('worker_inflight'), 0, 'with the committer neither');
}

$s->quit;


# twenty errors in ten seconds open it, for five seconds; then ten probes

begin(main => 'ron_committer_lag_max 60s;', http => 'ron_deadline 1500ms;');

{
    $c->shim(delay => 4_000_000);

    is(join(' ', answers(pay(19))), join(' ', ('TIMEOUT') x 19),
       'nineteen that nobody answers');
    is(circuit(), 0, 'do not open it');
    is($s->get('/readyz', token => undef)->{status}, 200, 'it is ready');
    is((answers(pay(1)))[0], 'TIMEOUT', 'the twentieth');

    my $open = time;

    is(circuit(), 1, 'does');

    my ($sock) = pay(1);
    my $r = RonTest::read_response($sock, 'POST', 20);

    is(json_get($r->{body}, 'code'), 'UPSTREAM_UNAVAILABLE',
       'the next hears at once');
    cmp_ok($r->{headers}{'retry-after'}, '<=', 5, 'for up to five seconds');
    cmp_ok($r->{headers}{'retry-after'}, '>=', 4, 'and not much less')
        if time - $open < 0.9;

    ok(until_ok(10, sub {
        $s->get('/readyz', token => undef)->{status} == 200
    }), 'it is not asked for a while');
    cmp_ok(time - $open, '>=', 4.5, 'five seconds');

    # probes, while its sync lasts: the eleventh is not made

    my @probes = pay(10);

    sleep 0.3;
    is((answers(pay(1)))[0], 'UPSTREAM_UNAVAILABLE',
       'ten probes are under way, an eleventh is not made');

    my @got = answers(@probes);

    is(scalar(grep { $_ eq 'UPSTREAM_UNAVAILABLE' } @got), 0,
       'each of the ten was asked') or diag("@got");

    $c->shim(delay => 0);
    ok(until_ok(20, sub { (answers(pay(1)))[0] eq '200' }),
       'it is asked again when it answers');
    ok($s->wait_ready, 'and is ready');
    is(join(' ', answers(pay(9))), join(' ', (200) x 9), 'nine more probes');
    is($s->metric('breaker_state', 'target="ledger"'), 0, 'close it');
}

$s->quit;
done_testing();
