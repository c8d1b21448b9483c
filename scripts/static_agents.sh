#!/usr/bin/env bash
# Builds the program as one static file each for x86_64 and aarch64 Linux, with musl: copy it to a
# device and start it there. NEON and AVX kernels are in it and chosen at run time.
#
#     scripts/static_agents.sh [x86_64] [aarch64]   both without an argument
#     PROFILE=dev scripts/static_agents.sh          an unoptimised build
#
# It needs rustup, which adds the targets, and a C compiler for each, for the cryptography of the
# feature `tls`: gcc, and aarch64-linux-gnu-gcc (Debian's gcc-aarch64-linux-gnu). FEATURES= leaves
# TLS and the C compilers out. The linker is the one that comes with Rust. If something is
# missing, it prints SKIP with the reason.
set -euo pipefail
cd "$(dirname "$0")/.."

profile="${PROFILE:-release}"
features="${FEATURES-tls}"
folder="${CARGO_TARGET_DIR:-target}/static"
machines=("$@")
if [ ${#machines[@]} = 0 ]; then
    machines=(x86_64 aarch64)
fi

skip() {
    printf 'SKIP: static program for %s: %s\n' "$machine" "$*"
}

mkdir -p "$folder"
for machine in "${machines[@]}"; do
    target="$machine-unknown-linux-musl"
    case "$machine" in
        x86_64) compiler=gcc ;;
        aarch64) compiler=aarch64-linux-gnu-gcc ;;
        *)
            echo "name x86_64 or aarch64, not $machine" >&2
            exit 2
            ;;
    esac
    if [ "$(uname -m)" = "$machine" ]; then
        compiler=gcc
    fi
    if [ ! -e "$(rustc --print target-libdir --target "$target")" ]; then
        if ! command -v rustup >/dev/null; then
            skip "there is no rustup to add the target $target"
            continue
        elif ! rustup target add "$target" >"$folder/rustup.log" 2>&1; then
            skip "rustup target add $target failed, see $folder/rustup.log"
            continue
        fi
    fi
    if [ -n "$features" ] && ! command -v "$compiler" >/dev/null; then
        skip "there is no $compiler; install it, or build without TLS: FEATURES= $0 $machine"
        continue
    fi
    upper=$(printf '%s' "$target" | tr 'a-z-' 'A-Z_')
    # The C code of the feature `tls` calls no library but for memory functions that musl has too.
    # What loads libraries at run time asks for libdl, which is part of musl's libc: an empty
    # archive stands in for it.
    printf '!<arch>\n' >"$folder/libdl.a"
    env "CARGO_TARGET_${upper}_LINKER=rust-lld" "CC_${target//-/_}=$compiler" \
        "CFLAGS_${target//-/_}=-U_FORTIFY_SOURCE" \
        cargo rustc --profile "$profile" --target "$target" -p meetpoint-cli --bin meetpoint \
        --features "$features" -- -L "native=$(cd "$folder" && pwd)"
    built="${CARGO_TARGET_DIR:-target}/$target/$([ "$profile" = dev ] && echo debug || echo "$profile")"
    cp "$built/meetpoint" "$folder/meetpoint-$machine"
    if readelf --program-headers "$folder/meetpoint-$machine" | grep -q INTERP; then
        echo "$folder/meetpoint-$machine is not static" >&2
        exit 1
    fi
    printf '%s\n' "$folder/meetpoint-$machine"
done
