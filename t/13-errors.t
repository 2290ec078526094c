#!/usr/bin/perl

# Every error has one shape, whoever made it; nothing that a client sends is
# echoed; nothing is written to a file.

use strict;
use warnings;

use lib 't/lib';
use RonTest;


my $s = RonTest->new(workers => 1, http => 'client_header_timeout 1s;');
$s->start or BAIL_OUT('no server');

my %pay = (from => 'a', to => 'b', asset => 'ron', amount_minor => '1',
           nonce => 1);
my $r;


# malformed bodies

for my $case (
    [ 'not JSON',              '{' ],
    [ 'nothing',               '' ],
    [ 'an array',              '[]' ],
    [ 'two values',            '{} {}' ],
    [ 'a member twice',        '{"from":"a","from":"a"}', 'from' ],
    [ 'an unknown member',     '{"colour":"blue"}', 'colour' ],
    [ 'a float',               '{"from":"a","to":"b","asset":"ron",'
                               . '"amount_minor":1.5,"nonce":1}',
                               'amount_minor' ],
    [ 'an amount as a number', '{"from":"a","to":"b","asset":"ron",'
                               . '"amount_minor":15,"nonce":1}',
                               'amount_minor' ],
    [ 'a leading zero',        '{"from":"a","to":"b","asset":"ron",'
                               . '"amount_minor":"015","nonce":1}',
                               'amount_minor' ],
    [ '2^128',                 '{"from":"a","to":"b","asset":"ron",'
                               . '"amount_minor":"34028236692093846346337460'
                               . '7431768211456","nonce":1}',
                               'amount_minor' ],
    [ 'zero',                  '{"from":"a","to":"b","asset":"ron",'
                               . '"amount_minor":"0","nonce":1}',
                               'amount_minor' ],
    [ 'no nonce',              '{"from":"a","to":"b","asset":"ron",'
                               . '"amount_minor":"1"}', 'nonce' ],
    [ 'nonce 0',               '{"from":"a","to":"b","asset":"ron",'
                               . '"amount_minor":"1","nonce":0}', 'nonce' ],
    [ 'an account that is none', '{"from":"a b","to":"b","asset":"ron",'
                               . '"amount_minor":"1","nonce":1}', 'from' ],
    [ 'to itself',             '{"from":"a","to":"a","asset":"ron",'
                               . '"amount_minor":"1","nonce":1}', 'to' ],
    [ 'bytes that are no text', "{\"from\":\"\xff\"}" ],
    [ 'too deep',              '[' x 40 . ']' x 40 ],
    [ 'a member of another operation', '{"from":"a","to":"b","asset":"ron",'
                               . '"amount_minor":"1","nonce":1,'
                               . '"expires_in":5}', 'expires_in' ],
) {
    my ($what, $body, $field) = @$case;

    $r = $s->post('/v1/transfer', $body, key => 'k');
    is($r->{status}, 400, "$what - 400") or diag($r->{body});
    is($r->{headers}{'content-type'}, 'application/problem+json',
       "$what - a problem");
    is(json_get($r->{body}, 'field'), $field, "$what - names the member");
}

for my $name (qw(type title status detail code retryable corr_id)) {
    ok(json_has($r->{body}, $name), "a problem has $name");
}


# the correlation id

is($s->get('/healthz', headers => { 'X-Corr-ID' => 'abc-1' })
   ->{headers}{'x-corr-id'}, 'abc-1', 'is echoed');
is(json_get($s->get('/v1/none', headers => { 'X-Corr-ID' => 'abc-2' })
            ->{body}, 'corr_id'), 'abc-2', 'is in a problem');
like($s->get('/healthz', headers => { 'X-Corr-ID' => "a\tb" })
     ->{headers}{'x-corr-id'}, qr/^[0-9A-HJKMNP-TV-Z]{26}$/,
     'is ours when it is not acceptable');
like($s->get('/healthz', headers => { 'X-Corr-ID' => 'x' x 129 })
     ->{headers}{'x-corr-id'}, qr/^[0-9A-HJKMNP-TV-Z]{26}$/,
     'or too long');


# keys of a request

for my $key ('', 'x' x 65, 'a b', '"', "\xc3\xa4", 'a"b') {
    is($s->post('/v1/transfer', \%pay, headers =>
                { 'Idempotency-Key' => $key })->{status}, 400,
       "the key '$key'");
}

is($s->post('/v1/transfer', \%pay)->{status}, 400, 'no key');


# bodies in pieces

sub pieces {
    my ($body, @sizes) = @_;

    my $text = '';

    while (length $body) {
        my $part = substr $body, 0, shift @sizes || 1, '';
        $text .= sprintf "%x\r\n%s\r\n", length $part, $part;
    }

    return $text . "0\r\n\r\n";
}

$s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '100' },
         key => 'i');

my $text = RonTest::json_put(\%pay);
$r = $s->post('/v1/transfer', pieces($text), key => 'chunked',
              headers => { 'Transfer-Encoding' => 'chunked' });
is($r->{status}, 200, 'a body in chunks of one byte') or diag($r->{body});

{
    my $sock = $s->connect;
    my $req = $s->request_text('POST', '/v1/transfer',
                               { %pay, nonce => 2 }, key => 'slow');
    for my $part (unpack '(a40)*', $req) {
        syswrite $sock, $part;
        Time::HiRes::sleep(0.01);
    }
    is(RonTest::read_response($sock, 'POST')->{status}, 200,
       'a request in small pieces');
}

my $big = '{"memo":"' . ('x' x 900_000) . '"}';
$r = $s->post('/v1/transfer', pieces($big, (4000) x 300), key => 'big',
              headers => { 'Transfer-Encoding' => 'chunked' });
is($r->{status}, 400, 'a large body in chunks is read');
$r = $s->post('/v1/transfer', $big, key => 'big');
is($r->{status}, 400, 'and in one piece');
is(scalar(() = glob $s->dir . '/body/*'), 0, 'and never in a file');
unlike($s->log, qr/buffered to a temporary file/, 'nor for a moment');

$r = $s->post('/v1/transfer', 'x' x (1024 * 1024 + 1), key => 'big');
is($r->{status}, 413, 'over the cap');
is(json_get($r->{body}, 'code'), 'LIMITS_EXCEEDED', 'is a problem');
$r = $s->post('/v1/transfer', pieces('x' x (1024 * 1024 + 100),
              (65536) x 20), key => 'big',
              headers => { 'Transfer-Encoding' => 'chunked' });
is($r->{status}, 413, 'in chunks too');


# a body that does not come

{
    my $sock = $s->connect;
    my $t = Time::HiRes::time();
    syswrite $sock, "POST /v1/transfer HTTP/1.1\r\nHost: a\r\n"
        . "Authorization: Bearer @{[$s->token]}\r\n"
        . "Content-Type: application/json\r\nIdempotency-Key: late\r\n"
        . "Request-Timeout: 1\r\nContent-Length: 100\r\n\r\n{";
    $r = RonTest::read_response($sock, 'POST', 5);
    is($r->{status}, 503, 'a body that does not come');
    my $took = Time::HiRes::time() - $t;
    ok($took >= 0.9 && $took < 1.5, sprintf 'is answered at its deadline, '
                                           . 'after %.2f s', $took);
    is(json_get($r->{body}, 'code'), 'RETRY_LATER', 'as not executed');
}


# a client that goes away: what it asked for happens

{
    my $sock = $s->connect;
    $s->send_request($sock, 'POST', '/v1/transfer', { %pay, nonce => 3 },
                     key => 'gone');
    close $sock;
    ok(until_ok(3, sub {
        $s->get('/v1/outcome?account=a', headers =>
                { 'Idempotency-Key' => 'gone' })->{body} =~ /committed/;
    }), 'a client that goes away: the operation completes');
}


# nothing secret in answers or in the log

my $token = $s->token('account = secret-account');
$r = $s->post('/v1/transfer', \%pay, key => 'secret-key', token => $token);
is($r->{status}, 403, 'refused');
unlike($r->{body}, qr/secret/, 'a refusal echoes nothing');
ok(index($s->log, substr $token, 0, 40) < 0, 'no token in the log');
unlike($s->log, qr/secret-key/, 'no key in the log');


# conditional headers have no effect on what was committed

for my $h (qw(If-Modified-Since If-Unmodified-Since If-None-Match)) {
    my $v = $h =~ /None/ ? '*' : 'Sat, 01 Jan 2000 00:00:00 GMT';
    my $n = $h eq 'If-Modified-Since' ? 10 : $h =~ /Un/ ? 11 : 12;
    is($s->post('/v1/transfer', { %pay, nonce => $n }, key => "c$n",
                headers => { $h => $v })->{status}, 200, "POST with $h");
    isnt($s->get('/readyz', headers => { $h => $v })->{status}, 412,
         "GET with $h");
}


# HEAD

$r = $s->http('HEAD', '/v1/balance?account=a&asset=ron');
is($r->{status}, 200, 'HEAD');
cmp_ok($r->{headers}{'content-length'}, '>', 0, 'has a length');
is($r->{body}, '', 'and no body');


# keep-alive over errors

{
    my $sock = $s->connect;
    my @got = map {
        $s->post('/v1/transfer', '{', key => 'k', sock => $sock)->{status}
    } 1 .. 3;
    is("@got", '400 400 400', 'a connection lives on after errors');

    my $req = join '', map {
        $s->request_text('GET', '/healthz', undef, keep => 1)
    } 1 .. 3;
    syswrite $sock, $req;
    @got = map { RonTest::read_response($sock, 'GET')->{status} } 1 .. 3;
    is("@got", '200 200 200', 'and takes pipelined requests');
}


# /metrics counts what was refused

$r = $s->get('/metrics', token => undef);
is($r->{status}, 200, 'metrics');
like($r->{body}, qr/^rejected_total\{service="wallet",
                     reason="bad_request"\}\ [1-9]/mx, 'refusals by reason');
like($r->{body}, qr/^http_requests_total\{service="wallet",
                     route="\/v1\/transfer",method="POST",
                     status="200"\}\ [1-9]/mx, 'requests by route');

$s->quit;

done_testing();
