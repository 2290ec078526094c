#!/usr/bin/perl

# POST /ledger/ingest as lines.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use IO::Select;
use Time::HiRes qw(time);


my $s = RonTest->new(workers => 1, http => 'ron_ledger_stream_max 64m;');
$s->start or BAIL_OUT('no server');

my $id = 0;
my $type = 'application/x-ndjson';

sub line {
    my ($kind, $account, $amount, %o) = @_;

    return RonTest::json_put({
        id => 'n' . ++$id, ts => 1_700_000_000_000 + $id, kind => $kind,
        account => $account, amount => "$amount", nonce => nonce16(), v => 1,
        %o }) . "\n";
}

sub lines {
    my ($text, %o) = @_;

    my $results = defined $o{results} ? "?results=$o{results}" : '';

    return $s->post("/ledger/ingest$results", $text, type => $type, %o);
}

# Reads until a line of the answer is like $want.
sub until_said {
    my ($sock, $said, $want, $seconds) = @_;

    my $end = time + $seconds;

    while ($$said !~ $want && time < $end) {
        IO::Select->new($sock)->can_read(0.1) or next;
        sysread $sock, $$said, 65536, length $$said or last;
    }

    return $$said =~ $want;
}

sub size {
    my ($last) = $s->get('/ledger/roots?limit=1000')->{body}
                 =~ /"next":(\d+)/;
    return $last;
}


# what is said of good and bad lines

my $r = lines(line('Mint', 'alice', 100));
is($r->{status}, 200, 'a line') or diag($r->{body});
is($r->{headers}{'content-type'}, $type, 'is answered in lines');
like($r->{body}, qr/^\{"batch":1,"first_line":1,"last_line":1,"accepted":1,
                    "rejected":0,"seq_start":1,"seq_end":1,
                    "root":"[0-9a-f]{64}"\}\n$/x, 'one summary');

$r = lines(line('Mint', 'alice', 1) . "{nonsense\n\n"
           . line('Burn', 'nobody', 5) . line('Debit', 'alice', 1)
           . substr(line('Mint', 'alice', 2), 0, -1));
is($r->{status}, 200, 'good and bad lines');
like($r->{body}, qr/"line":2,"reason":"malformed"/, 'a bad one by its line');
like($r->{body}, qr/"line":4,"reason":"insufficient"/, 'a refused one');
like($r->{body}, qr/"line":5,"reason":"malformed"/, 'no leg of a posting');
like($r->{body}, qr/"last_line":6,"accepted":2,"rejected":3/,
     'the others are in, the last without its newline');

$r = lines(line('Mint', 'a', 1) . line('Burn', 'nobody', 1),
           results => 'all');
like($r->{body}, qr/^\{"line":1,"seq":4\}\n\{"line":2,"reason":/, 'all');
$r = lines(line('Mint', 'a', 1) . "x\n", results => 'summary');
is(scalar(() = $r->{body} =~ /\n/g), 1, 'summary: one line');
like($r->{body}, qr/"accepted":1,"rejected":1/, 'that has both');

$r = lines("x\n");
like($r->{body}, qr/"accepted":0,"rejected":1\}\n$/, 'bad lines only');
is(lines(line('Mint', 'a', 1), results => 'some')->{status}, 400,
   'results has three values');
is(lines('')->{status}, 400, 'an empty body');
is(lines("\n\n")->{status}, 400, 'only empty lines');

my $same = line('Mint', 'twice', 1);
my $size = size();
lines($same);
$r = lines($same, results => 'all');
is(size(), $size + 1, 'the same line twice is one entry');
like($r->{body}, qr/"line":1,"seq":@{[$size + 1]}\}/, 'with its first seq');

$r = lines(line('Mint', 'a', 1) . line('Burn', 'a', 1), results => 'all',
           token => $s->token('act = ingest burn'));
like($r->{body}, qr/"line":1,"reason":"cap_invalid"/, 'each kind needs its act');
like($r->{body}, qr/"line":2,"seq"/, 'line by line');
is(lines(line('Mint', 'a', 1), token => undef)->{status}, 401, 'no token');


# results come before the upload ends

my $sock = $s->connect;
my $said = '';
my $first = line('Mint', 'slow', 1);

print $sock $s->request_text('POST', '/ledger/ingest?results=all', undef,
    headers => { 'Content-Type' => $type,
                 'Transfer-Encoding' => 'chunked' });
print $sock sprintf("%x\r\n%s\r\n", length $first, $first);
$sock->flush;

ok(until_said($sock, \$said, qr/"line":1,"seq":\d+/, 5),
   'the first result while the body is still open') or diag($said);

# half a line, then its end
my $second = line('Mint', 'slow', 2);
my ($a, $b) = (substr($second, 0, 20), substr $second, 20);
print $sock sprintf("%x\r\n%s\r\n", length $a, $a);
$sock->flush;
select undef, undef, undef, 0.1;
print $sock sprintf("%x\r\n%s\r\n0\r\n\r\n", length $b, $b);
$sock->flush;

ok(until_said($sock, \$said, qr/"batch":2.*\r\n0\r\n\r\n/s, 5),
   'a line in two pieces, and the end') or diag($said);
close $sock;


# a client that goes away: what was sent is there

$size = size();
my ($worker) = $s->workers;
my $open = sockets($worker);

$sock = $s->connect;
my $text = join '', map { line('Mint', 'gone', 1) } 1 .. 10;
print $sock $s->request_text('POST', '/ledger/ingest', undef,
    headers => { 'Content-Type' => $type, 'Content-Length' => 1_000_000 })
    . $text . '{"half';
$sock->flush;
ok(until_ok(5, sub { size() == $size + 10 }), 'committed without its end');
close $sock;
ok(until_ok(5, sub { sockets($worker) <= $open }), 'nothing is left open');


# many

my $n = $ENV{RON_NDJSON_N} || 20000;
$text = join '', map { line('Mint', 'many' . $_ % 100, 1) } 1 .. $n;
$size = size();
my $start = time;
my $written = lines($text, results => 'summary', timeout => 60);
my $took = time - $start;
is($written->{status}, 200, "$n lines in one body");

my $sum = 0;
$sum += $1 while $written->{body} =~ /"accepted":(\d+)/g;
is($sum, $n, 'all accepted');
cmp_ok(scalar(() = $written->{body} =~ /"batch"/g), '>', 4,
       'in several batches');
diag(sprintf '%d lines, %.1f MiB: %.0f entries/s', $n,
     length($text) / 2 ** 20, $n / $took);
ok(!glob("$s->{dir}/body/*"), 'and no file');


# a line that is too long, after some that are not

$r = lines(line('Mint', 'long', 1) . 'x' x (1024 * 1024 + 70_000) . "\n"
           . line('Mint', 'long', 1));
like($r->{body}, qr/"code":"LIMITS_EXCEEDED"[^\n]*\}\n$/,
     'a line over 1 MiB ends it') or diag(substr $r->{body}, 0, 500);


# a reader that does not read: the server stops reading, and goes on later

$sock = $s->connect;
$text = join '', map { "x\n" } 1 .. 400_000;
my $request = $s->request_text('POST', '/ledger/ingest', $text,
                               type => $type);
$sock->blocking(0);
my $sent = 0;
my $last = time;
my $peak = peak($worker);

while ($sent < length $request && time - $last < 2) {
    if (IO::Select->new($sock)->can_write(0.2)) {
        my $k = syswrite $sock, $request, 65536, $sent;
        if ($k) { $sent += $k; $last = time; }
    }
}

# 128 KiB of such lines have 4 MB of results: not all of them at once

$peak = peak($worker) - $peak;
cmp_ok($peak, '<', 1024, "memory is bounded: $peak KiB more");
my ($got, $bytes) = (0, '');
$last = time;
while (time - $last < 10) {
    my ($rd, $wr) = (IO::Select->new($sock)->can_read(0.05), 0);
    if ($rd) {
        my $k = sysread $sock, $bytes, 1 << 20, length $bytes;
        last if defined $k && $k == 0;
        $last = time if $k;
    }
    if ($sent < length $request) {
        my $k = syswrite $sock, $request, 65536, $sent;
        if ($k) { $sent += $k; $last = time; }
    }
}
my $rejected = 0;
$rejected += $1 while $bytes =~ /"rejected":(\d+)/g;
is($rejected, 400_000, 'every line was answered');

$s->quit;


# the limit of the whole

$s = RonTest->new(workers => 1);
$s->start or BAIL_OUT('no server');

$text = join '', map { line('Mint', 'a', 1) } 1 .. 10000;
cmp_ok(length $text, '>', 1024 * 1024, 'more than 1m');
is(lines($text)->{status}, 413, 'is refused by its length');
$r = lines(sprintf("%x\r\n%s\r\n0\r\n\r\n", length $text, $text),
           headers => { 'Transfer-Encoding' => 'chunked' });
ok($r->{status} == 413 || $r->{body} =~ /LIMITS_EXCEEDED[^\n]*\}\n$/,
   'or on its way') or diag("$r->{status} " . substr $r->{body}, 0, 300);
is($s->post('/ledger/ingest', ' ' x (1024 * 1024 + 1))->{status}, 413,
   'json has the limit it had');


# without a limit

$s->{http} = 'ron_ledger_stream_max 0;';
$s->reload or fail('reload');
is($s->post('/ledger/ingest', ' ' x (1024 * 1024 + 1))->{status}, 413,
   'json still has it');
is(lines($text)->{status}, 200, 'lines have none');



# a stream that waits does not hold a reload: what was sent is done, and the
# last line says why the rest is not

($sock, $said) = begin_stream();
syswrite $sock, chunk(line('Mint', 'res', 1));
ok(until_said($sock, \$said, qr/"seq":\d+/, 10), 'a stream that waits');
my $t = time;
ok($s->reload(wait => 5), 'is no reason for a worker to stay');
cmp_ok(time - $t, '<', slow(4), sprintf 'it went after %.1f s', time - $t);
ok(until_said($sock, \$said, qr/"code":"DRAINING"[^\n]*\}\n\r\n0\r\n/, 5),
   'the last line says so, and the answer has an end') or diag($said);

# likewise one whose length is limited, in the middle of a line

$s->{http} = 'ron_ledger_stream_max 1m;';
$s->reload or fail('reload');
($sock, $said) = begin_stream();
my $half = line('Mint', 'res', 1);
syswrite $sock, chunk(line('Mint', 'res', 1) . substr $half, 0, 20);
ok(until_said($sock, \$said, qr/"seq":\d+/, 10), 'half a line waits');
ok($s->reload(wait => 5), 'it is no reason either');
ok(until_said($sock, \$said, qr/"code":"DRAINING"/, 5), 'and is told')
    or diag($said);

# one that comes in time is finished by the worker that leaves

($sock, $said) = begin_stream();
$half = line('Mint', 'res', 1);
syswrite $sock, chunk(line('Mint', 'res', 1) . substr $half, 0, 20);
ok(until_said($sock, \$said, qr/"seq":\d+/, 10), 'half a line');
my ($old) = $s->workers;
$s->nginx('-s', 'reload');
ok(until_ok(5, sub {
    my @log = $s->log =~ /#$old: gracefully shutting down/;
    @log > 0;
}), 'its worker is to leave');
syswrite $sock, chunk(substr $half, 20) . "0\r\n\r\n";
ok(until_said($sock, \$said, qr/\r\n0\r\n/, 5), 'the rest comes in time');
unlike($said, qr/DRAINING/, 'and is taken');
ok(until_ok(5, sub { !RonTest::alive($old) }), 'then the worker leaves');

# the helper is killed in the middle of a stream

my $before = size();
($sock, $said) = begin_stream('all');

for my $n (1 .. 6) {
    syswrite $sock, chunk(join '', map { line('Mint', 'res', 1) } 1 .. 50);
    until_said($sock, \$said, qr/"seq":\d+/, 10) if $n == 1;

    if ($n == 2 || $n == 4) {
        $s->kill_helper or fail('no helper');
        Time::HiRes::sleep(0.05);
    }
}

syswrite $sock, "0\r\n\r\n";
ok(until_said($sock, \$said, qr/\r\n0\r\n/, 15), 'a stream outlives helpers')
    or diag(substr $said, -600);
my %seq = map { $_ => 1 } $said =~ /"seq":(\d+)/g;
is(scalar keys %seq, 300, 'all of its entries are answered');
is(size() - $before, 300, 'and are there once');


$s->quit;

done_testing();


sub peak {
    my ($pid) = @_;

    return (RonTest::slurp("/proc/$pid/status") =~ /VmHWM:\s+(\d+)/)[0];
}

# Readers of the ledger may be opened meanwhile, which are no leak.
sub sockets {
    my ($pid) = @_;

    my @open = grep { (readlink || '') =~ /^socket:/ } glob "/proc/$pid/fd/*";

    return scalar @open;
}

sub begin_stream {
    my ($results) = @_;

    my $sock = $s->connect;
    my $token = $s->token;

    syswrite $sock, 'POST /ledger/ingest?results=' . ($results || 'all')
        . " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer $token\r\n"
        . "Content-Type: $type\r\nTransfer-Encoding: chunked\r\n\r\n";

    return ($sock, '');
}

sub chunk {
    my ($text) = @_;

    return sprintf "%x\r\n%s\r\n", length $text, $text;
}
