#!/usr/bin/perl

# The walk-through: every line of shell in docs/WALKTHROUGH.md does what the
# page says; docs/examples/browser pays in headless Chromium, and verifies receipt, entry, path and signature with the server
# gone; what was changed afterwards is not verified.
#
# RON_SCREENSHOT=<file.png> keeps a picture.

use strict;
use warnings;

use lib 't/lib';
use RonNpm;
use RonTest;

use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use HTTP::Tiny;
use JSON::PP;
use MIME::Base64 qw(decode_base64);

my $modules = RonNpm::install('@noble/hashes@1.8.0')
    or BAIL_OUT('no @noble/hashes');
my $build = abs_path($ENV{RON_BUILD} || 'build');

my ($driver) = grep { -x } map { "$_/chromedriver" } split /:/, $ENV{PATH};
ok($driver, 'there is a chromedriver') or BAIL_OUT('tools/deps.sh test');


# ---- the server, with the page beside the wallet ----------------------------

my $s = RonTest->new;
my $www = $s->dir . '/www';
my $from = 'docs/examples/browser';

system("mkdir -p $www/node_modules/\@noble/hashes"
       . " && cp $from/index.html $from/verify.js $www/"
       . " && cp -r $modules/\@noble/hashes/esm $www/node_modules/\@noble/hashes/"
       . " && chmod -R a+rX $www") == 0 or BAIL_OUT('no page');

$s->{config} = <<"END";
location /walk/ {
    alias $www/;
    types { text/html html; text/javascript js; }
}
END

$s->start or BAIL_OUT('no server');


# ---- with curl --------------------------------------------------------------

{
    my $page = RonTest::slurp('docs/WALKTHROUGH.md');
    my @blocks = $page =~ /^```sh\n(.*?)^```$/msg;
    cmp_ok(scalar @blocks, '>=', 8, 'the walk-through has blocks of shell');

    my $work = tempdir(CLEANUP => 1);
    my $script = "set -eu\ncd $work\nexport PATH=$build:\$PATH\n"
        . join '', map { "echo '## $_'\n$blocks[$_]" } 0 .. $#blocks;
    $s->write_file('walk.sh', $script);

    local $ENV{RON_TOKEN} = $s->token;
    local $ENV{RON} = 'http://127.0.0.1:' . $s->port;
    my $said = `bash @{[$s->dir]}/walk.sh 2>&1`;
    is($?, 0, 'which run') or diag($said);

    my (undef, @said) = split /^## \d+\n/m, $said;

    for my $case (
        [ 1, qr/"op":"issue".*"op":"transfer".*"amount_minor":"990"/s ],
        [ 2, qr/"idem":"pay-1".*\{"outcome":"committed"/s ],
        [ 3, qr/"code":"INSUFFICIENT_FUNDS"/ ],
        [ 4, qr/"op":"hold".*"op":"capture".*"op":"release"/s ],
        [ 5, qr/"op":"transfer".*"idem":"pay-3"/ ],
        [ 6, qr/"amount_minor":"950".*"code":"FORBIDDEN"/s ],
        [ 7, qr/"roots":.*\nron-ledger-\d+\n.*"path":/s ],
        [ 8, qr/"accepted":true,"receipts":\[.*"code":"INSUFFICIENT_FUNDS"
                .*("op":"burn",.*"idem":"burn-1",.*"seq":\d+\}).*\1/sx ],
    ) {
        like($said[$case->[0]], $case->[1], "block $case->[0]");
    }

    local $ENV{NODE_PATH} = $modules;
    my $verified = `node tools/verify/verify.mjs receipt $work/receipt.json 2>&1`;
    is($?, 0, 'and the receipt verifies') or diag($verified);
}

chomp(my $key = `$build/ronctl keys public @{[$s->dir]}/ledger/signing.key`);
like($key, qr/^ron-ledger-\d+\+[0-9a-f]{8}\+/, 'the public key of the ledger');


# ---- the browser, by WebDriver ----------------------------------------------

my $port = RonTest::free_port();
my $home = tempdir(CLEANUP => 1);
my $http = HTTP::Tiny->new(timeout => 60);
my ($pid, $session);

sub wd {
    my ($method, $path, $body) = @_;

    my $r = $http->request($method, "http://127.0.0.1:$port$path", {
        defined $body ? (content => JSON::PP->new->utf8->encode($body)) : (),
        headers => { 'Content-Type' => 'application/json' },
    });
    my $v = eval { JSON::PP->new->utf8->decode($r->{content}) };

    $r->{success} or die "$method $path: $r->{status} $r->{content}";

    return $v->{value};
}

# What a function body returns in the page.
sub js {
    my ($code, @args) = @_;

    return wd(POST => "/session/$session/execute/sync",
              { script => $code, args => \@args });
}

sub type_in {
    my ($id, $text) = @_;

    my ($e) = values %{ wd(POST => "/session/$session/element",
                           { using => 'css selector', value => "#$id" }) };
    wd(POST => "/session/$session/element/$e/clear", {});
    wd(POST => "/session/$session/element/$e/value", { text => $text });
}

sub click {
    my ($id) = @_;

    my ($e) = values %{ wd(POST => "/session/$session/element",
                           { using => 'css selector', value => "#$id" }) };
    wd(POST => "/session/$session/element/$e/click", {});
}

sub verdict { js('return document.getElementById("verdict").textContent') }

sub begin {
    $pid = fork;
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        $ENV{HOME} = $home;
        setpgrp;
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "$home/driver.log";
        open STDERR, '>&', \*STDOUT;
        exec $driver, "--port=$port" or POSIX::_exit(127);
    }

    until_ok(20, sub { eval { wd(GET => '/status')->{ready} } })
        or BAIL_OUT('chromedriver does not answer: '
                    . RonTest::slurp("$home/driver.log"));

    my $got = wd(POST => '/session', { capabilities => { alwaysMatch => {
        browserName => 'chrome',
        'goog:chromeOptions' => { args => [
            '--headless=new', '--no-sandbox', '--disable-gpu',
            '--disable-dev-shm-usage', '--window-size=900,1100',
            "--user-data-dir=$home/profile" ] },
    } } });
    $session = $got->{sessionId};
}

END {
    my $code = $?;
    if ($pid) {
        eval { wd(DELETE => "/session/$session") } if $session;
        kill 'TERM', -$pid;
        waitpid $pid, 0;
    }
    $? = $code;
}

eval { begin(); 1 } or BAIL_OUT("no browser: $@");


# ---- pay --------------------------------------------------------------------

wd(POST => "/session/$session/url",
   { url => 'http://127.0.0.1:' . $s->port . '/walk/index.html' });
ok(until_ok(20, sub { (js('return document.body.dataset.ready') || '')
                      eq 'yes' }), 'the page is ready');

type_in('token', $s->token('svc = wallet', 'act = read transfer',
                           'account = alice'));
type_in('key', $key);
type_in('amount', '1000');
click('send');
ok(until_ok(20, sub { verdict() }), 'too much');
like(verdict(), qr/INSUFFICIENT_FUNDS/, 'is refused, and it says so');

type_in('amount', '10');
click('send');
ok(until_ok(20, sub {
    !js('return document.getElementById("receipt").hidden')
}), 'a receipt') or diag(verdict());

my $receipt = js('return document.getElementById("receipt").textContent');
my $r = JSON::PP->new->decode($receipt);
is($r->{amount_minor}, '10', 'of what was paid');
ok($r->{proof}{checkpoint}, 'with a signed head');
is(json_get($s->get('/v1/balance?account=bob&asset=ron')->{body},
            'amount_minor'), 36, 'bob has it');


# ---- verify, with nobody to ask ---------------------------------------------

ok($s->quit, 'the server is gone');

sub check {
    js('document.getElementById("verdict").textContent = ""');
    click('check');
    until_ok(20, sub { verdict() });
    return verdict();
}

is(check(), 'Verified, and nobody was asked.', 'it verifies');
is(js('return document.querySelectorAll("#steps li").length'), 4,
   'in four steps');

if ($ENV{RON_SCREENSHOT}) {
    open my $f, '>', $ENV{RON_SCREENSHOT} or die $!;
    binmode $f;
    print $f decode_base64(wd(GET => "/session/$session/screenshot"));
    close $f;
}

# each thing that can be changed

sub changed {
    my ($what, $why, $change) = @_;

    my $v = JSON::PP->new->decode($receipt);
    $change->($v);
    js('document.getElementById("receipt").textContent = arguments[0]',
       JSON::PP->new->canonical->encode($v));
    like(check(), qr/^Not verified: .*$why/, "not with $what");
}

# one bit of a text in base64 or hex
sub flip {
    my ($text, $at) = @_;
    my $c = substr $text, $at, 1;
    substr $text, $at, 1, $c eq 'a' ? 'b' : 'a';
    return $text;
}

changed('another amount', 'its hash', sub { $_[0]{amount_minor} = '11' });
changed('another hash', 'its hash',
        sub { $_[0]{receipt_hash} = flip($_[0]{receipt_hash}, 9) });
changed('another seq', 'of the entry', sub { $_[0]{seq}++ });
changed('another entry', '.',
        sub { $_[0]{proof}{entry} = flip($_[0]{proof}{entry}, 40) });
changed('another leaf', 'leaf',
        sub { $_[0]{proof}{leaf} = flip($_[0]{proof}{leaf}, 9) });
changed('another path', 'another root',
        sub { $_[0]{proof}{path}[0] = flip($_[0]{proof}{path}[0], 9) });
changed('no path', 'too short', sub { $_[0]{proof}{path} = [] });
changed('another size', '.', sub { $_[0]{proof}{size}++ });
changed('another root', 'signature',
        sub { $_[0]{proof}{checkpoint} =~ s/\n(\d+)\n(.)/"\n$1\n" . flip($2, 0)/e });
changed('no head', 'no checkpoint', sub { $_[0]{proof}{checkpoint} = undef });

js('document.getElementById("receipt").textContent = arguments[0]', $receipt);
is(check(), 'Verified, and nobody was asked.', 'as it was it verifies again');

(my $other = $key) =~ s/^ron-ledger/rom-ledger/;
js('document.getElementById("key").value = arguments[0]', $other);
like(check(), qr/^Not verified: /, 'and not with a key of another name');

done_testing();
