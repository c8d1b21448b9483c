# Sourced by the scripts that boot Linux in QEMU: kernels and BusyBox of Debian, without KVM.
#
# It needs `what` and `base`, as scripts/debian.sh does. `arm64` and `amd64` are the architectures.
# Guests are emulated instruction by instruction: they show that something works, never how fast.

# shellcheck source=scripts/debian.sh
source scripts/debian.sh

# What a network card of QEMU needs, in the order in which it is loaded.
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
    # The guest's root folder; other users than root enter it.
    chmod 755 "$tree"
    [ $# = 0 ] || cp "$@" "$tree/"
    (cd "$tree" && find . | cpio --quiet -o -H newc) | gzip -1 >"$output"
    rm -rf "$tree"
}
