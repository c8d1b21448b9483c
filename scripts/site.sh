#!/usr/bin/env bash
# Builds the documentation site from docs/ into target/site and checks it for dead links.
#
#     scripts/site.sh              uses mdbook if it is installed, else builds it below target/
#     scripts/site.sh --no-install says SKIP if mdbook is not installed
#
# Needs Python 3.9 or later; building mdbook takes some minutes, once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

base="${CARGO_TARGET_DIR:-target}"
mkdir -p "$base"
base="$(cd "$base" && pwd)"
PATH="$base/mdbook/bin:$PATH"
if ! command -v mdbook >/dev/null; then
    if [ "${1:-}" = --no-install ]; then
        echo "SKIP: mdbook is not installed (cargo install --locked mdbook)"
        exit 0
    fi
    CARGO_PROFILE_DEV_DEBUG=0 cargo install --locked --debug --root "$base/mdbook" \
        --target-dir "$base/mdbook/build" mdbook --version 0.5.4
    rm -rf "$base/mdbook/build"
fi

python3 scripts/site.py prepare "$base/site-source"
mdbook build --dest-dir "$base/site" "$base/site-source"
python3 scripts/site.py check "$base/site"
echo "$base/site/index.html"
