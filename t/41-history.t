#!/usr/bin/perl

# The checker of histories: it finds nothing wrong with what a server did,
# and each of these, put into the same history or journal, it does find.

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonChaos;
use RonHistory;

my $c = RonChaos->new(load => { c => 8, a => 12 });
$c->start;
$c->load('a', s => 1.5);
$c->done;
$c->judge('as it was');

my $dir = $c->{s}{dir};
my $export = "$dir/export";


# Each control: what it is called, what must be said, and a sub that spoils a
# history that was read.

sub done_op {
    my ($h, $where) = @_;

    for my $key (sort keys %{ $h->{ops} }) {
        my $op = $h->{ops}{$key};
        return $op if defined $op->{answer} && $op->{status} == 200
                      && $op->{path} =~ $where;
    }

    die "nothing for $where";
}

sub entry_of {
    my ($h, $op) = @_;

    my ($e) = grep { defined $_ && defined $_->[RonHistory::KEY]
                     && $_->[RonHistory::KEY] eq $op->{key} }
                   @{ $h->{entries} };

    return $e;
}

my @controls = (
    [ 'the last entries are lost', qr/is not in the journal/, sub {
        my ($h) = @_;
        my $last = (sort { $b <=> $a } map { entry_of($h, $_)->[0] }
                    map { $_->[0] } [ done_op($h, qr/transfer/) ])[0];
        splice @{ $h->{entries} }, $last;
    } ],
    [ 'one entry is another', qr/is not what was asked for/, sub {
        my ($h) = @_;
        entry_of($h, done_op($h, qr/issue/))->[RonHistory::AMOUNT]++;
    } ],
    [ 'an operation has two effects', qr/done more than once/, sub {
        my ($h) = @_;
        my @e = @{ entry_of($h, done_op($h, qr/issue/)) };
        $e[0] = @{ $h->{entries} };
        push @{ $h->{entries} }, \@e;
    } ],
    [ 'two answers to one operation', qr/two answers/, sub {
        my ($h, $file) = @_;
        my $op = done_op($h, qr/transfer/);
        $file =~ s/^(W.*\t\Q$op->{key}\E\t.*)("seq":)(\d+)/"$1$2$3\n$1$2" . ($3 + 1)/me
            or die;
        my $again = RonHistory->new;
        write_load($again, $file);
        $h->{wrong} = $again->{wrong};
    } ],
    [ 'a receipt of another entry', qr/has the receipt/, sub {
        my ($h) = @_;
        done_op($h, qr/transfer/)->{answer} =~ s/"seq":(\d+)/'"seq":' . ($1 + 1)/e;
    } ],
    [ 'a wrong receipt_hash', qr/receipt_hash/, sub {
        my ($h) = @_;
        done_op($h, qr/transfer/)->{answer} =~ s/b3:(.)/'b3:' . ($1 ^ "\1")/e;
        done_op($h, qr/transfer/)->{answer} =~ s/b3:[^0-9a-f]/b3:0/;
    } ],
    [ 'an order against the clock', qr/which has a smaller seq/, sub {
        my ($h) = @_;
        my ($first) = sort { $a->{end} <=> $b->{end} }
                      grep { defined $_->{answer} } values %{ $h->{ops} };
        $first->{begin} = 8e18;
    } ],
    [ 'money from nowhere', qr/less than nothing/, sub {
        my ($h) = @_;
        my ($e) = grep { defined $_ && $_->[RonHistory::KIND] == 1 }
                  @{ $h->{entries} };
        $e->[RonHistory::AMOUNT] = 1;
    } ],
    [ 'a nonce twice', qr/: nonce \d+ of/, sub {
        my ($h) = @_;
        my @e = grep { defined $_ && defined $_->[RonHistory::NONCE] }
                @{ $h->{entries} };
        my ($last) = grep { $_->[RonHistory::ACCOUNT]
                            eq $e[-1][RonHistory::ACCOUNT] } @e;
        $e[-1][RonHistory::NONCE] = $last->[RonHistory::NONCE];
    } ],
    [ 'a stale read', qr/a read is of no state/, sub {
        my ($h) = @_;
        my @r = grep { $_->[2] == 200 && $_->[3] =~ /"nonce":[1-9]/ }
                @{ $h->{reads} };
        $r[0][3] =~ s/"nonce":\d+/"nonce":0/;
        $r[0][4] = '-';
    } ],
    [ 'a read of the future', qr/a read is of no state/, sub {
        my ($h) = @_;
        my ($r) = grep { $_->[2] == 200 } reverse @{ $h->{reads} };
        $_->[0] = $_->[1] = 1 for $r;
    } ],
    [ 'a refusal without a reason', qr/right in no state/, sub {
        my ($h) = @_;
        my $t = done_op($h, qr/transfer/)->{end};

        $h->{ops}{made} = { key => 'made', path => '/v1/transfer',
            begin => $t, end => 9e18,
            body => '{"from":"a0","to":"a1","asset":"ron",'
                    . '"amount_minor":"0","nonce":1}',
            tries => [ [ $t, $t + 1, 409,
                         '{"code":"INSUFFICIENT_FUNDS"}' ] ] };
    } ],
    [ 'refused, and done', qr/every answer said no/, sub {
        my ($h) = @_;
        my $op = done_op($h, qr/issue/);
        delete $op->{answer};
        $op->{end} = 9e18;
        $op->{tries} = [ [ $op->{begin}, $op->{begin} + 1, 429, '{}' ] ];
    } ],
    [ 'a second payment under a taken key', qr/another body under a taken/,
      sub { $_[0]{mismatch}[0][2] = 200 } ],
);

sub write_load {
    my ($h, $text) = @_;

    $c->{s}->write_file('spoilt', $text);
    $h->load("$dir/spoilt");
}

my $text = RonTest::slurp("$dir/history-a");

for my $control (@controls) {
    my ($name, $says, $spoil) = @$control;
    my $h = RonHistory->new(b3 => $c->{b3});

    $h->load("$dir/history-a");
    $h->journal($export);
    $spoil->($h, $text);

    my @wrong = $h->check;

    ok((grep { /$says/ } @wrong), "noticed: $name")
        or diag("it said: @wrong");
}

done_testing();
