//! Batches of a dataset: their content, damaged samples, limits, and the contract of preparers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batches;
mod caching;
mod contract;
mod csx;
mod damage;
mod extents;
mod faulty;
mod gpu_views;
mod limits;
mod mixing;
mod offloaded;
mod small;
mod support;
mod turned;
mod views;
