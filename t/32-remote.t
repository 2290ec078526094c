#!/usr/bin/perl

# A wallet whose ledger is another nginx: the same answers to the byte, and
# exactly one effect of each payment, whatever happens to the ledger.

use strict;
use warnings;

use lib 't/lib';
use RonStream;
use RonTest;

use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw(sleep time);


my $SECONDS = $ENV{RON_REMOTE_SECONDS} || 10;
my $CLIENTS = 6;

my $l = RonTest->new(workers => 2);
$l->start or BAIL_OUT('no ledger');

my $w = RonTest->new(workers => 2, ledger => '', locations => 0);
$w->{secret} = $l->{secret};
$w->write_file('ron.keys', slurp("$l->{dir}/ron.keys"), 0600);

$w->{http} = "upstream ledger { server 127.0.0.1:$l->{port}; keepalive 8; }";

sub locations {
    my ($options) = @_;

    return <<"END";
        location /v1/ {
            ron_wallet;
            ron_wallet_ledger_pass ledger $options;
        }
        location = /healthz { ron_health live; }
        location = /readyz { ron_health ready; }
        location = /metrics { ron_metrics; }
END
}

sub slurp {
    my ($path) = @_;

    open my $f, '<', $path or return '';
    local $/;
    return scalar <$f>;
}


# configurations

for my $case (
    [ qr/needs "ron_wallet" in the same location/,
      'location /x/ { ron_wallet_ledger_pass ledger; }' ],
    [ qr/is duplicate/, 'location /x/ { ron_wallet;
      ron_wallet_ledger_pass ledger; ron_wallet_ledger_pass ledger; }' ],
    [ qr/invalid parameter "colour=blue", it must be one of/,
      'location /x/ { ron_wallet;
      ron_wallet_ledger_pass ledger colour=blue; }' ],
    [ qr/invalid value in "tries=0", it must be from 1 to 10/,
      'location /x/ { ron_wallet; ron_wallet_ledger_pass ledger tries=0; }' ],
    [ qr/invalid value in "timeout=2m", it must be from 1 to 60000 ms/,
      'location /x/ { ron_wallet;
      ron_wallet_ledger_pass ledger timeout=2m; }' ],
    [ qr/invalid parameter "path=ledger"/, 'location /x/ { ron_wallet;
      ron_wallet_ledger_pass ledger path=ledger; }' ],
    [ qr/needs a ledger.*may have "ron_wallet_ledger_pass"/,
      'location /x/ { ron_wallet; }' ],
    [ qr/needs a ledger/, locations('')
      . 'location /ledger/ { ron_ledger_api; }' ],
) {
    my ($says, $config) = @$case;

    my $bad = RonTest->new(ledger => '', locations => 0, http => $w->{http},
                           config => $config);
    my ($code, $said) = $bad->test_config;
    isnt($code, 0, 'refused');
    like($said, $says, "says $says");
}

$w->{config} = locations('');
$w->start or BAIL_OUT('no wallet');
ok(!$w->helper, 'a wallet without a ledger has no helper');
is($w->get('/healthz', token => undef)->{status}, 200, 'it lives');
is($w->get('/readyz', token => undef)->{status}, 200, 'and is ready');


# every operation, and the same at both doors

my $n = 0;

sub op {
    my ($op, $body, %o) = @_;

    return $w->post("/v1/$op", $body, key => 'r' . ++$n, %o);
}

my $audit = RonStream->new($l, '/v1/audit/stream', token => $l->token);
my $r = op('issue', { to => 'alice', asset => 'ron',
                      amount_minor => '100000' },
           headers => { 'X-Corr-ID' => 'from-afar-1' });
is($r->{status}, 200, 'issue') or diag($r->{body});
is(json_get(($audit->events(1))[0]{data}, 'corr_id'), 'from-afar-1',
   'the audit stream of the ledger names the request of the client');
$audit->close;
my $txid = json_get($r->{body}, 'txid');
is($w->get("/v1/tx/$txid")->{body}, $r->{body}, 'its receipt by its txid');
is($w->get("/v1/tx/$txid?proof=1")->{body},
   $l->get("/v1/tx/$txid?proof=1")->{body}, 'and with its proof');

my %transfer = (from => 'alice', to => 'bob', asset => 'ron',
                amount_minor => '10', nonce => 1);
my %memo = (%transfer, memo => "caf\xc3\xa9 \\\" \\u0041");

$r = $w->post('/v1/transfer', \%memo, key => 'pay-1');
is($r->{status}, 200, 'transfer') or diag($r->{body});
my $first = $r->{body};

for my $door ($w, $l) {
    $r = $door->post('/v1/transfer', \%memo, key => 'pay-1');
    is($r->{body}, $first, 'a replay, byte for byte');
    is($r->{headers}{'idempotent-replayed'}, 'true', 'and it says so');
}

$r = $l->post('/v1/transfer', { %transfer, nonce => 2 }, key => 'pay-2');
is($w->post('/v1/transfer', { %transfer, nonce => 2 }, key => '"pay-2"')
   ->{body}, $r->{body}, 'what was paid at the ledger is replayed here');

$r = op('hold', { from => 'alice', to => 'shop', asset => 'ron',
                  amount_minor => '50', nonce => 3 });
is($r->{status}, 200, 'hold');
my $hold = json_get($r->{body}, 'txid');
is(op('capture', { hold => $hold, amount_minor => '20' },
      token => $w->token('account = bob'))->{status}, 403,
   "another's hold");
is(op('capture', { hold => $hold, amount_minor => '20' },
      token => $w->token('account = alice'))->{status}, 200, "one's own");
is(op('release', { hold => $hold })->{status}, 200, 'release');
is(op('burn', { from => 'alice', asset => 'ron', amount_minor => '1',
                nonce => 4 })->{status}, 200, 'burn');
$r = op('batch', { ops => [
    { op => 'transfer', %transfer, nonce => 5 },
    { op => 'transfer', %transfer, nonce => 6, amount_minor => '999999' },
] });
is($r->{status}, 207, 'a part of a batch');
$r = op('batch', { ops => [ map {
    { op => 'transfer', %transfer, nonce => $_, amount_minor => '1',
      memo => 'm' x 250 }
} 10 .. 609 ] });
is($r->{status}, 200, 'a large batch') or diag(substr $r->{body}, 0, 300);
is(() = $r->{body} =~ /"txid":/g, 600, 'has all its receipts');

is($w->metric('wallet_ops_total', "endpoint=\"$_->[0]\""), $_->[1],
   "operations counted: $_->[0]")
    for [ issue => 1 ], [ hold => 1 ], [ capture => 1 ], [ release => 1 ],
        [ burn => 1 ], [ batch => 601 ];
is($w->metric('wallet_ready'), 1, 'and it is ready');

$r = $w->post('/v1/transfer?proof=1', { %transfer, nonce => 700 },
              key => 'proof-1');
like($r->{body}, qr/"proof":\{"entry":"/, 'a receipt with its proof');

for my $path ('balance?account=alice&asset=ron',
              'balance?account=nobody&asset=ron')
{
    my ($a, $b) = map { $_->get("/v1/$path") } $w, $l;
    s/"as_of":.*// for $a->{body}, $b->{body};
    is($a->{body}, $b->{body}, $path);
    is($a->{headers}{etag}, $b->{headers}{etag}, 'with its entity tag');
}

my $tag = $w->get('/v1/balance?account=alice&asset=ron')->{headers}{etag};
is($w->get('/v1/balance?account=alice&asset=ron',
           headers => { 'If-None-Match' => $tag })->{status}, 304,
   'If-None-Match');
is(op('transfer', { %transfer, nonce => 800 },
      headers => { 'If-Match' => '"1"' })->{status}, 412, 'If-Match');
is(op('transfer', { %transfer, nonce => 800 },
      headers => { 'If-Match' => $tag })->{status}, 200, 'of this version');

is(json_get($w->get('/v1/outcome?account=alice', headers =>
                    { 'Idempotency-Key' => 'pay-1' })->{body}, 'outcome'),
   'committed', 'outcome');
$r = op('batch', { ops => [ { op => 'issue', to => 'zoe', asset => 'ron',
                              amount_minor => '7' } ] });
chomp(my $answer = $r->{body});
is($w->get('/v1/outcome?account=alice&age=60000', headers =>
           { 'Idempotency-Key' => "r$n" })->{body},
   qq({"outcome":"committed","batch":$answer}\n), 'of a batch, too');
is(json_get($w->get('/v1/outcome?account=alice', headers =>
                    { 'Idempotency-Key' => 'never' })->{body}, 'outcome'),
   'unknown', 'of a key never seen');

for my $case (
    [ 'insufficient', 'transfer', { %transfer, nonce => 900,
                                    amount_minor => '99999999' } ],
    [ 'a nonce passed', 'transfer', { %transfer, nonce => 2 } ],
    [ 'not a hold', 'release', { hold => $txid } ],
    [ 'a closed hold', 'release', { hold => $hold } ],
    [ 'another payment', 'transfer', { %transfer, nonce => 901 }, 'pay-1' ],
    [ 'no such asset', 'transfer', { %transfer, asset => 'gold' } ],
    [ 'a member too many', 'transfer', { %transfer, colour => 'blue' } ],
) {
    my ($what, $op, $request, $key) = @$case;
    my @a = map { $_->post("/v1/$op", $request, key => $key || "same-$op",
                           headers => { 'X-Corr-ID' => 'c1' }) } $w, $l;

    isnt($a[0]{status}, 200, "$what is refused");
    is($a[0]{status}, $a[1]{status}, "$what: the same status");
    is($a[0]{body}, $a[1]{body}, "$what: the same problem");
}

is(op('transfer', { %transfer, nonce => 902 },
      token => $w->token('svc = wallet'))->{status}, 403,
   'a token that is not for the ledger');
is(op('transfer', { %transfer, nonce => 902 },
      token => $w->token('svc = wallet ledger', 'act = transfer'))
   ->{status}, 200, 'and one that is');

cmp_ok($w->metric('upstream_calls_total', 'svc="ledger"', 'op="commit"',
              'outcome="ok"'), '>=', 20, 'calls are counted');
cmp_ok($w->metric('upstream_latency_seconds_count', 'svc="ledger"',
                  'op="read"'), '>=', 5, 'and timed');
is($w->metric('breaker_state', 'target="ledger"'), 0, 'the breaker is closed');

# 60 requests and more came over few connections

my $before = connections();

op('transfer', { %transfer, nonce => 1000 + $_ }) for 1 .. 20;
cmp_ok(connections() - $before, '<=', 3, 'connections are kept');

sub connections {
    my $text = '';

    open my $f, '<', '/proc/net/tcp' or return 0;
    my $port = sprintf ':%04X', $l->{port};
    my $count = grep { (split)[2] && (split)[2] =~ /$port$/ } <$f>;

    return $count;
}



# what is not there is not asked for ever

sub stop_ledger {
    my @all = ($l->{pid}, $l->children);

    kill 'KILL', @all;
    until_ok(5, sub { !grep { kill 0, $_ } @all });
    unlink "$l->{dir}/nginx.pid";
    $l->{pid} = 0;
}

stop_ledger();

my $t = time;
$r = op('transfer', { %transfer, nonce => 2000 });
is($r->{status}, 503, 'the ledger is dead');
is(json_get($r->{body}, 'code'), 'UPSTREAM_UNAVAILABLE', 'and nothing done');
like($r->{headers}{'retry-after'}, qr/^\d+$/, 'Retry-After');
cmp_ok(time - $t, '>=', 0.15, 'after pauses of 50 and 100 ms');
is($w->metric('backoff_retries_total', 'service="wallet"', 'svc="ledger"',
          'op="commit"'), 2, 'two of them');

for (1 .. 9) {
    $r = op('transfer', { %transfer, nonce => 2000 });
    last if json_get($r->{body}, 'detail') =~ /not asked now/;
}

is($w->metric('breaker_state', 'target="ledger"'), 1, 'the breaker is open');
is($w->metric('breaker_open_total', 'target="ledger"'), 1,
   'for the first time');
is($w->metric('circuit_open_total', 'svc="ledger"'), 1, 'under both names');
my $calls = $w->metric('upstream_calls_total', 'svc="ledger"', 'op="commit"',
                   'outcome="error"');
is($calls, 20, 'after exactly 20 errors');

$t = time;
$r = op('transfer', { %transfer, nonce => 2000 });
is($r->{status}, 503, 'while it is open');
is(json_get($r->{body}, 'code'), 'UPSTREAM_UNAVAILABLE',
   'nothing is available');
cmp_ok(time - $t, '<', slow(0.1), 'and that at once');
is($w->metric('upstream_calls_total', 'svc="ledger"', 'op="commit"',
          'outcome="error"'), $calls, 'without a call');
cmp_ok($w->metric('upstream_fail_total', 'svc="ledger"'), '>=', 8,
       'but counted');
$r = $w->get('/readyz', token => undef);
is($r->{status}, 503, 'not ready');
like($r->{body}, qr/"missing":\["ledger"\]/, 'without a ledger');

$l->start or BAIL_OUT('no ledger');
ok(until_ok(7, sub {
    op('transfer', { %transfer, nonce => 2000 })->{status} == 200
}), 'after 5 s a probe finds the ledger again');
is($w->metric('breaker_state', 'target="ledger"'), 2, 'half open');
is(op('transfer', { %transfer, nonce => 2000 + $_ })->{status}, 200,
   "probe $_") for 1 .. 9;
is($w->metric('breaker_state', 'target="ledger"'), 0, 'ten close it');
is($w->get('/readyz', token => undef)->{status}, 200, 'ready');


# a ledger that says nothing

kill 'STOP', $l->workers;
$t = time;
$r = op('transfer', { %transfer, nonce => 3000 }, timeout => 20);
my $took = time - $t;
is($r->{status}, 503, 'the ledger hangs');
is(json_get($r->{body}, 'code'), 'TIMEOUT', 'nobody knows the outcome');
cmp_ok($took, '>=', 3.1, 'three tries of 1 s');
cmp_ok($took, '<', slow(4.5), 'and no more');
is($w->metric('io_timeouts_total', 'service="wallet"', 'op="ledger_rpc"'), 3,
   'are three time-outs');

$t = time;
$r = op('transfer', { %transfer, nonce => 3001 },
        headers => { 'Request-Timeout' => 1 });
is($r->{status}, 503, 'with a deadline of 1 s');
cmp_ok(time - $t, '<', slow(1.6), 'it is answered by then');

kill 'CONT', $l->workers;

# what lay in the sockets is executed when the deadline allows it: 5 s for
# the first, and never for the second

until_ok(5, sub { $l->get('/readyz', token => undef)->{status} == 200 });
sleep 0.5;
isnt(json_get($l->get('/v1/outcome?account=alice', headers => {
         'Idempotency-Key' => "r$n" })->{body}, 'outcome'), 'committed',
     'nothing is executed after its deadline');


# the ledger's deadline begins with our last try, not with what the client sent

sub final {
    my ($door, $age) = @_;

    return json_get($door->get("/v1/outcome?account=a:l/i_c.e\@x&age=$age",
                               headers => { 'Idempotency-Key' => 'never' })
                    ->{body}, 'final');
}

is(final($l, 5999), 'false', 'at a ledger with 5 s and one it is not final');
is(final($l, 6000), 'true', 'and then it is');
is(final($w, $_), 'false', "at a wallet with as much not after $_ ms")
    for 0, 6000, 11_999;
is(final($w, 12_000), 'true', 'but after both');


# a door that refuses the second try does not know about the first

sub door {
    my (@answers) = @_;

    my $door = IO::Socket::INET->new(Listen => 8, LocalAddr => '127.0.0.1')
        or die "listen: $!";
    my $pid = fork;
    die "fork: $!" unless defined $pid;
    return ($door->sockport, $pid) if $pid;

    for my $code (@answers) {
        my $sock = $door->accept or last;
        sysread $sock, my $request, 65536;
        my $body = qq({"code":"$code"});
        print $sock "HTTP/1.1 403 Forbidden\r\nConnection: close\r\n"
            . "Content-Type: application/problem+json\r\nContent-Length: "
            . length($body) . "\r\n\r\n$body" if $code;
        close $sock;
    }

    POSIX::_exit(0);
}

for my $case ([ 503, 'TIMEOUT', '', 'LIMITS_EXCEEDED' ],
              [ 503, 'TIMEOUT', '', 'FORBIDDEN' ],
              [ 403, 'LIMITS_EXCEEDED', 'LIMITS_EXCEEDED' ],
              [ 403, 'NONCE_CONFLICT', '', 'NONCE_CONFLICT' ])
{
    my ($status, $code, @answers) = @$case;
    my ($port, $pid) = door(@answers);
    my $d = RonTest->new(ledger => '', locations => 0,
                         http => "upstream ledger { server 127.0.0.1:$port; }",
                         config => locations('cache=off'));
    $d->start or BAIL_OUT('no wallet');
    $r = $d->post('/v1/transfer', { %transfer, nonce => 1 }, key => 'door');
    is($r->{status}, $status, 'tries: '
       . join(', ', map { $_ || 'no answer' } @answers)) or diag($r->{body});
    is(json_get($r->{body}, 'code'), $code, "the client is told $code");
    waitpid $pid, 0;
    $d->quit;
}


# clients pay while the ledger is reloaded, killed and stopped

$w->{config} = locations('open=500ms');
ok($w->reload, 'a shorter breaker');

for my $i (1 .. $CLIENTS) {
    is($l->post('/v1/issue', { to => "u$i", asset => 'ron',
                               amount_minor => '1000000' }, key => "u$i")
       ->{status}, 200, "money for client $i");
}

my $end = time + $SECONDS;
my @pids;

for my $i (1 .. $CLIENTS) {
    my $pid = fork;
    die "fork: $!" unless defined $pid;
    if ($pid == 0) {
        client($i);
    }
    push @pids, $pid;
}

# A client goes on to its next payment when it knows of the last one.

sub client {
    my ($i) = @_;

    srand($i * 7919 + $$);
    open my $log, '>', "$l->{dir}/client$i" or POSIX::_exit(2);

    my ($nonce, $retries) = (0, 0);

    while (time < $end) {
        $nonce++;

        my %body = (from => "u$i", to => 'sink', asset => 'ron',
                    amount_minor => '1', nonce => $nonce);
        my ($late, $r) = (time + 30);

        while (time < $late) {
            $r = eval { $w->post('/v1/transfer', \%body,
                                 key => "c$i-$nonce", timeout => 12) };
            last if $r && $r->{status} == 200;

            if ($r && $r->{status} != 503 && $r->{status} != 429
                && $r->{status} != 0)
            {
                print $log "bad $nonce $r->{status} $r->{body}";
                POSIX::_exit(3);
            }

            $retries++;
            sleep 0.02 + rand 0.1;
        }

        if (!$r || $r->{status} != 200) {
            print $log "never $nonce\n";
            POSIX::_exit(4);
        }

        print $log "ok $nonce $r->{body}";

        # sometimes twice

        if (rand() < 0.1) {
            my $again = eval { $w->post('/v1/transfer', \%body,
                                        key => "c$i-$nonce") };

            if ($again && $again->{status} == 200
                && $again->{body} ne $r->{body})
            {
                print $log "differs $nonce\n";
                POSIX::_exit(5);
            }
        }
    }

    print $log "retries $retries\n";
    close $log;
    POSIX::_exit(0);
}

sleep 1;
ok($l->reload, 'the ledger is reloaded');
sleep 1;
stop_ledger();
sleep 1;
$l->start or BAIL_OUT('no ledger');
pass('killed and started');
sleep 1;
my @stopped = ($l->workers, $l->helper);
kill 'STOP', @stopped;
sleep 2.3;
kill 'CONT', @stopped;
pass('stopped and continued');
sleep 1;
ok($l->kill_helper, 'its helper is killed');
sleep 1;
ok($l->kill_worker, 'and a worker');
ok($l->reload, 'and reloaded again');

for my $pid (@pids) {
    waitpid $pid, 0;
    is($? >> 8, 0, 'a client got all its answers');
}

ok($l->wait_ready, 'the ledger is ready');

my ($paid, $retries, $differ) = (0, 0, 0);

for my $i (1 .. $CLIENTS) {
    my $count = 0;

    for my $line (split /\n/, slurp("$l->{dir}/client$i")) {
        if ($line =~ /^retries (\d+)/) { $retries += $1; next }
        if ($line !~ /^ok (\d+) (\{.*)$/) { fail($line); next }

        my ($nonce, $body) = ($1, "$2\n");
        $count++;

        # all of the first ones, and some of the rest, at either door

        next if $count > 20 && $count % 7;
        my $r = ($count % 2 ? $w : $l)->post('/v1/transfer', {
            from => "u$i", to => 'sink', asset => 'ron',
            amount_minor => '1', nonce => 0 + $nonce }, key => "c$i-$nonce");
        next if $r->{status} == 200 && $r->{body} eq $body;
        diag("$r->{status} $r->{body}") if ++$differ == 1;
        diag($body) if $differ == 1;
    }

    is(json_get($l->get("/v1/balance?account=u$i&asset=ron")->{body},
                'amount_minor'), 1_000_000 - $count,
       "client $i paid $count times, each once");
    $paid += $count;
}

is($differ, 0, 'replays are the same to the byte');
is(json_get($l->get('/v1/balance?account=sink&asset=ron')->{body},
            'amount_minor'), $paid, 'and all of it arrived');
cmp_ok($paid, '>', $CLIENTS * 5, 'payments went through');
cmp_ok($retries, '>', 0, 'not all at the first try');
cmp_ok($w->metric('breaker_open_total', 'target="ledger"'), '>=', 2,
       'the breaker opened');
is(op('transfer', { %transfer, nonce => 4000 + $_ })->{status}, 200,
   'a payment') for 1 .. 10;
is($w->metric('breaker_state', 'target="ledger"'), 0, 'and closed again');

diag("$paid payments, $retries repeated");

my ($fds) = map { $w->fds($_) } $w->workers;
cmp_ok($fds, '<', 60, 'no descriptors leak');

$w->quit;
$l->quit;

done_testing();
