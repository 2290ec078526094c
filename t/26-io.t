#!/usr/bin/perl

# Reading, writing and being idle have their times: a client that does not
# begin, does not go on, does not read, or does not come again is left, and
# who reads slowly but reads is not.  The times are NGINX's directives; the
# files that are shipped have those of the seeds.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use Socket qw(AF_INET SOCK_STREAM SOL_SOCKET SO_RCVBUF inet_aton
              pack_sockaddr_in);

my $slow_port = RonTest::free_port();
my $s = RonTest->new(workers => 1);
$s->{http} = <<"END";
client_header_timeout 1s; client_body_timeout 1s;
send_timeout 1s; keepalive_timeout 1s;
server {
    listen 127.0.0.1:$slow_port sndbuf=4k;
    location = /metrics { ron_metrics; }
}
END
$s->start or BAIL_OUT('no server');


# Until the server closes: how long that took, and what came.

sub closed {
    my ($sock, $limit) = @_;

    my $t = Time::HiRes::time();
    my $got = '';

    while ((my $left = $t + $limit - Time::HiRes::time()) > 0) {
        IO::Select->new($sock)->can_read($left) or last;
        my $n = sysread $sock, $got, 65536, length $got;
        return (Time::HiRes::time() - $t, $got) if !$n;
    }

    return (undef, $got);
}

sub timeouts {
    my ($service, $op) = @_;

    my ($v) = $s->get('/metrics')->{body}
        =~ /^io_timeouts_total\{service="$service",op="$op"\} (\d+)$/m;
    return $v;
}

# a client whose window is small

sub narrow {
    socket(my $sock, AF_INET, SOCK_STREAM, 0) or die "socket: $!";
    setsockopt($sock, SOL_SOCKET, SO_RCVBUF, 2048);
    connect($sock, pack_sockaddr_in($slow_port, inet_aton('127.0.0.1')))
        or die "connect: $!";
    return $sock;
}


# idle

my $sock = $s->connect;
$s->send_request($sock, 'GET', '/healthz', undef, keep => 1);
is(RonTest::read_response($sock)->{status}, 200, 'an answer');
my ($took) = closed($sock, 20);
ok(defined $took && $took > 0.9, 'then a second without a request: closed')
    or diag($took);

# reading

$sock = $s->connect;
syswrite $sock, "GET /healthz HTTP/1.1\r\nHost: loc";
($took) = closed($sock, 20);
ok(defined $took && $took > 0.9, 'half of a header: closed');

my $before = timeouts('wallet', 'read');
my $text = $s->request_text('POST', '/v1/issue', '{"to":"slow"}', key => 'b');
$sock = $s->connect;
syswrite $sock, substr $text, 0, length($text) - 3;
($took) = closed($sock, 20);
ok(defined $took && $took > 0.9, 'half of a body: closed');
ok(until_ok(10, sub { timeouts('wallet', 'read') == $before + 1 }),
   'and counted as reading');

# writing: the answer is longer than what lies between the two

my $request = $s->request_text('GET', '/metrics');
my $length = length $s->get('/metrics')->{body};
cmp_ok($length, '>', 65536, "$length bytes");

$before = timeouts('ledger', 'write');
$sock = narrow();
syswrite $sock, $request;
ok(until_ok(20, sub { timeouts('ledger', 'write') == $before + 1 }),
   'a client that does not read is left, and counted as writing');
my (undef, $got) = closed($sock, 20);
cmp_ok(length $got, '<', $length, 'it did not get all');

# slowly, for longer than the time, is not too slowly

$sock = narrow();
syswrite $sock, $request;
$got = '';
my $t = Time::HiRes::time();

for (;;) {
    Time::HiRes::sleep(0.05) if Time::HiRes::time() < $t + 2;
    IO::Select->new($sock)->can_read(20) or last;
    my $n = sysread $sock, $got, Time::HiRes::time() < $t + 2 ? 1024 : 65536,
        length $got;
    last if !$n;
}

my ($said) = $got =~ /\r\nContent-Length: (\d+)/i;
my ($body) = $got =~ /\r\n\r\n(.*)/s;
cmp_ok(Time::HiRes::time() - $t, '>', 2, 'one reads for two seconds');
ok(defined $said ? length $body == $said : $body =~ /\r\n0\r\n\r\n\z/,
   'and gets all of it') or diag(length $got);

$s->quit;


# the seeds' numbers, in what is shipped

for my $path ('conf/nginx.conf.in', 'conf/examples/ron.conf') {
    open my $f, '<', $path or die "$path: $!";
    my $conf = do { local $/; <$f> };

    for my $want ('client_header_timeout 5s', 'client_body_timeout 5s',
                  'send_timeout 5s', 'keepalive_timeout 60s')
    {
        my ($name, $value) = split / /, $want;
        my @all = $conf =~ /^\s*$name\s+(\w+);/mg;

        is("@all", $value, "$path: $want");
    }
}

done_testing();
