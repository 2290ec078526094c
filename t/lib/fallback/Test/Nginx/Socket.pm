package Test::Nginx::Socket;

# Runs the declarative format of the library of this name where that library
# is not installed: as much of the format as is used here, and a section that
# is not known ends the suite, because an expectation that nobody looks at
# proves nothing.  Core Perl only.
#
#     === TEST 1: a name
#     --- config
#         location = /t { return 200 "ok"; }
#     --- request
#     GET /t
#     --- response_body chomp
#     ok
#
# Configuration: main_config, http_config, config, post_main_config,
# user_files, log_level, init, must_die.
# Request: request (text, or with `eval` an array for one after the other; an
# element may be an array of pieces, as text or { value, delay_before }),
# pipelined_requests, raw_request, more_headers (text or array), timeout, wait.
# Expectations: error_code, error_code_like, response_body,
# response_body_like, response_body_unlike, response_headers (`!Name` or
# `Name:` for one that is not there), response_headers_like,
# raw_response_headers_like, raw_response_headers_unlike, error_log,
# no_error_log, ignore_response.
# Filters after a name: eval, chomp.  Of a block: ONLY, SKIP, LAST.
#
# A server goes on to the next block when that has the same `config`, and
# TEST_NGINX_FORCE_RESTART_ON_TEST is 0.

use strict;
use warnings;

use Exporter ();
use File::Path ();
use IO::Select ();
use IO::Socket::INET ();
use POSIX ();
use Test::More;
use Time::HiRes ();

our @ISA = ('Exporter');
our @EXPORT = (@Test::More::EXPORT,
               qw(run_tests blocks repeat_each no_shuffle no_long_string
                  no_root_location master_on workers log_level timeout
                  worker_connections server_port server_root html_dir
                  add_block_preprocessor add_cleanup_handler bail_out
                  env_to_nginx));

our $ServRoot = $ENV{TEST_NGINX_SERVROOT} || 't/servroot';
our $ServerPort = $ENV{TEST_NGINX_SERVER_PORT} || 1984;

$ENV{TEST_NGINX_SERVER_ROOT} = $ServRoot;

my $nginx = $ENV{TEST_NGINX_BINARY} || 'nginx';
my %conf = (master   => $ENV{TEST_NGINX_MASTER_PROCESS} || 'off',
            workers  => 1,
            level    => $ENV{TEST_NGINX_LOG_LEVEL} || 'debug',
            timeout  => $ENV{TEST_NGINX_TIMEOUT} || 3,
            connections => 64,
            root     => 1,
            repeat   => 1);
my (@preprocessors, @cleanups, @env, $text, $running, $log_from, $log_gate);

my %filter = (
    eval  => sub {
        my @v = eval "package main; $_[0]";
        die "eval: $@" if $@;
        return $v[0];
    },
    chomp => sub { my $v = $_[0]; chomp $v; return $v },
);

my %known = map { $_ => 1 } qw(
    main_config http_config config post_main_config user_files log_level init
    must_die request pipelined_requests raw_request more_headers timeout wait
    error_code error_code_like response_body response_body_like
    response_body_unlike response_headers response_headers_like
    raw_response_headers_like raw_response_headers_unlike error_log
    no_error_log ignore_response ONLY SKIP LAST
);


sub import {
    my ($class, @args) = @_;

    my $plan = $args[0];

    if (defined $plan) {
        Test::More::plan(@args);
    }

    $class->export_to_level(1);
}

sub repeat_each { $conf{repeat} = $_[0] if @_; return $conf{repeat} }
sub timeout     { $conf{timeout} = $_[0] if @_; return $conf{timeout} }
sub log_level   { $conf{level} = $_[0] if @_; return $conf{level} }
sub workers     { $conf{workers} = $_[0] if @_; return $conf{workers} }
sub master_on   { $conf{master} = 'on' }
sub no_shuffle  { }
sub no_long_string   { }
sub no_root_location { $conf{root} = 0 }
sub server_port { $ServerPort = $_[0] if @_; return $ServerPort }
sub server_root { $ServRoot }
sub html_dir    { "$ServRoot/html" }
sub env_to_nginx { push @env, @_ }

sub worker_connections {
    $conf{connections} = $_[0] if @_;
    return $conf{connections};
}

sub add_block_preprocessor { unshift @preprocessors, $_[0] }
sub add_cleanup_handler    { unshift @cleanups, $_[0] }

sub bail_out {
    stop_nginx();
    BAIL_OUT(@_);
}


# ---- blocks -----------------------------------------------------------------

sub blocks {
    if (!defined $text) {
        no warnings 'once';
        local $/;
        $text = <main::DATA>;
    }

    my @blocks;

    for my $part (split /^(?====(?: |$))/m, $text) {
        next unless $part =~ s/^===[ \t]*(.*)\n//;
        push @blocks, Test::Nginx::Socket::Block->parse($1, $part);
    }

    my @only = grep { defined $_->ONLY } @blocks;
    @blocks = @only if @only;
    @blocks = grep { !defined $_->SKIP } @blocks;

    for my $i (0 .. $#blocks) {
        next unless defined $blocks[$i]->LAST;
        @blocks = @blocks[0 .. $i];
        last;
    }

    return @blocks;
}

sub run_tests {
    for my $block (blocks()) {
        $_->($block) for @preprocessors;
        run_block($block);
    }

    stop_nginx();
    $_->() for @cleanups;
}

sub run_block {
    my ($block) = @_;

    my $name = $block->name;
    my $config = $block->config;

    if (defined $block->must_die) {
        stop_nginx();
        write_files($block);
        $log_from = 0;
        my $code = start_nginx();
        isnt($code, 0, "$name - die as expected");
        check_log($block);

        if ($code == 0) {
            $running = $config;
            stop_nginx();
        }

        return;
    }

    bail_out("$name - no config") if !defined $config;

    if (!defined $running || $running ne $config
        || !defined $ENV{TEST_NGINX_FORCE_RESTART_ON_TEST}
        || $ENV{TEST_NGINX_FORCE_RESTART_ON_TEST})
    {
        stop_nginx();
        write_files($block);
        $log_gate = 0;

        if (start_nginx() != 0) {
            fail("$name - nginx starts");
            diag(slurp("$ServRoot/logs/error.log"));
            return;
        }

        $running = $config;
    }

    if (defined $block->init) {
        eval $block->init;
        bail_out("$name - init: $@") if $@;
    }

    for (1 .. $conf{repeat}) {
        $log_from = -s "$ServRoot/logs/error.log" || 0;
        run_requests($block);
    }
}


# ---- the server -------------------------------------------------------------

sub write_files {
    my ($block) = @_;

    File::Path::remove_tree($ServRoot);
    File::Path::make_path(map { "$ServRoot/$_" } qw(logs conf html));

    my $files = $block->user_files;

    if (defined $files) {
        my ($none, @pairs) = split /^>>>[ \t]*(\S+).*\n/m, $files;

        while (my ($path, $body) = splice @pairs, 0, 2) {
            spit("$ServRoot/html/$path", $body);
        }
    }

    spit("$ServRoot/conf/nginx.conf", conf_text($block));
}

sub conf_text {
    my ($block) = @_;

    my %b = map { my $v = $block->$_; $_ => expand(defined $v ? $v : '') }
        qw(main_config http_config config post_main_config);
    my $level = $block->log_level || $conf{level};
    my $env = join '', map { "env $_;\n" } @env;
    my $load = join '', map { "load_module $_;\n" }
        split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || '';
    my $user = $ENV{TEST_NGINX_WORKER_USER}
        ? "user $ENV{TEST_NGINX_WORKER_USER};" : '';
    my $temp = join ' ', map { "${_}_temp_path $ServRoot/${_}_temp;" }
        qw(client_body proxy fastcgi uwsgi scgi);
    my $root = $conf{root} ? "location / { root $ServRoot/html; }" : '';

    return <<"END";
worker_processes $conf{workers};
daemon on;
master_process $conf{master};
error_log $ServRoot/logs/error.log $level;
pid $ServRoot/logs/nginx.pid;
$user
$env
$load
$b{main_config}
http {
    access_log $ServRoot/logs/access.log;
    $temp
    default_type text/plain;
    keepalive_timeout 68s;
$b{http_config}
    server {
        listen $ServerPort;
        server_name localhost;
        client_max_body_size 30M;
$b{config}
        $root
    }
}
$b{post_main_config}
events {
    accept_mutex off;
    worker_connections $conf{connections};
}
END
}

sub expand {
    my ($v) = @_;

    $v =~ s/\$(TEST_NGINX_[_A-Z0-9]+)/
        defined $ENV{$1} ? $ENV{$1} : bail_out("no $1 in the environment")/ge;

    return $v;
}

sub start_nginx {
    my $pid = fork;
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', '/dev/null';
        open STDERR, '>&', \*STDOUT;
        exec $nginx, '-e', "$ServRoot/logs/error.log", '-p', "$ServRoot/",
            '-c', "$ServRoot/conf/nginx.conf" or POSIX::_exit(127);
    }

    waitpid $pid, 0;
    my $code = $?;
    my $end = Time::HiRes::time() + 5;

    while ($code == 0 && !-s "$ServRoot/logs/nginx.pid"
           && Time::HiRes::time() < $end)
    {
        Time::HiRes::sleep(0.01);
    }

    return $code;
}

sub stop_nginx {
    return unless defined $running;

    my ($pid) = slurp("$ServRoot/logs/nginx.pid") =~ /(\d+)/;

    undef $running;

    if ($pid) {
        my $signal = $ENV{TEST_NGINX_FAST_SHUTDOWN} ? 'TERM' : 'QUIT';
        my $i = 0;

        # a process without a master that has only begun misses the first

        while (alive($pid) && $i < 1500) {
            kill $signal, $pid if $i++ % 50 == 0;
            Time::HiRes::sleep(0.01);
        }

        if (alive($pid)) {
            kill 'KILL', $pid;
            fail('the server ends');
        }
    }

    my @bad = grep { /\[(?:alert|emerg)\]|Sanitizer|runtime error/ }
              split /\n/, slurp("$ServRoot/logs/error.log");

    ok(!@bad, 'no alert in the error log') or diag(join "\n", @bad);
}

# What init has not yet buried has ended too.
sub alive {
    return slurp("/proc/$_[0]/stat") =~ /\) ([A-Z])/ && $1 ne 'Z';
}

END {
    if (defined $running) {
        my $code = $?;
        stop_nginx();
        $? = $code;
    }
}

sub slurp {
    my ($path) = @_;

    open my $f, '<', $path or return '';
    binmode $f;
    local $/;
    my $v = <$f>;

    return defined $v ? $v : '';
}

sub spit {
    my ($path, $body) = @_;

    (my $dir = $path) =~ s{/[^/]*$}{};
    File::Path::make_path($dir);
    open my $f, '>', $path or die "$path: $!";
    binmode $f;
    print $f $body;
    close $f or die "$path: $!";
}


# ---- requests ---------------------------------------------------------------

# A list of [ pieces, number of answers ]; a piece is { value, delay_before }.
sub requests_of {
    my ($block) = @_;

    my $name = $block->name;
    my $headers = $block->more_headers;
    my $raw = $block->raw_request;
    my $pipelined = $block->pipelined_requests;

    my $more = sub {
        my ($i) = @_;
        return defined $headers ? $headers : '' if ref $headers ne 'ARRAY';
        bail_out("$name - more_headers lacks element $i")
            if !defined $headers->[$i];
        return $headers->[$i];
    };

    return [ [ map { piece($_) } ref $raw ? @$raw : $raw ], 1 ]
        if defined $raw;

    if (defined $pipelined) {
        bail_out("$name - pipelined_requests is not an array")
            if ref $pipelined ne 'ARRAY';

        my $n = @$pipelined;

        return [ [ map {
            my $last = $_ == $n - 1;
            request_pieces($name, [ { value => expand($pipelined->[$_]) } ],
                           $more->($_), $last ? 'close' : 'keep-alive')
        } 0 .. $n - 1 ], $n ];
    }

    my $request = $block->request;
    bail_out("$name - no request") if !defined $request;

    my @all = ref $request eq 'ARRAY' ? @$request : ($request);

    return map {
        my $r = $all[$_];
        [ [ request_pieces($name, [ map { piece($_) } ref $r ? @$r : $r ],
                           $more->($_), 'close') ], 1 ]
    } 0 .. $#all;
}

sub piece { ref $_[0] eq 'HASH' ? { %{ $_[0] } } : { value => $_[0] } }

# The first piece has the request line; the head goes in front of the body.
sub request_pieces {
    my ($name, $pieces, $more, $connection) = @_;

    my $all = join '', map { $_->{value} } @$pieces;
    $all =~ s/^\s+//;
    my ($line, $body) = $all =~ /^([^\n]*)\n?(.*)\z/s;

    $line =~ /^(\S+)(?: +(\S+))?(?: +(HTTP\/\S+))?\s*$/
        or bail_out("$name - \"$line\" is no request line");
    $line = join ' ', $1, defined $2 ? $2 : '/',
                      defined $3 ? $3 : 'HTTP/1.1';

    my $chunked = $more =~ /^Transfer-Encoding:\s*chunked/mi;
    my $head = "$line\r\n";

    $head .= "Host: localhost\r\n" if $more !~ /^Host:/mi;
    $head .= "Connection: $connection\r\n" if $more !~ /^Connection/mi;

    for (grep { /\S/ && !/^\s*#/ } split /\n+/, $more) {
        my ($n, $v) = split /:\s*/, $_, 2;
        $head .= "$n: " . (defined $v ? $v : '') . "\r\n";
    }

    if (!$chunked && length $body && $more !~ /^Content-Length:/m) {
        $body =~ s/^\s+|\s+$//g;
        $head .= 'Content-Length: ' . length($body) . "\r\n";
    }

    return { value => "$head\r\n$body" } if @$pieces == 1;

    # only what follows the request line keeps its pieces

    my ($first, @rest) = @$pieces;
    $first->{value} =~ s/^[^\n]*\n?//;

    return ({ %$first, value => "$head\r\n$first->{value}" }, @rest);
}

sub run_requests {
    my ($block) = @_;

    my @requests = requests_of($block);
    my $many = @requests > 1 || $requests[0][1] > 1;
    my $limit = defined $block->timeout ? seconds($block->timeout)
                                        : $conf{timeout};
    my $i = 0;

    for my $request (@requests) {
        my ($pieces, $n) = @$request;
        my $method = $pieces->[0]{value} =~ /^HEAD / ? 'HEAD' : 'GET';
        my $bytes = exchange($pieces, $limit);

        for (1 .. $n) {
            if (defined $block->ignore_response) {
                pass($block->name . ' - sent');
            } else {
                check($block, take_response(\$bytes, $method), $i, $many);
            }
            $i++;
        }

        ok(!length $bytes, $block->name . ' - nothing after the answer')
            or diag($bytes)
            if !defined $block->ignore_response;

        Time::HiRes::sleep($block->wait) if $block->wait;
    }

    check_log($block);
}

sub seconds {
    my ($v) = @_;

    return $v =~ s/ms\s*$// ? $v / 1000 : $v =~ s/s?\s*$//r;
}

# Sends the pieces; all bytes that come until the other side closes.
sub exchange {
    my ($pieces, $limit) = @_;

    my $end = Time::HiRes::time() + $limit;
    my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                     PeerPort => $ServerPort,
                                     Proto => 'tcp', Timeout => $limit)
        or do { fail("connect: $!"); return '' };
    my $bytes = '';

    local $SIG{PIPE} = 'IGNORE';

    for my $p (@$pieces) {
        Time::HiRes::sleep($p->{delay_before}) if $p->{delay_before};
        my $v = $p->{value};

        while (length $v) {
            my $n = syswrite $sock, $v;
            last if !$n;
            substr $v, 0, $n, '';
        }
    }

    for (;;) {
        my $left = $end - Time::HiRes::time();

        if ($left <= 0 || !IO::Select->new($sock)->can_read($left)) {
            diag("nothing more after $limit s");
            last;
        }

        sysread $sock, $bytes, 65536, length $bytes or last;
    }

    return $bytes;
}

# { code, headers: [ [ name, value ] ], raw, body }, taken off the bytes.
sub take_response {
    my ($bytes, $method) = @_;

    $$bytes =~ s/^(.*?)\r\n\r\n//s
        or return { code => '', headers => [], raw => '', body => '' };

    my $raw = $1;
    my ($first, @lines) = split /\r\n/, $raw;
    my ($code) = $first =~ m{^HTTP/1\.\d (\d{3})};
    my @headers = map { [ /^([^:]+):\s*(.*)$/ ] } @lines;
    my %h = map { lc $_->[0] => $_->[1] } @headers;
    my $body;

    if ($method eq 'HEAD' || $code == 304 || $code == 204) {
        $body = '';
    } elsif (lc($h{'transfer-encoding'} || '') eq 'chunked') {
        $body = '';
        while ($$bytes =~ s/^([0-9a-f]+)[^\r\n]*\r\n//i) {
            my $n = hex $1;
            $body .= substr $$bytes, 0, $n, '';
            $$bytes =~ s/^\r\n//;
            last if $n == 0;
        }
    } elsif (defined $h{'content-length'}) {
        my $n = $h{'content-length'};
        diag('the body is shorter than its length') if $n > length $$bytes;
        $body = substr $$bytes, 0, $n, '';
    } else {
        $body = $$bytes;
        $$bytes = '';
    }

    return { code => defined $code ? $code : '', headers => \@headers,
             raw => $raw, body => $body };
}


# ---- expectations -----------------------------------------------------------

sub indexed {
    my ($block, $section, $i, $many) = @_;

    my $v = $block->$section;

    return $v if !defined $v;
    return $v->[$i] if ref $v eq 'ARRAY';
    bail_out($block->name . " - many requests need an array in $section")
        if $many;

    return $v;
}

sub check {
    my ($block, $r, $i, $many) = @_;

    my $name = $block->name . ($many ? " (request $i)" : '');
    my $want = sub { indexed($block, $_[0], $i, $many) };
    my $v;

    if (defined($v = $want->('error_code_like'))) {
        like($r->{code}, qr/$v/sm, "$name - status");
    } else {
        $v = $want->('error_code');
        is($r->{code}, defined $v ? $v : 200, "$name - status")
            or diag($r->{body});
    }

    like($r->{raw}, qr/$v/s, "$name - raw headers")
        if defined($v = $want->('raw_response_headers_like'));
    unlike($r->{raw}, qr/$v/s, "$name - raw headers")
        if defined($v = $want->('raw_response_headers_unlike'));

    check_headers($name, $r, $want->('response_headers'), 0);
    check_headers($name, $r, $want->('response_headers_like'), 1);

    if (defined($v = $want->('response_body'))) {
        ref $v ? like($r->{body}, $v, "$name - body")
               : is($r->{body}, expand($v), "$name - body");
    }

    like($r->{body}, qr/$v/s, "$name - body")
        if defined($v = $want->('response_body_like'));
    unlike($r->{body}, qr/$v/s, "$name - body")
        if defined($v = $want->('response_body_unlike'));
}

sub check_headers {
    my ($name, $r, $text, $like) = @_;

    return if !defined $text;

    for my $line (grep { /\S/ } split /\n/, $text) {
        $line =~ s/^\s+|\s+$//g;
        my $absent = $line =~ s/^!\s*//;
        my ($n, $v) = split /\s*:\s*/, $line, 2;
        my @is = map { $_->[1] } grep { lc $_->[0] eq lc $n }
                 @{ $r->{headers} };
        my $is = join ', ', @is;

        if ($absent) {
            ok(!@is, "$name - no header $n") or diag("$n: $is");
        } elsif ($like) {
            like($is, qr/^$v$/, "$name - header $n");
        } else {
            is($is, $v, "$name - header $n");
        }
    }
}

sub check_log {
    my ($block) = @_;

    my $log = slurp("$ServRoot/logs/error.log");
    $log = substr $log, $log_from if length $log >= $log_from;
    my @lines = split /\n/, $log;
    my $name = $block->name;

    for my $p (patterns($block->error_log)) {
        ok(scalar(grep { $_ =~ $p } @lines), "$name - $p is in the log")
            or diag($log);
    }

    for my $p (patterns($block->no_error_log)) {
        my @found = grep { $_ =~ $p } @lines;
        ok(!@found, "$name - $p is not in the log") or diag(@found);
    }
}

sub patterns {
    my ($v) = @_;

    return () if !defined $v;

    my @all = ref $v eq 'ARRAY' ? @$v : ref $v ? ($v) : split /\n+/, $v;

    return map { ref $_ ? $_ : qr/\Q$_\E/ } grep { length $_ } @all;
}


package Test::Nginx::Socket::Block;

our $AUTOLOAD;

sub parse {
    my ($class, $name, $part) = @_;

    my %b = (name => $name);
    my (undef, @sections) = split /^---[ \t]+(?=\S)/m, $part;

    $part =~ /\A\s*(?:#.*\n\s*)*(?:^---|\z)/m
        or Test::Nginx::Socket::bail_out("$name - text before a section");

    for (@sections) {
        s/^(\w+)((?:[ \t]+\w+)*)[ \t]*(:?)[ \t]*(.*)(?:\n|\z)//
            or Test::Nginx::Socket::bail_out("$name - malformed: $_");

        my ($section, $filters, $colon, $inline) = ($1, $2, $3, $4);
        my $v = $_;

        Test::Nginx::Socket::bail_out("$name - unknown section $section")
            if !$known{$section};
        Test::Nginx::Socket::bail_out("$name - $section twice")
            if exists $b{$section};
        Test::Nginx::Socket::bail_out("$name - after $section: $inline")
            if !$colon && length $inline;

        if ($colon) {
            $v = $inline;
        } else {
            $v =~ s/\A(?:[ \t]*\n)+//;
            $v =~ s/(?<=\n)\s*\z//;
        }

        for my $f (split ' ', $filters) {
            Test::Nginx::Socket::bail_out("$name - unknown filter $f")
                if !$filter{$f};
            $v = eval { $filter{$f}->($v) };
            Test::Nginx::Socket::bail_out("$name - $section: $@") if $@;
        }

        $b{$section} = $v;
    }

    return bless \%b, $class;
}

sub set_value { my ($self, $n, $v) = @_; $self->{$n} = $v }

sub AUTOLOAD {
    my ($self) = @_;

    (my $n = $AUTOLOAD) =~ s/.*:://;
    return if $n eq 'DESTROY';

    return $self->{$n};
}


1;
