#!/usr/bin/perl

# The models of t/model hold, and spin refutes each broken variant of them.

use strict;
use warnings;

use Test::More;

my $build = $ENV{RON_BUILD} || 'build';

if (!grep { -x "$_/spin" } split /:/, $ENV{PATH}) {
    my $why = 'spin is not installed, run tools/deps.sh test';

    plan skip_all => $why if !$ENV{CI};
    fail($why);
    done_testing();
    exit 1;
}

my $out = `BUILD='$build' t/model/run 2>&1`;
my $code = $?;

is($code, 0, 'models hold, and variants do not') or diag($out);

my @lines = grep { /^(?:ok|FAIL)/ } split /\n/, $out;
my %seen;

for (@lines) {
    my ($verdict, $model, $variant) = /^(\w+)\s+(\w+)\s+(.+?)\s{2,}|$/;
    ok(/^ok/, $_);
    $seen{$model}{/refuted/ ? 'refuted' : 'holds'}++ if defined $model;
}

# A search that had no room to look everywhere has shown nothing.

$out = `BUILD='$build/short' MEMLIM=140 t/model/run nonce 2>&1`;
isnt($?, 0, 'a search that ends early is no proof');
like($out, qr/^FAIL nonce +as it is +wanted pass, got no answer/m,
     'and is not called one');

for my $file (glob 't/model/*.pml') {
    my ($model) = $file =~ m{([^/]+)\.pml$};

    ok($seen{$model}{holds}, "$model was checked");
    ok($seen{$model}{refuted}, "and a broken variant of it refuted");
}

done_testing();
