# A Python with Ray, and Meetpoint installed beside it. Sourced by scripts/ray_tests.sh and
# scripts/ray_cluster.sh with the profile of the build.
#
# Sets `python` and exports PYTHONPATH. RAY_PYTHON names a Python with ray[data,train]; without it,
# a virtual environment of about 630 MB is created under the target folder. MEETPOINT_WHEEL names a
# wheel to use instead of a new build. Ends the script with SKIP if Ray cannot be installed.

profile="$1"
folder="${CARGO_TARGET_DIR:-target}/ray-tests"
mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"
python="${RAY_PYTHON:-$folder/venv/bin/python}"
if [ ! -x "$python" ]; then
    "${PYTHON:-python3}" -m venv "$folder/venv"
fi
if ! "$python" -c "import ray.data, ray.train" 2>/dev/null; then
    if ! "$python" -m pip install --quiet --disable-pip-version-check "ray[data,train]>=2.60" \
        pytest "numpy>=1.22" 2>"$folder/pip.log"; then
        echo "SKIP: Ray cannot be installed: $(tail -n 1 "$folder/pip.log")"
        exit 0
    fi
fi
wheel="${MEETPOINT_WHEEL:-}"
if [ -z "$wheel" ]; then
    rm -rf "$folder/wheels"
    "$python" -m pip install --quiet --disable-pip-version-check "maturin>=1.9,<2" pytest
    "$python" -m maturin build --quiet --manifest-path python/Cargo.toml --profile "$profile" \
        --interpreter "$python" --out "$folder/wheels"
    wheel="$(ls "$folder"/wheels/meetpoint-*.whl)"
fi
rm -rf "$folder/site"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder/site" \
    "$wheel"
# Ray's default niceness is 15, so other load of the machine would slow down only its workers.
export RAY_worker_niceness=0
export PYTHONPATH="$folder/site" RAY_USAGE_STATS_ENABLED=0 RAY_ENABLE_UV_RUN_RUNTIME_ENV=0
