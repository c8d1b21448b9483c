//! Creates CPU preparers that have part of each batch prepared on a GPU.

use super::batch::{GpuBatch, GpuRefusal};
use super::memory::GpuMemory;
use super::offload::GpuOffload;
use super::share::ShareChoice;
use super::usage::{CountedOffload, Shared};
use crate::gpu_use::{Downloaded, GpuUse, NotOffloaded};
use crate::{CpuPreparer, CpuPreparers, Error, Job, Preparer, PreparerFactory, Resources};
use meetpoint_gpu::resident::TensorPool;
use meetpoint_gpu::{Compute, Error as GpuError};
use std::fmt::Debug;
use std::sync::Arc;

/// A GPU on which several threads compute, each in an order of its own.
pub trait Computes: Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Creates the interface that one thread uses.
    fn compute(&self) -> Result<Box<dyn Compute>, GpuError>;
}

/// Creates preparers that share a GPU: each has part of its batches prepared there, and prepares
/// the rest with the CPU.
///
/// For a job that no GPU prepares, it creates plain [`CpuPreparer`]s, and
/// [`PreparerFactory::gpu_use`] has the reason. After a failure of the GPU, the CPU prepares
/// everything, with the same results.
#[derive(Debug)]
pub struct GpuPreparers {
    cpu: CpuPreparers,
    gpu: Arc<dyn Computes>,
    choice: ShareChoice,
    memory: GpuMemory,
    /// For tensors that stay on the GPU.
    pool: Option<Arc<TensorPool>>,
    shared: Arc<Shared>,
}

impl GpuPreparers {
    /// Uses an open GPU, with this memory limit for each thread.
    pub fn new(
        cpu: CpuPreparers,
        gpu: Arc<dyn Computes>,
        choice: ShareChoice,
        memory: GpuMemory,
    ) -> Self {
        Self { cpu, gpu, choice, memory, pool: None, shared: Arc::default() }
    }

    /// Lets tensors stay on the GPU if the memory of their batch allows it. They take at most
    /// `limit_bytes` bytes for all threads together.
    #[must_use]
    pub fn keeping_tensors(self, limit_bytes: u64) -> Self {
        Self { pool: Some(Arc::new(TensorPool::new(limit_bytes))), ..self }
    }

    /// Records why the caller does not let tensors stay on the GPU to which it delivers batches.
    pub fn note_downloaded(&self, reason: Downloaded) {
        self.shared.note_downloaded(reason);
    }

    /// The pictures of a job on the GPU, or why there are none.
    fn batch(&self, job: &Job, preparer: &CpuPreparer) -> Result<GpuBatch, NoGpu> {
        if let Some(reason) = preparer.why_not_offloaded() {
            return Err(NoGpu::Job(reason));
        }
        let compute = self.gpu.compute().map_err(NoGpu::Gpu)?;
        let columns = preparer.columns_of_recipe();
        let batch = GpuBatch::new(compute, &job.recipe, &columns, self.memory);
        batch.map_err(|refused| match refused {
            GpuRefusal::Recipe(reason) => NoGpu::Job(reason.into()),
            GpuRefusal::VariableSize => NoGpu::Job(NotOffloaded::VariableSize),
            // These apply to samples, not to recipes.
            GpuRefusal::Jpeg(_)
            | GpuRefusal::Batch(_)
            | GpuRefusal::Memory { .. }
            | GpuRefusal::Precision { .. }
            | GpuRefusal::Sample(_) => NoGpu::Job(NotOffloaded::NoPictures),
        })
    }
}

/// Why a preparer has no GPU.
enum NoGpu {
    Job(NotOffloaded),
    Gpu(GpuError),
}

impl PreparerFactory for GpuPreparers {
    fn preparer(&self, job: &Job, resources: Resources) -> Result<Box<dyn Preparer>, Error> {
        let mut preparer = self.cpu.cpu_preparer(job, resources)?;
        match self.batch(job, &preparer) {
            Ok(mut batch) => {
                if let Some(pool) = &self.pool {
                    batch.set_pool(Arc::clone(pool));
                    if preparer.mixes_batches() {
                        self.shared.note_downloaded(Downloaded::Mixed);
                    }
                }
                let offload = GpuOffload::new(batch, self.choice);
                preparer.set_offload(Box::new(CountedOffload::new(offload, &self.shared)));
            }
            Err(NoGpu::Job(reason)) => self.shared.note_unused(reason),
            Err(NoGpu::Gpu(error)) => self.shared.note_thread_lost(&error),
        }
        Ok(Box::new(preparer))
    }

    fn gpu_use(&self) -> Option<GpuUse> {
        Some(self.shared.sum(self.gpu.name(), self.pool.as_deref()))
    }

    fn for_one_loader(&self) -> Option<Arc<dyn PreparerFactory>> {
        let one = Self::new(self.cpu, Arc::clone(&self.gpu), self.choice, self.memory);
        Some(Arc::new(match &self.pool {
            Some(pool) => one.keeping_tensors(pool.limit_bytes()),
            None => one,
        }))
    }
}
