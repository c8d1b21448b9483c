# Everything that .ci/run checks, step by step. `just` lists the steps.

default:
    @just --list

# All checks.
check: test fmt clippy docs

test:
    scripts/test.sh

fmt:
    cargo fmt --all --check

clippy:
    cargo clippy --workspace --all-targets -- -D warnings

docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# GPU kernels, compiled for several architectures (installs NVIDIA's compiler from PyPI).
gpu-kernels *ARGS:
    scripts/gpu_compile.py {{ARGS}}

# The documentation site, checked for dead links.
site:
    scripts/site.sh

# Reports and the site in headless Chromium (installs it on Debian, as root, with --install).
pages *ARGS:
    scripts/pages.sh {{ARGS}}

# Licences, advisories and sources (cargo install --locked cargo-deny).
deny:
    cargo deny check

# Spelling (pip install typos).
typos:
    typos

# The portable kernels and the scheduler under Miri (needs a nightly toolchain with miri).
miri *NAMES:
    scripts/miri.sh {{NAMES}}

# Every bench, each printing its ratio against a peer or a limit in the same run.
bench *ARGS:
    cargo bench -p meetpoint-benches {{ARGS}}

# JPEG against libjpeg-turbo on a folder of photographs (apt install libjpeg62-turbo-dev pkg-config).
bench-jpeg DIR *ARGS:
    cargo bench -p meetpoint-jpeg-benches --features libjpeg-turbo --bench jpeg -- --dir {{DIR}} {{ARGS}}

# Pixels against libjpeg-turbo's on a folder of photographs.
against-libjpeg DIR *ARGS:
    cargo run --release -p meetpoint-jpeg-benches --features libjpeg-turbo --bin against-libjpeg -- {{DIR}} {{ARGS}}

# What no other check compiles: the feature remote and the fuzz workspace.
optional:
    scripts/optional.sh

# Every fuzz target for some seconds.
fuzz SECONDS="600":
    scripts/fuzz.sh {{SECONDS}}

demo:
    cargo run --release -- demo
