#!/usr/bin/perl

# The short form of fuzzing: every file of the corpus and every past crash
# once, then a few seconds of new inputs a target.  `make fuzz` is the long
# one.  The targets are built by `make fuzz-build`.

use strict;
use warnings;

use Test::More;

my $build = $ENV{RON_BUILD} || 'build';
my $seconds = $ENV{RON_FUZZ_SECONDS} // 2;

my @targets = map { m{([^/]+)_fuzz\.c$} } sort glob 't/fuzz/*_fuzz.c';
my @built = grep { -x "$build/fuzz/t/fuzz/${_}_fuzz" } @targets;

plan skip_all => 'the targets are not built, run make fuzz-build'
    if !@built && !$ENV{CI};

is("@built", "@targets", 'every target is built');

for my $target (@built) {
    my $out = `tools/fuzz.sh -s '$build' $seconds $target 2>&1`;
    my $status = $?;

    is($status, 0, "$target: corpus, past crashes and $seconds s of new ones")
        or diag($out);
    like($out, qr/^\Q$target\E: [1-9]\d* files, [1-9]\d* inputs$/m,
         "$target has files and took inputs");
}

# A corpus of a target that is gone is of no use.

for my $dir (glob('t/fuzz/corpus/* t/fuzz/crashes/*')) {
    my ($name) = $dir =~ m{([^/]+)$};

    ok(-f "t/fuzz/${name}_fuzz.c", "$dir is that of a target");
}

done_testing();
