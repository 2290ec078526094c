#!/usr/bin/perl

# The master ends without a drain, at any moment under load: INT, TERM and
# KILL, then a start on what is left.  Nothing that was answered is lost,
# nothing is done twice.  Also: a start beside one that runs, `nginx -t`
# beside one that runs, and a committer that is stuck.  RON_DEATHS says how
# often (4, 40 with RON_LIFE=1).

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonChaos;

my $deaths = $ENV{RON_DEATHS} || ($ENV{RON_LIFE} ? 40 : 4);
my @signals = qw(TERM KILL INT KILL);

my $c = RonChaos->new(load => { c => 12, a => 64, e => 60 });
my $s = $c->{s};
$s->allow(qr/bind\(\) to .* failed \(98/, qr/still could not bind/);
$c->start;


# beside one that runs

my $fds = $s->fds($s->{pid});
my ($code, $said) = $s->nginx('-t');
is($code, 0, 'nginx -t beside a running one') or diag($said);
is($s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '1' },
            key => 'after-t')->{status}, 200, 'which goes on');
is($s->fds($s->{pid}), $fds, 'its master with what it had open');

my $other = RonTest->new(workers => 1, ledger => $s->{ledger});
$other->allow(qr/./);
$other->start(nowait => 1) or BAIL_OUT('no second server');
sleep 1;
is(json_get($other->get('/readyz')->{body}, 'state'), 'following',
   'a second server on the same ledger waits')
    or diag($other->get('/readyz')->{body});
is($s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '1' },
            key => 'beside')->{status}, 200, 'the first one pays');
$other->terminate;
ok($s->wait_ready, 'and does so when the second has gone');


# ended at any moment

$c->load('deaths', g => 1, s => 3600);

for my $n (1 .. $deaths) {
    my $before = seq();
    ok(until_ok(20, sub { seq() > $before + 20 }), "$n: clients pay");
    Time::HiRes::sleep(rand 0.3);

    my $signal = $signals[$n % @signals];
    my $master = $s->{pid};
    my @all = ($master, $s->children);
    kill $signal, $master;

    # after KILL a start may come while the children are still leaving

    ok(until_ok(10, sub { !RonTest::alive($master) }), "$n: $signal");
    unlink "$s->{dir}/nginx.pid" if $signal eq 'KILL';
    ok($s->start, "$n: started again") or BAIL_OUT('no server');
    ok(until_ok(10, sub { !grep { RonTest::alive($_) } @all }),
       "$n: nothing of before is left") or diag("@all");
}

my $sum = $c->done(now => 1);
is($sum->{open}, 0, 'nothing is left without an answer');
cmp_ok($sum->{lost}, '>', 0, 'clients have felt it');
$c->judge('deaths', quit => 0);


# a committer that is stuck in a sync: what waits is told, and so is /readyz;
# a quit does not wait for it for ever

{
    my $tid = committer();
    ok($tid, 'the committer is found by its name') or BAIL_OUT('no committer');

    # a payment is to be stuck, and not the end of a hold that expires: those of
    # the clients last for two seconds

    my ($last, $since) = (-1, 0);
    ok(until_ok(20, sub {
        my $now = Time::HiRes::time();
        my $seq = seq();
        ($last, $since) = ($seq, $now) if $seq != $last;
        return $now - $since > 2.5;
    }), 'the last hold has expired');

    my $r = $s->post('/v1/issue', { to => 'a', asset => 'ron',
        amount_minor => '1' }, key => 'before-stuck');
    is($r->{status}, 200, 'before');

    my $trace = fork();
    die "fork: $!" unless defined $trace;

    unless ($trace) {
        open STDERR, '>', "$s->{dir}/strace";
        exec qw(strace -qq -e), 'trace=fdatasync,fsync', '-e',
            'inject=fdatasync,fsync:delay_enter=20000000', '-p', $tid
            or POSIX::_exit(127);
    }

    until_ok(5, sub {
        RonTest::slurp("/proc/$tid/status") =~ /^TracerPid:\s+[1-9]/m;
    });

    # what was paid before is told with the next beat

    my ($seq, $before) = (0, -1);
    until_ok(5, sub {
        ($before, $seq) = ($seq, seq());
        return $seq == $before || (Time::HiRes::sleep(0.2) && 0);
    });

    my $t = Time::HiRes::time();
    $r = $s->post('/v1/issue', { to => 'a', asset => 'ron',
        amount_minor => '1' }, key => 'stuck', timeout => 10);
    my $took = Time::HiRes::time() - $t;
    is($r->{status}, 503, 'a committer is stuck: 503');
    is(json_get($r->{body}, 'code'), 'TIMEOUT', 'the outcome is unknown');
    cmp_ok($took, '<', slow(5.5), sprintf 'within the deadline (%.2f s)', $took);
    $r = $s->get('/readyz');
    is($r->{status}, 503, 'not ready');
    like($r->{body}, qr/"missing":\[[^\]]*"committer"/, 'it says why');
    $t = Time::HiRes::time();
    $r = $s->post('/v1/issue', { to => 'a', asset => 'ron',
        amount_minor => '1' }, key => 'stuck-2');
    is($r->{status}, 503, 'more is refused');
    cmp_ok(Time::HiRes::time() - $t, '<', slow(1), 'at once');
    is($s->get('/v1/balance?account=a&asset=ron')->{status}, 200,
       'reads go on');

    my @all = ($s->{pid}, $s->children);
    kill 'QUIT', $s->{pid};
    ok(until_ok(15, sub {
        $s->log =~ /"event":"shutdown".*"aborted":[1-9].*"leaked":[1-9]/
    }), 'a quit does not wait for it, and says that it leaked')
        or diag(grep { /"event":"shutdown"/ } split /^/, $s->log);
    my ($root) = $s->log =~ /"event":"shutdown".*"leaked":[1-9]\d*,
                             "seq":$seq,"root":"([0-9a-f]{64})"}/x;
    ok($root, 'and up to which seq all is told')
        or diag(grep { /"event":"shutdown"/ } split /^/, $s->log);
    kill 'KILL', $trace;                # who is traced is gone only then
    waitpid $trace, 0;
    ok(until_ok(15, sub { !grep { RonTest::alive($_) } @all }),
       'a quit ends');
    $s->quit;

    $s->start or BAIL_OUT('no server');
    $r = $s->post('/v1/issue', { to => 'a', asset => 'ron',
        amount_minor => '1' }, key => 'stuck');
    is($r->{status}, 200, 'the same key again: done');
    $r = $s->get('/v1/balance?account=a&asset=ron');
    is(json_get($r->{body}, 'amount_minor'), 4, 'once');
}

$s->quit;

done_testing();


sub seq {
    my $r = eval { $s->get('/readyz') };
    return $r ? json_get($r->{body}, 'seq') || 0 : 0;
}

sub committer {
    my $pid = $s->helper or return;

    for my $comm (glob "/proc/$pid/task/*/comm") {
        my ($tid) = $comm =~ m{task/(\d+)};
        return $tid if RonTest::slurp($comm) =~ /^ron-commit/;
    }

    return;
}
