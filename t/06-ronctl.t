#!/usr/bin/perl

# ronctl as a new user tries it: every command, its answers, its exit codes;
# and a ledger that somebody has been at.

use strict;
use warnings;

use lib 't/lib';
use RonCompile;

use File::Temp qw(tempdir);
use JSON::PP qw(decode_json);
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep);

my $build = $ENV{RON_BUILD} || 'build';
my $ronctl = "$build/ronctl";
my $maker = "$build/t/unit/snapshot_test";

plan skip_all => "no $ronctl" if !-x $ronctl;
plan skip_all => "no $maker" if !-x $maker;

my $dir = tempdir('ron-ctl-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my ($out, $err, $rc);

# ---- help ------------------------------------------------------------------

ctl();
is($rc, 2, 'alone it shows help and fails');
like($out, qr/^usage: ronctl <command>/m, 'usage');

ctl('--help');
is($rc, 0, '--help');

my @commands = $out =~ /^  ((?!ronctl)[a-z]+(?: [a-z-]+)*)  /mg;

cmp_ok(scalar @commands, '>=', 25, 'all commands are listed');

for my $command (@commands) {
    ctl((split / /, $command), '--help');
    is($rc, 0, "$command --help");
    like($out, qr/^usage: ronctl \Q$command\E(?: \S|$)/m,
         'begins with its usage');
    like($out, qr/^example: .*ronctl \Q$command\E/m, 'has an example');
    unlike($out, qr/.{81}/, 'in 80 columns');

    my $said = $out;
    ctl('help', split / /, $command);
    is("$rc $out", "0 $said", "the same as help $command");
}

for my $group ('ledger', 'ledger proof', 'token', 'keys') {
    ctl((split / /, $group), '--help');
    is($rc, 0, "$group --help");
    is(scalar(() = $out =~ /^  \Q$group\E [a-z]/mg),
       scalar(grep { /^\Q$group\E / } @commands), 'lists its commands');
    unlike($out, qr/^  (?!\Q$group\E |--json|ronctl help)\S/m, 'and no others');
}

ctl('help', 'verfy');
is($rc, 2, 'help for a typing error');
like($err, qr/^ronctl: there is no command "verfy"/, 'says so');

ctl('--version');
like($out, qr/^ronctl \d+\.\d+\.\d+$/, '--version');

ctl('ledger', 'verfy', $dir);
is($rc, 2, 'a typing error');
like($err, qr/did you mean "ronctl ledger verify"\?/, 'is understood');

ctl('verify', $dir);
like($err, qr/did you mean "ronctl ledger verify"\?/, 'half a command too');

ctl('ledger');
is($rc, 2, 'a group alone');
like($out, qr/^  ledger verify /m, 'lists its commands');

for my $wrong ([ 'ledger', 'verify' ], [ 'ledger', 'verify', 'a', 'b' ],
               [ 'ledger', 'verify', '--frm', '1', 'a' ],
               [ 'ledger', 'verify', 'a', '--from' ],
               [ 'ledger', 'verify', 'a', '--from', 'x' ],
               [ 'ledger', 'verify', 'a', '--from=-1' ],
               [ 'ledger', 'verify', 'a', '--no-replay=1' ],
               [ 'ledger', 'bench', '--rounds', '16' ],
               [ 'ledger', 'bench', 'a' ], [ 'completion', 'zsh' ])
{
    ctl(@$wrong);
    is($rc, 2, "refused: @$wrong");
    like($err, qr/^ronctl: /, 'with a message');
}

ctl('completion', 'bash');
is($rc, 0, 'completion');
spew("$dir/completion", $out);

is(completed('ledger', 'ver'), 'verify', 'completes a command');
is(completed('ledger', 'verify', '--no'), '--no-replay', 'and an option');
like(completed(''), qr/\bledger\b.*\btoken\b|\btoken\b.*\bledger\b/,
     'and knows the groups');

# ---- keys and tokens -------------------------------------------------------

ctl('keys', 'new', "$dir/ron.keys");
is($rc, 0, 'keys new');
is((stat "$dir/ron.keys")[2] & 07777, 0600, 'is for its owner only');
like(slurp("$dir/ron.keys"), qr{^dev [A-Za-z0-9+/]{43}=\n\z}, 'one key, dev');

my $old = slurp("$dir/ron.keys");

ctl('keys', 'new', "$dir/ron.keys");
is($rc, 3, 'an existing file is left alone');
is(slurp("$dir/ron.keys"), $old, 'to the byte');

ctl('token', 'mint', '--keys', "$dir/ron.keys", '--svc', 'wallet', '--act',
    'read transfer', '--account', 'acc_a', '--before', '1h', '--id', 'x1');
is($rc, 0, 'token mint');

my $token = $out;

chomp $token;
ctl('token', 'show', $token, '--keys', "$dir/ron.keys");
is($rc, 0, 'token show');
like($out, qr/^valid\s+yes$/m, 'says that it is valid');
like($out, qr/^caveat\s+act = read transfer$/m, 'and what it allows');

ctl('keys', 'rotate', "$dir/ron.keys", 'k2');
is($rc, 0, 'keys rotate');
is((stat "$dir/ron.keys")[2] & 07777, 0600, 'keeps the mode');
like(slurp("$dir/ron.keys"), qr/^k2 .*\n\Q$old\E\z/, 'new key in front');

ctl('token', 'show', $token, '--keys', "$dir/ron.keys");
is($rc, 0, 'the token goes on working');

ctl('token', 'attenuate', $token, '--max-amount', '100');
is($rc, 0, 'token attenuate');
my $weaker = $out;
chomp $weaker;
isnt($weaker, $token, 'is another token');
ctl({ in => "$weaker\n" }, 'token', 'show', '--keys', "$dir/ron.keys",
    '--json');
my $shown = decode_json($out);
ok($shown->{valid}, 'which is valid');
is($shown->{caveats}[-1], 'max_amount = 100', 'and weaker');

ctl('keys', 'rotate', "$dir/ron.keys", 'k3');
ctl('token', 'show', $token, '--keys', "$dir/ron.keys");
is($rc, 1, 'two rotations later it does not');
like($out, qr/^valid\s+unknown key$/m, 'and says why');
ctl('keys', 'rotate', "$dir/ron.keys", 'k3');
is($rc, 1, 'a name is not used twice');
ctl('keys', 'list', "$dir/ron.keys");
is($out, "k3  (mints)\nk2  (verifies)\n", 'keys list');

for my $bad ([ '--max-amount', '1.5' ], [ '--before', 'soon' ],
             [ '--ip', 'here' ], [ '--caveat', 'colour = red' ],
             [ '--svc', 'nothing' ])
{
    ctl('token', 'mint', '--keys', "$dir/ron.keys", @$bad);
    is($rc, 2, "no caveat: @$bad");
}

ctl('token', 'mint', '--keys', "$dir/ron.keys", '--act', 'raed');
like($err, qr/"raed" is no act/, 'a strange act is pointed out');

ctl('keys', 'signing', 'ledger.example', '--out', "$dir/sign.key");
is($rc, 0, 'keys signing');
my $public = $out;
chomp $public;
like($public, qr{^ledger\.example\+[0-9a-f]{8}\+[A-Za-z0-9+/=]+$},
     'prints a verifier key');
like(slurp("$dir/sign.key"), qr/^PRIVATE\+KEY\+ledger\.example\+/, 'the file');
is((stat "$dir/sign.key")[2] & 07777, 0600, 'is for its owner only');
ctl('keys', 'public', "$dir/sign.key");
is($out, "$public\n", 'keys public');
spew("$dir/sign.pub", "$public\n");

# ---- a ledger --------------------------------------------------------------

my $ledger = "$dir/ledger";

is(system($maker, 'make', $ledger, 60, "$dir/sign.key"), 0, 'a ledger');
is(system($maker, 'make', $ledger, 60, "$dir/sign.key"), 0, 'grown');

ctl('ledger', 'info', $ledger, '--json');
is($rc, 0, 'info');
my $info = decode_json($out);
is($info->{ledger_id}, 77, 'its id');
cmp_ok($info->{seq}, '>', 2000, 'its height');
is($info->{epoch}, 2, 'its epoch');

ctl('ledger', 'verify', $ledger);
is($rc, 0, 'verify') or diag($out, $err);
like($out, qr/^OK$/m, 'says OK');
like($out, qr/^  root       $info->{root}$/m, 'and the root');
like($out, qr{^  took .* entries/s$}m, 'and how fast it was');
unlike($err, qr/\e/, 'no progress where there is no terminal');

ctl('ledger', 'verify', "sqlite:$ledger", '--json', '--public-key', $public);
my $report = decode_json($out);
ok($report->{ok} && $report->{replayed} && $report->{published_verified},
   'as JSON, by the url, with the signature');
is($report->{seq}, $info->{seq}, 'all of it');

ctl('ledger', 'verify', $ledger, '--from', $info->{seq} - 100, '--json');
cmp_ok(decode_json($out)->{from}, '>', 1, 'from the middle');

my $drawn = `script -qec "$ronctl ledger verify $ledger" /dev/null 2>/dev/null`;
like($drawn, qr/OK/, 'verify on a terminal');

ctl('ledger', 'verify', "$dir/nothing");
is($rc, 3, 'no ledger');
like($err, qr/no such directory/, 'is said');
mkdir "$dir/empty", 0700;
ctl('ledger', 'verify', "$dir/empty", '--json');
is($rc, 3, 'an empty directory');
ok(!decode_json($out)->{ok}, 'as JSON too');

ctl('ledger', 'entries', $ledger);
is(scalar(() = $out =~ /\n/g), 21, 'entries: the newest 20 and a headline');
ctl('ledger', 'entries', $ledger, '--from', 5, '--to', 9, '--json');
is_deeply([ map { decode_json($_)->{seq} } split /\n/, $out ], [ 5 .. 9 ],
          'a range');
ctl('ledger', 'entries', $ledger, '--account', 'acc_03', '--json');
my @all = map { decode_json($_) } split /\n/, $out;
cmp_ok(scalar @all, '>', 100, 'an account');
is(scalar(grep { $_->{account} ne 'acc_03' && ($_->{to} // '') ne 'acc_03' }
              @all), 0, 'and nobody else');

# ---- proofs ----------------------------------------------------------------

ctl('ledger', 'proof', 'inclusion', $ledger, 42, '--size', 1000);
is($rc, 0, 'proof inclusion');
my $proof = decode_json($out);
is_deeply([ sort keys %$proof ], [ qw(leaf path root seq size) ],
          'has what the contract says');
spew("$dir/proof", $out);
ctl('ledger', 'proof', 'verify', "$dir/proof");
is($rc, 0, 'and verifies');

for my $member (qw(leaf root)) {
    my %bad = (%$proof, $member => 'ab' x 32);
    ctl({ in => JSON::PP->new->encode(\%bad) }, 'ledger', 'proof', 'verify',
        '-');
    is($rc, 1, "not with another $member");
}

ctl({ in => JSON::PP->new->encode({ %$proof, seq => 43 }) }, 'ledger',
    'proof', 'verify', '-');
is($rc, 1, 'not for another seq');

# The head of the ledger is a signed note behind the page's 28 bytes.

my $head = substr(slurp("$ledger/head"), 28);
$head =~ s/\0+\z//;
spew("$dir/checkpoint", $head);

ctl('ledger', 'proof', 'inclusion', $ledger, 42);
spew("$dir/proof", $out);
ctl('ledger', 'proof', 'verify', "$dir/proof", '--checkpoint',
    "$dir/checkpoint", '--public-key', "$dir/sign.pub");
is($rc, 0, 'a proof, a checkpoint and a key are enough');
like($out, qr/whose root is signed by that key/, 'to be sure');
ctl('keys', 'signing', 'ledger.example', '--out', "$dir/other.key");
ctl('ledger', 'proof', 'verify', "$dir/proof", '--checkpoint',
    "$dir/checkpoint", '--public-key', (split /\n/, $out)[0]);
is($rc, 1, 'another key is not');

ctl('ledger', 'proof', 'consistency', $ledger, 100, 2000);
is($rc, 0, 'proof consistency');
$proof = decode_json($out);
is_deeply([ sort keys %$proof ], [ qw(from from_root path to to_root) ],
          'has what the contract says');
ctl({ in => $out }, 'ledger', 'proof', 'verify', '-');
is($rc, 0, 'and verifies');
ctl('ledger', 'proof', 'inclusion', $ledger, 999999);
is($rc, 2, 'no proof of what is not there');

# ---- export and import -----------------------------------------------------

ctl('ledger', 'export', $ledger, '--out', "$dir/export");
is($rc, 0, 'export');
my @lines = split /\n/, slurp("$dir/export");
ok(exists decode_json($lines[0])->{ron_export}, 'a header');
is(decode_json($lines[-1])->{end}{root}, $info->{root}, 'and an end');
ctl('ledger', 'export', $ledger, '--out', "$dir/export");
is($rc, 3, 'never over a file');

ctl({ from => "$dir/export" }, 'ledger', 'import', "$dir/imported");
is($rc, 0, 'import') or diag($err);
ctl('ledger', 'verify', "$dir/imported", '--json');
is(decode_json($out)->{root}, $info->{root}, 'gives the same root');
ctl('ledger', 'info', "$dir/imported", '--json');
is(decode_json($out)->{ledger_id}, 77, 'and the same ledger');
ctl('ledger', 'import', "$dir/imported", "$dir/export");
is($rc, 3, 'never over a ledger');

spew("$dir/short", join("\n", @lines[0 .. $#lines - 1]) . "\n");
ctl('ledger', 'import', "$dir/short-ledger", "$dir/short");
is($rc, 1, 'a text that is not whole');
like($err, qr/not whole/, 'is called so');
ok(!-e "$dir/short-ledger", 'and leaves nothing');
is(scalar(glob "$dir/*.part*"), undef, 'anywhere');

# ---- snapshot and restore --------------------------------------------------

ctl('ledger', 'snapshot', $ledger, "$dir/snap");
is($rc, 2, 'a snapshot without a key');
ctl('ledger', 'snapshot', $ledger, "$dir/snap", '--key', "$dir/sign.key");
is($rc, 0, 'a snapshot') or diag($err);
ctl('ledger', 'verify', "$dir/snap");
is($rc, 0, 'is a ledger that verifies');
is(system($maker, 'make', $ledger, 10, "$dir/sign.key"), 0, 'more came');
ctl('ledger', 'snapshot', $ledger, "$dir/snap", '--key', "$dir/sign.key",
    '--json');
is(decode_json($out)->{first}, $info->{seq} + 1, 'only that is copied');

ctl('ledger', 'restore', "$dir/snap", "$dir/restored", '--public-key',
    "$dir/sign.pub");
is($rc, 0, 'restored') or diag($err);
is(system($maker, 'make', "$dir/restored", 5), 0, 'and written again');
ctl('ledger', 'verify', "$dir/restored");
is($rc, 0, 'and good');
ctl('ledger', 'restore', "$dir/snap", "$dir/restored", '--public-key',
    "$dir/sign.pub");
is($rc, 3, 'never over a ledger');

sqlite("$dir/snap", 'DROP TRIGGER journal_update; UPDATE journal SET '
       . 'time_ms = time_ms + 1 WHERE seq = 49');
ctl('ledger', 'restore', "$dir/snap", "$dir/no", '--public-key',
    "$dir/sign.pub");
is($rc, 1, 'a snapshot that somebody has been at');
like($err, qr/commit at seq 49 is not good/, 'is refused with the place');
ok(!-e "$dir/no", 'and leaves nothing');

# ---- tampering -------------------------------------------------------------

my ($first, $count) = split /\|/,
    sqlite($ledger, 'SELECT seq, count FROM journal LIMIT 1 OFFSET 40');
my $last = $first + $count - 1;

for my $column (qw(count epoch time_ms prev_root root chain body)) {
    my $value = $column =~ /count|epoch|time/ ? "$column + 1"
        : "CAST(substr($column, 1, length($column) - 1) || x'7e' AS BLOB)";

    tampered("DROP TRIGGER journal_update; UPDATE journal SET $column = "
             . "$value WHERE seq = $first");
    is($rc, 1, "$column was edited");
    my $said = decode_json($out);
    is($said->{bad_seq}, $first, 'located to its commit');
    is($said->{what}, $column, 'and its column');
}

tampered("DROP TRIGGER journal_update; UPDATE journal SET time_ms = time_ms "
         . "+ 1 WHERE seq = $first");
ctl('ledger', 'verify', "$dir/t");
like($out, qr/^DAMAGED\n  commit     seq $first to $last$/m,
     'the commit is named for people too');
like($out, qr/^  good       up to seq @{[ $first - 1 ]}$/m,
     'and what is good');
ctl('ledger', 'export', "$dir/t", '--out', "$dir/t.export");
is($rc, 1, 'it is not exported');
ok(!-e "$dir/t.export", 'not in part either');

tampered("DROP TRIGGER journal_delete; DELETE FROM journal WHERE seq = "
         . $first);
is(decode_json($out)->{what}, 'missing', 'a commit is missing');

tampered('DROP TRIGGER journal_delete; DELETE FROM journal WHERE seq = '
         . '(SELECT max(seq) FROM journal)');
is($rc, 1, 'the last commit was cut off');
like(decode_json($out)->{why}, qr/has been cut/, 'and it is said');

tampered("UPDATE checkpoint SET body = CAST(substr(body, 1, length(body) - 1)"
         . " || x'7e' AS BLOB)");
is($rc, 1, 'checkpoints were edited');
is(decode_json($out)->{what}, 'checkpoint', 'and it is said');

# A WAL that was removed while the ledger was alive.

ok(alive(sub {
    system("rm -rf $dir/t; cp -a $ledger $dir/t; rm -f $dir/t/ledger.db-*");
}), 'copied without its WAL');
ctl('ledger', 'verify', "$dir/t", '--json');
is($rc, 1, 'is noticed');
ok(!decode_json($out)->{ok}, 'by the published head, or by what is torn');

# ---- a ledger that is alive ------------------------------------------------

my $live = 0;

ok(alive(sub {
    for (1 .. 5) {
        ctl('ledger', 'verify', $ledger, '--json');
        $live += $rc == 0;
        diag($out, $err) if $rc;
        ctl('ledger', 'snapshot', $ledger, "$dir/live", '--key',
            "$dir/sign.key");
        $live += $rc == 0;
        diag($err) if $rc;
    }

    ctl('ledger', 'clear-mark', $ledger);
    is($rc, 0, 'no mark, nothing to clear');
    ctl('ledger', 'reindex', $ledger, '--tags');
    is($rc, 4, 'what needs the lock says who has it');
}), 'somebody writes meanwhile');
is($live, 10, 'verify and snapshot of a ledger that is being written');

# ---- safe mode, history, tags ----------------------------------------------

ctl('ledger', 'mark', $ledger);
is($rc, 0, 'no mark');
mark($ledger, 'fsync failed');
ctl('ledger', 'mark', $ledger);
is($rc, 1, 'a mark');
is($out, "fsync failed\n", 'and its reason');
ctl('ledger', 'info', $ledger);
like($out, qr/^safe mode  fsync failed$/m, 'info shows it');

system("rm -rf $dir/t; cp -a $ledger $dir/t");
sqlite("$dir/t", "DROP TRIGGER journal_update; UPDATE journal SET time_ms = "
       . "time_ms + 1 WHERE seq = $first");
ctl('ledger', 'clear-mark', "$dir/t");
is($rc, 1, 'it stays where verify fails');
like($err, qr/the mark stays/, 'and says so');

ctl('ledger', 'clear-mark', $ledger);
is($rc, 0, 'cleared after a clean verify') or diag($err);
ctl('ledger', 'mark', $ledger);
is($rc, 0, 'gone');

ctl('ledger', 'reindex', $ledger);
is($rc, 0, 'reindex') or diag($err);
is(sqlite($ledger, 'SELECT count(*) = max(seq) FROM entries', 'history.db'),
   1, 'history has every entry');

# One whose height is the same in every run: no tile, tag or checkpoint
# happens to end with what is cut.

ctl('ledger', 'reindex', "$dir/imported");
is($rc, 0, 'another one');
system("rm -rf $dir/t; cp -a $dir/imported $dir/t");
sqlite("$dir/t", 'DROP TRIGGER journal_delete; DELETE FROM journal WHERE seq '
       . '= (SELECT max(seq) FROM journal)');
ctl('ledger', 'verify', "$dir/t", '--json');
is(decode_json($out)->{what}, 'history', 'a cut that history tells');
ctl('ledger', 'reindex', "$dir/t");
is($rc, 1, 'that witness is not thrown away');
ctl('ledger', 'reindex', "$dir/t", '--force');
is($rc, 0, 'unless forced');

ctl('ledger', 'reindex', $ledger, '--tags', '--json');
is($rc, 0, 'reindex --tags');
is(system($maker, 'make', $ledger, 5, "$dir/sign.key"), 0,
   'and a writer goes on');
ctl('ledger', 'verify', $ledger);
is($rc, 0, 'good to the end') or diag($out, $err);

# ---- bench, interrupts -----------------------------------------------------

ctl('ledger', 'bench', '--dir', $dir, '--entries', 2000, '--rounds', 1,
    '--accounts', 100, '--json');
is($rc, 0, 'bench') or diag($err);
ok(decode_json($out)->{ledger_per_s}, 'gives a figure');

my $pid = open(my $pipe, '-|', "exec $ronctl ledger import $dir/int "
               . "<$dir/fifo 2>&1; echo") if system("mkfifo $dir/fifo") == 0;
open(my $fifo, '>', "$dir/fifo") or die;
print $fifo join("\n", @lines[0 .. 50]), "\n";
$fifo->flush;
sleep 0.3;
kill 'INT', $pid;
close $fifo;
like(join('', <$pipe>), qr/interrupted/, 'an interrupt ends it');
close $pipe;
is($? >> 8, 130, 'with its exit code');
is(scalar(() = glob "$dir/int*"), 0, 'and leaves nothing');

# ---- top, beside a server ---------------------------------------------------

for my $wrong ([ '--interval', '50ms' ], [ '--interval', 'soon' ],
               [ '--url', 'https://127.0.0.1' ], [ 'more' ])
{
    ctl('top', @$wrong, '--once');
    is($rc, 2, "top @$wrong: refused");
}

ctl('top', '--url', 'http://127.0.0.1:1', '--once');
is($rc, 3, 'top without a server');
like($err, qr{^ronctl: http://127\.0\.0\.1:1: Connection refused$}, 'says why');

SKIP: {
    skip 'no module', 1 if !-e "$build/ngx_ron_module.so";
    top_tests();
}

done_testing();

sub top_tests {
    require RonTest;

    my $s = RonTest->new(config => 'location = /not/metrics { return 404; }');
    $s->start or BAIL_OUT('no server');

    my $url = 'http://127.0.0.1:' . $s->port;

    # somebody pays and is refused until there is a file

    my $payer = fork // die "fork: $!";

    if ($payer == 0) {
        for (my $n = 1; !-e "$dir/paid"; $n++) {
            $s->post('/v1/issue', { to => 'a', asset => 'ron',
                     amount_minor => '1' }, key => "top-$n");
            $s->post('/v1/issue', { to => 'a' }, key => "bad-$n");
        }
        POSIX::_exit(0);
    }

    RonTest::until_ok(20, sub { ($s->metric('ledger_seq') || 0) > 10 })
        or BAIL_OUT('nobody pays');

    ctl('top', '--url', $url, '--once', '--json');
    is($rc, 0, 'top') or diag($err);
    my $top = decode_json($out);

    is(join(' ', sort keys %$top), join(' ', sort qw(ok ts_ms interval_ms
       state ready seq payments_per_s commits_per_s entries_per_s
       entries_per_commit committer_lag_us history_lag backlog sample_age_us
       commit_p50_us commit_p99_us wallet_p50_us wallet_p99_us queues refusals
       restarts)), 'its members');
    is("$top->{state} $top->{ready}", 'running 1', 'the state');
    cmp_ok($top->{$_}, '>', 0, $_) for qw(seq payments_per_s commits_per_s
        entries_per_s entries_per_commit commit_p50_us wallet_p50_us);
    cmp_ok($top->{"${_}_p99_us"}, '>=', $top->{"${_}_p50_us"}, "p99 of $_")
        for qw(commit wallet);
    cmp_ok($top->{interval_ms}, '>=', 950, 'of an interval');

    my %queue = map { ("$_->{service} $_->{queue}" => $_) }
                @{ $top->{queues} };
    is($queue{"ledger $_->[0]"}{capacity}, $_->[1], "queue $_->[0]")
        for [ ingress => 2000 ], [ preval => 2000 ], [ commit => 1000 ];
    is($queue{'wallet work'}{capacity}, 512, 'queue work');
    ok(defined $queue{'ledger commit'}{depth}, 'and how full they are');

    my ($bad) = grep { "$_->{service} $_->{reason}" eq 'wallet bad_request' }
                @{ $top->{refusals} };
    cmp_ok($bad->{total}, '>', 0, 'refusals by reason');
    cmp_ok($bad->{per_s}, '>', 0, 'and a second');
    is(top_restarts($top), 0, 'no helper died');

    $s->kill_helper;
    RonTest::until_ok(10, sub {
        ctl('top', '--url', $url, '--once', '--json', '--interval', '100ms');
        $rc == 0 && top_restarts(decode_json($out)) == 1;
    });
    is(top_restarts(decode_json($out)), 1, 'one died');

    ctl('top', '--url', $url, '--once');
    like($out, qr/^\d\d:\d\d:\d\d  \Q$url\E  running, ready\n/, 'for people');
    like($out, qr/^payments\/s +\d[\d ]*    commits\/s +\d/m, 'rates');
    like($out, qr/^commit +[\d.]+ [mu]s +[\d.]+ [mu]s$/m, 'latencies');
    like($out, qr/^ledger commit +\d+ +1 000$/m, 'queues');
    like($out, qr/^wallet bad_request +\d[\d ]* +\d[\d ]*$/m, 'refusals');
    like($out, qr/^restarts:.* ledger helper 1\b/m, 'restarts');
    unlike($out, qr/\e/, 'and nothing for a terminal');
    unlike($out, qr/.{81}/, 'in 80 columns');

    top_on_a_terminal($url);

    # it goes on, and so it does when the server does not

    spew("$dir/paid", '');
    waitpid $payer, 0;

    my $pid = top_begin('--url', $url, '--interval', '100ms');
    RonTest::until_ok(10, sub { (() = RonTest::slurp("$dir/.top") =~ /^restarts/mg) > 2 });
    like(RonTest::slurp("$dir/.top"), qr/^payments\/s +0 /m, 'nobody pays');
    is(kill(0, $pid), 1, 'it goes on');
    $s->quit;
    ok(RonTest::until_ok(10, sub { RonTest::slurp("$dir/.top") =~ /: no answer: / }),
       'without a server, too');
    kill 'INT', $pid;
    waitpid $pid, 0;
    is($? >> 8, 130, 'until it is interrupted');

    my $other = RonTest->new(ledger => '', locations => 0, nokeys => 1);
    $other->start;
    ctl('top', '--url', 'http://127.0.0.1:' . $other->port, '--once');
    is($rc, 3, 'a server that has no metrics');
    like($err, qr/is 404: is there a location with ron_metrics\?/, 'says so');
    $other->quit;
}

sub top_restarts {
    my ($top) = @_;

    my ($n) = map { $_->{total} } grep { "$_->{service} $_->{task}"
                                         eq 'ledger helper' }
              @{ $top->{restarts} };

    return $n;
}

sub top_begin {
    my (@args) = @_;

    my $pid = fork // die "fork: $!";

    if ($pid == 0) {
        open(STDIN, '<', '/dev/null') or die;
        open(STDOUT, '>', "$dir/.top") or die;
        exec { $ronctl } $ronctl, 'top', @args or POSIX::_exit(127);
    }

    return $pid;
}

# script(1) has a terminal for it; it draws three times and is told to end.

sub top_on_a_terminal {
    my ($url) = @_;

    my $top = "$ronctl top --url $url --interval 200ms";
    my $end = 'echo "rc $?"; stty -a | tr " " "\n" | grep -E "^-?(echo|icanon);?\$"';

    my $said = `(sleep 1.5; printf q; sleep 0.5) \\
                | TERM=xterm script -qec '$top; $end' '$dir/typescript' 2>&1`;

    like($said, qr/\A\e\[\?1049h\e\[\?25l\e\[H\d\d:/, 'on a terminal: its screen');
    cmp_ok(scalar(() = $said =~ /\e\[H/g), '>=', 3, 'is drawn again and again');
    like($said, qr/\e\[\?25h\e\[\?1049lrc 0\r\n/, 'until q, and given back');
    is(join(' ', $said =~ /^(-?(?:echo|icanon));?\r$/mg), 'icanon echo',
       'as is the keyboard');
    unlike($said =~ s/\e\[\??\d*[A-Za-z]//gr, qr/\e/, 'plain ANSI');
}


sub ctl {
    my (@args) = @_;
    my %how = ref $args[0] ? %{ shift @args } : ();

    spew("$dir/.in", $how{in} // '');

    my $pid = fork // die "fork: $!";

    if ($pid == 0) {
        open(STDIN, '<', $how{from} // "$dir/.in") or die;
        open(STDOUT, '>', "$dir/.out") or die;
        open(STDERR, '>', "$dir/.err") or die;
        exec { $ronctl } $ronctl, @args or die "$ronctl: $!";
    }

    waitpid($pid, 0);
    $rc = $? & 127 ? -($? & 127) : $? >> 8;
    ($out, $err) = (slurp("$dir/.out"), slurp("$dir/.err"));

    return $rc;
}


# A copy of the ledger, edited by SQL, then verified.

sub tampered {
    my ($sql) = @_;

    system("rm -rf $dir/t; cp -a $ledger $dir/t");
    sqlite("$dir/t", $sql);

    return ctl('ledger', 'verify', "$dir/t", '--json');
}


sub sqlite {
    my ($where, $sql, $name) = @_;

    $name //= 'ledger.db';
    spew("$dir/.sql", "$sql;\n");

    my $text = `sqlite3 $where/$name <$dir/.sql 2>&1`;

    chomp $text;

    return $text;
}


# Runs something while a writer has the ledger and grows it.

sub alive {
    my ($what) = @_;
    my $pid = fork // die "fork: $!";

    if ($pid == 0) {
        exec { $maker } $maker, 'grow', $ledger, 100000, 2 or die;
    }

    sleep 0.7;
    $what->();

    my $alive = waitpid($pid, 1) == 0;

    kill 'KILL', $pid;
    waitpid($pid, 0);

    return $alive;
}


# The page that a server writes when it must not go on.

sub mark {
    my ($where, $reason) = @_;
    my $program = "$dir/mark";

    spew("$program.c", <<'END');
#include <stdio.h>
#include "ron_store.h"
int
main(int argc, char **argv)
{
    char              url[1024];
    ron_store_t      *store;
    ron_store_conf_t  conf = { .url = url };

    (void) argc;
    snprintf(url, sizeof(url), "sqlite:%s", argv[1]);

    return ron_store_open(&conf, &store) != RON_OK
           || ron_store_mark_write(store, ron_cstr(argv[2])) != RON_OK;
}
END
    RonCompile::with_libron($program, "$program.c")
        or BAIL_OUT('no program that marks');

    is(system($program, $where, $reason), 0, 'marked');

    return;
}


sub completed {
    my @words = @_;
    my $list = join ' ', map { "'$_'" } 'ronctl', @words;

    spew("$dir/complete", ". $dir/completion\nCOMP_WORDS=($list)\n"
         . 'COMP_CWORD=' . @words . "\n_ronctl\n"
         . "printf '%s\\n' \"\${COMPREPLY[@]}\" | sort -u | paste -sd' '\n");

    my $text = `bash $dir/complete`;

    chomp $text;

    return $text;
}


sub slurp {
    my ($path) = @_;

    open(my $file, '<:raw', $path) or die "$path: $!";
    local $/;
    my $text = <$file>;

    return $text // '';
}


sub spew {
    my ($path, $text) = @_;

    open(my $file, '>:raw', $path) or die "$path: $!";
    print $file $text;
    close $file or die "$path: $!";

    return;
}
