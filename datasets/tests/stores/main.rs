//! Stores: one contract for all of them, and sources read from each.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;
mod faults;
mod stores;
