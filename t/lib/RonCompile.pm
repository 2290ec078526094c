package RonCompile;

# Programs of tests that are linked with libron as it was built:
#
#     RonCompile::with_libron("$dir/program", "$dir/program.c") or die;

use strict;
use warnings;

my $build = $ENV{RON_BUILD} || 'build';

# BLAKE3 is where the makefile says, and beside libron without one.
sub blake3 {
    return $ENV{RON_BLAKE3_LIBS} if $ENV{RON_BLAKE3_LIBS};
    return "$build/libblake3.a" if -e "$build/libblake3.a";

    chomp(my $libs = `pkg-config --libs libblake3`);

    return $libs;
}

sub with_libron {
    my ($program, @sources) = @_;

    my $cc = $ENV{CC} || 'cc';
    my $san = $ENV{RON_SAN} || '';          # what libron was built with
    my $includes = join ' ', map { "-I$_" } glob 'src/*';

    return system("$cc $san -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror"
                  . " $includes @sources -o $program $build/libron.a "
                  . blake3() . ' -lsqlite3 -lyajl -lcrypto -lz -lzstd'
                  . ' -lpthread') == 0;
}


1;
