#!/usr/bin/perl

# POST /ledger/admin/snapshot: a copy of a ledger that is being written, and
# a ledger restored from it.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use Fcntl qw(LOCK_EX LOCK_NB);
use POSIX ();


my $build = $ENV{RON_BUILD} || 'build';
my $ronctl = "$build/ronctl";

my $s = RonTest->new(workers => 2);
my $snaps = $s->dir . '/snaps';
$s->{main} = "ron_snapshot_dir $snaps max=2; ron_batch 8;";
$s->start or BAIL_OUT('no server');

my $keys = 0;

sub issue {
    my ($server) = @_;

    return ($server || $s)->post('/v1/issue', { to => 'alice', asset => 'ron',
        amount_minor => '1' }, key => 'k' . ++$keys);
}

sub take {
    my ($args, %o) = @_;

    return $s->post('/ledger/admin/snapshot' . ($args || ''), undef, %o);
}

# What GET says when the one in hand has ended.
sub ended {
    my $body;

    until_ok(30, sub {
        $body = $s->get('/ledger/admin/snapshot')->{body};
        (json_get($body, 'snapshot') || '') ne 'running';
    });

    return $body;
}

sub ctl {
    my (@args) = @_;

    my $said = `$ronctl @args 2>&1`;

    return ($? >> 8, $said);
}


# who may, and what is not a name

is(take('', token => undef)->{status}, 401, 'no token');
is(take('', token => $s->token('act = read ingest'))->{status}, 403,
   'an act that is not admin');
is($s->get('/ledger/admin/snapshot',
           token => $s->token('act = read'))->{status}, 403, 'nor to look');

for my $bad ('..', '.x', 'a/b', '%2e%2e', 'a%00b', 'x' x 65) {
    is(take("?name=$bad")->{status}, 400, "not a name: $bad");
}

my $r = $s->get('/ledger/admin/snapshot');
is($r->{status}, 200, 'before the first');
is($r->{body}, qq({"snapshot":"idle"}\n), 'there is none');
is((stat $snaps)[2] & 07777, 0700, 'the directory is 0700');


# one, while the ledger is written

issue() for 1 .. 300;

$r = take();
is($r->{status}, 202, 'begun') or diag($r->{body});
is(json_get($r->{body}, 'name'), 'current', 'its name');
like(json_get($r->{body}, 'snapshot'), qr/^(?:running|done)$/, 'its state');

my $body = ended();
is(json_get($body, 'snapshot'), 'done', 'done') or diag($body);

my $height = json_get($body, 'seq');
cmp_ok($height, '>=', 300, 'its height');
is(json_get($body, 'first'), 1, 'from the first entry');
my ($root) = $s->get("/ledger/roots?since=@{[$height - 1]}&limit=1",
                     token => undef)->{body} =~ /"root":"([0-9a-f]{64})"/;
is(json_get($body, 'root'), $root, 'its root is the one of the ledger');
is(json_get($body, 'bytes'), -s "$snaps/current/ledger.db", 'its size');
like(json_get($body, 'blake3'), qr/^[0-9a-f]{64}$/, 'its hash');
ok(until_ok(5, sub {
    $s->log =~ /snapshot "current": height $height, from seq 1/ }),
   'the log says so');
is((stat "$snaps/current")[2] & 07777, 0700, 'not for others');
is((stat "$snaps/current/ledger.db")[2] & 07777, 0600, 'nor its file');


# a ledger of it

my $pub = $s->dir . '/ledger/signing.pub';
my $copy = $s->dir . '/copy';

my ($code, $said) = ctl('ledger', 'restore', "$snaps/current", $copy,
                        '--public-key', $pub);
is($code, 0, 'restored') or diag($said);
like($said, qr/restored and verified/, 'and verified');

($code, $said) = ctl('ledger', 'verify', $copy);
is($code, 0, 'the copy is a ledger') or diag($said);

{
    chmod 0700, $copy;
    system('chown', '-R', 'nobody:nogroup', $copy) if $> == 0;

    my $c = RonTest->new(ledger => "sqlite:$copy");
    $c->start or BAIL_OUT('no server on the copy');
    my $b = $c->get('/v1/balance?account=alice&asset=ron')->{body};
    is(json_get($b, 'amount_minor'), $height, 'served: every entry is there');
    is($c->post('/v1/issue', { to => 'alice', asset => 'ron',
        amount_minor => '1' }, key => 'k1')->{headers}{'idempotent-replayed'},
       'true', 'and it knows what was done');
    is(issue($c)->{status}, 200, 'and goes on');
    $c->quit;
}

($code) = ctl('ledger', 'restore', "$snaps/current", $s->dir . '/no',
              '--public-key', 'somebody+d3e6f335+' . 'A' x 44);
isnt($code, 0, 'not with another key');
ok(!-e $s->dir . '/no', 'and nothing is left of it');


# again: what came since; payments go on meanwhile

issue() for 1 .. 50;

# it reads the directory of snapshots first, and that is made to last

my $trace = $s->dir . '/strace';
my $strace = fork();

if ($strace == 0) {
    open STDOUT, '>', $trace;
    open STDERR, '>&', \*STDOUT;
    exec 'strace', '-f', '-p', $s->helper, '-e', 'trace=getdents64',
         '-e', 'inject=getdents64:delay_enter=60000000' or POSIX::_exit(127);
}

ok(until_ok(10, sub { RonTest::slurp($trace) =~ /attached/ }),
   'its thread will be held') or diag(RonTest::slurp($trace));

is(take('?name=current')->{status}, 202, 'again');
$body = $s->get('/ledger/admin/snapshot')->{body};
is(json_get($body, 'snapshot'), 'running', 'it can be seen');
like($body, qr/"name":"current","began_ms":\d+,"done":\d+,"total":\d+/,
     'with its progress');

$r = take('?name=monday');
is($r->{status}, 409, 'one at a time');
is(json_get($r->{body}, 'code'), 'CONFLICT', 'as a problem');

my $during = 0;
$during += issue()->{status} == 200 for 1 .. 20;
is($during, 20, 'payments are taken meanwhile');

kill 'TERM', $strace;
waitpid $strace, 0;
$body = ended();
is(json_get($body, 'snapshot'), 'done', 'done');
cmp_ok(json_get($body, 'first'), '>', $height, 'only what came since');
cmp_ok(json_get($body, 'seq'), '>=', $height + 50, 'up to the head');


# another name; no third

is(take('?name=monday')->{status}, 202, 'another name');
$body = ended();
is(json_get($body, 'name'), 'monday', 'is another snapshot');
is(json_get($body, 'first'), 1, 'a whole one');

is(take('?name=tuesday')->{status}, 202, 'one too many');
$body = ended();
is(json_get($body, 'snapshot'), 'failed', 'fails');
like(json_get($body, 'why'), qr/2 snapshots already.*ron_snapshot_dir/,
     'and says what to do');
ok(!-e "$snaps/tuesday", 'and nothing was made');


# somebody else takes it already

{
    open my $lock, '+<', "$snaps/current/snapshot.lock" or die $!;
    ok(flock($lock, LOCK_EX | LOCK_NB), 'ronctl takes a snapshot');
    take();
    my $body = ended();
    is(json_get($body, 'snapshot'), 'failed', 'into the same directory: no');
    like(json_get($body, 'why'), qr/is being taken into it right now/,
         'and it says so');
}


# a damaged copy is noticed

{
    my $db = "$snaps/current/ledger.db";
    open my $f, '+<', $db or die $!;
    seek $f, 0, 0;
    print $f 'x' x 4096;
    close $f;
    issue();
    take();
    is(json_get(ended(), 'snapshot'), 'failed', 'a copy that was damaged');
}


# in safe mode a copy can be made too

is($s->post('/ledger/admin/safe-mode', '{"enter":true}')->{status}, 200,
   'safe mode');
is(take('?name=monday')->{status}, 202, 'a snapshot');
is(json_get(ended(), 'snapshot'), 'done', 'of what there is');
ok(until_ok(10, sub {
    $s->post('/ledger/admin/safe-mode', '{"enter":false}')->{status} == 200 }),
   'and back');

$s->quit;
like($s->log, qr/"leaked":0/, 'nothing leaked');


# none is configured

{
    my $n = RonTest->new;
    $n->start or BAIL_OUT('no server');
    is($n->post('/ledger/admin/snapshot', undef)->{status}, 404,
       'without ron_snapshot_dir: 404');
    $n->quit;
}


# configuration

my $dir = $s->dir;
mkdir "$dir/open";
chmod 0755, "$dir/open";
open my $f, '>', "$dir/file";
close $f;

for my $bad ([ "ron_snapshot_dir $dir/x max=0;", 'max=1 to max=1000' ],
             [ "ron_snapshot_dir $dir/x all;", 'invalid parameter "all"' ],
             [ "ron_snapshot_dir $dir/open;", 'it must be 0700' ],
             [ "ron_snapshot_dir $dir/file;", 'is not a directory' ],
             [ "ron_snapshot_dir $dir/a; ron_snapshot_dir $dir/b;",
               'is duplicate' ])
{
    my ($code, $said) = RonTest->new(main => $bad->[0])->test_config;
    isnt($code, 0, "$bad->[0] is refused");
    like($said, qr/\Q$bad->[1]\E/, 'with what is wrong');
}

SKIP: {
    skip 'only root has another user for its workers', 1 if $> != 0;

    mkdir "$dir/locked", 0700;
    my $s = RonTest->new(main => "ron_snapshot_dir $dir/locked/x;");
    like(($s->test_config)[1],
         qr{the worker user nobody cannot enter "\Q$dir\E/locked/x"},
         'nor a directory that workers cannot enter');
}

my $self = RonTest->new;
$self->{main} = 'ron_snapshot_dir ' . $self->dir . '/ledger;';
like(($self->test_config)[1], qr/directory of the ledger itself/,
     'nor the directory of the ledger');
my $m = RonTest->new(ledger => 'memory:64m',
                     main => "ron_snapshot_dir $dir/x;");
like(($m->test_config)[1], qr/a ledger in memory must not reach a disk/,
     'nor for a ledger in memory');
ok(!-e "$dir/x", 'and a test of a configuration makes nothing');

done_testing();
