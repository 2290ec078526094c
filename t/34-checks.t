#!/usr/bin/perl

# Checks by other services: keys, policy, double spending.  Yes, no, slow,
# broken, dead; tries, pauses, breakers, and how many are asked at once.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use File::Temp ();
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw(sleep time);


# ---- a service that does as it is told, and writes down what it was asked ---

my $dir = File::Temp->newdir;
my $parent = $$;
my ($mock, $port) = mock();

END { kill 'KILL', -$mock if $mock && $$ == $parent }

sub mock {
    my $listen = IO::Socket::INET->new(Listen => 64, Proto => 'tcp',
                                       LocalAddr => '127.0.0.1:'
                                                    . ($_[0] || 0),
                                       ReuseAddr => 1)
        || die "listen: $!";
    my $pid = fork;
    die "fork: $!" unless defined $pid;

    if ($pid) {
        setpgrp $pid, $pid;
        return ($pid, $listen->sockport);
    }

    setpgrp;
    $SIG{CHLD} = 'IGNORE';

    while (my $c = $listen->accept) {
        my $child = fork;
        next if $child;
        serve($c);
        POSIX::_exit(0);
    }

    POSIX::_exit(0);
}

sub serve {
    my ($c) = @_;
    my $buf = '';

    for (;;) {
        until ($buf =~ /\r\n\r\n/) {
            sysread($c, $buf, 65536, length $buf) or return;
        }

        $buf =~ s/^(.*?\r\n)\r\n//s;
        my $head = $1;
        my ($n) = $head =~ /^content-length: (\d+)/mi;

        while (length $buf < ($n || 0)) {
            sysread($c, $buf, 65536, length $buf) or return;
        }

        my $body = substr $buf, 0, $n || 0, '';
        my ($path) = $head =~ m{^\S+ (\S+)};
        my ($status, $delay, $shape) = told($path);

        open my $log, '>>', "$dir/log" or return;
        syswrite $log, sprintf("%.3f %s %s\n", time, $path,
                               join '|', map { s/\r\n/~/gr } $head, $body);
        close $log;

        sleep $delay if $delay;

        syswrite $c, ($shape || '') eq 'chunked'
            ? "HTTP/1.1 $status X\r\nTransfer-Encoding: chunked\r\n\r\n"
              . "2\r\nok\r\n0\r\n\r\n"
            : ($shape || '') eq 'garbage' ? "SSH-2.0-OpenSSH\r\n\r\n"
            : "HTTP/1.1 $status X\r\nContent-Length: 2\r\n\r\nok";
    }
}

sub slurp {
    my ($path) = @_;

    open my $f, '<', $path or return '';
    local $/;
    return scalar <$f>;
}

sub told {
    my ($path) = @_;

    return slurp("$dir/told") =~ /^\Q$path\E (\d+)(?: (\S+))?(?: (\S+))?$/m
           ? ($1, $2, $3) : (200);
}

my %told;

sub tell_mock {
    my ($path, @what) = @_;

    $told{$path} = "@what";
    open my $f, '>', "$dir/told.new" or die $!;
    print $f "$_ $told{$_}\n" for keys %told;
    close $f;
    rename "$dir/told.new", "$dir/told";
    unlink "$dir/log";
}

sub asked {
    my ($path) = @_;

    return grep { (split ' ', $_)[1] eq $path } split /\n/, slurp("$dir/log");
}


# ---- the server -------------------------------------------------------------

my $s = RonTest->new(workers => 2);

$s->{http} = "upstream checks { server 127.0.0.1:$port; keepalive 4; }"
             . 'ron_token_cache 0;';

sub configure {
    my (@lines) = @_;

    $s->{locations} = 0;
    $s->{config} = join "\n", @lines, <<'    END';
        location /v1/ { ron_wallet; }
        location /ledger/ { ron_ledger_api; }
        location = /healthz { ron_health live; }
        location = /readyz { ron_health ready; }
        location = /metrics { ron_metrics; }
    END

    return 1;
}

my ($n, $id) = (0, 0);

sub pay {
    my (%o) = @_;

    $n++;

    return $s->post('/v1/transfer', { from => 'alice', to => 'bob',
        asset => 'ron', amount_minor => '1', nonce => $n, %{ $o{body} || {} } },
        key => "k$n", map { $_ => $o{$_} } grep { $_ ne 'body' } keys %o);
}

sub ingest {
    my (%o) = @_;

    return $s->post('/ledger/ingest', { batch => [
        { id => 'e' . ++$id, ts => 1_700_000_000_000, kind => 'Mint',
          account => 'x', amount => '1', nonce => nonce16(), v => 1 } ] },
        %o);
}

# So many entries as lines; $at: where one is put that is none.

my $line = 0;

sub lines_text {
    my ($count, $at) = @_;

    return join '', map {
        ($at && $_ == $at ? '{"id":' : '')
        . '{"id":"l' . ++$line . '","ts":1700000000000,"kind":"Mint",'
        . '"account":"y","amount":"1","nonce":"' . nonce16() . '","v":1}' . "\n"
    } 1 .. $count;
}

sub lines {
    my ($count, $at) = @_;

    return $s->post('/ledger/ingest', lines_text($count, $at),
                    type => 'application/x-ndjson', timeout => 30);
}

sub lines_done {
    my ($r) = @_;

    my ($accepted, $rejected) = (0, 0);

    while ($r->{body} =~ /"accepted":(\d+),"rejected":(\d+)/g) {
        $accepted += $1;
        $rejected += $2;
    }

    return "$r->{status} $accepted $rejected";
}

sub ready { $s->get('/readyz', token => undef) }
sub code  { json_get($_[0]{body}, 'code') }

# a reload makes other workers; breakers stay in the zone

sub quiet {
    my ($target) = @_;

    return until_ok(8, sub { $s->metric('breaker_state', "target=\"$target\"")
                             == 0 || do { pay(); 0 } });
}


# configurations

for my $case (
    [ qr/invalid parameter "colour=blue"/, 'ron_policy_pass x:1 colour=blue;' ],
    [ qr/invalid value in "backoff=10ms", it must be from 50/,
      'ron_kms_pass x:1 backoff=10ms;' ],
    [ qr/invalid parameter "path=x"/, 'ron_wallet_check_pass x:1 path=x;' ],
    [ qr/is duplicate/, 'ron_policy_pass x:1; ron_policy_pass x:1;' ],
) {
    my ($says, $config) = @$case;

    my $bad = RonTest->new(ledger => '', locations => 0, config => $config);
    my ($code, $said) = $bad->test_config;
    isnt($code, 0, "$config is refused");
    like($said, $says, "says $says");
}

configure();
$s->start(nowait => 1) or BAIL_OUT('no server');
$s->wait_ready or BAIL_OUT('not ready');
is($s->post('/v1/issue', { to => 'alice', asset => 'ron',
                           amount_minor => '100000' }, key => 'i')->{status},
   200, 'without services checks are made here');
is(scalar asked('/policy/check'), 0, 'and nobody is asked');


# policy: the question, yes and no

configure('ron_policy_pass checks;');
ok($s->reload, 'a policy service');
ok($s->wait_ready, 'ready');

my $before = int(time * 1000);
my $r = pay(headers => { 'X-Corr-ID' => 'corr-7' });
is($r->{status}, 200, 'yes') or diag($r->{body});

my @asked = asked('/policy/check');
is(scalar @asked, 1, 'it was asked once');
like($asked[0], qr/POST \/policy\/check HTTP\/1\.1~/, 'by POST');
like($asked[0], qr/~X-Corr-ID: corr-7~/, 'with the correlation id');
unlike($asked[0], qr/Authorization/i, 'and without the token');
like($asked[0], qr/"svc":"wallet","capability":"dev:test"/, 'who');
like($asked[0], qr/"ops":\[\{"kind":"Transfer","account":"alice","to":"bob",
                   "asset":"ron","amount":"1","nonce":1\}\]/x, 'wants what');
my ($deadline) = $asked[0] =~ /"deadline":(\d+)/;
cmp_ok($deadline, '>', $before, 'and until when');
cmp_ok($deadline, '<=', $before + 6000, 'it has to have said');

is(ingest()->{status}, 200, 'entries are checked too');
like((asked('/policy/check'))[-1], qr/"svc":"ledger".*"id":"e1"/, 'each');
is($s->get('/v1/balance?account=alice&asset=ron')->{status}, 200,
   'reads are not');
is(scalar asked('/policy/check'), 2, 'and nobody is asked about them');

# lines: each batch of them is checked as an ingest is

tell_mock('/policy/check', '200');
is(lines_done(lines(3)), '200 3 0', 'lines');
@asked = asked('/policy/check');
is(scalar @asked, 1, 'are asked about together');
like($asked[0], qr/"svc":"ledger".*"id":"l1".*"id":"l2".*"id":"l3"/, 'all');
$r = lines(4, 2);
is(lines_done($r), '200 3 1', 'one that is none is not asked about');
like($r->{body}, qr/^\{"line":2,"reason":"malformed"/, 'and is told');
unlike((asked('/policy/check'))[1], qr/"id":"l5"/, 'by itself');

my $y = json_get($s->get('/ledger/accounts/y')->{body}, 'amount_minor');
is($y, 6, 'they are in the ledger');

tell_mock('/policy/check', '200');
is(lines_done(lines(5000)), '200 5000 0', 'many lines');
my $batches = asked('/policy/check');
cmp_ok($batches, '>', 3, "in $batches batches, each asked about");

for my $case ([ 403, 'policy_denied' ], [ 401, 'unauth' ], [ 409, 'conflict' ],
              [ 422, 'policy_denied' ])
{
    my ($says, $reason) = @$case;

    tell_mock('/policy/check', $says);
    $r = lines(3, 2);
    is(lines_done($r), '200 0 3', "$says: no line is taken");
    like($r->{body}, qr/^\{"line":$_,"reason":"$reason","detail":
                         "a\ service\ that\ checks\ refused\ it"\}$/mx,
         "line $_: $reason") for 1, 3;
}

tell_mock('/policy/check', '403');
$r = lines(5000);
is(lines_done($r), '200 0 5000', 'the next batches are asked about too');
$batches = asked('/policy/check');
cmp_ok($batches, '>', 3, 'each of them');

for my $case ([ 429, 429, 'BUSY' ], [ 302, 503, 'UPSTREAM_UNAVAILABLE' ]) {
    my ($says, $status, $code) = @$case;

    tell_mock('/policy/check', $says);
    $r = lines(5000);
    is($r->{status}, $status, "$says: the stream ends");
    is(code($r), $code, "with $code");
    is(scalar asked('/policy/check'), 1, 'and nobody is asked again');
}

is(json_get($s->get('/ledger/accounts/y')->{body}, 'amount_minor'), $y + 5000,
   'nothing of all that was done');

# yes to the first, and then no answer: a last line

tell_mock('/policy/check', '200 0.3');
my $sock = $s->connect;
$s->send_request($sock, 'POST', '/ledger/ingest', lines_text(5000),
                 type => 'application/x-ndjson');
ok(until_ok(5, sub { scalar asked('/policy/check') }), 'the first is asked');
tell_mock('/policy/check', '429');
$r = RonTest::read_response($sock, 'POST', 10);
is($r->{status}, 200, 'it has begun');
like($r->{body}, qr/"code":"BUSY".*\n\z/, 'and ends with a problem');
my ($some) = lines_done($r) =~ /^200 (\d+) 0$/;
cmp_ok($some, '>', 0, "what was allowed is done: $some");
is(json_get($s->get('/ledger/accounts/y')->{body}, 'amount_minor'),
   $y + 5000 + $some, 'and nothing else');

# a client that goes away meanwhile

tell_mock('/policy/check', '200 0.4');
$sock = $s->connect;
$s->send_request($sock, 'POST', '/ledger/ingest', lines_text(2000),
                 type => 'application/x-ndjson');
ok(until_ok(5, sub { scalar asked('/policy/check') }), 'somebody is asked');
close $sock;
ok(until_ok(5, sub { $s->metric('inflight_requests', '/ledger/ingest') == 0
                     && $s->metric('ledger_prevalidators_busy') == 0 }),
   'nothing is left of it');
tell_mock('/policy/check', '200');
is(lines_done(lines(1)), '200 1 0', 'others are served');

for my $case (
    [ 403, 403, 'FORBIDDEN', 'policy_denied' ],
    [ 401, 401, 'UNAUTHORIZED', 'unauth' ],
    [ 409, 409, 'CONFLICT', 'conflict' ],
    [ 422, 403, 'LIMITS_EXCEEDED', 'policy_denied' ],
    [ 429, 429, 'BUSY', 'busy' ],
    [ 404, 503, 'UPSTREAM_UNAVAILABLE', 'timeout' ],
    [ 302, 503, 'UPSTREAM_UNAVAILABLE', 'timeout' ],
) {
    my ($says, $status, $code, $reason) = @$case;

    tell_mock('/policy/check', $says);
    $r = pay();
    is($r->{status}, $status, "$says is $status");
    is(code($r), $code, "and $code");
    is(json_get($r->{body}, 'reason'), $reason, "for $reason");
    is(scalar asked('/policy/check'), 1, "$says is not asked again");
    is($s->metric('breaker_state', 'target="policy"'), 0, 'and is an answer');
}

$s->allow(qr/neither yes nor no/);
tell_mock('/policy/check', '200 0 chunked');
is(pay()->{status}, 200, 'a refusal burns no nonce; an answer in chunks');


# policy: no answer

tell_mock('/policy/check', '500');
my $t = time;
$r = pay();
is($r->{status}, 503, '500 is no answer');
is(code($r), 'UPSTREAM_UNAVAILABLE', 'nothing was done');
@asked = asked('/policy/check');
is(scalar @asked, 2, 'one retry');
my @at = map { (split)[0] } @asked;
cmp_ok($at[1] - $at[0], '>=', 0.049, 'after 50 ms');
cmp_ok($at[1] - $at[0], '<', slow(0.15 + 0.1), 'and at most 150 ms');
is($s->metric('breaker_state', 'target="policy"'), 1, 'that opens the breaker');
is($s->metric('breaker_open_total', 'target="policy"'), 1, 'once');
is($s->metric('backoff_retries_total', 'service="ledger"', 'op="policy"'), 1,
   'a retry');
$r = ready();
is($r->{status}, 503, 'not ready');
is(json_get($r->{body}, 'policy_ready'), 'false', 'policy_ready');
is(json_get($r->{body}, 'kms_ready'), 'true', 'kms_ready');
is(json_get($r->{body}, 'wallet_ready'), 'true', 'wallet_ready');
like($r->{body}, qr/"missing":\["policy"\]/, 'missing');

tell_mock('/policy/check', '200');
my $opened = $t;
$t = time;
is(pay()->{status}, 503, 'while it is open');
cmp_ok(time - $t, '<', slow(0.1), 'the answer is there at once');
is(scalar asked('/policy/check'), 0, 'and nobody is asked');

ok(until_ok(8, sub { pay()->{status} == 200 }), 'half open, one probe');
cmp_ok(time - $opened, '>=', 5, 'after 5 s');
is($s->metric('breaker_state', 'target="policy"'), 0,
   'and one success closes it');
is(ready()->{status}, 200, 'ready again');


# with a threshold of three it is the third call in a row that opens

$s->{http} .= 'ron_breaker_threshold 3;';
configure('ron_policy_pass checks tries=1 open=1s;');
ok($s->reload, 'a threshold of three');
ok($s->wait_ready, 'ready');
tell_mock('/policy/check', '500');

for my $call (1 .. 3) {
    is(code(pay()), 'UPSTREAM_UNAVAILABLE', "call $call has no answer");
    is(scalar asked('/policy/check'), $call, 'and was made');
    is($s->metric('breaker_state', 'target="policy"'), $call == 3 ? 1 : 0,
       $call == 3 ? 'which opens the breaker' : 'which opens nothing');
}

pay();
is(scalar asked('/policy/check'), 3, 'nobody is asked any more');
tell_mock('/policy/check', '200');
ok(quiet('policy'), 'closed again');

# and errors= of one service is more than that of all

configure('ron_policy_pass checks tries=1 open=1s errors=1;');
ok($s->reload, 'one error for policy');
ok($s->wait_ready, 'ready');
tell_mock('/policy/check', '500');
pay();
is($s->metric('breaker_state', 'target="policy"'), 1, 'opens its breaker');
tell_mock('/policy/check', '200');
ok(quiet('policy'), 'closed again');
$s->{http} =~ s/ron_breaker_threshold 3;//;


# time-outs: 800 ms for policy, never more than the request has

configure('ron_policy_pass checks open=1s;');
ok($s->reload, 'a breaker that is open for 1 s');
ok($s->wait_ready, 'ready');

tell_mock('/policy/check', '200 3');
$t = time;
$r = pay();
my $took = time - $t;
is(code($r), 'UPSTREAM_UNAVAILABLE', 'too slow');
cmp_ok($took, '>=', 1.64, 'two tries of 800 ms and a pause');
cmp_ok($took, '<', slow(2.3), 'and no more');
is($s->metric('io_timeouts_total', 'service="ledger"', 'op="policy"'), 2,
   'two time-outs');
is($s->metric('breaker_state', 'target="policy"'), 1, 'are a reason to open');
tell_mock('/policy/check', '200');
ok(quiet('policy'), 'closed again');

configure('ron_policy_pass checks timeout=3s tries=1 open=1s;');
ok($s->reload, 'with more patience than the caller');
ok($s->wait_ready, 'ready');
tell_mock('/policy/check', '200 3');
$t = time;
$r = pay(headers => { 'Request-Timeout' => 1 });
is($r->{status}, 503, "the caller's deadline");
cmp_ok(time - $t, '<', slow(1.5), 'holds');
is($s->metric('breaker_state', 'target="policy"'), 0,
   "and its impatience is not the service's fault");
tell_mock('/policy/check', '200 0 garbage');
is(code(pay()), 'UPSTREAM_UNAVAILABLE', 'what is not HTTP is no answer');
tell_mock('/policy/check', '200');
ok(quiet('policy'), 'closed again');


# keys: before the body, for each service, 401 and 403

configure('ron_kms_pass checks open=1s;');
ok($s->reload, 'a key service');
ok($s->wait_ready, 'ready');
tell_mock('/kms/verify', '200');

my $foreign = $s->token({ kid => 'elsewhere', secret => 'x' x 32 },
                        'svc = wallet', 'act = transfer read');

is(pay(token => $foreign)->{status}, 200, 'a key that only it has');
@asked = asked('/kms/verify');
is(scalar @asked, 1, 'it was asked');
ok(index($asked[0], "~Authorization: Bearer $foreign~") > 0,
   'about this token');
like($asked[0], qr/"svc":"wallet","kid":"elsewhere","capability":"test"/,
     'and says whose it claims to be');
is($s->get('/v1/balance?account=alice&asset=ron', token => $foreign)
   ->{status}, 200, 'reads too');
is(scalar asked('/kms/verify'), 2, 'are asked about');

for my $case (
    [ 403, 'another act', $s->token('act = issue') ],
    [ 403, 'another account', $s->token('account = bob') ],
    [ 403, 'a caveat nobody knows', $s->token('colour = blue') ],
    [ 401, 'an expired token', $s->token('before = 1000') ],
    [ 401, 'no token at all', 'x' ],
) {
    my ($status, $what, $token) = @$case;
    is(pay(token => $token)->{status}, $status,
       "it says yes, and the token is for $what");
}

for my $case ([ 401, 'UNAUTHORIZED' ], [ 403, 'FORBIDDEN' ]) {
    tell_mock('/kms/verify', $case->[0]);
    $r = pay();
    is($r->{status}, $case->[0], "$case->[0] from the key service");
    is(code($r), $case->[1], $case->[1]);
    is(scalar asked('/kms/verify'), 1, 'is not asked again');
}

tell_mock('/kms/verify', '503');
$r = pay();
is(code($r), 'UPSTREAM_UNAVAILABLE', 'no answer');
@asked = asked('/kms/verify');
is(scalar @asked, 3, 'two retries');
@at = map { (split)[0] } @asked;
cmp_ok($at[2] - $at[0], '>=', 0.149, 'after 50 and 100 ms');
cmp_ok($at[2] - $at[0], '<', slow(2 * 0.25 + 0.1), 'and at most 250 ms each');
is(json_get(ready()->{body}, 'kms_ready'), 'false', 'kms_ready');
is($s->metric('breaker_state', 'target="kms"'), 1, 'its breaker is open');
is($s->metric('upstream_calls_total', 'svc="kms"', 'op="verify"',
          'outcome="error"'), 3, 'calls are counted');
tell_mock('/kms/verify', '200');
ok(quiet('kms'), 'closed again');

# half a body is enough to be refused

tell_mock('/kms/verify', '401');
$sock = $s->connect;
syswrite $sock, $s->request_text('POST', '/v1/transfer', '{"a":', key => 'h',
    headers => { 'Content-Length' => 1000 }, sock => $sock);
is(RonTest::read_response($sock, 'POST', 5)->{status}, 401,
   'the token is judged before the body has come');
tell_mock('/kms/verify', '200');

$s->{http} =~ s/ron_token_cache 0;//;
ok($s->reload, 'with a cache of tokens');
ok($s->wait_ready, 'ready');
unlink "$dir/log";
pay() for 1 .. 8;
cmp_ok(scalar asked('/kms/verify'), '<=', 2, 'each worker asks once');
$s->{http} .= 'ron_token_cache 0;';


# who vouched for a token did so for one service, and only there

my $asks = RonTest->new(workers => 1, locations => 0,
    http => "upstream checks { server 127.0.0.1:$port; keepalive 4; }",
    config => <<'END');
        ron_kms_pass checks;
        location /v1/ { ron_wallet; }
        location /other/v1/ { ron_wallet; ron_kms_pass checks; }
        location /ledger/ { ron_ledger_api; }
        location /here/v1/ { ron_wallet; ron_kms_pass off; }
        location /here/ledger/ { ron_ledger_api; ron_kms_pass off; }
        location = /healthz { ron_health live; }
        location = /readyz { ron_health ready; }
        location = /metrics { ron_metrics; }
END
$asks->start(nowait => 1) && $asks->wait_ready or BAIL_OUT('no server');

my $vouched = $asks->token({ kid => 'elsewhere', secret => 'y' x 32 });
my $own = $asks->token({ id => 'own' });
my $read = 'v1/balance?account=a&asset=ron';

sub asks { $asks->get($_[0], token => $_[1])->{status} }

tell_mock('/kms/verify', '200');
is(asks("/$read", $vouched), 200, 'the key service knows it') for 1 .. 2;
is(scalar asked('/kms/verify'), 1, 'and is asked once');
is(asks("/here/$read", $vouched), 401, 'nobody is asked: it is not known');
is($asks->post('/here/ledger/admin/drain', {}, token => $vouched)->{status},
   401, 'least of all where it could end the ledger');
is(asks('/ledger/accounts/a', $vouched), 200, 'another service');
@asked = asked('/kms/verify');
is(scalar @asked, 2, 'asks for itself');
like($asked[1], qr/"svc":"ledger"/, 'and says which it is');
is(asks("/other/$read", $vouched), 200, 'another directive');
is(scalar asked('/kms/verify'), 3, 'asks for itself');

tell_mock('/kms/verify', '401');
is(asks("/$read", $vouched), 200, 'a yes is good for a minute');
is(asks("/here/$read", $own), 200, 'a token of our own keys') for 1 .. 2;
is(asks("/$read", $own), 401, 'that the key service does not know');
is($asks->post('/ledger/admin/drain', {}, token => $own)->{status}, 401,
   'anywhere');
is(asks("/here/$read", $own), 200, 'is still one of ours');
is(scalar asked('/kms/verify'), 2, 'it was asked both times');
$asks->quit;


# what is forged uses up nobody's rate

configure('ron_kms_pass checks open=1s; ron_rate 2r/s burst=2;');
ok($s->reload, 'with a rate');
ok($s->wait_ready, 'ready');
tell_mock('/kms/verify', '401');
is(pay()->{status}, 401, 'a forged token') for 1 .. 5;
tell_mock('/kms/verify', '200');
is(pay()->{status}, 200, 'and one that is not, of the same name');
is((sort { $b <=> $a } map { pay()->{status} } 1 .. 4)[0], 429,
   'whose own requests count');


# double spending, behind policy

configure('ron_policy_pass checks;',
          'ron_wallet_check_pass checks open=1s;');
ok($s->reload, 'two services');
ok($s->wait_ready, 'ready');
tell_mock('/wallet/check', '200');
is(pay()->{status}, 200, 'both say yes');
is(scalar asked('/policy/check'), 1, 'policy is asked');
is(scalar asked('/wallet/check'), 1, 'and then the wallet');
tell_mock('/policy/check', '403');
is(pay()->{status}, 403, 'policy says no');
is(scalar asked('/wallet/check'), 0, 'and then nobody else is asked');
tell_mock('/policy/check', '200');
tell_mock('/wallet/check', '409');
is(code(ingest()), 'CONFLICT', 'spent twice');
tell_mock('/wallet/check', '502');
is(code(pay()), 'UPSTREAM_UNAVAILABLE', 'no answer');
is(scalar asked('/wallet/check'), 2, 'one retry');
is($s->metric('backoff_retries_total', 'service="ledger"', 'op="wallet"'), 1,
   'is counted');
is(json_get(ready()->{body}, 'wallet_ready'), 'false', 'wallet_ready');
tell_mock('/wallet/check', '200');
ok(quiet('wallet'), 'closed again');


# sizing: so many checks at once, over all workers, and all get their turn

$s->{http} .= 'ron_ledger_prevalidators 3;';
configure('ron_policy_pass checks;');
ok($s->reload, 'three prevalidators');
ok($s->wait_ready, 'ready');
tell_mock('/policy/check', '200 0.2');

my @socks = map {
    my $sock = $s->connect;
    $n++;
    $s->send_request($sock, 'POST', '/v1/issue', { to => 'z', asset => 'ron',
        amount_minor => '1' }, key => "p$n");
    $sock;
} 1 .. 12;

# what is refused here asks no service, however much of it there is meanwhile

defined(my $other = fork) or BAIL_OUT("fork: $!");

if ($other == 0) {
    $s->post('/v1/issue', {}, key => "none$_") for 1 .. 10_000;
    POSIX::_exit(0);
}

my $busy = 0;
my $until = time + 0.6;
while (time < $until) {
    my $now = $s->metric('ledger_prevalidators_busy');
    $busy = $now if $now > $busy;
}
is($busy, 3, 'as many as there may be');
kill 'KILL', $other;
waitpid $other, 0;

my @status = map { RonTest::read_response($_, 'POST', 10)->{status} } @socks;
is(scalar(grep { $_ == 200 } @status), 12, 'all get their turn');

@at = sort { $a <=> $b } map { (split)[0] } asked('/policy/check');
is(scalar @at, 12, 'twelve questions');
is(scalar(grep { $at[$_ + 3] - $at[$_] < 0.15 } 0 .. $#at - 3), 0,
   'never more than three at once');
ok(until_ok(3, sub { $s->metric('ledger_prevalidators_busy') == 0 }),
   'and none is left busy');

# what waits too long is answered

tell_mock('/policy/check', '200 0.7');
@socks = map {
    my $sock = $s->connect;
    $n++;
    $s->send_request($sock, 'POST', '/v1/issue', { to => 'z', asset => 'ron',
        amount_minor => '1' }, key => "q$n",
        headers => { 'Request-Timeout' => 1 });
    $sock;
} 1 .. 9;
$t = time;
my @r = map { RonTest::read_response($_, 'POST', 10) } @socks;
cmp_ok(time - $t, '<', slow(1.6), 'within its deadline');
is(scalar(grep { $_->{status} == 200 } @r), 3, 'three had their turn');
is(scalar(grep { $_->{status} == 503 } @r), 6, 'six did not');
is($s->metric('breaker_state', 'target="policy"'), 0, 'which opens no breaker');


# a client that goes away while others are asked, a worker that dies

tell_mock('/policy/check', '200 0.7');

for (1 .. 6) {
    my $sock = $s->connect;
    $n++;
    $s->send_request($sock, 'POST', '/v1/issue', { to => 'z', asset => 'ron',
        amount_minor => '1' }, key => "r$n");
    sleep 0.02;
    close $sock;
}

$s->kill_worker for 1 .. 1;
tell_mock('/policy/check', '200');
ok(until_ok(8, sub { pay()->{status} == 200 }), 'their places are free again');
ok(until_ok(5, sub { $s->metric('ledger_prevalidators_busy') == 0 }),
   'all of them');


# a drain: who is being checked was admitted, and is done

configure('ron_policy_pass checks;');
ok($s->reload, 'a policy service');
ok($s->wait_ready, 'ready');
tell_mock('/policy/check', '200 0.6');

# the worker that another client is connected to hears nothing of it until
# after that client's request

my ($here, $there) = $s->workers;
freeze($here);
my $deaf = $s->connect;
$s->send_request($deaf, 'GET', '/healthz', undef, keep => 1);
is(RonTest::read_response($deaf, 'GET', 5)->{status}, 200, 'a connection');
kill 'CONT', $here;

my @late = map { $s->connect } 1 .. 2;
$s->send_request($late[0], 'POST', '/v1/issue', { to => 'drained',
    asset => 'ron', amount_minor => '3' }, key => 'drained');
$s->send_request($late[1], 'POST', '/ledger/ingest', { batch => [
    { id => 'drained', ts => 1_700_000_000_000, kind => 'Mint',
      account => 'x', amount => '1', nonce => nonce16(), v => 1 } ] });
ok(until_ok(5, sub { asked('/policy/check') == 2 }), 'two are being checked');
freeze($there);
$s->send_request($deaf, 'POST', '/v1/issue', { to => 'drained',
    asset => 'ron', amount_minor => '1' }, key => 'deaf');
is($s->post('/ledger/admin/drain', undef)->{status}, 200, 'a drain');
kill 'CONT', $there;
$r = RonTest::read_response($deaf, 'POST', 5);
is(code($r), 'DRAINING',
   'who asked a worker that has not heard of it is refused')
    or diag("$r->{status} $r->{body}\n", $s->log);
$t = time;
$r = pay();
is(code($r), 'DRAINING', 'who comes now is refused');
cmp_ok(time - $t, '<', slow(0.3), 'at once');
is(json_get(ready()->{body}, 'state'), 'draining', 'it waits for them');
is(RonTest::read_response($_, 'POST', 10)->{status}, 200,
   'who was being checked is done') for @late;
ok(until_ok(2, sub { json_get(ready()->{body}, 'state') eq 'stopped' }),
   'and then it is stopped');
is(json_get($s->get('/v1/balance?account=drained&asset=ron')->{body},
            'amount_minor'), 3, 'with all of it');


# dead

configure('ron_policy_pass checks open=1s;');
ok($s->reload, 'a breaker that is open for 1 s');
ok($s->wait_ready, 'ready');
kill 'KILL', -$mock;
waitpid $mock, 0;
$t = time;
$r = pay();
is(code($r), 'UPSTREAM_UNAVAILABLE', 'nobody is there');
cmp_ok(time - $t, '<', slow(0.8), 'that is known soon');
($mock) = mock($port);
ok(until_ok(8, sub { pay()->{status} == 200 }), 'somebody is');

$s->quit;

done_testing();
