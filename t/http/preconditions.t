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

# Every block sends its request once with each of them: the one that it has,
# or the one that is its name.  N in it is another number each time.  The
# library runs the preprocessor that came last first, so that of RonSuite has
# been there and tokens are expanded here.

BEGIN {
    add_block_preprocessor(sub {
        my ($block) = @_;

        my $request = $block->request;
        ($request) = $block->name =~ /: (.*)/ unless defined $request;
        chomp $request;

        $block->set_value('request', [ map { numbered($request) } @headers ]);
        $block->set_value('more_headers', [ map { with($_) } @headers ]);
    });
}

sub numbered {
    my ($request) = @_;

    $n++;
    $request =~ s/\bN\b/$n/g;

    return $request;
}

sub with {
    my ($header) = @_;

    return RonSuite::with_tokens(
        "$header\nAuthorization: Bearer \$TOKEN\n"
        . "Content-Type: application/json\nIdempotency-Key: p" . ++$n);
}

# Each route of the sources has a block: "GET ledger/roots".

sub routes {
    my ($service, $prefix) = @_;

    my $text = RonTest::slurp("ngx_ron_module/ngx_http_ron_${service}_module.c");
    my ($table) = $text =~ /_routes\[\] = \{\n(.*?)^\};/ms;

    return map { "$_->[1] $prefix/$_->[0]" }
           map { /ngx_string\("(.*?)"\), NGX_HTTP_(\w+)/ ? [ $1, $2 ] : () }
           split /^(?=    \{)/m, $table;
}

sub missing {
    my @blocks = map { $_->name =~ /: (\w+ \S+)/ } blocks();
    my %have;

    # what ends in a slash is a prefix

    for my $route (@_) {
        for (@blocks) {
            my $at = index($_, $route) == 0 ? length $route : next;
            $have{$route}++ if $route =~ m{/$} ? length > $at
                                               : substr($_, $at) =~ /^(?:\?|$)/;
        }
    }

    return grep { !$have{$_} } @_;
}

# The streams come last: a server that drains ends them.  The bus goes
# on, and is asked for what it refuses.

my @routes = ((map { "GET /$_" } qw(healthz readyz version metrics)),
              routes('ledger', '/ledger'), routes('wallet', '/v1'));

# one that no pattern finds would be in neither list

Test::More::cmp_ok(scalar @routes, '>=', 34, scalar @routes . ' routes');
Test::More::is(join(', ', missing(@routes)), '', 'each has a block');
Test::More::is(join(', ', missing('GET /ledger/other', 'GET /v1/t')),
               'GET /ledger/other, GET /v1/t', 'and others have none');

no_long_string();
run_tests();

__DATA__

=== TEST 1: GET /healthz
--- error_code eval
[ (200) x 5 ]

=== TEST 2: GET /readyz
--- error_code eval
[ (200) x 5 ]

=== TEST 3: GET /version
--- error_code eval
[ (200) x 5 ]

=== TEST 4: GET /metrics
--- error_code eval
[ (200) x 5 ]

=== TEST 5: GET /ledger/roots
--- error_code eval
[ (200) x 5 ]

=== TEST 6: GET /ledger/proof/consistency?from=0&to=0
--- error_code eval
[ (200) x 5 ]

=== TEST 7: GET /ledger/entries
--- error_code eval
[ (200) x 5 ]

=== TEST 8: GET /ledger/accounts/a
--- error_code eval
[ (200) x 5 ]

=== TEST 9: GET /v1/outcome?account=a
--- error_code eval
[ (200) x 5 ]

=== TEST 10: GET /v1/balance?account=a&asset=ron
--- error_code eval
[ 200, 304, (200) x 3 ]

=== TEST 11: GET /ledger/checkpoint
--- error_code eval
[ (404) x 5 ]

=== TEST 12: GET /ledger/proof/inclusion?seq=1
--- error_code eval
[ (404) x 5 ]

=== TEST 13: GET /ledger/tile/0/000.p/1
--- error_code eval
[ (404) x 5 ]

=== TEST 14: GET /ledger/tile/entries/000.p/1
--- error_code eval
[ (404) x 5 ]

=== TEST 15: GET /ledger/entries/1
--- error_code eval
[ (404) x 5 ]

=== TEST 16: GET /ledger/accounts/a/entries
--- error_code eval
[ (404) x 5 ]

=== TEST 17: GET /v1/tx/tx_01M7QJFT5TANJG0000000000ZZ
--- error_code eval
[ (404) x 5 ]

=== TEST 18: POST /v1/issue
--- request
POST /v1/issue
{"to":"p","asset":"ron","amount_minor":"100"}
--- error_code eval
[ 412, (200) x 4 ]
--- response_body_like eval
[ '"code":"PRECONDITION_FAILED"', ('"txid":"tx_') x 4 ]

=== TEST 19: POST /v1/transfer
--- request
POST /v1/transfer
{"from":"p","to":"q","asset":"ron","amount_minor":"1","nonce":N}
--- error_code eval
[ 412, (200) x 4 ]
--- response_body_like eval
[ '"code":"PRECONDITION_FAILED"', ('"txid":"tx_') x 4 ]

=== TEST 20: POST /v1/burn
--- request
POST /v1/burn
{"from":"p","asset":"ron","amount_minor":"1","nonce":N}
--- error_code eval
[ 412, (200) x 4 ]
--- response_body_like eval
[ '"code":"PRECONDITION_FAILED"', ('"txid":"tx_') x 4 ]

=== TEST 21: POST /v1/hold
--- request
POST /v1/hold
{"from":"p","to":"q","asset":"ron","amount_minor":"1","nonce":N}
--- error_code eval
[ 412, (200) x 4 ]
--- response_body_like eval
[ '"code":"PRECONDITION_FAILED"', ('"txid":"tx_') x 4 ]

=== TEST 22: POST /v1/batch
--- request
POST /v1/batch
{"ops":[{"op":"transfer","from":"p","to":"q","asset":"ron",
 "amount_minor":"1","nonce":N}]}
--- error_code eval
[ 412, (200) x 4 ]

=== TEST 23: POST /v1/capture
--- request
POST /v1/capture
{"hold":"tx_01M7QJFT5TANJG0000000000ZZ","amount_minor":"1"}
--- error_code eval
[ (404) x 5 ]

=== TEST 24: POST /v1/release
--- request
POST /v1/release
{"hold":"tx_01M7QJFT5TANJG0000000000ZZ"}
--- error_code eval
[ (404) x 5 ]

=== TEST 25: POST /ledger/ingest
--- request
POST /ledger/ingest
{"batch":[{"id":"p-N","ts":1,"kind":"Mint","account":"p","amount":"1",
 "nonce":"AAAAAAAAAAAAAAAAAAAAAA==","v":1}],"idem_id":"N"}
--- error_code eval
[ (200) x 5 ]

=== TEST 26: POST /ledger/admin/snapshot
--- request
POST /ledger/admin/snapshot
--- error_code_like eval
[ ('^(?!412|304)') x 5 ]

=== TEST 27: POST /ledger/admin/safe-mode
--- request
POST /ledger/admin/safe-mode
{"enter":false}
--- error_code eval
[ (409) x 5 ]

=== TEST 28: POST /ledger/ops
--- request
POST /ledger/ops
{"op":"issue","key":"N","request":{"to":"p","asset":"ron","amount_minor":"1"}}
--- error_code eval
[ (200) x 5 ]
--- response_body_like eval
[ ('"txid":"tx_') x 5 ]

=== TEST 29: GET /ledger/ops/balance?account=a&asset=ron
--- error_code eval
[ 200, 304, (200) x 3 ]

=== TEST 30: GET /ledger/ops/outcome?account=a
--- error_code eval
[ (200) x 5 ]

=== TEST 31: GET /ledger/ops/tx/tx_01M7QJFT5TANJG0000000000ZZ
--- error_code eval
[ (404) x 5 ]

=== TEST 32: GET /ledger/admin/snapshot
--- error_code eval
[ (404) x 5 ]

=== TEST 33: POST /ledger/admin/drain
--- request
POST /ledger/admin/drain
--- error_code eval
[ (200) x 5 ]

=== TEST 34: GET /ledger/roots/stream
--- error_code eval
[ (200) x 5 ]

=== TEST 35: GET /v1/audit/stream
--- error_code eval
[ (200) x 5 ]

=== TEST 36: GET /ledger/bus?since=none
--- error_code eval
[ (400) x 5 ]
--- response_body_like eval
[ ('"field":"since"') x 5 ]
