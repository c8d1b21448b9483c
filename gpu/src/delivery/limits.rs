//! The limits of a delivery, and what happens when one is reached.

use crate::Error;
use std::time::Duration;

/// After what time work of the device that does not end counts as failed.
pub(super) const HUNG_AFTER: Duration = Duration::from_secs(30);

/// Limits of a [`Delivery`](super::Delivery).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryLimits {
    /// Page-locked memory through which batches are copied; at least 8 MiB are used.
    pub staging_bytes: u64,
    /// Memory of the device for batches, those of the consumer included.
    pub device_bytes: u64,
    /// How long to wait for the consumer to drop a batch when that memory is used up.
    pub wait: Duration,
}

impl Default for DeliveryLimits {
    fn default() -> Self {
        Self { staging_bytes: 32 << 20, device_bytes: 4 << 30, wait: Duration::from_secs(10) }
    }
}

/// Why a batch could not be brought to the device.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The device.
    #[error(transparent)]
    Gpu(#[from] Error),
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
