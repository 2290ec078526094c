#!/bin/sh
#
# Builds the official C code of BLAKE3 into <dir>/libblake3.a, its header
# into <dir>/blake3/include:
#
#     CC=gcc tools/blake3.sh <dir>
#
# Debian 12 has that code only inside the package of the Rust crate, which is
# unpacked here and never installed.  The assembly for SSE2, SSE4.1, AVX2 and
# AVX-512 is all there and chosen at run time; on arm64 it is NEON.

set -eu

dir=$1
cc=${CC:-cc}
work=$dir/blake3

mkdir -p "$work/deb" "$work/obj" "$work/include"

src=$(find "$work/src" -path '*/c/blake3.h' 2>/dev/null | head -n 1)

if [ -z "$src" ]; then
    # apt drops to a user of its own that may not write here
    if ! (cd "$work/deb" && apt-get -q -o APT::Sandbox::User=root \
                            download librust-blake3-dev >/dev/null)
    then
        echo "blake3: apt-get download librust-blake3-dev failed;" \
             "try tools/deps.sh build" >&2
        exit 1
    fi

    for deb in "$work"/deb/librust-blake3-dev_*.deb; do
        dpkg-deb -x "$deb" "$work/src"
    done

    src=$(find "$work/src" -path '*/c/blake3.h' | head -n 1)
fi

if [ -z "$src" ]; then
    echo "blake3: no c/blake3.h in the package" >&2
    exit 1
fi

src=$(dirname "$src")
flags="-O3 -g -fPIC -fvisibility=hidden"
files="blake3 blake3_dispatch blake3_portable"

case $($cc -dumpmachine) in
x86_64-*)
    files="$files blake3_sse2_x86-64_unix blake3_sse41_x86-64_unix"
    files="$files blake3_avx2_x86-64_unix blake3_avx512_x86-64_unix"
    ;;
aarch64-*)
    files="$files blake3_neon"
    flags="$flags -DBLAKE3_USE_NEON=1"
    ;;
esac

rm -f "$work"/obj/*.o "$work/libblake3.a"

for name in $files; do
    file=$src/$name.c
    [ -e "$file" ] || file=$src/$name.S
    # shellcheck disable=SC2086
    $cc $flags -I"$src" -c "$file" -o "$work/obj/$name.o"
done

cp -f "$src/blake3.h" "$src/blake3_impl.h" "$work/include/"
ar rcs "$work/libblake3.a" "$work"/obj/*.o
mv -f "$work/libblake3.a" "$dir/libblake3.a"
