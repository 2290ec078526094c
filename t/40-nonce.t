#!/usr/bin/perl

# Nonces under concurrency: one winner, nothing lost, nothing burnt.

use strict;
use warnings;

use lib 't/lib';
use RonTest;


my $s = RonTest->new(workers => 2);
$s->start or BAIL_OUT('no server');

is($s->post('/v1/issue', { to => 'a', asset => 'ron',
                           amount_minor => '1000' }, key => 'i')->{status},
   200, 'money');

my %pay = (from => 'a', to => 'b', asset => 'ron', amount_minor => '1');


# twelve at once, one nonce

for my $nonce (1 .. 5) {
    my @socks = map { $s->connect } 1 .. 12;

    $s->send_request($socks[$_], 'POST', '/v1/transfer',
                     { %pay, nonce => $nonce }, key => "n$nonce-$_")
        for 0 .. 11;

    my @r = map { RonTest::read_response($_, 'POST') } @socks;
    my @lost = grep { $_->{status} == 409 } @r;

    is(scalar(grep { $_->{status} == 200 } @r), 1, "$nonce: one wins");
    is(scalar @lost, 11, "$nonce: eleven do not");
    is(scalar(grep { json_get($_->{body}, 'code') eq 'NONCE_CONFLICT'
                     && json_get($_->{body}, 'expected') == $nonce + 1 }
              @lost), 11, "$nonce: and hear which is next");
}

my $r = $s->get('/v1/balance?account=b&asset=ron');
is(json_get($r->{body}, 'amount_minor'), 5, 'five payments were made');


# one connection, nonces in their order, not waiting for answers

{
    my $sock = $s->connect;
    $s->send_request($sock, 'POST', '/v1/transfer', { %pay, nonce => $_ },
                     key => "p$_", keep => 1) for 6 .. 45;
    my @r = map { RonTest::read_response($sock, 'POST') } 6 .. 45;
    is(scalar(grep { $_->{status} == 200 } @r), 40, 'pipelined: none lost');
}


# a refusal burns neither key nor nonce

$r = $s->post('/v1/transfer', { %pay, nonce => 46, amount_minor => '5000' },
              key => 'again');
is(json_get($r->{body}, 'code'), 'INSUFFICIENT_FUNDS', 'refused');
is($s->post('/v1/transfer', { %pay, nonce => 46 }, key => 'again')->{status},
   200, 'the same key and nonce are good afterwards');


# early: a nonce that is durable under another key is refused by the worker,
# even while the helper stands still; what may be a replay is not

my %old = (%pay, nonce => 46);
my $helper = $s->helper;

$r = $s->post('/v1/transfer', { %old }, key => 'again');
is($r->{status}, 200, 'a replay is one');
is($r->{headers}{'idempotent-replayed'}, 'true', 'and says so');
$r = $s->post('/v1/transfer', { %old, amount_minor => '2' }, key => 'again');
is($r->{status}, 422, 'the key with another body is a mismatch');

kill 'STOP', $helper;
$r = $s->post('/v1/transfer', { %old }, key => 'late');
kill 'CONT', $helper;
is($r->{status}, 409, 'without the helper: another key, the same nonce');
is(json_get($r->{body}, 'code'), 'NONCE_CONFLICT', 'is a conflict');
is(json_get($r->{body}, 'expected'), 47, 'which says what is next');

# If-Match is looked at first, and only the sequencer can

$r = $s->post('/v1/transfer', { %old }, key => 'late2',
              headers => { 'If-Match' => '"1"' });
is($r->{status}, 412, 'a precondition comes first');

# with nonces that go up by more than one, a hole stays one

is($s->post('/v1/transfer', { %pay, nonce => 60 }, key => 'hole')->{status},
   200, 'further up');
$r = $s->post('/v1/transfer', { %pay, nonce => 50 }, key => 'into-it');
is($r->{status}, 409, 'a nonce that was skipped is passed');
is(json_get($r->{body}, 'expected'), 61, 'the next is behind the last');


# pipelined on several connections, over both workers: none is lost, and the
# order is that of the nonces, whoever was faster

{
    my $from = 100;
    my @socks = map { $s->connect } 1 .. 4;

    for my $round (0 .. 9) {
        for my $i (0 .. 3) {
            my $nonce = $from + $round * 4 + $i;
            $s->send_request($socks[$i], 'POST', '/v1/transfer',
                             { %pay, nonce => $nonce }, key => "w$nonce",
                             keep => 1);
        }

        my @got = map { RonTest::read_response($_, 'POST') } @socks;
        my @done = map { $_->{status} } @got;

        # one that was overtaken is refused, and its key is good again

        for my $i (grep { $done[$_] != 200 } 0 .. 3) {
            is($done[$i], 409, 'overtaken');
            my $again = 1000 + $from + $round * 4 + $i;
            is($s->post('/v1/transfer',
                        { %pay, from => 'b', to => 'a', nonce => $again },
                        key => "w" . ($from + $round * 4 + $i))->{status},
               200, 'its key was not burnt');
        }
    }
}

# no refusal, early or not, has left a trace

my $before = json_get($s->get('/v1/balance?account=a&asset=ron')->{body},
                      'nonce');
my @socks = map { $s->connect } 1 .. 24;
$s->send_request($socks[$_], 'POST', '/v1/transfer',
                 { %pay, nonce => 1 + $_ % 3, amount_minor => '100000' },
                 key => "x$_") for 0 .. 23;
is(scalar(grep { RonTest::read_response($_, 'POST')->{status} == 409 }
          @socks), 24, 'twenty-four refusals');
is(json_get($s->get('/v1/balance?account=a&asset=ron')->{body}, 'nonce'),
   $before, 'the nonce is where it was');
is($s->post('/v1/transfer', { %pay, nonce => $before + 1 }, key => 'x5')
   ->{status}, 200, 'and their keys are good');

$s->quit;
done_testing();
