#!/usr/bin/env bash
# Renders deploy/chart with Helm, checks it, and compares the result with
# deploy/chart-rendered.yaml.
#
#     scripts/chart.sh            compare
#     scripts/chart.sh --write    write the rendered file
#
# Helm comes from PyPI, as a library in a wheel (helm-python-sdk), in a virtual environment under
# target/. If it cannot be installed, this prints SKIP with the reason.
set -euo pipefail
cd "$(dirname "$0")/.."

folder="${CARGO_TARGET_DIR:-target}/helm"
if ! [ -e "$folder/bin/python" ] || ! "$folder/bin/python" -c "import helm_python, yaml" 2>/dev/null; then
    python3 -m venv "$folder"
    if ! "$folder/bin/pip" install --quiet helm-python-sdk==0.2.2 pyyaml >"$folder/pip.log" 2>&1; then
        echo "SKIP: the chart: Helm cannot be installed, see $folder/pip.log"
        exit 0
    fi
fi
exec "$folder/bin/python" scripts/chart_render.py "$@"
