#!/usr/bin/env bash
# Runs what needs torch: ranks under torchrun, the conventions of torchdata and Lightning, the
# examples with each framework. By hand; the last result is in docs/measurements.
#
#     scripts/torch_tests.sh [profile of the build: dev, the default, or release]
#
# TORCH_PYTHON names a Python with torch and torchvision (and torchdata, lightning, transformers,
# accelerate, timm, keras, albumentations, pyarrow and jax, whose tests are skipped otherwise);
# without, a virtual environment is made under the target folder, for which pip loads some gigabytes.
# MEETPOINT_WHEEL names a wheel to test in place of one that is built.
set -euo pipefail
cd "$(dirname "$0")/.."

profile="${1:-dev}"
folder="${CARGO_TARGET_DIR:-target}/torch-tests"
mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"
python="${TORCH_PYTHON:-$folder/venv/bin/python}"
if [ ! -x "$python" ]; then
    "${PYTHON:-python3}" -m venv "$folder/venv"
    "$python" -m pip install --quiet --disable-pip-version-check \
        torch torchvision torchdata lightning transformers accelerate timm keras albumentations \
        jax pyarrow pytest pillow
fi
wheel="${MEETPOINT_WHEEL:-}"
if [ -z "$wheel" ]; then
    rm -rf "$folder/wheels"
    "$python" -m pip install --quiet --disable-pip-version-check "maturin>=1.9,<2"
    "$python" -m maturin build --quiet --manifest-path python/Cargo.toml --profile "$profile" \
        --interpreter "$python" --out "$folder/wheels"
    wheel="$(ls "$folder"/wheels/meetpoint-*.whl)"
fi
rm -rf "$folder/site"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder/site" \
    "$wheel"
export PYTHONPATH="$folder/site"

"$python" -m pytest -q -p no:cacheprovider -c python/pyproject.toml python/tests_torch
