package RonSuite;

# What a declarative suite needs around it:
#
#     use lib 't/lib';
#     use RonSuite;
#     use Test::Nginx::Socket 'no_plan';
#
#     run_tests();
#
#     __DATA__
#     === TEST 1: ...
#
# Test::Nginx::Socket is the library of that name where it is installed, and
# the runner in t/lib/fallback where it is not: our directory goes to the end
# of @INC.  Either gets the same environment: the nginx of this build, a
# directory and a port of its own, the module, a ledger in memory, keys and
# all locations.  A block that names ron_ledger, ron_keys or ron_wallet itself,
# be it in a comment, gets none of ours.
#
# In `request` and `more_headers`, $TOKEN is a capability for everything and
# $TOKEN(caveat; caveat) one with these caveats.

use strict;
use warnings;

use Cwd ();
use File::Path ();
use File::Temp ();
use MIME::Base64 ();
use RonTest ();
use Time::HiRes ();

my $BUILD = $ENV{RON_BUILD} || Cwd::abs_path('build') || 'build';
my ($DIR, $OWNER, $KEYS);

sub import {
    my $here = Cwd::abs_path(__FILE__);
    $here =~ s{/[^/]*$}{};

    push @INC, "$here/fallback" unless grep { $_ eq "$here/fallback" } @INC;

    return if defined $DIR;

    $DIR = File::Temp::tempdir('ron-suite-XXXXXX', TMPDIR => 1);
    $OWNER = $$;
    chmod 0755, $DIR;

    $KEYS = bless { kid => 'dev', secret => join '', map { chr(int rand 256) }
                                                     1 .. 32 }, 'RonTest';
    keys_file();

    $ENV{TEST_NGINX_BINARY} ||= $ENV{RON_PRELOAD} ? preloaded()
                                                  : $RonTest::NGINX;
    $ENV{TEST_NGINX_SERVROOT} = "$DIR/root";
    $ENV{TEST_NGINX_RON_DIR} = $DIR;
    $ENV{TEST_NGINX_SERVER_PORT} = RonTest::free_port();
    $ENV{TEST_NGINX_LOAD_MODULES} = "$BUILD/ngx_ron_module.so";
    $ENV{TEST_NGINX_MASTER_PROCESS} = 'on';
    $ENV{TEST_NGINX_WORKER_USER} = 'nobody nogroup' if $> == 0;

    # blocks of one configuration share a server
    $ENV{TEST_NGINX_FORCE_RESTART_ON_TEST} = 0;
    $ENV{TEST_NGINX_NO_SHUFFLE} = 1;
    $ENV{TEST_NGINX_TIMEOUT} ||= 10;

    # what QUIT does has suites of its own
    $ENV{TEST_NGINX_FAST_SHUTDOWN} = 1;

    # at debug a megabyte of log a second would be read for each pattern
    $ENV{TEST_NGINX_LOG_LEVEL} ||= 'info';
}

# An nginx that gets a sanitizer's runtime first.
sub preloaded {
    my $path = "$DIR/nginx";

    open my $f, '>', $path or die "$path: $!";
    print $f "#!/bin/sh\n"
        . "LD_PRELOAD='$ENV{RON_PRELOAD}' exec $RonTest::NGINX \"\$@\"\n";
    close $f or die "$path: $!";
    chmod 0755, $path;

    return $path;
}

sub keys_file {
    open my $f, '>', "$DIR/ron.keys" or die "$DIR/ron.keys: $!";
    chmod 0600, "$DIR/ron.keys";
    print $f 'dev ' . MIME::Base64::encode_base64($KEYS->{secret}, ''), "\n";
    close $f or die "$DIR/ron.keys: $!";
}

# Called by the suite's package once Test::Nginx::Socket is there: see the
# INIT below.
sub prepare {
    my ($block) = @_;

    my $main = text($block->main_config);
    my $http = text($block->http_config);
    my $config = text($block->config);

    $main = "ron_ledger memory:16m;\n$main" unless $main =~ /ron_ledger/;
    $http = "ron_keys $DIR/ron.keys;\n$http" unless $http =~ /ron_keys/;
    $config = locations() . $config unless $config =~ /ron_wallet;/;

    # the library looks only at `config` to see whether anything changed

    my $mark = unpack '%32C*', "$main\0$http";
    $mark .= length("$main$http") . (defined $block->must_die
                                     ? $block->name : '');
    $mark =~ s/[^\w ]//g;

    $block->set_value('main_config', $main);
    $block->set_value('http_config', $http);
    $block->set_value('config', "$config# $mark\n");
    $block->set_value('init', 'RonSuite::ready();' . text($block->init))
        unless defined $block->must_die;

    for my $name (qw(request more_headers pipelined_requests raw_request)) {
        my $value = $block->$name;
        $block->set_value($name, with_tokens($value)) if defined $value;
    }
}

sub text { defined $_[0] ? $_[0] : '' }

sub locations {
    return <<'END';
        location /v1/ { ron_wallet; }
        location /ledger/ { ron_ledger_api; }
        location = /healthz { ron_health live; }
        location = /readyz { ron_health ready; }
        location = /version { ron_version; }
        location = /metrics { ron_metrics; }
END
}

sub with_tokens {
    my ($value) = @_;

    return [ map { with_tokens($_) } @$value ] if ref $value eq 'ARRAY';
    return { %$value, value => with_tokens($value->{value}) }
        if ref $value eq 'HASH';
    return $value if ref $value;

    RonSecrets::key($1) while $value =~ /Idempotency-Key: *(\S{5,})/g;
    $value =~ s{\$TOKEN(?:\(([^()]*)\))?}
               { $KEYS->token(split /;\s*/, defined $1 ? $1 : '') }ge;

    return $value;
}

# A server is there before its ledger is, and after it was drained.
sub ready {
    my $end = Time::HiRes::time() + 10;

    my $probe = bless { port => $ENV{TEST_NGINX_SERVER_PORT} }, 'RonTest';

    while (Time::HiRes::time() < $end) {
        my $r = eval { $probe->get('/readyz', token => undef) };
        return 1 if $r && ($r->{status} == 200 || $r->{status} == 404
                           || $r->{body} =~ /"state":"(?:draining|stopped)"/);
        Time::HiRes::sleep(0.02);
    }

    die "not ready after 10 s\n";
}

INIT {
    # the suite has said `use Test::Nginx::Socket` by now

    if (my $add = main->can('add_block_preprocessor')) {
        $add->(\&prepare);
        main->can('add_cleanup_handler')->(\&stop)
            if main->can('add_cleanup_handler');
    }
}

# The library leaves the last server running.
sub stop {
    my $path = "$DIR/root/logs/nginx.pid";

    open my $f, '<', $path or return;
    my ($pid) = (<$f> || '') =~ /(\d+)/;
    close $f;

    return unless $pid;

    kill 'QUIT', $pid;
    RonTest::until_ok(10, sub { !RonTest::alive($pid) })
        or kill 'KILL', $pid;
}

# Logs of all servers of the suite, as they were left.
sub secrets {
    my @found = map { RonSecrets::search(RonSecrets::without_nginx(
                    RonTest::slurp($_))) }
                glob "$DIR/root/logs/*.log";

    Test::More::diag("a token or a key: " . substr $_, 0, 300) for @found;

    return scalar @found;
}

END {
    if (defined $DIR && $OWNER == $$) {
        my $code = $?;
        local ($@, $!);
        stop();
        $code ||= 1 if secrets();

        if ($ENV{RON_TEST_LEAVE}) {
            Test::More::diag("left: $DIR");
        } else {
            File::Path::remove_tree($DIR);
        }

        $? = $code;
    }
}


1;
