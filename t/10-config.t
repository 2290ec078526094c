#!/usr/bin/perl

# What is refused before a server begins, and that asking changes nothing.

use strict;
use warnings;

use lib 't/lib';
use RonTest;


run_blocks(do { local $/; <DATA> });


# nginx -t makes nothing

{
    my $s = RonTest->new;
    my ($code, $said) = $s->test_config;

    is($code, 0, 'nginx -t accepts the configuration') or diag($said);
    ok(!-e $s->dir . '/ledger', 'nginx -t makes no ledger');
}


# a ledger directory that others may enter

{
    my $s = RonTest->new;
    mkdir $s->dir . '/ledger', 0750;
    chmod 0750, $s->dir . '/ledger';

    my ($code, $said) = $s->test_config;

    isnt($code, 0, 'a ledger open to others is refused');
    like($said, qr/open to others \(mode 0750\)/, 'and says why');
}


# a keys file that others may read

{
    my $s = RonTest->new;
    chmod 0640, $s->dir . '/ron.keys';

    my ($code, $said) = $s->test_config;

    isnt($code, 0, 'keys that others may read are refused');
    like($said, qr/holds secrets and is open to others/, 'and says why');
}

{
    my $s = RonTest->new;
    $s->write_file('ron.keys', "dev not-base64\n", 0600);

    my ($code, $said) = $s->test_config;

    isnt($code, 0, 'malformed keys are refused');
    like($said, qr/ron\.keys:1/, 'with the line');
    unlike($said, qr/not-base64/, 'and without the secret');
}


# a ledger cannot be changed by a reload

{
    my $s = RonTest->new;
    ok($s->start, 'a server starts') or done_testing(), exit;

    is((stat $s->dir . '/ledger')[2] & 07777, 0700, 'its ledger is 0700');
    is(0 + (grep { /\.sock$/ } glob $s->dir . '/ledger/*'), 1,
       'its socket is in there');

    my $old = $s->{ledger};
    $s->{ledger} = 'sqlite:' . $s->dir . '/other';
    $s->write_conf;
    $s->nginx('-s', 'reload');
    ok(until_ok(5, sub { $s->log =~ /cannot change from/ }),
       'another ledger is refused by a reload');
    $s->allow(qr/cannot change from/);

    is($s->get('/readyz')->{status}, 200, 'and the old one goes on');
    ok(!-e $s->dir . '/other', 'nothing was made for the other one');
    $s->{ledger} = $old;
    $s->quit;
}


# a ledger in memory needs no directory

{
    my $s = RonTest->new(ledger => 'memory:16m');
    ok($s->start, 'a server with a ledger in memory starts');

    my $r = $s->post('/v1/issue', { to => 'a', asset => 'ron',
                                    amount_minor => '5' }, key => 'k');
    is($r->{status}, 200, 'and takes an issue');
    $s->reload;
    $r = $s->get('/v1/balance?account=a&asset=ron');
    is(json_get($r->{body}, 'amount_minor'), 5,
       'which is there after a reload');
    ok(!-e $s->dir . '/ledger', 'and made no file');
    $s->quit;
}


done_testing();


__DATA__
=== TEST 1: a second ledger
--- main_config
ron_ledger sqlite:/tmp/ron-another;
--- must_die
--- error_log
one nginx has one ledger

=== TEST 2: not a ledger
--- ledger: postgres://x
--- must_die
--- error_log
invalid ledger "postgres://x"

=== TEST 3: too little memory
--- ledger: memory:64k
--- must_die
--- error_log
at least 1m is needed

=== TEST 4: an unknown hash
--- ledger: sqlite:/tmp/ron-none hash=md5
--- must_die
--- error_log
invalid hash "md5"

=== TEST 5: an unknown parameter of the ledger
--- ledger: sqlite:/tmp/ron-none sync=off
--- must_die
--- error_log
invalid parameter "sync=off"

=== TEST 6: no helper without a master
--- main_config
master_process off;
--- must_die
--- error_log
cannot work with "master_process off"

=== TEST 7: a socket that is too long
--- main_config
ron_socket /tmp/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;
--- must_die
--- error_log
is too long

=== TEST 8: an unknown queue
--- main_config
ron_queue backlog=5;
--- must_die
--- error_log
invalid parameter "backlog=5", the queues are ingress, preval, commit and work

=== TEST 9: a queue without a number
--- main_config
ron_queue work=many;
--- must_die
--- error_log
invalid number in "work=many"

=== TEST 10: a queue twice
--- main_config
ron_queue work=5 work=6;
--- must_die
--- error_log
duplicate queue "work"

=== TEST 11: a drain that would never end
--- main_config
ron_drain_deadline 30s;
--- must_die
--- error_log
"ron_drain_deadline" must be from 1s to 5s

=== TEST 12: services without keys
--- no_keys
--- must_die
--- error_log
there is no "ron_keys"

=== TEST 13: services without a ledger
--- ledger
--- must_die
--- error_log
needs a ledger

=== TEST 14: a zone that is too small
--- http_config
ron_zone ron 1m;
--- must_die
--- error_log
zone "ron" is too small

=== TEST 15: a size that is none
--- http_config
ron_zone ron lots;
--- must_die
--- error_log
invalid zone size "lots"

=== TEST 16: two zones
--- http_config
ron_zone ron 16m;
ron_zone ron2 16m;
--- must_die
--- error_log
"ron_zone" directive is duplicate

=== TEST 17: an asset that cannot be
--- http_config
ron_asset ron "two words";
--- must_die
--- error_log
invalid asset "two words"

=== TEST 18: an asset twice
--- http_config
ron_asset ron ron;
--- must_die
--- error_log
duplicate asset "ron"

=== TEST 19: two services in one location
--- config
location /both/ { ron_wallet; ron_ledger_api; }
--- must_die
--- error_log
has another ron service in its location

=== TEST 20: a service behind a regular expression
--- config
location ~ ^/rx { ron_wallet; }
--- must_die
--- error_log
cannot be in a location with a regular expression

=== TEST 21: health that is neither
--- config
location = /h { ron_health sound; }
--- must_die
--- error_log
invalid value "sound", it must be "live" or "ready"

=== TEST 22: a body that JSON would not take
--- http_config
ron_body_max 2m;
--- must_die
--- error_log
"ron_body_max" must be from 1k to 1m

=== TEST 23: a signing key that is none
--- main_config
ron_signing_key /dev/null;
--- must_die
--- error_log
/dev/null

=== TEST 24: nonces of a third kind
--- http_config
ron_wallet_nonce loose;
--- must_die
--- error_log
invalid value "loose"
