#!/usr/bin/perl

# What a configuration limits: the policy file, its reload, ceilings of the
# wallet, requests a second.  What is wrong is in t/http/limits.t.

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use Time::HiRes 'time';


# ---- a policy

my $s = RonTest->new(workers => 2);
$s->{http} = "ron_policy $s->{dir}/policy;\n"
             . 'ron_wallet_limit op=1000 daily=5000 total=100000;';

$s->write_file('policy', <<'END');
# the till may pay out little, and only from its own accounts
allow cap=dev:till act=transfer,hold account=till_* asset=ron op=50 daily=1120 total=300
allow cap=dev:till act=read account=till_*
deny  cap=dev:till
deny  act=burn account=frozen_*
deny  cap=dev:noadmin act=admin
deny  cap=dev:deaf act=read,admin
allow cap=dev:*
END

$s->start or BAIL_OUT('no server');

my $till = $s->token({ id => 'till' });
my $n = 0;

sub op {
    my ($op, $body, %o) = @_;

    return $s->post("/v1/$op", $body, key => 'k' . ++$n, %o);
}

sub is_code {
    my ($r, $status, $code, $name) = @_;

    is($r->{status}, $status, "$name: $status") or diag($r->{body});
    is(json_get($r->{body}, 'code'), $code, "$name: $code") if $code;
}

my %a = (asset => 'ron', amount_minor => '1000');
my %pay = (from => 'till_1', to => 'b', asset => 'ron', amount_minor => '50');

is_code(op('issue', { to => $_, %a }), 200, undef, "money for $_")
    for qw(till_1 other frozen_1);

is_code(op('issue', { to => 'till_1', %a }, token => $till), 403,
        'FORBIDDEN', 'no act');
is_code(op('transfer', { %pay, nonce => 1 }, token => $till), 200, undef,
        'as much as the policy lets it');
is_code(op('transfer', { %pay, nonce => 2, amount_minor => '51' },
           token => $till), 403, 'LIMITS_EXCEEDED', 'over its ceiling');
is_code(op('transfer', { %pay, nonce => 2, from => 'other' },
           token => $till), 403, 'FORBIDDEN', 'another account');
is_code(op('transfer', { %pay, nonce => 2 }, token => $till), 200, undef,
        'a refusal burnt no nonce');
is_code(op('transfer', { %pay, nonce => 3, amount_minor => '21' },
           token => $till), 403, 'LIMITS_EXCEEDED', 'over its day');
is_code(op('transfer', { %pay, nonce => 3, amount_minor => '20' },
           token => $till), 200, undef, 'its day is full');
is_code(op('transfer', { %pay, nonce => 4 }), 200, undef,
        'another capability has its own ceilings');
is_code(op('burn', { from => 'frozen_1', nonce => 1, %a }), 403,
        'FORBIDDEN', 'an account that is denied to all');

my $balance = '/v1/balance?asset=ron&account=';

is_code($s->get($balance . 'till_1', token => $till), 200, undef, 'reading');
is_code($s->get($balance . 'other', token => $till), 403, 'FORBIDDEN',
        'reading another');
is_code($s->get('/ledger/accounts/other', token => $till), 403, 'FORBIDDEN',
        'also in the ledger');
is_code($s->get('/ledger/entries?from=1', token => $till), 403, 'FORBIDDEN',
        'and the entries of everybody');

is_code($s->get('/v1/audit/stream', token => $_), 403, 'FORBIDDEN',
        'the operations of all accounts')
    for $till, $s->token({ id => 'deaf' }),
        $s->token({ id => 'noadmin' }, 'act = admin');

# a batch is refused whole

is_code(op('batch', { ops => [ { op => 'transfer', %pay, nonce => 9,
                                 amount_minor => '1' },
                               { op => 'burn', from => 'till_1', asset => 'ron',
                                 amount_minor => '1', nonce => 10 } ] },
           token => $till), 403, 'FORBIDDEN', 'a batch with one that is not');

# a capture says only its hold, whose account the policy speaks of

my $r = op('hold', { from => 'till_1', to => 'b', asset => 'ron', nonce => 5,
                     amount_minor => '10' });
is($r->{status}, 200, 'a hold of the till');
my $mine = json_get($r->{body}, 'txid');
$r = op('hold', { from => 'other', to => 'b', asset => 'ron', nonce => 1,
                  amount_minor => '10' });
is($r->{status}, 200, 'a hold of another');
is_code(op('capture', { hold => json_get($r->{body}, 'txid'),
                        amount_minor => '1' }, token => $till), 403,
        'FORBIDDEN', "another's hold");
is_code(op('capture', { hold => $mine, amount_minor => '1' },
           token => $till), 200, undef, 'its own');

# entries need both acts

my %entry = (ts => \1, kind => 'Transfer', account => 'till_1', to => 'b',
             amount => '1', v => \1);

for my $case ([ $till, 403, 'FORBIDDEN' ], [ undef, 200, undef ]) {
    my ($token, $status, $code) = @$case;
    $r = $s->post('/ledger/ingest',
                  { batch => [ { %entry, id => 'e' . ++$n,
                                 nonce => nonce16() } ] },
                  $token ? (token => $token) : ());
    is_code($r, $status, $code, 'an entry');
}

$r = $s->post('/ledger/ingest', "{\"id\":\"l1\",\"ts\":1,\"kind\":"
              . '"Transfer","account":"till_1","to":"b","amount":"1","v":1,'
              . '"nonce":"' . nonce16() . "\"}\n",
              token => $till, type => 'application/x-ndjson');
like($r->{body}, qr/"policy_denied"/, 'a line is refused by itself');

is_code($s->post('/ledger/admin/safe-mode', { enter => \'true' },
                 token => $s->token({ id => 'noadmin' })), 403, 'FORBIDDEN',
        'an act about no account');

# the directive's ceilings hold for all

is_code(op('issue', { to => 'x', asset => 'ron', amount_minor => '1001' }),
        403, 'LIMITS_EXCEEDED', 'over ron_wallet_limit');
is_code(op('issue', { to => 'x', %a }), 200, undef, 'not over it');
is_code(op('issue', { to => 'x', %a }), 200, undef, 'again') for 2 .. 5;
is_code(op('issue', { to => 'x', %a }), 403, 'LIMITS_EXCEEDED',
        'over the day of an account');


# ---- a reload takes a new policy, and not a wrong one

$s->write_file('policy', "allow cap=dev:*\nallow act=nonsense\n");
my ($code, $said) = $s->nginx('-t');
isnt($code, 0, 'nginx -t refuses a wrong policy');
like($said, qr/nothing reaches|no such act.* in \S+policy:2/, 'and says where');

$s->allow(qr/\[emerg\].*policy:2/);
kill 'HUP', $s->{pid};
ok(until_ok(5, sub { $s->log =~ /policy:2/ }), 'so does a reload');
is_code(op('issue', { to => 'till_1', %a }, token => $till), 403,
        'FORBIDDEN', 'the old policy holds');

$s->write_file('policy', "deny act=burn\nallow op=3\n");
ok($s->reload, 'a reload with a right one');
is_code(op('issue', { to => 'till_1', asset => 'ron', amount_minor => '3' },
           token => $till), 200, undef, 'the new policy allows');
is_code(op('issue', { to => 'till_1', asset => 'ron', amount_minor => '4' },
           token => $till), 403, 'LIMITS_EXCEEDED', 'up to its ceiling');
is_code(op('burn', { from => 'other', nonce => 7, asset => 'ron',
                     amount_minor => '1' }), 403, 'FORBIDDEN',
        'and refuses what was allowed');
$s->quit;


# ---- requests a second

$s = RonTest->new(workers => 2, http => 'ron_rate 2r/s burst=5;',
                  config => 'location /free/ { ron_wallet; ron_rate off; }');
$s->start or BAIL_OUT('no server');

my (@ok, @busy);
my $begin = time;

for (1 .. 40) {
    $r = $s->get('/v1/balance?account=a&asset=ron');
    push @{ $r->{status} == 200 ? \@ok : \@busy }, $r;
}

my $most = 5 + 1 + 2 * (time - $begin);

cmp_ok(scalar @ok, '>=', 5, 'the burst passes');
cmp_ok(scalar @ok, '<=', $most, 'and not more than the rate');
is($ok[0]{headers}{'x-ratelimit-limit'}, 5, 'X-RateLimit-Limit');
is($ok[0]{headers}{'x-ratelimit-remaining'}, 4, 'X-RateLimit-Remaining');
is($ok[0]{headers}{'x-ratelimit-reset'}, 1, 'X-RateLimit-Reset');

ok(@busy > 0, 'others are refused');
is_code($busy[0], 429, 'BUSY', 'one of them');
is($busy[0]{headers}{'x-ratelimit-remaining'}, 0, 'nothing remains');
is($busy[0]{headers}{'retry-after'}, 1, 'Retry-After');
like($busy[0]{body}, qr/"retryable":true/, 'it is retryable');

is($s->get('/v1/balance?account=a&asset=ron',
           token => $s->token({ id => 'other' }))->{status}, 200,
   'another capability has a bucket of its own');
$r = $s->get('/free/balance?account=a&asset=ron');
is($r->{status}, 200, 'a location without a rate');
ok(!exists $r->{headers}{'x-ratelimit-limit'}, 'says nothing of one');
is($s->get('/readyz', token => undef)->{status}, 200, 'health has no bucket');

$s->quit;


# ---- a repetition is asked for what is allowed now, its outcome is not

my @wide = ('ron_asset roc ron;', 'ron_wallet_limit op=10;', '');

$s = RonTest->new(workers => 2);
$s->write_file('policy', "deny act=issue\nallow cap=dev:*\n");

my @narrow = ('ron_asset ron;', 'ron_wallet_limit op=4;',
              "ron_policy $s->{dir}/policy;");
$s->{http} = "@wide";
$s->start or BAIL_OUT('no server');

my %roc = (to => 'a', asset => 'roc', amount_minor => '5');
my $first = $s->post('/v1/issue', \%roc, key => 'narrow');
is($first->{status}, 200, 'an issue');

for my $case ([ 0, 400, 'an asset that is on no list' ],
              [ 1, 403, 'more than one operation may move' ],
              [ 2, 403, 'an act that the policy denies' ])
{
    my ($n, $status, $what) = @$case;
    my @now = @wide;

    $now[$n] = $narrow[$n];
    $s->{http} = "@now";
    ok($s->reload, "a reload: $what");
    is($s->post('/v1/issue', \%roc, key => 'narrow')->{status}, $status,
       'the same again is refused');
    is(json_get($s->get('/v1/outcome?account=a',
                        headers => { 'Idempotency-Key' => 'narrow' })->{body},
                'outcome'), 'committed', 'and was committed');
}

$s->{http} = "@wide";
ok($s->reload, 'as it was');
is($s->post('/v1/issue', \%roc, key => 'narrow')->{body}, $first->{body},
   'the same again is the same answer');

$s->quit;
done_testing();
