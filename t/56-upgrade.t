#!/usr/bin/perl

# A binary upgrade there and back under load: USR2, WINCH, and either the old
# binary again (HUP to it, QUIT to the new one) or the new one for good (QUIT
# to the old one).  Two masters, two helpers, two unrelated shared memories,
# one ledger.  RON_UPGRADES says how often there and back (1, 10 with
# RON_LIFE=1).

use strict;
use warnings;

use lib 't/lib';

# USR2 runs what the master was started as, which must be a whole path

BEGIN {
    ($ENV{NGINX}) = grep { -x } $ENV{NGINX} || (),
        map { "$_/nginx" } split(/:/, $ENV{PATH}), '/usr/sbin', '/sbin';
}

use RonTest;
use RonChaos;

my $rounds = $ENV{RON_UPGRADES} || ($ENV{RON_LIFE} ? 10 : 1);

my $c = RonChaos->new(load => { c => 8, a => 64, e => 60 });
my $s = $c->{s};
$c->start;
$c->load('upgrade', g => 1, s => 3600);
ok(until_ok(10, sub { seq() > 50 }), 'clients pay');

my $old = $s->{pid};

for my $n (1 .. $rounds) {
    my $new = there($n);

    # back: workers of the old binary begin again, the new one ends

    kill 'HUP', $old;
    ok(until_ok(10, sub { workers($old) == 2 }), "$n: back: the old workers");
    kill 'QUIT', $new;
    gone("$n: the new one", $new);
    pays("$n: the old one alone");
    ok(until_ok(5, sub { pid_file('nginx.pid') == $old }),
       "$n: its pid is in the file again");
}

# and there for good

my $new = there('last');
kill 'QUIT', $old;
gone('the old one', $old);
$s->{pid} = $new;
pays('the new one alone');

my $sum = $c->done(now => 1);
is($sum->{open}, 0, 'nothing is left without an answer');
is($sum->{gone}, 0, 'no answer broke off');

my @tries;
open my $f, '<', "$s->{dir}/history-upgrade" or die;

while (<$f>) {
    my (undef, undef, $begin, $end) = split /\t/;
    push @tries, $end - $begin;
}

my ($longest) = sort { $b <=> $a } @tries;
cmp_ok($longest, '<', 5_500_000, sprintf
       '%d requests, the slowest took %.3f s', scalar @tries, $longest / 1e6);

$c->judge('upgrade');

done_testing();


# The new binary has the ledger, and the old master its listeners only.
sub there {
    my ($n) = @_;

    kill 'USR2', $old;
    my $new = 0;

    ok(until_ok(10, sub {
        $new = pid_file('nginx.pid');
        pid_file('nginx.pid.oldbin') == $old && $new && $new != $old;
    }), "$n: USR2: a second master") && $new or BAIL_OUT('no new master');

    ok(until_ok(10, sub { workers($new) == 2 && helpers($new) == 1 }),
       "$n: its workers and its helper");
    pays("$n: both");

    kill 'WINCH', $old;
    ok(until_ok(20, sub { workers($old) == 0 && helpers($old) == 0 }),
       "$n: WINCH: the old workers and their helper leave");
    pays("$n: the new one");

    my ($helper) = helpers($new);
    $helper ||= 0;
    ok(until_ok(5, sub { $s->log =~ /#$helper: ron: ledger is running/ }),
       "$n: which has the ledger");

    return $new;
}

sub pays {
    my ($what) = @_;

    my $before = seq();
    ok(until_ok(10, sub { seq() > $before + 20 }), "$what: payments go on")
        or diag($s->get('/readyz')->{body});
}

sub gone {
    my ($what, $pid) = @_;

    ok(until_ok(15, sub { !RonTest::alive($pid) }), "$what has ended");
}

# What was committed, from the ledger and not from a worker.
sub seq {
    my $r = eval { $s->get('/ledger/roots?since=0&limit=1000') };
    my $next = 0;

    for (1 .. 100) {
        last unless $r && $r->{status} == 200;
        my $to = json_get($r->{body}, 'next');
        last if !defined $to || $to <= $next;
        $next = $to;
        $r = eval { $s->get("/ledger/roots?since=$next&limit=1000") };
    }

    return $next;
}

sub pid_file {
    my ($name) = @_;

    my ($pid) = RonTest::slurp("$s->{dir}/$name") =~ /(\d+)/;

    return $pid || 0;
}

sub of {
    my ($master, $title) = @_;

    local $s->{pid} = $master;

    return $s->titled($title);
}

sub workers { my @p = of($_[0], 'worker process'); return scalar @p }

sub helpers {
    my @p = of($_[0], 'cache manager process');

    return wantarray ? @p : scalar @p;
}
