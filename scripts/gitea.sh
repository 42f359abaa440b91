#!/bin/sh
# Starts a Gitea of its own, runs the command that is given with its address and its
# administrator's token in TORI_GITEA and TORI_GITEA_TOKEN, and takes it away again. It is built
# from its Go module once (some minutes; a C compiler for its SQLite) and kept in
# ${XDG_CACHE_HOME:-~/.cache}/tori-gitea. GITEA names another binary, GITEA_STATIC its templates.
set -eu

version=v1.26.4 # the newest whose dependencies all have public homes
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tori-gitea/$version
gitea=${GITEA:-$cache/gitea}
static=${GITEA_STATIC:-$cache/src}

if [ ! -x "$gitea" ]; then
    command -v cc >/dev/null || { echo "gitea.sh: no C compiler; install gcc, or name a Gitea in GITEA" >&2; exit 1; }
    echo "gitea.sh: building Gitea $version" >&2
    module=$(go mod download -json "code.gitea.io/gitea@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    rm -rf "$cache" && mkdir -p "$cache"
    cp -r "$module" "$static"
    chmod -R u+w "$static"
    (cd "$static" && CGO_ENABLED=1 go build -tags 'sqlite sqlite_unlock_notify' -trimpath -o "$gitea.new" . && mv "$gitea.new" "$gitea")
fi

dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; [ -z "$server" ] || wait "$server" 2>/dev/null || :; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
port=${GITEA_PORT:-38441}
cat >"$dir/app.ini" <<EOF
RUN_MODE = prod
WORK_PATH = $dir
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = $port
ROOT_URL = http://127.0.0.1:$port/
STATIC_ROOT_PATH = $static
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = $dir/gitea.db
[repository]
ROOT = $dir/repositories
[security]
INSTALL_LOCK = true
[webhook]
ALLOWED_HOST_LIST = loopback
[log]
MODE = file
ROOT_PATH = $dir/log
EOF
run() { HOME=$dir GITEA_WORK_DIR=$dir "$gitea" --config "$dir/app.ini" "$@"; }
run migrate >"$dir/out" 2>&1 || { cat "$dir/out" >&2; exit 1; }
token=$(run admin user create --admin --username root1 --password 'correct horse 7 battery' --email root@people.example \
    --must-change-password=false --access-token --access-token-scopes all 2>/dev/null | sed -n 's/^Access token was successfully created... //p')
HOME=$dir GITEA_WORK_DIR=$dir "$gitea" --config "$dir/app.ini" web >"$dir/out" 2>&1 &
server=$!
tries=0
until curl -sf "http://127.0.0.1:$port/api/v1/version" >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ $tries -gt 120 ] || ! kill -0 "$server" 2>/dev/null; then
        echo "gitea.sh: Gitea does not start:" >&2
        cat "$dir/out" >&2
        exit 1
    fi
    sleep 0.5
done
TORI_GITEA=http://127.0.0.1:$port TORI_GITEA_TOKEN=$token "$@"
