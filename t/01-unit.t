#!/usr/bin/perl

# Runs every C unit test that was built and reports each of its tests.  As many
# run at a time as there are processors (RON_JOBS); they are reported in the
# order of their names.

use strict;
use warnings;

use File::Basename qw(basename);
use IO::Select ();
use Test::More;

my $build = $ENV{RON_BUILD} || 'build';

my @sources = map { basename($_, '.c') } sort glob 't/unit/*_test.c';
my %built = map { basename($_) => $_ }
    grep { -f $_ && -x _ } glob "$build/t/unit/*_test";

ok(scalar @sources, 'there are unit tests');

# Those that take longest begin first, or they would end last.

my %long = (kill => 5, property => 4, fault => 3, tags => 2, tree => 2,
            slices => 2, powercut => 1, service => 1, store => 1, writers => 3);
my @waiting = sort { ($long{$b =~ s/_test$//r} || 0)
                     <=> ($long{$a =~ s/_test$//r} || 0) || $a cmp $b }
              grep { $built{$_} } @sources;
my $jobs = $ENV{RON_JOBS} || `nproc` || 1;
my $running = IO::Select->new;
my (%name, %said, %ended);

for my $name (@sources) {
    my $program = delete $built{$name};

    if (!$program) {
        fail("$name is not built, run make units BUILD=$build");
        next;
    }

    until (exists $ended{$name}) {
        begin(shift @waiting) while @waiting && $running->count < $jobs;
        listen_to($_) for $running->can_read;
    }

    subtest $name => sub { report($program, $said{$name}, $ended{$name}) };
}

is(join(' ', sort keys %built), '', 'every program has a source');

done_testing();


# What a program says comes through a pipe: some limit how large a file may
# become.

sub begin {
    my ($name) = @_;
    my $program = "$build/t/unit/$name";

    # An alarm outlives exec, so that a test that hangs fails by itself.

    my $pid = open(my $tap, '-|');
    defined $pid or die "fork: $!";

    if ($pid == 0) {
        alarm($ENV{RON_UNIT_TIMEOUT} || 300);
        exec { $program } $program or die "$program: $!";
    }

    $name{$tap} = $name;
    $said{$name} = '';
    $running->add($tap);
}

sub listen_to {
    my ($tap) = @_;
    my $name = $name{$tap};

    return if sysread $tap, $said{$name}, 65536, length $said{$name};

    $running->remove($tap);
    close($tap);
    $ended{$name} = $?;
}

sub report {
    my ($program, $said, $status) = @_;

    my ($plan, $seen) = (undef, 0);

    for my $line (split /\n/, $said) {

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

    is($plan, $seen, 'as many tests as planned');
    is($status & 127, 0, 'not killed by a signal');
    is($status >> 8, 0, 'exit code');
}
