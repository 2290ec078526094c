#!/usr/bin/perl

# The access log of the shipped configuration: one JSON object a line with
# all its fields, no matter what comes; its reasons are those of the metrics.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use JSON::PP ();

my ($format) = RonTest::slurp('conf/nginx.conf.in')
    =~ /^( +log_format  ron .*?;)$/ms;
ok($format, 'the configuration has a format') or BAIL_OUT('no format');

for my $ledger ('sqlite', 'memory') {
    my $s = RonTest->new(workers => 1, http => $format,
        config => 'access_log logs/access.log ron; ron_errors on;');
    $s->{ledger} = 'memory:16m' if $ledger eq 'memory';
    $s->start or BAIL_OUT('no server');

    my $corr = 'a"\\b\'-1';
    my @asked = (
        [ 200, '', '/v1/issue', 'wallet', sub {
            $s->post('/v1/issue', { to => 'secret-account', asset => 'ron',
                amount_minor => '5' }, key => 'secret-key',
                headers => { 'X-Corr-ID' => $corr }) } ],
        [ 200, '', '/v1/balance', 'wallet', sub {
            $s->get('/v1/balance?account=secret-account&asset=ron') } ],
        [ 401, 'unauthorized', '/v1/balance', 'wallet', sub {
            $s->get('/v1/balance?account=secret-account', token => undef) } ],
        [ 409, 'insufficient_funds', '/v1/transfer', 'wallet', sub {
            $s->post('/v1/transfer', { from => 'secret-account', to => 'b',
                asset => 'ron', amount_minor => '50', nonce => 1 },
                key => 'k2') } ],
        [ 400, 'bad_request', '/v1/issue', 'wallet', sub {
            $s->post('/v1/issue', '{', key => 'k3') } ],
        [ 404, 'not_found', 'other', 'wallet', sub {
            $s->get('/v1/secret-account') } ],
        [ 404, 'not_found', '/ledger/entries/{seq}', 'ledger', sub {
            $s->get('/ledger/entries/77777') } ],
        [ 400, 'unknown_kind', '/ledger/ingest', 'ledger', sub {
            $s->post('/ledger/ingest', { batch => [ { id => 'x', ts => 1,
                kind => 'Wish', account => 'b', amount => '1',
                nonce => nonce16(1), v => 1 } ] }) } ],
        [ 404, 'not_found', '', '', sub { $s->get('/nowhere?secret-account') } ],
        [ 400, 'bad_request', '', '', sub {
            my $sock = $s->connect;
            syswrite $sock, "\"\\\x01\xff secret\r\n\r\n";
            RonTest::read_response($sock, 'GET') } ],
    );

    for my $ask (@asked) {
        my $r = $ask->[4]->();
        is($r->{status}, $ask->[0], "$ledger: $ask->[2] $ask->[0]");
    }

    my @lines;
    until_ok(5, sub {
        @lines = grep { !m{"route":"/readyz"} }
            split /\n/, RonTest::slurp($s->dir . '/logs/access.log');
        return @lines >= @asked;
    });

    is(scalar @lines, scalar @asked, "$ledger: a line for each request");

    my $metrics = $s->get('/metrics', token => undef)->{body};

    for my $ask (@asked) {
        my ($status, $reason, $route, $service) = @$ask;
        my $line = shift @lines;
        my $what = "$ledger: $route $status";
        my $o = eval { JSON::PP->new->decode($line) };

        ok($o, "$what: is JSON") or diag($line), next;
        is(join(' ', sort keys %$o),
           'amnesia corr_id event latency_ms level method peer_addr reason'
           . ' route service status ts', "$what: all fields");
        like($o->{ts}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
             "$what: in UTC");
        is($o->{level}, $status < 400 ? 'info' : 'warn', "$what: level");
        is("$o->{service} $o->{route} $o->{status} $o->{reason}",
           "$service $route $status $reason", "$what: what it was");
        like($o->{latency_ms}, qr/^\d+$/, "$what: a latency");
        is($o->{amnesia} ? 1 : 0, $ledger eq 'memory' ? 1 : 0,
           "$what: amnesia");
        is($o->{peer_addr}, '127.0.0.1', "$what: the peer");

        next if $reason eq '' || $service eq '';

        like($metrics, qr/^rejected_total\{service="$service",
                          reason="$reason"\}\ [1-9]/mx,
             "$what: the reason is the label");
    }

    my $text = RonTest::slurp($s->dir . '/logs/access.log');

    unlike($text, qr/secret/, "$ledger: no account, key or request");
    ok((grep { JSON::PP->new->decode($_)->{corr_id} eq $corr }
        split /\n/, $text) == 1, "$ledger: the correlation id, as it was");

    $s->quit;
}

done_testing();
