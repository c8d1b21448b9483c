//! The use of a GPU by a loader's preparers, epoch by epoch.

use super::Loader;
use crate::Error;
use crate::config::LoaderConfig;
use crate::driver::Driver;
use crate::gpu_decode::GpuDecode;
use crate::stats::EventKind;
use meetpoint_prepare::PreparerFactory;
use meetpoint_prepare::gpu::{Downloaded, GpuFailure, GpuMemory, GpuPreparers, GpuUse};
use meetpoint_storage::MemoryLimit;
use std::sync::Arc;

/// The preparers of one loader: those with the GPU of its configuration, or those that the
/// configuration contains. Preparers with a GPU count only the use by this loader.
pub(super) fn preparers(config: &LoaderConfig) -> Result<Arc<dyn PreparerFactory>, Error> {
    if let Some(decode @ GpuDecode { gpu, share, .. }) = config.gpu_decode {
        let memory = memory(config, &decode, &MemoryLimit::of_this_process())?;
        let keeps_tensors = config.delivers_to == Some(gpu) && !config.verify_samples;
        let (memory, tensors_bytes) = match keeps_tensors {
            true => memory.without_tensors(),
            false => (memory, 0),
        };
        let memory = memory.divided(config.shares.saturating_mul(config.threads_max()));
        let is_stopped = || config.stop.is_stopped();
        let folders = &config.package_folders;
        let opened = GpuPreparers::open(gpu, share, memory, folders, &is_stopped);
        config.stop.check()?;
        let opened = opened.map_err(|source| Error::Gpu { gpu, source })?;
        if keeps_tensors {
            let limit_bytes = tensors_bytes / u64::from(config.shares);
            return Ok(Arc::new(opened.keeping_tensors(limit_bytes)));
        }
        if config.delivers_to == Some(gpu) {
            opened.note_downloaded(Downloaded::Verified);
        }
        return Ok(Arc::new(opened));
    }
    let own = config.preparers.for_one_loader();
    Ok(own.unwrap_or_else(|| Arc::clone(&config.preparers)))
}

/// The GPU memory limits of a loader. The page-locked part and the budget for batches must fit
/// into this process's memory together.
pub(super) fn memory(
    config: &LoaderConfig,
    decode: &GpuDecode,
    limit: &MemoryLimit,
) -> Result<GpuMemory, Error> {
    // The default budget for batches is no reservation.
    let is_default = config.memory_budget_bytes == LoaderConfig::memory_budget_default(limit);
    let others = if is_default { 0 } else { config.memory_budget_bytes };
    decode.memory(limit.bytes, others).ok_or_else(|| Error::GpuMemoryTooLarge {
        pinned_bytes: GpuMemory::of(decode.memory_bytes.unwrap_or(0)).pinned_bytes,
        others,
        limit: limit.clone(),
    })
}

/// What has been reported about a loader's GPU so far.
#[derive(Debug, Default)]
pub(super) struct GpuReportState {
    /// The GPU's use when the epoch began.
    at_start: GpuUse,
    /// Whether an event for its failure was recorded: later failures are consequences.
    was_failure_noted: bool,
}

impl Loader {
    /// The use of a GPU by its preparers since it was opened; `None` if they have none.
    pub fn gpu_use(&self) -> Option<GpuUse> {
        self.config.preparers.gpu_use()
    }

    /// Call at the beginning of each epoch.
    pub(super) fn gpu_epoch_began(&mut self) {
        self.gpu.at_start = self.gpu_use().unwrap_or_default();
    }

    /// The use during this epoch.
    pub(super) fn gpu_use_of_epoch(&self) -> Option<GpuUse> {
        self.gpu_use().map(|now| now.since(&self.gpu.at_start))
    }

    /// Records the failure of the GPU, once.
    pub(super) fn note_gpu_failure(&mut self, driver: &Driver) {
        if self.gpu.was_failure_noted {
            return;
        }
        let Some(GpuUse { gpu, failure, .. }) = self.gpu_use() else { return };
        let Some(GpuFailure { cause, detail }) = failure else { return };
        self.gpu.was_failure_noted = true;
        driver.note(EventKind::GpuFailed { gpu, cause, detail });
    }
}
