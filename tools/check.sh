#!/bin/bash
#
# Everything that can be said about the sources without running them:
#
#     tools/check.sh <build>
#
# Compiles with gcc and with clang (every warning is an error), analyses with
# clang-tidy and cppcheck, checks the scripts, and runs the lint of layout and
# of locks.  All of it runs even when some of it fails.

set -uo pipefail

cd "$(dirname "$0")/.." || exit 1

build=${1:-build}
clang=${CLANG:-clang}
jobs=$(nproc)
failed=()

step() {
    local name=$1 start=$SECONDS
    shift

    echo "check: $name"

    if "$@"; then
        echo "check: $name: ok, $((SECONDS - start)) s"
    else
        echo "check: $name: FAILED"
        failed+=("$name")
    fi
}

compile() {
    make --no-print-directory -j "$jobs" BUILD="$1" CC="$2" all
}

# What clang-tidy and cppcheck must know is what make tells the compiler.

flags() {
    make -s --no-print-directory BUILD="$build" CC="$clang" flags
}

sources() {
    find src -name '*.c' -print0 | LC_ALL=C sort -z
}

tidy_one() {
    local out
    local -a cflags

    read -r -a cflags <<<"$RON_CFLAGS"

    # Its progress goes to stderr; what is wrong goes to stdout.

    if ! out=$(clang-tidy --quiet "$1" -- "${cflags[@]}" 2>&1); then
        printf '%s\n' "$out" | grep -v 'warnings\? \(generated\|treated\)'
        return 1
    fi
}

tidy() {
    RON_CFLAGS=$(flags) || return
    export RON_CFLAGS
    export -f tidy_one

    # shellcheck disable=SC2016
    sources | xargs -0 -r -n 1 -P "$jobs" bash -c 'tidy_one "$1"' tidy
}

cppcheck_all() {
    mkdir -p "$build/cppcheck"

    # It has no headers of libraries, which it is told not to mind, and says
    # nothing of a file whose #error it meets, so it is told to be gcc 12.  What
    # is suppressed, gcc says with fewer false alarms (sizeof of a pointer), and
    # UBSan without any (overflow).

    # shellcheck disable=SC2046
    cppcheck --quiet -j "$jobs" --std=c11 --error-exitcode=1 \
        --enable=warning,performance,portability --inline-suppr \
        --suppress=missingInclude --suppress=missingIncludeSystem \
        -D__GNUC__=12 --suppress=pointerSize --suppress=integerOverflowCond \
        --cppcheck-build-dir="$build/cppcheck" \
        $(flags | tr ' ' '\n' | grep '^-[ID]') src
}

scripts() {
    local file status=0

    shellcheck .ci/run tools/*.sh || status=1

    for file in t/*.t t/*/*.t t/lib/*.pm; do
        [ -e "$file" ] || continue
        perl -It/lib -c "$file" >/dev/null 2>"$build/perl.log" \
            || { cat "$build/perl.log"; status=1; }
    done

    return $status
}

mkdir -p "$build"

step 'gcc, warnings are errors' compile "$build" "${CC:-gcc}"
step 'clang, warnings are errors' compile "$build/clang" "$clang"
step 'clang-tidy' tidy
step 'cppcheck' cppcheck_all
step 'shellcheck and perl -c' scripts
step 'layout and lint' prove -q -It/lib t/00-lint.t t/00-locks.t
step 'registry of queues and locks' \
    env RON_BUILD="$build" prove -q -It/lib t/09-registry.t

if [ ${#failed[@]} -ne 0 ]; then
    printf 'check: FAILED: %s\n' "${failed[@]}" >&2
    exit 1
fi

echo 'check: all is well'
