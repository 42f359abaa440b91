#!/bin/sh
# Installs what the tests use besides Go and git: bubblewrap, the sandbox, and
# sqlite3, the program people type queries into. Says what to do where it may not
# install; the tests then skip what needs them.
set -eu

missing=
command -v bwrap >/dev/null 2>&1 || missing=bubblewrap
command -v sqlite3 >/dev/null 2>&1 || missing="$missing sqlite3"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then sudo=; else sudo="sudo -n"; fi
# The names are word-split on purpose.
if command -v apt-get >/dev/null 2>&1; then
    $sudo apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy $missing && exit 0
elif command -v dnf >/dev/null 2>&1; then
    $sudo dnf install -qy $(echo "$missing" | sed 's/sqlite3/sqlite/') && exit 0
elif command -v pacman >/dev/null 2>&1; then
    $sudo pacman -S --noconfirm $(echo "$missing" | sed 's/sqlite3/sqlite/') && exit 0
fi
echo "setup: could not install: $missing; install them by hand to test the sandbox and the queries of tasks.db" >&2
