//! A complete device in this process, tested over its socket as by a host.

#![expect(clippy::unwrap_used, reason = "a helper fails its test by panicking")]

mod agents;
mod columns;
mod faults;
mod garbage;
mod network;
mod reference;
mod refusals;
mod running;
mod several;
mod support;
