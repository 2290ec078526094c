#!/usr/bin/perl

# The runner of declarative suites itself: what it is told to expect it
# expects, and a wrong expectation of each kind fails.
#
# RON_TEST_NGINX=<checkout of openresty/test-nginx> runs t/http under that
# library too, as `prove -I <checkout>/lib -It/lib t/http` does; the modules of
# CPAN that it uses have to be installed, or be in PERL5LIB.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use Test::More;

$ENV{PATH} .= ':/usr/sbin:/sbin';

my %begin = %ENV;
my $dir = tempdir(CLEANUP => 1);
my $lib = abs_path('t/lib/fallback');

delete @ENV{grep { /^TEST_NGINX_/ } keys %ENV};
$ENV{TEST_NGINX_BINARY} = $ENV{NGINX} || 'nginx';
delete $ENV{NGINX};
$ENV{TEST_NGINX_SERVROOT} = "$dir/root";
$ENV{TEST_NGINX_FORCE_RESTART_ON_TEST} = 0;
$ENV{TEST_NGINX_LOG_LEVEL} = 'notice';
$ENV{TEST_NGINX_SOMETHING} = 'expanded';
$ENV{TEST_NGINX_TIMEOUT} = 2;
$ENV{TEST_NGINX_FAST_SHUTDOWN} = 1;
chmod 0755, $dir;

{
    my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')
        or die "no port: $!";
    $ENV{TEST_NGINX_SERVER_PORT} = $s->sockport;
}

# Runs blocks; exit code, TAP and what was said beside it.
sub suite {
    my ($blocks, $code) = @_;

    open my $f, '>', "$dir/suite.t" or die $!;
    print $f "use lib '$lib';\nuse Test::Nginx::Socket 'no_plan';\n",
        $code || '', "no_long_string();\nrun_tests();\n__DATA__\n", $blocks;
    close $f;

    my $out = `$^X $dir/suite.t 2>&1`;

    return ($? >> 8, $out);
}

my $config = <<'END';
--- config
    location = /t { add_header X-A b; return 200 "ok\n"; }
    location = /e { return 200 "$TEST_NGINX_SOMETHING"; }
    location = /echo { return 200 "$request_method $http_x_h $content_length"; }
    location = /n { return 404 "none"; }
    location = /c { return 204; }
    location = /slow { limit_rate 1; return 200 "0123456789012345678"; }
END

# All that must pass is one suite, and all that must fail another: blocks of
# one configuration share a server.

my (@right, @wrong);

sub passes {
    my ($what, $block, $n) = @_;
    push @right, [ $what, $block, $n ];
}

sub fails {
    my ($what, $block) = @_;
    push @wrong, [ $what, $block ];
}

sub blocks_of {
    my $i = 0;
    return join "\n", map { $i++; "=== TEST $i: x\n$config$_->[1]" } @_;
}

sub settle {
    my ($code, $out) = suite(blocks_of(@right));

    is($code, 0, 'a suite that is right passes') or diag($out);

    for my $i (1 .. @right) {
        my ($what, $block, $n) = @{ $right[$i - 1] };
        my $looked = () = $out =~ /^ok \d+ - TEST $i: x/mg;
        defined $n ? is($looked, $n, "$what was looked at, $n times")
                   : cmp_ok($looked, '>=', 2, "$what was looked at");
    }

    ($code, $out) = suite(blocks_of(@wrong));

    isnt($code, 0, 'a suite that is wrong fails');

    for my $i (1 .. @wrong) {
        like($out, qr/^not ok \d+ - TEST $i: x/m, "wrong: $wrong[$i - 1][0]")
            or diag($out);
    }
}

sub refused {
    my ($what, $block, $why) = @_;

    my ($code, $out) = suite("=== TEST 1: x\n$config$block");

    isnt($code, 0, "$what ends the suite");
    like($out, qr/Bail out!.*$why/, 'and says why') or diag($out);
}


# every kind of expectation, right and wrong; what is always looked at: the
# status, that nothing follows the answer, and alerts at the end

my $get = "--- request\nGET /t\n";

for my $case (
    [ 'a status',       'error_code: 200', 'error_code: 201' ],
    [ 'a status of its own accord', '', '', "--- request\nGET /n\n" ],
    [ 'a status like',  'error_code_like: ^2..$', 'error_code_like: ^3..$' ],
    [ 'a body',         "response_body\nok", "response_body\nko" ],
    [ 'a body without its last newline', "response_body\nok",
                        "response_body chomp\nok" ],
    [ 'a body like',    'response_body_like: ^o', 'response_body_like: ^k' ],
    [ 'a body unlike',  'response_body_unlike: ^k', 'response_body_unlike: o' ],
    [ 'a header',       "response_headers\nX-A: b", "response_headers\nX-A: c" ],
    [ 'a header that is not there', "response_headers\n! X-B",
                        "response_headers\n! X-A" ],
    [ 'a header like',  "response_headers_like\nX-A: [ab]",
                        "response_headers_like\nX-A: [c]" ],
    [ 'raw headers',    'raw_response_headers_like: X-A: b',
                        'raw_response_headers_like: X-A: c' ],
    [ 'no raw headers', 'raw_response_headers_unlike: X-B',
                        'raw_response_headers_unlike: X-A' ],
    [ 'no line in the log', "no_error_log\n[error]", undef ],
    [ 'a line in the log', undef, "error_log\nnever said" ],
) {
    my ($what, $right, $wrong, $request) = @$case;

    passes($what, $get . (length $right ? "--- $right\n" : ''))
        if defined $right;
    fails($what, ($request || $get) . (length $wrong ? "--- $wrong\n" : ''))
        if defined $wrong;
}

my $missing = "--- request\nGET /missing.html\n--- error_code: 404\n";

passes('a line in the log', "$missing--- error_log\nmissing.html\nopen()\n", 4);
passes('a pattern', "$missing--- error_log eval\nqr/missing.html/\n", 3);
fails('a second line', "$missing--- error_log\nmissing.html\nnever said\n");
fails('silence', "$missing--- no_error_log\nnever said\nmissing.html\n");


# requests

passes('a body and headers',
       "--- request\nPOST /echo\n12345\n--- more_headers\nX-H: v\n"
       . "--- response_body: POST v 5\n");
passes('an array of requests',
       "--- request eval\n['GET /t', 'GET /n', 'HEAD /t']\n"
       . "--- error_code eval\n[200, 404, 200]\n"
       . "--- response_body eval\n[\"ok\\n\", 'none', '']\n", 9);
fails('a status of the second',
      "--- request eval\n['GET /t', 'GET /t']\n"
      . "--- error_code eval\n[200, 404]\n");
passes('headers for each',
       "--- request eval\n['GET /echo', 'GET /echo']\n"
       . "--- more_headers eval\n['X-H: 1', 'X-H: 2']\n"
       . "--- response_body eval\n['GET 1 ', 'GET 2 ']\n");
passes('a request in pieces',
       "--- request eval\n[[\"POST /echo\\n\", { value => '123', "
       . "delay_before => 0.05 }, '45']]\n--- response_body: POST  5\n"
       . "--- more_headers\nContent-Length: 5\n");
passes('pipelined requests',
       "--- pipelined_requests eval\n['GET /t', 'GET /c', 'GET /n']\n"
       . "--- error_code eval\n[200, 204, 404]\n");
fails('a status of the third',
      "--- pipelined_requests eval\n['GET /t', 'GET /c', 'GET /n']\n"
      . "--- error_code eval\n[200, 204, 200]\n");
passes('a raw request',
       "--- raw_request eval\n\"GET /t HTTP/1.0\\r\\n\\r\\n\"\n"
       . "--- response_body\nok\n");
passes('an expansion', "--- request\nGET /e\n--- response_body: expanded\n");
fails('an answer that does not come in time',
      "--- request\nGET /slow\n--- timeout: 1\n"
      . "--- response_body: 0123456789012345678\n");

settle();


# configurations

{
    my ($code, $out) = suite("=== TEST 1: x\n--- config\nnonsense;\n"
                             . "--- must_die\n--- error_log\nunknown "
                             . "directive \"nonsense\"\n");
    is($code, 0, 'what must be refused is refused') or diag($out);

    ($code, $out) = suite("=== TEST 1: x\n--- config\nnonsense;\n"
                          . "--- must_die\n--- error_log\nsomething else\n");
    isnt($code, 0, 'a wrong reason fails');

    ($code, $out) = suite("=== TEST 1: x\n--- config\n# fine\n--- must_die\n");
    isnt($code, 0, 'what is not refused fails');
    ok(!listens(), 'and nothing is left running');

    ($code, $out) = suite("=== TEST 1: x\n--- config\nnonsense;\n$get");
    isnt($code, 0, 'a configuration that does not work fails');
    like($out, qr/unknown directive "nonsense"/, 'with the reason');
}

sub listens {
    return defined IO::Socket::INET->new(
        PeerAddr => '127.0.0.1', PeerPort => $ENV{TEST_NGINX_SERVER_PORT});
}


# what would silently prove nothing

refused('an unknown section', "$get--- respones_body\nok\n",
        'unknown section respones_body');
refused('a section twice', "$get--- error_code: 200\n--- error_code: 200\n",
        'error_code twice');
refused('an unknown filter', "--- request evil\nGET /t\n",
        'unknown filter evil');
refused('eval of what is no Perl', "$get--- response_body eval\n)(\n",
        'response_body');
refused('no request', "--- response_body: ok\n", 'no request');
refused('one expectation of many requests',
        "--- request eval\n['GET /t', 'GET /t']\n--- error_code: 200\n",
        'need an array');
refused('too few headers',
        "--- request eval\n['GET /t', 'GET /t']\n"
        . "--- more_headers eval\n['A: b']\n", 'lacks element 1');


# blocks

{
    my $two = "=== TEST 1: a\n$config$get\n"
        . "=== TEST 2: b\n$config--- request\nGET /n\n--- error_code: 404\n";
    my ($code, $out) = suite($two);
    is($code, 0, 'two blocks') or diag($out);
    is(scalar(() = $out =~ /no alert/g), 1, 'of one configuration: a server');

    (my $other = $two) =~ s/(TEST 2.*\n--- config\n)/$1# another\n/;
    ($code, $out) = suite($other);
    is(scalar(() = $out =~ /no alert/g), 2, 'of two: two servers');

    (my $only = $two) =~ s/(TEST 2: b\n)/$1--- ONLY\n/;
    ($code, $out) = suite($only);
    unlike($out, qr/TEST 1/, 'ONLY one');
    (my $skip = $two) =~ s/(TEST 2: b\n)/$1--- SKIP\n/;
    ($code, $out) = suite($skip);
    unlike($out, qr/TEST 2/, 'SKIP one');
    (my $last = $two) =~ s/(TEST 1: a\n)/$1--- LAST\n/;
    ($code, $out) = suite($last);
    unlike($out, qr/TEST 2/, 'the LAST one');

    ($code, $out) = suite($two, "repeat_each(3);\n");
    is(scalar(() = $out =~ /TEST 1: a - status/g), 3, 'three times');

    ($code, $out) = suite($two, "add_block_preprocessor(sub { \$_[0]"
                          . "->set_value('error_code', 418) });\n");
    is(scalar(() = $out =~ /^not ok/mg), 2, 'a preprocessor changes blocks');

    ($code, $out) = suite($two, join '', map {
        "add_block_preprocessor(sub { \$_[0]->set_value('error_code', $_) });\n"
    } 200, 418);
    is(scalar(() = $out =~ /^not ok/mg), 1, 'the one that came last is first');

    ($code, $out) = suite("=== TEST 1: x\n$config--- init: die 'init'\n$get");
    like($out, qr/Bail out!.*init/, 'init runs');

    ($code, $out) = suite("=== TEST 1: x\n$config--- init\nopen my \$f, '>>', "
                          . "'$dir/root/logs/error.log'; print \$f "
                          . "\"[alert] 1#1: boo\\n\";\n$get");
    isnt($code, 0, 'an alert in the log fails') or diag($out);
}

ok(!listens(), 'no server is left');


# the library itself, where somebody has it

if (my $library = $ENV{RON_TEST_NGINX}) {
    local %ENV = %begin;

    my $file = "$library/lib/Test/Nginx/Socket.pm";
    my $found = `$^X -I'$library/lib' -It/lib -MRonSuite -e '
                     require Test::Nginx::Socket;
                     print \$INC{"Test/Nginx/Socket.pm"}' 2>&1`;
    my @suites = glob 't/http/*.t';

    like($found, qr/\Q$file\E/, "$library has the library") or @suites = ();

    for my $suite (@suites) {
        my $out = `$^X -I'$library/lib' -It/lib $suite 2>&1`;

        is($?, 0, "$suite with Test::Nginx::Socket")
            or diag(grep { !/^ok/ } map { "$_\n" } split /\n/, $out);
    }
}

done_testing();
