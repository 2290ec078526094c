#!/usr/bin/perl

# A worker's calls to the helper: a second a try, three tries, the same key.
# A helper that is stopped (SIGSTOP) is one that hangs: its connection is
# there, and nothing comes over it.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use POSIX ();
use Time::HiRes ();


my $s = RonTest->new(workers => 1);
$s->start or BAIL_OUT('no server');

is($s->post('/v1/issue', { to => 'from', asset => 'ron',
    amount_minor => '1000' }, key => 'fund')->{status}, 200, 'funded');

my $wallet_timeouts = 'io_timeouts_total{service="wallet",op="ledger_rpc"}';
my $ledger_timeouts = 'io_timeouts_total{service="ledger",op="ledger_rpc"}';
my $wallet_retries =
    'backoff_retries_total{service="wallet",svc="ledger",op="commit"}';
my $ledger_retries =
    'backoff_retries_total{service="ledger",op="ledger_rpc"}';

sub stopped {
    my ($pid) = @_;

    freeze($pid);
    until_ok(5, sub {
        !grep { RonTest::slurp($_) !~ /\) T / } glob "/proc/$pid/task/*/stat"
    });
}

sub send_pay {
    my ($nonce, %o) = @_;

    my $sock = $s->connect;
    $s->send_request($sock, 'POST', '/v1/transfer', { from => 'from',
        to => 'sink', asset => 'ron', amount_minor => '1',
        nonce => $nonce }, key => "n-$nonce", %o);

    return $sock;
}

sub sink {
    my $r = $s->get('/v1/balance?account=sink&asset=ron');
    return json_get($r->{body}, 'amount_minor');
}


# it hangs for two tries, and goes on

is($s->metric($wallet_timeouts), 0, 'no time-out yet');
is($s->metric($wallet_retries), 0, 'no retry yet');

my $helper = $s->helper;
stopped($helper);
my $t = Time::HiRes::time();
my $sock = send_pay(1);
ok(until_ok(4, sub { $s->log =~ /nothing was heard for a second/ }),
   'after a second the connection is given up');
my $took = Time::HiRes::time() - $t;
cmp_ok($took, '>=', 0.9, sprintf 'not before (%.2f s)', $took);
cmp_ok($took, '<', slow(2), 'and not long after');
kill 'CONT', $helper;
my $r = RonTest::read_response($sock, 'POST', 8);
is($r->{status}, 200, 'sent again, it is answered') or diag($r->{body});
cmp_ok(Time::HiRes::time() - $t, '<', slow(5), 'within its deadline');
is(sink(), 1, 'done once');
cmp_ok($s->metric($wallet_timeouts), '>=', 1, 'the time-out is counted');
cmp_ok($s->metric($wallet_retries), '>=', 1, 'so is the second try');
is($s->metric($ledger_timeouts), 0, 'not for the ledger');


# it hangs for longer than the request may take

stopped($helper);
$t = Time::HiRes::time();
$r = RonTest::read_response(send_pay(2), 'POST', 10);
$took = Time::HiRes::time() - $t;
is($r->{status}, 503, 'a helper that hangs: 503');
is(json_get($r->{body}, 'code'), 'TIMEOUT', 'the outcome is unknown');
is($r->{headers}{'retry-after'} ? 1 : 0, 1, 'to be tried again');
cmp_ok($took, '<', slow(5.5), sprintf 'within the deadline (%.2f s)', $took);
kill 'CONT', $helper;
ok($s->wait_ready, 'ready again');
$r = RonTest::read_response(send_pay(2), 'POST', 10);
is($r->{status}, 200, 'the same key is answered afterwards');
is(sink(), 2, 'and done once');


# entries

stopped($helper);
$sock = $s->connect;
$s->send_request($sock, 'POST', '/ledger/ingest', { batch => [ {
    id => 'e1', ts => 1, kind => 'Mint', account => 'from', amount => '5',
    nonce => nonce16(), v => 1 } ] });
Time::HiRes::sleep(1.5);
kill 'CONT', $helper;
$r = RonTest::read_response($sock, 'POST', 8);
is($r->{status}, 200, 'an ingest is sent again too') or diag($r->{body});
cmp_ok($s->metric($ledger_timeouts), '>=', 1, 'counted for the ledger');
cmp_ok($s->metric($ledger_retries), '>=', 1, 'its retry as well');


# one that is larger than what its socket takes is written in pieces

my $again = $s->metric($ledger_retries);
$r = $s->post('/ledger/ingest', { batch => [ map { {
    id => sprintf('large-%058d', $_), ts => 1, kind => 'Mint',
    account => sprintf('large-%050d', $_), amount => '5',
    nonce => nonce16(), v => 1 } } 1 .. 3000 ] });
is($r->{status}, 200, 'a large batch is answered') or diag($r->{body});
is($s->metric($ledger_retries), $again, 'at the first try');


# it hangs, and then it dies: the next one answers

$helper = $s->helper;
stopped($helper);
$t = Time::HiRes::time();
$sock = send_pay(3);
Time::HiRes::sleep(0.2);
ok($s->kill_helper, 'killed while it is stopped');
$r = RonTest::read_response($sock, 'POST', 8);
is($r->{status}, 200, 'its successor answers') or diag($r->{body});
is(sink(), 3, 'done once');


# "not now" from the next one says nothing of what the one before has done

$helper = $s->helper;
my $dir = $s->dir . '/ledger';
ok(until_ok(10, sub {
    my $h = $s->get('/ledger/accounts/sink/entries')->{headers};
    ($h->{'ledger-watermark'} || 0) >= 3005
}), 'history has it all');
stopped($helper);
$sock = send_pay(4);
Time::HiRes::sleep(0.2);
is(system("sqlite3 $dir/history.db 'update watermark set seq = 999999'"), 0,
   'history knows more than the journal');
ok($s->kill_helper, 'killed');
$r = RonTest::read_response($sock, 'POST', 8);
is($r->{status}, 503, 'the next one is in safe mode');
is(json_get($r->{body}, 'code'), 'TIMEOUT',
   'which is no answer for what was sent before') or diag($r->{body});
$r = RonTest::read_response(send_pay(5), 'POST', 8);
is(json_get($r->{body}, 'code'), 'SAFE_MODE', 'but it is for a new one');

$s->terminate;

done_testing();
