#!/usr/bin/perl

# The checker of histories: it finds nothing wrong with what a server did,
# and each of these, put into the same history or journal, it does find.

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonChaos;
use RonHistory;

# At a rate, for the history is read once for each control; with a deadline
# that is over soon, for then what is unknown stays so, and what is asked for
# in the end is.

my $c = RonChaos->new(load => { c => 8, a => 12, r => 2500, f => 2100 },
                      deadline => 1000, http => 'ron_deadline 1s;');
$c->start;
$c->load('a', s => 1.2);
$c->done;
$c->judge('as it was');

$c->used(qw(ingested expired committed unknown final));

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

# The first ingest that was answered once, and its entries.

sub ingest {
    my ($h, $body, $kind) = @_;

    for my $op (map { $h->{ops}{$_} } sort keys %{ $h->{ops} }) {
        next if $op->{path} ne '/ledger/ingest' || !defined $op->{answer}
                || $op->{body} !~ $body || $op->{status} != 200;
        my @e = grep { defined $_ && ($_->[RonHistory::ID] || '')
                                     =~ /^\Q$op->{key}\E\./ }
                     @{ $h->{entries} };
        return ($op, @e);
    }

    die "no ingest of $body";
}

# A hold that somebody asked to end by itself, and the entry that ended it.

sub expired {
    my ($h) = @_;

    my ($e) = grep { defined $_ && $_->[RonHistory::EXPIRED] }
                   @{ $h->{entries} };

    return ($h->{entries}[$e->[RonHistory::REF]], $e);
}

# A question that nobody asked, about an operation.

sub ask {
    my ($h, $op, $begin, $age, $answer) = @_;

    $h->question($op, [ $begin, $begin + 10, 200, $answer, $age ]);
}

sub made {
    my ($h, $t, %o) = @_;

    return $h->{ops}{made} = { key => 'made', begin => $t, end => 9e18,
                               last_begin => $t, answers => [], tries => [],
                               %o };
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

        made($h, $t, path => '/v1/transfer',
             body => '{"from":"a0","to":"a1","asset":"ron",'
                     . '"amount_minor":"0","nonce":1}',
             tries => [ [ $t, $t + 1, 409,
                          '{"code":"INSUFFICIENT_FUNDS"}' ] ]);
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
    [ 'ledger time that goes back', qr/ledger time goes back/, sub {
        $_[0]{entries}[-1][RonHistory::TIME] -= 1e6;
    } ],

    # ingests

    [ 'an ingested entry is another', qr/is not what was asked for: \{"atomic/,
      sub {
        my (undef, $e) = ingest($_[0], qr/"Mint"/);
        $e->[RonHistory::AMOUNT]++;
    } ],
    [ 'an ingested entry has another nonce', qr/is not what was asked for/,
      sub {
        my (undef, $e) = ingest($_[0], qr/"Mint"/);
        $e->[RonHistory::NONCE16] = "\0" x 16;
    } ],
    [ 'half of an atomic ingest', qr/ingested by other rules/, sub {
        my @e = ingest($_[0], qr/"atomic":true.*"id".*"id"/);
        $e[-1][RonHistory::ID] = 'other.0';
    } ],
    [ 'half of one that is not atomic', qr/ingested by other rules/, sub {
        my @e = ingest($_[0], qr/"atomic":false.*"id".*"id"/);
        $e[-1][RonHistory::ID] = 'other.0';
    } ],
    [ 'an ingest in two commits', qr/ingested by other rules/, sub {
        my @e = ingest($_[0], qr/"id".*"id"/);
        $e[-1][RonHistory::COMMIT]++;
    } ],
    [ 'an ingest that is there twice', qr/done more than once/, sub {
        my ($h) = @_;
        my (undef, $e) = ingest($h, qr/"idem_id".*"Mint"/);
        my @e = @$e;
        $e[0] = @{ $h->{entries} };
        push @{ $h->{entries} }, \@e;
    } ],
    [ 'an entry without an idem_id that is there twice',
      qr/done more than once/, sub {
        my ($h) = @_;
        my (undef, $e) = ingest($h, qr/^(?!.*idem_id).*"Mint"/);
        my @e = @$e;
        $e[0] = @{ $h->{entries} };
        push @{ $h->{entries} }, \@e;
    } ],
    [ 'an ingest that nobody can pay', qr/ingested by other rules/, sub {
        my ($op, $e) = ingest($_[0], qr/"id":"[^"]*\.0"[^}]*"Burn"/);
        $op->{body} =~ s/"amount":"\d+"/"amount":"123456789"/;
        $e->[RonHistory::AMOUNT] = 123456789;
    } ],
    [ 'a posting that does not balance', qr/the posting does not balance/,
      sub {
        my (undef, @e) = ingest($_[0], qr/"Credit"/);
        $_->[RonHistory::AMOUNT]++ for grep { $_->[RonHistory::KIND] == 5 } @e;
    } ],
    [ 'a leg of another posting', qr/a leg of another posting/, sub {
        my (undef, @e) = ingest($_[0], qr/"Credit"/);
        (grep { $_->[RonHistory::KIND] == 5 } @e)[0][RonHistory::FIRST]--;
    } ],
    [ 'an ingest refused without a reason', qr/right in no state/, sub {
        my ($h) = @_;
        my ($op) = ingest($h, qr/"Mint"/);
        made($h, $op->{end}, path => '/ledger/ingest',
             body => '{"atomic":true,"batch":[{"id":"made.0","ts":1,"kind":'
                     . '"Mint","account":"a1","amount":"1","nonce":"",'
                     . '"v":1}]}',
             tries => [ [ $op->{end}, $op->{end} + 1, 409,
                          '{"code":"INSUFFICIENT_FUNDS"}' ] ]);
    } ],
    [ 'an ingest refused for another reason', qr/right in no state/, sub {
        my ($h) = @_;
        my ($op) = ingest($h, qr/"Mint"/);
        made($h, $op->{end}, path => '/ledger/ingest',
             body => '{"atomic":true,"batch":[{"id":"made.0","ts":1,"kind":'
                     . '"Burn","account":"a1","amount":"123456789",'
                     . '"nonce":"","v":1}]}',
             tries => [ [ $op->{end}, $op->{end} + 1, 409,
                          '{"code":"CONFLICT"}' ] ]);
    } ],
    [ 'an entry that is said to be refused', qr/was answered 207/, sub {
        my ($op) = ingest($_[0], qr/"Mint"/);
        $op->{answers}[0][2] = 207;
        $op->{answers}[0][3] =~ s/true/false/;
        $op->{answers}[0][3] =~ s/\{"idx":0,"seq":\d+\},?//;
    } ],
    [ 'an ingest with the seq of another', qr/was answered 200/, sub {
        my ($op) = ingest($_[0], qr/"Mint"/);
        $op->{answers}[0][3] =~ s/("idx":0,"seq":)(\d+)/$1 . ($2 + 1)/e;
    } ],
    [ 'an ingest with the root of another', qr/was answered 200/, sub {
        my ($h) = @_;
        my ($op) = ingest($h, qr/"idem_id".*"Mint"/);
        my ($root) = grep { $op->{answer} !~ $_ } sort keys %{ $h->{roots} };
        $op->{answers}[0][3] =~ s/("new_root":")\w+/$1$root/;
    } ],
    [ 'a repeated entry with a root that was not yet there',
      qr/was answered 200/, sub {
        my ($h) = @_;
        my ($op) = ingest($h, qr/^(?!.*idem_id).*"Mint"/);
        my ($root) = grep { $h->{roots}{$_} == $h->{end} }
                     keys %{ $h->{roots} };
        $op->{answers} = [ map { [ @{ $op->{answers}[0] } ] } 1, 2 ];
        $op->{answers}[1][3] =~ s/("new_root":")\w+/$1$root/;
    } ],
    [ 'two answers to one idem_id', qr/two answers/, sub {
        my ($h) = @_;
        my ($op) = ingest($h, qr/"idem_id".*"Mint"/);
        $h->answered($op, $op->{end} + 1, 200,
                     $op->{answer} =~ s/("new_root":")\w+/$1/r);
    } ],
    [ 'another batch under a taken idem_id', qr/another body under a taken/,
      sub {
        my ($h) = @_;
        my ($op) = ingest($h, qr/"idem_id"/);
        push @{ $h->{mismatch} }, [ 1, 2, 200, '{}', $op->{key},
                                    $op->{path} ];
    } ],

    # holds that expire

    [ 'a hold that ends before its time', qr/ms before it expired/, sub {
        my ($hold, $end) = expired($_[0]);
        $hold->[RonHistory::EXPIRY] = $end->[RonHistory::TIME] + 1;
    } ],
    [ 'a hold that is captured after its time', qr/is still open/, sub {
        my ($h) = @_;
        my ($e) = grep { defined $_ && $_->[RonHistory::KIND] == 7 }
                       @{ $h->{entries} };
        $h->{entries}[$e->[RonHistory::REF]][RonHistory::EXPIRY] =
            $e->[RonHistory::TIME];
    } ],
    [ 'a hold that never ends, although it expires', qr/is still open/, sub {
        my ($hold) = expired($_[0]);
        $hold->[RonHistory::EXPIRY] = $hold->[RonHistory::TIME];
    } ],
    [ 'less than what was left when it expired', qr/does not allow/, sub {
        my (undef, $end) = expired($_[0]);
        $end->[RonHistory::AMOUNT]--;
    } ],
    [ 'the end of a hold that does not expire', qr/never expires/, sub {
        my ($hold) = expired($_[0]);
        $hold->[RonHistory::EXPIRY] = undef;
    } ],
    [ 'an end that is twice there', qr/nothing was left/, sub {
        my ($h) = @_;
        my (undef, $end) = expired($h);
        my @e = @$end;
        @e[0, RonHistory::TIME, RonHistory::AMOUNT] =
            (scalar @{ $h->{entries} }, $h->{entries}[-1][RonHistory::TIME],
             0);
        push @{ $h->{entries} }, \@e;
    } ],
    [ 'an end that somebody asked for', qr/that somebody asked for/, sub {
        my ($h) = @_;
        entry_of($h, done_op($h, qr/release/))->[RonHistory::EXPIRED] = 1;
    } ],
    [ 'a hold for another time', qr/is not what was asked for/, sub {
        my ($h) = @_;
        my ($op) = grep { $_->{path} eq '/v1/hold' && defined $_->{answer}
                          && $_->{body} =~ /expires_in/ }
                   map { $h->{ops}{$_} } sort keys %{ $h->{ops} };
        entry_of($h, $op)->[RonHistory::EXPIRY] += 1000;
    } ],
    [ 'a hold that is closed before it expired', qr/right in no state/, sub {
        my ($h) = @_;
        my ($hold) = expired($h);
        my $op = $h->{ops}{$hold->[RonHistory::KEY]};
        my ($txid) = $op->{answer} =~ /"txid":"(\w+)"/;
        my $t = $op->{end};
        made($h, $t, path => '/v1/capture',
             body => qq({"hold":"$txid","amount_minor":"1"}),
             tries => [ [ $t, $t + 1, 409, '{"code":"HOLD_CLOSED"}' ] ]);
    } ],

    # what is said of a key

    [ 'another receipt is said to be committed', qr/two answers/, sub {
        my ($h) = @_;
        my $op = done_op($h, qr/transfer/);
        my $other = $op->{answer} =~ s/"seq":(\d+)/'"seq":' . ($1 + 1)/er;
        ask($h, $op, $op->{end}, 1,
            "{\"outcome\":\"committed\",\"receipt\":$other}");
    } ],
    [ 'committed is all that was said, and it is not there',
      qr/is not in the journal/, sub {
        my ($h) = @_;
        my $op = made($h, 1, path => '/v1/issue', body => '{}');
        ask($h, $op, 2, 1,
            '{"outcome":"committed","receipt":{"txid":"tx"}}');
    } ],
    [ 'committed is all that was said, of another entry', qr/has the receipt/,
      sub {
        my ($h) = @_;
        my ($op, $other) = (done_op($h, qr/transfer/), done_op($h, qr/issue/));
        delete $op->{answer};
        ask($h, $op, $op->{end}, 1,
            "{\"outcome\":\"committed\",\"receipt\":$other->{answer}}");
    } ],
    [ 'committed before it was sent', qr/before it was sent/, sub {
        my ($h) = @_;
        my $op = done_op($h, qr/transfer/);
        ask($h, $op, $op->{begin} - 20, 0,
            "{\"outcome\":\"committed\",\"receipt\":$op->{answer}}");
    } ],
    [ 'a batch that is said to be a receipt', qr/a receipt is said/, sub {
        my ($h) = @_;
        my $op = done_op($h, qr/batch/);
        ask($h, $op, $op->{end}, 1,
            "{\"outcome\":\"committed\",\"receipt\":$op->{answer}}");
    } ],
    [ 'unknown for good, and done', qr/"final":true\}, although it is done/,
      sub {
        my ($h) = @_;
        my $op = done_op($h, qr/transfer/);
        delete $op->{answer};
        $op->{end} = 9e18;
        $op->{tries} = [ [ $op->{begin}, $op->{begin} + 1, -1, '-' ] ];
        ask($h, $op, $op->{last_begin} + 1, 7000,
            '{"outcome":"unknown","final":true}');
    } ],
    [ 'unknown, and there', qr/although it was there/, sub {
        my ($h) = @_;
        my $op = done_op($h, qr/transfer/);
        ask($h, $op, $op->{end} + 1, 0, '{"outcome":"unknown","final":false}');
    } ],
    [ 'unknown for good too early', qr/too early to say so/, sub {
        my ($h) = @_;
        my ($q) = grep { $_->[3] =~ /"final":true/ } @{ $h->{questions} };
        $q->[4] = 1999;
    } ],
    [ 'pending, with something', qr/which is no answer/, sub {
        my ($h) = @_;
        ask($h, done_op($h, qr/transfer/), 1, 0,
            '{"outcome":"pending","receipt":{}}');
    } ],
    [ 'a question that is refused', qr/was answered 404/, sub {
        my ($h) = @_;
        $h->{questions}[0][2] = 404;
    } ],
);

sub write_load {
    my ($h, $text) = @_;

    $c->{s}->write_file('spoilt', $text);
    $h->load("$dir/spoilt");
}

my $text = RonTest::slurp("$dir/history-a");

for my $control (@controls) {
    my ($name, $says, $spoil) = @$control;
    my $h = RonHistory->new(b3 => $c->{b3}, deadline => 1000);

    $h->load("$dir/history-a");
    $h->journal($export);
    $spoil->($h, $text);

    my @wrong = $h->check;

    ok((grep { /$says/ } @wrong), "noticed: $name")
        or diag("it said: @wrong");
}

done_testing();
