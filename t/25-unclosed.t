#!/usr/bin/perl

# What is released while work is under way only lets go of it, and leaves one
# line at debug level; what was closed leaves none.

use strict;
use warnings;

use lib 't/lib';
use RonTest;


# Debian's NGINX has debug lines; what is built for another tree has none

plan skip_all => 'a module without debug lines'
    if $RonTest::NGINX ne 'nginx'
       && RonTest::slurp(($ENV{RON_BUILD} || 'build') . '/ngx_ron_module.so')
          !~ /was released and not closed/;

my $s = RonTest->new(workers => 1, level => 'debug');
$s->start or BAIL_OUT('no server');

is($s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '1' },
            key => 'a')->{status}, 200, 'a request that was answered');

my @socks = map { stream() } 1 .. 3;
is(unclosed(), 0, 'nothing to say');

# clients that leave: their requests are released

close $_ for splice @socks, 0, 2;
ok(until_ok(5, sub { open_streams() == 1 }), 'two clients left');
is(unclosed(), 2, 'a line for each');

# one that the server ends is closed first

$s->reload;
ok(until_ok(5, sub { !defined readline($socks[0]) }), 'a reload ends it');
ok(until_ok(5, sub { open_streams() == 0 }), 'and it is closed');
is(unclosed(), 2, 'with nothing more to say');


# the other things that a worker has under way: an operation and a batch of
# lines at a helper that stands still, a proof that is being read.  Whoever
# leaves is let go at once, and others are served meanwhile.

my $helper = $s->helper;

for my $case (
    [ 'a call', sub { kill 'STOP', $helper },
      [ 'POST', '/v1/issue', { to => 'a', asset => 'ron',
                               amount_minor => '1' }, key => 'left' ],
      sub { kill 'CONT', $helper } ],
    [ 'a batch of lines', sub { kill 'STOP', $helper },
      [ 'POST', '/ledger/ingest', '{"id":"e1","ts":1,"kind":"Mint",'
        . '"account":"a","amount":"1","nonce":"' . nonce16() . '","v":1}' . "\n",
        type => 'application/x-ndjson' ],
      sub { kill 'CONT', $helper } ],
    [ 'a proof', sub {
          $s->inject('pread64', 'delay_enter=5000000', pid => $s->workers,
                     files => [ 'ledger.db', 'ledger.db-wal' ]) },
      [ 'GET', '/ledger/proof/inclusion?seq=1&size=1', undef ],
      sub { kill 'TERM', $_[0]; waitpid $_[0], 0 } ])
{
    my ($what, $begin, $request, $end) = @$case;

SKIP: {
    my $before = unclosed();
    my $held = $begin->() or skip 'no strace here', 3;
    my $sock = $s->connect;

    $s->send_request($sock, @$request, keep => 1);
    ok(until_ok(5, sub { under_way($what) == 1 }), "$what is under way");
    close $sock;
    ok(until_ok(2, sub { unclosed() == $before + 1 }),
       "$what: its client left, and it was let go at once");
    is($s->get('/healthz')->{status}, 200, 'others are served');
    $end->($held);
    like($s->log, qr/ron: $what was released and not closed/, 'it is named');
}
}

ok($s->wait_ready, 'all goes on');
ok(until_ok(5, sub {
    json_get($s->get('/v1/balance?account=a&asset=ron')->{body},
             'amount_minor') == 3 }), 'and what was under way was done');

done_testing();


sub under_way {
    my ($what) = @_;

    return $s->metric('queue_depth', 'q="proofs"') if $what eq 'a proof';

    return $s->metric('inflight_requests', $what eq 'a call'
        ? 'route="/v1/issue"' : 'route="/ledger/ingest"');
}


sub stream {
    my $sock = $s->connect;

    $s->send_request($sock, 'GET', '/ledger/roots/stream', undef);
    BAIL_OUT('no stream') if !defined readline $sock;

    return $sock;
}


sub open_streams {
    return $s->metric('streams_open', 'service="ledger"');
}


sub unclosed {
    return scalar(() = $s->log =~ /ron: a [\w ]+ was released and not closed/g);
}
