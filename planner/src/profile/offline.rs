//! Executes the operations before a cut once, and stores their results.

use super::choice::Choice;
use super::memory;
use super::store::{Store, Writer};
use super::workers::each;
use crate::Error;
use crate::jpeg::encode_jpeg;
use crate::statistics::Moments;
use crate::vocabulary::{Codec, Form, Point};
use meetpoint_format::recipe::{Recipe, TensorSpec};
use meetpoint_kernels::jpeg::{self as codec, to_form};
use meetpoint_kernels::{Cpu, ImageFormat, SampleId, SamplePreparer, Tensor};
use meetpoint_prepare::codec::compress;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Quality of pictures that are re-encoded as JPEG, 1 to 100; without chroma subsampling.
pub const JPEG_QUALITY: u8 = 95;

/// The cost of storing the chosen samples.
#[derive(Debug)]
pub(super) struct Offline {
    pub(super) store: Store,
    /// From the first read until the last byte is on the drive.
    pub(super) seconds: f64,
    /// Seconds of a thread for each sample, including writing.
    pub(super) per_sample: Moments,
    /// Share of the threads' time during which samples were written.
    pub(super) save_share: f64,
}

/// The recipe up to a point; `None` for forms without executed operations.
pub(super) fn beginning(recipe: &Recipe, point: &Point) -> Option<Recipe> {
    match point.form {
        Form::Files | Form::Packed | Form::CoefficientsFast | Form::CoefficientsCompact => None,
        Form::Prepared | Form::Jpeg => Some(recipe.beginning(point.operations)),
    }
}

/// Builds the stored form of chosen samples, on one thread.
struct StoredSampleBuilder<'a> {
    choice: &'a Choice,
    point: &'a Point,
    preparer: Option<SamplePreparer>,
}

impl StoredSampleBuilder<'_> {
    /// The stored content of a sample, before compression.
    fn build(&mut self, index: usize) -> Result<(Vec<u8>, Option<TensorSpec>), Error> {
        let file = self.choice.file(index)?;
        let form = match self.point.form {
            Form::Files | Form::Packed => return Ok((file, None)),
            Form::CoefficientsFast => codec::Form::Fast,
            Form::CoefficientsCompact => codec::Form::Compact,
            Form::Prepared => return self.prepare(index, &file).map(|it| (it.data, Some(it.spec))),
            Form::Jpeg => {
                let tensor = self.prepare(index, &file)?;
                return Ok((self.encode(index, &tensor)?, Some(tensor.spec)));
            }
        };
        // As in packing, other formats and JPEGs that could not be restored exactly stay files.
        let stored = match ImageFormat::of(&file) {
            Some(ImageFormat::Jpeg) => {
                let _reserved = memory::for_conversion(&file, || self.choice.key(index))?;
                to_form(&file, form).unwrap_or(file)
            }
            _ => file,
        };
        Ok((stored, None))
    }

    fn prepare(&mut self, index: usize, file: &[u8]) -> Result<Tensor, Error> {
        let preparer = self.preparer.as_mut().expect("a prepared form has a beginning");
        // The operations are deterministic: no random parameter depends on the id.
        let id = SampleId { seed: 0, epoch: 0, sample: self.choice.samples[index] };
        let reserved = memory::for_preparing(preparer, file, id, || self.choice.key(index))?;
        let prepared = preparer.prepare_tensor(file.into(), id);
        if reserved.is_some() {
            preparer.free_pictures();
        }
        prepared.map_err(|source| Error::Sample {
            strategy: self.point.to_string(),
            key: self.choice.key(index),
            source,
        })
    }

    fn encode(&self, index: usize, tensor: &Tensor) -> Result<Vec<u8>, Error> {
        encode_jpeg(tensor, JPEG_QUALITY).ok_or_else(|| Error::JpegSide {
            strategy: self.point.to_string(),
            key: self.choice.key(index),
            width: tensor.spec.width,
            height: tensor.spec.height,
        })
    }
}

/// Stores the chosen samples at a point, with a given number of threads.
pub(super) fn materialize(
    recipe: &Recipe,
    choice: &Choice,
    (point, codec): (&Point, Codec),
    threads: usize,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<Offline, Error> {
    let begun = Instant::now();
    let writer = Writer::create(folder, point, codec, choice.len())?;
    let beginning = beginning(recipe, point);
    let begin = || {
        let preparer = beginning.as_ref().map(|it| SamplePreparer::new(it, Cpu::detect()));
        (StoredSampleBuilder { choice, point, preparer }, Moments::default(), 0.0)
    };
    let build = |(builder, per_sample, saving): &mut (StoredSampleBuilder<'_>, Moments, f64),
                 index| {
        let begun = Instant::now();
        let (raw, spec) = builder.build(index)?;
        let raw_bytes = raw.len() as u64;
        let stored = compress(codec, raw);
        let processed = begun.elapsed();
        writer.put(index, &stored, raw_bytes, spec)?;
        let seconds = begun.elapsed();
        per_sample.add(seconds.as_secs_f64());
        *saving += (seconds - processed).as_secs_f64();
        Ok(())
    };
    let end = |(_, per_sample, saving)| (per_sample, saving);
    let totals = each(threads, choice.len(), stop, begin, build, end)?;
    let syncing = Instant::now();
    let store = writer.finish()?;
    let synced = syncing.elapsed().as_secs_f64();
    let seconds = begun.elapsed().as_secs_f64();
    let (mut per_sample, mut saving) = (Moments::default(), synced * threads as f64);
    for (of_thread, saving_of_thread) in totals {
        per_sample.merge(of_thread);
        saving += saving_of_thread;
    }
    let busy = per_sample.mean() * per_sample.count() as f64 + synced * threads as f64;
    let save_share = if busy > 0.0 { (saving / busy).min(1.0) } else { 0.0 };
    Ok(Offline { store, seconds, per_sample, save_share })
}
