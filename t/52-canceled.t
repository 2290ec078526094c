#!/usr/bin/perl

# An operation that waits when the ledger is drained is canceled: it is told
# so, it is counted, and it has no effect.

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use Time::HiRes qw(sleep);


my $s = RonTest->new(workers => 1,
                     main => 'ron_commit_delay 3s; ron_drain_deadline 1s;');
$s->start or BAIL_OUT('no server');

sub tasks {
    my ($what, $service) = @_;

    my ($n) = $s->get('/metrics', token => undef)->{body} =~
        /^tasks_${what}_total\{service="$service",kind="worker"\} (\S+)$/m;

    return $n;
}

sub send_one {
    my ($n) = @_;

    my $sock = $s->connect;
    $s->send_request($sock, 'POST', '/v1/issue',
                     { to => "c$n", asset => 'ron', amount_minor => '1' },
                     key => "cancel-$n");

    return $sock;
}

# one batch is committed, one is decided behind it, and the others wait: each of
# the first ones comes alone, so that it is a batch of its own if there is room

my @socks;

for my $n (1 .. 3) {
    push @socks, send_one($n);
    ok(until_ok(5, sub { (tasks('spawned', 'wallet') || 0) == $n }),
       "$n is in");
    sleep 0.1;
}

push @socks, map { send_one($_) } 4 .. 7;
ok(until_ok(5, sub { tasks('spawned', 'wallet') == 7 }), 'and four more');
is(tasks('canceled', 'wallet'), 0, 'none is canceled');

is($s->post('/ledger/admin/drain', undef)->{status}, 200, 'a drain');

# what the helper is asked, and answers, says to the worker that it is there:
# a connection over which nothing comes for a second is given up.  Who is in
# nothing that was decided does not wait for what is being committed

my @asked;

for (1 .. 25) {
    my $got = $s->get("/v1/balance?account=nobody$_&asset=ron");

    # on a slow machine the drain may be over, and its ledger closed

    last if $got->{status} != 200
            && $s->get('/readyz', token => undef)->{body}
               =~ /"state":"stopped"/;

    push @asked, $got;
    sleep 0.1;
}

cmp_ok(scalar @asked, '>=', 10, 'reads beside the drain');
is(scalar(grep { $_->{status} == 200 } @asked), scalar @asked,
   'an unknown account is read while the committer is slow')
    or diag(map { "$_->{status} $_->{body}" }
            grep { $_->{status} != 200 } @asked);

my @r = map { RonTest::read_response($_, 'POST', 20) } @socks;

# NGINX waits five seconds for who does not hang up (lingering_timeout)

close $_ for @socks;

# what was decided before is finished, however long its client waited

my @canceled = grep {
    (json_get($r[$_ - 1]{body}, 'code') || '') eq 'DRAINING'
} 1 .. 7;
my %canceled = map { $_ => 1 } @canceled;

cmp_ok(scalar @canceled, '>=', 3, 'those that waited are told of the drain');
ok(!$canceled{1} && !$canceled{2}, 'and not those that had begun');

for my $n (1 .. 7) {
    my $r = $r[$n - 1];

    if ($canceled{$n}) {
        is($r->{status}, 503, "$n: refused");
        ok($r->{headers}{'retry-after'}, 'and may come again, elsewhere');
    } else {
        ok($r->{status} == 200 || json_get($r->{body}, 'code') eq 'TIMEOUT',
           "$n: answered, or not in time");
    }
}

is(tasks('canceled', 'wallet'), scalar @canceled, 'they are counted');

ok(until_ok(20, sub {
    $s->get('/readyz', token => undef)->{body} =~ /"state":"stopped"/
}), 'the drain is over');
$s->quit;
like($s->log, qr/"event":"shutdown","drained":true/, 'and was clean');

$s->{main} = '';
$s->start or BAIL_OUT('no server');

# who waited behind what was decided may have been told nothing in time: its key
# settles that

for my $n (grep { !$canceled{$_} && $r[$_ - 1]{status} != 200 } 3 .. 7) {
    is($s->post('/v1/issue', { to => "c$n", asset => 'ron',
                               amount_minor => '1' },
                key => "cancel-$n")->{status}, 200,
       "$n: its outcome is asked for, by its key");
}

for my $n (1 .. 7) {
    is(json_get($s->get("/v1/balance?account=c$n&asset=ron")->{body},
                'amount_minor'), $canceled{$n} ? 0 : 1,
       $canceled{$n} ? "$n was not done" : "$n was done");
}

my $again = $canceled[0];

is($s->post('/v1/issue', { to => "c$again", asset => 'ron',
                           amount_minor => '1' },
            key => "cancel-$again")->{status}, 200,
   'a canceled key is good again');
is(json_get($s->get("/v1/balance?account=c$again&asset=ron")->{body},
            'amount_minor'), 1, 'once');

$s->quit;
done_testing();
