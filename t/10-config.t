#!/usr/bin/perl

# What is refused before a server begins, that asking changes nothing, and what
# directives do that no other suite is about.  What is refused of them, one by
# one, is in t/http/refused.t.

use strict;
use warnings;

use lib 't/lib';
use RonChaos;
use RonProofs;
use RonTest;

my $BUILD = $ENV{RON_BUILD} || 'build';


# no helper without a master

{
    my $s = RonTest->new(main => 'master_process off;');
    my ($code, $said) = $s->test_config;

    isnt($code, 0, 'master_process off is refused');
    like($said, qr/cannot work with "master_process off".*remove one of/,
         'and says why, and what to do');
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


# a helper on processors of its own: all of its threads, and the next one, too

{
    my ($cpu) = RonTest::slurp('/proc/self/status')
                =~ /^Cpus_allowed_list:\s*(\d+)/m;
    my $s = RonTest->new(main => 'ron_helper_cpu_affinity 1' . '0' x $cpu
                                 . ';');
    my $where = sub {
        my %seen;

        $seen{ RonTest::slurp($_) =~ /^Cpus_allowed_list:\s*(\S+)/m ? $1 : '' }++
            for glob '/proc/' . $s->helper . '/task/*/status';

        return join ' ', map { $seen{$_} > 1 ? $_ : () } keys %seen;
    };

    ok($s->start, 'a helper with a processor of its own');
    is($where->(), $cpu, 'its threads are there');
    my ($any) = RonTest::slurp('/proc/' . ($s->workers)[0] . '/status')
                =~ /^Cpus_allowed_list:\s*(\S+)/m;
    is($any, RonTest::slurp('/proc/self/status')
             =~ /^Cpus_allowed_list:\s*(\S+)/m ? $1 : '',
       'workers are wherever they like');
    ok($s->kill_helper, 'it is killed');
    ok(until_ok(10, sub { $s->helper && $where->() eq $cpu }),
       'and comes back to the same place');
    $s->quit;
}


# a worker's thread that reads the ledger may be where the helper is

{
    my ($list) = RonTest::slurp('/proc/self/status')
                 =~ /^Cpus_allowed_list:\s*(\S+)/m;
    my @cpus = map { /^(\d+)-(\d+)$/ ? ($1 .. $2) : $_ } split /,/, $list;
    my ($one, $other) = @cpus[0, -1];
    my $s = RonTest->new(workers => 1, main =>
        'worker_cpu_affinity 1' . '0' x $one . ';'
        . 'ron_helper_cpu_affinity 1' . '0' x $other . ';');
    my $where = sub {
        my @now = map { RonTest::slurp("/proc/$_/status")
                        =~ /^Cpus_allowed_list:\s*(\S+)/m ? $1 : '' } @_;
        return join ' ', map { s/-/,/r } @now;
    };

    ok($s->start, 'a worker with a processor of its own, too');
    my ($worker) = $s->workers;
    $s->post('/v1/issue', { to => 'a', asset => 'ron', amount_minor => '1' },
             key => 'placed');
    is($s->get('/ledger/proof/inclusion?seq=1')->{status}, 200, 'a proof');
    is($where->($worker), $one, 'the worker is where it was');

    my @tasks = map { m{(\d+)/task/(\d+)} && $2 ne $1 ? "$1/task/$2" : () }
        glob "/proc/$worker/task/*";
    my $both = $one == $other ? $one : "$one,$other";
    ok((grep { $where->($_) eq $both } @tasks), 'who read may be on both')
        or diag($where->(@tasks));
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

    # and is not lost by a reload that does without

    @$s{qw(ledger locations)} = ('', 0);
    $s->write_conf;
    $s->nginx('-s', 'reload');
    ok(until_ok(5, sub { $s->log =~ /"ron_ledger memory:16m" cannot be removed/
                       }), 'a reload cannot remove it');
    $s->allow(qr/cannot be removed/);
    $r = $s->get('/v1/balance?account=a&asset=ron');
    is(json_get($r->{body}, 'amount_minor'), 5, 'and it goes on');
    $s->quit;
}


# a key of one's own signs the heads, until there is another one

sub signing_key {
    my ($s, $file, $name) = @_;

    my $make = "$BUILD/ronctl keys signing $name --out '$s->{dir}/$file'";
    my ($pub) = `$make 2>/dev/null` =~ /^(.*)\n/;

    chown((getpwnam 'nobody')[2, 3], "$s->{dir}/$file") if $> == 0;

    return $pub;
}

{
    my $s = RonTest->new;
    my ($n, $size) = (0, 0);

    # pays; what is wrong with the head that holds it, by this public key
    my $head = sub {
        my ($pub) = @_;

        my $r = $s->post('/v1/issue', { to => 'a', asset => 'ron',
                                        amount_minor => '5' },
                         key => 'head' . $n++);
        is($r->{status}, 200, 'a payment');

        my $p = RonProofs->new(server => $s, pub => $pub);
        my $note = $s->get('/ledger/checkpoint', token => undef)->{body};
        my ($root) = $p->signed($note, \my @wrong);

        ($size) = @$root unless @wrong;

        return join ' ', @wrong;
    };

    my $one = signing_key($s, 'one.key', 'one.example');
    my $two = signing_key($s, 'two.key', 'two.example');
    my $same = signing_key($s, 'same.key', 'one.example');

    $s->{main} = "ron_signing_key $s->{dir}/one.key; ron_origin one.example;";
    $s->start or BAIL_OUT('no server');
    is($head->($one), '', 'the head is signed by the key of ron_signing_key');
    is($size, 1, 'and is that of the payment');
    isnt($head->($same), '', 'and not by one of the same name');
    ok(!-e "$s->{dir}/ledger/signing.key", 'the ledger makes none');
    $s->quit;

    $s->{main} = "ron_signing_key $s->{dir}/two.key;";
    $s->start or BAIL_OUT('no server with another key');
    is($head->($two), '', 'after a restart with another one, by that');
    is($size, 3, 'over what the first one signed, and more');
    like($head->($one), qr/none of one\.example/, 'and not by the first one');
    $s->quit;

    # the origin is the name of the key, and of no other one

    $s->allow(qr/the origin "\S+" is not the name in the signing key/);

    $s->{main} = 'ron_origin own.example;';
    $s->start or BAIL_OUT('no server with an origin and no key');
    like($s->get('/ledger/checkpoint', token => undef)->{body},
         qr/^own\.example\n/, 'a key that the ledger makes has that name');
    $s->quit;

    for my $key ("ron_signing_key $s->{dir}/two.key;", '') {
        my $what = $key ? 'a key' : "the ledger's own key";

        $s->write_file('logs/error.log', '', 0666);
        $s->{main} = "$key ron_origin one.example;";
        $s->start(nowait => 1);
        ok(until_ok(10, sub {
            $s->log =~ /the origin "one\.example" is not the name in the/
        }), "the origin is not that of $what") or diag($s->log);
        is($s->get('/readyz', token => undef)->{status}, 503,
           'there is no ledger with it');
        $s->quit;
    }
}


# a wall clock that is further off than ron_clock_step

for my $case ([ '', 0 ], [ 'ron_clock_step 1s;', 1 ]) {
    my ($main, $steps) = @$case;

    my $c = RonChaos->new(shim => 1, main => $main);
    my $s = $c->{s};
    my $what = $main || 'ron_clock_step as it is';

    $c->start;

    # ledger time begins with the first batch, and each one compares

    my $told = sub {
        $s->post('/v1/issue', { to => 'a', asset => 'ron',
                                amount_minor => '1' }, key => 'clock' . rand);
        my $drift = $s->metric('ledger_clock_drift_seconds') || 0;
        return abs $drift > 2 && abs $drift < 4;
    };

    ok(!$told->(), "$what: the wall clock is right");
    $c->shim(clock => 3_000_000);
    ok(until_ok(10, $told), "$what: a wall clock 3 s ahead is seen");
    sleep 1;
    is($s->metric('ledger_clock_steps_total'), $steps, "$what: $steps alerts");
    $s->quit;
}


# whose capabilities a location takes

{
    my $s = RonTest->new(config => 'location /acme/ { ron_wallet;
                                                      ron_tenant acme; }');
    $s->start or BAIL_OUT('no server');

    my $path = 'balance?account=a&asset=ron';

    for my $case (
        [ '/acme/', 'tenant = acme', 200 ],
        [ '/acme/', 'tenant = other', 403 ],
        [ '/v1/', 'tenant = acme', 403 ],
        [ '/acme/', undef, 200 ],
    ) {
        my ($at, $caveat, $status) = @$case;

        my $r = $s->get("$at$path", token => $s->token($caveat // ()));
        is($r->{status}, $status, "$at with " . ($caveat // 'any tenant'));
        like($r->{body}, qr/the capability is for another tenant/, 'says why')
            if $status == 403;
    }

    $s->quit;
}


# of every directive there is a case

{
    my $said = join '', map { RonTest::slurp($_) } glob 't/*.t t/http/*.t';
    my @names = RonTest::slurp('docs/DIRECTIVES.md') =~ /\*\*(ron_\w+)\*\*/g;

    cmp_ok(scalar @names, '>', 50, 'there are directives');
    is(join(' ', grep { $said !~ /\b$_\b/ } @names), '',
       'each is in some suite');
}


done_testing();
