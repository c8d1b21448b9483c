//! The interface between users of preparers (a loader, a device) and their implementations.

use crate::cache::SampleCache;
use crate::gpu_use::GpuUse;
use crate::{CpuPreparer, DecodeMemory, Error, Job, Preparer};
use meetpoint_kernels::Cpu;
use meetpoint_storage::Engine;
use std::fmt::Debug;
use std::sync::Arc;

/// Creates the preparers of a job, one for each thread that prepares.
///
/// A loader and a device receive a factory in their configuration, so a new way to prepare requires
/// no change to them.
pub trait PreparerFactory: Debug + Send + Sync {
    /// Creates a preparer for one thread.
    fn preparer(&self, job: &Job, resources: Resources) -> Result<Box<dyn Preparer>, Error>;

    /// The use of a GPU by its preparers so far; `None` if they use none.
    fn gpu_use(&self) -> Option<GpuUse> {
        None
    }

    /// The same factory for one of several loaders, with separate counts; `None` if it counts
    /// nothing.
    fn for_one_loader(&self) -> Option<Arc<dyn PreparerFactory>> {
        None
    }
}

/// The resources of one preparer.
pub struct Resources {
    /// Reads the dataset; used only by this preparer.
    pub engine: Box<dyn Engine>,
    /// Memory for decoding large samples, shared with other preparers; `None`: that of this
    /// process.
    pub decode_memory: Option<Arc<DecodeMemory>>,
    /// Samples in memory, shared with other preparers; `None`: no cache.
    pub cache: Option<Arc<SampleCache>>,
}

/// Creates [`CpuPreparer`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuPreparers {
    /// The instruction set of their kernels.
    pub cpu: Cpu,
}

/// Selects the best instruction set of this machine.
impl Default for CpuPreparers {
    fn default() -> Self {
        Self { cpu: Cpu::detect() }
    }
}

impl CpuPreparers {
    /// Creates a preparer to which the caller may add an offload.
    pub(crate) fn cpu_preparer(
        &self,
        job: &Job,
        resources: Resources,
    ) -> Result<CpuPreparer, Error> {
        let Resources { engine, decode_memory, cache } = resources;
        let mut preparer = CpuPreparer::new(job.clone(), engine, self.cpu)?;
        if let Some(memory) = decode_memory {
            preparer.set_decode_memory(memory);
        }
        if let Some(cache) = cache {
            preparer.set_cache(cache);
        }
        Ok(preparer)
    }
}

impl PreparerFactory for CpuPreparers {
    fn preparer(&self, job: &Job, resources: Resources) -> Result<Box<dyn Preparer>, Error> {
        Ok(Box::new(self.cpu_preparer(job, resources)?))
    }
}
