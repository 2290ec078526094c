package RonNpm;

# Packages from npm that tests compare with, each set in a directory of its
# own below the build.
#
#     my $modules = RonNpm::install('@noble/hashes@1.8.0') or ...;
#
# Returns the directory node_modules, or nothing.  Without a network there is
# nothing to compare with, but saying so is up to whoever runs the tests:
# a comparison that quietly does not happen is none, so RON_OFFLINE=1 is what
# skips them.

use strict;
use warnings;

use Cwd ();
use File::Path ();
use Test::More ();

sub install {
    my (@packages) = @_;

    my $build = Cwd::abs_path($ENV{RON_BUILD} || 'build');
    my $name = join('-', @packages) =~ s{[^\w.-]+}{_}gr;
    my $dir = "$build/npm/$name";
    my $modules = "$dir/node_modules";

    return $modules if -e "$dir/done";

    Test::More::plan(skip_all => "RON_OFFLINE, and no @packages")
        if $ENV{RON_OFFLINE};

    # into a directory of its own first: an interrupted install is not one

    my $work = "$dir.$$";
    File::Path::make_path($work);

    # node trusts its own list, and this machine may trust more

    my $trusted = '/etc/ssl/certs/ca-certificates.crt';
    local $ENV{NODE_EXTRA_CA_CERTS} = $ENV{NODE_EXTRA_CA_CERTS} || $trusted
        if -e $trusted;

    my $said = join ' ', map { "'$_'" } @packages;

    if (system("npm install --prefix '$work' --no-audit --no-fund --no-save"
               . ' --no-package-lock --ignore-scripts --fetch-retries=2'
               . " --fetch-retry-mintimeout=2000 $said >'$work/log' 2>&1"
               . ' </dev/null') != 0)
    {
        Test::More::diag(`tail -n 20 '$work/log'`);
        Test::More::diag('RON_OFFLINE=1 skips what needs a network');
        File::Path::remove_tree($work);
        return;
    }

    open my $f, '>', "$work/done" or die "$work/done: $!";
    close $f;

    # somebody else may have been faster

    File::Path::remove_tree($dir) if !-e "$dir/done";
    rename $work, $dir or File::Path::remove_tree($work);

    return $modules;
}


1;
