//! Decodes samples into the memory of a batch, within the budget for decoding.

use super::cached::{OnePicture, use_of};
use super::{BatchProgress, CpuPreparer, nanoseconds, of_one};
use crate::{Error, NoMemory, Reserved};
use meetpoint_format::dataset::SampleLocation;
use meetpoint_kernels::{Encoded, SampleId, contain_panic};
use meetpoint_storage::{AlignedBuffer, Completion};
use std::time::Instant;

impl CpuPreparer {
    /// Decodes the sample or samples of a completed read.
    pub(super) fn decode(
        &mut self,
        completion: Completion,
        progress: &mut BatchProgress<'_>,
    ) -> Result<(), Error> {
        if completion.token >> 32 != u64::from(self.call) {
            self.pool.give(completion.buffer);
            return Ok(());
        }
        let position = (completion.token & u64::from(u32::MAX)) as usize;
        let Some(completion) = self.decode_small(position, completion, progress)? else {
            return Ok(());
        };
        let Completion { buffer, start, result, .. } = completion;
        progress.bytes_ahead -= self.samples[position].1.bytes;
        let outcome = match result {
            Ok(bytes) => self.decode_from(position, &buffer, start, bytes, progress),
            Err(error) => {
                let (sample, location) = &self.samples[position];
                Err(self.read_failed((*sample, location), error))
            }
        };
        self.pool.give(buffer);
        outcome.or_else(|error| self.replace_damaged(position, error, progress))
    }

    pub(super) fn decode_from(
        &mut self,
        position: usize,
        buffer: &AlignedBuffer,
        start: usize,
        bytes: usize,
        progress: &mut BatchProgress<'_>,
    ) -> Result<(), Error> {
        self.decode_sample(position, &buffer.as_slice()[start..start + bytes], progress)
    }

    /// Checks and decodes one sample into its position in the batch.
    pub(super) fn decode_sample(
        &mut self,
        position: usize,
        stored: &[u8],
        progress: &mut BatchProgress<'_>,
    ) -> Result<(), Error> {
        let (sample, location) = self.samples[position].clone();
        self.decode_into(position, (sample, &location), stored, progress)
    }

    /// Checks and decodes a sample into the batch at `position`, with the random parameters of the
    /// sample that the order has there.
    pub(super) fn decode_into(
        &mut self,
        position: usize,
        (sample, location): (u64, &SampleLocation),
        stored: &[u8],
        progress: &mut BatchProgress<'_>,
    ) -> Result<(), Error> {
        let started = Instant::now();
        if let Err(error) = self.job.dataset.check_image(sample, location, stored) {
            let again = self.job.dataset.read_again(sample, location, error)?;
            return self.decode_into(position, (sample, location), &again, progress);
        }
        self.table.take(position, (sample, location), &self.job.dataset)?;
        let (seed, key) = (self.job.batching.seed(), self.keys[position]);
        let id = SampleId { seed, epoch: progress.epoch, sample: key };
        // A sample that the CPU would refuse is not offloaded either: the result does not depend
        // on where a sample is prepared.
        let is_refused = self.offload.is_some() && !self.is_admitted(stored, id);
        if !is_refused
            && self.offload_sample(position, (sample, location), (stored, id), progress)?
        {
            progress.stats.compute_ns += nanoseconds(started.elapsed());
            return Ok(());
        }
        let of = use_of(&self.job.batching, (progress.epoch, progress.batch), (sample, position));
        // A replacement of a damaged sample is not at its own position in the order.
        let is_in_order = self.samples[position].0 == sample;
        let cached = self.cached.as_ref().filter(|_| is_in_order);
        let is_added = cached.is_some_and(|it| it.admits(of, stored, self.resumer.as_ref()));
        let crc32c = Some(location.crc32c);
        let entry_points = location.entry_points.as_ref().map_or(&[][..], AsRef::as_ref);
        let encoded = Encoded { bytes: stored, entry_points, crc32c };
        // Computed from the header, so only where threads share a limit of memory.
        let needed = match (&self.memory, &self.resumer) {
            (None, _) => None,
            (Some(_), None) if !is_added => self.preparer.plan_memory(encoded, id).ok(),
            (Some(_), _) => self.needed(stored, id, is_added),
        };
        let reserved = self.reserve((sample, location), needed, progress)?;
        let (pace, done) = (&mut progress.pace, progress.stats.samples);
        let is_given_up = &mut progress.is_given_up;
        let pause = &mut || *is_given_up |= !pace(done);
        self.table.read_targets((sample, location), &self.job.dataset)?;
        let mut staged = self.table.take_pictures();
        let targets = self.table.stored_targets();
        let (preparer, resumer) = (&mut self.preparer, self.resumer.as_mut());
        let cached = self.cached.as_mut().filter(|_| is_added);
        let (pictures, samples) = (&self.pictures, self.samples.len());
        let memory = &mut *progress.memory;
        let prepared = contain_panic(|| match (cached, resumer, &mut staged) {
            (Some(cached), resumer, Some(outs)) => {
                let into = (OnePicture::Appended(&mut outs[0]), pause as _);
                let spec = cached.fill((preparer, resumer), encoded, &targets, (id, of), into)?;
                Ok(spec.map(of_one))
            }
            (Some(cached), resumer, None) => {
                let mut outs = pictures.of(position, samples, memory.bytes_mut());
                let into = (OnePicture::Placed(&mut *outs[0]), pause as _);
                cached.fill((preparer, resumer), encoded, &targets, (id, of), into)?;
                Ok(None)
            }
            (None, None, None) => {
                let mut outs = pictures.of(position, samples, memory.bytes_mut());
                preparer.prepare_columns(encoded, &targets, id, &mut outs, pause)?;
                Ok(None)
            }
            (None, Some(resumer), None) => {
                let mut outs = pictures.of(position, samples, memory.bytes_mut());
                let out = &mut *outs[0];
                resumer.prepare(preparer, stored, &targets, id, (out, pause))?;
                Ok(None)
            }
            (None, None, Some(outs)) => {
                Ok(Some(preparer.append_columns(encoded, &targets, id, outs, pause)?))
            }
            (None, Some(resumer), Some(outs)) => {
                let into = (&mut outs[0], pause as _);
                let spec = resumer.prepare_appended(preparer, stored, &targets, id, into)?;
                Ok(Some(of_one(spec)))
            }
        });
        let place = (sample, location);
        let prepared = self.prepared(place, prepared, reserved.is_some());
        if let Some(staged) = staged {
            let specs = prepared.as_ref().ok().and_then(Option::as_deref);
            self.table.put_pictures(position, staged, specs);
        }
        prepared?;
        self.table.take_targets(position, place, &self.job.dataset, &self.preparer)?;
        self.table.check_room(progress.memory)?;
        progress.stats.samples += 1;
        let is_filled_in = match self.cached.as_ref().filter(|_| is_added) {
            Some(cached) => cached.is_filled_in(),
            None => self.preparer.is_filled_in(),
        };
        progress.stats.filled_in += u32::from(is_filled_in);
        progress.stats.bytes_read += stored.len() as u64;
        let elapsed = started.elapsed();
        progress.stats.compute_ns += nanoseconds(elapsed);
        self.note_own(elapsed);
        Ok(())
    }

    /// The memory that decoding a sample takes; `None` if its header is invalid, for which the
    /// decoder then returns the error.
    pub(super) fn needed(&self, stored: &[u8], id: SampleId, is_added: bool) -> Option<u64> {
        let needed = match &self.resumer {
            None => self.preparer.memory_bytes(stored, id).ok()?,
            Some(resumer) => return resumer.memory_bytes(&self.preparer, stored, id),
        };
        // A sample that is added to the cache is decoded as a whole.
        let cached = self.cached.as_ref().filter(|_| is_added);
        let whole = cached.and_then(|cached| cached.memory_bytes(stored, id));
        Some(needed.max(whole.unwrap_or(0)))
    }

    /// Whether the memory for decoding suffices for a sample.
    pub(super) fn is_admitted(&self, stored: &[u8], id: SampleId) -> bool {
        let Some(memory) = &self.memory else { return true };
        self.needed(stored, id, false).is_none_or(|needed| memory.admits(needed))
    }

    /// Reserves the memory that preparing a large sample takes, and waits until it is available.
    pub(super) fn reserve(
        &self,
        (sample, location): (u64, &SampleLocation),
        needed: Option<u64>,
        progress: &mut BatchProgress<'_>,
    ) -> Result<Option<Reserved>, Error> {
        let Some(memory) = &self.memory else { return Ok(None) };
        let Some(needed) = needed else { return Ok(None) };
        memory
            .reserve(needed, &mut || progress.ask().is_ok() && !self.interrupt.is_raised())
            .map_err(|why| match why {
                NoMemory::GivenUp => Error::Interrupted,
                NoMemory::Never { .. } => {
                    self.job.dataset.too_large((sample, location), memory.refusal(needed))
                }
            })
    }
}
