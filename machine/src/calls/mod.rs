//! The functions of the C library that this program replaces, so that time, threads, connections
//! and files of simulated threads are those of the machine.
//!
//! The linker prefers a definition in the program to one in a library, so the standard library,
//! tokio and rustix call these. Calls from threads that are not simulated go to the C library. In
//! reading order: `time`, `memory` (futex waits),
//! `threads`, `sockets`, `waits` (for descriptors), `network` (network sockets), `files`,
//! `process`.

mod files;
mod memory;
mod network;
mod process;
mod sockets;
mod threads;
mod time;
mod waits;

pub(crate) use sockets::descriptors_in;

use crate::real;
use libc::{c_int, ssize_t};

/// Fails a call.
fn failed(error: c_int) -> c_int {
    real::set_error(error);
    -1
}

/// Fails a call that returns a number of bytes.
fn failed_bytes(error: c_int) -> ssize_t {
    real::set_error(error);
    -1
}
