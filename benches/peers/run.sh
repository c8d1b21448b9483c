#!/usr/bin/env bash
# Makes a Python environment and measures the peers: run.sh DIR [options of peers.py].
# The environment is in $PEERS_VENV, or else in the target directory, and kept.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="${PEERS_VENV:-${CARGO_TARGET_DIR:-$here/../../target}/peers-venv}"
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
fi
"$venv/bin/python" -m pip install -q --disable-pip-version-check numpy
exec "$venv/bin/python" "$here/peers.py" "$@"
