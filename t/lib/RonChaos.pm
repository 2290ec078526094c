package RonChaos;

# A server under the load of t/chaos/client.c while something happens to it,
# and the verdict: `ronctl ledger verify`, and the histories of all clients
# against the journal (RonHistory.pm).
#
#     my $c = RonChaos->new(workers => 2);
#     $c->start;
#     $c->load('a', seconds => 10);
#     ... do something to $c->{s}, which is a RonTest ...
#     $c->done;               # waits for the clients
#     $c->judge('killed');    # tests

use strict;
use warnings;

use Cwd ();
use Exporter ();
use File::Basename ();
use File::Spec ();
use POSIX ();
use Test::More;
use Time::HiRes ();

use RonAlerts ();
use RonHistory ();
use RonTest ();

our @ISA = ('Exporter');
our @EXPORT_OK = qw(now_us tool);

my $TOP = Cwd::abs_path(File::Basename::dirname(__FILE__) . '/../..');
my $BUILD = $ENV{RON_BUILD} || Cwd::abs_path('build') || "$TOP/build";


# A program of t/chaos, built if it is not there.
sub tool {
    my ($name) = @_;

    my $path = "$BUILD/t/chaos/$name";
    my $build = File::Spec->abs2rel($BUILD, $TOP);

    my $log = `cd '$TOP' && make -s BUILD='$build' chaos-build 2>&1`;
    -e $path or BAIL_OUT("$path cannot be built:\n$log");

    return $path;
}

sub now_us {
    return 1e6 * Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC());
}

sub new {
    my ($class, %o) = @_;

    my $load = delete $o{load} || {};
    my %mine = map { $_ => delete $o{$_} } qw(shim undo trace starved
                                              deadline);
    my $s = RonTest->new(workers => 2, level => 'notice', %o);

    $s->allow(qr/process \d+ exited on signal/);

    my $self = bless { s => $s, load => $load, clients => [],
                       histories => [], tool => tool('client'),
                       b3 => tool('b3'), alerts => RonAlerts->new, %mine },
        $class;

    $s->write_file('token', $s->token . "\n", 0600);
    $s->write_file('shim', "\0" x 4096, 0666);
    $s->write_file('trace', '', 0666) if $mine{trace};
    mkdir "$s->{dir}/undo";
    chmod 0777, "$s->{dir}/undo";

    return $self;
}

sub ledger {
    my ($self) = @_;

    return $self->{s}{ledger} =~ /^sqlite:(\S+)/ ? $1 : undef;
}

# Options: those of RonTest::start.
sub start {
    my ($self, %o) = @_;

    my $s = $self->{s};

    local $ENV{LD_PRELOAD} = tool($self->{trace} ? 'trace.so' : 'shim.so')
        if $self->{shim} || $self->{trace};
    local $ENV{RON_TRACE} = "$s->{dir}/trace";
    local $ENV{RON_TRACE_DIR} = $self->ledger;
    local $ENV{RON_SHIM} = "$s->{dir}/shim";
    local $ENV{RON_SHIM_DIR} = $self->ledger;
    local $ENV{RON_SHIM_UNDO} = $self->{undo} ? "$s->{dir}/undo" : undef;
    delete $ENV{RON_SHIM_UNDO} unless $self->{undo};

    $s->start(%o) or BAIL_OUT('no server');
}


# ---- what a machine does ----------------------------------------------------

# t/chaos/shim.c says what can be set.

my %AT = (clock => [ 0, 'q' ], die => [ 8, 'L' ], delay => [ 12, 'L' ],
          syncs => [ 16, 'L' ], no_locks => [ 20, 'L' ], fail => [ 24, 'L' ],
          starved => [ 28, 'L' ], denied => [ 32, 'L' ]);

sub shim {
    my ($self, %set) = @_;

    open my $f, '+<', "$self->{s}{dir}/shim" or die "shim: $!";
    binmode $f;

    for my $name (keys %set) {
        my ($at, $as) = @{ $AT{$name} };
        sysseek $f, $at, 0;
        syswrite $f, pack $as, $set{$name};
    }
}

sub shim_get {
    my ($self, $name) = @_;

    my ($at, $as) = @{ $AT{$name} };

    return unpack $as, substr RonTest::slurp("$self->{s}{dir}/shim"), $at;
}

# No more address space for a process that lives, or all there is: who may not
# set limits of others may set those of his own.
sub limit {
    my ($self, $pid, $bytes) = @_;

    my @as = $> == 0 ? qw(setpriv --reuid nobody --regid nogroup
                          --clear-groups) : ();

    return system(@as, 'prlimit', '--pid', $pid, "--as=$bytes:") == 0;
}

# Everything of the server dies in one instant, as far as there is one.
sub kill_all {
    my ($self) = @_;

    my $s = $self->{s};
    my @all = ($s->{pid}, $s->children);

    kill 'STOP', $s->{pid};
    push @all, grep { my $p = $_; !grep { $p == $_ } @all } $s->children;
    kill 'KILL', @all;

    # a thread in the middle of a sync outlives the first of its process
    RonTest::until_ok(10, sub {
        !grep { RonTest::slurp($_) =~ /\) [^ZX]/ }
         map { glob "/proc/$_/task/*/stat" } @all;
    });

    unlink "$s->{dir}/nginx.pid";
    $s->{pid} = 0;
}

# The power goes: what was not synced is not there.  With `part`, of each
# file some beginning of it is.
sub power_cut {
    my ($self, %o) = @_;

    my $s = $self->{s};
    my $lost = 0;

    $self->kill_all;
    unlink $self->ledger . '/ledger.db-shm';

    my %name = map { (stat $_)[1] => $_ } glob $self->ledger . '/*';

    for my $log (glob "$s->{dir}/undo/*") {
        my ($inode) = $log =~ m{(\d+)$};
        my $text = RonTest::slurp($log);
        my @undo;

        for (my $at = 0; $at + 24 <= length $text; ) {
            my ($off, $len, $size) = unpack 'QQQ', substr $text, $at, 24;
            push @undo, [ $off, $size, substr $text, $at + 24, $len ];
            $at += 24 + $len;
        }

        truncate $log, 0;
        next unless @undo && $name{$inode};

        splice @undo, 0, int rand @undo if $o{part};
        $lost += @undo;

        open my $f, '+<', $name{$inode} or die "$name{$inode}: $!";
        binmode $f;

        for my $u (reverse @undo) {
            sysseek $f, $u->[0], 0;
            syswrite $f, $u->[2] if length $u->[2];
            truncate $f, $u->[1];
        }
    }

    return $lost;
}

# One value of /metrics; undef also while there is no server.
sub metric {
    my ($self, $name) = @_;

    return eval { $self->{s}->metric($name) };
}

# What Prometheus would have by now, and would it wake somebody?
sub scrape {
    my ($self) = @_;

    my $r = eval { $self->{s}->get('/metrics', token => undef) };

    $self->{alerts}->scrape($r && $r->{status} == 200 ? $r->{body} : undef);
}

# Tests: these alerts fire, each by its rule, if things stay as they are.
sub fires {
    my ($self, @alerts) = @_;

    for my $alert (@alerts) {
        ok(RonTest::until_ok(20, sub {
            $self->scrape;
            return $self->{alerts}->fires($alert);
        }), "$alert fires") or diag($self->{alerts}->said);
    }
}

# Tests: and these do not, of what is said from here on; gauges are as old as
# the tick before.
sub quiet {
    my ($self, @alerts) = @_;

    for my $alert (@alerts) {
        ok(RonTest::until_ok(5, sub {
            $self->{alerts}->forget;
            $self->scrape;
            return !$self->{alerts}->fires($alert);
        }), "$alert is quiet");
    }
}

# Tests: and none of these, of all that was said since quiet(), which begins
# before what happens.
sub calm {
    my ($self, $label, @alerts) = @_;

    $self->scrape;

    my @fire = $self->{alerts}->firing(@alerts);

    ok(!@fire, "$label: nothing to be woken for: @alerts")
        or diag("@fire\n" . $self->{alerts}->said);
}

sub state {
    my ($self) = @_;

    my $r = eval { $self->{s}->get('/readyz') } or return '';

    return RonTest::json_get($r->{body}, 'state') || '';
}

# Out of safe mode, by an operator.
sub acknowledge {
    my ($self) = @_;

    return RonTest::until_ok(15, sub {
        my $r = eval { $self->{s}->post('/ledger/admin/safe-mode',
                                        { enter => \'false' }) };
        return $r && $r->{status} == 200 || $self->state eq 'running';
    });
}


# ---- clients ----------------------------------------------------------------

# Starts a client; its accounts and keys begin with its name.
sub load {
    my ($self, $name, %o) = @_;

    my $s = $self->{s};
    my %arg = (c => 16, a => 100, s => 5, e => 40, %{ $self->{load} }, %o);
    my $history = "$s->{dir}/history-$name";
    my @flags = ((delete $arg{g} ? '-g' : ()), $self->{starved} ? '-m' : ());

    my $pid = fork();
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        open STDOUT, '>', "$s->{dir}/client-$name";
        open STDERR, '>', "$s->{dir}/client-$name.err";
        exec { $self->{tool} } 'client', '-p', $s->{port}, '-t',
             "$s->{dir}/token", '-o', $history, '-n', $name, @flags,
             map { ("-$_", $arg{$_}) } sort keys %arg
            or POSIX::_exit(127);
    }

    push @{ $self->{clients} }, { pid => $pid, name => $name,
                                  accounts => $arg{a} };
    push @{ $self->{histories} }, $history;

    return $pid;
}

# Ends what is still loading; waits; what clients said.
sub done {
    my ($self, %o) = @_;

    my %sum;

    if ($o{now}) {
        kill 'TERM', $_->{pid} for @{ $self->{clients} };
    }

    for my $c (@{ $self->{clients} }) {
        waitpid $c->{pid}, 0;

        my $said = RonTest::slurp("$self->{s}{dir}/client-$c->{name}");
        my $err = RonTest::slurp("$self->{s}{dir}/client-$c->{name}.err");
        my %n = $said =~ /(\w+)=(\d+)/g;

        ok($? == 0 && %n, "client $c->{name}: " . ($said =~ s/\n//r))
            or diag($err);
        is($n{bad}, 0, "client $c->{name}: no answer that none should get")
            or diag(substr $err, 0, 2000);
        $sum{$_} += $n{$_} for keys %n;
        push @{ $self->{done} }, $c;
    }

    $self->{clients} = [];

    return \%sum;
}

# What clients had an answer to, of what was known until a time: [path, key,
# body, answer], once each.
sub answered {
    my ($self, $until) = @_;

    my %op;

    for my $file (@{ $self->{histories} }) {
        open my $f, '<', $file or die "$file: $!";

        while (<$f>) {
            chomp;
            my ($kind, $end, $status, @op) = (split /\t/, $_, 11)[0, 3, 4, 7 .. 10];

            $op{$op[1]} = \@op if $kind eq 'W' && $status =~ /^20[07]$/
                                  && (!defined $until || $end < $until);
        }
    }

    return map { $op{$_} } sort keys %op;
}

# Some of them, any, that have one answer: without an idem_id an ingest has
# none that is kept.
sub some {
    my ($n, @ops) = @_;

    @ops = grep { $_->[0] ne '/ledger/ingest' || $_->[2] =~ /"idem_id"/ } @ops;

    return map { splice @ops, rand @ops, 1 } 1 .. (@ops < $n ? @ops : $n);
}

# These are sent to a server again.  What is wrong: other bytes.
sub again {
    my ($s, @ops) = @_;

    my @wrong;

    for (@ops) {
        my ($path, $key, $body, $answer) = @$_;
        my $got = $s->post($path, $body, key => $key);

        push @wrong, "$key again: $got->{status} $got->{body}, was $answer"
            if $got->{body} ne "$answer\n";
    }

    return @wrong;
}

# What the server says of balances, beside what the journal gives.  Only holds
# that expire may have changed them since.
sub balances {
    my ($self, $h) = @_;

    my @wrong;

    for my $c (@{ $self->{done} }) {
        for my $i (0 .. $c->{accounts} - 1) {
            next if $i % 7;

            my $account = "$c->{name}$i";
            my @states = ([ 0, 0, 0, 0 ], @{ $h->{states}{$account} || [] });
            my $seen = $self->{seen}{$account};

            push @wrong, "$account: @$seen, not @{ $states[-1] }[1 .. 3]"
                if !grep { "@$seen" eq "@$_[1 .. 3]" } $h->latest(@states);
        }
    }

    return @wrong;
}

sub look {
    my ($self, %o) = @_;

    my $s = $self->{s};

    for my $c (@{ $self->{done} }) {
        for my $i (0 .. $c->{accounts} - 1) {
            next if $i % 7;

            my $account = "$c->{name}$i";
            my $r = $s->get("/v1/balance?account=$account&asset=ron");

            $self->{seen}{$account} =
                [ map { RonTest::json_get($r->{body}, $_) || 0 }
                      qw(amount_minor held_minor nonce) ];
            $self->{listed}{$account} = [ $self->listed($account) ]
                if $o{history};
        }
    }
}

# The seqs of an account, by history: the newest first, page by page.
sub listed {
    my ($self, $account) = @_;

    my $path = "/ledger/accounts/$account/entries?limit=1000";
    my (@page, @seqs);

    do {
        my $r = $self->{s}->get($path . (@seqs ? "&before=$seqs[-1]" : ''));

        return "status $r->{status}" if $r->{status} != 200;
        @page = $r->{body} =~ /\{"seq":(\d+)/g;
        push @seqs, @page;
    } while (@page);

    return @seqs;
}

# History has all that was committed: what it says, and what the gauge does.
sub caught_up {
    my ($self) = @_;

    my $s = $self->{s};

    return RonTest::until_ok(20, sub {
        my $has = eval { $s->get('/ledger/accounts/probe/entries?limit=1')
                         ->{headers}{'ledger-watermark'} } || 0;
        my $head = eval { $s->get('/ledger/entries?from=1&to=1')
                          ->{headers}{'ledger-watermark'} } || -1;

        return $has == $head
               && ($self->metric('ledger_history_lag_entries') // -1) == 0;
    });
}

# What it said of accounts, beside the entries of the journal that name them.
sub histories {
    my ($self, $h) = @_;

    my (%is, @wrong);

    for my $e (@{ $h->{entries} }[1 .. $#{ $h->{entries} }]) {
        my %of = map { $_ => 1 } grep { defined }
                     @$e[RonHistory::ACCOUNT, RonHistory::TO];

        unshift @{ $is{$_} }, $e->[RonHistory::SEQ] for keys %of;
    }

    for my $account (sort keys %{ $self->{listed} }) {
        my @said = @{ $self->{listed}{$account} };
        my @is = @{ $is{$account} || [] };
        my %is = map { $_ => 1 } @is;
        my %said = map { $_ => 1 } @said;

        push @wrong, "history of $account: " . @said . ' entries, not ' . @is
            . '; too many: ' . join(' ', grep { !$is{$_} } @said)
            . '; not there: ' . join(' ', grep { !$said{$_} } @is)
            if "@said" ne "@is";
        $self->{listed_n} += @said;
    }

    return @wrong;
}

# Ready, or at least as fresh as a server has to be that is well.
sub settled {
    my ($self, $ready) = @_;

    return $self->{s}->wait_ready(30) if $ready;

    return RonTest::until_ok(30, sub {
        my $r = eval { $self->{s}->get('/v1/balance?account=x&asset=ron') };
        return $r && $r->{status} == 200
               && RonTest::json_get($r->{body}, 'stale_ms') < 250;
    });
}

# The verdict.  Options: quit => 0 leaves the server as it is; looked => 0
# does not ask it for balances; ready => 0: it may say that it is in a crash
# loop, if it answers all the same; says => what verify may still find;
# history => 1 asks what history has of accounts.
sub judge {
    my ($self, $label, %o) = @_;

    my $s = $self->{s};
    my $looks = !exists $o{looked} || $o{looked};

    if ($looks) {
        ok($self->settled(!exists $o{ready} || $o{ready}),
           "$label: all is well in the end")
            or diag($s->get('/readyz')->{body});
        ok($self->caught_up, "$label: history has caught up") if $o{history};
        $self->look(%o);
    }

    $s->quit if !exists $o{quit} || $o{quit};

    my @wrong = $self->verdict;
    my $h = $self->{judged};

    @wrong = grep { !/^verify: .*$o{says}/s } @wrong if $o{says};

    push @wrong, $self->balances($h) if $looks;

    if ($o{history}) {
        $self->{listed_n} = 0;
        push @wrong, $self->histories($h);
        cmp_ok($self->{listed_n}, '>', 0,
               "$label: history of accounts: $self->{listed_n} entries");
    }

    ok(!@wrong, "$label: " . $h->summary)
        or diag(scalar(@wrong) . ' wrong', map { "\n$_" }
                @wrong[0 .. ($#wrong > 9 ? 9 : $#wrong)]);
    ok($h->{n}{done} && $h->{n}{reads}, "$label: there was something to do");

    return !@wrong;
}

# Tests: the history that was judged has some of each of these, as
# RonHistory.pm counts them.
sub used {
    my ($self, @what) = @_;

    my $n = $self->{judged}{n};

    cmp_ok($n->{$_} || 0, '>', 0, "there was something $_") for @what;
}

# What is wrong with the ledger, and with what clients saw of it.
sub verdict {
    my ($self) = @_;

    my $ledger = $self->ledger;
    my $export = "$self->{s}{dir}/export";
    my @wrong;

    my $said = `'$BUILD/ronctl' ledger verify '$ledger' 2>&1`;
    push @wrong, "verify: $said" if $? || $said !~ /money conserved/;

    $said = `'$BUILD/ronctl' ledger export '$ledger' 2>&1 >'$export'`;
    push @wrong, "export: $said" if $?;

    my $h = RonHistory->new(b3 => $self->{b3}, starved => $self->{starved},
                            deadline => $self->{deadline} || 5000);
    $h->load($_) for @{ $self->{histories} };
    $h->journal($export);
    $self->{judged} = $h;

    return (@wrong, $h->check);
}


1;
