//! What host and device share: starting a device, connecting to it, its description, and passing it
//! a spool. The messages themselves are in `format`.
//!
//! In reading order: `emulation` (speed limits of a device), `core_use` (how well a slow core was
//! emulated), `fault` (injected faults), `command` (the arguments that start such a device),
//! `address` (where it listens), `remote` (a device on another machine, and files with its
//! address), `discovery` (lists of addresses, and names for several) and `dns` (where names are
//! looked up), [`tls`] and `token` (authentication of both ends), `channel` (a connection),
//! `first_bytes` (whether a device is at its other end), `info` (the description of a device),
//! `refusal` (why a device refuses a call), `fd_channel` (the spool's file descriptor).

mod address;
mod channel;
mod command;
mod core_use;
mod discovery;
mod dns;
mod emulation;
mod fault;
pub mod fd_channel;
mod first_bytes;
mod info;
pub mod refusal;
mod remote;
pub mod tls;
mod token;

pub use address::{AddressSyntax, Endpoint, TcpAddress};
pub use channel::{AddToken, ConnectError, Connected, HUNG_UP, Target, connect};
pub use command::ServeCommand;
pub use core_use::{CoreUse, Disturbance};
pub use discovery::{DEVICES_MAX, DeviceAddress, DiscoveryError, RunningDevice, resolve_devices};
pub use dns::{DNS_VARIABLE, DnsError};
pub use emulation::{CPU_RATIO_MIN, Emulation, LATENCY_NS_MAX, Setting, SettingError, Targets};
pub use fault::{Fault, FaultSyntax};
pub use first_bytes::PeerProtocol;
pub use info::DeviceInfo;
pub use remote::{AddressFileError, KEYS_VARIABLE, RemoteAddress, RemoteDevice, TOKEN_VARIABLE};
pub use token::{TOKEN_CHARS_MIN, Token, TokenError};
