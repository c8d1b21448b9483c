#!/usr/bin/env bash
# Every test: those of the workspace, among them real processes, injected faults and the runtime on a
# simulated machine (docs/runtime-simulation.md), then those of the Python package. Meanwhile the
# NEON kernels run under an emulator (scripts/neon_tests.sh), instructions are counted against their
# baseline (scripts/instructions.sh), and jobs run in restricted environments
# (scripts/environments.sh). The last lines name the instruction sets exercised.
# Needs Rust, and Python 3.9 or later with pip; makes virtual environments of its own under the
# target folder.
#
# The tests and the wheel share one build: both have the same profile and features.
set -euo pipefail
cd "$(dirname "$0")/.."

# A first build is faster and half as large without debug information and incremental files.
export CARGO_INCREMENTAL="${CARGO_INCREMENTAL:-0}"
export CARGO_PROFILE_DEV_DEBUG="${CARGO_PROFILE_DEV_DEBUG:-false}"

# Prints a heading, with the seconds since the start.
section() { printf '\n== %s (at %s s)\n' "$1" "$SECONDS"; }

# Many tests wait for processes, so twice as many run at once as there are cores.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$((2 * $(nproc)))}"

# The tests that read a packed dataset with pyarrow, polars, DuckDB or plain Python are skipped with
# a message if those are absent. Here they must run. They are installed while Rust compiles.
venv="${CARGO_TARGET_DIR:-target}/ci-venv"
mkdir -p "$venv"
install_readers() {
    if [ ! -x "$venv/bin/python" ]; then
        "${PYTHON:-python3}" -m venv "$venv"
    fi
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt
}
install_readers >"$venv/install.log" 2>&1 &
readers=$!

section 'build the tests of the workspace'
cargo test --workspace --no-run

if ! wait "$readers"; then
    cat "$venv/install.log" >&2
    echo "failed to install what tests/requirements.txt lists" >&2
    exit 1
fi
MEETPOINT_TEST_PYTHON="$(cd "$venv/bin" && pwd)/python"
export MEETPOINT_TEST_PYTHON MEETPOINT_REQUIRE_PYARROW=1

# The tests do not use all cores all the time, so these run in parallel, the kernels and the counts
# with their own build folders. Their output is printed at the end.
others() {
    section 'NEON kernels'
    scripts/neon_tests.sh || return
    section 'instruction counts'
    scripts/instructions.sh || return
    section 'restricted environments'
    HOST="${CARGO_TARGET_DIR:-target}/debug/meetpoint-under-test" scripts/environments.sh
}
# A separate process group, so that a failure of other tests ends all of it.
set -m
others >"$venv/others.log" 2>&1 &
others=$!
set +m
trap 'kill -- -"$others" 2>/dev/null || true' EXIT

section 'cargo test --workspace'
cargo test --workspace

section 'the Python package'
scripts/python_tests.sh

status=0
wait "$others" || status=$?
trap - EXIT
cat "$venv/others.log"
if [ "$status" != 0 ]; then
    exit "$status"
fi

section 'instruction sets'
# With all packages, so that nothing is compiled again.
cargo build --quiet --workspace --example instruction_sets
"${CARGO_TARGET_DIR:-target}/debug/examples/instruction_sets"
