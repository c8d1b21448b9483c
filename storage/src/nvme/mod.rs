//! Accesses NVMe drives without a file system or block device: io_uring passes commands to the
//! driver (`IORING_OP_URING_CMD` on `/dev/ngXnY`).
//!
//! In reading order: [`Address`] (names a range of a drive), [`Command`] (encodes commands),
//! [`Status`] (of answers), `identify` (properties of a drive), [`NvmeDevice`] (admin commands),
//! [`NvmeEngine`] (reads and writes), and the commands of drives that compute: [`programs`] and
//! [`local_memory`].

mod address;
mod command;
mod device;
mod engine;
mod identify;
pub mod local_memory;
pub mod programs;
mod status;

pub use address::Address;
pub use command::{COMMAND_BYTES, Command};
pub use device::{NvmeDevice, status_of};
pub use engine::NvmeEngine;
pub use identify::{CommandSets, Controller, Namespace};
pub use status::{Status, StatusType};
