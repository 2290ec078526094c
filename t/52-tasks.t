#!/usr/bin/perl

# What begins, ends, dies and is started again, by the seeds' kinds; and what
# dies too often.  RON_LIFE=1 also waits for the quiet minute.

use strict;
use warnings;

use lib 't/lib';
use RonTest;


my %m;

sub metrics {
    my ($s) = @_;

    %m = $s->get('/metrics')->{body} =~ /^(\w+\{[^}]*\}) (\S+)$/mg;
}

sub tasks {
    my ($what, $service, $kind) = @_;

    return $m{"tasks_${what}_total{service=\"$service\",kind=\"$kind\"}"};
}

sub restarts {
    return $m{"service_restarts_total{service=\"ledger\",task=\"$_[0]\"}"};
}

my @of_a_worker = qw(ingress prevalidator health metrics admin);


my $s = RonTest->new(workers => 2);
$s->start or BAIL_OUT('no server');
until_ok(5, sub { metrics($s); tasks('spawned', 'ledger', 'committer') });

for my $kind (@of_a_worker) {
    is(tasks('spawned', 'ledger', $kind), 2, "$kind: two worker processes");
}

is(tasks('spawned', 'wallet', 'listener'), 2, 'listener as well');
is(tasks('spawned', 'ledger', $_), 1, "one $_")
    for qw(sequencer committer roots_publisher);
is(tasks('spawned', 'wallet', 'invalidator'), 1, 'one invalidator');
is(tasks($_, 'ledger', 'sequencer'), 0, "none $_") for qw(canceled aborted);

# operations

for (1 .. 3) {
    is($s->post('/v1/issue', { to => 'a', asset => 'ron',
        amount_minor => '5' }, key => "k$_")->{status}, 200, "issue $_");
}

my $r = $s->post('/ledger/ingest', { batch => [ { id => 'e1', ts => 1,
    kind => 'Mint', account => 'a', amount => '5', nonce => nonce16(),
    v => 1 } ] });
is($r->{status}, 200, 'an ingest') or diag($r->{body});

metrics($s);
is(tasks('spawned', 'wallet', 'worker'), 3, 'three operations of the wallet');
is(tasks('spawned', 'ledger', 'worker'), 1, 'one of the ledger');
is(tasks('aborted', 'wallet', 'worker'), 0, 'none of them aborted');

# one that nobody answers is aborted

freeze($s->helper);
$r = $s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '5' },
              key => 'slow', headers => { 'Request-Timeout' => 1 });
is($r->{status}, 503, 'an operation past its deadline');
kill 'CONT', $s->helper;
ok($s->wait_ready, 'ready again');
metrics($s);
is(tasks('aborted', 'wallet', 'worker'), 1, 'is aborted');

# A reload: the old processes go because they are told to.  A thread has 0.2 s
# to end, however slow the build is; one that is late was aborted.

my $late = 0;

sub over {
    my ($task) = @_;
    my $n = tasks('canceled', 'ledger', $task);

    return $n if slow(1) == 1;

    $late += tasks('aborted', 'ledger', $task) if $task eq 'sequencer';

    return $n + tasks('aborted', 'ledger', $task);
}

ok($s->reload, 'a reload');
ok(until_ok(5, sub {
    metrics($s);
    $late = 0;
    over('sequencer') == 1
}), 'one sequencer was canceled');
is(over($_), 1, "one $_ was")
    for qw(committer roots_publisher);
ok(until_ok(5, sub {
    metrics($s);
    tasks('canceled', 'ledger', 'ingress') == 2
}), 'and two worker processes');
is(tasks('spawned', 'ledger', 'ingress'), 4, 'two more have begun');
is(tasks('aborted', 'ledger', 'ingress'), 0, 'none was aborted');
is(restarts($_), 0, "no restart of a $_") for qw(worker helper committer);

# a worker is killed

ok($s->kill_worker, 'a worker is killed');
ok(until_ok(5, sub { metrics($s); restarts('worker') == 1 }),
   'its restart is counted');
is(tasks('aborted', 'ledger', 'ingress'), 1, 'as an aborted one');
is(tasks('spawned', 'ledger', 'ingress'), 5, 'and a new one');

# the committer is started again after safe mode

$r = $s->post('/ledger/admin/safe-mode', { enter => \'true' });
is($r->{status}, 200, 'safe mode') or diag($r->{body});
ok(until_ok(10, sub {
    $s->post('/ledger/admin/safe-mode', { enter => \'false' })->{status} == 200
}), 'and out of it');
ok($s->wait_ready, 'ready');
ok(until_ok(5, sub { metrics($s); restarts('committer') == 1 }),
   'the committer was started again');
is(tasks('spawned', 'ledger', 'committer'), 3, 'the third of all');

# the helper is killed, too often; what commits is started again at once

sub served {
    my ($key) = @_;

    return until_ok(10, sub {
        $s->post('/v1/issue', { to => 'a', asset => 'ron',
            amount_minor => '5' }, key => $key)->{status} == 200
    });
}

for my $n (1 .. 5) {
    ok($s->kill_helper, "the helper is killed $n times");
    ok(until_ok(10, sub { metrics($s); (restarts('helper') || 0) == $n }),
       'and started again');
    ok(served("served-$n"), 'it serves');
    ok($s->wait_ready, 'and is ready: so often it may be');
}

is(tasks('aborted', 'ledger', 'sequencer'), 5 + $late, 'five sequencers aborted');
ok($s->kill_helper, 'once more');
ok(until_ok(10, sub { metrics($s); restarts('helper') == 6 }), 'restarted');
ok(served('served-6'), 'what can be served is served all the same');
ok(until_ok(10, sub {
    $r = $s->get('/readyz');
    $r->{body} =~ /"state":"running"/
}), 'it runs') or diag($r->{body});
is($r->{status}, 503, 'that was too often: not ready');
like($r->{body}, qr/"missing":\["helper"\]/, 'it says which task');
is($s->get('/healthz')->{status}, 503, 'and alive, but fatal');

metrics($s);
cmp_ok($m{'tasks_leaked_total{service="ledger"}'}, '<=', $late, 'nothing leaked');

if ($ENV{RON_LIFE}) {
    sleep 45;
    is($s->get('/readyz')->{status}, 503, 'for a minute');
    ok($s->wait_ready(30), 'then it is forgiven');
}

$s->quit;

done_testing();
