//! Reads the samples of a batch ahead of their decoding.

use super::small::NextSmall;
use super::{BatchProgress, CpuPreparer, WAIT_SLICE, nanoseconds, read_token};
use crate::Error;
use crate::read_limits::{BYTES_AHEAD_MAX, READS_MAX};
use meetpoint_format::dataset::SampleLocation;
use meetpoint_storage::{Error as StorageError, Request, RequestKind};
use std::time::{Duration, Instant};

/// How long to wait for reads in flight after an error or a cancelled batch.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

impl CpuPreparer {
    /// Submits reads until the engine, the bytes ahead or the batch are at their end.
    pub(super) fn read_ahead(&mut self, progress: &mut BatchProgress<'_>) -> Result<(), Error> {
        let depth = self.engine.limits().depth.min(READS_MAX);
        loop {
            let again = self.small.again.last().copied();
            if again.is_none() {
                self.take_small(progress)?;
            }
            let position = again.unwrap_or(progress.next);
            if position >= self.samples.len() || self.engine.in_flight() >= depth {
                break;
            }
            if again.is_none() {
                if self.take_next_cached(progress)? {
                    continue;
                }
                match self.read_small(position, progress)? {
                    NextSmall::Alone => {}
                    NextSmall::InFlight => {
                        progress.next += 1;
                        continue;
                    }
                    NextSmall::Waits => break,
                }
            }
            let (sample, location) = &self.samples[position];
            let ahead = self.memory.as_ref().map_or(BYTES_AHEAD_MAX, |memory| memory.read_ahead());
            if progress.bytes_ahead > 0 && progress.bytes_ahead + location.bytes > ahead {
                break;
            }
            if let Some(Err(why)) = self.memory.as_ref().map(|it| it.check_stored(location.bytes)) {
                return Err(self.job.dataset.too_large((*sample, location), why));
            }
            let bytes = usize::try_from(location.bytes).expect("at most IMAGE_BYTES_MAX");
            let file = match (&location.file, self.job.dataset.contents(location.part)) {
                (Some(file), Some((folder, contents))) => {
                    match self.contents[folder].file(file, contents, &mut *self.engine) {
                        Ok(file) => file,
                        Err(error) => {
                            let error = self.job.dataset.in_place(*sample, location, error);
                            self.pass(position, progress);
                            self.replace_damaged(position, error, progress)?;
                            continue;
                        }
                    }
                }
                _ => self.files[location.part],
            };
            let request = Request {
                token: read_token(self.call, position),
                file,
                kind: RequestKind::Read,
                offset: location.offset,
                bytes,
                buffer: self.pool.take(&mut *self.engine, bytes),
            };
            match self.engine.submit(request) {
                Ok(()) => {
                    progress.bytes_ahead += bytes as u64;
                    self.pass(position, progress);
                }
                Err(refused) => {
                    self.pool.give(refused.request.buffer);
                    if !matches!(refused.error, StorageError::QueueFull { .. }) {
                        let (sample, location) = &self.samples[position];
                        return Err(self.read_failed((*sample, location), refused.error));
                    }
                    break;
                }
            }
        }
        let is_stuck = self.engine.in_flight() == 0 && self.completions.is_empty();
        let position = self.small.again.last().copied().unwrap_or(progress.next);
        if is_stuck && position < self.samples.len() {
            return self.read_plainly(position, progress);
        }
        Ok(())
    }

    /// Goes on to the sample behind the one at a position, which is the next.
    fn pass(&mut self, position: usize, progress: &mut BatchProgress<'_>) {
        if self.small.again.last() == Some(&position) {
            self.small.again.pop();
        } else {
            progress.next += 1;
        }
    }

    /// Reads one sample without the engine: for an engine that takes no request at all.
    fn read_plainly(
        &mut self,
        position: usize,
        progress: &mut BatchProgress<'_>,
    ) -> Result<(), Error> {
        self.pass(position, progress);
        let (sample, location) = self.samples[position].clone();
        let outcome = self.read_and_decode_into(position, (sample, &location), progress);
        outcome.or_else(|error| self.replace_damaged(position, error, progress))
    }

    /// Reads a sample without the engine, and decodes it into the place of the one at `position`.
    pub(super) fn read_and_decode_into(
        &mut self,
        position: usize,
        (sample, location): (u64, &SampleLocation),
        progress: &mut BatchProgress<'_>,
    ) -> Result<(), Error> {
        if !self.table.has_images() {
            return self.take_columns(position, (sample, location), progress);
        }
        let bytes = usize::try_from(location.bytes).expect("at most IMAGE_BYTES_MAX");
        let mut buffer = self.pool.take(&mut *self.engine, bytes);
        let started = Instant::now();
        let into = &mut buffer.as_mut_slice()[..bytes];
        let read = self.job.dataset.read_image(sample, location, into);
        progress.stats.read_wait_ns += nanoseconds(started.elapsed());
        let outcome = match read {
            Ok(()) => {
                let stored = &buffer.as_slice()[..bytes];
                self.decode_into(position, (sample, location), stored, progress)
            }
            Err(error) => Err(error),
        };
        self.pool.give(buffer);
        outcome
    }

    pub(super) fn read_failed(
        &self,
        (sample, location): (u64, &SampleLocation),
        source: StorageError,
    ) -> Error {
        let (_, row, key) = self.job.dataset.location_in_words(sample, location);
        Error::Read { row, key, source }
    }

    /// Waits for the reads that are still in flight, whose bytes are no longer needed.
    ///
    /// Reads that do not complete in time stay with the engine. If they complete during a later
    /// batch, they are ignored because of their tokens.
    pub(super) fn drain(&mut self) {
        let started = Instant::now();
        while self.engine.in_flight() > 0 && started.elapsed() < DRAIN_TIMEOUT {
            if self.engine.wait(WAIT_SLICE, &mut self.completions).is_err() {
                break;
            }
        }
        for completion in self.completions.drain(..) {
            self.pool.give(completion.buffer);
        }
    }
}
