//! Operations on datasets, through the public functions and real files.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod comparing;
mod copying;
mod counting;
mod datadings;
mod repairing;
mod resuming;
mod splitting;
mod support;
