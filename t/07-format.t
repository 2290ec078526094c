#!/usr/bin/perl

# The verifier in tools/verify, which was written from docs/FORMAT.md alone
# and shares nothing with the ledger: it agrees with every golden vector,
# refuses every mutation, and reads a ledger that libron wrote.

use strict;
use warnings;

use lib 't/lib';
use RonNpm;

use File::Temp;
use JSON::PP;
use MIME::Base64 qw(encode_base64);
use Test::More;

my $package = '@noble/hashes';
my $version = '1.8.0';

my $build = $ENV{RON_BUILD} || 'build';
my $program = "$build/t/unit/vectors_test";
my $verify = 'tools/verify/verify.mjs';

plan skip_all => "no $program" if !-x $program;

my $modules = RonNpm::install("$package\@$version");
ok($modules, "$package $version is installed")
    or BAIL_OUT("cannot compare formats without $package");

my $module = "$modules/$package";

$ENV{NODE_PATH} = $modules;

my $dir = File::Temp->newdir;
my $tree = JSON::PP->new->utf8->decode(slurp('t/vectors/tree.json'));
my $key = $tree->{public_key};

vectors();
spoiled_vectors();
commands();
proofs();
ledger('blake3', 66_000, 258);
ledger('sha256', 1_000, 3);
cut_ledger();
spoiled_ledgers();
server();

done_testing();


sub vectors {
    my ($code, $out) = run('node', 'tools/verify/vectors.mjs', 't/vectors');

    is($code, 0, 'all vectors');
    diag($_) for grep { /^not ok/ } split /\n/, $out;

    my $n = () = $out =~ /^ok /mg;
    cmp_ok($n, '>', 500, "$n comparisons");
}


# The comparison itself: a vector that says something else is noticed.

sub spoiled_vectors {
    my %spoil = (
        'entries.json' => [
            [ 'a leaf', sub { $_[0] =~ s/("leaf_blake3": ")(.)/$1 . other($2)/e } ],
            [ 'a receipt hash', sub { $_[0] =~ s/("receipt_hash": ")(.)/$1 . other($2)/e } ],
            [ 'a txid', sub { $_[0] =~ s/("txid": "tx_0)0/${1}1/ } ],
            [ 'an amount', sub { $_[0] =~ s/("amount": "25)0/${1}1/ } ],
            [ 'a good entry among the bad',
              sub { my ($good) = $_[0] =~ /"bytes": "(\w+)"/;
                    $_[0] =~ s/("why": "[^"]*",\n\s*"bytes": )"\w+"/$1"$good"/ } ],
        ],
        'tree.json' => [
            [ 'a root', sub { $_[0] =~ s/("roots": \[\n"\w+",\n")(.)/$1 . other($2)/e } ],
            [ 'a path', sub { $_[0] =~ s/("path":\[")(.)/$1 . other($2)/e } ],
            [ 'a checkpoint', sub { $_[0] =~ s/\\n20\\n/\\n21\\n/ } ],
        ],
        'store.json' => [
            [ 'a chain', sub { $_[0] =~ s/("chain": ")(.)/$1 . other($2)/e } ],
            [ 'an epoch', sub { $_[0] =~ s/("epoch": ")1/${1}2/ } ],
            [ 'a generation', sub { $_[0] =~ s/("gen": ")3/${1}4/ } ],
            [ 'a page', sub { $_[0] =~ s/("mark": "\w{60})(.)/$1 . other($2)/e } ],
        ],
    );

    for my $file (sort keys %spoil) {
        my ($good) = run('node', 'tools/verify/vectors.mjs', 't/vectors',
                         $file, 'plain');
        is($good, 0, "$file: as it is");

        for my $way (@{ $spoil{$file} }) {
            my ($what, $change) = @$way;

            system('cp', glob('t/vectors/*.json'), $dir) == 0 or die;

            my $text = slurp("t/vectors/$file");
            my $before = $text;
            $change->($text);

            isnt($text, $before, "$file: $what, changed");
            spew("$dir/$file", $text);

            my ($code) = run('node', 'tools/verify/vectors.mjs', "$dir",
                             $file, 'plain');
            isnt($code, 0, "$file: $what, noticed");
        }
    }
}


sub commands {
    my ($code, $out) = verify('--help');
    is($code, 0, 'help');
    like($out, qr/^usage:/, 'says how it is used');

    ($code) = verify();
    is($code, 2, 'no command');
    ($code) = verify('nonsense', 'x');
    is($code, 2, 'no such command');
    ($code) = verify('receipt', "$dir/nowhere");
    is($code, 2, 'no such file');

    ($code, $out) = verify('entry', '01010000010000000000000b017201610101');
    is($code, 0, 'an entry');
    like($out, qr/^kind +Mint\n.*^amount +1\n/ms, 'is printed');
    ($code) = verify('entry', '02010000010000000000000b017201610101');
    is($code, 1, 'another version is refused');

    # receipts as the C code writes them, and one that says another amount

    my $json = JSON::PP->new->utf8;
    my $entries = $json->decode(slurp('t/vectors/entries.json'))->{entries};

    for my $v (grep { $_->{name} =~ /^(?:wallet transfer|ingested Mint)$/ }
               @$entries)
    {
        my $receipt = encode($v->{receipt});

        spew("$dir/receipt.json", $receipt);
        ($code, $out) = verify('receipt', "$dir/receipt.json");
        is($code, 0, "$v->{name}: its receipt");

        $receipt =~ s/("amount_minor":"25)0/${1}1/ or die;
        spew("$dir/receipt.json", $receipt);
        ($code, $out) = verify('receipt', "$dir/receipt.json");
        is($code, 1, "$v->{name}: another amount");
        like($out, qr/does not verify: receipt_hash/, 'is what it says');

        ($code) = verify('receipt', "$dir/receipt.json", '--key', $key);
        is($code, 1, 'nor has it a proof');
    }
}


# Files as a client has them, for both digests.

sub proofs {
    my $json = JSON::PP->new->utf8->canonical;

    my $other = 'ron.example/ledger+c0b0bd7a'
        . '+AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB';

    for my $digest (qw(blake3 sha256)) {
        my $t = $tree->{$digest};
        my $wrong = $digest eq 'blake3' ? 'sha256' : 'blake3';
        my @how = ('--key', $key, '--digest', $digest);

        spew("$dir/bundle", $json->encode($t->{receipt}));
        spew("$dir/note", encode($t->{checkpoint}));
        spew("$dir/inclusion", $json->encode($t->{inclusion}[-1]));
        spew("$dir/consistency", $json->encode($t->{consistency}[-2]));

        my ($code, $out) = verify('receipt', "$dir/bundle", @how);
        is($code, 0, "$digest: a receipt with its proof");
        like($out, qr/of 20 entries, signed by ron\.example/, 'is signed');

        ($code, $out) = verify('receipt', "$dir/bundle", '--digest', $digest);
        is($code, 0, 'without a key');
        like($out, qr/SIGNATURE NOT CHECKED/, 'that is said');

        ($code) = verify('receipt', "$dir/bundle", '--key', $key,
                         '--digest', $wrong);
        is($code, 1, 'another digest');
        ($code) = verify('receipt', "$dir/bundle", '--key', $other,
                         '--digest', $digest);
        is($code, 1, 'a key that is none');

        ($code, $out) = verify('checkpoint', "$dir/note", @how);
        is($code, 0, 'a checkpoint');
        like($out, qr/: 20 entries, root $t->{roots}[20], signed/, 'is read');

        for my $proof (qw(inclusion consistency)) {
            ($code, $out) = verify('proof', "$dir/$proof", '--checkpoint',
                                   "$dir/note", @how);
            is($code, 0, "$digest: a proof of $proof");
            like($out, qr/under the root of "ron\.example/, 'is anchored');
        }

        # every hash of the bundle, changed

        my $text = $json->encode($t->{receipt});
        my ($n, $refused) = (0, 0);

        while ($text =~ /"(?=[0-9a-f]{64}")/g) {
            my $changed = $text;
            my $at = pos($text);

            substr($changed, $at, 1) = other(substr($changed, $at, 1));
            spew("$dir/bundle", $changed);
            ($code) = verify('receipt', "$dir/bundle", @how);
            $refused += $code == 1;
            $n++;
        }

        cmp_ok($n, '>=', 5, 'hashes in it');
        is($refused, $n, 'none of them can be changed');

        (my $none = $text) =~ s/"checkpoint":"[^"]*"/"checkpoint":null/
            or die;
        spew("$dir/bundle", $none);
        ($code, $out) = verify('receipt', "$dir/bundle", @how);
        is($code, 1, 'without a checkpoint it says nothing');
        like($out, qr/no checkpoint vouches for it/, 'and that is said');
        ($code) = verify('receipt', "$dir/bundle", '--checkpoint',
                         "$dir/note", @how);
        is($code, 0, 'until one is given');

        (my $note = encode($t->{checkpoint})) =~ s/\n20\n/\n21\n/ or die;
        spew("$dir/note", $note);
        ($code) = verify('checkpoint', "$dir/note", @how);
        is($code, 1, 'nor the size in the checkpoint');
    }
}


# ---- ledgers ---------------------------------------------------------------

sub ledger {
    my ($digest, $entries, $tiles) = @_;
    my $at = "$dir/$digest";

    is(system($program, '--ledger', $at, $digest, $entries), 0,
       "a $digest ledger of $entries entries");

    my ($code, $out) = verify('journal', $at, '--key', $key);
    is($code, 0, 'is verified') or diag($out);
    like($out, qr/^$entries entries in \d+ rows, $tiles tiles, $digest:/,
         'all of it');
    like($out, qr/head of $entries, signed by/, 'with its head');
}


sub cut_ledger {
    my $at = copy_ledger('cut');

    sql($at, 'DROP TRIGGER journal_delete; DROP TRIGGER tile_delete;'
             . 'DELETE FROM journal WHERE seq > 700;'
             . 'DELETE FROM tile WHERE id >> 3 > 700');

    my ($code, $out) = verify('journal', $at);
    is($code, 1, 'a journal that was cut');
    like($out, qr/a head of 1000 entries was published/, 'is told by its head');
}


sub spoiled_ledgers {
    my %spoil = (
        'an epoch' => [ 'UPDATE journal SET epoch = 2 WHERE seq = 701',
                        'broken chain' ],
        'a time' => [ 'UPDATE journal SET time_ms = time_ms + 1',
                      'broken chain' ],
        'a root' => [ 'UPDATE journal SET root = zeroblob(32)'
                      . ' WHERE seq = 701', 'broken chain' ],
        'a body' => [ "UPDATE journal SET body = CAST(body || x'00' AS BLOB)",
                      'broken chain' ],
        'notes' => [ "UPDATE journal SET notes = x'00' WHERE seq = 1",
                     'broken chain' ],
        'a row less' => [ 'DROP TRIGGER journal_delete;'
                          . ' DELETE FROM journal WHERE seq = 1',
                          'seq does not follow' ],
        'a tile' => [ 'DROP TRIGGER tile_update;'
                      . ' UPDATE tile SET hashes = zeroblob(8192)'
                      . ' WHERE id = 2048', 'tile 2048 is another' ],
        'a tile less' => [ 'DROP TRIGGER tile_delete;'
                           . ' DELETE FROM tile WHERE id = 2048',
                           '1 tiles are not there' ],
    );

    for my $what (sort keys %spoil) {
        my ($sql, $says) = @{ $spoil{$what} };
        my $at = copy_ledger('spoiled');

        sql($at, "DROP TRIGGER journal_update; $sql");

        my ($code, $out) = verify('journal', $at, '--key', $key);
        is($code, 1, "$what, changed in the database");
        like($out, qr/\Q$says\E/, "is told: $says");
    }
}


# What a server answers and keeps, while it runs and after it has ended.

sub server {
    if (!-e "$build/ngx_ron_module.so") {
        note("no $build/ngx_ron_module.so, hence no server");
        return;
    }

    require './t/lib/RonTest.pm';

    my $s = RonTest->new(workers => 1);
    my $at = "$s->{dir}/ledger";
    $s->start;

    my $n = 0;
    my $say = sub {
        my ($path, $body) = @_;
        my $r = $s->post($path, $body, $path =~ /^.v1/ ? (key => 'k' . ++$n)
                                                       : ());
        is($r->{status}, 200, $path) or diag($r->{body});
        return $r->{body};
    };

    my %ron = (asset => 'ron');
    my $nonce = 0;
    my $entry = sub {
        my ($id, $kind, $account, $amount, %more) = @_;
        return { id => $id, ts => 1, v => 1, kind => $kind,
                 account => $account, amount => $amount,
                 nonce => encode_base64(pack('x15 C', $nonce++), ''),
                 %more };
    };

    $say->('/v1/issue', { to => 'alice', %ron, amount_minor => '1000' });
    my $receipt = $say->('/v1/transfer', { from => 'alice', to => 'bob', %ron,
                                           amount_minor => '10', nonce => 1 });
    my ($hold) = $say->('/v1/hold', { from => 'alice', to => 'shop', %ron,
                                      amount_minor => '100', nonce => 2 })
        =~ /"txid":"(\w+)"/;
    $say->('/v1/capture', { hold => $hold, amount_minor => '40' });
    $say->('/v1/release', { hold => $hold });
    $say->('/v1/burn', { from => 'bob', %ron, amount_minor => '1',
                         nonce => 1 });
    $say->('/ledger/ingest', { idem_id => 'b', batch => [
        $entry->('c', 'Credit', 'carol', '5'),
        $entry->('d', 'Debit', 'alice', '5') ] });
    $say->('/ledger/ingest', { batch => [
        $entry->('r', 'Reverse', 'bob', '4', ref => 2) ] });

    # heads are signed after the answers went out

    my $note;
    ok(RonTest::until_ok(10, sub {
        $note = $s->get('/ledger/checkpoint')->{body};
        $note =~ /^\S+\n9\n/;
    }), 'a checkpoint of all entries');

    spew("$dir/receipt", $receipt);
    spew("$dir/note", $note);
    spew("$dir/inclusion",
         $s->get('/ledger/proof/inclusion?seq=2&size=9')->{body});
    spew("$dir/consistency",
         $s->get('/ledger/proof/consistency?from=3&to=9')->{body});

    my @key = -e "$at/signing.pub" ? ('--key', "$at/signing.pub") : ();
    my ($code, $out) = verify('receipt', "$dir/receipt");
    is($code, 0, 'a receipt of a server') or diag($out);

    my ($txid) = $receipt =~ /"txid":"(\w+)"/;
    spew("$dir/proven", $s->get("/v1/tx/$txid?proof=1")->{body});
    ($code, $out) = verify('receipt', "$dir/proven", @key);
    is($code, 0, 'and with its proof') or diag($out);
    like($out, qr/in the ledger ".*" of 9 entries/, 'of today');

    for my $proof (qw(inclusion consistency)) {
        ($code, $out) = verify('proof', "$dir/$proof", '--checkpoint',
                               "$dir/note", @key);
        is($code, 0, "its proof of $proof") or diag($out);
    }

    ($code, $out) = verify('journal', $at, @key);
    is($code, 0, 'its journal, while it runs') or diag($out);
    like($out, qr/^9 entries in \d+ rows/, 'all of it');

    $s->quit;

    ($code, $out) = verify('journal', $at, @key);
    is($code, 0, 'and afterwards') or diag($out);
}


sub copy_ledger {
    my ($name) = @_;

    system('rm', '-rf', "$dir/$name");
    system('cp', '-a', "$dir/sha256", "$dir/$name") == 0 or die;

    return "$dir/$name";
}


sub sql {
    my ($at, $sql) = @_;

    system('sqlite3', '-bail', "$at/ledger.db", $sql) == 0
        or die "sqlite3: $sql";
}


# ---- small things ----------------------------------------------------------

sub other { return sprintf('%x', (hex($_[0]) + 1) % 16) }


sub encode {
    my ($text) = @_;
    utf8::encode($text);
    return $text;
}


sub verify { return run('node', $verify, @_) }


# Exit code and everything that was printed.

sub run {
    my (@command) = @_;

    my $pid = open(my $out, '-|');
    defined $pid or die "fork: $!";

    if ($pid == 0) {
        open(STDERR, '>&', \*STDOUT);
        exec { $command[0] } @command or exit 127;
    }

    local $/;
    my $text = <$out>;
    close($out);

    return ($? >> 8, defined $text ? $text : '');
}


sub slurp {
    my ($path) = @_;

    open(my $file, '<:raw', $path) or die "$path: $!";
    local $/;
    return scalar <$file>;
}


sub spew {
    my ($path, $text) = @_;

    open(my $file, '>:raw', $path) or die "$path: $!";
    print $file $text;
    close($file) or die "$path: $!";
}
