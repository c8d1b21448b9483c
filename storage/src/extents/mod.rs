//! Files as extents of a block device, for readers that do not mount the file system.
//!
//! In reading order: `file` ([`ExtentFile`], a file as ranges of a device), `fiemap` (what Linux
//! reports about a file, decoded), `device` (the block device of a file system), [`map_file`] (the
//! extents of a file, if they are stable), [`ExtentEngine`] (reads such files through another
//! engine), [`ExtentReader`] (the same for metadata, one read at a time), [`ExtentError`].

mod device;
mod engine;
mod error;
mod fiemap;
mod file;
mod map;
mod reader;
#[cfg(test)]
mod tests;

pub use device::BlockDevice;
pub use engine::{ExtentEngine, block_bytes, open_block_engine};
pub use error::{ExtentError, Instability};
pub use file::{DeviceRange, ExtentFile, ExtentFiles};
pub use map::{MappedFile, map_file};
pub use reader::ExtentReader;
