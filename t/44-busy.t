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

my %pay = (from => 'a', to => 'b', asset => 'ron', amount_minor => '1');

sub metric {
    my ($name, $label) = @_;

    my ($n) = $s->get('/metrics', token => undef)->{body}
              =~ /^\Q$name\E\{[^}]*\Q$label\E[^}]*\} (\d+)$/m;

    return $n || 0;
}

my $rejected = metric('busy_rejections_total', 'endpoint="transfer"');
my $nonce = 0;

for my $round (1 .. 3) {
    my $helper = $s->helper;
    kill 'STOP', $helper;

    # as many as fit: each is in before the next is sent

    my @in;

    for (1 .. 6) {
        my $sock = $s->connect;
        $s->send_request($sock, 'POST', '/v1/transfer',
                         { %pay, nonce => ++$nonce }, key => "in$nonce");
        push @in, $sock;
    }

    ok(until_ok(10, sub {
        my $r = $s->post('/v1/transfer', { %pay, nonce => $nonce + 1 },
                         key => "probe$round", timeout => 5,
                         headers => { 'Request-Timeout' => 1 });
        $rejected += $r->{status} == 429;
        return $r->{status} == 429;
    }), "round $round: six are in");

    my $begin = time;
    my @out = map { $s->post('/v1/transfer', { %pay, nonce => 900 },
                             key => "out$round-$_") } 1 .. 5;

    cmp_ok(time - $begin, '<', 5, 'others do not wait');
    is(scalar(grep { $_->{status} == 429
                     && json_get($_->{body}, 'code') eq 'BUSY'
                     && json_get($_->{body}, 'retryable') eq 'true'
                     && $_->{headers}{'retry-after'} >= 1 } @out), 5,
       'five are refused');
    $rejected += 5;
    is(metric('busy_rejections_total', 'endpoint="transfer"'), $rejected,
       'and counted, each once');

    kill 'CONT', $helper;

    is(scalar(grep { RonTest::read_response($_, 'POST', 20)->{status} == 200 }
              @in), 6, 'who was in is served, in its order');
    $nonce = 0 + json_get($s->get('/v1/balance?account=a&asset=ron')->{body},
                          'nonce');
}

my $r = $s->post('/v1/transfer', { %pay, nonce => 900 }, key => 'out1-1');
is($r->{status}, 200, 'a key that was refused is good');
ok(!exists $r->{headers}{'idempotent-replayed'}, 'for the first time');
$s->quit;


# deadlines: none ends early, and the best of some is within a tenth

$s = RonTest->new(workers => 1, main => 'ron_committer_lag_max 60s;',
                  http => 'ron_deadline 1s; ron_wallet_breaker errors=1000;');
$s->start or BAIL_OUT('no server');
is($s->post('/v1/issue', { to => 'a', asset => 'ron',
                           amount_minor => '1000' }, key => 'i')->{status},
   200, 'money');

my $helper = $s->helper;
kill 'STOP', $helper;

my ($least, $early) = (1e9, 0);

for my $try (1 .. 5) {
    my $begin = time;
    $r = $s->post('/v1/transfer', { %pay, nonce => $try }, key => "t$try");
    my $took = time - $begin;

    $early++ if $took < 0.9 || $r->{status} != 503;
    $least = $took if $took < $least;
}

kill 'CONT', $helper;

is($early, 0, 'no deadline of 1 s was shortened by a tenth');
cmp_ok($least, '<=', 1.1, 'nor is it passed by a tenth, but by the machine');
is(json_get($r->{body}, 'code'), 'TIMEOUT', 'the outcome is unknown');

$s->quit;
done_testing();
