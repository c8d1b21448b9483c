//! Reads and writes blocks through io_uring, threads or memory.
//!
//! An [`Engine`] belongs to one thread. Buffers move into a request and come back in its
//! completion, so nobody touches memory that the kernel is writing to. In reading order:
//! [`buffer`], [`engine`] (the contract), [`uring`], [`threads`], [`memory`], the decorators
//! [`slow`] and [`faulty`], [`choose`] (which engine this machine gets, and why), [`probe`]
//! (what it offers), [`files`] (plain random access for metadata).

mod arena;
mod block;
pub mod buffer;
pub mod choose;
pub mod engine;
mod error;
pub mod faulty;
pub mod files;
pub mod memory;
mod open;
pub mod probe;
mod random;
mod slots;
pub mod slow;
pub mod threads;
mod transfer;
pub mod uring;

pub use arena::{ARENA_BYTES_MAX, ARENA_BYTES_MIN};
pub use buffer::{AlignedBuffer, BLOCK_BYTES};
pub use choose::{Chosen, EngineKind, open_engine};
pub use engine::{
    Access, Completion, Counters, DEPTH_MAX, Engine, FileId, Limits, Refused, Request, RequestKind,
};
pub use error::Error;
