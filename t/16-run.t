#!/usr/bin/perl

# `make run` and its relatives: nothing to edit first.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use Cwd ();
use File::Temp ();
use POSIX ();


my $build = $ENV{RON_BUILD} || Cwd::abs_path('build');
my $dir = File::Temp::tempdir('ron-run-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $port = RonTest::free_port();

chmod 0755, $dir;

$ENV{BUILD} = $build;
$ENV{RON_DATA} = "$dir/data";
$ENV{RON_LISTEN} = "127.0.0.1:$port";
$ENV{RON_WORKERS} = 1;

my $s = bless { port => $port, dir => $dir }, 'RonTest';

# what is missing is installed first, and nothing is needed to stop

like(`make -n $_ BUILD='$build' 2>&1`, qr{tools/deps\.sh build}, "make $_ installs")
    for qw(run start);
like(`make -n stop`, qr/test 'stop' = stop \|\| tools/, 'make stop does not');

my $out = `tools/run.sh start 2>&1`;
is($?, 0, 'start') or diag($out);
like($out, qr{http://127\.0\.0\.1:$port}, 'says where');
my ($token) = $out =~ /RON_TOKEN=([\w-]+)/;
ok($token, 'gives a capability');
my @paste = $out =~ /^\s+(curl .*)$/mg;
is(scalar @paste, 3, 'and three lines to paste');

END { system('tools/run.sh stop >/dev/null 2>&1') if $s }

# the README has the same three, and what they answer

my $readme = RonTest::slurp('README.md');
my ($block) = $readme =~ /^export RON_TOKEN=\.\.\.\n\n(.*?)^```$/ms;
my @documented = map { s/\\\n\s*//gr } split /\n\n/, $block // '';
s/127\.0\.0\.1:8080/127.0.0.1:$port/ for @documented;
is_deeply([ map { s/\s+\z//r } @documented ], \@paste, 'those of the README');

my @said = map { `export RON_TOKEN=$token\n$_ 2>/dev/null` }
    map { "bash -c " . quoted($_) } @paste;
my ($receipt) = $readme =~ /^The second answers.*?^```\n(.*?)^```$/ms;
my @want = ($receipt // '') =~ /"(\w+)":/g;

like($said[0], qr/^\{"txid":"tx_\w{26}","op":"issue",/, 'pasted: money');
is_deeply([ $said[1] =~ /"(\w+)":/g ], \@want,
          'a transfer, with the receipt of the README') or diag($said[1]);
like($said[2], qr/"account":"alice".*"amount_minor":"990"/, 'and a balance');

$s->{token} = $token;

my $r = $s->post('/v1/issue', { to => 'alice', asset => 'ron',
                                amount_minor => '1000' }, key => 'a');
is($r->{status}, 200, 'which the server takes') or diag($r->{body});
is($s->get('/readyz')->{status}, 200, 'it is ready');

is((stat "$dir/data/ron.keys")[2] & 07777, 0600, 'the keys are secret');
like(RonTest::slurp("$dir/data/ron.keys"), qr/^dev [\w+\/=]{44}\n\z/,
     'their kid is dev');
is((stat "$dir/data/sock")[2] & 07777, 0750, 'the socket has a directory');
ok(-S "$dir/data/sock/ledger.sock", 'and is in it');

# lines are written together, a second later at most

my $line;
until_ok(10, sub {
    ($line) = reverse split /\n/,
                      RonTest::slurp("$dir/data/logs/access.log");
    return ($line // '') =~ /readyz/;
});
like($line, qr{"route":"/readyz"}, 'the access log has routes');
unlike(RonTest::slurp("$dir/data/logs/access.log"), qr/\?|alice/,
       'and no queries');

$out = `tools/run.sh start 2>&1`;
isnt($?, 0, 'a second start is refused');
like($out, qr/runs already/, 'and says why');

$out = `tools/run.sh stop 2>&1`;
is($?, 0, 'stop') or diag($out);
like(RonTest::slurp("$dir/data/logs/error.log"),
     qr/"event":"shutdown","drained":true/, 'drains');

$out = `tools/run.sh start 2>&1`;
is($?, 0, 'start again') or diag($out);
$r = $s->get('/v1/balance?account=alice&asset=ron');
like($r->{body}, qr/"amount_minor":"1990"/, 'all is there');
`tools/run.sh stop 2>&1`;


# in the foreground, with as many workers as there are cores

delete $ENV{RON_WORKERS};

my $pid = fork // die "fork: $!";

if ($pid == 0) {

    # whoever runs this in the background ignores it, and so would a shell

    $SIG{INT} = 'DEFAULT';
    setpgrp;
    open STDIN, '<', '/dev/null';
    open STDOUT, '>', "$dir/out";
    open STDERR, '>&', \*STDOUT;
    exec 'tools/run.sh', 'run';
}

ok(until_ok(20, sub {
    my $r = eval { $s->get('/readyz') };
    return $r && ($r->{status} // 0) == 200;
}), 'in the foreground') or diag(RonTest::slurp("$dir/out"));

chomp(my $cores = `nproc`);
chomp(my $master = RonTest::slurp("$dir/data/nginx.pid"));
is(scalar(() = `ps --ppid $master -o args=` =~ /nginx: worker process/g),
   $cores, 'a worker for each core');

my $before = -s "$dir/data/logs/error.log";

# a terminal's Ctrl-C reaches every process of the group

kill 'INT', -$pid;
ok(until_ok(15, sub { waitpid($pid, POSIX::WNOHANG()) == $pid }),
   'Ctrl-C ends it');
like(substr(RonTest::slurp("$dir/data/logs/error.log"), $before),
     qr/"event":"shutdown","drained":true,"aborted":0,.*"leaked":0/,
     'after a drain');
ok(!kill(0, $master), 'and its master has ended');
undef $s;

# a directory that the worker user cannot enter is refused before anything runs

SKIP: {
    skip 'only root has another user for its workers', 5 if $> != 0;

    my $locked = File::Temp::tempdir('ron-run-XXXXXX', TMPDIR => 1,
                                     CLEANUP => 1);
    local $ENV{RON_DATA} = "$locked/data";

    for my $verb (qw(start run)) {
        $out = `tools/run.sh $verb 2>&1`;
        isnt($?, 0, "$verb: data out of the workers' reach is refused");
        like($out, qr/^run:\ the\ worker\ user\ [\w-]+\ cannot\ enter
                      \ \Q$locked\E\/data:\ .*RON_DATA.*\(chmod\ o\+x\)$/mx,
             'with its path and what to do');
    }

    is(join(' ', grep { !-d } glob "$locked/data/*"), '', 'and nothing runs')
        or system('tools/run.sh stop >/dev/null 2>&1');
}


# what a tree has after `make run` and a verifier holds keys, and is no change

SKIP: {
    skip 'no repository', 3 if !-e '.git';

    for my $path (qw(build/x run/ron.keys node_modules/x)) {
        system("git -c safe.directory='*' check-ignore -q --no-index $path");
        is($? >> 8, 0, "$path is not committed by mistake");
    }
}

done_testing();


sub quoted { return "'" . $_[0] =~ s/'/'\\''/gr . "'" }
