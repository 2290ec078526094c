#!/usr/bin/perl

# Nobody waits for who only waits: a reload and a QUIT with every kind of
# stream open, of clients that read, that do not, and that have half a line to
# say.

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonStream;

use Time::HiRes ();


my $slow_port = RonTest::free_port();

my $s = RonTest->new(workers => 2);
$s->{http} = <<"END";
ron_stream_buffer 4k; ron_ledger_stream_max 0;
server {
    listen 127.0.0.1:$slow_port sndbuf=4k;
    location /ledger/ { ron_ledger_api; }
}
END

$s->start or BAIL_OUT('no server');

# more roots than fit into a socket of a client that does not read

for my $n (1 .. 300) {
    $s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '1' },
             key => "k$n")->{status} == 200 or BAIL_OUT('no entries');
}


# a reload

my $st = waiting('reload');
my @old = $s->workers;
my $t = Time::HiRes::time();
ok($s->reload(wait => 4), 'reload: new workers, and no old one any more');
cmp_ok(Time::HiRes::time() - $t, '<', slow(4), 'soon');
ok(!(grep { RonTest::alive($_) } @old), 'they have left');
last_words('reload', $st);
unlike(log_since($st), qr/\[(?:warn|error|crit|alert|emerg)\]/,
       'reload: nobody was cut off with a complaint');


# a quit

$st = waiting('quit');
$t = Time::HiRes::time();
ok($s->quit(5), 'quit: everybody leaves');
cmp_ok(Time::HiRes::time() - $t, '<', slow(4), 'within the deadline of a drain + 1 s');
last_words('quit', $st);
like(log_since($st), qr/"aborted":0,"canceled":0,"leaked":0/,
     'quit: nothing was aborted, nothing leaked');

done_testing();


sub waiting {
    my ($when) = @_;

    my $token = $s->token;
    my %st = (
        log => length $s->log,
        roots => RonStream->new($s, '/ledger/roots/stream'),
        bus => RonStream->new($s, '/ledger/bus'),
        audit => RonStream->new($s, '/v1/audit/stream', token => $token),
        lines => RonStream->new($s, '/v1/audit/stream', token => $token,
                                Accept => 'application/x-ndjson'),
        deaf => RonStream->new({ port => $slow_port },
                               '/ledger/roots/stream?since=0',
                               rcvbuf => 2048),
        ingest => ingest(),
        silent => $s->connect,
    );

    is($st{$_}->status, 200, "$when: $_") for qw(roots bus audit lines deaf);
    ok(until_ok(10, sub {
        $s->metric('streams_open', 'service="ledger"') == 3
            && $s->metric('streams_open', 'service="wallet"') == 2
    }), "$when: five streams are open");

    # one that had an answer, and keeps its connection

    $s->get('/version', token => undef, sock => $st{silent});

    return \%st;
}

sub ingest {
    my $sock = $s->connect;
    my $line = '{"id":"e' . nonce16() . '","ts":1,"kind":"Mint","account":"x",'
               . '"amount":"1","nonce":"' . nonce16() . "\",\"v\":1}\n";
    my $text = $line . substr $line, 0, 20;

    syswrite $sock, "POST /ledger/ingest HTTP/1.1\r\nHost: a\r\n"
        . 'Authorization: Bearer ' . $s->token . "\r\n"
        . "Content-Type: application/x-ndjson\r\n"
        . "Transfer-Encoding: chunked\r\n\r\n"
        . sprintf "%x\r\n%s\r\n", length $text, $text;

    my $said = '';
    ok(until_ok(10, sub { said($sock, \$said); $said =~ /"accepted":1/ }),
       'an ingest with half a line');

    return [ $sock, $said ];
}

sub said {
    my ($sock, $said) = @_;

    return if !IO::Select->new($sock)->can_read(0.1);

    $$said = '' if !defined $$said;

    return !sysread $sock, $$said, 65536, length $$said;
}

sub last_words {
    my ($when, $st) = @_;

    for my $name (qw(roots bus audit)) {
        ok($st->{$name}->ended(5), "$when: $name ends as it should");
        like($st->{$name}->text, qr/retry: \d+\n: the server reloads\n\n\z/,
             "$when: $name is told to come back");
    }

    ok($st->{lines}->ended(5), "$when: lines end as they should");
    like($st->{lines}->text, qr/\{"event":"retry","retry_ms":\d+\}\n\z/,
         "$when: with a line");

    my ($sock, $text) = @{ $st->{ingest} };
    until_ok(5, sub { said($sock, \$text) });
    like($text, qr/"code":"DRAINING"[^\n]*\}\n\r\n0\r\n/,
         "$when: an ingest is told so, and ends");

    ok(until_ok(5, sub { said($st->{silent}, \my $nothing) }),
       "$when: an idle connection is closed");
    $st->{deaf}->close;
}

sub log_since {
    my ($st) = @_;

    return substr $s->log, $st->{log};
}
