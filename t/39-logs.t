#!/usr/bin/perl

# The access log of the shipped configuration: one JSON object a line with
# all its fields, no matter what comes; its reasons are those of the metrics.

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonStream;

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

# what an operation was, for those who ask; no account by its name

{
    my $names = join ' ', map { "\$ron_$_" }
        qw(op asset amount_minor nonce txid account_hash);
    my $port = RonTest::free_port();
    my $s = RonTest->new(workers => 1,
        http => "log_format op '$names';\n"
                . "server { listen 127.0.0.1:$port;"
                . ' location /v1/ { ron_wallet; ron_wallet_ledger_pass'
                . ' door; }'
                . ' access_log logs/remote.log op; }',
        config => 'access_log logs/op.log op;');

    $s->{http} = "upstream door { server 127.0.0.1:$s->{port}; }\n$s->{http}";
    $s->start or BAIL_OUT('no server');

    my %pay = (from => 'secret-payer', to => 'secret-payee', asset => 'ron');
    my $audit = RonStream->new($s, '/v1/audit/stream', token => $s->token);
    my @want;
    my $n = 0;
    my $ask = sub {
        my ($r, $status, @line) = @_;

        is($r->{status}, $status, "$line[0]: $status") or diag($r->{body});
        push @want, [ map { defined $_ ? $_ : '-' } @line ];
        return json_get($r->{body}, 'txid');
    };
    my $post = sub {
        my ($op, $body) = @_;
        return $s->post("/v1/$op", $body, key => 'c' . ++$n);
    };
    my $r = $post->('issue', { to => 'secret-payer', asset => 'ron',
                               amount_minor => '100' });
    my $event = ($audit->events(1))[0]{data};
    my $payer = json_get($event, 'to_hash');
    $audit->close;

    like($payer, qr/^[0-9a-f]{32}$/, 'an audit event has a hash');
    $ask->($r, 200, 'issue', 'ron', 100, undef, json_get($r->{body}, 'txid'),
           $payer);

    $r = $post->('hold', { %pay, amount_minor => '30', nonce => 7 });
    my $hold = json_get($r->{body}, 'txid');
    $ask->($r, 200, 'hold', 'ron', 30, 7, $hold, $payer);

    $r = $post->('capture', { hold => $hold, amount_minor => '5' });
    $ask->($r, 200, 'capture', 'ron', 5, undef, json_get($r->{body}, 'txid'),
           $payer);

    $ask->($post->('transfer', { %pay, amount_minor => '999', nonce => 8 }),
           409, 'transfer', 'ron', 999, 8, undef, $payer);
    $ask->($post->('transfer', '{'), 400, 'transfer', (undef) x 5);
    $ask->($post->('batch', { ops => [ { op => 'transfer', %pay, nonce => 9,
                                         amount_minor => '1' } ] }),
           200, 'batch', (undef) x 5);
    $ask->($s->get('/v1/balance?account=secret-payer&asset=ron'), 200,
           'balance', 'ron', undef, undef, undef, $payer);
    $ask->($s->get("/v1/tx/$hold"), 200, 'tx', (undef) x 5);
    my @lines;

    ok(until_ok(5, sub {
        @lines = grep { !/^(?:audit|-) (?:- ){4}-$/ } split /\n/,
            RonTest::slurp($s->dir . '/logs/op.log');
        return @lines >= @want;
    }), 'each is a line');
    is_deeply([ map { [ split / / ] } @lines[0 .. $#want] ], \@want,
              'with what it was');

    # through another server, whose ledger this is

    my $front = RonTest::connect({ %$s, port => $port });

    syswrite $front, $s->request_text('POST', '/v1/transfer',
        { %pay, amount_minor => '2', nonce => 10 }, key => 'far');
    $r = RonTest::read_response($front, 'POST');
    close $front;       # else NGINX may wait for that, and log it afterwards
    is($r->{status}, 200, 'a payment from elsewhere') or diag($r->{body});

    my $txid = json_get($r->{body}, 'txid');
    my $line = "transfer ron 2 10 $txid $payer\n";

    ok(until_ok(5, sub {
        RonTest::slurp($s->dir . '/logs/remote.log') eq $line
    }), 'is told the same way')
        or diag(RonTest::slurp($s->dir . '/logs/remote.log'));
    ok(until_ok(5, sub {
        RonTest::slurp($s->dir . '/logs/op.log') =~ /^\Q$line\E/m
    }), 'by the ledger, too');

    for my $log (glob $s->dir . '/logs/*.log') {
        unlike(RonTest::slurp($log), qr/secret-pay/, "no account in $log");
    }

    $s->quit;
}

done_testing();
