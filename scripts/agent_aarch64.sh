#!/usr/bin/env bash
# A device of another instruction set: the program, built for aarch64 and run under qemu-aarch64,
# serves this x86_64 host, once over a Unix socket with a shared spool, and once over the loopback
# interface with batches that are sent. Every strategy runs, and every sample is compared with the
# host alone's.
#
#     scripts/agent_aarch64.sh             uses what is installed, or says SKIP and why
#     scripts/agent_aarch64.sh --install   installs what is missing (Debian, as root); so does CI=true
#
# It shows that both ends agree on every byte, never how fast a device is. It is not part of
# scripts/test.sh: it builds the whole program a second time. The build shares its folder with
# scripts/neon_tests.sh. `HOST=FILE AGENT=FILE` name programs that exist instead, such as those of
# scripts/static_agents.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

base="${CARGO_TARGET_DIR:-target}/neon"
what="an aarch64 device under qemu-aarch64"
# shellcheck source=scripts/aarch64.sh
source scripts/aarch64.sh

if [ -n "${HOST:-}" ] && [ -n "${AGENT:-}" ]; then
    host=$(realpath "$HOST")
    agent=$(realpath "$AGENT")
    command -v qemu-aarch64-static >/dev/null || { prepare_aarch64 "$@"; }
else
    # The host first: what follows sets the compiler and the target folder of the other build.
    cargo build -p meetpoint-cli
    host="$(cd "${CARGO_TARGET_DIR:-target}/debug" && pwd)/meetpoint"
    prepare_aarch64 "$@"
    cargo build --target "$triple" -p meetpoint-cli
    agent="$CARGO_TARGET_DIR/$triple/debug/meetpoint"
fi

folder=$(mktemp -d)
device=
stop_device() {
    if [ -n "$device" ]; then
        kill "$device" 2>/dev/null || true
        wait "$device" 2>/dev/null || true
        device=
    fi
}
trap 'stop_device; rm -rf "$folder"' EXIT
cd "$folder"

"$host" demo --pictures 96 --keep made >demo.log 2>&1 || { cat demo.log >&2; exit 1; }
mkdir copy
cp -r made/photos.set copy/photos.set
openssl rand -hex 32 >token
cat >job.toml <<'JOB'
dataset = "made/photos.set"
batch_size = 8
seed = 7
strategy = "host-only"
workers = 1
stall_timeout = "60s"

[[recipe.operation]]
name = "decode"
[[recipe.operation]]
name = "random_resized_crop"
size = 96
[[recipe.operation]]
name = "random_horizontal_flip"
[[recipe.operation]]
name = "to_dtype"
dtype = "float32"
scale = true
JOB

# serve ARGUMENT...: starts the device and waits until it says where it listens.
serve() {
    rm -f serve.log
    qemu-aarch64-static -L /usr/aarch64-linux-gnu "$agent" device serve --allow-shared "$@" \
        >serve.log 2>&1 &
    device=$!
    for _ in $(seq 600); do
        if grep -q '^listening on' serve.log; then
            return 0
        fi
        kill -0 "$device" 2>/dev/null || break
        sleep 0.1
    done
    cat serve.log >&2
    exit 1
}

# check NAME ARGUMENT...: every strategy with the running device, each verified.
check() {
    local name="$1"
    shift
    "$host" run job.toml --strategy host-only,device-only,mte,mte-feedback,wrr,wrr-frozen,windowed,auto --report "$name" "$@" >"$name.log" 2>&1 ||
        { cat "$name.log" serve.log >&2; exit 1; }
    grep -E '^[a-z-]+: C0' "$name.log"
    if ! grep -q '^device-only: C0 C1 C2' "$name.log"; then
        echo "device-only was not verified:" >&2
        cat "$name.log" >&2
        exit 1
    fi
}

printf '\n== an aarch64 device on a Unix socket\n'
serve --socket "$folder/device.sock" --root "$folder/made"
check socket --device "unix:$folder/device.sock"
stop_device

printf '\n== an aarch64 device over the loopback interface\n'
serve --listen tcp://127.0.0.1:0 --root photos="$folder/copy" --token-file token
address=$(sed -n 's/^listening on //p' serve.log)
check network --device "$address" --device-token-file token
stop_device
printf '\nbatches of the aarch64 device equal those of the x86_64 host\n'
