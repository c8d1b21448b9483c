//! Packing, unpacking, inspecting and verifying datasets, through the public functions and real
//! files.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod changing;
mod damage;
mod destinations;
mod false_manifests;
mod fixtures;
mod forms;
mod in_place;
mod inspecting;
mod keys;
mod kinds;
mod labels;
mod memory_source;
mod packing;
mod resume;
mod sharding;
mod side_tables;
mod sinks;
mod sources;
mod support;
mod unpacking;
