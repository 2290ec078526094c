#!/usr/bin/perl

# The helper is killed with a long journal behind it: what a start reads is
# bounded by `ron_checkpoint`, not by the journal, and the first payment is
# through in under half a second.  RON_ENTRIES says how long the journal is
# (400 000; 10 million with RON_LIFE=1).

use strict;
use warnings;

use lib 't/lib';
use RonTest;

my $build = $ENV{RON_BUILD} || 'build';
my $entries = $ENV{RON_ENTRIES} || ($ENV{RON_LIFE} ? 10_000_000 : 400_000);
my $kills = $ENV{RON_LIFE} ? 40 : 6;
my $span = 100_000;

my $s = RonTest->new(workers => 2, main => 'ron_restart_limit 16;');


# a journal, by the bench

my $said = `'$build/ronctl' ledger bench --dir '$s->{dir}' --rounds 1 \\
            --entries $entries --accounts 10000 --keep 2>&1`;
my ($made) = glob "$s->{dir}/ron-bench-*";

ok($? == 0 && $made, "a journal of $entries entries") or BAIL_OUT($said);
rename $made, "$s->{dir}/ledger";
system('chown', '-R', 'nobody', "$s->{dir}/ledger") if $> == 0;

$s->start or BAIL_OUT('no server');
ok(until_ok(5, sub {
    json_get($s->get('/readyz')->{body}, 'seq') >= $entries
}), 'is served');

sub issue {
    my ($to, $amount) = @_;

    return $s->post('/v1/issue', { to => $to, asset => 'ron',
        amount_minor => "$amount" }, key => nonce16() =~ tr/=+\///dr,
        timeout => 10);
}

sub read_lines {
    return my @read = $s->log =~ /ledger taken over: (\d+) entries read/g;
}

sub balance { return $s->get("/v1/balance?account=$_[0]&asset=ron") }

is(issue("still$_", 1000 + $_)->{status}, 200, 'an account') for 1 .. 3;


# killed, and killed, and killed

my @took;

my $r;

for my $n (1 .. $kills) {
    $r = issue('moves', 1);
    is($r->{status}, 200, "$n: it commits") or diag($r->{body});

    # what was read is logged by the helper itself, if it has the time to

    ok(until_ok(5, sub { read_lines() == $n }), "$n: it says what it read");

    $s->kill_helper;
    my $from = Time::HiRes::time();
    $r = issue('moves', 1);

    push @took, Time::HiRes::time() - $from;
    is($r->{status}, 200, sprintf '%d: and again after %.3f s', $n, $took[-1]);
}

@took = sort { $a <=> $b } @took;
diag(sprintf 'first payment after %.3f s (median), %.3f s (last)',
     $took[@took / 2], $took[-1]);
cmp_ok($took[@took / 2], '<', slow(0.5), 'within half a second');
cmp_ok($took[-1], '<', slow($ENV{RON_LIFE} ? 0.5 : 1), 'each time');

# it had worked, so it is back soon, but not to the millisecond

my @waits = $s->log =~ /restart \d+ of the ledger in (\d+) ms/g;
my %differ = map { $_ => 1 } @waits;
is(scalar(grep { $_ <= 50 } @waits), $kills, "up to 50 ms of jitter: @waits");
cmp_ok(scalar keys %differ, '>', 1, 'which differ');

ok(until_ok(5, sub { read_lines() == 1 + $kills }), 'as did the last one');
my @read = read_lines();
my ($most) = sort { $b <=> $a } @read;
cmp_ok($most, '<=', $span + 20_000, "$most entries at most");


# what nobody has touched since is known, and then remembered

is(json_get(balance('moves')->{body}, 'amount_minor'), 2 * $kills,
   'each of them once');

for my $n (1 .. 3) {
    my $from = Time::HiRes::time();
    my $r = balance("still$n");
    my $took = Time::HiRes::time() - $from;

    is($r->{status}, 200, "still$n: a balance that nobody has touched");
    is(json_get($r->{body}, 'amount_minor'), 1000 + $n, 'is what it was');
    cmp_ok(json_get($r->{body}, 'stale_ms'), '<=', 250, 'as of now');
    cmp_ok($took, '<', slow(0.5), sprintf 'at once (%.3f s)', $took);
}

# the helper does not answer now

my $helper = $s->helper;
freeze($helper);

$r = balance('still1');
is($r->{status}, 200, 'read again without the helper');
is(json_get($r->{body}, 'amount_minor'), 1001, 'it is the same');

kill 'CONT', $helper;

# so many deaths in a minute are a crash loop, and not ready; it pays

ok(until_ok(5, sub { issue('moves', 1)->{status} == 200 }),
   'the helper goes on');

$s->quit;

done_testing();
