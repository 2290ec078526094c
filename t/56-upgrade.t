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

# as long as a helper may wait for its workers, and must not without any

my $c = RonChaos->new(main => 'ron_drain_deadline 5s;', load => { c => 8, a => 64, e => 60 });
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
is($sum->{gone}, 0, 'nobody waited for one in vain');

# A connection that was kept alive may be closed before a byte of the next
# answer, as stock NGINX does; that request is sent again.  No other is lost.

is($sum->{new}, 0, 'no new connection failed');
is($sum->{cut}, 0, 'no answer broke off');
is($sum->{unheard}, 0, 'no request that was read was lost');
diag("$sum->{lost} kept-alive connections closed before a byte");

my @tries;
open my $f, '<', "$s->{dir}/history-upgrade" or die;

while (<$f>) {
    my (undef, undef, $begin, $end) = split /\t/;
    push @tries, $end - $begin;
}

my ($longest) = sort { $b <=> $a } @tries;
cmp_ok($longest, '<', slow(5_500_000), sprintf
       '%d requests, the slowest took %.3f s', scalar @tries, $longest / 1e6);

$c->judge('upgrade');

# While two masters are there each writes its own zone, or neither does: who
# reads asks the helper that has the ledger.  What nobody has for a moment is
# as old as it says.

my @stale = @{ $c->{judged}{stale} || [] };
my ($stalest) = sort { $b <=> $a } map { $_->[1] } @stale;
cmp_ok($stalest || 0, '<', slow(1500), sprintf
       '%d balances were older than 250 ms, the oldest %d ms', scalar @stale,
       $stalest || 0);
cmp_ok(@stale, '<', $c->{judged}{n}{reads} / 20, 'hardly any');

$s->quit;


# A zone of before, and a committer that takes its time: workers of the old
# binary have a balance that is no longer true, and wait for the one that is.

$s = RonTest->new(workers => 1, main => 'ron_commit_delay 300ms;');
$s->start or BAIL_OUT('no server');
$old = $s->{pid};

is(issue()->{status}, 200, 'a balance in the first zone');
is(json_get(balance()->{body}, 'amount_minor'), 1, 'which is read there');

kill 'USR2', $old;
ok(until_ok(10, sub {
    $new = pid_file('nginx.pid');
    $new && $new != $old && workers($new) == 1 && helpers($new) == 1;
}), 'a second master');
kill 'WINCH', $old;
ok(until_ok(20, sub { workers($old) == 0 && helpers($old) == 0 }),
   'which is alone');
ok(until_ok(20, sub { issue()->{status} == 200 }), 'pays');
ok(until_ok(10, sub { json_get(balance()->{body}, 'amount_minor') > 1 }),
   'and says so');
my $least = json_get(balance()->{body}, 'amount_minor');

# nobody but the old binary's worker answers now, and it commits to no zone

kill 'HUP', $old;
ok(until_ok(10, sub { workers($old) == 1 && helpers($old) == 1 }),
   'the worker of the first one is back');
kill 'STOP', of($new, 'worker process');
ok(until_ok(10, sub { eval { issue(2)->{status} == 200 } }),
   'it pays, by the other one\'s helper');

my (@least, @age, @took);

for my $n (1 .. 8) {
    my $payer = fork();
    die "fork: $!" unless defined $payer;

    if ($payer == 0) {
        eval { issue(10) };
        POSIX::_exit(0);
    }

    Time::HiRes::sleep(0.1);
    my $r = eval { $s->get('/v1/balance?account=a&asset=ron', timeout => 2) };
    waitpid $payer, 0;

    next unless $r && $r->{status} == 200;
    push @least, json_get($r->{body}, 'amount_minor');
    push @age, json_get($r->{body}, 'stale_ms');
}

cmp_ok(scalar @age, '>', 0, scalar @age . ' reads while it commits');
is((grep { $_ < $least } @least), 0, 'none of what its own zone had');
is((grep { $_ > 250 } @age), 0, 'nor older than a balance may be');

kill 'CONT', of($new, 'worker process');
kill 'QUIT', $new;
gone('the second one', $new);
$s->quit;

done_testing();


sub issue {
    my ($timeout) = @_;

    return $s->post('/v1/issue', { to => 'a', asset => 'ron',
        amount_minor => '1' }, key => nonce16() =~ tr/=+\///dr,
        timeout => $timeout || 10);
}

sub balance { return $s->get('/v1/balance?account=a&asset=ron') }

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
    ok(until_ok(20, sub { workers($old) == 0 }),
       "$n: WINCH: the old workers leave");
    ok(until_ok(2.5, sub { helpers($old) == 0 }),
       "$n: and their helper, which waits for nobody else's");
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
