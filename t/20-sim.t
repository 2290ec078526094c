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
    my $log = `make -s -C '$top' BUILD='$build' sim-build 2>&1`;
    -x $sim or BAIL_OUT("the simulator cannot be built:\n$log");
}

my $seeds = $ENV{RON_SIM_SEEDS} || 300;

my $out = `'$sim' 1 $seeds 200 2>&1`;
is($?, 0, 'seeds: nothing lost, doubled, negative or stuck')
    or diag(substr($out, -8000));
my ($n) = $out =~ /^(\d+) seeds,/m;
is($n, $seeds, 'all of them were run');

# A fault that no longer happens is one that nothing is known of.

my @counts = $out =~ /^\s*(\d+\s+(?:fault|event): .*)$/mg;
cmp_ok(@counts, '>=', 18, 'faults and events are counted');

for (@counts) {
    my ($count, $what) = /^(\d+)\s+(.*)$/;
    cmp_ok($count, '>', 0, $what);
}

like($out, qr/^\s*[1-9]\d+\s+published balances judged$/m,
     'what was published is compared');

my $one = `'$sim' -d -q 11 3 2>&1`;
my $two = `'$sim' -d -q 11 3 2>&1`;
my $alone = `'$sim' -d -q 13 1 2>&1`;
s/^(?!seed).*\n//mg for $one, $two, $alone;
isnt($one, '', 'digests of three seeds');
is($one, $two, 'a seed replays exactly');
like($one, qr/\Q$alone\E/, 'also when it is run alone');

$out = `'$sim' small 2>&1`;
is($?, 0, 'small configurations, explored') or diag($out);
like($out, qr/^ok: \Q$_\E: .*: [1-9]\d{3,} interleavings/m,
     "more than a few of the $_") for 'engine', 'service';
diag(join '; ', $out =~ /^ok: (\w+): .*?: (\d+ interleavings)/mg);

my %control = (
    early => ['answers before fsync',
              qr/is[ ]lost|an[ ]answer[ ]said[ ]that[ ]the[ ]journal[ ]has
                 |published[ ]up[ ]to[ ]seq[ ]\d+,[ ]and[ ]the[ ]journal[ ]ends
                 /x],
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
