#!/usr/bin/env bash
# Builds SPDK from a source tree that you name, and the storage engine `spdk` with it. Then runs the
# contract tests of the storage engines over files and over an NVMe/TCP target, and jobs with a
# device that serves a dataset by its extents through SPDK.
#
#     scripts/spdk.sh SPDK_SOURCE_TREE      builds the tree if it is not built, then tests
#     scripts/spdk.sh --installed           uses the SPDK that pkg-config finds
#
# It downloads nothing and installs nothing. The tree is a release of SPDK with its submodules dpdk,
# isa-l and isa-l-crypto in place:
#
#     git clone --branch v26.05 --recurse-submodules https://github.com/spdk/spdk
#
# No huge pages and no privileges are needed, because drives on the PCIe bus are not used. `JOBS` is
# the number of parallel compilations, by default that of the processors. The target is tested only
# if the tree, or PATH, has the program nvmf_tgt. Only root can mount the image of the dataset; for
# other users, the device is not tested. `HOST=FILE` names a program that was built with
# `--features spdk`, instead of building it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    printf 'spdk.sh: %s\n' "$*" >&2
    exit 1
}

[ $# = 1 ] || fail "usage: scripts/spdk.sh SPDK_SOURCE_TREE, or --installed"
case "$(uname -sm)" in
    "Linux x86_64" | "Linux aarch64") ;;
    *) fail "SPDK is used on Linux on x86_64 and aarch64 only, this is $(uname -sm)" ;;
esac

packages="gcc make pkg-config python3 meson ninja-build python3-pyelftools python3-jinja2
    python3-tabulate python3-yaml libaio-dev libnuma-dev libssl-dev uuid-dev libkeyutils-dev
    libfuse3-dev libncurses-dev liburing-dev nasm autoconf automake libtool patchelf help2man
    libclang-dev"
install="on Debian and Ubuntu, as root: apt-get install $(echo $packages)"
ran=()

# build_tree: configures and compiles the tree, with the libraries that the engine links.
build_tree() {
    local part program begun=$SECONDS arguments
    for part in configure dpdk/meson.build isa-l/autogen.sh isa-l-crypto/autogen.sh; do
        [ -e "$tree/$part" ] || fail "$tree/$part is missing: a release of SPDK with the \
submodules dpdk, isa-l and isa-l-crypto is needed (git submodule update --init)"
    done
    for program in gcc make meson ninja nasm autoconf automake libtoolize pkg-config; do
        command -v "$program" >/dev/null || fail "there is no $program; $install"
    done
    python3 -c 'import elftools, jinja2, tabulate, yaml' 2>/dev/null ||
        fail "Python has no elftools, jinja2, tabulate or yaml; $install"
    arguments=(--disable-tests --disable-unit-tests --disable-examples --without-vhost
        --without-virtio --without-crypto --with-uring)
    if [ "$(uname -m)" = x86_64 ]; then
        # Runs on every processor that this program runs on, not only on this machine's.
        arguments+=(--target-arch=x86-64-v2)
    fi
    printf '== build SPDK: ./configure %s\n' "${arguments[*]}"
    (cd "$tree" && ./configure "${arguments[@]}" && make -j"${JOBS:-$(nproc)}") \
        >"$base/build.log" 2>&1 || {
        tail -n 30 "$base/build.log" >&2
        fail "SPDK was not built, see $base/build.log; $install"
    }
    ran+=("SPDK built in $((SECONDS - begun)) s")
}

base="${CARGO_TARGET_DIR:-target}/spdk"
mkdir -p "$base"
base=$(cd "$base" && pwd)
if [ "$1" = --installed ]; then
    tree=
else
    tree=$(cd "$1" 2>/dev/null && pwd) || fail "$1 is not a folder"
    if [ -e "$tree/build/lib/pkgconfig/spdk_event_bdev.pc" ] && [ -e "$tree/build/bin/nvmf_tgt" ]
    then
        ran+=("SPDK was built before")
    else
        build_tree
    fi
    PKG_CONFIG_PATH="$tree/build/lib/pkgconfig:$tree/dpdk/build/lib/pkgconfig:${PKG_CONFIG_PATH:-}"
    export PKG_CONFIG_PATH
fi
includes=$(pkg-config --cflags-only-I spdk_bdev) ||
    fail "pkg-config finds no spdk_bdev; set PKG_CONFIG_PATH, or name a source tree"
release=$(printf '#include <spdk/version.h>\nSPDK_VERSION_STRING\n' |
    gcc -E -P $includes - | tail -n 1 | tr -d '" ' | sed 's,SPDKv,SPDK ,')
dpdk=$(pkg-config --modversion libdpdk) || fail "pkg-config finds no libdpdk"
ran+=("$release with DPDK $dpdk")

printf '== the crate and its tests\n'
cargo test -p meetpoint-storage-spdk --features spdk
ran+=("tests of storage/spdk")

printf '== the contract over files, by bdev_aio and bdev_uring, without huge pages\n'
begun=$SECONDS
cargo test -p meetpoint-storage --features spdk
ran+=("contract over files, all engines: $((SECONDS - begun)) s with the build")

# make_dataset: makes an image that contains a dataset, and maps the extents of the dataset.
make_dataset() {
    local mapped=0
    if [ -z "${HOST:-}" ]; then
        cargo build -p meetpoint-cli --features spdk
        HOST="${CARGO_TARGET_DIR:-target}/debug/meetpoint"
    fi
    host=$(realpath "$HOST")
    mkdir "$folder/root" "$folder/mounted"
    "$host" demo --pictures 48 --keep "$folder/made" >"$base/demo.log" 2>&1 ||
        fail "the dataset was not made, see $base/demo.log"
    cp -r "$folder/made/photos.set" "$folder/root/"
    mke2fs -q -F -t ext4 -b 1024 -d "$folder/root" "$folder/dataset.img" 64M
    mount -o loop,ro,noload "$folder/dataset.img" "$folder/mounted" 2>"$base/mount.log" || return 1
    "$host" dataset extents "$folder/mounted/photos.set" --to "$folder/extents.json" \
        >"$base/extents.log" 2>&1 || mapped=$?
    umount "$folder/mounted"
    [ "$mapped" = 0 ] || fail "the dataset was not mapped, see $base/extents.log"
}

# start_device BLOCK: starts a device that reads the extents from BLOCK through SPDK; sets `device`.
start_device() {
    "$host" device serve --socket "$folder/socket" --engine spdk --allow-shared \
        --extents "$folder/extents.json" --block "$1" >"$base/device.log" 2>&1 &
    device=$!
    for _ in $(seq 600); do
        grep -q '^listening' "$base/device.log" && break
        kill -0 "$device" 2>/dev/null || break
        sleep 0.1
    done
    grep -q '^storage engine spdk' "$base/device.log" ||
        fail "the device on $1 does not serve by SPDK, see $base/device.log"
}

end_device() {
    local status=0
    kill "$device"
    wait "$device" || status=$?
    device=
    [ "$status" = 0 ] || fail "the device ended with $status, see $base/device.log"
}

# run_job STEP ARGUMENT...: starts a job with the device in the background; its report is
# $folder/report.json.
run_job() {
    cat >"$folder/job.toml" <<JOB
dataset = "made/photos.set"
batch_size = 4
seed = 7
workers = 1
stall_timeout = "120s"

[[recipe.operation]]
name = "decode"
[[recipe.operation]]
name = "random_resized_crop"
size = 64

[accelerator]
kind = "emulated"
step = "$1"

[device]
kind = "connect"
socket = "socket"
JOB
    shift
    (cd "$folder" && exec timeout 300 "$host" run job.toml --json "$@") \
        >"$folder/report.json" 2>"$base/run.log" &
    job=$!
}

# end_job CONDITION: waits for the job; fails unless it succeeds, everything is verified and the
# condition holds.
end_job() {
    wait "$job" || fail "the run with the device failed, see $base/run.log"
    job=
    python3 scripts/check_report.py "$folder/report.json" "$1" || fail "the report is wrong"
}

# test_device BLOCK...: runs jobs with a device on each BLOCK; then kills the target during a job
# with a device on the first BLOCK, which must be on the target.
test_device() {
    local block before
    before=$(sha256sum <"$folder/dataset.img")
    for block in "$@"; do
        "$host" dataset extents "$folder/extents.json" --engine spdk --verify "$block"
        start_device "$block"
        run_job 1ms --strategy device-only,wrr
        end_job 'device(of("device-only")) == 12 and not of("device-only")["events"]'
        end_device
    done
    start_device "$1"
    run_job 500ms --strategy device-only --epochs 2 --ledger ledger
    for _ in $(seq 600); do
        [ "$(cat "$folder/ledger" 2>/dev/null | wc -l)" -lt 4 ] || break
        sleep 0.1
    done
    kill -KILL "$process"
    process=
    end_job 'host(runs[0]) > 0 and device(runs[0]) > 0 and len(runs[0]["events"]) > 0'
    end_device
    [ "$(sha256sum <"$folder/dataset.img")" = "$before" ] || fail "the image was written to"
}

target=$(command -v "$tree/build/bin/nvmf_tgt" || command -v nvmf_tgt || true)
if [ -z "$target" ]; then
    ran+=("SKIP: an NVMe/TCP target: there is no nvmf_tgt")
else
    printf '== the contract over an NVMe/TCP target\n'
    folder=$(mktemp -d)
    process= device= job=
    # shellcheck disable=SC2317
    clean_up() {
        local it
        for it in $process $device $job; do kill "$it" 2>/dev/null || true; done
        rm -rf "$folder"
    }
    trap clean_up EXIT
    truncate -s 256M "$folder/drive.img"
    untested=
    if [ "$(id -u)" != 0 ]; then
        untested="only root can mount the image of the dataset"
    elif ! make_dataset; then
        untested="the image of the dataset was not mounted: $(cat "$base/mount.log")"
    fi
    # The namespace exists in any case.
    [ -e "$folder/dataset.img" ] || truncate -s 1M "$folder/dataset.img"
    port=$((20000 + RANDOM % 20000))
    name=nqn.2016-06.io.spdk:meetpoint
    cat >"$folder/target.json" <<JSON
{"subsystems": [
  {"subsystem": "bdev", "config": [
    {"method": "bdev_aio_create",
     "params": {"name": "drive", "filename": "$folder/drive.img", "block_size": 512}},
    {"method": "bdev_aio_create",
     "params": {"name": "dataset", "filename": "$folder/dataset.img", "block_size": 512,
                "readonly": true}}]},
  {"subsystem": "nvmf", "config": [
    {"method": "nvmf_create_transport", "params": {"trtype": "TCP"}},
    {"method": "nvmf_create_subsystem",
     "params": {"nqn": "$name", "allow_any_host": true, "serial_number": "MEETPOINT0"}},
    {"method": "nvmf_subsystem_add_ns",
     "params": {"nqn": "$name", "namespace": {"bdev_name": "drive", "nsid": 1}}},
    {"method": "nvmf_subsystem_add_ns",
     "params": {"nqn": "$name", "namespace": {"bdev_name": "dataset", "nsid": 2}}},
    {"method": "nvmf_subsystem_add_listener",
     "params": {"nqn": "$name", "listen_address": {"trtype": "TCP", "adrfam": "IPv4",
                "traddr": "127.0.0.1", "trsvcid": "$port"}}}]}
]}
JSON
    "$target" --no-huge --no-pci -s 512 -m 0x1 --interrupt-mode --disable-cpumask-locks \
        -r "$folder/rpc.sock" -c "$folder/target.json" >"$base/target.log" 2>&1 &
    process=$!
    for _ in $(seq 300); do
        grep -q 'Target Listening' "$base/target.log" && break
        kill -0 "$process" 2>/dev/null || break
        sleep 0.1
    done
    grep -q 'Target Listening' "$base/target.log" || {
        tail -n 20 "$base/target.log" >&2
        kill "$process" 2>/dev/null || true
        status=0
        wait "$process" || status=$?
        fail "the target does not listen (it ended with $status), see $base/target.log"
    }
    address="trtype:TCP adrfam:IPv4 traddr:127.0.0.1 trsvcid:$port subnqn:$name"
    begun=$SECONDS
    # One after the other: all tests use the same namespace.
    MEETPOINT_TEST_SPDK_DEVICE="spdk:$address ns:1" \
        MEETPOINT_TEST_SPDK_OVERWRITE="$folder/drive.img" \
        cargo test -p meetpoint-storage --features spdk --test contract -- --test-threads=1
    ran+=("contract over an NVMe/TCP target, by transport id: $((SECONDS - begun)) s")

    printf '== targets that stop and that are killed\n'
    MEETPOINT_TEST_NVMF_TGT="$target" \
        cargo test -p meetpoint-storage --features spdk --test contract -- that_stops
    ran+=("requests to targets that stop")

    printf '== some of the contract over the same target, by a configuration of SPDK\n'
    cat >"$folder/drives.json" <<JSON
{"subsystems": [{"subsystem": "bdev", "config": [{"method": "bdev_nvme_attach_controller",
  "params": {"name": "Nvme0", "trtype": "TCP", "adrfam": "IPv4", "traddr": "127.0.0.1",
             "trsvcid": "$port", "subnqn": "$name"}}]}]}
JSON
    MEETPOINT_SPDK_CONFIG="$folder/drives.json" MEETPOINT_TEST_SPDK_DEVICE=spdk:Nvme0n1 \
        MEETPOINT_TEST_SPDK_OVERWRITE="$folder/drive.img" \
        cargo test -p meetpoint-storage --features spdk --test contract -- --test-threads=1 \
        reads:: writes:: spdk::
    ran+=("reads and writes over the same target, by a configuration")

    printf '== a device that serves a dataset by its extents\n'
    if [ -n "$untested" ]; then
        ran+=("SKIP: a device that serves a dataset by its extents: $untested")
    else
        begun=$SECONDS
        test_device "spdk:$address ns:2" "aio:$folder/dataset.img" "uring:$folder/dataset.img"
        ran+=("a device that serves a dataset by its extents: $((SECONDS - begun)) s")
    fi
fi

printf '\n== ran\n'
printf '%s\n' "${ran[@]}"
