#!/bin/bash
#
# The newest source tree of NGINX that Debian's archive has, built without
# its optional modules:
#
#     tools/nginx-src.sh <dir> [<tree>]
#
# Prints where the tree is; its nginx is in objs/.  Ends with 2 when no archive
# that apt knows has one.  apt gets directories of
# its own, so that the system's lists and sources stay as they are.
#
# A tree that is given is that tree if an nginx was built in it, and otherwise
# a copy of it where one is.

set -euo pipefail

mkdir -p "$1"
dir=$(cd "$1" && pwd)
apt=$dir/apt
log=$dir/log
keys=/usr/share/keyrings/debian-archive-keyring.gpg
given=${2:-}

if [ -n "$given" ]; then
    given=$(cd "$given" && pwd)

    if [ -x "$given/objs/nginx" ]; then
        echo "$given"
        exit 0
    fi
fi

# From where this machine has its packages.

mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null \
         | sed -n -e 's/^URIs: *\([^ ]*\).*/\1/p' \
                  -e 's/^deb  *\(\[[^]]*\]  *\)\{0,1\}\([^ ]*\).*/\2/p' \
         | grep '/debian/\{0,1\}$' | head -n 1) || true

if [ -z "$given$mirror" ]; then
    echo "nginx-src: apt's sources name no archive of Debian" >&2
    exit 2
fi

mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/sources"

# One distribution after the other, the newest first.

fetch() {
    cat >"$apt/sources/src.sources" <<SOURCES
Types: deb-src
URIs: $mirror
Suites: $1
Components: main
Signed-By: $keys
SOURCES

    cat >"$apt/apt.conf" <<CONF
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$apt/sources";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
CONF

    (
        cd "$dir"
        export APT_CONFIG=$apt/apt.conf
        apt-get -q -y update
        apt-get -q -y --only-source --download-only source nginx
    ) >>"$log" 2>&1 </dev/null
}

: >"$log"
tarball=$(find "$dir" -maxdepth 1 -name 'nginx_*.orig.tar.*' ! -name '*.asc')

if [ -z "$given$tarball" ]; then
    fetch sid || fetch forky || fetch trixie || fetch bookworm || {
        tail -n 5 "$log" >&2
        echo "nginx-src: no source of nginx from Debian, see $log" >&2
        exit 2
    }

    tarball=$(find "$dir" -maxdepth 1 -name 'nginx_*.orig.tar.*' \
                   ! -name '*.asc')
fi

tree=$dir/tree

if [ ! -x "$tree/objs/nginx" ]; then
    rm -rf "$tree"
    mkdir -p "$tree"

    if [ -n "$given" ]; then
        cp -RL "$given/." "$tree/"
        rm -rf "$tree/objs"
    else
        tar -x -f "$tarball" -C "$tree" --strip-components=1
    fi

    unset MAKEFLAGS MFLAGS MAKELEVEL
    configure=./configure
    [ -x "$tree/configure" ] || configure=auto/configure

    # what tools/module.sh configures with, and what suites need

    (
        cd "$tree"
        $configure --with-compat --with-threads --with-http_ssl_module \
                   --with-http_v2_module --with-http_realip_module --with-debug \
                   --with-cc="${CC:-cc}" --with-cc-opt=-O0
        make -j "$(nproc)"
    ) >>"$log" 2>&1 </dev/null || {
        tail -n 20 "$log" >&2
        echo "nginx-src: nginx does not build, see $log" >&2
        exit 1
    }
fi

echo "$tree"
