#!/usr/bin/env bash
# Runs the tests that need Ray: commands as tasks, a worker killed within a part, Ray datasets, and
# a loader inside Ray Train. Run it by hand; the last result is in docs/measurements.
#
#     scripts/ray_tests.sh [profile of the build: dev, the default, or release]
#
# RAY_PYTHON names a Python with ray[data,train]. Without it, a virtual environment of about 630 MB
# is created under the target folder. MEETPOINT_WHEEL names a wheel to test instead of a new build.
# Prints SKIP with the reason if Ray cannot be installed.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/ray_python.sh
source scripts/ray_python.sh "${1:-dev}"

timeout 900 "$python" -m pytest -q -p no:cacheprovider -c python/pyproject.toml python/tests_ray
