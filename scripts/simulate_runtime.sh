#!/usr/bin/env bash
# Simulates trainings with the real runtime and faults that seeds determine, in a release build:
#   scripts/simulate_runtime.sh [SEEDS] [FIRST]
# By default, 100,000 seeds from 0. A failing seed is printed with the command that replays it; the
# campaign continues and exits with 1. docs/runtime-simulation.md describes what is checked.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds="${1:-100000}"
first="${2:-0}"
cargo run --release --quiet -p meetpoint-machine -- \
    --seeds "$seeds" --first "$first" --keep-going
