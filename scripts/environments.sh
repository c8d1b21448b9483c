#!/usr/bin/env bash
# Runs a job with an emulated device in restricted environments: as an ordinary user with 8 MiB of
# locked memory, under a seccomp filter without io_uring as in a container, without /proc, with a
# /proc that hides other users' processes, on tmpfs, on a block device with blocks of 4 KiB, and
# from a read-only file system. Compares every batch with that of the host alone, and checks the
# program's messages about the restriction.
#
#     scripts/environments.sh             builds the program and runs what this machine allows
#     HOST=FILE scripts/environments.sh   uses an existing program
#
# Prints SKIP and the reason for each environment that cannot be set up. Loop devices and mounts
# need root.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${HOST:-}" ]; then
    CARGO_PROFILE_DEV_DEBUG=0 cargo build -p meetpoint-cli
    HOST="${CARGO_TARGET_DIR:-target}/debug/meetpoint"
fi
repository=$PWD
folder=$(mktemp -d)
mounted=()
loops=()
# shellcheck disable=SC2317
clean_up() {
    local it
    for it in "${mounted[@]}"; do umount "$it" || true; done
    for it in "${loops[@]}"; do losetup --detach "$it" || true; done
    rm -rf "$folder"
}
trap clean_up EXIT
chmod 755 "$folder"
cp "$HOST" "$folder/meetpoint"
"$folder/meetpoint" demo --pictures 64 --keep "$folder/made" >"$folder/demo.log" 2>&1 ||
    { cat "$folder/demo.log" >&2; exit 1; }
failed=0

# run_in NAME FOLDER COMMAND...: runs the job in FOLDER, which has made/photos.set, through COMMAND.
# Writes the output of the run to $folder/said.
run_in() {
    local name="$1" where="$2" work
    shift 2
    printf '== %s\n' "$name"
    work=$(mktemp -d "$folder/work.XXXXXX")
    chmod 777 "$work"
    cat >"$work/job.toml" <<JOB
dataset = "$where/made/photos.set"
batch_size = 8
seed = 7
workers = 4
stall_timeout = "60s"

[[recipe.operation]]
name = "decode"
[[recipe.operation]]
name = "random_resized_crop"
size = 64

[device]
kind = "emulated"
allow_shared = true
JOB
    if ! (cd "$work" && XDG_RUNTIME_DIR="$work" HOME="$work" TMPDIR="$work" timeout 300 "$@" \
        "$folder/meetpoint" run job.toml --strategy host-only,wrr --json \
        >"$work/run.json" 2>"$work/run.err"); then
        cat "$work/run.err" >&2
        failed=1
        return 1
    fi
    python3 "$repository/scripts/check_report.py" "$work/run.json" 'len(runs) == 2' || failed=1
    cat "$work/run.json" "$work/run.err" >"$folder/said"
}

# expect PATTERN: checks that the output of the last run matches.
expect() {
    if ! grep -q "$1" "$folder/said"; then
        printf 'the run does not say: %s\n' "$1" >&2
        failed=1
    fi
}

skip() {
    printf '== %s\nSKIP: %s\n' "$1" "$2"
}

# An ordinary user with the usual limit of locked memory.
if [ "$(id -u)" != 0 ]; then
    ulimit -l 8192 2>/dev/null || true
    run_in "an ordinary user with 8 MiB of locked memory" "$folder" env
elif command -v setpriv >/dev/null && command -v prlimit >/dev/null; then
    run_in "an ordinary user with 8 MiB of locked memory" "$folder" \
        prlimit --memlock=8388608:8388608 \
        setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all
    # If the limit is less than the buffers of one thread, none are registered.
    setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all \
        prlimit --memlock=65536:65536 "$folder/meetpoint" doctor --path "$folder" \
        >"$folder/said" 2>&1 || true
    expect 'io_uring works without registered buffers'
else
    skip "an ordinary user with 8 MiB of locked memory" "there is no setpriv or prlimit"
fi

# io_uring is blocked, as by the default profile of Docker.
cat >"$folder/without_io_uring.py" <<'PYTHON'
"""Runs a program under a seccomp filter that refuses the system calls of io_uring with EPERM."""

import ctypes
import os
import struct
import sys

# BPF: load the number of the system call; refuse 425 to 427, which are the same on x86-64 and
# aarch64; allow the rest.
code = b"".join(
    struct.pack("HBBI", *line)
    for line in [
        (0x20, 0, 0, 0),
        (0x35, 0, 2, 425),
        (0x35, 1, 0, 428),
        (0x06, 0, 0, 0x00050001),
        (0x06, 0, 0, 0x7FFF0000),
    ]
)
buffer = ctypes.create_string_buffer(code)
program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, os.strerror(ctypes.get_errno())
if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0) != 0:
    sys.exit(f"no seccomp filter: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
PYTHON
name="a container without io_uring"
if python3 "$folder/without_io_uring.py" true 2>"$folder/seccomp.log"; then
    run_in "$name" "$folder" python3 "$folder/without_io_uring.py" &&
        expect 'reading with threads: io_uring is not available'
else
    skip "$name" "$(cat "$folder/seccomp.log")"
fi

# Containers and chroots without /proc, and with a /proc that shows only the user's own processes.
name="a mount namespace without /proc"
if unshare --mount sh -c 'umount -l /proc' 2>"$folder/unshare.log"; then
    # shellcheck disable=SC2016
    run_in "$name" "$folder" unshare --mount sh -c 'umount -l /proc && exec "$@"' sh || true
    name="an ordinary user with /proc mounted with hidepid=2"
    # shellcheck disable=SC2016
    run_in "$name" "$folder" unshare --mount --pid --fork sh -c \
        'mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --regid 65534 \
        --clear-groups --bounding-set -all "$@"' sh || true
else
    skip "$name" "$(cat "$folder/unshare.log")"
fi

# Dataset and work on tmpfs.
if [ -w /dev/shm ]; then
    shared=$(mktemp -d /dev/shm/meetpoint.XXXXXX)
    trap 'rm -rf "$shared"; clean_up' EXIT
    cp -r "$folder/made" "$shared/"
    run_in "a dataset on tmpfs" "$shared" env || true
else
    skip "a dataset on tmpfs" "/dev/shm is not writable"
fi

# make_loop IMAGE: creates a loop device with blocks of 4 KiB and sets `loop`.
make_loop() {
    loop=$(losetup --find --show --direct-io=on --sector-size 4096 "$1" 2>"$folder/loop.log") ||
        return 1
    loops+=("$loop")
}
name="a block device with blocks of 4 KiB"
name_read_only="a dataset on a read-only file system"
if [ "$(id -u)" != 0 ]; then
    skip "$name" "loop devices need root"
    skip "$name_read_only" "mounts need root"
else
    truncate -s 256M "$folder/drive.img"
    mkdir "$folder/mounted"
    if make_loop "$folder/drive.img" && mke2fs -q -F -t ext4 -b 4096 "$loop" 2>"$folder/loop.log" &&
        mount "$loop" "$folder/mounted" 2>"$folder/loop.log"; then
        mounted+=("$folder/mounted")
        cp -r "$folder/made" "$folder/mounted/"
        printf 'logical blocks of %s bytes\n' "$(blockdev --getss "$loop")"
        run_in "$name" "$folder/mounted" env || true
        sync "$folder/mounted"
        if mount -o remount,ro "$folder/mounted" 2>"$folder/loop.log"; then
            run_in "$name_read_only" "$folder/mounted" env || true
        else
            skip "$name_read_only" "$(cat "$folder/loop.log")"
        fi
    else
        skip "$name" "$(cat "$folder/loop.log")"
        skip "$name_read_only" "$(cat "$folder/loop.log")"
    fi
fi
exit "$failed"
