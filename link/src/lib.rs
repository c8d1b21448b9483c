//! What host and device share: starting a device, connecting to it, its description, and passing it
//! a spool. The messages themselves are in `format`.
//!
//! In reading order: `emulation` (how slow a device is made), `fault` (what it is made to do
//! wrong), `command` (the arguments that start one so), `channel` (a connection), `info` (what a
//! device says of itself), `refusal` (why it refuses a call), `fd_channel` (the spool's file
//! descriptor).

mod channel;
mod command;
mod emulation;
mod fault;
pub mod fd_channel;
mod info;
pub mod refusal;

pub use channel::{ConnectError, HUNG_UP, connect};
pub use command::ServeCommand;
pub use emulation::{CPU_RATIO_MIN, Emulation, LATENCY_NS_MAX, Setting, SettingError, Targets};
pub use fault::{Fault, FaultSyntax};
pub use info::DeviceInfo;
