#!/bin/bash
#
# ronctl(8), made of what `ronctl help` says:
#
#     tools/man.sh <ronctl> >ronctl.8

set -euo pipefail

ronctl=$1
version=$("$ronctl" --version | cut -d ' ' -f 2)

# Backslashes, dashes, and a dot or a quote in front mean something to roff.
roff() {
    sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\([.']\)/\\\\\&\1/"
}

verbatim() {
    echo '.nf'
    roff
    echo '.fi'
}

commands() {
    "$ronctl" --help | sed -n 's/^  \([a-z][a-z -]*[a-z]\)   *.*/\1/p'
}

cat <<HEAD
.TH RONCTL 8 "" "ngx_ron $version" "System Administration"
.SH NAME
ronctl \\- the operator's tool of a ron ledger
.SH SYNOPSIS
.B ronctl
.I command
.RI [ arguments ]
.RI [ options ]
.SH DESCRIPTION
Looks after the ledger of
.BR ngx_ron :
verifies, exports, copies and restores it, proves what is in it, and makes
capabilities and keys.
HEAD

echo '.SH COMMANDS'

commands | while read -r name; do
    printf '.SS "%s"\n' "$(roff <<<"$name")"
    # shellcheck disable=SC2086
    "$ronctl" help $name </dev/null | verbatim
done

echo '.SH NOTES'
"$ronctl" --help | sed '1,/^  --json on any/{/^  --json on any/!d}' | verbatim

cat <<'TAIL'
.SH SEE ALSO
.BR nginx (8)
TAIL
