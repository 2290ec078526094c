#!/usr/bin/perl

# What a thread of a worker reads when the worker is told to end is answered:
# a reload, a quit.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use POSIX ();


my $s = RonTest->new(workers => 1);
$s->start or BAIL_OUT('no server');
is($s->post('/v1/issue', { to => 'alice', asset => 'ron',
    amount_minor => '1' }, key => 'issue-1')->{status}, 200, 'an entry');
my $txid = json_get($s->post('/v1/issue', { to => 'alice', asset => 'ron',
    amount_minor => '1' }, key => 'issue-2')->{body}, 'txid');

# A thread's first task opens a reader, which takes a second.
sub delay_reads {
    my ($worker) = $s->workers;
    my $said = $s->dir . '/strace';

    unlink $said;
    my $pid = fork;
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        open STDERR, '>', $said;
        exec 'strace', '-f', '-p', $worker, '-o', '/dev/null',
             '-P', $s->dir . '/ledger/ledger.db', '-e', 'trace=openat',
             '-e', 'inject=openat:delay_enter=1000000'
            or POSIX::_exit(127);
    }

    ok(until_ok(10, sub { RonTest::slurp($said) =~ /attached/ }),
       'reading is slow') or diag(RonTest::slurp($said));

    return $pid;
}

for my $end ('reload', 'quit') {
    for my $path ('/ledger/entries/1', "/v1/tx/$txid?proof=1",
                  '/ledger/proof/inclusion?seq=1&size=2')
    {
        my $strace = delay_reads();
        my ($worker) = $s->workers;
        my $sock = $s->connect;

        $s->send_request($sock, 'GET', $path, undef);

        # it is in the thread when the worker has nothing else to do
        select undef, undef, undef, 0.3;

        if ($end eq 'reload') {
            ok($s->reload, "$path: reload");
        } else {
            kill 'QUIT', $s->{pid};
        }

        my $r = RonTest::read_response($sock, 'GET', 10);
        is($r->{status}, 200, "$path: answered at a $end")
            or diag($r->{body});
        kill 'TERM', $strace;
        waitpid $strace, 0;

        if ($end eq 'quit') {
            until_ok(10, sub { !RonTest::alive($s->{pid}) });
            $s->quit;
            $s->start or BAIL_OUT('no server');
        }
    }
}

$s->quit;
done_testing();
