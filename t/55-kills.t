#!/usr/bin/perl

# The helper is killed (SIGKILL) again and again while clients pay: every
# request is answered within its deadline, none is lost, none is done twice,
# and money moves again soon.  RON_KILLS says how often (10, 100 with
# RON_LIFE=1): each hundred has its own ledger, so that what its clients saw
# can be judged.  Every receipt has a proof.

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonChaos qw(now_us);
use RonProofs;

my $all = $ENV{RON_KILLS} || ($ENV{RON_LIFE} ? 100 : 10);

use constant ROUND => 100;

for (my $left = $all; $left > 0; $left -= ROUND) {
    round($left < ROUND ? $left : ROUND);
}

done_testing();


sub round {
    my ($kills) = @_;

    my $c = RonChaos->new(main => 'ron_restart_limit 16;',
                          load => { c => 16, a => 64 });
    my $s = $c->{s};
    $c->start;

    $c->load('kills', g => 1, s => 3600);

    ok(until_ok(10, sub { seq($s) > 50 }), 'clients pay');

    my @at = map { killed($s, $_) } 1 .. $kills;

    my $sum = $c->done(now => 1);
    is($sum->{lost}, 0, 'no connection was closed on a request');
    is($sum->{open}, 0, 'nothing is left without an answer');

    my @tries = attempts("$s->{dir}/history-kills");
    my ($longest) = sort { $b <=> $a } map { $_->[1] - $_->[0] } @tries;
    cmp_ok($longest, '<', slow(5_500_000), sprintf
           '%d requests, the slowest took %.3f s', scalar @tries,
           $longest / 1e6);

    my @first = first_payments(\@tries, \@at);
    diag(sprintf '%d kills: first payment after %.3f s (median), %.3f s (last)',
         $kills, $first[@first / 2], $first[-1]);
    cmp_ok($first[@first / 2], '<', slow(0.5),
           'it goes on within half a second');
    cmp_ok($first[-1], '<', slow($ENV{RON_LIFE} ? 0.5 : 2), 'each time');

    my $log = $s->log;
    my $restarts = () = $log =~ /restart \d+ of the ledger/g;
    is($restarts, $kills, "$kills restarts");
    my $replays = () = $log =~ /safe_mode: replay/g;
    is($replays, $kills, 'each began with a replay');

    my $proofs = RonProofs->new(server => $s, b3 => RonChaos::tool('b3'),
        pub => RonTest::slurp($c->ledger . '/signing.pub'));
    my @wrong = $proofs->check(map { $_->[4] }
                               grep { $_->[2] == 200 && $_->[3] eq 'W' }
                               @tries);
    ok(!@wrong && $proofs->{n}, "$proofs->{n} receipts have a proof")
        or diag(scalar(@wrong) . ' wrong', map { "\n$_" }
                @wrong[0 .. ($#wrong > 9 ? 9 : $#wrong)]);

    # so many deaths are a crash loop, and it says so; it works all the same

    $c->judge('kills', ready => 0);
}

# Kills the helper, and returns when: one that died before it had committed
# anything would be made to wait, so it lives for a while.

sub killed {
    my ($s, $n) = @_;

    my $pid = $s->helper;
    my $at = now_us();

    kill 'KILL', $pid;

    my $before;

    until_ok(10, sub {
        my $now = $s->helper;
        my $r = $s->get('/readyz')->{body};
        return 0 unless $now && $now != $pid && $r =~ /"state":"running"/;
        $before = json_get($r, 'seq') unless defined $before;
        return json_get($r, 'seq') > $before;
    }) or fail("kill $n: nothing is committed any more");

    Time::HiRes::sleep(0.1 + rand 0.3);

    return $at;
}

# How long after each moment a payment that was begun later was acknowledged,
# by the clients' clock, which is the machine's; in order of length.

sub first_payments {
    my ($tries, $at) = @_;

    my @done = sort { $a->[1] <=> $b->[1] }
               grep { $_->[2] == 200 && $_->[3] eq 'W' } @$tries;
    my ($n, @first) = 0;

    for my $t (@$at) {
        $n++ while $n < @done && $done[$n][0] <= $t;
        push @first, $n < @done ? ($done[$n][1] - $t) / 1e6 : 9;
    }

    return sort { $a <=> $b } @first;
}

sub seq {
    my ($s) = @_;
    my $r = eval { $s->get('/readyz') };
    return $r ? json_get($r->{body}, 'seq') || 0 : 0;
}

sub attempts {
    my ($file) = @_;

    my @tries;
    open my $f, '<', $file or die "$file: $!";

    while (<$f>) {
        chomp;
        my ($kind, undef, $begin, $end, $status, undef, undef, undef, undef,
            undef, $answer) = split /\t/, $_, 11;
        push @tries, [ $begin, $end, $status, $kind, $answer ];
    }

    return @tries;
}
