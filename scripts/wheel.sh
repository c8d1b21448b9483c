#!/usr/bin/env bash
# Builds the wheel that is handed to users, with the profile dist, and holds it against its limits.
#
#     scripts/wheel.sh [folder for it: dist under the target folder where nothing is given]
#
# It must not be larger than 10 MB, and importing it must take less than 50 ms. PYTHON names the
# interpreter. With ZIG_GLIBC=2.28, say, Zig links it (pip loads that) for every Linux with that
# glibc or a later one; else it needs the glibc of this machine.
set -euo pipefail
cd "$(dirname "$0")/.."

size_max=10000000
import_ms_max=50
folder="${CARGO_TARGET_DIR:-target}/wheel"
mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"
out="${1:-$folder/dist}"
python="$folder/venv/bin/python"
if [ ! -x "$python" ]; then
    "${PYTHON:-python3}" -m venv "$folder/venv"
    "$python" -m pip install --quiet --disable-pip-version-check -r python/requirements.txt
fi

options=()
if [ -n "${ZIG_GLIBC:-}" ]; then
    "$python" -m pip install --quiet --disable-pip-version-check ziglang
    options=(--zig --compatibility "manylinux_${ZIG_GLIBC/./_}")
fi
rm -rf "$out"
"$python" -m maturin build --quiet --manifest-path python/Cargo.toml --profile dist \
    --interpreter "$python" --out "$out" --compression-level 9 "${options[@]}"
wheel="$(ls "$out"/meetpoint-*.whl)"
size="$(stat --format=%s "$wheel")"
echo "$wheel: $size bytes, at most $size_max"
[ "$size" -le "$size_max" ] || { echo "the wheel is too large" >&2; exit 1; }

rm -rf "$folder/site"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder/site" \
    "$wheel"
PYTHONPATH="$folder/site" "$python" scripts/import_time.py --at-most-ms "$import_ms_max"
