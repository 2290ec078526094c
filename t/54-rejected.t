#!/usr/bin/perl

# A reload that fails late, when zones have been adopted and a listener cannot
# be had, and nginx -t beside it: who serves goes on, and nothing was written.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use IO::Socket::INET ();
use POSIX ();


my $s = RonTest->new(workers => 2, http => 'ron_zone ron 16m;');
my $d = $s->dir;
$s->start or BAIL_OUT('no server');

my $taken = RonTest::free_port();
my $other = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1',
                                  LocalPort => $taken, Proto => 'tcp')
    or BAIL_OUT("port $taken: $!");

# how a configuration is wrong, and what NGINX says: the first before zones
# are adopted, the others after

my $log = "error_log $d/none/x.log;";
my $path = "server { listen unix:$d/none/x.sock; }";
my $port = "server { listen 127.0.0.1:$taken; }";
my %says = ($log => qr{open\(\) "\Q$d\E/none/x\.log" failed},
            $path => qr{bind\(\) to unix:\Q$d\E/none/x\.sock failed},
            $port => qr{still could not bind\(\)});

$s->allow(qr{/none/x}, qr/bind\(\) to 127\.0\.0\.1:$taken failed/,
          qr/still could not bind/);

# Sends HUP, and waits until it has failed.
sub rejected {
    my ($what) = @_;

    my $before = () = $s->log =~ /$says{$what}/g;
    my $http = $s->{http};

    $s->{http} .= $what;
    $s->write_conf;
    $s->{http} = $http;
    kill 'HUP', $s->{pid};

    return until_ok(20, sub {
        my $now = () = $s->log =~ /$says{$what}/g;
        return $now > $before;
    });
}

sub pay {
    my ($from, $nonce, %o) = @_;

    return $s->post('/v1/transfer', { from => $from, to => 'sink',
        asset => 'ron', amount_minor => '1', nonce => $nonce },
        key => "$from-$nonce", %o);
}

sub balance {
    my $r = $s->get("/v1/balance?account=$_[0]&asset=ron");
    return json_get($r->{body}, 'amount_minor');
}

# What a later answer has to count on from: 0 in a zone that was made anew.
sub counted {
    return map { $s->metric(@$_) }
           [ 'ledger_commits_total' ],
           [ 'wallet_ops_total', 'op="issue"' ],
           [ 'tasks_spawned_total', 'service="ledger"', 'kind="sequencer"' ],
           [ 'service_restarts_total', 'task="helper"' ];
}

for my $account (qw(quiet busy)) {
    my $r = $s->post('/v1/issue', { to => $account, asset => 'ron',
        amount_minor => '100000' }, key => "fund-$account");
    is($r->{status}, 200, "$account has money") or diag($r->{body});
}

is(pay('quiet', $_)->{status}, 200, "payment $_") for 1 .. 3;


# nobody but the master can write now, and it does not

my @children = $s->children;
my @workers = $s->workers;
my $helper = $s->helper;
my @counted;

is(scalar @children, 3, 'two workers and a helper');
ok(until_ok(10, sub { @counted = counted(); $counted[0] == 5 }),
   'five commits are counted');
ok(freeze(@children), 'they are stopped');

my $zones = zones($s->{pid});
my $files = files();

SKIP: {
    skip 'nobody may read the memory of another process', 1 if !$zones;
    cmp_ok(scalar keys %$zones, '>=', 2, 'the zones are there to be read');
}

for my $what ($log, $path) {
    ok(rejected($what), "refused: $what");

    SKIP: {
        skip 'nobody may read the memory of another process', 1 if !$zones;
        ok(until_ok(5, sub { !differ($zones, zones($s->{pid})) }),
           'no zone was written or left')
            or diag(differ($zones, zones($s->{pid})));
    }

    is(files(), $files, 'nor was the ledger');
    is("@{[ $s->children ]}", "@children", 'and nobody was started');
}

my ($code, $said) = $s->nginx('-t');
isnt($code, 0, 'nginx -t refuses the last one, too');
($code, $said) = $s->test_config;
is($code, 0, 'and accepts what runs') or diag($said);
is(files(), $files, 'and has touched nothing of the ledger');
ok(-S "$d/ledger/ledger.sock", 'its socket is there');

kill 'CONT', @children;
ok($s->wait_ready, 'they go on');

is_deeply([ counted() ], \@counted, 'what was counted goes on as well');
is(balance('quiet'), 99997, 'the balance is the same');
is(pay('quiet', 3)->{headers}{'idempotent-replayed'}, 'true',
   'the last payment is remembered');
is(pay('quiet', 3, key => 'again')->{status}, 409, 'and so is its nonce');
is(pay('quiet', 4)->{status}, 200, 'the next one is taken');


# beside payments: a port that somebody has is tried for two seconds

my $client = fork // die "fork: $!";

if ($client == 0) {
    my ($n, $bad, $sock) = (0, '');

    until ($bad || -e "$d/stop") {
        $sock ||= $s->connect;
        my $r = pay('busy', $n + 1, sock => $sock);
        undef $sock if ($r->{headers}{connection} || '') eq 'close';
        if ($r->{status} == 200) { $n++ } else { $bad = $r->{body} || 'none' }
    }

    $s->write_file('paid', "$n $bad");
    POSIX::_exit(0);
}

ok(until_ok(10, sub { (balance('busy') // 0) < 100000 }), 'somebody pays');
ok(rejected($port), "refused: $port");

my $then = balance('busy');
ok(until_ok(10, sub { balance('busy') < $then }), 'and goes on paying');
$s->write_file('stop', '');
waitpid $client, 0;

my ($paid, $bad) = split / /, RonTest::slurp("$d/paid"), 2;
is($bad, '', "$paid payments, none was refused or lost");
is(balance('busy'), 100000 - $paid, 'each happened once');
is("@{[ $s->workers ]}", "@workers", 'by the same workers');
is($s->helper, $helper, 'and the same helper');
is("@{[ $s->children ]}", "@children", 'there is no second one');
is(scalar(() = $s->log =~ /ledger is running/g), 1, 'nor has there been');


ok($s->reload, 'a good reload is taken');
ok(until_ok(10, sub { 2 == (() = $s->log =~ /ledger is running/g) }),
   'and its helper has the ledger');
is(balance('busy'), 100000 - $paid, 'and all that was paid is there');


# The configuration that was not taken is no newer one: told to quit, the
# helper has no successor and stays until the last worker has its answer.

ok(rejected($path), 'one more that is refused');

my $sock = $s->connect;
my $text = $s->request_text('POST', '/v1/transfer', { from => 'quiet',
    to => 'sink', asset => 'ron', amount_minor => '1', nonce => 5 },
    key => 'half');

syswrite $sock, substr $text, 0, -1;
ok(until_ok(10, sub {
    return ($s->metric('wallet_inflight', 'endpoint="transfer"') // 0) == 1;
}), 'half a request');
kill 'QUIT', $s->{pid};
ok(until_ok(10, sub { $s->log =~ /ron: waiting for \d workers/ }),
   'told to quit, the helper waits for workers');
syswrite $sock, substr $text, -1;
is(RonTest::read_response($sock)->{status}, 200,
   'and the rest of it is answered');
close $sock;
$s->quit;

done_testing();


# Every region that the master shares with others, by its address: its bytes;
# undef where nobody may look.
sub zones {
    my ($pid) = @_;

    no warnings 'portable';

    my %zone;
    open my $mem, '<:raw', "/proc/$pid/mem" or return undef;

    for (RonTest::slurp("/proc/$pid/maps")
         =~ /^([0-9a-f]+-[0-9a-f]+) rw-s /mg)
    {
        my ($from, $to) = map { hex } split /-/;
        sysseek $mem, $from, 0 or return undef;
        my $n = sysread $mem, $zone{$_}, $to - $from;
        return undef if ($n // 0) != $to - $from;
    }

    return \%zone;
}

sub differ {
    my ($x, $y) = @_;

    my %all = (%$x, %$y);

    return grep { ($x->{$_} // '') ne ($y->{$_} // '') } sort keys %all;
}

# Names, inodes, modes, owners, sizes and times.
sub files {
    return join "\n", map { join ' ', $_, (lstat)[1 .. 5, 7, 9, 10] }
                      "$d/ledger", sort(glob "$d/ledger/*"),
                      glob "$d/ledger/*/*";
}
