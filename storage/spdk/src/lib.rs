//! Block devices of a system-installed SPDK, for the storage engine `spdk`.
//!
//! Without the feature `spdk` this crate is empty: it needs SPDK's headers and libraries, and
//! libclang, when it is built. With it, in reading order: `Options` (memory, configuration),
//! `Source` (what a device is: a file, a name, an NVMe-oF target), `ffi` (every call of SPDK),
//! `reactor` (the one thread that calls SPDK), `ending` (its end), `Spdk` (starts that thread,
//! opens devices).
//!
//! SPDK has one environment per process that starts once, so all engines of a process share the
//! thread. Nothing of SPDK runs on the threads of callers: they exchange messages with it, and
//! every wait for an answer has a limit.

#[cfg(feature = "spdk")]
mod bindings;
#[cfg(feature = "spdk")]
mod ending;
#[cfg(feature = "spdk")]
mod error;
#[cfg(feature = "spdk")]
mod ffi;
#[cfg(feature = "spdk")]
mod log;
#[cfg(feature = "spdk")]
mod options;
#[cfg(feature = "spdk")]
mod reactor;
#[cfg(feature = "spdk")]
mod runtime;
#[cfg(feature = "spdk")]
mod source;
#[cfg(feature = "spdk")]
mod transfer;

#[cfg(feature = "spdk")]
pub use error::Error;
#[cfg(feature = "spdk")]
pub use options::Options;
#[cfg(feature = "spdk")]
pub use runtime::{Device, RELEASE, Spdk};
#[cfg(feature = "spdk")]
pub use source::{FileModule, FileSource, Source, Target};
#[cfg(feature = "spdk")]
pub use transfer::{Done, Failure, Memory, Operation, Transfer};
