#!/usr/bin/perl

# The UNIX-socket listener: its mode, and who may connect to it beside having
# a capability.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use IO::Socket::UNIX ();
use POSIX ();
use Socket qw(SOCK_STREAM);
use Time::HiRes ();

plan(skip_all => 'only root can be other users') if $> != 0;


my ($nobody, $nogroup) = (getpwnam('nobody'))[2, 3];
my $s = RonTest->new;
my $dir = $s->dir;

mkdir "$dir/sock";
chmod 0755, "$dir/sock";

my %server = (
    ledger => '',
    uid    => 'ron_peers uid=1234 uid=0;',
    name   => 'ron_peers uid=daemon;',
    gid    => "ron_peers gid=$nogroup; ron_peers_mode 0666;",
    any    => 'ron_peers any; ron_peers_mode 0600;',
    real   => 'set_real_ip_from unix:; real_ip_header X-Real-IP;',
);

$s->{http} = join '', map { <<"END" } sort keys %server;
server {
    listen unix:$dir/sock/$_;
    $server{$_}
    location /ledger/ { ron_ledger_api; }
    location /v1/ { ron_wallet; }
    location = /healthz { ron_health live; }
}
END
$s->{http} .= <<"END";
server {
    listen unix:$dir/sock/plain;
    location / { return 200 plain; }
}
server {
    listen unix:$dir/sock/loc;
    location /ledger/ { ron_ledger_api; ron_peers uid=0; }
    location /v1/ { ron_wallet; ron_peers uid=1234; }
}
END

$s->start or BAIL_OUT('no server');

# One request as another user: its status, or what connect() said.
sub as {
    my ($uid, $gid, $name, %o) = @_;

    my $path = $o{path} || '/ledger/roots';

    pipe my $in, my $out or die "pipe: $!";
    my $pid = fork();

    if ($pid == 0) {
        POSIX::setgid($gid);
        $( = $) = "$gid $gid";
        POSIX::setuid($uid);
        POSIX::_exit(9) if $< != $uid || $> != $uid;

        my $sock = IO::Socket::UNIX->new(Peer => "$dir/sock/$name",
                                         Type => SOCK_STREAM, Timeout => 5);
        my $said = $sock ? '' : "$!";

        if ($sock) {
            $s->send_request($sock, 'GET', $path, undef, token => $o{token},
                             headers => $o{headers});
            my $r = RonTest::read_response($sock, 'GET', 5);
            $said = "$r->{status}\n$r->{body}";
        }

        syswrite $out, $said;
        POSIX::_exit(0);
    }

    close $out;
    my $said = join '', <$in>;
    waitpid $pid, 0;

    return wantarray ? split(/\n/, $said, 2) : (split /\n/, $said)[0];
}

sub denied {
    return $s->metric('uds_denied_total', 'service="ledger"') || 0;
}

sub mode {
    my ($name) = @_;

    my @st = stat "$dir/sock/$name";

    return sprintf '%04o %d', $st[2] & 07777, $st[4];
}


# the socket itself

is(mode('ledger'), "0660 $nobody", '0660 and of the worker user');
is(mode('gid'), "0666 $nobody", 'or as ron_peers_mode says');
is(mode('any'), "0600 $nobody", 'or so');
is(mode('plain'), '0666 0', 'a server without a ron service is left alone');

like(as(1234, 1234, 'ledger'), qr/Permission denied/,
     'who has no business there cannot connect');


# without a list: root and the worker user

is(as(0, 0, 'ledger'), 200, 'root');
is(as($nobody, $nogroup, 'ledger'), 200, 'the worker user');
is(denied(), 0, 'nobody was denied');

my ($status, $body) = as(1234, $nogroup, 'ledger');
is($status, 403, 'another user of the group can connect, and is refused');
is(json_get($body, 'code'), 'FORBIDDEN', 'as a problem');
is(json_get($body, 'reason'), 'policy_denied', 'that says why');
like(json_get($body, 'detail'), qr/ron_peers/, 'and what to change');
is(denied(), 1, 'counted');
like($s->log, qr/\[warn\].*process \d+ of uid 1234, gid $nogroup is not in/,
     'and in the log');

is(as(1234, $nogroup, 'ledger', path => '/v1/balance?account=a&asset=ron',
      token => $s->token), 403, 'a capability does not help');
is(as(0, 0, 'ledger', path => '/v1/balance?account=a&asset=ron'), 401,
   'and being on the list is no capability');
is(as(0, 0, 'ledger', path => '/v1/balance?account=a&asset=ron',
      token => $s->token), 200, 'both are needed');
is(as(1234, $nogroup, 'ledger', path => '/healthz'), 200,
   'what needs no capability needs no list');


# lists

is(as(1234, $nogroup, 'uid'), 200, 'uid: on the list');
is(as(0, 0, 'uid'), 200, 'uid: root, because it is on it');
is(as($nobody, $nogroup, 'uid'), 403, 'uid: the worker user is not');
is(as((getpwnam('daemon'))[2], $nogroup, 'name'), 200, 'a name');
is(as(0, 0, 'name'), 403, 'root has no right of its own');
is(as(4321, $nogroup, 'gid'), 200, 'gid: on the list');
is(as(4321, 4321, 'gid'), 403, 'gid: not on it');
is(as(1234, 1234, 'plain'), 200, 'no ron service, no list');

is(as(0, 0, 'any'), 200, 'any: root');
is(as($nobody, $nogroup, 'any'), 200, 'any: the owner');

is(as(0, 0, 'loc'), 200, 'in a location');
is(as(0, 0, 'loc', path => '/v1/balance?account=a&asset=ron',
      token => $s->token), 403, 'and another in another');

# an address that a header claims makes no TCP client of it

is(as(1234, $nogroup, 'real', headers => { 'X-Real-IP' => '127.0.0.1' }), 403,
   'with another address by its header: still refused');
is($s->get('/ledger/roots', token => undef)->{status}, 200,
   'a client of TCP has no uid, and is not asked for one');


# a reload

$s->{http} =~ s/ron_peers uid=1234 uid=0;/ron_peers uid=0; ron_peers_mode 0640;/;
ok($s->reload, 'reload');
is(as(0, 0, 'uid'), 200, 'the new list');
is(mode('uid'), "0640 $nobody", 'and the new mode');
is(mode('ledger'), "0660 $nobody", 'others are what they were');
is(as($nobody, $nogroup, 'uid'), 403, 'who is not on it');
$s->quit;


# configuration

for my $bad ([ 'ron_peers everybody;', 'invalid parameter "everybody"' ],
             [ 'ron_peers uid=nobody-has-this-name;',
               'there is no user "nobody-has-this-name"' ],
             [ 'ron_peers gid=;', 'there is no group ""' ],
             [ 'ron_peers uid=4294967295;', 'there is no user "4294967295"' ],
             [ 'ron_peers any; ron_peers any;', 'is duplicate' ],
             [ 'ron_peers_mode 660x;', 'invalid mode "660x"' ],
             [ 'ron_peers_mode 0066;', 'invalid mode "0066"' ])
{
    my ($code, $said) = RonTest->new(http => $bad->[0])->test_config;
    isnt($code, 0, "$bad->[0] is refused");
    like($said, qr/\Q$bad->[1]\E/, 'with what is wrong');
}

done_testing();
