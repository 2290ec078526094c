#!/bin/bash
#
# Runs prove with the arguments given.  When it fails, what the tests that
# failed said is repeated before its summary: where only the end of a long
# output is kept, that is the end.
#
#     tools/prove.sh prove -It/lib t

set -uo pipefail

said=$(mktemp)
summary=$(mktemp)
trap 'rm -f "$said" "$summary"' EXIT

# prove's own lines go on as they come, but those from its report on

"$@" 2> >(tee "$said" >&2) | awk -v to="$summary" '
    /^Test Summary Report/ { late = 1 }
    late { print >to; next }
    { print; fflush() }'
rc=$?

if [ -s "$summary" ]; then
    echo "What failed, again:"
    grep -A5 '^#   Failed test' "$said" | grep '^# ' | cut -c -300 | tail -n 24
    cat "$summary"
fi

exit $rc
