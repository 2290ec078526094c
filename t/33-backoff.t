#!/usr/bin/perl

# The pauses between tries of a remote wallet, by the clock of the ledger that
# closes each connection: they double from 50 ms to 1 s, and differ by up to
# 20 ms, so that who failed together does not come back together.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);


my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 128,
    LocalPort => RonTest::free_port(), ReuseAddr => 1) or die "listen: $!";

my $w = RonTest->new(workers => 1, ledger => '', locations => 0);
my $seen = $w->dir . '/seen';
my $pass = 'ron_wallet; ron_wallet_ledger_pass ledger errors=1000';

$w->{http} = 'upstream ledger { server 127.0.0.1:' . $listen->sockport
             . ' max_fails=0; }';
$w->{config} = <<"END";
location /v1/ { $pass; }
location /long/ { $pass tries=9; }
location = /metrics { ron_metrics; }
END

my $ledger = fork;
die "fork: $!" unless defined $ledger;

if ($ledger == 0) {
    open my $out, '>>', $seen or POSIX::_exit(1);
    $out->autoflush(1);

    # bytes of each that has not said its key yet
    my (%said, $set);
    $set = IO::Select->new($listen);

    for (;;) {
        for my $h ($set->can_read) {
            if ($h == $listen) {
                $set->add($listen->accept);
                next;
            }

            my $n = sysread $h, $said{$h}, 65536, length($said{$h} // '');
            my ($key) = $said{$h} =~ /"key":"(\w+)"|^Idempotency-Key: (\w+)/mi
                ? $1 // $2 : ();

            next if $n && !defined $key;

            printf $out "%s %.6f\n", $key // 'none',
                   clock_gettime(CLOCK_MONOTONIC);
            $set->remove($h);
            delete $said{$h};
            close $h;
        }
    }
}

END { my $code = $?; kill 'KILL', $ledger if $ledger; $? = $code }

$w->start(nowait => 1) or BAIL_OUT('no server');
ok(until_ok(10, sub { eval { $w->get('/metrics', token => undef) } }),
   'a wallet');

sub pay {
    my ($path, @keys) = @_;

    my @socks = map { $w->connect } @keys;

    $w->send_request($socks[$_], 'POST', "$path/issue", { to => 'a',
        asset => 'ron', amount_minor => '1' }, key => $keys[$_])
        for 0 .. $#keys;

    return map { RonTest::read_response($_, 'POST', 15) } @socks;
}

# Pauses that each key has seen, in ms.
sub pauses {
    my %at;

    for (split /\n/, RonTest::slurp($seen)) {
        my ($key, $at) = split / /;
        push @{ $at{$key} }, $at;
    }

    for my $key (keys %at) {
        my @at = @{ $at{$key} };
        $at{$key} = [ map { 1000 * ($at[$_] - $at[$_ - 1]) } 1 .. $#at ];
    }

    return \%at;
}

# sixteen that fail in one moment

my @keys = map { "together_$_" } 1 .. 16;
my @r = pay('/v1', @keys);
is(scalar(grep { $_->{status} == 503 } @r), 16, 'a ledger that hangs up: 503');

my $of = pauses();
is(scalar(grep { @{ $of->{$_} || [] } == 2 } @keys), 16, 'three tries each');

for my $case ([ 0, 50 ], [ 1, 100 ]) {
    my ($i, $ms) = @$case;
    my @p = sort { $a <=> $b } map { $of->{$_}[$i] } @keys;

    cmp_ok($p[0], '>=', $ms - 2, "pause $i: not before $ms ms");
    cmp_ok($p[0], '<', $ms + 20, sprintf 'the shortest soon after: %.1f ms',
                                         $p[0]);
    cmp_ok($p[-1] - $p[0], '>', 5, sprintf 'they are spread: up to %.1f ms',
                                           $p[-1]);
}

# one that is tried for long, within its deadline of 5 s

my $t = clock_gettime(CLOCK_MONOTONIC);
my ($r) = pay('/long', 'alone_1');
my @p = @{ pauses()->{alone_1} };
$t = clock_gettime(CLOCK_MONOTONIC) - $t;

is($r->{status}, 503, 'one with nine tries');
cmp_ok($t, '<', 5.5, 'ends within its deadline');
cmp_ok(scalar @p, '>=', 6, 'after ' . @p . ' pauses');

my $is = 50;

for my $p (@p) {
    my $least = $is >= 1000 ? 978 : $is - 2;
    ok($p >= $least && $p < $is + 150, sprintf '%.0f ms for %d', $p, $is);
    $is = $is * 2 > 1000 ? 1000 : $is * 2;
}

my $retries = 16 * 2 + @p;
is($w->metric('backoff_retries_total', 'service="wallet"', 'svc="ledger"',
              'op="commit"'), $retries, "$retries retries are counted");

$w->quit;
done_testing();
