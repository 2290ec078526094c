#!/usr/bin/perl

# docs/openapi: valid, every example executed, every status and header that a
# server is seen to answer documented, and nothing in the sources that is not in
# there, nor the other way round.

use strict;
use warnings;

use JSON::PP ();

use lib 't/lib';
use RonNpm;
use RonTest;

my $modules = RonNpm::install('@seriousme/openapi-schema-validator@2.11.0')
    or BAIL_OUT('no validator');

for my $name (qw(wallet ledger)) {
    my $s = RonTest->new(http => 'ron_stream_ping 1s;'
                                  . 'ron_rate 1000r/s;');
    $s->{main} = "ron_snapshot_dir @{[$s->dir]}/snaps;";
    $s->start or BAIL_OUT('no server');

    open my $out, '-|', 'node', 't/lib/openapi.mjs', $modules,
        "docs/openapi/$name.yaml", 'http://127.0.0.1:' . $s->port, $s->token
        or die "node: $!";

    my $n = 0;

    while (<$out>) {
        if (/^(not )?ok - (.*)/) {
            ok(!$1, "$name: $2");
            $n++;
        } elsif (/^# (.*)/) {
            diag($1);
        }
    }

    close $out;
    is($?, 0, "$name: the examples ran");
    cmp_ok($n, '>', 60, 'and were looked at');
    $s->quit;
}


# ---- what is answered -------------------------------------------------------

my %document = map {
    my $file = "docs/openapi/$_.yaml";
    my $code = 'const [,m,f]=process.argv;console.log(JSON.stringify(require('
               . 'm+"/yaml").parse(require("fs").readFileSync(f,"utf8"))))';

    open my $json, '-|', 'node', '-e', $code, $modules, $file
        or die "node: $!";
    local $/;
    $_ => JSON::PP->new->utf8->decode(scalar <$json>);
} qw(wallet ledger);

sub deref {
    my ($name, $node) = @_;

    my $at = $node->{'$ref'} or return $node;
    $node = $document{$name};
    $node = $node->{$_} for split m{/}, substr $at, 2;

    return $node;
}

# Names of what any answer of HTTP has.
my $ANYBODYS = qr/^(?:cache-control|connection|content-(?:length|type)|date
                      |server|transfer-encoding|x-accel-buffering)$/x;

# An answer is one that the document has for the operation, headers and all.
sub documents {
    my ($name, $op, $r, $what) = @_;

    my ($method, $path) = split ' ', $op;
    my $o = $document{$name}{paths}{$path}{lc $method};
    my $response = $o->{responses}{ $r->{status} };

    unless (ok($response, "$op: $r->{status} is documented ($what)")) {
        diag($r->{body});
        return;
    }

    my %named = map { lc $_ => 1 }
                keys %{ deref($name, $response)->{headers} || {} };

    is(join(' ', grep { !/$ANYBODYS/ && !$named{$_} }
                 sort keys %{ $r->{headers} }), '',
       "$op: and its headers are ($what)");
}

# Each operation with what is wrong with the request, not with what it asks for.
{
    my $s = RonTest->new(http => 'ron_stream_ping 1s; ron_body_max 1k;');
    $s->start or BAIL_OUT('no server');

    my $limited = RonTest->new(http => 'ron_rate 1r/s burst=1;');
    $limited->start or BAIL_OUT('no server');

    my %part = (txid => 'tx_01M7QNVVV7KM60000000000001', level => 0,
                index => 0, seq => 1, account => 'alice');
    my $elsewhere = $s->token('ip = 10.0.0.0/8');
    my $n = 0;

    for my $name (sort keys %document) {
        my $paths = $document{$name}{paths};

        for my $op (sort map {
            my $path = $_;
            map { uc($_) . " $path" } keys %{ $paths->{$path} };
        } keys %$paths)
        {
            my ($method, $path) = split ' ', $op;
            my $o = $paths->{$path}{lc $method};
            my $open = exists $o->{security};
            my $json = $o->{requestBody}
                       && $o->{requestBody}{content}{'application/json'};
            my $known = sub { scalar grep {
                (deref($name, $_)->{name} || '') eq $_[0]
            } @{ $o->{parameters} || [] } };

            (my $target = $path) =~ s/\{(\w+)\}/$part{$1}/g;

            # a stream has no end, but its header has one
            my $try = sub {
                my ($server, $status, $what, %o) = @_;

                my $r = $method eq 'GET'
                    ? $server->http('HEAD', $target, undef, key => 'k', %o)
                    : $server->post($target, $o{body} || {}, key => 'k', %o);

                is($r->{status}, $status, "$op: $what") if $status;
                documents($name, $op, $r, $what);

                return $r;
            };

            $try->($s, 400, 'a time that is none',
                   headers => { 'Request-Timeout' => 'soon' });
            ok($known->('Request-Timeout'), "$op has a Request-Timeout");
            $target .= '?a=%zz';
            $try->($s, 400, 'a query that is none');
            $target =~ s{\?.*}{};

            if (!$open) {
                $try->($s, 401, 'no capability', token => undef);
                $try->($s, 403, 'a capability for elsewhere',
                       token => $elsewhere);

                my $token = $limited->token({ id => 'r' . $n++ });
                my $r;

                for (1 .. 5) {
                    $limited->http('HEAD', '/v1/balance', undef,
                                   token => $token);
                    $r = $limited->http($method eq 'GET' ? 'HEAD' : $method,
                                        $target, $json && '{}',
                                        token => $token, key => 'k');
                    last if $r->{status} == 429;
                }

                is($r->{status}, 429, "$op: more than the rate");
                is($r->{headers}{'x-ratelimit-limit'}, 1, "$op: says which");
                documents($name, $op, $r, 'more than the rate');
            }

            if ($json) {
                $try->($s, 415, 'another type', type => 'text/plain');
                $try->($s, 413, 'too long', body => ' ' x 1025);
            }
        }
    }

    $_->quit for $s, $limited;
}


# What the ledger answers: to the same operation alone, and as all there is in
# a batch.
{
    my $s = RonTest->new(http => 'ron_rate 1000r/s; ron_streams 2;
                                  ron_stream_ping 1s;');
    $s->start or BAIL_OUT('no server');

    my $n = 0;
    my $ask = sub {
        my ($name, $op, $status, $target, $body, %o) = @_;

        my ($method, $path) = split ' ', $op;
        $target ||= $path;

        my $r = $method eq 'POST'
            ? $s->post($target, $body, key => 'k' . $n++, %o)
            : $s->get($target, %o);

        is($r->{status}, $status, "$op: " . ($o{what} || $status))
            or diag($r->{body});
        documents($name, $op, $r, $o{what} || $status);

        return $r;
    };
    my %coin = (asset => 'ron', amount_minor => '5');
    my %pay = (from => 'alice', to => 'bob', %coin);
    my $none = 'tx_01M7QNVVV7KM60000000000001';

    $ask->(wallet => 'POST /v1/issue', 200, '',
           { to => 'alice', asset => 'ron', amount_minor => '1000' });
    my $hold = json_get($ask->(wallet => 'POST /v1/hold', 200, '',
                               { %pay, nonce => 1 })->{body}, 'txid');
    $ask->(wallet => 'POST /v1/capture', 200, '',
           { hold => $hold, amount_minor => '5' });

    # operation, what it asks, status and why

    my @wrong = (
        [ issue => { to => 'alice', %coin,
                     amount_minor => '100000000000000000001' }, 403 ],
        [ issue => { to => 'alice', %coin }, 400, 'a time that is none',
          'Request-Timeout' => '-1' ],
        [ issue => { to => 'alice', %coin }, 412, 'another version',
          'If-Match' => '"1"' ],
        [ issue => { to => 'alice', %coin, colour => 'red' }, 400 ],
        [ issue => { to => 'alice', %coin }, 415, 'another encoding',
          'Content-Encoding' => 'br' ],
        [ transfer => { %pay, nonce => 1 }, 409, 'a nonce again' ],
        [ transfer => { %pay, nonce => 2, amount_minor => '9999' }, 409 ],
        [ transfer => { %pay, nonce => 2, amount_minor => 5 }, 400 ],
        [ transfer => { %pay, nonce => 2 }, 412, 'another version',
          'If-Match' => '"1"' ],
        [ burn => { from => 'alice', %coin, nonce => 1 }, 409 ],
        [ burn => { from => 'alice', %coin, nonce => 2 }, 412,
          'another version', 'If-Match' => '"1"' ],
        [ hold => { %pay, nonce => 1 }, 409 ],
        [ hold => { %pay, nonce => 2 }, 412, 'another version',
          'If-Match' => '"1"' ],
        [ capture => { hold => $none, amount_minor => '1' }, 404 ],
        [ capture => { hold => $hold, amount_minor => '1' }, 409 ],
        [ release => { hold => $none }, 404 ],
        [ release => { hold => $hold }, 409 ],
    );

    for my $case (@wrong) {
        my ($act, $op, $status, $what, @headers) = @$case;
        my %o = (what => $what || $status, headers => { @headers });

        $ask->(wallet => "POST /v1/$act", $status, '', $op, %o);
        $ask->(wallet => 'POST /v1/batch', $status, '',
               { ops => [ { op => $act, %$op } ] }, %o,
               what => "$act, $o{what}");
        $ask->(ledger => 'POST /ledger/ops', $status, '',
               { op => $act, key => 'o' . $n++, request => $op }, %o,
               what => "$act, $o{what}")
            unless @headers;
    }

    # other answers than those: batches, a key again

    my %again = (ops => [ map { { op => 'transfer', %pay, nonce => $_ } }
                          2, 2 ]);

    $ask->(wallet => 'POST /v1/batch', 207, '', \%again, key => 'twice')
        for 1, 2;
    $ask->(wallet => 'POST /v1/batch', 422, '',
           { ops => [ { op => 'release', hold => $none } ] },
           key => 'twice');
    $ask->(ledger => 'POST /ledger/ops', 207, '',
           { op => 'batch', key => 'thrice',
             request => { ops => [ map { { op => 'transfer', %pay,
                                           nonce => $_ } } 3, 3 ] } })
        for 1, 2;
    $ask->(ledger => 'POST /ledger/ops', 422, '',
           { op => 'batch', key => 'thrice',
             request => { ops => [ { op => 'release', hold => $none } ] } });

    # reading

    for my $case (
        [ wallet => '/v1/tx/{txid}', 404, "/v1/tx/$none" ],
        [ wallet => '/v1/tx/{txid}', 400, '/v1/tx/x' ],
        [ ledger => '/ledger/ops/tx/{txid}', 404, "/ledger/ops/tx/$none" ],
        [ ledger => '/ledger/proof/inclusion', 404,
          '/ledger/proof/inclusion?seq=999' ],
        [ ledger => '/ledger/proof/consistency', 404,
          '/ledger/proof/consistency?from=1&to=999' ],
        [ ledger => '/ledger/tile/{level}/{index}', 404,
          '/ledger/tile/0/999' ],
        [ ledger => '/ledger/entries/{seq}', 404, '/ledger/entries/999' ],
        [ ledger => '/ledger/admin/snapshot', 404 ],
    ) {
        my ($name, $path, $status, $target) = @$case;
        $ask->($name, "GET $path", $status, $target);
    }

    $ask->(ledger => 'POST /ledger/admin/snapshot', 404, '', undef);

    # more streams than there may be

    my %stream = ('/v1/audit/stream' => 'wallet',
                  '/ledger/roots/stream' => 'ledger',
                  '/ledger/bus' => 'ledger');
    my @open = map {
        my $sock = $s->connect;
        $s->send_request($sock, 'GET', '/ledger/roots/stream', undef);
        $sock;
    } 1, 2;

    ok(RonTest::until_ok(10, sub {
        ($s->metric('streams_open', 'service="ledger"') || 0) == 2
    }), 'two streams are open');
    $ask->($stream{$_}, "GET $_", 429) for sort keys %stream;
    close $_ for @open;

    # a wallet whose ledger is elsewhere

    my $w = RonTest->new(ledger => '', locations => 0, secret => '',
        http => "upstream ledger { server 127.0.0.1:@{[$s->port]}; }",
        config => 'location /v1/ { ron_wallet; ron_rate 1000r/s;
                                   ron_wallet_ledger_pass ledger; }');
    $w->{secret} = $s->{secret};
    $w->write_file('ron.keys', RonTest::slurp("$s->{dir}/ron.keys"), 0600);
    $w->start or BAIL_OUT('no wallet');

    my $r = $w->get('/v1/audit/stream');
    is($r->{status}, 404, 'the ledger has the audit stream');
    documents(wallet => 'GET /v1/audit/stream', $r, 'a remote ledger');

    $r = $w->post('/v1/batch', { ops => [ { op => 'release',
                                            hold => $none } ] }, key => 'r');
    is($r->{status}, 404, 'a remote ledger has no such hold');
    documents(wallet => 'POST /v1/batch', $r, 'a remote ledger');

    $_->quit for $w, $s;
}


# ---- routes -----------------------------------------------------------------

# Methods and paths of a document: "GET /path".
sub documented {
    my ($name) = @_;

    my (%d, $path);

    for (split /\n/, RonTest::slurp("docs/openapi/$name.yaml")) {
        $path = $1 if m{^  (/\S+):$};
        $path = undef if /^\S/ && !/^paths:/;
        next unless defined $path && /^    (get|post):$/;
        $d{uc($1) . " $path"} = 1;
    }

    return %d;
}


for my $case ([ 'wallet', '/v1/' ], [ 'ledger', '/ledger/' ]) {
    my ($name, $prefix) = @$case;

    my $text = RonTest::slurp("ngx_ron_module/ngx_http_ron_${name}_module.c");
    my %code;
    $code{"$2 $prefix$1"} = 1
        while $text =~ /\{ ngx_string\("([^"]+)"\), NGX_HTTP_(GET|POST),/g;
    cmp_ok(scalar keys %code, '>=', 10, "$name has routes");

    my %doc = documented($name);

    for my $route (sort keys %code) {
        ok(scalar(grep { $_ eq $route || ($route =~ m{/$}
                                          && index($_, $route) == 0) }
                  keys %doc), "$route is documented");
    }

    my @stale = grep {
        my $path = $_;
        $path =~ / \Q$prefix/
            && !grep { $_ eq $path || (m{/$} && index($path, $_) == 0) }
               keys %code;
    } sort keys %doc;
    is("@stale", '', "$name documents nothing else");
}

my %status = documented('ledger');
ok($status{"GET $_"}, "$_ is documented") for qw(/healthz /readyz /version /metrics);


# ---- parameters of a query ---------------------------------------------------

# What a function of the sources looks for, and what is documented: in all
# routes that the two documents have together.

{
    my (%code, %doc);

    for my $file (glob 'ngx_ron_module/*.c') {
        my $text = RonTest::slurp($file);

        $code{$_} = 1 for $text =~ /ron_api_arg\(ctx->args,\s*ctx->args_n,
                                    \s*ron_str\("(\w+)"\)/xg,
                          $text =~ /ngx_http_ron_arg_u64\(ctx,\s*"(\w+)"/g;
    }

    for my $name (qw(wallet ledger)) {
        $doc{$_} = 1 for RonTest::slurp("docs/openapi/$name.yaml")
            =~ /^ +(?:- )?name: (\w+)\n +in: query$/mg;
    }

    cmp_ok(scalar keys %code, '>=', 12, 'queries have parameters');
    is(join(' ', sort keys %doc), join(' ', sort keys %code),
       'documented are those that are looked for');

    # each where it is asked for

    my $wallet = RonTest::slurp('docs/openapi/wallet.yaml');

    for my $case ([ balance => qw(account asset) ],
                  [ outcome => qw(account age) ])
    {
        my ($route, @names) = @$case;
        my ($part) = $wallet =~ m{^  /v1/$route:\n((?:    .*\n|\n)+)}m;

        is(join(' ', $part =~ /^ +- name: (\w+)\n +in: query$/mg), "@names",
           "/v1/$route: @names");
    }
}


# ---- members and codes ------------------------------------------------------

# Members of a schema.
sub members {
    my ($name, $schema) = @_;

    my $text = RonTest::slurp("docs/openapi/$name.yaml");
    my ($part) = $text =~ /^    $schema:\n((?:      .*\n)+)/m or return ();

    return $part =~ /^        (?:  )?(\w+):(?:\s*\{|$)/mg
        if $part !~ /^      properties:\n((?:        .*\n)+)/m;

    return $1 =~ /^        (\w+):/mg;
}

my $request = RonTest::slurp('src/api/ron_api_request.c');

for my $case (
    [ ron_api_op_t       => wallet => qw(Issue Transfer Burn Hold Capture
                                         Release) ],
    [ ron_api_batch_t    => wallet => 'Batch' ],
    [ ron_api_entry_t    => ledger => 'Entry' ],
    [ ron_api_ingest_t   => ledger => 'Ingest' ],
    [ ron_api_envelope_t => ledger => 'Op' ],
    [ ron_api_safe_t     => ledger => 'SafeMode' ],
) {
    my ($type, $name, @schemas) = @$case;

    my %code = map { $_ => 1 }
        $request =~ /RON_JSON_FIELD\($type,\s*\w+,\s*"(\w+)"/g;
    my %doc = map { $_ => 1 } map { members($name, $_) } @schemas;

    delete $code{op} if $type eq 'ron_api_op_t';
    cmp_ok(scalar keys %code, '>=', 1, "$type has members");
    is(join(' ', sort keys %doc), join(' ', sort keys %code),
       "@schemas have those of $type");
}

{
    my %code = map { $_ => 1 } 'event',
        RonTest::slurp('src/api/ron_api_event.c') =~
            /ron_(?:json_put_member\w*|api_event_hash)\(out,\s*ron_str\("(\w+)"\)/g;
    my %doc = map { $_ => 1 } members('wallet', 'AuditEvent');

    is(join(' ', sort keys %doc), join(' ', sort keys %code),
       'AuditEvent has the members that events have');
}

my @pages = map { m{/(\w+)\.md$} ? $1 : () } glob 'docs/errors/*.md';

for my $name (qw(wallet ledger)) {
    my $text = RonTest::slurp("docs/openapi/$name.yaml");
    my ($enum) = $text =~ /^        code:\n          enum:\n((?:\s+- \w+\n)+)/m;
    is(join(' ', sort $enum =~ /- (\w+)/g), join(' ', sort @pages),
       "$name has every code that has a page");
}

done_testing();
