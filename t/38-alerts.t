#!/usr/bin/perl

# Alerts fire when they should and at no other time; what alerts and
# dashboards ask for, a server has.

use strict;
use warnings;

use lib 't/lib';
use RonTest;
use RonAlerts ();

use JSON::PP ();

my $promtool = RonAlerts->new;
my $rules = $promtool->rules;
my $tests = RonTest::slurp('ops/prometheus/tests.yml');
my @alerts = $promtool->alerts;

cmp_ok(scalar @alerts, '>=', 30, 'there are ' . @alerts . ' alerts');


# promtool: the rules are right, and behave as the tests say

is($promtool->promtool('check rules', $rules), 0, 'promtool accepts the rules');
is($promtool->promtool('test rules', $rules, $tests), 0,
   'each alert fires and is quiet');

for my $alert (@alerts) {
    my $name = $alert->{name};

    like($tests, qr/^    name: $name $_$/m, "$name $_ in a test")
        for 'fires', 'is quiet';
}

# the tests notice a rule that was changed

my %change = (
    LedgerCommitSlow => [ '> 0.08', '> 0.8' ],
    LedgerDiskPressure => [ '== 1', '== 2' ],
    LedgerCommitQueueFull => [ 'for: 2m', 'for: 30s' ],
    LedgerSeqGap => [ 'severity: page', 'severity: warn' ],
    WalletWorkFull => [ '> 480', '> 479' ],
    WalletLedgerBreaker => [ '> 0', '>= 0' ],
);
my $changed = $rules;

for my $name (sort keys %change) {
    my ($from, $to) = @{ $change{$name} };

    ok($changed =~ s/(alert: $name\n(?:(?!alert:).)*)$from/$1$to/s,
       "$name has $from");
}

isnt($promtool->promtool('test rules', $changed, $tests), 0,
     'changed rules are refused');

my $said = $promtool->said;

for my $name (sort keys %change) {
    like($said, qr/alertname: ?$name\b/, "$name: its change is noticed");
}


# of what is scraped while something happens: the newest value of each second,
# and the last one for as long as the rule waits

{
    my $age = sub {
        qq(metrics_sample_age_seconds{service="ledger"} $_[0]\nother 1\n);
    };

    $promtool->scrape($age->(9));
    ok($promtool->fires('LedgerHelperSilent'), 'scraped: it fires');
    $promtool->scrape($age->(2));
    ok(!$promtool->fires('LedgerHelperSilent'), 'of what was said last');
    ok(!$promtool->fires('LedgerSafeMode'), 'not of what was never said');
    $promtool->scrape($age->(2.1));
    $promtool->scrape(undef);
    ok(!$promtool->fires('LedgerHelperSilent'), 'nor of what is gone');
    $promtool->forget;

    my $steps = 'ledger_clock_steps_total{service="ledger"}';

    $promtool->scrape("$steps 1\n");
    ok(!$promtool->fires('LedgerClockStep'), 'a counter that counts no more');
    $promtool->scrape("$steps 2\n");
    ok($promtool->fires('LedgerClockStep'), 'and one that does');
    $promtool->forget;
}


# a live server has every series that an alert or a panel asks for

my $s = RonTest->new(workers => 1);
$s->start or BAIL_OUT('no server');

$s->post('/v1/issue', { to => 'alice', asset => 'ron',
                        amount_minor => '5' }, key => 'k1');
$s->post('/ledger/ingest', { batch => [ { id => 'x', ts => 1, kind => 'Wish',
    account => 'bob', amount => '1', nonce => nonce16(1), v => 1 } ] });
$s->post('/ledger/admin/drain', '{}');
until_ok(10, sub { $s->post('/v1/issue', { to => 'alice', asset => 'ron',
    amount_minor => '5' }, key => 'k2')->{status} == 503 });

my $metrics = $s->get('/metrics', token => undef)->{body};
my %live;

while ($metrics =~ /^(\w+)\{(.*)\} \S+$/mg) {
    push @{ $live{$1} }, { $2 =~ /(\w+)="([^"]*)"/g };
}

like($metrics,
     qr/^rejected_total\{service="ledger",reason="unknown_kind"\} 1$/m,
     'an entry of an unknown kind is counted as one');

is_deeply([ missing('rate(no_such_total[5m]) > 0') ], [ 'no_such_total' ],
          'a metric that is not there is found');
is(scalar missing('queue_depth{q="nowhere"}'), 1, 'and a label that is not');

for my $alert (@alerts) {
    is(join(' ', missing($alert->{expr})), '', "$alert->{name}: has its series");
}


# the dashboards

for my $path (glob 'ops/grafana/*.json') {
    my $board = eval { JSON::PP->new->utf8->decode(RonTest::slurp($path)) };

    ok($board, "$path is JSON") or next;

    my (%id, @queries);

    for my $panel (@{ $board->{panels} }) {
        $id{ $panel->{id} }++;
        next if $panel->{type} eq 'row';

        ok($panel->{title} ne '' && $panel->{description} ne '',
           "$panel->{title}: has a title and says what it shows");
        push @queries, map { [ $panel->{title}, $_->{expr} ] }
            @{ $panel->{targets} };
    }

    is(scalar(grep { $_ > 1 } values %id), 0, 'no number twice');

    my %row = map { $_->{title} => 1 }
        grep { $_->{type} eq 'row' } @{ $board->{panels} };
    ok($row{$_}, "row $_")
        for 'Golden', 'Commit path', 'Security', 'Backpressure';

    my $records = "groups:\n  - name: panels\n    rules:\n";
    my $n = 0;

    for my $query (@queries) {
        my ($title, $expr) = @$query;

        is(join(' ', missing($expr)), '', "$title: has its series");
        $expr =~ s/\$instance/.*/g;
        $expr =~ s/'/''/g;
        $records .= "      - record: panel:" . $n++ . "\n"
                    . "        expr: '$expr'\n";
    }

    is($promtool->promtool('check rules', $records), 0, "$n queries are PromQL");
}


# what to do about each is written down

my $operations = RonTest::slurp('docs/OPERATIONS.md');

for my $alert (@alerts) {
    is($alert->{runbook}, "docs/OPERATIONS.md#\L$alert->{name}",
       "$alert->{name}: names its runbook");
    like($operations, qr/^### $alert->{name}\n\n\S/m, 'which is there');
}

$s->quit;

done_testing();


# What of a PromQL expression a live server does not have.  Selectors by a
# pattern are for values that come and go, and are looked at by name only.
sub missing {
    my ($expr) = @_;
    my @missing;

    while ($expr =~ /\b(\w+)\{([^}]*)\}/g) {
        my ($name, $labels) = ($1, $2);
        my %want = $labels =~ /(\w+)="([^"]*)"/g;

        push @missing, "$name\{$labels}"
            unless grep {
                my $has = $_;
                !grep { !defined $has->{$_} || $has->{$_} ne $want{$_} }
                    keys %want;
            } @{ $live{$name} || [] };
    }

    (my $bare = $expr) =~ s/\b(?:by|without|on|ignoring)\s*\([^)]*\)//g;
    $bare =~ s/\b\w+\{[^}]*\}//g;
    $bare =~ s/\[[^\]]*\]//g;
    $bare =~ s/"[^"]*"//g;

    push @missing, grep { !$live{$_} }
        $bare =~ /\b([a-z]\w*_\w+)\b(?!\s*\()/g;

    return @missing;
}
