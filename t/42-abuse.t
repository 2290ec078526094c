#!/usr/bin/perl

# Exactly once under abuse: clients that time out, retry, duplicate and
# reorder, while the helper and a worker are killed every second and nginx is
# reloaded.  What they saw is checked against the journal, answer by answer.
#
#     RON_ABUSE_SECONDS   how long (10; `make abuse MIN=5` is 300, and then at
#                         least half of the undisturbed rate goes through)

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonChaos qw(now_us);

my $seconds = $ENV{RON_ABUSE_SECONDS} || 10;
my $long = $seconds >= 60;

# A start reads what came after the last checkpoint, and what no file of tags
# has; one who is killed each second has no time for 250 000 entries.

my $c = RonChaos->new(load => { c => 12, a => 120 },
                      main => 'ron_checkpoint 5000; ron_tag_memory 256k;'
                              . ' ron_key_memory 256k;');
my $s = $c->{s};

# a worker that died with the lock of the zone's pool has it taken from it
$s->allow(qr/shared memory zone "\w+" was locked by \d+/);
$c->start;


# undisturbed

my $calm = $long ? 30 : 2;
my ($calm_from, $calm_to);

$c->load('calm', s => $calm);
Time::HiRes::sleep($calm / 4);
$calm_from = now_us();
Time::HiRes::sleep($calm / 2);
$calm_to = now_us();
$c->done;


# disturbed

my %did = (helper => 0, worker => 0, reload => 0);
my $from = now_us();
my $end = Time::HiRes::time() + $seconds;

$c->load('abuse', s => $seconds);

for (my $turn = 0; Time::HiRes::time() < $end; $turn++) {
    Time::HiRes::sleep(0.5);

    if ($turn % 2 == 0) {
        my @workers = $s->workers;
        $did{worker} += kill 'KILL', $workers[rand @workers] if @workers;
    } else {
        my @helpers = $s->titled('cache manager process');
        $did{helper} += kill 'KILL', $helpers[rand @helpers] if @helpers;
    }

    if ($turn % 7 == 6) {
        my ($code) = $s->nginx('-s', 'reload');
        $did{reload} += $code == 0;
    }
}

my $to = now_us();
my $sum = $c->done;

cmp_ok($did{$_}, '>=', int($seconds / ($_ eq 'reload' ? 6 : 2)),
       "$did{$_} times: $_") for sort keys %did;
cmp_ok($sum->{lost} + $sum->{later}, '>', 0, 'clients have felt it');
is($sum->{open}, 0, 'nothing is left without an answer');

# so many deaths are a crash loop, and it says so; it works all the same
$c->judge('abuse', ready => 0);
$c->used(qw(ingested expired committed unknown final));

my $before = $c->{judged}->rate($calm_from, $calm_to);
my $during = $c->{judged}->rate($from, $to);

diag(sprintf "abuse: %.0f operations/s undisturbed, %.0f under abuse (%.0f %%)",
     $before, $during, 100 * $during / $before) if $long;
cmp_ok($during, '>=', $before / 2, 'half of the undisturbed rate') if $long;
cmp_ok($during, '>', 0, 'work goes on');

done_testing();
