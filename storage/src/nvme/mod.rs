//! NVMe drives without a file system or a block device between: commands that io_uring passes to
//! the driver (`IORING_OP_URING_CMD` on `/dev/ngXnY`).
//!
//! In reading order: [`Address`] (how a range of a drive is named), [`Command`] (bytes), [`Status`]
//! (answers), `identify` (what a drive says about itself), [`NvmeDevice`] (admin commands),
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
