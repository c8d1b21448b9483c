//! Sources in object stores and on web servers, read by the program from servers on this machine.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod azure;
mod bounds;
mod contract;
mod faults;
mod in_place;
mod processes;
mod s3;
mod sources;
mod support;
mod tls;
mod web;
