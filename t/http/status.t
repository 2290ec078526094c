#!/usr/bin/perl

# /healthz, /readyz, /version, /metrics.

use strict;
use warnings;

use lib 't/lib';
use RonSuite;
use Test::Nginx::Socket 'no_plan';

no_long_string();
run_tests();

__DATA__

=== TEST 1: alive
--- request
GET /healthz
--- response_headers
Content-Type: application/json
! ETag
--- response_headers_like
X-Corr-ID: [0-9A-HJKMNP-TV-Z]{26}
--- response_body_like eval
qr/^\{"state":"running","queue_pressure":0\.\d\d,"committer_lag_ms":\d+\}\n$/

=== TEST 2: ready
--- request
GET /readyz
--- response_body_like eval
qr/^\{"ready":true,"degraded":false,"state":"running","missing":\[\],/

=== TEST 3: version
--- request
GET /version
--- response_body_like eval
qr/^\{"name":"ngx_ron","version":"[0-9.]+","git":"(?:[0-9a-f]{12})?",
   "toolchain":"\S[^"]*\d[^"]*","nginx":"[0-9.]+",
   "features":\["threads"(?:,"\w+")*\],"entry_format":1\}\n$/x

=== TEST 4: metrics
--- request
GET /metrics
--- response_headers
Content-Type: text/plain; version=0.0.4; charset=utf-8
--- response_body_like eval
qr/^# HELP .*\n# TYPE /

=== TEST 5: HEAD has a head only
--- request eval
[ map { "HEAD $_" } qw(/healthz /readyz /version /metrics) ]
--- error_code eval
[ (200) x 4 ]
--- response_body eval
[ ('') x 4 ]

=== TEST 6: only to be read
--- request eval
[ map { "POST $_" } qw(/healthz /readyz /version /metrics) ]
--- error_code eval
[ (405) x 4 ]
--- response_headers eval
[ ("Allow: GET, HEAD\nContent-Type: application/problem+json") x 4 ]

=== TEST 7: the correlation id is echoed
--- request
GET /healthz
--- more_headers
X-Corr-ID: abc-1
--- response_headers
X-Corr-ID: abc-1

=== TEST 7a: X-Request-Id where there is none, or none that can be taken
--- request eval
[ ('GET /healthz') x 4 ]
--- more_headers eval
[ 'X-Request-Id: req-1', "X-Request-Id: req-1\nX-Corr-ID: corr-1",
  "X-Corr-ID: \xff\nX-Request-Id: req-2", 'X-Request-Id: ' . 'r' x 129 ]
--- response_headers_like eval
[ 'X-Corr-ID: req-1', 'X-Corr-ID: corr-1', 'X-Corr-ID: req-2',
  'X-Corr-ID: [0-9A-HJKMNP-TV-Z]{26}' ]

=== TEST 7b: ready, for a wallet
--- request
GET /readyz
--- response_body_like eval
qr/"queue_ok":true,"breaker":\[\],/

=== TEST 8: pipelined
--- pipelined_requests eval
[ 'GET /healthz', 'GET /version', 'GET /none' ]
--- error_code eval
[ 200, 200, 404 ]
--- response_body_like eval
[ '"state"', '"ngx_ron"', '404 Not Found' ]
