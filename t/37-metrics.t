#!/usr/bin/perl

# Metrics: each is counted, at its place, and is what promtool accepts.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use Time::HiRes ();


my $s = RonTest->new(workers => 1, http => 'client_body_timeout 400ms;',
    config => 'location /slow/ { ron_wallet; ron_deadline 300ms; }');
$s->start or BAIL_OUT('no server');


# what promtool says

SKIP: {
    plain_lint('metrics of a server that has just begun');

    my %type = $s->get('/metrics')->{body} =~ /^# TYPE (\S+) (\S+)$/mg;

    cmp_ok(scalar keys %type, '>', 50, 'there are families');

    for my $name (sort keys %type) {
        is($name =~ /_total$/ ? 'counter' : 'other',
           $type{$name} eq 'counter' ? 'counter' : 'other',
           "$name: $type{$name}");
    }
}


# money is added up when the ledger is taken over

is(value('wallet_conservation_checks_total', outcome => 'ok'), 1,
   'money was added up once');
is(value('wallet_conservation_checks_total', outcome => 'fail'), 0, 'and is right');
is(value('disk_pressure'), 0, 'there is room on the disk');
is(value('ledger_safe_mode'), 0, 'no safe mode');
is(value('queue_capacity', q => 'root_pub'), 1024, 'capacity of the roots');
is(value('queue_capacity', queue => 'events'), 1024, 'capacity of the events');
is(value('queue_capacity', q => $_->[0]), $_->[1], "capacity of $_->[0]")
    for [ ingress => 2000 ], [ preval => 2000 ], [ commit => 1000 ];
is(value('queue_capacity', queue => 'work'), 512, 'capacity of work');

# each row of the registry, as the document has them: what is in it, what it
# holds, what it dropped and what it refused

{
    my $text = $s->get('/metrics', token => undef)->{body};
    my ($table) = RonTest::slurp('docs/CONCURRENCY.md')
        =~ /<!-- queues: begin -->\n(.*?)<!-- queues: end -->/s;
    my @rows = $table =~ /^\| (\w+) \| (ledger|wallet) \| (\w+) \| (\d+) \|/mg;
    my %no = ('ledger spans capacity' => 'without ron_otlp there is none');
    my $n = 0;

    while (my ($q, $service, $kind, $capacity) = splice @rows, 0, 4) {
        my ($label, $dropped) = $service eq 'ledger'
            ? ('q', 'drops_total') : ('queue', 'queue_dropped_total');
        my $series = qr/\{service="$service",$label="$q"\} (\d+)$/m;
        my $has = $no{"$service $q capacity"} ? 0 : $capacity;

        $n++;
        like($text, qr/^queue_depth$series/m, "$service $q: its depth");
        is(($text =~ /^queue_capacity$series/m)[0], $has,
           "$service $q: its capacity is $has");
        like($text, qr/^$dropped$series/m, "$service $q: what it dropped");

        # the wallet's work is refused by endpoint

        like($text, qr/^busy_rejections_total$series/m,
             "$service $q: what it refused") if $service eq 'ledger';
        like($text, qr/^bus_lagged_total\{service="$service",bus="$q"\} /m,
             "$service $q: what was too slow for it") if $kind eq 'broadcast';
    }

    cmp_ok($n, '>=', 10, "$n queues");
    like($text, qr/^busy_rejections_total\{service="wallet",endpoint="$_"\} /m,
         "$_: refused") for qw(issue transfer burn hold capture release batch);
}


# a request is in the gauges while it lives, and checked once

{
    my %before = map { $_ => value("prevalidator_duration_seconds_$_") }
        qw(count sum);
    my $body = '{"to":"alice","asset":"ron","amount_minor":"5"}';
    my $sock = $s->connect;
    my $text = $s->request_text('POST', '/v1/issue', $body, key => 'half',
                                keep => 1);

    syswrite $sock, substr $text, 0, length($text) - 3;

    ok(until_ok(5, sub { value('wallet_inflight', endpoint => 'issue') == 1 }),
       'half a request is in flight');
    is(value('inflight_requests', route => '/v1/issue'), 1, 'by its route');
    is(value('prevalidator_duration_seconds_count'), $before{count},
       'and is not checked yet');

    syswrite $sock, substr $text, -3;
    is(RonTest::read_response($sock, 'POST')->{status}, 200, 'it is answered');
    close $sock;

    ok(until_ok(5, sub { value('wallet_inflight', endpoint => 'issue') == 0 }),
       'and gone');
    is(value('inflight_requests', route => '/v1/issue'), 0, 'from both');
    is(value('prevalidator_duration_seconds_count'), $before{count} + 1,
       'it was checked once');
    cmp_ok(value('prevalidator_duration_seconds_sum') - $before{sum}, '<', 0.3,
           'the body was not waited for in that time');
    is(value('ledger_prevalidators_busy'), 0, 'and nobody is being checked');

    $s->post('/ledger/ingest', { batch => [ { id => 'm1', ts => 1,
        kind => 'Mint', account => 'bob', amount => '1', nonce => nonce16(1),
        v => 1 } ] });
    is(value('prevalidator_duration_seconds_count'), $before{count} + 2,
       'an ingest is checked as well');

    ok(until_ok(5, sub { value('sequencer_batch_size_sum') == 2
                         && value('ledger_entries_total') == 2 }),
       'two entries were in batches');
    is(value('sequencer_batch_size_count'),
       value('committer_batch_latency_seconds_count'),
       'and the committer had as many batches');

    $s->get('/v1/balance?account=alice&asset=ron');
    is(value('prevalidator_duration_seconds_count'), $before{count} + 2,
       'and a look is not');
}


# what the wallet did, each by its value

{
    my %at = (from => 'alice', to => 'bob', asset => 'ron');
    my %one = (%at, amount_minor => '1', nonce => 1);
    my $post = sub {
        my ($op, $body, $key) = @_;
        return $s->post("/v1/$op", $body, key => $key)->{status};
    };
    my $count = sub {
        my %n = map { ("ops_$_" => value('wallet_ops_total', endpoint => $_),
                       "requests_$_" => value('wallet_requests_total',
                                              endpoint => $_)) }
                qw(issue transfer hold batch balance outcome);

        $n{successes} = value('wallet_successes_total');
        $n{nonces} = value('wallet_nonce_conflicts_total');
        $n{replays} = value('wallet_idem_replays_total');
        $n{again} = value('wallet_idempotency_replays_total');
        $n{"rejects_$_"} = value('wallet_rejects_total', reason => $_)
            for qw(nonce_conflict insufficient_funds bad_request
                   idempotency_mismatch);

        return \%n;
    };
    my $before;
    my $moved = sub {
        my ($what, %want) = @_;
        my $now = $count->();
        my %diff = map { $now->{$_} != $before->{$_}
                         ? ($_ => $now->{$_} - $before->{$_}) : () }
                   keys %$now;

        is_deeply(\%diff, \%want, "$what: counted");
        $before = $now;
    };

    $before = $count->();

    is($post->('transfer', \%one, 'v1'), 200, 'a transfer');
    $moved->('a transfer', requests_transfer => 1, successes => 1,
             ops_transfer => 1);

    is($post->('transfer', \%one, 'v1'), 200, 'its replay');
    $moved->('a replay', requests_transfer => 1, successes => 1, replays => 1,
             again => 1);

    is($post->('transfer', { %one, amount_minor => '2' }, 'v1'), 422,
       'another under its key');
    $moved->('another under its key', requests_transfer => 1,
             rejects_idempotency_mismatch => 1);

    is($post->('transfer', \%one, 'v2'), 409, 'its nonce again');
    $moved->('a nonce again', requests_transfer => 1, nonces => 1,
             rejects_nonce_conflict => 1);

    is($post->('transfer', { %one, nonce => 2, amount_minor => '1000' },
               'v3'), 409, 'more than there is');
    $moved->('more than there is', requests_transfer => 1,
             rejects_insufficient_funds => 1);

    is($post->('transfer', { %one, nonce => 'x' }, 'v4'), 400, 'nonsense');
    $moved->('nonsense', requests_transfer => 1, rejects_bad_request => 1);

    my @ops = map { { op => 'transfer', %at, amount_minor => $_->[0],
                      nonce => $_->[1] } } [ '1', 2 ], [ '1', 3 ];

    for my $case ([ 'a batch', { ops => \@ops }, 200 ],
                  [ 'some of a batch',
                    { ops => [ { %{ $ops[0] }, nonce => 4 },
                               { %{ $ops[1] }, amount_minor => '1000',
                                 nonce => 5 } ] }, 207 ])
    {
        my ($what, $body, $status) = @$case;
        my $ok = $status == 200;

        is($post->('batch', $body, "b$status"), $status, $what);
        $moved->($what, requests_batch => 1, ops_batch => $ok ? 2 : 1,
                 $ok ? (successes => 1) : ());
        is($post->('batch', $body, "b$status"), $status, "$what, again");
        $moved->("$what, again", requests_batch => 1, replays => 1,
                 again => 1, $ok ? (successes => 1) : ());
    }

    $s->get('/v1/balance?account=alice&asset=ron');
    $s->get('/v1/outcome?account=alice',
            headers => { 'Idempotency-Key' => 'v1' });
    $moved->('looks', requests_balance => 1, requests_outcome => 1);

    # duplicates that are under way together: one becomes an entry

    my @socks = map { $s->connect } 1 .. 8;
    my %join = (%one, nonce => 9);

    $s->send_request($_, 'POST', '/v1/transfer', \%join, key => 'j',
                     keep => 1) for @socks;
    is(join(' ', map { RonTest::read_response($_, 'POST')->{status} } @socks),
       join(' ', (200) x 8), 'eight at once');
    $moved->('eight at once', requests_transfer => 8, successes => 8,
             ops_transfer => 1, replays => 7, again => 7);
    close $_ for @socks;
}


# who did not prove what it is

{
    my $good = $s->token;
    my %try = (
        missing   => undef,
        parse     => 'AAAA',
        signature => $s->token({ secret => 'x' x 32 }),
        expired   => $s->token('before = 1000'),
        caveat    => $s->token('svc = ledger'),
    );

    for my $stage (sort keys %try) {
        my $before = value('auth_failures_total', stage => $stage);
        my $r = $s->get('/v1/balance?account=alice&asset=ron',
                        token => $try{$stage});

        is($r->{status}, $stage eq 'caveat' ? 403 : 401, "$stage: refused");
        is(value('auth_failures_total', stage => $stage), $before + 1,
           "$stage: counted");
    }

    is(value('auth_failures_total', stage => 'revoked'), 0, 'nobody is revoked');

    my $before = value('auth_failures_total', peer_class => 'tcp');
    $s->get('/ledger/entries', token => undef);
    is(value('auth_failures_total', peer_class => 'tcp'), $before + 1,
       'the ledger counts by peer');
}


# who was too slow

for my $case ([ 'NGINX', '/v1/issue' ], [ 'our deadline', '/slow/issue' ]) {
    my ($who, $path) = @$case;
    my $before = value('io_timeouts_total', service => 'wallet', op => 'read');
    my $sock = $s->connect;
    my $text = $s->request_text('POST', $path, '{"to":"slow"}', key => 's');

    syswrite $sock, substr $text, 0, length($text) - 3;
    RonTest::read_response($sock, 'POST', 5);
    close $sock;

    ok(until_ok(5, sub { value('io_timeouts_total', service => 'wallet',
                           op => 'read') == $before + 1 }),
       "a body that does not come, ended by $who");
}


# whether writes are taken, as /readyz has it

sub ready {
    my $status = $s->get('/readyz', token => undef)->{status};

    return ($status == 200 ? 1 : 0) . ' ' . value('wallet_ready');
}

is(ready(), '1 1', 'it is ready');
is($s->post('/ledger/admin/safe-mode', '{"enter":true}')->{status}, 200,
   'an operator freezes it');
ok(until_ok(10, sub { ready() eq '0 0' }), 'then it is not');
is($s->post('/ledger/admin/safe-mode', '{"enter":false}')->{status}, 200,
   'and lets it go on');
ok(until_ok(10, sub { ready() eq '1 1' }), 'it is again');

{
    my $pid = $s->helper;

    freeze($pid);
    ok(until_ok(10, sub { ready() eq '0 0' }),
       'a helper that stands still takes nothing');
    kill 'CONT', $pid;
    ok(until_ok(10, sub { ready() eq '1 1' }), 'until it goes on');
}


# the age of what the helper samples

cmp_ok(value('metrics_sample_age_seconds'), '<', 1, 'samples are fresh');

{
    my $pid = $s->helper;
    my $oldest = 0;

    freeze($pid);
    ok(until_ok(10, sub {
        $oldest = value('metrics_sample_age_seconds');
        return $oldest > 1;
    }), 'a helper that stands still is seen');
    kill 'CONT', $pid;
    ok(until_ok(10, sub { value('metrics_sample_age_seconds') < $oldest }),
       'and when it goes on');
}


# what the committer has, and what waits for it

SKIP: {
    my $strace = $s->inject('fdatasync', 'delay_enter=2000000')
        or skip('no strace here', 4);
    my @socks = map { $s->connect } 1 .. 3;

    for my $n (0 .. 2) {
        $s->send_request($socks[$n], 'POST', '/v1/issue', { to => 'alice',
            asset => 'ron', amount_minor => '1' }, key => "slow-$n",
            keep => 1);
        ok(until_ok(10, sub { value('worker_inflight') == 1 }),
           'one operation is with the committer') if $n == 0;
    }

    ok(until_ok(10, sub { value('queue_depth', queue => 'work') == 2 }),
       'the others wait for it');
    is(value('worker_inflight'), 1, 'which has one still');
    ok(until_ok(10, sub { ready() eq '0 0' }), 'it lags too far behind');

    kill 'TERM', $strace;
    waitpid $strace, 0;
    RonTest::read_response($_, 'POST') for @socks;

    ok(until_ok(10, sub { value('worker_inflight') == 0
                          && value('queue_depth', queue => 'work') == 0 }),
       'when all are answered there is none');
    ok(until_ok(10, sub { ready() eq '1 1' }), 'and it is ready again');
}


# a sync that fails, a disk that is full

for my $case (
    [ 'a sync that fails', 'fdatasync', 'EIO', 0 ],
    [ 'a full disk',       'pwrite64', 'ENOSPC', 1 ])
{
    my ($what, $calls, $error, $full) = @$case;

SKIP: {
    my $before = value('wal_fsync_fail_total');
    my $strace = $s->inject($calls, "error=$error") or skip("$what: no strace here", 1);

    my $r = $s->post('/v1/issue', { to => 'alice', asset => 'ron',
        amount_minor => '1' }, key => "$error-1");
    is($r->{status}, 503, "$what: not answered as done");

    ok(until_ok(10, sub { value('wal_fsync_fail_total') > $before }),
       "$what: counted");
    is(value('wal_fsync_fail_total'), $before + 1, "$what: once");
    ok(until_ok(10, sub { value('ledger_safe_mode') == 1 }), "$what: safe mode");
    ok(until_ok(10, sub { value('disk_pressure') == $full }),
       "$what: disk_pressure is $full");

    kill 'TERM', $strace;
    waitpid $strace, 0;

    if ($full) {
        $s->kill_helper;
        ok(until_ok(10, sub { value('metrics_sample_age_seconds') < 0.2
                              && value('disk_pressure') == 1 }),
           "$what: the next helper says so too");
    }

    ok(until_ok(10, sub {
        $s->post('/ledger/admin/safe-mode', '{"enter":false}')->{status} == 200
    }), "$what: an operator says that it is over");
    ok(until_ok(10, sub { value('ledger_safe_mode') == 0 }), "$what: it is");
    is(value('disk_pressure'), 0, "$what: and there is room");
}
}

$s->quit;


# a journal that lost its end

{
    $s->start;
    $s->post('/v1/issue', { to => 'alice', asset => 'ron',
                            amount_minor => '1' }, key => 'last');
    $s->quit;

    my $db = $s->dir . '/ledger/ledger.db';

    system('sqlite3', $db,
           join '', map { "DROP TRIGGER $_;" } triggers($db)) == 0
        or die 'sqlite3';
    system('sqlite3', $db, 'DELETE FROM journal WHERE seq ='
                           . ' (SELECT max(seq) FROM journal);') == 0
        or die 'sqlite3';

    $s->start(nowait => 1);
    ok(until_ok(15, sub { value('seq_gap_detected_total') == 1 }),
       'a journal without its end is a gap');
    is(value('ledger_seq_gap_detected_total'), 1, 'under both names');
    ok(until_ok(10, sub { value('ledger_safe_mode') == 1 }), 'in safe mode');
    is(value('wal_fsync_fail_total'), 0, 'and no sync failed');
    Time::HiRes::sleep(0.5);
    is(value('seq_gap_detected_total'), 1, 'one gap, however often it is read');
    plain_lint('metrics of a ledger in safe mode');
    $s->quit;
}


# how often that is

$s->quit;
$s = RonTest->new(workers => 1, main => 'ron_metrics_tick 2s;');
$s->start or BAIL_OUT('no server');
is($s->post('/v1/issue', { to => 'alice', asset => 'ron', amount_minor => '1' },
            key => "tick-$_")->{status}, 200, "payment $_") for 1 .. 3;

{
    my ($oldest, $seq) = (0, 0);
    my $end = Time::HiRes::time() + 5;

    while (Time::HiRes::time() < $end) {
        my $age = value('metrics_sample_age_seconds');
        $oldest = $age if $age > $oldest;
        $seq = value('ledger_seq');
        Time::HiRes::sleep(0.05);
    }

    cmp_ok($oldest, '>', 1.5, 'a sample lasts');
    cmp_ok($oldest, '<', slow(2.5), 'as long as the directive says');
    is($seq, 3, 'and the next one has what was done');
}

done_testing();


# The value of one series, by some of its labels; all that match are added.
sub value {
    my ($name, %label) = @_;

    my $sum = 0;

    for my $line (split /\n/, $s->get('/metrics', token => undef)->{body}) {
        my ($n, $labels, $value) = $line =~ /^(\w+)\{(.*)\} (\S+)$/ or next;

        next if $n ne $name;
        next if grep { $labels !~ /(?:^|,)\Q$_\E="\Q$label{$_}\E"/ }
                keys %label;
        $sum += $value;
    }

    return $sum;
}

sub plain_lint {
    my ($what) = @_;

    my $path = $s->write_file('metrics', $s->get('/metrics')->{body});
    my $said = `promtool check metrics <$path 2>&1`;

    is($? >> 8, 0, "promtool accepts $what");
    is($said, '', 'and has nothing to say');
}

sub triggers {
    my ($db) = @_;

    return split /\n/,
        `sqlite3 $db "SELECT name FROM sqlite_master WHERE type='trigger'"`;
}
