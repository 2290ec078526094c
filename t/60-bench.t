#!/usr/bin/perl

# ronctl bench: what it says was acknowledged is what the journal has, its
# clock is honest, and a server that hangs up costs nothing.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use IO::Socket::INET;
use JSON::PP qw(decode_json);
use MIME::Base64 qw(decode_base64);
use Time::HiRes qw(sleep time);

my $build = $ENV{RON_BUILD} || 'build';
my $ronctl = "$build/ronctl";

plan skip_all => "no $ronctl" if !-x $ronctl;

my $s = RonTest->new(workers => 2, http => <<'END');
    ron_ledger_stream_max 64m;
    keepalive_requests 50;
END
$s->start or BAIL_OUT('no server');

my $url = 'http://127.0.0.1:' . $s->port;
my @keys = ('--keys', $s->dir . '/ron.keys');
my $journal = 0;
my ($out, $err, $rc);

sub bench {
    my @args = @_;

    my $pid = bench_begin(@args);
    waitpid $pid, 0;

    return bench_end($?);
}

sub bench_begin {
    my @args = @_;

    my $pid = fork();
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        open STDOUT, '>', $s->dir . '/bench.out';
        open STDERR, '>', $s->dir . '/bench.err';
        exec $ronctl, 'bench', '--json', '--duration', '300ms',
             '--warm-up', '100ms', '--accounts', '100', '--connections', '8',
             @args or POSIX::_exit(127);
    }

    return $pid;
}

sub bench_end {
    my ($status) = @_;

    $rc = $status >> 8;
    $out = slurp_file($s->dir . '/bench.out');
    $err = slurp_file($s->dir . '/bench.err');

    return eval { decode_json($out) } || {};
}

sub slurp_file {
    open my $f, '<', $_[0] or return '';
    local $/;
    return scalar <$f>;
}

sub height {
    my $info = decode_json(
        `$ronctl ledger info --json @{[$s->dir]}/ledger`);
    return $info->{seq};
}

sub in_journal {
    my ($r, $what) = @_;

    $journal += $r->{acknowledged} + $r->{setup_acknowledged};
    is(height(), $journal, "$what: acknowledged is what the journal has");
}


# every workload

for my $w ([ 'transfer' ], [ 'transfer', '--hot' ], [ 'issue' ],
           [ 'issue', '--hot', '--accounts', 2 ],
           [ 'batch', '--ops', 50 ], [ 'batch', '--ops', 1000, '--hot' ],
           [ 'ingest', '--ops', 100 ], [ 'ingest', '--accounts', 2 ],
           [ 'ndjson', '--ops', 2000 ])
{
    my $r = bench('--url', $url, @keys, '--workload', @$w);

    is($rc, 0, "@$w") or diag($out, $err);
    cmp_ok($r->{operations}, '>', 0, 'something was measured');
    is_deeply([ keys %{ $r->{status} } ], [ 200 ], 'and all of it accepted');
    cmp_ok($r->{latency_us}{p50}, '>', 0, 'in some time');
    cmp_ok($r->{latency_us}{p50}, '<=', $r->{latency_us}{max}, 'in order');
    in_journal($r, "@$w");
}

for my $w ('balance', 'proof') {
    my $r = bench('--url', $url, @keys, '--workload', $w,
                  '--duration', '1s');

    is($rc, 0, $w) or diag($out, $err);
    is_deeply([ keys %{ $r->{status} } ], [ 200 ], 'all answered');
    $journal += $r->{setup_acknowledged};
    is(height(), $journal, "$w: nothing but the setup is in the journal");
}


# duplicates: answered as before, and no operation more

for my $w ('transfer', 'issue') {
    my $before = $s->metric('wallet_idem_replays_total');
    my $r = bench('--url', $url, @keys, '--workload', $w, '--duplicates', 30);

    is($rc, 0, "$w, and again") or diag($out, $err);
    cmp_ok($r->{duplicates}{sent}, '>', 0.2 * $r->{sent}, 'so many of them');
    is($r->{duplicates}{same}, $r->{duplicates}{sent}, 'answered as before');
    is($r->{duplicates}{differ}, 0, 'all of them');
    is($s->metric('wallet_idem_replays_total') - $before,
       $r->{duplicates}{sent} + $r->{resent}, 'the server counts them');
    in_journal($r, "$w, and again");
}

for my $bad ([ 101 ], [ 1, '--workload', 'batch' ],
             [ 1, '--workload', 'balance' ])
{
    bench('--url', $url, @keys, '--duplicates', @$bad);
    is($rc, 2, "--duplicates @$bad: refused");
}


# the record: a key and a seq for every operation, none twice

my $record = $s->dir . '/record';
my $r = bench('--url', $url, @keys, '--record', $record);
in_journal($r, 'with a record');

my @lines = map { [ split ] } split /\n/, slurp_file($record);
my (%key, %seq);
$key{ $_->[0] }++, $seq{ $_->[1] }++ for @lines;

is(scalar @lines, $r->{acknowledged}, 'a line for each');
is(scalar keys %key, scalar @lines, 'every key once');
is(scalar keys %seq, scalar @lines, 'every seq once');

my ($some) = @lines[ @lines / 2 ];
my $entry = decode_json(`$ronctl ledger entries --json --bytes \\
                         --from $some->[1] --to $some->[1] \\
                         @{[$s->dir]}/ledger`);
like(decode_base64($entry->{bytes}), qr/\Q$some->[0]\E/,
     'the journal has that key at that seq');


# open loop: all that is due is sent or counted late, at its rate

$r = bench('--url', $url, @keys, '--rate', 500, '--duration', '900ms',
           '--connections', 32);
is($rc, 0, 'open loop') or diag($out, $err);
is($r->{sent} + $r->{late}, 500, 'a second of it has its number of requests');
in_journal($r, 'open loop');


# workers die under it: what was not answered is sent again with its key

my $pid = bench_begin('--url', $url, @keys, '--duration', '1500ms');
sleep 0.7;
$s->allow(qr/worker process \d+ exited on signal/);
kill 'KILL', $s->workers;           # one may have all of the connections
waitpid $pid, 0;
$r = bench_end($?);
cmp_ok($r->{resent}, '>', 0, 'requests are sent again');
is($r->{unanswered}, 0, 'all are answered') or diag($out);
in_journal($r, 'after a dead worker');


# refusals count, and are no success

$r = bench('--url', $url, @keys, '--no-setup');
is($rc, 1, 'accounts without money: exit code 1');
cmp_ok($r->{status}{409}, '>', 0, 'counted by status');
is($r->{acknowledged}, 0, 'and none acknowledged');
is(height(), $journal, 'nor in the journal');

bench('--url', $url, '--token', 'nonsense');
is($rc, 3, 'a bad capability');
like($out . $err, qr/401.*--token and --keys/, 'and what to do');

my $free = RonTest::free_port();
bench('--url', "http://127.0.0.1:$free");
is($rc, 3, 'nobody there');
like($out . $err, qr/refused/i, 'says so');

for my $bad ([ '--workload', 'nonsense' ], [ '--url', 'ftp://x' ],
             [ '--connections', 0 ], [ '--duration', '5 apples' ],
             [ '--workload', 'batch', '--ops', 1001 ], [ '--run', 'xyz' ],
             [ '--connections', 101 ], [ '--rate', '-1' ],
             [ '--workload', 'ndjson', '--record', '/dev/null' ],
             [ '--workload', 'proof', '--no-setup' ])
{
    bench(@$bad);
    is($rc, 2, "refused: @$bad");
}


# the clock: a stall counts for everything that was due in it, and a closed
# loop alone would hide that

sub stalls {
    my ($listen) = @_;

    my $n = 0;

    while (my $c = $listen->accept) {
        while (sysread $c, my $request, 65536) {
            sleep 1 if $n++ == 0;
            syswrite $c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                . "\r\n3\r\n{\"s\r\n8\r\neq\":42}\n\r\n0\r\n\r\n";
        }
    }
}

for my $loop ([], [ '--rate', 100 ]) {
    my $listen = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1')
        or die "listen: $!";
    my $child = fork();

    if ($child == 0) {
        stalls($listen);
        POSIX::_exit(0);
    }

    my $port = $listen->sockport;
    close $listen;

    $r = bench('--url', "http://127.0.0.1:$port", '--no-setup',
               '--connections', 1, '--duration', '1500ms', '--warm-up', '0',
               @$loop);
    kill 'KILL', $child;
    waitpid $child, 0;

    is($r->{last_seq}, 0, 'a stranger is measured too') if !@$loop;

    if (@$loop) {
        cmp_ok($r->{latency_us}{p50}, '>', 100_000,
               'open loop: half of all waited');

    } else {
        cmp_ok($r->{latency_us}{p50}, '<', 100_000,
               'closed loop: one waited');
    }

    cmp_ok($r->{latency_us}{max}, '>', 900_000, 'the longest is the stall');
}


# a server that stops answering is no faster for that: the rate is that of the
# whole time, and what nobody sent or answered waited all the while

{
    my $listen = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1')
        or die "listen: $!";
    my $child = fork();

    if ($child == 0) {
        my $n = 0;

        while (my $c = $listen->accept) {
            while (sysread $c, my $request, 65536) {
                syswrite $c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
                    . '{"seq":7}' if ++$n <= 10;
            }
        }

        POSIX::_exit(0);
    }

    my $port = $listen->sockport;
    close $listen;

    $r = bench('--url', "http://127.0.0.1:$port", '--no-setup', '--rate', 100,
               '--connections', 1, '--duration', '1500ms', '--warm-up', '0',
               '--timeout', '1s');
    kill 'KILL', $child;
    waitpid $child, 0;

    is($rc, 1, 'a server that falls silent');
    is($r->{status}{200}, 10, 'has answered ten');
    cmp_ok($r->{seconds}, '>=', 1.499, 'in the time that was asked for');
    cmp_ok($r->{unanswered}, '>=', 1, 'some were given up');
    cmp_ok($r->{late}, '>', 100, 'most were never sent');
    cmp_ok($r->{latency_us}{p50}, '>', 300_000, 'and all of them waited');
}


# the journal is whole

$s->quit;
is(system("$ronctl ledger verify @{[$s->dir]}/ledger >/dev/null"), 0,
   'and it verifies');

done_testing();
