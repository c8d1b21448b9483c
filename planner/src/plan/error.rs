//! Why no plan can be made.

use crate::vocabulary::GpuIndex;
use meetpoint_diagnose::{Change, Command, Diagnose, Remedy, Setting, known};
use meetpoint_format::units::{show_bytes, show_bytes_at_least};

/// Why no plan can be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// No epochs.
    #[error("0 epochs: there is nothing to plan")]
    NoEpochs,
    /// A batch is larger than the dataset.
    #[error("a batch of {batch_size} is more than the {samples} samples of the dataset")]
    BatchTooLarge {
        /// Samples of a batch.
        batch_size: u32,
        /// Samples of the dataset.
        samples: u64,
    },
    /// The confidence is out of range.
    #[error("the confidence is {0}, which is not above 0 and below 1")]
    Confidence(f64),
    /// The text does not fix a value.
    #[error("{text:?} does not fix a value")]
    PinSyntax {
        /// As given.
        text: String,
    },
    /// The value is fixed twice.
    #[error("{key} is fixed more than once")]
    RepeatedPin {
        /// The key.
        key: String,
    },
    /// The key cannot be fixed.
    #[error("a plan has no value {key:?}")]
    UnknownPin {
        /// As given.
        key: String,
        /// The keys that can be fixed.
        known: &'static [&'static str],
    },
    /// The value has the wrong form.
    #[error("{key} is fixed to {value:?}")]
    PinValue {
        /// The key.
        key: String,
        /// As given.
        value: String,
        /// The values that it accepts.
        expected: String,
    },
    /// No measured strategy has the fixed values.
    #[error("the profile has no measurement of {what}")]
    NotMeasured {
        /// The fixed value.
        what: String,
        /// The measured values.
        measured: Vec<String>,
    },
    /// The strategy needs a device, but there is none.
    #[error("the strategy is fixed to {strategy}, which needs a device")]
    NeedsDevice {
        /// Its name.
        strategy: String,
    },
    /// The profile has no row of this form with the GPU.
    #[error("the profile has no measurement of {what} with the GPU {gpu}")]
    GpuNotMeasured {
        /// The GPU.
        gpu: GpuIndex,
        /// The stored form.
        what: String,
    },
    /// The profile has rows of this form with a GPU, but none of the CPU alone.
    #[error("the profile has no measurement of {what} without a GPU")]
    CpuNotMeasured {
        /// The stored form.
        what: String,
        /// A GPU with which it was measured.
        gpu: GpuIndex,
    },
    /// The fixed GPU is not the one that is measured.
    #[error(
        "gpu is fixed to {pinned}, but {}",
        measured.map_or_else(|| "no GPU is measured".to_owned(), |gpu| format!("{gpu} is measured"))
    )]
    OtherGpuPinned {
        /// The fixed GPU.
        pinned: GpuIndex,
        /// The GPU that is measured.
        measured: Option<GpuIndex>,
    },
    /// Both a GPU and a cache are fixed.
    #[error("the GPU is fixed to {gpu} and a cache is fixed, and no GPU prepares cached samples")]
    GpuWithCache {
        /// The GPU.
        gpu: GpuIndex,
    },
    /// The power model has no accelerator, and the profile has no joules of the GPU.
    #[error(
        "the accelerator of the power model {profile} draws no watts, and the profile has no \
         joules of the GPU, so decoding there would cost nothing"
    )]
    NoGpuWatts {
        /// Name of the power model.
        profile: String,
    },
    /// A cache is fixed, but no operation of the recipe can be cached.
    #[error(
        "a cache of {} is fixed, and no operation of the recipe can be cached",
        show_bytes(*bytes)
    )]
    NothingToCache {
        /// Bytes of the cache.
        bytes: u64,
    },
    /// The fixed cache is too small for a single sample.
    #[error(
        "a cache of {} is fixed, which holds no sample; all of them take {}",
        show_bytes(*bytes), show_bytes(*needed_bytes)
    )]
    SmallCache {
        /// Bytes of the cache.
        bytes: u64,
        /// Bytes that all samples need, in the smallest form that can be cached.
        needed_bytes: u64,
    },
    /// The device prepares less than a batch in an epoch.
    #[error(
        "the device takes {batch_seconds:.1} s for a batch, and the host {epoch_seconds:.3} s for \
         a whole epoch"
    )]
    SlowDevice {
        /// Minimum seconds that the device takes for a batch.
        batch_seconds: f64,
        /// Seconds of an epoch of the host alone.
        epoch_seconds: f64,
    },
    /// The profile belongs to another dataset.
    #[error(
        "the profile is of a dataset of {profiled} samples ({} of content), and this dataset has \
         {samples} ({})", show_bytes(*profiled_bytes), show_bytes(*bytes)
    )]
    OtherDataset {
        /// Samples of the dataset that was profiled.
        profiled: u64,
        /// Its bytes.
        profiled_bytes: u64,
        /// Samples of this one.
        samples: u64,
        /// Its bytes.
        bytes: u64,
    },
    /// The profile belongs to another recipe.
    #[error("the profile measured {point}, which the recipe does not have")]
    OtherRecipe {
        /// A point that the recipe does not have.
        point: String,
    },
    /// The samples of the dataset are prepared already.
    #[error("the samples of the dataset are prepared by its first {operations} operations already")]
    Prepared {
        /// Operations that were executed.
        operations: u32,
    },
    /// No plan is within the limits.
    #[error(
        "no plan fits the limits: the smallest stores {} and takes {} of memory",
        show_bytes(storage_bytes.ceil() as u64), show_bytes(memory_bytes.ceil() as u64)
    )]
    NothingFits {
        /// Minimum bytes that a plan stores.
        storage_bytes: f64,
        /// Bytes of memory that the same plan needs.
        memory_bytes: f64,
    },
    /// The simulation refused its scenario.
    #[error("the simulation failed: {0}")]
    Simulation(String),
}

impl Diagnose for PlanError {
    fn cause(&self) -> &'static str {
        match self {
            Self::NoEpochs => "no_epochs",
            Self::BatchTooLarge { .. } => "batch_too_large",
            Self::Confidence(_) => "confidence",
            Self::PinSyntax { .. }
            | Self::RepeatedPin { .. }
            | Self::UnknownPin { .. }
            | Self::PinValue { .. } => "pin",
            Self::NotMeasured { .. } => "not_measured",
            Self::NeedsDevice { .. } => "no_device",
            Self::GpuNotMeasured { .. } => "gpu_not_measured",
            Self::CpuNotMeasured { .. } => "cpu_not_measured",
            Self::OtherGpuPinned { .. } => "other_gpu_pinned",
            Self::GpuWithCache { .. } => "gpu_with_cache",
            Self::NoGpuWatts { .. } => "no_gpu_watts",
            Self::NothingToCache { .. } => "nothing_to_cache",
            Self::SmallCache { .. } => "small_cache",
            Self::SlowDevice { .. } => "slow_device",
            Self::OtherDataset { .. } => "other_dataset",
            Self::OtherRecipe { .. } => "other_recipe",
            Self::Prepared { .. } => "already_prepared",
            Self::NothingFits { .. } => "nothing_fits",
            Self::Simulation(_) => "defect",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::NoEpochs => Remedy::set(Setting::Epochs, Change::AtLeast("1".to_owned())),
            Self::BatchTooLarge { samples, .. } => {
                Remedy::set(Setting::BatchSize, Change::AtMost(samples.to_string()))
            }
            Self::Confidence(_) => Remedy::set(Setting::Confidence, Change::To("0.95".to_owned())),
            Self::PinSyntax { .. } => "write KEY=VALUE, such as workers=2".into(),
            Self::RepeatedPin { key } => format!("fix {key} once").into(),
            Self::UnknownPin { key, known: keys } => known(key, keys).into(),
            Self::PinValue { key, expected, .. } => format!("set {key} to {expected}").into(),
            Self::NotMeasured { measured, .. } if measured.is_empty() => "profile it".into(),
            Self::NotMeasured { measured, .. } => {
                format!("choose one of {}, or profile it", measured.join(", ")).into()
            }
            Self::NeedsDevice { .. } => "name a device, or fix the strategy to host-only".into(),
            Self::GpuNotMeasured { gpu, .. } => {
                Remedy::by("profile it", Setting::GpuDecode, Change::To(gpu.to_string()))
                    .or("choose another stored form or GPU")
            }
            Self::CpuNotMeasured { gpu, .. } => {
                Remedy::from(format!("fix gpu to {gpu}")).or_run(Command::ProfileResults)
            }
            Self::OtherGpuPinned { pinned, .. } => {
                Remedy::by("measure it", Setting::GpuDecode, Change::To(pinned.to_string()))
                    .or("fix another GPU, or none")
            }
            Self::GpuWithCache { .. } => "leave out one of the two".into(),
            Self::NoGpuWatts { .. } => Remedy::by(
                "name a power model with the GPU",
                Setting::Power,
                Change::To("server-h100".to_owned()),
            )
            .or("fix gpu to none"),
            Self::NothingToCache { .. } => "leave the cache out".into(),
            Self::SmallCache { .. } => "fix a larger cache, or leave it out".into(),
            Self::SlowDevice { .. } => {
                "correct cpu_ratio, bandwidths and latency of the device, or fix the strategy to \
                 host-only"
                    .into()
            }
            Self::OtherDataset { .. } | Self::OtherRecipe { .. } => {
                Remedy::run(Command::ProfileResults)
            }
            Self::Prepared { .. } => "name the dataset that it was prepared from".into(),
            Self::NothingFits { storage_bytes, memory_bytes } => {
                let least = |bytes: f64| Change::AtLeast(show_bytes_at_least(bytes.ceil() as u64));
                let memory = least(*memory_bytes);
                if *storage_bytes == 0.0 {
                    // It is within any storage limit.
                    Remedy::set(Setting::MemoryLimit, memory)
                } else {
                    Remedy::set(Setting::StorageLimit, least(*storage_bytes))
                        .or_set(Setting::MemoryLimit, memory)
                }
            }
            Self::Simulation(_) => "report it with the recipe and the profile".into(),
        })
    }
}
