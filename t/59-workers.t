#!/usr/bin/perl

# A worker that dies is started again after a moment; one that dies as soon as
# it lives, later each time.  Meanwhile it listens to the master.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use Time::HiRes ();


my $s = RonTest->new(workers => 1);
$s->allow(qr/worker process \d+ exited on signal 9/);
$s->start or BAIL_OUT('no server');

sub waits { return $s->log =~ /restart \d+ of a worker in (\d+) ms/g }

# The worker that comes after $old; when `$waits`, it has said that it pauses.

sub next_of {
    my ($old, $waits) = @_;

    ok(until_ok(15, sub {
        my ($pid) = $s->workers;
        return $pid && $pid != $old && (my @w = waits()) == $waits;
    }), "restart $waits");

    return ($s->workers)[0];
}

my $from;

sub killed {
    my ($pid, $waits) = @_;

    $from = Time::HiRes::time();
    kill 'KILL', $pid;
    return next_of($pid, $waits);
}


# those that have worked

Time::HiRes::sleep(1.1);
my ($pid) = $s->workers;

for my $n (1 .. 3) {
    $pid = killed($pid, $n);
    ok(until_ok(5, sub { $s->get('/healthz')->{status} == 200 }), 'it serves');
    Time::HiRes::sleep(1.1);
}

my @soon = waits();
is(scalar(grep { $_ <= 50 } @soon), 3, "who has worked is back soon: @soon");


# those that never get so far: each has the time that it pauses, and no more

$pid = killed($pid, 4);

for my $n (5 .. 8) {
    if ($n == 6) {
        my $wait = (waits())[-1] / 1000;

        # this one is let live for a moment, which is too short

        ok(until_ok(5, sub { $s->get('/healthz')->{status} }), 'it answers');
        cmp_ok(Time::HiRes::time() - $from, '>=', $wait,
               "after its pause of $wait s");
    }

    $pid = killed($pid, $n);
}

my (undef, undef, undef, $had, $first, @more) = waits();
cmp_ok($had, '<=', 50, 'the last that had worked');
ok($first >= 100 && $first < 400, "the first pause is jittered: $first ms");
is("@more", join(' ', map { $first * 2 ** $_ } 1 .. 3), 'then they double');

ok(until_ok(10, sub { $s->get('/readyz')->{status} == 503 }), 'not ready');
my $r = $s->get('/readyz');
like($r->{body}, qr/"missing":\["worker"\]/, 'it says which task')
    or diag($r->{body});


# while it pauses it does what the master says

ok(until_ok(10, sub { $s->get('/healthz')->{status} }), 'it serves again');
Time::HiRes::sleep(1.1);
$pid = killed($pid, 9);
cmp_ok((waits())[-1], '<=', 50, 'what has worked is forgiven');

# nor does a pause grow for ever; who is killed in one has a longer one next

$pid = killed($pid, 10);

for my $n (11 .. 17) {
    kill 'KILL', $pid;
    ok(until_ok(5, sub {
        ($pid) = $s->log =~ / (\d+)#\d+: ron: worker 0 died, restart $n /
    }), "restart $n, of one that had not begun");
}

($first, @more) = (waits())[9 .. 16];
is("@more", join(' ', map { $_ < 5000 ? $_ : 5000 }
                      map { $first * 2 ** $_ } 1 .. 7),
   "they double from $first ms to 5 s");
is($more[-1], 5000, 'which is the longest');
my $wait = $more[-1] / 1000;

$from = Time::HiRes::time();
ok($s->quit, 'a quit');
cmp_ok(Time::HiRes::time() - $from, '<', slow($wait - 0.5),
       'does not wait for it');

done_testing();
