# Sourced by the scripts that build for aarch64 and run the result under qemu-aarch64.
#
# `prepare_aarch64 "$@"` needs `what`, the subject of the messages, and `base`, a folder for what it
# downloads and for the build. It finds a compiler with the standard library for
# aarch64-unknown-linux-gnu, a linker and the emulator, and exports what Cargo needs to use them.
# The compiler is rustup's if it has that target, else Debian's rustc-web, whose library for arm64
# is unpacked below `base`. With --install, or CI=true, it installs what is missing (Debian, as
# root). If something is missing, it prints SKIP with the reason, and ends the script.

triple=aarch64-unknown-linux-gnu
aarch64_packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static)

skip() {
    printf 'SKIP: %s: %s\n' "$what" "$*"
    exit 0
}

# install_packages WHAT PACKAGE...: WHAT is missing without them.
install_packages() {
    local missing="$1"
    shift
    if ! $may_install; then
        skip "there is no $missing; to install it (Debian, as root): $0 --install"
    elif ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
        skip "there is no $missing, and no apt-get to install $*"
    elif [ "$(id -u)" != 0 ]; then
        skip "there is no $missing; as root, run: apt-get install $*"
    fi
    apt-get -qq update >"$base/apt.log" 2>&1 ||
        skip "there is no $missing, and apt-get update failed, see $base/apt.log"
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" \
        >"$base/apt.log" 2>&1 ||
        skip "there is no $missing, and apt-get install $* failed, see $base/apt.log"
}

# The standard library of Debian's compiler for arm64, without adding that architecture to dpkg.
download_library() {
    local version apt lists="$base/apt/lists" cache="$base/apt/cache"
    version=$(dpkg-query -W -f '${Version}' rustc-web)
    [ "$(cat "$base/library-version" 2>/dev/null)" != "$version" ] || return 0
    mkdir -p "$lists/partial" "$cache/archives/partial"
    apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64
        -o Dir::State::Lists="$lists" -o Dir::Cache="$cache" -o Dir::State::status=/dev/null)
    "${apt[@]}" update || return 1
    (cd "$base/apt" && rm -f ./*.deb && "${apt[@]}" download "libstd-rust-web-dev=$version") ||
        return 1
    rm -rf "$base/library"
    dpkg -x "$base"/apt/*.deb "$base/library" || return 1
    rm -rf "$base/apt"
    # What rustc finds below its sysroot for both machines.
    mkdir -p "$base/sysroot/lib/rustlib"
    ln -sfn /usr/lib/rustlib/x86_64-unknown-linux-gnu "$base/sysroot/lib/rustlib/"
    ln -sfn "$base/library/usr/lib/rustlib/$triple" "$base/sysroot/lib/rustlib/"
    echo "$version" >"$base/library-version"
}

prepare_aarch64() {
    may_install=false
    if [ "${1:-}" = --install ] || [ "${CI:-}" = true ]; then
        may_install=true
    fi
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
