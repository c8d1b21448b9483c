#!/usr/bin/env bash
# Runs the tests of the NEON kernels under qemu-aarch64: unit tests, the JPEG corpus, and the list
# of instruction sets. Each test compares them with the portable kernels.
#
#     scripts/neon_tests.sh             uses what is installed, or says SKIP and why
#     scripts/neon_tests.sh --install   installs what is missing (Debian, as root); so does CI=true
#
# It needs a compiler with the standard library for aarch64-unknown-linux-gnu, a linker and the
# emulator. The compiler is rustup's if it has that target, else Debian's rustc-web, whose library
# for arm64 is unpacked below the target folder. Builds have a target folder of their own.
set -euo pipefail
cd "$(dirname "$0")/.."

base="${CARGO_TARGET_DIR:-target}/neon"
what="NEON kernels under qemu-aarch64"
# shellcheck source=scripts/aarch64.sh
source scripts/aarch64.sh

if [ "$(uname -sm)" = "Linux aarch64" ]; then
    echo "NEON kernels: this machine is aarch64, cargo test runs them without an emulator"
    exit 0
fi
prepare_aarch64 "$@"

# The emulator is some twenty times slower.
export PROPTEST_CASES="${PROPTEST_CASES:-16}"
# In one call, so that common dependencies are compiled once. Without the tokenizers, which use no
# vector instructions of ours, and without the tests of interruptions, which decode pictures of many
# megapixels.
cargo test --target "$triple" -p meetpoint-jpeg -p meetpoint-kernels --no-default-features --lib \
    --test corpus --test instruction_sets -- --skip interrupt_tests
cargo run --quiet --target "$triple" -p meetpoint-jpeg --example instruction_sets
