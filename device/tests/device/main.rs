//! A whole device in this process, spoken to over its socket as a host would.

#![expect(clippy::unwrap_used, reason = "a helper fails its test by panicking")]

mod columns;
mod faults;
mod garbage;
mod network;
mod reference;
mod refusals;
mod running;
mod several;
mod support;
