#!/bin/bash
#
# A server of our own: the whole front door with its data in one directory.
#
#     tools/run.sh run      in the foreground; Ctrl-C drains and ends it
#     tools/run.sh start    in the background
#     tools/run.sh stop     drains and ends it
#
# RON_LISTEN (127.0.0.1:8080), RON_DATA (run), RON_WORKERS (auto), NGINX and
# BUILD override where and how.

set -euo pipefail

cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin

verb=${1:-run}
build=$(realpath -m "${BUILD:-build}")
data=$(realpath -m "${RON_DATA:-run}")
listen=${RON_LISTEN:-127.0.0.1:8080}
workers=${RON_WORKERS:-auto}
nginx=${NGINX:-nginx}
unset NGINX                 # nginx takes it for a list of inherited sockets
conf=$data/nginx.conf
user=

die() {
    echo "run: $*" >&2
    exit 1
}

master() {
    local pid

    [ -s "$data/nginx.pid" ] || return 1
    read -r pid <"$data/nginx.pid"
    kill -0 "$pid" 2>/dev/null || return 1
    echo "$pid"
}


# ---- capabilities: a macaroon is a chain of HMACs ---------------------------

hex() { od -An -v -tx1 | tr -d ' \n'; }

bytes() {
    local i text=''

    for ((i = 0; i < ${#1}; i += 2)); do
        text+="\\x${1:i:2}"
    done

    printf '%b' "$text"
}

sha256_hex() { bytes "$1" | sha256sum | cut -d ' ' -f 1; }

# hmac <key, 32 bytes of hex> <message in hex>
hmac() {
    local i byte pad inner='' outer=''

    for ((i = 0; i < 64; i++)); do
        byte=$((0x0${1:2*i:2}))
        printf -v pad '%02x' $((byte ^ 0x36))
        inner+=$pad
        printf -v pad '%02x' $((byte ^ 0x5c))
        outer+=$pad
    done

    sha256_hex "$outer$(sha256_hex "$inner$2")"
}

# field <type> <data in hex>; shorter than 128 bytes
field() { printf '%02x%02x%s' "$1" $((${#2} / 2)) "$2"; }

# mint <id> [<caveat> ...]: a token of the first key
mint() {
    local kid secret key id sig out caveat

    read -r kid secret <"$data/ron.keys"
    secret=$(base64 -d <<<"$secret" | hex)

    key=$(printf 'macaroons-key-generator' | hex)
    key=$(hmac "$(printf '%-64s' "$key" | tr ' ' 0)" "$secret")

    id=$(printf '%s' "$kid:$1" | hex)
    shift
    sig=$(hmac "$key" "$id")
    out=02$(field 2 "$id")00

    for caveat in "$@"; do
        caveat=$(printf '%s' "$caveat" | hex)
        sig=$(hmac "$sig" "$caveat")
        out+=$(field 2 "$caveat")00
    done

    out+=00$(field 6 "$sig")
    bytes "$out" | base64 -w 0 | tr '+/' '-_' | tr -d '='
}


# ---- the data directory -----------------------------------------------------

# The worker's user, who must be able to walk down to the data.
choose_user() {
    [ "$(id -u)" = 0 ] || return 0

    for user in www-data nginx nobody; do
        if id "$user" >/dev/null 2>&1; then break; fi
    done

    if ! setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups \
         test -x "$data" 2>/dev/null
    then
        die "the worker user $user cannot enter $data: choose another" \
            "directory with RON_DATA, or open those above it (chmod o+x)"
    fi
}

prepare() {
    command -v "$nginx" >/dev/null 2>&1 || die "there is no $nginx"
    [ -e "$build/ngx_ron_module.so" ] \
        || die "there is no $build/ngx_ron_module.so, run make"

    mkdir -p "$data"
    chmod a+x "$data"
    choose_user
    mkdir -p "$data/logs" "$data/sock" "$data/tmp"
    chmod 0750 "$data/sock"
    if [ -n "$user" ]; then chown "$user" "$data/sock"; fi

    if [ ! -e "$data/ron.keys" ]; then
        (umask 077
         echo "dev $(head -c 32 /dev/urandom | base64 -w 0)" >"$data/ron.keys")
    fi

    sed -e "s|@USER@|${user:+user $user;}|" \
        -e "s|@WORKERS@|$workers|" \
        -e "s|@MODULE@|$build/ngx_ron_module.so|" \
        -e "s|@LISTEN@|$listen|" \
        -e "s|@DATA@|$data|g" conf/nginx.conf.in >"$conf"
}


# ---- verbs ------------------------------------------------------------------

# GET a path of ours without needing any tool: status and body.
ask() {
    local host=${listen%:*} port=${listen##*:}

    exec 3<>"/dev/tcp/${host:-127.0.0.1}/$port" || return 1
    printf '%s %s HTTP/1.0\r\nHost: localhost\r\n%s\r\n' "$1" "$2" \
        "${3:+Authorization: Bearer $3$'\r\n'Content-Length: 0$'\r\n'}" >&3
    cat <&3
    exec 3<&-
}

launch() {
    local i

    if master >/dev/null; then
        die "it runs already, as $(master) in $data"
    fi

    prepare

    # a session of its own: a terminal's Ctrl-C must not reach the workers

    setsid "$nginx" -p "$data" -c "$conf" -e "$data/logs/error.log" \
        || die "nginx did not start, see $data/logs/error.log"

    for ((i = 0; i < 100; i++)); do
        if ask GET /readyz 2>/dev/null | head -n 1 | grep -q ' 200 '; then
            return 0
        fi
        sleep 0.1
    done

    tail -n 5 "$data/logs/error.log" >&2
    die "it is not ready after 10 s, see $data/logs/error.log"
}

welcome() {
    local token

    token=$(mint dev)

    cat <<TEXT
ngx_ron listens on http://$listen, its data is in $data

A capability for everything, for development only:

    export RON_TOKEN=$token

Three lines to try, with the first line pasted:

    curl -H "Authorization: Bearer \$RON_TOKEN" -H 'Content-Type: application/json' -H "Idempotency-Key: \$RANDOM" -d '{"to":"alice","asset":"ron","amount_minor":"1000"}' http://$listen/v1/issue
    curl -H "Authorization: Bearer \$RON_TOKEN" -H 'Content-Type: application/json' -H "Idempotency-Key: \$RANDOM" -d '{"from":"alice","to":"bob","asset":"ron","amount_minor":"10","nonce":1}' http://$listen/v1/transfer
    curl -H "Authorization: Bearer \$RON_TOKEN" 'http://$listen/v1/balance?account=alice&asset=ron'

TEXT
}

stop() {
    local pid i

    pid=$(master) || die "it does not run in $data"

    # drain, wait for its end, and only then quit

    "$build/ronctl" drain --socket "$data/sock/ledger.sock" \
        --keys "$data/ron.keys" || echo "run: it quits without a drain" >&2

    kill -QUIT "$pid"

    for ((i = 0; i < 150; i++)); do
        kill -0 "$pid" 2>/dev/null || return 0
        sleep 0.1
    done

    kill -TERM "$pid" 2>/dev/null || true
    die "it did not drain in 15 s and was terminated"
}

interrupted() {
    trap '' INT TERM
    echo "run: draining"
    if master >/dev/null; then stop; fi
    exit 0
}

case $verb in
run)
    # before it starts: nothing may be left behind

    trap interrupted INT TERM
    launch
    welcome
    while master >/dev/null; do
        sleep 0.5 &
        wait $! || true
    done
    die "nginx is gone, see $data/logs/error.log"
    ;;
start)
    launch
    welcome
    ;;
stop)
    stop
    echo "run: stopped"
    ;;
*)
    die "usage: tools/run.sh run|start|stop"
    ;;
esac
