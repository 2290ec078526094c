#!/usr/bin/perl

# The file of a UNIX listener outlives a master that is killed.  It is in
# nobody's way; one that somebody answers on, or that is no socket, is left
# alone.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use File::Temp ();
use IO::Socket::UNIX ();


my $s = RonTest->new(workers => 1);
my ($path, $plain) = map { $s->dir . "/$_.sock" } qw(listen plain);

$s->{http} = on($path);
$s->start or BAIL_OUT('no server');
ok(answers($path), 'somebody answers');

ok($s->kill_all, 'all are killed');
ok(-S $path, 'a listener is left');
ok(!answers($path), 'and nobody answers');

my ($code, $said) = $s->test_config;
is($code, 0, 'nginx -t accepts the configuration') or diag($said);
ok(-S $path, 'and touches nothing');

ok($s->start, 'it is no reason not to start');
like($s->log, qr/"\Q$path\E" was left by a server that died, nobody/,
     'it is said');
ok(answers($path), 'somebody answers there again');


# what is alive stays

my $was = (stat $path)[1];
($code) = $s->test_config;
is($code, 0, 'nginx -t beside it');
ok($s->reload, 'a reload');
is((stat $path)[1], $was, 'both leave it where it is');

my $other = RonTest->new(workers => 1, http => on($path));
isnt(start($other), 0, 'a second server on it is refused');
is((stat $path)[1], $was, 'and leaves it, too');
ok(answers($path), 'the first one still answers');
$s->quit;


# and what is no socket

open my $f, '>', $plain or die "$plain: $!";
close $f;

$other = RonTest->new(workers => 1, http => on($plain));
isnt(start($other), 0, 'a file in its place is refused');
ok(-f $plain, 'and stays');

# The socket of workers and helper: as long as it may be, and one more.

{
    my $dir = File::Temp::tempdir('/tmp/ron-sock-XXXXXX', CLEANUP => 1);
    my $longest = "$dir/" . 's' x (95 - length "$dir/");
    chmod 0777, $dir;

    my $t = RonTest->new(workers => 1, main => "ron_socket ${longest}x;");
    ($code, $said) = $t->test_config;
    isnt($code, 0, 'a path of 96 bytes is refused');
    like($said, qr/too long, at most 95 bytes/, 'with what is possible');
    $t->allow(qr/is too long/);

    $t->{main} = "ron_socket $longest;";
    ok($t->start, 'a server on the longest path');
    is($t->post('/v1/issue', { to => 'a', asset => 'ron',
                               amount_minor => '5' }, key => 'k')->{status},
       200, 'whose helper is there');
    ok(-S $longest, 'on that path');
    $t->quit;
}


done_testing();


sub on {
    my ($name) = @_;

    return "server { listen unix:$name; location /ledger/ { ron_ledger_api; } }";
}

sub start {
    my ($server) = @_;

    $server->write_conf;

    return ($server->nginx())[0];
}

sub answers {
    my ($name) = @_;

    my $sock = IO::Socket::UNIX->new(Peer => $name, Type => IO::Socket::SOCK_STREAM())
        or return 0;

    $s->send_request($sock, 'GET', '/ledger/roots', undef, token => undef);

    return RonTest::read_response($sock, 'GET')->{status} == 200;
}
