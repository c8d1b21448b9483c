//! What a loader's preparers do with a GPU, epoch by epoch.

use super::Loader;
use crate::driver::Driver;
use crate::stats::EventKind;
use meetpoint_prepare::gpu::{GpuFailure, GpuUse};

/// What was reported of a loader's GPU before now.
#[derive(Debug, Default)]
pub(super) struct GpuSoFar {
    /// Its use when the epoch began.
    at_start: GpuUse,
    /// Whether its failure is an event already: later ones are consequences.
    was_failure_noted: bool,
}

impl Loader {
    /// What its preparers have done with a GPU since it was opened; `None` if they have none.
    pub fn gpu_use(&self) -> Option<GpuUse> {
        self.config.preparers.gpu().map(|gpu| gpu.usage())
    }

    /// An epoch begins.
    pub(super) fn gpu_epoch_began(&mut self) {
        self.gpu.at_start = self.gpu_use().unwrap_or_default();
    }

    /// What was done in this epoch.
    pub(super) fn gpu_use_of_epoch(&self) -> Option<GpuUse> {
        self.gpu_use().map(|now| now.since(&self.gpu.at_start))
    }

    /// Notes the failure of the GPU, once.
    pub(super) fn note_gpu_failure(&mut self, driver: &Driver) {
        if self.gpu.was_failure_noted {
            return;
        }
        let Some(gpu) = self.config.preparers.gpu() else { return };
        let Some(GpuFailure { cause, reason }) = gpu.failure() else { return };
        self.gpu.was_failure_noted = true;
        driver.note(EventKind::GpuFailed { gpu: gpu.usage().gpu, cause, reason });
    }
}
