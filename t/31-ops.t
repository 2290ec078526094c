#!/usr/bin/perl

# POST /ledger/ops: wallet operations as a remote wallet sends them.  The same
# decisions as /v1/ makes, and the same receipts to the byte.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use Time::HiRes qw(time);


my $s = RonTest->new(workers => 2);
$s->start or BAIL_OUT('no server');

my $n = 0;

sub ops {
    my ($op, $request, %o) = @_;

    my %args = map { $_ => delete $o{$_} }
               grep { exists $o{$_} } qw(token query headers type);
    my $query = delete $args{query} || '';

    return $s->post("/ledger/ops$query",
                    { op => $op, key => 'o' . ++$n, request => $request, %o },
                    %args);
}

sub balance {
    my ($account, $member) = @_;

    my $r = $s->get("/ledger/ops/balance?account=$account&asset=ron");

    return json_get($r->{body}, $member || 'amount_minor');
}

sub code { json_get($_[0]{body}, 'code') }


# each operation

my $r = ops('issue', { to => 'alice', asset => 'ron',
                       amount_minor => '1000' });
is($r->{status}, 200, 'issue') or diag($r->{body});
is(json_get($r->{body}, 'op'), 'issue', 'its receipt says so');
is($r->{headers}{'content-type'}, 'application/json', 'as JSON');
my $issue = $r->{body};
my $txid = json_get($issue, 'txid');

my %transfer = (from => 'alice', to => 'bob', asset => 'ron',
                amount_minor => '10', nonce => 1);

$r = ops('transfer', { %transfer, memo => "caf\xc3\xa9" }, key => 'pay-1');
is($r->{status}, 200, 'transfer') or diag($r->{body});
my $first = $r->{body};
is(json_get($first, 'idem'), 'pay-1', 'under its key');
is(balance('alice'), 990, 'has its effect');

is(ops('burn', { from => 'alice', asset => 'ron', amount_minor => '1',
                 nonce => 2 })->{status}, 200, 'burn');
$r = ops('hold', { from => 'alice', to => 'shop', asset => 'ron',
                   amount_minor => '50', nonce => 3 });
is($r->{status}, 200, 'hold');
my $hold = json_get($r->{body}, 'txid');
is(balance('alice', 'held_minor'), 50, 'is shown');
is(ops('capture', { hold => $hold, amount_minor => '20' })->{status}, 200,
   'capture');
is(ops('release', { hold => $hold })->{status}, 200, 'release');
$r = ops('batch', { ops => [ map {
    { op => 'transfer', %transfer, nonce => $_, amount_minor => '1' }
} 4, 5 ], atomic => \'true' });
is($r->{status}, 200, 'batch') or diag($r->{body});
is(() = $r->{body} =~ /"txid":/g, 2, 'with two receipts');
$r = ops('batch', { ops => [
    { op => 'transfer', %transfer, nonce => 6, amount_minor => '1' },
    { op => 'transfer', %transfer, nonce => 7, amount_minor => '9999' },
] });
is($r->{status}, 207, 'a part of a batch');


# the two doors are one wallet

$r = $s->post('/v1/transfer', { %transfer, memo => "caf\xc3\xa9" },
              key => 'pay-1');
is($r->{status}, 200, 'the same payment at /v1/');
is($r->{body}, $first, 'is a replay, byte for byte');
is($r->{headers}{'idempotent-replayed'}, 'true', 'and says so');

$r = ops('transfer', { %transfer, memo => "caf\xc3\xa9" }, key => 'pay-1');
is($r->{body}, $first, 'and again at /ledger/ops');
is($r->{headers}{'idempotent-replayed'}, 'true', 'which says so too');

$r = $s->post('/v1/transfer', { %transfer, nonce => 10 }, key => 'pay-2');
is(ops('transfer', { %transfer, nonce => 10 }, key => 'pay-2')->{body},
   $r->{body}, 'and the other way round');

$r = ops('transfer', { %transfer, amount_minor => '11' }, key => 'pay-1');
is($r->{status}, 422, 'another payment under the same key');
is(code($r), 'IDEMPOTENCY_MISMATCH', 'is a mismatch');

my @doors = (
    sub { $s->post("/v1/$_[0]", $_[1], key => $_[2]) },
    sub { ops($_[0], $_[1], key => $_[2]) },
);

for my $case (
    [ 'insufficient', 'transfer', { %transfer, nonce => 20,
                                    amount_minor => '99999' } ],
    [ 'a nonce passed', 'transfer', { %transfer, nonce => 2 } ],
    [ 'not a hold', 'release', { hold => $txid } ],
    [ 'a closed hold', 'release', { hold => $hold } ],
    [ 'to oneself', 'transfer', { %transfer, to => 'alice', nonce => 20 } ],
    [ 'no such asset', 'transfer', { %transfer, asset => 'gold',
                                     nonce => 20 } ],
    [ 'a member too many', 'transfer', { %transfer, colour => 'blue' } ],
    [ 'a member too few', 'transfer', { from => 'alice' } ],
    [ 'too much at once', 'issue', { to => 'x', asset => 'ron',
                                     amount_minor => '1' . '0' x 21 } ],
) {
    my ($what, $op, $request) = @$case;
    my @answers = map { $_->($op, $request, "same-$op") } @doors;

    isnt($answers[0]{status}, 200, "$what is refused");
    is($answers[1]{status}, $answers[0]{status}, "$what: the same status");

    $_->{body} =~ s/"corr_id":"[^"]*"/"corr_id":""/ for @answers;
    is($answers[1]{body}, $answers[0]{body}, "$what: the same problem");
}

is(ops('transfer', { %transfer, nonce => 20 })->{status}, 200,
   'none of them burnt a nonce');


# If-Match, strict nonces and ceilings are in the envelope

my $tag = $s->get('/ledger/ops/balance?account=alice&asset=ron')
            ->{headers}{etag};
like($tag, qr/^"\d+"$/, 'a balance has an entity tag');
my ($version) = $tag =~ /(\d+)/;

$r = ops('transfer', { %transfer, nonce => 21 }, if_match => 1);
is($r->{status}, 412, 'if_match of an old version');
is(ops('transfer', { %transfer, nonce => 21 }, if_match => 0 + $version)
   ->{status}, 200, 'and of this one');

$r = ops('transfer', { %transfer, nonce => 23 }, nonce_strict => \'true');
is(code($r), 'NONCE_CONFLICT', 'a strict wallet refuses a gap');
is(json_get($r->{body}, 'expected'), 22, 'and says what is next');

$r = ops('transfer', { %transfer, nonce => 23 }, account_daily => '15');
is(code($r), 'LIMITS_EXCEEDED', "the wallet's daily ceiling");
$r = ops('transfer', { %transfer, nonce => 23 }, account_total => '15');
is(code($r), 'LIMITS_EXCEEDED', "the wallet's ceiling of an account");
$r = ops('issue', { to => 'rich', asset => 'ron',
                    amount_minor => '1' . '0' x 20 },
         account_daily => '9' x 38) for 1 .. 101;
is(code($r), 'LIMITS_EXCEEDED', 'a ceiling is lowered, never raised');


# nothing is executed after its deadline

my $now = int(time * 1000);

$r = ops('transfer', { %transfer, nonce => 24 }, deadline => $now - 1);
is($r->{status}, 503, 'a deadline in the past');
is(code($r), 'RETRY_LATER', 'was not executed');
like($r->{headers}{'retry-after'}, qr/^\d+$/, 'Retry-After');
is(ops('transfer', { %transfer, nonce => 24 }, deadline => $now + 60_000)
   ->{status}, 200, 'a deadline ahead');


# envelopes

for my $case (
    [ 'no key', { op => 'transfer', request => \%transfer }, 'key' ],
    [ 'a key with a space', { op => 'transfer', key => 'a b',
                              request => \%transfer }, 'key' ],
    [ 'a quoted key', { op => 'transfer', key => '"a"',
                        request => \%transfer }, 'key' ],
    [ 'a key too long', { op => 'transfer', key => 'k' x 65,
                          request => \%transfer }, 'key' ],
    [ 'no request', { op => 'transfer', key => 'a' }, 'request' ],
    [ 'a request that is none', { op => 'transfer', key => 'a',
                                  request => [] }, 'request' ],
    [ 'no operation', { key => 'a', request => \%transfer }, 'op' ],
    [ 'an unknown operation', { op => 'mint', key => 'a',
                                request => \%transfer }, 'op' ],
    [ 'a member too many', { op => 'transfer', key => 'a', colour => 'blue',
                             request => \%transfer }, 'colour' ],
    [ 'a version that is none', { op => 'transfer', key => 'a',
                                  if_match => '1', request => \%transfer },
      'if_match' ],
    [ 'a ceiling of nothing', { op => 'transfer', key => 'a',
                                account_daily => '0',
                                request => \%transfer }, 'account_daily' ],
) {
    my ($what, $body, $field) = @$case;

    $r = $s->post('/ledger/ops', $body);
    is($r->{status}, 400, $what) or diag($r->{body});
    is(json_get($r->{body}, 'field'), $field, "$what: names the member");
}

is($s->post('/ledger/ops', '{"op":"transfer","op":"burn"}')->{status}, 400,
   'a member twice');
is(ops('transfer', \%transfer, type => 'text/plain')->{status}, 415,
   'not as JSON');
is($s->get('/ledger/ops')->{status}, 405, 'only POST');
is($s->post('/ledger/ops', '{"op":"' . 'x' x (1024 * 1024) . '"}')->{status},
   413, 'a body over the cap');


# capabilities: the service is the ledger, the act is that of the operation

for my $case (
    [ 401, 'no token', undef ],
    [ 401, 'a token of another key', $s->token({ secret => 'x' x 32 }) ],
    [ 403, 'a token for the wallet only', $s->token('svc = wallet') ],
    [ 403, 'another act', $s->token('act = ingest issue burn') ],
    [ 403, 'another account', $s->token('account = bob') ],
    [ 403, 'another asset', $s->token('asset = roc') ],
    [ 403, 'a smaller amount', $s->token('max_amount = 5') ],
) {
    my ($status, $what, $token) = @$case;
    $r = ops('transfer', { %transfer, nonce => 30 }, token => $token);
    is($r->{status}, $status, $what) or diag($r->{body});
}

is(ops('transfer', { %transfer, nonce => 30 },
       token => $s->token('svc = wallet ledger', 'act = transfer',
                          'account = al*', 'asset = ron', 'max_amount = 10'))
   ->{status}, 200, 'a token that has just what is needed');

is(ops('transfer', { %transfer, nonce => 30, to => 'ledger' },
       token => $s->token('svc = ledger'))->{status}, 409,
   'the service is that of the door, not that of the operation');

$r = ops('hold', { from => 'alice', to => 'shop', asset => 'ron',
                   amount_minor => '5', nonce => 31 });
$hold = json_get($r->{body}, 'txid');
is(ops('capture', { hold => $hold, amount_minor => '2' },
       token => $s->token('account = bob'))->{status}, 403,
   "another's hold");
is(ops('capture', { hold => $hold, amount_minor => '2' },
       token => $s->token('account = alice', 'asset = ron'))->{status}, 200,
   "one's own");

my $daily = $s->token({ id => 'daily' }, 'max_daily = 15');
is(ops('transfer', { %transfer, nonce => 40 }, token => $daily)->{status},
   200, 'a daily bound');
is(ops('transfer', { %transfer, nonce => 41 }, token => $daily)->{status},
   403, 'is a bound');


# what a remote wallet reads

$r = $s->get('/ledger/ops/outcome?account=alice',
             headers => { 'Idempotency-Key' => 'pay-1' });
is(json_get($r->{body}, 'outcome'), 'committed', 'outcome of a key');
ok(index($r->{body}, substr($first, 0, -1)) > 0, 'with its receipt');
$r = $s->get('/ledger/ops/outcome?account=alice',
             headers => { 'Idempotency-Key' => 'never' });
is(json_get($r->{body}, 'outcome'), 'unknown', 'of a key never seen');
is($s->get('/ledger/ops/outcome?account=alice')->{status}, 400,
   'without a key');
$r = $s->post('/v1/batch', { ops => [ { op => 'issue', to => 'zoe',
              asset => 'ron', amount_minor => '7' } ] }, key => 'many');
is($r->{status}, 200, 'a batch');
chomp(my $answer = $r->{body});
is($s->get('/ledger/ops/outcome?account=alice&age=7000',
           headers => { 'Idempotency-Key' => 'many' })->{body},
   qq({"outcome":"committed","batch":$answer}\n),
   'outcome of its key, which is the capability\'s');

$r = $s->get("/ledger/ops/tx/$txid");
is($r->{status}, 200, 'a receipt by its txid');
is($r->{body}, $issue, 'is the same');
ok(until_ok(5, sub { $s->get("/ledger/ops/tx/$txid?proof=1")->{body}
                    eq $s->get("/v1/tx/$txid?proof=1")->{body} }),
   'also with its proof, once the head is that of all entries');

$r = ops('transfer', { %transfer, nonce => 50 }, query => '?proof=1');
like($r->{body}, qr/"proof":\{"entry":"[\w+\/=]+","leaf":"[0-9a-f]{64}"/,
     'a receipt with its proof');

is($s->get('/ledger/ops/balance?account=alice&asset=ron',
           token => $s->token('account = bob'))->{status}, 403,
   "another's balance");
is($s->get('/ledger/ops/balance?account=alice&asset=ron',
           headers => { 'If-None-Match' => $s->get(
               '/ledger/ops/balance?account=alice&asset=ron')
               ->{headers}{etag} })->{status}, 304, 'If-None-Match');


# and all of it again after a restart

$s->quit;
$s->start or BAIL_OUT('no server');
$r = ops('transfer', { %transfer, memo => "caf\xc3\xa9" }, key => 'pay-1');
is($r->{body}, $first, 'a replay after a restart, byte for byte');

# the log phase counts, and that is after the answer

ok(until_ok(5, sub {
    $s->get('/metrics', token => undef)->{body} =~
        /^http_requests_total\{[^}]*route="\/ledger\/ops",
         method="POST",status="200"\}\ [1-9]/xm
}), 'counted under its route');

$s->quit;

done_testing();
