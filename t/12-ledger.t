#!/usr/bin/perl

# The ledger's own interface: ingest, roots, proofs, tiles, entries.  The
# tree is hashed here once more, with SHA-256 and in Perl, from the entries
# that the server gives.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use Digest::SHA qw(sha256);
use MIME::Base64 qw(decode_base64);


my $s = RonTest->new(workers => 2);
$s->{ledger} .= ' hash=sha256';
$s->start or BAIL_OUT('no server');

my $id = 0;

sub entry {
    my ($kind, $account, $amount, %o) = @_;

    return { id => 'e' . ++$id, ts => 1_700_000_000_000 + $id,
             kind => $kind, account => $account, amount => "$amount",
             nonce => nonce16(), v => 1, %o };
}

sub ingest {
    my ($batch, %o) = @_;

    my %args = map { $_ => delete $o{$_} } grep { exists $o{$_} } qw(token);

    return $s->post('/ledger/ingest', { batch => $batch, %o }, %args);
}


# the empty ledger

my $r = $s->get('/ledger/roots', token => undef);
is($r->{body}, qq({"roots":[],"next":0}\n), 'no roots, and no token needed');
is($s->get('/ledger/proof/inclusion?seq=1')->{status}, 404,
   'no proof in an empty tree');


# ingest

$r = ingest([entry('Mint', 'alice', 100)]);
is($r->{status}, 200, 'one entry') or diag($r->{body});
is(json_get($r->{body}, 'accepted'), 'true', 'accepted');
is(json_get($r->{body}, 'seq_start'), 1, 'the first seq is 1');
like(json_get($r->{body}, 'new_root'), qr/^[0-9a-f]{64}$/, 'a root');

my $again = entry('Transfer', 'alice', 10, to => 'bob');
$r = ingest([$again]);
is(json_get($r->{body}, 'seq_start'), 2, 'a transfer');
my $root = json_get($r->{body}, 'new_root');
$r = ingest([$again]);
is($r->{status}, 200, 'the same entry again');
is(json_get($r->{body}, 'seq_start'), 2, 'is its first seq');
is(json_get($r->{body}, 'new_root'), $root, 'and changes nothing');

$r = ingest([{ %$again, amount => '11' }]);
is($r->{status}, 409, 'the same id for something else');

$r = ingest([entry('Burn', 'alice', 5), entry('Burn', 'bob', 500)]);
is($r->{status}, 207, 'one of two');
is(json_get($r->{body}, 'accepted'), 'false', 'not all');
like($r->{body}, qr/"reasons":\[\{"idx":1,"reason":"insufficient"/,
     'and which, and why');

$r = ingest([entry('Burn', 'alice', 5), entry('Burn', 'bob', 500)],
            atomic => \'true');
is($r->{status}, 409, 'atomic: nothing');
is(json_get($r->{body}, 'code'), 'INSUFFICIENT_FUNDS', 'with the reason');

$r = ingest([entry('Debit', 'alice', 30), entry('Credit', 'x', 10),
             entry('Credit', 'y', 20)]);
is($r->{status}, 200, 'a posting');
$r = ingest([entry('Debit', 'alice', 30), entry('Credit', 'x', 10)]);
isnt($r->{status}, 200, 'that does not balance is none');

$r = ingest([entry('Hold', 'alice', 20, to => 'shop')]);
my $hold = json_get($r->{body}, 'seq_start');
is(ingest([entry('Capture', 'alice', 15, ref => 0 + $hold)])->{status}, 200,
   'hold and capture');
is(ingest([entry('Release', 'alice', 5, ref => 0 + $hold)])->{status}, 200,
   'release');
is(ingest([entry('Reverse', 'bob', 4, ref => 2)])->{status}, 200,
   'reverse a part of a transfer');
is(ingest([entry('Reverse', 'bob', 7, ref => 2)])->{status}, 409,
   'never more than it was');

my @batch = (entry('Mint', 'b', 1));
$r = ingest(\@batch, idem_id => 'run-1');
my $body = $r->{body};
is(ingest(\@batch, idem_id => 'run-1')->{body}, $body,
   'the same idem_id and batch: the same answer');
is(ingest([entry('Mint', 'b', 1)], idem_id => 'run-1')->{status}, 409,
   'and another batch');

my @some = (entry('Burn', 'nobody', 1), entry('Mint', 'b', 2));
$body = ingest(\@some, idem_id => 'run-2')->{body};
ok($s->reload && ingest([entry('Mint', 'b', 3)])->{status} == 200,
   'a reload, and another commit');
$r = ingest(\@some, idem_id => 'run-2');
is($r->{status}, 207, 'a part of a batch again');
is($r->{body}, $body, 'is answered as before');

$r = ingest([entry('Conjure', 'a', 1)]);
is($r->{status}, 400, 'a kind that is none');
is(json_get($r->{body}, 'reason'), 'unknown_kind', 'is named so');

is($s->post('/ledger/ingest', { batch => [{ %{ entry('Mint', 'a', 1) },
                                            nonce => 'short' }] })->{status},
   400, 'a nonce of another length');
is($s->post('/ledger/ingest', { batch => [] })->{status}, 400,
   'an empty batch');
is(ingest([entry('Mint', 'a', 1)],
          token => $s->token('act = ingest'))->{status}, 403,
   'each kind needs its act');
is(ingest([entry('Mint', 'a', 1)],
          token => $s->token('act = ingest issue'))->{status}, 200,
   'and has it');

my $daily = $s->token({ id => 'daily' }, 'act = ingest transfer burn',
                      'max_daily = 50');
is(ingest([entry('Mint', 'rich', 1000)])->{status}, 200, 'somebody is rich');
is(ingest([entry('Transfer', 'rich', 30, to => 'poor')],
          token => $daily)->{status}, 200, 'a day has a bound');
$r = ingest([entry('Burn', 'rich', 20), entry('Burn', 'rich', 1)],
            token => $daily);
is($r->{status}, 207, 'which ingested entries reach, all kinds together');
like($r->{body}, qr/"reasons":\[\{"idx":1,"reason":"policy_denied"/,
     'and do not pass');
is(ingest([entry('Debit', 'rich', 1), entry('Credit', 'poor', 1)],
          token => $daily)->{status}, 403, 'nor does a posting');


# enough for a complete tile and a bit

for my $n (1 .. 30) {
    my $status = ingest([map { entry('Mint', "acc$_", $n) } 1 .. 10])
                 ->{status};
    is($status, 200, 'more') unless $status == 200;
}


# roots

my @roots;
my $since = 0;

for (;;) {
    $r = $s->get("/ledger/roots?since=$since&limit=7");
    my @got = $r->{body} =~ /\{"seq":(\d+),"root":"(\w+)","ts":(\d+)\}/g;
    last unless @got;
    cmp_ok(scalar @got / 3, '<=', 7, 'at most the limit') if @got > 21;
    while (my ($seq, $hash, $ts) = splice @got, 0, 3) {
        push @roots, [$seq, $hash];
    }
    $since = json_get($r->{body}, 'next');
}

my $size = $roots[-1][0];
cmp_ok($size, '>', 256, "roots up to $size");
ok(!(grep { $roots[$_][0] <= $roots[$_ - 1][0] } 1 .. $#roots),
   'in order');


# the entries as bytes, and the tree over them

my @leaf;

for my $file (int($size / 256) ? '000' : (), '001.p/' . ($size - 256)) {
    $r = $s->get("/ledger/tile/entries/$file", token => undef);
    is($r->{status}, 200, "entries of $file");
    my $bytes = $r->{body};
    while (length $bytes) {
        my $len = unpack 'n', substr $bytes, 0, 2, '';
        push @leaf, sha256("\0" . substr $bytes, 0, $len, '');
    }
}

is(scalar @leaf, $size, 'all of them');

sub tree {
    my (@h) = @_;

    return sha256('') unless @h;
    return $h[0] if @h == 1;

    my $k = 1;
    $k *= 2 while $k * 2 < @h;

    return sha256("\1" . tree(@h[0 .. $k - 1]) . tree(@h[$k .. $#h]));
}

my @wrong = grep {
    unpack('H*', tree(@leaf[0 .. $_->[0] - 1])) ne $_->[1]
} @roots;

ok(!@wrong, 'every root is that of the entries before it');

is($s->get('/ledger/tile/0/000')->{body}, join('', @leaf[0 .. 255]),
   'a complete tile');
is($s->get('/ledger/tile/0/001.p/3')->{body}, join('', @leaf[256 .. 258]),
   'a part of one');
is($s->get('/ledger/tile/1/000.p/1')->{body}, tree(@leaf[0 .. 255]),
   'a tile of the next level');
is($s->get('/ledger/tile/0/001')->{status}, 404, 'one that is not complete');
is($s->get('/ledger/tile/0/1')->{status}, 400, 'a path of another form');
is($s->get('/ledger/tile/9/000')->{status}, 400, 'a level that cannot be');


# proofs

sub audit {
    my ($index, $n, $hash, @path) = @_;

    my ($fn, $sn) = ($index, $n - 1);

    for my $p (@path) {
        return '' if $sn == 0;
        if (($fn & 1) || $fn == $sn) {
            $hash = sha256("\1$p$hash");
            unless ($fn & 1) {
                while (!($fn & 1) && $fn) { $fn >>= 1; $sn >>= 1; }
            }
        } else {
            $hash = sha256("\1$hash$p");
        }
        $fn >>= 1;
        $sn >>= 1;
    }

    return $sn == 0 ? $hash : '';
}

sub path {
    my ($text) = @_;

    my ($list) = $text =~ /"path":\[([^\]]*)\]/;

    return map { pack 'H*', $_ } $list =~ /"(\w+)"/g;
}

for my $case ([1, 1], [1, $size], [7, 100], [256, 256], [256, 257],
              [$size, $size], [200, $size])
{
    my ($seq, $n) = @$case;
    $r = $s->get("/ledger/proof/inclusion?seq=$seq&size=$n",
                 token => undef);
    my $want = unpack 'H*', tree(@leaf[0 .. $n - 1]);
    is(json_get($r->{body}, 'leaf'), unpack('H*', $leaf[$seq - 1]),
       "leaf $seq");
    is(json_get($r->{body}, 'root'), $want, "root of $n");
    is(unpack('H*', audit($seq - 1, $n, $leaf[$seq - 1],
                          path($r->{body}))),
       $want, "its path leads there");
}

$r = $s->get("/ledger/proof/consistency?from=100&to=$size");
is(json_get($r->{body}, 'from_root'), unpack('H*', tree(@leaf[0 .. 99])),
   'consistency: the root before');
is(json_get($r->{body}, 'to_root'), unpack('H*', tree(@leaf)),
   'and after');
cmp_ok(scalar path($r->{body}), '>', 0, 'and a path');
is($s->get('/ledger/proof/consistency?from=5&to=4')->{status}, 404,
   'backwards there is none');
is($s->get("/ledger/proof/inclusion?seq=1&size=@{[$size + 1]}")->{status},
   404, 'nor for a size that is not there');
is($s->get('/ledger/proof/inclusion?seq=x')->{status}, 400, 'not a number');


# entries

$r = $s->get('/ledger/entries/2');
is(json_get($r->{body}, 'kind'), 'Transfer', 'an entry');
is($s->get('/ledger/entries/2', token => undef)->{status}, 401,
   'needs a token');
is($s->get('/ledger/entries/2',
           token => $s->token('account = nobody'))->{status}, 403,
   'that may read its account');
is($s->get('/ledger/entries/2',
           token => $s->token('account = bob'))->{status}, 200,
   'either of them');
is($s->get('/ledger/entries/999999')->{status}, 404, 'past the head');

$r = $s->get('/ledger/entries?from=3&to=5');
is_deeply([$r->{body} =~ /\{"seq":(\d+)/g], [3, 4, 5], 'a range');
is($r->{headers}{'ledger-watermark'}, $size, 'with its watermark');
is(json_get($r->{body}, 'next'), 6, 'and where to go on');
is($s->get('/ledger/entries',
           token => $s->token('account = bob'))->{status}, 403,
   'not for a token of one account');


# accounts

$r = $s->get('/ledger/accounts/alice');
is($r->{status}, 200, 'an account') or diag($r->{body});
like($r->{body}, qr/"balances":\[\{"asset":"ron","amount_minor":"44",
                    "held_minor":"0"\},\{"asset":"roc",
                    "amount_minor":"0"/x, 'has its balances');
is($s->get('/ledger/accounts/alice',
           token => $s->token('account = bob'))->{status}, 403,
   "not for another's token");
unlike($s->get('/ledger/accounts/alice',
               token => $s->token('asset = ron'))->{body}, qr/roc/,
       'nor more assets than a token has');

ok(until_ok(10, sub {
    $r = $s->get('/ledger/accounts/alice/entries?limit=3');
    ($r->{headers}{'ledger-watermark'} || 0) == $size;
}), 'its entries, when history has caught up') or diag($r->{body});
is(scalar(() = $r->{body} =~ /\{"seq":/g), 3, 'as many as were asked for');
my @of = $r->{body} =~ /\{"seq":(\d+)/g;
ok($of[0] > $of[1] && $of[1] > $of[2], 'the newest first');
my ($more) = $s->get("/ledger/accounts/alice/entries?before=$of[2]")->{body}
             =~ /\{"seq":(\d+)/;
cmp_ok($more, '<', $of[2], 'and those before');


# the signed checkpoint, after C2SP's tlog-checkpoint

$r = $s->get('/ledger/checkpoint', token => undef);
is($r->{status}, 200, 'a checkpoint, and no token needed');
is($r->{headers}{'content-type'}, 'text/plain', 'is text');
my ($origin, $of, $hash, @rest) = split /\n/, $r->{body};
like($origin, qr/^ron-ledger-\d+$/, 'its origin');
is($of, $size, 'its size is that of the tree');
is(decode_base64($hash), tree(@leaf), 'its root too');
like($r->{body}, qr/\n\n\xe2\x80\x94 \Q$origin\E [\w+\/=]+\n\z/,
     'and a signature');

# heads are signed after the answers, and one that was answered is in them

my $late = 0;
for (1 .. 40) {
    my $last = json_get(ingest([entry('Mint', 'late', 1)])->{body}, 'seq_end');
    ($of) = $s->get('/ledger/checkpoint')->{body} =~ /\A[^\n]+\n(\d+)\n/;
    $late++ if $of < $last;
}
is($late, 0, 'holds what was answered before it was asked for');

$s->quit;

done_testing();
