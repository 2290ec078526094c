#!/usr/bin/perl

# proxy_cache beside a ledger.  Its cache manager is the helper's event loop
# and holds it while it removes files: the ledger's threads go on.  Its cache
# loader is one more process of the helper's kind: it has no ledger.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use POSIX ();


my $files = 150;
my $stays = 2;                          # of one block each

# the cache is much larger than it may be, and shrinks by a file a turn

my $s = RonTest->new(workers => 1);
my $d = $s->dir;

$s->{http} = <<"END";
    proxy_cache_path $d/cache keys_zone=cache:1m max_size=8k use_temp_path=off
                     manager_files=1 manager_sleep=100ms;
END
$s->{config} = <<"END";
    location /made/ { return 200 "\$uri\\n"; }
    location /kept/ {
        proxy_pass http://127.0.0.1:$s->{port}/made/;
        proxy_cache cache;
        proxy_cache_valid 200 1h;
    }
END

$s->start or BAIL_OUT('no server');
is($s->post('/v1/issue', { to => 'payer', asset => 'ron',
    amount_minor => '1000000' }, key => 'fund')->{status}, 200, 'money');

my $sock = $s->connect;
my $got = grep { $s->get("/kept/$_", sock => $sock)->{status} == 200 }
          1 .. $files;
undef $sock;
is($got, $files, "$files answers through a cache");
is(cached(), $files, 'and kept there');


# the loader waits for a minute before it begins; it has begun as a process

my ($loader) = $s->titled('cache loader process');
ok($loader, 'there is a cache loader');
writer('beside it');


# A helper that begins looks at once whether the cache is too large, and later
# every ten seconds.  The successor after a reload does.

ok($s->reload, 'a reload');
ok(until_ok(20, sub { cached() < $files }), 'the cache manager removes files');
ok(until_ok(10, sub { $s->titled('cache manager process') == 1 }),
   'one helper is left');
ok($s->wait_ready, 'ready');
writer('while it does');

my $balance = 1_000_000;
my $bad = '';

ok(until_ok(20, sub { my $n = cached(); pay(); cached() < $n }),
   'payments beside it');

SKIP: {
    my $helper = $s->helper;
    my $tracer = slow_unlink($helper);

    skip 'nobody may trace', 1 if !$tracer;

    # The loop's thread was held all the time when it is stopped before and
    # after, and was not switched to in between.

    my $held = 0;

    until_ok(60, sub {
        my $before = held($helper);
        pay();
        $held++ if $before && held($helper) eq $before;
        return $bad || $held >= 10;
    });

    cmp_ok($held, '>=', 10, 'payments while one removal holds the loop');
    kill 'TERM', $tracer;
    waitpid $tracer, 0;
}

my $left = cached();
ok(until_ok(20, sub { pay(); cached() < $left || $left <= $stays }),
   'and more files are gone');

my $paid = 1_000_000 - $balance;
is($bad, '', "all $paid payments were answered");
is(json_get($s->get('/v1/balance?account=payer&asset=ron')->{body},
            'amount_minor'), $balance, 'and each happened once');
writer('afterwards');
ok($s->quit, 'quit ends all of them');

done_testing();


sub pay {
    $sock ||= $s->connect;

    my $r = $s->post('/v1/transfer', { from => 'payer', to => 'sink',
        asset => 'ron', amount_minor => '1',
        nonce => 1_000_001 - $balance }, key => "n-$balance", sock => $sock);

    undef $sock if ($r->{headers}{connection} || '') eq 'close';
    if ($r->{status} == 200) { $balance-- } else { $bad ||= $r->{body} || '-' }
}

sub cached {
    return scalar(() = glob "$d/cache/*");
}

sub threads {
    return scalar(() = glob "/proc/$_[0]/task/*");
}

# One process holds the ledger's lock, the helper; the loader has nothing of it.
sub writer {
    my ($when) = @_;

    my $inode = (stat "$d/ledger/ledger.lock")[1];
    my $lock = qr/FLOCK\s+ADVISORY\s+WRITE\s+(\d+)\s+\w+:\w+:$inode\s/;
    my @holders;

    until_ok(10, sub {
        @holders = RonTest::slurp('/proc/locks') =~ /$lock/g;
        return @holders;
    });
    is("@holders", $s->helper, "$when: the helper is the one writer");

    for my $pid ($s->titled('cache loader process')) {
        my @open = grep { m{^\Q$d\E/ledger} }
                   map { readlink // '' } glob "/proc/$pid/fd/*";
        is("@open", '', 'the loader has no file of the ledger');
        is(threads($pid), 1, 'and one thread');
    }
}

# Each removal by this thread, not by others of its process, takes a quarter
# of a second: the process that sees to it, 0 where nobody may.
sub slow_unlink {
    my ($thread) = @_;

    my $said = "$d/strace";
    my $pid = fork // die "fork: $!";

    if ($pid == 0) {
        open STDERR, '>', $said;
        exec 'strace', '-p', $thread, '-o', '/dev/null', '-e',
             'trace=?unlink,unlinkat', '-e',
             'inject=?unlink,unlinkat:delay_enter=250000'
            or POSIX::_exit(127);
    }

    return $pid if until_ok(10, sub { RonTest::slurp($said) =~ /attached/ });

    kill 'KILL', $pid;
    waitpid $pid, 0;

    return 0;
}

# How often a thread that is stopped by its tracer was switched to; else 0.
sub held {
    my ($thread) = @_;

    my $status = RonTest::slurp("/proc/$thread/task/$thread/status");

    return 0 if $status !~ /^State:\s+t/m;
    return join ' ', $status =~ /ctxt_switches:\s+(\d+)/g;
}
