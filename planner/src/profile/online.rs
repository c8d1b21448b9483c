//! Executes the operations after a cut, as each epoch does.

use super::choice::Choice;
use super::direct::DirectReader;
use super::memory;
use super::meters::{Metering, context_switches};
use super::runs::Run;
use super::store::{Record, Store};
use super::workers::each;
use crate::Error;
use crate::statistics::Moments;
use crate::vocabulary::{Codec, Form};
use meetpoint_format::checksum::crc32c;
use meetpoint_format::recipe::{Recipe, TensorSpec};
use meetpoint_host::energy::Meters;
use meetpoint_kernels::decode::Decoder;
use meetpoint_kernels::{Cpu, Picture, SampleId, SamplePreparer, Tensor};
use meetpoint_prepare::codec::decompress;
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The expected sample: type and SHA-256 of its tensor.
pub(super) type Expected = (TensorSpec, [u8; 32]);

/// Samples in memory, decompressed.
pub(super) type Cached = Vec<Vec<u8>>;

/// The recipe and samples of all runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) choice: &'a Choice,
    pub(super) seed: u64,
    pub(super) stop: &'a AtomicBool,
}

impl Work<'_> {
    /// An error once a stop was requested.
    pub(super) fn check_stop(&self) -> Result<(), Error> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    }
}

/// What one thread needs to prepare samples from a store.
pub(super) struct Resumer<'a> {
    work: Work<'a>,
    pub(super) store: &'a Store,
    preparer: SamplePreparer,
    decoder: Decoder,
    picture: Picture,
    stored: Vec<u8>,
    /// The sample that was loaded last.
    pub(super) raw: Vec<u8>,
}

impl<'a> Resumer<'a> {
    pub(super) fn new(work: Work<'a>, store: &'a Store) -> Self {
        let cpu = Cpu::detect();
        Self {
            work,
            store,
            preparer: SamplePreparer::new(work.recipe, cpu),
            decoder: Decoder::new(cpu),
            picture: Picture::default(),
            stored: Vec::new(),
            raw: Vec::new(),
        }
    }

    /// The error of a sample that cannot be read back.
    pub(super) fn damaged(&self, index: usize) -> Error {
        let path = self.store.path(index).to_path_buf();
        Error::Stored { path, key: self.work.choice.key(index) }
    }

    /// Checks, decompresses and prepares stored bytes.
    fn prepare_stored(&mut self, index: usize, stored: &[u8]) -> Result<Tensor, Error> {
        let mut raw = std::mem::take(&mut self.raw);
        let content = match self.store.is_intact(index, stored) {
            true => decompress(self.store.codec, stored, &mut raw),
            false => None,
        };
        let prepared = match content {
            Some(content) => self.prepare(index, content),
            None => Err(self.damaged(index)),
        };
        self.raw = raw;
        prepared
    }

    /// Reads, checks and decompresses a sample into `self.raw`.
    pub(super) fn load(&mut self, index: usize) -> Result<(), Error> {
        let is_whole = self.store.read(index, &mut self.stored)?;
        let raw_bytes = self.store.records[index].raw_bytes;
        let raw = decompress(self.store.codec, &self.stored, &mut self.raw);
        let is_whole = is_whole && raw.is_some_and(|raw| raw.len() as u64 == raw_bytes);
        if !is_whole {
            return Err(self.damaged(index));
        }
        if self.store.codec == Codec::None {
            std::mem::swap(&mut self.raw, &mut self.stored);
        }
        Ok(())
    }

    /// Copies a sample from a cache, checks it like a loader, and prepares it.
    fn prepare_cached(&mut self, index: usize, content: &[u8]) -> Result<Tensor, Error> {
        let mut raw = std::mem::take(&mut self.raw);
        raw.clear();
        raw.extend_from_slice(content);
        std::hint::black_box(crc32c(&raw));
        let prepared = self.prepare(index, &raw);
        self.raw = raw;
        prepared
    }

    /// Prepares a sample from its decompressed bytes.
    pub(super) fn prepare(&mut self, index: usize, raw: &[u8]) -> Result<Tensor, Error> {
        let Work { choice, seed, .. } = self.work;
        let id = SampleId { seed, epoch: 0, sample: choice.samples[index] };
        let point = &self.store.point;
        let Record { spec, .. } = self.store.records[index];
        let key = || choice.key(index);
        let mut reserved = None;
        let prepared = match (point.form, spec) {
            (Form::Jpeg, Some(spec)) => {
                reserved = memory::for_decoding(raw, key)?;
                let picture = &mut self.picture;
                self.decoder.decode_into(raw.into(), None, picture).and_then(|()| {
                    if spec.channels == 1 {
                        // A picture with one channel is decoded to three equal channels.
                        picture.pixels = picture.pixels.iter().step_by(3).copied().collect();
                    }
                    self.preparer.resume(point.operations, (&spec, &picture.pixels), id)
                })
            }
            (_, Some(spec)) => self.preparer.resume(point.operations, (&spec, raw), id),
            (_, None) => {
                reserved = memory::for_preparing(&self.preparer, raw, id, key)?;
                self.preparer.prepare_tensor(raw.into(), id)
            }
        };
        if reserved.is_some() {
            self.preparer.free_pictures();
            self.decoder.free_pictures();
            self.picture = Picture::default();
        }
        prepared.map_err(|source| Error::Sample {
            strategy: self.store.name(),
            key: choice.key(index),
            source,
        })
    }
}

/// The result of the whole recipe for each chosen sample, from its file.
pub(super) fn expected(work: Work<'_>, threads: usize) -> Result<Vec<Expected>, Error> {
    let Work { recipe, choice, seed, stop } = work;
    let begin = || (SamplePreparer::new(recipe, Cpu::detect()), Vec::new());
    let prepare = |(preparer, list): &mut (SamplePreparer, Vec<_>), index| {
        let file = choice.file(index)?;
        let id = SampleId { seed, epoch: 0, sample: choice.samples[index] };
        let reserved = memory::for_preparing(preparer, &file, id, || choice.key(index))?;
        let tensor = preparer.prepare_tensor((&file[..]).into(), id).map_err(|source| {
            Error::Sample { strategy: "the whole recipe".into(), key: choice.key(index), source }
        })?;
        if reserved.is_some() {
            preparer.free_pictures();
        }
        list.push((index, (tensor.spec, digest(&tensor))));
        Ok(())
    };
    let lists = each(threads, choice.len(), stop, begin, prepare, |(_, list)| list)?;
    let mut all: Vec<(usize, Expected)> = lists.concat();
    all.sort_by_key(|(index, _)| *index);
    Ok(all.into_iter().map(|(_, expected)| expected).collect())
}

fn digest(tensor: &Tensor) -> [u8; 32] {
    Sha256::digest(&tensor.data).into()
}

/// Checks that every sample of an exact store is prepared to the expected bits.
pub(super) fn check(
    work: Work<'_>,
    store: &Store,
    threads: usize,
    expected: &[Expected],
) -> Result<(), Error> {
    let begin = || Resumer::new(work, store);
    let compare = |resumer: &mut Resumer<'_>, index| {
        resumer.load(index)?;
        let raw = std::mem::take(&mut resumer.raw);
        let tensor = resumer.prepare(index, &raw)?;
        resumer.raw = raw;
        if store.point.form.is_exact() && (tensor.spec, digest(&tensor)) != expected[index] {
            let (strategy, key) = (store.name(), work.choice.key(index));
            return Err(Error::NotIdentical { strategy, key });
        }
        Ok(())
    };
    each(threads, store.records.len(), work.stop, begin, compare, drop)?;
    Ok(())
}

/// All samples of a store, decompressed, for an application cache.
pub(super) fn cached(work: Work<'_>, store: &Store) -> Result<Cached, Error> {
    let begin = || (Resumer::new(work, store), Cached::new());
    let load = |(resumer, list): &mut (Resumer<'_>, Cached), index| {
        resumer.load(index)?;
        list.push(std::mem::take(&mut resumer.raw));
        Ok(())
    };
    // A single thread, so that they are in order.
    let lists = each(1, store.records.len(), work.stop, begin, load, |(_, list)| list)?;
    Ok(lists.concat())
}

/// Maximum number of samples that a thread takes at a time from the drive, so that it can read
/// ahead.
const SAMPLES_TAKEN_MAX: usize = 32;

/// Prepares every sample once, read directly from the drive, and measures it.
pub(super) fn run_cold(
    work: Work<'_>,
    store: &Store,
    threads: usize,
    meters: &mut Meters,
) -> Result<Run, Error> {
    let samples = store.records.len();
    let taken = samples.div_ceil(4 * threads).clamp(1, SAMPLES_TAKEN_MAX);
    // Opened before the clock starts, as in a loader, and used once: a loader's memory is faulted
    // in during its first batches, which are few in an epoch but would be many of these samples.
    let warm = |_| {
        let (mut reader, mut resumer) = (DirectReader::open(store)?, Resumer::new(work, store));
        // Without O_DIRECT, this would put samples into the page cache.
        if reader.is_direct()? {
            let first = 0..taken.min(samples);
            reader.read(first, &mut |index, stored| {
                resumer.prepare_stored(index, stored).map(|_| ())
            })?;
        }
        Ok((reader, resumer))
    };
    let warmed: Result<Vec<_>, Error> = (0..threads).map(warm).collect();
    let warmed = Mutex::new(warmed?);
    let metering = Metering::begin(meters);
    let begin = || {
        let mut warmed = warmed.lock().unwrap_or_else(PoisonError::into_inner);
        let (reader, resumer) = warmed.pop().expect("one for each thread");
        (reader, resumer, Moments::default(), context_switches())
    };
    let prepare = |state: &mut (DirectReader<'_>, Resumer<'_>, Moments, u64), group: usize| {
        let (reader, resumer, per_sample, _) = state;
        let range = group * taken..samples.min((group + 1) * taken);
        let mut begun = Instant::now();
        reader.read(range, &mut |index, stored| {
            std::hint::black_box(&resumer.prepare_stored(index, stored)?.data);
            let ended = Instant::now();
            per_sample.add((ended - begun).as_secs_f64());
            begun = ended;
            Ok(())
        })
    };
    let end = |(_, _, per_sample, before): (DirectReader<'_>, Resumer<'_>, Moments, u64)| {
        (per_sample, context_switches().saturating_sub(before))
    };
    let ended = each(threads, samples.div_ceil(taken), work.stop, begin, prepare, end)?;
    Ok(ended_run(metering, meters, samples, &ended))
}

/// Combines the results of the threads of a run.
fn ended_run(
    metering: Metering,
    meters: &mut Meters,
    samples: usize,
    threads: &[(Moments, u64)],
) -> Run {
    let switches = threads.iter().map(|(_, switches)| switches).sum();
    let usage = metering.end(switches, meters);
    let mut per_sample = Moments::default();
    threads.iter().for_each(|(of_thread, _)| per_sample.merge(*of_thread));
    Run { usage, samples, per_sample, gpu_seconds: None }
}

/// Prepares every sample once, from the page cache or from memory, and measures it.
pub(super) fn run(
    work: Work<'_>,
    store: &Store,
    threads: usize,
    cached: Option<&Cached>,
    meters: &mut Meters,
) -> Result<Run, Error> {
    let prepare_one = |resumer: &mut Resumer<'_>, index: usize| {
        match cached {
            Some(cached) => {
                std::hint::black_box(&resumer.prepare_cached(index, &cached[index])?.data);
            }
            None => {
                resumer.load(index)?;
                let raw = std::mem::take(&mut resumer.raw);
                let prepared = resumer.prepare(index, &raw);
                resumer.raw = raw;
                std::hint::black_box(&prepared?.data);
            }
        }
        Ok::<(), Error>(())
    };
    // As in a cold run, memory is faulted in before the clock starts.
    let warm = |_| {
        let mut resumer = Resumer::new(work, store);
        prepare_one(&mut resumer, 0).map(|()| resumer)
    };
    let warmed: Result<Vec<_>, Error> = (0..threads).map(warm).collect();
    let warmed = Mutex::new(warmed?);
    let metering = Metering::begin(meters);
    let begin = || {
        let mut warmed = warmed.lock().unwrap_or_else(PoisonError::into_inner);
        let resumer = warmed.pop().expect("one for each thread");
        (resumer, Moments::default(), context_switches())
    };
    let prepare = |(resumer, per_sample, _): &mut (Resumer<'_>, Moments, u64), index: usize| {
        let begun = Instant::now();
        prepare_one(resumer, index)?;
        per_sample.add(begun.elapsed().as_secs_f64());
        Ok(())
    };
    let end = |(_, per_sample, before): (Resumer<'_>, Moments, u64)| {
        (per_sample, context_switches().saturating_sub(before))
    };
    let samples = store.records.len();
    let ended = each(threads, samples, work.stop, begin, prepare, end)?;
    Ok(ended_run(metering, meters, samples, &ended))
}
