#!/usr/bin/perl

# No token and no idempotency key is in any log, metric, trace or error, nor
# a token in any file: a run that uses every endpoint, good and bad, through
# reload and kills, at each level of the error log, and then a search for
# everything that was sent.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use File::Find ();
use IO::Select;
use IO::Socket::INET;

my (@tokens, @keys, @errors, @metrics, @events);

# A collector that takes what it gets and keeps it.

my $traces = File::Temp->new;
my $listen = IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1',
                                   Proto => 'tcp') or die "no port: $!";
my $collector = fork;
die "fork: $!" unless defined $collector;

if ($collector == 0) {
    my $set = IO::Select->new($listen);

    for (;;) {
        for my $h ($set->can_read) {
            if ($h == $listen) {
                $set->add($listen->accept);
                next;
            }

            my $n = sysread $h, my $buf, 65536;
            if (!$n) { $set->remove($h); close $h; next }
            open my $f, '>>', $traces->filename;
            print $f $buf;
            close $f;
            syswrite $h, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
                       . "Content-Type: application/json\r\n\r\n{}";
        }
    }
}

END { my $code = $?; kill 'KILL', $collector if $collector; $? = $code }

my $format = RonTest::slurp('conf/nginx.conf.in');
($format) = $format =~ /(log_format\s+ron\s.*?;)\n/s
    or BAIL_OUT('no log format');


# ---- what is sent -----------------------------------------------------------

my $s;
my $n = 0;

sub secret { join '', map { ('a' .. 'z', 0 .. 9)[rand 36] } 1 .. 24 }

sub new_token {
    my (@caveats) = @_;

    my $t = $s->token({ id => 'cap-' . secret() }, @caveats);
    push @tokens, $t;

    return $t;
}

sub new_key {
    push @keys, 'key-' . secret();
    return $keys[-1];
}

# Answers that are no success are errors, whoever made them.
sub seen {
    my ($r) = @_;

    my %h = %{ $r->{headers} };
    push @errors, join "\n", %h;
    push @errors, $r->{body} if $r->{status} >= 300 || $r->{status} < 200;

    return $r;
}

sub post {
    my ($path, $body, %o) = @_;

    return seen($s->post($path, $body, key => new_key(),
                         token => new_token(), %o));
}

sub get {
    my ($path, %o) = @_;

    return seen($s->get($path, key => new_key(), token => new_token(), %o));
}

sub money { { to => 'alice', asset => 'ron', amount_minor => '100', @_ } }

sub pay {
    return { from => 'alice', to => 'bob', asset => 'ron',
             amount_minor => '1', nonce => ++$n, @_ };
}

sub everything {
    my $r = post('/v1/issue', money());
    my $done = $r->{status} == 200;

    post('/v1/transfer', pay());
    post('/v1/burn', { from => 'alice', asset => 'ron', amount_minor => '1',
                       nonce => ++$n });
    my $hold = post('/v1/hold', pay(amount_minor => '5'));
    my $txid = json_get($hold->{body}, 'txid') || 'tx_none';
    post('/v1/capture', { hold => $txid, amount_minor => '2' });
    post('/v1/release', { hold => $txid });
    post('/v1/release', { hold => $txid });
    post('/v1/batch', { ops => [ { op => 'transfer', %{ pay() } },
                                 { op => 'burn', from => 'alice',
                                   asset => 'ron', nonce => ++$n,
                                   amount_minor => '99999999' } ] });
    get('/v1/balance?account=alice&asset=ron');
    get('/v1/outcome?account=alice');
    get("/v1/tx/$txid?proof=1");
    get("/v1/tx/1");

    my $entry = { id => 'e-' . secret(), ts => 1, kind => 'Mint',
                  account => 'carol', amount => '5', nonce => nonce16(),
                  v => 1 };
    post('/ledger/ingest', { batch => [ $entry ] });
    post('/ledger/ingest', { batch => [ { %$entry, amount => '6' } ] });
    post('/ledger/ingest', RonTest::json_put($entry) . "\n",
         type => 'application/x-ndjson');
    post('/ledger/ops', { op => 'issue', key => new_key(),
                          request => money() });
    post('/ledger/ops', { op => 'transfer', key => new_key(),
                          request => pay(amount_minor => '9999999') });
    get("/ledger/$_") for qw(roots checkpoint proof/inclusion?seq=1
        proof/consistency?from=1&to=2 tile/0/000 tile/0/000.p/1 entries
        entries/1 entries/x accounts/alice accounts/alice/entries
        ops/balance?account=alice&asset=ron ops/outcome?account=alice nothing);

    # what is refused, for each reason

    post('/v1/transfer', pay(), token => new_token('account = bob'));
    post('/v1/transfer', pay(), token => new_token('before = 1'));
    post('/v1/transfer', pay(), token => new_token('colour = blue'));
    post('/v1/transfer', pay(), token => new_token() . 'AAAA');
    post('/v1/transfer', pay(), token => 'x' . new_token());
    post('/v1/transfer', pay(), token => $s->token({ kid => 'nobody' }));
    post('/v1/transfer', pay(amount_minor => '999999999'));
    post('/v1/transfer', pay(nonce => 1));
    post('/v1/transfer', '{"from":');
    post('/v1/transfer', pay(), type => 'text/plain');
    post('/v1/transfer', 'x' x (1024 * 1024 + 1));
    post('/v1/transfer', pay(), headers => { 'If-Match' => '"999999"' });
    post('/v1/transfer', pay(), key => new_key() x 4);
    post('/v1/transfer', pay(), headers =>
         { Authorization => 'Basic ' . new_token() });
    seen($s->http('DELETE', '/v1/transfer', undef, key => new_key(),
                  token => new_token()));

    my $pay = pay();
    my $key = new_key();
    post('/v1/transfer', $pay, key => $key);
    post('/v1/transfer', { %$pay, amount_minor => '2' }, key => $key);

    # where they do not belong: in a body; and in what NGINX itself writes
    # down at debug, a path
    post('/v1/transfer', { %{ pay() }, token => new_token() });
    post('/v1/transfer', pay(memo => new_key()));

    if ($s->{level} ne 'debug') {
        get('/v1/balance?account=alice&asset=ron&access_token='
            . new_token());
        get('/v1/tx/' . new_token());
    }

    # what NGINX refuses before anybody else
    my $sock = $s->connect;
    syswrite $sock, "GET /healthz HTTP/1.1\r\nHost: a\r\nAuthorization: "
        . 'Bearer ' . new_token() . "\r\nContent-Length: no\r\n\r\n";
    seen(RonTest::read_response($sock, 'GET'));
    $sock = $s->connect;
    syswrite $sock, "GET /healthz HTTP/1.1\r\nHost: a\r\nAuthorization: "
        . 'Bearer ' . new_token() x 80 . "\r\n\r\n";
    seen(RonTest::read_response($sock, 'GET'));

    push @metrics, get('/metrics')->{body};

    return $done;
}

sub stream {
    my ($path) = @_;

    my $sock = $s->connect;
    $s->send_request($sock, 'GET', $path, undef, token => new_token());

    return $sock;
}


# ---- what must not be there -------------------------------------------------

# A token is there when a part of it is that nobody writes by chance.
sub parts {
    my @parts = map { my $t = $_; map { substr $t, $_, 32 }
                      int(length($t) / 2), length($t) - 40 }
                grep { length > 60 } @tokens;

    return (tokens => [ @parts ], keys => [ @keys ]);
}

sub search {
    my ($what, $text, %of) = @_;

    for my $kind (sort keys %of) {
        my $any = join '|', map { quotemeta } @{ $of{$kind} };
        my @found = $text =~ /^(.*(?:$any).*)$/mg;

        ok(!@found, "$what: no $kind")
            or diag(map { substr($_, 0, 300) . "\n" }
                    @found > 5 ? @found[0 .. 4] : @found);
    }
}

sub check_all {
    my ($level, $is_debug) = @_;

    my %parts = parts();
    my $log = $s->log;

    # At debug NGINX itself writes down every header line, and what it parses
    # of a request: see docs/SECURITY.md.

    if ($is_debug) {
        my $all = $log;
        $log =~ s/^.*\[debug\] \d+#\d+: \*\d+ http (?:header|args|exten|uri|request line|script|copy|read):? .*\n//mg;
        isnt($log, $all, 'at debug NGINX writes headers itself');
        like($all, qr/\Q$parts{keys}[0]/, 'which this finds');
    }

    search("error log at $level", $log, %parts);
    search("access log at $level", $s->{access}->(), %parts);
    search("metrics at $level", join("\n", @metrics), %parts);
    search("errors and headers at $level", join("\n", @errors), %parts);
    search("events at $level", join("\n", @events), tokens => $parts{tokens});
    search("traces at $level", RonTest::slurp($traces->filename), %parts);

    cmp_ok(length $log, '>', 500, 'there is an error log');
    cmp_ok(length $s->{access}->(), '>', 2000, 'and an access log');
    cmp_ok(scalar @errors, '>', 40, 'and errors');

    # no file at all has a token

    my @with;
    my $any = join '|', map { quotemeta } @{ $parts{tokens} };

    File::Find::find(sub {
        return if !-f $_ || /^(?:error|access)\.log$/;
        push @with, $File::Find::name if RonTest::slurp($_) =~ /$any/;
    }, $s->dir);
    is("@with", '', "files at $level: no tokens");
}

for my $level (qw(info debug)) {
    (@tokens, @keys, @errors, @metrics, @events) = ();
    $n = 0;

    $s = RonTest->new(workers => 2, level => $level);
    my $access = $s->dir . '/logs/access.log';
    $s->{access} = sub { RonTest::slurp($access) };
    $s->{main} = 'ron_otlp http://127.0.0.1:' . $listen->sockport
        . ' sample=100%;';
    $s->{http} = $format;
    $s->{config} = "access_log $access ron; ron_errors on;";

    $s->start or BAIL_OUT('no server');

    my @streams = map { stream($_) } '/ledger/roots/stream',
                                     '/v1/audit/stream';

    ok(everything(), 'everything, once');
    ok($s->reload(linger => 1), 'reload');
    everything();
    ok($s->kill_helper, 'the helper is killed');
    post('/v1/transfer', pay()) for 1 .. 3;
    $s->wait_ready;
    ok($s->kill_worker, 'a worker is killed');
    $s->wait_ready;
    ok(everything(), 'everything again');

    until_ok(10, sub { -s $traces->filename }) if $level eq 'info';
    cmp_ok(-s $traces->filename, '>', 1000, 'traces arrive');

    for my $sock (@streams) {
        my $buf = '';
        sysread $sock, $buf, 1 << 20, length $buf
            while IO::Select->new($sock)->can_read(0.2)
                  && length $buf < 1 << 20
                  && !eof_of($sock);
        push @events, $buf;
    }

    post('/ledger/admin/drain', undef);
    post('/v1/transfer', pay());
    $s->quit;
    check_all($level, $level eq 'debug');
}

sub eof_of {
    my ($sock) = @_;

    my $n = sysread $sock, my $peek, 0;
    my $got = recv $sock, $peek, 1, 2;        # MSG_PEEK

    return !defined $got || !length $peek;
}

done_testing();
