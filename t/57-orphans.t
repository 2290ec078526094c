#!/usr/bin/perl

# The master is killed while a child of it begins: the child finds out that
# nobody is there, as those do that were there already, and nothing keeps the
# ledger's lock or the port.  RON_ORPHANS says how often of each (6).

use strict;
use warnings;

use lib 't/lib';
use RonTest;

my $times = $ENV{RON_ORPHANS} || ($ENV{RON_LIFE} ? 60 : 6);


# Processes that have the server's log open, whoever their parent is.

sub there {
    my ($s) = @_;

    my %there;

    for my $fd (glob '/proc/[0-9]*/fd/*') {
        my $path = readlink $fd;
        $there{($fd =~ m{(\d+)})[0]} = 1
            if defined $path && $path eq "$s->{dir}/logs/error.log";
    }

    my @pids = sort { $a <=> $b } keys %there;

    return @pids;
}

# The newest child, stopped before it has done much: it was not there when
# `kill` said so.

sub newborn {
    my ($s, $killed) = @_;

    my %old = map { $_ => 1 } $s->children;
    my $list = "/proc/$s->{pid}/task/$s->{pid}/children";
    my $end = Time::HiRes::time() + 5;

    kill 'KILL', $killed;

    while (Time::HiRes::time() < $end) {
        my ($pid) = grep { !$old{$_} } split ' ', RonTest::slurp($list);
        next unless $pid;
        kill 'STOP', $pid;
        return $pid;
    }

    return 0;
}

for my $case (
    [ 'a helper', sub { $_[0]->helper } ],
    [ 'a worker', sub { ($_[0]->workers)[0] } ],
    [ 'a worker without a ledger', sub { ($_[0]->workers)[0] },
      ledger => '', locations => 0, config => <<'END' ],
        location /v1/ { ron_wallet; ron_wallet_ledger_pass 127.0.0.1:1; }
        location = /healthz { ron_health live; }
END
) {
    my ($what, $of, @o) = @$case;
    my $caught = 0;

    for my $n (1 .. $times) {
        my $s = RonTest->new(workers => 1, @o);
        $s->allow(qr/./);
        $s->start or BAIL_OUT('no server');
        ok(until_ok(5, sub { $of->($s) }), "$n: there is $what");

        my $pid = newborn($s, $of->($s)) or BAIL_OUT('no child');

        # its title is the last that it sets before it runs

        $caught++ if $s->titled('master process')
                     && !(grep { $_ == $pid } $s->workers, $s->helper);
        $s->kill_master;
        kill 'CONT', $pid;

        ok(until_ok(10, sub { !there($s) }), "$n: $what that was begun ends")
            or do {
                my @left = there($s);
                diag(`ps -o pid,ppid,stat,args -p @{[join ',', @left]}`);
                kill 'KILL', @left;
            };
    }

    note("$what: $caught of $times caught early");
}

done_testing();
