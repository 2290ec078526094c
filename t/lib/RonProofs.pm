package RonProofs;

# Are receipts what a stranger would believe?  For each of them a server is
# asked for its proof, which has to lead from the entry to the root of a
# checkpoint that is signed by the ledger.  Nothing of libron is used.
#
#     my $p = RonProofs->new(server => $s,    # a RonTest that runs
#                            pub => $text,    # signing.pub of the ledger
#                            b3 => RonChaos::tool('b3'));
#     my @wrong = $p->check(@answers);        # bodies; nothing, or what is wrong
#     print $p->{n};                          # so many proofs were right

use strict;
use warnings;

use MIME::Base64 qw(decode_base64);

use RonTest ();

use constant {
    AT_ONCE => 20_000,                      # proofs in memory
    SIDE_BY_SIDE => 16,                     # connections
    IN_LINE => 100,                         # requests on each
};


sub new {
    my ($class, %o) = @_;

    return bless { n => 0, notes => {}, %o }, $class;
}

sub check {
    my ($self, @answers) = @_;

    my %receipt = map { /"txid":"(\w+)"/ ? ($1 => $_) : () }
                  map { /(\{"txid":[^{}]*\})/g } @answers;
    my @txids = sort keys %receipt;
    my @wrong;

    while (my @some = splice @txids, 0, AT_ONCE) {
        my @proofs = $self->ask(\%receipt, \@some, \@wrong);

        push @wrong, $self->fold(@proofs);
        $self->{n} += @proofs;
    }

    return @wrong;
}

# What the server says of each of them.
sub ask {
    my ($self, $receipt, $txids, $wrong) = @_;

    my $s = $self->{server};
    my @left = @$txids;
    my @proofs;

    while (@left) {
        my @asked;

        for (1 .. SIDE_BY_SIDE) {
            my @some = splice @left, 0, IN_LINE or last;
            my $sock = $s->connect;

            $s->send_request($sock, 'GET', "/v1/tx/$_?proof=1", undef,
                             keep => 1) for @some;
            push @asked, map { [ $_, $sock ] } @some;
        }

        for (@asked) {
            my ($txid, $sock) = @$_;
            my $body = RonTest::read_response($sock, 'GET')->{body};

            push @proofs, $self->proof($txid, $body, $receipt->{$txid},
                                       $wrong);
        }
    }

    return @proofs;
}

sub proof {
    my ($self, $txid, $body, $receipt, $wrong) = @_;

    my ($got, $entry, $leaf, $size, $path, $note) = $body =~
        m!^(\{"txid":.*),"proof":\{"entry":"([^"]+)","leaf":"(\w+)",
          "size":(\d+),"path":\[([^]]*)\],"checkpoint":"([^"]+)"\}\}\n$!x;

    if (!defined $note || "$got}" ne $receipt) {
        push @$wrong, "$txid: $body, was answered $receipt";
        return;
    }

    return { txid => $txid, leaf => $leaf, size => $size,
             entry => unpack('H*', decode_base64($entry)),
             index => RonTest::json_get($got, 'seq') - 1,
             path => [ $path =~ /(\w+)/g ],
             root => $self->{notes}{$note} ||= $self->signed($note, $wrong) };
}

# RFC 9162, 2.1.3.2, for all proofs at once, a level at a time.
sub fold {
    my ($self, @all) = @_;

    my @wrong;
    my @leaves = $self->hashes(map { "00$_->{entry}" } @all);

    for my $p (@all) {
        $p->{hash} = shift @leaves;
        @$p{qw(fn sn)} = ($p->{index}, $p->{size} - 1);
        push @wrong, "$p->{txid}: the leaf is not that of the entry"
            if $p->{hash} ne $p->{leaf};
        push @wrong, "$p->{txid}: not of the tree of its checkpoint"
            if $p->{fn} > $p->{sn} || $p->{root}[0] != $p->{size};
    }

    while (my @now = grep { @{ $_->{path} } } @all) {
        my @both;

        for my $p (@now) {
            my $next = shift @{ $p->{path} };

            push @wrong, "$p->{txid}: a path that is too long" if !$p->{sn};

            if ($p->{fn} & 1 || $p->{fn} == $p->{sn}) {
                push @both, "01$next$p->{hash}";
                until ($p->{fn} & 1 || !$p->{fn}) {
                    $_ >>= 1 for @$p{qw(fn sn)};
                }
            } else {
                push @both, "01$p->{hash}$next";
            }

            $_ >>= 1 for @$p{qw(fn sn)};
        }

        my @hashes = $self->hashes(@both);

        $_->{hash} = shift @hashes for @now;
    }

    return @wrong, map { "$_->{txid}: its proof leads to $_->{hash}" }
                   grep { $_->{sn} || $_->{hash} ne $_->{root}[1] } @all;
}

sub hashes {
    my ($self, @hex) = @_;

    return () unless @hex;

    my $file = "$self->{server}{dir}/hex";

    $self->{server}->write_file('hex', join '', map { "$_\n" } @hex);

    my @hashes = `'$self->{b3}' -x <'$file'`;

    chomp @hashes;
    die 'b3 -x' if @hashes != @hex;

    return @hashes;
}

# [size, root in hex] of a signed note; the signature is checked by OpenSSL.
sub signed {
    my ($self, $note, $wrong) = @_;

    my $s = $self->{server};

    $note =~ s/\\n/\n/g;
    $note =~ s/\\u([0-9a-f]{4})/pack 'U', hex $1/ge;

    my ($text, $name, $sig) = $note =~ /^(.*\n)\n\S+ (\S+) (\S+)\n$/s;
    my ($of, $key) = $self->{pub} =~ /^(\S+)\+[0-9a-f]{8}\+(\S+)/;

    if (!defined $sig || $name ne $of) {
        push @$wrong, "a checkpoint that is none of $of: $note";
        return [ -1, '' ];
    }

    $s->write_file('pub', pack('H*', '302a300506032b6570032100')
                          . substr decode_base64($key), 1);
    $s->write_file('sig', substr decode_base64($sig), 4);
    $s->write_file('text', $text);

    my $said = `cd '$s->{dir}' && openssl pkeyutl -verify -pubin -inkey pub \\
        -keyform DER -rawin -in text -sigfile sig 2>&1`;

    push @$wrong, "a checkpoint with another signature: $note $said" if $?;

    my (undef, $size, $root) = split /\n/, $text;

    return [ $size, unpack 'H*', decode_base64($root) ];
}


1;
