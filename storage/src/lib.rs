//! Reads and writes blocks through io_uring, threads, memory, NVMe commands or SPDK.
//!
//! An [`Engine`] belongs to one thread. Buffers move into a request and come back in its
//! completion, so no other code accesses memory that the kernel is writing to. In reading order:
//! [`buffer`], [`engine`] (the contract), [`EngineNote`] (what an engine works without), [`uring`],
//! [`threads`], [`memory`], [`nvme`], `spdk` (with the feature of this name), [`extents`] (files as
//! ranges of a block device), the decorators [`slow`] and [`faulty`], [`choose`] (selects an
//! engine), [`probe`] (storage features of this machine), [`files`] (random access for metadata),
//! [`ReadMapping`], [`SharedMapping`] and [`HugeMemory`] (mapped memory), [`MemoryLimit`] (how much
//! memory this process may use and how it is divided), [`open_files_limit`] (failures at limits of
//! this process), [`LocalSocket`] (Unix sockets for processes of one user).

mod arena;
mod block;
pub mod buffer;
pub mod cgroup;
pub mod choose;
pub mod engine;
mod error;
pub mod extents;
pub mod faulty;
pub mod files;
mod lender;
mod local_socket;
mod mapping;
pub mod memory;
mod memory_limit;
mod memory_shares;
mod note;
pub mod nvme;
mod open;
mod own_limits;
pub mod probe;
mod requests;
mod slots;
pub mod slow;
#[cfg(feature = "spdk")]
pub mod spdk;
mod system_error;
pub mod threads;
mod transfer;
pub mod uring;

pub use block::BLOCK_BYTES;
pub use buffer::AlignedBuffer;
pub use choose::{EngineKind, SelectedEngine, open_engine};
pub use engine::{
    Access, Completion, Counters, DEPTH_MAX, Engine, FileId, Limits, RefusedRequest, Request,
    RequestKind,
};
pub use error::Error;
pub use lender::{ARENA_BYTES_MAX, ARENA_BYTES_MIN};
pub use local_socket::{LocalSocket, SOCKET_PATH_BYTES_MAX, SocketError, trusted_peer};
pub use mapping::{HugeMemory, ReadMapping, SharedMapping, SharedWords};
pub use memory_limit::MemoryLimit;
pub use note::{EngineNote, RingRefusal};
pub use own_limits::{
    OpenFilesLimit, is_of_the_file, open_files_limit, open_files_limit_behind, os_error,
};
pub use system_error::SystemError;
