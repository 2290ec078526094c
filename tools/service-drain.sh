#!/bin/sh
#
# What the service unit runs before it quits nginx:
#
#     drain [argument of nginx ...]
#
# Asks nginx for its configuration and drains the ledger that it names, so
# that a balancer notices before the listeners close.  Without a ledger, or
# with one in memory that has no name of its own, there is nothing to do.

set -u

conf=$(nginx -T "$@" 2>/dev/null) || {
    echo "drain: nginx does not accept its configuration, so it only quits" >&2
    exit 0
}

# The first value of a directive, wherever it stands.
directive() {
    printf '%s\n' "$conf" | sed -E 's/(^|[[:space:];{}])#.*/\1/' \
        | tr '\n' ' ' | sed 's/[;{}]/\n/g' | tr -d "\"'" \
        | awk -v name="$1" '$1 == name { print $2; exit }'
}

ledger=$(directive ron_ledger)
socket=$(directive ron_socket)
keys=$(directive ron_keys)

case $ledger in
'') exit 0 ;;
memory:*) [ -n "$socket" ] || exit 0 ;;
esac

# as nginx has it: beside the file that includes all others

case $keys in
/*) ;;
*)  main=$(printf '%s\n' "$conf" \
           | sed -n 's/^# configuration file \(.*\):$/\1/p;/^# conf/q')
    keys=$(dirname "$main")/$keys ;;
esac

exec ronctl drain --keys "$keys" --timeout 10 ${socket:+--socket "$socket"} \
     -- "${ledger#sqlite:}"
