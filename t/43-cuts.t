#!/usr/bin/perl

# A real server under load is recorded: every change of its ledger's files,
# and every answer of its clients.  Then the power goes, again and again, at
# points of that record: before a sync, after it, between names, inside a
# checkpoint, anywhere.  The disk has what was synced, and of the rest nothing,
# all, a part that ends in a torn write, or anything, in any order.  On each
# such disk a real nginx starts, and
#
#   * is ready by itself,
#   * has every operation that was answered until then, once, with all that
#     clients read (RonHistory.pm), and nothing that nobody asked for,
#   * answers what is sent again with the same bytes,
#   * gives for every receipt a proof that leads from its entry to the root of
#     a checkpoint with the signature of the ledger, checked here,
#   * takes a payment, and `ronctl ledger verify` finds nothing.
#
#     RON_CUTS    how often (10; `make cuts CUTS=200`)
#     RON_CUT     "<change> <mode> <seed>": this one only
#     RON_CUT_IN  of the record in this directory, which a failure leaves

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonChaos;
use RonHistory;
use RonProofs;

use Fcntl qw(:flock);
use MIME::Base64 qw(decode_base64);
use Time::HiRes qw(sleep);

my $cuts = $ENV{RON_CUTS} || 10;
my $scale = $cuts > 50 ? 3 : 1;
my $build = $ENV{RON_BUILD} || 'build';
my $cut = RonChaos::tool('cut');
my $b3 = RonChaos::tool('b3');
my @MODES = qw(drop prefix random keep);

my $c = RonChaos->new(trace => 1, load => { c => 8, a => 40, r => 300 },
    main => 'ron_checkpoint 300; ron_tag_memory 64k; ron_key_memory 64k;');
my $s = $c->{s};
my $dir = $s->{dir};
my %sum = (lost => 0, answered => 0, again => 0, kept => 0);

$ENV{RON_CUT_IN} ? replayed_from($ENV{RON_CUT_IN}) : record();

my @changes = map { [ split ' ' ] } `'$cut' '$dir/trace'`;

# A server for disks of which the power is gone: the same keys, another place.

my $r = RonTest->new(workers => 1, ledger => "sqlite:$dir/cut",
                     main => $s->{main});

$r->{secret} = $s->{secret};
$r->write_file('ron.keys', RonTest::slurp("$dir/ron.keys"), 0600);

my $proofs = RonProofs->new(server => $r, b3 => $b3,
                            pub => RonTest::slurp("$dir/trace.pub"));

if ($ENV{RON_CUT}) {
    replay(0, split ' ', $ENV{RON_CUT});

} else {
    whole();

    my @points = points();

    for my $n (1 .. $cuts) {
        my $of = $points[$n % @points];
        my $at = $of->[rand @$of];

        replay($n, $at, $MODES[($n / @points) % @MODES],
               1 + int rand 1e9);
    }

    controls();
    $sum{proven} = $proofs->{n};
    diag(sprintf '%d changes, %d cuts: %d writes lost, %d operations answered,'
         . ' %d sent again, %d proofs of receipts, %d operations kept that'
         . ' nobody was told of', scalar @changes, $cuts,
         @sum{qw(lost answered again proven kept)});
    cmp_ok($sum{$_}, '>', 0, "$_: $sum{$_}") for qw(lost answered again proven);
}

done_testing();


# ---- the record -------------------------------------------------------------

# Made, loaded, killed, reloaded, stopped, started, loaded.

sub record {
    $s->allow(qr/exited on signal 9/);
    $c->start;
    $c->load('a', s => 1.5 * $scale);
    sleep($scale);
    kill_helper();
    $c->done;
    $c->load('b', s => 1.5 * $scale);
    sleep(0.5);
    ok($s->reload, 'a reload');
    $c->done;
    $s->quit;
    $c->start;
    $c->load('c', s => $scale);
    $c->done;
    $c->judge('the record');
    $s->write_file('trace.pub', RonTest::slurp($c->ledger . '/signing.pub'));
}

# Between two changes, so the record has what the disk has.
sub kill_helper {
    my $old = $s->helper;

    open my $f, '<', "$dir/trace" or die "trace: $!";
    flock $f, LOCK_EX or die "flock: $!";
    kill 'KILL', $old;
    close $f;
    ok(until_ok(10, sub { my $new = $s->helper; $new && $new != $old }),
       'the helper is killed');
}

sub replayed_from {
    my ($from) = @_;

    symlink "$from/$_", "$dir/$_.from" and rename "$dir/$_.from", "$dir/$_"
        for map { s{.*/}{}r } grep { m{/(?:trace|history-|ron\.keys)} }
            glob "$from/*";
    $s->{secret} = decode_base64((split ' ', RonTest::slurp("$from/ron.keys"))[1]);
    $c->{histories} = [ glob "$dir/history-*" ];
}

# All of the record on a disk that keeps everything is what the disk has: it
# was complete.

sub whole {
    my $left = rebuild(scalar @changes, 'keep', 1);
    my @differ = grep { !/-shm/ } `diff -rq '$dir/cut' '@{[$c->ledger]}'`;

    is($left, 0, 'nothing is lost of what is kept');
    ok(!@differ, 'the record says what the disk has') or diag(@differ);
}

sub rebuild {
    my ($at, $mode, $seed, @lies) = @_;

    system('rm', '-rf', "$dir/cut");
    mkdir "$dir/cut", 0700 or die "$dir/cut: $!";

    my $lost = `'$cut' '$dir/trace' $at $mode $seed '$dir/cut' @lies`;
    die "cut $at $mode $seed: $?" if $?;

    # the index of a WAL is memory; what of it gets to a disk is any page

    if ($seed % 2) {
        for my $wal (glob "$dir/cut/*-wal") {
            open my $f, '>', $wal =~ s/wal$/shm/r or die $!;
            print $f map { chr int rand 256 } 1 .. 32768;
        }
    }

    system('chown', '-R', 'nobody:nogroup', "$dir/cut") if $> == 0;

    return $lost + 0;
}

# Where to cut: [changes], one list per kind.
sub points {
    my %at;

    for my $i (0 .. $#changes) {
        my (undef, undef, $what, $of) = @{ $changes[$i] };

        push @{ $at{sync} }, $i, $i + 1 if $what =~ /^sync/;
        push @{ $at{name} }, $i, $i + 1 if $what =~ /^(?:make|re)/;
        push @{ $at{file} }, $i, $i + 1
            if $what eq 'write' && $of !~ /-wal$|^history/;
        push @{ $at{any} }, $i;
    }

    return @at{qw(sync name file any)};
}


# ---- a cut ------------------------------------------------------------------

sub replay {
    my ($n, $at, $mode, $seed) = @_;

    my $until = $at < @changes ? $changes[$at][1] : 9e18;
    my $label = "cut $n ($at $mode $seed)";
    my $lost = rebuild($at, $mode, $seed);
    my @wrong;

    # it says itself when it is well, and nobody has to acknowledge anything

    unless ($r->start) {
        $ENV{RON_TEST_LEAVE} = 1;
        return fail("$label: a server starts (RON_CUT_IN=$dir)");
    }

    my @answered = $c->answered($until);
    my @some = RonChaos::some(20, @answered);

    push @wrong, RonChaos::again($r, @some),
        $proofs->check(map { $_->[3] } @answered);

    my $paid = $r->post('/v1/issue', { to => 'probe', asset => 'ron',
                        amount_minor => '1' }, key => 'probe-cut');

    push @wrong, "a payment: $paid->{status} $paid->{body}"
        if $paid->{status} != 200;
    $r->quit;

    my ($h, @bad) = verdict($until);

    push @wrong, @bad;
    push @wrong, grep { defined } map {
        $h->{ops}{$_} || $_ eq 'probe-cut' ? undef : "$_: nobody asked for it"
    } keys %{ $h->{by_key} };

    unless (ok(!@wrong, "$label: $lost writes lost; " . $h->summary)) {
        diag("RON_CUT='$at $mode $seed' RON_CUT_IN=$dir: ", scalar @wrong,
             ' wrong', map { "\n$_" } @wrong[0 .. ($#wrong > 9 ? 9 : $#wrong)]);
        $ENV{RON_TEST_LEAVE} = 1;
    }

    $sum{lost} += $lost;
    $sum{again} += @some;
    $sum{answered} += $h->{n}{answered} || 0;
    $sum{kept} += grep { !defined $_->{answer} && defined $_->{seq} }
                       values %{ $h->{ops} };
}

# What verify and the histories up to a time say of the disk as it is now.
sub verdict {
    my ($until) = @_;

    my @wrong;
    my $said = `'$build/ronctl' ledger verify '$dir/cut' 2>&1`;

    push @wrong, "verify: $said" if $? || $said !~ /money conserved/;
    $said = `'$build/ronctl' ledger export '$dir/cut' 2>&1 >'$dir/export'`;
    push @wrong, "export: $said" if $?;

    my $h = RonHistory->new(b3 => $b3);

    $h->load($_, $until) for @{ $c->{histories} };
    $h->journal("$dir/export");

    return ($h, @wrong, $h->check);
}


# ---- what must be noticed ---------------------------------------------------

# Lies of a disk and of a server, late in the record: all syncs are ignored;
# those of the WAL are (synchronous=OFF); and what was answered in the second
# after the cut, as by a committer that answers before its sync.  Right behind a
# checkpoint the WAL has nothing that the database does not have, and a lie
# about it changes nothing: so it is looked for at more than one place.

sub controls {
    my @done = grep { $changes[$_][2] eq 'synced' } 0 .. $#changes;

    for my $case ([ 'a disk that ignores syncs', 0, qr/./, 'random', "''" ],
                  [ 'a WAL that is not synced', 0,
                    qr/is not in the journal/, 'drop', '-wal' ],
                  [ 'a server that answers before its sync', 1e6,
                    qr/is not in the journal/, 'drop' ])
    {
        my ($what, $late, $says, $mode, @lies) = @$case;
        my ($n, $tries) = (0, 0);

        while ($n == 0 && $tries < 8) {
            my $at = $done[@done * (0.6 + 0.04 * $tries++)] + 1;

            rebuild($at, $mode, 2, @lies);

            my ($h, @wrong) = verdict($changes[$at][1] + $late);
            $n = grep { /$says/ } @wrong;
        }

        cmp_ok($n, '>', 0, "control: $what is noticed: $n wrong, try $tries");
    }
}
