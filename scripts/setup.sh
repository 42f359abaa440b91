#!/bin/sh
# Installs what the tests use besides Go and git: bubblewrap, the sandbox;
# sqlite3, the program people type queries into; PostgreSQL; ripgrep, to compare with; and node, for the public MCP
# servers that the tests talk to, the conformance suite of MCP and GitHub's description of its API. Says what to do where it may not
# install; the tests then skip what needs them.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)

# What package $1 tests with from npm, at the versions of its package-lock.json:
# $2. No script of it is run.
packages() {
    cd "$root/internal/$1/testdata/npm"
    cmp -s package-lock.json node_modules/.installed && return 0
    if npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; then
        # Of GitHub's descriptions one is read; the others are 380 MB.
        find node_modules/@octokit/openapi/generated -name '*.json' ! -name api.github.com.json -delete 2>/dev/null || :
        cp package-lock.json node_modules/.installed
    else
        echo "setup: could not install $2; run 'npm ci' in $PWD to test with it" >&2
    fi
}

from_npm() {
    command -v npm >/dev/null 2>&1 || return 0
    packages tool/mcp "the MCP servers and the conformance suite"
    packages forge/github/githubtest "the description of GitHub"
}

missing=
command -v bwrap >/dev/null 2>&1 || missing=bubblewrap
command -v sqlite3 >/dev/null 2>&1 || missing="$missing sqlite3"
command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
command -v rg >/dev/null 2>&1 || missing="$missing ripgrep"
command -v node >/dev/null 2>&1 || missing="$missing nodejs"
command -v npm >/dev/null 2>&1 || missing="$missing npm"
[ -n "$missing" ] || { from_npm; exit 0; }

if [ "$(id -u)" = 0 ]; then sudo=; else sudo="sudo -n"; fi
# The names are word-split on purpose.
if command -v apt-get >/dev/null 2>&1; then
    $sudo apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing && { from_npm; exit 0; }
elif command -v dnf >/dev/null 2>&1; then
    $sudo dnf install -qy $(echo "$missing" | sed 's/sqlite3/sqlite/; s/postgresql/postgresql-server/') && { from_npm; exit 0; }
elif command -v pacman >/dev/null 2>&1; then
    $sudo pacman -S --noconfirm $(echo "$missing" | sed 's/sqlite3/sqlite/') && { from_npm; exit 0; }
fi
echo "setup: could not install: $missing; install them by hand to test the sandbox, the queries of tasks.db, the ledger in PostgreSQL and MCP servers" >&2
