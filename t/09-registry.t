#!/usr/bin/perl

# The tables of docs/CONCURRENCY.md are those of the registry: a program that
# is compiled from it prints them, and they have to be the same to the byte.
#
#     t/09-registry.t --write     puts them there

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use File::Temp;
use Test::More;
use Time::Local qw(timegm);

my $build = $ENV{RON_BUILD} || 'build';
my $cc = $ENV{CC} || 'cc';
my $doc = 'docs/CONCURRENCY.md';

plan skip_all => "no $build/libron.a" if !-e "$build/libron.a";

my $dir = File::Temp->newdir;
my %table = tables();
my $text = slurp($doc);

if (@ARGV && $ARGV[0] eq '--write') {
    for my $name (keys %table) {
        $text =~ s/(<!-- $name: begin -->\n).*?(<!-- $name: end -->)/$1$table{$name}$2/s;
    }

    open(my $out, '>', $doc) or die "$doc: $!";
    print $out $text;
    close($out) or die "$doc: $!";
}

for my $name (qw(queues lists locks timeouts naps)) {
    my ($documented) = $text
        =~ /^<!-- $name: begin -->\n(.*?)^<!-- $name: end -->$/ms;

    is($documented, $table{$name}, "$name: documented as they are");
    cmp_ok(scalar(() = $table{$name} =~ /^\|/mg), '>', 4, 'and not none');
}

# every queue bounded, with a policy; locks with an order and an owner

my $n = 0;

for my $row (rows($table{queues})) {
    my ($name, $service, $kind, $capacity, $policy, $label, $owner) = @$row;

    $n++;
    ok($capacity =~ /^[1-9]\d*$/ && $kind =~ /^(?:mpsc|broadcast)$/
       && $policy =~ /^(?:reject|drop_oldest|retry_once|wait)$/
       && $label =~ /^(?:q|queue)$/ && $owner ne '',
       "$service $name is bounded");
}

cmp_ok($n, '>=', 6, 'queues');

my %seen;
my $before = 0;

for my $row (rows($table{locks})) {
    my ($name, $order, $owner) = @$row;

    ok($order > $before && $owner ne '' && !$seen{$name}++,
       "$name has its place and an owner");
    $before = $order;
}

ok($_->[1] =~ /^[1-9]\d*$/ && $_->[2] ne '', "time-out $_->[0]")
    for rows($table{timeouts});

# a time-out is what code waits for, not what a table says that it does

my $code = join "\n", map { code($_) }
    grep { !m{/ron_registry\.[ch]$} } glob 'src/*/*.[ch] ngx_ron_module/*.[ch]';
my @timeouts = slurp('src/zone/ron_registry.h')
    =~ /#define RON_TIMEOUTS\(X\)(.*?)\n\n/s
    ? $1 =~ /X\((\w+),/g : ();

is(scalar @timeouts, scalar(rows($table{timeouts})), 'all of them');
is_deeply([ unused("ron_timeout_info(RON_TIMEOUT_A)->ms; RON_TIMEOUT_BC;\n"
                   . "#define t_us(id)  \\\n    (1 * f(RON_TIMEOUT_##id))\n"
                   . "x = t_us(D); y = t_ms(E); F;", 'A' .. 'F') ],
          [ qw(B C E F) ], 'which are in use is seen');
is(join(' ', unused($code, @timeouts)), '', 'no time-out is without code');

# what the seeds name, with their numbers

my %queue = map { ("$_->[1]/$_->[0]" => "$_->[2] $_->[3] $_->[4]") }
    rows($table{queues});

is($queue{'ledger/ingress'}, 'mpsc 2000 reject', 'ledger: ingress');
is($queue{'ledger/preval'}, 'mpsc 2000 drop_oldest', 'ledger: preval');
is($queue{'ledger/commit'}, 'mpsc 1000 reject', 'ledger: commit');
is($queue{'wallet/work'}, 'mpsc 512 reject', 'wallet: work');
is($queue{'wallet/events'}, 'broadcast 1024 drop_oldest', 'wallet: events');
is($queue{'wallet/ledger'}, 'broadcast 1024 drop_oldest', 'wallet: ledger');

# front matter, diagrams and their words

like($text, qr/\A---\n(?:[a-z-]+: .+\n)*last-reviewed: \d{4}-\d\d-\d\d\n/,
     'it says when it was reviewed');
like($text, qr/^owner: \S/m, 'its owner');

# within 90 days of the newest commit: an old checkout does not rot

my ($y, $m, $d) = $text =~ /^last-reviewed: (\d+)-(\d+)-(\d+)$/m;
chomp(my $now = `git -c safe.directory='*' log -1 --format=%ct 2>/dev/null`);
my $age = ($now || time) - timegm(0, 0, 0, $d, $m - 1, $y);
cmp_ok($age, '<', 91 * 86400, 'not more than 90 days ago');
like($text, qr/^toolchain-minimum: \S/m, 'and the toolchain');

# which is what the compiler is held to

my ($gcc, $clang, $nginx, $sqlite) = $text =~ /^toolchain-minimum:\ C11\ with
    \ gcc\ (\d+)\ or\ clang\ (\d+);\ nginx\ ([\d.]+);\ SQLite\ ([\d.]+)$/mx;

for my $case ([ '', 1, 'this compiler' ],
              [ '-U__clang__ -U__GNUC__', 0, 'one that nobody knows' ],
              [ '-U__clang__ -U__GNUC__ -D__GNUC__=' . ($gcc - 1), 0,
                'an older gcc' ],
              [ '-U__clang__ -U__GNUC__ -D__GNUC__=' . $gcc, 1, "gcc $gcc" ],
              [ '-U__clang_major__ -D__clang__=1 -D__clang_major__='
                . ($clang - 1), 0, 'an older clang' ])
{
    my ($flags, $works, $what) = @$case;
    my $said = `echo '#include "ron.h"' | $cc -w $flags -Isrc/base -E - 2>&1`;

    is($said !~ /needs gcc $gcc or clang $clang, or newer/, !!$works,
       $works ? "$what will do" : "$what is refused, and told why");
}

my $config = slurp('config');

like($config, qr/nginx $nginx or newer is required/, "nginx $nginx");
like($config, qr/SQLite $sqlite or newer, with threads, is required/,
     "SQLite $sqlite");

for my $section ('Topology', 'Shutdown') {
    like($text, qr/^## $section\n\n```mermaid\n.*?accTitle: .*?^```\n\nIn words: /ms,
         "$section: a diagram, and the same in words");
}

# a queue, a lock or a policy that changed was looked at in documents, alerts
# and models: each names the registry that it is for

my $registry = substr sha256_hex($table{queues} . $table{locks}), 0, 16;
my %names = (
    $doc => qr/^registry: (\w+)$/m,
    'ops/prometheus/alerts.yml' => qr/^# For registry (\w+):/m,
    't/model/run' => qr/^# For registry (\w+):/m,
);

for my $path (sort keys %names) {
    my ($for) = slurp($path) =~ $names{$path};

    is($for, $registry, "$path is for this registry")
        or diag("The queues or locks of src/zone/ron_registry.h changed. Look"
                . " whether $path must change too, then write $registry"
                . " there.");
}

# and every document that says when it was reviewed is not too old

for my $path (glob 'docs/*.md') {
    my ($y, $m, $d) = slurp($path)
        =~ /\A---\n(?:[a-z-]+: .+\n)*?last-reviewed: (\d+)-(\d+)-(\d+)\n/
        or next;
    my $age = ($now || time) - timegm(0, 0, 0, $d, $m - 1, $y);

    cmp_ok($age, '<', 91 * 86400, "$path was reviewed within 90 days");
}

done_testing();


sub rows {
    my (@rows) = map { [ split / \| /, substr($_, 2, -2) ] }
        grep { /^\| / } split /\n/, $_[0];
    shift @rows;

    return @rows;
}


sub tables {
    my $program = "$dir/registry";

    open(my $c, '>', "$program.c") or die $!;
    print $c <<'EOC';
#include "ron_registry.h"

#include <stdio.h>

int
main(void)
{
    printf("queues\n| queue | service | kind | capacity | policy | label "
           "| owner |\n|---|---|---|---|---|---|---|\n");

    for (unsigned i = 0; i < RON_QUEUE_N; i++) {
        const ron_queue_info_t  *q = ron_queue_info((ron_queue_id_t) i);

        printf("| %s | %s | %s | %u | %s | %s | %s |\n", q->name, q->service,
               q->kind, q->capacity, q->policy, q->label, q->owner);
    }

    printf("locks\n| lock | order | owner |\n|---|---|---|\n");

    for (unsigned i = 0; i < RON_LOCK_N; i++) {
        const ron_lock_info_t  *l = ron_lock_info((ron_lock_id_t) i);

        printf("| %s | %u | %s |\n", l->name, l->order, l->owner);
    }

    printf("timeouts\n| time-out | ms | what it bounds |\n|---|---|---|\n");

    for (unsigned i = 0; i < RON_TIMEOUT_N; i++) {
        const ron_timeout_info_t  *t = ron_timeout_info((ron_timeout_id_t) i);

        printf("| %s | %u | %s |\n", t->name, t->ms, t->what);
    }

#define NAP(name, value, unit, what)                                          \
    printf("| `%s` | %llu | %s | %s |\n", #name,                              \
           (unsigned long long) (value), unit, what);
    printf("naps\n| nap | n | unit | who looks again, at what |\n"
           "|---|---|---|---|\n");
    RON_NAPS(NAP)

#define LIST(file, name, bound, what)                                         \
    printf("| `%s` | %s | %s | %s |\n", name, file, bound, what);
    printf("lists\n| list | file | bound | what is in it |\n"
           "|---|---|---|---|\n");
    RON_LISTS(LIST)

    return 0;
}
EOC
    close($c) or die $!;

    my $includes = join ' ', map { "-I$_" } glob 'src/*';

    system("$cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror $includes"
           . " $program.c src/zone/ron_registry.c $build/libron.a"
           . " -lpthread -o $program") == 0
        or BAIL_OUT('the registry does not compile');

    open(my $out, '-|', $program) or die "$program: $!";
    my ($name, %table);

    while (my $line = <$out>) {
        if ($line =~ /^(\w+)$/) {
            $name = $1;
        } else {
            $table{$name} .= $line;
        }
    }

    close($out) or die "$program: $?";

    return %table;
}


# Rows of time-outs that are not named, by themselves or as what a macro puts
# the name together of.

sub unused {
    my ($code, @ids) = @_;
    my $macros = join '|', $code
        =~ /^#define[ ]+(\w+)\(id\)(?:[^\n]*\\\n)*[^\n]*RON_TIMEOUT_##id/mg;
    my $macro = $macros eq '' ? qr/(?!)/ : qr/\b(?:$macros)\(/;

    return grep { $code !~ /\bRON_TIMEOUT_$_\b|$macro$_\)/ } @ids;
}


sub code {
    my $text = slurp(@_);
    $text =~ s{/\*.*?\*/}{}gs;
    return $text;
}


sub slurp {
    my ($path) = @_;

    open(my $file, '<', $path) or die "$path: $!";
    local $/;
    return scalar <$file>;
}
