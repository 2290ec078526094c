package RonTest;

# Our harness for servers: one nginx with the module in a directory of its
# own, its life cycle as verbs, and a small HTTP client.  Core Perl only.
#
#     my $s = RonTest->new(workers => 2);
#     $s->start;
#     my $r = $s->post('/v1/transfer', {...}, key => 'k1');
#     is($r->{status}, 200);
#     $s->kill_helper;
#     $s->quit;
#     done_testing();
#
# Every server that ends passes the gate: an [alert] line, or one of
# [emerg] or a sanitizer, in its error log fails the test, unless a verb
# that kills something has announced it.

use strict;
use warnings;

use B ();
use Cwd ();
use Digest::SHA ();
use Errno ();
use Exporter ();
use File::Path ();
use File::Temp ();
use IO::Select ();
use IO::Socket::INET ();
use MIME::Base64 ();
use POSIX ();
use Test::More;
use Time::HiRes ();

our @ISA = ('Exporter');
our @EXPORT = (@Test::More::EXPORT,
               qw(json_get json_has nonce16 until_ok));

my $BUILD = $ENV{RON_BUILD} || Cwd::abs_path('build') || 'build';
our $NGINX = $ENV{NGINX} || 'nginx';

# nginx itself looks at a variable of this name, for sockets to inherit
delete $ENV{NGINX};

my @SERVERS;

$ENV{PATH} .= ':/usr/sbin:/sbin';


# ---- the server -------------------------------------------------------------

sub new {
    my ($class, %o) = @_;

    my $dir = File::Temp::tempdir('ron-test-XXXXXX', TMPDIR => 1);
    chmod 0755, $dir;

    my $self = bless {
        dir      => $dir,
        ledger   => 'sqlite:' . $dir . '/ledger',
        workers  => 1,
        main     => '',
        http     => '',
        config   => '',
        events   => '',
        locations => 1,
        level    => 'info',
        allowed  => [],
        pid      => 0,
        %o,
    }, $class;

    mkdir "$dir/logs";

    $self->{port} ||= free_port();
    $self->{kid} = 'dev';
    $self->{secret} = join '', map { chr(int rand 256) } 1 .. 32;

    $self->write_file('ron.keys',
                      "dev " . MIME::Base64::encode_base64($self->{secret}, '')
                      . "\n", 0600);
    push @SERVERS, $self;

    return $self;
}

sub dir  { $_[0]{dir} }
sub port { $_[0]{port} }

sub write_file {
    my ($self, $name, $text, $mode) = @_;

    my $path = "$self->{dir}/$name";

    open my $f, '>', $path or die "$path: $!";
    binmode $f;
    print $f $text;
    close $f or die "$path: $!";
    chmod $mode, $path if defined $mode;

    return $path;
}

sub conf_text {
    my ($self) = @_;

    my $d = $self->{dir};
    my $user = $> == 0 ? "user nobody nogroup;" : '';
    my $ledger = $self->{ledger} ? "ron_ledger $self->{ledger};" : '';
    my $keys = $self->{nokeys} ? '' : "ron_keys $d/ron.keys;";
    my $locations = !$self->{locations} ? '' : <<"    END";
        location /v1/ { ron_wallet; }
        location /ledger/ { ron_ledger_api; }
        location = /healthz { ron_health live; }
        location = /readyz { ron_health ready; }
        location = /version { ron_version; }
        location = /metrics { ron_metrics; }
    END

    my $text = <<"END";
$user
worker_processes $self->{workers};
load_module $BUILD/ngx_ron_module.so;
error_log $d/logs/error.log $self->{level};
pid $d/nginx.pid;
$ledger
$self->{main}
events { worker_connections 1024; $self->{events} }
http {
    access_log off;
    client_body_temp_path $d/body;
    proxy_temp_path $d/proxy;
    fastcgi_temp_path $d/fastcgi;
    uwsgi_temp_path $d/uwsgi;
    scgi_temp_path $d/scgi;
    $keys
    $self->{http}
    server {
        listen 127.0.0.1:$self->{port};
$locations
$self->{config}
    }
}
END

    return $text;
}

sub write_conf {
    my ($self) = @_;

    return $self->write_file('nginx.conf', $self->conf_text);
}

# Runs nginx with more arguments; its exit code and what it said.
sub nginx {
    my ($self, @args) = @_;

    my @cmd = ($NGINX, '-p', $self->{dir}, '-c', "$self->{dir}/nginx.conf",
               '-e', "$self->{dir}/logs/error.log", @args);
    my $out = "$self->{dir}/out";

    my $pid = fork();
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', $out;
        open STDERR, '>&', \*STDOUT;
        $ENV{LD_PRELOAD} = join ' ', $ENV{RON_PRELOAD},
                                grep { defined } $ENV{LD_PRELOAD}
            if $ENV{RON_PRELOAD};           # a sanitizer's runtime
        exec @cmd or POSIX::_exit(127);
    }

    waitpid $pid, 0;

    my $code = $?;
    my $said = slurp($out);
    unlink $out;

    return ($code, $said);
}

sub test_config {
    my ($self) = @_;

    $self->write_conf;

    return $self->nginx('-t');
}

sub start {
    my ($self, %o) = @_;

    $self->write_conf;
    my ($code, $said) = $self->nginx();

    if ($code != 0) {
        diag("nginx did not start: $said");
        diag($self->log);
        return 0;
    }

    until_ok(5, sub { -s "$self->{dir}/nginx.pid" });
    ($self->{pid}) = slurp("$self->{dir}/nginx.pid") =~ /(\d+)/;

    unless ($o{nowait} || !$self->{ledger} || !$self->{locations}) {
        $self->wait_ready or do {
            diag("the ledger is not ready");
            diag($self->log);
            return 0;
        };
    }

    return $self->{pid};
}

sub wait_ready {
    my ($self, $seconds) = @_;

    return until_ok($seconds || 10, sub {
        my $r = eval { $self->get('/readyz', token => undef) };
        return $r && $r->{status} == 200;
    });
}

sub reload {
    my ($self, %o) = @_;

    my %old = map { $_ => 1 } $self->workers;

    $self->write_conf unless $o{keep};
    my ($code, $said) = $self->nginx('-s', 'reload');
    return 0 if $code != 0;

    # new workers are there, the old ones are gone or going

    return until_ok($o{wait} || 10, sub {
        my @now = $self->workers;
        my @new = grep { !$old{$_} } @now;
        return @new >= $self->{workers} && ($o{linger} || @new == @now);
    });
}

sub quit      { $_[0]->end('QUIT', $_[1]) }
sub terminate { $_[0]->end('TERM', $_[1]) }

sub end {
    my ($self, $signal, $seconds) = @_;

    return 1 unless $self->{pid};

    my @all = ($self->{pid}, $self->children);

    kill $signal, $self->{pid};

    my $gone = until_ok($seconds || 15, sub {
        return !grep { alive($_) } @all;
    });

    unless ($gone) {
        fail("everything ends after $signal");
        diag(`ps -o pid,stat,args -p @{[join ',', @all]}`);
        kill 'KILL', @all;
        until_ok(5, sub { !grep { alive($_) } @all });
    }

    $self->{pid} = 0;
    $self->gate;

    return $gone;
}

# Processes, from /proc: the master's children by their titles.

sub children {
    my ($self) = @_;

    return () unless $self->{pid};

    my @pids;

    for my $stat (glob '/proc/[0-9]*/stat') {
        my ($pid, $parent) = slurp($stat) =~ /^(\d+) \(.*\) \S (\d+)/s
            or next;
        push @pids, $pid if $parent == $self->{pid};
    }

    @pids = sort { $a <=> $b } @pids;

    return @pids;
}

sub titled {
    my ($self, $title) = @_;

    return grep {
        (my $t = slurp("/proc/$_/cmdline")) =~ tr/\0/ /;
        $t =~ /\Q$title\E/;
    } $self->children;
}

sub workers { $_[0]->titled('worker process') }
sub helper  { ($_[0]->titled('cache manager process'))[-1] }

sub kill_helper {
    my ($self, $signal) = @_;

    my $pid = $self->helper or return 0;

    push @{ $self->{allowed} },
        qr/cache manager process $pid exited on signal/;
    kill $signal || 'KILL', $pid;

    return $pid;
}

sub kill_worker {
    my ($self, $signal) = @_;

    my ($pid) = $self->workers or return 0;

    push @{ $self->{allowed} }, qr/worker process $pid exited on signal/;
    kill $signal || 'KILL', $pid;

    return $pid;
}

# What strace injects into system calls of the helper on the journal's log,
# until the process that is returned is ended; 0 where nobody may trace.
sub inject {
    my ($self, $calls, $what) = @_;

    my $helper = $self->helper;
    my $log = "$self->{dir}/strace-$what.log";

    unlink $log;
    my $pid = fork();
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        open STDERR, '>', $log;
        exec('strace', '-f', '-p', $helper, '-o', '/dev/null',
             '-P', "$self->{dir}/ledger/ledger.db-wal",
             '-e', "trace=$calls", '-e', "inject=$calls:$what")
            or POSIX::_exit(127);
    }

    return $pid if until_ok(10, sub { slurp($log) =~ /attached/ });

    kill 'KILL', $pid;
    waitpid $pid, 0;

    return 0;
}

# Leaves its children to themselves.
sub kill_master {
    my ($self) = @_;

    my $pid = $self->{pid};
    my @left = $self->children;

    kill 'KILL', $pid;
    until_ok(5, sub { !alive($pid) });
    unlink "$self->{dir}/nginx.pid";
    $self->{pid} = 0;

    return @left;
}

# How many descriptors a process has open.
sub fds {
    my ($self, $pid) = @_;

    my @fds = glob "/proc/$pid/fd/*";

    return scalar @fds;
}

sub log {
    my ($self) = @_;

    return slurp("$self->{dir}/logs/error.log");
}

sub allow {
    my ($self, @patterns) = @_;

    push @{ $self->{allowed} }, @patterns;
}

# What must not be in a log.
sub gate {
    my ($self) = @_;

    my @bad = grep {
        my $line = $_;
        !grep { $line =~ $_ } @{ $self->{allowed} };
    } grep { /\[(?:alert|emerg)\]|Sanitizer|runtime error/ }
      split /\n/, $self->log;

    ok(!@bad, 'no alert in the error log') or diag(join "\n", @bad);
}

sub DESTROY {
    my ($self) = @_;

    local ($@, $?, $!);

    if ($self->{pid} && $self->{pid} > 0) {
        my @all = ($self->{pid}, $self->children);
        kill 'KILL', @all;
    }

    if ($ENV{RON_TEST_LEAVE}) {
        diag("left: $self->{dir}");
    } else {
        File::Path::remove_tree($self->{dir});
    }
}

END {
    my $code = $?;
    for my $s (@SERVERS) {
        next unless $s;
        if ($ENV{RON_TEST_LOG}) {
            diag($s->log);
        }
        $s->DESTROY if $s->{dir} && -d $s->{dir};
    }
    @SERVERS = ();
    $? = $code;
}


# ---- capabilities -----------------------------------------------------------

# A macaroon in the version 2 binary format, written from its specification
# and not with the code under test.

sub token {
    my ($self, @caveats) = @_;

    my %o = ref $caveats[0] ? %{ shift @caveats } : ();
    my $kid = $o{kid} || $self->{kid};
    my $id = $o{id} || 'test';
    my $secret = $o{secret} || $self->{secret};

    my $key = Digest::SHA::hmac_sha256($secret, "macaroons-key-generator"
                                                . ("\0" x 9));
    my $ident = "$kid:$id";
    my $sig = Digest::SHA::hmac_sha256($ident, $key);
    my $out = "\x02" . field(2, $ident) . "\0";

    for my $c (@caveats) {
        $sig = Digest::SHA::hmac_sha256($c, $sig);
        $out .= field(2, $c) . "\0";
    }

    $out .= "\0" . field(6, $sig);

    my $text = MIME::Base64::encode_base64($out, '');
    $text =~ tr{+/}{-_};
    $text =~ s/=+$//;

    return $text;
}

sub field {
    my ($type, $data) = @_;

    my $n = length $data;
    my $len = '';

    while ($n > 127) {
        $len .= chr(0x80 | ($n & 0x7f));
        $n >>= 7;
    }

    return chr($type) . $len . chr($n) . $data;
}


# ---- HTTP -------------------------------------------------------------------

sub get  { my ($s, $path, %o) = @_; $s->http('GET', $path, undef, %o) }
sub post { my ($s, $path, $body, %o) = @_; $s->http('POST', $path, $body, %o) }

# Options: key, token (undef: none), headers {}, type, timeout, sock.
sub http {
    my ($self, $method, $path, $body, %o) = @_;

    my $sock = $o{sock} || $self->connect($o{timeout});
    $self->send_request($sock, $method, $path, $body, %o);

    return read_response($sock, $method, $o{timeout});
}

sub connect {
    my ($self, $timeout) = @_;

    return IO::Socket::INET->new(
        PeerAddr => '127.0.0.1', PeerPort => $self->{port},
        Proto => 'tcp', Timeout => $timeout || 10,
    ) || die "connect: $!";
}

sub request_text {
    my ($self, $method, $path, $body, %o) = @_;

    my %h = %{ $o{headers} || {} };
    my $token = exists $o{token} ? $o{token}
                                 : ($self->{token} ||= $self->token);

    $body = json_put($body) if ref $body;

    $h{Authorization} = "Bearer $token"
        if defined $token && !exists $h{Authorization};
    $h{'Idempotency-Key'} = $o{key} if defined $o{key};

    if (defined $body) {
        $h{'Content-Type'} = $o{type} || 'application/json'
            unless exists $h{'Content-Type'};
        $h{'Content-Length'} = length $body
            unless exists $h{'Transfer-Encoding'};
    }

    my $text = "$method $path HTTP/1.1\r\nHost: localhost\r\n";

    for my $name (sort keys %h) {
        $text .= "$name: $h{$name}\r\n" if defined $h{$name};
    }

    $text .= "Connection: close\r\n" unless $o{sock} || $o{keep};

    return $text . "\r\n" . (defined $body ? $body : '');
}

sub send_request {
    my ($self, $sock, @args) = @_;

    my $text = $self->request_text(@args);

    local $SIG{PIPE} = 'IGNORE';

    while (length $text) {
        my $n = syswrite $sock, $text;
        last unless $n;
        substr $text, 0, $n, '';
    }
}

# { status, headers (names in lower case), body }; status 0: closed without.
sub read_response {
    my ($sock, $method, $timeout) = @_;

    my $end = Time::HiRes::time() + ($timeout || 10);
    my $buf = ${*$sock}{ron_rest};
    $buf = '' unless defined $buf;

    my $more = sub {
        my $left = $end - Time::HiRes::time();
        return 0 if $left <= 0;
        IO::Select->new($sock)->can_read($left) or return 0;
        return sysread $sock, $buf, 65536, length $buf;
    };

    until ($buf =~ /\r\n\r\n/) {
        $more->() or return { status => 0, headers => {}, body => $buf };
    }

    $buf =~ s/^(.*?)\r\n\r\n//s;
    my ($first, @lines) = split /\r\n/, $1;
    my ($status) = $first =~ m{^HTTP/1\.\d (\d+)};
    my %h;

    for (@lines) {
        my ($name, $value) = /^([^:]+):\s*(.*)$/ or next;
        $name = lc $name;
        $h{$name} = exists $h{$name} ? "$h{$name}, $value" : $value;
    }

    my $body = '';

    if (defined $method && $method eq 'HEAD' || $status == 304
        || $status == 204)
    {
        # no body
    } elsif (($h{'transfer-encoding'} || '') eq 'chunked') {
        for (;;) {
            until ($buf =~ /^[0-9a-f]+\r\n/i) { $more->() or last; }
            $buf =~ s/^([0-9a-f]+)\r\n//i or last;
            my $n = hex $1;
            while (length $buf < $n + 2) { $more->() or last; }
            $body .= substr $buf, 0, $n, '';
            substr $buf, 0, 2, '';
            last if $n == 0;
        }
    } elsif (exists $h{'content-length'}) {
        while (length $buf < $h{'content-length'}) { $more->() or last; }
        $body = substr $buf, 0, $h{'content-length'}, '';
    } else {
        while ($more->()) { }
        $body = $buf;
        $buf = '';
    }

    ${*$sock}{ron_rest} = $buf;

    return { status => $status, headers => \%h, body => $body };
}


# ---- JSON, as much as tests need --------------------------------------------

sub json_put {
    my ($v) = @_;

    if (ref $v eq 'HASH') {
        return '{' . join(',', map { json_string($_) . ':'
                                     . json_put($v->{$_}) }
                               sort keys %$v) . '}';
    }

    return '[' . join(',', map { json_put($_) } @$v) . ']'
        if ref $v eq 'ARRAY';
    return $$v if ref $v eq 'SCALAR';

    # what was written as a number is one

    my $flags = B::svref_2object(\$v)->FLAGS;

    return $v if $flags & B::SVf_IOK() && !($flags & B::SVf_POK());
    return json_string($v);
}

sub json_string {
    my ($s) = @_;

    $s =~ s/(["\\])/\\$1/g;
    $s =~ s/([\x00-\x1f])/sprintf '\\u%04x', ord $1/ge;

    return "\"$s\"";
}

# The value of a member, wherever it stands first, as text.
sub json_get {
    my ($text, $name) = @_;

    return undef unless defined $text;
    return $1 if $text =~ /"\Q$name\E":"((?:[^"\\]|\\.)*)"/;
    return $1 if $text =~ /"\Q$name\E":(-?[0-9.]+|true|false|null)/;

    return undef;
}

sub json_has { defined json_get(@_) }


# ---- small things -----------------------------------------------------------

my $nonce = 0;

sub nonce16 {
    return MIME::Base64::encode_base64(
        pack('NNNN', $$, time, ++$nonce, int rand 2 ** 32), '');
}

sub until_ok {
    my ($seconds, $cond) = @_;

    my $end = Time::HiRes::time() + $seconds;

    for (;;) {
        my $v = $cond->();
        return $v if $v;
        return 0 if Time::HiRes::time() >= $end;
        Time::HiRes::sleep(0.02);
    }
}

sub alive {
    my ($pid) = @_;

    my $stat = slurp("/proc/$pid/stat");

    return $stat =~ /\) ([A-Z])/ && $1 ne 'Z';
}

sub slurp {
    my ($path) = @_;

    open my $f, '<', $path or return '';
    binmode $f;
    local $/;
    my $text = <$f>;

    return defined $text ? $text : '';
}

sub free_port {
    my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1',
                                  LocalPort => 0, Proto => 'tcp')
        or die "no port: $!";

    return $s->sockport;
}


1;
