#!/usr/bin/perl

# Safe mode by itself: after a death until the journal has been read, with a
# journal that ends before what was published, and with a history that knows
# more than the journal.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use File::Copy ();
use Time::HiRes ();


my $nonce = 0;

sub pay {
    my ($s, $n) = @_;

    for (1 .. $n || 1) {
        my $r = $s->post('/v1/issue', { to => 'acc', asset => 'ron',
            amount_minor => '1' }, key => 'k-' . ++$nonce);
        is($r->{status}, 200, "paid $nonce") or diag($r->{body});
    }
}

sub toggles {
    my ($s, $to, $reason) = @_;

    return $s->metric('ledger_safe_mode_transitions_total{service="ledger",'
                      . "to=\"$to\",reason=\"$reason\"}");
}

sub unsafe_state {
    my ($s) = @_;

    return json_get($s->get('/readyz')->{body}, 'state');
}


# a helper that is killed

my $s = RonTest->new(workers => 1);
$s->start or BAIL_OUT('no server');
pay($s, 3);

is(toggles($s, 'on', 'replay'), 0, 'no replay yet');
unlike($s->log, qr/safe_mode/, 'nothing about safe mode in the log');

ok($s->kill_helper, 'the helper is killed');
ok(until_ok(10, sub { (toggles($s, 'off', 'replay') || 0) == 1 }),
   'one replay ends');
is(toggles($s, 'on', 'replay'), 1, 'and one began');
ok($s->wait_ready, 'ready again');
ok(until_ok(5, sub {
    $s->metric('ledger_safe_mode{service="ledger"}') == 0
        && $s->log =~ /left safe mode/
}), 'not in safe mode');

my @lines = grep { /ledger is/ } split /\n/, $s->log;
is((grep { /safe_mode: replay: / } @lines), 1, 'one line when it begins');
is((grep { /left safe mode \(replay\)/ } @lines), 1,
   'and one when it ends') or diag(join "\n", @lines);
pay($s);

# a reload is no death

ok($s->reload, 'a reload');
pay($s);
is(toggles($s, 'on', 'replay'), 1, 'is no reason for a replay');

# nothing was committed by this helper: its last line knows the root

ok($s->reload, 'another one');
ok(until_ok(10, sub {
    my @helpers = $s->titled('cache manager process');
    @helpers == 1 && $s->log =~ /#$helpers[0]: ron: ledger is running/;
}), 'its helper has the ledger');
$s->quit;
my ($last) = reverse grep { /"event":"shutdown"/ } split /\n/, $s->log;
like($last, qr/"leaked":0,"seq":5,"root":"[0-9a-f]{64}"/,
     'the last line has seq and root');

# after a stop there is none either; after a master that was killed there is

$s->start or BAIL_OUT('no server');
is(toggles($s, 'on', 'replay'), 0, 'a start after a stop replays nothing');
ok($s->kill_all, 'all are killed at once');
ok(-S $s->dir . '/ledger/ledger.sock', 'a dead socket is left');
$s->start or BAIL_OUT('no server');
is(toggles($s, 'on', 'replay'), 1, 'everything was killed: replay');
is(toggles($s, 'off', 'replay'), 1, 'and out of it');
pay($s);


# history knows entries that the journal does not have

$s->quit;

my $dir = $s->dir . '/ledger';
File::Copy::copy("$dir/ledger.db", $s->dir . '/old.db') or die $!;

$s->start or BAIL_OUT('no server');
pay($s, 5);
ok(until_ok(20, sub { watermark() >= $nonce }), 'history has them all');
$s->quit;

unlink "$dir/head", "$dir/ledger.db-wal", "$dir/ledger.db-shm";
overwrite($s->dir . '/old.db', "$dir/ledger.db");

$s->start(nowait => 1) or BAIL_OUT('no server');
ok(until_ok(10, sub { unsafe_state($s) eq 'safe_mode' }),
   'a journal that was cut: safe mode') or diag(unsafe_state($s), $s->log);
ok(until_ok(5, sub {
    $s->log =~ /gap: the journal ends at seq 6, but history\.db has /
}), 'which names both');
my $r = $s->post('/v1/issue', { to => 'acc', asset => 'ron',
    amount_minor => '1' }, key => 'k-gap');
is($r->{status}, 503, 'nothing is written');
is(json_get($r->{body}, 'code'), 'SAFE_MODE', 'because of that');
ok(toggles($s, 'on', 'gap') >= 1, 'counted as a gap');
$r = $s->post('/ledger/admin/drain', undef);
is($r->{status}, 409, 'there is nothing to drain');
like(json_get($r->{body}, 'detail'), qr/state does not allow/, 'it is said');
is(unsafe_state($s), 'safe_mode', 'the state is what it was');
$r = $s->post('/ledger/admin/safe-mode', { enter => \'false' });
isnt($r->{status}, 200, 'an operator cannot end it while that is so');
$s->terminate;

# and is still so after a start

$s->start(nowait => 1) or BAIL_OUT('no server');
ok(until_ok(10, sub { unsafe_state($s) eq 'safe_mode' }), 'marked');
unlink glob "$dir/history.db*";
ok(until_ok(10, sub {
    $r = $s->post('/ledger/admin/safe-mode', { enter => \'false' });
    $r->{status} == 200
}), 'with history gone he can') or diag($r->{body});
ok($s->wait_ready, 'ready');
$s->quit;

done_testing();


sub watermark {
    my $r = $s->get('/ledger/accounts/acc/entries');

    return $r->{headers}{'ledger-watermark'} || 0;
}

sub overwrite {
    my ($from, $to) = @_;

    my $text = RonTest::slurp($from);
    open my $f, '+<', $to or die $!;
    binmode $f;
    truncate $f, 0;
    print $f $text;
    close $f or die $!;
}
