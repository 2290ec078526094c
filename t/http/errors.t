#!/usr/bin/perl

# Every error has one shape, whoever made it.

use strict;
use warnings;

use lib 't/lib';
use RonSuite;
use Test::Nginx::Socket 'no_plan';

no_long_string();
run_tests();

__DATA__

=== TEST 1: a path that is not there
--- request
GET /v1/nothing
--- error_code: 404
--- response_headers
Content-Type: application/problem+json
--- response_body_like eval
qr/"code":"NOT_FOUND".*"retryable":false/

=== TEST 2: another method
--- request
DELETE /v1/transfer
--- error_code: 405
--- response_headers
Allow: POST
--- response_body_like eval
qr/"code":"METHOD_NOT_ALLOWED"/

=== TEST 3: another method of a path to read
--- request
POST /v1/balance
{}
--- more_headers
Authorization: Bearer $TOKEN
--- error_code: 405
--- response_headers
Allow: GET, HEAD

=== TEST 4: no token
--- request
GET /v1/balance?account=a&asset=ron
--- error_code: 401
--- response_headers
WWW-Authenticate: Bearer
--- response_body_like eval
qr/"code":"UNAUTHORIZED"/

=== TEST 5: a token that is none
--- request
GET /v1/balance?account=a&asset=ron
--- more_headers
Authorization: Bearer bm9uc2Vuc2U
--- error_code: 401
--- response_body_like eval
qr/"detail":"malformed token"/

=== TEST 6: another content type
--- request
POST /v1/transfer
{}
--- more_headers
Authorization: Bearer $TOKEN
Idempotency-Key: a
Content-Type: text/plain
--- error_code: 415
--- response_body_like eval
qr/"code":"UNSUPPORTED_MEDIA_TYPE"/

=== TEST 7: a type that only begins like it
--- request
POST /v1/transfer
{}
--- more_headers
Authorization: Bearer $TOKEN
Idempotency-Key: a
Content-Type: application/jsonp
--- error_code: 415

=== TEST 8: a charset is fine
--- request
POST /v1/transfer
{}
--- more_headers
Authorization: Bearer $TOKEN
Idempotency-Key: a
Content-Type: application/json; charset=utf-8
--- error_code: 400

=== TEST 9: an encoding
--- request
POST /ledger/ingest
{}
--- more_headers
Authorization: Bearer $TOKEN
Content-Type: application/json
Content-Encoding: zstd
--- error_code: 415

=== TEST 10: a query that is malformed
--- request
GET /v1/balance?account=%zz
--- more_headers
Authorization: Bearer $TOKEN
--- error_code: 400
--- response_body_like eval
qr/"detail":"the query is malformed"/

=== TEST 11: an argument twice
--- request
GET /v1/balance?account=a&account=b&asset=ron
--- more_headers
Authorization: Bearer $TOKEN
--- error_code: 400

=== TEST 12: an unknown endpoint of the ledger
--- request
GET /ledger/nothing
--- error_code: 404

=== TEST 13: what NGINX refuses is a problem too
--- config
location /off/ { deny all; ron_errors on; }
--- request
GET /off/x
--- error_code: 403
--- response_headers
Content-Type: application/problem+json
--- response_body_like eval
qr/"code":"FORBIDDEN"/

=== TEST 14: also a header that is too large
--- config
ron_errors on;
--- request
GET /v1/balance?account=a&asset=ron
--- more_headers
Content-Length: twelve
--- error_code: 400
--- response_headers
Content-Type: application/problem+json
--- response_body_like eval
qr/"code":"BAD_REQUEST"/

=== TEST 15: and where ron_errors is off it is NGINX's page
--- config
location /off/ { deny all; }
--- request
GET /off/x
--- error_code: 403
--- response_headers
Content-Type: text/html
! X-Corr-ID

=== TEST 16: limit_req answers 503, and that is retryable
--- http_config
limit_req_zone $binary_remote_addr zone=one:1m rate=1r/m;
--- config
location /slow/ { limit_req zone=one; ron_version; }
--- request eval
[ 'GET /slow/', 'GET /slow/' ]
--- error_code eval
[ 200, 503 ]
--- response_headers eval
[ '! Retry-After', 'Retry-After: 2' ]
--- response_body_like eval
[ '"name":"ngx_ron"', '"retryable":true' ]

=== TEST 17: malformed bodies, each with the member's name
--- request eval
[ map { "POST /v1/transfer\n$_" } '{', '[]', '{} {}', '{"from":"a","from":"a"}',
  '{"colour":"blue"}',
  '{"from":"a","to":"b","asset":"ron","amount_minor":15,"nonce":1}',
  '{"from":"a","to":"b","asset":"ron","amount_minor":"015","nonce":1}',
  '{"from":"a","to":"a","asset":"ron","amount_minor":"1","nonce":1}' ]
--- more_headers
Authorization: Bearer $TOKEN
Idempotency-Key: a
Content-Type: application/json
--- error_code eval
[ (400) x 8 ]
--- response_headers eval
[ ('Content-Type: application/problem+json') x 8 ]
--- response_body_like eval
[ ('"code":"BAD_REQUEST"') x 3, map { qq("field":"$_") }
  qw(from colour amount_minor amount_minor to) ]

=== TEST 18: a body over the cap
--- request eval
"POST /v1/transfer\n" . 'x' x (1024 * 1024 + 1)
--- more_headers
Authorization: Bearer $TOKEN
Idempotency-Key: a
Content-Type: application/json
--- error_code: 413
--- response_body_like: "code":"LIMITS_EXCEEDED"

=== TEST 19: nothing of a refused request is said again
--- request
POST /v1/transfer
{"from":"acc-said","to":"b","asset":"ron","amount_minor":"1","nonce":1}
--- more_headers
Authorization: Bearer $TOKEN(account = someone-else)
Idempotency-Key: key-said
Content-Type: application/json
--- error_code: 403
--- response_body_unlike: said|someone
--- no_error_log
key-said
someone-else
