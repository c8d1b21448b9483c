//! Opens a GPU for preparers.

use super::factory::{Computes, GpuPreparers};
use super::memory::GpuMemory;
use super::refusal::OpenError;
use super::share::ShareChoice;
use crate::CpuPreparers;
use meetpoint_gpu::GpuIndex;
use std::path::PathBuf;
use std::sync::Arc;

impl GpuPreparers {
    /// Opens an NVIDIA GPU. Compiles all kernels and runs a test kernel, so that a missing
    /// requirement is an error here and not in the first batch. Also searches `package_folders`,
    /// folders of Python packages, for the run-time compiler. `memory` is the limit of each thread.
    pub fn open(
        index: GpuIndex,
        choice: ShareChoice,
        memory: GpuMemory,
        package_folders: &[PathBuf],
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, OpenError> {
        let gpu = opened(index, package_folders, is_stopped)?;
        Ok(Self::new(CpuPreparers::default(), gpu, choice, memory))
    }
}

/// Opens an NVIDIA GPU, with the checks of [`GpuPreparers::open`].
pub fn open_gpu(
    index: GpuIndex,
    package_folders: &[PathBuf],
    is_stopped: &dyn Fn() -> bool,
) -> Result<Arc<dyn Computes>, OpenError> {
    opened(index, package_folders, is_stopped)
}

#[cfg(feature = "cuda")]
fn opened(
    index: GpuIndex,
    package_folders: &[PathBuf],
    is_stopped: &dyn Fn() -> bool,
) -> Result<Arc<dyn Computes>, OpenError> {
    use meetpoint_gpu::cuda::{Gpu, Options};
    let mut options = Options::from_environment();
    options.package_folders.extend_from_slice(package_folders);
    let gpu = Gpu::shared(index, &options)?;
    gpu.load_kernels(is_stopped)?;
    gpu.self_test(is_stopped)?;
    Ok(Arc::new(cuda::Opened(gpu)))
}

#[cfg(not(feature = "cuda"))]
fn opened(
    _index: GpuIndex,
    _package_folders: &[PathBuf],
    _is_stopped: &dyn Fn() -> bool,
) -> Result<Arc<dyn Computes>, OpenError> {
    Err(OpenError::NotBuilt)
}

#[cfg(feature = "cuda")]
mod cuda {
    use crate::gpu::Computes;
    use meetpoint_gpu::cuda::Gpu;
    use meetpoint_gpu::{Compute, Error};
    use std::sync::Arc;

    /// A GPU that several loaders may use.
    #[derive(Debug)]
    pub(super) struct Opened(pub(super) Arc<Gpu>);

    impl Computes for Opened {
        fn name(&self) -> &str {
            &self.0.info().name
        }

        fn compute(&self) -> Result<Box<dyn Compute>, Error> {
            Ok(Box::new(self.0.compute()?))
        }
    }
}
