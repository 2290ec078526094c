#!/usr/bin/perl

# The golden rule and the registry, in the text: no lock over anything that
# yields, locks in their order, and every lock, queue and wait in
# src/zone/ron_registry.h.  What a function does, it does by way of those that
# it calls, whichever file they are in.  Each rule refuses bad examples and
# accepts good ones before the tree is looked at.
#
# While a program runs, RON_LOCK_CHECK asserts the same (t/unit/lock_test.c).

use strict;
use warnings;

use Test::More;

# What lets another thread, process or client decide when it goes on.

my %yields = map { $_ => 1 } qw(
    ron_log ron_file_open ron_file_size ron_file_truncate ron_file_pread
    ron_file_pwrite ron_file_sync ron_dir_sync ron_file_rename ron_file_unlink
    ron_dir_make ron_dir_each ron_file_lock ron_sleep_us ron_thread_join
    read write readv writev send sendto sendmsg recv recvfrom recvmsg poll
    ppoll epoll_wait accept4 accept connect fsync fdatasync
    ngx_log_error ngx_log_debug ngx_log_error_core ngx_read_file
    ngx_write_file ngx_msleep ngx_post_event ngx_thread_task_post
    ngx_add_timer ngx_handle_read_event ngx_handle_write_event
    ngx_http_post_request ngx_http_run_posted_requests
    ngx_http_finalize_request ngx_http_send_header ngx_http_output_filter
    ngx_http_read_client_request_body ngx_http_subrequest
    sqlite3_open_v2 sqlite3_close sqlite3_exec sqlite3_prepare_v2
    sqlite3_prepare_v3 sqlite3_step sqlite3_finalize sqlite3_reset
    sqlite3_wal_checkpoint_v2 sqlite3_backup_step
);
$yields{"ngx_log_debug$_"} = 1 for 0 .. 8;

# The port is below the rules: its functions are the ones above.

my $port = qr{^src/base/ron_(?:port_posix|lock|lock_wrap)\.c$|^src/ctl/};
my $lock_c = 'ngx_ron_module/ngx_ron_lock.c';

my $registry = slurp('src/zone/ron_registry.h');
my %order = table('LOCKS') =~ /X\((\w+),\s*"\w+",\s*(\d+)/g;
my %nap = table('NAPS') =~ /X\((\w+),\s*([^,]+?),/g;
my %list = map { $_ => 1 } list_rows();

cmp_ok(scalar keys %order, '>=', 12, 'locks of the registry');
cmp_ok(scalar keys %nap, '>', 10, 'its naps');
cmp_ok(scalar keys %list, '>', 2, 'and lists');

my %code = map { $_ => strip(slurp($_)) }
    glob 'src/*/*.[ch] ngx_ron_module/*.[ch]';
my %tree = facts({}, %code);

my @rules = (
    {
        name => 'nothing yields while a lock is held',
        find => sub { grep { /\bunder\b|without/ } held(@_) },
        bad  => [
            'a call' => locked('ron_file_sync(fd);'),
            'SQLite' => locked('sqlite3_step(s);'),
            'a log line' => locked('ron_log(RON_LOG_WARN, "x");'),
            'a timer' => locked('ngx_add_timer(ev, t);'),
            'another condition' => locked('ron_cond_wait(c, o->other, t);'),
            'a return' => locked("if (x) {\n        return;\n    }"),
            'no unlock' => function('f', 'ron_mutex_lock(m->mutex);'),
            'a function that does'
                => function('g', 'ron_file_sync(fd);') . locked('g();'),
            'one that calls one that does'
                => function('h', 'g();') . function('g', 'ron_sleep_us(t);')
                   . locked('h();'),
            'one of another file' => locked('ron_history_open(s, h, w);'),
            'after a way out' => locked("if (x) {\n"
                . "        ron_mutex_unlock(m->mutex);\n        return;\n"
                . "    }\n\n    ron_sleep_us(t);"),
            'taken again' => locked("ron_mutex_unlock(m->mutex);\n"
                . "    x();\n    ron_mutex_lock(m->mutex);\n"
                . "    ron_sleep_us(t);"),
            'a caller holds it'
                => locked('x();') . function('g_locked', 'ron_sleep_us(t);'),
            'the mutex of a zone' => function('f',
                "ngx_shmtx_lock(&p->mutex);\n    ngx_log_error(a, b, 0, c);\n"
                . "    ngx_shmtx_unlock(&p->mutex);"),
        ],
        good => [
            'what does not' => locked('x();') . function('x', 'y = 1;'),
            'its own condition'
                => locked('(void) ron_cond_wait(c, m->mutex, t);'),
            'a way out' => locked("if (x) {\n"
                . "        ron_mutex_unlock(m->mutex);\n"
                . "        ron_sleep_us(t);\n        return;\n    }"),
            'given back in between' => locked("ron_mutex_unlock(m->mutex);\n"
                . "    ron_sleep_us(t);\n    ron_mutex_lock(m->mutex);"),
            'a member of that name' => locked('c->read(c); x.send(1);'),
            'who is asked to wake' => locked('ron_cond_signal(c);'),
        ],
    },

    {
        name => 'locks are taken in their order',
        find => sub { grep { /order|no row/ } held(@_) },
        bad  => [
            'downwards' => nested('TAGS', 'ENGINE'),
            'the same' => nested('TAGS', 'TAGS'),
            'by a function' => rows('TAGS', 'ENGINE')
                . function('g', "ron_mutex_lock(b->mutex);\n"
                                . "    ron_mutex_unlock(b->mutex);")
                . function('f', "ron_mutex_lock(a->mutex);\n    g();\n"
                                . "    ron_mutex_unlock(a->mutex);"),
            'a slab' => rows('THREAD', 'LOG') . function('f',
                "ron_mutex_lock(a->mutex);\n    p = ngx_slab_alloc(x, 1);\n"
                . "    ron_mutex_unlock(a->mutex);"),
            'of nobody' => rows('TAGS', 'LOG') . function('f',
                "ron_mutex_lock(a->mutex);\n    ron_mutex_lock(x->mutex);\n"
                . "    ron_mutex_unlock(x->mutex);\n"
                . "    ron_mutex_unlock(a->mutex);"),
        ],
        good => [
            'upwards' => nested('ENGINE', 'TAGS'),
            'one after the other' => rows('TAGS', 'ENGINE') . function('f',
                "ron_mutex_lock(a->mutex);\n    ron_mutex_unlock(a->mutex);\n"
                . "    ron_mutex_lock(b->mutex);\n"
                . "    ron_mutex_unlock(b->mutex);"),
        ],
    },

    {
        name => 'every lock is the port\'s, or that of a zone',
        find => sub {
            my ($path, $code) = @_;
            return () if $path =~ $port;
            return found($code, qr{\b(?:pthread_(?!self\b)\w+|mtx_\w+|sem_\w+
                |ngx_thread_(?:mutex|cond)_\w+|ngx_shmtx_create|ngx_rwlock_\w+
                |ngx_rw_?lock|ngx_spinlock|ngx_trylock|flockfile)\s*\(
                |\bpthread_(?:mutex|cond|rwlock|spinlock)_t\b}x);
        },
        bad  => [
            'pthread_mutex_lock' => "    pthread_mutex_lock(&m);\n",
            'its type' => "    pthread_mutex_t  m;\n",
            'nginx threads' => "    ngx_thread_mutex_lock(m, log);\n",
            'another of nginx' => "    ngx_shmtx_create(&m, p, n);\n",
            'a spinlock' => "    ngx_spinlock(&l, 1, 2);\n",
            'a semaphore' => "    sem_wait(&s);\n",
        ],
        good => [ 'the port' => "    ron_mutex_lock(m);\n" ],
    },

    {
        name => 'every lock is a row',
        find => sub {
            my ($path, $code) = @_;
            my @wrong;

            return () if $path =~ $port || $path =~ /ron_port\.h$/;

            while ($code =~ /\bron_mutex_create\s*\(([^;(){}]*)\)/g) {
                my ($args, $at) = ($1, $-[0]);
                next if $args =~ /,\s*RON_LOCK_(\w+)\s*$/
                        && defined $order{$1};
                push @wrong, line($code, $at) . ": $args";
            }

            return @wrong;
        },
        bad  => [
            'none' => "    s = ron_mutex_create(&m->mutex);\n",
            'a number' => "    s = ron_mutex_create(&m->mutex, 3);\n",
            'one that is not there'
                => "    s = ron_mutex_create(&m->mutex, RON_LOCK_NONE);\n",
        ],
        good => [ 'a row'
                  => "    s = ron_mutex_create(&m->mutex, RON_LOCK_TAGS);\n" ],
    },

    {
        name => 'no state of src/ is without an owner',
        find => \&find_statics,
        bad  => [
            'a counter' => "static uint64_t  ron_n;\n",
            'a table' => "static x_t  ron_table[10];\n",
            'set at the start' => "static int  ron_on = 1;\n",
            'of everybody' => "x_t  *ron_newest;\n",
            'in a function' => "{\n    static int  n;\n}\n",
            'a pointer that moves' => "static const char  *ron_name = a;\n",
        ],
        good => [
            'what never changes' => "static const int  ron_n = 1;\n",
            'names' => "static const char *const  ron_names[] = {\n",
            'an atomic' => "static _Atomic uint32_t  ron_n;\n"
                           . "static atomic_uint_fast64_t  ron_m;\n",
            'a thread has its own' => "static _Thread_local int  ron_err;\n",
            'a function' => "static int ron_f(int a);\nint ron_g(void);\n"
                            . "static ron_x_t *ron_f(int a,\n    int b);\n",
            'a type' => "typedef struct x_s  x_t;\nextern int  ron_x;\n",
        ],
    },

    {
        name => 'every wait has a length of the registry',
        find => \&find_waits,
        bad  => [
            'a number' => "    ron_sleep_us(5000);\n",
            'a timer' => "    ngx_add_timer(ev, 500);\n",
            'a condition' => "    (void) ron_cond_wait(c, m, 1000);\n",
            'a name for one' => "#define RON_X_NAP  5000\n"
                                . "    ron_sleep_us(RON_X_NAP);\n",
            'a busy time-out' => "    (void) sqlite3_busy_timeout(db, 100);\n",
            'a time-out that nobody uses yet'
                => "#define RON_X_TIMEOUT  5000\n",
            'another value than its row' => "#define RON_HISTORY_BUSY_MS  7\n",
            'as an argument of its own' => "    ron_thread_join(t, 60000);\n",
        ],
        good => [
            'a row' => "    ms = ron_timeout_info(RON_TIMEOUT_JOIN)->ms;\n"
                       . "    ron_thread_join(t, ms);\n",
            'a directive' => "    ngx_add_timer(ev, conf->timeout);\n",
            'at once' => "    ron_thread_join(t, 0); ngx_add_timer(ev, 1);\n",
            'a nap' => "#define RON_HISTORY_BUSY_MS   100\n",
            'what is no time' => "#define RON_X_MAX  5000\n",
        ],
    },

    {
        name => 'every queue is a row',
        find => \&find_queues,
        bad  => [
            'of the file' => "static ngx_queue_t  ngx_ron_more;\n",
            'a member' => "typedef struct {\n    ngx_queue_t  later;\n} x_t;\n",
            'a ring' => "static x_t  ron_x_ring[100];\n",
            'a list' => "struct x_s {\n    ron_x_list_t  backlog;\n};\n",
            'where it begins, and how many' => "struct x_s {\n"
                . "    ron_x_t  *waits;\n    uint32_t  wait_at;\n"
                . "    uint32_t  wait_n;\n};\n",
            'of pointers' => "typedef struct {\n    x_t  **later;\n"
                . "    int  a;\n    uint64_t  later_head;\n"
                . "    uint64_t  later_tail;\n} x_t;\n",
            'of a fixed size' => "typedef struct {\n    x_t  page[3];\n"
                . "    x_t  *next;\n    size_t  head, tail;\n} x_t;\n",
            'and what was taken out' => "typedef struct {\n"
                . "    x_t  page[3];\n    uint64_t  given;\n"
                . "    _Atomic uint64_t  taken;\n} x_t;\n",
            'a ring of the file' => "static x_t  *ron_x;\n"
                . "static ngx_uint_t  ron_x_at;\n"
                . "static ngx_uint_t  ron_x_n;\n",
        ],
        good => [
            'a link of one' => "typedef struct {\n    ngx_queue_t  queue;\n"
                               . "} x_t;\n",
            'what is in one' => "    ngx_queue_insert_tail(&ron_streams, q);\n",
            'a local' => "{\n    ngx_queue_t  *q, all;\n}\n",
            'an array' => "typedef struct {\n    x_t  **peers;\n"
                . "    uint32_t  peer_n;\n    uint64_t  sent_at;\n} x_t;\n",
            'a local ring' => function('f', "x_t  *x;\n"
                . "    uint32_t  x_at;\n    uint32_t  x_n;\n"),
            'two structures' => "typedef struct {\n    x_t  *x;\n"
                . "    uint32_t  x_at;\n} x_t;\n\ntypedef struct {\n"
                . "    uint32_t  x_n;\n} y_t;\n",
        ],
    },
);

for my $rule (@rules) {
    subtest $rule->{name} => sub {
        for my $kind (qw(bad good)) {
            my @examples = @{ $rule->{$kind} };

            while (my ($what, $text) = splice @examples, 0, 2) {
                my $path = 'src/x/ron_x.c';
                my $bare = strip($text);
                my @got = $rule->{find}->($path, $bare,
                                          facts(\%tree, $path => $bare));

                ok($kind eq 'bad' ? @got : !@got, "$kind: $what")
                    or diag("found: @got");
            }
        }

        my @wrong;

        for my $path (sort keys %code) {
            push @wrong, map { "$path: $_" }
                $rule->{find}->($path, $code{$path}, %tree);
        }

        is("@wrong", '', 'the tree') or diag(join "\n", @wrong);
    };
}

# A row that nothing is made for is one that was forgotten.

my $all = join '', @code{ grep { $_ !~ /ron_registry/ } keys %code };

is(join(' ', grep { $_ ne 'SLAB' && $all !~ /\bRON_LOCK_$_\b/ }
             sort keys %order), '', 'no lock of the registry is without one');
is(join(' ', grep { $all !~ /\b(?:NGX_)?$_\b/ } sort keys %nap), '',
   'no nap is');
is(join(' ', grep { my ($path, $name) = split / /;
                    ($code{$path} || '') !~ /\b$name\b/ } sort keys %list),
   '', 'no list is');

done_testing();


# ---- finders ---------------------------------------------------------------

# What functions call, and which locks they take by themselves and by those
# that they call; and the row of a mutex, by folder and expression.

sub facts {
    my ($base, %text) = @_;
    my %calls;
    my %takes = map { $_ => { %{ $base->{takes}{$_} } } }
        keys %{ $base->{takes} || {} };
    my %yield = %{ $base->{yield} || {} };
    my %row = %{ $base->{row} || {} };

    for my $path (keys %text) {
        my ($folder) = $path =~ m{^(.*)/};

        while ($text{$path} =~ /ron_mutex_create\s*\(\s*&([\w.>-]+),\s*
                                RON_LOCK_(\w+)/xg)
        {
            $row{"$folder $1"} = $2;
        }
    }

    for my $path (grep { $_ !~ $port && $_ ne $lock_c } keys %text) {
        my ($folder) = $path =~ m{^(.*)/};

        for my $f (functions($text{$path})) {
            my ($name, $body) = @$f;

            # who is called with the lock gives it back for what waits

            next if $name =~ /_locked$/;

            $calls{$name}{$1} = 1
                while $body =~ /(?<![\w.>])([a-z]\w*)\s*\(/g;

            while ($body =~ /\bron_mutex_lock\s*\(([^;]*)\);/g) {
                my $id = $row{"$folder $1"};
                $takes{$name}{$id} = 1 if $id;
            }

            $takes{$name}{SLAB} = 1
                if $body =~ /\bngx_(?:shmtx_lock|slab_(?:c?alloc|free))\s*\(/;
        }
    }

    for (my $more = 1; $more; ) {
        $more = 0;

        for my $name (keys %calls) {
            for my $callee (keys %{ $calls{$name} }) {
                if (!$yield{$name} && ($yields{$callee} || $yield{$callee})) {
                    $yield{$name} = $callee;
                    $more = 1;
                }

                for my $id (keys %{ $takes{$callee} || {} }) {
                    next if $takes{$name}{$id};
                    $takes{$name}{$id} = 1;
                    $more = 1;
                }
            }
        }
    }

    return (row => \%row, takes => \%takes, yield => \%yield);
}


# Follows the braces of each function.  A lock that is given back in a block
# which leaves is held after that block.

sub held {
    my ($path, $code, %facts) = @_;
    my ($folder) = $path =~ m{^(.*)/};
    my @found;

    return () if $path =~ $port || $path eq $lock_c;

    for my $f (functions($code)) {
        my ($name, $body, $at) = @$f;
        next if $name =~ /_(?:un)?lock$/;

        my ($depth, @locks) = (0);
        push @locks, { expr => '', depth => -1 }
            if $name =~ /_locked$/ && $code =~ /\bron_mutex_lock\b/;

        while ($body =~ /([{}])|\b(return|goto|break|continue)\b
            |\b(?:ron_mutex|ngx_shmtx)_(un)?lock\s*\(&?([^;]*)\);
            |(?<![\w.>])([a-z]\w*)\s*\((?:[^;()]*,\s*([\w.>-]+)\s*,)?/xg)
        {
            my ($brace, $jump, $un, $expr, $call, $arg)
                = ($1, $2, $3, $4, $5, $6);
            my $where = line($code, $at + $-[0]);
            my @now = grep { !defined $_->{given} } @locks;

            if (defined $brace && $brace eq '{') {
                $depth++;

            } elsif (defined $brace) {
                for my $l (grep { defined $_->{given} } @locks) {
                    next if $l->{given} != $depth || $depth <= $l->{depth};
                    delete $l->{given} if $l->{left};
                }
                $depth--;
                $_->{given} = $depth for grep {
                    defined $_->{given} && $_->{given} > $depth } @locks;

            } elsif (defined $jump) {
                $_->{left} = 1 for grep { defined $_->{given} } @locks;
                push @found, "$where: returns without giving back"
                    if $jump eq 'return' && grep { $_->{expr} ne '' } @now;

            } elsif (defined $expr && $un) {
                my ($l) = grep { $_->{expr} eq $expr || $_->{expr} eq '' } @now;
                next if !$l;

                if ($depth <= $l->{depth}) {
                    @locks = grep { $_ != $l } @locks;
                } else {
                    $l->{given} = $depth;
                    $l->{left} = 0;
                }

            } elsif (defined $expr) {
                push @found, disorder($where, $folder, \%facts, $expr, @now);
                my ($l) = grep { defined $_->{given}
                    && ($_->{expr} eq $expr || $_->{expr} eq '') } @locks;
                if ($l) {
                    delete $l->{given};
                } else {
                    push @locks, { expr => $expr, depth => $depth,
                        slab => $body =~ /shmtx_lock\s*\(&?\Q$expr/ ? 1 : 0 };
                }

            } elsif (@now && $call eq 'ron_cond_wait') {
                push @found, "$where: $call() under another lock"
                    if grep { $_->{expr} ne '' && $_->{expr} ne ($arg || '') }
                       @now;

            } elsif (@now) {
                my $why = $facts{yield}{$call};
                push @found, "$where: $call()" . ($why ? " by $why()" : '')
                    . ' under a lock' if $yields{$call} || $why;

                my @ids = $call =~ /^ngx_slab_(?:c?alloc|free)$/ ? ('SLAB')
                    : keys %{ $facts{takes}{$call} || {} };
                push @found, map { wrong($where, $folder, \%facts, $_, @now) }
                    @ids;
            }
        }

        push @found, line($code, $at) . ": $name() without unlock"
            if grep { !defined $_->{given} && $_->{expr} ne '' } @locks;
    }

    return @found;
}


sub disorder {
    my ($where, $folder, $facts, $expr, @now) = @_;

    return () if !grep { $_->{expr} ne '' } @now;

    my $id = $facts->{row}{"$folder $expr"};
    return "$where: no row for $expr" if !$id;

    return wrong($where, $folder, $facts, $id, @now);
}


sub wrong {
    my ($where, $folder, $facts, $id, @now) = @_;
    my @found;

    for my $l (grep { $_->{expr} ne '' } @now) {
        my $held = $l->{slab} ? 'SLAB' : $facts->{row}{"$folder $l->{expr}"};

        push @found, "$where: no row for $l->{expr}" if !$held;
        push @found, "$where: $id after $held is not the order"
            if $held && $order{$id} <= $order{$held};
    }

    return @found;
}


# State is in what an owner allocated, or in a local of its thread; a variable
# of a file could be reached by each thread.  The sink of log lines is set
# before the first one starts.

sub find_statics {
    my ($path, $code) = @_;
    my @found;

    return () if $path !~ m{^src/(?!ctl/).*\.c$} || $path =~ m{/ron_log\.c$};

    while ($code =~ /^((?:[ ]*static\s+|(?!typedef|extern|return|struct\s+\w+\s*\{)
                      (?=[a-z_]\w*\s+\**\w+\s*[;=\[]))
                      [^;={}()]*?\b(\w+)(?:\[[^\]]*\])*)\s*[;=]/mgx)
    {
        my ($text, $name, $at) = ($1, $2, $-[0]);

        next if $text =~ /\b(?:_Atomic|_Thread_local|atomic_\w+)\b/;
        next if $text =~ /\*\s*const\b/
                || $text =~ /\bconst\b/ && $text !~ /\*/;

        push @found, line($code, $at) . ": $name";
    }

    return @found;
}


# The last argument of what waits is no number, and a name for one is a row;
# so is a name that says that it is a time-out.

sub find_waits {
    my ($path, $code) = @_;
    my (@found, %defined);

    return () if $path =~ $port || $path =~ /ron_registry/;

    while ($code =~ /^[ ]*#define\s+(\w+)\s+(\S.*?)\s*$/mg) {
        my ($name, $value, $at) = ($1, $2, $-[0]);
        next if $value !~ /^(?:UINT64_C\()?\d/;

        # src/ does not know the server, so its prefix is not in the table

        $defined{$name} = $value;
        $name =~ s/^NGX_//;
        push @found, line($code, $at) . ": $name $value"
            if ($name =~ /_(?:TIMEOUT|NAP|TICK|PAUSE|BUSY|BUSY_MS|WAIT_US)$/
                || exists $nap{$name})
               && (!exists $nap{$name} || $nap{$name} ne $value);
    }

    while ($code =~ /\b(ngx_add_timer|ron_cond_wait|ron_thread_join|ron_sleep_us
                     |sqlite3_busy_timeout|ngx_msleep)\s*
                     \((?:(?:[^;(){}]|\([^;()]*\))*,)?\s*([^;,()]+)\)/xg)
    {
        my ($call, $long, $at) = ($1, $2, $-[0]);
        push @found, line($code, $at) . ": $call($long)"
            if ($long =~ /^\d+$/ && $long > 1)
               || ($long =~ /^(?:NGX_)?([A-Z_]+)$/ && exists $defined{$long}
                   && !exists $nap{$1});
    }

    return @found;
}


# A queue is a head that is a static of a file or a member of a structure; a
# member called `queue` that is no head is the link of what is in one.

sub find_queues {
    my ($path, $code) = @_;
    my @found;

    return () if $path =~ m{^src/ctl/};

    while ($code =~ /^(?:static\s+|[ ]{4})(?:ngx_queue_t|\w+_list_t
                     |(?=\w+\s+\w+_ring\[)\w+)\s+(\w+)(\[\w+\])?;/mgx)
    {
        my ($name, $at) = ($1, $-[0]);
        my $before = substr($code, 0, $at);

        # in the body of a function it is a local
        next if $before =~ /\n\{\n(?:(?!\n\}).)*\z/s
                && substr($code, $at, 6) ne 'static';
        next if $name eq 'queue' && $code =~ /ngx_queue_t\s+queue;/
                && substr($code, $at) =~ /^\s+ngx_queue_t/;

        push @found, line($code, $at) . ": $name" if !$list{"$path $name"};
    }

    push @found, find_rings($path, $code);

    return @found;
}


# A queue without a head is an array and two counters beside it: where it
# begins and how many are in it, or how many came and how many left.

sub find_rings {
    my ($path, $code) = @_;
    my (@found, @places);

    push @places, [ $1, $-[1] ]
        while $code =~ /\bstruct\b[^;(){}]*\{\n(.*?)^\}/msg;

    # what is static in a file is side by side too
    (my $static = $code) =~ s/^(?!static\s[^(){}]*;$).*$/' ' x length $&/gme;
    push @places, [ $static, 0 ];

    for my $place (@places) {
        my ($text, $from) = @$place;
        my (@arrays, %counter);

        while ($text =~ /^(?:static|[ ]{4})\s*((?:\w+\s+)+)([^;(){}=]+)[=;]/mg) {
            my ($type, $names, $at) = ($1, $2, $-[0]);

            for my $name (split /,\s*/, $names) {
                my ($stars, $word, $size) = $name =~ /^(\**)(\w+)(\[)?/
                    or next;

                if ($stars || $size) {
                    push @arrays, { name => $word, at => $at,
                                    fixed => defined $size };
                } elsif ($type =~ /\b(?:u?int\d*_t|size_t|unsigned|int|long
                                   |ngx_u?int_t|atomic_\w+)\b/x)
                {
                    $counter{$word} = $at;
                }
            }
        }

        for my $first (sort keys %counter) {
            my ($x, $end) = $first =~ /^(?:(\w+)_)?(at|head|given)$/ or next;
            my $other = { at => 'n', head => 'tail', given => 'taken' }->{$end};

            next if $end eq 'at' && !defined $x;
            next if !exists $counter{defined $x ? "${x}_$other" : $other};

            # the array is called after them, or is the one before them

            my $at = $counter{$first};
            my @before = grep { $_->{at} < $at } @arrays;
            my ($array) = grep { defined $x && $_->{name} =~ /^${x}s?$/ }
                @arrays;
            $array ||= (grep { $_->{fixed} } @before)[-1] || $before[-1];

            my $name = $array ? $array->{name} : $first;
            push @found, line($code, $from + $at) . ": $name"
                if !$list{"$path $name"};
        }
    }

    return @found;
}


# ---- examples and text -----------------------------------------------------

sub function {
    my ($name, $body) = @_;
    return "\nvoid\n$name(void)\n{\n    $body\n}\n";
}


sub locked {
    my ($body) = @_;
    return function('f', "ron_mutex_lock(m->mutex);\n    $body\n"
                         . "    ron_mutex_unlock(m->mutex);");
}


sub rows {
    my ($first, $second) = @_;
    return function('make', "ron_mutex_create(&a->mutex, RON_LOCK_$first);\n"
                    . "    ron_mutex_create(&b->mutex, RON_LOCK_$second);");
}


sub nested {
    return rows(@_) . function('f', "ron_mutex_lock(a->mutex);\n"
        . "    ron_mutex_lock(b->mutex);\n    ron_mutex_unlock(b->mutex);\n"
        . "    ron_mutex_unlock(a->mutex);");
}


sub functions {
    my ($code) = @_;
    my @list;

    push @list, [ $1, $2, $-[2] ]
        while $code =~ /^(\w+)\([^{};]*?\)\n\{\n(.*?)^\}/msg;

    return @list;
}


sub found {
    my ($code, $pattern) = @_;
    my @list;

    push @list, line($code, $-[0]) . ": $&" while $code =~ /$pattern/g;

    return @list;
}


sub line {
    my ($text, $offset) = @_;
    return 'line ' . (1 + (substr($text, 0, $offset) =~ tr/\n//));
}


sub list_rows {
    my @rows;
    my $text = table('LISTS');

    push @rows, "$1 $2" while $text =~ /X\("([^"]+)",\s*"(\w+)"/g;

    return @rows;
}


sub table {
    my ($name) = @_;
    my ($rows) = $registry =~ /#define RON_$name\(X\)(.*?)\n\n\n/s;
    $rows = '' if !defined $rows;
    $rows =~ s/\\\n//g;
    return $rows;
}


sub strip {
    my ($text) = @_;

    $text =~ s{
        ( /\*.*?\*/ | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
    }{ my $s = $1; $s =~ s/[^\n]/ /g; $s }gsex;

    return $text;
}


sub slurp {
    my ($path) = @_;

    open(my $file, '<', $path) or die "$path: $!";
    local $/;
    return scalar <$file>;
}
