#!/usr/bin/perl

# Our tree, proofs and signed notes against programs of others: the package
# @transmute/rfc9162, which is plain JavaScript and depends on nothing, makes
# the same roots and proofs and accepts ours; Node's own Ed25519 verifies our
# checkpoint.

use strict;
use warnings;

use lib 't/lib';
use RonCompile;
use RonNpm;

use File::Temp;
use Test::More;

my $package = '@transmute/rfc9162';
my $version = '0.0.5';

my $build = $ENV{RON_BUILD} || 'build';
my $here = 't/unit/tree_interop';

plan skip_all => "no $build/libron.a" if !-e "$build/libron.a";

my $modules = RonNpm::install("$package\@$version");
ok($modules, "$package $version is installed")
    or BAIL_OUT("cannot compare trees without $package");

my $module = "$modules/$package";

my $dir = File::Temp->newdir;
my $program = "$dir/tree_interop";

ok(RonCompile::with_libron($program, "$here/tree_interop.c"),
   "$here/tree_interop.c is compiled") or BAIL_OUT('no program');

my @ours = run($program);
cmp_ok(scalar @ours, '>', 1000, 'answers to compare');

my @theirs = ask(@ours);
is(scalar @theirs, scalar @ours, 'as many answers');

my (%all, %same, %good);

for my $i (0 .. $#ours) {
    my ($what) = split / /, $ours[$i];
    my ($theirs, $good) = $theirs[$i] =~ /^(.*) (yes|no)$/;

    $all{$what}++;
    $same{$what} += $ours[$i] eq $theirs;
    $good{$what} += $good eq 'yes';

    diag("ours:   $ours[$i]\ntheirs: $theirs[$i]")
        if $ours[$i] ne $theirs || $good ne 'yes';
}

is_deeply([ sort keys %all ], [ qw(consistency inclusion note root) ],
          'all kinds of answers');

for my $what (sort keys %all) {
    is($same{$what}, $all{$what}, "$all{$what} of $what are the same");
    is($good{$what}, $all{$what}, 'and theirs accepts ours');
}

# The comparison itself: some answers, changed, and not those that it takes
# long to check.

my @changed = map { change($ours[$_]) }
    grep { $_ % 20 == 0 && $ours[$_] !~ / \d{5} / } 0 .. $#ours;
push @changed, change($ours[-1]);

my @refused = grep { / no$/ } ask(@changed);
is(scalar @refused, scalar @changed,
   scalar(@changed) . ' changed answers are refused');

done_testing();


# Another first digit for the last hash; an answer without a hash gets one.

sub change {
    my ($line) = @_;

    my @words = split / /, $line;
    my $at = $words[0] =~ /^(?:root|note)$/ ? 2 : 3;

    push @words, '0' x 64 if @words <= $at;
    $words[-1] =~ s/^(.)/sprintf '%x', (hex($1) + 1) % 16/e;

    return "@words";
}


sub ask {
    my $questions = File::Temp->new;

    print $questions map { "$_\n" } @_;
    close($questions);

    return run('sh', '-c', 'exec node "$1" "$2" <"$3"', 'sh',
               "$here/theirs.js", $module, $questions->filename);
}


sub run {
    open(my $out, '-|', @_) or die "$_[0]: $!";
    chomp(my @lines = <$out>);
    close($out) or die "$_[0] failed: $?";

    return @lines;
}
