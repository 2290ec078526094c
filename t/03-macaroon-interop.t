#!/usr/bin/perl

# Our capabilities against two macaroon libraries of others: Debian's
# libmacaroons and the npm package "macaroon".  What they mint or weaken, we
# verify, and the other way round.
#
# The package reads and writes the binary format of version 2, as we do.
# libmacaroons 0.3 knows only the packets of version 1: the signatures are the
# same in both, so this script changes the frame around them.

use strict;
use warnings;

use lib 't/lib';
use RonNpm;

use File::Temp;
use MIME::Base64 qw(encode_base64);
use Test::More;

my $package = 'macaroon';
my $version = '3.0.4';

my $build = $ENV{RON_BUILD} || 'build';
my $cc = $ENV{CC} || 'cc';
my $here = 't/unit/cap_interop';

plan skip_all => "no $build/libron.a" if !-e "$build/libron.a";

my $modules = RonNpm::install("$package\@$version");
ok($modules, "$package $version is installed")
    or BAIL_OUT("cannot compare tokens without $package");

my $module = "$modules/$package";

my $dir = File::Temp->newdir;
my $secret = join '', map { chr(255 - 7 * $_) } 0 .. 31;
my $key = unpack 'H*', $secret;
my $keys = "$dir/keys";

write_file($keys, "# two keys\nold " . encode_base64("\0" x 32, '') . "\n"
           . 'dev ' . encode_base64($secret, '') . "\n");

my $sources = "$here/ours.c -o $dir/ours $build/libron.a -lcrypto -lpthread";
my $includes = join ' ', map { "-I$_" } glob 'src/*';
my $flags = '-std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror';

ok(system("$cc $flags $includes $sources") == 0, 'ours.c is compiled')
    or BAIL_OUT('no program');
ok(system("$cc $flags $here/libmacaroons.c -o $dir/lib -lmacaroons") == 0,
   'libmacaroons.c is compiled')
    or BAIL_OUT('no program (is libmacaroons-dev there?)');

# ---- what is minted --------------------------------------------------------

my $now = 1_767_323_045_678;

my @caveats = (
    'svc = wallet ledger', 'act = read transfer', 'account = acc_a acc_b*',
    'asset = ron', 'max_amount = 340282366920938463463374607431768211455',
    'max_daily = 1000', 'before = 1767323046', 'after = 1767323045',
    'tenant = t', 'ip = 10.0.0.0/8', 'ip = 2001:db8::/32',
);

my @cases = ([ 'dev:c0', '' ], [ 'dev:c1', 'https://ron.example/' ],
             [ 'dev:c2', 'ron', @caveats ],
             [ 'dev:' . 'i' x 128, '', ('svc = wallet') x 32 ],
             [ 'dev:c3', 'x' x 300, 'account = ' . 'y' x 200 . '*' ]);

srand(20);

for my $i (1 .. 200) {
    push @cases, [ "dev:cap-$i", rand() < 0.5 ? '' : "loc$i",
                   map { $caveats[rand @caveats] } 1 .. rand 12 ];
}

my @ours = ours(map { my ($id, @rest) = @$_;
                      "mint\t" . join "\t", split(/:/, $id, 2), @rest } @cases);

my %theirs = (
    npm => {
        mint => sub { run('node', "$here/npm.js", $module, @_) },
        from => sub { $_[0] },
        to => sub { $_[0] },
    },
    libmacaroons => {
        mint => sub { run("$dir/lib", @_) },
        from => \&from_v1,
        to => \&to_v1,
    },
);

is(scalar(grep { /^[A-Za-z0-9_-]+$/ } @ours), scalar @cases,
   scalar(@cases) . ' tokens of ours');

for my $name (sort keys %theirs) {
    my $other = $theirs{$name};
    my ($ask, $from, $to) = @$other{qw(mint from to)};

    my @minted = map { $from->($_) }
        $ask->(map { join "\t", 'mint', $key, @$_ } @cases);

    is_deeply(\@minted, \@ours, "$name: mints the same tokens");

    my @expected = map { (my $id = $_->[0]) =~ s/^dev://; "ok dev $id" } @cases;

    is_deeply([ ours(map { "verify\t$now\t$_" } @minted) ], \@expected,
              "$name: we verify what it mints");

    is_deeply([ ours(map { "show\t$_" } @minted) ],
              [ map { join "\t", @$_ } @cases ], "$name: and read all of it");

    my @verify = map { my ($id, $location, @rest) = @{$cases[$_]};
                       join "\t", 'verify', $key, $to->($ours[$_]), @rest }
        0 .. $#cases;

    is_deeply([ $ask->(@verify) ], [ ('ok') x @cases ],
              "$name: verifies what we mint");

    # Made weaker by the one, then by the other; 32 caveats are the most.

    my @some = grep { @{$cases[$_]} < 20 } 0 .. $#cases;
    my @more = ('act = read', 'max_amount = 5');
    my @all = map { [ @{$cases[$_]}, @more ] } @some;

    my @weak = ours(map { "attenuate\t$_\t$more[1]" } map { $from->($_) }
        $ask->(map { join "\t", 'attenuate', $to->($ours[$_]), $more[0] }
               @some));

    is_deeply([ ours(map { "verify\t$now\t$_" } @weak) ],
              [ @expected[@some] ], "$name: both add a caveat, we verify");

    is_deeply([ $ask->(map { my ($id, $location, @rest) = @{$all[$_]};
                             join "\t", 'verify', $key, $to->($weak[$_]),
                                  @rest } 0 .. $#all) ],
              [ ('ok') x @all ], "$name: both add a caveat, it verifies");

    # It must be able to say no, or it has said nothing.

    is_deeply([ $ask->(map { my ($id, $location, @rest) = @{$cases[$_]};
                             join "\t", 'verify', $key, $to->($weak[$_]),
                                  @rest, $more[0] } 0 .. 9) ],
              [ ('refused') x 10 ], "$name: refuses a caveat it does not know");

    (my $other_key = $key) =~ tr/0-9a-f/1-9a-f0/;
    is_deeply([ $ask->(map { (my $q = $_) =~ s/$key/$other_key/; $q }
                       @verify[0 .. 9]) ],
              [ ('refused') x 10 ], "$name: refuses another key");

    is_deeply([ ours(map { "verify\t$now\t" . $from->($_) }
                     $ask->(map { join "\t", 'mint', $other_key, @$_ }
                            @cases[0 .. 9])) ],
              [ ('401 wrong signature') x 10 ], "$name: and so do we");

    is_deeply([ ours(map { "verify\t$now\t" . $from->($_) }
                     $ask->("mint\t$key\tdev:x\t\tmethod = GET",
                            "mint\t$key\tnew:x\t\tact = read",
                            "mint\t$key\tdev:x\t\tbefore = 1767323045",
                            "mint\t$key\tdev\t\tact = read")) ],
              [ '403 caveat not understood', '401 unknown key', '401 expired',
                '401 malformed token' ], "$name: and for our own reasons");
}

done_testing();


# Packets of version 1: four hexadecimal digits of length, a name, a space,
# the value and a newline.

sub from_v1 {
    my ($text) = @_;

    my $bytes = decode($text);
    my ($header, $rest) = ("\x02", '');
    my ($signature, $caveats);

    while (length $bytes) {
        my $packet = substr $bytes, 0, hex(substr $bytes, 0, 4), '';
        my ($name, $value) = $packet =~ /^....([a-z]+) (.*)\n\z/s
            or die "packet of $text";

        if ($name eq 'location') {
            $header .= field(1, $value) if length $value;
        } elsif ($name eq 'identifier') {
            $header .= field(2, $value) . "\0";
        } elsif ($name eq 'cid') {
            $rest .= field(2, $value) . "\0";
        } elsif ($name eq 'signature') {
            $signature = $value;
        } else {
            die "packet $name";
        }
    }

    return encode($header . $rest . "\0" . field(6, $signature));
}


sub to_v1 {
    my ($text) = @_;

    my $bytes = decode($text);
    my ($location, @ids) = ('');
    my ($packets, $signature) = ('', '');

    substr($bytes, 0, 1, '') eq "\x02" or die "version of $text";

    while (length $bytes) {
        my $type = ord substr $bytes, 0, 1, '';
        next if $type == 0;

        my ($length) = unpack 'w', reverse_varint(\$bytes);
        my $value = substr $bytes, 0, $length, '';

        if ($type == 1) {
            $location = $value;
        } elsif ($type == 2) {
            push @ids, $value;
        } elsif ($type == 6) {
            $signature = $value;
        } else {
            die "field $type";
        }
    }

    $packets .= packet('location', $location);
    $packets .= packet('identifier', shift @ids);
    $packets .= packet('cid', $_) for @ids;

    return encode($packets . packet('signature', $signature));
}


sub packet {
    my ($name, $value) = @_;

    my $body = "$name $value\n";

    return sprintf('%04x', 4 + length $body) . $body;
}


sub field {
    my ($type, $value) = @_;

    my $length = pack 'w', length $value;

    # Perl's compressed integer begins with the high bits, a varint with the
    # low ones.

    my @digits = map { ord($_) & 127 } reverse split //, $length;
    $digits[$_] |= 128 for 0 .. $#digits - 1;

    return chr($type) . join('', map { chr } @digits) . $value;
}


# Takes a varint off, as Perl's compressed integer.

sub reverse_varint {
    my ($bytes) = @_;

    $$bytes =~ s/^([\x80-\xff]*[\x00-\x7f])//s or die 'varint';

    my @digits = map { ord($_) & 127 } reverse split //, $1;
    $digits[$_] |= 128 for 0 .. $#digits - 1;

    return join '', map { chr } @digits;
}


sub encode {
    my $text = encode_base64($_[0], '');

    $text =~ tr{+/=}{-_}d;

    return $text;
}


sub decode {
    my ($text) = @_;

    $text =~ tr{-_=}{+/}d;
    $text .= '=' x (-length($text) % 4);

    return MIME::Base64::decode_base64($text);
}


sub ours {
    return run("$dir/ours", $keys, @_);
}


# The last arguments with a tab in them are questions, one line each.

sub run {
    my @command;

    push @command, shift while @_ && $_[0] !~ /\t/;
    write_file("$dir/in", join '', map { "$_\n" } @_);

    open(my $out, '-|', 'sh', '-c', 'exec "$@" <"$0"', "$dir/in", @command)
        or die "$command[0]: $!";
    chomp(my @lines = <$out>);
    close($out) or die "$command[0] failed: $?";

    return @lines;
}


sub write_file {
    my ($name, $text) = @_;

    open(my $file, '>', $name) or die "$name: $!";
    print $file $text;
    close($file) or die "$name: $!";
}
