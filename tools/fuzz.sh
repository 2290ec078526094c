#!/bin/sh

# Runs the fuzz targets that `make fuzz-build` made:
#
#     tools/fuzz.sh [-s] <build> <seconds> [target...]
#
# First every file of a target's corpus and of its past crashes, then that
# many seconds of new inputs.  What they find new is kept in <build>/fuzz/new;
# with -s (short) nothing is kept.  An input that fails stays in
# <build>/fuzz/crashes, and the exit code says that there is one.

set -eu

keep=1

if [ "${1-}" = -s ]; then
    keep=0
    shift
fi

if [ $# -lt 2 ]; then
    echo "usage: tools/fuzz.sh [-s] <build> <seconds> [target...]" >&2
    exit 2
fi

top=$(cd "$(dirname "$0")/.." && pwd)
bin=$1/fuzz/t/fuzz
out=$1/fuzz
seconds=$2
shift 2

if [ $# -eq 0 ]; then
    for source in "$top"/t/fuzz/*_fuzz.c; do
        set -- "$@" "$(basename "$source" _fuzz.c)"
    done
fi

export ASAN_OPTIONS="allocator_may_return_null=1:${ASAN_OPTIONS-}"

failed=0

for target; do
    program=$bin/${target}_fuzz
    corpus=$top/t/fuzz/corpus/$target
    crashes=$top/t/fuzz/crashes/$target
    log=$out/$target.log

    if [ ! -x "$program" ]; then
        echo "$target: not built, run make fuzz-build" >&2
        failed=1
        continue
    fi

    mkdir -p "$out/crashes/$target"

    if [ "$keep" = 1 ]; then
        new=$out/new/$target
        mkdir -p "$new"
    else
        new=$(mktemp -d)
    fi

    # shellcheck disable=SC2046 # names of files here have no blanks
    set -- $(find "$corpus" "$crashes" -type f 2>/dev/null | sort)
    status=0

    if [ $# -gt 0 ]; then
        "$program" -timeout=20 "$@" >"$log" 2>&1 || status=$?
    fi

    if [ "$status" = 0 ] && [ "$seconds" -gt 0 ]; then
        # shellcheck disable=SC2046 # no corpus, no argument
        "$program" -max_total_time="$seconds" -max_len=4096 -timeout=20 \
            -rss_limit_mb=2048 -print_final_stats=1 \
            -artifact_prefix="$out/crashes/$target/" "$new" \
            $( [ ! -d "$corpus" ] || echo "$corpus" ) >"$log" 2>&1 \
            || status=$?
    fi

    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    files=$#

    if [ "$status" = 0 ]; then
        echo "$target: $files files, ${runs:-0} inputs"
    else
        echo "$target: FAILED, see $log" >&2
        grep -h -m 3 'assertion failed\|ERROR:\|runtime error\|Running:' \
            "$log" | tail -3 >&2 || true
        failed=1
    fi

    [ "$keep" = 1 ] || rm -rf "$new"
done

exit $failed
