#!/bin/bash
#
# Builds ngx_ron_module.so:
#
#     tools/module.sh <build> [<nginx source tree>]
#
# Without a tree it is the one of Debian's nginx-dev, configured with the
# flags of Debian's nginx.  NGINX writes into its tree, so a copy of it in
# <build>/nginx-src is what is used; it is configured again only when the
# tree, `config` or the list of source files changed.

set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
build=$(cd "$1" && pwd)
tree=${2:-}
work=$build/nginx-src
log=$build/nginx-configure.log

export RON_BUILD=$build
export CC=${CC:-cc}

if [ -n "$tree" ]; then
    tree=$(cd "$tree" && pwd)
    flags=(--with-compat --with-threads --with-http_ssl_module)
else
    tree=/usr/share/nginx/src
    if [ ! -r $tree/conf_flags ]; then
        echo "module: no $tree; run tools/deps.sh build," \
             "or give NGINX_SRC=<tree>" >&2
        exit 1
    fi
    NGX_CONF_FLAGS=()
    # shellcheck source=/dev/null
    . $tree/conf_flags
    flags=("${NGX_CONF_FLAGS[@]}")
fi

# Flags of a packager.

[ -z "${RON_CC_OPT:-}" ] || flags+=("--with-cc-opt=$RON_CC_OPT -fPIC")
[ -z "${RON_LD_OPT:-}" ] || flags+=("--with-ld-opt=$RON_LD_OPT")

# What the configuration depends on, as one text.

state=$(
    echo "$tree" "$CC" "${flags[@]}" "${RON_BLAKE3_LIBS:-}" \
        "${RON_LOCK_LIBS:-}" "${RON_AGAIN_LIBS:-}"
    cksum "$top/config" "$tree/src/core/nginx.h"
    cd "$top" && find src ngx_ron_module -type f -name '*.[ch]' | LC_ALL=C sort
)

if [ ! -e "$work/objs/Makefile" ] \
   || [ "$state" != "$(cat "$work/ron.state" 2>/dev/null)" ]
then
    rm -rf "$work"
    mkdir -p "$work"
    cp -RL "$tree/." "$work/"
    rm -rf "$work/objs"

    configure=./configure
    [ -x "$work/configure" ] || configure=auto/configure

    if ! (cd "$work" && $configure "${flags[@]}" \
                        --add-dynamic-module="$top") >"$log" 2>&1
    then
        tail -n 30 "$log" >&2
        echo "module: configure failed, see $log" >&2
        exit 1
    fi

    printf '%s\n' "$state" >"$work/ron.state"
fi

"$top/tools/commit.sh" "$work/objs/ngx_ron_build.h"

# NGINX's makefile does not know that the module depends on our archives.

rm -f "$work/objs/ngx_ron_module.so"
unset MAKEFLAGS MFLAGS MAKELEVEL
quiet=-s
[ "${V:-0}" != 1 ] || quiet=

# shellcheck disable=SC2086
make $quiet -j "$(nproc)" --no-print-directory -C "$work" -f objs/Makefile modules
cp -f "$work/objs/ngx_ron_module.so" "$build/ngx_ron_module.so.new"
mv -f "$build/ngx_ron_module.so.new" "$build/ngx_ron_module.so"
