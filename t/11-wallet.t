#!/usr/bin/perl

# The wallet: operations, receipts, idempotency, nonces, capabilities.

use strict;
use warnings;

use lib 't/lib';
use RonTest;


my $s = RonTest->new(workers => 2);
$s->start or BAIL_OUT('no server');

my $n = 0;

sub op {
    my ($op, $body, %o) = @_;

    return $s->post("/v1/$op", $body, key => 'k' . ++$n, %o);
}

sub balance {
    my ($account, $member) = @_;

    my $r = $s->get("/v1/balance?account=$account&asset=ron");

    return json_get($r->{body}, $member || 'amount_minor');
}


# the first money

my $r = op('issue', { to => 'alice', asset => 'ron',
                      amount_minor => '1000' });
is($r->{status}, 200, 'issue');
is(json_get($r->{body}, 'op'), 'issue', 'its receipt says so');
is(json_get($r->{body}, 'seq'), 1, 'the first entry has seq 1');
like(json_get($r->{body}, 'txid'), qr/^tx_[0-9A-HJKMNP-TV-Z]{26}$/, 'txid');
like(json_get($r->{body}, 'receipt_hash'), qr/^b3:[0-9a-f]{64}$/,
     'receipt_hash');
like(json_get($r->{body}, 'ts'),
     qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, 'ts');
ok(!json_has($r->{body}, 'from'), 'an issue is from nobody');
is($r->{headers}{'content-type'}, 'application/json', 'as JSON');

my $txid = json_get($r->{body}, 'txid');
my $receipt = $r->{body};


# a transfer, and its replay

my %transfer = (from => 'alice', to => 'bob', asset => 'ron',
                amount_minor => '10', nonce => 1);

$r = $s->post('/v1/transfer', \%transfer, key => 'pay-1');
is($r->{status}, 200, 'transfer');
is(balance('alice'), 990, 'alice has less');
is(balance('bob'), 10, 'bob has more');

my $first = $r->{body};

for my $key ('pay-1', '"pay-1"') {
    $r = $s->post('/v1/transfer', \%transfer, key => $key);
    is($r->{status}, 200, "replay with $key");
    is($r->{body}, $first, 'byte for byte');
    is($r->{headers}{'idempotent-replayed'}, 'true', 'and says so');
}

is(balance('alice'), 990, 'one effect');

$r = $s->post('/v1/transfer', { %transfer, amount_minor => '11' },
              key => 'pay-1');
is($r->{status}, 422, 'the same key for another payment');
is(json_get($r->{body}, 'code'), 'IDEMPOTENCY_MISMATCH', 'is a mismatch');

$r = $s->get('/v1/outcome?account=alice', headers =>
             { 'Idempotency-Key' => 'pay-1' });
is(json_get($r->{body}, 'outcome'), 'committed', 'outcome of a key');
ok(index($r->{body}, substr($first, 0, -1)) > 0, 'with its receipt');
$r = $s->get('/v1/outcome?account=alice', headers =>
             { 'Idempotency-Key' => 'never' });
is(json_get($r->{body}, 'outcome'), 'unknown', 'of a key never seen');
is(json_get($r->{body}, 'final'), 'false', 'which may be under way');

for my $case ([ 0, 'false' ], [ 5999, 'false' ], [ 6000, 'true' ],
              [ '18446744073709551615', 'true' ])
{
    my ($age, $final) = @$case;
    $r = $s->get("/v1/outcome?account=alice&age=$age", headers =>
                 { 'Idempotency-Key' => 'never' });
    is(json_get($r->{body}, 'final'), $final, "$age ms ago: $final");
}

is($s->get("/v1/outcome?account=alice&age=$_", headers =>
           { 'Idempotency-Key' => 'never' })->{status}, 400,
   "an age of $_") for qw(-1 5s 18446744073709551616);
$r = $s->get('/v1/outcome?account=alice&age=9000', headers =>
             { 'Idempotency-Key' => 'pay-1' });
is(json_get($r->{body}, 'outcome'), 'committed', 'committed stays so');


for my $key ('a"b', 'a\\b', '"a\\"b"', '"', 'k' x 65, 'a b') {
    $r = $s->post('/v1/transfer', { %transfer, nonce => 99 }, key => $key);
    is($r->{status}, 400, "a key of $key");
    like(json_get($r->{body}, 'detail'),
         qr/1 to 64 visible characters, without quotes or backslashes inside/,
         'says what it may be');
}


# a batch's key is its capability's, whatever account is asked about

my %token = (token => $s->token({ id => 'batcher' }));
my %batch = (ops => [
    { op => 'issue', to => 'carol', asset => 'ron', amount_minor => '7' },
    { op => 'transfer', from => 'carol', to => 'dave', asset => 'ron',
      amount_minor => '1', nonce => 1 },
    { op => 'burn', from => 'carol', asset => 'ron', amount_minor => '99',
      nonce => 2 },
]);
$r = $s->post('/v1/batch', \%batch, key => 'lost', %token);
is($r->{status}, 207, 'a batch whose answer is lost');
chomp(my $answer = $r->{body});

sub outcome {
    my ($query, $key, %o) = @_;

    return $s->get("/v1/outcome?$query",
                   headers => { 'Idempotency-Key' => $key }, %o);
}

for my $query ('account=alice', 'account=carol&age=7000') {
    $r = outcome($query, 'lost', %token);
    is($r->{body}, qq({"outcome":"committed","batch":$answer}\n),
       "$query: committed, with the answer of then");
}

is(outcome('account=alice&age=7000', 'lost')->{body},
   qq({"outcome":"unknown","final":true}\n), 'a key of another capability');

for my $case ([ 200, 'account = carol dave' ], [ 200, 'account = carol' ],
              [ 403, 'account = alice' ], [ 403, 'account = dave' ],
              [ 403, 'account = carol', 'asset = roc' ])
{
    my ($status, @caveats) = @$case;
    my ($account) = $caveats[0] =~ /= (\w+)/;
    $r = outcome("account=$account&age=7000", 'lost',
                 token => $s->token({ id => 'batcher' }, @caveats));
    is($r->{status}, $status, "a token of it with @caveats");
}

$r = $s->post('/v1/transfer', { from => 'carol', to => 'dave',
              asset => 'ron', amount_minor => '2', nonce => 3 },
              key => 'lost', %token);
is($r->{status}, 200, 'the same key for an operation of one account');
like(outcome('account=carol', 'lost', %token)->{body},
     qr/^\{"outcome":"committed","receipt":\{.*"amount_minor":"2"/,
     'that account is told of its own');

for my $case ([ 200, 'asset = ron' ], [ 200, 'asset = roc ron' ],
              [ 403, 'asset = roc' ])
{
    my ($status, $caveat) = @$case;
    $r = outcome('account=carol', 'lost',
                 token => $s->token({ id => 'batcher' }, $caveat));
    is($r->{status}, $status, "a token of it with $caveat");
    unlike($r->{body}, qr/receipt/, 'is told nothing') if $status == 403;
}

is(outcome('account=carol', 'never',
           token => $s->token({ id => 'batcher' }, 'asset = roc'))->{status},
   200, 'of nothing there is nothing to hide');
is(outcome('account=alice', 'lost', %token)->{body},
   qq({"outcome":"committed","batch":$answer}\n), 'others of the batch');


# by txid

$r = $s->get("/v1/tx/$txid");
is($r->{status}, 200, 'a receipt by its txid');
is($r->{body}, $receipt, 'is the same');
(my $other = $txid) =~ s/^tx_./tx_7/;
is($s->get("/v1/tx/$other")->{status}, 404, 'a txid that is not there');
is($s->get('/v1/tx/nothing')->{status}, 400, 'a txid that is none');


# nonces

$r = op('transfer', { %transfer });
is($r->{status}, 409, 'a nonce twice');
is(json_get($r->{body}, 'code'), 'NONCE_CONFLICT', 'is a conflict');
is(json_get($r->{body}, 'expected'), 2, 'and says what is next');
is(op('transfer', { %transfer, nonce => 5 })->{status}, 200, 'gaps are fine');
is(op('transfer', { %transfer, nonce => 4 })->{status}, 409,
   'going back is not');
is(balance('alice', 'nonce'), 5, 'the balance shows the last one');


# too little

$r = op('transfer', { %transfer, from => 'bob', to => 'alice', nonce => 1,
                      amount_minor => '21' });
is($r->{status}, 409, 'more than there is');
is(json_get($r->{body}, 'code'), 'INSUFFICIENT_FUNDS', 'insufficient');
ok(op('transfer', { %transfer, from => 'bob', to => 'alice', nonce => 1,
                    amount_minor => '20' })->{status} == 200,
   'a refusal burns no nonce');


# burn

$r = op('burn', { from => 'alice', asset => 'ron', amount_minor => '1',
                  nonce => 6 });
is($r->{status}, 200, 'burn');
is(balance('alice'), 999, 'is gone');


# holds

$r = op('hold', { from => 'alice', to => 'shop', asset => 'ron',
                  amount_minor => '100', nonce => 7 });
is($r->{status}, 200, 'hold');
my $hold = json_get($r->{body}, 'txid');
is(balance('alice'), 899, 'held is not available');
is(balance('alice', 'held_minor'), 100, 'and shown');
is(op('capture', { hold => $hold, amount_minor => '60' })->{status}, 200,
   'capture a part');
is(balance('shop'), 60, 'the shop has it');
is(op('capture', { hold => $hold, amount_minor => '41' })->{status}, 409,
   'never more than the hold');
is(op('release', { hold => $hold })->{status}, 200, 'release the rest');
is(balance('alice'), 939, 'it is available again');
$r = op('release', { hold => $hold });
is(json_get($r->{body}, 'code'), 'HOLD_CLOSED', 'a closed hold');
$r = op('release', { hold => $txid });
is(json_get($r->{body}, 'code'), 'HOLD_NOT_FOUND', 'not a hold');


# batches

my @ops = map {
    { op => 'transfer', %transfer, nonce => $_, amount_minor => '1' }
} 8, 9;
$r = op('batch', { ops => \@ops, atomic => \'true' });
is($r->{status}, 200, 'an atomic batch') or diag($r->{body});
my @txids = $r->{body} =~ /"txid":"(tx_\w+)"/g;
is(scalar @txids, 2, 'has two receipts');

$ops[0]{nonce} = 10;
$ops[1] = { %{ $ops[1] }, nonce => 11, amount_minor => '99999' };
$r = op('batch', { ops => \@ops, atomic => \'true' });
is($r->{status}, 409, 'all or nothing: nothing');
is(balance('alice'), 937, 'nothing happened');
$r = op('batch', { ops => \@ops });
is($r->{status}, 207, 'or what is possible');
is(balance('alice'), 936, 'that happened');


# preconditions are ours

my $tag = $s->get('/v1/balance?account=alice&asset=ron')->{headers}{etag};
like($tag, qr/^"\d+"$/, 'a balance has an entity tag');
is($s->get('/v1/balance?account=alice&asset=ron',
           headers => { 'If-None-Match' => $tag })->{status}, 304,
   'If-None-Match');
is(op('transfer', { %transfer, nonce => 12 },
      headers => { 'If-Match' => '"1"' })->{status}, 412,
   'If-Match of an old version');
is(op('transfer', { %transfer, nonce => 12 },
      headers => { 'If-Match' => $tag })->{status}, 200, 'and of this one');

$tag = $s->get('/v1/balance?account=alice&asset=ron')->{headers}{etag};
my @one = map { { op => 'transfer', %transfer, nonce => $_ } } 13, 14;
my @two = (@one, { op => 'issue', to => 'bob', asset => 'ron',
                   amount_minor => '1' });
is(op('batch', { ops => \@one }, headers => { 'If-Match' => '"1"' })
   ->{status}, 412, 'a batch with If-Match of an old version');
$r = op('batch', { ops => \@two }, headers => { 'If-Match' => $tag });
is($r->{status}, 400, 'one version for two accounts');
like($r->{body}, qr/If-Match needs a batch about one account/, 'says why');
is(op('batch', { ops => \@one }, headers => { 'If-Match' => $tag })
   ->{status}, 200, 'a batch with the version of now');

$r = $s->get('/v1/balance?account=nobody&asset=ron');
is($r->{status}, 200, 'an account never seen');
is(json_get($r->{body}, 'amount_minor'), '0', 'has nothing');


# limits

$r = op('issue', { to => 'x', asset => 'ron',
                   amount_minor => '100000000000000000001' });
is(json_get($r->{body}, 'code'), 'LIMITS_EXCEEDED', 'over 10^20');
is(op('issue', { to => 'x', asset => 'gold', amount_minor => '1' })
   ->{status}, 400, 'an asset that is not configured');


# capabilities

for my $case (
    [ 401, 'a token of another key',
      $s->token({ secret => 'x' x 32 }) ],
    [ 401, 'a token of an unknown kid', $s->token({ kid => 'nope' }) ],
    [ 401, 'an expired token', $s->token('before = 1000') ],
    [ 403, 'a caveat nobody knows', $s->token('colour = blue') ],
    [ 403, 'another service', $s->token('svc = ledger') ],
    [ 403, 'another act', $s->token('act = read') ],
    [ 403, 'another account', $s->token('account = bob') ],
    [ 403, 'another asset', $s->token('asset = roc') ],
    [ 403, 'a smaller amount', $s->token('max_amount = 5') ],
    [ 403, 'another address', $s->token('ip = 10.0.0.0/8') ],
    [ 403, 'another tenant', $s->token('tenant = t') ],
) {
    my ($status, $what, $token) = @$case;
    $r = op('transfer', { %transfer, nonce => 20 }, token => $token);
    is($r->{status}, $status, $what) or diag($r->{body});
}

$r = op('transfer', { %transfer, nonce => 20 },
        token => $s->token('svc = wallet', 'act = transfer read',
                           'account = al*', 'asset = ron',
                           'max_amount = 10', 'ip = 127.0.0.0/8'));
is($r->{status}, 200, 'a token that has just what is needed');

my $daily = $s->token({ id => 'daily' }, 'max_daily = 15');
is(op('transfer', { %transfer, nonce => 21 }, token => $daily)->{status},
   200, 'a daily bound');
$r = op('transfer', { %transfer, nonce => 22 }, token => $daily);
is($r->{status}, 403, 'is a bound');


# capturing with a capability of some accounts: whose hold is it?

$r = op('hold', { from => 'alice', to => 'shop', asset => 'ron',
                  amount_minor => '5', nonce => 30 });
$hold = json_get($r->{body}, 'txid');
is(op('capture', { hold => $hold, amount_minor => '2' },
      token => $s->token('account = bob'))->{status}, 403,
   "another's hold");
is(op('capture', { hold => $hold, amount_minor => '2' },
      token => $s->token('account = alice', 'asset = ron'))->{status}, 200,
   "one's own");
is(op('release', { hold => $hold },
      token => $s->token('asset = roc'))->{status}, 403,
   'of another asset');
is(op('release', { hold => $txid },
      token => $s->token('account = alice'))->{status}, 404,
   'and what is no hold');

$r = op('hold', { from => 'alice', to => 'shop', asset => 'ron',
                  amount_minor => '9', nonce => 31 });
$hold = json_get($r->{body}, 'txid');

for my $case ([ 9, 'time' ], [ 10, 'ledger' ]) {
    my ($at, $of) = @$case;

    # ten digits of the time, then those of the ledger
    (my $digit = substr $hold, 3 + $at, 1)
        =~ tr/0-9A-HJKMNP-TV-Z/1-9A-HJKMNP-TV-Z0/;
    my $other = $hold;
    substr $other, 3 + $at, 1, $digit;
    my %capture = (hold => $other, amount_minor => '1');

    for my $token ($s->token, $s->token('account = alice')) {
        $r = op('capture', \%capture, token => $token);
        is($r->{status}, 404, "the seq of a hold, and another $of");
        is(json_get($r->{body}, 'code'), 'HOLD_NOT_FOUND', 'is not that hold');
    }

    $r = op('batch', { ops => [ { op => 'release', hold => $other } ] });
    is($r->{status}, 404, 'nor in a batch');
    $r = $s->post('/ledger/ops', { op => 'capture', key => "odd-$of",
                                   request => \%capture });
    is($r->{status}, 404, 'nor from a remote wallet');
}

is(op('capture', { hold => $hold, amount_minor => '9' })->{status}, 200,
   'with all of its txid it is captured');


# proofs with receipts

$r = $s->post('/v1/transfer?proof=1', { %transfer, nonce => 32 },
              key => 'proof-1');
is($r->{status}, 200, 'a receipt with its proof') or diag($r->{body});
like($r->{body}, qr/"proof":\{"entry":"[\w+\/=]+","leaf":"[0-9a-f]{64}",
                    "size":\d+,"path":\[.*\],"checkpoint":(?:null|".*")\}\}/x,
     'has all of it');
my $plain = $s->post('/v1/transfer', { %transfer, nonce => 32 },
                     key => 'proof-1')->{body};
is(substr($r->{body}, 0, length($plain) - 2), substr($plain, 0, -2),
   'and is the receipt');
$r = $s->get('/v1/tx/' . json_get($plain, 'txid') . '?proof=1');
like($r->{body}, qr/"proof":\{"entry"/, 'also by its txid');
is($s->post('/v1/transfer?proof=1', { %transfer, nonce => 32 },
            key => 'proof-1')->{headers}{'idempotent-replayed'}, 'true',
   'a replay may ask for it too');


# strict nonces and other assets

$s->{http} = "ron_wallet_nonce strict; ron_asset gold;";
ok($s->reload, 'reload with strict nonces and another asset');
ok($s->wait_ready, 'ready');
is(op('issue', { to => 'z', asset => 'gold', amount_minor => '9' })
   ->{status}, 200, 'the other asset');
my %gold = (from => 'z', to => 'y', asset => 'gold', amount_minor => '1');
is(op('transfer', { %gold, nonce => 2 })->{status}, 409, 'a gap');
is(op('transfer', { %gold, nonce => 1 })->{status}, 200, 'the next');


# replay after everything was restarted

$s->quit;
$s->{http} = '';
$s->start or BAIL_OUT('no server');
$r = $s->post('/v1/transfer', \%transfer, key => 'pay-1');
is($r->{body}, $first, 'a replay after a restart, byte for byte');

$s->quit;

done_testing();
