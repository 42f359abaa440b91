# A server of PostgreSQL that lives as long as who holds the other end of the standard input:
# "stop" and "start" there are orders. $1 is the directory of its programs, $2 where its own is made.
set -eu
export LC_ALL=C
dir=$(mktemp -d "$2/tori-pg.XXXXXX")
pid=
end() {
    [ -z "$pid" ] || { kill -QUIT "$pid" 2>/dev/null && wait "$pid"; } || :
    rm -rf "$dir"
}
trap end EXIT
trap 'exit 1' HUP INT TERM PIPE
# Texts compare by language there, so that what must not is noticed.
bin=$1
set -- -D "$dir/data" -U tori -A trust -E UTF8 --no-sync
if ! "$bin/initdb" "$@" --locale=C.UTF-8 --locale-provider=icu --icu-locale=en >"$dir/log" 2>&1; then
    rm -rf "$dir/data"
    "$bin/initdb" "$@" --locale=C >>"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }
fi

start() {
    "$bin/postgres" -D "$dir/data" -k "$dir" -c listen_addresses= -c fsync=off -c synchronous_commit=off -c full_page_writes=off \
        -c max_connections=500 -c shared_buffers=64MB -c max_wal_size=4GB -c autovacuum_naptime=5s >>"$dir/log" 2>&1 &
    pid=$!
    for _ in $(seq 600); do
        if "$bin/pg_isready" -q -h "$dir" -U tori -d postgres; then
            return 0
        fi
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    cat "$dir/log" >&2
    exit 1
}

start
"$bin/psql" -qXh "$dir" -U tori -d postgres -c 'CREATE EXTENSION pg_trgm' >>"$dir/log" 2>&1 || :
echo "$dir"
while read -r order; do
    case $order in
    stop)
        kill -INT "$pid"
        wait "$pid" || :
        echo stopped
        ;;
    start)
        start
        echo started
        ;;
    esac
done
