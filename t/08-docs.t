#!/usr/bin/perl

# The documentation says what is: error pages and the table of reasons, links,
# examples and golden vectors, directives, which test proves what.

use strict;
use warnings;

use File::Basename qw(basename dirname);
use JSON::PP;
use Test::More;

my @docs = sort grep { !-l } 'README.md', 'CHANGELOG.md',
    glob('docs/*.md docs/*/*.md');
my %text = map { $_ => slurp($_) } @docs;

cmp_ok(scalar @docs, '>=', 30, 'there are documents');

errors();
numbers();
fields();
examples();
links();
traceability();
directives();
workflow();
tables();
hygiene();

done_testing();


# ---- errors ----------------------------------------------------------------

sub reasons {
    my $header = slurp('src/entry/ron_reason.h');
    my @rows;

    while ($header =~ /X\((\w+),\s*"(\w+)",\s*"(\w+)",\s*(\d+),\s*\\?\s*"([^"]*)"\)/g) {
        push @rows, { name => $1, reason => $2, code => $3, status => $4,
                      title => $5 };
    }

    return @rows;
}


sub errors {
    my @reasons = grep { $_->{name} ne 'OK' } reasons();
    my %code;

    cmp_ok(scalar @reasons, '>', 20, 'there are reasons');
    push @{ $code{ $_->{code} } }, $_ for @reasons;

    my @pages = map { m{errors/(.*)\.md$} ? $1 : () } @docs;
    is("@pages", join(' ', sort keys %code), 'a page for each code');

    for my $code (sort keys %code) {
        my $page = $text{"docs/errors/$code.md"};
        next if !defined $page;

        my $table = join '', map {
            "| $_->{status} | " . ($_->{status} =~ /^(?:429|503)$/ ? 'true'
                                   : 'false')
            . " | `$_->{reason}` | $_->{title} |\n"
        } @{ $code{$code} };

        like($page, qr/\A\# $code\n\n\|[^\n]*\n\|[-|]*\n\Q$table\E\n\#\# What it means\n\n\S/,
             "$code: its rows, and what it means");
        like($page, qr/^## Retry\?\n\n\S/m, "$code: whether to retry");
    }

    my $table = join '', map {
        "| [$_->{code}](errors/$_->{code}.md) | $_->{status} |"
        . " `$_->{reason}` | $_->{title} |\n"
    } @reasons;

    like($text{'docs/ERRORS.md'}, qr/\n\|---\|---\|---\|---\|\n\Q$table\E\z/,
         'docs/ERRORS.md has them all, in their order');
}


# Numbers that are on disk: a reason may be added at the end, and nowhere else.

sub numbers {
    my $header = slurp('src/entry/ron_reason.h');
    my ($details) = $header =~ /#define RON_DETAILS\(X\)(.*?)\n\n/s;

    my %names = (
        reasons => [ map { $_->{name} } reasons() ],
        details => [ $details =~ /X\((\w+),/g ],
    );

    for my $what (sort keys %names) {
        my ($list) = $text{'docs/FORMAT.md'}
            =~ /<!-- $what: begin -->\n(.*?)<!-- $what: end -->/s;
        my @documented = $list =~ /`(\d+ \w+)`/g;
        my $i = 0;

        is_deeply(\@documented, [ map { $i++ . " $_" } @{ $names{$what} } ],
                  "docs/FORMAT.md: numbers of $what");
    }
}


# ---- the format ------------------------------------------------------------

sub fields {
    my $header = slurp('src/entry/ron_entry.h');
    my %bit = map { hex($_) => 1 }
        $header =~ /^#define RON_F_(?!ALL)\w+\s+0x([0-9a-f]+)/mg;
    my %documented;

    while ($text{'docs/FORMAT.md'} =~ /^\| (\d+) \| `([0-9a-f]{5})` \| `/mg) {
        is(hex($2), 1 << $1, "bit $1");
        $documented{ 1 << $1 } = 1;
    }

    is_deeply(\%documented, \%bit, 'docs/FORMAT.md: all bits of fields');

    my %bound = (ACCOUNT => 256, ASSET => 32, ID => 128, KEY => 128,
                 SCOPE => 256, CAP => 256, ENTRY => 2048);

    for my $name (sort keys %bound) {
        like($header, qr/^#define RON_${name}_MAX\s+$bound{$name}$/m,
             "RON_${name}_MAX is as documented");
    }

    my @kinds = $header =~ /RON_KIND_NONE = 0,\s*(.*?)RON_KIND_N\b/s
        ? $1 =~ /RON_KIND_(\w+)/g : ();
    my @rows = $text{'docs/FORMAT.md'} =~ /^\| (\d) \| ([A-Z]\w+) \| `/mg;
    my $i = 0;

    is_deeply([ map { ref ? $_ : lc } @rows ],
              [ map { (++$i, lc) } @kinds ], 'all kinds');
}


# The examples of the specification are golden vectors.

sub examples {
    my $json = JSON::PP->new->utf8;
    my $format = $text{'docs/FORMAT.md'};
    my %entry = map { $_->{name} => $_ }
        @{ $json->decode(slurp('t/vectors/entries.json'))->{entries} };
    my @blocks = $format =~ /^```\n(01 .*?)^```/msg;

    is(scalar @blocks, 2, 'two entries as examples');

    for my $example ([ 'the smallest entry that there is', $blocks[0] ],
                     [ 'wallet transfer', $blocks[1] ])
    {
        my ($name, $block) = @$example;

        # what comes before two spaces is bytes
        my $bytes = join '', map { /^((?:[0-9a-f]+ ?)*)(?:  |$)/ ? $1 : () }
            split /\n/, $block;
        $bytes =~ s/ //g;

        is($bytes, $entry{$name}{bytes}, "docs/FORMAT.md: $name");
    }

    my $v = $entry{'wallet transfer'};

    for my $what ($v->{txid}, $v->{hashed}, "b3:$v->{receipt_hash}") {
        like($format, qr/\Q$what\E\n/, 'docs/FORMAT.md: of its receipt');
    }

    my $row = $json->decode(slurp('t/vectors/store.json'))->{rows}[0];
    my $body = $row->{body};
    $body =~ s/^(..)/$1 /;

    for my $what ($row->{prev_root}, $row->{root}, $body, $row->{chain}) {
        like($format, qr/^\w+ +\Q$what\E$/m, 'docs/FORMAT.md: of the row');
    }
}


# ---- links -----------------------------------------------------------------

sub links {
    my ($n, @broken) = (0);

    for my $doc (@docs) {
        my $prose = $text{$doc};
        $prose =~ s/^```.*?^```//msg;
        $prose =~ s/`[^`\n]*`//g;

        while ($prose =~ /\]\(([^)\s]*)\)/g) {
            my ($path, $anchor) = split /#/, $1, 2;
            next if $path =~ /^https?:/;

            my $target = $path eq '' ? $doc : plain(dirname($doc) . "/$path");
            $n++;

            if (!-e $target) {
                push @broken, "$doc: $path";
            } elsif (defined $anchor && !anchors($target)->{$anchor}) {
                push @broken, "$doc: $path#$anchor";
            }
        }
    }

    cmp_ok($n, '>', 100, "$n links");
    is("@broken", '', 'lead somewhere');

    # the check itself

    ok(!-e plain('docs/../nowhere.md'), 'a link to nothing would not');
    ok(anchors('docs/FORMAT.md')->{'6-the-journal'}, 'a heading has an anchor');
    ok(!anchors('docs/FORMAT.md')->{'11-more'}, 'another has none');

    # what the README leads to, at once or through other documents

    my %seen;
    my @next = ('README.md');

    while (my $doc = shift @next) {
        next if $seen{$doc}++ || !defined $text{$doc};

        push @next, map { plain(dirname($doc) . "/$_") }
            $text{$doc} =~ /\]\(([^)#\s:]+)/g;
    }

    is(join(' ', grep { !$seen{$_} } @docs), '', 'the README leads to all');
}


sub plain {
    my ($path) = @_;

    1 while $path =~ s{(?:^|(?<=/))(?!\.\./)[^/]+/\.\./}{};
    $path =~ s{^(?:\./)+}{};
    $path =~ s{/\./}{/}g;

    return $path;
}


sub anchors {
    my ($doc) = @_;
    my %anchors;

    for my $heading (slurp($doc) =~ /^#+ (.*)$/mg) {
        my $anchor = lc $heading;
        $anchor =~ s/[^\w\- ]//g;
        $anchor =~ tr/ /-/;
        $anchors{$anchor} = 1;
    }

    return \%anchors;
}


# ---- requirements ----------------------------------------------------------

sub traceability {
    my %rows = (X => [ 1 .. 69, '11a', '26a', '34a' ],
                L => [ 1 .. 65, map { "${_}a" } 20, 32, 39, 44, 46, 48, 55, 64,
                       65 ],
                W => [ 1 .. 74, map { "${_}a" } 12, 15, 19, 29, 38 ],
                R => [ 1 .. 43, '05a', '13a', '31a' ],
                I => [ 1 .. 37, '06a', '19a' ],
                E => [ 1 .. 36 ]);

    my $doc = 'docs/TRACEABILITY.md';
    my @wanted = sort map {
        my $service = $_;
        map { "$service-" . (/a/ ? $_ : sprintf '%02d', $_) } @{ $rows{$_} };
    } keys %rows;

    my @found = sort $text{$doc} =~ /\b([XLWRIE]-\d{2}a?)\b/g;
    is("@found", "@wanted", "every requirement is in $doc, once");

    my ($n, @wrong) = (0);

    for my $section (split /^## /m, $text{$doc}) {
        my %count = (proved => 0, partly => 0, 'not yet' => 0,
                     otherwise => 0);

        while ($section =~ /^\| ([XLW]-\d{2}a?) \| ([^|]+) \| ([^|]*) \| ([^|]+) \| ([^|]*) \|$/mg) {
            my ($id, $what, $tests, $state, $note) = ($1, $2, $3, $4, $5);
            my @files = $tests =~ /\]\(\.\.\/([^)]+)\)/g;

            $n++;
            $count{$state}++;

            push @wrong, "$id: $_ is no test"
                for grep { !m{^t/} || !-f } @files;
            push @wrong, "$id: no such state as $state"
                if $state !~ /^(?:proved|partly|not yet|otherwise)$/;
            push @wrong, "$id: $state, and no test"
                if $state !~ /^(?:not yet|otherwise)$/ && !@files;
            push @wrong, "$id: otherwise, and no reason"
                if $state eq 'otherwise' && $note !~ /\S{2}/;
            push @wrong, "$id: a seed's, and otherwise"
                if $state eq 'otherwise'
                   && !($id =~ /^X-(\d+)/ && $1 >= 40
                        || $id =~ /^W-(\d+)/ && $1 >= 43);
            push @wrong, "$id: not yet, and a test"
                if $state eq 'not yet' && @files;
        }

        if ($section =~ /^(\d+) rows: (\d+) proved, (\d+) partly, (\d+) not yet\.$/m) {
            is("$2 $3 $4", "$count{proved} $count{partly} $count{'not yet'}",
               'its sums: ' . (split /\n/, $section)[0]);
            is($1, $2 + $3 + $4, 'and their sum');
        }

        if ($section =~ /^(\d+) rows: (\d+) proved, (\d+) otherwise\.$/m) {
            is("$2 $3", "$count{proved} $count{otherwise}",
               'its sums: ' . (split /\n/, $section)[0]);
            is($1, $2 + $3, 'and their sum');
        }
    }

    is("@wrong", '', "$n rows name tests that are there");
    cmp_ok($n, '>=', 225, 'rows');
}


# ---- directives, workflow --------------------------------------------------

sub directives {
    my %directive;

    for my $file (glob 'ngx_ron_module/*.c') {
        $directive{$_} = 1 for slurp($file)
            =~ /\{\s*ngx_string\("(ron_\w+)"\),\s*NGX_\w*CONF\b/g;
    }

    cmp_ok(scalar keys %directive, '>', 10, 'there are directives');

    my %documented = map { $_ => 1 }
        $text{'docs/DIRECTIVES.md'} =~ /\*\*(ron_\w+)\*\*/g;

    is_deeply(\%documented, \%directive, 'docs/DIRECTIVES.md has them all');

    # In code, a word that begins with ron_ is a variable with its dollar, a
    # function with its parentheses, a file with its suffix, a member of JSON
    # with its quote, or a directive.

    my (%file, %function, %variable, @wrong);
    my $n = 0;

    for my $path (glob 'src/*/*.[ch] ngx_ron_module/*.[ch] t/*/*.[ch]') {
        my $source = slurp($path);

        $file{ basename($path) } = 1;
        $function{$_} = 1 for $source =~ /^(ron_\w+)\(/mg;
        $variable{$_} = 1
            for $source =~ /\{ ngx_string\("(ron_\w+)"\), NULL,/g;
    }

    for my $path (@docs) {
        my @code;

        (my $rest = $text{$path}) =~ s/^ *```.*?\n(.*?)^ *```/push @code, $1; ''/msge;
        push @code, $rest =~ /`([^`]+)`/g;

        for (map { /(?<![\w"])(\$?ron_\w+(?:\(\)|\.[ch]\b)?)/g } @code) {
            $n++;
            push @wrong, "$path: $_" unless
                /^\$(.*)/ ? $variable{$1} : /^(.*)\(\)$/ ? $function{$1}
                : /\.[ch]$/ ? $file{$_} : $directive{$_};
        }
    }

    cmp_ok($n, '>', 150, "$n words of code are ours");
    is("@wrong", '', 'and each is a directive, a variable, a function, a file');

    my $alerts = () = slurp('ops/prometheus/alerts.yml') =~ /^ +- alert: /mg;
    my @said = map { $text{$_} =~ /\b(\d+) alerts\b/g } @docs;
    cmp_ok(scalar @said, '>', 0, 'how many alerts there are is said');
    is(join(' ', grep { $_ != $alerts } @said), '', "$alerts, wherever it is");
}


sub workflow {
    my $workflow = slurp('.github/workflows/concurrency-guardrails.yml');
    my $template = slurp('.github/pull_request_template.md');

    like($workflow, qr/^ +- run: make $_$/m, "the workflow runs make $_")
        for qw(check model fuzz-build);
    # what it runs is there, and continuous integration runs it as well

    my %jobs = $workflow =~ /^  (\w[\w-]*):\n((?:    .*\n|\n)+)/mg;
    is(join(' ', sort grep { $jobs{$_} =~ /runs-on:/ } keys %jobs),
       'fuzz-build lint model', 'its three jobs');
    like($jobs{model}, qr/^    if: github\.event_name == 'pull_request'$/m,
         'models for pull requests');
    unlike($jobs{$_}, qr/^    if:/m, "$_ always") for qw(lint fuzz-build);

    my $ci = slurp('.ci/run');
    my @runs = $workflow =~ /^ +- run: (.+)$/mg;

    cmp_ok(scalar @runs, '>=', 6, 'what they run');

    for my $run (@runs) {
        if ($run =~ /^make ([\w-]+)$/) {
            my $target = $1;

            is(system("env -u MAKEFLAGS make -n $target >/dev/null 2>&1"), 0,
               "make $target is a target");
            ok($ci =~ /^make $target$/m
               || $target eq 'model' && slurp('t/22-model.t') =~ m{t/model/run},
               'that CI runs too');

        } elsif ($run =~ /^bash (\S+) (.*)$/) {
            my ($script, $sets) = ($1, $2);

            is(system('bash', '-n', $script), 0, "$script is there");
            ok(!(grep { $ci !~ m{^\Q$script\E .*\b$_\b}m } split / /, $sets),
               "with sets of CI's: $sets");

        } else {
            fail("nobody knows: $run");
        }
    }

    like($workflow, qr/^on:.*\bpush\b.*\bpull_request\b/ms, 'when it should');
    like($template, qr/^## Concurrency checklist$/m, 'the checklist is there');
    like($template, qr/^- \[ \] .*\b$_\b/m, "and asks for: $_")
        for 'no lock is held', 'locks nest', 'one writer', 'an atomic',
            'is bounded', 'never waits', 'a timeout', 'joined or reaped',
            'blocks an event loop', 'shutdown still drains',
            'length-checked', 'shared memory', 'registry tables',
            'metrics and alerts', 'the models', 'last-reviewed';
}


# ---- layout ----------------------------------------------------------------

# ---- tables ----------------------------------------------------------------

# A row with more cells than its header loses them where it is shown, and one
# with fewer is a row of something else.

sub tables {
    is(join(' ', rows("| a | b |\n|---|---|\n| 1 | 2 |\n| 1 \\| 2 | `3` |\n")),
       '', 'a table that is one');
    is(join(' ', rows("| a | b |\n|---|---|\n| 1 | 2 | 3 |\n\n| 1 |\n| 1 |\n"
                      . "| a |\n|---|\n|  |\n| 1 | 2 |\n")),
       '3 10', 'and rows that are too long');

    my @wrong = map { my $doc = $_; map { "$doc: $_" } rows($text{$doc}) }
                @docs;

    is(scalar @wrong, 0, 'every row of a table has the cells of its header');
    diag("  $_") for @wrong;
}


# The lines whose number of cells is not that of the row of dashes above.

sub rows {
    my ($md) = @_;
    my ($code, $line, $cells, @wrong) = (0, 0);

    for (split /\n/, $md) {
        $line++;
        $code = !$code if /^\s*```/;

        if ($code || !/^\|.*\|\s*$/) {
            push @wrong, $line if defined $cells && !$code && /^\|/;
            undef $cells;
            next;
        }

        my $n = () = /(?<!\\)\|/g;

        if (/^[|:\s-]*-[|:\s-]*$/) {
            $cells = $n;

        } elsif (defined $cells && $n != $cells) {
            push @wrong, $line;
        }
    }

    return @wrong;
}


sub hygiene {
    my @wrong;

    for my $doc (@docs) {
        my ($code, $front, $line, $titles) = (0, 0, 0, 0);

        for (split /\n/, $text{$doc}) {
            $line++;
            $front = $line == 1 ? /^---$/ : $front && !/^---$/;
            $code = !$code if /^\s*```/;
            $titles++ if !$code && /^# /;

            my $chars = $_;
            utf8::decode($chars);

            push @wrong, "$doc: $line: " . length($chars) . ' columns'
                if !$code && !$front && !/^\|/ && length($chars) > 104;
            push @wrong, "$doc: $line: a tab" if /\t/;
            push @wrong, "$doc: $line: ends in a space" if / $/;
        }

        push @wrong, "$doc: a block of code that does not end" if $code;
        push @wrong, "$doc: $titles titles" if $titles != 1;
        push @wrong, "$doc: two empty lines" if $text{$doc} =~ /\n\n\n/;
    }

    is(scalar @wrong, 0, 'layout of ' . @docs . ' documents');
    diag("  $_") for @wrong;
}


sub slurp {
    my ($path) = @_;

    open(my $file, '<:raw', $path) or die "$path: $!";
    local $/;
    my $text = <$file>;

    return defined $text ? $text : '';
}
