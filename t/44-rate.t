#!/usr/bin/perl

# Payments at a fixed rate, one in a hundred of them again: fewer than 0.3 %
# fail, and what is sent again is answered as it was.
#
#     RON_SOAK_RATE       requests a second (1000; `make soak RATE=n`)
#     RON_SOAK_SECONDS    how long (10; `make soak RATE=n MIN=n` is longer)

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use JSON::PP qw(decode_json);

my $rate = $ENV{RON_SOAK_RATE} || 1000;
my $seconds = $ENV{RON_SOAK_SECONDS} || 10;
my $build = $ENV{RON_BUILD} || 'build';
my $ronctl = "$build/ronctl";

plan skip_all => "no $ronctl" if !-x $ronctl;


# the gate itself

{
    my %good = (sent => 100000, rate => 1000, seconds => 100, late => 0,
                unanswered => 0, status => { 200 => 100000 },
                duplicates => { sent => 1000, same => 1000, differ => 0 });

    is_deeply([ gate(\%good) ], [], 'a server that is well passes');
    is_deeply([ gate({ %good, status => { 200 => 99701, 429 => 299 } }) ], [],
              'with 299 refusals of 100000 too');

    for my $case (
        [ 'errors',     status => { 200 => 99700, 429 => 300 } ],
        [ 'errors',     status => { 200 => 99700, 503 => 300 } ],
        [ 'errors',     unanswered => 300 ],
        [ 'refused',    status => { 200 => 99999, 409 => 1 } ],
        [ 'rate',       sent => 98999 ],
        [ 'duplicates', duplicates => { sent => 899, same => 899,
                                        differ => 0 } ],
        [ 'replays',    duplicates => { sent => 1000, same => 999,
                                        differ => 1 } ],
        [ 'replays',    duplicates => { sent => 1000, same => 600,
                                        differ => 0 } ])
    {
        my ($what, %bad) = @$case;
        my @broken = gate({ %good, %bad });

        is(scalar @broken, 1, "$what: refused") or diag("@broken");
        like($broken[0], qr/^$what/, "$what: and named");
    }
}


# the load

my $s = RonTest->new(workers => 2);
$s->start or BAIL_OUT('no server');

my $before = $s->metric('wallet_idem_replays_total');
my $out = $s->dir . '/rate.json';

system("$ronctl bench --json --url http://127.0.0.1:@{[$s->port]}"
       . " --keys @{[$s->dir]}/ron.keys --workload transfer"
       . " --connections 128 --accounts 10000 --warm-up 0s"
       . " --duration ${seconds}s --rate $rate --duplicates 1 >$out");

my $r = eval { decode_json(RonTest::slurp($out)) };

ok($r, 'the load ran') or BAIL_OUT("no load: $@");

my @broken = gate($r);
my %status = %{ $r->{status} };
my $p99 = $r->{latency_us}{p99} / 1000;

is("@broken", '', "$seconds s at $rate/s");
diag(sprintf '%.0f/s of %d/s offered for %d s, %s; %d given up, %d late; '
     . '%d duplicates, %d as before; p99 %.1f ms',
     $r->{sent} / $seconds, $rate, $seconds,
     join(', ', map { "$_: $status{$_}" } sort keys %status),
     $r->{unanswered}, $r->{late}, $r->{duplicates}{sent},
     $r->{duplicates}{same}, $p99);


# what the server says about it

my $replays = $s->metric('wallet_idem_replays_total') - $before;

cmp_ok($replays, '>=', $r->{duplicates}{same},
       'every duplicate is counted as a replay');
cmp_ok($replays, '<=', $r->{duplicates}{sent} + $r->{resent},
       'and nothing else is');

$s->quit;

my $verify = decode_json(`$ronctl ledger verify --json @{[$s->dir]}/ledger`);

ok($verify->{ok}, 'the journal is whole');

my $acked = $r->{acknowledged} + $r->{setup_acknowledged};

cmp_ok($verify->{seq}, '>=', $acked, 'and has all that was acknowledged');
cmp_ok($verify->{seq}, '<=', $acked + $r->{unanswered} + errors($r),
       'and no duplicate twice');

done_testing();


# Refusals for want of room, failures, and what nobody answered.
sub errors {
    my ($r) = @_;

    my $n = $r->{unanswered};

    $n += $r->{status}{$_} for grep { $_ == 429 || $_ >= 500 }
                               keys %{ $r->{status} };
    return $n;
}

# What is not as it should be.
sub gate {
    my ($r) = @_;

    my @broken;
    my %d = %{ $r->{duplicates} };
    my $errors = errors($r);
    my ($refused) = grep { $_ != 200 && $_ != 429 && $_ < 500 }
                    sort keys %{ $r->{status} };
    my $offered = $r->{sent} / $r->{seconds};

    push @broken, "errors: $errors of $r->{sent}"
        if $errors >= 0.003 * $r->{sent};
    push @broken, "refused: $r->{status}{$refused} with $refused"
        if $refused;
    push @broken, "rate: $offered/s of $r->{rate}/s were sent"
        if $offered < 0.99 * $r->{rate};
    push @broken, "duplicates: $d{sent} of $r->{sent}"
        if $d{sent} < 0.009 * $r->{sent};
    push @broken, "replays: $d{same} of $d{sent} as before, $d{differ} not"
        if $d{differ} || $d{same} + $errors < $d{sent};

    return @broken;
}
