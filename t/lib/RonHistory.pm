package RonHistory;

# Is what clients saw consistent with one ledger that does one thing after
# the other?
#
#     my $h = RonHistory->new(b3 => "$build/t/chaos/b3");
#     # starved => [[from, to], ...]: times, in us, in which a worker may have
#     # had no memory, so a 500 says nothing
#     # deadline => ms: the server's ron_deadline, 5000
#     $h->load($_) for @histories;            # of t/chaos/client.c
#     $h->load($_, $us);                      # what was known at that time
#     $h->journal($export);                   # ronctl ledger export
#     my @wrong = $h->check;                  # nothing, or what is wrong
#     print $h->summary;
#
# Finding an order of operations that explains a history is hard in general.
# Here every operation that had an effect names its place in one order, its
# seq, so the order is given and has to be checked only:
#
#   * The journal, executed from its first entry by the simplest ledger that
#     there is, is legal: no balance below zero, nonces rise, holds suffice
#     and end when they expire, one unit for a key.
#   * An ingest is what that ledger decides about its entries at their place
#     in the journal: which are accepted, in which order, and why others are
#     not.
#   * It agrees with real time: what was answered before something else was
#     begun has the smaller seq.
#   * Every answer agrees with it: a receipt is that of its entry, a replay is
#     the same bytes, a balance is one that the account had in the time in
#     which it was read (and at most stale_ms before), a refusal is right in a
#     state that the ledger was in between request and answer.
#   * What has no answer is decided by its key: in the journal or not, and at
#     most once.  What was refused for good is not in it.
#   * What is said of a key is true: "committed" has the answer that the
#     operation has, "unknown" was not there when that was said, and if that
#     is final, nothing that was sent before is there later.
#
# Nothing of libron is used: entries are read by docs/FORMAT.md.

use strict;
use warnings;

use MIME::Base64 qw(decode_base64);

my @KIND = qw(? Mint Burn Transfer Debit Credit Hold Capture Release Reverse);
my @OP = qw(? issue burn transfer debit credit hold capture release reverse);
my %NUMBER = map { $OP[$_] => $_ } 1 .. $#OP;
my @DIGITS = split //, '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
my %VALUE = map { $DIGITS[$_] => $_ } 0 .. $#DIGITS;

# members of an entry, and of an attempt

use constant { SEQ => 0, TIME => 1, KIND => 2, ASSET => 3, ACCOUNT => 4,
               TO => 5, AMOUNT => 6, NONCE => 7, KEY => 8, REF => 9,
               COMMIT => 10, NONCE16 => 11, ID => 12, SOURCE => 13,
               FIRST => 14, LEGS => 15, EXPIRY => 16, EXPIRED => 17,
               PLACE => 18 };
use constant { BEGIN_US => 0, END_US => 1, STATUS => 2, ANSWER => 3 };

my $SLACK_US = 2000;                    # as_of is in milliseconds
my $AGAIN_US = 5000;                    # a worker sends no sooner again
my $TRANSIT_MS = 1000;                  # and a deadline, until unknown is final

# why an entry of an ingest is refused: reason, detail, code of the problem

my %WHY = (
    insufficient => [ 'insufficient', 'not enough available',
                      'INSUFFICIENT_FUNDS' ],
    unbalanced => [ 'conflict', 'debits and credits of an asset differ',
                    'CONFLICT' ],
    posting => [ 'conflict', 'another leg of the posting was refused',
                 'CONFLICT' ],
    aborted => [ 'conflict', 'another operation of the batch was refused',
                 'CONFLICT' ],
);


sub new {
    my ($class, %o) = @_;

    return bless { ops => {}, reads => [], mismatch => [], questions => [],
                   entries => [undef], wrong => [], n => {},
                   deadline => 5000, %o }, $class;
}

sub load {
    my ($self, $file, $until) = @_;

    open my $f, '<', $file or die "$file: $!";

    while (my $line = <$f>) {
        chomp $line;
        my ($kind, undef, $begin, $end, $status, $replayed, $tag, $path, $key,
            $body, $answer) = split /\t/, $line, 11;

        next unless defined $answer;

        if (defined $until && $end >= $until) {
            next if $begin >= $until;
            ($status, $answer, $replayed) = (-1, '-', 0);
        }

        $self->{n}{attempts}++;

        if ($kind eq 'R') {
            push @{ $self->{reads} },
                [ $begin, $end, $status, $answer, $tag, $path ];
            next;
        }

        if ($kind eq 'M') {
            push @{ $self->{mismatch} },
                [ $begin, $end, $status, $answer, $key, $path ];
            next;
        }

        my $op = $self->{ops}{$key}
            ||= { key => $key, path => $path, body => $body, begin => 9e18,
                  end => 9e18, last_begin => 0, tries => [], answers => [] };

        if ($kind eq 'O') {
            $self->question($op, [ $begin, $end, $status, $answer, $tag ]);
            next;
        }

        $op->{begin} = $begin if $begin < $op->{begin};
        $op->{last_begin} = $begin if $begin > $op->{last_begin};

        if ($status == 200 || $status == 207) {
            push @{ $op->{answers} }, [ $begin, $end, $status, $answer ];
            $self->{n}{replayed} += $replayed;
            $self->answered($op, $end, $status, $answer);
            next;
        }

        push @{ $op->{tries} }, [ $begin, $end, $status, $answer ];
    }
}

# An operation has one answer, however often it is given.  The entries of an
# ingest without an idem_id are known one by one, and those that were refused
# are tried again: each of its answers is judged for itself.

sub answered {
    my ($self, $op, $end, $status, $answer) = @_;

    if ($end < $op->{end}) {
        $op->{end} = $end;
        $op->{first} = $answer if loose($op);
    }

    if (!defined $op->{answer}) {
        $op->{answer} = $answer;
        $op->{status} = $status;
    } elsif ($op->{answer} ne $answer && !loose($op)) {
        $self->wrong("$op->{key}: two answers: $op->{answer} and $answer");
    }
}

sub ingest { return $_[0]{path} eq '/ledger/ingest' }
sub loose { return ingest($_[0]) && $_[0]{body} !~ /"idem_id"/ }

# What is said to be committed is an answer of the operation, as good as any.

sub question {
    my ($self, $op, $q) = @_;

    push @{ $self->{questions} }, [ @$q, $op ];

    if ($q->[STATUS] == 200
        && $q->[ANSWER] =~ /^\{"outcome":"committed","(\w+)":(.*)\}$/)
    {
        my ($what, $text) = ($1, $2);
        my $batch = $op->{path} eq '/v1/batch';

        $self->wrong("$op->{key}: a $what is said to be committed")
            if $what ne ($batch ? 'batch' : 'receipt');
        $self->answered($op, $q->[END_US],
                        $batch && $text =~ /"accepted":false/ ? 207 : 200,
                        $text);
    }
}

sub wrong {
    my ($self, $text) = @_;

    push @{ $self->{wrong} }, $text;
}


# ---- the journal ------------------------------------------------------------

sub journal {
    my ($self, $file) = @_;

    open my $f, '<', $file or die "$file: $!";

    my $commit = 0;

    while (<$f>) {
        if (/^\{"seq":(\d+),"bytes":"([^"]+)"/) {
            my $e = $self->decode(decode_base64($2)) or next;
            my $next = @{ $self->{entries} };

            $self->wrong("journal: seq $e->[SEQ] where $next is due")
                if $e->[SEQ] != $next || $1 != $next;
            $e->[COMMIT] = $commit;
            push @{ $self->{entries} }, $e;

        } elsif (/^\{"commit":\{"seq":(\d+),"count":(\d+).*"root":"(\w+)"/) {
            $commit = $1;
            $self->{roots}{$3} = $1 + $2 - 1;
            $self->{root_of}{$1} = $3;

        } elsif (/^\{"end":\{"seq":(\d+)/) {
            $self->{end} = $1;
        }
    }

    $self->wrong('journal: the export has no end, or another')
        if !defined $self->{end} || $self->{end} != $#{ $self->{entries} };
}

sub varint {
    my ($p) = @_;

    my ($v, $shift) = (0, 0);

    for (;;) {
        my $b = ord substr $_[0], $_[1]++, 1;
        $v |= ($b & 0x7f) << $shift;
        return $v if $b < 128;
        $shift += 7;
    }
}

sub text {
    my $n = varint($_[0], $_[1]);
    my $t = substr $_[0], $_[1], $n;

    $_[1] += $n;

    return $t;
}

sub time_of {
    my ($high, $low) = unpack 'nN', substr $_[0], $_[1], 6;

    $_[1] += 6;

    return $high * 2 ** 32 + $low;
}

sub decode {
    my ($self, $b) = @_;

    my ($version, $kind, $ledger) = unpack 'CCn', $b;
    my $at = 4;
    my @e = (varint($b, $at));

    $self->{ledger_id} = $ledger;
    $e[TIME] = time_of($b, $at);
    $e[KIND] = $kind;

    my $fields = varint($b, $at);

    $e[ASSET] = text($b, $at) if $fields & 0x1;
    $e[ACCOUNT] = text($b, $at) if $fields & 0x2;
    $e[TO] = text($b, $at) if $fields & 0x4;

    if ($fields & 0x8) {
        my $n = ord substr $b, $at++, 1;
        my $v = 0;
        $v = $v * 256 + $_ for unpack 'C*', substr $b, $at, $n;
        $e[AMOUNT] = $v;
        $at += $n;
    }

    $e[NONCE] = varint($b, $at) if $fields & 0x10;

    if ($fields & 0x20) {
        $e[NONCE16] = substr $b, $at, 16;
        $at += 16;
    }

    $e[ID] = text($b, $at) if $fields & 0x40;
    $e[SOURCE] = time_of($b, $at) if $fields & 0x80;
    text($b, $at) if $fields & 0x100;
    $e[KEY] = text($b, $at) if $fields & 0x200;
    $e[REF] = varint($b, $at) if $fields & 0x400;
    @e[FIRST, LEGS] = (varint($b, $at), varint($b, $at)) if $fields & 0x800;
    $e[EXPIRY] = time_of($b, $at) if $fields & 0x1000;
    $e[EXPIRED] = $fields & 0x40000;

    if ($version != 1 || $at > length $b || $kind < 1 || $kind > 9) {
        $self->wrong('journal: an entry that is none');
        return undef;
    }

    return \@e;
}


# ---- the simplest ledger ----------------------------------------------------

# Per account all the states it had: [seq, available, held, nonce, version].
# Assets are not kept apart: a client of ours has one.

sub execute {
    my ($self) = @_;

    my (%now, %hold, %by_key);
    my @expiring;                       # [expiry, seq], the first to end first
    my $time = 0;
    my $states = $self->{states} = {};

    my $move = sub {
        my ($e, $account, $available, $held, $nonce) = @_;

        my $old = $now{$account} || [ 0, 0, 0, 0, 0 ];
        my $new = [ $e->[SEQ], $old->[1] + $available, $old->[2] + $held,
                    defined $nonce ? $nonce : $old->[3], $old->[4] + 1 ];

        # the legs of a posting are one step

        $self->wrong("seq $e->[SEQ]: $account has less than nothing")
            if ($new->[1] < 0 || $new->[2] < 0) && !defined $e->[FIRST];
        $self->wrong("seq $e->[SEQ]: nonce $nonce of $account after $old->[3]")
            if defined $nonce && $nonce <= $old->[3];

        $now{$account} = $new;
        push @{ $states->{$account} }, $new;
    };

    for my $e (@{ $self->{entries} }[1 .. $#{ $self->{entries} }]) {
        my $kind = $KIND[$e->[KIND]];
        my ($from, $to, $n) = @$e[ACCOUNT, TO, AMOUNT];

        $self->wrong("seq $e->[SEQ]: ledger time goes back")
            if $e->[TIME] < $time;
        $time = $e->[TIME];

        # what is ingested is found by its ids: KEY.PLACE

        if (defined $e->[ID] && $e->[ID] =~ /^(.*)\.(\d+)$/) {
            $e->[PLACE] = $2;
            push @{ $by_key{$1} }, $e;
        } elsif (defined $e->[KEY]) {
            push @{ $by_key{$e->[KEY]} }, $e;
        }

        # the holds that have expired are ended before anything else is done

        while (!$e->[EXPIRED] && @expiring && $expiring[0][0] <= $time) {
            my ($expiry, $seq) = @{ shift @expiring };

            $self->wrong("seq $e->[SEQ]: hold $seq is still open "
                         . ($time - $expiry) . ' ms after it expired')
                if $hold{$seq}[0] > 0;
        }

        if ($kind eq 'Mint') {
            $move->($e, $from, $n, 0);
        } elsif ($kind eq 'Burn') {
            $move->($e, $from, -$n, 0, $e->[NONCE]);
        } elsif ($kind eq 'Transfer') {
            $move->($e, $from, -$n, 0, $e->[NONCE]);
            $move->($e, $to, $n, 0);
        } elsif ($kind eq 'Hold') {
            $move->($e, $from, -$n, $n, $e->[NONCE]);
            $hold{$e->[SEQ]} = [ $n, $from, $to, [ [ $e->[SEQ], $n ] ],
                                 $e->[EXPIRY] ];

            if (defined $e->[EXPIRY]) {
                splice @expiring, after(\@expiring, $e->[EXPIRY]), 0,
                       [ $e->[EXPIRY], $e->[SEQ] ];
            }
        } elsif ($kind eq 'Capture' || $kind eq 'Release') {
            my $h = $hold{$e->[REF]};

            $self->expired($e, $h) if $e->[EXPIRED];

            if (!$h || $h->[0] < $n || $h->[1] ne $from
                || ($kind eq 'Release' ? $h->[0] != $n : $h->[2] ne $to))
            {
                $self->wrong("seq $e->[SEQ]: a $kind that its hold does not"
                             . ' allow');
                next;
            }

            $h->[0] -= $n;
            push @{ $h->[3] }, [ $e->[SEQ], $h->[0] ];
            $move->($e, $from, $kind eq 'Release' ? $n : 0, -$n);
            $move->($e, $to, $n, 0) if $kind eq 'Capture';
        } elsif ($kind eq 'Debit' || $kind eq 'Credit') {
            $move->($e, $from, $kind eq 'Debit' ? -$n : $n, 0);
            $self->leg($e, \%now);
        } else {
            $self->wrong("seq $e->[SEQ]: a $kind, which nobody asked for");
        }
    }

    $self->{hold} = \%hold;
    $self->{by_key} = \%by_key;
}

# A Release that nobody asked for: the hold's time is over, and it gives back
# all that is left, which execute() looks at.

sub expired {
    my ($self, $e, $h) = @_;

    $self->{n}{expired}++;

    $self->wrong("seq $e->[SEQ]: has expired, and is a $KIND[$e->[KIND]] that"
                 . ' somebody asked for')
        if $e->[KIND] != 8 || defined $e->[KEY] || defined $e->[ID];
    $self->wrong("seq $e->[SEQ]: the hold $e->[REF] never expires")
        if $h && !defined $h->[4];
    $self->wrong("seq $e->[SEQ]: the hold $e->[REF] ended "
                 . ($h->[4] - $e->[TIME]) . ' ms before it expired')
        if $h && defined $h->[4] && $e->[TIME] < $h->[4];
    $self->wrong("seq $e->[SEQ]: nothing was left of the hold $e->[REF]")
        if $h && $h->[0] == 0;
}

# Debits are credits, and nobody owes anything, when the last leg is done.

sub leg {
    my ($self, $e, $now) = @_;

    my $p = $self->{posting} ||= {};

    %$p = (first => $e->[FIRST], sum => 0) if $e->[SEQ] == $e->[FIRST];
    $p->{sum} += $e->[KIND] == 4 ? -$e->[AMOUNT] : $e->[AMOUNT];
    $p->{of}{$e->[ACCOUNT]} = 1;

    $self->wrong("seq $e->[SEQ]: a leg of another posting")
        if !defined $p->{first} || $p->{first} != $e->[FIRST];

    return if $e->[SEQ] != $e->[FIRST] + $e->[LEGS] - 1;

    $self->wrong("seq $e->[SEQ]: the posting does not balance")
        if $p->{sum} != 0;

    for (grep { $now->{$_}[1] < 0 } sort keys %{ $p->{of} }) {
        $self->wrong("seq $e->[SEQ]: $_ has less than nothing");
    }
}


# ---- operations -------------------------------------------------------------

# What a request asks for, as a list of [kind, account, to, amount, nonce,
# ref]; the amount of a release is what is left.

sub asked {
    my ($op) = @_;

    return if ingest($op);

    my @parts = $op->{path} eq '/v1/batch'
                    ? $op->{body} =~ /(\{"op":[^{}]*\})/g : $op->{body};
    my @asked;

    for my $p (@parts) {
        my %m = $p =~ /"(\w+)":"?([^",}]+)/g;
        my $name = $m{op} || substr $op->{path}, 4;

        push @asked, [ $NUMBER{$name},
                       $name eq 'issue' ? ($m{to}, undef) : @m{qw(from to)},
                       @m{qw(amount_minor nonce)},
                       $m{hold} ? txid_seq($m{hold}) : undef,
                       $m{expires_in} ];
    }

    return @asked;
}

sub txid_seq {
    my ($txid) = @_;

    my $v = 0;
    $v = $v * 32 + $VALUE{$_} for split //, substr $txid, -10;

    return $v;
}

sub same {
    my ($e, $want) = @_;

    return 0 if $e->[KIND] != $want->[0];

    for ([ ACCOUNT, 1 ], [ TO, 2 ], [ AMOUNT, 3 ], [ NONCE, 4 ], [ REF, 5 ]) {
        my ($x, $y) = ($e->[$_->[0]], $want->[$_->[1]]);

        next if !defined $y && $e->[KIND] >= 7;
        return 0 if defined $x != defined $y || defined $x && $x ne $y;
    }

    my $lives = defined $e->[EXPIRY] ? $e->[EXPIRY] - $e->[TIME] : 0;

    return $lives == 1000 * ($want->[6] || 0);
}

# The entries of an operation are what it asked for, in one commit.

sub match {
    my ($self, $op) = @_;

    return $self->match_ingest($op) if ingest($op);

    my $key = $op->{key};
    my @e = @{ $self->{by_key}{$key} || [] };
    my @asked = asked($op);
    my $all = $op->{path} ne '/v1/batch' || $op->{body} =~ /"atomic":true/;

    $op->{seq} = $e[0][SEQ];
    $op->{last} = $e[-1][SEQ];

    if ($op->{last} - $op->{seq} != $#e || $e[0][COMMIT] != $e[-1][COMMIT]) {
        $self->wrong("$key: done more than once: seq "
                     . join(' ', map { $_->[SEQ] } @e));
        return;
    }

    my $i = 0;

    for my $e (@e) {
        $i++ while $i < @asked && !same($e, $asked[$i]);
        $self->wrong("$key: seq $e->[SEQ] is not what was asked for: "
                     . $op->{body}) if $i++ >= @asked;
    }

    $self->wrong("$key: done by half") if $all && @e != @asked;

    $self->receipts($op, @e) if defined $op->{answer};
}

# ---- ingests ----------------------------------------------------------------

# The entries that an ingest asks for.

sub entries {
    my ($op) = @_;

    return @{ $op->{asked} ||= [ map { my %m = /"(\w+)":"?([^",}]+)/g; \%m }
                                     $op->{body} =~ /(\{"id":[^{}]*\})/g ] };
}

# What the simplest ledger says to the entries of an ingest, in the state
# after a seq, when those in %$done are there already: the places of those
# that it accepts, in the order of their seqs, and for each other one why not.

sub decide {
    my ($self, $op, $seq, $done) = @_;

    my @want = entries($op);
    my $atomic = $op->{body} =~ /"atomic":true/;
    my (%now, %seen, @order, @why);

    my $has = sub {
        my ($account) = @_;

        return $now{$account} //= do {
            my $list = $self->{states}{$account} || [];
            my $i = after($list, $seq);
            $i ? $list->[$i - 1][1] : 0;
        };
    };

    for my $i (0 .. $#want) {
        next if $seen{$i}++ || exists $done->{$i};

        my @group = $want[$i]{kind} !~ /^(?:Debit|Credit)$/ ? $i
            : grep { $want[$_]{kind} =~ /^(?:Debit|Credit)$/
                     && !exists $done->{$_} } 0 .. $#want;
        my (%gain, $culprit);
        my $sum = 0;

        @seen{@group} = (1) x @group;

        for my $w (@want[@group]) {
            my $n = $w->{kind} =~ /^(?:Mint|Credit)$/ ? $w->{amount}
                                                      : -$w->{amount};
            $gain{$w->{account}} += $n;
            $gain{$w->{to}} += $w->{amount} if $w->{kind} eq 'Transfer';
            $sum += $n;
        }

        if ($want[$i]{kind} =~ /^(?:Debit|Credit)$/ && $sum != 0) {
            @why[@group] = ('unbalanced') x @group;
            last if $atomic;
            next;
        }

        ($culprit) = grep {
            my $w = $want[$_];
            $w->{kind} !~ /^(?:Mint|Credit)$/
                && $has->($w->{account}) + $gain{$w->{account}} < 0;
        } @group;

        if (defined $culprit) {
            @why[@group] = ('posting') x @group;
            $why[$culprit] = 'insufficient';
            last if $atomic;
            next;
        }

        $now{$_} = $has->($_) + $gain{$_} for keys %gain;
        push @order, @group;
    }

    if ($atomic && grep { defined } @why) {
        $why[$_] //= 'aborted' for 0 .. $#want;
        @order = ();
    }

    return (\@order, \@why);
}

# The entries of an ingest are what was asked for, and each time that some of
# them were committed, those that the simplest ledger accepts at that place.

sub match_ingest {
    my ($self, $op) = @_;

    my $key = $op->{key};
    my @e = @{ $self->{by_key}{$key} };
    my @want = entries($op);
    my %done;

    $op->{seq} = $e[0][SEQ];
    $op->{last} = $e[-1][SEQ];
    $self->{n}{ingested} += @e;

    for my $e (@e) {
        $self->wrong("$key: seq $e->[SEQ] is not what was asked for: "
                     . $op->{body}) if !same_ingested($op, $e);
    }

    while (@e) {
        my $seq = $e[0][SEQ] - 1;
        my $commit = $e[0][COMMIT];
        my ($order) = $self->decide($op, $seq, \%done);

        push @{ $op->{rounds} }, [ $seq, { %done } ];

        if (@{ $op->{rounds} } > 1 && !loose($op)
            || grep { exists $done{$_->[PLACE]} } @e)
        {
            $self->wrong("$key: done more than once: seq "
                         . join(' ', map { $_->[SEQ] } @e));
            return;
        }

        for my $i (@$order ? @$order : -1) {
            my $e = shift @e;

            if (!$e || $e->[PLACE] != $i || $e->[SEQ] != ++$seq
                || $e->[COMMIT] != $commit || !leg_of($e, \@want, $order))
            {
                $self->wrong("$key: after seq $op->{rounds}[-1][0] it is"
                             . " ingested by other rules: [@$order] are due: "
                             . $op->{body});
                return;
            }

            $done{$i} = $seq;
        }
    }

    $op->{done} = \%done;

    # what came later than the first answer was not yet there

    $op->{last} = (sort { $b <=> $a } $op->{first} =~ /"seq":(\d+)/g)[0] || 0
        if defined $op->{first};
}

sub same_ingested {
    my ($op, $e) = @_;

    my $want = (entries($op))[$e->[PLACE]] or return 0;
    my ($idem) = $op->{body} =~ /"idem_id":"([^"]+)"/;
    my $is = sub { return defined $_[0] ? defined $_[1] && $_[0] eq $_[1]
                                        : !defined $_[1] };

    return $KIND[$e->[KIND]] eq $want->{kind} && $e->[ASSET] eq 'ron'
           && $is->($e->[ACCOUNT], $want->{account})
           && $is->($e->[TO], $want->{to})
           && $is->($e->[AMOUNT], $want->{amount})
           && $is->($e->[SOURCE], $want->{ts})
           && $is->($e->[NONCE16], decode_base64($want->{nonce}))
           && $is->($e->[KEY], $idem) && !defined $e->[NONCE]
           && !defined $e->[REF] && !defined $e->[EXPIRY];
}

# A leg says where its posting is, which is all legs of the batch.

sub leg_of {
    my ($e, $want, $order) = @_;

    return !defined $e->[FIRST] if $e->[KIND] != 4 && $e->[KIND] != 5;

    my @legs = grep { $want->[$_]{kind} =~ /^(?:Debit|Credit)$/ } @$order;
    my ($at) = grep { $legs[$_] == $e->[PLACE] } 0 .. $#legs;

    return defined $e->[FIRST] && $e->[FIRST] == $e->[SEQ] - $at
           && $e->[LEGS] == @legs;
}

# The answer to an ingest that was decided after a seq; undef: a problem.

sub ingest_answer {
    my ($self, $op, $seq, $done, $root) = @_;

    my ($order, $why) = $self->decide($op, $seq, $done);
    my @want = entries($op);
    my %seq = %$done;

    $seq{$_} = ++$seq for @$order;

    return undef unless %seq;

    my @seqs = sort { $a <=> $b } values %seq;
    my @refused = grep { !exists $seq{$_} } 0 .. $#want;

    $root = $self->{root_of}{$self->{entries}[$seq][COMMIT]}
        if @$order && $self->{entries}[$seq];

    return '{"accepted":' . (@refused ? 'false' : 'true')
        . ",\"seq_start\":$seqs[0],\"seq_end\":$seqs[-1]"
        . ',"new_root":"' . ($root || '') . '","entries":['
        . join(',', map { "{\"idx\":$_,\"seq\":$seq{$_}}" }
                    sort { $a <=> $b } keys %seq)
        . '],"reasons":['
        . join(',', map {
              my ($reason, $detail) = @{ $WHY{$why->[$_]} };
              "{\"idx\":$_,\"reason\":\"$reason\",\"detail\":\"$detail\"}"
          } @refused) . ']}';
}

# Where an ingest can have been decided between two times: after the seqs
# that changed anything for it, with what was there of it by then.

sub places {
    my ($self, $op, $begin, $end) = @_;

    my ($first, $last) = ($self->surely($begin), $self->possibly($end));
    my %at = ($first => 1);

    for my $account (map { $_->{account} } entries($op)) {
        $at{$_->[0]} = 1 for between($self->{states}{$account} || [], $first,
                                     $last);
    }

    $at{$_} = 1 for values %{ $op->{done} || {} };

    return map {
        my $seq = $_;
        my %done = map { $_ => $op->{done}{$_} }
                   grep { $op->{done}{$_} <= $seq } keys %{ $op->{done} || {} };
        [ $seq, \%done ];
    } grep { $_ >= $first && $_ <= $last } sort { $a <=> $b } keys %at;
}

# With an idem_id there is one answer, that of the place where it is.  Without
# one an answer is right at that place, or at one where nothing was accepted:
# when it was sent again, by the client, or by its worker to the next helper.

sub check_ingested {
    my ($self, $op) = @_;

    for my $try (@{ $op->{answers} }) {
        my ($begin, $end, $status, $answer) = @$try;
        my ($root) = $answer =~ /"new_root":"(\w+)"/;
        my @can = map { $self->ingest_answer($op, @$_) }
                      @{ $op->{rounds} || [] };

        if (loose($op) && ($end - $begin >= $AGAIN_US
                           || @{ $op->{answers} } + @{ $op->{tries} } > 1))
        {
            my $size = $self->{roots}{$root || ''};

            if ($size && $size >= $self->surely($begin)
                && $size <= $self->possibly($end))
            {
                push @can, map { $self->ingest_answer($op, @$_, $root) }
                           grep { !@{ ($self->decide($op, @$_))[0] } }
                                $self->places($op, $begin, $end);
            }
        }

        @can = grep { defined } @can;

        $self->wrong("$op->{key} ($op->{body}) was answered $status $answer;"
                     . ' possible: ' . join ' ', @can)
            if !grep { $_ eq $answer
                       && $status == (/"accepted":true/ ? 200 : 207) } @can;
    }
}


# ---- receipts ---------------------------------------------------------------

# Receipts are functions of their entries.

sub receipts {
    my ($self, $op, @e) = @_;

    my @got = $op->{answer} =~ /(\{"txid":[^{}]*\})/g;

    if (@got != @e) {
        $self->wrong("$op->{key}: " . @got . ' receipts for ' . @e
                     . ' entries');
        return;
    }

    for my $e (@e) {
        my $got = shift @got;
        my ($hash) = $got =~ /"receipt_hash":"(b3:[0-9a-f]{64})"/;
        my ($text, $hashed) = $self->receipt($e, $hash || '');

        $self->wrong("$op->{key}: seq $e->[SEQ] has the receipt $text, was"
                     . " answered $got") if $text ne $got;

        push @{ $self->{hashes} }, [ $hashed, $hash, $op->{key} ];
    }
}

sub receipt {
    my ($self, $e, $hash) = @_;

    my $op = $OP[$e->[KIND]];
    my ($from, $to) = $op eq 'issue' ? (undef, $e->[ACCOUNT])
                                     : @$e[ACCOUNT, TO];
    my ($s, $ms) = (int($e->[TIME] / 1000), $e->[TIME] % 1000);
    my @t = gmtime $s;
    my $ts = sprintf '%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', $t[5] + 1900,
                     $t[4] + 1, @t[3, 2, 1, 0], $ms;

    my $bits = '00' . unpack 'B*', pack 'nNnQ>', $e->[TIME] >> 32,
               $e->[TIME] & 0xffffffff, $self->{ledger_id}, $e->[SEQ];
    my $txid = 'tx_' . join '', map { $DIGITS[oct "0b$_"] }
                            $bits =~ /(.{5})/g;

    my %m = (txid => "\"$txid\"", op => "\"$op\"", asset => "\"$e->[ASSET]\"",
             amount_minor => "\"$e->[AMOUNT]\"", idem => "\"$e->[KEY]\"",
             ts => "\"$ts\"");

    $m{from} = "\"$from\"" if defined $from;
    $m{to} = "\"$to\"" if defined $to;
    $m{nonce} = $e->[NONCE] if defined $e->[NONCE];

    my $hashed = '{' . join(',', map { "\"$_\":$m{$_}" } sort keys %m) . '}';

    $m{receipt_hash} = "\"$hash\"";
    $m{seq} = $e->[SEQ];

    my $text = '{' . join(',', map { "\"$_\":$m{$_}" } grep { exists $m{$_} }
                          qw(txid op from to asset amount_minor nonce idem ts
                             receipt_hash seq)) . '}';

    return ($text, $hashed);
}

# All receipt hashes at once, by another program.

sub check_hashes {
    my ($self) = @_;

    my $all = $self->{hashes} || [];

    return unless $self->{b3} && @$all;

    my $file = "/tmp/ron-hashes-$$";

    open my $f, '>', $file or die "$file: $!";
    print $f "$_->[0]\n" for @$all;
    close $f or die "$file: $!";

    open my $p, '-|', "'$self->{b3}' <'$file'" or die "$self->{b3}: $!";

    for my $h (@$all) {
        my $line = <$p>;
        chomp($line = '') unless defined $line;
        chomp $line;
        $self->wrong("$h->[2]: receipt_hash $h->[1] is not $line")
            if !defined $h->[1] || $h->[1] ne "b3:$line";
        $self->{n}{hashes}++;
    }

    close $p;
    unlink $file;
}


# ---- time -------------------------------------------------------------------

# What was answered before something else was begun has the smaller seq; and
# two tables: what was surely done at a time, and what can have been.

sub real_time {
    my ($self) = @_;

    my @ops = sort { $a->{seq} <=> $b->{seq} }
              grep { defined $_->{seq} } values %{ $self->{ops} };
    my ($latest, $of) = (0, '');

    for my $op (@ops) {
        $self->wrong("$op->{key} (seq $op->{seq}) was answered "
                     . ($latest - $op->{end}) . " us before $of began, which"
                     . ' has a smaller seq') if $op->{end} < $latest;
        ($latest, $of) = ($op->{begin}, $op->{key}) if $op->{begin} > $latest;
    }

    my (@end, @begin);
    my $max = 0;

    for (sort { $a->{end} <=> $b->{end} } grep { $_->{end} < 9e18 } @ops) {
        $max = $_->{last} if $_->{last} > $max;
        push @end, [ $_->{end}, $max ];
    }

    my $min = $#{ $self->{entries} } + 1;

    for (sort { $b->{begin} <=> $a->{begin} } @ops) {
        $min = $_->{seq} if $_->{seq} < $min;
        push @begin, [ $_->{begin}, $min ];
    }

    $self->{by_end} = \@end;
    $self->{by_begin} = [ reverse @begin ];
}

# The first in a sorted table that is after (or at, if $at) a time.

sub after {
    my ($table, $t, $at) = @_;

    my ($low, $high) = (0, scalar @$table);

    while ($low < $high) {
        my $mid = ($low + $high) >> 1;

        if ($table->[$mid][0] > $t || $at && $table->[$mid][0] == $t) {
            $high = $mid;
        } else {
            $low = $mid + 1;
        }
    }

    return $low;
}

sub surely {
    my ($self, $t) = @_;

    my $i = after($self->{by_end}, $t, 1);

    return $i ? $self->{by_end}[$i - 1][1] : 0;
}

sub possibly {
    my ($self, $t) = @_;

    my $i = after($self->{by_begin}, $t);

    return $i < @{ $self->{by_begin} } ? $self->{by_begin}[$i][1] - 1
                                       : $#{ $self->{entries} };
}

# The states of a list, [seq, ...] each, between two seqs: the one that was
# there at the first, and all up to the last.

sub between {
    my ($list, $first, $last) = @_;

    my $from = after($list, $first) - 1;
    my $to = after($list, $last) - 1;
    my @found = map { $list->[$_] } ($from < 0 ? 0 : $from) .. $to;

    return $from < 0 ? ([ 0, 0, 0, 0, 0 ], @found) : @found;
}


# Of all states of an account the last, and those that were the last but for
# holds that expired.

sub latest {
    my ($self, @states) = @_;

    my $i = $#states;

    $i-- while $i > 0 && $self->{entries}[$states[$i][0]][EXPIRED];

    return @states[$i .. $#states];
}


# Answered 500 while a worker may have had no memory.
sub starved {
    my ($self, $try) = @_;

    return $try->[STATUS] eq '500'
           && grep { $try->[BEGIN_US] < $_->[1] && $try->[END_US] > $_->[0] }
                   @{ $self->{starved} || [] };
}


# ---- reads and refusals -----------------------------------------------------

sub check_read {
    my ($self, $r) = @_;

    my ($begin, $end, $status, $answer, $tag, $path) = @$r;

    if ($status != 200) {
        $self->wrong("a read of $path was answered $status $answer")
            unless $status =~ /^(?:0|-1|429|503)$/
                   || $self->starved($r);
        return;
    }

    $self->{n}{reads}++;

    my ($account) = $path =~ /account=([^&]+)/;
    my %m = $answer =~ /"(\w+)":"?([^",}]+)/g;
    my $states = $self->{states}{$account} || [];
    my @can = between($states,
                      $self->surely($begin - 1000 * $m{stale_ms} - $SLACK_US),
                      $self->possibly($end));

    push @{ $self->{stale} }, [ $begin, $m{stale_ms} ]
        if $m{stale_ms} > 250;

    $self->{n}{stalest} = $m{stale_ms}
        if $m{stale_ms} > ($self->{n}{stalest} || 0);

    for my $s (@can) {
        return if $s->[1] == $m{amount_minor} && $s->[2] == $m{held_minor}
                  && $s->[3] == $m{nonce} && ($tag eq '-' || $s->[4] == $tag);
    }

    $self->wrong("a read is of no state between its times: $answer, version"
                 . " $tag; possible: "
                 . join ' ', map { '[' . join(',', @$_) . ']' } @can);
}

# Is there a state in which the refusal is right?

sub check_refusal {
    my ($self, $op, $try) = @_;

    my ($begin, $end, $status, $answer) = @$try;
    my ($code) = $answer =~ /"code":"(\w+)"/;
    my $first = $self->surely($begin);
    my $last = $self->possibly($end);
    my $key = $op->{key};
    my $text = "$key ($op->{path} $op->{body}): $status " . ($code || $answer);

    $code ||= '';
    $last = $op->{seq} - 1 if defined $op->{seq} && $op->{seq} <= $last;
    $self->{n}{refused}++;

    if (defined $op->{seq} && $first >= $op->{seq}) {
        $self->wrong("$text, although it was done as seq $op->{seq}");
        return;
    }

    if (ingest($op)) {
        return if $self->ingest_refused($op, $code, $first, $begin, $end);
        $self->wrong("$text: right in no state from seq $first to $last");
        return;
    }

    my @asked = asked($op);

    if ($code =~ /^(?:HOLD_CLOSED|CONFLICT)$/ && defined $asked[0][5]) {
        my $hold = $self->{hold}{$asked[0][5]};
        my $n = $code eq 'HOLD_CLOSED' ? 1 : $asked[0][3];

        # before its own seq there is no hold, so there is none to be closed

        return if $hold && grep { $_->[0] && $_->[1] < $n }
                           between($hold->[3], $first, $last);

    } elsif ($code eq 'INSUFFICIENT_FUNDS') {
        my $sum = 0;
        $sum += $_->[3] for @asked;

        return if grep { $_->[1] < $sum }
            between($self->{states}{$asked[0][1]} || [], $first, $last);

    } elsif ($code eq 'NONCE_CONFLICT') {
        return if grep { $_->[3] >= $asked[0][4] }
            between($self->{states}{$asked[0][1]} || [], $first, $last);
        return if $self->overtaken($asked[0], $begin, $end, $key);
    }

    $self->wrong("$text: right in no state from seq $first to $last");
}

# Nothing of it is accepted, and this is the reason of the first that was not
# refused for others.

sub ingest_refused {
    my ($self, $op, $code, $first, $begin, $end) = @_;

    for my $at ($self->places($op, $begin, $end)) {
        next if %{ $at->[1] } || $at->[0] < $first;

        my ($order, $why) = $self->decide($op, @$at);
        my ($by) = grep { defined && $_ ne 'aborted' } @$why;

        return 1 if !@$order && defined $by && $WHY{$by}[2] eq $code;
    }

    return 0;
}

# A worker may refuse a nonce early because a greater one of the account is
# under way, whatever becomes of that.

sub overtaken {
    my ($self, $asked, $begin, $end, $key) = @_;

    $self->{of} ||= do {
        my %of;

        for my $op (values %{ $self->{ops} }) {
            for my $want (asked($op)) {
                next unless defined $want->[4];
                my ($late) = sort { $b <=> $a } map { $_->[END_US] }
                                  @{ $op->{tries} };
                $late = 9e18 if !defined $late || defined $op->{answer};
                push @{ $of{$want->[1]} }, [ $want->[4], $op->{begin}, $late,
                                             $op->{key} ];
            }
        }

        \%of;
    };

    $self->{n}{early}++;

    return grep { $_->[0] >= $asked->[4] && $_->[1] <= $end
                  && $_->[2] >= $begin && $_->[3] ne $key }
                @{ $self->{of}{$asked->[1]} || [] };
}

# Answers other than success, of one operation.

sub check_tries {
    my ($self, $op) = @_;

    my $doubt = defined $op->{answer} || !@{ $op->{tries} };

    for my $try (@{ $op->{tries} }) {
        my ($begin, $end, $status, $answer) = @$try;

        if ($status <= 0 || $status == 503 && $answer =~ /"code":"TIMEOUT"/
            || $self->starved($try))
        {
            $doubt = 1;
            $self->{n}{unknown}++;
        } elsif ($status == 429 || $status == 503) {
            $self->{n}{later}++;
        } elsif ($status == 409) {
            $self->check_refusal($op, $try);
        } else {
            $self->wrong("$op->{key}: $op->{body} was answered $status"
                         . " $answer");
        }
    }

    $self->wrong("$op->{key} (seq $op->{seq}) was done and every answer said"
                 . ' no: ' . $op->{tries}[-1][ANSWER])
        if defined $op->{seq} && !$doubt;
}


# What was said of a key.  What is committed was judged as an answer, and
# what is pending may become anything.

sub check_question {
    my ($self, $q) = @_;

    my ($begin, $end, $status, $answer, $age, $op) = @$q;
    my $text = "$op->{key} ($op->{path}), sent $age ms before, was $answer";
    my $done = defined $op->{seq};

    if ($status != 200) {
        $self->wrong("a question about $op->{key} was answered $status"
                     . " $answer")
            unless $status =~ /^(?:0|-1|429|503)$/ || $self->starved($q);
        return;
    }

    my ($what, $final) = $answer =~
        /^\{"outcome":"(\w+)"(?:,"final":(true|false))?/;
    $final = ($final || '') eq 'true';
    $what ||= '';

    $self->{n}{$final ? 'final' : $what}++;

    if ($what eq 'committed') {
        $self->wrong("$text before it was sent") if $end < $op->{begin};
        return;
    }

    return if $answer eq '{"outcome":"pending"}';

    if ($answer !~ /^\{"outcome":"unknown","final":(?:true|false)\}$/) {
        $self->wrong("$text, which is no answer");
        return;
    }

    # what was sent after the question may be done whatever it said

    $self->wrong("$text, although it is done, as seq $op->{seq}")
        if $final && $done && $op->{last_begin} < $begin;
    $self->wrong("$text, although it was there, as seq $op->{seq}")
        if $done && $self->surely($begin) >= $op->{seq};
    $self->wrong("$text too early to say so")
        if $final && $age < $self->{deadline} + $TRANSIT_MS;
}


# ---- all of it --------------------------------------------------------------

sub check {
    my ($self) = @_;

    $self->execute;

    for my $op (values %{ $self->{ops} }) {
        if ($self->{by_key}{$op->{key}}) {
            $self->match($op);
            $self->{n}{done}++;
        } elsif (defined $op->{answer}) {
            $self->wrong("$op->{key}: answered $op->{answer}, and is not in"
                         . ' the journal')
                unless $op->{status} == 207 && $op->{answer} !~ /"txid"/
                       && !ingest($op);
        }

        $self->{n}{answered}++ if defined $op->{answer};
    }

    $self->check_hashes;
    $self->real_time;
    $self->check_tries($_) for values %{ $self->{ops} };
    $self->check_ingested($_) for grep { ingest($_) } values %{ $self->{ops} };
    $self->check_read($_) for @{ $self->{reads} };
    $self->check_question($_) for @{ $self->{questions} };

    for (@{ $self->{mismatch} }) {
        $self->{n}{mismatch}++;
        my $no = $_->[5] eq '/ledger/ingest' ? 409 : 422;

        $self->wrong("$_->[4]: another body under a taken key was answered"
                     . " $_->[2] $_->[3]")
            if $_->[2] !~ /^(?:0|-1|$no|429|503)$/ && !$self->starved($_);
    }

    return @{ $self->{wrong} };
}

# Operations that were first decided between two times, per second: done, or
# refused for a reason of the ledger.
sub rate {
    my ($self, $from, $to) = @_;

    my $n = 0;

    for my $op (values %{ $self->{ops} }) {
        my ($at) = sort { $a <=> $b } $op->{end},
                        map { $_->[END_US] } grep { $_->[STATUS] == 409 }
                            @{ $op->{tries} };
        $n++ if $at >= $from && $at < $to;
    }

    return $n / (($to - $from) / 1e6);
}

sub summary {
    my ($self) = @_;

    my $n = $self->{n};

    return sprintf '%d entries; %d operations, %d done, %d answered, %d with'
        . ' an unknown outcome, %d refused, %d told to come later, %d replays,'
        . ' %d mismatches, %d reads (stalest %d ms), %d receipt hashes; %d'
        . ' ingested, %d holds expired; asked for: %d committed, %d pending,'
        . ' %d unknown, %d for good',
        $#{ $self->{entries} }, scalar keys %{ $self->{ops} },
        map { $_ || 0 } @$n{qw(done answered unknown refused later replayed
                               mismatch reads stalest hashes ingested expired
                               committed pending unknown final)};
}


1;
