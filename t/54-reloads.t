#!/usr/bin/perl

# Reloads under load.  RON_RELOADS says how many (50).
#
# A connection that is kept alive may be closed by a reload before a byte of
# the next request was read; the client sends it again with the same key and
# it is counted apart.  If that second answer is a replay, the first one was
# read and its answer lost: that is a failure.  So is any answer but 200, and
# any failure on a connection that is new.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use POSIX ();
use Time::HiRes ();


my $reloads = $ENV{RON_RELOADS} || 50;
my $clients = 3;

my $s = RonTest->new(workers => 2);
$s->start or BAIL_OUT('no server');

for my $i (1 .. $clients) {
    my $r = $s->post('/v1/issue', { to => "from-$i", asset => 'ron',
        amount_minor => '1000000' }, key => "fund-$i");
    is($r->{status}, 200, "client $i has money") or diag($r->{body});
}


sub client {
    my ($i, $stop) = @_;

    my %n = map { $_ => 0 } qw(ok closed lost refused new bad);
    my ($nonce, $sock, $fresh, $said) = (0, undef, 0, '');
    my $slowest = 0;

    until (-e $stop) {
        $nonce++;
        my $closed = 0;

        for my $try (1 .. 50) {
            unless ($sock) {
                $sock = eval { $s->connect(5) };
                $fresh = 1;
                unless ($sock) { $n{new}++; next }
            }

            my $t = Time::HiRes::time();
            my $r = $s->post('/v1/transfer', { from => "from-$i",
                to => 'sink', asset => 'ron', amount_minor => '1',
                nonce => $nonce }, key => "n-$nonce", sock => $sock,
                timeout => 10);
            $t = Time::HiRes::time() - $t;
            $slowest = $t if $t > $slowest;

            my $bye = ($r->{headers}{connection} || '') eq 'close';
            my $was = $fresh;
            $fresh = 0;
            undef $sock if $bye || $r->{status} != 200;

            if ($r->{status} == 200) {
                $n{ok}++;
                $n{lost}++
                    if $closed && $r->{headers}{'idempotent-replayed'};
                last;
            }

            if ($r->{status} == 0 && $was) {
                $n{new}++;
            } elsif ($r->{status} == 0) {
                $n{closed}++;
                $closed = 1;
            } elsif ($r->{status} == 503 || $r->{status} == 429) {
                $n{refused}++;
                $said = $r->{body};
            } else {
                $n{bad}++;
                $said = $r->{body};
                last;
            }
        }
    }

    $s->write_file("client-$i", join("\n", map({ "$_=$n{$_}" } sort keys %n),
                                     "slowest=$slowest", "said=$said"));
}

sub rss {
    my ($pid) = @_;

    return RonTest::slurp("/proc/$pid/status") =~ /^VmRSS:\s+(\d+)/m ? $1 : 0;
}


# what one reload leaves behind is no leak: count from the second on

ok($s->reload, 'a first reload');

my $stop = $s->dir . '/stop';
my @pids;

for my $i (1 .. $clients) {
    my $pid = fork();
    die "fork: $!" unless defined $pid;

    unless ($pid) {
        client($i, $stop);
        POSIX::_exit(0);
    }

    push @pids, $pid;
}

my $fds = $s->fds($s->{pid});
my $rss = rss($s->{pid});
my $done = 0;

for my $i (1 .. $reloads) {
    $done++ if $s->reload(wait => 20);
}

is($done, $reloads, "$reloads reloads under load");

$s->write_file('stop', '');
waitpid $_, 0 for @pids;

my $paid = 0;

for my $i (1 .. $clients) {
    my %n = RonTest::slurp($s->dir . "/client-$i") =~ /^(\w+)=(.*)$/mg;

    cmp_ok($n{ok} || 0, '>', $reloads, "client $i paid $n{ok} times");
    is($n{lost}, 0, "client $i: no request that was read was lost");
    is($n{new}, 0, "client $i: no new connection failed");
    is($n{refused}, 0, "client $i: nothing was refused") or diag($n{said});
    is($n{bad}, 0, "client $i: no other answer") or diag($n{said});
    diag(sprintf 'client %d: %d paid, %d kept-alive closed before a byte,'
                 . ' slowest %.3f s', $i, $n{ok}, $n{closed}, $n{slowest});

    my $r = $s->get("/v1/balance?account=from-$i&asset=ron");
    is(json_get($r->{body}, 'amount_minor'), 1_000_000 - $n{ok},
       "client $i: each payment happened once");
    $paid += $n{ok};
}

is(json_get($s->get('/v1/balance?account=sink&asset=ron')->{body},
            'amount_minor'), $paid, 'what was paid has arrived');


ok(until_ok(5, sub { (my @c = $s->children) == 3 }),
   'two workers and a helper are left') or diag(join ' ', $s->children);
cmp_ok($s->fds($s->{pid}), '<=', $fds, 'the master has no descriptor more');

my $grown = rss($s->{pid}) - $rss;
cmp_ok($grown, '<', slow(4096 + 16 * $reloads), "the master grew by $grown KiB");

my $metrics = $s->get('/metrics')->{body};
my @leaked = $metrics =~ /^tasks_leaked_total\{[^}]*\} (\d+)$/mg;
cmp_ok(scalar @leaked, '>', 0, 'tasks_leaked_total is there');
is((grep { $_ > (slow(1) > 1 ? $reloads : 0) } @leaked), 0, 'and 0');

my @threads = $s->log =~ /"event":"shutdown".*"leaked":([1-9])/g;
my $may = slow(1) > 1 ? $reloads : 0;       # they have 0.2 s, however slow
cmp_ok(scalar @threads, '<=', $may, 'no helper left a thread behind');

$s->quit;

done_testing();
