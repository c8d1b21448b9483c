//! Statistics of the delivery of batches to a GPU in an epoch.

use super::split::Split;
use crate::page_locks::Unlocked;
use crate::split_refusal::SplitRefusal;
use meetpoint_format::units::show_bytes;
use meetpoint_gpu::delivery::Delivered;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Statistics of the delivery of batches to a GPU in an epoch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeliveryUse {
    /// The GPU, such as `cuda:0`.
    pub device: String,
    /// Whether the GPU executes the operations on batches.
    pub is_mixed: bool,
    /// Why the GPU converts nothing; `None` if it converts the bytes of pictures to elements.
    pub undivided: Option<SplitRefusal>,
    /// Number of delivered batches.
    pub batches: u64,
    /// Bytes copied over the bus.
    pub bytes: u64,
    /// Bytes of tensors that this GPU had prepared, which did not cross the bus; not included in
    /// `bytes`.
    pub resident_bytes: u64,
    /// Of `bytes`, those copied directly from the loader's memory, which is page-locked. Others
    /// were copied through a page-locked staging buffer.
    pub direct_bytes: u64,
    /// Why batches were copied through a staging buffer; `None` if none was.
    pub staged: Option<Unlocked>,
    /// Time from the first copy of a batch until the last, on the GPU, summed over `measured`
    /// batches. It includes the time to fill staging buffers.
    pub transfer_ns: u64,
    /// Time of the conversions on the GPU, of `measured` batches.
    pub convert_ns: u64,
    /// Batches whose times are known.
    pub measured: u64,
    /// Batches that were not complete on the GPU when the consumer received them, so that its
    /// stream waits for them.
    pub late_batches: u64,
    /// Time that the consumer's stream was idle before batches, summed over `gpu_idle_measured`
    /// batches.
    pub gpu_idle_ns: u64,
    /// Batches whose idle time is known. It is known only if the consumer's stream is.
    pub gpu_idle_measured: u64,
    /// Time that the loader waited for copies, to reuse or release the memory that they read.
    pub staging_wait_ns: u64,
    /// Time that the loader waited for the consumer to drop a batch.
    pub memory_wait_ns: u64,
    /// Page-locked memory of the host.
    pub pinned_bytes: u64,
    /// Peak memory of the GPU for batches.
    pub device_bytes_max: u64,
}

impl DeliveryUse {
    /// The statistics of the time between two totals of a delivery.
    pub fn between(
        device: String,
        split: &Split,
        staged: Option<&Unlocked>,
        before: &Delivered,
        after: &Delivered,
    ) -> Self {
        Self {
            device,
            is_mixed: split.mixing.is_some(),
            undivided: split.undivided().cloned(),
            batches: after.batches - before.batches,
            bytes: after.bytes - before.bytes,
            resident_bytes: after.resident_bytes - before.resident_bytes,
            direct_bytes: after.direct_bytes - before.direct_bytes,
            staged: staged.cloned(),
            transfer_ns: after.transfer_ns - before.transfer_ns,
            convert_ns: after.convert_ns - before.convert_ns,
            measured: after.measured - before.measured,
            late_batches: 0,
            gpu_idle_ns: after.idle_ns - before.idle_ns,
            gpu_idle_measured: after.idle_measured - before.idle_measured,
            staging_wait_ns: after.staging_wait_ns - before.staging_wait_ns,
            memory_wait_ns: after.memory_wait_ns - before.memory_wait_ns,
            pinned_bytes: after.pinned_bytes,
            device_bytes_max: after.device_bytes_max,
        }
    }
}

impl fmt::Display for DeliveryUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, batches, bytes, measured, late_batches, .. } = self;
        write!(f, "{batches} batches ({}) were copied to {device}", show_bytes(*bytes))?;
        if self.resident_bytes > 0 {
            write!(f, ", {} had been prepared there", show_bytes(self.resident_bytes))?;
        }
        if *measured > 0 {
            let mean_ms = |ns: u64| ns as f64 / *measured as f64 / 1e6;
            write!(f, ": {:.2} ms for a batch", mean_ms(self.transfer_ns))?;
            if self.convert_ns > 0 {
                write!(f, ", and {:.2} ms to convert it", mean_ms(self.convert_ns))?;
            }
        }
        write!(f, "; {late_batches} of them were not complete when they were asked for.")?;
        if self.gpu_idle_measured > 0 {
            let total_ms = self.gpu_idle_ns as f64 / 1e6;
            let mean_ms = total_ms / self.gpu_idle_measured as f64;
            write!(f, " The stream of the consumer waited {mean_ms:.2} ms for a batch")?;
            write!(f, " on average, {:.2} s in all.", total_ms / 1e3)?;
        }
        if let Some(reason) = self.undivided.as_ref().filter(|it| **it != SplitRefusal::Bytes) {
            write!(f, " They were converted on the host: {reason}.")?;
        }
        match &self.staged {
            Some(reason) => write!(f, " The loader copied batches before the GPU did: {reason}."),
            None => Ok(()),
        }
    }
}
