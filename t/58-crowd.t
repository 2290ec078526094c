#!/usr/bin/perl

# What does nothing costs nothing, and disturbs nobody: an idle server, ten
# thousand idle connections, half requests, readers that do not read.
# RON_CROWD says how many connections (10000, or what the limits allow; where
# CI is set fewer fail).

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use POSIX ();
use Time::HiRes ();

# as many descriptors as may be, for us and for what we start

my $hard = `sh -c 'ulimit -Hn'` =~ /(\d+)/ ? $1 : 1024;

unless ($ENV{RON_CROWD_RAISED}) {
    $ENV{RON_CROWD_RAISED} = 1;
    $ENV{NGINX} = $RonTest::NGINX;      # which RonTest has taken from there
    exec 'sh', '-c', "ulimit -Sn $hard && exec \"\$@\"", 'sh', $^X, $0
        or die "exec: $!";
}

my $crowd = $ENV{RON_CROWD} || 10000;
$crowd = int(($hard - 2000) * 0.9) if $crowd > ($hard - 2000) * 0.9;

diag("a hard limit of $hard descriptors makes it a crowd of $crowd")
    if $crowd < 10000;
cmp_ok($crowd, '>=', 10000, 'a crowd') if $ENV{CI};

my $s = RonTest->new(workers => 1, connections => $hard - 500,
    main => "worker_rlimit_nofile $hard;",
    http => 'client_header_timeout 60s; client_body_timeout 60s;');
$s->start or BAIL_OUT('no server');


# idle

my @all = ($s->{pid}, $s->children);
Time::HiRes::sleep(1);

my $pss = 0;
$pss += pss($_) for @all;
cmp_ok($pss, '<=', slow(100 * 1024), "idle: $pss KiB of memory in all processes");

my ($worker) = $s->workers;
my $helper = $s->helper;
my %cpu = map { $_ => cpu($_) } @all;
my $woken = switches($worker);
my $ticks = switches($helper);
Time::HiRes::sleep(5);

for my $pid (@all) {
    my $name = $pid == $worker ? 'worker' : $pid == $helper ? 'helper'
                                                            : 'master';
    my $used = cpu($pid) - $cpu{$pid};
    cmp_ok($used, '<=', 5, "idle: the $name used $used ticks in 5 s");
}

$woken = switches($worker) - $woken;
cmp_ok($woken, '<=', 10, "idle: the worker was woken $woken times");
$ticks = switches($helper) - $ticks;
cmp_ok($ticks, '<=', 400, "idle: the helper and its threads $ticks times");


# payments, undisturbed

is($s->post('/v1/issue', { to => 'from', asset => 'ron',
    amount_minor => '1000000' }, key => 'fund')->{status}, 200, 'funded');

my $nonce = 0;
my ($ok, $calm) = pay(200);
is($ok, 200, sprintf 'undisturbed: 200 payments, median %.1f ms', $calm);


# and in a crowd

my @socks;

while (@socks < $crowd) {
    my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
        PeerPort => $s->port, Proto => 'tcp', Timeout => 10) or last;
    syswrite $sock, "GET /version HTTP/1.1\r\nHost: a\r\n\r\n";
    RonTest::read_response($sock, 'GET', 10)->{status} == 200 or last;
    push @socks, $sock;
}

is(scalar @socks, $crowd, "$crowd idle connections, kept alive");

my $token = $s->token;
my $head = "POST /v1/transfer HTTP/1.1\r\nHost: a\r\n";
my $body = '{"from":"from","to":"sink","asset":"ron","amount_minor":"1",';

# a third of a header, a header without its body, half a body: of each of the
# last two more than the wallet's queue has room for

for my $i (0 .. 599) {
    syswrite $socks[$i], $head if $i < 100;
    syswrite $socks[100 + $i], "${head}Authorization: Bearer $token\r\n"
        . "Content-Type: application/json\r\nIdempotency-Key: half-$i\r\n"
        . "Content-Length: 200\r\n\r\n";
    syswrite $socks[700 + $i], "${head}Authorization: Bearer $token\r\n"
        . "Content-Type: application/json\r\nIdempotency-Key: body-$i\r\n"
        . "Content-Length: 200\r\n\r\n$body";
}

# readers that ask for a lot and read nothing

for my $i (1300 .. 1349) {
    syswrite $socks[$i], "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" x 50;
}

Time::HiRes::sleep(0.5);

($ok, my $crowded) = pay(200);
is($ok, 200, sprintf 'in a crowd: 200 payments, median %.1f ms', $crowded);
cmp_ok($crowded, '<', slow(5 * $calm + 20), 'as fast as before');
is($s->get('/readyz')->{status}, 200, 'ready');
is(json_get($s->get('/v1/balance?account=sink&asset=ron')->{body},
            'amount_minor'), 400, 'half a request is no payment');

# a request that is half there when its deadline comes is ended

my $r = RonTest::read_response($socks[750], 'POST', 10);
is($r->{status}, 503, 'half a body: 503 at the deadline')
    or diag($r->{body});

# a reload in the crowd: nobody who only waits is waited for

close $_ for splice @socks, 0, 1400;
ok($s->reload(wait => 20), 'a reload does not wait for the idle');
($ok) = pay(50);
is($ok, 50, 'and payments go on');

my $closed = 0;

for my $sock (@socks[0 .. 99]) {
    my $n = sysread $sock, my $buf, 1;
    $closed++ if defined $n && $n == 0;
}

is($closed, 100, 'they were closed');
@socks = ();
$s->quit;

done_testing();


sub pay {
    my ($n) = @_;

    my ($ok, $sock, @took) = (0);

    for (1 .. $n) {
        $sock ||= $s->connect(5);
        my $t = Time::HiRes::time();
        my $r = $s->post('/v1/transfer', { from => 'from', to => 'sink',
            asset => 'ron', amount_minor => '1', nonce => ++$nonce },
            key => "n-$nonce", sock => $sock, timeout => 10);
        push @took, Time::HiRes::time() - $t;
        $ok++ if $r->{status} == 200;
        undef $sock if $r->{status} != 200
            || ($r->{headers}{connection} || '') eq 'close';
    }

    @took = sort { $a <=> $b } @took;

    return ($ok, 1000 * $took[@took / 2]);
}

sub pss {
    my ($pid) = @_;

    return RonTest::slurp("/proc/$pid/smaps_rollup") =~ /^Pss:\s+(\d+)/m
           ? $1 : 0;
}

# Ticks of a hundredth of a second, all threads.
sub cpu {
    my ($pid) = @_;

    my (@f) = split ' ', RonTest::slurp("/proc/$pid/stat") =~ s/^.*\) //sr;

    return $f[11] + $f[12];
}

sub switches {
    my ($pid) = @_;

    my $n = 0;

    for my $status (glob "/proc/$pid/task/*/status") {
        $n += $1 if RonTest::slurp($status)
                    =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
    }

    return $n;
}
