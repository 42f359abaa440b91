#!/bin/sh
# Installs what the tests use besides Go and git: bubblewrap, the sandbox;
# sqlite3, the program people type queries into; ripgrep, to compare with; and node, for the public MCP
# servers that the tests talk to. Says what to do where it may not install; the
# tests then skip what needs them.
set -eu

# The MCP servers, at the versions of package-lock.json. They are only tested
# with: no script of theirs is run.
servers() {
    command -v npm >/dev/null 2>&1 || return 0
    cd "$(dirname "$0")/../internal/tool/mcp/testdata/npm"
    cmp -s package-lock.json node_modules/.installed && return 0
    if npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; then
        cp package-lock.json node_modules/.installed
    else
        echo "setup: could not install the MCP servers; run 'npm ci' in $PWD to test with them" >&2
    fi
}

missing=
command -v bwrap >/dev/null 2>&1 || missing=bubblewrap
command -v sqlite3 >/dev/null 2>&1 || missing="$missing sqlite3"
command -v rg >/dev/null 2>&1 || missing="$missing ripgrep"
command -v node >/dev/null 2>&1 || missing="$missing nodejs"
command -v npm >/dev/null 2>&1 || missing="$missing npm"
[ -n "$missing" ] || { servers; exit 0; }

if [ "$(id -u)" = 0 ]; then sudo=; else sudo="sudo -n"; fi
# The names are word-split on purpose.
if command -v apt-get >/dev/null 2>&1; then
    $sudo apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing && { servers; exit 0; }
elif command -v dnf >/dev/null 2>&1; then
    $sudo dnf install -qy $(echo "$missing" | sed 's/sqlite3/sqlite/') && { servers; exit 0; }
elif command -v pacman >/dev/null 2>&1; then
    $sudo pacman -S --noconfirm $(echo "$missing" | sed 's/sqlite3/sqlite/') && { servers; exit 0; }
fi
echo "setup: could not install: $missing; install them by hand to test the sandbox, the queries of tasks.db and MCP servers" >&2
