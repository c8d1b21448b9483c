//! The use of a GPU by the preparers of a loader, summed over their threads.

use super::batch::MemoryUse;
use super::memory::GpuMemory;
use super::offload::GpuOffload;
use super::refusal::Refusals;
use crate::gpu_use::{Downloaded, GpuFailure, GpuUse, NotOffloaded, NotTaken, mean};
use crate::{Error, Finished, Offload, OffloadCounts, Tensors};
use meetpoint_gpu::Error as GpuError;
use meetpoint_gpu::resident::TensorPool;
use meetpoint_kernels::{Encoded, Interrupt, SampleId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state that the threads of one loader share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    threads: Mutex<Vec<Arc<Mutex<ThreadUse>>>>,
    unused: Mutex<Option<NotOffloaded>>,
    downloaded: Mutex<Option<Downloaded>>,
    failure: Mutex<Option<GpuFailure>>,
}

/// The use of a GPU by one thread.
#[derive(Debug, Clone, Copy, Default)]
struct ThreadUse {
    share: f64,
    counts: OffloadCounts,
    refusals: Refusals,
    limit: GpuMemory,
    memory: MemoryUse,
    out_of_memory_batches: u64,
    busy_ns: u64,
    beyond_pool_batches: u64,
    has_failed: bool,
    has_ended: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn note_unused(&self, reason: NotOffloaded) {
        lock(&self.unused).get_or_insert(reason);
    }

    pub(super) fn note_downloaded(&self, reason: Downloaded) {
        lock(&self.downloaded).get_or_insert(reason);
    }

    /// Records a thread whose GPU failed before its first batch.
    pub(super) fn note_thread_lost(&self, error: &GpuError) {
        let limit = GpuMemory::of(0);
        let lost = ThreadUse { has_failed: true, limit, ..ThreadUse::default() };
        lock(&self.threads).push(Arc::new(Mutex::new(lost)));
        self.note_failure(error);
    }

    fn note_failure(&self, error: &GpuError) {
        lock(&self.failure).get_or_insert_with(|| GpuFailure::from(error));
    }

    pub(super) fn sum(&self, gpu: &str, pool: Option<&TensorPool>) -> GpuUse {
        let mut sum = GpuUse { gpu: gpu.to_owned(), ..GpuUse::default() };
        let mut is_beyond_pool = false;
        for thread in &*lock(&self.threads) {
            let thread = *lock(thread);
            let ThreadUse { share, counts, refusals, has_failed, has_ended, .. } = thread;
            if !has_ended {
                sum.threads += 1;
                sum.threads_failed += u32::from(has_failed);
                sum.shares.push(if has_failed { 0.0 } else { share });
                sum.device_bytes_limit += thread.limit.device_bytes;
                sum.pinned_bytes_limit += thread.limit.pinned_bytes;
                sum.device_bytes_max += thread.memory.device_bytes_max;
                sum.pinned_bytes_max += thread.memory.pinned_bytes_max;
            }
            sum.prepared += counts.prepared;
            sum.resident += counts.resident;
            is_beyond_pool |= thread.beyond_pool_batches > 0;
            sum.beyond_share += counts.beyond_share;
            sum.not_taken += counts.not_taken;
            sum.given_back += counts.given_back;
            sum.after_failure += counts.after_failure;
            sum.out_of_memory += counts.out_of_memory;
            sum.out_of_memory_batches += thread.out_of_memory_batches;
            sum.busy_ns += thread.busy_ns;
            sum.allocations += thread.memory.allocations;
            for (reason, samples) in NotTaken::ALL.into_iter().zip(refusals) {
                if samples > 0 {
                    *sum.not_taken_because.entry(reason).or_default() += samples;
                }
            }
        }
        sum.share = mean(&sum.shares);
        sum.downloaded_because = lock(&self.downloaded).clone();
        if let Some(pool) = pool {
            let (usage, limit_bytes) = (pool.usage(), pool.limit_bytes());
            sum.device_bytes_limit += limit_bytes;
            sum.device_bytes_max += usage.bytes_max;
            sum.allocations += usage.allocations;
            if is_beyond_pool {
                sum.downloaded_because.get_or_insert(Downloaded::Memory { limit_bytes });
            }
        }
        sum.unused_because = lock(&self.unused).clone();
        sum.failure = lock(&self.failure).clone();
        sum
    }
}

/// One thread's offload to a GPU, which also updates the statistics of its loader.
#[derive(Debug)]
pub(super) struct CountedOffload {
    inner: GpuOffload,
    shared: Arc<Shared>,
    thread: Arc<Mutex<ThreadUse>>,
}

impl CountedOffload {
    pub(super) fn new(inner: GpuOffload, shared: &Arc<Shared>) -> Self {
        let thread = Arc::new(Mutex::new(ThreadUse::default()));
        lock(&shared.threads).push(Arc::clone(&thread));
        let counted = Self { inner, shared: Arc::clone(shared), thread };
        counted.note();
        counted
    }

    fn note(&self) {
        let mut thread = lock(&self.thread);
        thread.share = self.inner.share();
        thread.counts = self.inner.counts();
        thread.refusals = *self.inner.refusals();
        thread.limit = self.inner.memory();
        thread.memory = self.inner.memory_use();
        thread.out_of_memory_batches = self.inner.out_of_memory_batches();
        thread.busy_ns = self.inner.busy().as_nanos() as u64;
        thread.beyond_pool_batches = self.inner.beyond_pool_batches();
        if let Some(error) = self.inner.failure()
            && !thread.has_failed
        {
            thread.has_failed = true;
            self.shared.note_failure(error);
        }
    }
}

impl Drop for CountedOffload {
    fn drop(&mut self) {
        self.note();
        lock(&self.thread).has_ended = true;
    }
}

impl Offload for CountedOffload {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.inner.set_interrupt(interrupt);
    }

    fn begin(&mut self, samples: usize, may_stay: bool) -> Result<(), Error> {
        let begun = self.inner.begin(samples, may_stay);
        self.note();
        begun
    }

    fn take(&mut self, position: usize, encoded: Encoded<'_>, id: SampleId) -> Result<bool, Error> {
        let taken = self.inner.take(position, encoded, id);
        // `finish` is not called for a batch of which no sample is taken.
        if !matches!(taken, Ok(true)) {
            self.note();
        }
        taken
    }

    fn poll(&mut self) {
        self.inner.poll();
    }

    fn finish(&mut self, columns: &mut [Tensors<'_>], own_ns: u64) -> Result<Finished, Error> {
        let finished = self.inner.finish(columns, own_ns);
        self.note();
        finished
    }

    fn counts(&self) -> OffloadCounts {
        self.inner.counts()
    }
}
