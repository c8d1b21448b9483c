//! Tests of several crates together, and of the program as a process, in one binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails here")]

mod builds;
mod citations;
mod cycles;
mod deploy;
mod language;
mod layers;
mod options;
mod process;
mod strategies;
mod summary;
mod tidy;
mod unsafe_code;
mod wire_generated;
