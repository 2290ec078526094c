package RonAlerts;

# The rules of ops/prometheus, asked by promtool: of tests that are written
# down, and of what a server says while something happens to it.
#
#     my $a = RonAlerts->new;
#     $a->scrape($text);              # of /metrics, now and again
#     $a->fires('LedgerSafeMode')     # if it goes on as it was last

use strict;
use warnings;

use File::Temp ();
use Time::HiRes ();

use RonTest ();

my $OPS = 'ops/prometheus';


sub new {
    my ($class) = @_;

    my $rules = RonTest::slurp("$OPS/alerts.yml");
    my %rule;

    while ($rules =~ /^ +- alert: (\w+)\n((?:(?! +- alert:).*\n)+)/mg) {
        my ($name, $text) = ($1, $2);
        my ($for, $unit) = $text =~ /^ +for: (\d+)([sm])$/m;

        $rule{$name} = {
            name    => $name,
            expr    => $text =~ /^ +expr: (.*)$/m,
            runbook => $text =~ /^ +runbook: (.*)$/m,
            for     => ($for || 0) * (($unit || 's') eq 'm' ? 60 : 1),
        };
    }

    return bless { rules => $rules, rule => \%rule, scrapes => [],
                   dir => File::Temp::tempdir(CLEANUP => 1) }, $class;
}

sub rules { $_[0]{rules} }

sub alerts {
    my ($self) = @_;

    return map { $self->{rule}{$_} } sort keys %{ $self->{rule} };
}

# The exit code of promtool; said() is what it wrote.
sub promtool {
    my ($self, $what, $alerts, $tests) = @_;

    my $dir = $self->{dir};

    write_text("$dir/alerts.yml", $alerts);
    write_text("$dir/tests.yml", $tests) if defined $tests;

    my $file = defined $tests ? 'tests' : 'alerts';

    $self->{said} = `promtool $what $dir/$file.yml 2>&1`;

    return $? >> 8;
}

sub said { $_[0]{said} }

sub write_text {
    my ($path, $text) = @_;

    open(my $f, '>', $path) or die "$path: $!";
    print $f $text;
    close($f) or die "$path: $!";
}


# ---- what a server says -----------------------------------------------------

# What /metrics says now; undef: nobody answered.
sub scrape {
    my ($self, $text) = @_;

    my %value = ($text // '') =~ /^(\w+(?:\{.*\})?) (\S+)$/mg;

    push @{ $self->{scrapes} }, [ Time::HiRes::time(), \%value ];
}

# What has been said so far is another story.
sub forget { $_[0]{scrapes} = [] }

# Series as promtool takes them, a value each second: that of the newest scrape
# until then, and for `hold` seconds more the last one.  The first scrape has a
# second of its own: what was, before something happened.
sub series {
    my ($self, $alert, $hold) = @_;

    my @scrapes = @{ $self->{scrapes} };
    my %named = map { $_ => 1 } $self->{rule}{$alert}{expr} =~ /(\w+)/g;
    my %known = map { map { $_ => 1 } grep { /^(\w+)/ && $named{$1} }
                      keys %{ $_->[1] } } @scrapes;
    my $begin = int $scrapes[0][0];
    my $seconds = int($scrapes[-1][0]) - $begin + (@scrapes > 1);
    my $text = '';

    for my $name (sort keys %known) {
        my @values = ('_') x ($seconds + 1);

        for my $i (0 .. $#scrapes) {
            my $scrape = $scrapes[$i];
            my $at = int($scrape->[0]) - $begin + ($i > 0);
            my $value = $scrape->[1]{$name} // '_';
            @values[$at .. $seconds] = ($value) x ($seconds - $at + 1);
            $values[$at] = 'stale' if $value eq '_';
        }

        push @values, ($values[-1] eq 'stale' ? '_' : $values[-1]) . "x$hold";
        $text .= "      - series: '$name'\n        values: '@values'\n";
    }

    return ($text, $seconds + $hold);
}

# Does the rule fire, if what was said last stays so for as long as it waits?
sub fires {
    my ($self, $alert) = @_;

    my $rule = $self->{rule}{$alert} or die "there is no alert $alert";
    my ($series, $end) = $self->series($alert, $rule->{for} + 5);

    my $tests = <<"EOT";
rule_files: [ alerts.yml ]
evaluation_interval: 1s
tests:
  - interval: 1s
    input_series:
$series
    promql_expr_test:
      - expr: count(ALERTS{alertname="$alert",alertstate="firing"}) > bool 0
        eval_time: ${end}s
        exp_samples: [ { labels: '{}', value: 1 } ]
EOT

    return $series ne ''
           && $self->promtool('test rules', $self->{rules}, $tests) == 0;
}

# Which of these fire; with one question, if none does.  Of each something has
# to have been said: what nobody says cannot fire.
sub firing {
    my ($self, @alerts) = @_;

    my $tests = '';

    for my $alert (@alerts) {
        my $rule = $self->{rule}{$alert} or die "there is no alert $alert";
        my ($series, $end) = $self->series($alert, $rule->{for} + 5);

        $series ne '' or die "nothing was said that $alert is about";
        $tests .= <<"EOT";
  - interval: 1s
    input_series:
$series
    promql_expr_test:
      - expr: ALERTS{alertname="$alert",alertstate="firing"}
        eval_time: ${end}s
        exp_samples: []
EOT
    }

    return () if $self->promtool('test rules', $self->{rules},
        "rule_files: [ alerts.yml ]\nevaluation_interval: 1s\ntests:\n$tests")
        == 0;

    my @fire = grep { $self->fires($_) } @alerts;

    return @fire ? @fire : ('promtool');
}


1;
