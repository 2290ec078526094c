#!/usr/bin/perl

# The module against the newest NGINX that Debian's archive has as a source,
# with NGINX_SRC: it builds, exports nothing but what the loader wants, and
# the suites that take seconds hold there too.  All suites of servers with any
# tree: make test-src NGINX_SRC=<tree>.
#
# RON_NGINX_SRC=<tree> takes a tree of one's own in which nginx was built.
# Where CI is set, no source is a failure.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Path qw(make_path);
use Test::More;

plan skip_all => 'RON_OFFLINE' if $ENV{RON_OFFLINE} && !$ENV{RON_NGINX_SRC};

my $build = abs_path($ENV{RON_BUILD} || 'build');
my $tree = $ENV{RON_NGINX_SRC};

delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL NGINX)};
$ENV{PATH} .= ':/usr/sbin:/sbin';

if (!$tree) {
    chomp($tree = `tools/nginx-src.sh '$build/nginx-newest'`);
    plan skip_all => 'apt has no source of nginx here'
        if $? >> 8 == 2 && !$ENV{CI};
    is($?, 0, 'a source tree from Debian') or done_testing(), exit 1;
}

my $said = `$tree/objs/nginx -v 2>&1`;
my ($version) = $said =~ m{nginx/(\d+\.\d+\.\d+)};
ok($version, 'its nginx runs') or diag($said);
note("nginx $version");

# A mirror may have nothing newer; then it is the full tree of the same.

my ($packaged) = `nginx -v 2>&1` =~ m{nginx/([\d.]+)};
my @v = map { sprintf '%03d%03d%03d', split /\./ } $version, $packaged;
cmp_ok($v[0], 'ge', $v[1], 'and is not older than the one that is installed');


# libron is the same, so what was built is linked

my $work = "$build/nginx-$version";
make_path($work);

system("cp -a $build/src $build/libron.a $build/ronctl $build/*.list $work/")
    == 0 or BAIL_OUT('nothing is built');
symlink "$build/t", "$work/t" if !-e "$work/t";

$said = `make -s lib module V=0 BUILD='$work' BLAKE3_DIR='$build' \\
             NGINX_SRC='$tree' 2>&1`;
is($?, 0, 'make NGINX_SRC') or diag($said), done_testing(), exit 1;
unlike($said, qr/warning/, 'without a warning');

is(join(' ', sort map { (split)[2] }
                  `nm -D --defined-only $work/ngx_ron_module.so`),
   'ngx_module_names ngx_module_order ngx_modules',
   "exports what the loader wants, nothing else");


# suites with that nginx

my @suites = map { "t/$_.t" } qw(
    10-config 11-wallet 12-ledger 13-errors 14-lifecycle 25-unclosed 31-ops
    36-snapshot 37-events 40-nonce 43-policy 48-proofs 50-safe-mode 51-ipc
    52-tasks);
my $begin = time;

for my $suite (@suites, glob 't/http/*.t') {
    local $ENV{RON_BUILD} = $work;
    local $ENV{NGINX} = "$tree/objs/nginx";
    my $out = `$^X -It/lib $suite 2>&1`;

    is($?, 0, "$suite with nginx $version")
        or diag(grep { !/^ok/ } map { "$_\n" } split /\n/, $out);
}

note(sprintf '%d s for them', time - $begin);

# one that was never run would have passed as well

if ($version ne $packaged) {
    local $ENV{RON_BUILD} = $build;
    local $ENV{NGINX} = "$tree/objs/nginx";
    my $out = `$^X -It/lib t/http/status.t 2>&1`;

    isnt($?, 0, "and the module of Debian's nginx is refused there");
    like($out, qr/is not binary compatible|version \d+ instead of \d+/,
         'by NGINX itself') or diag($out);
}

done_testing();
