#!/usr/bin/perl

# docs/OBSERVABILITY.md against what the code has: every metric, every alert,
# every field of the log.
#
#     perl t/36-observability.t --write    brings the table of metrics up to
#                                          date, and tests nothing

use strict;
use warnings;

use lib 't/lib';
use RonCompile;

use File::Temp qw(tempdir);
use Test::More;

my $path = 'docs/OBSERVABILITY.md';
my $dir = tempdir(CLEANUP => 1);
my $text = slurp($path);
my $table = table();

if (@ARGV && $ARGV[0] eq '--write') {
    $text =~ s/(<!-- metrics: begin -->\n).*?(<!-- metrics: end -->)/$1$table$2/s
        or die "$path has no place for metrics\n";
    open(my $f, '>', $path) or die "$path: $!";
    print $f $text;
    close($f) or die "$path: $!";
    exit 0;
}

my ($documented) = $text =~ /<!-- metrics: begin -->\n(.*?)<!-- metrics: end -->/s;

is($documented, $table, "$path has every metric; --write brings it up to date");

my $families = () = slurp('src/zone/ron_metrics.h')
    =~ /^    X\(\w+, "\w+", (?:COUNTER|GAUGE|GAUGE_US|HISTOGRAM),/mg;
is(scalar(() = $table =~ /^\| `/mg), $families, "all $families families");

my $operations = slurp('docs/OPERATIONS.md');
my @alerts = slurp('ops/prometheus/alerts.yml') =~ /^ +- alert: (\w+)$/mg;
my @rows = $text =~ /^\| \[(\w+)\]\(OPERATIONS\.md#\w+\) \|/mg;

is_deeply(\@rows, \@alerts, "$path has every alert, in their order");

like(slurp('conf/nginx.conf.in'), qr/log_format  ron  escape=none  '\$ron_line';/,
     'the configuration logs $ron_line');

my ($line) = slurp('ngx_ron_module/ngx_http_ron_vars_module.c')
    =~ /^ngx_http_ron_vars_line\(.*?\n\{(.*?)^\}/ms;
my (%seen, @fields);
$seen{$_}++ || push @fields, $_ for $line =~ /\\"(\w+)\\":/g;
my @said = $text =~ /^## Logs\n(.*?)^## /ms ? $1 =~ /^\| `(\w+)` \|/mg : ();

is_deeply(\@said, \@fields, "$path has every field of the log");

# the knobs of the seeds, and where they are

my $config = slurp('docs/CONFIG.md');
my %directive = map { $_ => 1 }
    slurp('docs/DIRECTIVES.md') =~ /\*\*(ron_\w+)\*\*/g;
my %named = map { $_ => 1 } $config =~ /`(ron_\w+)/g;

is(join(' ', grep { !$directive{$_} } sort keys %named), '',
   'docs/CONFIG.md names directives that are there');
cmp_ok(scalar keys %named, '>', 20, 'and many of them');

like($config, qr/^\| `\Q$_\E` \| \S/m, "docs/CONFIG.md: $_") for qw(
    concurrency.prevalidators concurrency.ingress_workers queues.ingress
    queues.prevalidator queues.commit limits.max_body_bytes timeouts.kms_ms
    timeouts.policy_ms timeouts.wallet_ms retries.policy_guard.max_retries
    retries.policy_guard.max_backoff max_conns read_timeout write_timeout
    idle_timeout limits.decompress_ratio_cap limits.rate_per_second
    limits.burst wallet.staleness_window wallet.idempotency_ttl wallet.shards
    retry.* circuit_breaker.* drain_deadline);

done_testing();


# The families as the code has them.  Long lists of values are named.
sub table {
    my $program = "$dir/metrics";

    open(my $c, '>', "$program.c") or die $!;
    print $c <<'EOC';
#include "ron_metrics.h"

#include <stdio.h>

int
main(void)
{
    static const char *const  types[] = {
        "counter", "gauge", "gauge", "histogram"
    };

    printf("| metric | type | labels | what |\n|---|---|---|---|\n");

    for (unsigned m = 0; m < RON_METRIC_N; m++) {
        const char               *sep = "";
        const ron_metric_info_t  *info = ron_metric_info((ron_metric_t) m);

        printf("| `%s` | %s | ", info->name, types[info->type]);

        for (unsigned d = 0; d < 4; d++) {
            const ron_dim_info_t  *dim = info->dim[d];

            if (dim->label[0] == '\0') {
                continue;
            }

            printf("%s`%s`", sep, dim->label);
            sep = "; ";

            for (unsigned v = 0; v < dim->n && dim->n <= 11; v++) {
                if (dim->values[v][0] != '\0') {
                    printf("%s%s", v ? ", " : " ", dim->values[v]);
                }
            }
        }

        printf(" | %s |\n", info->help);
    }

    return 0;
}
EOC
    close($c) or die $!;

    RonCompile::with_libron($program, "$program.c")
        or BAIL_OUT('the metrics do not compile');

    return scalar `$program`;
}

sub slurp {
    my ($file) = @_;

    open(my $f, '<', $file) or die "$file: $!";
    local $/;

    return scalar <$f>;
}
