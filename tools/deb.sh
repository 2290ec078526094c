#!/bin/bash
#
# Builds the Debian package libnginx-mod-ron for the NGINX of this Debian:
#
#     BLAKE3_DIR=<dir> tools/deb.sh <build>
#
# The sources are copied to <build>/deb/src first, so that the tree stays as
# it is; the packages end up in <build>/deb.

set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1/deb"
out=$(cd "$1/deb" && pwd)
log=$out/build.log

command -v dh >/dev/null 2>&1 || {
    echo "deb: there is no dh; run tools/deps.sh test" >&2
    exit 1
}

rm -rf "$out/src" "$out"/*.deb "$out"/*.changes "$out"/*.buildinfo
mkdir -p "$out/src"

(cd "$top" && tar -c --exclude=./.git --exclude=./build --exclude=./run \
                  --exclude="${out%/deb}" \
                  config Makefile LICENSE README.md CHANGELOG.md conf \
                  debian docs ngx_ron_module src tools t/*/*.mk) \
    | tar -x -C "$out/src"

unset MAKEFLAGS MFLAGS MAKELEVEL RON_BUILD BUILD DESTDIR PREFIX MODULES

if ! (cd "$out/src" && dpkg-buildpackage -b -us -uc) >"$log" 2>&1 </dev/null
then
    tail -n 30 "$log" >&2
    echo "deb: dpkg-buildpackage failed, see $log" >&2
    exit 1
fi

ls "$out"/*.deb
