#!/usr/bin/perl

# A drain under load, step by step: /readyz and writes say so at once, reads
# go on, what is in flight is answered, the final root is published; and then
# QUIT ends within the drain's deadline.  RON_DRAINS says how often (2).

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonChaos qw(now_us);

my $drains = $ENV{RON_DRAINS} || ($ENV{RON_LIFE} ? 10 : 2);
my $build = $ENV{RON_BUILD} || 'build';
my $deadline = 3;

for my $n (1 .. $drains) {
    my $c = RonChaos->new(main => "ron_drain_deadline ${deadline}s;",
                          load => { c => 16, a => 64, e => 1 });
    my $s = $c->{s};
    $c->start;
    $c->load('drain', g => 1, s => 3600);
    ok(until_ok(10, sub { json_get($s->get('/readyz')->{body}, 'seq') > 100 }),
       "drain $n: clients pay");

    # a stream of roots is told the last one

    my $stream = $s->connect;
    $s->send_request($stream, 'GET', '/ledger/roots/stream', undef,
                     keep => 1);

    my ($out, $code);

    if ($n % 2) {
        $out = `'$build/ronctl' drain '$s->{dir}/ledger' --json \\
                --keys '$s->{dir}/ron.keys' 2>&1`;
        $code = $? >> 8;
        is($code, 0, 'ronctl drain') or diag($out);
        like($out, qr/"state":"stopped"/, 'says that it is done');
    } else {
        my $r = $s->post('/ledger/admin/drain', undef);
        is($r->{status}, 200, 'drained over HTTP') or diag($r->{body});
    }

    my $at = now_us();
    my $r = $s->get('/readyz');
    is($r->{status}, 503, '/readyz is 503 at once');
    like(json_get($r->{body}, 'state') || '', qr/^(?:draining|stopped)$/,
         'and says why');

    $r = $s->post('/v1/issue', { to => 'late', asset => 'ron',
        amount_minor => '1' }, key => "late-$n");
    is($r->{status}, 503, 'a write is refused');
    is(json_get($r->{body}, 'code'), 'DRAINING', 'by DRAINING');
    ok($r->{headers}{'retry-after'}, 'to be tried elsewhere');

    ok(until_ok(10, sub {
        json_get($s->get('/readyz')->{body}, 'state') eq 'stopped'
    }), 'it is drained');

    $r = $s->get('/v1/balance?account=drain0&asset=ron');
    is($r->{status}, 200, 'reads go on');
    $r = $s->get('/ledger/roots?since=0&limit=1');
    is($r->{status}, 200, 'those of the journal too');

    # the last root that a stream is told is the one that is printed

    my $said = '';
    until_ok(5, sub {
        IO::Select->new($stream)->can_read(0.1)
            && sysread $stream, $said, 65536, length $said;
        $said =~ /event: final/;
    });
    close $stream;

    my ($seq, $root) =
        $said =~ /event: final\s+id: \d+\s+data: \{"seq":(\d+),"root":"(\w+)"/;
    ok($root, 'a stream is told the final root') or diag($said);
    $root ||= 'none';
    like($out, qr/"seq":$seq,"root":"$root"/, 'it is the one that is printed')
        if $n % 2;

    # quit; clients are still there, with connections that are kept alive

    my @all = ($s->{pid}, $s->children);
    my $t = Time::HiRes::time();
    kill 'QUIT', $s->{pid};
    ok(until_ok(15, sub { !grep { RonTest::alive($_) } @all }), 'QUIT ends');
    my $took = Time::HiRes::time() - $t;
    cmp_ok($took, '<', slow($deadline + 1), sprintf 'after %.2f s', $took);
    $s->quit;

    my ($last) = reverse grep { /"event":"shutdown"/ } split /\n/, $s->log;
    like($last, qr/"drained":true,"aborted":0,"canceled":0,"leaked":0,
                   "seq":$seq,"root":"$root"/x, 'its last line');

    # started again it has all that was answered, and nothing else

    $c->start;
    kill 'TERM', $_->{pid} for @{ $c->{clients} };
    my $sum = $c->done(now => 1);
    is($sum->{gone}, 0, 'no answer broke off');
    $c->judge("drain $n");
}

done_testing();
