#!/usr/bin/perl

# make bench: this server beside a floor and two peers, on one disk, in turn.
#
#     t/bench/run.pl [--quick] [--rounds N] [--seconds S] [--only NAME,...]
#                    [--dir DIR] [--workers N] [--docs DIR] [--keep] [--parts]
#                    [--entries N]
#
# `again` is this server with a module that hashes and signs four times more.
#
# A round calibrates the disk and then measures every case once; cases of
# the same kind follow each other, so that what the machine does meanwhile
# falls on all of them.  Figures are medians over the rounds, ratios are
# taken inside a round first.  After every run of ours the journal must have
# grown by what was acknowledged, and after every round the ledger must
# verify from its first entry: supply, roots and all.
#
# After the last round the ledger is filled up to --entries, and what must not
# depend on how long it is measured again.  Then it gets a million accounts,
# and so for what must not depend on how many there are.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Path qw(make_path remove_tree);
use Getopt::Long;
use IO::Socket::INET;
use JSON::PP;
use POSIX ();
use Time::HiRes qw(sleep time);

my $here = abs_path(dirname($0));
my $top = abs_path("$here/../..");
require "$here/report.pl";

# The same accounts in every case, so that there are no more than it says.
my @ACCOUNTS = qw(acc000 acc001);

my %o = (dir => '/var/tmp/ron-bench',
         workers => 0, docs => "$top/docs", only => '');

GetOptions(\%o, 'quick', 'rounds=i', 'seconds=i', 'dir=s', 'workers=i',
           'docs=s', 'only=s', 'keep', 'parts', 'entries=i') or exit 2;

$o{rounds} ||= $o{quick} ? 1 : 5;
$o{seconds} ||= $o{quick} ? 2 : 6;
$o{entries} //= $o{quick} || $o{only} ? 0 : 10_000_000;

delete $ENV{NGINX};
$ENV{PATH} .= ':/usr/sbin:/sbin';

my $build = $ENV{RON_BUILD} || "$top/build";
my $ronctl = "$build/ronctl";
my $pgbin = '/usr/lib/postgresql/15/bin';
my ($cores) = `nproc` =~ /(\d+)/;
my $workers = $o{workers} || ($cores > 2 ? int($cores / 2) : 1);
my $root = $> == 0;
my $user = $root ? 'www-data' : scalar getpwuid $>;
my (%server, @results, @rounds, @problems);
my $quit = 0;

$SIG{INT} = $SIG{TERM} = sub { $quit = 1; die "interrupted\n" };

-x $ronctl or die "bench: there is no $ronctl, run make\n";


# ---- servers ----------------------------------------------------------------

sub port {
    my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')
        or die "bench: no port: $!\n";
    return $s->sockport;
}

sub spew {
    my ($path, $text, $mode) = @_;

    open my $f, '>', $path or die "bench: $path: $!\n";
    print $f $text;
    close $f or die "bench: $path: $!\n";
    chmod $mode, $path if defined $mode;
}

sub slurp {
    my ($path) = @_;

    open my $f, '<', $path or return '';
    local $/;
    return scalar <$f>;
}

sub must {
    my ($what, @cmd) = @_;

    system(@cmd) == 0 or die "bench: $what failed: @cmd\n";
}

sub pid_of {
    my ($path) = @_;

    for (1 .. 100) {
        return $1 if slurp($path) =~ /^(\d+)/;
        sleep 0.1;
    }

    die "bench: there is no $path\n";
}

sub answers {
    my ($url) = @_;

    for (1 .. 150) {
        return 1 if `curl -s -o /dev/null -m 2 -w '%{http_code}' $url` == 200;
        sleep 0.1;
    }

    die "bench: $url does not answer\n";
}

# A configuration of an nginx from its template; %more goes into it.
sub nginx_conf {
    my ($name, $template, %more) = @_;

    my $dir = "$o{dir}/$name";
    my $port = port();

    make_path($dir, "$dir/logs", "$dir/tmp", "$dir/sock");
    chmod 0755, $dir;

    my %fill = (USER => $root ? "user $user;" : '', WORKERS => $workers,
                DATA => $dir, LISTEN => "127.0.0.1:$port", HERE => $here,
                MODULE => "$build/ngx_ron_module.so", %more);

    if ($root) {
        my ($uid, $gid) = (getpwnam $user)[2, 3];
        chown $uid, $gid, "$dir/sock";
    }

    my $text = slurp($template);
    $text =~ s/\@([A-Z]+)\@/$fill{$1} \/\/ "\@$1\@"/ge;

    return ($dir, $port, $text);
}

sub start_nginx {
    my ($name, $dir, $port, $text, $ready) = @_;

    spew("$dir/nginx.conf", $text);
    must("starting $name", 'setsid', 'nginx', '-p', $dir, '-c',
         "$dir/nginx.conf", '-e', "$dir/logs/error.log");

    $server{$name} = { dir => $dir, url => "http://127.0.0.1:$port",
                       pid => pid_of("$dir/nginx.pid"), signal => 'QUIT' };
    answers("http://127.0.0.1:$port$ready") if $ready;
}

sub start_floor {
    start_nginx('floor', nginx_conf('floor', "$here/floor.conf.in"), '/');
}

# Where there are processors beside those of the workers, ours has its helper
# on them, and its load too.  The others are faster wherever the kernel likes.
my @beside = $cores > $workers ? ($workers .. $cores - 1) : ();

sub place {
    my $mask = sub { join '', map { my $c = $_; 0 + grep { $_ == $c } @_ }
                                  reverse 0 .. $cores - 1 };

    return '' if !@beside;
    return 'worker_cpu_affinity '
           . join(' ', map { $mask->($_) } 0 .. $workers - 1) . ";\n"
           . 'ron_helper_cpu_affinity ' . $mask->(@beside) . ";\n";
}

# A single client is in nobody's way, and farther from the worker there.
sub placed {
    my ($who, $case) = @_;

    return () if !@beside || !$server{$who}{ledger} || $case =~ m{/1$};
    return ('taskset', '-c', join(',', @beside));
}

# Ours, or ours with a module of another build.
sub start_ron {
    my ($name, $from) = @_;

    my ($dir, $port, $text) = nginx_conf($name, "$top/conf/nginx.conf.in",
                                         MODULE => "$from/ngx_ron_module.so");

    # what the floor has too, a stream as long as it likes, and a cache of
    # proofs for as many entries as there will be

    $text =~ s/(keepalive_requests\s+)\d+;/${1}100000000;/;
    $text =~ s/(ron_zone\s)/ron_ledger_stream_max 0;\n    $1/;
    $text =~ s/(ron_zone\s)/ron_proof_cache 32m;\n    $1/;
    $text =~ s/^(events)/place() . $1/me;

    must('making keys', "$ronctl keys new $dir/ron.keys dev >/dev/null");
    start_nginx($name, $dir, $port, $text, '/readyz');
    $server{$name}{keys} = "$dir/ron.keys";
    $server{$name}{ledger} = "$dir/ledger";
}

sub start_lua {
    my $dir = "$o{dir}/redis";
    make_path($dir);

    my $uid = $root ? (getpwnam $user)[2] : $>;
    chown $uid, -1, $dir;

    spew("$dir/redis.conf", <<"END");
port 0
unixsocket $dir/redis.sock
unixsocketperm 777
dir $dir
daemonize no
appendonly yes
appendfsync always
save ""
auto-aof-rewrite-percentage 0
END

    run_as('redis', "$dir/log", 'redis-server', "$dir/redis.conf");
    for (1 .. 100) {
        last if -S "$dir/redis.sock";
        sleep 0.1;
    }

    start_nginx('lua', nginx_conf('lua', "$here/lua.conf.in",
                                  REDIS => "$dir/redis.sock"));
}

# A server that stays in the foreground, as the unprivileged user.
sub run_as {
    my ($name, $log, @cmd) = @_;

    my $pid = fork();
    die "bench: fork: $!\n" unless defined $pid;

    if ($pid == 0) {
        POSIX::setsid();
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', $log;
        open STDERR, '>&', \*STDOUT;
        if ($root) {
            my ($uid, $gid) = (getpwnam $user)[2, 3];
            $( = $) = "$gid $gid";
            $< = $> = $uid;
        }
        exec @cmd or POSIX::_exit(127);
    }

    $server{$name} = { dir => dirname($log), pid => $pid, child => 1,
                       signal => 'INT' };
}

sub as_user {
    my ($cmd) = @_;

    return $root ? "setpriv --reuid $user --regid $user --clear-groups $cmd"
                 : $cmd;
}

sub start_postgres {
    my $dir = "$o{dir}/postgres";
    make_path($dir);
    chown +(getpwnam $user)[2], -1, $dir if $root;

    must('initdb', as_user("$pgbin/initdb -D $dir/data -U bench -A trust "
                           . "--locale=C -E UTF8 >$dir.log 2>&1"));

    # durable as it comes; no vacuum and no checkpoint falls into a run

    spew("$dir/data/postgresql.conf", <<"END");
listen_addresses = ''
unix_socket_directories = '$dir'
max_connections = 300
shared_buffers = 512MB
synchronous_commit = on
fsync = on
wal_sync_method = fdatasync
max_wal_size = 8GB
checkpoint_timeout = 1h
autovacuum = off
jit = off
END

    run_as('postgres', "$dir/log", "$pgbin/postgres", '-D', "$dir/data");
    for (1 .. 100) {
        last if -S "$dir/.s.PGSQL.5432";
        sleep 0.1;
    }
    sleep 0.5;

    must('schema', "psql -q -h $dir -U bench -d postgres -v ON_ERROR_STOP=1 "
                   . "-f $here/postgres.sql >>$dir.log 2>&1");
    $server{postgres}{host} = $dir;
}

sub stop {
    my ($name) = @_;

    my $s = delete $server{$name} or return;
    kill $s->{signal}, $s->{pid};

    for (1 .. 200) {
        waitpid $s->{pid}, POSIX::WNOHANG() if $s->{child};
        kill(0, $s->{pid}) or return;
        sleep 0.1;
    }

    kill 'KILL', $s->{pid};
}

END {
    my $code = $?;
    local $SIG{INT} = 'IGNORE';
    stop($_) for qw(lua redis postgres floor again ron);
    remove_tree($o{dir}) if !$o{keep} && $o{dir} =~ m{/ron-bench};
    $? = $code;
}


# ---- processes --------------------------------------------------------------

# CPU seconds and RSS in KiB of every process and thread below a pid.
sub census {
    my ($pid) = @_;

    my (%parent, %all);

    for my $stat (glob '/proc/[0-9]*/stat') {
        $parent{$1} = $2 if slurp($stat) =~ /^(\d+) \(.*\) \S (\d+)/s;
    }

    for my $p (keys %parent) {
        next unless $p == $pid || $parent{$p} == $pid;
        (my $title = slurp("/proc/$p/cmdline")) =~ tr/\0/ /;
        $title = $title =~ /worker process/ ? 'worker'
                 : $title =~ /cache manager/ ? 'helper'
                 : $title =~ /^nginx: master/ ? 'master'
                 : $title =~ /redis/ ? 'redis' : 'postgres';
        my ($rss) = slurp("/proc/$p/status") =~ /VmRSS:\s+(\d+)/;
        my ($pss) = slurp("/proc/$p/smaps_rollup") =~ /^Pss:\s+(\d+)/m;
        $all{$title}{rss} += $rss // 0;
        $all{$title}{pss} += $pss // 0;

        # a backend of PostgreSQL is gone when its client is: its time is its
        # parent's now

        if ($p == $pid && $title eq 'postgres') {
            my ($rest) = slurp("/proc/$p/stat") =~ /^\d+ \(.*\) (.*)$/s;
            my @n = split ' ', $rest // '';
            $all{$title}{cpu} += (($n[13] // 0) + ($n[14] // 0))
                                 / POSIX::sysconf(POSIX::_SC_CLK_TCK());
        }

        for my $task (glob "/proc/$p/task/*/stat") {
            my @f = slurp($task) =~ /^\d+ \((.*)\) (.*)$/s or next;
            my @n = split ' ', $f[1];
            my $what = $title eq 'helper' ? "helper: $f[0]" : $title;
            $all{$what}{cpu} += ($n[11] + $n[12]) / POSIX::sysconf(
                POSIX::_SC_CLK_TCK());
        }
    }

    return \%all;
}

# A process that took the place of another began with nothing.
sub spent {
    my ($before, $after) = @_;

    my %spent;

    for my $name (keys %$after) {
        my $cpu = $after->{$name}{cpu};
        my $was = $before->{$name}{cpu} // 0;

        $spent{$name}{cpu} = $cpu - ($was <= $cpu ? $was : 0) if defined $cpu;
        $spent{$name}{$_} = $after->{$name}{$_}
            for grep { defined $after->{$name}{$_} } qw(rss pss);
    }

    return \%spent;
}


# ---- cases ------------------------------------------------------------------

sub http_case {
    my ($who, $case, @args) = @_;

    my $s = $server{$who};
    my @cmd = (placed($who, $case), $ronctl, 'bench', '--json', '--url',
               $s->{url}, '--duration', "$o{seconds}s", '--warm-up', '500ms', '--accounts', 10000,
               '--run', $ACCOUNTS[0],
               $s->{keys} ? ('--keys', $s->{keys}) : ('--token', 'x' x 80),
               @args);
    my $seq = $s->{ledger} ? height($who) : 0;
    my @pids = ($s->{pid}, $who eq 'lua' ? $server{redis}{pid} : ());
    my @before = map { census($_) } @pids;
    my $text = capture(@cmd);
    my $r = eval { decode_json($text) } || {};

    if (!defined $r->{operations_per_s}) {
        problem("$who $case: " . ($r->{error} // "no answer: $text"));
        return;
    }

    if (!$r->{ok}) {
        problem("$who $case: answers " . encode_json($r->{status})
                . ", $r->{unanswered} unanswered");
    }

    # what history has left to do is of this case, and nobody after it shares
    # the machine with that

    if ($s->{ledger}) {
        $r->{history} = level($who);
        $r->{seq} = height($who);
    }

    $r->{spent} = [ map { spent($before[$_], census($pids[$_])) } 0 .. $#pids ];
    acknowledged($who, $case, $seq, $r) if $s->{ledger};

    return $r;
}

# The helper dies in the middle of it.  Operations that wait for it are sent
# again by their workers, so the slowest answer tells how long that took.
sub kill_case {
    my ($case, @args) = @_;

    my $pid = fork();
    die "bench: fork: $!\n" unless defined $pid;

    if ($pid == 0) {
        sleep 0.5 + $o{seconds} / 2;
        chomp(my $helper = `pgrep -P $server{ron}{pid} -f 'cache manager'`);
        kill 'KILL', split ' ', $helper;
        POSIX::_exit($helper eq '');
    }

    my $r = http_case('ron', $case, @args);

    waitpid $pid, 0;
    problem("$case: there was no helper to kill") if $?;

    return $r;
}

# Another's generator beside ours, on the floor.
sub wrk_case {
    my ($case, $connections) = @_;

    my $text = capture('wrk', '-t', 1, '-c', $connections, '-d',
                       "$o{seconds}s", '--latency',
                       "$server{floor}{url}/v1/balance");
    my ($rate) = $text =~ m{^Requests/sec:\s+([\d.]+)}m;

    if (!defined $rate) {
        problem("wrk $case: $text");
        return;
    }

    return { operations_per_s => $rate, requests_per_s => $rate,
             spent => [], latency_us => {} };
}

sub capture {
    my (@cmd) = @_;

    open my $f, '-|', @cmd or die "bench: @cmd: $!\n";
    local $/;
    my $text = <$f> // '';
    close $f;

    return $text;
}

sub height {
    my ($who) = @_;

    my $info = decode_json(
        capture($ronctl, 'ledger', 'info', '--json', $server{$who}{ledger}));

    return $info->{seq};
}

sub acknowledged {
    my ($who, $case, $before, $r) = @_;

    my $writes = $case =~ /^(?:balance|proof)/ ? 0 : $r->{acknowledged};
    my $want = $before + $writes + $r->{setup_acknowledged};
    my $have = height($who);

    problem("$who $case: the journal has $have entries and $want were "
            . 'acknowledged') if $have != $want;
}

sub postgres_case {
    my ($case, $connections) = @_;

    my $host = $server{postgres}{host};
    my $count = "psql -qAt -h $host -U bench -d postgres -c "
                . "'SELECT count(*) FROM history'";
    my ($rows) = `$count` =~ /(\d+)/;
    my $log = "$o{dir}/pgbench";
    unlink glob "$log.*";

    my $before = census($server{postgres}{pid});
    my $text = capture('pgbench', '-h', $host, '-U', 'bench', '-n', '-M',
                       'prepared', '-f', "$here/postgres.pgbench", '-c',
                       $connections, '-j', $cores, '-T', $o{seconds}, '-l',
                       "--log-prefix=$log", 'postgres');
    my ($done) = $text =~ /actually processed: (\d+)/;
    my ($tps) = $text =~ /tps = ([\d.]+)/;

    if (!defined $tps) {
        problem("postgres $case: $text");
        return;
    }

    my ($now) = `$count` =~ /(\d+)/;
    problem("postgres $case: $done done, " . ($now - $rows) . ' in history')
        if $now - $rows != $done;

    my @us = sort { $a <=> $b }
             map { (split)[2] } map { split /\n/, slurp($_) } glob "$log.*";
    my %at = (p50 => 0.5, p99 => 0.99, p99_9 => 0.999);

    return { operations_per_s => $tps, requests_per_s => $tps,
             transactions => $done,
             spent => [ spent($before, census($server{postgres}{pid})) ],
             latency_us => { max => $us[-1],
                             map { $_ => $us[int($at{$_} * $#us)] }
                             keys %at } };
}

sub problem {
    my ($text) = @_;

    push @problems, $text;
    print STDERR "  PROBLEM: $text\n";
}

# How much of the time the machine itself takes away, and how long at once: a
# process on each processor that does nothing but read the clock.
sub stalls {
    my $span = 2;
    my @pipes;

    for (1 .. $cores) {
        my $pid = open my $f, '-|';
        die "bench: fork: $!\n" unless defined $pid;

        if ($pid == 0) {
            my ($lost, $max) = (0, 0);
            my $end = (my $last = time) + $span;

            while ((my $now = time) < $end) {
                my $gap = $now - $last;
                $lost += $gap if $gap > 0.001;
                $max = $gap if $gap > $max;
                $last = $now;
            }

            syswrite STDOUT, "$lost $max\n";
            POSIX::_exit(0);
        }

        push @pipes, $f;
    }

    my ($lost, $max) = (0, 0);

    for my $f (@pipes) {
        my @v = split ' ', <$f>;
        $lost += $v[0] / @pipes;
        $max = $v[1] if $v[1] > $max;
    }

    return { percent => 100 * $lost / $span, max_ms => 1000 * $max };
}

# Every case: who, what it is called, and how.
sub cases {
    my @cases;

    for my $c (1, 64, 128, 256) {
        my @at = ('--connections', $c, '--workload', 'transfer');
        push @cases, map { [ $_, "transfer/$c", @at ] }
            'floor', 'ron', ('again') x ($c == 128), 'lua';
        push @cases, [ 'postgres', "transfer/$c", $c ];
    }

    push @cases,
        [ 'ron', 'hot/128', '--connections', 128, '--hot' ],
        [ 'ron', 'open/128', '--connections', 128, '--rate', 'best' ],
        [ 'ron', 'kill/128', '--connections', 128 ],
        [ 'floor', 'balance/128', '--connections', 128, '--workload',
          'balance' ],
        [ 'ron', 'balance/128', '--connections', 128, '--workload',
          'balance' ],
        [ 'ron', 'proof/128', '--connections', 128, '--workload', 'proof' ],
        [ 'wrk', 'balance/128', 128 ],
        [ 'ron', 'batch/16', '--connections', 16, '--workload', 'batch' ],
        [ 'ron', 'ingest/16', '--connections', 16, '--workload', 'ingest' ],
        [ 'ron', 'ndjson/8', '--connections', 8, '--workload', 'ndjson',
          '--ops', 4000 ];

    if ($o{only} ne '') {
        my @only = split /,/, $o{only};
        @cases = grep {
            my $case = $_;
            grep { $case->[0] eq $_ || $case->[1] =~ /^\Q$_\E/ } @only;
        } @cases;
    }

    return @cases;
}

sub round {
    my ($n, @cases) = @_;

    my $sync = decode_json(capture($ronctl, 'ledger', 'bench', '--sync-only',
                                   '--json', '--dir', $o{dir}));
    my %round = (sync => $sync, stalls => stalls(), case => {});

    printf "round %d: %d fdatasync/s, p50 %d us; the machine stands still for"
           . " %.1f %% of the time, %.1f ms at most\n", $n,
           $sync->{fdatasync_per_s}, $sync->{p50_us},
           @{ $round{stalls} }{qw(percent max_ms)};

    measure(\%round, @cases);
    after('ron', \%round) if $server{ron};
    after('again', {}) if $server{again};
    push @rounds, \%round;
}

# The same ledger, when it is long.
sub long {
    my (@rounds) = @_;

    printf "filling the ledger up to %d entries\n", $o{entries};

    while (!@problems && height('ron') < $o{entries}) {
        http_case('ron', 'filling', '--connections', 16, '--workload',
                  'batch') or return;
    }

    after('ron', $rounds[-1]) if !@problems;

    for my $round (@rounds) {
        return if @problems;
        measure($round,
                [ 'ron', 'transfer-long/128', '--connections', 128 ],
                [ 'ron', 'open-long/128', '--connections', 128, '--rate',
                  'best' ],
                [ 'ron', 'kill-long/128', '--connections', 128 ]);
    }

    after('ron', $rounds[-1]) if !@problems;
}

# The same ledger, when it has many accounts, beside payments between some.
sub wide {
    my (@rounds) = @_;

    my @many = ('--connections', 128, '--accounts', 1_000_000, '--run',
                $ACCOUNTS[1]);

    print "making a million accounts\n";
    http_case('ron', 'making', @many);

    for my $round (@rounds) {
        return if @problems;
        measure($round,
                [ 'ron', 'few/128', '--connections', 128 ],
                [ 'ron', 'accounts/1000000', @many, '--no-setup' ],
                [ 'ron', 'kill-wide/128', @many, '--no-setup' ]);
    }

    after('ron', $rounds[-1]) if !@problems;
}

# An open loop goes at 70 % of the best rate before it that as many connections
# had.
sub measure {
    my ($round, @cases) = @_;

    my %best;

    for my $case (@cases) {
        my ($who, $name, @args) = @$case;
        my ($rate) = grep { $args[$_] eq '--rate' } 0 .. $#args;
        my ($conns) = $name =~ m{/(\d+)$};

        if (defined $rate) {
            next if !$best{$conns};
            $args[$rate + 1] = int(0.7 * $best{$conns});
        }

        # logs of the case before would go to the disk in the middle of this

        system 'sync';

        my $r = $who eq 'postgres' ? postgres_case($name, @args)
                : $who eq 'wrk' ? wrk_case($name, @args)
                : $name =~ /^kill/ ? kill_case($name, @args)
                                   : http_case($who, $name, @args);
        next if !$r;

        $best{$conns} = $r->{requests_per_s}
            if $who eq 'ron' && $name =~ /^transfer/
               && $r->{requests_per_s} > ($best{$conns} // 0);
        $round->{case}{$who}{$name} = $r;

        printf "  %-9s %-17s %10d /s   p50 %6d  p99 %7d  max %7d us   CPU"
               . " %6.1f us an operation\n", $who, $name,
               $r->{operations_per_s},
               (map { $_ // 0 } @{ $r->{latency_us} }{qw(p50 p99 max)}),
               cpu_us($r);
        printf "      history was %d behind, level after %.1f s\n",
               @{ $r->{history} }{qw(lag catch_up_s)}
            if $r->{history} && $r->{history}{lag};
        cpu_parts($r) if $o{parts};
    }
}

# What an operation costs its servers, whatever else the machine does.
sub cpu_us {
    my ($r) = @_;

    my $cpu = 0;

    for my $all (@{ $r->{spent} }) {
        $cpu += $_->{cpu} // 0 for values %$all;
    }

    my $ops = $r->{acknowledged} || $r->{transactions} || 0;

    return $r->{cpu_us} = $ops ? $cpu * 1e6 / $ops : 0;
}

# The same by process, and by thread of the helper.
sub cpu_parts {
    my ($r) = @_;

    my %all = map { %$_ } @{ $r->{spent} };
    my $ops = $r->{acknowledged} || $r->{transactions} || 1;

    printf "      %-22s %7.2f us\n", $_, $all{$_}{cpu} * 1e6 / $ops
        for grep { $all{$_}{cpu} } sort keys %all;
}

# How far history is behind, and how long it takes until it is not.
sub level {
    my ($who) = @_;

    my $begin = time;
    my $lag;

    while (time - $begin < 300) {
        my ($now) = `curl -s $server{$who}{url}/metrics`
                    =~ /^ledger_history_lag_entries\S* (\d+)/m;
        $lag //= $now // 0;
        last if !$now;
        sleep 0.1;
    }

    return { lag => $lag, catch_up_s => time - $begin };
}

# Is all that was written right?
sub after {
    my ($who, $round) = @_;

    my $v = decode_json(capture($ronctl, 'ledger', 'verify', '--json',
                                $server{$who}{ledger}));
    $round->{verify} = { ok => $v->{ok} ? 1 : 0, seq => $v->{seq},
                         per_s => $v->{entries_per_s} };
    problem("$who: the ledger does not verify: " . ($v->{why} // '?'))
        if !$v->{ok};

    printf "  %d entries verified, %s\n", $v->{seq},
           $v->{ok} ? 'all is well' : 'SOMETHING IS WRONG';
}


# ---- all of it --------------------------------------------------------------

sub machine {
    my ($model) = slurp('/proc/cpuinfo') =~ /^model name\s*: (.*)$/m;
    my ($memory) = slurp('/proc/meminfo') =~ /^MemTotal:\s+(\d+)/m;
    my ($version) = `nginx -v 2>&1` =~ m{nginx/(\S+)};
    my ($load) = slurp('/proc/loadavg') =~ /^(\S+)/;

    return { cpu => $model // 'unknown', cores => $cores,
             memory_mib => int($memory / 1024), kernel => (POSIX::uname())[2],
             nginx => $version, workers => $workers, load => $load,
             date => POSIX::strftime('%Y-%m-%d', gmtime) };
}

remove_tree($o{dir}) if $o{dir} =~ m{/ron-bench};
make_path($o{dir});
chmod 0755, $o{dir};

my $machine = machine();
my @cases = cases();
my %need = map { $_->[0] => 1 } @cases;

printf "%s, %d cores, %d worker(s), load %s before it begins\n",
       @$machine{qw(cpu cores workers load)};

start_floor() if $need{floor} || $need{wrk};
start_ron('ron', $build) if $need{ron};
start_ron('again', "$build/again") if $need{again};
start_lua() if $need{lua};
start_postgres() if $need{postgres};

for my $n (1 .. $o{rounds}) {
    round($n, @cases);
}

long(@rounds) if $o{entries} && $server{ron} && !@problems;
wide(@rounds) if $o{entries} && $server{ron} && !@problems;

my $summary = bench_summary(\@rounds, $machine, \@problems,
                            { seconds => $o{seconds}, quick => $o{quick} });

print bench_table($summary);

if ($o{only} eq '' && !$o{quick}) {
    bench_write($summary, $o{docs});
    print "written: $o{docs}/BENCHMARKS.md and $o{docs}/bench/*.svg\n";
}

exit(@problems ? 1 : 0);
