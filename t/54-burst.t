#!/usr/bin/perl

# Answers that the helper gives together are made first and written then
# (docs/decisions/0014): every one arrives, whoever else is in the batch, over
# TLS and HTTP/2 too, and connections go on.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

my $tls = RonTest::free_port();
my $s = RonTest->new(workers => 1, main => 'ron_commit_delay 60ms;',
    config => "listen 127.0.0.1:$tls ssl http2;"
              . ' ssl_certificate cert; ssl_certificate_key key;');

system('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
       'ec_paramgen_curve:prime256v1', '-nodes', '-days', 2, '-subj',
       '/CN=localhost', '-keyout', "$s->{dir}/key", '-out', "$s->{dir}/cert",
       '-batch') == 0
    or die 'openssl makes no certificate';

$s->start or BAIL_OUT('no server');

my $n = 0;
my $token = $s->token;

sub request {
    my ($path, $body) = @_;

    my $key = RonSecrets::key('burst' . ++$n);

    return "POST $path HTTP/1.1\r\nHost: localhost\r\n"
           . "Authorization: Bearer $token\r\nIdempotency-Key: $key\r\n"
           . "Content-Type: application/json\r\n"
           . 'Content-Length: ' . length($body) . "\r\n\r\n$body";
}

sub issue {
    my ($to, $query) = @_;

    return request('/v1/issue' . ($query || ''), '{"to":"' . $to
                   . '","asset":"ron","amount_minor":"5"}');
}

# Answers of a connection, so many: [status, body].
sub answers {
    my ($sock, $want) = @_;

    my ($in, @got) = ('');
    my $end = time + 10;

    while (@got < $want && time < $end) {
        local $SIG{ALRM} = sub { die "nothing\n" };
        my $k = eval { alarm 10; my $k = sysread $sock, $in, 65536, length $in;
                       alarm 0; $k };
        last if !$k;

        while ($in =~ m{\AHTTP/1\.1 (\d+) .*?\r\n\r\n}s) {
            my ($code, $head) = ($1, $&);
            my ($len) = $head =~ /^Content-Length: (\d+)/mi;
            $len = 0 if $code == 304;
            last if length $in < length($head) + ($len || 0);
            push @got, [ $code, substr $in, length $head, $len || 0 ];
            substr $in, 0, length($head) + ($len || 0), '';
        }
    }

    return @got;
}

sub first { (answers($_[0], 1), undef)[0] }

sub names {
    my ($answer, $account) = @_;

    return $answer && $answer->[0] == 200
           && $answer->[1] =~ /"to":"\Q$account\E"/;
}


# Payments by curl, all at once: its output is there when it is closed.
sub curl {
    my ($name, $option, $wanted) = @_;

    my $conf = join "next\n", map {
        my $key = RonSecrets::key('burst' . ++$n);
        "url = \"https://127.0.0.1:$tls/v1/issue\"\n$option\ninsecure\nsilent\n"
        . "header = \"Authorization: Bearer $token\"\n"
        . "header = \"Idempotency-Key: $key\"\n"
        . "header = \"Content-Type: application/json\"\n"
        . "data = \"{\\\"to\\\":\\\"$name$_\\\",\\\"asset\\\":\\\"ron\\\","
        . "\\\"amount_minor\\\":\\\"5\\\"}\"\n"
        . "write-out = \"%{http_code} %{http_version}\\n\"\n"
    } 1 .. $wanted;
    my $file = $s->write_file("curl-$name", $conf);

    open my $f, '-|', "curl --parallel --parallel-immediate -K '$file' 2>&1"
        or die "curl: $!";

    return $f;
}

sub curled {
    my ($f, $name, $version, $wanted) = @_;

    my $said = join '', <$f>;
    my $paid = () = $said =~ /"to":"$name\d+"/g;
    my $good = () = $said =~ /^200 \Q$version\E$/mg;

    return "$paid $good" eq "$wanted $wanted" ? 1 : diag($said) && 0;
}


# A batch of one holds the committer up, and what follows is one batch.

my @plain = map { $s->connect } 1 .. 30;
my $gone = $s->connect;
my $many = $s->connect;
my $proven = $s->connect;
my $refused = $s->connect;

for my $round (1 .. 4) {
    my $first = $s->connect;
    syswrite $first, issue('first');
    select undef, undef, undef, 0.02;

    syswrite $gone, issue('gone') if $gone;
    syswrite $plain[$_], issue("plain$_") for 0 .. $#plain;
    my $tls1 = curl('secure', 'http1.1', 3);
    my $tls2 = curl('streams', 'http2', 8);
    syswrite $many, issue('many1') . issue('many2') . issue('many3');
    syswrite $proven, issue('proven', '?proof=1');
    syswrite $refused, request('/v1/burn', '{"from":"nobody","asset":"ron",'
                               . '"amount_minor":"5","nonce":' . $n . '}');
    close $gone if $gone;
    undef $gone;

    ok(names(first($first), 'first'), "round $round: the first");
    is_deeply([ grep { !names(first($plain[$_]), "plain$_") }
                     0 .. $#plain ], [], 'everyone of the batch');
    ok(curled($tls1, 'secure', '1.1', 3), 'over TLS');
    ok(curled($tls2, 'streams', '2', 8), 'eight streams of HTTP/2');

    my @three = answers($many, 3);
    is_deeply([ map { names($three[$_ - 1], "many$_") ? 1 : 0 } 1 .. 3 ],
              [ 1, 1, 1 ], 'three of one connection, in their order');

    my $proof = first($proven);
    ok(names($proof, 'proven') && $proof->[1] =~ /"proof":\{"entry"/,
       'one that waits for its proof');
    is((first($refused) || [ 'nothing' ])->[0], 409, 'and a refusal');
}


# What a thread reads leaves together as well.

for my $sock (@plain) {
    syswrite $sock, "GET /ledger/proof/inclusion?seq=1 HTTP/1.1\r\n"
                    . "Host: localhost\r\nAuthorization: Bearer $token\r\n\r\n";
}

is_deeply([ grep { my $a = first($plain[$_]);
                   !$a || $a->[0] != 200 || $a->[1] !~ /"path":/ }
                 0 .. $#plain ], [], 'thirty proofs at once');

close $_ for @plain, $many, $proven, $refused;

# the one whose client had gone was done all the same

my ($money) = $s->get('/v1/balance?account=gone&asset=ron')->{body}
    =~ /"amount_minor":"(\d+)"/;
is($money, 5, 'and the one whose client had gone');

ok($s->quit, 'it ends');


# More proofs than threads have room for: the payment is made, and says so.

$s = RonTest->new(workers => 1, main => 'ron_commit_delay 60ms;'
                                        . ' thread_pool default threads=1'
                                        . ' max_queue=1;');
$s->start or BAIL_OUT('no server');
$token = $s->token;

my $first = $s->connect;
syswrite $first, issue('first');
select undef, undef, undef, 0.02;

my @crowd = map { $s->connect } 1 .. 40;
syswrite $crowd[$_], issue("crowd$_", '?proof=1') for 0 .. $#crowd;

my @got = map { first($crowd[$_]) } 0 .. $#crowd;

is_deeply([ grep { !names($got[$_], "crowd$_") } 0 .. $#got ], [],
          'nobody is refused whose payment was made');
cmp_ok(scalar(grep { $_ && $_->[1] !~ /"proof":/ } @got), '>', 0,
       'some have their receipt without a proof');

ok($s->quit, 'it ends');
done_testing();
