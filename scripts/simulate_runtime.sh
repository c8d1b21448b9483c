#!/usr/bin/env bash
# Simulates trainings with the real runtime and faults that follow from seeds, in a release build:
#   scripts/simulate_runtime.sh [SEEDS] [FIRST]
# 100000 seeds from 0 by default. A failing seed is printed with the command that replays it, and
# the campaign continues; the exit status is 1. docs/runtime-simulation.md describes what is checked.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds="${1:-100000}"
first="${2:-0}"
cargo run --release --quiet -p meetpoint-machine --features simulate -- \
    --seeds "$seeds" --first "$first" --keep-going
