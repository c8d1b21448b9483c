//! The limits of a delivery, and what happens when one is reached.

use crate::Error;
use std::time::Duration;

/// Timeout of work on the device. A copy into reused memory waits for the consumer's work on it,
/// which may include a collective that waits for other ranks. By default, torch aborts an NCCL
/// collective after 10 minutes. This timeout is longer, so that torch's error comes first.
pub(super) const HUNG_AFTER: Duration = Duration::from_secs(12 * 60);

/// How long dropping a delivery waits for its work, and for that of its consumers. Memory of
/// unfinished work is not freed.
pub(super) const END_AFTER: Duration = Duration::from_secs(5);

/// Timeout of the first kernels, which are run when a delivery is opened.
pub(super) const OPEN_AFTER: Duration = Duration::from_secs(60);

/// Bytes of a chunk of page-locked memory for staging: large enough for the full rate of the bus,
/// small enough that the first copy begins soon.
pub(super) const CHUNK_BYTES: usize = 4 << 20;

/// Limits of a [`Delivery`](super::Delivery).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryLimits {
    /// Maximum page-locked memory for staging; at least [`Self::STAGING_BYTES_MIN`] are used.
    pub staging_bytes: u64,
    /// Maximum memory of loaders to page-lock, from which batches are copied directly.
    pub locked_bytes: u64,
    /// Maximum device memory for batches, including those that the consumer holds.
    pub device_bytes: u64,
    /// Number of batches up to which new memory is allocated instead of reusing memory of dropped
    /// batches that consumers still work on. A copy into such memory waits for that work.
    pub buffers: usize,
    /// How long to wait for the consumer to drop a batch when the device memory is used up.
    pub wait: Duration,
}

impl DeliveryLimits {
    /// Minimum page-locked memory for staging: two chunks, so that one is filled while the other
    /// is copied.
    pub const STAGING_BYTES_MIN: u64 = 2 * CHUNK_BYTES as u64;
}

impl Default for DeliveryLimits {
    fn default() -> Self {
        Self {
            staging_bytes: 32 << 20,
            locked_bytes: 2 << 30,
            device_bytes: 4 << 30,
            buffers: 6,
            wait: Duration::from_secs(10),
        }
    }
}

/// Why a batch could not be delivered.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The device.
    #[error(transparent)]
    Gpu(Error),
    /// The consumer holds all memory for batches.
    #[error(
        "no GPU memory for a batch of {bytes} bytes: the limit of {limit_bytes} bytes is reached \
         by {lent} batches that are in use"
    )]
    NoMemory {
        /// Bytes of the batch.
        bytes: u64,
        /// Limit for all batches.
        limit_bytes: u64,
        /// Batches that the consumer holds.
        lent: u32,
    },
    /// A batch exceeds the limit alone.
    #[error(
        "a batch needs {bytes} bytes of GPU memory, which is allocated in units of 2 MiB; the \
         limit is {limit_bytes} bytes"
    )]
    TooLarge {
        /// Bytes of the batch.
        bytes: u64,
        /// Limit for all batches.
        limit_bytes: u64,
    },
    /// The loader was closed during the delivery.
    #[error("the loader was closed")]
    Stopped,
}

impl From<Error> for DeliveryError {
    fn from(error: Error) -> Self {
        if matches!(error, Error::Stopped) { Self::Stopped } else { Self::Gpu(error) }
    }
}
