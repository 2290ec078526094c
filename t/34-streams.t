#!/usr/bin/perl

# GET /ledger/roots/stream: each root once and in order, whatever happens to
# the client, the worker, the helper and the server.

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonStream;

use IO::Socket::INET ();
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Time::HiRes ();


my $slow_port = RonTest::free_port();

my $s = RonTest->new(workers => 2);
$s->{main} = 'ron_batch 1;';
$s->{http} = <<"END";
ron_streams 6; ron_stream_buffer 4k; ron_stream_ping 1s;
server {
    listen 127.0.0.1:$slow_port sndbuf=4k;
    location /ledger/ { ron_ledger_api; }
}
END

$s->start or BAIL_OUT('no server');

my $keys = 0;

sub issue {
    my ($n) = @_;

    for (1 .. $n || 1) {
        my $r = $s->post('/v1/issue', { to => 'a', asset => 'ron',
            amount_minor => '1' }, key => 'k' . ++$keys);
        $r->{status} == 200 or BAIL_OUT("no issue: $r->{body}");
    }
}

# many commits, from several connections at once
sub storm {
    my ($n) = @_;

    my @socks = map { $s->connect } 1 .. 16;
    my @busy = (0) x @socks;
    my ($sent, $got, $ok) = (0, 0, 0);

    while ($got < $n) {
        for my $i (0 .. $#socks) {
            if (!$busy[$i] && $sent < $n) {
                $s->send_request($socks[$i], 'POST', '/v1/issue', { to => 'a',
                    asset => 'ron', amount_minor => '1' },
                    key => 'k' . ++$keys, sock => 1);
                $busy[$i] = 1;
                $sent++;
            }
        }
        for my $i (0 .. $#socks) {
            next unless $busy[$i];
            my $r = RonTest::read_response($socks[$i], 'POST', 10);
            $ok += $r->{status} == 200;
            $busy[$i] = 0;
            $got++;
        }
    }

    return $ok;
}

# what /ledger/roots says, seq => root
sub roots {
    my ($since) = @_;

    my (%root, $n);
    $since ||= 0;

    do {
        my $body = $s->get("/ledger/roots?since=$since&limit=1000",
                           token => undef)->{body};
        $n = 0;
        while ($body =~ /\{"seq":(\d+),"root":"([0-9a-f]{64})","ts":(\d+)/g) {
            $root{$1} = $2;
            $since = $1;
            $n++;
        }
    } while ($n);

    return \%root;
}

sub same_roots {
    my ($events, $from, $to, $name) = @_;

    my $root = roots();
    my @plain = grep { !defined $_->{event} } @$events;
    my @ids = map { $_->{id} } @plain;

    is("@ids", join(' ', $from .. $to), "$name: each once and in order");
    is(scalar(grep { json_get($_->{data}, 'root') ne $root->{$_->{id}} }
              @plain), 0, "$name: with the roots of /ledger/roots");
}


# an empty ledger, then live

my $st = RonStream->new($s, '/ledger/roots/stream');
is($st->status, 200, 'a stream, and no token needed');
is($st->header('content-type'), 'text/event-stream', 'of events');
is($st->header('cache-control'), 'no-store', 'that nobody keeps');
is($st->header('x-accel-buffering'), 'no', 'nor collects');
ok(until_ok(5, sub { $s->metric('streams_open{service="ledger"}') == 1 }),
   'it is counted');

issue(1);
my @e = $st->events(1);
is($e[0]{id}, 1, 'the first root of the ledger comes');
is(json_get($e[0]{data}, 'seq'), 1, 'with its seq');
like($e[0]{data}, qr/^\{"seq":1,"root":"[0-9a-f]{64}","ts":\d+\}$/,
     'as in /ledger/roots');

issue(20);
push @e, $st->events(20);
same_roots(\@e, 1, 21, 'live');


# where to begin

my $other = RonStream->new($s, '/ledger/roots/stream');
is(($other->events(1))[0]{id}, 21, 'without a wish: the newest root first');
$other->close;

for my $how ([ 'Last-Event-ID', '', { 'Last-Event-ID' => 5 } ],
             [ 'since', '?since=5', {} ],
             [ 'Last-Event-ID over since', '?since=1',
               { 'Last-Event-ID' => 5 } ])
{
    my ($name, $args, $headers) = @$how;
    my $x = RonStream->new($s, "/ledger/roots/stream$args", %$headers);
    same_roots([ $x->events(16) ], 6, 21, $name);
    $x->close;
}

$other = RonStream->new($s, '/ledger/roots/stream?since=0');
same_roots([ $other->events(21) ], 1, 21, 'from the beginning, over the edge '
           . 'of a buffer');
$other->close;

for my $bad ('x', '-1', '1.5', '18446744073709551616') {
    my $r = $s->get('/ledger/roots/stream', token => undef,
                    headers => { 'Last-Event-ID' => $bad });
    is($r->{status}, 400, "Last-Event-ID $bad is refused");
}

$other = RonStream->new($s, '/ledger/roots/stream?since=1000000');
@e = $other->events(2);
is($e[0]{event}, 'reset', 'ahead of the ledger: it is told so');
is(json_get($e[0]{data}, 'seq'), 21, 'and where the ledger is');
is($e[1]{id}, 21, 'and goes on from there');
$other->close;

is($s->post('/ledger/roots/stream', '{}')->{status}, 405, 'no POST');
is($s->http('HEAD', '/ledger/roots/stream', undef, token => undef)->{status},
   200, 'HEAD ends');


# a ping

my $t = Time::HiRes::time();
ok($st->comment(5), 'a comment when nothing happens');
cmp_ok(Time::HiRes::time() - $t, '<', slow(4), 'in time');


# bounds

my @many = map { RonStream->new($s, '/ledger/roots/stream') } 1 .. 12;
my $full = grep { $_->status == 429 } @many;
cmp_ok($full, '>', 0, 'a worker has so many streams and no more');
ok(!(grep { $_->status != 200 && $_->status != 429 } @many), 'or 429');
is((grep { $_->status == 429 } @many)[0]->header('retry-after'), 1,
   'which says when to come back');
$_->close for @many;
ok(until_ok(5, sub { $s->metric('streams_open{service="ledger"}') == 1 }),
   'who goes away is not counted any more');
cmp_ok(scalar(grep { $_->status == 200 } @many), '<=', 12, 'bounded');


# a client that does not read falls behind, is told, and misses nothing

my $slow = RonStream->new({ port => $slow_port }, '/ledger/roots/stream',
                          rcvbuf => 2048);
is(($slow->events(1))[0]{id}, 21, 'a slow client');

my $begin = Time::HiRes::time();
is(storm(1400), 1400, '1400 commits');
my $head = 1421;

my @live = $st->events(1400, 30);
same_roots(\@live, 22, $head, 'one that reads has them all');

@e = $slow->events(1401, 30);
my ($lagged) = grep { ($_->{event} || '') eq 'lagged' } @e;
ok($lagged, 'one that does not is told that it was too slow');
cmp_ok(json_get($lagged->{data}, 'lost'), '>', 0, 'by how much');
same_roots(\@e, 22, $head, 'and nothing is left out');
cmp_ok($s->metric('bus_lagged_total{service="ledger",bus="root_pub"}'), '>=',
       json_get($lagged->{data}, 'lost'), 'it is counted');
is($s->metric('drops_total{service="ledger",q="root_pub"}'),
   $s->metric('bus_lagged_total{service="ledger",bus="root_pub"}'),
   'as dropped too');
like($s->log, qr/\[warn\].*a stream of roots is slow: \d+ commits/,
     'and warned of');
$slow->close;

is($s->metric('roots_published_total{service="ledger"}'), $head,
   'roots_published_total is what was published');


# the helper dies: the stream does not

ok($s->kill_helper, 'the helper is killed');
$keys++;
ok(until_ok(20, sub {
    $s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '1' },
             key => "k$keys")->{status} == 200 }), 'and replaced');
issue(2);
same_roots([ $st->events(3) ], $head + 1, $head + 3, 'after the helper');
$head += 3;


# a reload: told to come back, and not waited for

my $stuck = RonStream->new({ port => $slow_port },
                           '/ledger/roots/stream?since=0', rcvbuf => 2048);
Time::HiRes::sleep(0.3);
my $two = RonStream->new($s, '/ledger/roots/stream');
$two->events(1);

$t = Time::HiRes::time();
ok($s->reload, 'reload');
cmp_ok(Time::HiRes::time() - $t, '<', slow(4), 'does not wait for streams');

for my $x ($st, $two) {
    ok($x->ended(5), 'the stream ends');
    like($x->text, qr/retry: \d+\n: the server reloads\n\n\z/,
         'with a retry as the last word');
}

$stuck->close;

issue(2);
$st = RonStream->new($s, '/ledger/roots/stream', 'Last-Event-ID' => $head);
same_roots([ $st->events(2) ], $head + 1, $head + 2,
           'whoever comes back has missed nothing');
$head += 2;


# a drain: the final root is the last event

my $live = RonStream->new($s, '/ledger/roots/stream?since=' . ($head - 1));
is($s->post('/ledger/admin/drain', undef)->{status}, 200, 'drain');
my $final = (values %{ roots($head - 1) })[0];

for my $x ($st, $live) {
    ok($x->ended(5), 'the stream ends');
    my $last = ($x->all)[-1];
    is($last->{event}, 'final', 'its last event is final');
    is($last->{id}, $head, 'the last seq');
    is(json_get($last->{data}, 'root'), $final, 'and the final root');
}

my $late = RonStream->new($s, '/ledger/roots/stream?since=' . ($head - 2));
ok($late->ended(5), 'one that comes later ends too');
is(join(' ', map { ($_->{event} || 'root') . $_->{id} } $late->all),
   'root' . ($head - 1) . " root$head final$head", 'and has it all');

$s->quit;
like($s->log, qr/"leaked":0/, 'nothing leaked');


# a ledger in memory

my $m = RonTest->new(ledger => 'memory:64m');
$m->start or BAIL_OUT('no server');
$st = RonStream->new($m, '/ledger/roots/stream');
$m->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '1' },
         key => "m$_") for 1 .. 3;
is(join(' ', map { $_->{id} } $st->events(3)), '1 2 3', 'in memory: live');
$other = RonStream->new($m, '/ledger/roots/stream?since=1');
is(join(' ', map { $_->{id} } $other->events(2)), '2 3', 'and read again');
$m->quit;


# configuration

# a chunk of a stream has 64 KiB

my ($fits) = RonTest->new(http => 'ron_stream_buffer 65536;')->test_config;
is($fits, 0, 'a buffer of 64 KiB');

for my $bad ([ 'ron_stream_buffer 1k;', '"ron_stream_buffer" must be from 4k '
                                        . 'to 64k' ],
             [ 'ron_stream_buffer 65537;', '"ron_stream_buffer" must be from '
                                           . '4k to 64k' ],
             [ 'ron_stream_ping 2h;', '"ron_stream_ping" must be from 1s to '
                                      . '1h' ],
             [ 'ron_streams 65537;', 'must be between 0 and 65536' ])
{
    my ($code, $said) = RonTest->new(http => $bad->[0])->test_config;
    isnt($code, 0, "$bad->[0] is refused");
    like($said, qr/\Q$bad->[1]\E/, 'with what is right');
}

done_testing();
