#!/usr/bin/perl

# The helper is killed (SIGKILL) again and again while clients pay: every
# request is answered within its deadline, none is lost, none is done twice,
# and money moves again soon.  RON_KILLS says how often (10, 100 with
# RON_LIFE=1).

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonChaos qw(now_us);

my $kills = $ENV{RON_KILLS} || ($ENV{RON_LIFE} ? 100 : 10);

my $c = RonChaos->new(main => 'ron_restart_limit 16;',
                      load => { c => 16, a => 64 });
my $s = $c->{s};
$c->start;

$c->load('kills', g => 1, s => 3600);

# it pays already

ok(until_ok(10, sub { seq() > 50 }), 'clients pay');

my @at;

for my $n (1 .. $kills) {
    my $pid = $s->helper;

    push @at, now_us();
    kill 'KILL', $pid;

    # one that dies before it has committed anything is made to wait

    my $before;

    until_ok(10, sub {
        my $now = $s->helper;
        my $r = $s->get('/readyz')->{body};
        return 0 unless $now && $now != $pid && $r =~ /"state":"running"/;
        $before = json_get($r, 'seq') unless defined $before;
        return json_get($r, 'seq') > $before;
    }) or fail("kill $n: nothing is committed any more");

    Time::HiRes::sleep(0.1 + rand 0.3);
}

my $sum = $c->done(now => 1);
is($sum->{lost}, 0, 'no connection was closed on a request');
is($sum->{open}, 0, 'nothing is left without an answer');

# by the clients' clocks, which is the machine's

my (@slow, @first, $n);

my @tries = attempts("$s->{dir}/history-kills");
my ($longest) = sort { $b <=> $a } map { $_->[1] - $_->[0] } @tries;
cmp_ok($longest, '<', 5_500_000, sprintf
       '%d requests, the slowest took %.3f s', scalar @tries, $longest / 1e6);

my @done = sort { $a->[1] <=> $b->[1] }
           grep { $_->[2] == 200 && $_->[3] eq 'W' } @tries;

for my $t (@at) {
    my ($ok) = grep { $_->[0] > $t } @done;
    push @first, $ok ? ($ok->[1] - $t) / 1e6 : 9;
}

@first = sort { $a <=> $b } @first;
diag(sprintf '%d kills: first payment after %.3f s (median), %.3f s (last)',
     $kills, $first[@first / 2], $first[-1]);
cmp_ok($first[@first / 2], '<', 0.5, 'it goes on within half a second');
cmp_ok($first[-1], '<', 2, 'however late the machine was');

my $log = $s->log;
my $restarts = () = $log =~ /restart \d+ of the ledger/g;
is($restarts, $kills, "$kills restarts");
my $replays = () = $log =~ /safe_mode: replay/g;
is($replays, $kills, 'each began with a replay');

# so many deaths are a crash loop, and it says so; it works all the same
$c->judge('kills', ready => 0);

done_testing();


sub seq {
    my $r = eval { $s->get('/readyz') };
    return $r ? json_get($r->{body}, 'seq') || 0 : 0;
}

sub attempts {
    my ($file) = @_;

    my @tries;
    open my $f, '<', $file or die "$file: $!";

    while (<$f>) {
        my ($kind, undef, $begin, $end, $status) = split /\t/;
        push @tries, [ $begin, $end, $status, $kind ];
    }

    return @tries;
}
