#!/usr/bin/perl

# The cache of balances of a wallet whose ledger is another nginx: it follows
# the ledger's bus, says truthfully how old a balance is, answers while the
# ledger is gone, and forgets everything when it missed a commit.

use strict;
use warnings;

use lib 't/lib';
use IO::Select ();
use IO::Socket::INET ();
use RonStream;
use RonTest;
use Time::HiRes qw(sleep time);


my $slow_port = RonTest::free_port();
my $l = RonTest->new(workers => 2,
                     config => "listen 127.0.0.1:$slow_port sndbuf=4k;");
$l->start or BAIL_OUT('no ledger');

# its own ceilings and bounds of the cache

my $w = RonTest->new(workers => 2, ledger => '', locations => 0);
$w->{secret} = $l->{secret};
$w->write_file('ron.keys', slurp("$l->{dir}/ron.keys"), 0600);

sub locations {
    my ($options) = @_;

    return <<"END";
        location /v1/ {
            ron_wallet;
            ron_wallet_ledger_pass ledger open=200ms $options;
        }
        location = /readyz { ron_health ready; }
        location = /metrics { ron_metrics; }
END
}

sub slurp {
    my ($path) = @_;

    open my $f, '<', $path or return '';
    local $/;
    return scalar <$f>;
}

sub metric {
    my ($s, $name, @labels) = @_;

    my $text = $s->get('/metrics', token => undef)->{body};

    LINE: for my $line ($text =~ /^\Q$name\E(\{.*)$/mg) {
        for (@labels) { next LINE unless index($line, $_) >= 0 }
        return $line =~ /\} (\S+)$/ ? $1 : undef;
    }

    return 0;
}

sub calls  { metric($w, 'upstream_calls_total', 'op="read"', "outcome=\"ok\"") }
sub lagged { metric($w, 'bus_lagged_total', 'bus="ledger"') }

my $upstream = "upstream ledger { server 127.0.0.1:$l->{port}; keepalive 8; }";
$w->{http} = $upstream;

for my $case ([ 'cache=1m', qr/must be "off" or a size of at least 2m/ ],
              [ 'cache=',   qr/invalid parameter "cache="/ ],
              [ 'cache=x',  qr/must be "off" or a size/ ])
{
    my $bad = RonTest->new(ledger => '', locations => 0, http => $upstream,
                           config => locations($case->[0]));
    my ($code, $said) = $bad->test_config;
    isnt($code, 0, "$case->[0] is refused");
    like($said, $case->[1], 'and it is said why');
}

$w->{config} = locations('cache=2m');
$w->start or BAIL_OUT('no wallet');

my $n = 0;

sub op {
    my ($door, $op, $body, %o) = @_;

    return $door->post("/v1/$op", { asset => 'ron', %$body },
                       key => 'k' . ++$n, %o);
}

my %nonce;

sub pay {
    my ($door, $from, $to, %o) = @_;

    my $nonce = $o{nonce} || ++$nonce{$from};

    return op($door, 'transfer', { from => $from, to => $to,
                                   amount_minor => '1', nonce => $nonce }, %o);
}

# Until it is answered, under one key: the kernel may hand a connection to a
# worker that stands still, which serves it when nobody waits any more.

sub pay_surely {
    my ($door, $from, $to) = @_;

    my %same = (key => 'k' . ++$n, nonce => ++$nonce{$from});

    return until_ok(20, sub {
        pay($door, $from, $to, %same, timeout => 3)->{status} == 200
    });
}

sub balance {
    my ($account, %o) = @_;

    my $begin = time;
    my $r = $w->get("/v1/balance?account=$account&asset=ron", %o);

    # on one machine: when it was right, at the latest

    $r->{amount} = json_get($r->{body}, 'amount_minor');
    $r->{stale} = json_get($r->{body}, 'stale_ms');
    $r->{at} = $begin - ($r->{stale} || 0) / 1000;
    $r->{took} = time - $begin;

    return $r;
}

# To a server, at once; from it, what a bus says after a time.

sub relay {
    my ($to, $delay) = @_;

    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16)
        or BAIL_OUT("no relay: $!");
    my $pid = fork // BAIL_OUT("no relay: $!");

    return { port => $listen->sockport, pid => $pid } if $pid;

    my (%other, %bus, @later);
    my $select = IO::Select->new($listen);

    while (1) {
        my $wait = @later ? $later[0][0] - time : 1;

        for my $s ($select->can_read($wait > 0 ? $wait : 0)) {
            if ($s == $listen) {
                my $c = $listen->accept or next;
                my $d = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$to")
                    or next;
                @other{$c, $d} = ($d, $c);
                $select->add($c, $d);
                next;
            }

            my $n = sysread $s, my $bytes, 65536;
            my $o = $other{$s};
            $bus{$o} = 1 if $n && $bytes =~ /^GET \S+bus/;

            push @later, [ time + ($bus{$s} ? $delay : 0), $o,
                           $n ? $bytes : undef ];
            $select->remove($s) if !$n;
        }

        @later = sort { $a->[0] <=> $b->[0] } @later;

        while (@later && $later[0][0] <= time) {
            my (undef, $o, $bytes) = @{ shift @later };
            defined $bytes ? syswrite $o, $bytes : shutdown $o, 1;
        }
    }
}

# some reads without a single call to the ledger

sub cached {
    my ($account) = @_;

    return until_ok(10, sub {
        my $before = calls();
        my $bad = grep { (balance($account)->{stale} // 9999) > 250 } 1 .. 8;
        return !$bad && calls() == $before;
    });
}

is(op($l, 'issue', { to => $_, amount_minor => '1000000' })->{status}, 200,
   "money for $_") for qw(alice bob);
is(balance('alice')->{amount}, '1000000', 'read through');
ok(cached('alice'), 'then it is known here, and at most 250 ms old');

my $r = balance('alice');
my $tag = $r->{headers}{etag};
is($tag, $l->get('/v1/balance?account=alice&asset=ron')->{headers}{etag},
   'with its version');
is($w->get('/v1/balance?account=alice&asset=ron',
           headers => { 'If-None-Match' => $tag })->{status}, 304,
   'If-None-Match');
is($w->get('/v1/balance?account=alice&asset=ron',
           token => $w->token('account = bob'))->{status}, 403,
   "a known balance is not everybody's");
my $before = calls();
is($w->get('/v1/balance?account=alice&asset=ron',
           token => $w->token('svc = wallet'))->{status}, 403,
   'the ledger decides about who is no client of it');


# who pays here reads it at once, whichever worker answers

my $paid = 0;
my $old = 0;

for (1 .. 60) {
    pay($w, 'alice', 'shop')->{status} == 200 and $paid++;
    balance('alice')->{amount} == 1000000 - $paid or $old++;
}

is($paid, 60, 'payments at this door');
is($old, 0, 'are in every balance that is read after them');


# also when the bus is late: one of the two workers listens, and stands still

for my $pid ($w->workers) {
    ok(cached('alice'), 'known');
    kill 'STOP', $pid;
    my $wrong = 0;

    for (1 .. 5) {
        pay_surely($w, 'alice', 'shop') and $paid++;

        # a ledger that is asked and does not answer in time is another thing

        my $b = balance('alice');
        $wrong++ if $b->{amount} != 1000000 - $paid && $b->{took} < 0.1;
    }

    is($wrong, 0, 'what the bus has not said yet is asked for');
    kill 'CONT', $pid;
}


# who pays at the ledger's door is seen within 250 ms; before, the truth is told

my ($late, $max) = (0, 0);
my @lies;

for my $i (1 .. 60) {
    balance('alice');
    my $was = 1000000 - $paid;
    pay($l, 'alice', 'shop')->{status} == 200 and $paid++;
    my $done = time;

    until_ok(5, sub {
        my $b = balance('alice');
        return 1 if ($b->{amount} // -1) == 1000000 - $paid;

        if (($b->{amount} // -1) != $was || $b->{at} > $done) {
            push @lies, sprintf 'payment %d: %s after %d, said to be right '
                                . '%.2f ms after it: %s', $i,
                                $b->{amount} // 'nothing', $was,
                                1000 * ($b->{at} - $done), $b->{body};
        }

        $late++ if ($b->{stale} // 9999) > 250;
        return 0;
    }) or push @lies, "payment $i was not seen";

    $max = time - $done if time - $done > $max;
}

is(join("\n", @lies), '',
   'an old balance is never said to be right after a payment');
is($late, 0, 'nor older than 250 ms');
diag(sprintf 'seen after at most %d ms', 1000 * $max);

ok(cached('alice'), 'it is known again');
$before = calls();
pay($l, 'bob', 'shop') for 1 .. 30;
sleep 0.3;
balance('alice');
cmp_ok(calls() - $before, '<=', 5, "others' payments do not drop it");
is(lagged(), 0, 'and nothing was lost');


# every worker that listens dies

for (1 .. 2) {
    my ($pid) = $w->kill_worker;
    ok(until_ok(5, sub { !kill(0, $pid) && $w->workers == 2 }),
       'a worker is killed and replaced');
    ok(cached('alice'), 'another one listens');
    pay($l, 'alice', 'shop')->{status} == 200 and $paid++;
    ok(until_ok(5, sub { balance('alice')->{amount} == 1000000 - $paid }),
       'and hears of payments');
}

is(lagged(), 0, 'it goes on where the other one was');

my @was = $w->workers;
my $t = time;
ok($w->reload, 'the wallet is reloaded');
ok(until_ok(5, sub { !grep { kill 0, $_ } @was }), 'no worker stays for it');
ok(cached('alice'), 'the next ones listen');
ok($l->reload, 'the ledger is reloaded');
ok(cached('alice'), 'and heard again');
is(lagged(), 0, 'without a loss');


# the ledger stands still: known balances are answered, and age

sub ages {
    my ($what) = @_;

    my $since = time;
    my ($bad, $slow, $lied, $last, $young) = (0, 0, 0, -1, 0);

    while (time - $since < 1.5) {
        my $b = balance('alice');
        $bad++ if $b->{status} != 200 || $b->{amount} != 1000000 - $paid;
        $slow++ if $b->{took} > 1;
        $lied++ if $b->{at} > $since + 0.3;
        $young++ if $b->{stale} < $last;
        $last = $b->{stale};
        sleep 0.03;
    }

    is($bad, 0, "$what: balances are answered");
    is($slow, 0, 'and soon');
    is($lied, 0, 'none says that it is younger than the last sign of life');
    is($young, 0, 'they age');
    cmp_ok($last, '>', 1000, 'as time goes by');
}

my @stopped = ($l->helper, $l->workers);
kill 'STOP', @stopped;
ages('stopped');
$r = pay($w, 'alice', 'shop', headers => { 'Request-Timeout' => 1 });
is($r->{status}, 503, 'a write is refused');
kill 'CONT', @stopped;
ok($l->wait_ready, 'it goes on');
ok(cached('alice'), 'and is heard');

my $outcome = $l->get('/v1/outcome?account=alice',
                      headers => { 'Idempotency-Key' => "k$n" })->{body};
$paid++ if json_get($outcome, 'outcome') eq 'committed';


# the ledger dies

sub stop_ledger {
    my @all = ($l->{pid}, $l->children);

    kill 'KILL', @all;
    until_ok(5, sub { !grep { kill 0, $_ } @all });
    unlink "$l->{dir}/nginx.pid";
    $l->{pid} = 0;
}

is(balance('alice')->{amount}, 1000000 - $paid, 'known');

# connecting again is told from reading again

my $again = metric($w, 'backoff_retries_total', 'svc="ledger"', 'op="bus"');
my $read = metric($w, 'backoff_retries_total', 'svc="ledger"', 'op="read"');
stop_ledger();
ok(until_ok(10, sub { metric($w, 'backoff_retries_total', 'svc="ledger"',
                             'op="bus"') >= $again + 3 }),
   'who listens tries to connect again, and counts it');
is(metric($w, 'backoff_retries_total', 'svc="ledger"', 'op="read"'), $read,
   'not as reads, which nobody asked for');
ages('dead');
$r = balance('alice');
is($w->get('/v1/balance?account=alice&asset=ron',
           headers => { 'If-None-Match' => $r->{headers}{etag} })->{status},
   304, 'its version is the same');
is($w->get('/v1/balance?account=unheard&asset=ron')->{status}, 503,
   'what was never read is not invented');
$r = pay($w, 'alice', 'shop');
is($r->{status}, 503, 'a write is refused');
is(json_get($r->{body}, 'code'), 'UPSTREAM_UNAVAILABLE', 'nothing was done');
$nonce{alice}--;

$l->start or BAIL_OUT('no ledger');
ok(cached('alice'), 'it is back, and followed');
is(lagged(), 0, 'nothing was missed, as nothing was committed')
    or diag(join "\n", (grep { /bus of the ledger/ } split /\n/, $w->log),
            (grep { /\[notice\].*ron: / } split /\n/, $l->log),
            "the payment that was refused: $outcome");
is(balance('alice')->{amount}, 1000000 - $paid, 'the balance is right');


# commits that nobody heard: the ring went on (the cursor is gone)

sub deaf {
    my ($what, $meanwhile) = @_;

    ok(cached($_), "$_ is known") for qw(alice bob);

    my $count = lagged();
    my @workers = $w->workers;
    kill 'STOP', @workers;
    $meanwhile->();
    kill 'CONT', @workers;

    ok(until_ok(10, sub { lagged() > $count }), "$what: counted");
    is(metric($w, 'queue_dropped_total', 'queue="ledger"'), lagged(),
       "$what: as dropped too");
    ok($w->log =~ /\[warn\].*without this wallet: \d+ commits were missed, all/,
       'and said');

    my $calls = calls();
    is(balance('bob')->{amount},
       json_get($l->get('/v1/balance?account=bob&asset=ron')->{body},
                'amount_minor'), 'whom it did not concern');
    cmp_ok(calls(), '>', $calls, 'is dropped, too');
    ok(until_ok(5, sub { balance('alice')->{amount} == 1000000 - $paid }),
       'balances are right');
    ok(cached('alice'), 'and known again');

    return lagged() - $count;
}

my $slow;
my $lost = deaf('1 400 commits', sub {

    # a stream that is not read can take hundreds of commits: it is closed

    $l->reload;
    $slow = RonStream->new({ port => $slow_port }, '/ledger/bus',
                           rcvbuf => 2048);
    like(($slow->events(1))[0]{data},
         qr/^\{"seq":\d+,"us":\d+,"root":"[0-9a-f]{64}",
             "check":"[0-9a-f]{16}","joined":false\}$/x,
         'who has no cursor begins at the head');

    my ($sock, $ok) = (undef, 0);

    for (0 .. 1399) {
        $sock = $l->connect if $_ % 700 == 0;
        $ok++ if pay($l, 'alice', 'shop', sock => $sock)->{status} == 200;
    }

    $paid += $ok;
    is($ok, 1400, 'more commits than the ring has');
});

cmp_ok($lost, '>=', 1400, 'as many as were missed');

# and one that is connected, and does not read

my ($commits, $told) = ('', undef);

until_ok(20, sub {
    for ($slow->events(200, 2)) {
        $commits .= "$_->{data}\n" if ($_->{event} || '') eq 'commit';
        $told = $_ if ($_->{event} || '') eq 'lagged';
    }
    return $told;
});

like($commits, qr/^\{"seq":\d+,"root":"[0-9a-f]{64}","count":1,
                   "touched":"[0-9a-f]{320}"\}$/mx, 'commits have filters');
unlike($commits, qr/alice|shop/, 'and no names');
like($told ? $told->{data} : '', qr/"lost":\d+\}$/,
     'who is slow is told that it lost some');
cmp_ok(metric($l, 'bus_lagged_total', 'service="ledger"', 'bus="root_pub"'),
       '>=', 1, 'counted');
is(metric($l, 'drops_total', 'q="root_pub"'),
   metric($l, 'bus_lagged_total', 'service="ledger"', 'bus="root_pub"'),
   'as dropped too');
like($l->log, qr/\[warn\].*a wallet on the bus is slow: \d+ commits/,
     'and warned of');
is($l->get('/ledger/bus?since=1', token => undef)->{status}, 400,
   'a seq without its root');
$slow->close;

deaf('another life of the ledger', sub {
    stop_ledger();
    $l->start or BAIL_OUT('no ledger');
    pay($l, 'alice', 'shop')->{status} == 200 and $paid++;
    stop_ledger();
    $l->start or BAIL_OUT('no ledger');
});

# a bus that is 100 ms under way: what it says is as old as that

{
    my $relay = relay($l->{port}, 0.1);
    my $far = RonTest->new(workers => 1, ledger => '', locations => 0,
        http => "upstream ledger { server 127.0.0.1:$relay->{port}; }",
        config => locations(''));

    $far->{secret} = $l->{secret};
    $far->write_file('ron.keys', slurp("$l->{dir}/ron.keys"), 0600);
    $far->start or BAIL_OUT('no wallet');
    ($w, my $near) = ($far, $w);

    ok(cached('alice'), 'a wallet far away knows a balance');

    my @lies;
    my $old = 0;

    for my $i (1 .. 10) {
        my $was = 1000000 - $paid;
        pay($l, 'alice', 'shop')->{status} == 200 and $paid++;
        my $done = time;

        until_ok(5, sub {
            my $b = balance('alice');
            return 1 if $b->{amount} != $was;
            $old++;
            push @lies, sprintf '%d: %.1f ms', $i, 1000 * ($b->{at} - $done)
                if $b->{at} > $done;
            return 0;
        });
    }

    cmp_ok($old, '>', 10, 'and goes on saying what it has heard');
    is("@lies", '', 'never as if it were younger');

    $far->quit;
    $w = $near;
    kill 'KILL', $relay->{pid};
    waitpid $relay->{pid}, 0;
}


# another key: balances are asked for, and right

my $x = RonTest->new(workers => 1, ledger => '', locations => 0,
                     http => $upstream, config => locations(''));
$x->write_file('ron.keys', 'new ' . MIME::Base64::encode_base64('x' x 32, '')
               . "\n" . slurp("$l->{dir}/ron.keys"), 0600);
$x->start or BAIL_OUT('no wallet');
ok(until_ok(5, sub {
    slurp("$x->{dir}/logs/error.log") =~ /its first key in "ron_keys" is not/
}), 'a wallet with another first key says so');

for (1 .. 5) {
    $r = $x->get('/v1/balance?account=alice&asset=ron',
                 token => $l->token);
    is(json_get($r->{body}, 'amount_minor'), 1000000 - $paid, 'and asks');
}

is(metric($x, 'upstream_calls_total', 'op="read"', 'outcome="ok"'), 5,
   'each time');
$x->quit;

$w->{config} = locations('cache=off');
ok($w->reload, 'without a cache');
$before = calls();
balance('alice') for 1 .. 5;
is(calls() - $before, 5, 'every balance is asked for');

my ($fds) = map { $w->fds($_) } $w->workers;
cmp_ok($fds, '<', 60, 'no descriptors leak');

cmp_ok(metric($w, 'tasks_canceled_total', 'service="wallet"',
              'kind="invalidator"'), '>=', 2,
       'listeners that were told to end are counted');

$w->quit;
$l->quit;

done_testing();
