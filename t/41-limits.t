#!/usr/bin/perl

# The edges of every limit of the wallet: one step inside is done, one step
# outside is refused as the contract says, and nothing that was refused has
# used up a key, a nonce or a sequence number.

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use IO::Compress::Gzip ();


my $s = RonTest->new(workers => 2);
$s->start or BAIL_OUT('no server');

my $done = 0;
my $n = 0;
my $r;

# Done: 200, and the next sequence number.
sub done {
    my ($op, $body, $name, %o) = @_;

    my $r = $s->post("/v1/$op", $body, key => 'd' . ++$n, %o);

    is($r->{status}, 200, "$name: done") or diag($r->{body});
    is(json_get($r->{body}, 'seq'), ++$done, "$name: no number was lost");

    return $r;
}

# Refused, with a key that must be good for something else afterwards.
my @unused;

sub refused {
    my ($op, $body, $status, $code, $name, %o) = @_;

    my $key = exists $o{key} ? $o{key} : 'r' . ++$n;
    my $r = $s->post("/v1/$op", $body, %o, key => $key);

    is($r->{status}, $status, "$name: $status") or diag($r->{body});
    is(json_get($r->{body}, 'code'), $code, "$name: $code");
    is(json_get($r->{body}, 'retryable'), 'false', "$name: for good");
    push @unused, $key if defined $key && $key =~ /^r/;

    return $r;
}

my %m = (asset => 'ron', amount_minor => '1');
my $op_max = '1' . '0' x 20;
my $day = '1' . '0' x 22;


# amounts: 10^20 an operation, 2^128 is no amount

done('issue', { to => 'a', asset => 'ron', amount_minor => $op_max },
     '10^20');
refused('issue', { to => 'a', asset => 'ron',
                   amount_minor => '1' . '0' x 19 . '1' },
        403, 'LIMITS_EXCEEDED', '10^20 + 1');
refused('issue', { to => 'a', asset => 'ron', amount_minor => $_->[0] },
        $_->[1], $_->[2], "amount $_->[0]")
    for [ '340282366920938463463374607431768211455', 403, 'LIMITS_EXCEEDED' ],
        [ '340282366920938463463374607431768211456', 400, 'BAD_REQUEST' ],
        [ '9' x 60, 400, 'BAD_REQUEST' ],
        map { [ $_, 400, 'BAD_REQUEST' ] }
            '0', '00', '01', '-1', '+1', '1.0', '1e3', ' 1', '1 ', '';
refused('issue', '{"to":"a","asset":"ron","amount_minor":1.5}', 400,
        'BAD_REQUEST', 'a fraction');
refused('issue', '{"to":"a","asset":"ron","amount_minor":1e3}', 400,
        'BAD_REQUEST', 'an exponent');
refused('issue', '{"to":"a","asset":"ron","amount_minor":true}', 400,
        'BAD_REQUEST', 'a truth');


# 10^22 an account and day

done('issue', { to => 'rich', asset => 'ron', amount_minor => $op_max },
     "its day, $_ of 100") for 1 .. 100;
refused('issue', { to => 'rich', %m }, 403, 'LIMITS_EXCEEDED',
        '10^22 + 1 in a day');
refused('transfer', { from => 'rich', to => 'b', nonce => 1, %m }, 403,
        'LIMITS_EXCEEDED', 'whatever moves it');
is(json_get($s->get('/v1/balance?account=rich&asset=ron')->{body},
            'amount_minor'), $day, 'it has 10^22');


# an account has at most 2^128-1-10^9, whoever fills it; all of them together
# 2^128-1.  What the ledger is given in bulk has no ceiling but these

sub mint {
    my ($account, $amount) = @_;

    return $s->post('/ledger/ingest', { batch => [ { id => 'mint-' . ++$n,
        ts => 1, kind => 'Mint', account => $account, asset => 'roc',
        amount => $amount, nonce => nonce16(), v => 1 } ] });
}

my %roc = (asset => 'roc', amount_minor => '1');

$r = mint('full', '340282366920938463463374607430768211449');
is($r->{status}, 200, 'six less than 2^128-1-10^9') or diag($r->{body});
$done++;
done('issue', { to => 'full', %roc, amount_minor => '5' }, 'five more');
done('issue', { to => 'full', %roc }, 'and the last one');
refused('issue', { to => 'full', %roc }, 403, 'LIMITS_EXCEEDED',
        'over the ceiling of an account');
done('issue', { to => 'giver', %roc, amount_minor => '9' }, 'others go on');
refused('transfer', { from => 'giver', to => 'full', nonce => 1, %roc }, 403,
        'LIMITS_EXCEEDED', 'nor by a transfer');

# what is held for it is not its own yet, nor does it become so
$r = done('hold', { from => 'giver', to => 'full', nonce => 1, %roc },
          'the nonce is unused: a hold');
my $hold = json_get($r->{body}, 'txid');
refused('capture', { hold => $hold, amount_minor => '1' }, 403,
        'LIMITS_EXCEEDED', 'nor by a capture');
done('release', { hold => $hold }, 'and back');
is(json_get($s->get('/v1/balance?account=full&asset=roc')->{body},
            'amount_minor'), '340282366920938463463374607430768211455',
   'it has 2^128-1-10^9');

# 340282366920938463463374607430768211455 + 9 are there
$r = mint('rest', '999999991');
is($r->{status}, 200, 'all together 2^128-1') or diag($r->{body});
$done++;
$r = mint('rest', '1');
is($r->{status}, 409, 'and not one more') or diag($r->{body});
refused('issue', { to => 'rest', %roc }, 409, 'CONFLICT',
        '2^128 of an asset');
done('burn', { from => 'giver', nonce => 2, %roc }, 'one is burnt');
done('issue', { to => 'rest', %roc }, 'one may come');


# keys: 1 to 64 visible ASCII characters

done('issue', { to => 'a', %m }, 'a key of one', key => 'x');
$n++;
done('issue', { to => 'a', %m }, 'a key of 64', key => '~' x 64);
refused('issue', { to => 'a', %m }, 400, 'BAD_REQUEST', $_->[0],
        key => $_->[1])
    for [ 'no key', undef ], [ 'an empty key', '' ], [ 'quotes', '""' ],
        [ 'a key of 65', 'k' x 65 ], [ 'a blank in it', 'a b' ],
        [ 'a quote in it', 'a"b' ], [ 'not ASCII', "k\xc3\xa4" ];


# accounts: 1 to 256 characters of the alphabet

my $long = 'acc:/_.@-' . 'z' x 247;

done('transfer', { from => 'a', to => $long, nonce => 1, %m },
     'an account of 256');
refused('transfer', { from => 'a', to => $_->[0], nonce => 2, %m }, 400,
        'BAD_REQUEST', $_->[1])
    for [ $long . 'z', 'an account of 257' ], [ '', 'an empty account' ],
        [ 'a b', 'a blank' ], [ "\xc3\xa4", 'not ASCII' ],
        [ 'a', 'to itself' ];
is(json_get($s->get("/v1/balance?asset=ron&account=$long")->{body},
            'amount_minor'), '1', 'it has its money');


# nonces: 1 to 2^53-1, rising

refused('transfer', { from => 'a', to => 'b', nonce => \$_, %m }, 400,
        'BAD_REQUEST', "nonce $_")
    for qw(0 -1 1.5 9007199254740992 18446744073709551616 "2" null);
refused('transfer', { from => 'a', to => 'b', nonce => 1, %m }, 409,
        'NONCE_CONFLICT', 'a nonce twice');
done('transfer', { from => 'a', to => 'b', nonce => 2, %m }, 'the next');
done('transfer', { from => 'a', to => 'b', nonce => \'9007199254740991',
                   %m }, 'the last nonce of all');
$r = refused('transfer', { from => 'a', to => 'b',
                              nonce => \'9007199254740991', %m }, 409,
                'NONCE_CONFLICT', 'which ends the account');
is(json_get($r->{body}, 'expected'), '9007199254740992',
   'nothing can come after it');


# members: each once, none unknown, none missing, nothing behind

refused('issue', $_->[0], 400, 'BAD_REQUEST', $_->[1])
    for [ '{"to":"a","to":"b","asset":"ron","amount_minor":"1"}',
          'a member twice' ],
        [ '{"to":"a","\u0074o":"b","asset":"ron","amount_minor":"1"}',
          'twice, once in disguise' ],
        [ '{"to":"a","asset":"ron","amount_minor":"1","x":1}', 'unknown' ],
        [ '{"to":"a","asset":"ron"}', 'missing' ],
        [ '{"to":"a","asset":"ron","amount_minor":"1"}}', 'behind it' ],
        [ '{"to":"a","asset":"ron","amount_minor":"1"', 'cut off' ],
        [ '', 'nothing' ], [ '[]', 'an array' ], [ 'null', 'null' ],
        [ '{"to":"a","asset":"ron","amount_minor":"1","memo":' . '[' x 17
          . ']' x 17 . '}', 'too deep' ],
        [ "{\"to\":\"a\",\"asset\":\"ron\",\"amount_minor\":\"1\",\"memo\":"
          . "\"\xff\"}", 'not UTF-8' ];
done('issue', { to => 'a', %m, memo => 'm' x 256 }, 'a memo of 256');
refused('issue', { to => 'a', %m, memo => 'm' x 257 }, 400, 'BAD_REQUEST',
        'a memo of 257');


# bodies: 1 MiB, and not one byte more

my $body = '{"to":"a","asset":"ron","amount_minor":"1"}';
my $pad = 1024 * 1024 - length $body;

done('issue', $body . ' ' x $pad, 'a body of 1 MiB');
refused('issue', $body . ' ' x ($pad + 1), 413, 'LIMITS_EXCEEDED',
        'one byte more');


# compressed: at most 10 times, at most 10 MiB, gzip alone

sub gz {
    my ($plain) = @_;

    IO::Compress::Gzip::gzip(\$plain, \my $out) or die;

    return $out;
}

my %gzip = (headers => { 'Content-Encoding' => 'gzip' });

done('issue', gz($body), 'gzip', %gzip);
done('issue', gz($body), 'GZIP', headers => { 'Content-Encoding' => 'GZIP' });

refused('issue', gz($body . ' ' x 5000), 400, 'BAD_REQUEST',
        'more than ten times', %gzip);
refused('issue', gz('0' x (100 * 1024 * 1024)), 400, 'BAD_REQUEST',
        'a bomb of 100 MiB', %gzip);
refused('issue', gz($body) . 'x', 400, 'BAD_REQUEST', 'something behind it',
        %gzip);
refused('issue', gz($body) . gz($body), 400, 'BAD_REQUEST', 'two members',
        %gzip);
refused('issue', substr(gz($body), 0, -1), 400, 'BAD_REQUEST', 'cut off',
        %gzip);
refused('issue', $body, 400, 'BAD_REQUEST', 'not compressed', %gzip);
refused('issue', gz($body), 400, 'BAD_REQUEST', 'gzip, and nobody said so');
refused('issue', gz($body), 415, 'UNSUPPORTED_MEDIA_TYPE', "encoding $_",
        headers => { 'Content-Encoding' => $_ })
    for 'br', 'deflate', 'gzip, gzip', 'gzipp';

# inflated it may be longer than a body, within the bounds: this is read, and
# refused for its memo

my $long_noise = join '', map { chr 33 + int rand 94 } 1 .. 400_000;
$long_noise =~ tr/"\\//d;
my $big = gz($body . ' ' x (2 * 1024 * 1024));

cmp_ok(length $big, '<', 10_000, 'blanks become little');
refused('issue', $big, 400, 'BAD_REQUEST', '2 MiB of blanks', %gzip);
refused('issue', gz('{"to":"a","asset":"ron","amount_minor":"1","memo":"'
                    . $long_noise x 3 . '"}'), 400, 'BAD_REQUEST',
        'a long memo, inflated and read', %gzip);

is($s->post('/ledger/ingest', gz('{}'), %gzip)->{status}, 415,
   'the ledger takes no encoding');


# two of them

{
    my $sock = $s->connect;
    my $text = $s->request_text('POST', '/v1/issue', gz($body),
                                key => 'twice', keep => 1,
                                headers => { 'Content-Encoding' => 'gzip' });
    $text =~ s/\r\n/\r\nContent-Encoding: identity\r\n/;
    syswrite $sock, $text;
    is(RonTest::read_response($sock, 'POST')->{status}, 415,
       'two headers that disagree');
}


# in pieces, as slow clients send it

{
    my $sock = $s->connect;
    my $text = $s->request_text('POST', '/v1/issue', gz($body), key => 'slow',
                                headers => { 'Content-Encoding' => 'gzip' });

    for my $piece (unpack '(a64)*', $text) {
        syswrite $sock, $piece;
        select undef, undef, undef, 0.005;
    }

    my $slow = RonTest::read_response($sock, 'POST');
    is($slow->{status}, 200, 'gzip in pieces') or diag($slow->{body});
    is(json_get($slow->{body}, 'seq'), ++$done, 'one effect');
}


# nothing was burnt: every key that was refused is good for something else

my @bad;

for my $key (@unused) {
    my $got = $s->post('/v1/issue', { to => 'last', %m }, key => $key);

    push @bad, "$key: $got->{status}"
        if $got->{status} != 200
           || json_get($got->{body}, 'seq') != ++$done
           || exists $got->{headers}{'idempotent-replayed'};
}

is("@bad", '', scalar(@unused) . ' refused keys are unused');

my $seq = 0;

until_ok(5, sub {
    $seq = json_get($s->get('/readyz', token => undef)->{body}, 'seq');
    return $seq >= $done;
});
is($seq, $done, 'and the ledger has what was done, no more');

$s->quit;
done_testing();
