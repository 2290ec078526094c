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

$s->quit;
done_testing();
