//! Why a GPU leaves work to the CPU, as values that a report counts; `Display` is the phrase.

use super::batch::GpuRefusal;
use meetpoint_diagnose::{Diagnose, Remedy};
use meetpoint_gpu::Error as GpuError;
use meetpoint_gpu::jpeg::JpegError;
use meetpoint_kernels::NotExported;
use meetpoint_kernels::jpeg::PlanError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a GPU did not take a sample of its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotTaken {
    /// Its coefficients come in several passes.
    Progressive,
    /// It has a scan for each component.
    SeveralScans,
    /// CMYK or YCCK.
    FourComponents,
    /// It is damaged, or in another format.
    NotAJpeg,
    /// The file says that the picture is turned.
    Turned,
    /// It is decoded at a lower resolution.
    Scaled,
    /// Its operations have no form for a GPU.
    Operations,
    /// Its entry points contradict its restart markers.
    EntryPoints,
    /// It has a long part that only one thread can decode.
    LongSegment,
    /// It has more data or blocks than a GPU should decode at a time.
    Huge,
    /// It does not fit into the remaining memory of the batch.
    Memory,
}

/// Samples that were not taken, by the number of the reason.
pub(super) type Refusals = [u64; NotTaken::ALL.len()];

impl NotTaken {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Progressive,
        Self::SeveralScans,
        Self::FourComponents,
        Self::NotAJpeg,
        Self::Turned,
        Self::Scaled,
        Self::Operations,
        Self::EntryPoints,
        Self::LongSegment,
        Self::Huge,
        Self::Memory,
    ];
}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Progressive => "progressive JPEGs",
            Self::SeveralScans => "JPEGs with several scans",
            Self::FourComponents => "JPEGs with four components",
            Self::NotAJpeg => "damaged, or not a JPEG",
            Self::Turned => "turned by their Exif orientation",
            Self::Scaled => "decoded at a lower resolution",
            Self::Operations => "operations that no GPU executes",
            Self::EntryPoints => "entry points that contradict restart markers",
            Self::LongSegment => "long JPEGs without entry points",
            Self::Huge => "larger than a GPU should decode at a time",
            Self::Memory => "beyond the memory for decoding on the GPU",
        })
    }
}

impl From<&GpuRefusal> for NotTaken {
    fn from(refused: &GpuRefusal) -> Self {
        match refused {
            GpuRefusal::Recipe(NotExported::Turned) => Self::Turned,
            GpuRefusal::Recipe(NotExported::Scaled) | GpuRefusal::Jpeg(PlanError::Scaled) => {
                Self::Scaled
            }
            GpuRefusal::Recipe(
                NotExported::NotPictures
                | NotExported::Views
                | NotExported::Mode(_)
                | NotExported::Targets
                | NotExported::Operation(_),
            )
            | GpuRefusal::VariableSize => Self::Operations,
            GpuRefusal::Jpeg(error) => match error {
                PlanError::Progressive => Self::Progressive,
                PlanError::SeveralScans => Self::SeveralScans,
                PlanError::FourComponents => Self::FourComponents,
                PlanError::ContradictoryEntryPoints => Self::EntryPoints,
                PlanError::Scaled => Self::Scaled,
                PlanError::Refused(_) | PlanError::NotOpen => Self::NotAJpeg,
            },
            GpuRefusal::Batch(error) => match error {
                JpegError::LongSegment { .. } | JpegError::LongStream { .. } => Self::LongSegment,
                JpegError::LongPicture { .. } | JpegError::ManyMcus { .. } => Self::Huge,
                JpegError::Staging { .. }
                | JpegError::DeviceBytes { .. }
                | JpegError::Device(_) => Self::Memory,
                JpegError::Plan => Self::NotAJpeg,
            },
            GpuRefusal::Memory { .. } => Self::Memory,
            GpuRefusal::Sample(_) => Self::NotAJpeg,
        }
    }
}

/// Why no sample of a job is prepared on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum NotOffloaded {
    /// Batches have no pictures.
    NoPictures,
    /// A sample becomes several pictures.
    SeveralPictures,
    /// Pictures may have different sizes.
    VariableSize,
    /// Targets move with the pictures.
    Targets,
    /// Samples are stored after the first operations of the recipe.
    PreparedOffline,
    /// Samples come from a cache of prepared samples.
    Cached,
    /// Pictures are not decoded as red, green and blue, or as grey.
    Mode {
        /// As what.
        mode: String,
    },
    /// An operation of the recipe has no form for a GPU.
    Operation {
        /// Its name.
        operation: String,
    },
}

impl fmt::Display for NotOffloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPictures => f.write_str("batches have no pictures"),
            Self::SeveralPictures => f.write_str("a sample becomes several pictures"),
            Self::VariableSize => f.write_str("pictures may have different sizes"),
            Self::Targets => f.write_str("targets move with the pictures"),
            Self::PreparedOffline => {
                f.write_str("samples are stored after the first operations of the recipe")
            }
            Self::Cached => f.write_str("samples come from the cache of prepared samples"),
            Self::Mode { mode } => write!(f, "pictures are decoded as {mode}"),
            Self::Operation { operation } => {
                write!(f, "the operation {operation} is not executed on a GPU")
            }
        }
    }
}

impl From<NotExported> for NotOffloaded {
    fn from(reason: NotExported) -> Self {
        match reason {
            NotExported::NotPictures => Self::NoPictures,
            NotExported::Views => Self::SeveralPictures,
            NotExported::Mode(mode) => Self::Mode { mode: mode.to_owned() },
            NotExported::Targets => Self::Targets,
            // Both are properties of a sample, which a recipe as a whole does not have.
            NotExported::Turned | NotExported::Scaled => {
                Self::Operation { operation: "decode".to_owned() }
            }
            NotExported::Operation(name) => Self::Operation { operation: name.to_owned() },
        }
    }
}

/// Why a GPU stopped preparing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuFailure {
    /// Stable name of the error.
    pub cause: String,
    /// Its words.
    pub reason: String,
}

impl From<&GpuError> for GpuFailure {
    fn from(error: &GpuError) -> Self {
        Self { cause: error.cause().to_owned(), reason: error.to_string() }
    }
}

/// Why a GPU cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// This program cannot use GPUs.
    #[error("this program was built without the feature `cuda`")]
    NotBuilt,
    /// The GPU, its driver or its compiler.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

impl OpenError {
    /// How to get a program that can use GPUs.
    pub const NOT_BUILT_REMEDY: &str = "install the wheel, or build with the feature: cargo \
                                        install --path cli --locked --features full";
}

impl Diagnose for OpenError {
    fn cause(&self) -> &'static str {
        match self {
            Self::NotBuilt => "gpu_not_built",
            Self::Gpu(error) => error.cause(),
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::NotBuilt => Some(Self::NOT_BUILT_REMEDY.into()),
            Self::Gpu(error) => error.remedy(),
        }
    }
}
