#!/bin/sh
# Installs what the tests use besides Go and git: bubblewrap, the sandbox. Says
# what to do where it may not install; the tests then skip what needs it.
set -eu

command -v bwrap >/dev/null 2>&1 && exit 0

if [ "$(id -u)" = 0 ]; then sudo=; else sudo="sudo -n"; fi
if command -v apt-get >/dev/null 2>&1; then
    $sudo apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy bubblewrap && exit 0
elif command -v dnf >/dev/null 2>&1; then
    $sudo dnf install -qy bubblewrap && exit 0
elif command -v pacman >/dev/null 2>&1; then
    $sudo pacman -S --noconfirm bubblewrap && exit 0
fi
echo "setup: bubblewrap could not be installed; install it by hand to test the sandbox" >&2
