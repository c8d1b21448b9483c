//! Messages and service of the device link, from `format/proto/device.proto`.
//!
//! `generated.rs` is made by `tonic-prost-build`; a test rebuilds it and compares, so a build
//! needs no protobuf compiler.

mod collate;
mod fd_channel;
#[rustfmt::skip]
#[expect(
    missing_docs,
    clippy::allow_attributes,
    clippy::large_enum_variant,
    reason = "generated; the .proto has the docs"
)]
mod generated;
mod sampler;

pub use fd_channel::{FD_CHANNEL_BUSY, FD_CHANNEL_MAGIC, FdOffer};
pub use generated::*;
pub use sampler::{SAMPLER_BYTES_MAX, SamplerMessageError, sampler_data};

/// Version of the device link. Host and device must have the same.
pub const PROTOCOL_VERSION: u32 = 8;

/// The first bytes of a connection over a network, inside TLS if it is used: sent by the host, then
/// by the device once it has accepted the host. An end that reads anything else disconnects.
pub const NETWORK_GREETING: [u8; 8] = *b"mplink_1";

/// Longest time without a message from a device that has work, in milliseconds.
pub const PROGRESS_INTERVAL_MS: u64 = 200;

/// Maximum bytes of one message of the link.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Maximum bytes of a slot in one [`SlotData`].
pub const SLOT_DATA_BYTES_MAX: usize = 256 << 10;
