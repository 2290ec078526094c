#!/usr/bin/perl

# More processes than the zone has slots: a reload of many workers has those of
# before and after side by side.  Who comes too late has its slot later.

use strict;
use warnings;

use lib 't/lib';
use RonTest;


my $slots = 128;
my $many = $slots / 2 + 6;

my $s = RonTest->new(workers => $many, connections => 64);

# each worker has a socket of its own: the kernel spreads connections

my $port = RonTest::free_port();
$s->{http} = "server { listen 127.0.0.1:$port reuseport;
              location /v1/ { ron_wallet; } }";

$s->start or BAIL_OUT('no server');
unlike($s->log, qr/slots of zone/, "$many workers have their slots");

ok($s->reload(wait => 60), 'a reload');
ok($s->wait_ready(20), 'ready');

my %late = map { $_ => 1 } $s->log =~ /(\d+)#\d+: ron: none of the $slots slots/g;
my $late = keys %late;
cmp_ok($late, '>', 0, "$late processes came too late");
ok(until_ok(5, sub {
    delete @late{$s->log =~ /(\d+)#\d+: ron: this process has a slot/g};
    return !%late;
}), 'each has its slot soon') or diag("none: @{[sort keys %late]}");

my %status;
my $n = 0;

for (1 .. 4 * $many) {
    local $s->{port} = $port;
    $n++;
    $status{$s->post('/v1/issue', { to => 'a', asset => 'ron',
        amount_minor => '1' }, key => "k$n")->{status}}++;
}

is(join(' ', sort keys %status), '200', 'no worker refuses a write')
    or diag(explain(\%status));

ok(until_ok(5, sub { $s->metric('inflight_requests', '/v1/issue') == 0 }),
   'what they count is right');

$s->quit(60);

done_testing();
