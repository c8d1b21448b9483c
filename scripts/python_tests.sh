#!/usr/bin/env bash
# Builds the Python package, installs it into a virtual environment, and runs its tests and checks.
#
# Takes the profile of the build (dev, the default, or release). PYTHON names the interpreter.
# WITH_JAX=1 installs JAX for the CPU, without which its tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

profile="${1:-dev}"
folder="${CARGO_TARGET_DIR:-target}/python-tests"
mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"
python="$folder/venv/bin/python"
if [ ! -x "$python" ]; then
    "${PYTHON:-python3}" -m venv "$folder/venv"
fi
"$python" -m pip install --quiet --disable-pip-version-check -r python/requirements.txt
if [ "${WITH_JAX:-0}" = 1 ]; then
    "$python" -m pip install --quiet --disable-pip-version-check jax
fi

rm -rf "$folder/wheels"
"$python" -m maturin build --quiet --manifest-path python/Cargo.toml --profile "$profile" \
    --interpreter "$python" --out "$folder/wheels"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall \
    "$folder"/wheels/meetpoint-*.whl
ls -l "$folder"/wheels

# Not from the folder of the package's source, which has no native module.
"$python" -m pytest -q -p no:cacheprovider python/tests
for example in python/examples/*.py; do
    "$python" "$example" --quick
done
(
    cd python
    "$python" -m mypy
    "$python" -m pyright --pythonpath "$python"
)
