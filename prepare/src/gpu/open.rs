//! Opens GPUs by their number, each once in a process.

use super::factory::GpuPreparers;
use super::refusal::OpenError;
use super::share::ShareChoice;
use crate::CpuPreparers;

impl GpuPreparers {
    /// On an NVIDIA GPU, by its number among those that this process sees. The kernels are compiled
    /// and tried, so that whatever is missing is an error here and not in the first batch.
    #[cfg(feature = "cuda")]
    pub fn open(index: u32, choice: ShareChoice) -> Result<Self, OpenError> {
        let gpu = std::sync::Arc::new(cuda::Shared::open(index)?);
        Ok(Self::new(CpuPreparers::default(), gpu, choice))
    }

    /// Refuses: this program was built without GPUs.
    #[cfg(not(feature = "cuda"))]
    pub fn open(index: u32, choice: ShareChoice) -> Result<Self, OpenError> {
        let _: (u32, ShareChoice, Option<CpuPreparers>) = (index, choice, None);
        Err(OpenError::NotBuilt)
    }
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
    pub(super) struct Shared(Arc<Gpu>);

    impl Shared {
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

    impl Computes for Shared {
        fn name(&self) -> &str {
            &self.0.info().name
        }

        fn compute(&self) -> Result<Box<dyn Compute>, Error> {
            Ok(Box::new(self.0.compute()?))
        }
    }
}
