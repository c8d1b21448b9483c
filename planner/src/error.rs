//! Why a dataset is not profiled.

use crate::decide::DecideError;
use std::path::PathBuf;

/// Why a dataset is not profiled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller asked to stop.
    #[error("interrupted")]
    Stopped,
    /// The dataset does not open, or a sample does not read.
    #[error(transparent)]
    Dataset(#[from] meetpoint_prepare::Error),
    /// A sample does not prepare.
    #[error("{strategy}: sample {key}: {source}; run \"meetpoint verify --deep\" on the dataset")]
    Sample {
        /// What was being measured.
        strategy: String,
        /// Its key.
        key: String,
        /// Why.
        source: meetpoint_kernels::Error,
    },
    /// A strategy without loss prepares a sample to other bits than the recipe does on the file.
    #[error(
        "{strategy}: sample {key} differs from the sample that the whole recipe prepares from its \
         file; this is a defect, please report it with the recipe and the sample"
    )]
    NotIdentical {
        /// Which.
        strategy: String,
        /// Key of the sample.
        key: String,
    },
    /// What was stored for a measurement does not read back.
    #[error(
        "{}: sample {key} does not read back as it was written; check the drive",
        path.display()
    )]
    Stored {
        /// The temporary file.
        path: PathBuf,
        /// Key of the sample.
        key: String,
    },
    /// The picture is larger than a JPEG can be.
    #[error(
        "{strategy}: sample {key} has {width}x{height} pixels, a JPEG has at most 65535 on a side; \
         profile without loss"
    )]
    JpegSide {
        /// What was being measured.
        strategy: String,
        /// Key of the sample.
        key: String,
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// Too few or too many samples.
    #[error(
        "{asked} samples: permitted are {least} to {most}, the size of the dataset; fewer than \
         {least} say nothing of the spread"
    )]
    Samples {
        /// Asked for.
        asked: u64,
        /// Least.
        least: u64,
        /// Samples of the dataset.
        most: u64,
    },
    /// A dataset that is too small to measure.
    #[error("the dataset has {samples} samples; profiling takes at least {least}")]
    SmallDataset {
        /// Its samples.
        samples: u64,
        /// Least.
        least: u64,
    },
    /// A number outside of its range.
    #[error("{name} is {value}; permitted are {least} to {most}")]
    Number {
        /// Which.
        name: &'static str,
        /// Its value.
        value: u64,
        /// Least.
        least: u64,
        /// Most.
        most: u64,
    },
    /// A list of settings is empty.
    #[error("no {name} to profile; name at least one")]
    NoSettings {
        /// Which.
        name: &'static str,
    },
    /// What would be written exceeds the free space.
    #[error(
        "{}: storing {samples} samples as {point} takes up to {needed} bytes, {free} are free; use \
         fewer samples or another folder",
        folder.display()
    )]
    Space {
        /// The folder for temporary files.
        folder: PathBuf,
        /// Samples.
        samples: u64,
        /// What would be stored.
        point: String,
        /// Bytes that it may take.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// What would be in memory exceeds what is available.
    #[error(
        "caching {samples} samples as {point} takes up to {needed} bytes of memory, {available} \
         are available{}; use fewer samples",
        limited_by(file.as_ref())
    )]
    Memory {
        /// Samples.
        samples: u64,
        /// What would be cached.
        point: String,
        /// Bytes that it may take.
        needed: u64,
        /// Bytes that are available.
        available: u64,
        /// The file of the control group that sets the limit.
        file: Option<PathBuf>,
    },
    /// A temporary file or its folder.
    #[error(
        "failed to {action} {}: {source}; name another folder for temporary files",
        path.display()
    )]
    Io {
        /// What failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The goal makes no decision possible.
    #[error(transparent)]
    Decide(#[from] DecideError),
}

fn limited_by(file: Option<&PathBuf>) -> String {
    file.map(|file| format!(" by {}", file.display())).unwrap_or_default()
}
