#!/bin/sh
#
# Installs from Debian's packages what the build, the tests and the checks
# need and do not find:
#
#     tools/deps.sh build [test] [check] [bench]
#
# Every row below is: group, package, what shows that it is there, and why
# it is wanted.  A thing counts as there however it came: a compiler of the
# user's own is as good as Debian's.  When nothing is missing nothing is
# printed, nothing is fetched and no privilege is needed.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/sbin:/sbin
export PATH

rows() {
    cat <<'ROWS'
build|gcc|cmd gcc|C compiler
build|libc6-dev|hdr stdlib.h|C library headers
build|binutils|cmd ld|linker and assembler
build|make|cmd make|runs the Makefile
build|pkg-config|cmd pkg-config|finds libraries
build|libyajl-dev|hdr yajl/yajl_parse.h|JSON parser
build|libsqlite3-dev|hdr sqlite3.h|ledger and history files
build|libssl-dev|hdr openssl/evp.h|signatures, TLS, HMAC
build|zlib1g-dev|hdr zlib.h|gzip
build|libzstd-dev|hdr zstd.h|zstd
build|nginx|cmd nginx|the server that loads the module
build|nginx-dev|file /usr/share/nginx/src/conf_flags|source tree of that server
build|xz-utils|cmd xz|unpacks Debian packages
test|perl|module Test::More|runs the tests
test|perl|module IO::Socket::INET|runs the tests
test|sqlite3|cmd sqlite3|reads what the ledger wrote
test|strace|cmd strace|shows and injects system calls
test|curl|cmd curl|a client that is not ours
test|openssl|cmd openssl|certificates for the tests
test|valgrind|cmd valgrind|memory errors
test|procps|cmd ps|looks at processes
test|util-linux|cmd setsid|sessions of their own
test|libmacaroons-dev|hdr macaroons.h|macaroons minted by others
test|spin|cmd spin|checks the models
test|prometheus|cmd promtool|checks metrics and alerts
test|nodejs|cmd node|a second BLAKE3 to compare with
test|npm|cmd npm|a second BLAKE3 to compare with
test|debhelper|cmd dh|builds the Debian package
test|dpkg-dev|cmd dpkg-buildpackage|builds the Debian package
test|man-db|cmd man|checks the manual page
test|chromium|cmd chromium|a browser for the walk-through
test|chromium-driver|cmd chromedriver|a browser for the walk-through
test|ca-certificates|file /etc/ssl/certs/ca-certificates.crt|npm fetches over TLS
bench|postgresql-15|file /usr/lib/postgresql/15/bin/pgbench|a peer to compare with
bench|postgresql-client-15|cmd psql|fills that peer
bench|redis-server|cmd redis-server|a peer to compare with
bench|libnginx-mod-http-lua|file /usr/lib/nginx/modules/ngx_http_lua_module.so|in front of Redis
bench|lua-cjson|file /usr/share/lua/5.1/cjson/util.lua|in front of Redis
bench|wrk|cmd wrk|a load generator that is not ours
bench|curl|cmd curl|asks whether servers are ready
bench|perl|module JSON::PP|runs the benchmarks
bench|util-linux|cmd setpriv|peers run without privileges
check|clang|cmd clang|second compiler
check|clang-tidy|cmd clang-tidy|static analysis
check|clang-format|cmd clang-format|layout of the sources
check|cppcheck|cmd cppcheck|static analysis
check|shellcheck|cmd shellcheck|checks these scripts
check|git|cmd git|shape of commit subjects
check|perl|module Test::More|runs the lint
ROWS
}

header_there() {
    multiarch=$(gcc -print-multiarch 2>/dev/null || true)
    for dir in /usr/include "/usr/include/$multiarch" /usr/local/include; do
        [ -e "$dir/$1" ] && return 0
    done
    return 1
}

there() {
    case $1 in
    cmd)    command -v "$2" >/dev/null 2>&1 ;;
    hdr)    header_there "$2" ;;
    file)   [ -e "$2" ] ;;
    module) perl -M"$2" -e 1 >/dev/null 2>&1 ;;
    esac
}

wanted=" $* "
[ $# -gt 0 ] || wanted=" build test "

for group in $wanted; do
    case $group in
    build|test|check|bench) ;;
    *)  echo "deps: unknown group \"$group\"; there are build, test, check," \
            "bench" >&2
        exit 2 ;;
    esac
done

missing=

while IFS='|' read -r group package probe why; do
    case $wanted in *" $group "*) ;; *) continue ;; esac
    # shellcheck disable=SC2086
    if there $probe; then continue; fi
    case " $missing " in *" $package "*) continue ;; esac
    echo "deps: $package is missing ($why)" >&2
    missing="$missing $package"
done <<EOF2
$(rows)
EOF2

# The C code of BLAKE3 is a package only after Debian 12; where it is not,
# the Makefile unpacks it, and for that apt must know what there is.

candidate() {
    apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [0-9]'
}

lists=
case $wanted in
*" build "*)
    if ! pkg-config --exists libblake3 2>/dev/null \
       && ! candidate libblake3-dev && ! candidate librust-blake3-dev
    then
        lists=missing
    fi
    ;;
esac

[ -n "$missing$lists" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "deps: no apt-get here; install by hand:$missing" >&2
    exit 1
fi

if [ "$(id -u)" != 0 ]; then
    if [ -z "$missing" ]; then
        echo "deps: apt does not know BLAKE3 yet, run as root:" >&2
        echo "    apt-get update" >&2
    else
        echo "deps: installing needs root, run as root:" >&2
        echo "    $here/deps.sh$(echo "$wanted" | sed 's/ *$//')" >&2
    fi
    exit 1
fi

# Two builds may install at the same time; and the package of nginx must not
# start a server on port 80 on a machine that only builds.

exec 9>/run/lock/ngx_ron-deps.lock 2>/dev/null || exec 9>/tmp/ngx_ron-deps.lock
if command -v flock >/dev/null 2>&1; then flock 9; fi

policy=/usr/sbin/policy-rc.d
saved=

restore() {
    if [ "$saved" = none ]; then
        rm -f "$policy"
    elif [ -n "$saved" ]; then
        mv -f "$saved" "$policy"
    fi
    saved=
}

trap restore EXIT
trap 'exit 1' HUP INT TERM

apt() {
    DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 \
        -o Dpkg::Use-Pty=0 "$@" </dev/null >&2 9>&-
}

apt update

if ! pkg-config --exists libblake3 2>/dev/null && candidate libblake3-dev
then
    case $wanted in *" build "*) missing="$missing libblake3-dev" ;; esac
fi

[ -n "$missing" ] || exit 0

if [ -e "$policy" ] || [ -L "$policy" ]; then
    saved=$policy.ngx_ron
    mv -f "$policy" "$saved"
else
    saved=none
fi

printf '#!/bin/sh\nexit 101\n' >"$policy"
chmod 755 "$policy"

# shellcheck disable=SC2086
apt install --no-install-recommends $missing

restore

for group in $wanted; do
    rows | while IFS='|' read -r of package probe why; do
        [ "$of" = "$group" ] || continue
        # shellcheck disable=SC2086
        if ! there $probe; then
            echo "deps: $package was installed and still: no $why" >&2
            exit 1
        fi
    done || exit 1
done
