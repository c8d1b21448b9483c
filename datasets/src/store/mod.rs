//! Stores from which the files of a source are read, passed to every source as values.
//!
//! In reading order: [`Store`] (the trait), [`StorePath`] (a path in one), [`Local`] (files of this
//! machine), [`Memory`] and [`Faulty`] (for tests), and `remote` ([`RemoteOptions`],
//! [`RemoteError`], [`RemoteStores`] for datasets that are used in place; with the feature
//! `remote`, the store of objects and a cache of them).

mod faulty;
mod local;
mod memory;
mod path;
mod remote;
mod traits;
mod tree;

pub use crate::error::RemoteError;
pub use faulty::Faulty;
pub use local::Local;
pub use memory::Memory;
pub use path::StorePath;
#[cfg(feature = "remote")]
pub(crate) use remote::RemoteStore;
pub use remote::{CACHE_BYTES, Deadlines, RemoteOptions, RemoteStores, TransferMonitor};
pub use traits::{
    FileKind, FolderEntry, List, Metadata, Store, Walk, WalkEntry, WalkError, WalkOptions,
};
