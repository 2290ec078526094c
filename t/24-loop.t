#!/usr/bin/perl

# The golden rule, watched: strace sees what the event loop of a worker calls
# while it serves every kind of request.  Nothing of it may wait for a disk, a
# lock or a clock: syncs and reads of the ledger belong to threads, which are
# not traced here.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use File::Temp qw(tempdir);
use POSIX ();


my $dir = tempdir('ron-loop-XXXXXX', TMPDIR => 1, CLEANUP => 1);

# Calls that may wait.  Mutexes are for t/00-lint.t: NGINX has one around the
# queue of its thread pool.

my $calls = 'fsync,fdatasync,sync_file_range,msync,flock,fcntl,nanosleep,'
            . 'clock_nanosleep,poll,ppoll,select,pselect6,wait4,'
            . 'pread64,preadv,pwrite64,open,openat,unlink,rename,connect,'
            . 'socket,sendfile,epoll_wait';

my $s = RonTest->new(workers => 1);
$s->start or BAIL_OUT('no server');
my ($worker) = $s->workers;


# what must be noticed is: a program that syncs, sleeps and locks

my $bad = watch([ 'perl', '-e', 'open my $f, ">", "' . $dir . '/x"; '
                 . 'flock $f, 2; select undef, undef, undef, 0.01;' ]);
plan skip_all => 'strace is not there or may not trace' if !@$bad;
ok(scalar(grep { /flock/ } waits(@$bad)), 'a lock is noticed');
ok(scalar(grep { /select/ } waits(@$bad)), 'a nap is noticed');


# the first requests of a worker: some things are done once, but the ledger is
# opened by a thread

my $seen = watch(undef, sub { traffic('cold') });
is(join("\n", grep { /ledger\.db|pread64|fcntl/ } @$seen), '',
   'the loop does not open the ledger');

# and one that has served a bit

$seen = watch(undef, sub { traffic($_) for 1 .. 20 });

cmp_ok(scalar(@$seen), '>', 0, 'the loop was watched');
is(join("\n", waits(@$seen)), '', 'and waited for nothing but events');

done_testing();


# Every kind of request, in both services.

sub traffic {
    my ($n) = @_;

    my $r = $s->post('/v1/issue', { to => "a$n", asset => 'ron',
                                    amount_minor => '100' }, key => "i$n");
    is($r->{status}, 200, 'issue') if $r->{status} != 200;
    my $seq = json_get($r->{body}, 'seq');

    $r = $s->post('/v1/transfer', { from => "a$n", to => 'b', asset => 'ron',
                                    amount_minor => '1', nonce => 1 },
                  key => "t$n");
    is($r->{status}, 200, 'transfer') if $r->{status} != 200;
    my $txid = json_get($r->{body}, 'txid');

    $r = $s->post('/ledger/ingest', { batch => [ {
        id => "e$n", ts => 1_700_000_000_000, kind => 'Mint', account => 'c',
        amount => '1', nonce => nonce16(), v => 1 } ] });
    is($r->{status}, 200, 'ingest') if $r->{status} != 200;

    for my $path ("/v1/balance?account=a$n&asset=ron", "/v1/tx/$txid",
                  "/ledger/entries?from=1&to=9", "/ledger/entries/$seq",
                  "/ledger/accounts/a$n", "/ledger/accounts/a$n/entries",
                  '/ledger/roots?since=0', '/ledger/checkpoint',
                  "/ledger/proof/inclusion?seq=$seq",
                  '/healthz', '/readyz', '/version', '/metrics')
    {
        $r = $s->get($path);
        ok(0, "$path: $r->{status}") if $r->{status} !~ /^(?:200|503)$/;
    }

    for my $body ('{', '{"to":"x"}') {
        $r = $s->post('/v1/issue', $body, key => 'x');
        is($r->{status}, 400, 'refused') if $r->{status} != 400;
    }
}


# What a command calls, or the worker while `code` runs.

sub watch {
    my ($command, $code) = @_;

    my $log = "$dir/strace.log";
    unlink $log;

    my $pid = fork // die "fork: $!";

    if ($pid == 0) {
        open STDERR, '>', '/dev/null';
        no warnings 'exec';
        exec 'strace', '-qq', '-y', '-o', $log, '-e', "trace=$calls",
             $command ? @$command : ('-p', $worker);
        POSIX::_exit(127);
    }

    if ($code) {
        until_ok(10, sub { -e $log }) or return [];
        select undef, undef, undef, 0.3;
        $code->();
        kill 'INT', $pid;
    }

    waitpid $pid, 0;

    open my $f, '<', $log or return [];
    chomp(my @lines = <$f>);

    return \@lines;
}


# Those of them that may wait for something other than an event.

sub waits {
    return grep {
        !/^epoll_wait\(/                       # the loop itself
        && !/^fcntl\(.*F_(?:GET|SET)F[DL]/
        && !/^---|^\+\+\+/
        && !/^open(?:at)?\(.*(?:\/proc\/|\/dev\/|\.so|ENOENT)/
    } @_;
}
