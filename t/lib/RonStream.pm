package RonStream;

# A client of server-sent events and of JSON lines: HTTP/1.1 with chunks, core
# Perl only.  Every wait has a deadline.
#
#     my $st = RonStream->new($server, '/ledger/roots/stream',
#                             'Last-Event-ID' => 5);
#     my @events = $st->events(3);        # { id, event, data, retry }
#     $st->ended(5) or die;
#
# `rcvbuf` and `token` are no headers; `path` of a UNIX socket is the
# server's.

use strict;
use warnings;

use IO::Select ();
use IO::Socket::INET ();
use IO::Socket::UNIX ();
use Socket qw(AF_INET SOCK_STREAM SOL_SOCKET SO_RCVBUF inet_aton
              pack_sockaddr_in);
use Time::HiRes ();


sub new {
    my ($class, $server, $path, %h) = @_;

    my $rcvbuf = delete $h{rcvbuf};
    my $token = delete $h{token};

    $h{Authorization} = "Bearer $token" if defined $token;

    socket(my $sock, AF_INET, SOCK_STREAM, 0) or die "socket: $!";
    setsockopt($sock, SOL_SOCKET, SO_RCVBUF, $rcvbuf) if $rcvbuf;
    connect($sock, pack_sockaddr_in($server->{port}, inet_aton('127.0.0.1')))
        or die "connect: $!";

    my $self = bless { sock => $sock, raw => '', body => '', events => [],
                       text => '', given => 0 }, $class;

    my $text = "GET $path HTTP/1.1\r\nHost: localhost\r\n";
    $text .= "$_: $h{$_}\r\n" for sort keys %h;
    syswrite $sock, "$text\r\n";

    $self->head(Time::HiRes::time() + 10);

    return $self;
}

sub status { $_[0]{status} }
sub header { $_[0]{headers}{lc $_[1]} }
sub text   { $_[0]{text} }
sub all    { @{ $_[0]{events} } }
sub close  { CORE::close $_[0]{sock} }

sub more {
    my ($self, $end) = @_;

    my $left = $end - Time::HiRes::time();
    return 0 if $self->{eof} || $left <= 0;
    IO::Select->new($self->{sock})->can_read($left) or return 0;

    my $n = sysread $self->{sock}, $self->{raw}, 65536, length $self->{raw};
    $self->{eof} = 1 unless $n;

    return $n;
}

sub head {
    my ($self, $end) = @_;

    until ($self->{raw} =~ /\r\n\r\n/) { $self->more($end) or last }

    $self->{raw} =~ s/^(.*?)\r\n\r\n//s or do { $self->{status} = 0; return };
    my ($first, @lines) = split /\r\n/, $1;
    ($self->{status}) = $first =~ m{^HTTP/1\.\d (\d+)};

    for (@lines) {
        $self->{headers}{lc $1} = $2 if /^([^:]+):\s*(.*)$/;
    }
}

# Takes the chunks that are whole, and the events or lines in them.
sub parse {
    my ($self) = @_;

    while ($self->{raw} =~ /^([0-9a-f]+)\r\n/i) {
        my ($n, $at) = (hex $1, $+[0]);
        last if length $self->{raw} < $at + $n + 2;
        $self->{text} .= substr $self->{raw}, $at, $n;
        $self->{body} .= substr $self->{raw}, $at, $n;
        substr $self->{raw}, 0, $at + $n + 2, '';
        $self->{done} = 1 if $n == 0;
    }

    if (($self->header('content-type') || '') eq 'application/x-ndjson') {
        while ($self->{body} =~ s/^(.*)\n//) {
            push @{ $self->{events} }, { data => $1 } if length $1;
        }
        return;
    }

    while ($self->{body} =~ s/^(.*?)\n\n//s) {
        my %e;
        my $seen = 0;

        for (split /\n/, $1) {
            if (/^:/) { $self->{comments}++; next }
            my ($name, $value) = /^(\w+): ?(.*)$/ or next;
            $e{$name} = $value;
            $seen = 1 if $name eq 'data';
        }

        push @{ $self->{events} }, \%e if $seen;
    }
}

# The next n events, or as many as came in time.
sub events {
    my ($self, $n, $seconds) = @_;

    my $end = Time::HiRes::time() + ($seconds || 10);
    my $want = $self->{given} + $n;

    for (;;) {
        $self->parse;
        my $have = @{ $self->{events} };
        last if $have >= $want;
        $self->more($end) or last;
    }

    my $have = @{ $self->{events} };
    my $last = $have < $want ? $have : $want;
    my @e = @{ $self->{events} }[$self->{given} .. $last - 1];
    $self->{given} = $last;

    return @e;
}

sub comment {
    my ($self, $seconds) = @_;

    my $end = Time::HiRes::time() + $seconds;
    my $before = $self->{comments} || 0;

    for (;;) {
        $self->parse;
        return 1 if ($self->{comments} || 0) > $before;
        $self->more($end) or return 0;
    }
}

# The server has ended it properly.
sub ended {
    my ($self, $seconds) = @_;

    my $end = Time::HiRes::time() + $seconds;

    for (;;) {
        $self->parse;
        return 1 if $self->{done};
        $self->more($end) or do { $self->parse; return $self->{done} };
    }
}


1;
