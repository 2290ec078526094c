package RonSecrets;

# What no log, metric, trace or error may say: every token and idempotency key
# that a suite uses.  The harness notes them where they are made and sent, and
# looks for them in what every server of every suite leaves behind.
#
#     my $key = RonSecrets::key('pay');   # one that can be told from a word
#     RonSecrets::token($token);
#     RonSecrets::client('load');         # t/chaos/client.c has this name
#     RonSecrets::said('error', $text);   # found in it: remembered
#     my @found = RonSecrets::found();
#
# A file that all processes of a suite append to has them: clients are often
# children.  Programs that make their own are known by the shape of what they
# make.

use strict;
use warnings;

use Fcntl ();
use File::Temp ();

my $FILE = File::Temp->new(TEMPLATE => 'ron-secrets-XXXXXX', TMPDIR => 1);
my $OWNER = $$;
my $MARK = join '', map { ('a' .. 'z', 0 .. 9)[rand 36] } 1 .. 8;
my %noted;

END { $FILE->unlink_on_destroy($$ == $OWNER) if $FILE }


# A run of these characters that nobody writes by chance.

my $RUN = qr/[A-Za-z0-9_-]{5,}/;

# What other programs make: the keys of `ronctl bench`, and how the text of
# every capability begins, whoever minted it.

my $MADE = qr/(?<![\w-]) bench-[0-9a-f]{6}-[0-9a-f]{16} (?![\w-])
              | (?<![\w+\/-]) Ag[IJ][\w-]{40}/x;

sub telling {
    my ($key) = @_;

    my ($run) = sort { length $b <=> length $a } $key =~ /($RUN)/g;

    return defined $run && $run =~ /[A-Za-z]/ && $run =~ /[0-9_-]/ ? $run
                                                                   : undef;
}

# The key itself, or where it is a short word, one that begins with it.
sub key {
    my ($key) = @_;

    return $key if !defined $key;

    $key .= "-$MARK" if !defined telling($key) && $key =~ /^\w{1,32}\z/;
    note(key => telling($key));

    return $key;
}

sub token {
    my ($token) = @_;

    note(token => $token) if length $token > 60;

    return $token;
}

# A client whose keys are NAME-1, NAME-2 and so on; NAME-1.0 is the id of an
# entry, and no secret.
sub client {
    my ($name) = @_;

    note(client => $name);
}

sub note {
    my ($kind, $what) = @_;

    return if !defined $what || $noted{"$kind $what"}++;

    put("$kind $what\n");
}

sub put {
    my ($line) = @_;

    # a file that is gone is a suite that is over
    sysopen my $f, $FILE->filename, Fcntl::O_WRONLY() | Fcntl::O_APPEND()
        or return;
    syswrite $f, $line;
    close $f;
}

sub all {
    my (%all) = (key => {}, token => [], found => [], made => $MADE);
    my @clients;

    open my $f, '<', $FILE->filename or return \%all;

    while (defined(my $line = <$f>)) {
        chomp $line;
        my ($kind, $what) = split / /, $line, 2;

        if ($kind eq 'key') {
            $all{key}{$what} = 1;
        } elsif ($kind eq 'found') {
            push @{ $all{found} }, $what;
        } elsif ($kind eq 'client') {
            push @clients, quotemeta $what;
        } else {
            # a piece of it is as bad
            push @{ $all{token} }, substr($what, length($what) / 2, 32),
                                   substr($what, -40, 32);
        }
    }

    if (@clients) {
        my $name = join '|', @clients;
        $all{made} = qr/$MADE|(?<![\w.-])(?:$name)-\d+(?!\w|-|\.\d)/;
    }

    return \%all;
}

# Lines of the text that have one.
sub search {
    my ($text, $all) = @_;

    $all ||= all();

    my @lines;

    for my $line (split /\n/, $text) {
        push @lines, $line
            if $line =~ $all->{made}
               || grep { $all->{key}{$_} } $line =~ /($RUN)/g;
    }

    for my $piece (@{ $all->{token} }) {
        my $at = index $text, $piece;
        push @lines, substr $text, $at, 200 if $at >= 0;
    }

    return @lines;
}

sub said {
    my ($where, $text) = @_;

    for my $line (search($text)) {
        $line =~ s/\n.*//s;
        put("found $where: " . substr($line, 0, 300) . "\n");
    }
}

sub found { @{ all()->{found} } }
sub owner { $$ == $OWNER }

# At debug NGINX itself writes down every header line, and what it parses of
# a request: see docs/SECURITY.md.
sub without_nginx {
    my ($log) = @_;

    $log =~ s/^.*\[debug\] \d+#\d+: \*\d+ http (?:header|args|exten|uri|request line|script|copy|read):? .*\n//mg;

    return $log;
}


1;
