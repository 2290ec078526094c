#!/usr/bin/perl

# The cache of verified capabilities: what it must never let through.

use strict;
use warnings;

use lib 't/lib';
use RonTest;


for my $size (1024, 1, 0) {
    my $s = RonTest->new(workers => 1);
    $s->write_file('revoked', "nobody\n", 0644);
    $s->{http} = "ron_revoked $s->{dir}/revoked; ron_token_cache $size;";
    $s->start or BAIL_OUT('no server');

    my $get = sub {
        my ($token, $account) = @_;
        return $s->get('/v1/balance?asset=ron&account=' . ($account || 'a'),
                       token => $token)->{status};
    };

    my $end = time + 2;
    my $short = $s->token("before = $end");
    is($get->($short), 200, "$size: a capability");
    is($get->($short), 200, "$size: again");

    # others, more than a set has room for; each allows what it says

    my %of = map { ("a$_" => $s->token("account = a$_")) } 1 .. 12;

    for my $round (1 .. 2) {
        is(join(' ', map { $get->($of{$_}, $_) } sort keys %of),
           join(' ', (200) x 12), "$size: twelve, each for its account");
        is($get->($of{a1}, 'a2'), 403, "$size: and for no other");
    }

    # refused stays refused, and a changed byte is another token

    (my $bad = $of{a3}) =~ s/(.)\z/$1 eq 'A' ? 'B' : 'A'/e;
    substr $bad, -8, 1, substr($bad, -8, 1) eq 'A' ? 'B' : 'A';
    is($get->($bad, 'a3'), 401, "$size: a changed signature") for 1 .. 2;

    # never past `before`

    Time::HiRes::sleep(0.2) while time <= $end;
    is($get->($short), 401, "$size: not past its end");

    # revoked by a reload

    my $revoke = $s->token({ id => 'gone' });
    is($get->($revoke), 200, "$size: before it is revoked") for 1 .. 2;
    $s->write_file('revoked', "gone\n", 0644);
    ok($s->reload, "$size: reload");
    is($get->($revoke), 401, "$size: a reload empties the cache");
    is($get->($of{a1}, 'a1'), 200, "$size: what is good is good");

    $s->quit;
}

done_testing();
