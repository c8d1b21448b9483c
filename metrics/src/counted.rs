//! The values that are counted, for each batch passed to the consumer and each completed epoch.

use meetpoint_host::Batch;
use meetpoint_host::stats::EpochStats;
use meetpoint_scheduler::Source;
use std::time::Duration;

/// A batch that was passed to the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsumedBatch {
    /// Who prepared it: `"host"` or `"device"`.
    pub source: &'static str,
    /// Its samples.
    pub samples: u64,
    /// Bytes of its tensor.
    pub bytes: u64,
    /// Damaged samples that were replaced by another one.
    pub replaced: u64,
    /// Damaged samples that were left out.
    pub skipped: u64,
    /// Time that its consumer waited for it.
    pub waited: Duration,
}

impl ConsumedBatch {
    /// The values of a batch for which its consumer waited `waited`.
    pub fn of(batch: &Batch, waited: Duration) -> Self {
        let replaced = batch.replacements().iter().filter(|it| it.replaced_by.is_some()).count();
        Self {
            source: match batch.source() {
                Source::Host => "host",
                Source::Device(_) => "device",
            },
            samples: batch.samples().len() as u64,
            bytes: batch.image_bytes() as u64,
            replaced: replaced as u64,
            skipped: (batch.replacements().len() - replaced) as u64,
            waited,
        }
    }

    /// Numbers of damaged samples by how they were handled; zeros are left out.
    pub(crate) fn damaged(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [("replace", self.replaced), ("skip", self.skipped)].into_iter().filter(|it| it.1 > 0)
    }
}

/// A completed epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompletedEpoch {
    /// Batches that were revoked from devices.
    pub revoked: u64,
    /// Stalls: how often a device made no progress within its time limit.
    pub stalls: u64,
    /// CPU time of this process, all threads.
    pub host_cpu_seconds: f64,
    /// Time that devices had work, summed over devices.
    pub device_busy_seconds: f64,
}

impl From<&EpochStats> for CompletedEpoch {
    fn from(stats: &EpochStats) -> Self {
        let busy_ns: u64 = stats.devices.iter().map(|device| device.busy_ns).sum();
        Self {
            revoked: stats.schedule.revoked.into(),
            stalls: stats.schedule.stalls.into(),
            host_cpu_seconds: stats.host_cpu_ns as f64 / 1e9,
            device_busy_seconds: busy_ns as f64 / 1e9,
        }
    }
}
