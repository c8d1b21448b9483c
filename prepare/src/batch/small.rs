//! Prepares small samples from memory, or from one read of their whole record batch.

use super::{BatchProgress, CpuPreparer, READS_MAX, read_token};
use crate::Error;
use crate::small_samples::Content;
use meetpoint_storage::{Completion, Error as StorageError, RefusedRequest, Request, RequestKind};
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum reads of whole record batches in flight; each is as long as hundreds of samples.
const WHOLE_READS_MAX: usize = READS_MAX / 8;
/// A record batch that cannot be retained is still read whole if the batch needs at least one in
/// `DENSE` of its samples, because a direct read of a small sample takes as long as one of several
/// blocks.
const DENSE: usize = 4;

/// The small samples of the current batch.
#[derive(Debug, Default)]
pub(super) struct SmallReads {
    /// The record batch of each position, in batch order and in ascending order. Both are empty if
    /// samples are read one by one.
    record_batches: Vec<usize>,
    ascending: Vec<usize>,
    reads: Vec<WholeRead>,
    /// Positions whose record batch could not be read whole. They are read one by one, so that an
    /// error names the sample.
    pub(super) again: Vec<usize>,
    /// Record batches that could not be read whole.
    refused: HashSet<usize>,
}

/// A read of a record batch, and the positions that wait for it.
#[derive(Debug)]
struct WholeRead {
    record_batch: usize,
    content: Content,
    /// The first one is the position in the request's token.
    positions: Vec<usize>,
}

impl WholeRead {
    fn bytes(&self) -> u64 {
        self.content.range.end - self.content.range.start
    }
}

/// How the next sample is read.
pub(super) enum NextSmall {
    /// By a separate read.
    Alone,
    /// A read of its record batch is in flight.
    InFlight,
    /// It waits until other reads have arrived.
    Waits,
}

impl SmallReads {
    /// Number of positions whose samples are in a record batch.
    fn count_of(&self, record_batch: usize) -> usize {
        let first = self.ascending.partition_point(|it| *it < record_batch);
        self.ascending[first..].partition_point(|it| *it == record_batch)
    }
}

impl CpuPreparer {
    /// Begins a batch whose samples have been located.
    pub(super) fn begin_small(&mut self) -> Result<(), Error> {
        let small = &mut self.small;
        small.record_batches.clear();
        small.ascending.clear();
        small.reads.clear();
        small.again.clear();
        // With an application cache of prepared samples, this memory is not used.
        if !self.job.dataset.small_samples().is_granted() || self.cached.is_some() {
            return Ok(());
        }
        for (sample, _) in &self.samples {
            small.record_batches.push(self.job.dataset.batch_of(*sample)?.0);
        }
        small.ascending.extend_from_slice(&small.record_batches);
        small.ascending.sort_unstable();
        Ok(())
    }

    /// Prepares the next samples as long as they are in memory.
    pub(super) fn take_small(&mut self, progress: &mut BatchProgress<'_>) -> Result<(), Error> {
        if self.small.record_batches.is_empty() {
            return Ok(());
        }
        let dataset = Arc::clone(&self.job.dataset);
        while let Some((_, location)) = self.samples.get(progress.next) {
            let record_batch = self.small.record_batches[progress.next];
            let found = dataset.small_samples().get(record_batch, location.offset, location.bytes);
            let Some(stored) = found else { break };
            progress.ask()?;
            self.interrupt.check().map_err(|_| Error::Interrupted)?;
            let (position, bytes_read) = (progress.next, progress.stats.bytes_read);
            progress.next += 1;
            let outcome = self.decode_sample(position, stored, progress);
            progress.stats.bytes_read = bytes_read;
            outcome.or_else(|error| self.replace_damaged(position, error, progress))?;
        }
        Ok(())
    }

    /// Adds the sample at a position to the read of its record batch. Starts this read if the
    /// record batch can be retained or the batch needs enough of its samples.
    pub(super) fn read_small(
        &mut self,
        position: usize,
        progress: &mut BatchProgress<'_>,
    ) -> Result<NextSmall, Error> {
        let Some(&record_batch) = self.small.record_batches.get(position) else {
            return Ok(NextSmall::Alone);
        };
        let mut reads = self.small.reads.iter_mut();
        if let Some(read) = reads.find(|read| read.record_batch == record_batch) {
            read.positions.push(position);
            return Ok(NextSmall::InFlight);
        }
        let dataset = &self.job.dataset;
        let content = match self.small.refused.contains(&record_batch) {
            true => None,
            false => dataset.small_content(record_batch),
        };
        let is_dense = |rows: u64| (self.small.count_of(record_batch) * DENSE) as u64 >= rows;
        let content = content.filter(|content| {
            let bytes = content.range.end - content.range.start;
            dataset.small_samples().has_room(bytes) || is_dense(content.rows)
        });
        let Some(content) = content else { return Ok(NextSmall::Alone) };
        if self.small.reads.len() >= WHOLE_READS_MAX {
            return Ok(NextSmall::Waits);
        }
        let read = WholeRead { record_batch, content, positions: vec![position] };
        let bytes = usize::try_from(read.bytes()).expect("it is small");
        let request = Request {
            token: read_token(self.call, position),
            file: self.files[read.content.part],
            kind: RequestKind::Read,
            offset: read.content.range.start,
            bytes,
            buffer: self.pool.take(&mut *self.engine, bytes),
        };
        match self.engine.submit(request) {
            Ok(()) => {
                progress.bytes_ahead += read.bytes();
                self.small.reads.push(read);
                Ok(NextSmall::InFlight)
            }
            Err(refused) => {
                let RefusedRequest { request, error } = *refused;
                self.pool.give(request.buffer);
                match error {
                    StorageError::QueueFull { .. } if self.engine.in_flight() > 0 => {
                        Ok(NextSmall::Waits)
                    }
                    // The separate read of the sample reports the error.
                    _ => Ok(NextSmall::Alone),
                }
            }
        }
    }

    /// Prepares the samples that waited for this read of a record batch. Returns the completion if
    /// it belongs to another read.
    pub(super) fn decode_small(
        &mut self,
        position: usize,
        completion: Completion,
        progress: &mut BatchProgress<'_>,
    ) -> Result<Option<Completion>, Error> {
        let of_position = |read: &WholeRead| read.positions[0] == position;
        let Some(index) = self.small.reads.iter().position(of_position) else {
            return Ok(Some(completion));
        };
        let read = self.small.reads.swap_remove(index);
        progress.bytes_ahead -= read.bytes();
        let Completion { buffer, start, result, .. } = completion;
        let Ok(bytes) = result else {
            self.pool.give(buffer);
            self.small.refused.insert(read.record_batch);
            self.small.again.extend(read.positions);
            return Ok(None);
        };
        let content = &buffer.as_slice()[start..start + bytes];
        let first = read.content.range.start;
        self.job.dataset.small_samples().retain(read.record_batch, first, content);
        for position in read.positions {
            progress.ask()?;
            self.interrupt.check().map_err(|_| Error::Interrupted)?;
            let location = &self.samples[position].1;
            let from = usize::try_from(location.offset - first).expect("it is small");
            let bytes = usize::try_from(location.bytes).expect("it is small");
            let outcome = self.decode_sample(position, &content[from..from + bytes], progress);
            outcome.or_else(|error| self.replace_damaged(position, error, progress))?;
        }
        self.pool.give(buffer);
        Ok(None)
    }
}
