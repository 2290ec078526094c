#!/usr/bin/perl

# The key that signs heads is replaced: while both sign, a head names the new
# one, so that who has only the old one can go on.

use strict;
use warnings;

use lib 't/lib';
use RonTest;


my $ronctl = ($ENV{RON_BUILD} || 'build') . '/ronctl';
my $s = RonTest->new(workers => 1);
my $dir = $s->dir;
my $n = 0;

# A payment, the head that covers it, and the ledger after the server's end.
sub head {
    my ($name) = @_;

    $s->start or BAIL_OUT('no server');
    is($s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '5' },
                key => 'k' . ++$n)->{status}, 200, "$name: a payment");

    my $note = $s->get('/ledger/checkpoint')->{body};
    like($note, qr/^[^\n]+\n$n\n/, 'and a head of it');
    $s->quit;

    return $note;
}

# What the key says of the head that was published last.
sub verdict {
    my ($key) = @_;

    my $said = `$ronctl ledger verify $dir/ledger --public-key '$key' 2>&1`;

    return $? == 0 ? 'good' : $said =~ /signed/ ? 'not signed by it' : $said;
}

sub signatures { scalar(() = $_[0] =~ /^\x{e2}\x{80}\x{94} /mg) }


my $note = head('its own key');
my ($origin) = $note =~ /^(\S+)/;
chomp(my $old = RonTest::slurp("$dir/ledger/signing.pub"));

is(signatures($note), 1, 'one signature');
is(verdict($old), 'good', 'by the key that the ledger made');

chomp(my $new = `$ronctl keys signing $origin --out $dir/new.key 2>/dev/null`);
chomp(my $other = `$ronctl keys signing $origin --out $dir/other.key 2>/dev/null`);
like($new, qr/^\Q$origin\E\+/, 'a new key with the same name');

$s->{main} = "ron_signing_key $dir/new.key;"
             . " ron_signing_key_old $dir/ledger/signing.key;";
$note = head('both keys');
is(signatures($note), 2, 'two signatures');
is(($note =~ /\A[^\n]+\n\d+\n[^\n]+\nkey ([^\n]+)\n\n/)[0], $new,
   'under a text that names the new key');
is(verdict($old), 'good', 'who has the old key believes it');
is(verdict($new), 'good', 'and goes on with the new one');
is(verdict($other), 'not signed by it', 'but with no other');

$s->{main} = "ron_signing_key $dir/new.key;";
$note = head('the new key');
is(signatures($note), 1, 'one signature again');
unlike($note, qr/^key /m, 'and no more about keys');
is(verdict($new), 'good', 'by the new key');
is(verdict($old), 'not signed by it', 'not by the old one');

done_testing();
