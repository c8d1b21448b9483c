//! Why a GPU does not take a sample, and why it cannot be used at all.

use super::batch::GpuRefusal;
use crate::gpu_use::NotTaken;
use meetpoint_diagnose::{Diagnose, Remedy};
use meetpoint_gpu::Error as GpuError;
use meetpoint_gpu::jpeg::JpegError;
use meetpoint_kernels::NotExported;
use meetpoint_kernels::jpeg::PlanError;

/// Samples that were not taken, by the number of the reason.
pub(super) type Refusals = [u64; NotTaken::ALL.len()];

impl From<&GpuRefusal> for NotTaken {
    fn from(refused: &GpuRefusal) -> Self {
        match refused {
            GpuRefusal::Recipe(NotExported::Scaled) | GpuRefusal::Jpeg(PlanError::Scaled) => {
                Self::Scaled
            }
            GpuRefusal::Recipe(
                NotExported::NotPictures
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
            GpuRefusal::Precision { .. } => Self::Precision,
            GpuRefusal::Memory { .. } => Self::Memory,
            GpuRefusal::Sample(_) => Self::NotAJpeg,
        }
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
