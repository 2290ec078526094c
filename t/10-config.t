#!/usr/bin/perl

# What is refused before a server begins, and that asking changes nothing.
# Directives one by one are in t/http/refused.t.

use strict;
use warnings;

use lib 't/lib';
use RonTest;


# no helper without a master

{
    my $s = RonTest->new(main => 'master_process off;');
    my ($code, $said) = $s->test_config;

    isnt($code, 0, 'master_process off is refused');
    like($said, qr/cannot work with "master_process off"/, 'and says why');
}


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


# a ledger that the worker user cannot enter

SKIP: {
    skip 'only root has another user for its workers', 11 if $> != 0;

    my $s = RonTest->new;
    my $dir = $s->dir . '/locked';
    my $why = qr/the\ worker\ user\ nobody\ cannot\ enter\ "\Q$dir\E\/ledger":
                 .*\(chmod\ o\+x\)/x;

    mkdir $dir, 0700 or die "$dir: $!";
    $s->{ledger} = "sqlite:$dir/ledger";

    for my $what ('a ledger to be made', 'one that is there') {
        my ($code, $said) = $s->test_config;
        isnt($code, 0, "$what, out of the workers' reach, is refused");
        like($said, $why, 'with its path and what to do');
        ($code, $said) = $s->nginx();
        isnt($code, 0, 'not only by nginx -t');
        like($said, $why, 'with the same words');
        mkdir "$dir/ledger", 0700;
    }

    ok(!-s $s->dir . '/nginx.pid', 'and nothing runs')
        or ($s->{pid}) = RonTest::slurp($s->dir . '/nginx.pid') =~ /(\d+)/;
    is(join(' ', glob "$dir/ledger/*"), '', 'nor was anything made');

    # by a group of the worker user's it is reached

    my $group = getgrnam 'nogroup';
    chown 0, $group, $dir;
    chmod 0710, $dir;
    my ($code, $said) = $s->test_config;
    is($code, 0, 'its groups count') or diag($said);
}

# and one that becomes so stays as it is

SKIP: {
    skip 'only root has another user for its workers', 6 if $> != 0;

    my $s = RonTest->new;
    my $dir = $s->dir . '/closed';

    mkdir $dir, 0711 or die "$dir: $!";
    chmod 0711, $dir;
    $s->{ledger} = "sqlite:$dir/ledger";
    ok($s->start, 'a ledger that workers can enter');

    my $helper = $s->helper;
    chmod 0700, $dir;
    kill 'HUP', $s->{pid};
    ok(until_ok(10, sub { $s->log =~ /the worker user nobody cannot enter/ }),
       'when they cannot any more, a reload is refused');
    $s->allow(qr/the worker user nobody cannot enter/);
    is($s->helper, $helper, 'and the helper stays');
    chmod 0711, $dir;
    ok($s->reload, 'the next reload is taken');
    is($s->get('/readyz')->{status}, 200, 'and the ledger is ready');
    $s->quit;
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
