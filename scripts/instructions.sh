#!/usr/bin/env bash
# Counts instructions of decisions, decoding and reading, and fails if one is off its baseline.
#
#     scripts/instructions.sh             builds, counts and compares; says SKIP without valgrind
#     scripts/instructions.sh --renew     writes a new benches/instructions/baseline.json
#     scripts/instructions.sh --install   installs valgrind (Debian, as root); so does CI=true
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v valgrind >/dev/null; then
    if [ "${1:-}" = --renew ]; then
        echo "there is no valgrind; apt-get install valgrind" >&2
        exit 1
    fi
    if [ "${1:-}" != --install ] && [ "${CI:-}" != true ]; then
        echo "SKIP: instruction counts: no valgrind; apt-get install valgrind"
        exit 0
    elif [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "SKIP: instruction counts: no valgrind, and no root with apt-get to install it"
        exit 0
    elif ! { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
        --no-install-recommends valgrind libc6-dbg; } >/dev/null 2>&1; then
        echo "SKIP: instruction counts: no valgrind, and installing it failed"
        exit 0
    fi
fi
cargo build --quiet --release -p meetpoint-instructions
exec "${PYTHON:-python3}" scripts/instructions.py \
    "${CARGO_TARGET_DIR:-target}/release/instructions" "$@"
