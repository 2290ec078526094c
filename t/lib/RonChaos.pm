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
    my $s = RonTest->new(workers => 2, level => 'notice', %o);

    $s->allow(qr/process \d+ exited on signal/);

    my $self = bless { s => $s, load => $load, clients => [],
                       histories => [], tool => tool('client'),
                       b3 => tool('b3') }, $class;

    $s->write_file('token', $s->token . "\n", 0600);

    return $self;
}

sub ledger {
    my ($self) = @_;

    return $self->{s}{ledger} =~ /^sqlite:(\S+)/ ? $1 : undef;
}

sub start {
    my ($self) = @_;

    $self->{s}->start or BAIL_OUT('no server');
}

# Starts a client; its accounts and keys begin with its name.
sub load {
    my ($self, $name, %o) = @_;

    my $s = $self->{s};
    my %arg = (c => 16, a => 100, s => 5, e => 40, %{ $self->{load} }, %o);
    my $history = "$s->{dir}/history-$name";
    my @flags = delete $arg{g} ? '-g' : ();

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

# What the server says of balances, beside what the journal gives.
sub balances {
    my ($self, $h) = @_;

    my @wrong;

    for my $c (@{ $self->{done} }) {
        for my $i (0 .. $c->{accounts} - 1) {
            next if $i % 7;

            my $account = "$c->{name}$i";
            my $state = $h->{balance}{$account} || [ 0, 0, 0, 0 ];
            my $seen = $self->{seen}{$account};

            push @wrong, "$account: @$seen, not @$state[1 .. 3]"
                if "@$seen" ne "@$state[1 .. 3]";
        }
    }

    return @wrong;
}

sub look {
    my ($self) = @_;

    my $s = $self->{s};

    for my $c (@{ $self->{done} }) {
        for my $i (0 .. $c->{accounts} - 1) {
            next if $i % 7;

            my $r = $s->get("/v1/balance?account=$c->{name}$i&asset=ron");
            $self->{seen}{"$c->{name}$i"} =
                [ map { RonTest::json_get($r->{body}, $_) || 0 }
                      qw(amount_minor held_minor nonce) ];
        }
    }
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
# loop, if it answers all the same.
sub judge {
    my ($self, $label, %o) = @_;

    my $s = $self->{s};
    my $ledger = $self->ledger;
    my $looks = !exists $o{looked} || $o{looked};

    if ($looks) {
        ok($self->settled(!exists $o{ready} || $o{ready}),
           "$label: all is well in the end")
            or diag($s->get('/readyz')->{body});
        $self->look;
    }

    $s->quit if !exists $o{quit} || $o{quit};

    my $said = `'$BUILD/ronctl' ledger verify '$ledger' 2>&1`;
    is($?, 0, "$label: ronctl ledger verify") or diag($said);
    like($said, qr/money conserved/, "$label: money is conserved");

    my $export = "$s->{dir}/export";
    $said = `'$BUILD/ronctl' ledger export '$ledger' 2>&1 >'$export'`;
    is($?, 0, "$label: export") or diag($said);

    my $h = RonHistory->new(b3 => $self->{b3});
    $h->load($_) for @{ $self->{histories} };
    $h->journal($export);

    my @wrong = $h->check;
    push @wrong, $self->balances($h) if $looks;

    ok(!@wrong, "$label: " . $h->summary)
        or diag(scalar(@wrong) . ' wrong', map { "\n$_" }
                @wrong[0 .. ($#wrong > 9 ? 9 : $#wrong)]);
    ok($h->{n}{done} && $h->{n}{reads}, "$label: there was something to do");

    $self->{judged} = $h;

    return !@wrong;
}


1;
