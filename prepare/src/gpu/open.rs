//! Opens GPUs by their number, each once in a process.

use super::factory::{Computes, GpuPreparers};
use super::refusal::OpenError;
use super::share::ShareChoice;
use crate::CpuPreparers;
use std::sync::Arc;

impl GpuPreparers {
    /// On an NVIDIA GPU, by its number among those that this process sees. The kernels are compiled
    /// and one is tried, so that whatever is missing is an error here and not in the first batch.
    pub fn open(index: u32, choice: ShareChoice) -> Result<Self, OpenError> {
        Ok(Self::new(CpuPreparers::default(), opened(index)?, choice))
    }
}

#[cfg(feature = "cuda")]
fn opened(index: u32) -> Result<Arc<dyn Computes>, OpenError> {
    Ok(Arc::new(cuda::SharedGpu::open(index)?))
}

#[cfg(not(feature = "cuda"))]
fn opened(_index: u32) -> Result<Arc<dyn Computes>, OpenError> {
    Err(OpenError::NotBuilt)
}

#[cfg(feature = "cuda")]
mod cuda {
    use crate::gpu::Computes;
    use meetpoint_gpu::cuda::{Gpu, Options};
    use meetpoint_gpu::{Compute, Error};
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex, PoisonError, Weak};

    /// The GPUs that loaders of this process use: their kernels are loaded once.
    static OPENED: Mutex<BTreeMap<u32, Weak<Gpu>>> = Mutex::new(BTreeMap::new());

    /// A GPU that several loaders may use.
    #[derive(Debug)]
    pub(super) struct SharedGpu(Arc<Gpu>);

    impl SharedGpu {
        pub(super) fn open(index: u32) -> Result<Self, Error> {
            let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(gpu) = opened.get(&index).and_then(Weak::upgrade) {
                gpu.check()?;
                return Ok(Self(gpu));
            }
            let gpu = Gpu::open(index, &Options::from_environment())?;
            gpu.load_kernels()?;
            gpu.self_test()?;
            opened.insert(index, Arc::downgrade(&gpu));
            Ok(Self(gpu))
        }
    }

    impl Computes for SharedGpu {
        fn name(&self) -> &str {
            &self.0.info().name
        }

        fn compute(&self) -> Result<Box<dyn Compute>, Error> {
            Ok(Box::new(self.0.compute()?))
        }
    }
}
