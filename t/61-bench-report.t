#!/usr/bin/perl

# What make bench says of rounds whose figures are known.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use Test::More;

require(abs_path('t/bench/report.pl'));

my $dir = tempdir(CLEANUP => 1);

sub case {
    my ($rate, $p50, $p99) = @_;

    return { operations_per_s => $rate, acknowledged => $rate,
             latency_us => { p50 => $p50, p99 => $p99, p99_9 => 2 * $p99,
                             max => 3 * $p99 },
             history => { lag => 1234, catch_up_s => 0.5 },
             spent => [ { worker => { cpu => 1.5, rss => 2048 } } ] };
}

# Three rounds, of which the machine was slow in the second, and ours alone a
# little in the third: the ratio of the medians is not the median ratio.

sub rounds {
    my ($ours, @syncs) = @_;

    my @speed = (1, 0.5, 1.2);
    my @our_speed = (1, 0.5, 0.81);

    return [ map {
        my $n = $_;
        my $f = $speed[$n];
        { sync => { fdatasync_per_s => $syncs[$n], p50_us => 100,
                    max_us => 900 },
          stalls => { percent => 0.1 + $n / 10, max_ms => 2 + $n },
          verify => { ok => 1, seq => 10 },
          case => {
              floor => { 'transfer/1' => case(30_000 * $f, 30, 60),
                         map { ("transfer/$_" => case(100_000 * $f, 500, 900)) }
                         64, 128, 256 },
              ron => { 'transfer/1' => case(4_000 * $f, 250, 900),
                       map { ("transfer/$_" => case($ours * $our_speed[$n], 1000, 2500)) }
                       64, 128, 256 },
              again => { 'transfer/128' => case($ours * $our_speed[$n] / 1.2,
                                                1000, 2500) },
          } }
    } 0 .. 2 ];
}

my $machine = { cpu => 'a', cores => 2, memory_mib => 1, kernel => 'k',
                nginx => '1', workers => 1, load => 0.1,
                date => '2026-11-18' };

sub summary {
    my ($rounds, @problems) = @_;

    return bench_summary($rounds, $machine, \@problems, { seconds => 2 });
}

sub goal {
    my ($s, $like) = @_;

    my ($goal) = grep { $_->[0] =~ $like } @{ $s->{goals} };
    return $goal;
}

my $s = summary(rounds(60_000, 4000, 5000, 6000));

is($s->{sync}, 5000, 'the median of the disk');
is_deeply($s->{doubts}, [], 'a good disk is not doubted');
is(sprintf('%.3f', goal($s, qr/floor, best/)->[1]), '0.600',
   'a ratio is taken in a round');
is(sprintf('%.3f', goal($s, qr/floor at 64/)->[1]), '0.600', 'at 64 too');
is(sprintf('%.3f', goal($s, qr/1 connection/)->[1]),
   sprintf('%.3f', 250 / 130), 'latency beside sync and floor');
is(sprintf('%.3f', goal($s, qr/hashing/)->[1]), '0.050',
   'a fifth slower with four times more of it');
is(goal($s, qr/Lua/), undef, 'what was not measured is no goal');
is((goal_row(goal($s, qr/floor, best/)))[3], 'yes', 'a goal that is held');
is((goal_row(goal(summary(rounds(40_000, 4000, 5000, 6000)),
                  qr/floor, best/)))[3], 'NO', 'and one that is not');

like(bench_table($s), qr/^ron +transfer\/128 +48 600 +62 %/m,
     'median and spread');

is_deeply(summary(rounds(60_000, 2000, 2100, 2200))->{doubts},
          [ 'the disk makes fewer than 3 000 fdatasync/s' ], 'a slow disk');
like(summary(rounds(60_000, 3000, 4000, 9000))->{doubts}[0], qr/twofold/,
     'an unsteady one');

my $unsteady = rounds(60_000, 4000, 4000, 4000);
$unsteady->[1]{stalls} = $unsteady->[2]{stalls} = { percent => 2, max_ms => 20 };
is_deeply(summary($unsteady)->{doubts},
          [ 'the machine itself stood still for 2.0 % of the time, up to 20 ms'
            . ' at once: no p99 can be better' ], 'and a machine with stalls');
like(bench_table(summary(rounds(60_000, 2000, 2100, 2200))),
     qr/ONLY RATIOS COUNT/, 'are said');
like(bench_table(summary(rounds(60_000, 4000, 4000, 4000), 'lost one')),
     qr/PROBLEM: lost one/, 'so is a problem');

bench_write($s, $dir);

open my $f, '<', "$dir/BENCHMARKS.md" or die $!;
my $page = do { local $/; <$f> };

like($page, qr/\| transfer\/64 \| 1 234 \| 0\.5 \|/,
     'and how far history was behind');
like($page, qr/\| ron \| transfer\/64 \| 48 600 \| 62 % \| 1 000 \|/,
     'the page has the figures');
is(scalar(grep { length > 100 } split /\n/, $page), 0, 'in 100 columns');

for my $plot ('rate', 'latency') {
    open my $g, '<', "$dir/bench/$plot.svg" or die $!;
    my $svg = do { local $/; <$g> };

    like($svg, qr/^<svg .*<\/svg>\n\z/s, "$plot.svg is a whole picture");
    is(() = $svg =~ /<text/g, () = $svg =~ /<\/text>/g, 'its texts end');
}

done_testing();
