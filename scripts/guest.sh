# Sourced by the scripts that boot Linux in QEMU: kernels and BusyBox of Debian, without KVM.
#
# It needs `what` and `base`, as scripts/debian.sh does. `arm64` and `amd64` are the architectures.
# Guests are emulated instruction by instruction, so their speed is not meaningful.

# shellcheck source=scripts/debian.sh
source scripts/debian.sh

# Modules for QEMU's network card, in loading order.
network_modules=(virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci
    failover net_failover virtio_net)

# prepare_guest ARCHITECTURE: finds QEMU, the kernel and BusyBox; sets `guest` to their folder.
prepare_guest() {
    local architecture="$1" emulator package
    case "$architecture" in
        arm64) emulator=qemu-system-aarch64 package=qemu-system-arm ;;
        amd64) emulator=qemu-system-x86_64 package=qemu-system-x86 ;;
    esac
    mkdir -p "$base"
    base=$(cd "$base" && pwd)
    guest="$base/guest-$architecture"
    if ! command -v "$emulator" >/dev/null; then
        install_packages "$emulator" "$package"
    fi
    command -v cpio >/dev/null || install_packages cpio cpio
    command -v mke2fs >/dev/null || install_packages mke2fs e2fsprogs
    if [ ! -e "$guest/complete" ]; then
        if ! $may_install; then
            skip "there is no kernel for the guest; to download it: $0 --install"
        elif ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
            skip "there is no apt-get to download a kernel for the guest"
        fi
        download_guest "$architecture" >"$base/guest.log" 2>&1 ||
            skip "the guest's kernel was not downloaded, see $base/guest.log"
        touch "$guest/complete"
    fi
    kernel=$(ls "$guest"/boot/vmlinuz-*)
}

download_guest() {
    local architecture="$1" image
    foreign "$architecture" apt-get -qq update || return 1
    # The package without a version in its name depends on the newest kernel.
    image=$(foreign "$architecture" apt-cache depends "linux-image-cloud-$architecture" |
        sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p')
    [ -n "$image" ] || return 1
    download_packages "$architecture" "$guest" "$image" busybox-static
}

# make_initramfs INIT OUTPUT FILE...: an initramfs with BusyBox, the modules of the network, INIT
# as its first process, and the files in its root.
make_initramfs() {
    local init="$1" output="$2" module tree
    shift 2
    tree=$(mktemp -d)
    mkdir -p "$tree/bin" "$tree/modules" "$tree/proc" "$tree/sys" "$tree/dev" "$tree/tmp"
    cp "$guest/bin/busybox" "$tree/bin/busybox"
    for module in "${network_modules[@]}"; do
        find "$guest/lib/modules" -name "$module.ko" -exec cp {} "$tree/modules/" \;
    done
    cp "$init" "$tree/init"
    chmod +x "$tree/init"
    # The guest's root folder, which other users than root must be able to enter.
    chmod 755 "$tree"
    [ $# = 0 ] || cp "$@" "$tree/"
    (cd "$tree" && find . | cpio --quiet -o -H newc) | gzip -1 >"$output"
    rm -rf "$tree"
}

# stage_program PROGRAM FILE: copies a program that is linked dynamically to FILE, and the libraries
# that it needs beside it, in a folder whose files become the root of a guest. The guest starts it with
# /ld-linux-x86-64.so.2 --library-path / /FILE.
stage_program() {
    local program="$1" file="$2" library
    cp "$program" "$file"
    strip "$file" 2>/dev/null || true
    for library in $(ldd "$file" | grep -o '/[^ ]*\.so[^ ]*' | sort -u); do
        cp "$library" "$(dirname "$file")/"
    done
}

# Time without a line on the console after which a guest is killed, and the time after which it is
# killed in any case, in seconds. Emulated processors are slow on a busy machine, so the limit on
# silence is the relevant one.
silence_max="${SILENCE_MAX:-300}"
guest_time_max="${GUEST_TIME_MAX:-1800}"

# watch_guest CONSOLE PATTERN COMMAND...: runs a virtual machine, whose console goes to a file. Prints
# the lines that match, each with the seconds since the start, and kills the machine when its console
# is silent or its time is over.
watch_guest() {
    local console="$1" pattern="$2" begun=$EPOCHREALTIME out machine line status=0 seconds
    shift 2
    : >"$console"
    exec {out}< <(exec timeout --signal=KILL "$guest_time_max" "$@" </dev/null 2>&1)
    machine=$!
    while true; do
        status=0
        IFS= read -r -t "$silence_max" -u "$out" line || status=$?
        [ -z "$line" ] && [ "$status" = 1 ] && break
        line="${line%$'\r'}"
        printf '%s\n' "$line" >>"$console"
        if [[ "$line" =~ $pattern ]]; then
            seconds=$(awk -v begun="$begun" -v now="$EPOCHREALTIME" \
                'BEGIN { printf "%6.1f", now - begun }')
            printf '%s  %s\n' "$seconds" "$line"
        fi
        if [ "$status" -gt 128 ]; then
            printf 'the console of the guest was silent for %s s\n' "$silence_max" >&2
            # The signal reaches the machine through timeout.
            kill "$machine" 2>/dev/null || true
            break
        fi
        [ "$status" = 0 ] || break
    done
    exec {out}<&-
    status=0
    wait "$machine" || status=$?
    [ "$status" != 137 ] ||
        printf 'the guest was killed after %s s\n' "$guest_time_max" >&2
}
