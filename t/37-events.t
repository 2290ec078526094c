#!/usr/bin/perl

# The wallet's audit stream, and the invalidator that follows the ledger bus.

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonStream;

use POSIX ();
use Time::HiRes ();


my $slow_port = RonTest::free_port();

my $s = RonTest->new(workers => 2);
$s->{main} = 'ron_batch 1; ron_committer_lag_max 60s;';
$s->{http} = <<"END";
ron_stream_buffer 4k; ron_stream_ping 1s;
server {
    listen 127.0.0.1:$slow_port sndbuf=4k;
    location /v1/ { ron_wallet; }
}
END
$s->start or BAIL_OUT('no server');

my $token = $s->token;
my $keys = 0;

sub op {
    my ($op, %body) = @_;

    my $key = $body{key} || 'secret-key-' . ++$keys;
    delete $body{key};
    my $corr = delete $body{corr};

    return $s->post("/v1/$op", { asset => 'ron', amount_minor => '5', %body },
                    key => $key, headers => { 'X-Corr-ID' => $corr });
}

sub stream {
    my ($port, %o) = @_;

    my $path = delete $o{path} || '/v1/audit/stream';

    return RonStream->new({ port => $port || $s->port }, $path,
                          token => $token, %o);
}


# who may listen

is($s->get('/v1/audit/stream', token => undef)->{status}, 401, 'no token');

for my $refused ([ 'act = transfer' ], [ 'svc = ledger' ],
                 [ 'act = read', 'account = alice' ])
{
    my $r = $s->get('/v1/audit/stream', token => $s->token(@$refused));
    is($r->{status}, 403, "not with @$refused");
}

for my $allowed ('act = read', 'act = admin') {
    my $st = RonStream->new($s, '/v1/audit/stream',
                            token => $s->token($allowed));
    is($st->status, 200, "with $allowed");
    $st->close;
}


# the events

my $st = stream();
my $lines = stream(undef, Accept => 'application/x-ndjson');
is($st->header('content-type'), 'text/event-stream', 'as events');
is($lines->header('content-type'), 'application/x-ndjson', 'or as lines');

# a request's correlation id is as long as it may be, and as awkward

my $corr = '"\\' x 64;
my $issued = op('issue', to => 'alice', memo => 'a memo');
my $issue = $issued->{body};
my $transfer = op('transfer', from => 'alice', to => 'bob', nonce => 1,
                  amount_minor => '2', corr => $corr)->{body};
op('transfer', from => 'alice', to => 'bob', nonce => 1,
   amount_minor => '2', key => "secret-key-$keys");
op('burn', from => 'alice', nonce => 2, amount_minor => '1');
my $refused = op('burn', from => 'alice', nonce => 3, amount_minor => '100',
                 corr => 'refused-1');
is($refused->{status}, 409, 'one is rejected');
$s->post('/ledger/ingest', { batch => [ { id => 'x', ts => 1, kind => 'Mint',
    account => 'alice', amount => '1', nonce => nonce16(), v => 1 } ] });
op('hold', from => 'alice', to => 'shop', nonce => 4, amount_minor => '1');

my @e = $st->events(5);
is(join(' ', map { json_get($_->{data}, 'event') } @e),
   'wallet.issue.accepted wallet.transfer.accepted wallet.burn.accepted '
   . 'wallet.request.rejected wallet.hold.accepted',
   'one for each operation: none for a replay, none for an ingested entry');

my ($i, $t, undef, $no) = map { $_->{data} } @e;

is(json_get($i, $_), json_get($issue, $_), "issue: $_ of the receipt")
    for qw(txid op asset amount_minor ts seq);
is(json_get($t, $_), json_get($transfer, $_), "transfer: $_ of the receipt")
    for qw(txid op asset amount_minor ts seq nonce);
is(json_get($no, 'reason'), 'insufficient_funds', 'rejected: why');
ok(!json_has($no, 'txid') && !json_has($no, 'seq'), 'and no transaction');
is(json_get($i, 'corr_id'), $issued->{headers}{'x-corr-id'},
   'the correlation id that was made for the request');
(my $said = json_get($t, 'corr_id') || '') =~ s/\\(.)/$1/g;
is($said, $corr, 'or that it had');
is(json_get($no, 'corr_id'), 'refused-1', 'also of what was rejected');
is(json_get($no, 'corr_id'), json_get($refused->{body}, 'corr_id'),
   'under which the client was told');
like(json_get($t, 'from_hash'), qr/^[0-9a-f]{32}$/, 'accounts are hashes');
is(json_get($t, 'from_hash'), json_get($i, 'to_hash'),
   'the same for the same account');
isnt(json_get($t, 'to_hash'), json_get($t, 'from_hash'), 'else another');
ok(!json_has($i, 'from_hash'), 'an issue has no from');

my $ping = '{"event":"ping"}';
my @l;
until_ok(10, sub {
    push @l, grep { $_->{data} ne $ping } $lines->events(1, 1);
    @l == 5;
});
is(json_get($l[1]{data}, 'id'), $e[1]{id}, 'lines have the same ids');
(my $same = $l[1]{data}) =~ s/"id":"[^"]+",//;
is($same, $t, 'and say the same');
is(($lines->events(1, 5))[0]{data}, $ping, 'a ping is a line');
ok($st->comment(5), 'or as a comment');

for my $text ($st->text, $lines->text) {
    ok($text !~ /alice|bob|shop|616c696365/, 'no account');
    ok($text !~ /secret-key|memo|idem/, 'no key, no memo');
    ok(index($text, $token) < 0, 'no token');
}

my $again = stream(undef, 'Last-Event-ID' => $e[2]{id});
is(join(' ', map { $_->{id} } $again->events(2)), "$e[3]{id} $e[4]{id}",
   'Last-Event-ID goes on behind it');
$again->close;

$again = stream(undef, 'Last-Event-ID' => 1_000_000);
is(($again->events(1))[0]{event}, 'reset', 'an id of another life');
$again->close;

is($s->get('/v1/audit/stream', token => $token,
           headers => { 'Last-Event-ID' => 'x' })->{status}, 400,
   'or none at all');

my $roc = RonStream->new($s, '/v1/audit/stream',
                         token => $s->token('act = read', 'asset = roc'));
op('issue', to => 'alice');
op('issue', to => 'alice', asset => 'roc');
is(json_get(($roc->events(1))[0]{data}, 'asset'), 'roc',
   'a capability for one asset: that one only');
$roc->close;
$st->events(2);


# a storm: who is slow loses the oldest and is told; payments are not slowed

sub storm {
    my ($n) = @_;

    my @socks = map { $s->connect } 1 .. 16;
    my @busy = (0) x @socks;
    my ($sent, $got, $ok) = (0, 0, 0);

    while ($got < $n) {
        for my $i (0 .. $#socks) {
            next if $busy[$i] || $sent == $n;
            $s->send_request($socks[$i], 'POST', '/v1/issue', { to => 'a',
                asset => 'ron', amount_minor => '1' },
                key => 'storm-' . ++$keys, sock => 1);
            $busy[$i] = 1;
            $sent++;
        }
        for my $i (grep { $busy[$_] } 0 .. $#socks) {
            $ok += RonTest::read_response($socks[$i], 'POST', 30)->{status}
                   == 200;
            $busy[$i] = 0;
            $got++;
        }
    }

    return $ok;
}

my $slow = stream($slow_port, rcvbuf => 2048);
is(storm(1400), 1400, '1400 payments');

@e = $st->events(1400, 30);
is(scalar @e, 1400, 'who reads has them all');
my ($life, $n) = split /-/, $e[0]{id};
ok(!(grep { $_->{id} ne "$life-" . $n++ } @e), 'in order');

@e = ();
until_ok(20, sub {
    push @e, $slow->events(200, 0.5);
    ($e[-1]{id} || 0) eq "$life-" . ($n - 1);
});
my ($lagged) = grep { ($_->{event} || '') eq 'lagged' } @e;
ok($lagged, 'who does not is told');
my $lost = $lagged ? json_get($lagged->{data}, 'lost') : 0;
my @got = grep { defined $_->{id} } @e;
is(@got + $lost, 1400, 'how many were lost: all others came');
is($got[-1]{id}, "$life-" . ($n - 1), 'the newest among them');
is($s->metric('bus_lagged_total{service="wallet",bus="events"}'), $lost,
   'they are counted');
is($s->metric('queue_dropped_total{service="wallet",queue="events"}'), $lost,
   'as dropped too');
like($s->log, qr/\[warn\].*an audit stream is slow: $lost events/,
     'and warned of');
$slow->close;


# the invalidator: the helper's loop is held while the ledger goes on

my $cached = sub {
    my $r = $s->get('/v1/balance?account=bob&asset=ron');
    return json_get($r->{body}, 'amount_minor');
};

is($cached->(), '2', 'a balance');
is($s->metric('bus_lagged_total{service="wallet",bus="ledger"}'), 0,
   'the ledger bus is followed');

my $attached = $s->dir . '/strace';
my $helper = $s->helper;
my $strace = fork();

if ($strace == 0) {
    open STDOUT, '>', $attached;
    open STDERR, '>&', \*STDOUT;
    exec 'strace', '-p', $helper, '-e', 'trace=?epoll_wait,?epoll_pwait',
         '-e', 'inject=?epoll_wait,?epoll_pwait:delay_exit=60000000'
        or POSIX::_exit(127);
}

ok(until_ok(10, sub { RonTest::slurp($attached) =~ /attached/ }),
   'the loop of the helper is held') or diag(RonTest::slurp($attached));
Time::HiRes::sleep(0.2);

is(storm(1200), 1200, '1200 commits meanwhile');
kill 'TERM', $strace;
waitpid $strace, 0;

ok(until_ok(10, sub {
    $s->metric('bus_lagged_total{service="wallet",bus="ledger"}') > 0 }),
   'then it is told that the bus went on without it');
is($s->metric('queue_dropped_total{service="wallet",queue="ledger"}'),
   $s->metric('bus_lagged_total{service="wallet",bus="ledger"}'),
   'as dropped too');
like($s->log, qr/\[warn\].*all balances are dropped/, 'and says so');
is($cached->(), '2', 'the balance is what it was: the ledger was asked');
op('transfer', from => 'alice', to => 'bob', nonce => 5,
   amount_minor => '1');
is($cached->(), '3', 'and the cache goes on');
my $lag = $s->metric('bus_lagged_total{service="wallet",bus="ledger"}');
storm(100);
is($s->metric('bus_lagged_total{service="wallet",bus="ledger"}'), $lag, 'once');


# the end

is($s->metric('queue_capacity{service="wallet",queue="events"}'), 1024,
   'the ring has its place among the queues');

my $place = ($st->events(1301))[0]{id};
ok($s->reload, 'reload');
ok($st->ended(5) && $lines->ended(5), 'streams end');
like($st->text, qr/retry: \d+\n: the server reloads\n\n\z/, 'with a retry');
like($lines->text, qr/\{"event":"retry","retry_ms":\d+\}\n\z/, 'or a line');

$st = stream();
$lines = stream(undef, Accept => 'application/x-ndjson');
$s->post('/ledger/admin/drain', undef);
ok($st->ended(5) && $lines->ended(5), 'and at a drain');
is(($st->all)[-1]{event}, 'final', 'with final');
like(($lines->all)[-1]{data}, qr/^\{"event":"final","seq":\d+\}$/, 'or so');

$s->quit;

# a new zone counts anew: an id of before is no place in it, however small

$s->start or BAIL_OUT('no server');
$st = stream();
($st->events(1, 0.2));
ok(until_ok(10, sub {
    op('transfer', from => 'alice', to => 'bob', nonce => 100_000 + $keys,
       amount_minor => '1');
    my @new = grep { defined $_->{id} } $st->all;
    $st->events(1, 0.1);
    @new >= 3;
}), 'events of another life');

my ($old) = $place =~ /^(\w+)-/;
my @new = grep { defined $_->{id} } $st->all;
unlike($new[0]{id}, qr/^$old-/, 'have other ids');

for my $id ("$old-1", "$old-2", '1') {
    my $back = stream(undef, 'Last-Event-ID' => $id);
    my ($first) = $back->events(1);
    is($first->{event}, 'reset', "$id is no place of this one");
    like(json_get($first->{data}, 'id'), qr/^(?!$old)\w{12}-\d+$/,
         'and it is said from where it goes on');
    $back->close;
}

my $back = stream(undef, 'Last-Event-ID' => $new[0]{id});
is(($back->events(1))[0]{id}, $new[1]{id}, 'an id of this one is');
$back->close;
$s->quit;

# the secrets of this suite are in no log

my $log = $s->log;
ok($log !~ /secret-key|storm-\d/, 'no key in the log');
ok(index($log, $token) < 0, 'no token in the log');

done_testing();
