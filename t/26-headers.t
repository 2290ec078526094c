#!/usr/bin/perl

# If-Match in every form that RFC 9110 has, Request-Timeout, and what a ledger
# in memory says about a history that it does not have.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use Time::HiRes qw(time);


my $s = RonTest->new;
$s->start or BAIL_OUT('no server');

my $n = 0;

sub pay {
    my (%o) = @_;

    $n++;

    return $s->post('/v1/transfer', { from => 'alice', to => 'bob',
                    asset => 'ron', amount_minor => '1', nonce => $n },
                    key => "k$n", %o);
}

sub version {
    my ($tag) = $s->get('/v1/balance?account=alice&asset=ron')
        ->{headers}{etag} =~ /^"(\d+)"$/;

    return $tag;
}

is($s->post('/v1/issue', { to => 'alice', asset => 'ron',
                           amount_minor => '1000' }, key => 'money')->{status},
   200, 'money');
is(pay()->{status}, 200, 'a payment');


# a header, the status, and what the answer says: V is the version of now

my @forms = (
    [ '"V"', 200 ],
    [ 'V', 200 ],
    [ '*', 200 ],
    [ '"V", "V"', 200 ],
    [ ',, "V" ,', 200 ],
    [ 'W/"V", "V"', 200 ],
    [ '"no,such \"tag"' =~ s/ \\"//r, 412, qr/no version/ ],
    [ '"V", "a,b"', 200 ],
    [ '"1"', 412, qr/another version|has changed/ ],
    [ 'W/"V"', 412, qr/no version of an account/ ],
    [ '"abc"', 412, qr/no version of an account/ ],
    [ '""', 412, qr/no version of an account/ ],
    [ '"0V"', 412, qr/no version of an account/ ],
    [ '"18446744073709551616"', 412, qr/no version of an account/ ],
    [ '"V", "1"', 400, qr/must name one version/ ],
    [ '', 400, qr/must be \\"<version>\\"/ ],
    [ ',', 400, qr/must be/ ],
    [ '"V', 400, qr/must be/ ],
    [ 'V"', 400, qr/must be/ ],
    [ '"V" "V"', 400, qr/must be/ ],
    [ '"V"x', 400, qr/must be/ ],
    [ 'w/"V"', 400, qr/must be/ ],
    [ 'W/V', 400, qr/must be/ ],
    [ 'V, V', 400, qr/must be/ ],
    [ '*, "V"', 400, qr/must be/ ],
    [ '**', 400, qr/must be/ ],
    [ '-V', 400, qr/must be/ ],
    [ '0V', 400, qr/must be/ ],
    [ "'V'", 400, qr/must be/ ],
    [ "\"\x01\"", 400, qr/must be/ ],
);

for my $form (@forms) {
    my ($value, $status, $says) = @$form;
    my $v = version();
    my $last = $n;

    (my $sent = $value) =~ s/V/$v/g;
    my $r = pay(headers => { 'If-Match' => $sent });

    is($r->{status}, $status, "If-Match: $value");
    like($r->{body}, $says, 'says why') if $says;
    is(version(), $v + ($status == 200), $status == 200 ? 'was done'
                                                        : 'nothing was done');
    $n = $last unless $status == 200;

    like($r->{body}, qr/"field":"If-Match"/, 'and names it')
        if $status == 400;
}

my $v = version();
my $sock = $s->connect;
my $body = '{"from":"alice","to":"bob","asset":"ron","amount_minor":"1",'
           . '"nonce":' . ($n + 1) . '}';
print $sock "POST /v1/transfer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    . 'Authorization: Bearer ' . $s->token . "\r\n"
    . "Content-Type: application/json\r\nIdempotency-Key: twice\r\n"
    . "If-Match: \"$v\"\r\nIf-Match: \"1\"\r\n"
    . 'Content-Length: ' . length($body) . "\r\n\r\n$body";
my $r = RonTest::read_response($sock, 'POST', 10);
is($r->{status}, 400, 'two lines are refused by NGINX');
is(version(), $v, 'nothing was done');


# Request-Timeout: seconds.  One that is not is said, and to reads as well.

for my $bad ('', 'x', '1.5', '-1', '+1', '01', '1s', '1, 2', '0x1',
             '18446744073709551616')
{
    my @headers = (headers => { 'Request-Timeout' => $bad });
    my $last = $n;

    for my $r (pay(@headers), $s->get('/ledger/roots?since=0', @headers)) {
        is($r->{status}, 400, "Request-Timeout: $bad");
        like($r->{body}, qr/must be seconds, once, a whole number/, 'says so');
        like($r->{body}, qr/"field":"Request-Timeout"/, 'and names it');
    }

    $n = $last;
}

is(pay(headers => { 'Request-Timeout' => $_ })->{status}, 200,
   "Request-Timeout: $_") for 1, 60, '18446744073709551615';

$r = pay(headers => { 'Request-Timeout' => 0 });
is($r->{status}, 503, 'no time at all');
is(json_get($r->{body}, 'code'), 'RETRY_LATER', 'was not enough');

$s->quit;


# a ledger in memory: everything is read but the history of an account

my $m = RonTest->new(ledger => 'memory:16m');
$m->start or BAIL_OUT('no server');
$r = $m->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '5' },
              key => 'm');
is($r->{status}, 200, 'in memory: money');
my $txid = json_get($r->{body}, 'txid');

for my $path ('/ledger/entries?from=1&to=9', '/ledger/entries/1',
              '/ledger/accounts/a', '/ledger/roots?since=0',
              '/ledger/checkpoint', '/ledger/proof/inclusion?seq=1',
              '/ledger/proof/consistency?from=1&to=1', "/v1/tx/$txid",
              '/v1/balance?account=a&asset=ron')
{
    is($m->get($path)->{status}, 200, "in memory: $path");
}

$r = $m->get('/ledger/accounts/a/entries');
is($r->{status}, 404, 'in memory: no history');
is(json_get($r->{body}, 'code'), 'NOT_FOUND', 'NOT_FOUND');
is(json_get($r->{body}, 'retryable'), 'false', 'and never will be');
like($r->{body}, qr/a ledger in memory has no history of accounts/, 'why');
ok(!exists $r->{headers}{'retry-after'}, 'nobody is told to come again');
$m->quit;

done_testing();
