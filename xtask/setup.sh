#!/bin/sh
# For a machine that has rustup's Rust but no linker yet: installs a C compiler, whose `cc` Rust links with. Does nothing where one is.
set -eu

if command -v cc >/dev/null 2>&1; then
    exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1; then
    as_root="sudo"
else
    as_root="none"
fi

install() {
    if [ "$as_root" = none ]; then
        echo "setup: no linker (cc) found, and this user is neither root nor has sudo: install a C compiler ($*)" >&2
        exit 1
    fi
    echo "setup: no linker (cc) found: $*" >&2
    $as_root "$@" || {
        echo "setup: '$*' failed: install a C compiler by hand" >&2
        exit 1
    }
}

if command -v apt-get >/dev/null 2>&1; then
    install apt-get update
    install env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc libc6-dev
elif command -v dnf >/dev/null 2>&1; then
    install dnf install -y gcc
elif command -v apk >/dev/null 2>&1; then
    install apk add gcc musl-dev
elif command -v pacman >/dev/null 2>&1; then
    install pacman -Sy --noconfirm gcc
elif command -v zypper >/dev/null 2>&1; then
    install zypper --non-interactive install gcc
elif command -v brew >/dev/null 2>&1; then
    as_root=""
    install brew install gcc
else
    echo "setup: no linker (cc) found and no known package manager: install a C compiler (gcc or clang)" >&2
    exit 1
fi

command -v cc >/dev/null 2>&1 || {
    echo "setup: the C compiler is installed, but no 'cc' is on PATH: link it to gcc" >&2
    exit 1
}
