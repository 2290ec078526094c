# What rounds add up to: medians with their spread, goals, a page, plots.

use strict;
use warnings;

use File::Path qw(make_path);

my @WHO = (
    [ 'floor',    'bare nginx, constant answer', '#9aa0a6' ],
    [ 'ron',      'ngx_ron',                     '#1a73e8' ],
    [ 'again',    'ngx_ron, hashing five times', '#9aa0a6' ],
    [ 'lua',      'nginx + Lua + Redis',         '#e8710a' ],
    [ 'wrk',      'the floor, by wrk',           '#9aa0a6' ],
    [ 'postgres', 'PostgreSQL, no HTTP',         '#188038' ],
);

sub median {
    my @v = sort { $a <=> $b } grep { defined } @_;

    return @v ? $v[ $#v / 2 ] : undef;
}

sub spread {
    my @v = sort { $a <=> $b } grep { defined } @_;
    my $m = median(@v);

    return $m ? 100 * ($v[-1] - $v[0]) / $m : 0;
}

# A figure of a case in every round: [ who, case, path... ]
sub figures {
    my ($rounds, $who, $case, @path) = @_;

    return map {
        my $v = $_->{case}{$who}{$case};
        $v = ref $v ? $v->{$_} : undef for @path;
        $v;
    } @$rounds;
}

sub rate { (figures(@_[0 .. 2], 'operations_per_s')) }

# The ratio of two figures round by round, then its median.
sub ratio {
    my ($top, $bottom) = @_;

    return median(map {
        defined $top->[$_] && $bottom->[$_] ? $top->[$_] / $bottom->[$_]
                                            : undef
    } 0 .. $#$top);
}

# The best of some cases, in each round.
sub best {
    my ($rounds, $who, @cases) = @_;

    my @all = map { [ rate($rounds, $who, $_) ] } @cases;

    return map {
        my $n = $_;
        (sort { $b <=> $a } grep { defined } map { $_->[$n] } @all)[0];
    } 0 .. $#$rounds;
}

sub goals {
    my ($rounds) = @_;

    my @many = map { "transfer/$_" } 64, 128, 256;
    my @two = @many[ 1, 2 ];
    my $at = sub { [ rate($rounds, @_) ] };
    my $lat = sub { [ figures($rounds, $_[0], $_[1], 'latency_us', $_[2]) ] };
    my @ours = best($rounds, 'ron', @many);
    my @floor1 = @{ $lat->('floor', 'transfer/1', 'p50') };
    my @sum = map { defined $floor1[$_]
                    ? $floor1[$_] + $rounds->[$_]{sync}{p50_us} : undef }
              0 .. $#$rounds;
    my @best_of_two = map {
        [ map { ratio($at->('ron', $_), $at->('floor', $_)) // 0 } @two ]
    } 1;
    my ($of_floor) = sort { $b <=> $a } @{ $best_of_two[0] };

    my @goals = (
        [ 'transfer / floor, best of 128 and 256', $of_floor || undef, '>=',
          0.5 ],
        [ 'transfer / floor at 64', ratio($at->('ron', $many[0]),
          $at->('floor', $many[0])), '>=', 0.4 ],
        [ 'transfer / nginx+Lua+Redis, best each', ratio(\@ours,
          [ best($rounds, 'lua', @many) ]), '>=', 2.5 ],
        [ 'transfer / PostgreSQL, best each', ratio(\@ours,
          [ best($rounds, 'postgres', @many) ]), '>=', 5 ],
        [ '1 connection: p50 / (fdatasync + floor)', ratio(
          $lat->('ron', 'transfer/1', 'p50'), \@sum), '<=', 2.0 ],
        [ 'one hot account / uniform, 128', ratio($at->('ron', 'hot/128'),
          $at->('ron', 'transfer/128')), '>=', 0.95 ],
        [ '1 000 000 accounts / 10 000, 128', ratio(
          $at->('ron', 'accounts/1000000'), $at->('ron', 'few/128')),
          '>=', 0.9 ],
        [ 'hashing, roots and signing, of a transfer', hashing(ratio(
          $at->('ron', 'transfer/128'), $at->('again', 'transfer/128'))),
          '<=', 0.1 ],
        [ 'p99 / p50 at 70 % of the best rate of 128', ratio(
          $lat->('ron', 'open/128', 'p99'), $lat->('ron', 'open/128', 'p50')),
          '<=', 5 ],
        [ 'slowest answer there, ms', scaled(median(@{
          $lat->('ron', 'open/128', 'max') }), 1000), '<=', 50 ],
        [ 'the same with many entries behind', ratio(
          $lat->('ron', 'open-long/128', 'p99'),
          $lat->('ron', 'open-long/128', 'p50')), '<=', 5 ],
        [ 'slowest answer there, ms', scaled(median(@{
          $lat->('ron', 'open-long/128', 'max') }), 1000), '<=', 50 ],
        [ 'many entries behind / few, 128', ratio(
          $at->('ron', 'transfer-long/128'), $at->('ron', 'transfer/128')),
          '>=', 0.9 ],
        [ 'helper killed: longest wait, ms', scaled(median(@{
          $lat->('ron', 'kill/128', 'max') }), 1000), '<=', 500 ],
        [ 'the same with many entries behind', scaled(median(@{
          $lat->('ron', 'kill-long/128', 'max') }), 1000), '<=', 500 ],
        [ 'memory at 1 000 000 accounts, MiB', median(map {
          defined $_ ? memory(@$_{qw(spent seq)}) : undef }
          figures($rounds, 'ron', 'accounts/1000000')), '<=', 100 ],
        [ '/v1/batch, 1 000 a request, operations/s', median(@{
          $at->('ron', 'batch/16') }), '>=', 150_000 ],
        [ '/ledger/ingest JSON, 1 000 a request', median(@{
          $at->('ron', 'ingest/16') }), '>=', 150_000 ],
        [ '/ledger/ingest NDJSON, 4 000 lines', median(@{
          $at->('ron', 'ndjson/8') }), '>=', 200_000 ],
        [ 'balance / bare GET, 128', ratio($at->('ron', 'balance/128'),
          $at->('floor', 'balance/128')), '>=', 0.85 ],
        [ 'inclusion proof / balance, 128', ratio($at->('ron', 'proof/128'),
          $at->('ron', 'balance/128')), '>=', 0.4 ],
    );

    return grep { defined $_->[1] } @goals;
}

# What part of a transfer they take: `again` does them four times more, so its
# rate tells what four times cost.
sub hashing {
    my ($slower) = @_;

    return defined $slower ? ($slower - 1) / 4 : undef;
}

# What all processes have (PSS: shared pages once), beyond what directives
# size: the zone, two times 64 MiB of tags, a cache of proofs, one of history;
# and beyond the filters of all keys, 1.92 bytes each.
sub memory {
    my ($spent, $seq) = @_;

    my $pss = 0;

    for my $all (@{ $spent // return undef }) {
        $pss += $_->{pss} // 0 for values %$all;
    }

    return $pss ? $pss / 1024 - (64 + 2 * 64 + 32 + 32)
                  - 1.92 * ($seq // 0) / 2**20 : undef;
}

sub scaled { defined $_[0] ? $_[0] / $_[1] : undef }

sub bench_summary {
    my ($rounds, $machine, $problems, $how) = @_;

    my @syncs = map { $_->{sync}{fdatasync_per_s} } @$rounds;
    my $sync = median(@syncs);
    my @why;

    push @why, 'the disk makes fewer than 3 000 fdatasync/s' if $sync < 3000;
    push @why, 'its rate moved more than twofold between rounds'
        if spread(@syncs) > 100;
    my $still = median(map { $_->{stalls}{percent} } @$rounds);
    my $longest = (sort { $b <=> $a } map { $_->{stalls}{max_ms} } @$rounds)[0];

    push @why, sprintf('the machine itself stood still for %.1f %% of the time, '
                       . 'up to %.0f ms at once: no p99 can be better', $still,
                       $longest) if $still > 0.5;
    push @why, "the machine did other work too: load $machine->{load} before "
               . 'the first round' if $machine->{load} > 1;

    return { rounds => $rounds, machine => $machine, problems => $problems,
             how => $how, sync => $sync, sync_spread => spread(@syncs),
             still => $still, still_max => $longest,
             sync_p50 => median(map { $_->{sync}{p50_us} } @$rounds),
             sync_max => median(map { $_->{sync}{max_us} } @$rounds),
             doubts => \@why, goals => [ goals($rounds) ] };
}

sub thousands {
    my ($v) = @_;

    return '-' if !defined $v;
    $v = sprintf '%.0f', $v;
    1 while $v =~ s/(\d)(\d{3})(?!\d)/$1 $2/;

    return $v;
}

# Every case that was measured, in the order of the first round.
sub rows {
    my ($rounds) = @_;

    my %seen;

    for my $who (map { $_->[0] } @WHO) {
        $seen{$_}{$who} = 1
            for map { keys %{ $_->{case}{$who} || {} } } @$rounds;
    }

    return map {
        my $case = $_;
        map { [ $_->[0], $case ] } grep { $seen{$case}{ $_->[0] } } @WHO;
    } sort { order($a) cmp order($b) } keys %seen;
}

sub order {
    my ($kind, $n) = split m{/}, $_[0];
    my @place = qw(transfer transfer-long hot few accounts open open-long kill
                   kill-long kill-wide batch ingest ndjson balance proof);
    my ($place) = grep { $place[$_] eq $kind } 0 .. $#place;

    return sprintf '%02d %08d', $place // 0, $n;
}

sub row {
    my ($s, $who, $case) = @_;

    my @rates = rate($s->{rounds}, $who, $case);

    return ($who, $case, thousands(median(@rates)),
            sprintf('%.0f %%', spread(@rates)),
            map { thousands(median(figures($s->{rounds}, $who, $case,
                                           'latency_us', $_))) }
            qw(p50 p99 p99_9 max));
}

sub goal_row {
    my ($what, $is, $sign, $want) = @{ $_[0] };

    my $good = $sign eq '>=' ? $is >= $want : $is <= $want;
    my $text = $want >= 1000 ? thousands($is) : sprintf '%.2f', $is;

    return ($what, $text, "$sign " . ($want >= 1000 ? thousands($want)
                                                    : $want),
            $good ? 'yes' : 'NO');
}

sub bench_table {
    my ($s) = @_;

    my $out = sprintf "\n%-9s %-17s %11s %7s %9s %9s %9s %9s\n", 'who',
        'case', 'ops/s', 'spread', 'p50 us', 'p99', 'p99.9', 'max';

    for my $r (rows($s->{rounds})) {
        $out .= sprintf "%-9s %-17s %11s %7s %9s %9s %9s %9s\n",
            row($s, @$r);
    }

    $out .= sprintf "\n%-45s %11s %11s  %s\n", 'goal', 'is', 'wanted', 'held';
    $out .= sprintf "%-45s %11s %11s  %s\n", goal_row($_) for @{ $s->{goals} };
    $out .= "\nONLY RATIOS COUNT: $_\n" for @{ $s->{doubts} };
    $out .= "PROBLEM: $_\n" for @{ $s->{problems} };

    return $out;
}


# ---- the page ---------------------------------------------------------------

sub bench_write {
    my ($s, $docs) = @_;

    make_path("$docs/bench");
    bench_spew("$docs/bench/rate.svg", plot_rates($s));
    bench_spew("$docs/bench/latency.svg", plot_latency($s));
    bench_spew("$docs/BENCHMARKS.md", page($s));
}

sub bench_spew {
    my ($path, $text) = @_;

    open my $f, '>', $path or die "bench: $path: $!\n";
    print $f $text;
    close $f or die "bench: $path: $!\n";
}

sub page {
    my ($s) = @_;

    my $m = $s->{machine};
    my $n = @{ $s->{rounds} };
    my $doubt = @{ $s->{doubts} }
        ? "**Only ratios count here:**\n\n"
          . join("\n", map { "* $_" } @{ $s->{doubts} })
        : 'Disk and machine were steady enough for figures to count too.';
    my $text = <<"END";
# Benchmarks

Written by `make bench` on $m->{date}; what is compared and why it is fair is in
[PERFORMANCE](PERFORMANCE.md).

* $m->{cpu}, $m->{cores} cores, $m->{memory_mib} MiB, Linux $m->{kernel}, nginx $m->{nginx}
* $m->{workers} worker(s) for every server; the load generator runs on the same machine
* $n round(s) of $s->{how}{seconds} s a case, interleaved; medians, and (max - min) / median as spread
* the machine itself, doing nothing else, stands still for @{[sprintf '%.1f', $s->{still}]} % of the time, @{[sprintf '%.0f', $s->{still_max}]} ms at most
* fdatasync: @{[thousands($s->{sync})]} /s, p50 $s->{sync_p50} us, slowest @{[thousands($s->{sync_max})]} us, spread @{[sprintf '%.0f', $s->{sync_spread}]} %

$doubt

## Goals

| | is | wanted | held |
|---|---|---|---|
END

    $text .= '| ' . join(' | ', goal_row($_)) . " |\n" for @{ $s->{goals} };
    $text .= <<'END';

![operations a second](bench/rate.svg)

![latency](bench/latency.svg)

## Figures

Latencies in microseconds. `open` is an open loop at 70 % of the best rate of as many connections,
timed from when a request was due; in `kill` the helper is killed once, at full load, and the
slowest answer tells how long that took; `long` is the same ledger with ten million entries in it,
`accounts` and `wide` are the same with a million accounts too, and `few` are payments between
10 000 of them.

| who | case | ops/s | spread | p50 | p99 | p99.9 | max |
|---|---|---|---|---|---|---|---|
END

    $text .= '| ' . join(' | ', row($s, @$_)) . " |\n" for rows($s->{rounds});

    return $text . page_end($s);
}

sub page_end {
    my ($s) = @_;

    my $last = $s->{rounds}[-1];
    my $text = "\n## CPU and memory\n\nSeconds of CPU for 100 000 "
               . "operations, until history is level, and RSS, "
               . "in the last round.\n\n"
               . "| who | case | process | CPU s | RSS MiB |\n"
               . "|---|---|---|---|---|\n";

    for my $r (rows($s->{rounds})) {
        my ($who, $case) = @$r;
        my $v = $last->{case}{$who}{$case} or next;
        my $ops = $v->{acknowledged} || $v->{operations_per_s}
                                        * $s->{how}{seconds};
        next unless $case =~ m{^(?:transfer/128|balance/128|ndjson)};

        my %all = map { %$_ } @{ $v->{spent} };
        for my $name (sort keys %all) {
            my $p = $all{$name};
            next if ($p->{cpu} // 1) == 0;
            $text .= sprintf "| %s | %s | %s | %s | %s |\n", $who, $case,
                $name, defined $p->{cpu}
                       ? sprintf('%.2f', $p->{cpu} * 100_000 / $ops) : '',
                defined $p->{rss} ? sprintf('%.0f', $p->{rss} / 1024) : '';
        }
    }

    $text .= "\n## Afterwards\n\n| round | entries verified | all well |\n"
             . "|---|---|---|\n";

    my $n = 0;
    for my $r (@{ $s->{rounds} }) {
        $text .= sprintf "| %d | %s | %s |\n", ++$n,
            thousands($r->{verify}{seq}), $r->{verify}{ok} ? 'yes' : 'NO';
    }

    $text .= "\nHistory at the end of each case of the last round, before the next "
             . "one begins:\n\n| case | history behind | level after, s |\n"
             . "|---|---|---|\n";

    for my $r (rows($s->{rounds})) {
        my ($who, $case) = @$r;
        my $h = ($last->{case}{$who}{$case} // next)->{history} // next;

        $text .= sprintf "| %s | %s | %.1f |\n", $case, thousands($h->{lag}),
            $h->{catch_up_s} if $h->{lag};
    }

    $text .= "\nAcknowledged and journal agree after every run"
             . (@{ $s->{problems} } ? ", but for:\n\n" : ".\n");
    $text .= "* $_\n" for @{ $s->{problems} };

    return $text;
}


# ---- plots ------------------------------------------------------------------

# Groups of bars: one group a number of connections, one bar a server.
sub plot_rates {
    my ($s) = @_;

    return bars('Durable transfers a second, by connections', $s,
                [ 64, 128, 256 ], sub {
                    median(rate($s->{rounds}, $_[0], "transfer/$_[1]"))
                }, 1, '');
}

sub plot_latency {
    my ($s) = @_;

    return bars('p99 of a transfer, milliseconds, by connections', $s,
                [ 1, 64, 128, 256 ], sub {
                    median(figures($s->{rounds}, $_[0], "transfer/$_[1]",
                                   'latency_us', 'p99'))
                }, 1000, '%.1f');
}

sub bars {
    my ($title, $s, $groups, $value, $scale, $format) = @_;

    my ($width, $height, $left, $floor) = (720, 320, 20, 262);
    my @bars = grep { $_->[0] !~ /^(?:wrk|again)$/ } @WHO;
    my $top = 0;

    for my $g (@$groups) {
        for my $w (@bars) {
            my $v = $value->($w->[0], $g) // 0;
            $top = $v if $v > $top;
        }
    }

    $top ||= 1;

    my $svg = qq{<svg xmlns="http://www.w3.org/2000/svg" width="$width" }
        . qq{height="$height" font-family="sans-serif" font-size="12">\n}
        . qq{<rect width="100%" height="100%" fill="white"/>\n}
        . qq{<text x="$left" y="22" font-size="15">$title</text>\n};
    my $group_w = ($width - 2 * $left) / @$groups;
    my $bar_w = int($group_w * 0.8 / @bars);

    for my $i (0 .. $#$groups) {
        my $x = $left + $i * $group_w;

        for my $j (0 .. $#bars) {
            my $v = $value->($bars[$j][0], $groups->[$i]);
            next if !defined $v;

            my $h = int(200 * $v / $top) || 1;
            my $y = $floor - $h;
            my $at = int($x + $j * $bar_w);
            my $text = $format ? sprintf $format, $v / $scale
                               : thousands($v / $scale);

            $svg .= sprintf qq{<rect x="%d" y="%d" width="%d" height="%d" }
                . qq{fill="%s"/>\n<text x="%d" y="%d" font-size="10" }
                . qq{text-anchor="middle">%s</text>\n}, $at, $y, $bar_w - 4,
                $h, $bars[$j][2], $at + $bar_w / 2 - 2, $y - 4, $text;
        }

        $svg .= sprintf qq{<text x="%d" y="%d" text-anchor="middle">%d</text>}
            . "\n", $x + $bar_w * @bars / 2, $floor + 16, $groups->[$i];
    }

    for my $j (0 .. $#bars) {
        my $x = $left + $j * 175;
        $svg .= sprintf qq{<rect x="%d" y="%d" width="10" height="10" fill="%s"}
            . qq{/>\n<text x="%d" y="%d">%s</text>\n}, $x, $height - 22,
            $bars[$j][2], $x + 14, $height - 13, $bars[$j][1];
    }

    return "$svg</svg>\n";
}

1;
