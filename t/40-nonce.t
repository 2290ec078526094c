#!/usr/bin/perl

# Nonces under concurrency: one winner; who was overtaken is refused, told what
# is next, and done under its own key when it is sent again; nothing is burnt.

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

freeze($helper);
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


# on several connections, over both workers, nobody waiting for the others: one
# that a later nonce has overtaken is refused, its key is free, and under it the
# payment is made, once, with the nonce that was expected

{
    my ($had, $overtaken) = (paid(), 0);
    my @socks = map { $s->connect } 1 .. 4;

    for my $round (0 .. 9) {
        my $n = next_nonce();

        $s->send_request($socks[$_], 'POST', '/v1/transfer',
                         { %pay, nonce => $n + $_ }, key => "w$round-$_",
                         keep => 1)
            for $round % 2 ? reverse 0 .. 3 : 0 .. 3;

        my @got = map { RonTest::read_response($_, 'POST') } @socks;

        for my $i (0 .. 3) {
            my ($nonce, $key, $r) = ($n + $i, "w$round-$i", $got[$i]);

            # what is expected may have been passed by another one of the four

            for (1 .. 4) {
                last if $r->{status} == 200;
                $overtaken++;
                my $next = json_get($r->{body}, 'expected');
                is($r->{status}, 409, "$key: overtaken");
                is(json_get($r->{body}, 'code'), 'NONCE_CONFLICT',
                   'refused for its nonce');
                cmp_ok($next, '>', $nonce, 'and told what is next');
                $nonce = 0 + $next;
                $r = $s->post('/v1/transfer', { %pay, nonce => $nonce },
                              key => $key);
            }

            is($r->{status}, 200, "$key: done");
            my $again = $s->post('/v1/transfer', { %pay, nonce => $nonce },
                                 key => $key);
            is($again->{body}, $r->{body}, 'and again it is a replay');
        }
    }

    is(paid(), $had + 40, 'forty payments were made, each once');
    diag("$overtaken were overtaken");
}

# a later nonce that is decided first: the other one is refused, and done under
# its own key with the next nonce; a client that does so loses nothing

sub paid {
    return json_get($s->get('/v1/balance?account=b&asset=ron')->{body},
                    'amount_minor');
}

sub next_nonce {
    return 1 + json_get($s->get('/v1/balance?account=a&asset=ron')->{body},
                        'nonce');
}

{
    my ($n, $had) = (next_nonce(), paid());
    my $later = $s->post('/v1/transfer', { %pay, nonce => $n + 1 },
                         key => 'later');
    is($later->{status}, 200, 'the later one came first');
    my $first = $s->post('/v1/transfer', { %pay, nonce => $n }, key => 'first');
    is($first->{status}, 409, 'the first one was overtaken');
    is(json_get($first->{body}, 'expected'), $n + 2, 'and told what is next');
    $first = $s->post('/v1/transfer', { %pay, nonce => $n + 2 },
                      key => 'first');
    is($first->{status}, 200, 'under its key it is done');
    is($s->post('/v1/transfer', { %pay, nonce => $n + 2 }, key => 'first')
       ->{body}, $first->{body}, 'once');
    is($s->post('/v1/transfer', { %pay, nonce => $n + 1 }, key => 'later')
       ->{body}, $later->{body}, 'as the other one was');
    is(paid(), $had + 2, 'two payments were made');
}

# over both workers, in any order, and again until all are done

{
    my ($n, $had, $overtaken) = (next_nonce(), paid(), 0);
    my @socks = map { $s->connect } 1 .. 8;

    for my $round (1 .. 25) {
        my %todo = map { $_ => $n++ } 0 .. 7;

        for (my $tries = 0; %todo && $tries < 20; $tries++) {
            my @some = sort { $todo{$b} <=> $todo{$a} } keys %todo;

            $s->send_request($socks[$_], 'POST', '/v1/transfer',
                             { %pay, nonce => $todo{$_} },
                             key => "all$round-$_", keep => 1) for @some;

            for my $i (@some) {
                my $r = RonTest::read_response($socks[$i], 'POST');

                if ($r->{status} == 200) {
                    delete $todo{$i};
                } elsif ($r->{status} == 409) {
                    $overtaken++;
                } else {
                    diag("$r->{status} $r->{body}");
                }
            }

            my $next = next_nonce();
            $todo{$_} = $next++ for sort keys %todo;
            $n = $next if $next > $n;
        }

        is(scalar keys %todo, 0, "round $round: all are done");
    }

    is(paid(), $had + 200, 'two hundred payments were made, each once');
    diag("$overtaken were overtaken");
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
