# Sourced by the scripts that build for aarch64 and run the result under qemu-aarch64.
#
# `prepare_aarch64 "$@"` needs `what`, the subject of the messages, and `base`, a folder for what it
# downloads and for the build. It finds a compiler with the standard library for
# aarch64-unknown-linux-gnu, a linker and the emulator, and exports what Cargo needs to use them.
# The compiler is rustup's if it has that target, else Debian's rustc-web, whose library for arm64
# is unpacked below `base`. With --install, or CI=true, it installs what is missing (Debian, as
# root). If something is missing, it prints SKIP with the reason, and ends the script.

# shellcheck source=scripts/debian.sh
source scripts/debian.sh

triple=aarch64-unknown-linux-gnu
aarch64_packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static)

# The standard library of Debian's compiler for arm64, without adding that architecture to dpkg.
download_library() {
    local version
    version=$(dpkg-query -W -f '${Version}' rustc-web)
    [ "$(cat "$base/library-version" 2>/dev/null)" != "$version" ] || return 0
    foreign arm64 apt-get -qq update || return 1
    download_packages arm64 "$base/library" "libstd-rust-web-dev=$version" || return 1
    rm -rf "$base/apt-arm64"
    # What rustc finds below its sysroot for both machines.
    mkdir -p "$base/sysroot/lib/rustlib"
    ln -sfn /usr/lib/rustlib/x86_64-unknown-linux-gnu "$base/sysroot/lib/rustlib/"
    ln -sfn "$base/library/usr/lib/rustlib/$triple" "$base/sysroot/lib/rustlib/"
    echo "$version" >"$base/library-version"
}

prepare_aarch64() {
    allow_installing "$@"
    case "$(uname -sm)" in
        "Linux x86_64") ;;
        *) skip "this machine is $(uname -sm), not Linux on x86_64" ;;
    esac
    mkdir -p "$base"
    base=$(cd "$base" && pwd)

    if ! command -v aarch64-linux-gnu-gcc >/dev/null ||
        ! command -v qemu-aarch64-static >/dev/null ||
        [ ! -e /usr/aarch64-linux-gnu/lib/libc.so.6 ]; then
        install_packages "linker or emulator for aarch64" "${aarch64_packages[@]}"
    fi
    if [ ! -e "$(rustc --print target-libdir --target "$triple")" ]; then
        if ! dpkg-query -W rustc-web >/dev/null 2>&1; then
            install_packages "compiler for aarch64 (rustup target add $triple)" rustc-web
        fi
        download_library >"$base/library.log" 2>&1 ||
            skip "the standard library for arm64 was not downloaded, see $base/library.log"
        export RUSTC=/usr/bin/rustc
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="--sysroot $base/sysroot"
    fi

    export CARGO_TARGET_DIR="$base/build"
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
    export CARGO_PROFILE_DEV_DEBUG=0
}
