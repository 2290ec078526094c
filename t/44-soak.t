#!/usr/bin/perl

# A server under load for a while: its memory, descriptors and processes stay
# as many as they are.
#
#     RON_SOAK_SECONDS    how long (12; `make soak MIN=n` is longer)

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonChaos;

use Time::HiRes ();

my $seconds = $ENV{RON_SOAK_SECONDS} || 12;
my $c = RonChaos->new(load => { c => 16, a => 200 },
                      main => 'ron_tag_memory 1m; ron_key_memory 1m; '
                              . 'ron_history_cache 1m;');
my $s = $c->{s};


# Of all processes but the master: resident memory, descriptors, threads.
# Segments of tags are counted apart: how many there are depends on which of
# them have been merged just now, but each of their files is open once.

sub census {
    my %sum = (kb => 0, fds => 0, segments => 0, threads => 0, processes => 0);

    for my $pid ($s->children) {
        my $status = RonTest::slurp("/proc/$pid/status");
        my ($anon) = $status =~ /^RssAnon:\s+(\d+)/m or next;

        $sum{kb} += $anon;
        $sum{threads} += ($status =~ /^Threads:\s+(\d+)/m)[0];
        $sum{processes}++;

        my $segments = grep { /\.seg(?: \(deleted\))?$/ }
                       map { readlink $_ // '' } glob "/proc/$pid/fd/*";

        $sum{segments} += $segments;
        $sum{fds} += $s->fds($pid) - $segments;
    }

    $sum{master} = $s->fds($s->{pid});

    return \%sum;
}

sub files {
    return scalar(() = glob "$s->{dir}/ledger/*.seg");
}

sub said {
    my ($n) = @_;

    return join ', ', map { "$_ $n->{$_}" } sort keys %$n;
}


# The first load fills what is bounded: caches, pools, the tags in memory.

$c->start;
$c->load('warm', s => $seconds / 3);
$c->done;

my $before = census();
my $turns = $seconds > 60 ? int($seconds / 20) : 2;
my @seen;

for my $turn (1 .. $turns) {
    $c->load("t$turn", s => $seconds * 2 / 3 / $turns);
    $c->done;
    push @seen, census();
    note("turn $turn: " . said($seen[-1]));
}

my $after = $seen[-1];

is($after->{processes}, $before->{processes}, 'as many processes');
is($after->{threads}, $before->{threads}, 'as many threads');
is($after->{master}, $before->{master}, 'the master has no descriptor more');

# a worker keeps some connections of clients that came and went, and on a busy
# machine it hears late that they are gone

ok(until_ok(10, sub { census()->{fds} <= $before->{fds} + 8 }),
   'as many descriptors')
    or diag(said($before) . "\n" . said(census()));
ok(until_ok(10, sub { census()->{segments} == files() }),
   'and one for each segment of tags')
    or diag('open: ' . census()->{segments} . ', in the directory: ' . files());

# Bounded by configuration: two tables of 1 MiB, and what an allocator keeps.

cmp_ok($after->{kb}, '<=', $before->{kb} * 1.25 + 16384,
       "memory: $before->{kb} KiB before, $after->{kb} after")
    or diag(join "\n", map { said($_) } $before, @seen);

if (@seen >= 6) {
    my ($third) = sort { $a <=> $b } map { $_->{kb} }
                       @seen[$#seen / 3 .. 2 * $#seen / 3];
    cmp_ok($after->{kb}, '<=', $third * 1.1 + 4096,
           "and it stopped growing, at $third KiB");
}

# reloads leave nothing behind

for (1 .. 3) {
    ok($s->reload, 'a reload');
}

ok(until_ok(10, sub { census()->{processes} == $before->{processes} }),
   'as many processes after three reloads');
cmp_ok(census()->{master}, '<=', $before->{master} + 1,
       'the master has no descriptor more');

$c->judge('soak');

like($s->log, qr/"event":"shutdown","drained":true,"aborted":0,"canceled":0,
                 "leaked":0,/x, 'nothing leaks at the end');

done_testing();
