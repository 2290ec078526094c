#!/usr/bin/perl

# Our BLAKE3 against one written by others in another language: the package
# @noble/hashes, which is plain JavaScript and depends on nothing.

use strict;
use warnings;

use lib 't/lib';
use RonNpm;

use File::Temp;
use Test::More;

my $package = '@noble/hashes';
my $version = '1.8.0';

my $build = $ENV{RON_BUILD} || 'build';
my $program = "$build/t/unit/blake3_test";

plan skip_all => "no $program" if !-x $program;

my $modules = RonNpm::install("$package\@$version");
ok($modules, "$package $version is installed")
    or BAIL_OUT("cannot compare hashes without $package");

my $module = "$modules/$package";

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

my @theirs = run('node', $script->filename, $module, @lengths);
is(scalar @theirs, scalar @ours, 'as many answers');

for my $i (0 .. $#ours) {
    is($ours[$i], $theirs[$i], "$lengths[$i] bytes: plain, keyed, derived");
}

done_testing();


sub run {
    open(my $out, '-|', @_) or die "$_[0]: $!";
    chomp(my @lines = <$out>);
    close($out) or die "$_[0] failed: $?";

    return @lines;
}
