#!/usr/bin/perl

# /v1/: every endpoint, its receipts and its refusals.  Each block has accounts
# of its own, so that their order does not matter.

use strict;
use warnings;

use lib 't/lib';
use RonSuite;
use Test::Nginx::Socket 'no_plan';

our $json = "Authorization: Bearer \$TOKEN\nContent-Type: application/json\n";

# N keys, one for each request
sub keys_of {
    my ($prefix, $n) = @_;
    return [ map { "${json}Idempotency-Key: $prefix$_" } 1 .. $n ];
}

no_long_string();
run_tests();

__DATA__

=== TEST 1: issue
--- request
POST /v1/issue
{"to":"a1","asset":"ron","amount_minor":"1000","memo":"first"}
--- more_headers eval
"${main::json}Idempotency-Key: a1"
--- response_headers
Content-Type: application/json
! Idempotent-Replayed
--- response_body_like eval
qr/^\{"txid":"tx_[0-9A-HJKMNP-TV-Z]{26}","op":"issue","to":"a1","asset":"ron",
   "amount_minor":"1000","idem":"a1","ts":"[0-9T:.-]+Z",
   "receipt_hash":"b3:[0-9a-f]{64}","seq":\d+\}\n?$/x

=== TEST 2: transfer, a replay, another body under its key, and the outcome
--- request eval
[
'POST /v1/issue
{"to":"a2","asset":"ron","amount_minor":"50"}',
'POST /v1/transfer
{"from":"a2","to":"b2","asset":"ron","amount_minor":"10","nonce":1}',
'POST /v1/transfer
{"nonce":1, "amount_minor":"10", "asset":"ron", "to":"b2", "from":"a2"}',
'POST /v1/transfer
{"from":"a2","to":"b2","asset":"ron","amount_minor":"11","nonce":1}',
'GET /v1/outcome?account=a2',
'GET /v1/balance?account=a2&asset=ron',
'GET /v1/balance?account=b2&asset=ron',
]
--- more_headers eval
[ map { "${main::json}Idempotency-Key: $_" }
      qw(i2 t2 "t2" t2 t2 none none) ]
--- error_code eval
[ 200, 200, 200, 422, 200, 200, 200 ]
--- response_headers eval
[ '! Idempotent-Replayed', '! Idempotent-Replayed',
  'Idempotent-Replayed: true', 'Content-Type: application/problem+json',
  '! Idempotent-Replayed', ('') x 2 ]
--- response_body_like eval
[
qr/"op":"issue"/,
qr/"op":"transfer","from":"a2","to":"b2",.*"nonce":1,"idem":"t2"/,
qr/"op":"transfer","from":"a2","to":"b2",.*"nonce":1,"idem":"t2"/,
qr/"code":"IDEMPOTENCY_MISMATCH"/,
qr/^\{"outcome":"committed".*"txid":"tx_/,
qr/"amount_minor":"40","held_minor":"0","nonce":1,"as_of":"[^"]+","stale_ms":\d/,
qr/"amount_minor":"10","held_minor":"0","nonce":0/,
]

=== TEST 3: burn
--- request eval
[
'POST /v1/issue
{"to":"a3","asset":"roc","amount_minor":"5"}',
'POST /v1/burn
{"from":"a3","asset":"roc","amount_minor":"5","nonce":9}',
'POST /v1/burn
{"from":"a3","asset":"roc","amount_minor":"1","nonce":10}',
'GET /v1/balance?account=a3&asset=roc',
]
--- more_headers eval: main::keys_of('k3', 4)
--- error_code eval
[ 200, 200, 409, 200 ]
--- response_body_like eval
[ 'issue', '"op":"burn","from":"a3"', '"code":"INSUFFICIENT_FUNDS"',
  '"amount_minor":"0","held_minor":"0","nonce":9' ]

=== TEST 4: hold; what captures and releases refuse
--- request eval
[
'POST /v1/issue
{"to":"a4","asset":"ron","amount_minor":"5"}',
'POST /v1/hold
{"from":"a4","to":"shop","asset":"ron","amount_minor":"5","nonce":1,'
. '"expires_in":60}',
'GET /v1/balance?account=a4&asset=ron',
'POST /v1/capture
{"hold":"tx_01M7QJFT5TANJG0000000000ZZ","amount_minor":"1"}',
'POST /v1/release
{"hold":"tx_01M7QJFT5TANJG0000000000ZZ"}',
'POST /v1/capture
{"hold":"none","amount_minor":"1"}',
'POST /v1/release
{"hold":"none"}',
]
--- more_headers eval: main::keys_of('k4', 7)
--- error_code eval
[ 200, 200, 200, 404, 404, 400, 400 ]
--- response_body_like eval
[ 'issue', '"op":"hold","from":"a4","to":"shop"',
  '"amount_minor":"0","held_minor":"5"',
  ('"code":"HOLD_NOT_FOUND"') x 2,
  ('"code":"BAD_REQUEST".*"field":"hold"') x 2 ]

=== TEST 5: a batch: all, nothing, some
--- request eval
[
'POST /v1/issue
{"to":"a5","asset":"ron","amount_minor":"5"}',
'POST /v1/batch
{"ops":[{"op":"transfer","from":"a5","to":"b5","asset":"ron",'
. '"amount_minor":"1","nonce":1},{"op":"burn","from":"a5","asset":"ron",'
. '"amount_minor":"1","nonce":2}],"atomic":true}',
'POST /v1/batch
{"ops":[{"op":"transfer","from":"a5","to":"b5","asset":"ron",'
. '"amount_minor":"1","nonce":3},{"op":"burn","from":"a5","asset":"ron",'
. '"amount_minor":"9","nonce":4}],"atomic":true}',
'POST /v1/batch
{"ops":[{"op":"transfer","from":"a5","to":"b5","asset":"ron",'
. '"amount_minor":"1","nonce":3},{"op":"burn","from":"a5","asset":"ron",'
. '"amount_minor":"9","nonce":4}]}',
'GET /v1/balance?account=a5&asset=ron',
'POST /v1/batch
{"ops":[]}',
]
--- more_headers eval: main::keys_of('k5', 6)
--- error_code eval
[ 200, 200, 409, 207, 200, 400 ]
--- response_body_like eval
[ 'issue', '"op":"transfer".*"op":"burn"', '"code":"INSUFFICIENT_FUNDS"',
  '"op":"transfer".*insufficient', '"amount_minor":"2".*"nonce":3',
  '"field":"ops"' ]

=== TEST 6: nonces
--- request eval
[
'POST /v1/issue
{"to":"a6","asset":"ron","amount_minor":"9"}',
map({ "POST /v1/transfer
{\"from\":\"a6\",\"to\":\"b6\",\"asset\":\"ron\",\"amount_minor\":\"1\","
. "\"nonce\":$_}" } 5, 5, 4, 6, '9007199254740991', '9007199254740992', 0)
]
--- more_headers eval: main::keys_of('k6', 8)
--- error_code eval
[ 200, 200, 409, 409, 200, 200, 400, 400 ]
--- response_body_like eval
[ 'issue', 'transfer', '"code":"NONCE_CONFLICT".*"expected":6',
  '"code":"NONCE_CONFLICT".*"expected":6', 'transfer', 'transfer',
  ('"field":"nonce"') x 2 ]

=== TEST 7: strict nonces
--- http_config
ron_wallet_nonce strict;
--- request eval
[
'POST /v1/issue
{"to":"a7","asset":"ron","amount_minor":"9"}',
map({ "POST /v1/transfer
{\"from\":\"a7\",\"to\":\"b7\",\"asset\":\"ron\",\"amount_minor\":\"1\","
. "\"nonce\":$_}" } 2, 1, 3, 2)
]
--- more_headers eval: main::keys_of('k7', 5)
--- error_code eval
[ 200, 409, 200, 409, 200 ]

=== TEST 8: a receipt with its proof
--- request
POST /v1/issue?proof=1
{"to":"a8","asset":"ron","amount_minor":"1"}
--- more_headers eval
"${main::json}Idempotency-Key: a8"
--- response_body_like eval
qr/"proof":\{"entry":"[\w+\/=]+","leaf":"[0-9a-f]{64}","size":\d+,
   "path":\[.*\],"checkpoint":(?:null|"ron-ledger-.*")\}\}/xs

=== TEST 9: a receipt that is not there, and a txid that is none
--- request eval
[ 'GET /v1/tx/tx_01M7QJFT5TANJG0000000000ZZ', 'GET /v1/tx/1', 'GET /v1/tx/' ]
--- more_headers
Authorization: Bearer $TOKEN
--- error_code eval
[ 404, 400, 404 ]

=== TEST 10: what nobody has seen has nothing
--- request eval
[ 'GET /v1/balance?account=nobody&asset=ron',
  'GET /v1/balance?account=nobody&asset=gold',
  'GET /v1/balance?account=no+body&asset=ron',
  'GET /v1/balance?asset=ron',
  'GET /v1/balance?account=nobody' ]
--- more_headers
Authorization: Bearer $TOKEN
--- error_code eval
[ 200, 200, 400, 400, 400 ]
--- response_headers eval
[ ('ETag: "0"') x 2, ('! ETag') x 3 ]
--- response_body_like eval
[ '^\{"account":"nobody","asset":"ron","amount_minor":"0","held_minor":"0",'
  . '"nonce":0,"as_of":', '"asset":"gold","amount_minor":"0"',
  '"field":"account"',
  '"field":"account"', '"field":"asset"' ]

=== TEST 11: an outcome nobody knows
--- request
GET /v1/outcome?account=a11
--- more_headers
Authorization: Bearer $TOKEN
Idempotency-Key: never
--- response_body_like eval
qr/^\{"outcome":"unknown","final":(?:true|false)\}/

=== TEST 12: every POST needs a key
--- request eval
[ map { "POST /v1/$_\n{}" } qw(issue transfer burn hold capture release
                               batch) ]
--- more_headers eval
$main::json
--- error_code eval
[ (400) x 7 ]
--- response_body_like eval
[ ('Idempotency-Key') x 7 ]

=== TEST 13: every endpoint needs a capability
--- request eval
[ (map { "POST /v1/$_\n{}" } qw(issue transfer burn hold capture release
                                batch)),
  map { "GET /v1/$_" } 'balance?account=a&asset=ron', 'outcome?account=a',
                       'tx/tx_01M7QJFT5TANJG0000000000ZZ' ]
--- more_headers
Content-Type: application/json
Idempotency-Key: k
--- error_code eval
[ (401) x 10 ]
--- response_headers eval
[ ('WWW-Authenticate: Bearer') x 10 ]

=== TEST 14: and the act of it
--- request eval
[ (map { "POST /v1/$_" } 'issue
{"to":"a","asset":"ron","amount_minor":"1"}', 'transfer
{"from":"a","to":"b","asset":"ron","amount_minor":"1","nonce":1}', 'burn
{"from":"a","asset":"ron","amount_minor":"1","nonce":1}', 'hold
{"from":"a","to":"b","asset":"ron","amount_minor":"1","nonce":1}', 'capture
{"hold":"tx_01M7QJFT5TANJG0000000000ZZ","amount_minor":"1"}', 'release
{"hold":"tx_01M7QJFT5TANJG0000000000ZZ"}', 'batch
{"ops":[{"op":"issue","to":"a","asset":"ron","amount_minor":"1"}]}'),
  map { "GET /v1/$_" } 'balance?account=a&asset=ron', 'outcome?account=a',
                       'tx/tx_01M7QJFT5TANJG0000000000ZZ' ]
--- more_headers
Authorization: Bearer $TOKEN(act = admin)
Content-Type: application/json
Idempotency-Key: k
--- error_code eval
[ (403) x 10 ]

=== TEST 15: every POST takes JSON only
--- request eval
[ map { "POST /v1/$_\n{}" } qw(issue transfer burn hold capture release
                               batch) ]
--- more_headers
Authorization: Bearer $TOKEN
Content-Type: text/plain
Idempotency-Key: k
--- error_code eval
[ (415) x 7 ]

=== TEST 16: a body in pieces
--- request eval
[ [ "POST /v1/issue\n", { value => '{"to":"a16","asset":"ron",',
                          delay_before => 0.1 },
    { value => '"amount_minor":"7"}', delay_before => 0.1 } ] ]
--- more_headers eval
"${main::json}Idempotency-Key: a16"
--- response_body_like: "to":"a16"

=== TEST 17: pipelined
--- pipelined_requests eval
[ "POST /v1/issue\n" . '{"to":"a17","asset":"ron","amount_minor":"7"}',
  "POST /v1/transfer\n"
  . '{"from":"a17","to":"b","asset":"ron","amount_minor":"7","nonce":1}',
  'GET /v1/balance?account=a17&asset=ron' ]
--- more_headers eval: main::keys_of('k17', 3)
--- error_code eval
[ 200, 200, 200 ]
--- response_body_like eval
[ 'issue', 'transfer', '"amount_minor":"0"' ]

=== TEST 18: over the limit of one operation
--- request eval
[ map { "POST /v1/issue\n" . '{"to":"a18","asset":"ron","amount_minor":"'
        . "$_\"}" } '100000000000000000000', '100000000000000000001' ]
--- more_headers eval: main::keys_of('k18', 2)
--- error_code eval
[ 200, 403 ]
--- response_body_like eval
[ 'issue', '"code":"LIMITS_EXCEEDED"' ]

=== TEST 19: nothing secret reaches the log
--- log_level: debug
--- request
POST /v1/issue
{"to":"a19","asset":"ron","amount_minor":"7"}
--- more_headers eval
"${main::json}Idempotency-Key: key-that-is-secret"
--- config
# a server of its own, with its log at debug
location /v1/ { ron_wallet; }
location = /readyz { ron_health ready; }
--- no_error_log
[alert]
[crit]
