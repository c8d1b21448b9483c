//! Why a dataset cannot be profiled or prepared.

use crate::cut_error::CutError;
use crate::decide::DecideError;
use crate::vocabulary::GpuIndex;
use meetpoint_diagnose::{Change, Command, Diagnose, Remedy, Setting, shown};
use meetpoint_format::units::show_bytes;
use meetpoint_kernels::Error as PictureError;
use meetpoint_prepare::TooLargeToDecode;
use meetpoint_prepare::gpu::{GpuFailure, GpuRefusal, OpenError};
use std::path::PathBuf;

/// Why a dataset cannot be profiled or prepared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller requested a stop.
    #[error("interrupted")]
    Stopped,
    /// The dataset cannot be opened, or a sample cannot be read.
    #[error(transparent)]
    Dataset(#[from] meetpoint_prepare::Error),
    /// A sample cannot be prepared.
    #[error("{strategy}: sample {key}: {source}")]
    Sample {
        /// The measured strategy.
        strategy: String,
        /// Key of the sample.
        key: String,
        /// The cause.
        source: PictureError,
    },
    /// A sample needs more memory to decode than this process may use for it.
    #[error("sample {key}: {source}")]
    DecodeMemory {
        /// Key of the sample.
        key: String,
        /// What it needs and what is allowed.
        source: TooLargeToDecode,
    },
    /// A lossless strategy prepares a sample to bits that differ from those of the recipe on the
    /// file.
    #[error(
        "{strategy}: sample {key} differs from the sample that the whole recipe prepares from its \
         file"
    )]
    NotIdentical {
        /// The strategy.
        strategy: String,
        /// Key of the sample.
        key: String,
    },
    /// A sample that was stored for a measurement differs when it is read back.
    #[error("{}: sample {key} read back differs from what was written", shown(path))]
    Stored {
        /// The temporary file.
        path: PathBuf,
        /// Key of the sample.
        key: String,
    },
    /// The picture is larger than a JPEG can be.
    #[error(
        "{strategy}: sample {key} has {width}x{height} pixels, a JPEG has at most 65535 on a side"
    )]
    JpegSide {
        /// The measured strategy.
        strategy: String,
        /// Key of the sample.
        key: String,
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// The recipe produces several pictures per sample.
    #[error("{maker} gives several pictures of a sample, so nothing can be prepared offline")]
    SeveralPictures {
        /// The first view, or the operation that produces them.
        maker: String,
    },
    /// The number of samples is too small or too large.
    #[error(
        "{asked} samples cannot be measured: the dataset has {most}, and at least {least} are \
         needed to estimate the spread"
    )]
    Samples {
        /// The requested value.
        asked: u64,
        /// The minimum.
        least: u64,
        /// Samples of the dataset.
        most: u64,
    },
    /// The dataset is too small to measure.
    #[error("the dataset has {samples} samples, and profiling takes at least {least}")]
    SmallDataset {
        /// Its samples.
        samples: u64,
        /// The minimum.
        least: u64,
    },
    /// A number is out of range.
    #[error("the number of {name} is {value}")]
    Number {
        /// Its name, in the plural.
        name: &'static str,
        /// The setting.
        setting: Setting,
        /// Its value.
        value: u64,
        /// The minimum.
        least: u64,
        /// The limit.
        most: u64,
    },
    /// A list of settings is empty.
    #[error("no value of {name} to profile")]
    NoSettings {
        /// The name.
        name: &'static str,
        /// The setting.
        setting: Setting,
    },
    /// Temporary files would exceed the free space.
    #[error(
        "{}: storing {samples} samples as {point} takes up to {needed} bytes, {free} are free",
        shown(folder)
    )]
    Space {
        /// The folder for temporary files.
        folder: PathBuf,
        /// Samples.
        samples: u64,
        /// The stored form.
        point: String,
        /// Bytes that it may take.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The cache exceeds the available memory.
    #[error(
        "caching {samples} samples as {point} takes up to {needed} bytes of memory, {available} \
         are available{}",
        limited_by(file.as_ref())
    )]
    Memory {
        /// Samples.
        samples: u64,
        /// The cached form.
        point: String,
        /// Bytes that it may take.
        needed: u64,
        /// Bytes that are available.
        available: u64,
        /// The file of the control group that sets the limit.
        file: Option<PathBuf>,
    },
    /// A temporary file cannot be opened or read through the storage engine.
    #[error(transparent)]
    Storage(#[from] meetpoint_storage::Error),
    /// An operation on a temporary file or its folder failed.
    #[error("failed to {action} {}: {source}", shown(path))]
    Io {
        /// What failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The GPU cannot be used.
    #[error("failed to open GPU {gpu}: {source}")]
    Gpu {
        /// The GPU.
        gpu: GpuIndex,
        /// The cause.
        source: OpenError,
    },
    /// No GPU executes the recipe.
    #[error("GPU {gpu} prepares no sample of this recipe: {source}")]
    GpuRecipe {
        /// The GPU.
        gpu: GpuIndex,
        /// The cause.
        source: GpuRefusal,
    },
    /// The GPU left every sample to the CPU.
    #[error(
        "GPU {gpu} took none of the {samples} samples that were measured: it decodes baseline \
         JPEGs and coefficient forms"
    )]
    NothingOnGpu {
        /// The GPU.
        gpu: GpuIndex,
        /// Samples that were measured.
        samples: u64,
    },
    /// The GPU failed while it was measured.
    #[error("GPU {gpu} failed while it was measured: {}", failure.detail)]
    GpuFailed {
        /// The GPU.
        gpu: GpuIndex,
        /// The failure.
        failure: GpuFailure,
    },
    /// The GPU had too little free memory to be measured.
    #[error("GPU {gpu} ran out of memory while it was measured")]
    GpuOutOfMemory {
        /// The GPU.
        gpu: GpuIndex,
    },
    /// The batches that a GPU and the CPU prepare exceed the available memory.
    #[error(
        "a batch for each of {threads} threads takes {} of memory, and {} are available",
        show_bytes(*needed), show_bytes(*available)
    )]
    GpuBatches {
        /// Bytes of the batches.
        needed: u64,
        /// Bytes that are available.
        available: u64,
        /// Number of threads.
        threads: usize,
    },
    /// The prepared dataset exceeds the free space at the destination.
    #[error(
        "{}: {samples} samples as {point} take about {needed} bytes, {free} are free",
        shown(folder)
    )]
    Destination {
        /// The folder of the destination.
        folder: PathBuf,
        /// Samples.
        samples: u64,
        /// The stored form.
        point: String,
        /// Estimated bytes, from the mean of a few samples.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// A prepared sample is larger than a dataset allows.
    #[error("sample {key} has {bytes} bytes when it is prepared, the limit is {limit}")]
    LargeSample {
        /// Key of the sample.
        key: String,
        /// Its bytes.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The samples of the dataset are already prepared up to the requested cut or beyond, or with
    /// losses.
    #[error(
        "{}: its samples were prepared by the first {operations} operations already",
        shown(path)
    )]
    AlreadyPrepared {
        /// The dataset.
        path: PathBuf,
        /// Operations that were executed.
        operations: usize,
    },
    /// Some samples cannot be read or decoded.
    #[error(transparent)]
    Unreadable(Box<meetpoint_datasets::Error>),
    /// The result could not be written.
    #[error(transparent)]
    Datasets(Box<meetpoint_datasets::Error>),
    /// The cut is invalid.
    #[error(transparent)]
    Cut(#[from] CutError),
    /// No decision is possible for the goal.
    #[error(transparent)]
    Decide(#[from] DecideError),
}

impl From<meetpoint_datasets::Error> for Error {
    fn from(error: meetpoint_datasets::Error) -> Self {
        Self::Datasets(Box::new(error))
    }
}

impl Diagnose for Error {
    fn cause(&self) -> &'static str {
        match self {
            Self::Stopped => "interrupted",
            Self::Dataset(source) => source.cause(),
            Self::Sample { source, .. } => source.cause(),
            Self::DecodeMemory { .. } => "decode_memory",
            Self::NotIdentical { .. } => "defect",
            Self::Stored { .. } => "not_read_back",
            Self::JpegSide { .. } => "too_large_for_jpeg",
            Self::SeveralPictures { .. } => "several_pictures",
            Self::Samples { .. } => "samples_out_of_range",
            Self::SmallDataset { .. } => "small_dataset",
            Self::Number { .. } => "setting_out_of_range",
            Self::NoSettings { .. } => "setting_empty",
            Self::Space { .. } => "no_space",
            Self::Memory { .. } => "no_memory",
            Self::Destination { .. } => "no_space",
            Self::LargeSample { .. } => "large_sample",
            Self::AlreadyPrepared { .. } => "already_prepared",
            Self::Unreadable(source) => source.cause(),
            Self::Datasets(source) => source.cause(),
            Self::Cut(source) => source.cause(),
            Self::Storage(source) => source.cause(),
            Self::Io { .. } => "temporary_file",
            Self::Gpu { source, .. } => source.cause(),
            Self::GpuRecipe { .. } | Self::NothingOnGpu { .. } => "gpu_unused",
            Self::GpuFailed { .. } => "gpu_failed",
            Self::GpuOutOfMemory { .. } => "gpu_out_of_memory",
            Self::GpuBatches { .. } => "no_memory",
            Self::Decide(source) => source.cause(),
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        let temporary =
            |purpose: &'static str| Remedy::by(purpose, Setting::Temporary, Change::Other);
        Some(match self {
            Self::Stopped => return None,
            Self::Dataset(source) => return source.remedy(),
            Self::Sample { source: PictureError::DoesNotFit(source), .. } => {
                return source.remedy();
            }
            Self::Sample { .. } => Remedy::run(Command::VerifyDeep),
            Self::DecodeMemory { source, .. } => source.remedy(),
            Self::NotIdentical { .. } => "report it with the recipe and the sample".into(),
            Self::Stored { .. } => temporary("check the drive, or name a folder on another"),
            Self::JpegSide { .. } => "leave the sample out of the dataset".into(),
            Self::SeveralPictures { .. } => "profile a recipe of the common operations".into(),
            Self::Samples { asked, most, least } => {
                let change = match asked > most {
                    true => Change::AtMost(most.to_string()),
                    false => Change::AtLeast(least.to_string()),
                };
                Remedy::set(Setting::Samples, change)
                    .or_set(Setting::Samples, Change::To("auto".to_owned()))
            }
            Self::SmallDataset { least, .. } => {
                format!("name a dataset of at least {least} samples").into()
            }
            Self::Number { setting, least, most, value, .. } => {
                let change = match value > most {
                    true => Change::AtMost(most.to_string()),
                    false => Change::AtLeast(least.to_string()),
                };
                Remedy::set(*setting, change)
            }
            Self::NoSettings { setting, .. } => {
                Remedy::by("name at least one", *setting, Change::Other)
            }
            Self::Space { .. } => Remedy::set(Setting::Samples, Change::Lower).or_by(
                "name another folder",
                Setting::Temporary,
                Change::Other,
            ),
            Self::Memory { .. } => Remedy::set(Setting::Samples, Change::Lower),
            Self::Destination { .. } => {
                Remedy::advice("free space").or("name a destination on another drive")
            }
            Self::LargeSample { .. } => {
                Remedy::set(Setting::Cut, Change::Other).or("resize samples before the cut")
            }
            Self::AlreadyPrepared { .. } => "name the dataset that it was prepared from".into(),
            Self::Unreadable(source) => return source.remedy(),
            Self::Datasets(source) => return source.remedy(),
            Self::Cut(source) => return source.remedy(),
            Self::Storage(source) => return source.remedy(),
            Self::Gpu { source, .. } => return source.remedy(),
            Self::GpuRecipe { .. } | Self::NothingOnGpu { .. } => "leave the GPU out".into(),
            Self::GpuFailed { .. } => Remedy::run(Command::Doctor),
            Self::GpuOutOfMemory { .. } => "end other programs that use the GPU".into(),
            Self::GpuBatches { .. } => Remedy::set(Setting::BatchSize, Change::Lower),
            Self::Io { .. } => temporary("name another folder for temporary files"),
            Self::Decide(source) => return source.remedy(),
        })
    }
}

fn limited_by(file: Option<&PathBuf>) -> String {
    file.map(|file| format!(" by {}", shown(file))).unwrap_or_default()
}
