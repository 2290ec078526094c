#!/usr/bin/perl

# Requests that nobody would send, through a real nginx.  Whatever comes in,
#
#     an answer is one of HTTP, and of our locations a problem whose code and
#     reason are in their tables, or the thing asked for;
#     what was refused, or had no answer, committed nothing: the journal has
#     exactly the seqs that accepted answers named;
#     no process dies, nothing is alarmed about.
#
#     RON_FUZZ_SECONDS    how long (6); RON_FUZZ_SEED  the same requests again

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use Compress::Zlib ();
use IO::Select ();
use Time::HiRes ();

my $seconds = $ENV{RON_FUZZ_SECONDS} || 6;
my $seed = $ENV{RON_FUZZ_SEED} || int rand 2 ** 31;

srand $seed;
note("RON_FUZZ_SEED=$seed");

my $s = RonTest->new(workers => 2, level => 'notice',
    http => 'ron_errors on; client_header_timeout 1s; client_body_timeout 1s;'
            . ' ron_deadline 2s; large_client_header_buffers 4 4k;');
$s->start or BAIL_OUT('no server');

my ($ctl) = grep { -x } ($ENV{RON_BUILD} || 'build') . '/ronctl';
my @before;

until_ok(5, sub { (@before = ($s->workers, $s->helper)) == 3 });


# The tables.

my %code = map { m{/(\w+)\.md$} ? ($1 => 1) : () } glob 'docs/errors/*.md';
my %reason = map { $_ => 1 } RonTest::slurp('src/entry/ron_reason.h')
    =~ /^    X\(\w+,\s+"(\w+)"/mg;

cmp_ok(scalar keys %code, '>', 20, 'codes');
cmp_ok(scalar keys %reason, '>', 12, 'reasons');


# ---- requests that are right ------------------------------------------------

my ($n, $nonce) = (0, 0);
my $token = $s->token;
my (@holds, %seqs);

for my $step ([ issue => { to => 'alice', amount_minor => '1000000000' } ],
              map { [ hold => { from => 'alice', to => 'bob', nonce => ++$nonce,
                                amount_minor => '1000000' } ] } 1 .. 10)
{
    my ($op, $body) = @$step;
    my $r = $s->post("/v1/$op", { %$body, asset => 'ron' }, key => 'k' . ++$n);

    is($r->{status}, 200, "$op") or diag($r->{body});
    $seqs{json_get($r->{body}, 'seq')} = 1;
    push @holds, json_get($r->{body}, 'txid') if $op eq 'hold';
}

sub raw {
    my ($method, $path, $body, %h) = @_;

    my %all = (Host => 'localhost', Authorization => "Bearer $token",
               Connection => 'close', %h);

    if (defined $body) {
        $all{'Content-Type'} ||= 'application/json';
        $all{'Content-Length'} = length $body;
    }

    return "$method $path HTTP/1.1\r\n"
           . join('', map { "$_: $all{$_}\r\n" } sort keys %all)
           . "\r\n" . (defined $body ? $body : '');
}

# The same with its body in a gzip member, which $spoil may change.
sub zipped {
    my ($text, $spoil) = @_;

    my ($head, $body) = split /\r\n\r\n/, $text, 2;
    my $zip = Compress::Zlib::memGzip($body);

    $zip = $spoil->($zip) if $spoil;
    $head =~ s/^Content-Length: \d+/"Content-Length: " . length $zip/me;

    return "$head\r\nContent-Encoding: gzip\r\n\r\n$zip";
}

sub entry {
    my ($kind, %more) = @_;

    my %e = (id => 'id-' . ++$n, ts => 1767322245719,
             kind => $kind, account => 'alice', amount => '5',
             nonce => nonce16(), v => \1, %more);

    return RonTest::json_put(\%e);
}

my @right = (
    sub { raw('POST', '/v1/issue', '{"to":"alice","asset":"ron",'
              . '"amount_minor":"100"}', 'Idempotency-Key' => 'k' . ++$n) },
    sub { raw('POST', '/v1/transfer', '{"from":"alice","to":"bob","asset":'
              . '"ron","amount_minor":"1","nonce":' . ++$nonce . '}',
              'Idempotency-Key' => 'k' . ++$n) },
    sub { raw('POST', '/v1/burn', '{"from":"alice","asset":"ron",'
              . '"amount_minor":"1","nonce":' . ++$nonce . ',"memo":"x"}',
              'Idempotency-Key' => 'k' . ++$n) },
    sub { raw('POST', '/v1/hold?proof=1', '{"from":"alice","to":"bob",'
              . '"asset":"ron","amount_minor":"1","nonce":' . ++$nonce
              . ',"expires_in":60}', 'Idempotency-Key' => 'k' . ++$n) },
    sub { raw('POST', '/v1/capture', '{"hold":"' . $holds[rand @holds]
              . '","amount_minor":"1"}', 'Idempotency-Key' => 'k' . ++$n) },
    sub { raw('POST', '/v1/batch', '{"atomic":true,"ops":[{"op":"issue","to":'
              . '"alice","asset":"ron","amount_minor":"7"},{"op":"transfer",'
              . '"from":"alice","to":"bob","asset":"ron","amount_minor":"1",'
              . '"nonce":' . ++$nonce . '}]}',
              'Idempotency-Key' => 'k' . ++$n, 'If-Match' => '*') },
    sub { raw('POST', '/ledger/ingest', '{"batch":[' . entry('Mint') . ','
              . entry('Transfer', to => 'bob') . '],"idem_id":"b' . ++$n
              . '"}') },
    sub { raw('POST', '/ledger/ingest', entry('Mint') . "\n"
              . entry('Burn') . "\n",
              'Content-Type' => 'application/x-ndjson') },
    sub { raw('GET', '/v1/balance?account=alice&asset=ron', undef,
              'If-None-Match' => '"1"') },
    sub { raw('GET', '/ledger/roots?since=1&limit=3') },
    sub { raw('GET', '/ledger/entries?from=1&to=3') },
    sub { raw('GET', '/ledger/proof/inclusion?seq=1') },
    sub { raw('GET', '/v1/outcome?account=alice', undef,
              'Idempotency-Key' => 'k1') },
    sub { zipped(raw('POST', '/v1/transfer', '{"from":"alice","to":"bob",'
              . '"asset":"ron","amount_minor":"1","nonce":' . ++$nonce . '}',
              'Idempotency-Key' => 'k' . ++$n)) },
);
my @posts = @right[0 .. 5];                     # of the wallet


# ---- and wrong --------------------------------------------------------------

my @numbers = qw(0 -1 00 1e3 1.0 340282366920938463463374607431768211456
                 340282366920938463463374607431768211455 9007199254740992
                 18446744073709551616 null true "" "1" [] {});
my @pieces = ("\0", "\r\n", "\r\n\r\n", "\xff\xfe", "\xed\xa0\x80", '"', '{',
              '}', ']', ',', '\\u0000', '\\ud800', '[' x 20, 'a' x 257,
              'b' x 5000, ': ', '%00', '../', ';', "\t", ' HTTP/1.1',
              "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n",
              "Expect: 100-continue\r\n", "Content-Encoding: gzip\r\n");

my @mutations = (
    sub { substr $_[0], rand length $_[0], 1, chr int rand 256 },
    sub { substr $_[0], rand length $_[0], 1 + rand 9, '' },
    sub { substr $_[0], rand length $_[0], 0, $pieces[rand @pieces] },
    sub { my $at = int rand length $_[0];
          substr $_[0], $at, 0, substr $_[0], rand length $_[0],
                                       1 + rand 40 },
    sub { my @at; push @at, [ $-[0], $+[0] - $-[0] ]
              while $_[0] =~ /"?\d+"?/g;
          my $w = $at[rand @at];
          substr $_[0], $w->[0], $w->[1], $numbers[rand @numbers] if $w },
    sub { $_[0] =~ s/^(Content-Length: )(\d+)/$1 . ($2 + int(rand 7) - 3)/me },
    sub { $_[0] =~ s/("\w+":"?[^",{}\[\]]+"?),/$1,$1,/ },
    sub { my @lines = split /(?<=\n)/, $_[0];
          my $i = int rand @lines;
          rand() < .5 ? splice(@lines, $i, 1)
                      : splice(@lines, $i, 0, $lines[$i]);
          $_[0] = join '', @lines },
    sub { $_[0] = substr $_[0], 0, rand length $_[0] },
    sub { $_[0] =~ s{HTTP/1\.1}{(qw(HTTP/1.0 HTTP/0.9 HTTP/2.0 HTTP/1.9),
                                 '')[rand 5]}e },
    sub { $_[0] =~ s/^[A-Z]+/(qw(PUT DELETE HEAD OPTIONS GET POST PATCH X),
                              '')[rand 9]/e },
    sub { if ($_[0] =~ s/^Content-Length: \d+\r\n
                       /Transfer-Encoding: chunked\r\n/mx)
          { my ($head, $body) = split /\r\n\r\n/, $_[0], 2;
            my $cut = int rand 1 + length $body;
            $_[0] = "$head\r\n\r\n" . join '', map {
                length $_ ? sprintf("%x\r\n%s\r\n", length $_, $_) : ()
            } substr($body, 0, $cut), substr($body, $cut);
            $_[0] .= "0\r\n\r\n" if rand() < .8 } },
    sub { $_[0] .= $right[rand @right]->() },
);

# What becomes of a gzip member: another one perhaps, or none.
my @spoils = (
    sub { $_[0] },
    sub { my $z = $_[0];
          substr $z, rand length $z, 1, chr int rand 256 for 0 .. rand 3;
          $z },
    sub { my $z = $_[0];                        # head, or sum and size
          substr $z, (rand() < .5 ? int rand 10 : -1 - rand 8), 1,
                 chr int rand 256;
          $z },
);
my @ruins = (
    sub { substr $_[0], 0, rand length $_[0] },
    sub { $_[0] . $pieces[rand @pieces] },
    sub { $_[0] . $_[0] },
    sub { Compress::Zlib::memGzip($_[1] . ' ' x (1e5 + rand 2e6)) },
);
my %ruined;                                     # may not be accepted

sub wrong_zip {
    my $text = $posts[rand @posts]->();
    my $body = (split /\r\n\r\n/, $text, 2)[1];
    my $dice = rand;

    if ($dice < .4) {                           # wrong inside
        my $at = length($text) - length $body;
        $mutations[rand 5]->($body);
        return zipped(substr($text, 0, $at) . $body);
    }

    return zipped($text, $spoils[rand @spoils]) if $dice < .7;

    my $ruin = $ruins[rand @ruins];
    $text = zipped($text, sub { $ruin->($_[0], $body) });
    $ruined{$text} = 1;

    return $text;
}

sub wrong {
    return wrong_zip() if rand() < 0.15;

    my $text = $right[rand @right]->();

    return $text if rand() < 0.1;

    for (1 .. 1 + rand 3) {
        last unless length $text;
        my $was = $text;
        $mutations[rand @mutations]->($text);
        $text = $was if told($text);
    }

    return $text;
}

# Has a piece of the token come into what is no header?  Who writes it into a
# path has told it: NGINX logs the request line of what it cannot find.
sub told {
    my $rest = join "\n", grep { !/^[^\s:]+:/ } split /\r?\n/, $_[0];

    return scalar grep { index($rest, substr $token, $_, 12) >= 0 }
                  0 .. length($token) - 12;
}


# ---- the oracle -------------------------------------------------------------

my (%status, @bad);

# All answers of a connection.
sub judge {
    my ($sent, $got) = @_;

    my $say = sub {
        push @bad, "$_[0]\n--- sent:\n" . substr($sent, 0, 1500)
                   . "\n--- got:\n" . substr $got, 0, 1500;
    };
    my $rest = $got;
    my $answers = 0;

    while (length $rest) {
        my ($head, $body) = split /\r\n\r\n/, $rest, 2;

        # an answer to HTTP/0.9 has no head
        if ($head !~ m{\AHTTP/1\.1 (\d{3}) }) {
            $status{bare}++;
            $say->("no HTTP")
                if $sent =~ m{\A[A-Z]+ \S+ HTTP/1\.[01]\r\n};
            return;
        }

        my $code = $1;
        $status{$code}++;
        $status{"gzip $code"}++ if $sent =~ /^Content-Encoding: gzip\r\n\r\n/m;
        $body = '' unless defined $body;

        # what it announces comes behind it
        if ($code eq '100') {
            $rest = $body;
            next;
        }

        # of all requests only the first one can have become a HEAD
        my $bare = $sent =~ /\AHEAD/ && !$answers++;

        if ($head =~ /^Content-Length: (\d+)/mi) {
            my $len = $bare || $code eq '304' ? 0 : $1;
            $rest = substr $body, $len <= length $body ? $len : length $body;
            $body = substr $body, 0, $len;
        } elsif (!$bare && $head =~ /^Transfer-Encoding: chunked/mi) {
            ($body, $rest) = unchunked($body);
        } else {
            $rest = '';
        }

        if ($code =~ /^20[07]$/) {
            $say->('a body that is no gzip member, or too much of one')
                if $ruined{$sent};
            next if $head =~ /^Idempotent-Replayed/mi
                    || $body =~ /"outcome":|"roots":|"entries":\[\{"seq":\d+,"ts/;
            next unless $sent =~ /POST/;
            $seqs{$_} = 1 for $body =~ /"seq":(\d+)/g;
            $seqs{$_} = 1 for map { $_->[0] .. $_->[1] }
                grep { $_->[0] } seq_ranges($body);
            next;
        }

        next if $code eq '304' || $bare;

        my ($name) = $body =~ /"code":"(\w*)"/;
        my ($why) = $body =~ /"reason":"(\w*)"/;

        if ($head =~ m{^Content-Type: application/problem\+json}mi) {
            $say->("code of a problem: " . ($name || 'none'))
                unless $name && $code{$name};
            $say->("reason of a problem: $why")
                if defined $why && !$reason{$why};
            $say->('a problem and its status')
                unless $body =~ /"status":$code\b/;
        } elsif ($code >= 500) {
            $say->("$code, and no problem");
        }

        $say->('an internal error') if $code eq '500';
    }
}

# A chunked body, and what comes behind it.
sub unchunked {
    my ($rest) = @_;

    my $body = '';

    while ($rest =~ s/\A([0-9a-f]+)\r\n//i) {
        my $len = hex $1;
        $body .= substr $rest, 0, $len;
        $rest = length $rest > $len + 2 ? substr $rest, $len + 2 : '';
        last if $len == 0;
    }

    return ($body, $rest);
}

# Server batches of NDJSON say from where to where.
sub seq_ranges {
    return map { [ /"seq_start":(\d+),"seq_end":(\d+)/ ] }
               $_[0] =~ /("seq_start":\d+,"seq_end":\d+)/g;
}


# ---- what is right is accepted -----------------------------------------------

for my $right (@right) {
    my $text = $right->();
    my $sock = $s->connect;
    my $got = '';

    syswrite $sock, $text;
    1 while sysread $sock, $got, 65536, length $got;
    close $sock;

    my ($what) = $text =~ m{\A(\w+ \S+)};

    like($got, qr{\AHTTP/1\.1 200 }, "$what: right as it is")
        or diag("$text\n$got");
    judge($text, $got);
}


# ---- running ----------------------------------------------------------------

my $end = Time::HiRes::time() + $seconds;
my $select = IO::Select->new;
my (%sent, %got, %since);
my $requests = 0;

for (;;) {
    my $now = Time::HiRes::time();

    while ($select->count < 64 && $now < $end) {
        my $sock = $s->connect;
        my $text = wrong();
        my $half = rand() < 0.2 ? int rand length $text : length $text;

        syswrite $sock, substr $text, 0, $half;
        syswrite $sock, substr $text, $half if $half < length $text;
        $sock->blocking(0);
        $select->add($sock);
        $sent{$sock} = $text;
        $got{$sock} = '';
        $since{$sock} = $now;
        $requests++;
    }

    last unless $select->count;

    my %ready = map { $_ => 1 } $select->can_read(0.02);

    for my $sock ($select->handles) {
        my $done = 0;

        if ($ready{$sock}) {
            my $k = sysread $sock, $got{$sock}, 65536, length $got{$sock};
            $done = 1 if defined $k && $k == 0 || !defined $k && !$!{EAGAIN};
        }

        # Every right request asks for an end of the connection; one that lost
        # that line is closed by us, long after its deadline.

        next unless $done || Time::HiRes::time() - $since{$sock} > 6;

        judge($sent{$sock}, $got{$sock});
        $select->remove($sock);
        close $sock;
        delete $_->{$sock} for \%sent, \%got, \%since;
    }
}

note("$requests requests: " . join ', ', map { "$status{$_} $_" }
                                             sort keys %status);

ok(!@bad, "$requests requests, every answer is one that there is")
    or diag(join "\n\n", @bad[0 .. ($#bad > 2 ? 2 : $#bad)]);
cmp_ok($requests, '>', 100, 'enough of them');
cmp_ok($status{$_} || 0, '>', 0, "some are $_") for 200, 400,
    'gzip 200', 'gzip 400';

is_deeply([ $s->workers, $s->helper ], \@before, 'every process lives');
ok($s->wait_ready, 'and is ready');
$s->quit;

my ($dir) = $s->{ledger} =~ /^sqlite:(\S+)/;
my $said = `'$ctl' ledger verify '$dir' 2>&1`;
is($?, 0, 'verify') or diag($said);
my ($height) = $said =~ /height\s+([\d ]*\d)/;
$height =~ tr/ //d;

my @missing = grep { !$seqs{$_} } 1 .. $height;
my @more = grep { $_ > $height } keys %seqs;

ok(!@missing, "$height entries, and each was named by an accepted answer")
    or diag("@missing[0 .. ($#missing > 9 ? 9 : $#missing)]\n",
            `'$ctl' ledger entries '$dir' --from $missing[0] --to $missing[0] --json`);
ok(!@more, 'and nothing else was');

done_testing();
