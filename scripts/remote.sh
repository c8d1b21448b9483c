#!/usr/bin/env bash
# Tests of sources in object stores and on web servers, against servers on this machine: s3s-fs for
# S3 and a small web server with faults and TLS, both inside the tests; Azurite for Azure where npm is there
# to install it. Google's store has no server here that the client can be pointed to without TLS.
#
#     scripts/remote.sh [NAME OF A TEST]
#
# Builds the program with the feature `remote`, apart from the default tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ -z "${MEETPOINT_TEST_AZURITE:-}" ] && command -v npm >/dev/null; then
    folder="${CARGO_TARGET_DIR:-target}/azurite"
    mkdir -p "$folder"
    folder="$(cd "$folder" && pwd)"
    if [ ! -e "$folder/node_modules/.bin/azurite-blob" ]; then
        npm install --no-audit --no-fund --prefix "$folder" azurite@3.35.0 @azure/storage-blob@12
    fi
    export MEETPOINT_TEST_AZURITE="$folder"
fi
[ -n "${MEETPOINT_TEST_AZURITE:-}" ] || echo "no npm: the test of Azure does nothing"

cargo clippy -p meetpoint-datasets -p meetpoint-cli --features remote -- -D warnings
cargo clippy -p meetpoint-tests --features remote --test remote -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc -p meetpoint-datasets --features remote --no-deps
cargo test -p meetpoint-datasets --features remote --lib source::
cargo test -p meetpoint-datasets --features remote --lib ranged::
cargo test -p meetpoint-datasets --features remote --test in_store
cargo test -p meetpoint-tests --features remote --test remote "$@"
