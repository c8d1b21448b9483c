//! Executes the whole recipe with a GPU for a share of each batch, as the preparers of a loader do.

use super::direct::DirectReader;
use super::meters::{Metering, context_switches};
use super::online::{Expected, Resumer, Work};
use super::runs::Run;
use super::store::Store;
use super::workers::each;
use crate::Error;
use crate::statistics::Moments;
use crate::vocabulary::{Cache, GpuIndex};
use meetpoint_format::recipe::Recipe;
use meetpoint_host::energy::Meters;
use meetpoint_kernels::SampleId;
use meetpoint_prepare::gpu::{
    Computes, GpuBatch, GpuFailure, GpuMemory, GpuOffload, ShareChoice, open_gpu,
};
use meetpoint_prepare::{Offload, Tensors};
use meetpoint_storage::MemoryLimit;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Batches of each thread before a measurement, in which it finds the share of the GPU.
const BATCHES_BEFORE: usize = 8;
/// Minimum number of batches for each thread in a run.
const BATCHES_MIN: usize = 4;

/// A GPU with which strategies are measured.
#[derive(Debug, Clone)]
pub struct ProfiledGpu {
    /// Its name in results and job files.
    pub index: GpuIndex,
    /// The GPU.
    pub gpu: Arc<dyn Computes>,
    /// Samples of a batch, at least 1. Larger batches use a GPU better.
    pub batch_size: u32,
}

impl ProfiledGpu {
    /// Opens an NVIDIA GPU and tests it, for batches of this number of samples.
    ///
    /// # Errors
    ///
    /// [`Error::Gpu`] with what this machine or program lacks.
    pub fn open(
        index: GpuIndex,
        batch_size: u32,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let gpu = open_gpu(index, &[], is_stopped);
        let gpu = gpu.map_err(|source| Error::Gpu { gpu: index, source })?;
        Ok(Self { index, gpu, batch_size })
    }

    fn batch_samples(&self) -> usize {
        self.batch_size as usize
    }

    /// The offload of one thread to it.
    fn offload(
        &self,
        recipe: &Recipe,
        threads: usize,
        choice: ShareChoice,
    ) -> Result<GpuOffload, Error> {
        let gpu = self.index;
        let compute = self.gpu.compute();
        let compute = compute.map_err(|error| Error::Gpu { gpu, source: error.into() })?;
        // The default of a loader.
        let pinned_bytes = MemoryLimit::of_this_process().available_bytes / 2;
        let threads = u32::try_from(threads).unwrap_or(u32::MAX);
        let memory = GpuMemory::default().within(pinned_bytes).divided(threads);
        let batch = GpuBatch::new(compute, recipe, &[0], memory);
        let batch = batch.map_err(|source| Error::GpuRecipe { gpu, source })?;
        Ok(GpuOffload::new(batch, choice))
    }

    /// Refuses a recipe that no GPU executes, and batches that do not fit into memory. Call this
    /// before measuring.
    pub(super) fn check(&self, recipe: &Recipe, threads: usize) -> Result<(), Error> {
        drop(self.offload(recipe, threads, ShareChoice::Measured)?);
        let needed = (threads as u64)
            .saturating_mul(u64::from(self.batch_size))
            .saturating_mul(tensor_bytes(recipe) as u64);
        let available = MemoryLimit::of_this_process().available_bytes;
        match needed > available {
            true => Err(Error::GpuBatches { needed, available, threads }),
            false => Ok(()),
        }
    }
}

/// Bytes of a tensor, which is fixed for a recipe that a GPU executes.
fn tensor_bytes(recipe: &Recipe) -> usize {
    recipe.output().map_or(0, |spec| spec.bytes())
}

/// Prepares batches in one thread.
struct Worker<'a> {
    reader: DirectReader<'a>,
    batch: Batch<'a>,
}

/// The current batch of a thread.
struct Batch<'a> {
    work: Work<'a>,
    gpu: &'a ProfiledGpu,
    resumer: Resumer<'a>,
    offload: GpuOffload,
    tensors: Vec<u8>,
    each: usize,
    /// Number of samples that the GPU took.
    taken: usize,
    /// Time that this thread spent on the other samples.
    own: Duration,
}

impl<'a> Batch<'a> {
    fn new(
        work: Work<'a>,
        store: &'a Store,
        gpu: &'a ProfiledGpu,
        (threads, choice): (usize, ShareChoice),
    ) -> Result<Self, Error> {
        let each = tensor_bytes(work.recipe);
        Ok(Self {
            work,
            gpu,
            resumer: Resumer::new(work, store),
            offload: gpu.offload(work.recipe, threads, choice)?,
            tensors: vec![0; each * gpu.batch_samples()],
            each,
            taken: 0,
            own: Duration::ZERO,
        })
    }

    /// Begins a batch whose tensors are all copied to the host, as in a loader without
    /// `device_out`.
    fn begin(&mut self, samples: usize) -> Result<(), Error> {
        (self.taken, self.own) = (0, Duration::ZERO);
        Ok(self.offload.begin(samples, false)?)
    }

    /// Offers a sample to the GPU, or prepares it.
    fn prepare(&mut self, position: usize, index: usize, raw: &[u8]) -> Result<(), Error> {
        let Work { choice, seed, .. } = self.work;
        let id = SampleId { seed, epoch: 0, sample: choice.samples[index] };
        if self.offload.take(position, raw.into(), id)? {
            self.taken += 1;
            return Ok(());
        }
        let begun = Instant::now();
        self.prepare_here(position, index, raw)?;
        self.own += begun.elapsed();
        self.offload.poll();
        Ok(())
    }

    /// Prepares a sample with the CPU.
    fn prepare_here(&mut self, position: usize, index: usize, raw: &[u8]) -> Result<(), Error> {
        let tensor = self.resumer.prepare(index, raw)?;
        self.tensors[position * self.each..][..self.each].copy_from_slice(&tensor.data);
        Ok(())
    }

    /// Reads a sample through the page cache.
    fn load(
        &mut self,
        position: usize,
        index: usize,
        then: impl FnOnce(&mut Self, usize, usize, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.resumer.load(index)?;
        let raw = std::mem::take(&mut self.resumer.raw);
        let prepared = then(self, position, index, &raw);
        self.resumer.raw = raw;
        prepared
    }

    /// Receives the tensors of the GPU, and prepares the samples that it gave back. Fails if the
    /// GPU failed.
    fn finish(&mut self, samples: usize, index_of: impl Fn(usize) -> usize) -> Result<(), Error> {
        let gpu = self.gpu.index;
        if self.taken > 0 {
            let bytes = &mut self.tensors[..samples * self.each];
            let tensors = Tensors { bytes, each: self.each };
            let own_ns = u64::try_from(self.own.as_nanos()).unwrap_or(u64::MAX);
            for position in self.offload.finish(&mut [tensors], own_ns)?.given_back {
                self.load(position, index_of(position), Self::prepare_here)?;
            }
        }
        if let Some(error) = self.offload.failure() {
            return Err(Error::GpuFailed { gpu, failure: GpuFailure::from(error) });
        }
        match self.offload.counts().out_of_memory {
            0 => Ok(()),
            _ => Err(Error::GpuOutOfMemory { gpu }),
        }
    }
}

impl Worker<'_> {
    /// Prepares a batch of consecutive samples; the last sample is followed by the first.
    fn prepare(&mut self, first: usize, samples: usize, cache: Cache) -> Result<(), Error> {
        let Self { reader, batch } = self;
        let all = batch.work.choice.len();
        let index_of = |position| (first + position) % all;
        batch.begin(samples)?;
        let mut position = 0;
        while position < samples {
            let (start, begin) = (index_of(position), position);
            let end = all.min(start + samples - position);
            position += end - start;
            if cache == Cache::Cold {
                reader.read(start..end, &mut |index, stored| {
                    let is_intact = batch.resumer.store.is_intact(index, stored);
                    match is_intact {
                        true => batch.prepare(begin + index - start, index, stored),
                        false => Err(batch.resumer.damaged(index)),
                    }
                })?;
            } else {
                for index in start..end {
                    batch.load(begin + index - start, index, Batch::prepare)?;
                }
            }
        }
        batch.finish(samples, index_of)
    }
}

/// Checks that all samples of a store are prepared to the expected bits if as many as possible go
/// to the GPU. Returns the number of samples that the GPU prepared.
pub(super) fn check(
    work: Work<'_>,
    store: &Store,
    gpu: &ProfiledGpu,
    expected: &[Expected],
) -> Result<u64, Error> {
    let batch = Batch::new(work, store, gpu, (1, ShareChoice::Fixed(1.0)))?;
    let mut worker = Worker { reader: DirectReader::open(store)?, batch };
    for first in (0..work.choice.len()).step_by(gpu.batch_samples()) {
        work.check_stop()?;
        let samples = gpu.batch_samples().min(work.choice.len() - first);
        worker.prepare(first, samples, Cache::Page)?;
        let Batch { tensors, each, .. } = &worker.batch;
        for (position, tensor) in tensors.chunks_exact(*each).take(samples).enumerate() {
            let (spec, digest) = &expected[first + position];
            if spec.bytes() != *each || *digest != <[u8; 32]>::from(Sha256::digest(tensor)) {
                let strategy = format!("{} with {}", store.name(), gpu.index);
                let key = work.choice.key(first + position);
                return Err(Error::NotIdentical { strategy, key });
            }
        }
    }
    Ok(worker.batch.offload.counts().prepared)
}

/// Threads that prepare with a GPU, one run after another.
pub(super) struct GpuThreads<'a> {
    work: Work<'a>,
    gpu: &'a ProfiledGpu,
    threads: usize,
    /// The workers that no thread uses.
    workers: Mutex<VecDeque<Worker<'a>>>,
}

impl<'a> GpuThreads<'a> {
    /// Prepares a few batches with each thread, so that memory is faulted in and each thread finds
    /// the share of the GPU.
    pub(super) fn warm(
        work: Work<'a>,
        store: &'a Store,
        gpu: &'a ProfiledGpu,
        threads: usize,
    ) -> Result<Self, Error> {
        let worker = |_| {
            let batch = Batch::new(work, store, gpu, (threads, ShareChoice::Measured))?;
            Ok(Worker { reader: DirectReader::open(store)?, batch })
        };
        let workers: Result<VecDeque<_>, Error> = (0..threads).map(worker).collect();
        let all = Self { work, gpu, threads, workers: Mutex::new(workers?) };
        // The first in the queue has prepared nothing yet, regardless of which thread takes it.
        let prepare = |(): &mut (), group: usize| {
            let mut worker = all.idle().pop_front().expect("one for each thread");
            for batch in group * BATCHES_BEFORE..(group + 1) * BATCHES_BEFORE {
                work.check_stop()?;
                all.prepare(&mut worker, batch, Cache::Page)?;
            }
            all.idle().push_back(worker);
            Ok(())
        };
        each(threads, threads, work.stop, || (), prepare, drop)?;
        Ok(all)
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Worker<'a>>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn prepare(&self, worker: &mut Worker<'a>, batch: usize, cache: Cache) -> Result<(), Error> {
        let samples = self.gpu.batch_samples();
        worker.prepare(batch * samples % self.work.choice.len(), samples, cache)
    }

    /// Time in which the GPU has had work, summed over the threads.
    fn busy(&self) -> Duration {
        self.idle().iter().map(|worker| worker.batch.offload.busy()).sum()
    }

    /// Prepares every sample at least once, from the drive or from the page cache, and measures it.
    pub(super) fn run(&self, cache: Cache, meters: &mut Meters) -> Result<Run, Error> {
        let samples = self.gpu.batch_samples();
        let batches = self.work.choice.len().div_ceil(samples).max(self.threads * BATCHES_MIN);
        let busy = self.busy();
        let metering = Metering::begin(meters);
        let begin = || {
            let worker = self.idle().pop_front().expect("one for each thread");
            (worker, context_switches())
        };
        let prepare =
            |(worker, _): &mut (Worker<'a>, u64), batch| self.prepare(worker, batch, cache);
        let end = |(worker, before): (Worker<'a>, u64)| {
            self.idle().push_back(worker);
            context_switches().saturating_sub(before)
        };
        let switches = each(self.threads, batches, self.work.stop, begin, prepare, end)?;
        let usage = metering.end(switches.into_iter().sum(), meters);
        // Work of several threads overlaps.
        let gpu_seconds = (self.busy() - busy).as_secs_f64().min(usage.seconds);
        Ok(Run {
            usage,
            samples: batches * samples,
            per_sample: Moments::default(),
            gpu_seconds: Some(gpu_seconds),
        })
    }
}
