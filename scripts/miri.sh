#!/usr/bin/env bash
# Runs the portable kernels and the scheduler under Miri, by hand: minutes, not seconds.
#
#     rustup toolchain install nightly --component miri
#     scripts/miri.sh [filter of test names ...]
#
# Without names it takes a handful of tests of the way from bits to coefficients: all of the kernels
# would take hours. Miri knows no CPU detection beyond what the compiler assumes, so the kernels are
# the portable ones (tests name the instruction sets that they skip). Isolation is off: property
# tests read their seeds, golden tests their files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export MIRIFLAGS="${MIRIFLAGS:--Zmiri-disable-isolation}"
# Few cases of each property: Miri is some hundred times slower.
export PROPTEST_CASES="${PROPTEST_CASES:-4}"
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    names=(bits:: huffman:: form::tests::rows::a_picture_of_one_pixel_stays_small
        form::tests::hostile::few_bytes_cannot_ask_for_much_memory)
fi
cargo +nightly miri test -p meetpoint-jpeg --lib -- "${names[@]}"
cargo +nightly miri test -p meetpoint-scheduler --lib
cargo +nightly miri test -p meetpoint-scheduler --test scheduler -- examples
