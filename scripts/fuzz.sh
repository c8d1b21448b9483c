#!/usr/bin/env bash
# Runs the fuzz targets by hand, each for some seconds, beginning with the files of the tests.
#
#     scripts/fuzz.sh [SECONDS, 600] [TARGET ... | pictures | containers | series]
#
# With cargo-fuzz and a nightly toolchain (cargo install cargo-fuzz; rustup toolchain install
# nightly) it is libFuzzer with its address sanitizer; without, or with FUZZ_BY=loop, a plain loop
# of mutations. FUZZ_FEATURES=libjpeg-turbo also holds pixels against the system's libjpeg-turbo,
# FUZZ_SEED=2 has the loop try other inputs. Inputs that fail are in fuzz/artifacts.
#
# An input may have FUZZ_MAX_LEN bytes (4 MiB) and take FUZZ_TIMEOUT seconds (25) and
# FUZZ_MEMORY_MB mebibytes (2560; under libFuzzer that is the whole process).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../fuzz"
seconds="${1:-600}"
[ $# -gt 0 ] && shift
targets=("$@")
pictures=(jpeg_decode jpeg_region jpeg_lenient any_decode entry_points rewrite form form_bytes skeleton_bytes)
containers=(tar zip cifar idx table parquet arrow tfrecord mds datadings ffcv dataset key_index tar_to_folder zip_to_folder)
series=(audio signal pnm text html recipe_file)
case "${targets[*]}" in
    "") targets=("${pictures[@]}" "${containers[@]}" "${series[@]}") ;;
    series) targets=("${series[@]}") ;;
    pictures) targets=("${pictures[@]}") ;;
    containers) targets=("${containers[@]}") ;;
esac
features="${FUZZ_FEATURES:-}"
max_len="${FUZZ_MAX_LEN:-4194304}"
timeout="${FUZZ_TIMEOUT:-25}"
memory_mb="${FUZZ_MEMORY_MB:-2560}"
# Inputs are written to a folder in memory, which is removed even if a target is killed.
FUZZ_FOLDER="$(mktemp -d -p "$([ -d /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")")"
export FUZZ_FOLDER
trap 'rm -rf "$FUZZ_FOLDER"' EXIT
by="${FUZZ_BY:-}"
if [ -z "$by" ]; then
    if cargo +nightly fuzz --version >/dev/null 2>&1; then by=libfuzzer; else by=loop; fi
fi
echo "by $by, $seconds s each, at most $max_len bytes, $timeout s, $memory_mb MB: ${targets[*]}"
mutate() {
    cargo run --release --quiet --no-default-features ${features:+--features "$features"} \
        --bin mutate -- --max-len "$max_len" --timeout "$timeout" --memory "$memory_mb" "$@"
}
failed=()
for target in "${targets[@]}"; do
    # Of these a target takes what it can begin with.
    seeds=../jpeg/tests/golden/jpeg
    [[ " ${containers[*]} " == *" $target "* ]] && seeds=../datasets/tests/golden
    [[ " ${series[*]} " == *" $target "* ]] && seeds=../kernels/tests/golden
    if [ "$by" = libfuzzer ]; then
        mkdir -p "corpus/$target"
        mutate --write "seeds/$target" "$target" "$seeds"
        cargo +nightly fuzz run ${features:+--features "$features"} "$target" "corpus/$target" \
            "seeds/$target" -- -max_total_time="$seconds" -max_len="$max_len" \
            -rss_limit_mb="$memory_mb" -timeout="$timeout" || failed+=("$target")
    else
        mutate "$target" "$seconds" "${FUZZ_SEED:-1}" "$seeds" || failed+=("$target")
    fi
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]}"
    exit 1
fi
