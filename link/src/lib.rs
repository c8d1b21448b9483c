//! What host and device share: starting a device, connecting to it, its description, and passing it
//! a spool. The messages themselves are in `format`.
//!
//! In reading order: `emulation` (speed limits of a device), `fault` (injected faults), `command`
//! (the arguments that start such a device), `channel` (a connection), `info` (the description of a
//! device), `refusal` (why a device refuses a call), `fd_channel` (the spool's file descriptor).

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
