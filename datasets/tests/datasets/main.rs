//! Packing, looking into and verifying datasets, through the public functions and real files.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;
mod inspecting;
mod packing;
mod places;
mod sources;
mod support;
