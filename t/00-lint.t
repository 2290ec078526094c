#!/usr/bin/perl

# What a reviewer should not have to look for.  Every rule carries examples
# that it must refuse and such that it must accept, and they are tried before
# the tree is; so a rule that has stopped working is a failed test too.

use strict;
use warnings;

use File::Basename qw(basename);
use Test::More;

# ---- exceptions ------------------------------------------------------------

# Folders and files of src/ that may use the operating system directly, and
# what for.  Everything else goes through ron_port.h.

my $sockets = join '|', qw(
    socket socketpair bind listen accept accept4 connect shutdown close
    send sendto sendmsg recv recvfrom recvmsg read write readv writev
    setsockopt getsockopt getsockname getpeername poll ppoll fcntl
    epoll_create1 epoll_ctl epoll_wait eventfd getpid
    unlink rename chmod lstat stat
);

my @may_call = (
    [ qr{^src/base/ron_port_posix\.c$} => qr{.} ],
    [ qr{^src/ctl/}                    => qr{.} ],
    [ qr{^src/proto/}                  => qr{^(?:$sockets)$} ],

    # whose the ledger directory is, and who may look into it; the name of an
    # abstract socket is the lock of a ledger in memory
    [ qr{^src/store/}                  => qr{^(?:stat|socket|bind|close)$} ],
);

my %longest_function = ('src/' => 70, 'ngx_ron_module/' => 120);
my $longest_file = 1200;

# Where money is computed, kept or proven.

my $money = qr{^src/(?:money|engine|entry|store|merkle)/};

my $c_file = qr{\.(?:[ch]|def)$};
my $ours = qr{^(?:src|ngx_ron_module)/.*$c_file};
my $all_c = qr{^(?:src|ngx_ron_module|t)/.*$c_file};
my $text = qr{
    \.(?:[ch]|def|t|p[lm]|sh|md|ya?ml|json|conf|pml|txt|js)$
  | (?:^|/)(?:Makefile|config|LICENSE|\.gitignore|\.clang-[a-z]+)$
  | ^\.ci/run$
}x;

# ---- rules -----------------------------------------------------------------

my $system_calls = join '|', qw(
    open openat creat close read write pread pwrite readv writev preadv
    pwritev fsync fdatasync sync ftruncate truncate rename renameat unlink
    mkdir rmdir opendir readdir closedir stat fstat lstat access flock lockf
    fcntl mmap munmap msync fopen fdopen freopen fread fwrite fclose tmpfile
    mkstemp fork vfork execve execv execvp system popen kill waitpid
    pthread_\w+ thrd_\w+ mtx_\w+ cnd_\w+ sem_\w+ sched_\w+ sigaction signal
    clock_gettime clock clock_nanosleep time gettimeofday nanosleep usleep
    sleep alarm setitimer timer_create timerfd_create eventfd epoll_\w+
    rand random srand srandom rand_r drand48 getrandom getentropy RAND_bytes
    RAND_priv_bytes socket socketpair bind listen accept accept4 connect
    shutdown send sendto sendmsg recv recvfrom recvmsg poll ppoll select
    setsockopt getsockopt getpid
);

my $banned = join '|', qw(
    strcpy stpcpy strcat strncat sprintf vsprintf gets atoi atol atoll atof
    alloca strtok tmpnam mktemp
);

my $marks = join '|', 'TO' . 'DO', 'FIX' . 'ME', 'X' . 'XX', 'HA' . 'CK';

# Each rule: the files it is for, a sub that returns what is wrong in one of
# them, paths with texts that it refuses, and such that it accepts.

my @rules = (

    {
        name  => 'src/ does not know the server',
        files => qr{^src/},
        find  => sub {
            my ($path, $raw, $code) = @_;
            return (
                lines($code, qr{\bngx_\w*}i),
                lines($raw, qr{^[ ]*\#\s*include\s*[<"][^>"]*ngx_[^>"]*}m),
            );
        },
        bad  => [ 'src/x/ron_x.c', "    ngx_str_t  name;\n",
                  'src/x/ron_x.c', "\n#include <ngx_core.h>\n",
                  'src/x/ron_x.h', "\n#include \"ngx_core.h\"\n" ],
        good => [ 'src/x/ron_x.c', "/* ngx_str_t */\n  f(\"ngx_ron: \");\n" ],
    },

    {
        name  => 'the glue does not know the database',
        files => qr{^ngx_ron_module/},
        find  => sub { lines($_[1], qr{\bsqlite3(?:_\w+|\.h)}) },
        bad   => [ 'ngx_ron_module/a.c', "    sqlite3_open(a, b);\n" ],
        good  => [ 'ngx_ron_module/a.c', "    ron_store_open(a, b);\n" ],
    },

    {
        name  => 'banned calls',
        files => $all_c,
        find  => sub { lines($_[2], qr{(?<![\w.>])(?:$banned)\s*\(}) },
        bad   => [ 'src/x/ron_x.c', "    n = atoi(text);\n" ],
        good  => [ 'src/x/ron_x.c', "    n = ron_atoi(\"atoi(1)\");\n" ],
    },

    {
        name  => 'the glue allocates from pools and slabs',
        files => qr{^ngx_ron_module/.*$c_file},
        find  => sub {
            lines($_[2], qr{(?<![\w.>])(?:[mc]alloc|realloc|str(?:n)?dup)\s*\(});
        },
        bad  => [ 'ngx_ron_module/a.c', "    p = malloc(10);\n" ],
        good => [ 'ngx_ron_module/a.c', "    p = ngx_palloc(pool, 10);\n" ],
    },

    {
        name  => 'src/ reads no environment',
        files => qr{^src/(?!ctl/)},
        find  => sub { lines($_[2], qr{\b(?:secure_)?getenv\s*\(}) },
        bad   => [ 'src/x/ron_x.c', "    p = getenv(\"HOME\");\n" ],
        good  => [ 'src/ctl/ron_x.c', "    p = getenv(\"HOME\");\n" ],
    },

    {
        name  => 'src/ reaches the system through its port',
        files => qr{^src/.*$c_file},
        find  => \&find_system_calls,
        bad   => [ 'src/proto/ron_x.c', "    t = time(NULL);\n",
                   'src/engine/ron_x.c', "    pthread_create(&t, 0, f, 0);\n",
                   'src/engine/ron_x.c', "    n = recv(fd, b, 1, 0);\n" ],
        good  => [ 'src/proto/ron_x.c', "    n = recv(fd, b, 1, 0);\n",
                   'src/engine/ron_x.c', "    c->read(c); x.time(1);\n",
                   'src/base/ron_port_posix.c', "    fd = open(p, 0);\n" ],
    },

    {
        name  => 'money is integers: types and calls',
        files => $money,
        find  => sub {
            lines($_[2], qr{\b(?:float|double|_Decimal\d+|strto(?:d|f|ld)
                             |atof|u?llround|lround|floor|ceil|pow|fabs)\b}x);
        },
        bad  => [ 'src/money/ron_x.c', "    double  rate;\n" ],
        good => [ 'src/money/ron_x.c', "/* no double here */\n" ],
    },

    {
        name  => 'money is integers: literals',
        files => $money,
        find  => sub { lines($_[2], qr{(?<![\w.])\d+\.\d*|(?<![\w.])\.\d+}) },
        bad   => [ 'src/engine/ron_x.c', "    x = y * 0.5;\n" ],
        good  => [ 'src/engine/ron_x.c', "    x = a.b1 + 5; f(\"1.5\");\n" ],
    },

    {
        name  => 'money is integers: formats',
        files => $money,
        find  => sub {
            lines($_[1], qr{"[^"\n]*%[-+ \#0]*[\d*]*(?:\.[\d*]+)?[lL]?[aefgAEFG]\b});
        },
        bad  => [ 'src/merkle/ron_x.c', "    f(\"%.2f\", x);\n" ],
        good => [ 'src/merkle/ron_x.c', "    f(\"%d %s\", x, y);\n" ],
    },

    {
        name  => 'no lock over I/O, logging or a wait',
        files => $ours,
        find  => \&find_held_locks,
        bad   => [ 'src/x/ron_x.c', locked('ron_log(RON_LOG_WARN, "x");'),
                   'src/x/ron_x.c', locked('ron_file_sync(fd);'),
                   'src/x/ron_x.c', locked('ron_cond_wait(c, other, 1);'),
                   'src/x/ron_x.c', "{\n    ron_mutex_lock(m);\n}\n",
                   'src/x/ron_x.c', "void\nf_locked(int a)\n{\n"
                                    . "    ron_sleep_us(1);\n}\n"
                                    . locked('x(); y();'),
                   'ngx_ron_module/a.c',
                   "{\n    ngx_shmtx_lock(&p->mutex);\n"
                   . "    ngx_log_error(NGX_LOG_WARN, log, 0, \"x\");\n"
                   . "    ngx_shmtx_unlock(&p->mutex);\n}\n" ],
        good  => [ 'src/x/ron_x.c', locked('(void) ron_cond_wait(c, m, 1);'),
                   'src/x/ron_x.c', "void\nf_locked(int a)\n{\n"
                                    . "    ron_mutex_unlock(m);\n"
                                    . "    ron_sleep_us(1);\n"
                                    . "    ron_mutex_lock(m);\n}\n",
                   'src/x/ron_x.c', locked('x(); y();')
                                    . locked('x(); y();') ],
    },

    {
        name  => 'no mutex where an atomic is enough',
        files => $ours,
        find  => sub {
            lines($_[2], qr{(?:mutex|shmtx)_lock\s*\([^;]*\);\s*
                            [\w.>\[\]-]+?\s*(?:\+\+|--|[-+|&]=[^;]*);\s*
                            \w*(?:mutex|shmtx)_unlock\s*\(}x);
        },
        bad  => [ 'src/x/ron_x.c', locked('sh->n++;') ],
        good => [ 'src/x/ron_x.c', locked('sh->n++; sh->sum += n;') ],
    },

    {
        name  => 'no line over 80 columns',
        files => $ours,
        find  => sub {
            my ($path, $raw) = @_;
            utf8::decode($raw);
            return lines($raw, qr{^.{81,}$}m);
        },
        bad  => [ 'src/x/ron_x.c', "\n" . ('x' x 81) . "\n\n" ],
        good => [ 'src/x/ron_x.c', ('x' x 80) . "\n" ],
    },

    {
        name  => 'no tabs',
        files => qr{$all_c|\.(?:t|pm|sh)$},
        find  => sub { lines($_[1], qr{\t}) },
        bad   => [ 'src/x/ron_x.c', "\tint  i;\n" ],
        good  => [ 'src/x/ron_x.c', "    int  i;\n" ],
    },

    {
        name  => 'no space at the end of a line',
        files => $text,
        find  => sub { lines($_[1], qr{[ \t\r]+$}m) },
        bad   => [ 'src/x/ron_x.c', "int  i; \n\n" ],
        good  => [ 'src/x/ron_x.c', "int  i;\n" ],
    },

    {
        name  => 'the last line has its end, and is not empty',
        files => $text,
        find  => sub {
            return $_[1] =~ /(?:^|[^\n])\n\z/ ? () : ('at the end');
        },
        bad  => [ 'src/x/ron_x.c', "int  i;\n\n",
                  'src/x/ron_x.c', "int  i;" ],
        good => [ 'src/x/ron_x.c', "int  i;\n" ],
    },

    {
        name  => 'comments are /* */',
        files => $all_c,
        find  => sub { lines(strip_strings($_[1]), qr{//.*}) },
        bad   => [ 'src/x/ron_x.c', "int  i; // counts\n" ],
        good  => [ 'src/x/ron_x.c', "f(\"http://a\"); /* see http://a */\n" ],
    },

    {
        name  => 'nothing is left for later',
        files => $text,
        find  => sub { lines($_[1], qr{\b(?:$marks)\b}) },
        bad   => [ 'src/x/ron_x.c', '/* TO' . "DO: money */\n" ],
        good  => [ 'src/x/ron_x.c', "char  t[] = \"/tmp/a.XXXXXX\";\n" ],
    },

    {
        name  => 'functions fit a screen',
        files => $ours,
        find  => \&find_long_functions,
        bad   => [ 'src/x/ron_x.c', function_of(71),
                   'ngx_ron_module/a.c', function_of(121) ],
        good  => [ 'src/x/ron_x.c', function_of(70),
                   'ngx_ron_module/a.c', function_of(120) ],
    },

    {
        name  => 'a file has one subject',
        files => $ours,
        find  => sub {
            my $n = $_[1] =~ tr/\n//;
            return $n > $longest_file ? "$n lines" : ();
        },
        bad   => [ 'src/x/ron_x.c', "\n" x 1201 ],
        good  => [ 'src/x/ron_x.c', "\n" x 1200 ],
    },

    {
        name  => 'the first line is empty',
        files => $ours,
        find  => sub { $_[1] =~ /\A\n[^\n]/ ? () : ('line 1') },
        bad   => [ 'src/x/ron_x.c', "/* x */\n" ],
        good  => [ 'src/x/ron_x.c', "\n/* x */\n" ],
    },

    {
        name  => 'a space between a keyword and its parenthesis',
        files => $all_c,
        find  => sub { lines($_[2], qr{\b(?:if|for|while|switch)\(}) },
        bad   => [ 'src/x/ron_x.c', "    if(x) {\n" ],
        good  => [ 'src/x/ron_x.c', "    if (x) {\n" ],
    },

    {
        name  => 'a space before a brace',
        files => $all_c,
        find  => sub { lines($_[2], qr{\)\{|\belse\{|\}else}) },
        bad   => [ 'src/x/ron_x.c', "    if (x){\n" ],
        good  => [ 'src/x/ron_x.c', "    if (x) {\n    } else {\n" ],
    },

    {
        name  => 'the name of a function begins its line',
        files => $all_c,
        find  => \&find_misplaced_names,
        bad   => [ 'src/x/ron_x.c', "\n\nstatic int f(void)\n{\n}\n" ],
        good  => [ 'src/x/ron_x.c', "\n\nstatic int\nf(int a,\n    int b)\n{\n" ],
    },

    {
        name  => 'two empty lines between functions',
        files => qr{^(?:src|ngx_ron_module)/.*\.c$},
        find  => sub { lines($_[1], qr{^\}\n(?!\n\n\S|\n*\z|\n*\#)\n*}m) },
        bad   => [ 'src/x/ron_x.c', "{\n}\n\nint\n" ],
        good  => [ 'src/x/ron_x.c', "{\n}\n\n\nint\n" ],
    },

    {
        name  => 'names of files',
        files => qr{^src/},
        find  => sub {
            return $_[0] =~ m{^src/[a-z]+/ron[a-z0-9_]*\.(?:[ch]|def)$}
                ? () : ('not src/<folder>/ron_<name>.c');
        },
        bad  => [ 'src/x/money.c', "int  i;\n" ],
        good => [ 'src/x/ron_x.c', "int  i;\n" ],
    },

    {
        name  => 'a header guards itself',
        files => qr{^(?:src|ngx_ron_module)/.*\.h$},
        find  => sub {
            return $_[1] =~ /^\#ifndef (\w+)\n\#define \1\n/m ? () : ('');
        },
        bad  => [ 'src/x/ron_x.h', "#define RON_X_H\n" ],
        good => [ 'src/x/ron_x.h', "#ifndef RON_X_H\n#define RON_X_H\n" ],
    },
);

my $subject = qr{^[A-Z][A-Za-z0-9]*: [^A-Z\s].*[^.\s]$};

# ----------------------------------------------------------------------------

delete @ENV{qw(MAKEFLAGS MAKELEVEL MFLAGS)};

my @files = tree();
my %content = map { $_ => slurp($_) } @files;
my %code;

cmp_ok(scalar @files, '>', 10, 'there is a tree to look at');

for my $rule (@rules) {
    subtest $rule->{name} => sub { check_rule($rule) };
}

check_flags();
check_names();
check_dead_files();
check_metrics();
check_commits();

# ---- mutations -------------------------------------------------------------

# Each of them still fits the sources, and who survives is one of them.

is(`$^X t/mutants/run --check 2>&1`, '', 'every mutation fits');

{
    require File::Temp;

    my $bad = File::Temp->new;

    print $bad "src/money/ron_amount.c\n  - if (no such line) {\n  + x\n",
               "  - {\n  + x\n";
    $bad->flush;

    my $said = `$^X t/mutants/run --check $bad 2>&1`;

    isnt($?, 0, 'a mutation that fits nowhere is refused');
    like($said, qr/is not there/, 'and named');
    like($said, qr/is there \d+ times/, 'one that fits twice, too');
    like($said, qr/survivors\.md has what is not in the table/,
         'and a survivor that is none of them');
}

done_testing();


sub check_rule {
    my ($rule) = @_;

    for my $kind (qw(bad good)) {
        my @examples = @{ $rule->{$kind} };

        while (my ($path, $raw) = splice(@examples, 0, 2)) {
            my @found = $path =~ $rule->{files}
                ? $rule->{find}->($path, $raw, strip($raw)) : ();

            ok($kind eq 'bad' ? @found > 0 : @found == 0,
               "the $kind example in $path") or diag("found: @found");
        }
    }

    my @wrong;

    for my $path (grep { $_ =~ $rule->{files} } @files) {
        $code{$path} = strip($content{$path}) if !defined $code{$path};
        push @wrong, map { "$path: $_" }
            $rule->{find}->($path, $content{$path}, $code{$path});
    }

    is(scalar @wrong, 0, 'the tree');
    diag("  $_") for @wrong;
}


# Two objects of one name would overwrite each other: NGINX names them after
# the last folder and the file.

sub check_names {
    is_deeply([ doubled('src/a/ron_x.c', 'src/b/ron_y.c', 'src/c/ron_x.c') ],
              [ 'ron_x.c' ], 'a name used twice is found');
    is_deeply([ doubled(grep { $_ =~ $ours } @files) ], [],
              'no two files have one name');
}


sub doubled {
    my %n;
    $n{ basename($_) }++ for @_;
    return sort grep { $n{$_} > 1 } keys %n;
}


# A source that nothing builds rots; so does a header that nobody includes.

sub check_dead_files {
    my @sources = grep { m{^src/.*\.c$} } @files;
    my %built = map { $_ => 1 } split ' ', `make -s --no-print-directory sources`;

    my @dead = grep { !$built{$_} } @sources;
    is("@dead", '', 'every source in src/ is built');
    ok(!$built{'src/ron_nowhere.c'}, 'what is not there is not built');

    my @glue = grep { m{^ngx_ron_module/.*\.c$} } @files;

    if (@glue) {
        my $config = -e 'config' ? slurp('config') : '';
        my @forgotten = grep { !named_in($config, $_) } @glue;
        is("@forgotten", '', 'config names every source of the glue');
        ok(!named_in("a.c\n", 'ngx_ron_module/b.c'), 'or would be refused');
    }

    my %used;

    for my $path (@files) {
        next if $path !~ $c_file;
        $used{$1} = 1 while $content{$path} =~ /^\s*#\s*include\s*[<"]([^>"]+)/mg;
    }

    my @unused = grep { m{^(?:src|ngx_ron_module)/.*\.(?:h|def)$}
                        && !$used{ basename($_) } } @files;
    is("@unused", '', 'every header is included somewhere');
}


sub named_in {
    my ($config, $path) = @_;
    my $name = basename($path);
    return $config =~ m{/\*\.c\b} || $config =~ /\b\Q$name\E/;
}


# A metric that nothing counts says 0 for ever, which looks like good news.
# A service that is not built may have declared its metrics.

sub check_metrics {
    my $glue = join '', map { $code{$_} //= strip($content{$_}) }
        grep { m{^(?:src|ngx_ron_module)/.*\.c$} } @files;
    my @rows = metric_rows($content{'src/zone/ron_metrics.h'});
    my @absent = grep { !grep { m{^ngx_ron_module/.*_\L$_\E\w*\.c$} } @files }
        qw(REWARDER INTEROP EDGE);

    cmp_ok(scalar @rows, '>', 60, 'there are metrics');
    is_deeply([ uncounted('f(RON_M_A, 1); RON_M_BC', qw(A B C)) ], [ 'B', 'C' ],
              'a metric that nothing counts is found');

    my %absent = map { $_ => 1 } @absent;
    my @wrong =
        uncounted($glue, map { $_->[0] } grep { !$absent{ $_->[1] } } @rows);

    is("@wrong", '', 'every metric is counted somewhere');
}


sub metric_rows {
    my ($families) = $_[0] =~ /\#define RON_METRICS\(X\)(.*?)\n\n\n/s;
    my @rows;

    push @rows, [ $1, $2 ]
        while $families =~ /X\((\w+),\s*"\w+",\s*\w+,\s*\\\s*(\w+),/g;

    return @rows;
}


sub uncounted {
    my ($source, @ids) = @_;
    my %named = map { $_ => 1 } $source =~ /\bRON_M_(\w+)/g;
    return grep { !$named{$_} } @ids;
}


sub check_commits {
    for my $bad ('core: lower area', 'Core: Upper summary', 'no area',
                 'Core: ends with a stop.', 'Core:no space', 'Core: ',
                 'Core: ' . 'x' x 67)
    {
        ok(!good_subject($bad), "refused: $bad");
    }

    for my $good ('Core: x' . 'x' x 65, 'Tests: 3 more', 'Build: "make x"') {
        ok(good_subject($good), "accepted: $good");
    }

  SKIP: {
        my @subjects = git('log', '--no-merges', '--format=%s', 'HEAD');
        skip 'no git here, or no commit', 1 if !@subjects;

        my @wrong = grep { !good_subject($_) } @subjects;
        is(scalar @wrong, 0, scalar(@subjects) . ' commit subjects');
        diag("  $_") for @wrong;
    }
}


sub good_subject {
    return length($_[0]) <= 72 && $_[0] =~ $subject;
}


# ---- finders ---------------------------------------------------------------

sub find_system_calls {
    my ($path, $raw, $code) = @_;

    my @allowed = map { $_->[1] } grep { $path =~ $_->[0] } @may_call;
    my @found;

    while ($code =~ /(?<![\w.>])($system_calls)\s*\(/g) {
        my ($call, $at) = ($1, pos($code));
        next if grep { $call =~ $_ } @allowed;

        push @found, 'line ' . line_of($code, $at) . ": $call()";
    }

    return @found;
}


sub locked {
    my ($body) = @_;
    return "\nvoid\nf(void)\n{\n    ron_mutex_lock(m);\n    $body\n"
           . "    ron_mutex_unlock(m);\n}\n";
}


# From a lock to the next unlock in the text.  A function that takes a lock
# and leaves it to others is refused, except the lock functions themselves.

sub find_held_locks {
    my ($path, $raw, $code) = @_;
    my $mutexes = $code =~ /mutex_(?:un)?lock|shmtx_(?:un)?lock/;
    my @found;

    while ($code =~ /^(\w+)\([^{}]*?\)\n\{\n(.*?)^\}|^\{\n(.*?)^\}/msg) {
        my ($name, $body, $at) = ($1, $2, $-[2]);
        ($name, $body, $at) = ('', $3, $-[3]) if !defined $body;
        next if $name =~ /_(?:un)?lock$/;

        # "Caller holds the lock": from the start, and again at the end.

        $body = " ron_mutex_lock(); $body ron_mutex_unlock();"
            if $name =~ /_locked$/ && $mutexes;

        while ($body =~ /\b(?:ron_mutex|ngx_shmtx|ngx_rwlock)_(?:w|r)?lock
                         \s*\(([^;]*)\);/xg)
        {
            my ($lock, $from) = ($1, pos($body));
            my $line = line_of($code, $at + $from);
            my $rest = substr($body, $from);

            if ($rest !~ /\A(.*?)\b(?:ron_mutex|ngx_shmtx|ngx_rwlock)_unlock/s)
            {
                push @found, "line $line: lock without unlock";
                next;
            }

            my $held = $1;
            $held =~ s/\bron_cond_wait\s*\([^;]*?,\s*\Q$lock\E\s*,//g;

            push @found, "line $line: $1() under a lock"
                while $held =~ /\b(ron_log|ron_file_\w+|ron_dir_\w+|ron_sleep_us
                                 |ron_cond_wait|ron_thread_join
                                 |sqlite3_(?!interrupt\b)\w+
                                 |ngx_log_error|ngx_log_debug\d?|ngx_read_file
                                 |ngx_write_file|ngx_msleep|ngx_add_timer
                                 |send|recv|read|write|fsync|fdatasync|poll
                                 )\s*\(/xg;
        }
    }

    return @found;
}


# What `make` compiles with, unless somebody says otherwise.
sub check_flags {
    local @ENV{qw(MAKEFLAGS MAKELEVEL CFLAGS WERROR)};
    delete @ENV{qw(MAKEFLAGS MAKELEVEL CFLAGS WERROR)};

    my $flags = `make -s flags 2>&1`;

    like($flags, qr/(?:^|\s)\Q$_\E\s/, "make compiles with $_")
        for qw(-Werror -Wall -Wextra -Wshadow -Wmissing-prototypes -Wvla);
}


sub function_of {
    my ($n) = @_;
    return "\nint\nf(void)\n{\n" . "    x();\n" x ($n - 2) . "}\n";
}


sub find_long_functions {
    my ($path, $raw) = @_;
    my ($cap) = map { $longest_function{$_} }
        grep { index($path, $_) == 0 } keys %longest_function;
    my @found;

    while ($raw =~ /^\{\n(.*?)^\}/msg) {
        my $n = 2 + ($1 =~ tr/\n//);
        push @found, 'line ' . line_of($raw, $-[0]) . ": $n lines"
            if $n > $cap;
    }

    return @found;
}


sub find_misplaced_names {
    my ($path, $raw, $code) = @_;
    my @found;

    while ($code =~ /\n[ ]*\n((?:\S[^\n]*\n(?:[ ]+[^\n]*\n)*)+)\{\n/g) {
        my ($head, $at) = ($1, $-[1]);
        next if $head =~ /[;={]/ || $head !~ /\(/;

        push @found, 'line ' . line_of($code, $at)
            if $head !~ /^\w+\(/m;
    }

    return @found;
}


# ---- text ------------------------------------------------------------------

sub lines {
    my ($text, $pattern) = @_;
    my @found;

    while ($text =~ /($pattern)/mg) {
        my $what = $1;
        my $line = line_of($text, $-[0]);

        $what =~ s/\s+/ /g;
        push @found, "line $line: " . substr($what, 0, 50);
        last if $-[0] == $+[0];
    }

    return @found;
}


sub line_of {
    my ($text, $offset) = @_;
    return 1 + (substr($text, 0, $offset) =~ tr/\n//);
}


# Comments, strings and characters become spaces; lines stay where they are.

sub strip {
    my ($text) = @_;

    $text =~ s{
        ( /\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
    }{ my $s = $1; $s =~ s/[^\n]/ /g; $s }gsex;

    return $text;
}


sub strip_strings {
    my ($text) = @_;

    $text =~ s{
        ( /\*.*?\*/ | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
    }{ my $s = $1; $s =~ s/[^\n]/ /g; $s }gsex;

    return $text;
}


sub slurp {
    my ($path) = @_;

    open(my $file, '<:raw', $path) or die "$path: $!";
    local $/;
    my $text = <$file>;

    return defined $text ? $text : '';
}


# Files of the repository and those that are about to be; without git, all.

sub tree {
    my @list = git('ls-files', '-co', '--exclude-standard');

    if (!@list) {
        @list = split /\n/, `find . -type f -not -path './.git/*' \\
            -not -path './build/*' -printf '%P\\n'`;
    }

    return sort grep { -f && !-l } @list;
}


sub git {
    my (@args) = @_;

    open(my $out, '-|', 'sh', '-c',
         'exec git -c safe.directory="*" "$@" 2>/dev/null', 'git', @args)
        or return;
    chomp(my @lines = <$out>);
    close($out);

    return @lines;
}
