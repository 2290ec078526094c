#!/usr/bin/perl

# Traces: spans reach a collector with the relations and attributes that the
# seeds name; a collector that is down costs nothing but a counter.

use strict;
use warnings;
no warnings 'portable';

use lib 't/lib';
use RonTest;

use IO::Select ();
use IO::Socket::INET ();
use JSON::PP ();
use POSIX ();
use Time::HiRes ();

my $port = RonTest::free_port();
my $collector = 0;
my $got = '';

END { collector_end() }


# what is not accepted

for my $case (
    [ 'ron_otlp https://127.0.0.1/;', qr/must begin with "http:\/\/"/ ],
    [ 'ron_otlp http://127.0.0.1:99999/;', qr/invalid port in collector/ ],
    [ 'ron_otlp http://127.0.0.1/ sample=2;', qr/parameter "sample=2"/ ],
    [ 'ron_otlp http://127.0.0.1/ sample=101%;', qr/"sample=101%"/ ],
    [ 'ron_otlp http://127.0.0.1/ queue=1;', qr/parameter "queue=1"/ ],
    [ 'ron_otlp http://127.0.0.1/ interval=0;', qr/"interval=0"/ ],
    [ 'ron_otlp http://127.0.0.1/ colour=red;', qr/"colour=red"/ ],
    [ 'ron_otlp http://127.0.0.1/; ron_otlp http://127.0.0.1/;',
      qr/"ron_otlp" directive is duplicate/ ])
{
    my ($main, $why) = @$case;
    my $s = RonTest->new(main => $main);
    my ($code, $said) = $s->test_config;

    isnt($code, 0, "$main is refused");
    like($said, $why, 'and says why');
}

{
    my $s = RonTest->new(main => 'ron_otlp http://127.0.0.1/;', ledger => '',
                         locations => 0);
    my ($code, $said) = $s->test_config;

    isnt($code, 0, 'without a ledger it is refused');
    like($said, qr/"ron_otlp" needs "ron_ledger"/, 'and says why');
}


# everything is traced

my $s = server('sample=100%');
$got = $s->dir . '/spans';
collector_begin('take');
$s->start or BAIL_OUT('no server');

my $corr = 'corr-"1"';
my $trace = '4bf92f3577b34da6a3ce929d0e0e4736';
my $r = $s->post('/v1/issue', { to => 'secret-account', asset => 'ron',
    amount_minor => '5' }, key => 'secret-key',
    token => $s->token({ id => 'cap-7' }),
    headers => { 'X-Corr-ID' => $corr,
                 traceparent => "00-$trace-00f067aa0ba902b7-01" });
is($r->{status}, 200, 'a payment') or diag($r->{body});

my $txid = json_get($r->{body}, 'txid');
my %span = wait_spans($trace, 6);

is(join(' ', sort keys %span), join(' ', sort qw(
    svc.wallet.issue svc.ron-ledger.prevalidator.check
    svc.wallet.ledger.commit svc.ron-ledger.sequencer.assign
    svc.ron-ledger.commit.append_wal svc.ron-ledger.publish.root)),
   'is six spans');

my $root = $span{'svc.wallet.issue'};
my $call = $span{'svc.wallet.ledger.commit'};

is($root->{parentSpanId}, '00f067aa0ba902b7', 'below the caller');
is($root->{kind}, 2, 'as a server');
is($_->{parentSpanId}, $root->{spanId}, "$_->{name} is below the request")
    for $span{'svc.ron-ledger.prevalidator.check'}, $call;
is($_->{parentSpanId}, $call->{spanId}, "$_->{name} is below the call")
    for map { $span{"svc.ron-ledger.$_"} }
        'sequencer.assign', 'commit.append_wal', 'publish.root';

my %ids = map { $_->{spanId} => 1 } values %span;
is(scalar keys %ids, 6, 'each has an id of its own');

for my $name (sort keys %span) {
    my $a = $span{$name}{attribute};

    is($a->{corr_id}, $corr, "$name: corr_id");
    is($a->{seq}, json_get($r->{body}, 'seq'), "$name: seq");
    is($a->{entry_id}, $txid, "$name: entry_id");
    is($a->{kid}, 'dev', "$name: kid");
    is($a->{capability_ref}, 'cap-7', "$name: capability_ref");
    cmp_ok($span{$name}{endTimeUnixNano}, '>=',
           $span{$name}{startTimeUnixNano}, "$name: ends after it began");
    cmp_ok(abs($span{$name}{startTimeUnixNano} / 1e9 - time), '<', 60,
           "$name: now");
    cmp_ok($span{$name}{startTimeUnixNano}, '>=',
           $root->{startTimeUnixNano}, "$name: not before the request");
}

is($root->{attribute}{queue}, 'work', 'queue of the request');
is($root->{attribute}{'http.route'}, '/v1/issue', 'route');
is($root->{attribute}{'http.response.status_code'}, 200, 'status');
is($span{"svc.ron-ledger.$_->[0]"}{attribute}{queue}, $_->[1],
   "queue of $_->[0]")
    for [ 'sequencer.assign', 'preval' ], [ 'commit.append_wal', 'commit' ];
is($span{"svc.ron-ledger.$_"}{attribute}{batch_size}, 1, "batch_size of $_")
    for 'sequencer.assign', 'commit.append_wal';
cmp_ok($span{'svc.ron-ledger.commit.append_wal'}{startTimeUnixNano}, '>=',
       $span{'svc.ron-ledger.sequencer.assign'}{endTimeUnixNano},
       'appended after it was decided');

# an ingest; two entries, one batch

$trace =~ s/^4/5/;
$r = $s->post('/ledger/ingest', { batch => [ map { { id => "e$_", ts => 1,
    kind => 'Mint', account => 'bob', amount => '1', nonce => nonce16($_),
    v => 1 } } 1, 2 ] },
    headers => { traceparent => "00-$trace-00f067aa0ba902b7-00" });
is($r->{status}, 200, 'an ingest') or diag($r->{body});

%span = wait_spans($trace, 5);
$root = $span{'svc.ron-ledger.ingress.handle'};
ok($root, 'is a span of the ingress');
is($span{"svc.ron-ledger.$_"}{parentSpanId}, $root->{spanId}, "$_ is below it")
    for 'prevalidator.check', 'sequencer.assign', 'commit.append_wal';
is($root->{attribute}{entry_id}, 'e1', 'its first entry');
is($root->{attribute}{queue}, 'ingress', 'its queue');
is($span{'svc.ron-ledger.commit.append_wal'}{attribute}{batch_size}, 2,
   'two entries in the batch');

# a refusal, a look; what a stranger says about traces

$trace =~ s/^5/6/;
$s->post('/v1/transfer', { from => 'nobody', to => 'b', asset => 'ron',
    amount_minor => '1', nonce => 1 }, key => 'r1',
    headers => { traceparent => "00-$trace-00f067aa0ba902b7-01" });
%span = wait_spans($trace, 3);
is($span{'svc.wallet.transfer'}{attribute}{reason}, 'insufficient_funds',
   'why it was refused');
ok(!exists $span{'svc.ron-ledger.commit.append_wal'}, 'and nothing appended');

my $before = () = all_spans();
$s->get('/v1/balance?account=secret-account&asset=ron',
        headers => { traceparent => $_ })
    for '', 'x', "00-$trace-0000000000000000-01", "ff-$trace-00f067aa0ba902b7-01";
ok(until_ok(10, sub { (() = all_spans()) == $before + 4 }),
   'what is no traceparent begins a trace');
is(scalar(grep { $_->{name} eq 'svc.wallet.balance' && $_->{parentSpanId} }
          all_spans()), 0, 'that nobody is above');

my $text = RonTest::slurp($got);
unlike($text, qr/secret|amount/, 'no account, amount or key in any span');
like($text, qr/"service.name","value":\{"stringValue":"ngx_ron"\}/,
     'they say whose they are');

# counted when the collector has said that it has them
ok(until_ok(10, sub {
    metric('otlp_spans_exported_total') >= (() = all_spans());
}), 'exported spans are counted');
is(metric('otlp_spans_dropped_total'), 0, 'none was dropped');

# a reload does not end it

$s->reload;
$trace =~ s/^6/7/;
$s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '5' },
         key => 'after', headers => {
             traceparent => "00-$trace-00f067aa0ba902b7-01" });
is(scalar keys %{ { wait_spans($trace, 6) } }, 6, 'a reload does not end it');


# a collector that is gone, one that is silent, one that refuses; who waited
# for it would wait for its time-out, 2 s

for my $how ('gone', 'silent', 'refuse') {
    collector_end();
    collector_begin($how) if $how ne 'gone';

    my $dropped = metric('otlp_spans_dropped_total');
    my $slowest = 0;

    for my $n (1 .. 20) {
        my $t = Time::HiRes::time();
        my $r = $s->post('/v1/issue', { to => 'a', asset => 'ron',
            amount_minor => '1' }, key => "$how-$n");

        is($r->{status}, 200, "$how: payment $n goes on") if $n % 10 == 0;
        $t = Time::HiRes::time() - $t;
        $slowest = $t if $t > $slowest;
    }

    cmp_ok($slowest, '<', slow(1), sprintf
           '%s: and does not wait, the slowest %.3f s', $how, $slowest);
    ok(until_ok(40, sub { metric('otlp_spans_dropped_total') > $dropped }),
       "$how: what is lost is counted");
}

collector_end();
collector_begin('take');
my $exported = metric('otlp_spans_exported_total');
ok(until_ok(60, sub {
    $s->get('/v1/balance?account=a&asset=ron');
    return metric('otlp_spans_exported_total') > $exported;
}), 'when it is back spans go there again');

my @told = $s->log =~ /spans are dropped, the collector/g;
is(scalar @told, 1, 'the log says it once');
like($s->log, qr/takes spans again/, 'and when it is over');
$s->quit;


# the ring is bounded, its oldest make room

collector_end();
$s = server('sample=100% queue=16 interval=60s');
$s->start or BAIL_OUT('no server');
$s->get('/v1/balance?account=a&asset=ron') for 1 .. 20;
is(metric('otlp_spans_dropped_total', 'queue'), 20 - 16 + readies(),
   'records over its size are dropped and counted');

{
    # each look at the metrics is a record more

    my $text = $s->get('/metrics')->{body};
    my ($lost) = $text =~ /^otlp_spans_dropped_total\{.*"queue"\} (\d+)$/m;

    cmp_ok($lost, '>', 4, 'it goes on');
    is(($text =~ /^drops_total\{.*q="spans"\} (\d+)$/m)[0], $lost,
       'counted with that queue, too');
}

$s->quit;


# one in a hundred, by the trace's id; all in safe mode

$s = server('sample=1%');
$got = $s->dir . '/spans';
collector_begin('take');
$s->start or BAIL_OUT('no server');

my %want;

for my $low ('0000000000', '0200000000', '028f5c28f5', '028f5c28f6',
             '8000000000', 'ffffffffff')
{
    my $id = ('a' x 22) . $low;
    $want{$id} = 1 if hex($low) < 0.01 * 2**40;
    $s->get('/v1/balance?account=a&asset=ron',
            headers => { traceparent => "00-$id-00f067aa0ba902b7-01" });
}

is(scalar keys %want, 3, 'three of six are in the share');
ok(until_ok(10, sub { (grep { $want{ $_->{traceId} } } all_spans()) == 3 }),
   'and they are traced');
is(scalar(grep { $_->{traceId} =~ /^a{22}/ && !$want{ $_->{traceId} } }
          all_spans()), 0, 'the others are not, whatever their flag says');

is($s->post('/ledger/admin/safe-mode', '{"enter":true}')->{status}, 200,
   'safe mode');
ok(until_ok(5, sub {
    $s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '1' },
             key => 'x')->{status} == 503
}), 'is on');

my $traced = scalar(() = all_spans());
my %of;

for my $n (1 .. 20) {
    my $id = sprintf 'b%021dffffffffff', $n;
    $of{ substr $id, 0, 32 } = 1;
    $s->get('/v1/balance?account=a&asset=ron', headers => {
        traceparent => '00-' . substr($id, 0, 32) . '-00f067aa0ba902b7-00' });
}

ok(until_ok(10, sub { (grep { $of{ $_->{traceId} } } all_spans()) == 20 }),
   'everything is traced there');
$s->quit;


# and while a breaker is open

$s = server('sample=0.1%', main => 'ron_committer_lag_max 60s; ron_commit_delay 4s;',
            http => 'ron_deadline 1500ms; '
                    . 'ron_wallet_breaker errors=1 open=60s;');
$s->start or BAIL_OUT('no server');
$s->get('/v1/balance?account=a&asset=ron',
        headers => { traceparent => '00-' . 'd' x 32 . '-00f067aa0ba902b7-01' });

{
    my @status = map {
        $s->post('/v1/issue', { to => 'a', asset => 'ron',
                                amount_minor => '1' }, key => $_)->{status}
    } qw(first late);

    is($status[1], 503, 'what nobody answers opens it');
    is($s->post('/v1/issue', { to => 'a', asset => 'ron',
                               amount_minor => '1' }, key => 'now')->{status},
       503, 'it is open');
    like($s->get('/readyz', token => undef)->{body}, qr/"state":"open"/,
         'and says so');
    $s->get('/v1/balance?account=a&asset=ron', headers => {
        traceparent => '00-' . 'e' x 32 . '-00f067aa0ba902b7-01' });

    ok(until_ok(10, sub { grep { $_->{traceId} eq 'e' x 32 } all_spans() }),
       'everything is traced then');
    is(scalar(grep { $_->{traceId} eq 'd' x 32 } all_spans()), 0,
       'what came before is not');
}

$s->quit;
collector_end();


# another nginx has the ledger: its spans are below those of the wallet

{
    my $back = server('sample=100%');
    $back->start or BAIL_OUT('no server');

    my $front = server('sample=100%');
    $got = $front->dir . '/spans';
    collector_begin('take');
    $front->{http} = 'upstream far { server 127.0.0.1:' . $back->port . '; }';
    $front->{config} = 'location /far/ { ron_wallet;'
                       . ' ron_wallet_ledger_pass far; }';
    $front->{secret} = $back->{secret};
    $front->write_file('ron.keys', RonTest::slurp($back->dir . '/ron.keys'),
                       0600);
    $front->start or BAIL_OUT('no server');

    my $id = 'c' x 32;
    my $r = $front->post('/far/issue', { to => 'a', asset => 'ron',
        amount_minor => '1' }, key => 'far', headers => {
            traceparent => "00-$id-00f067aa0ba902b7-01" });
    is($r->{status}, 200, 'a payment elsewhere') or diag($r->{body});

    ok(until_ok(10, sub {
        my @far = grep { $_->{traceId} eq $id
                         && $_->{attribute}{'http.route'} } all_spans();
        my ($root) = grep { $_->{parentSpanId} eq '00f067aa0ba902b7' } @far;
        return $root && grep { $_->{parentSpanId} eq $root->{spanId} } @far;
    }), 'the ledger is below the wallet');

    $front->quit;
    $back->quit;
}

done_testing();


sub server {
    my ($options, %o) = @_;
    my $more = delete $o{main} || '';

    $options = "interval=20ms timeout=2s $options"
        if $options !~ /interval/;

    return RonTest->new(workers => 1, %o,
        main => "ron_otlp http://127.0.0.1:$port/v1/traces $options; $more");
}

# Requests of the harness itself, before a server is ready, and of metric().
sub readies {
    my $metrics = $s->get('/metrics', token => undef)->{body};
    my $n = -1;

    $n += $1 while $metrics =~ m!^http_requests_total\{[^}]*
                                 route="/(?:readyz|metrics)"[^}]*\}\ (\d+)!mgx;

    return $n;
}

sub metric {
    my ($name, $label) = @_;
    my $sum = 0;

    for (split /\n/, $s->get('/metrics', token => undef)->{body}) {
        my ($labels, $value) = /^\Q$name\E\{(.*)\} (\d+)$/ or next;
        $sum += $value if !defined $label || $labels =~ /="\Q$label\E"/;
    }

    return $sum;
}

# Spans that the collector was given, with their attributes as a hash.
sub all_spans {
    my @spans;

    for my $line (split /\n/, RonTest::slurp($got)) {
        my $o = eval { JSON::PP->new->decode($line) } or next;

        for my $resource (@{ $o->{resourceSpans} }) {
            for my $scope (@{ $resource->{scopeSpans} }) {
                push @spans, @{ $scope->{spans} };
            }
        }
    }

    for my $span (@spans) {
        $span->{attribute} = { map {
            ($_->{key} => (values %{ $_->{value} })[0])
        } @{ $span->{attributes} } };
        $span->{parentSpanId} //= '';
    }

    return @spans;
}

sub wait_spans {
    my ($trace, $n) = @_;
    my @spans;

    until_ok(10, sub {
        @spans = grep { $_->{traceId} eq $trace } all_spans();
        return @spans >= $n;
    });

    return map { ($_->{name} => $_) } @spans;
}

# take: a line for each request, 200; silent: no answer; refuse: 503.
sub collector_begin {
    my ($how) = @_;

    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1',
        LocalPort => $port, Listen => 16, ReuseAddr => 1)
        or die "collector: $!";

    $collector = fork();
    die "fork: $!" unless defined $collector;
    return if $collector;

    open(my $out, '>>', $got) or POSIX::_exit(1);
    $out->autoflush(1);

    my @held;

    while (my $sock = $listen->accept) {
        my $text = '';

        push(@held, $sock), next if $how eq 'silent';

        while (IO::Select->new($sock)->can_read(5)
               && sysread $sock, $text, 65536, length $text)
        {
            my ($head, $body) = split /\r\n\r\n/, $text, 2;
            next unless defined $body;
            my ($length) = $head =~ /^Content-Length: (\d+)/m;
            next if length $body < $length;

            print $out "$body\n" if $how eq 'take'
                && $head =~ m{^POST /v1/traces HTTP/1.1\r\n}
                && $head =~ m{^Content-Type: application/json}m;
            syswrite $sock, $how eq 'take'
                ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
                : "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n";
            last;
        }

        close $sock;
    }

    POSIX::_exit(0);
}

sub collector_end {
    return unless $collector;

    local $?;
    kill 'KILL', $collector;
    waitpid $collector, 0;
    $collector = 0;
    RonSecrets::said('a trace', RonTest::slurp($got));
}
