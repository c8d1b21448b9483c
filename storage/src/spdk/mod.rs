//! Reads and writes block devices of SPDK, which a thread of this process polls.
//!
//! In reading order: [`Name`] (what a path means to this engine), [`SpdkEngine`]. The crate
//! `storage/spdk` has SPDK's side: its thread, its devices, every call of it.

mod engine;
mod name;

pub use engine::SpdkEngine;
pub use meetpoint_storage_spdk::RELEASE;
pub use name::Name;
