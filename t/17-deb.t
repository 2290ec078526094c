#!/usr/bin/perl

# `make install` and `make deb`: what is in them is complete and works.  The
# package is unpacked and a server started from it; where CI is set, on a
# machine that is thrown away, it is installed too.

use strict;
use warnings;

use lib 't/lib';
use RonTest;

use Cwd qw(abs_path);
use File::Temp qw(tempdir);

my $build = abs_path($ENV{RON_BUILD} || 'build');
my $dir = tempdir(CLEANUP => 1);

chmod 0755, $dir;

# `make test` has told make about itself
delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)};

my @installed = qw(bin/ronctl share/man/man8/ronctl.8
                   share/bash-completion/completions/ronctl);

sub run {
    my (@cmd) = @_;

    open my $out, '-|', 'sh', '-c', 'exec "$@" 2>&1 </dev/null', 'sh', @cmd
        or die "$cmd[0]: $!";
    local $/;
    my $said = <$out>;
    close $out;

    return ($? >> 8, defined $said ? $said : '');
}


# ---- make install -----------------------------------------------------------

my ($code, $said) = run('make', "BUILD=$build", 'install', "DESTDIR=$dir/root",
                        'PREFIX=/opt/ron', 'MODULES=/opt/ron/modules');
is($code, 0, 'make install') or diag($said);

for my $file ((map { "opt/ron/$_" } @installed),
              'opt/ron/modules/ngx_ron_module.so',
              'opt/ron/share/doc/ngx_ron/examples/ron.conf')
{
    ok(-s "$dir/root/$file", "$file is there");
}

chomp(my @top = `cd $dir/root && ls -A`);
is("@top", 'opt', 'and nothing beside it');
ok(-x "$dir/root/opt/ron/bin/ronctl", 'ronctl can be run');


# ---- the manual page and the completion say what the program can ------------

my $ronctl = "$dir/root/opt/ron/bin/ronctl";
my ($help) = (run($ronctl, '--help'))[1];
my @commands = $help =~ /^  ([a-z][a-z ]*[a-z])  /mg;
cmp_ok(scalar @commands, '>=', 20, 'commands');

my %option;

for my $c (@commands) {
    my ($text) = (run($ronctl, 'help', split ' ', $c))[1];
    $option{$c} = [ $text =~ /^  --([a-z-]+)/mg ];
}

{
    local $ENV{MANWIDTH} = 100;
    local $ENV{LC_ALL} = 'C.UTF-8';
    my ($rc, $page) = run('man', '--warnings', '-l',
                          "$dir/root/opt/ron/share/man/man8/ronctl.8");
    is($rc, 0, 'the manual page is one');
    unlike($page, qr/warning:|error:/, 'without warnings');

    my @parts = split /^   (?=\S)/m, $page;

    for my $c (@commands) {
        my ($part) = grep { /\A\Q$c\E$/m } @parts;
        ok(defined $part, "it has $c") or next;
        my @missing = grep { $part !~ /^\s+--$_\b/m } @{ $option{$c} };
        is("@missing", '', 'and all its options');
    }
}

# What TAB offers after a line of words.
sub complete {
    my (@words) = @_;

    my $script = ". $dir/root/opt/ron/share/bash-completion/completions/ronctl;"
        . 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ronctl;'
        . 'printf "%s\n" "${COMPREPLY[@]}"';
    local $ENV{PATH} = "$dir/root/opt/ron/bin:$ENV{PATH}";
    my (undef, $got) = run('bash', '-c', $script, 'bash', 'ronctl', @words);

    return sort split /\n/, $got;
}

{
    my %first = map { (split ' ')[0] => 1 } @commands;
    my %got = map { $_ => 1 } complete('');
    my @missing = grep { !$got{$_} } keys %first;
    is("@missing", '', 'TAB offers every first word');

    is_deeply([ grep { /^a/ } complete('token', 'a') ], [ 'attenuate' ],
              'and the second');

    for my $c (@commands) {
        my %offered = map { $_ => 1 } complete(split(' ', $c), '--');
        my @left = grep { !$offered{"--$_"} } @{ $option{$c} };
        is("@left", '', "and the options of $c");
    }
}


# ---- make deb ---------------------------------------------------------------

($code, $said) = run('make', "BUILD=$build", 'deb');
is($code, 0, 'make deb') or do { diag($said); done_testing(); exit };

my ($deb) = glob "$build/deb/libnginx-mod-ron_*.deb";
ok($deb, 'makes a package');

($code, $said) = run('dpkg-deb', '-x', $deb, "$dir/deb");
is($code, 0, 'that can be unpacked');
run('dpkg-deb', '-e', $deb, "$dir/control");

for my $file ((map { my $f = $_; $f =~ s/\.8$/.8.gz/; "usr/$f" } @installed),
              'usr/lib/nginx/modules/ngx_ron_module.so',
              'usr/libexec/ngx_ron/drain',
              'lib/systemd/system/nginx.service.d/ron.conf',
              'usr/share/nginx/modules-available/mod-ron.conf',
              map { "usr/share/doc/libnginx-mod-ron/$_" }
                  qw(copyright examples/ron.conf examples/ron-main.conf))
{
    ok(-s "$dir/deb/$file", "with $file");
}

is(RonTest::slurp("$dir/deb/usr/share/nginx/modules-available/mod-ron.conf"),
   "load_module modules/ngx_ron_module.so;\n", 'which loads it');

for my $script (qw(postinst prerm postrm)) {
    ok(-x "$dir/control/$script", "and a $script");
    is((run('sh', '-n', "$dir/control/$script"))[0], 0, 'that is one');
}

like(RonTest::slurp("$dir/control/postinst"), qr/mod-ron\.conf:50-mod-ron\.conf/,
     'the module is enabled');

# What it adds to Debian's unit: a stop is a drain, and then a quit.

my $dropin = "$dir/deb/lib/systemd/system/nginx.service.d/ron.conf";
my @stop = RonTest::slurp($dropin) =~ /^ExecStop=-(\S.*)/mg;
is(scalar @stop, 2, "nginx's unit has two steps to stop");

SKIP: {
    my ($unit) = grep { -e } map { "$_/systemd/system/nginx.service" }
                             '/usr/lib', '/lib';
    skip 'no systemd-analyze here', 2
        if !$unit || !grep { -x "$_/systemd-analyze" } split /:/, $ENV{PATH};

    mkdir "$dir/units";
    mkdir "$dir/units/nginx.service.d";
    run('cp', $unit, "$dir/units/nginx.service");
    run('cp', $dropin, "$dir/units/nginx.service.d/");
    my ($rc, $said) = run('systemd-analyze', 'verify',
                          "$dir/units/nginx.service");
    is($rc, 0, 'systemd takes the unit');
    is($said, '', 'and finds nothing in it');
}

my ($abi) = RonTest::slurp("$dir/control/control")
            =~ /^Depends:.*?(nginx-abi-[^ ,]+)/m;
my ($provides) = (run('dpkg-query', '-W', '-f', '${Provides}',
                      'nginx-common', 'nginx'))[1];
ok($abi && $provides =~ /\Q$abi\E/, 'it is for the NGINX that is here')
    or diag("$abi: $provides");

my ($exported) = (run('nm', '-D', '--defined-only',
                      "$dir/deb/usr/lib/nginx/modules/ngx_ron_module.so"))[1];
is(join(' ', sort $exported =~ /(\w+)$/mg),
   'ngx_module_names ngx_module_order ngx_modules',
   "and exports what NGINX's loader wants, nothing else");

SKIP: {
    skip 'no lintian here', 1
        if !grep { -x "$_/lintian" } split /:/, $ENV{PATH};
    my ($rc, $lint) = run('lintian', '--fail-on', 'error', $deb);
    is($rc, 0, 'lintian finds no error') or diag($lint);
}


# ---- a server from the package and its examples -----------------------------

{
    my $s = RonTest->new(locations => 1);
    my $d = $s->dir;
    my $doc = "$dir/deb/usr/share/doc/libnginx-mod-ron/examples";
    my $ctl = "$dir/deb/usr/bin/ronctl";

    ($code, $said) = run($ctl, 'keys', 'new', "$d/example.keys");
    is($code, 0, 'ronctl of the package makes keys') or diag($said);

    my %moved = ('/etc/nginx/ron.keys' => "$d/example.keys",
                 '/var/lib/nginx/ron'  => "$d/ledger",
                 '127.0.0.1:8080'      => '127.0.0.1:' . $s->port);

    for my $name (qw(ron.conf ron-main.conf)) {
        my $text = RonTest::slurp("$doc/$name");
        $text =~ s/\Q$_\E/$moved{$_}/g for keys %moved;
        $s->write_file($name, $text);
    }

    my $user = $> == 0 ? 'user nobody nogroup;' : '';

    no warnings 'redefine';
    local *RonTest::conf_text = sub { <<"END" };
$user
include $dir/deb/usr/share/nginx/modules-available/mod-ron.conf;
include $d/ron-main.conf;
error_log $d/logs/error.log info;
pid $d/nginx.pid;
events {}
http {
    access_log off;
    client_body_temp_path $d/body;
    proxy_temp_path $d/proxy;
    fastcgi_temp_path $d/fastcgi;
    uwsgi_temp_path $d/uwsgi;
    scgi_temp_path $d/scgi;
    include $d/ron.conf;
}
END

    # "modules/" is looked for in the prefix, which is ours here
    symlink "$dir/deb/usr/lib/nginx/modules", "$d/modules" or die "$!";

    ok($s->start, 'nginx starts with its examples') or diag($s->log);

    my ($token) = (run($ctl, 'token', 'mint', '--keys', "$d/example.keys",
                       '--act', 'issue read'))[1] =~ /^(\S+)$/m;
    my $r = $s->post('/v1/issue', { to => 'a', asset => 'ron',
                                    amount_minor => '5' },
                     key => 'k', token => $token);
    is($r->{status}, 200, 'and takes an issue') or diag($r->{body});

    ($code, $said) = stopping($s, 0);
    is($code, 0, "the unit's first step to stop it") or diag($said);
    like($said, qr/^drained, the final root is that of seq 1:$/m, 'drains it');
    is($s->get('/readyz')->{status}, 503, 'which /readyz says');
    ($code, $said) = stopping($s, 1);
    is($code, 0, 'the second one') or diag($said);
    ok(!RonTest::alive($s->{pid}), 'ends it');
    $s->quit;
    like($s->log, qr/"event":"shutdown","drained":true,.*"leaked":0/,
         'as it should');

    ($code, $said) = run($ctl, 'ledger', 'verify', "$d/ledger");
    is($code, 0, 'which ronctl verifies') or diag($said);
}


{
    my $s = RonTest->new(ledger => '', locations => 0, nokeys => 1);
    ok($s->start, 'an nginx without a ledger');

    ($code, $said) = stopping($s, 0);
    is($code, 0, 'has nothing to drain');
    is($said, '', 'and nobody says so');
    ($code, $said) = stopping($s, 1);
    ok(!RonTest::alive($s->{pid}), 'it ends like any other') or diag($said);
    $s->quit;
}

# A line of the unit, for a server that is not Debian's.
sub stopping {
    my ($s, $step) = @_;

    my $d = $s->dir;
    my $line = $stop[$step];

    $line =~ s{^/usr/libexec\S+}{$dir/deb$& -p $d -c $d/nginx.conf -e stderr};
    $line =~ s{/run/nginx\.pid}{$d/nginx.pid};
    local $ENV{PATH} = "$dir/deb/usr/bin:$ENV{PATH}";

    return run(split ' ', $line);
}


# ---- installed --------------------------------------------------------------

if ($ENV{CI} && $> == 0) {
    my $enabled = '/etc/nginx/modules-enabled/50-mod-ron.conf';

    local $ENV{DEBIAN_FRONTEND} = 'noninteractive';
    ($code, $said) = run('dpkg', '-i', $deb);
    is($code, 0, 'the package is installed') or diag($said);
    ok(-e $enabled, 'and enabled');
    ($code, $said) = run('nginx', '-t');
    is($code, 0, "Debian's configuration accepts it") or diag($said);
    ($code, $said) = run('dpkg', '--purge', 'libnginx-mod-ron');
    is($code, 0, 'and purged') or diag($said);
    ok(!-e $enabled && !-l $enabled, 'leaves nothing');
}

done_testing();
