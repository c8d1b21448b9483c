//! What the preparers of a loader do with a GPU, summed over their threads.

use super::batch::MemoryUse;
use super::memory::GpuMemory;
use super::offload::GpuOffload;
use super::refusal::{GpuFailure, NotOffloaded, NotTaken, Refusals};
use crate::{Error, Offload, OffloadCounts, Tensors};
use meetpoint_gpu::Error as GpuError;
use meetpoint_kernels::{Encoded, Interrupt, SampleId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The use of a GPU by the preparers of a loader. Counts are of samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GpuUse {
    /// Name of the GPU.
    pub gpu: String,
    /// Threads that prepare with it.
    pub threads: u32,
    /// Of these, threads that use it no more after a failure.
    pub threads_failed: u32,
    /// Mean of the shares that the threads give it, at the end.
    pub share: f64,
    /// The share of each thread.
    pub shares: Vec<f64>,
    /// Prepared on it.
    pub prepared: u64,
    /// Left to the CPU because the share was full.
    pub beyond_share: u64,
    /// Left to the CPU because it cannot prepare them.
    pub not_taken: u64,
    /// These by reason.
    pub not_taken_because: BTreeMap<NotTaken, u64>,
    /// Taken and given back to the CPU, because their data are damaged.
    pub given_back: u64,
    /// Left to the CPU after a failure.
    pub after_failure: u64,
    /// Left to the CPU because the GPU ran out of memory, including the samples until it was tried
    /// again.
    pub out_of_memory: u64,
    /// Batches for which the GPU ran out of memory.
    pub out_of_memory_batches: u64,
    /// Limit of device memory, summed over the threads, in bytes.
    pub device_bytes_limit: u64,
    /// Limit of page-locked memory, summed over the threads, in bytes.
    pub pinned_bytes_limit: u64,
    /// Peak device memory so far in bytes: the sum of the peaks of the threads.
    pub device_bytes_max: u64,
    /// Peak page-locked memory so far in bytes: the sum of the peaks of the threads.
    pub pinned_bytes_max: u64,
    /// Number of allocations of device and page-locked memory; constant after the first few
    /// batches.
    pub allocations: u64,
    /// Why the job is prepared on the CPU alone; `None` if it is not.
    pub unused_because: Option<NotOffloaded>,
    /// The first failure, after which the CPU prepared the thread's samples.
    pub failure: Option<GpuFailure>,
}

impl GpuUse {
    /// The most frequent reason why samples were not taken.
    pub fn most_frequent_reason(&self) -> Option<NotTaken> {
        self.not_taken_because
            .iter()
            .max_by_key(|(_, samples)| **samples)
            .map(|(reason, _)| *reason)
    }

    /// The samples of its threads, on the GPU and on the CPU; not those of threads that the GPU
    /// failed before their first batch.
    pub fn samples(&self) -> u64 {
        let on_cpu = self.beyond_share + self.not_taken + self.given_back;
        self.prepared + on_cpu + self.after_failure + self.out_of_memory
    }

    /// What was added since an earlier use of the same preparers.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut since = self.clone();
        since.prepared -= before.prepared;
        since.beyond_share -= before.beyond_share;
        since.not_taken -= before.not_taken;
        since.given_back -= before.given_back;
        since.after_failure -= before.after_failure;
        since.out_of_memory -= before.out_of_memory;
        since.out_of_memory_batches -= before.out_of_memory_batches;
        since.allocations -= before.allocations;
        for (reason, samples) in &mut since.not_taken_because {
            *samples -= before.not_taken_because.get(reason).copied().unwrap_or(0);
        }
        since.not_taken_because.retain(|_, samples| *samples > 0);
        since
    }

    /// Adds the counts of another loader's preparers on the same GPU.
    pub fn add(&mut self, more: &Self) {
        self.threads += more.threads;
        self.threads_failed += more.threads_failed;
        self.shares.extend(&more.shares);
        self.share = mean(&self.shares);
        self.prepared += more.prepared;
        self.beyond_share += more.beyond_share;
        self.not_taken += more.not_taken;
        self.given_back += more.given_back;
        self.after_failure += more.after_failure;
        self.out_of_memory += more.out_of_memory;
        self.out_of_memory_batches += more.out_of_memory_batches;
        self.device_bytes_limit += more.device_bytes_limit;
        self.pinned_bytes_limit += more.pinned_bytes_limit;
        self.device_bytes_max += more.device_bytes_max;
        self.pinned_bytes_max += more.pinned_bytes_max;
        self.allocations += more.allocations;
        for (reason, samples) in &more.not_taken_because {
            *self.not_taken_because.entry(*reason).or_default() += samples;
        }
        if self.failure.is_none() {
            self.failure.clone_from(&more.failure);
        }
    }
}

impl fmt::Display for GpuUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gpu, prepared, .. } = self;
        if let Some(reason) = &self.unused_because {
            return write!(f, "{gpu} was not used: {reason}.");
        }
        let all = self.samples();
        let percent = if all == 0 { 0.0 } else { 100.0 * *prepared as f64 / all as f64 };
        write!(
            f,
            "{gpu} prepared {prepared} of {all} samples ({percent:.1} %); its share at the "
        )?;
        write!(f, "end was {:.2} of a batch", self.share)?;
        if let Some(reason) = self.most_frequent_reason() {
            write!(f, "; {} were left to the CPU (most: {reason})", self.not_taken)?;
        }
        if self.given_back > 0 {
            write!(f, "; {} were given back as damaged", self.given_back)?;
        }
        if self.out_of_memory > 0 {
            let (samples, batches) = (self.out_of_memory, self.out_of_memory_batches);
            write!(f, "; {samples} were left to the CPU because GPU memory was used up (")?;
            write!(f, "{batches} batches)")?;
        }
        if let Some(failure) = &self.failure {
            let (failed, threads) = (self.threads_failed, self.threads);
            write!(f, "; it failed for {failed} of {threads} threads: {}", failure.reason)?;
        }
        f.write_str(".")
    }
}

fn mean(shares: &[f64]) -> f64 {
    if shares.is_empty() { 0.0 } else { shares.iter().sum::<f64>() / shares.len() as f64 }
}

/// What threads add up in, of one loader.
#[derive(Debug, Default)]
pub(super) struct Shared {
    threads: Mutex<Vec<Arc<Mutex<ThreadUse>>>>,
    unused: Mutex<Option<NotOffloaded>>,
    failure: Mutex<Option<GpuFailure>>,
}

/// What one thread did.
#[derive(Debug, Clone, Copy, Default)]
struct ThreadUse {
    share: f64,
    counts: OffloadCounts,
    refusals: Refusals,
    limit: GpuMemory,
    memory: MemoryUse,
    out_of_memory_batches: u64,
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

    /// Notes a thread that the GPU failed before its first batch.
    pub(super) fn note_thread_lost(&self, error: &GpuError) {
        let limit = GpuMemory::of(0);
        let lost = ThreadUse { has_failed: true, limit, ..ThreadUse::default() };
        lock(&self.threads).push(Arc::new(Mutex::new(lost)));
        self.note_failure(error);
    }

    fn note_failure(&self, error: &GpuError) {
        lock(&self.failure).get_or_insert_with(|| GpuFailure::from(error));
    }

    pub(super) fn sum(&self, gpu: &str) -> GpuUse {
        let mut sum = GpuUse { gpu: gpu.to_owned(), ..GpuUse::default() };
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
            sum.beyond_share += counts.beyond_share;
            sum.not_taken += counts.not_taken;
            sum.given_back += counts.given_back;
            sum.after_failure += counts.after_failure;
            sum.out_of_memory += counts.out_of_memory;
            sum.out_of_memory_batches += thread.out_of_memory_batches;
            sum.allocations += thread.memory.allocations;
            for (reason, samples) in NotTaken::ALL.into_iter().zip(refusals) {
                if samples > 0 {
                    *sum.not_taken_because.entry(reason).or_default() += samples;
                }
            }
        }
        sum.share = mean(&sum.shares);
        sum.unused_because = lock(&self.unused).clone();
        sum.failure = lock(&self.failure).clone();
        sum
    }
}

/// One thread's use of a GPU, whose counts are added up with those of other threads.
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

    fn begin(&mut self, samples: usize) -> Result<(), Error> {
        let begun = self.inner.begin(samples);
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

    fn finish(&mut self, tensors: Tensors<'_>, own_ns: u64) -> Result<Vec<usize>, Error> {
        let finished = self.inner.finish(tensors, own_ns);
        self.note();
        finished
    }

    fn counts(&self) -> OffloadCounts {
        self.inner.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::{GpuUse, NotTaken};
    use std::collections::BTreeMap;

    #[test]
    fn a_difference_leaves_out_what_was_counted_before() {
        let before = GpuUse {
            prepared: 4,
            not_taken: 2,
            not_taken_because: BTreeMap::from([(NotTaken::Progressive, 2)]),
            ..GpuUse::default()
        };
        let now = GpuUse {
            prepared: 9,
            not_taken: 3,
            not_taken_because: BTreeMap::from([(NotTaken::Progressive, 2), (NotTaken::Turned, 1)]),
            ..before.clone()
        };
        let since = now.since(&before);
        assert_eq!((since.prepared, since.not_taken), (5, 1));
        assert_eq!(since.most_frequent_reason(), Some(NotTaken::Turned));
        assert_eq!(now.most_frequent_reason(), Some(NotTaken::Progressive));
    }
}
