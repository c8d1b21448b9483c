//! The GPU that batches are copied to, and the one that prepares a share of them.

use crate::exceptions::{ErrorLocation, ProblemText, plain, raise};
use meetpoint_format::recipe::Dtype;
use meetpoint_format::units::show_bytes_at_least;
use meetpoint_gpu::Error;
use meetpoint_host::delivery::{
    CudaBatch, CudaMemory, CudaStage, Delivered, DeliveryError, DeliveryLimits, DeliveryUse, Split,
    SplitRefusal, open_cuda,
};
use meetpoint_host::{
    Batch as HostBatch, GpuDecode, GpuIndex, LoaderConfig, Notice, ShareChoice, StopHandle,
};
use meetpoint_python_macros::guarded;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// A dictionary with exactly these keys.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GpuArguments {
    /// `cuda` or `cuda:INDEX`.
    device: String,
    /// Number of batches that are copied before they are requested.
    prefetch: usize,
    /// Bytes of GPU memory for batches.
    memory: u64,
    /// Bytes of page-locked memory.
    pinned: u64,
    /// Whether float32 is converted to bfloat16 on the GPU.
    bfloat16: bool,
    /// Folders of Python packages, one of which may have the run-time compiler.
    packages: Vec<PathBuf>,
}

/// Raises a `SettingError` if an argument does not name a GPU.
#[guarded]
#[pyfunction]
pub(crate) fn check_gpu(py: Python<'_>, argument: &str, device: &str) -> PyResult<()> {
    gpu_index(py, argument, device).map(|_| ())
}

/// The GPU that an argument names.
fn gpu_index(py: Python<'_>, argument: &str, text: &str) -> PyResult<GpuIndex> {
    text.parse().map_err(|_| {
        let message = format!("{argument} is '{text}'");
        let remedy = format!("set {argument} to {}", GpuIndex::EXPECTED);
        plain(py, "SettingError", (message, remedy))
    })
}

/// A dictionary with exactly these keys.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct DecodeArguments {
    /// `cuda` or `cuda:INDEX`.
    device: String,
    /// Part of each batch, from 0 to 1; `None`: determined by measurements.
    share: Option<f64>,
    /// Bytes of GPU memory for all threads; `None`: the default.
    memory: Option<u64>,
    /// Folders of Python packages, one of which may have the run-time compiler.
    packages: Vec<PathBuf>,
}

impl DecodeArguments {
    /// Adds the GPU to the configuration of the loader.
    pub(crate) fn apply(self, py: Python<'_>, config: &mut LoaderConfig) -> PyResult<()> {
        let gpu = gpu_index(py, "gpu_decode", &self.device)?;
        let share = match self.share {
            None => ShareChoice::Measured,
            Some(share) if (0.0..=1.0).contains(&share) => ShareChoice::Fixed(share),
            Some(share) => {
                let remedy = "set gpu_share to \"auto\" or a number from 0 to 1";
                return Err(plain(py, "SettingError", (format!("gpu_share is {share}"), remedy)));
            }
        };
        config.gpu_decode = Some(GpuDecode { gpu, share, memory_bytes: self.memory });
        config.package_folders = self.packages;
        Ok(())
    }
}

/// How batches are copied to a GPU.
#[derive(Debug)]
pub(crate) struct GpuSettings {
    device: GpuIndex,
    prefetch: usize,
    limits: DeliveryLimits,
    packages: Vec<PathBuf>,
    split: Split,
    /// Element type of the pictures of a batch.
    dtype: &'static str,
}

impl GpuSettings {
    /// The settings, with which the recipe of the loader is divided.
    pub(crate) fn new(
        py: Python<'_>,
        arguments: GpuArguments,
        config: &mut LoaderConfig,
    ) -> PyResult<Self> {
        let GpuArguments { device, prefetch, memory, pinned, bfloat16, packages } = arguments;
        let device = gpu_index(py, "device_out", &device)?;
        if pinned < DeliveryLimits::STAGING_BYTES_MIN {
            let message = format!("gpu_pinned_memory is {pinned} bytes");
            let least = show_bytes_at_least(DeliveryLimits::STAGING_BYTES_MIN);
            let remedy = format!("set gpu_pinned_memory to at least {least}, or leave it out");
            return Err(plain(py, "SettingError", (message, remedy)));
        }
        let staging_bytes = pinned.min(DeliveryLimits::default().staging_bytes);
        let limits = DeliveryLimits {
            staging_bytes,
            locked_bytes: pinned - staging_bytes,
            device_bytes: memory,
            // Those being copied, that of the current step, and some whose step is queued on the
            // GPU.
            buffers: prefetch + 4,
            ..DeliveryLimits::default()
        };
        let (recipe, collate) = (Arc::clone(&config.recipe), config.columns.collate());
        let dataset = &config.dataset;
        let mut split = py.detach(|| Split::for_dataset(&recipe, &collate, dataset));
        if bfloat16 {
            split = split.to_bfloat16().ok_or_else(|| {
                let why = match split.undivided() {
                    Some(reason) => reason.to_string(),
                    None => {
                        let mut gives = config.recipe.images().iter().map(|it| it.result.dtype);
                        let other = gives.find(|it| *it != Dtype::Float32);
                        format!("the recipe gives {}", other.map_or("float32", Dtype::name))
                    }
                };
                let message = format!("device_dtype is \"bfloat16\", but {why}");
                let remedy = "use a recipe whose pictures the GPU converts to float32, or leave \
                              device_dtype out";
                plain(py, "SettingError", (message, remedy))
            })?;
        }
        let dtype = config.recipe.images()[0].result.dtype.name();
        split.apply(config, device);
        Ok(Self { device, prefetch, limits, packages, split, dtype })
    }
}

/// An error of a GPU, and when it occurred.
#[derive(Debug)]
pub(crate) struct GpuFailure {
    device: GpuIndex,
    /// Epoch and index of the batch; `None` when the GPU was opened.
    batch: Option<(u32, u32)>,
    error: DeliveryError,
}

impl GpuFailure {
    /// As an exception.
    pub(crate) fn raised(&self, py: Python<'_>) -> PyErr {
        let at = match self.batch {
            Some((epoch, batch)) => format!("batch {batch} of epoch {epoch} for {}", self.device),
            None => format!("{} cannot be used", self.device),
        };
        let message = format!("{at}: {}", self.error);
        match &self.error {
            DeliveryError::Stopped => plain(py, "ClosedError", "the loader was closed"),
            DeliveryError::NoMemory { .. } => {
                let remedy = "drop tensors that are not used any more, raise gpu_memory, or use \
                              smaller batches";
                plain(py, "BudgetError", (message, remedy))
            }
            DeliveryError::TooLarge { .. } => {
                plain(py, "BudgetError", (message, "raise gpu_memory, or use smaller batches"))
            }
            DeliveryError::Gpu(error) => of_gpu(py, message, error),
        }
    }
}

/// An error of the GPU as an exception with a message.
pub(crate) fn of_gpu(py: Python<'_>, message: String, error: &Error) -> PyErr {
    let said = ProblemText::new(message, error);
    raise(py, "GpuError", said, ErrorLocation::default())
}

/// The GPU, used on the thread of the loader.
#[derive(Debug)]
pub(crate) struct Gpu {
    stage: CudaStage,
    settings: GpuSettings,
    stop: StopHandle,
    /// When the epoch began.
    before: Delivered,
    late_batches: u64,
}

impl Gpu {
    pub(crate) fn open(settings: GpuSettings, stop: StopHandle) -> Result<Self, GpuFailure> {
        let GpuSettings { device, limits, packages, split, .. } = &settings;
        let is_stopped = || stop.is_stopped();
        let opened = open_cuda(*device, split, *limits, packages.clone(), &is_stopped);
        let stage = opened.map_err(|error| GpuFailure {
            device: *device,
            batch: None,
            error: error.into(),
        })?;
        Ok(Self { stage, settings, stop, before: Delivered::default(), late_batches: 0 })
    }

    /// Number of batches that may be copied before they are requested.
    pub(crate) fn ahead(&self) -> usize {
        self.settings.prefetch
    }

    /// Whether a batch can be copied without waiting for the consumer.
    pub(crate) fn has_room(&self) -> bool {
        self.stage.has_room()
    }

    /// Why the GPU converts nothing, if that is unexpected.
    pub(crate) fn notice(&self) -> Option<Notice> {
        let reason = self.settings.split.undivided()?;
        match reason {
            SplitRefusal::Bytes => None,
            SplitRefusal::DifferentSizes
            | SplitRefusal::FollowedBy { .. }
            | SplitRefusal::NotBytes { .. }
            | SplitRefusal::PreparedOffline
            | SplitRefusal::Compared => Some(Notice::NotConvertedOnGpu {
                device: self.settings.device.to_string(),
                dtype: self.settings.dtype.to_owned(),
                reason: reason.clone(),
            }),
        }
    }

    /// Starts copying a batch.
    pub(crate) fn deliver(&mut self, batch: &HostBatch) -> Result<CudaBatch, GpuFailure> {
        let stop = &self.stop;
        let delivered = self.stage.deliver(batch, &|| stop.is_stopped());
        let at = Some((batch.epoch(), batch.index()));
        delivered.map_err(|error| GpuFailure { device: self.settings.device, batch: at, error })
    }

    /// The consumer requests a batch.
    pub(crate) fn note_asked(&self) {
        self.stage.note_asked();
    }

    /// The consumer receives the batch.
    pub(crate) fn note_handed(&mut self, memory: &CudaMemory) {
        // A failure of the GPU is reported later.
        self.late_batches += u64::from(!memory.is_ready().unwrap_or(true));
        self.stage.note_handed(memory);
    }

    pub(crate) fn begin_epoch(&mut self) {
        // A failed GPU is reported by the next batch.
        self.before = self.stage.delivered().unwrap_or_default();
        self.late_batches = 0;
    }

    /// The cost during the epoch; `None` if the GPU has failed.
    pub(crate) fn end_epoch(&mut self) -> Option<DeliveryUse> {
        let after = self.stage.delivered().ok()?;
        let device = self.settings.device.to_string();
        let (split, staged) = (&self.settings.split, self.stage.staged());
        let used = DeliveryUse::between(device, split, staged, &self.before, &after);
        Some(DeliveryUse { late_batches: self.late_batches, ..used })
    }
}
