#!/usr/bin/perl

# docs/openapi: valid, every example executed, and nothing in the sources that
# is not in there, nor the other way round.

use strict;
use warnings;

use lib 't/lib';
use RonNpm;
use RonTest;

my $modules = RonNpm::install('@seriousme/openapi-schema-validator@2.11.0')
    or BAIL_OUT('no validator');

for my $name (qw(wallet ledger)) {
    my $s = RonTest->new(http => 'ron_stream_ping 1s;');
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
