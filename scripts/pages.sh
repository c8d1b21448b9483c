#!/usr/bin/env bash
# Opens the pages that people look at in headless Chromium and checks them (scripts/pages.py): the
# reports of a demo and of all strategies, the reproduction, a sweep, and the documentation site.
#
#     scripts/pages.sh             uses Chromium if it is installed, or says SKIP and why
#     scripts/pages.sh --install   installs Chromium (Debian, as root)
#
# MEETPOINT names a built program, else it is built unoptimised. Pages and screenshots are left under
# target/pages. Needs Python 3.9 or later; the site is left out, and said so, without mdbook.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

skip() {
    echo "SKIP: pages in a browser: $*"
    exit 0
}

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$chromium" ]; then
    [ "${1:-}" = --install ] || skip "no Chromium; to install it (Debian, as root): $0 --install"
    command -v apt-get >/dev/null || skip "no Chromium, and no apt-get to install it"
    [ "$(id -u)" = 0 ] || skip "no Chromium; as root, run: apt-get install chromium"
    apt-get -qq update || skip "apt-get update failed"
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
        chromium fonts-dejavu-core || skip "apt-get install chromium failed"
    chromium=$(command -v chromium)
fi

base="${CARGO_TARGET_DIR:-target}"
mkdir -p "$base"
base="$(cd "$base" && pwd)"
program="${MEETPOINT:-}"
if [ -z "$program" ]; then
    cargo build --quiet
    program="$base/debug/meetpoint"
fi

out="$base/pages"
rm -rf "$out"
mkdir -p "$out"
"$program" demo --pictures 64 --keep "$out/kept" --report "$out/demo" >"$out/demo.log" 2>&1
"$program" run "$out/kept/job.toml" --epochs 2 --strategy all --report "$out/strategies" \
    >"$out/strategies.log" 2>&1
"$program" reproduce --report "$out/reproduce" >"$out/reproduce.log"
mkdir "$out/sweep"
"$program" simulate sim/scenarios/one-device.toml --sweep strategy=host-only,mte,wrr \
    --sweep devices.0.preparation=1s,2s,4s,8s --plot "$out/sweep/sweep.html" >"$out/sweep.log"
pages=("$out/demo/report.html" "$out/strategies/report.html" "$out/reproduce/reproduction.html"
    "$out/sweep/sweep.html")

rm -rf "$base/site"
scripts/site.sh --no-install | tail -n 2
if [ -d "$base/site" ]; then
    # The page with everything, for printing, and the one for unknown addresses are no pages of ours.
    while IFS= read -r page; do
        pages+=("$page")
    done < <(find "$base/site" -name '*.html' \
        ! -name 404.html ! -name toc.html ! -name print.html | sort)
fi
python3 scripts/pages.py --self-test --chromium "$chromium" --screenshots "$out/screenshots" \
    --markdown "$out/results.md" "${pages[@]}"
