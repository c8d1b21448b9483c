//! One thread's use of an application cache: lookups and insertions.

use super::{BatchProgress, CpuPreparer, nanoseconds, of_one};
use crate::Error;
use crate::cache::{SampleCache, Use};
use crate::codec::raw_bytes;
use crate::resume::{Resumer, SampleFailure};
use meetpoint_format::batching::Batching;
use meetpoint_format::dataset::{SampleLocation, decode_sample, encode_sample};
use meetpoint_format::recipe::{Recipe, SampleType, TensorSpec};
use meetpoint_kernels::{
    ContainedPanic, Cpu, Encoded, Interrupt, SampleId, SamplePreparer, Tensor, contain_panic,
    numbers_of, probe,
};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// Prepares samples from a cache, and those that are added to it.
pub(super) struct CachedSamples {
    cache: Arc<SampleCache>,
    /// Number of the first operation after the cached ones; operations inside others are counted.
    first: usize,
    /// The result type of the cached operations.
    result: SampleType,
    /// These operations.
    recipe: Recipe,
    /// Executes these operations.
    beginning: SamplePreparer,
    content: Vec<u8>,
    /// Whether the last offered sample was a damaged JPEG with missing data filled in.
    is_filled_in: bool,
}

/// A cached sample, copied out.
pub(super) struct CachedSample {
    pub(super) spec: TensorSpec,
    data: Range<usize>,
}

impl CachedSamples {
    pub(super) fn new(cache: Arc<SampleCache>, recipe: &Recipe, cpu: Cpu) -> Self {
        let beginning = recipe.beginning(cache.operations());
        Self {
            cache,
            first: numbers_of(beginning.operations()),
            result: beginning.result(),
            beginning: SamplePreparer::new(&beginning, cpu),
            recipe: beginning,
            content: Vec::new(),
            is_filled_in: false,
        }
    }

    pub(super) fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.beginning.set_interrupt(interrupt);
    }

    /// Frees the memory for a whole picture.
    pub(super) fn free(&mut self) {
        self.beginning.free_pictures();
    }

    /// Number of the first operation behind the cached ones.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    pub(super) fn is_filled_in(&self) -> bool {
        self.is_filled_in
    }

    /// A sample, where it is cached.
    pub(super) fn get(&mut self, of: Use) -> Option<CachedSample> {
        if !self.cache.get(of, &mut self.content) {
            return None;
        }
        let (spec, data) = decode_sample(&self.content, &self.result).ok()?;
        Some(CachedSample { spec, data })
    }

    /// Applies the rest of the recipe to a cached sample.
    pub(super) fn resume(
        &self,
        preparer: &mut SamplePreparer,
        CachedSample { spec, data }: &CachedSample,
        targets: &[&[u8]],
        id: SampleId,
        into: (OnePicture<'_>, &mut dyn FnMut()),
    ) -> Result<Option<TensorSpec>, SampleFailure> {
        let data = &self.content[data.clone()];
        into_memory(preparer, self.first, (spec, data), targets, id, into)
    }

    /// Whether a sample that is stored so would be added.
    pub(super) fn admits(&self, of: Use, stored: &[u8], resumer: Option<&Resumer>) -> bool {
        let bytes = match (self.result.size, resumer) {
            (Some(size), _) => Some(self.result.tensor(size).bytes()),
            (None, Some(resumer)) => raw_bytes(resumer.codec(), stored),
            (None, None) => probe(stored).ok().map(|info| {
                let whole = (info.height, info.width);
                let most = self.recipe.sizes(Some(whole)).most;
                let is_limited = most.0 < u32::MAX && most.1 < u32::MAX;
                self.result.tensor(if is_limited { most } else { whole }).bytes()
            }),
        };
        bytes.is_some_and(|bytes| self.cache.admits(of, bytes))
    }

    /// Most bytes of memory that the cached operations take; `None` if the decoder refuses the
    /// sample.
    pub(super) fn memory_bytes(&self, stored: &[u8], id: SampleId) -> Option<u64> {
        let info = probe(stored).ok()?;
        let picture = self.result.tensor((info.height, info.width)).bytes() as u64;
        Some(self.beginning.memory_bytes(stored, id).ok()? + picture)
    }

    /// Prepares a sample in two parts, and adds the result of the first.
    pub(super) fn fill(
        &mut self,
        (preparer, resumer): (&mut SamplePreparer, Option<&mut Resumer>),
        encoded: Encoded<'_>,
        targets: &[&[u8]],
        (id, of): (SampleId, Use),
        into: (OnePicture<'_>, &mut dyn FnMut()),
    ) -> Result<Option<TensorSpec>, SampleFailure> {
        self.is_filled_in = false;
        let Tensor { spec, data } = match resumer {
            None => {
                let tensor = self.beginning.prepare_tensor(encoded, id)?;
                self.is_filled_in = self.beginning.is_filled_in();
                tensor
            }
            Some(resumer) => {
                let first = resumer.first();
                let (spec, data) = resumer.load(encoded.bytes)?;
                if first == self.first {
                    Tensor { spec, data: data.to_vec() }
                } else {
                    self.beginning.resume(first, (&spec, data), id)?
                }
            }
        };
        // One that was filled in is counted in every epoch, as without a cache.
        if !self.is_filled_in {
            self.cache.put(of, &encode_sample(&spec, &data));
        }
        into_memory(preparer, self.first, (&spec, &data), targets, id, into)
    }
}

/// Memory for the only picture of a sample.
pub(super) enum OnePicture<'a> {
    /// As many bytes as it has.
    Placed(&'a mut [u8]),
    /// To which it is appended, where pictures may have different sizes.
    Appended(&'a mut Vec<u8>),
}

/// Applies the rest of a recipe to what its first operations gave. Returns the shape of a picture
/// that was appended.
fn into_memory(
    preparer: &mut SamplePreparer,
    first: usize,
    given: (&TensorSpec, &[u8]),
    targets: &[&[u8]],
    id: SampleId,
    (memory, pause): (OnePicture<'_>, &mut dyn FnMut()),
) -> Result<Option<TensorSpec>, SampleFailure> {
    match memory {
        OnePicture::Placed(out) => {
            preparer.resume_with(first, given, targets, id, (out, pause))?;
            Ok(None)
        }
        OnePicture::Appended(out) => {
            Ok(Some(preparer.resume_appended(first, given, targets, id, (out, pause))?))
        }
    }
}

impl CpuPreparer {
    /// Takes the next sample from the cache; `false` if it is to be read.
    pub(super) fn take_next_cached(
        &mut self,
        progress: &mut BatchProgress<'_>,
    ) -> Result<bool, Error> {
        let position = progress.next;
        let taken = match self.take_cached(position, progress) {
            Ok(false) => return Ok(false),
            Ok(true) => Ok(()),
            Err(error) => Err(error),
        };
        progress.next += 1;
        taken.or_else(|error| self.replace_damaged(position, error, progress))?;
        Ok(true)
    }

    /// Prepares a sample from the cache; `false` if it is not there.
    fn take_cached(
        &mut self,
        position: usize,
        progress: &mut BatchProgress<'_>,
    ) -> Result<bool, Error> {
        let Some(cached) = &mut self.cached else { return Ok(false) };
        let started = Instant::now();
        let (sample, location) = self.samples[position].clone();
        let of = use_of(&self.job.batching, (progress.epoch, progress.batch), (sample, position));
        let Some(found) = cached.get(of) else { return Ok(false) };
        let first = cached.first();
        progress.ask()?;
        self.interrupt.check().map_err(|_| Error::Interrupted)?;
        let place = (sample, &location);
        self.table.take(position, place, &self.job.dataset)?;
        let (seed, key) = (self.job.batching.seed(), self.keys[position]);
        let id = SampleId { seed, epoch: progress.epoch, sample: key };
        let needed = match &self.memory {
            Some(_) => self.preparer.resume_bytes(first, &found.spec, id).ok(),
            None => None,
        };
        let reserved = self.reserve(place, needed, progress)?;
        self.table.read_targets(place, &self.job.dataset)?;
        let mut staged = self.table.take_pictures();
        let targets = self.table.stored_targets();
        let mut outs = self.pictures.of(position, self.samples.len(), progress.memory.bytes_mut());
        // A recipe with views has no cache.
        let memory = match &mut staged {
            Some(staged) => OnePicture::Appended(&mut staged[0]),
            None => OnePicture::Placed(&mut *outs[0]),
        };
        let (pace, done) = (&mut progress.pace, progress.stats.samples);
        let is_given_up = &mut progress.is_given_up;
        let pause = &mut || *is_given_up |= !pace(done);
        let (cached, preparer) = (self.cached.as_ref().expect("as above"), &mut self.preparer);
        let prepared =
            contain_panic(|| cached.resume(preparer, &found, &targets, id, (memory, pause)));
        let prepared = self.prepared(place, prepared, reserved.is_some());
        if let Some(staged) = staged {
            let spec = prepared.as_ref().ok().copied().flatten();
            self.table.put_pictures(position, staged, spec.map(of_one).as_deref());
        }
        prepared?;
        self.table.take_targets(position, place, &self.job.dataset, &self.preparer)?;
        self.table.check_room(progress.memory)?;
        progress.stats.samples += 1;
        progress.stats.cached += 1;
        progress.stats.compute_ns += nanoseconds(started.elapsed());
        Ok(true)
    }

    /// Frees memory after a sample where that is needed, and locates what went wrong with it.
    pub(super) fn prepared<T>(
        &mut self,
        (sample, location): (u64, &SampleLocation),
        prepared: Result<Result<T, SampleFailure>, ContainedPanic>,
        is_large: bool,
    ) -> Result<T, Error> {
        if is_large || prepared.is_err() {
            // What it took is free for others only if it is not retained.
            self.preparer.free_pictures();
            self.resumer.iter_mut().for_each(Resumer::free);
            self.cached.iter_mut().for_each(CachedSamples::free);
        }
        let prepared = prepared.map_err(|ContainedPanic { message, location: line }| {
            let (part, row, key) = self.job.dataset.location_in_words(sample, location);
            Error::Defect { part, row, key, message, location: line }
        })?;
        prepared.map_err(|why| self.job.dataset.unprepared((sample, location), why))
    }
}

/// Where a sample is in the order of consumption of all ranks.
pub(super) fn use_of(
    batching: &Batching,
    (epoch, batch): (u32, u32),
    (sample, at): (u64, usize),
) -> Use {
    let rank = batching.rank();
    let number = u64::from(batch) * u64::from(rank.ranks) + u64::from(rank.rank);
    Use { epoch, sample, position: number * u64::from(batching.batch_size()) + at as u64 }
}
