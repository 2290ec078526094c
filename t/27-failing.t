#!/usr/bin/perl

# A job that fails is a warning with its error, and the loop that had it goes
# on: in a worker, in the sequencer, in the history thread.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use IO::Socket::UNIX ();
use Socket qw(SOCK_STREAM);

my $s = RonTest->new(workers => 1);
$s->start or BAIL_OUT('no server');

my $key = 0;

sub pay {
    my ($name, %h) = @_;

    my $r = $s->post('/v1/issue', { to => 'a', asset => 'ron',
        amount_minor => '1' }, key => 'k' . ++$key, headers => \%h);
    return $name ? is($r->{status}, 200, $name) : $r->{status};
}

sub warned {
    my ($pattern) = @_;

    return scalar grep { /\[warn\] .*$pattern/ } split /\n/, $s->log;
}

pay('a payment');
is(warned('ron'), 0, 'no warning');
my ($worker) = $s->workers;
my $helper = $s->helper;


# worker: nobody answers in time

freeze($helper);
is(pay(undef, 'Request-Timeout' => 1), 503, 'an operation without an answer');
kill 'CONT', $helper;
is(warned('an operation is given up: no answer of the helper in \d+ tries'),
   1, 'is a warning with its error');
ok(until_ok(10, sub { pay(undef) == 200 }), 'the worker goes on');


# sequencer: what a peer sends is no frame

for my $n (1 .. 3) {
    my $sock = IO::Socket::UNIX->new(Type => SOCK_STREAM,
                                     Peer => $s->dir . '/ledger/ledger.sock')
        or BAIL_OUT("ledger.sock: $!");
    syswrite $sock, "GET / HTTP/1.1\r\nHost: ledger\r\n\r\n" x 4;

    # it says hello first, and who leaves without reading that takes back what
    # it sent

    my ($n_read, $ready) = (1);
    while ($n_read) {
        $ready = IO::Select->new($sock)->can_read(10) or last;
        $n_read = sysread $sock, my $hello, 4096;
    }
    ok($ready, 'no frame: closed');
    close $sock;
    ok(until_ok(10, sub {
        warned('a peer of the ledger\'s socket is closed, .*: malformed') == $n
    }), "warning $n, with its error") or diag($s->log);
    pay('the sequencer goes on');
}


# history: its database cannot be opened

# its thread runs when nothing else does, which on a busy machine takes a while

my $db = $s->dir . '/ledger/history.db';
ok(until_ok(120, sub { -e $db }), 'history has its file');
is($s->helper, $helper, 'all of that in one helper');
is(($s->workers)[0], $worker, 'and in one worker');
$s->quit;

unlink "$db-wal", "$db-shm";
rename $db, "$db.kept" or die "$db: $!";
mkdir $db or die "$db: $!";

$s->start or BAIL_OUT('no server');
ok(until_ok(120, sub { warned('history: ') == 1 }), 'no database: a warning')
    or diag($s->log);
pay('the ledger goes on');

rmdir $db or die "$db: $!";
ok(until_ok(120, sub { $s->log =~ /history: projecting again/ }),
   'history goes on') or diag($s->log);
ok(-f $db, 'with a database');
is(warned('history: '), 1, 'one warning in all');

$s->quit;

done_testing();
