#!/usr/bin/perl

# A minute of load, and the limits that alerts are on: p95 of a commit, depth
# of the commit queue, refusals at ingress, tasks that leaked.
#
# RON_SLO_SECONDS is for trying the test itself; what is asked of a change is
# the whole minute.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use Time::HiRes ();

my $seconds = $ENV{RON_SLO_SECONDS} || 60;
my $build = $ENV{RON_BUILD} || 'build';
my $p95 = 0.08;


# the gate itself: two scrapes a second apart, and each limit passed by one

{
    my @good = ([ 0, sample() ], [ 1, sample(fast => 100) ]);

    is_deeply([ gate(@good) ], [], 'a server that is well passes');
    is_deeply([ gate($good[0], [ 1, sample(fast => 96, slow => 4) ]) ], [],
              'with one slow commit of twenty-five too');

    for my $case (
        [ 'p95 of a commit', [ 1, sample(fast => 90, slow => 10) ] ],
        [ 'commit depth',    [ 1, sample(fast => 9, depth => 801) ] ],
        [ 'ingress busy',    [ 1, sample(fast => 9, busy => 51) ] ],
        [ 'tasks leaked',    [ 1, sample(fast => 9, leaked => 1) ] ],
        [ 'no commit',       [ 1, sample() ] ],
        [ 'no metrics',      [ 1, {} ] ])
    {
        my ($what, $after) = @$case;
        my @broken = gate($good[0], $after);

        is(scalar @broken, 1, "$what: refused");
        like($broken[0], qr/^$what/, "$what: and named");
    }

    is(scalar gate($good[0], [ 1, sample(fast => 9, depth => 800,
                                         busy => 50) ]), 0,
       'the limit itself is none too much');
}


# a minute

my $s = RonTest->new(workers => 2);
$s->start or BAIL_OUT('no server');

my @loads = map { load(@$_) } [ 'transfer', 48 ], [ 'ingest', 8, '--ops', 32 ];
my @scrapes;
my $end = Time::HiRes::time() + $seconds;

while (Time::HiRes::time() < $end) {
    push @scrapes, [ Time::HiRes::time(), scrape() ];
    Time::HiRes::sleep(1);
}

for my $load (@loads) {
    waitpid $load->{pid}, 0;
    is($?, 0, "$load->{what}: every request was answered")
        or diag(RonTest::slurp($load->{log}));
}

push @scrapes, [ Time::HiRes::time(), scrape() ];

my @broken = gate(@scrapes);

is("@broken", '', "$seconds s under the limits");

my ($first, $last) = ($scrapes[0][1], $scrapes[-1][1]);
my $commits = total($last, 'ledger_commits_total')
              - total($first, 'ledger_commits_total');
my $entries = total($last, 'ledger_entries_total')
              - total($first, 'ledger_entries_total');

cmp_ok($entries, '>', 50 * $seconds, "$entries entries in $commits commits");
diag(sprintf '%d entries in %d commits, p95 of a commit at most %s ms',
     $entries, $commits, 1000 * quantile($first, $last, 0.95));

# The thread of history may be far behind, which is no excuse.

my $behind = total(scrape(), 'ledger_history_lag_entries');
$s->quit;

my ($leaked) = $s->log =~ /"event":"shutdown".*"leaked":(\d+)/;
is($leaked, 0, "and nothing leaked, history $behind entries behind");

done_testing();


# What is over its limit, in a list of [ time, metrics ].
sub gate {
    my (@scrapes) = @_;
    my ($first, $last) = ($scrapes[0][1], $scrapes[-1][1]);
    my %worst = (depth => 0, busy => 0);
    my @broken;

    return 'no metrics' if grep { !%{ $_->[1] } } @scrapes;

    for my $i (1 .. $#scrapes) {
        my ($t0, $before) = @{ $scrapes[$i - 1] };
        my ($t1, $now) = @{ $scrapes[$i] };
        my %part = (
            depth => total($now, 'queue_depth', 'commit')
                     / total($now, 'queue_capacity', 'commit'),
            busy => (total($now, 'busy_rejections_total', 'ingress')
                     - total($before, 'busy_rejections_total', 'ingress'))
                    / ($t1 - $t0),
        );

        for my $what (keys %part) {
            $worst{$what} = $part{$what} if $part{$what} > $worst{$what};
        }
    }

    my $commit = quantile($first, $last, 0.95);

    push @broken, 'no commit' if !defined $commit;
    push @broken, "p95 of a commit is over $p95 s, at most $commit s"
        if defined $commit && $commit > $p95;
    push @broken, "commit depth is $worst{depth} of its capacity"
        if $worst{depth} > 0.8;
    push @broken, "ingress busy is $worst{busy} a second" if $worst{busy} > 50;
    push @broken, 'tasks leaked' if total($last, 'tasks_leaked_total') > 0;

    return @broken;
}

# The bound of the bucket in which the quantile lies.
sub quantile {
    my ($first, $last, $q) = @_;
    my %count;

    for my $series (grep { /^committer_batch_latency_seconds_bucket\{/ }
                    keys %$last)
    {
        my ($le) = $series =~ /le="([^"]+)"/;
        $le = 9**9**9 if $le eq '+Inf';
        $count{$le} += $last->{$series} - ($first->{$series} || 0);
    }

    my @les = sort { $a <=> $b } keys %count;

    return undef if !@les || $count{ $les[-1] } == 0;

    for my $le (@les) {
        return $le if $count{$le} >= $q * $count{ $les[-1] };
    }
}

sub total {
    my ($metrics, $name, $value) = @_;
    my $sum = 0;

    for my $series (keys %$metrics) {
        next if $series !~ /^\Q$name\E\{/;
        next if defined $value && $series !~ /="\Q$value\E"/;
        $sum += $metrics->{$series};
    }

    return $sum;
}

sub scrape {
    my $text = $s->get('/metrics', token => undef)->{body};

    return { $text =~ /^(\w+\{.*\}) (\S+)$/mg };
}

# Metrics as they would be.
sub sample {
    my (%o) = @_;
    my ($fast, $slow) = ($o{fast} || 0, $o{slow} || 0);
    my $bucket = 'committer_batch_latency_seconds_bucket{le=';

    return {
        $bucket . '"0.005"}' => $fast,
        $bucket . '"0.08"}' => $fast,
        $bucket . '"0.15"}' => $fast + $slow,
        $bucket . '"+Inf"}' => $fast + $slow,
        'queue_depth{q="commit"}' => $o{depth} || 0,
        'queue_capacity{q="commit"}' => 1000,
        'busy_rejections_total{q="ingress"}' => $o{busy} || 0,
        'tasks_leaked_total{service="ledger"}' => $o{leaked} || 0,
    };
}

sub load {
    my ($workload, $connections, @more) = @_;

    my $log = $s->dir . "/bench-$workload";
    my $pid = fork();
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        open STDOUT, '>', $log;
        open STDERR, '>&', \*STDOUT;
        exec("$build/ronctl", 'bench', '--url', 'http://127.0.0.1:' . $s->port,
             '--keys', $s->dir . '/ron.keys', '--workload', $workload,
             '--connections', $connections, '--duration', "${seconds}s",
             @more) or POSIX::_exit(127);
    }

    return { pid => $pid, log => $log, what => $workload };
}
