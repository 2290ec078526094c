#!/usr/bin/perl

# A ledger in memory leaves no trace: strace watches the whole life of one,
# and no system call of it creates, opens for writing, or renames anything.

use strict;
use warnings;

use File::Temp qw(tempdir);
use Test::More;

my $build = $ENV{RON_BUILD} || 'build';
my $program = "$build/t/unit/store_test";

plan skip_all => "no $program" if !-x $program;

my $dir = tempdir('ron-amnesia-XXXXXX', TMPDIR => 1, CLEANUP => 1);

# What strace cannot do here it says of a program that does nothing.

my (undef, $status) = watch('true');

plan skip_all => 'strace is not there or may not trace' if $status != 0;

# The watch itself is watched first: each of these must be noticed.

my %loud = (
    'a new file'         => "open(my \$f, '>', '$dir/new')",
    'an append'          => "open(my \$f, '>>', '$dir/new')",
    'an update'          => "open(my \$f, '+<', '$dir/new')",
    'a directory'        => "mkdir('$dir/sub')",
    'a rename'           => "rename('$dir/new', '$dir/other')",
    'a link'             => "link('$dir/other', '$dir/link')",
    'a symbolic link'    => "symlink('$dir/other', '$dir/symlink')",
    'a removal'          => "unlink('$dir/other')",
    'a socket file'      => 'use Socket; '
                            . 'socket(my $s, AF_UNIX, SOCK_STREAM, 0); '
                            . "bind(\$s, pack_sockaddr_un('$dir/socket'))",
    'a child that writes' => "fork() or open(my \$f, '>', '$dir/child')",
);

for my $what ('a new file', 'an append', 'an update', 'a rename', 'a link',
              'a symbolic link', 'a removal', 'a directory', 'a socket file',
              'a child that writes')
{
    my ($calls) = watch('perl', '-e', $loud{$what});

    cmp_ok(scalar(traces(@$calls)), '>', 0, "$what is noticed");
}

# Reading, and writing to nowhere, are no traces.

my ($quiet) = watch('perl', '-e',
    "open(my \$f, '<', '/etc/passwd'); open(\$f, '>', '/dev/null')");

is(join("\n", traces(@$quiet)), '', 'reading is not noticed');

my ($calls, $rc, $out) = watch($program, 'amnesia');

is($rc, 0, 'a memory ledger lived and was reopened');
like($out, qr/^[1-9]\d{3,} entries$/m, 'it had thousands of entries');
is(join("\n", traces(@$calls)), '', 'and no file has heard of it');

my @names = map { /sun_path=(\@?"[^"]*")/ ? $1 : () } @$calls;

cmp_ok(scalar(@names), '>=', 2, 'its lock was taken');
is(scalar(grep { !/^\@"ron-ledger-[0-9a-f]{16}"$/ } @names), 0,
   'and is a name, not a file');

done_testing();


# Runs a program under strace: its calls that name something, and its end.

sub watch {
    my @command = @_;
    my $log = "$dir/strace.log";

    unlink($log);

    my $pid = open(my $pipe, '-|');
    defined $pid or die "fork: $!";

    if ($pid == 0) {
        open(STDERR, '>', '/dev/null');
        alarm(120);
        exec('strace', '-f', '-qq', '-s', '300', '-o', $log, '-e',
             'trace=%file,bind,memfd_create,io_uring_setup,'
             . 'open_by_handle_at,ftruncate,fallocate', @command);
        exit(127);
    }

    my $out = join('', <$pipe>);
    close($pipe);

    my ($rc, @calls) = ($?);

    if (open(my $f, '<', $log)) {
        @calls = <$f>;
        chomp @calls;
    }

    return (\@calls, $rc, $out);
}


# The calls that leave something behind, or could.

sub traces {
    my @found;

    for (@_) {
        s/^\d+\s+//;

        next if !/^(\w+)\(/;
        my $call = $1;

        next if $call =~ /^(?:execve|access|faccessat2?|readlink(?:at)?
                            |stat|lstat|fstat|newfstatat|statx|statfs|getcwd
                            |chdir)$/x;

        next if $call =~ /^open(?:at)?$/
                && (!/O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_TMPFILE/
                    || m{"/dev/(?:null|tty)"});

        next if $call eq 'bind' && /sun_path=\@"/;

        push @found, $_;
    }

    return @found;
}
