# Everything that .ci/run checks, step by step. `just` lists the steps.

default:
    @just --list

# All checks.
check: test fmt clippy docs

test:
    cargo test --workspace

fmt:
    cargo fmt --all --check

clippy:
    cargo clippy --workspace --all-targets -- -D warnings

docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Licences, advisories and sources (cargo install --locked cargo-deny).
deny:
    cargo deny check

# Spelling (pip install typos).
typos:
    typos

# The scheduler and the formats under Miri (needs a nightly toolchain with miri).
miri:
    MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p meetpoint-scheduler --lib --test examples

# Every bench, each printing its ratio against a peer or a limit in the same run.
bench *ARGS:
    cargo bench -p meetpoint-benches {{ARGS}}

demo:
    cargo run --release -- demo
