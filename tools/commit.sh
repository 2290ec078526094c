#!/bin/bash
#
# Says in a C header which commit a checkout is at:
#
#     tools/commit.sh <header>
#
# Nothing where there is no git or no checkout.  A header that says it already is
# left alone, so that nothing is compiled again.

set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
commit=

if [ -e "$top/.git" ]; then
    commit=$(git -C "$top" rev-parse --short=12 HEAD 2>/dev/null || true)
fi

text="#define NGX_RON_COMMIT  \"$commit\""

if [ "$text" != "$(cat "$1" 2>/dev/null)" ]; then
    printf '%s\n' "$text" >"$1"
fi
