#!/usr/bin/perl

# The four conditional headers to every endpoint.  NGINX's own processing of
# them never touches an answer of ours: what was done is answered as done.
# We evaluate If-None-Match on GET where there is an entity tag, and If-Match
# on the POSTs of the wallet.

use strict;
use warnings;

use lib 't/lib';
use RonSuite;
use Test::Nginx::Socket 'no_plan';

our @headers = ('If-Match: "999999"', 'If-None-Match: *',
                'If-None-Match: "no-such-tag"',
                'If-Modified-Since: Sat, 01 Jan 2050 00:00:00 GMT',
                'If-Unmodified-Since: Sat, 01 Jan 2000 00:00:00 GMT');

my $n = 0;

sub once_each {
    my ($request) = @_;
    return [ map { my $r = $request; $n++; $r =~ s/\bN\b/$n/g; $r } @headers ];
}

sub with {
    return [ map { "$_\nAuthorization: Bearer \$TOKEN\n"
                   . "Content-Type: application/json\n"
                   . 'Idempotency-Key: p' . ++$n } @headers ];
}

no_long_string();
run_tests();

__DATA__

=== TEST 1: GET /healthz
--- request eval
main::once_each('GET /healthz')
--- more_headers eval: main::with()
--- error_code eval
[ (200) x 5 ]

=== TEST 2: GET /readyz
--- request eval
main::once_each('GET /readyz')
--- more_headers eval: main::with()
--- error_code eval
[ (200) x 5 ]

=== TEST 3: GET /version
--- request eval
main::once_each('GET /version')
--- more_headers eval: main::with()
--- error_code eval
[ (200) x 5 ]

=== TEST 4: GET /metrics
--- request eval
main::once_each('GET /metrics')
--- more_headers eval: main::with()
--- error_code eval
[ (200) x 5 ]

=== TEST 5: GET /ledger/roots
--- request eval
main::once_each('GET /ledger/roots')
--- more_headers eval: main::with()
--- error_code eval
[ (200) x 5 ]

=== TEST 6: GET /ledger/proof/consistency?from=0&to=0
--- request eval
main::once_each('GET /ledger/proof/consistency?from=0&to=0')
--- more_headers eval: main::with()
--- error_code eval
[ (200) x 5 ]

=== TEST 7: GET /ledger/entries
--- request eval
main::once_each('GET /ledger/entries')
--- more_headers eval: main::with()
--- error_code eval
[ (200) x 5 ]

=== TEST 8: GET /ledger/accounts/a
--- request eval
main::once_each('GET /ledger/accounts/a')
--- more_headers eval: main::with()
--- error_code eval
[ (200) x 5 ]

=== TEST 9: GET /v1/outcome?account=a
--- request eval
main::once_each('GET /v1/outcome?account=a')
--- more_headers eval: main::with()
--- error_code eval
[ (200) x 5 ]

=== TEST 10: GET /v1/balance?account=a&asset=ron
--- request eval
main::once_each('GET /v1/balance?account=a&asset=ron')
--- more_headers eval: main::with()
--- error_code eval
[ 200, 304, (200) x 3 ]

=== TEST 11: GET /ledger/checkpoint
--- request eval
main::once_each('GET /ledger/checkpoint')
--- more_headers eval: main::with()
--- error_code eval
[ (404) x 5 ]

=== TEST 12: GET /ledger/proof/inclusion?seq=1
--- request eval
main::once_each('GET /ledger/proof/inclusion?seq=1')
--- more_headers eval: main::with()
--- error_code eval
[ (404) x 5 ]

=== TEST 13: GET /ledger/tile/0/000.p/1
--- request eval
main::once_each('GET /ledger/tile/0/000.p/1')
--- more_headers eval: main::with()
--- error_code eval
[ (404) x 5 ]

=== TEST 14: GET /ledger/tile/entries/000.p/1
--- request eval
main::once_each('GET /ledger/tile/entries/000.p/1')
--- more_headers eval: main::with()
--- error_code eval
[ (404) x 5 ]

=== TEST 15: GET /ledger/entries/1
--- request eval
main::once_each('GET /ledger/entries/1')
--- more_headers eval: main::with()
--- error_code eval
[ (404) x 5 ]

=== TEST 16: GET /ledger/accounts/a/entries
--- request eval
main::once_each('GET /ledger/accounts/a/entries')
--- more_headers eval: main::with()
--- error_code eval
[ (503) x 5 ]

=== TEST 17: GET /v1/tx/tx_01M7QJFT5TANJG0000000000ZZ
--- request eval
main::once_each('GET /v1/tx/tx_01M7QJFT5TANJG0000000000ZZ')
--- more_headers eval: main::with()
--- error_code eval
[ (404) x 5 ]

=== TEST 18: POST /v1/issue
--- request eval
main::once_each('POST /v1/issue
{"to":"p","asset":"ron","amount_minor":"100"}')
--- more_headers eval: main::with()
--- error_code eval
[ 412, (200) x 4 ]
--- response_body_like eval
[ '"code":"PRECONDITION_FAILED"', ('"txid":"tx_') x 4 ]

=== TEST 19: POST /v1/transfer
--- request eval
main::once_each('POST /v1/transfer
{"from":"p","to":"q","asset":"ron","amount_minor":"1","nonce":N}')
--- more_headers eval: main::with()
--- error_code eval
[ 412, (200) x 4 ]
--- response_body_like eval
[ '"code":"PRECONDITION_FAILED"', ('"txid":"tx_') x 4 ]

=== TEST 20: POST /v1/burn
--- request eval
main::once_each('POST /v1/burn
{"from":"p","asset":"ron","amount_minor":"1","nonce":N}')
--- more_headers eval: main::with()
--- error_code eval
[ 412, (200) x 4 ]
--- response_body_like eval
[ '"code":"PRECONDITION_FAILED"', ('"txid":"tx_') x 4 ]

=== TEST 21: POST /v1/hold
--- request eval
main::once_each('POST /v1/hold
{"from":"p","to":"q","asset":"ron","amount_minor":"1","nonce":N}')
--- more_headers eval: main::with()
--- error_code eval
[ 412, (200) x 4 ]
--- response_body_like eval
[ '"code":"PRECONDITION_FAILED"', ('"txid":"tx_') x 4 ]

=== TEST 22: POST /v1/batch
--- request eval
main::once_each('POST /v1/batch
{"ops":[{"op":"transfer","from":"p","to":"q","asset":"ron",'
. '"amount_minor":"1","nonce":N}]}')
--- more_headers eval: main::with()
--- error_code eval
[ 412, (200) x 4 ]

=== TEST 23: POST /v1/capture
--- request eval
main::once_each('POST /v1/capture
{"hold":"tx_01M7QJFT5TANJG0000000000ZZ","amount_minor":"1"}')
--- more_headers eval: main::with()
--- error_code eval
[ (404) x 5 ]

=== TEST 24: POST /v1/release
--- request eval
main::once_each('POST /v1/release
{"hold":"tx_01M7QJFT5TANJG0000000000ZZ"}')
--- more_headers eval: main::with()
--- error_code eval
[ (404) x 5 ]

=== TEST 25: POST /ledger/ingest
--- request eval
main::once_each('POST /ledger/ingest
{"batch":[{"id":"p-N","ts":1,"kind":"Mint","account":"p","amount":"1",'
. '"nonce":"AAAAAAAAAAAAAAAAAAAAAA==","v":1}],"idem_id":"N"}')
--- more_headers eval: main::with()
--- error_code eval
[ (200) x 5 ]

=== TEST 26: POST /ledger/admin/snapshot
--- request eval
main::once_each('POST /ledger/admin/snapshot
')
--- more_headers eval: main::with()
--- error_code_like eval
[ ('^(?!412|304)') x 5 ]

=== TEST 27: POST /ledger/admin/safe-mode
--- request eval
main::once_each('POST /ledger/admin/safe-mode
{"enter":false}')
--- more_headers eval: main::with()
--- error_code eval
[ (409) x 5 ]
