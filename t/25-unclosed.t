#!/usr/bin/perl

# What is released while work is under way only lets go of it, and leaves one
# line at debug level; what was closed leaves none.

use strict;
use warnings;

use lib 't/lib';
use RonTest;


my $s = RonTest->new(workers => 1, level => 'debug');
$s->start or BAIL_OUT('no server');

is($s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '1' },
            key => 'a')->{status}, 200, 'a request that was answered');

my @socks = map { stream() } 1 .. 3;
is(unclosed(), 0, 'nothing to say');

# clients that leave: their requests are released

close $_ for splice @socks, 0, 2;
ok(until_ok(5, sub { open_streams() == 1 }), 'two clients left');
is(unclosed(), 2, 'a line for each');

# one that the server ends is closed first

$s->reload;
ok(until_ok(5, sub { !defined readline($socks[0]) }), 'a reload ends it');
ok(until_ok(5, sub { open_streams() == 0 }), 'and it is closed');
is(unclosed(), 2, 'with nothing more to say');

done_testing();


sub stream {
    my $sock = $s->connect;

    $s->send_request($sock, 'GET', '/ledger/roots/stream', undef);
    BAIL_OUT('no stream') if !defined readline $sock;

    return $sock;
}


sub open_streams {
    my ($n) = $s->get('/metrics', token => undef)->{body}
              =~ /^streams_open\{[^}]*service="ledger"[^}]*\} (\d+)/m;

    return $n;
}


sub unclosed {
    return scalar(() = $s->log =~ /ron: a [\w ]+ was released and not closed/g);
}
