//! One preparer's use of a GPU: a share of the pictures of each batch.

use super::batch::{GpuBatch, Taken};
use super::refusal::{NotTaken, Refusals};
use super::share::{BatchTimes, Share, ShareChoice};
use crate::{Error, Offload, OffloadCounts, Tensors};
use meetpoint_gpu::Error as GpuError;
use meetpoint_kernels::{Encoded, Interrupt, SampleId};
use std::time::{Duration, Instant};

/// Prepares the first samples of each batch on a GPU, while the preparer's thread prepares the
/// others.
///
/// After a failure of the GPU, the thread prepares everything, and [`GpuOffload::failure`] has the
/// cause.
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
    started: Option<Instant>,
    /// When the batch was last seen unfinished, and when it was first seen finished, from its
    /// start.
    unfinished: Duration,
    finished: Option<Duration>,
    failure: Option<GpuError>,
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
            started: None,
            unfinished: Duration::ZERO,
            finished: None,
            failure: None,
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

    /// Samples that were not taken, by reason.
    pub(super) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Notes a failure, after which nothing is taken.
    fn fail(&mut self, error: GpuError) {
        self.failure.get_or_insert(error);
    }

    fn start(&mut self) {
        self.started = Some(Instant::now());
        if let Err(error) = self.batch.start(self.samples) {
            self.fail(error);
        }
    }

    /// Waits for the batch and copies its tensors; returns what is not sound, and the time that the
    /// GPU took.
    fn end(&mut self, tensors: &mut [u8]) -> Result<(Vec<usize>, Duration), GpuError> {
        let unsound = self.batch.wait()?;
        let waited_until = self.started.map_or(Duration::ZERO, |started| started.elapsed());
        self.batch.download(tensors)?;
        // It ended at some time between two questions.
        let took = self.finished.map(|finished| (self.unfinished + finished) / 2);
        Ok((unsound, took.unwrap_or(waited_until)))
    }
}

impl Offload for GpuOffload {
    fn name(&self) -> &str {
        self.batch.name()
    }

    /// Waits for a GPU have a limit of their own.
    fn set_interrupt(&mut self, _interrupt: Interrupt) {}

    fn begin(&mut self, samples: usize) -> Result<(), Error> {
        (self.samples, self.wanted, self.offered) = (samples, self.share.of(samples), 0);
        (self.started, self.unfinished, self.finished) = (None, Duration::ZERO, None);
        if self.failure.is_none()
            && let Err(error) = self.batch.begin()
        {
            self.fail(error);
        }
        Ok(())
    }

    fn take(&mut self, position: usize, encoded: Encoded<'_>, id: SampleId) -> Result<bool, Error> {
        if self.failure.is_some() {
            self.counts.after_failure += 1;
            return Ok(false);
        }
        if position >= self.wanted {
            self.counts.beyond_share += 1;
            return Ok(false);
        }
        self.offered += 1;
        let taken = match self.batch.take(position, encoded, id) {
            Ok(Taken::Yes) => true,
            Ok(Taken::No(refused)) => {
                self.counts.not_taken += 1;
                self.refusals[NotTaken::from(&refused) as usize] += 1;
                false
            }
            Err(error) => {
                self.counts.after_failure += 1;
                self.fail(error);
                false
            }
        };
        if self.offered == self.wanted && self.failure.is_none() && !self.batch.is_empty() {
            self.start();
        }
        Ok(taken)
    }

    fn poll(&mut self) {
        let Some(started) = self.started.filter(|_| self.finished.is_none()) else { return };
        if self.failure.is_some() {
            return;
        }
        match self.batch.is_done() {
            Ok(true) => self.finished = Some(started.elapsed()),
            Ok(false) => self.unfinished = started.elapsed(),
            Err(error) => self.fail(error),
        }
    }

    fn finish(&mut self, tensors: Tensors<'_>, own_ns: u64) -> Result<Vec<usize>, Error> {
        let taken = self.batch.positions();
        if self.failure.is_none() && self.started.is_none() && !taken.is_empty() {
            // Samples of its share could not be read.
            self.start();
        }
        self.poll();
        let ended = match self.failure {
            Some(_) => None,
            None => match self.end(tensors.bytes) {
                Ok(ended) => Some(ended),
                Err(error) => {
                    self.fail(error);
                    None
                }
            },
        };
        // After a failure, the thread prepares all of them.
        let Some((unsound, took)) = ended else {
            self.counts.after_failure += taken.len() as u64;
            return Ok(taken);
        };
        self.counts.prepared += (taken.len() - unsound.len()) as u64;
        self.counts.given_back += unsound.len() as u64;
        self.share.learn(BatchTimes {
            on_gpu: taken.len(),
            on_cpu: self.samples - taken.len(),
            gpu_ns: took.as_nanos() as u64,
            cpu_ns: own_ns,
        });
        Ok(unsound)
    }

    fn counts(&self) -> OffloadCounts {
        self.counts
    }
}
