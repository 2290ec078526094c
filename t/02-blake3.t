#!/usr/bin/perl

# Our BLAKE3 against one written by others in another language: the package
# @noble/hashes, which is plain JavaScript and depends on nothing.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Path qw(make_path);
use File::Temp;
use Test::More;

my $package = '@noble/hashes';
my $version = '1.8.0';

my $build = $ENV{RON_BUILD} || 'build';
my $program = "$build/t/unit/blake3_test";

plan skip_all => "no $program" if !-x $program;

my $npm = "$build/npm/noble-$version";
my $module = "$npm/node_modules/$package";

install() if !-e "$module/blake3.js";

# Without a network there is nothing to compare with, but saying so is up to
# whoever runs this: a comparison that quietly does not happen is none.

plan skip_all => "RON_OFFLINE, and no $package"
    if $ENV{RON_OFFLINE} && !-e "$module/blake3.js";

if (!ok(-e "$module/blake3.js", "$package $version is installed")) {
    diag('RON_OFFLINE=1 skips what needs a network');
    done_testing();
    exit 1;
}

my $script = File::Temp->new(SUFFIX => '.js');
print $script <<'EOJ';
const { blake3 } = require(process.argv[2] + '/blake3.js');

const context = Buffer.from(
    'BLAKE3 2019-12-27 16:29:52 test vectors context');

for (const text of process.argv.slice(3)) {
    // the package wipes the key it was given, so each call has its own
    const key = Buffer.from('whats the Elvish word for friend');
    const input = Uint8Array.from({ length: +text }, (_, i) => i % 251);
    const answers = [ {}, { key }, { context } ]
        .map((how) => Buffer.from(blake3(input, how)).toString('hex'));

    console.log([ text, ...answers ].join(' '));
}
EOJ
close($script);

my @ours = run($program, '--vectors');
my @lengths = map { /^(\d+) / } @ours;
cmp_ok(scalar @lengths, '>=', 20, 'lengths to compare');

my @theirs = run('node', $script->filename, abs_path($module), @lengths);
is(scalar @theirs, scalar @ours, 'as many answers');

for my $i (0 .. $#ours) {
    is($ours[$i], $theirs[$i], "$lengths[$i] bytes: plain, keyed, derived");
}

done_testing();


# Into a directory of its own first: an interrupted install is not one.

sub install {
    my $work = "$npm.$$";

    make_path($work);

    # node trusts its own list, and this machine may trust more

    my $trusted = '/etc/ssl/certs/ca-certificates.crt';
    local $ENV{NODE_EXTRA_CA_CERTS} = $ENV{NODE_EXTRA_CA_CERTS} || $trusted
        if -e $trusted;

    system("npm install --prefix '$work' --no-audit --no-fund --no-save"
           . " --no-package-lock --ignore-scripts"
           . " --fetch-retries=2 --fetch-retry-mintimeout=2000"
           . " '$package\@$version' >'$work/log' 2>&1 </dev/null") == 0
        or diag(`tail -n 20 '$work/log'`);

    if (-e "$work/node_modules/$package/blake3.js" && !-e $module) {
        system('rm', '-rf', $npm);
        rename($work, $npm);
    }

    system('rm', '-rf', $work);
}


sub run {
    open(my $out, '-|', @_) or die "$_[0]: $!";
    chomp(my @lines = <$out>);
    close($out) or die "$_[0] failed: $?";

    return @lines;
}
