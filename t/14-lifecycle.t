#!/usr/bin/perl

# Processes that die, reload and end while money moves: what was answered is
# there, nothing happened twice, nothing leaks.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use POSIX ();
use Time::HiRes ();


# Clients in processes of their own: each pays 1 from an account of its own
# with rising nonces, and sends the same request again until it is answered
# for good.  What they saw comes back through a file.

my $s;

sub clients {
    my ($n, $seconds, $tag) = @_;

    my @pids;

    for my $i (1 .. $n) {
        my $pid = fork();
        die "fork: $!" unless defined $pid;

        if ($pid) {
            push @pids, $pid;
            next;
        }

        client($i, $seconds, "$tag-$i");
        POSIX::_exit(0);
    }

    return @pids;
}

sub client {
    my ($i, $seconds, $tag) = @_;

    my $end = Time::HiRes::time() + $seconds;
    my ($nonce, $sock) = (0);
    my %count = (ok => 0, replayed => 0, retried => 0, lost => 0, bad => 0);
    my @txids;

    while (Time::HiRes::time() < $end) {
        $nonce++;
        my $tries = 0;

        for (;;) {
            $tries++;
            $sock ||= eval { $s->connect(2) };
            my $r = { status => 0 };
            $r = $s->post('/v1/transfer',
                { from => "from-$tag", to => 'sink', asset => 'ron',
                  amount_minor => '1', nonce => $nonce },
                key => "n-$nonce", sock => $sock, timeout => 8) if $sock;

            if ($r->{status} == 200) {
                $count{ok}++;
                $count{replayed}++ if $r->{headers}{'idempotent-replayed'};
                push @txids, json_get($r->{body}, 'txid');
                undef $sock
                    if ($r->{headers}{connection} || '') eq 'close';
                last;
            }

            undef $sock;

            if ($r->{status} == 0) {
                $count{lost}++;
            } elsif ($r->{status} == 503 || $r->{status} == 429) {
                $count{retried}++;
            } else {
                $count{bad}++;
                $count{body} = $r->{body};
            }

            last if $tries > 400;
            Time::HiRes::sleep(0.02);
        }
    }

    open my $f, '>', $s->dir . "/client-$tag";
    print $f join(' ', map { "$_=$count{$_}" }
                       grep { $_ ne 'body' } sort keys %count), "\n";
    print $f ($count{body} || '-'), "\n";
    print $f "$_\n" for @txids;
    close $f;
}

# Waits for the clients and checks that every payment happened once.
sub reckon {
    my ($tag, @pids) = @_;

    waitpid $_, 0 for @pids;

    my ($paid, %seen, $twice) = (0);

    for my $i (1 .. @pids) {
        open my $f, '<', $s->dir . "/client-$tag-$i" or next;
        my ($line, $body, @txids) = <$f>;
        my %c = $line =~ /(\w+)=(\d+)/g;
        chomp $line;

        is($c{bad}, 0, "$tag: client $i had no other answer ($line)")
            or diag($body);
        cmp_ok($c{ok}, '>', 0, "$tag: client $i paid $c{ok} times");
        $twice += $seen{$_}++ for @txids;
        $paid += $c{ok};

        my $r = $s->get("/v1/balance?account=from-$tag-$i&asset=ron");
        is(json_get($r->{body}, 'amount_minor'), 1_000_000 - $c{ok},
           "$tag: each payment happened once");
    }

    ok(!$twice, "$tag: no receipt for two payments");

    return $paid;
}

sub fund {
    my ($tag, $n) = @_;

    for my $i (1 .. $n) {
        my $r = $s->post('/v1/issue', { to => "from-$tag-$i",
            asset => 'ron', amount_minor => '1000000' },
            key => "fund-$tag-$i");
        die $r->{body} unless $r->{status} == 200;
    }
}

sub sink {
    my $r = $s->get('/v1/balance?account=sink&asset=ron');
    return json_get($r->{body}, 'amount_minor');
}


$s = RonTest->new(workers => 2);
$s->start or BAIL_OUT('no server');

my ($paid, @pids) = (0);


# the helper is killed under load

fund('helper', 3);
@pids = clients(3, 4, 'helper');

for (1 .. 3) {
    Time::HiRes::sleep(1);
    ok($s->kill_helper, 'the helper was killed');
}

$paid += reckon('helper', @pids);
is(sink(), $paid, 'what was paid has arrived');
ok($s->wait_ready, 'ready again');

my $restarts = () = $s->log =~ /restart \d+ of the ledger/g;
is($restarts, 3, 'three restarts');
is(scalar(grep { $_ <= 50 } delays()), 3, 'soon, as each had committed');
like($s->get('/metrics')->{body},
     qr/^service_restarts_total\{service="ledger",task="helper"\} 3$/m,
     'and counted');


# a worker is killed under load

fund('worker', 3);
@pids = clients(3, 4, 'worker');

# the eldest of two each time

for (1 .. 3) {
    Time::HiRes::sleep(0.8);
    ok($s->kill_worker, 'a worker was killed');
}

$paid += reckon('worker', @pids);
is(sink(), $paid, 'what was paid has arrived');

# each had worked for a while, so none of them is held back, and nothing is left

my %again = $s->log =~ /restart (\d+) of a worker in (\d+) ms/g;
is(join(' ', sort keys %again), '1 2 3', 'three restarts');
is(scalar(grep { $_ > 50 } values %again), 0, 'soon: ' . join ' ', %again);

my $metrics = $s->get('/metrics', token => undef)->{body};
like($metrics,
     qr/^service_restarts_total\{service="ledger",task="worker"\} 3$/m,
     'and counted');
my @leaked = $metrics =~ /^tasks_leaked_total\{[^}]*\} (\d+)$/mg;
cmp_ok(scalar @leaked, '>=', 2, 'tasks_leaked_total is there');
is(scalar(grep { $_ } @leaked), 0, 'and no task leaked');

for my $task ('service="ledger",kind="ingress"',
              'service="wallet",kind="listener"')
{
    my %n = map { $_ => $metrics =~ /^tasks_${_}_total\{$task\} (\d+)$/m }
            qw(spawned aborted canceled);
    is("$n{spawned} $n{aborted} $n{canceled}", '5 3 0',
       "two of five are left, $task");
}


# ten reloads under load

fund('reload', 3);

my $fds = $s->fds($s->{pid});
@pids = clients(3, 6, 'reload');

for my $i (1 .. 10) {
    ok($s->reload, "reload $i");
}

$paid += reckon('reload', @pids);
is(sink(), $paid, 'what was paid has arrived');
ok(until_ok(5, sub { (my @c = $s->children) == 3 }),
   'two workers and a helper are left') or diag(join ' ', $s->children);
cmp_ok($s->fds($s->{pid}), '<=', $fds, 'the master has no descriptor more');

my @workers = $s->workers;
my @before = map { $s->fds($_) } @workers;
$s->get('/v1/balance?account=sink&asset=ron') for 1 .. 20;
my @more = grep { $s->fds($workers[$_]) > $before[$_] } 0 .. $#workers;
is("@more", '', 'nor have the workers');


# a helper that is stopped: nobody waits for ever

my $helper = $s->helper;
freeze($helper);
until_ok(5, sub {
    !grep { RonTest::slurp($_) !~ /\) T / } glob "/proc/$helper/task/*/stat"
});
my $t = Time::HiRes::time();

# each call by its own time, whichever came first; none of these can be paid

my @patience = (3, 1, 3, 2);
my @late = map { $s->connect } @patience;

$s->send_request($late[$_], 'POST', '/v1/transfer',
    { from => 'from-reload-1', to => 'sink', asset => 'ron',
      amount_minor => '90000000000000', nonce => 900_001 + $_ },
    key => "late-$_", headers => { 'Request-Timeout' => $patience[$_] })
    for 0 .. $#late;

my $r = $s->post('/v1/transfer', { from => 'from-reload-1', to => 'sink',
    asset => 'ron', amount_minor => '1', nonce => 900_000 },
    key => 'stopped', headers => { 'Request-Timeout' => 1 });
my $took = Time::HiRes::time() - $t;
is($r->{status}, 503, 'a stopped helper: 503');
cmp_ok($took, '<', slow(2), sprintf 'after %.2f s', $took);
is($r->{headers}{'retry-after'}, 2, 'with Retry-After');

for (1, 3, 0, 2) {
    $r = RonTest::read_response($late[$_], 'POST', slow(10));
    $took = Time::HiRes::time() - $t;

    is($r->{status}, 503, "$patience[$_] s of patience");
    cmp_ok($took, '>', $patience[$_] - 0.1, sprintf 'after %.2f s', $took);
    cmp_ok($took, '<', slow($patience[$_] + 0.9), 'and not much later');
}

close $_ for @late;
is($s->get('/healthz')->{status}, 200, 'the server lives');
ok(until_ok(2, sub { $s->get('/readyz')->{status} == 503 }),
   'and is not ready');
$r = $s->get('/v1/balance?account=sink&asset=ron',
             headers => { 'Request-Timeout' => 1 });
ok($r->{status} == 200 || $r->{status} == 503, 'a balance is answered');
kill 'CONT', $helper;
ok($s->wait_ready, 'ready when it goes on');
$r = $s->post('/v1/transfer', { from => 'from-reload-1', to => 'sink',
    asset => 'ron', amount_minor => '1', nonce => 900_000 },
    key => 'stopped');
is($r->{status}, 200, 'the same key afterwards is answered');
$paid++;
is(sink(), $paid, 'and has one effect');


# quit while a request is under way: it is answered

@pids = ();
fund('quit', 1);

my @socks = map { $s->connect } 1 .. 8;
my $nonce = 0;
$s->send_request($_, 'POST', '/v1/transfer',
    { from => 'from-quit-1', to => 'sink', asset => 'ron',
      amount_minor => '1', nonce => ++$nonce }, key => "quit-$nonce",
    keep => 1) for @socks;
Time::HiRes::sleep(0.05);
kill 'QUIT', $s->{pid};

my $answered = grep {
    RonTest::read_response($_, 'POST', 5)->{status} =~ /^(?:200|409)$/
} @socks;
is($answered, 8, 'all that were under way are answered');
close $_ for @socks;

ok($s->quit, 'quit ends');
like($s->log, qr/"event":"shutdown","drained":true,"aborted":0,"canceled":0,
                 "leaked":0,"seq":\d+,"root":"[0-9a-f]{64}"/x,
     'the last words are JSON');


# of a quit and a terminate the last counts: half a request holds the one open

{
    my $s = RonTest->new(workers => 1);

    # NGINX 1.22 says of connections that a quit would have left them

    $s->allow(qr/open socket #\d+ left in connection/, qr/#\d+: aborting$/);
    $s->start or BAIL_OUT('no server');

    my @all = ($s->{pid}, $s->children);
    my $half = $s->connect;

    syswrite $half, "POST /v1/issue HTTP/1.1\r\nHost: a\r\n"
        . "Authorization: Bearer @{[$s->token]}\r\nIdempotency-Key: half\r\n"
        . "Content-Type: application/json\r\nContent-Length: 100\r\n"
        . "Expect: 100-continue\r\n\r\n";
    is(RonTest::read_response($half, 'POST')->{status}, 100,
       'half a request is there');

    my $begin = Time::HiRes::time();

    kill 'QUIT', $s->{pid};
    Time::HiRes::sleep(1);
    is(scalar(grep { RonTest::alive($_) } @all), 3, 'a quit waits for it');
    ok($s->terminate, 'a terminate after it does not');
    cmp_ok(Time::HiRes::time() - $begin, '<', slow(2.5),
           'nor for the deadline of either');
    is(RonTest::read_response($half, 'POST', 2)->{status}, 0,
       'and the request has no answer');
}


# terminate, and what was there is there

$s->start or BAIL_OUT('no server');
my $sink = sink();
ok($s->terminate, 'terminate ends');
$s->start or BAIL_OUT('no server');
is(sink(), $sink, 'and loses nothing');


# the master is killed: its children go

my @left = $s->kill_master;
is(scalar @left, 3, 'the master is killed, three children are left');
ok(until_ok(10, sub { !grep { RonTest::alive($_) } @left }),
   'and go by themselves');
$s->start or BAIL_OUT('no server');
is(sink(), $sink, 'and nothing is lost');
$s->quit;


# a helper that dies before it has done anything is not restarted at once

$s = RonTest->new(workers => 1);
$s->start or BAIL_OUT('no server');
$s->allow(qr/cache manager process \d+ exited on signal 9/);

$t = Time::HiRes::time();
my $killed = 0;

while (Time::HiRes::time() - $t < 3) {
    my $pid = $s->helper;
    $killed++ if $pid && kill 'KILL', $pid;
    Time::HiRes::sleep(0.01);
}

my ($first, @delays) = delays();
my @doubled = map { $first * 2 ** $_ } 1 .. @delays;
ok($first >= 100 && $first < 400, "the first wait is jittered: $first ms");
cmp_ok(scalar @delays, '>=', 2, 'there are more');
is("@delays", "@{[map { $_ < 5000 ? $_ : 5000 } @doubled]}",
   'each is twice the one before');
is($s->get('/healthz')->{status}, 503, 'and that is a crash loop');
is(json_get($s->get('/healthz')->{body}, 'state'), 'fatal', 'named fatal');
is($s->get('/version')->{status}, 200, 'what can be served is served');

my $late = $s->helper;
$s->terminate;
unlike($s->log, qr/ $late#\d+: ron: ledger is /, 'one that did not begin yet');
like($s->log, qr/\ $late\#\d+:\ ron:\ \{"event":"shutdown","drained":true,
                 "aborted":0,"canceled":0,"leaked":0,"seq":\d+,"root":null\}/x,
     'has last words too');


done_testing();


sub delays { return $s->log =~ /restart \d+ of the ledger in (\d+) ms/g }
