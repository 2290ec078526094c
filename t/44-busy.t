#!/usr/bin/perl

# A full work queue: who comes later is refused at once and counted, who is in
# is served; and deadlines are kept to a tenth.

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use Time::HiRes 'time';


my $s = RonTest->new(workers => 2, main => 'ron_queue work=6; '
                                           . 'ron_committer_lag_max 60s;',
                     http => 'ron_deadline 20s;');
$s->start or BAIL_OUT('no server');

is($s->post('/v1/issue', { to => 'a', asset => 'ron',
                           amount_minor => '1000' }, key => 'i')->{status},
   200, 'money');

is($s->post('/v1/issue', { to => "p$_", asset => 'ron', amount_minor => '9' },
            key => "i$_")->{status}, 200, "and for p$_") for 1 .. 6;

my %pay = (from => 'a', to => 'b', asset => 'ron', amount_minor => '1');

my $rejected = $s->metric('busy_rejections_total', 'endpoint="transfer"');

for my $round (1 .. 3) {
    my $helper = $s->helper;
    freeze($helper);

    # as many as fit, of accounts of their own: two workers may read them in
    # any order, and an overtaken nonce is refused

    my @in;

    for (1 .. 6) {
        my $sock = $s->connect;
        $s->send_request($sock, 'POST', '/v1/transfer',
                         { %pay, from => "p$_", nonce => $round },
                         key => "in$round-$_");
        push @in, $sock;
        until_ok(10, sub {
            $s->metric('wallet_inflight', 'endpoint="transfer"') == @in;
        }) or diag(scalar @in . ' are not in');
    }

    ok(until_ok(10, sub {
        return 6 == $s->metric('wallet_inflight', 'endpoint="transfer"');
    }), "round $round: six are under way");

    ok(until_ok(10, sub {
        my $r = $s->post('/v1/transfer', { %pay, nonce => $round },
                         key => "probe$round", timeout => 5,
                         headers => { 'Request-Timeout' => 1 });
        $rejected += $r->{status} == 429;
        return $r->{status} == 429;
    }), "round $round: six are in");

    my $begin = time;
    my @out = map { $s->post('/v1/transfer', { %pay, nonce => 900 },
                             key => "out$round-$_") } 1 .. 5;

    cmp_ok(time - $begin, '<', slow(5), 'others do not wait');
    is(scalar(grep { $_->{status} == 429
                     && json_get($_->{body}, 'code') eq 'BUSY'
                     && json_get($_->{body}, 'retryable') eq 'true'
                     && $_->{headers}{'retry-after'} >= 1 } @out), 5,
       'five are refused');
    $rejected += 5;
    is($s->metric('busy_rejections_total', 'endpoint="transfer"'), $rejected,
       'and counted, each once');

    kill 'CONT', $helper;

    is(scalar(grep { RonTest::read_response($_, 'POST', 20)->{status} == 200 }
              @in), 6, 'who was in is served');
}

my $r = $s->post('/v1/transfer', { %pay, nonce => 900 }, key => 'out1-1');
is($r->{status}, 200, 'a key that was refused is good');
ok(!exists $r->{headers}{'idempotent-replayed'}, 'for the first time');
$s->quit;


# deadlines: none ends early, and the median is within a tenth

$s = RonTest->new(workers => 1, main => 'ron_committer_lag_max 60s;',
                  http => 'ron_deadline 1s; ron_wallet_breaker errors=1000;');
$s->start or BAIL_OUT('no server');
is($s->post('/v1/issue', { to => 'a', asset => 'ron',
                           amount_minor => '1000' }, key => 'i')->{status},
   200, 'money');

my $helper = $s->helper;
freeze($helper);

my ($early, @took, @code) = (0);

for my $try (1 .. 5) {
    my $begin = time;
    $r = $s->post('/v1/transfer', { %pay, nonce => $try }, key => "t$try");
    my $took = time - $begin;

    $early++ if $took < 0.9 || $r->{status} != 503;
    push @took, $took;
    push @code, json_get($r->{body}, 'code');
}

kill 'CONT', $helper;

is($early, 0, 'no deadline of 1 s was shortened by a tenth');
@took = sort { $a <=> $b } @took;
cmp_ok($took[2], '<=', 1.1, 'nor is it passed by a tenth, in the middle of five')
    or diag("@took");
is($code[0], 'TIMEOUT', 'the outcome is unknown');
is(scalar(grep { !/^(?:TIMEOUT|RETRY_LATER)$/ } @code), 0,
   'and of the others, unless the connection had been given up')
    or diag("@code");

$s->quit;
done_testing();
