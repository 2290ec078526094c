#!/usr/bin/perl

# Long bodies leave the event loop: so many at once, over all workers, the
# others in a bounded queue, each under its deadline; whoever is at it may go,
# be killed, reloaded or told to quit.
#
# A thread can be told to wait before it parses, so that what happens
# meanwhile does not depend on how fast this machine is.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use IO::Compress::Gzip ();
use IO::Select ();
use Time::HiRes qw(sleep time);


my ($n, $id) = (0, 0);
my $s;

sub begin {
    my ($http, %o) = @_;

    $s->quit if $s && $s->{pid};
    $s = RonTest->new(http => "ron_deadline 20s; $http", workers => 1, %o);
    $s->start or BAIL_OUT('no server');
}

sub gz {
    my ($plain) = @_;

    IO::Compress::Gzip::gzip(\$plain, \my $out) or die;

    return $out;
}

# An ingest of at least so many bytes.
sub ingest {
    my ($len, %o) = @_;

    my @batch;

    for (my $have = 0; $have < $len - 200; $have += length $batch[-1]) {
        push @batch, '{"id":"entry-' . ++$id . '","ts":1700000000000,"kind":'
            . '"Mint","account":"acc_x","amount":"1","nonce":"' . nonce16()
            . '","v":1},';
    }

    @batch = ('') if !@batch;
    my $text = '{"batch":[' . join('', @batch);
    $text =~ s/,$//;
    $text .= ($o{bad} || '') . ']}';

    return ($text . ' ' x ($len - length $text), scalar @batch);
}

# A payment whose body is so long.
sub pay {
    my ($len) = @_;

    my $text = '{"to":"acc_y","asset":"ron","amount_minor":"1"}';

    return $text . ' ' x ($len - length $text);
}

sub send_pay {
    my ($len, %o) = @_;

    my $sock = $s->connect;
    $s->send_request($sock, 'POST', '/v1/issue', pay($len), key => 'p' . ++$n,
                     %o);

    return $sock;
}

# Whether an answer is there.
sub ready { return scalar IO::Select->new($_[0])->can_read(0) }

sub answer {
    my ($sock) = @_;

    my $r = RonTest::read_response($sock, 'POST', 30);
    close $sock;

    return $r;
}

sub metric {
    my ($name, @labels) = @_;

    my $text = $s->get('/metrics', token => undef)->{body};

    LINE: for my $line ($text =~ /^\Q$name\E(\{.*)$/mg) {
        for (@labels) { next LINE unless index($line, $_) >= 0 }
        return $line =~ /\} (\S+)$/ ? $1 : undef;
    }

    return undef;
}

sub busy  { return metric('ledger_ingress_workers_busy') }
sub depth { return metric('queue_depth', 'q="parse"') }

sub paid {
    return json_get($s->get('/v1/balance?account=acc_y&asset=ron')->{body},
                    'amount_minor');
}

sub idle { return until_ok(10, sub { busy() == 0 && depth() == 0 }) }


# ---- configuration ----------------------------------------------------------

for my $case (
    [ 'ron_ledger_ingress_workers 0;', qr/must be between 1 and 1024/ ],
    [ 'ron_ledger_ingress_workers 1025;', qr/must be between 1 and 1024/ ],
    [ 'ron_ingress_offload 1023;', qr/must be from 1k to 1m/ ],
    [ 'ron_ingress_offload 2m;', qr/must be from 1k to 1m/ ],
    [ 'ron_ingress_delay 2m;', qr/must be at most 60s/ ],
) {
    my ($http, $says) = @$case;
    my ($code, $said) = RonTest->new(http => $http)->test_config;
    isnt($code, 0, "$http is refused");
    like($said, $says, 'with what is right');
}


# ---- what comes of it is the same -------------------------------------------

begin('');
is(busy(), 0, 'nobody is at it');
is(depth(), 0, 'nobody waits');
is(metric('queue_capacity', 'q="parse"'), 128, 'and 128 may');

my ($big, $entries) = ingest(1024 * 1024 - 10);
cmp_ok($entries, '>', 4000, 'a long ingest');
my $r = $s->post('/ledger/ingest', $big);
is($r->{status}, 200, 'is done') or diag(substr $r->{body}, 0, 300);
is(json_get($r->{body}, 'seq_end'), $entries, 'all of it');
is(json_get($s->get('/ledger/accounts/acc_x')->{body}, 'amount_minor'),
   $entries, 'in the ledger');
ok($s->post('/ledger/ingest', $big)->{body} eq $r->{body},
   'and again: the same answer, from the journal');

my $batch = '{"ops":[' . join(',', map {
    '{"op":"issue","to":"acc_z","asset":"ron","amount_minor":"1","memo":"'
    . 'm' x 200 . '"}' } 1 .. 1000) . ']}';
$batch .= ' ' x (1024 * 1024 - length $batch);
$r = $s->post('/v1/batch', $batch, key => 'batch');
is($r->{status}, 200, 'a long batch') or diag(substr $r->{body}, 0, 300);
my $first = $r->{body};
is($s->post('/v1/batch', $batch, key => 'batch')->{body}, $first,
   'and again, by its key');
is($s->post('/v1/batch', $batch, key => 'other')->{status}, 200,
   'another key is another batch');

my $long = $batch . join '', map { chr(9 + $_ % 2) x (1 + $_ % 7) } 1 .. 60000;
$r = $s->post('/v1/batch', gz($long), key => 'gzip',
              headers => { 'Content-Encoding' => 'gzip' });
is($r->{status}, 400, 'too much of it') or diag(substr $r->{body}, 0, 300);
like($r->{body}, qr/inflates to more than is accepted/, 'says so');

my $noise = '{"ops":[' . join(',', map {
    '{"op":"issue","to":"acc_z","asset":"ron","amount_minor":"1","memo":"'
    . join('', map { chr(97 + int rand 26) } 1 .. 250) . '"}' } 1 .. 1000)
    . ']}';
$r = $s->post('/v1/batch', gz($noise), key => 'noise',
              headers => { 'Content-Encoding' => 'gzip' });
is($r->{status}, 200, 'what was compressed') or diag(substr $r->{body}, 0, 300);
is(json_get($s->get('/v1/balance?account=acc_z&asset=ron')->{body},
            'amount_minor'), 3000, 'three batches in all');

my $ops = '{"op":"issue","key":"ops","request":' . pay(200 * 1024) . '}';
$r = $s->post('/ledger/ops', $ops);
is($r->{status}, 200, 'an operation of a remote wallet')
    or diag($r->{body});
is(paid(), 1, 'is done');

# what is refused is refused in the same words

my @wrong = (
    [ '/ledger/ingest', (ingest(100_000, bad => ',{}'))[0] ],
    [ '/ledger/ingest', '{"batch":[],' . ' ' x 100_000 ],
    [ '/ledger/ingest', '{"batch":[{"id":"' . 'x' x 100_000 . '"}]}' ],
    [ '/v1/issue', '{"to":"a"' . ' ' x 100_000 . '}' ],
    [ '/v1/batch', '{"ops":[' . '{},' x 40_000 . '{}]}' ],
    [ '/ledger/ops', '{"op":"dance"' . ' ' x 100_000 . '}' ],
    [ '/v1/issue', gz('x' x 100_000), gzip => 1 ],
    [ '/v1/issue', substr(gz($noise), 0, 50_000), gzip => 1 ],
);

my %said;

for my $offload ('64k', '1m') {
    begin("ron_ingress_offload $offload;");

    for my $i (0 .. $#wrong) {
        my ($path, $body, %o) = @{ $wrong[$i] };

        $r = $s->post($path, $body, key => "w$i", headers => {
            'X-Corr-ID' => 'same',
            $o{gzip} ? ('Content-Encoding' => 'gzip') : () });
        is($r->{status}, 400, "$path: wrong") or diag($r->{body});
        push @{ $said{$i} }, $r->{body};
    }
}

is($said{$_}[0], $said{$_}[1], "$wrong[$_][0]: in the same words")
    for 0 .. $#wrong;


# ---- which bodies -----------------------------------------------------------

begin('ron_ingress_delay 1500ms;');
like($s->log, qr/"ron_ingress_delay" is for tests/, 'it is said');

sub took {
    my ($path, $body, %o) = @_;

    my $t = time;
    my $r = $s->post($path, $body, key => 'k' . ++$n, %o);
    is($r->{status}, 200, 'done') or diag($r->{body});

    return time - $t;
}

my @gzip = (headers => { 'Content-Encoding' => 'gzip' });
my $small = gz(pay(300));

cmp_ok(length($small) * 10, '<', 65536, 'a small one');
cmp_ok(took('/v1/issue', pay(64 * 1024)), '<', 1.5, '64 KiB stay');
cmp_ok(took('/v1/issue', pay(64 * 1024 + 1)), '>=', 1.5, 'a byte more goes');
cmp_ok(took('/v1/issue', $small, @gzip), '<', 1.5, 'a small gzip body stays');
cmp_ok(took('/v1/batch', gz(substr($noise, 0, 30_000) =~ s/,\{[^{]*$/]}/r),
            @gzip), '>=', 1.5, 'one that could become more than 64 KiB goes');


# ---- exactly so many, over all workers; and nobody else waits ---------------

begin('ron_ledger_ingress_workers 3; ron_ingress_delay 700ms;', workers => 2);

my @socks = map { send_pay(100_000) } 1 .. 10;
my ($most, $deepest, $slowest) = (0, 0, 0);

until_ok(5, sub {
    my $t = time;
    my $b = busy();
    my $took = time - $t;
    my $d = depth();

    $most = $b if $b > $most;
    $deepest = $d if $d > $deepest;

    return $most == 3 && $deepest == 7;
});

is($most, 3, 'three at once');
is($deepest, 7, 'and seven wait');

my $t = time;
my @others = map { $s->get('/v1/balance?account=acc_y&asset=ron')->{status} }
    1 .. 20;
is(scalar(grep { $_ == 200 } @others), 20, 'others are served');
cmp_ok(time - $t, '<', slow(0.7), 'while they do');

my @peak;
push @peak, busy() while grep({ !ready($_) } @socks) && time < $t + 9;
is(scalar(grep { $_ > 3 } @peak), 0, 'never more than three');
is(join(' ', map { answer($_)->{status} } @socks), join(' ', (200) x 10),
   'all have their turn');
ok(idle(), 'and leave nothing behind');
is(paid(), 10, 'each was paid once');


# ---- a client that goes away, while it is parsed and while it waits ---------

@socks = map { send_pay(100_000) } 1 .. 6;
ok(until_ok(3, sub { busy() == 3 && depth() == 3 }), 'three and three');
close $_ for @socks;
ok(idle(), 'all are gone');
is(paid(), 10, 'what nobody waits for is not done');
is(answer(send_pay(100_000))->{status}, 200, 'places are free');


# ---- a worker that is killed ------------------------------------------------

begin('ron_ledger_ingress_workers 3; ron_ingress_delay 2s;');
@socks = map { send_pay(100_000) } 1 .. 5;
ok(until_ok(2, sub { busy() == 3 && depth() == 2 }), 'three and two');
$s->kill_worker;
ok(until_ok(2, sub { busy() == 0 && depth() == 0 }),
   'a dead worker has no places');
$t = time;
is(answer(send_pay(100_000))->{status}, 200, 'they are free');
cmp_ok(time - $t, '<', slow(3.5), 'at once');
is(paid(), 1, 'and the others were not done');


# ---- a full queue -----------------------------------------------------------

begin('ron_ledger_ingress_workers 1; ron_ingress_delay 1s;',
      main => 'ron_queue parse=2;');
is(metric('queue_capacity', 'q="parse"'), 2, 'two may wait');
@socks = map { send_pay(100_000) } 1 .. 3;
ok(until_ok(0.9, sub { busy() == 1 && depth() == 2 }), 'one, and two');
$t = time;
my @no = map { answer(send_pay(100_000)) } 1 .. 3;
cmp_ok(time - $t, '<', slow(0.8), 'others are told at once');
is(join(' ', map { $_->{status} } @no), '429 429 429', 'that it is full');
is(json_get($_->{body}, 'code'), 'BUSY', 'BUSY') for @no;
like($_->{headers}{'retry-after'}, qr/^\d+$/, 'when to come again') for @no;
like($no[0]{body}, qr/too many long bodies are waiting/, 'why');
is(metric('busy_rejections_total', 'q="parse"'), 3, 'counted exactly');
is($s->post('/v1/issue', pay(100), key => 'short')->{status}, 200,
   'a short one does not care');
is(join(' ', map { answer($_)->{status} } @socks), '200 200 200',
   'who was in is done');
is(paid(), 4, 'and nobody else');


# ---- deadlines --------------------------------------------------------------

begin('ron_ledger_ingress_workers 1; ron_ingress_delay 2500ms;');
$t = time;
@socks = map { send_pay(100_000, headers => { 'Request-Timeout' => 1 }) } 1, 2;

for my $what ('being parsed', 'waiting') {
    $r = answer(shift @socks);
    is($r->{status}, 503, "$what when the deadline passes");
    is(json_get($r->{body}, 'code'), 'RETRY_LATER', 'nothing was done');
    like($r->{body}, qr/the deadline has passed/, 'why');
}

cmp_ok(time - $t, '>=', 1, 'not before it');
cmp_ok(time - $t, '<', slow(2), 'and not long after');
is(busy(), 1, 'a thread is still at it');
ok(idle(), 'comes back to nobody');
is(paid(), 0, 'nothing was done');


# ---- reload, and quit -------------------------------------------------------

begin('ron_ledger_ingress_workers 2; ron_ingress_delay 1s;');
@socks = map { send_pay(100_000) } 1 .. 4;
ok(until_ok(0.9, sub { busy() == 2 && depth() == 2 }), 'two, and two');
ok($s->reload(linger => 1), 'a reload');
is(join(' ', map { answer($_)->{status} } @socks), '200 200 200 200',
   'all are done by the old worker');
ok($s->wait_ready, 'ready');
ok(idle(), 'nothing is left behind');
is(paid(), 4, 'each once');

@socks = map { send_pay(100_000) } 1 .. 3;
ok(until_ok(0.9, sub { busy() == 2 && depth() == 1 }), 'two, and one');
kill 'QUIT', $s->{pid};
is(join(' ', map { answer($_)->{status} } @socks), '200 200 200',
   'a quit waits for them');
$s->quit;
like($s->log, qr/"leaked":0/, 'nothing leaked');

$s->start or BAIL_OUT('no server');
is(paid(), 7, 'and they are in the ledger');
@socks = map { send_pay(100_000) } 1 .. 3;
ok(until_ok(0.9, sub { busy() == 2 && depth() == 1 }), 'two, and one');
ok($s->terminate(10), 'a terminate does not');


# ---- the loop, measured by the kernel: time of its thread on a CPU ----------

begin('ron_inflate_max 10m ratio=100;');

SKIP: {
    my ($worker) = $s->workers;

    sub spent {
        my (%ns) = @_;

        for my $file (glob "/proc/$worker/task/*/schedstat") {
            my ($tid) = $file =~ m{task/(\d+)/};
            ($ns{$tid}) = split ' ', RonTest::slurp($file);
        }

        return %ns;
    }

    # The best of some for the loop, in ms, and what threads had to do.
    sub shares {
        my ($what, $send) = @_;

        my ($loop, $threads) = (1e12, 0);

        for my $try (1 .. 5) {
            my %before = spent();
            my $r = $send->($try);
            my %after = spent();

            is($r->{status}, 200, $what) or diag(substr $r->{body}, 0, 200);

            my $here = delete($after{$worker}) - delete $before{$worker};
            my $there = 0;
            $there += $after{$_} - ($before{$_} || 0) for keys %after;

            ($loop, $threads) = ($here, $there) if $here < $loop;
        }

        return ($loop / 1e6, $threads / 1e6);
    }

    my %zero = spent();
    skip 'the kernel does not count', 14 if !$zero{$worker};

    my @blanks = map { my $i = $_; join '', map { chr(9 + ($i >> $_ & 1)) }
                                       0 .. 15 } 0 .. 15;
    my $body = gz($noise . join('', map { $blanks[rand @blanks] }
                                1 .. 60_000) x 10);
    cmp_ok(length $body, '<', 1024 * 1024, 'nearly 10 MiB in less than one');

    my ($loop, $threads) = shares('10 MiB of gzip', sub {
        $s->post('/v1/batch', $body, key => "loop$_[0]", @gzip) });
    cmp_ok($threads, '>', 10, sprintf 'threads: %.1f ms', $threads);
    cmp_ok($loop, '<', $threads / 4, sprintf 'the loop: %.1f ms', $loop);

    ($loop, $threads) = shares('1 MiB of entries', sub {
        $s->post('/ledger/ingest', (ingest(1024 * 1024 - 10))[0]) });
    cmp_ok($threads, '>', 3, sprintf 'threads: %.1f ms', $threads);
    cmp_ok($loop, '<', $threads, sprintf 'the loop: %.1f ms', $loop);
}

$s->quit;

done_testing();
