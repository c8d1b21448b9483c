//! The limits of a delivery, and what happens when one is reached.

use crate::Error;
use std::time::Duration;

/// After what time work of the device that does not end counts as failed. Work of consumers, which
/// copies may come after, waits for other ranks as long as their collectives do.
pub(super) const HUNG_AFTER: Duration = Duration::from_secs(30 * 60);

/// How long the end of a delivery waits for its work. What is under way then is not freed.
pub(super) const END_AFTER: Duration = Duration::from_secs(5);

/// How long the end of a delivery waits after a request to stop.
pub(super) const END_AFTER_STOP: Duration = Duration::from_millis(50);

/// Limits of a [`Delivery`](super::Delivery).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryLimits {
    /// Page-locked memory through which batches are copied; at least 8 MiB are used.
    pub staging_bytes: u64,
    /// Memory of loaders that is page-locked, from which batches are copied directly.
    pub locked_bytes: u64,
    /// Memory of the device for batches, those of the consumer included.
    pub device_bytes: u64,
    /// Batches whose memory is allocated before memory is used again that consumers have dropped
    /// and still work on. A copy into such memory waits for them.
    pub buffers: usize,
    /// How long to wait for the consumer to drop a batch when that memory is used up.
    pub wait: Duration,
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

/// Why a batch could not be brought to the device.
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
        /// Of the batch.
        bytes: u64,
        /// For all batches.
        limit_bytes: u64,
        /// Batches that the consumer holds.
        lent: u32,
    },
    /// The loader was closed meanwhile.
    #[error("the loader was closed")]
    Stopped,
}

impl From<Error> for DeliveryError {
    fn from(error: Error) -> Self {
        if matches!(error, Error::Stopped) { Self::Stopped } else { Self::Gpu(error) }
    }
}
