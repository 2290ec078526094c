#!/usr/bin/perl

# What was answered once is answered again to the byte, whatever happened in
# between: every operation, proofs and batches that were done in part too;
# after a reload, a killed worker, a killed helper, a quit, power lost by
# everybody, and a binary upgrade.

use strict;
use warnings;

use lib 't/lib';

# USR2 runs what the master was started as, which must be a whole path

BEGIN {
    ($ENV{NGINX}) = grep { -x } $ENV{NGINX} || (),
        map { "$_/nginx" } split(/:/, $ENV{PATH}), '/usr/sbin', '/sbin';
}

use RonTest;


my $s = RonTest->new(workers => 2);
$s->start or BAIL_OUT('no server');

my @done;

sub first {
    my ($path, $body, $status) = @_;

    my $key = 'first-' . @done;
    my $r = $s->post("/v1/$path", $body, key => $key);

    is($r->{status}, $status || 200, $path) or diag($r->{body});
    ok(!exists $r->{headers}{'idempotent-replayed'}, 'for the first time');
    push @done, [ $path, $body, $key, $r ];

    return json_get($r->{body}, 'txid');
}

my %m = (asset => 'ron', amount_minor => '5');
my %from = (from => 'alice', %m);

first('issue', { to => 'alice', %m, amount_minor => '100', memo => 'm' });
first('transfer', { %from, to => 'bob', nonce => 1 });
first('burn', { %from, nonce => 2 });
my $hold = first('hold', { %from, to => 'shop', nonce => 3 });
first('capture', { hold => $hold, amount_minor => '2' });
first('release', { hold => $hold });
first('transfer?proof=1', { %from, to => 'bob', nonce => 4 });
first('batch', { ops => [ { op => 'transfer', %from, to => 'bob',
                            nonce => 5 },
                          { op => 'burn', %from, nonce => 6 } ] });
first('batch', { ops => [ { op => 'transfer', %from, to => 'bob',
                            nonce => 7 },
                          { op => 'burn', %from, amount_minor => '999',
                            nonce => 8 } ] }, 207);

# A proof is of the head that there is when it is asked for: the receipt in
# front of it is what stays.
sub part {
    my ($path, $body) = @_;

    $body =~ s/,"proof":.*//s if $path =~ /proof/;

    return $body;
}

sub again {
    my ($what) = @_;

    my @other;

    for my $done (@done) {
        my ($path, $body, $key, $was) = @$done;
        my $r;

        # a connection may be closed by what has just happened
        until_ok(10, sub {
            $r = eval { $s->post("/v1/$path", $body, key => $key) };
            return $r && $r->{status} && $r->{status} != 503;
        });

        push @other, "$path: $r->{status} $r->{body}"
            if $r->{status} != $was->{status}
               || part($path, $r->{body}) ne part($path, $was->{body})
               || ($r->{headers}{'idempotent-replayed'} || '') ne 'true';
    }

    is("@other", '', "$what: " . @done . ' answers are the same');

    my $b = $s->get('/v1/balance?account=alice&asset=ron')->{body};
    is(json_get($b, 'amount_minor'), '68', 'and nothing is done twice');
}

again('at once');
ok($s->reload, 'reload');
again('a reload');
ok($s->kill_worker, 'a worker is killed');
$s->wait_ready;
again('a killed worker');
ok($s->kill_helper, 'the helper is killed');
$s->wait_ready;
again('a killed helper');
$s->quit;
$s->start or BAIL_OUT('no server');
again('a restart');
ok($s->kill_all, 'all are killed');
$s->start or BAIL_OUT('no server');
again('a death of all');

# a binary upgrade

my $old = $s->{pid};
my $file = $s->dir . '/nginx.pid';

sub master { (RonTest::slurp($file) =~ /(\d+)/)[0] || 0 }

kill 'USR2', $old;
ok(until_ok(20, sub { master() && master() != $old }), 'another binary');
again('two of them');
my @gone = ($old, grep { $_ != master() } $s->children);
kill 'QUIT', $old;
ok(until_ok(20, sub { !grep { RonTest::alive($_) } @gone }),
   'the first one ends');
$s->{pid} = master();
$s->wait_ready;
again('an upgrade');

$s->quit;
done_testing();
