#!/usr/bin/perl

# /ledger/: every endpoint.  Blocks that count entries have a server of their
# own: a comment in `config` is enough for that.

use strict;
use warnings;

use lib 't/lib';
use RonSuite;
use Test::Nginx::Socket 'no_plan';

my $n = 0;

# An entry as JSON, with an id and a nonce that nobody else has.
sub entry {
    my ($kind, $account, $amount, $more) = @_;

    $n++;
    my $nonce = MIME::Base64::encode_base64(pack('NNNN', $$, 0, 7, $n), '');

    return qq({"id":"e-$$-$n","ts":1700000000000,"kind":"$kind",)
        . qq("account":"$account","amount":"$amount","nonce":"$nonce","v":1)
        . (defined $more ? ",$more" : '') . '}';
}

sub ingest {
    my ($entries, $more) = @_;

    return "POST /ledger/ingest\n{\"batch\":[" . join(',', @$entries) . ']'
        . (defined $more ? ",$more" : '') . '}';
}

our $json = "Authorization: Bearer \$TOKEN\nContent-Type: application/json\n";

no_long_string();
run_tests();

__DATA__

=== TEST 1: an empty ledger
--- config
# of its own: empty
location /ledger/ { ron_ledger_api; }
location /v1/ { ron_wallet; }
--- request eval
[ "POST /v1/burn\n" . '{"from":"x","asset":"ron","amount_minor":"1","nonce":1}',
  map { "GET /ledger/$_" } qw(roots checkpoint proof/inclusion?seq=1
                              proof/consistency?from=0&to=0 entries/1) ]
--- more_headers
Authorization: Bearer $TOKEN
Content-Type: application/json
Idempotency-Key: refused-so-the-ledger-has-been-made
--- error_code eval
[ 409, 200, 404, 404, 200, 404 ]
--- response_body_like eval
[ '"code":"INSUFFICIENT_FUNDS"',
  '^\{"roots":\[\],"next":0\}', '"code":"NOT_FOUND"',
  '"code":"NOT_FOUND"', '"path":\[\]', '"code":"NOT_FOUND"' ]

=== TEST 2: ingest, all of it
--- config
# of its own: the first entry has seq 1
location /ledger/ { ron_ledger_api; }
location /v1/ { ron_wallet; }
--- request eval
[ main::ingest([main::entry('Mint', 'a', 100),
                main::entry('Transfer', 'a', 10, '"to":"b"')]),
  'GET /ledger/roots',
  'GET /ledger/roots?since=2',
  'GET /ledger/checkpoint',
  'GET /ledger/proof/inclusion?seq=1&size=2',
  'GET /ledger/proof/consistency?from=1&to=2',
  'GET /ledger/tile/0/000.p/2',
  'GET /ledger/tile/entries/000.p/2',
  'GET /ledger/entries',
  'GET /ledger/entries?from=2&to=2',
  'GET /ledger/entries/2',
  'GET /ledger/accounts/a' ]
--- more_headers eval
$main::json
--- error_code eval
[ (200) x 12 ]
--- response_headers eval
[ ('Content-Type: application/json') x 3, 'Content-Type: text/plain',
  ('Content-Type: application/json') x 2,
  ('Content-Type: application/octet-stream') x 2,
  ("Content-Type: application/json\nLedger-Watermark: 2") x 2,
  ('Content-Type: application/json') x 2 ]
--- response_body_like eval
[ '^\{"accepted":true,"seq_start":1,"seq_end":2,"new_root":"[0-9a-f]{64}",'
  . '"entries":\[\{"idx":0,"seq":1\},\{"idx":1,"seq":2\}\],"reasons":\[\]\}',
  '^\{"roots":\[\{"seq":2,"root":"[0-9a-f]{64}","ts":\d+\}\],"next":2\}',
  '^\{"roots":\[\],"next":2\}',
  qr/^ron-ledger-\d+\n2\n[\w+\/]{43}=\n\n\xe2\x80\x94 ron-ledger-/,
  '^\{"seq":1,"size":2,"leaf":"[0-9a-f]{64}","root":"[0-9a-f]{64}",'
  . '"path":\["[0-9a-f]{64}"\]\}',
  '^\{"from":1,"to":2,"from_root":"[0-9a-f]{64}","to_root":"[0-9a-f]{64}",'
  . '"path":\["[0-9a-f]{64}"\]\}',
  qr/^.{64}$/s, qr/^\0/s,
  '"seq":1.*"seq":2', '^(?!.*"seq":1,).*"seq":2',
  '"kind":"Transfer"',
  '"balances":\[\{"asset":"ron","amount_minor":"90"' ]

=== TEST 3: some of it, nothing of it
--- request eval
[ main::ingest([main::entry('Mint', 'a3', 10)]),
  main::ingest([main::entry('Burn', 'a3', 4), main::entry('Burn', 'a3', 40)]),
  main::ingest([main::entry('Burn', 'a3', 4), main::entry('Burn', 'a3', 40)],
               '"atomic":true'),
  'GET /ledger/accounts/a3' ]
--- more_headers eval
$main::json
--- error_code eval
[ 200, 207, 409, 200 ]
--- response_body_like eval
[ '"accepted":true',
  '"accepted":false.*"reasons":\[\{"idx":1,"reason":"insufficient"',
  '"code":"INSUFFICIENT_FUNDS"', '"amount_minor":"6"' ]

=== TEST 4: kinds that need each other
--- config
# of its own: refs are numbers
location /ledger/ { ron_ledger_api; }
location /v1/ { ron_wallet; }
--- request eval
[ main::ingest([main::entry('Mint', 'a', 100)]),
  main::ingest([main::entry('Hold', 'a', 20, '"to":"shop"')]),
  main::ingest([main::entry('Capture', 'a', 15, '"ref":2')]),
  main::ingest([main::entry('Capture', 'a', 6, '"ref":2')]),
  main::ingest([main::entry('Release', 'a', 5, '"ref":2')]),
  main::ingest([main::entry('Transfer', 'a', 10, '"to":"b"')]),
  main::ingest([main::entry('Reverse', 'b', 11, '"ref":5')]),
  main::ingest([main::entry('Reverse', 'b', 10, '"ref":5')]),
  main::ingest([main::entry('Debit', 'a', 3), main::entry('Credit', 'c', 3)]),
  main::ingest([main::entry('Debit', 'a', 3), main::entry('Credit', 'c', 4)]),
  'GET /ledger/accounts/a' ]
--- more_headers eval
$main::json
--- error_code eval
[ 200, 200, 200, 409, 200, 200, 409, 200, 200, 409, 200 ]
--- response_body_like eval
[ ('"accepted":true') x 3, '"type"', ('"accepted":true') x 2, '"type"',
  ('"accepted":true') x 2, '"type"',
  '"amount_minor":"82","held_minor":"0"' ]

=== TEST 5: an idem_id
--- request eval
do {
    my @same = (main::entry('Mint', 'a5', 10));
    [ main::ingest(\@same, '"idem_id":"run-1"'),
      main::ingest(\@same, '"idem_id":"run-1"'),
      main::ingest([main::entry('Mint', 'a5', 1)], '"idem_id":"run-1"'),
      'GET /ledger/accounts/a5' ]
}
--- more_headers eval
$main::json
--- error_code eval
[ 200, 200, 409, 200 ]
--- response_body_like eval
[ '"accepted":true', '"accepted":true', '"code":"CONFLICT"',
  '"amount_minor":"10"' ]

=== TEST 6: lines
--- request eval
"POST /ledger/ingest?results=all\n" . main::entry('Mint', 'a6', 10) . "\n"
. main::entry('Burn', 'a6', 11) . "\n" . "{}\n"
--- more_headers
Authorization: Bearer $TOKEN
Content-Type: application/x-ndjson
--- response_headers
Content-Type: application/x-ndjson
--- response_body_like eval
qr/"line":3,"reason":"malformed".*"line":1,"seq":\d+.*
   "line":2,"reason":"insufficient".*"accepted":1,"rejected":2/sx

=== TEST 7: what is malformed
--- request eval
[ main::ingest([]), main::ingest([main::entry('Conjure', 'a', 1)]),
  main::ingest(['{"id":"x"}']), main::ingest([main::entry('Mint', 'a', '01')]),
  main::ingest([main::entry('Mint', 'a', 1)], '"colour":"blue"'),
  'POST /ledger/ingest
[]' ]
--- more_headers eval
$main::json
--- error_code eval
[ (400) x 6 ]
--- response_headers eval
[ ('Content-Type: application/problem+json') x 6 ]

=== TEST 8: numbers that are none
--- request eval
[ map { "GET /ledger/$_" } qw(roots?since=x roots?limit=x roots?limit=0
      proof/inclusion?seq=x proof/inclusion proof/consistency?from=x
      entries?from=x entries/x accounts/a/entries?limit=x tile/0/x
      tile/9/000 accounts/a%20b) ]
--- more_headers
Authorization: Bearer $TOKEN
--- error_code eval
[ (400) x 12 ]

=== TEST 9: what needs a capability
--- request eval
[ (map { "GET /ledger/$_" } qw(entries entries/1 accounts/a
                               accounts/a/entries)),
  map { "POST /ledger/$_" } qw(ingest admin/drain admin/safe-mode
                               admin/snapshot) ]
--- more_headers
Content-Type: application/json
--- error_code eval
[ (401) x 8 ]

=== TEST 10: and what needs none
--- request eval
[ map { "GET /ledger/$_" } qw(roots checkpoint) ]
--- error_code eval
[ 200, 200 ]

=== TEST 11: the act of it
--- request eval
[ (map { "GET /ledger/$_" } qw(entries entries/1 accounts/a
                               accounts/a/entries)),
  main::ingest([main::entry('Mint', 'a', 1)]),
  'POST /ledger/admin/drain', 'POST /ledger/admin/safe-mode
{"enter":true}', 'POST /ledger/admin/snapshot' ]
--- more_headers
Authorization: Bearer $TOKEN(act = transfer)
Content-Type: application/json
--- error_code eval
[ (403) x 8 ]

=== TEST 12: a Mint needs the act of an issue beside that of an ingest
--- request eval
main::ingest([main::entry('Mint', 'a', 1)])
--- more_headers
Authorization: Bearer $TOKEN(act = ingest)
Content-Type: application/json
--- error_code: 403

=== TEST 13: the history of an account, which is on disk
--- main_config
ron_ledger sqlite:$TEST_NGINX_RON_DIR/ledger;
--- request eval
[ main::ingest([main::entry('Mint', 'a13', 1)]),
  'GET /ledger/accounts/a13/entries' ]
--- more_headers eval
$main::json
--- wait: 1
--- error_code eval
[ 200, 200 ]
--- response_headers_like eval
[ '', 'Ledger-Watermark: \d+' ]

=== TEST 14: safe mode, in and out
--- config
# of its own: writes stop
location /ledger/ { ron_ledger_api; }
location /v1/ { ron_wallet; }
location = /readyz { ron_health ready; }
--- request eval
[ 'POST /ledger/admin/safe-mode
{"enter":true}',
  main::ingest([main::entry('Mint', 'a', 1)]),
  'GET /ledger/roots', 'GET /readyz',
  'POST /ledger/admin/safe-mode
{}' ]
--- more_headers eval
$main::json
--- wait: 0.3
--- error_code eval
[ 200, 503, 200, 503, 400 ]
--- response_headers_like eval
[ '', 'Retry-After: \d+', '', 'Retry-After: \d+', '' ]
--- response_body_like eval
[ '"state":"safe_mode"', '"code":"SAFE_MODE"', '"roots"', '"safe_mode":true',
  '"code":"BAD_REQUEST"' ]

=== TEST 15: drain
--- config
# of its own: it ends
location /ledger/ { ron_ledger_api; }
location /v1/ { ron_wallet; }
location = /readyz { ron_health ready; }
--- request eval
[ 'POST /ledger/admin/drain', main::ingest([main::entry('Mint', 'a', 1)]),
  'GET /readyz' ]
--- more_headers eval
$main::json
--- wait: 0.3
--- error_code eval
[ 200, 503, 503 ]
--- response_body_like eval
[ 'drain', '"code":"DRAINING"', '"ready":false' ]
