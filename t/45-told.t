#!/usr/bin/perl

# The harness finds a token or a key that any suite's server tells somebody:
# each of these suites, with nothing wrong but that, fails.  Those of the
# harness's own requests, and those that the programs make that load servers.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

my %told = (
    'nothing' => [ '', '' ],
    'a key in an access log' => [
        'log_format told "$http_idempotency_key";',
        'access_log logs/told.log told;' ],
    'a token in an access log' => [
        'log_format told "a $http_authorization";',
        'access_log logs/told.log told;' ],
    'the middle of a token' => [
        'map $http_authorization $part { "~^.{28}(?<p>.{36})" $p; }'
        . ' log_format told "<$part>";',
        'access_log logs/told.log told;' ],
    'a key in an error' => [
        '', 'location = /e { return 400 "no: $http_idempotency_key\n"; }' ],
    'a token in a header of an error' => [
        '', 'location = /e { add_header X-A $http_authorization always;'
            . ' return 404; }' ],
    'a key among metrics' => [
        '', 'location = /metrics { return 200 '
            . '"a{k=\"$http_idempotency_key\"} 1\n"; }', 'locations', 0 ],
);

# the same requests for each: a key that is a word, one that is not
my $suite = <<'E2';
use lib 't/lib';
use RonTest;
my $s = RonTest->new(%o);
$s->start(nowait => 1) or die;
$s->wait_ready if !exists $o{locations};
my $child = fork;
if (!$child) {
    for my $path (qw(/e /metrics /v1/tx/1)) {
        $s->get($path, key => $_) for 'word', 'not-a-word-1';
    }
    POSIX::_exit(0);
}
waitpid $child, 0;
$s->quit;
ok(1, 'the end');
done_testing();
E2

# as many requests as it makes, by its own keys and tokens
my $bench = <<'E2';
use lib 't/lib';
use RonTest;
my $s = RonTest->new(%o);
$s->start or die;
my $ctl = ($ENV{RON_BUILD} || 'build') . '/ronctl';
my $said = `'$ctl' bench --url http://127.0.0.1:$s->{port} \\
                --keys $s->{dir}/ron.keys --workload transfer --accounts 10 \\
                --connections 2 --duration 200ms --warm-up 0s 2>&1`;
is($?, 0, 'the bench') or diag($said);
$s->quit;
ok(1, 'the end');
done_testing();
E2

my $client = <<'E2';
use lib 't/lib';
use RonTest;
use RonChaos;
my $c = RonChaos->new(load => { c => 2, a => 4, r => 500 }, %o);
$c->start;
$c->load('a', s => 0.5);
$c->done;
$c->{s}->quit;
ok(1, 'the end');
done_testing();
E2

my $key_log = [ 'log_format told "$http_idempotency_key";',
                'access_log logs/told.log told;' ];

suite('nothing of the bench', $bench, '', '');
suite('a key of the bench', $bench, @$key_log);
suite('a token of the bench', $bench,
      'log_format told "a $http_authorization";',
      'access_log logs/told.log told;');
suite('nothing of a client', $client, '', '');
suite('a key of a client', $client, @$key_log);
suite('a key of a client in an error', $client, '',
      'location = /v1/burn { return 503 "no: $http_idempotency_key\n"; }');

suite($_, $suite, @{ $told{$_} }) for sort keys %told;


sub suite {
    my ($what, $suite, $http, $config, @more) = @_;

    my %o = (http => $http, config => $config, workers => 1, @more);
    my $options = join ', ', map { "$_ => q\0$o{$_}\0" } sort keys %o;
    my $file = File::Temp->new;

    print $file "my %o = ($options);\n$suite";
    close $file;

    local $ENV{NGINX} = $RonTest::NGINX;    # which RonTest has taken away
    my $said = `'$^X' '$file' 2>&1`;
    my $code = $? >> 8;

    like($said, qr/^ok \d+ - the end/m, "$what: a suite") or diag($said);

    if ($what =~ /^nothing/) {
        is($code, 0, 'with nothing told passes') or diag($said);
    } else {
        isnt($code, 0, "with $what fails") or diag($said);
        like($said, qr/^# a token or a key: /m, 'and says what it found');
    }
}

done_testing();
