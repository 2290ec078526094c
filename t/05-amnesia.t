#!/usr/bin/perl

# A ledger in memory leaves no trace: strace watches the whole life of one,
# and no system call of it creates, opens for writing, or renames anything.
# First the ledger by itself, then an NGINX that has one: there only the file
# of its pid is written, by NGINX and because the configuration says so.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use File::Find ();
use File::Temp qw(tempdir);
use POSIX ();

my $TRACED = '%file,bind,memfd_create,io_uring_setup,open_by_handle_at,'
             . 'ftruncate,fallocate';
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

server();

done_testing();


# ---- a server, from its start to its end ------------------------------------

sub server {
    my $s = RonTest->new(ledger => 'memory:64m', workers => 2);
    my $d = $s->dir;

    no warnings 'redefine';
    my $conf = \&RonTest::conf_text;
    local *RonTest::conf_text = sub {
        my $text = $conf->(@_);
        $text =~ s/^error_log .*$/error_log stderr info;/m or die;
        return "daemon off;\n$text";
    };
    $s->write_conf;

    # NGINX makes its directories, if they are not there

    my @owner = $> == 0 ? (getpwnam 'nobody')[2, 3] : ();

    for my $name (qw(body proxy fastcgi uwsgi scgi)) {
        mkdir "$d/$name", 0700 or die "$d/$name: $!";
        chown @owner, "$d/$name" if @owner;
    }

    my $log = "$dir/server.log";
    my @before = (@{ listing($d) }, 'nginx.pid', 'stderr');
    my $pid = fork();
    defined $pid or die "fork: $!";

    if ($pid == 0) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "$d/stderr";
        open STDERR, '>&', \*STDOUT;
        exec('strace', '-f', '-qq', '-s', '300', '-o', $log, '-e',
             "trace=$TRACED", $RonTest::NGINX, '-p', $d, '-c',
             "$d/nginx.conf", '-e', 'stderr') or POSIX::_exit(127);
    }

    ok(until_ok(20, sub {
        ($s->{pid}) = RonTest::slurp("$d/nginx.pid") =~ /(\d+)/;
    }), 'an nginx is traced');
    ok($s->wait_ready(20), 'and has a ledger in memory')
        or diag(RonTest::slurp("$d/stderr"));

    use_it($s, 'first');

    my %old = map { $_ => 1 } $s->workers;
    kill 'HUP', $s->{pid};
    ok(until_ok(20, sub {
        my @now = $s->workers;
        @now == 2 && !grep { $old{$_} } @now;
    }), 'a reload');
    use_it($s, 'second');

    my $helper = $s->kill_helper;
    ok(until_ok(20, sub { ($s->helper || $helper) != $helper }),
       'a helper that dies');
    ok($s->wait_ready(20), 'and another one');
    use_it($s, 'third');

    is(json_get($s->get('/v1/balance?account=first&asset=ron')->{body},
                'amount_minor'), 41, 'nothing was forgotten meanwhile');

    my @during = @{ listing($d) };
    $s->quit;
    waitpid $pid, 0;
    is($?, 0, 'it ended well') or diag(RonTest::slurp("$d/stderr"));
    is(join("\n", grep { !/process $helper exited on signal 9/ }
                  RonTest::slurp("$d/stderr") =~ /^.*\[(?:emerg|alert)\].*/mg),
       '', 'and without an alert');

    my @calls = whole(split /\n/, RonTest::slurp($log));
    my %pid = map { /^(\d+)/ ? ($1 => 1) : () } @calls;

    # a master, and twice two workers, three helpers: all were looked at

    cmp_ok(scalar keys %pid, '>=', 8, scalar(keys %pid) . ' were traced');

    my ($own, @left) = (0);

    for (traces(@calls)) {
        next if /^bind\(\d+, \{sa_family=AF_INET,/;
        next if m{^mkdir\("\Q$d\E/\w+", 0700\) += -1 EEXIST};
        if (m{^(?:openat|unlink)\(.*"\Q$d\E/nginx\.pid"}) { $own++; next }
        push @left, $_;
    }

    is(join("\n", @left), '', 'no file has heard of a payment');
    is($own, 2, 'that of the pid was made and removed');

    my %was = map { $_ => 1 } @before;
    is(join(' ', grep { !$was{$_} } @during, @{ listing($d) }), '',
       'nothing is there that was not');
}

# Payments, bodies that NGINX would put into a file, and many lines.
sub use_it {
    my ($s, $name) = @_;

    my $r = $s->post('/v1/issue', { to => $name, asset => 'ron',
        amount_minor => '42' }, key => "$name-issue");
    is($r->{status}, 200, "$name: money") or diag($r->{body});

    $r = $s->post('/v1/transfer', { from => $name, to => 'sink',
        asset => 'ron', amount_minor => '1', nonce => 1 },
        key => "$name-transfer");
    is($r->{status}, 200, "$name: a payment") or diag($r->{body});

    my $many = join ',', map { entry("$name-b$_") } 1 .. 4000;
    $r = $s->post('/ledger/ingest', qq({"batch":[$many]}), timeout => 60);
    cmp_ok(length $many, '>', 400_000, "$name: a long body");
    is($r->{status}, 200, 'is taken') or diag($r->{body});

    my $lines = join '', map { entry("$name-l$_") . "\n" } 1 .. 4000;
    $r = $s->post('/ledger/ingest', $lines, type => 'application/x-ndjson',
                  timeout => 60);
    is($r->{status}, 200, "$name: many lines");
    like($r->{body}, qr/"committed":[1-9]|"accepted":[1-9]/, 'are taken')
        or diag(substr $r->{body}, 0, 500);

    $r = $s->post('/v1/issue', 'x' x 2_000_000, key => "$name-huge");
    is($r->{status}, 413, "$name: too long a body");

    is($s->get($_)->{status}, 200, "$name: $_")
        for '/metrics', '/ledger/roots', '/ledger/entries?from=1';
}

sub entry {
    my ($id) = @_;

    return RonTest::json_put({ id => $id, ts => 1, kind => 'Mint', account => 'mint',
                      amount => '1', nonce => nonce16(), v => 1 });
}

sub listing {
    my ($top) = @_;

    my @names;

    File::Find::find({ no_chdir => 1, wanted => sub {
        push @names, substr $_, 1 + length $top if length > length $top;
    } }, $top);

    return \@names;
}


# ---- watching ---------------------------------------------------------------

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
             "trace=$TRACED", @command);
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


# Calls in one line each: strace breaks off those that another one overtakes.

sub whole {
    my (%begun, @whole);

    for (@_) {
        my ($pid) = /^(\d+)/ or next;

        if (/^(.*) <unfinished \.\.\.>$/) {
            $begun{$pid} = $1;
        } elsif (/^\d+ +<\.\.\. \w+ resumed>(.*)/) {
            push @whole, delete($begun{$pid}) . $1;
        } else {
            push @whole, $_;
        }
    }

    return (@whole, values %begun);
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
