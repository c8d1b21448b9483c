//! Prepares small samples from memory, or from one read of their whole record batch.

use super::{BatchProgress, CpuPreparer, read_token};
use crate::Error;
use crate::read_limits::READS_MAX;
use crate::small_samples::{Content, Retained, Room};
use meetpoint_storage::files::FileState;
use meetpoint_storage::{
    AlignedBuffer, Completion, Error as StorageError, RefusedRequest, Request, RequestKind,
};
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
    /// The epoch of the batch.
    epoch: Option<u32>,
    /// The state of each part at the beginning of the epoch.
    states: Vec<Option<FileState>>,
    /// By record batch: those that are retained, as far as this epoch needed them.
    retained: Vec<Option<Arc<Retained>>>,
    /// The record batch of each position; empty if samples are read one by one.
    record_batches: Vec<usize>,
    /// The same in ascending order, made when it is needed.
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
    /// If it will be retained: the memory for it, and the state of its part.
    room: Option<(Room, FileState)>,
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
    fn count_of(&mut self, record_batch: usize) -> usize {
        if self.ascending.is_empty() {
            self.ascending.extend_from_slice(&self.record_batches);
            self.ascending.sort_unstable();
        }
        let first = self.ascending.partition_point(|it| *it < record_batch);
        self.ascending[first..].partition_point(|it| *it == record_batch)
    }
}

impl CpuPreparer {
    /// Begins a batch whose samples have been located.
    pub(super) fn begin_small(&mut self, epoch: u32) -> Result<(), Error> {
        let (small, dataset) = (&mut self.small, &self.job.dataset);
        small.record_batches.clear();
        small.ascending.clear();
        small.reads.clear();
        small.again.clear();
        // With an application cache of prepared samples, this memory is not used.
        if !dataset.small_samples().is_granted() || self.cached.is_some() {
            return Ok(());
        }
        if small.epoch != Some(epoch) {
            // A retained record batch is used only while its part is unchanged since its read.
            small.epoch = Some(epoch);
            small.states = dataset.part_states();
            small.retained.clear();
            small.retained.resize_with(dataset.record_batches(), || None);
        }
        for (sample, _) in &self.samples {
            small.record_batches.push(dataset.batch_of(*sample)?.0);
        }
        Ok(())
    }

    /// Prepares the next samples as long as they are in memory.
    pub(super) fn take_small(&mut self, progress: &mut BatchProgress<'_>) -> Result<(), Error> {
        if self.small.record_batches.is_empty() {
            return Ok(());
        }
        while let Some((_, location)) = self.samples.get(progress.next) {
            let record_batch = self.small.record_batches[progress.next];
            let (offset, bytes, part) = (location.offset, location.bytes, location.part);
            let own = &mut self.small.retained[record_batch];
            if own.is_none()
                && let Some(state) = self.small.states[part]
            {
                *own = self.job.dataset.small_samples().get(record_batch, state);
            }
            // It is put back below, also after an error.
            let Some(retained) = own.take() else { break };
            let outcome = match retained.get(offset, bytes) {
                Some(stored) => self.decode_retained(stored, progress).map(|()| true),
                None => Ok(false),
            };
            self.small.retained[record_batch] = Some(retained);
            if !outcome? {
                break;
            }
        }
        Ok(())
    }

    /// Prepares the next sample, whose stored bytes are in memory.
    fn decode_retained(
        &mut self,
        stored: &[u8],
        progress: &mut BatchProgress<'_>,
    ) -> Result<(), Error> {
        progress.ask()?;
        self.interrupt.check().map_err(|_| Error::Interrupted)?;
        let (position, bytes_read) = (progress.next, progress.stats.bytes_read);
        progress.next += 1;
        let outcome = self.decode_sample(position, stored, progress);
        progress.stats.bytes_read = bytes_read;
        outcome.or_else(|error| self.replace_damaged(position, error, progress))
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
        if self.small.refused.contains(&record_batch) {
            return Ok(NextSmall::Alone);
        }
        let dataset = Arc::clone(&self.job.dataset);
        let Some(content) = dataset.small_content(record_batch) else {
            return Ok(NextSmall::Alone);
        };
        if self.small.reads.len() >= WHOLE_READS_MAX {
            return Ok(NextSmall::Waits);
        }
        let state = self.small.states[content.part];
        let room = state.and_then(|state| {
            let (room, bytes) =
                dataset.small_samples().room(content.range.end - content.range.start)?;
            Some(((room, state), bytes))
        });
        if room.is_none() && ((self.small.count_of(record_batch) * DENSE) as u64) < content.rows {
            return Ok(NextSmall::Alone);
        }
        let bytes = usize::try_from(content.range.end - content.range.start).expect("it is small");
        // A record batch that will be retained is read into its own buffer, and stays there.
        let (room, buffer) = match room {
            Some((room, bytes)) => (Some(room), AlignedBuffer::zeroed(bytes)),
            None => (None, self.pool.take(&mut *self.engine, bytes)),
        };
        let read = WholeRead { record_batch, content, room, positions: vec![position] };
        let request = Request {
            token: read_token(self.call, position),
            file: self.files[read.content.part],
            kind: RequestKind::Read,
            offset: read.content.range.start,
            bytes,
            buffer,
        };
        match self.engine.submit(request) {
            Ok(()) => {
                progress.bytes_ahead += read.bytes();
                self.small.reads.push(read);
                Ok(NextSmall::InFlight)
            }
            Err(refused) => {
                let RefusedRequest { request, error } = *refused;
                if read.room.is_none() {
                    self.pool.give(request.buffer);
                }
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
            if read.room.is_none() {
                self.pool.give(buffer);
            }
            self.small.refused.insert(read.record_batch);
            self.small.again.extend(read.positions);
            return Ok(None);
        };
        let WholeRead { record_batch, content, room, positions } = read;
        let Some((room, state)) = room else {
            let stored = &buffer.as_slice()[start..start + bytes];
            let outcome = self.decode_positions(positions, content.range.start, stored, progress);
            self.pool.give(buffer);
            return outcome.map(|()| None);
        };
        let first = content.range.start;
        let retained = Retained::new((buffer, start), content.range, state, room);
        let retained = self.job.dataset.small_samples().retain(record_batch, retained);
        let outcome = self.decode_positions(positions, first, retained.content(), progress);
        self.small.retained[record_batch] = Some(retained);
        outcome.map(|()| None)
    }

    /// Prepares the samples at some positions from the content of their record batch, whose first
    /// byte is at `first` in the part.
    fn decode_positions(
        &mut self,
        positions: Vec<usize>,
        first: u64,
        content: &[u8],
        progress: &mut BatchProgress<'_>,
    ) -> Result<(), Error> {
        for position in positions {
            progress.ask()?;
            self.interrupt.check().map_err(|_| Error::Interrupted)?;
            let location = &self.samples[position].1;
            let from = usize::try_from(location.offset - first).expect("it is small");
            let bytes = usize::try_from(location.bytes).expect("it is small");
            let outcome = self.decode_sample(position, &content[from..from + bytes], progress);
            outcome.or_else(|error| self.replace_damaged(position, error, progress))?;
        }
        Ok(())
    }
}
