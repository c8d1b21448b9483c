//! One preparer's use of a GPU: a share of the pictures of each batch.

use super::batch::{GpuBatch, MemoryUse, OfferOutcome};
use super::memory::GpuMemory;
use super::refusal::Refusals;
use super::retry::Retry;
use super::share::{BatchTimes, Share, ShareChoice};
use crate::gpu_use::NotTaken;
use crate::{Error, Finished, Offload, OffloadCounts, Tensors};
use meetpoint_gpu::Error as GpuError;
use meetpoint_gpu::resident::ResidentTensors;
use meetpoint_kernels::{Encoded, Interrupt, SampleId};
use std::time::{Duration, Instant};

/// Prepares the first samples of each batch on a GPU, while the preparer's thread prepares the
/// others.
///
/// If the GPU runs out of memory for a batch, the thread prepares that batch, and a later batch is
/// tried with less memory. After any other failure of the GPU, or too many consecutive failures for
/// lack of memory, the thread prepares everything, and [`GpuOffload::failure`] has the cause.
#[derive(Debug)]
pub struct GpuOffload {
    batch: GpuBatch,
    share: Share,
    counts: OffloadCounts,
    refusals: Refusals,
    /// Samples of the batch, how many of them are offered to the GPU, and how many were.
    samples: usize,
    wanted: usize,
    offered: usize,
    /// Whether the tensors of the batch may stay on the GPU.
    may_stay: bool,
    started: Option<Instant>,
    /// When the batch was last seen unfinished, and when it was first seen finished, from its
    /// start.
    unfinished: Duration,
    finished: Option<Duration>,
    failure: Option<GpuError>,
    retry: Retry,
    /// Whether the thread prepares this batch, because the GPU ran out of memory for this or an
    /// earlier one.
    is_paused: bool,
    /// Batches that failed for lack of memory.
    out_of_memory_batches: u64,
    /// Sum over batches of the time from the start of the GPU's work until its end.
    busy: Duration,
    /// Batches whose tensors were copied to the host because too many stayed on the GPU.
    beyond_pool_batches: u64,
}

impl GpuOffload {
    /// With a choice of the share.
    pub fn new(batch: GpuBatch, choice: ShareChoice) -> Self {
        Self {
            batch,
            share: Share::new(choice),
            counts: OffloadCounts::default(),
            refusals: Refusals::default(),
            samples: 0,
            wanted: 0,
            offered: 0,
            may_stay: false,
            started: None,
            unfinished: Duration::ZERO,
            finished: None,
            failure: None,
            retry: Retry::new(),
            is_paused: false,
            out_of_memory_batches: 0,
            busy: Duration::ZERO,
            beyond_pool_batches: 0,
        }
    }

    /// The share of the next batch.
    pub fn share(&self) -> f64 {
        self.share.now()
    }

    /// Why the GPU is not used any more.
    pub fn failure(&self) -> Option<&GpuError> {
        self.failure.as_ref()
    }

    /// How long the GPU had work of this preparer so far, which includes waiting for the work of
    /// others on the same GPU.
    pub fn busy(&self) -> Duration {
        self.busy
    }

    /// Samples that were not taken, by reason.
    pub(super) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// The current memory limit, which failures reduce.
    pub(super) fn memory(&self) -> GpuMemory {
        self.batch.memory()
    }

    /// The memory used so far.
    pub(super) fn memory_use(&self) -> MemoryUse {
        self.batch.memory_use()
    }

    /// Batches that failed for lack of memory.
    pub(super) fn out_of_memory_batches(&self) -> u64 {
        self.out_of_memory_batches
    }

    /// Batches whose tensors were copied to the host because too many stayed on the GPU.
    pub(super) fn beyond_pool_batches(&self) -> u64 {
        self.beyond_pool_batches
    }

    /// Handles a failure, after which no sample of this batch goes to the GPU. A request to stop is
    /// returned as [`Error::Interrupted`] instead.
    fn fail(&mut self, error: GpuError) -> Result<(), Error> {
        if matches!(error, GpuError::Stopped) {
            return Err(Error::Interrupted);
        }
        if error.is_out_of_memory() {
            self.is_paused = true;
            self.out_of_memory_batches += 1;
            // Other programs may need the memory; no work of the batch was started.
            self.batch.release();
            if let Some(memory) = self.retry.failed(self.batch.memory()) {
                self.batch.set_memory(memory);
                return Ok(());
            }
        }
        self.failure.get_or_insert(error);
        self.batch.release();
        Ok(())
    }

    /// Whether samples of this batch go to the GPU.
    fn is_usable(&self) -> bool {
        self.failure.is_none() && !self.is_paused
    }

    fn count_left(&mut self, samples: u64) {
        match self.failure {
            Some(_) => self.counts.after_failure += samples,
            None => self.counts.out_of_memory += samples,
        }
    }

    fn start(&mut self) -> Result<(), Error> {
        self.started = Some(Instant::now());
        let started = self.batch.start(self.may_stay);
        let is_beyond = started.is_ok() && self.batch.is_beyond_pool(self.may_stay);
        self.beyond_pool_batches += u64::from(is_beyond);
        started.or_else(|error| self.fail(error))
    }

    /// Waits for the batch, and copies its tensors to the host unless they stay on the GPU.
    fn end(&mut self, columns: &mut [Tensors<'_>]) -> Result<Ended, GpuError> {
        let unsound = self.batch.wait()?;
        let waited_until = self.started.map_or(Duration::ZERO, |started| started.elapsed());
        let resident = self.batch.resident(&unsound)?;
        if resident.is_none() {
            self.batch.download(columns)?;
        }
        // It ended between the last two polls.
        let took = self.finished.map(|finished| (self.unfinished + finished) / 2);
        Ok(Ended { unsound, resident, took: took.unwrap_or(waited_until) })
    }
}

/// The end of a batch.
struct Ended {
    unsound: Vec<usize>,
    resident: Option<ResidentTensors>,
    /// Estimated time of the GPU's work.
    took: Duration,
}

impl Offload for GpuOffload {
    fn name(&self) -> &str {
        self.batch.name()
    }

    fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.batch.set_interrupt(interrupt);
    }

    fn begin(&mut self, samples: usize, may_stay: bool) -> Result<(), Error> {
        self.may_stay = may_stay;
        (self.samples, self.wanted, self.offered) = (samples, self.share.of(samples), 0);
        (self.started, self.unfinished, self.finished) = (None, Duration::ZERO, None);
        if self.failure.is_some() {
            self.batch.forget();
            return Ok(());
        }
        self.is_paused = !self.retry.begins();
        let begun = self.batch.begin();
        begun.or_else(|error| self.fail(error))
    }

    fn take(&mut self, position: usize, encoded: Encoded<'_>, id: SampleId) -> Result<bool, Error> {
        if !self.is_usable() {
            self.count_left(1);
            return Ok(false);
        }
        if position >= self.wanted {
            self.counts.beyond_share += 1;
            return Ok(false);
        }
        self.offered += 1;
        let taken = match self.batch.take(position, encoded, id) {
            Ok(OfferOutcome::Yes) => true,
            Ok(OfferOutcome::No(refused)) => {
                self.counts.not_taken += 1;
                self.refusals[NotTaken::from(&refused) as usize] += 1;
                false
            }
            Err(error) => {
                self.fail(error)?;
                self.count_left(1);
                false
            }
        };
        if self.offered == self.wanted && self.is_usable() && !self.batch.is_empty() {
            self.start()?;
        }
        Ok(taken)
    }

    fn poll(&mut self) {
        let Some(started) = self.started.filter(|_| self.finished.is_none()) else { return };
        if !self.is_usable() {
            return;
        }
        match self.batch.is_done() {
            Ok(true) => self.finished = Some(started.elapsed()),
            Ok(false) => self.unfinished = started.elapsed(),
            // The wait in `finish` reports the error again.
            Err(_) => {}
        }
    }

    fn finish(&mut self, columns: &mut [Tensors<'_>], own_ns: u64) -> Result<Finished, Error> {
        let taken = self.batch.positions();
        if self.is_usable() && self.started.is_none() && !taken.is_empty() {
            // Samples of its share could not be read.
            self.start()?;
        }
        self.poll();
        let ended = match self.is_usable() {
            false => None,
            true => match self.end(columns) {
                Ok(ended) => Some(ended),
                Err(error) => {
                    self.fail(error)?;
                    None
                }
            },
        };
        // After a failure, the thread prepares all of them.
        let Some(Ended { unsound, resident, took }) = ended else {
            self.count_left(taken.len() as u64);
            return Ok(taken.into());
        };
        if !taken.is_empty() {
            self.retry.succeeded();
            self.busy += took;
        }
        self.counts.prepared += (taken.len() - unsound.len()) as u64;
        self.counts.given_back += unsound.len() as u64;
        self.counts.resident += resident.as_ref().map_or(0, |tensors| tensors.len() as u64);
        self.share.learn(BatchTimes {
            on_gpu: taken.len(),
            on_cpu: self.samples - taken.len(),
            gpu_ns: took.as_nanos() as u64,
            cpu_ns: own_ns,
        });
        let resident = resident.filter(|tensors| !tensors.is_empty());
        Ok(Finished { given_back: unsound, resident })
    }

    fn counts(&self) -> OffloadCounts {
        self.counts
    }
}
