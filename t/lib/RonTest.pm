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
# that kills something has announced it.  Nor may a token or an idempotency
# key that was used be in a log of it, in a metric or in an answer that is an
# error (RonSecrets); a key that is a word gets a suffix, so that it can be told.

use strict;
use warnings;

use B ();
use Cwd ();
use Digest::SHA ();
use Errno ();
use Exporter ();
use Fcntl ();
use File::Path ();
use File::Spec ();
use File::Temp ();
use IO::Select ();
use IO::Socket::INET ();
use MIME::Base64 ();
use POSIX ();
use RonSecrets ();
use Test::More;
use Time::HiRes ();

our @ISA = ('Exporter');
our @EXPORT = (@Test::More::EXPORT,
               qw(freeze json_get json_has nonce16 slow until_ok));

my $BUILD = $ENV{RON_BUILD} || Cwd::abs_path('build') || 'build';
our $NGINX = $ENV{NGINX} || 'nginx';

# How many times slower than usual what is tested may be: `make asan` has 5.
my $SLOW = $ENV{RON_SLOW} || 1;
$SLOW =~ /^[1-9]\d*$/ or die "RON_SLOW=$SLOW is no factor, as in RON_SLOW=5\n";

# nginx itself looks at a variable of this name, for sockets to inherit
delete $ENV{NGINX};

my @SERVERS;
my $TOLD = 0;

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
        connections => 1024,
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
    my $new = "$path.new";

    # whoever reads it meanwhile sees all of the old one or of this one

    $mode //= (stat $path)[2] & 07777 if -e $path;

    open my $f, '>', $new or die "$new: $!";
    binmode $f;
    print $f $text;
    close $f or die "$new: $!";
    chmod $mode, $new if defined $mode;
    rename $new, $path or die "$path: $!";

    return $path;
}

sub conf_text {
    my ($self) = @_;

    my $d = $self->{dir};
    my $user = $> == 0 ? "user nobody nogroup;" : '';
    my $ledger = $self->{ledger} ? "ron_ledger $self->{ledger};" : '';
    my $tick = $self->{main} =~ /ron_metrics_tick/ ? '' : 'ron_metrics_tick 50ms;';
    my $env = $ENV{RON_PRELOAD} ? 'env LD_PRELOAD; env ASAN_OPTIONS;' : '';
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
$env
worker_processes $self->{workers};
load_module $BUILD/ngx_ron_module.so;
error_log $d/logs/error.log $self->{level};
pid $d/nginx.pid;
$ledger
$tick
$self->{main}
events { worker_connections $self->{connections}; $self->{events} }
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

    eval { $self->http('GET', '/metrics', undef, token => undef,
                       timeout => 1) } if $self->{locations};
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

# Stops processes; a thread on another processor goes on until it hears of it.
sub freeze {
    my (@pids) = @_;

    kill 'STOP', @pids;

    return until_ok(5, sub {
        return !grep { slurp($_) =~ /^\d+ \(.*\) [^Tt] /s }
                map { glob "/proc/$_/task/*/stat" } @pids;
    });
}

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

# What strace injects into system calls of the helper on the journal's log, or
# of process `pid` on what `files` names, until the process that is returned is
# ended; 0 where nobody may trace.
sub inject {
    my ($self, $calls, $what, %o) = @_;

    my $process = $o{pid} || $self->helper;
    my @files = @{ $o{files} || [ 'ledger.db-wal' ] };
    my $log = "$self->{dir}/strace-$what.log";

    unlink $log;
    my $pid = fork();
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        open STDERR, '>', $log;
        exec('strace', '-f', '-p', $process, '-o', '/dev/null',
             (map { ('-P', "$self->{dir}/ledger/$_") } @files),
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

# Nobody has time to end well: the master cannot start anew who is killed, and
# the others do not learn that it died.
sub kill_all {
    my ($self) = @_;

    kill 'STOP', $self->{pid};
    my @left = $self->children;
    kill 'KILL', @left;
    $self->kill_master;

    return until_ok(10, sub { !grep { alive($_) } @left });
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

    push @bad, grep { /\bron: lock order: / } split /\n/, $self->log;
    $self->secrets;

    ok(!@bad, 'no alert in the error log') or diag(join "\n", @bad);
}

# Answers wait here to be looked through together: errors, and metrics.
my @heard;

sub heard {
    my ($r) = @_;

    push @heard, join "\n", %{ $r->{headers} }, $r->{body};
    tell_secrets() if @heard >= 256 || !RonSecrets::owner();
}

sub tell_secrets {
    RonSecrets::said('an answer', join "\n", splice @heard);
}

# No secret is in what this server wrote; it fails where there is one.
sub secrets {
    my ($self) = @_;

    my @histories = glob "$self->{dir}/history-*";

    RonSecrets::client($_) for map { m{/history-([^/]+)$} } @histories;
    tell_secrets();

    my $all = RonSecrets::all();
    my @found = RonSecrets::found();

    push @found, map { refused_in($_, $all) } @histories;

    for my $path (glob "$self->{dir}/logs/*.log") {
        my $text = slurp($path);
        $text = RonSecrets::without_nginx($text) if $self->{level} eq 'debug';
        push @found, map { "$path: $_" } RonSecrets::search($text, $all);
    }

    @found = map { substr($_, 0, 300) } grep { !$self->{told}{$_}++ } @found;
    if (@found) { fail('no secret is told'); $TOLD = 1 }
    diag("a token or a key: $_") for @found > 5 ? @found[0 .. 4] : @found;
}

# The same in what t/chaos/client.c was answered, where that is an error: the
# last field of its line of the history.
sub refused_in {
    my ($path, $all) = @_;

    my @found;

    open my $f, '<', $path or return;

    while (defined(my $line = <$f>)) {
        my ($status, $body) = $line =~ /^(?:[^\t]*\t){4}(\d+)\t.*\t([^\t]*)$/
            or next;
        push @found, map { "$path: $_" } RonSecrets::search($body, $all)
            if $status >= 300;
    }

    return @found;
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
    my $owner = RonSecrets::owner();
    tell_secrets();
    for my $s (@SERVERS) {
        next unless $s;
        if ($ENV{RON_TEST_LOG}) {
            diag($s->log);
        }
        $s->DESTROY if $s->{dir} && -d $s->{dir};
    }
    @SERVERS = ();

    # what was found after the last server of the suite had ended

    if ($owner && $code == 0 && !$TOLD && RonSecrets::found()) {
        diag("a token or a key: $_") for RonSecrets::found();
        $code = 1;
    }

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

    return RonSecrets::token($text);
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

# A metric's value now: that of its first series that has all these labels,
# as 'queue="work"'; undef where there is none.
sub metric {
    my ($self, $name, @labels) = @_;

    my $text = $self->get('/metrics', token => undef)->{body};

    SERIES: for my $series ($text =~ /^\Q$name\E([{ ].*)$/mg) {
        for (@labels) { next SERIES if index($series, $_) < 0 }
        return ($series =~ / (\S+)$/)[0];
    }

    return undef;
}

# Options: key, token (undef: none), headers {}, type, timeout, sock.
sub http {
    my ($self, $method, $path, $body, %o) = @_;

    my $sock = $o{sock} || $self->connect($o{timeout});
    $self->send_request($sock, $method, $path, $body, %o);

    my $r = read_response($sock, $method, $o{timeout});
    heard($r) if $path eq '/metrics';

    return $r;
}

sub connect {
    my ($self, $timeout) = @_;

    return IO::Socket::INET->new(
        PeerAddr => '127.0.0.1', PeerPort => $self->{port},
        Proto => 'tcp', Timeout => slow($timeout || 10),
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
    $h{'Idempotency-Key'} = RonSecrets::key($h{'Idempotency-Key'});

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

    my $end = Time::HiRes::time() + slow($timeout || 10);
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

    my $r = { status => $status, headers => \%h, body => $body };
    heard($r) if $status < 200 || $status >= 300;

    return $r;
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

# A limit of time or memory, for what may be slow.

sub slow {
    my ($limit) = @_;

    return $limit * $SLOW;
}

sub until_ok {
    my ($seconds, $cond) = @_;

    my $end = Time::HiRes::time() + slow($seconds);

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

# A port that nobody listens to and that no connection of somebody's gets by
# chance: those come from the ephemeral range, these from below it.  Files that
# run side by side have ranges of their own, each held by a lock for as long as
# its process lives.

my ($lock, @ports);

sub free_port {
    @ports = port_range() if !@ports;

    while (defined(my $port = shift @ports)) {
        my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1',
                                      LocalPort => $port, Proto => 'tcp',
                                      ReuseAddr => 1);
        return $port if $s;
    }

    return free_port();
}

sub port_range {
    my ($low) = slurp('/proc/sys/net/ipv4/ip_local_port_range') =~ /(\d+)/;
    my $n = 32;
    my $dir = File::Spec->tmpdir . "/ron-ports-$>";

    $low = 32768 if !$low || $low < 16384;
    mkdir $dir, 0700;

    # most start where nobody else does

    my @starts = map { 10000 + $n * $_ } 0 .. ($low - 10000) / $n - 1;
    my $first = $$ % @starts;

    for my $start (@starts[$first .. $#starts], @starts[0 .. $first - 1]) {
        open my $f, '>>', "$dir/$start" or die "$dir/$start: $!";

        if (flock $f, Fcntl::LOCK_EX() | Fcntl::LOCK_NB()) {
            push @$lock, $f;
            return $start .. $start + $n - 1;
        }
    }

    die "no ports: all of $dir are locked";
}


1;
