#!/usr/bin/perl

# What a machine does to a server, under load: every answer that a client got
# is compared with the journal afterwards.  What should be noticed is, and
# three things that must not be believed are not.
#
#     RON_CHAOS_ROUNDS    how often (1; `make chaos` has more)
#     RON_CHAOS           names of campaigns: only these

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonChaos;

use Errno qw(ENOSPC EROFS);
use MIME::Base64 ();
use Time::HiRes qw(sleep);

my $rounds = $ENV{RON_CHAOS_ROUNDS} || 1;
my $seconds = $rounds > 1 ? 4 : 1.5;
my @load = (c => 12, a => 80);

my @campaigns = (
    deaths     => \&deaths,
    power      => \&power,
    controls   => \&controls,
    two        => \&two_writers,
    refusals   => \&refusals,
    disk       => \&disk,
    damage     => \&damage,
);

my %wanted = map { $_ => 1 } split ' ', $ENV{RON_CHAOS} || '';

while (my ($name, $run) = splice @campaigns, 0, 2) {
    next if %wanted && !$wanted{$name};
    note("campaign: $name");
    $run->();
}

done_testing();


# Payment of one, to see whether it goes: its status.

my $paid;

sub pay {
    my ($c, %o) = @_;

    my $r = eval { $c->{s}->post('/v1/issue', { to => 'probe', asset => 'ron',
        amount_minor => '1' }, key => 'probe-' . ++$paid, timeout => 15, %o) };

    return $r ? $r->{status} : 0;
}

sub balance {
    my ($c) = @_;

    my $r = eval { $c->{s}->get('/v1/balance?account=probe&asset=ron') };

    return $r ? $r->{status} : 0;
}


# ---- processes --------------------------------------------------------------

sub deaths {
    my $c = RonChaos->new(shim => 1, starved => [], load => { @load },
        main => 'ron_restart_limit 16;',
        http => 'client_header_timeout 2s;');
    my $s = $c->{s};

    # a worker that has no memory says so
    $s->allow(qr/\[emerg\] .*(?:malloc|posix_memalign|mmap)\(/,
              qr/was locked by/);
    $c->start;

    for my $round (1 .. $rounds) {
        my $n = 0;
        my $load = sub { $c->load("d$round-" . ++$n . '-', s => 600) };

        # in the long form each kind of fault has a verdict of its own

        my $next = sub {
            return if $rounds == 1;
            $c->done(now => 1);
            $c->judge("deaths $round, $_[0]", quit => 0, ready => 0);
            $load->();
        };

        $load->();
        sleep($seconds);
        ok(until_ok(10, sub { pay($c) == 200 }), 'it works');
        $c->quiet(qw(LedgerRestarts LedgerHelperSilent LedgerCommitterLag
                     LedgerClockStep LedgerClockDrift));

        # the helper, in the middle of a sync: before it was done, and after

        for my $when (1, 2, 1, 2, 1, 2) {
            $c->shim(die => $when);
            ok(until_ok(10, sub { $c->shim_get('die') == 0 }),
               'the helper dies ' . ($when == 1 ? 'before' : 'after')
               . ' a sync');
            sleep(0.3);
        }

        $c->fires('LedgerRestarts');
        $next->('the helper');

        # half of the workers: nobody need be woken for that

        my @calm = qw(LedgerSafeMode LedgerHelperSilent LedgerSyncFailed
                      LedgerCommitterLag WalletLedgerBreaker TasksLeaked);

        ok(until_ok(10, sub { pay($c) == 200 }), 'it works without it');
        $c->quiet(qw(LedgerHelperSilent));

        for (1 .. 3) {
            ok($s->kill_worker, 'a worker is killed');
            sleep(0.2);
        }

        ok(until_ok(10, sub { pay($c) == 200 }), 'and replaced');
        $c->calm('workers', @calm, 'LedgerRestarts');
        $next->('workers');

        # a helper that stands still, and one whose disk is slow

        ok(until_ok(10, sub { pay($c) == 200 }), 'it works again');
        my $helper = $s->helper;
        kill 'STOP', $helper;
        ok(until_ok(5, sub { $s->get('/readyz')->{status} == 503 }),
           'the helper stands still: not ready');
        $c->fires('LedgerHelperSilent');
        is(balance($c), 200, 'a balance is answered');
        kill 'CONT', $helper;
        ok($s->wait_ready, 'ready when it goes on');

        $c->shim(delay => 2_500_000);
        ok(until_ok(6, sub { $s->get('/readyz')->{status} == 503 }),
           'a sync takes 2.5 s: not ready');
        $c->fires('LedgerCommitterLag');
        is(pay($c), 503, 'nothing is written');
        is(balance($c), 200, 'a balance is answered');
        $c->shim(delay => 0);
        ok($s->wait_ready(15), 'ready when it is over');
        $next->('standing still');

        clocks($c, $round);
        $next->('clocks');
        $c->quiet('LedgerHelperSilent');
        memory($c);
        $c->calm('memory', @calm, 'LedgerRestarts');
        $next->('memory');

        # clients that never finish their headers

        local $SIG{PIPE} = 'IGNORE';
        $c->quiet('LedgerHelperSilent');
        my @slow = map { $s->connect } 1 .. 300;
        syswrite $_, "GET /v1/balance HTTP/1.1\r\nHost: x\r\nX-" for @slow;
        ok(until_ok(10, sub { pay($c) == 200 }),
           'three hundred slow clients');
        ok(until_ok(15, sub {
            syswrite $slow[0], 'a';
            return shown_out($slow[-1]);
        }), 'are shown out');
        close $_ for @slow;
        $c->calm('slow clients', @calm, 'LedgerRestarts');

        # everything

        $next->('slow clients');
        $c->quiet('NoMetrics');
        $c->kill_all;
        sleep(0.2);
        $c->fires('NoMetrics');
        $c->start(nowait => 1);
        ok($s->wait_ready(15), 'everything is killed, and started');
        $next->('everything');

        $c->quiet('NoMetrics');
        my @left = $s->kill_master;
        ok(until_ok(15, sub { !grep { RonTest::alive($_) } @left }),
           'the master is killed, and its children go');
        $c->fires('NoMetrics');
        $c->start(nowait => 1);
        ok($s->wait_ready(15), 'and started');

        $c->done(now => 1);
        $c->judge("deaths $round", quit => $round == $rounds, ready => 0);
        $c->used(qw(ingested expired committed unknown final));
    }
}


# Is there an end, or at least an answer?  It is not waited for.
sub shown_out {
    my ($sock) = @_;

    my $bits = '';
    vec($bits, fileno $sock, 1) = 1;

    return select($bits, undef, undef, 0)
           && defined sysread $sock, my $buf, 1;
}

# A clock that jumps; and one that jumps by two days while the helper dies: a
# key that was used a moment ago is known as before.
sub clocks {
    my ($c, $round) = @_;

    my $s = $c->{s};

    for my $hours (1, -2, 0) {
        $c->shim(clock => $hours * 3600 * 1_000_000);
        sleep(0.5);
        ok(until_ok(10, sub { pay($c) == 200 }),
           "a clock that is $hours h off");
        $c->fires('LedgerClockStep', 'LedgerClockDrift') if $hours == 1;
    }

    like($s->log, qr/the wall clock is \d+ ms ahead of ledger time/,
         'is in the log');

    my $again = sub {
        my $r = eval { $s->post('/v1/issue', { to => "twice$round",
            asset => 'ron', amount_minor => '5' }, key => "twice$round",
            timeout => 15) };
        return $r && $r->{status} == 200 ? $r->{body} : '';
    };
    my ($first, $body);

    ok(until_ok(10, sub { $first = $again->() }), 'an issue');

    $c->quiet('LedgerClockStep');
    $c->shim(clock => 48 * 3600 * 1_000_000, die => 1);
    ok(until_ok(10, sub { $c->shim_get('die') == 0 }),
       'the clock jumps two days ahead, and the helper dies');
    ok(until_ok(10, sub { $body = $again->() }), 'the issue is tried again');
    is($body, $first, 'with the first receipt');
    is(RonTest::json_get($s->get("/v1/balance?account=twice$round&asset=ron")
                         ->{body}, 'amount_minor'), 5, 'and was done once');
    $c->fires('LedgerClockStep', 'LedgerClockDrift');

    $c->shim(clock => 0);
    ok(until_ok(10, sub { pay($c) == 200 }), 'and back');
}

# A worker without memory says what it cannot do: at a limit it lives on, and
# when the kernel has chosen it, it is replaced.
sub memory {
    my ($c) = @_;

    my $s = $c->{s};
    my ($worker) = $s->workers;
    my $starved = RonChaos::now_us();

    ok($c->limit($worker, 1 << 20), 'a worker is at its limit of memory');

    my @wide = map { $s->connect } 1 .. 300;

    syswrite $_, "GET /v1/balance HTTP/1.1\r\nHost: x\r\nX-" for @wide;
    ok(until_ok(10, sub { $s->log =~ /#$worker: .*Cannot allocate memory/ }),
       'and says so');
    close $_ for @wide;
    $c->limit($worker, 'unlimited');
    push @{ $c->{starved} }, [ $starved, RonChaos::now_us() + 1e6 ];
    ok(until_ok(10, sub { pay($c) == 200 }), 'it works when it has some again');
    ok((grep { $_ == $worker } $s->workers), 'and is the same');

    $starved = RonChaos::now_us();
    $c->shim(starved => $worker);
    ok(until_ok(10, sub { $s->log =~ /#$worker: .*posix_memalign/ }),
       'a worker gets no memory at all');
    sleep(0.5);
    $c->shim(starved => 0);
    kill 'KILL', $worker;
    push @{ $c->{starved} }, [ $starved, RonChaos::now_us() + 1e6 ];
    ok(until_ok(10, sub { pay($c) == 200 }), 'is killed, and replaced');
}


# ---- power cuts -------------------------------------------------------------

sub power {
    my $c = RonChaos->new(shim => 1, undo => 1, load => { @load });
    my $lost = 0;
    my $cuts = $rounds > 1 ? 4 * $rounds : 3;

    for my $cut (1 .. $cuts) {
        $c->start;
        $c->load("p$cut", s => 600);
        sleep(0.3 + rand 1);

        $c->quiet('NoMetrics') if $cut == 1;

        my $n = $c->power_cut(part => $cut % 3 == 2);
        cmp_ok($n, '>', 0, "power cut $cut: $n writes are lost");
        $c->fires('NoMetrics') if $cut == 1;
        $c->start;
        $c->done(now => 1);

        if ($cut % 4 == 0 || $cut == $cuts) {
            $c->judge("power cut $cut", quit => $cut == $cuts);
        }

        $c->power_cut if $cut != $cuts;
    }
}


# ---- what must not be believed ----------------------------------------------

sub controls {
    my %lie = (1 => 'a disk that ignores syncs (synchronous=OFF)',
               2 => 'a committer that answers before its sync');

    for my $how (1, 2) {
        my $c = RonChaos->new(shim => 1, undo => 1, load => { @load });

        $c->start;
        $c->load('lie', s => 600, e => 0);
        sleep(0.7);
        $c->shim(syncs => $how);
        sleep(1.2);
        $c->power_cut;
        kill 'TERM', $_->{pid} for @{ $c->{clients} };
        waitpid $_->{pid}, 0 for @{ $c->{clients} };

        my @wrong = $c->verdict;
        my $lost = grep { /is not in the journal/ } @wrong;

        cmp_ok($lost, '>', 0, "control: $lie{$how} is noticed: $lost"
               . ' acknowledged operations are not there');
    }
}


# Two servers with one ledger: the locks keep one of them out.  Without locks
# the journal does.  With a ledger each, nothing does, and it is noticed.

sub two_writers {
    my $a = RonChaos->new(shim => 1, load => { @load });
    my $b = RonChaos->new(shim => 1, load => { @load },
                          ledger => $a->{s}{ledger});

    $b->{s}{main} = "ron_socket $b->{s}{dir}/undo/b.sock;";
    $b->{s}{secret} = $a->{s}{secret};
    $b->{s}->write_file($_, RonTest::slurp("$a->{s}{dir}/$_"), 0600)
        for qw(ron.keys token);

    $a->start;
    $b->start(nowait => 1);
    $a->load('a', s => 600, e => 1);
    sleep(0.7);
    is(pay($b, headers => { 'Request-Timeout' => 1 }), 503,
       'a second server of a ledger writes nothing');
    like($b->{s}->log, qr/following/, 'it follows');
    $b->{s}->terminate;

    $_->shim(no_locks => 1) for $a, $b;
    $b->start(nowait => 1);
    $b->load('b', s => 600, e => 1);

    # it may find the database busy at first, and tries again

    ok(until_ok(20, sub {
        ($a->{s}->log . $b->{s}->log) =~ /fenced by another writer/
    }), 'without locks the journal refuses the one who was replaced')
        or diag($b->{s}->log);

    $_->{s}{pid} && $_->kill_all for $a, $b;
    kill 'TERM', $_->{pid} for map { @{ $_->{clients} } } $a, $b;
    waitpid $_->{pid}, 0 for map { @{ $_->{clients} } } $a, $b;
    push @{ $a->{histories} }, @{ $b->{histories} };

    my @wrong = $a->verdict;
    ok(!@wrong, 'and nothing that was acknowledged is lost: '
       . $a->{judged}->summary) or diag(join "\n", @wrong[0 .. 3]);

    # a second writer with a ledger of its own

    $b->{s}{ledger} = "sqlite:$b->{s}{dir}/ledger";
    $b->{clients} = [];
    $b->{histories} = [];
    system('cp', '-a', $a->ledger, $b->ledger);
    $b->start(nowait => 1);
    $b->acknowledge;
    $b->load('c', s => 1, e => 1);
    waitpid $_->{pid}, 0 for @{ $b->{clients} };
    $b->{s}->terminate;
    push @{ $a->{histories} }, @{ $b->{histories} };
    @wrong = $a->verdict;
    cmp_ok(scalar(grep { /is not in the journal/ } @wrong), '>', 0,
           'control: a second writer with a ledger of its own is noticed');
}


# ---- disks ------------------------------------------------------------------

# What a disk says to a helper that lives and writes.
sub refusals {
    my $c = RonChaos->new(shim => 1, load => { @load });
    my $s = $c->{s};

    # a mark needs the disk that it is about
    $s->allow(qr/safe mode could not be marked/);
    $c->start;
    $c->load('no', s => 600);
    sleep($seconds);

    my $faults = 0;

    for (
        [ 'syncs fail', { fail => 1 }, 'LedgerSyncFailed' ],
        [ 'the file system is read-only', { denied => EROFS },
          'LedgerSyncFailed' ],
        [ 'there is no room', { denied => ENOSPC }, 'LedgerDiskPressure' ],
    ) {
        my ($what, $how, $alert) = @$_;
        my $helper = $s->helper;

        ok(until_ok(10, sub { pay($c) == 200 }), 'it works');
        $c->quiet('LedgerSafeMode', $alert);

        # who may not write cannot open the ledger anew, so what is answered
        # is what is known

        is(balance($c), 200, 'a balance is known');
        $c->shim(%$how);
        ok(until_ok(20, sub { $c->state eq 'safe_mode' }),
           "$what: safe mode") or diag($s->get('/readyz')->{body});
        is(pay($c), 503, 'nothing is written');
        is(balance($c), 200, 'a balance is read');
        $c->fires('LedgerSafeMode', $alert);
        $c->shim(map { $_ => 0 } keys %$how);
        ok($c->acknowledge, 'an operator says that the disk is well');
        ok($s->wait_ready(15), 'ready');
        is($s->helper, $helper, 'the same helper');

        # each has its verdict

        $c->done(now => 1);
        $c->judge("refusals: $what", ready => 0, quit => ++$faults == 3);
        $c->load("no-$faults-", s => 600) if $faults < 3;
    }
}

# A small file system of our own, if we may mount one: what a real one says,
# also to a helper that begins.

sub disk {
    my $c = RonChaos->new(shim => 1, load => { @load });
    my $s = $c->{s};
    my $dir = "$s->{dir}/small";

    mkdir $dir;

    SKIP: {
        my ($uid, $gid) = (getpwnam('nobody'))[2, 3];

        skip('this user or container may not mount a small file system', 1)
            if $> != 0 || system("mount -t tmpfs -o size=64m,mode=0755,"
                                 . "uid=$uid,gid=$gid ron '$dir' 2>&1") != 0;
        small($c, $dir);
        system("umount '$dir'");
    }
}

sub small {
    my ($c, $dir) = @_;

    my $s = $c->{s};

    # a mark needs the disk that it is about
    $s->allow(qr/safe mode could not be marked/);

    $s->{ledger} = "sqlite:$dir/ledger";
    $c->start;
    $c->load('full', s => 600);
    sleep($seconds);
    ok(until_ok(10, sub { pay($c) == 200 }), 'it works');
    $c->quiet('LedgerSafeMode', 'LedgerDiskPressure');

    # full

    open my $f, '>', "$dir/ballast" or die $!;
    while (syswrite $f, "\1" x 65536) { }
    close $f;

    ok(until_ok(20, sub { $c->state eq 'safe_mode' }), 'a full disk: safe mode')
        or diag($s->get('/readyz')->{body});
    is(pay($c), 503, 'nothing is written');
    is(balance($c), 200, 'a balance is read');
    $c->fires('LedgerSafeMode', 'LedgerDiskPressure');

    unlink "$dir/ballast";
    ok($c->acknowledge, 'room again, and an operator says so');
    ok($s->wait_ready(15), 'ready');
    ok(until_ok(10, sub { pay($c) == 200 }), 'and written to');
    $c->done(now => 1);
    $c->judge('disk: full', ready => 0, quit => 0);
    $c->load('ro', s => 600);
    sleep(0.5);

    # read-only, when nobody has a file open for writing: the helper is dead,
    # and the master not awake to start another

    my $master = $s->{pid};

    kill 'STOP', $master;
    $s->kill_helper;

    my $ro = until_ok(15, sub {
        return system("mount -o remount,ro '$dir' 2>/dev/null") == 0;
    });

    kill 'CONT', $master;

    ok($ro, 'the file system becomes read-only');
    ok(until_ok(15, sub { pay($c) == 503 }), 'nothing is written');
    is(balance($c), 200, 'a balance is read');
    isnt($c->state, 'running', 'and it is not running');
    $c->fires('LedgerSafeMode');
    system("mount -o remount,rw '$dir'");
    ok($c->acknowledge, 'it is writable again');
    ok($s->wait_ready(20), 'ready') or diag($s->get('/readyz')->{body});

    $c->done(now => 1);
    $c->judge('disk: read-only', ready => 0);
}


# ---- bytes that change ------------------------------------------------------

# Flips sixteen bytes of a file, those at a place or the last that are there.
sub flip {
    my ($path, $where) = @_;

    my $text = RonTest::slurp($path);
    my $at = $where =~ /^\d+$/ ? $where : rindex $text, $where;

    return 0 if $at < 0 || $at + 16 > length $text;

    open my $f, '+<', $path or die "$path: $!";
    binmode $f;
    sysseek $f, $at, 0;
    syswrite $f, substr($text, $at, 16) ^ ("\x5a" x 16);
    close $f or die "$path: $!";

    return 1;
}

# The canonical bytes of entries, from an export.
sub entries {
    my ($c) = @_;

    $c->verdict;

    return map { MIME::Base64::decode_base64($_) }
               RonTest::slurp("$c->{s}{dir}/export") =~ /"bytes":"([^"]+)"/g;
}

sub damage {
    # no hold may expire between the last answer and the death of all: its end
    # would be in no published head, and to lose it no damage that shows

    my $c = RonChaos->new(load => { @load, a => 60, x => 0 },
        main => 'ron_checkpoint 1000; ron_tag_memory 64k; ron_key_memory 64k; '
                . 'ron_history_cache 64k;');
    my $s = $c->{s};
    my $dir = $c->ledger;
    my $safe = "$s->{dir}/safe";

    $s->allow(qr/corrupt/);
    $c->start;
    $c->load('x', s => $rounds > 1 ? 10 : 2);
    $c->done;

    # all files as they are when everything was killed

    $c->kill_all;
    unlink "$dir/ledger.db-shm";

    my @bytes = entries($c);

    system('cp', '-a', $dir, $safe);

    # back to that; only a file and its log, if it is named

    my $back = sub {
        my ($name) = @_;

        $c->kill_all if $s->{pid};
        system('rm', '-rf', $name ? glob "$dir/$name*" : $dir);
        system('cp', '-a', $name ? glob "$safe/$name*" : $safe, $dir);
    };

    # a start reads what came after the checkpoint; what is older, verify does

    fatal($c, 'a page of the journal', $back, sub {
        checkpointed($c, 'ledger.db', $safe);
        return flip("$dir/ledger.db", $bytes[-200]);
    });
    fatal($c, 'the end of the WAL', $back, sub {
        return flip("$dir/ledger.db-wal", $bytes[-1]);
    });

    mended($c, 'a checkpoint', $back, sub {
        `sqlite3 '$dir/ledger.db' 'update checkpoint set body = zeroblob(length(body))' 2>&1`;
        system('chown', '-R', "--reference=$safe", $dir);
        return $? == 0;
    }, qr/checkpoint \d+ is not the one that the journal vouches for/);
    mended($c, 'segments of tags', $back, sub {
        return grep { flip($_, 300) } glob "$dir/*.seg";
    });
    mended($c, 'history.db-wal', $back, sub {
        return grep { flip("$dir/history.db-wal", 5000 * $_) } 1 .. 5;
    });
    mended($c, 'history.db', $back, sub {

        # the head of the page below which all links of accounts are

        checkpointed($c, 'history.db', $safe);

        my ($size, $root) = split /\|/, `sqlite3 '$dir/history.db' "select page_size, rootpage from pragma_page_size, sqlite_master where name = 'account_links'"`;

        return flip("$dir/history.db", ($root - 1) * $size);
    });
    mended($c, 'the published head', $back, sub { flip("$dir/head", 64) });
}

# Pages that are in a log only are put where they belong.
sub checkpointed {
    my ($c, $name, $safe) = @_;

    my $dir = $c->ledger;

    `sqlite3 '$dir/$name' 'pragma wal_checkpoint(truncate)' 2>&1`;
    ok($? == 0 && !-s "$dir/$name-wal", "$name has all of its pages");
    system('chown', '-R', "--reference=$safe", $dir);
}

# What was answered is answered again, to the byte.
sub replayed {
    my ($c, $what, @ops) = @_;

    my @wrong = RonChaos::again($c->{s}, @ops);

    ok(@ops && !@wrong, "$what: " . @ops . ' requests again, the same bytes')
        or diag(scalar(@wrong) . ' wrong', map { "\n$_" }
                @wrong[0 .. ($#wrong > 3 ? 3 : $#wrong)]);
}

# What cannot be made again: nothing is written any more, and verify says so.
# With the journal as it was all is well, whatever else was done meanwhile.
sub fatal {
    my ($c, $what, $back, $break) = @_;

    ok($break->(), "damage to $what");
    ok((grep { /^verify/ } $c->verdict), 'verify says so');
    $c->start(nowait => 1);
    sleep(1.5);
    ok(until_ok(10, sub { $c->state eq 'safe_mode' }), 'safe mode')
        or diag($c->state);
    is(pay($c), 503, 'nothing is written');
    $c->fires('LedgerSafeMode');
    $back->('ledger.db');
    $c->start(nowait => 1);
    ok(until_ok(20, sub { $c->acknowledge && $c->state eq 'running' }),
       'it runs when it is whole again')
        or diag($c->{s}->get('/readyz')->{body});
    replayed($c, $what, RonChaos::some(20, $c->answered));
    $c->judge("damage to $what, restored", quit => 0, history => 1);
    $back->();
}

# What can: it runs, and loses nothing.  $says is what verify finds before.
sub mended {
    my ($c, $what, $back, $break, $says) = @_;

    # the keys of those that are in the damaged files

    my @ops = RonChaos::some(60, $c->answered);

    ok($break->(), "damage to $what");
    ok((grep { /^verify: .*$says/s } $c->verdict), 'verify says so') if $says;
    $c->start(nowait => 1);

    # by itself, and from the first answer on nobody is woken

    $c->quiet('LedgerSafeMode');
    ok(until_ok(20, sub { $c->state eq 'running' }), 'it runs')
        or diag($c->{s}->get('/readyz')->{body});
    replayed($c, $what, @ops);
    ok(until_ok(10, sub { pay($c) == 200 }), 'and is written to');
    $c->load('y', s => 0.5);
    $c->done;
    $c->calm($what, qw(LedgerSafeMode LedgerSeqGap LedgerSyncFailed
                       LedgerHelperSilent LedgerRestarts TasksLeaked
                       LedgerHistoryBehind));
    $c->judge("damage to $what", quit => 0, says => $says, history => 1);
    $back->();
    pop @{ $c->{histories} };
    pop @{ $c->{done} };
    delete $c->{listed};
}
