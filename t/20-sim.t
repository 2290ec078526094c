#!/usr/bin/perl

# The simulator in short: some seeds, the same seed twice, the small
# configurations, and three controls that must be found.

use strict;
use warnings;

use File::Basename qw(dirname);
use File::Spec;
use Test::More;

my $top = File::Spec->rel2abs(dirname(__FILE__) . '/..');
my $build = $ENV{RON_BUILD} || "$top/build";
my $sim = "$build/t/sim/sim";

if (!-x $sim) {
    $build = File::Spec->abs2rel($build, $top);
    my $log = `cd '$top' && { cat Makefile; grep -q 'sim/sim.mk' Makefile || echo 'include t/sim/sim.mk'; } | make -s -f - BUILD='$build' sim-build 2>&1`;
    -x $sim or BAIL_OUT("the simulator cannot be built:\n$log");
}

my $seeds = $ENV{RON_SIM_SEEDS} || 300;

my $out = `'$sim' 1 $seeds 40 2>&1`;
is($?, 0, 'seeds: nothing lost, doubled, negative or stuck')
    or diag(substr($out, -8000));
my ($n) = $out =~ /^(\d+) seeds,/m;
cmp_ok($n || 0, '>=', 50, 'a good number of seeds was run');

for my $fault ('helper killed', 'power cut', 'connection lost',
               'write lost in a power cut', 'sync failed',
               'write refused, disk full')
{
    my ($count) = $out =~ /^\s*(\d+)\s+fault: \Q$fault\E$/m;
    cmp_ok($count || 0, '>', 0, "fault: $fault");
}

my $one = `'$sim' -d -q 11 3 2>&1`;
my $two = `'$sim' -d -q 11 3 2>&1`;
my $alone = `'$sim' -d -q 13 1 2>&1`;
s/^(?!seed).*\n//mg for $one, $two, $alone;
isnt($one, '', 'digests of three seeds');
is($one, $two, 'a seed replays exactly');
like($one, qr/\Q$alone\E/, 'also when it is run alone');

$out = `'$sim' small 2>&1`;
is($?, 0, 'small configurations, explored') or diag($out);
like($out, qr/ok: 1 producer.*: [1-9]\d+ interleavings/, 'more than a few');

my %control = (
    early => ['answers before fsync',
              qr/is lost|an answer said that the journal has/],
    sync  => ['a disk that ignores fsync',
              qr/is lost|an answer said that|cannot be read|malformed/],
    lock  => ['a store without lock',
              qr/without holding the lock alone|not hold the lock alone/],
);

for my $c (sort keys %control) {
    $out = `'$sim' -q -c $c 1 60 5 2>&1`;
    isnt($?, 0, "control: $control{$c}[0], is noticed");
    like($out, $control{$c}[1], 'for the right reason');
}

done_testing();
