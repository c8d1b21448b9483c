//! Datasets in a store, read in place from a web server in this process, and its faults.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod batches;
mod faults;
mod reading;
mod server;
mod support;
