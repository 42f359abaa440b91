# A server of PostgreSQL that lives as long as who holds the other end of the standard input:
# "stop" and "start" there are orders. $1 is the directory of its programs, $2 where its own is made;
# what follows are settings.
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
shift 2
settings=$*
set -- -D "$dir/data" -U tori -A trust -E UTF8 --no-sync
if ! "$bin/initdb" "$@" --locale=C.UTF-8 --locale-provider=icu --icu-locale=en >"$dir/log" 2>&1; then
    rm -rf "$dir/data"
    "$bin/initdb" "$@" --locale=C >>"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }
fi

start() {
    # shellcheck disable=SC2086 # a word for each
    "$bin/postgres" -D "$dir/data" -k "$dir" $settings >>"$dir/log" 2>&1 &
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
