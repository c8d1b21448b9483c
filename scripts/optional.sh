#!/usr/bin/env bash
# Compiles what the other checks leave out: the feature `remote` with its tests, and the fuzz
# workspace with every target. Runs nothing of them; scripts/remote.sh and scripts/fuzz.sh do.
#
# Needs a C++ compiler for libFuzzer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

printf '== the feature remote\n'
cargo check -p meetpoint-datasets -p meetpoint-cli --features remote
cargo check -p meetpoint-tests --features remote --test remote

# Its own workspace shares the target folder, and so the builds of dependencies.
target="$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)"
export CARGO_TARGET_DIR="$target"

printf '== the fuzz workspace, by the plain loop and by libFuzzer\n'
cargo check --manifest-path fuzz/Cargo.toml --no-default-features --all-targets
cargo check --manifest-path fuzz/Cargo.toml --all-targets
