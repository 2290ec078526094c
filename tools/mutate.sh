#!/bin/sh

# Mutation testing of the money core: builds libron and the unit tests once,
# then every mutant of t/mutants/table.
#
#     tools/mutate.sh <build> [first-last | part of a file name]...

set -eu

if [ $# -lt 1 ]; then
    echo "usage: tools/mutate.sh <build> [which]..." >&2
    exit 2
fi

top=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
base=$(cd "$1" && pwd)
build=$base/mutants
shift

cd "$top"

# The mutants are linked with the BLAKE3 that the build has, if the system
# has none.

if pkg-config --exists libblake3 2>/dev/null; then
    blake3=$(pkg-config --libs libblake3)
else
    blake3=${BLAKE3_DIR:-$base}/libblake3.a
fi

set -- "$build" "$@"
${MAKE:-make} -s units BUILD="$build" BLAKE3_DIR="${BLAKE3_DIR:-$base}" \
    CFLAGS=-O1 >/dev/null
${MAKE:-make} -s flags BUILD="$build" BLAKE3_DIR="${BLAKE3_DIR:-$base}" \
    CFLAGS=-O1 >"$build/mutants.flags"
echo "$blake3 -lsqlite3 -lyajl -lcrypto -lz -lzstd -lpthread -lm" \
    >"$build/mutants.libs"

exec t/mutants/run "$@"
