#!/usr/bin/perl

# Logs go to the disk as they grow, and not all at once every few seconds, when
# commits would wait behind them (strace); one that was moved away, too.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

my $s = RonTest->new(workers => 1);
my $log = "$s->{dir}/logs/access.log";

$s->{config} = "access_log $log;\n"
    . "location = /long { return 200; }\n"
    . "location = /quiet { access_log $s->{dir}/logs/quiet.log; return 200; }";
$s->start or BAIL_OUT('no server');

my $trace = "$s->{dir}/trace";
my $helper = $s->helper;
my $pid = fork;

if ($pid == 0) {
    open STDERR, '>', "$trace.err";
    exec 'strace', '-y', '-e', 'trace=sync_file_range', '-o', $trace,
         '-p', $helper or POSIX::_exit(127);
}

ok(until_ok(10, sub { RonTest::slurp("/proc/$helper/status")
                      =~ /^TracerPid:\s+[1-9]/m }), 'the helper is watched');

# What is on its way of a log, in bytes.
sub begun {
    my ($name) = @_;

    my $n = 0;
    my $calls = RonTest::slurp($trace);

    $n += $1 while $calls
        =~ m{^sync_file_range\(\d+<\S*/\Q$name\E>,\ \d+,\ (\d+),
             \ SYNC_FILE_RANGE_WRITE\)\ =\ 0$}mgx;

    return $n;
}

sub requests {
    my ($path, $n) = @_;

    my $sock = $s->connect;
    my $bad = 0;

    for (1 .. $n) {
        print $sock "GET $path?" . 'x' x 4000 . " HTTP/1.1\r\nHost: x\r\n\r\n";
        $bad++ if RonTest::read_response($sock, 'GET')->{status} != 200;
    }

    is($bad, 0, "$n requests for $path");
}

# All of a log is on its way, but for its last piece.
sub goes_out {
    my ($before) = @_;

    my $size = -s $log;

    return begun('access.log') - $before > $size - 256 * 1024;
}

requests('/quiet', 30);                 # 120 kB
requests('/long', 300);                 # 1.2 MB

ok(until_ok(10, sub { goes_out(0) }), 'a log goes out as it grows')
    or diag(begun('access.log') . ' of ' . -s $log);
cmp_ok(begun('access.log'), '<=', -s $log, 'and no byte of it twice');
is(begun('quiet.log'), 0, 'a short one does not');

rename $log, "$log.1" or die "$log: $!";
kill 'USR1', $s->{pid};
ok(until_ok(10, sub { -e $log }), 'it is moved away');

my $old = begun('access.log');
requests('/long', 150);
ok(until_ok(10, sub { goes_out($old) }), 'what has its name goes out as well');

kill 'INT', $pid;
waitpid $pid, 0;
$s->quit;

done_testing();
