//! Prepared samples: the first operations of the recipe have been executed, and the rest is applied
//! to the stored result.

use crate::codec::{decompress, raw_bytes};
use crate::{Dataset, DecodeMemory, Error, Reserved};
use meetpoint_format::dataset::{Codec, SampleLocation, decode_sample};
use meetpoint_format::recipe::{Dtype, Layout, Recipe, SampleType, TensorSpec};
use meetpoint_kernels::decode::Decoder;
use meetpoint_kernels::{
    Cpu, Error as PictureError, Interrupt, Picture, SampleId, SamplePreparer, Tensor, numbers_of,
    probe,
};
use std::sync::Arc;

/// The position at which a recipe starts on prepared samples, after the operations that were
/// executed.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    /// Number of operations that were executed.
    operations: usize,
    /// Number of the first operation that was not executed, counting contained operations.
    first: usize,
    /// Type of the result of the executed operations.
    result: SampleType,
    codec: Codec,
    is_jpeg: bool,
}

impl Start {
    /// Number of operations that were executed.
    pub fn operations(&self) -> usize {
        self.operations
    }
}

impl Dataset {
    /// The position at which a recipe starts on the samples; `None` for unprepared samples. Refuses
    /// a recipe that does not begin with the operations that were executed.
    pub fn start(&self, recipe: &Recipe) -> Result<Option<Start>, Error> {
        let Some(prepared) = self.manifest().prepared() else { return Ok(None) };
        let beginning = prepared.beginning().expect("it was checked when it was opened");
        prepared
            .check(&beginning, recipe)
            .map_err(|source| Error::Prepared { path: self.path().to_path_buf(), source })?;
        Ok(Some(Self::start_of(&beginning, prepared.codec, prepared.jpeg_quality.is_some())))
    }

    /// The start after the operations that were executed.
    fn start_of(beginning: &Recipe, codec: Codec, is_jpeg: bool) -> Start {
        Start {
            operations: beginning.operations().len(),
            first: numbers_of(beginning.operations()),
            result: beginning.result(),
            codec,
            is_jpeg,
        }
    }

    /// The stored tensor of a prepared sample; `None` for unprepared samples.
    pub fn prepared_tensor(&self, sample: u64) -> Result<Option<Tensor>, Error> {
        let Some(prepared) = self.manifest().prepared() else { return Ok(None) };
        let beginning = prepared.beginning().expect("it was checked when it was opened");
        let start = Self::start_of(&beginning, prepared.codec, prepared.jpeg_quality.is_some());
        let location = self.locate(sample)?;
        let stored = self.read_located(sample, &location)?;
        let mut resumer = Resumer::new(start, Cpu::detect());
        let loaded = resumer.load(&stored).map(|(spec, data)| Tensor { spec, data: data.to_vec() });
        loaded.map(Some).map_err(|unprepared| self.unprepared((sample, &location), unprepared))
    }

    /// The error for a sample that could not be prepared, with its location.
    pub(crate) fn unprepared(
        &self,
        (sample, location): (u64, &meetpoint_format::dataset::SampleLocation),
        why: SampleFailure,
    ) -> Error {
        let place = || self.location_in_words(sample, location);
        match why {
            SampleFailure::Picture(PictureError::Interrupted) => Error::Interrupted,
            SampleFailure::Picture(PictureError::DoesNotFit(source)) => {
                let (part, row, key) = place();
                Error::RecipeDoesNotFit { part, row, key, source }
            }
            SampleFailure::Picture(source) => {
                let (part, row, key) = place();
                Error::Sample { part, row, key, source }
            }
            SampleFailure::Content(problem) => {
                let (part, row, key) = place();
                Error::PreparedSample { part, row, key, problem }
            }
        }
    }
}

/// Why a sample was not prepared.
#[derive(Debug)]
pub(crate) enum SampleFailure {
    /// An error of its picture, or of an operation on it.
    Picture(PictureError),
    /// Its stored content does not match the manifest.
    Content(String),
}

impl From<PictureError> for SampleFailure {
    fn from(error: PictureError) -> Self {
        Self::Picture(error)
    }
}

/// What one thread needs to apply the rest of a recipe to stored samples.
pub(crate) struct Resumer {
    start: Start,
    decoder: Decoder,
    picture: Picture,
    raw: Vec<u8>,
}

impl Resumer {
    pub(crate) fn new(start: Start, cpu: Cpu) -> Self {
        let (picture, raw) = Default::default();
        Self { start, decoder: Decoder::new(cpu), picture, raw }
    }

    pub(crate) fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.decoder.set_interrupt(interrupt);
    }

    /// Number of the first operation that was not executed.
    pub(crate) fn first(&self) -> usize {
        self.start.first
    }

    /// Compression of each stored sample; none for pictures stored as JPEG.
    pub(crate) fn codec(&self) -> Codec {
        self.start.codec
    }

    /// Frees the memory for a whole sample, which is otherwise reused.
    pub(crate) fn free(&mut self) {
        self.raw = Vec::new();
        self.picture = Picture::default();
        self.decoder.free_pictures();
    }

    /// Maximum bytes of memory for a sample, excluding its stored bytes and the result; `None` if
    /// the stored bytes are not a sample, which preparing refuses.
    pub(crate) fn memory_bytes(
        &self,
        preparer: &SamplePreparer,
        stored: &[u8],
        id: SampleId,
    ) -> Option<u64> {
        let Start { first, result, codec, .. } = self.start;
        let resumed = |spec: &TensorSpec| preparer.resume_bytes(first, spec, id).ok();
        if self.start.is_jpeg {
            let info = probe(stored).ok()?;
            let spec = result.tensor((info.height, info.width));
            // The decoder produces three channels.
            let decoded = 3 * u64::from(info.width) * u64::from(info.height);
            return Some(decoded + resumed(&spec)?);
        }
        if codec == Codec::None {
            return resumed(&decode_sample(stored, &result).ok()?.0);
        }
        let raw = raw_bytes(codec, stored)? as u64;
        Some(match result.size {
            Some(size) => raw + resumed(&result.tensor(size))?,
            // Its shape is known only after decompression: a picture has at most three planes of
            // this number of bytes, and is in memory twice.
            None => raw + 6 * raw,
        })
    }

    /// The result of the executed operations, from the stored bytes.
    pub(crate) fn load<'a>(
        &'a mut self,
        stored: &'a [u8],
    ) -> Result<(TensorSpec, &'a [u8]), SampleFailure> {
        let Start { result, codec, .. } = self.start;
        if self.start.is_jpeg {
            return self.decode(stored);
        }
        let name = codec.name();
        let content = decompress(codec, stored, &mut self.raw).ok_or_else(|| {
            SampleFailure::Content(format!("it cannot be decompressed as {name}"))
        })?;
        let (spec, data) = decode_sample(content, &result).map_err(SampleFailure::Content)?;
        Ok((spec, &content[data]))
    }

    fn decode(&mut self, stored: &[u8]) -> Result<(TensorSpec, &[u8]), SampleFailure> {
        let picture = &mut self.picture;
        self.decoder.decode_into(stored.into(), None, picture)?;
        let size = (picture.height, picture.width);
        if self.start.result.size.is_some_and(|expected| expected != size) {
            let problem = format!(
                "its picture is {} x {}, not the size that the recipe gives",
                size.0, size.1
            );
            return Err(SampleFailure::Content(problem));
        }
        let spec = self.start.result.tensor(size);
        assert_eq!((spec.dtype, spec.layout), (Dtype::Uint8, Layout::Nhwc), "a picture");
        if spec.channels == 1 {
            // A picture with one channel is decoded to three equal channels.
            let pixels = &mut picture.pixels;
            (0..pixels.len() / 3).for_each(|at| pixels[at] = pixels[3 * at]);
            pixels.truncate(pixels.len() / 3);
        }
        Ok((spec, &picture.pixels))
    }

    /// Applies the rest of the recipe to a stored sample, into `out`.
    pub(crate) fn prepare(
        &mut self,
        preparer: &mut SamplePreparer,
        stored: &[u8],
        targets: &[&[u8]],
        id: SampleId,
        into: (&mut [u8], &mut dyn FnMut()),
    ) -> Result<(), SampleFailure> {
        let first = self.start.first;
        let (spec, data) = self.load(stored)?;
        Ok(preparer.resume_with(first, (&spec, data), targets, id, into)?)
    }
}

impl Resumer {
    /// As [`Self::prepare`], if the shape of the result may depend on the sample: the tensor is
    /// appended to `out`, and its shape is returned.
    pub(crate) fn prepare_appended(
        &mut self,
        preparer: &mut SamplePreparer,
        stored: &[u8],
        targets: &[&[u8]],
        id: SampleId,
        into: (&mut Vec<u8>, &mut dyn FnMut()),
    ) -> Result<TensorSpec, SampleFailure> {
        let first = self.start.first;
        let (spec, data) = self.load(stored)?;
        Ok(preparer.resume_appended(first, (&spec, data), targets, id, into)?)
    }
}

/// Prepares single samples of a dataset in one thread, in any stored form.
pub struct OnePreparer<'a> {
    dataset: &'a Dataset,
    preparer: SamplePreparer,
    resumer: Option<Resumer>,
    /// Bytes of a picture that the recipe gives, if its size is fixed.
    result_bytes: Option<u64>,
    memory: Arc<DecodeMemory>,
}

impl<'a> OnePreparer<'a> {
    /// Refuses a recipe that does not match a prepared dataset. Large samples are decoded in the
    /// memory of this process for decoding, which all of its threads share.
    pub fn new(dataset: &'a Dataset, recipe: &Recipe, cpu: Cpu) -> Result<Self, Error> {
        let resumer = dataset.start(recipe)?.map(|start| Resumer::new(start, cpu));
        let (preparer, memory) =
            (SamplePreparer::new(recipe, cpu), DecodeMemory::of_this_process());
        let result_bytes = recipe.output().map(|spec| spec.bytes() as u64);
        Ok(Self { dataset, preparer, resumer, result_bytes, memory })
    }

    /// Shares other memory for decoding large samples.
    pub fn set_decode_memory(&mut self, memory: Arc<DecodeMemory>) {
        self.memory = memory;
    }

    /// Prepares only the pictures of these columns, if the recipe produces several per sample.
    pub fn set_columns(&mut self, wanted: Vec<usize>) {
        self.preparer.set_columns(wanted);
    }

    /// Prepares the pictures of a sample, by column; a recipe without views has one.
    pub fn prepare_all(&mut self, sample: u64, id: SampleId) -> Result<Vec<Vec<Tensor>>, Error> {
        if self.resumer.is_some() {
            return Ok(vec![vec![self.prepare(sample, id)?]]);
        }
        let location = self.dataset.locate(sample)?;
        self.check_stored(sample, &location)?;
        let stored = self.dataset.read_located(sample, &location)?;
        let reserved = self.reserve((sample, &location), &stored, id)?;
        let prepared = self.preparer.prepare_tensors((&stored[..]).into(), id);
        self.release(reserved);
        prepared.map_err(|why| self.dataset.unprepared((sample, &location), why.into()))
    }

    /// Refuses a sample whose stored bytes alone take too much memory.
    fn check_stored(&self, sample: u64, location: &SampleLocation) -> Result<(), Error> {
        let checked = self.memory.check_stored(location.bytes);
        checked.map_err(|why| self.dataset.too_large((sample, location), why))
    }

    /// Waits for the memory that preparing a sample takes, where that is much.
    fn reserve(
        &self,
        (sample, location): (u64, &SampleLocation),
        stored: &[u8],
        id: SampleId,
    ) -> Result<Option<Reserved>, Error> {
        let needed = match &self.resumer {
            None => self.preparer.memory_bytes(stored, id).ok(),
            Some(resumer) => resumer.memory_bytes(&self.preparer, stored, id),
        };
        // What cannot be estimated from its header is refused by the decoder.
        let Some(needed) = needed else { return Ok(None) };
        // The result with a copy of it, and the file, which a loader counts as batches and as
        // reads.
        let whole = probe(stored).map_or(0, |it| 3 * u64::from(it.width) * u64::from(it.height));
        let result = self.result_bytes.unwrap_or(whole);
        let needed = needed.saturating_add(2 * result).saturating_add(stored.len() as u64);
        self.memory
            .reserve(needed, &mut || true)
            .map_err(|_| self.dataset.too_large((sample, location), self.memory.refusal(needed)))
    }

    /// Frees the memory for whole pictures with its reservation.
    fn release(&mut self, reserved: Option<Reserved>) {
        if reserved.is_some() {
            self.preparer.free_pictures();
            self.resumer.iter_mut().for_each(Resumer::free);
        }
    }

    /// Prepares a sample as a loader does; `id` determines its random parameters. The recipe must
    /// produce one picture per sample.
    pub fn prepare(&mut self, sample: u64, id: SampleId) -> Result<Tensor, Error> {
        let location = self.dataset.locate(sample)?;
        self.check_stored(sample, &location)?;
        let stored = self.dataset.read_located(sample, &location)?;
        let reserved = self.reserve((sample, &location), &stored, id)?;
        let prepared = match &mut self.resumer {
            None => self.preparer.prepare_tensor((&stored[..]).into(), id).map_err(Into::into),
            Some(resumer) => {
                let first = resumer.start.first;
                resumer
                    .load(&stored)
                    .and_then(|(spec, data)| Ok(self.preparer.resume(first, (&spec, data), id)?))
            }
        };
        self.release(reserved);
        prepared.map_err(|why| self.dataset.unprepared((sample, &location), why))
    }
}
