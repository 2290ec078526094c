#!/usr/bin/perl

# Runs every C unit test that was built and reports each of its tests.

use strict;
use warnings;

use File::Basename qw(basename);
use Test::More;

my $build = $ENV{RON_BUILD} || 'build';

my @sources = map { basename($_, '.c') } sort glob 't/unit/*_test.c';
my %built = map { basename($_) => $_ }
    grep { -f $_ && -x _ } glob "$build/t/unit/*_test";

ok(scalar @sources, 'there are unit tests');

for my $name (@sources) {
    my $program = delete $built{$name};

    if (!$program) {
        fail("$name is not built, run make units BUILD=$build");
        next;
    }

    subtest $name => sub { run_unit($program) };
}

is(join(' ', sort keys %built), '', 'every program has a source');

done_testing();


sub run_unit {
    my ($program) = @_;

    # An alarm outlives exec, so that a test that hangs fails by itself.

    my $pid = open(my $tap, '-|');
    defined $pid or die "fork: $!";

    if ($pid == 0) {
        alarm($ENV{RON_UNIT_TIMEOUT} || 300);
        exec { $program } $program or die "$program: $!";
    }

    my ($plan, $seen) = (undef, 0);

    while (my $line = <$tap>) {
        chomp $line;

        if ($line =~ /^(not )?ok (\d+)(?: - (.*)| (# skip .*))?$/) {
            my $name = defined $3 ? $3 : defined $4 ? $4 : '';

            $seen++;
            is($2, $seen, "number of: $name") if $2 != $seen;
            ok(!$1, $name =~ /^\d+$/ ? "$name." : $name);

        } elsif ($line =~ /^1\.\.(\d+)$/) {
            fail('one plan only') if defined $plan;
            $plan = $1;

        } elsif ($line !~ /^#/ && $line =~ /\S/) {
            diag("$program: $line");
        }
    }

    close($tap);

    is($plan, $seen, 'as many tests as planned');
    is($? & 127, 0, 'not killed by a signal');
    is($? >> 8, 0, 'exit code');
}
