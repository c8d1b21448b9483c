//! Writes a dataset with the results of the first operations of a recipe, so that each epoch
//! applies only the rest.
//!
//! In reading order: [`find_cut`] (where the recipe is cut), [`PrepareOptions`] and
//! [`materialize`], `trial` (a few samples before anything is written), `ordered` (many threads,
//! rows in order), [`sharded`] (the same on many hosts).

mod cut;
mod ordered;
pub mod sharded;
mod trial;

use crate::Error;
use crate::jpeg::encode_jpeg;
use crate::vocabulary::{Codec, Form, Point};
use meetpoint_datasets::operations::carried;
use meetpoint_datasets::options::Choice;
use meetpoint_datasets::shards::PartRule;
use meetpoint_datasets::writer::{
    PART_BYTES_TARGET, ResumeConflict, TOOL, WriterInput, WriterInputs,
};
use meetpoint_datasets::{
    Error as DatasetsError, LeftOut, Message, OnError, Writer, WriterOptions,
};
use meetpoint_diagnose::Setting;
use meetpoint_format::checksum::hexadecimal;
use meetpoint_format::dataset::{
    Columns, ContentKind, Prepared, Provenance, Row, Stored, encode_sample, schema::IMAGE_BYTES_MAX,
};
use meetpoint_format::recipe::Recipe;
use meetpoint_kernels::{Cpu, SampleId};
use meetpoint_prepare::codec::compress;
use meetpoint_prepare::{Dataset, Error as PrepareError, OnePreparer};
use meetpoint_storage::MemoryLimit;
use ordered::in_order;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use crate::cut_error::CutError;
pub use cut::find_cut;

/// Maximum bytes of prepared samples that wait to be written; a single sample may have more.
const BYTES_AHEAD_MAX: u64 = 256 << 20;

/// The operations to execute, and how their results are stored.
#[derive(Debug, Clone)]
pub struct PrepareOptions {
    /// Where the recipe is cut.
    pub point: Point,
    /// Compression of each sample; none for pictures that are re-encoded as JPEG.
    pub codec: Codec,
    /// Quality of pictures, if the point re-encodes them as JPEG.
    pub jpeg_quality: u8,
    /// Replace a dataset at the destination.
    pub force: bool,
    /// Resume the same command if it was killed or stopped.
    pub resume: bool,
    /// How to handle samples that cannot be read or decoded.
    pub on_error: OnError,
    /// Bytes after which the next part begins, unless `part_rule` is set.
    pub part_bytes_target: u64,
    /// When the next part begins, determined by the lengths of the source's samples alone, so that
    /// shards on many hosts give the same bytes as one process.
    pub part_rule: Option<PartRule>,
    /// The time for the provenance; without it, the same input gives the same bytes.
    pub time: Option<String>,
    /// Threads; 0 for one per core.
    pub threads: usize,
    /// Set by another thread to stop.
    pub stop: Arc<AtomicBool>,
}

impl PrepareOptions {
    /// Options for a point, with the defaults of the command line.
    pub fn new(point: Point, codec: Codec) -> Self {
        Self {
            point,
            codec,
            jpeg_quality: crate::profile::JPEG_QUALITY,
            force: false,
            resume: false,
            on_error: OnError::Fail,
            part_bytes_target: PART_BYTES_TARGET,
            part_rule: None,
            time: None,
            threads: 0,
            stop: Arc::default(),
        }
    }

    fn is_jpeg(&self) -> bool {
        self.point.form == Form::Jpeg
    }
}

/// The prepared dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PrepareSummary {
    /// The dataset.
    pub destination: PathBuf,
    /// Samples in it.
    pub samples: u64,
    /// The cut, as a profile names it.
    pub cut: String,
    /// How samples are stored.
    pub prepared: Prepared,
    /// Stored bytes of the samples of the source.
    pub source_bytes: u64,
    /// Bytes of all prepared samples.
    pub stored_bytes: u64,
    /// Bytes of the dataset's files.
    pub file_bytes: u64,
    /// Part files.
    pub parts: u64,
    /// Parts that a killed command had already completed.
    pub parts_resumed: u64,
    /// Samples that cannot be read or decoded, skipped because of [`OnError::Skip`].
    pub unreadable: Vec<LeftOut>,
    /// Removed files of killed processes.
    pub cleaned: Vec<PathBuf>,
    /// Notes on other files of killed processes, in sentences.
    pub notes: Vec<String>,
    /// Whether a dataset was replaced.
    pub replaced: bool,
}

/// Progress of preparing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrepareProgress {
    /// Prepared samples.
    pub done: u64,
    /// All samples.
    pub samples: u64,
}

/// What the journal records at the end of a part: where to resume.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct State {
    next: u64,
    left_out: Vec<LeftOut>,
}

/// Builds the stored form of samples of a dataset, on one thread.
struct StoredSampleBuilder<'a> {
    preparer: OnePreparer<'a>,
    point: &'a Point,
    codec: Codec,
    jpeg_quality: u8,
}

impl<'a> StoredSampleBuilder<'a> {
    fn new(
        dataset: &'a Dataset,
        beginning: &Recipe,
        options: &'a PrepareOptions,
    ) -> Result<Self, Error> {
        let preparer = OnePreparer::new(dataset, beginning, Cpu::detect())?;
        let PrepareOptions { point, codec, jpeg_quality, .. } = options;
        Ok(Self { preparer, point, codec: *codec, jpeg_quality: *jpeg_quality })
    }

    /// The stored form of a sample.
    fn build(&mut self, dataset: &Dataset, sample: u64) -> Result<Vec<u8>, Error> {
        // The operations are deterministic: no random parameter depends on the id.
        let id = SampleId { seed: 0, epoch: 0, sample };
        let tensor = self.preparer.prepare(sample, id)?;
        let key = || dataset.key(sample).unwrap_or_else(|_| format!("at index {sample}"));
        let content = if self.point.form == Form::Jpeg {
            encode_jpeg(&tensor, self.jpeg_quality).ok_or_else(|| Error::JpegSide {
                strategy: self.point.to_string(),
                key: key(),
                width: tensor.spec.width,
                height: tensor.spec.height,
            })?
        } else {
            encode_sample(&tensor.spec, &tensor.data)
        };
        if content.len() as u64 > IMAGE_BYTES_MAX {
            let (key, bytes) = (key(), content.len() as u64);
            return Err(Error::LargeSample { key, bytes, limit: IMAGE_BYTES_MAX });
        }
        Ok(if self.point.form == Form::Jpeg { content } else { compress(self.codec, content) })
    }
}

/// Writes the results of a recipe up to a point, for all samples of `dataset`, to the new dataset
/// `to`.
///
/// A few samples are prepared first: their sizes predict whether the result fits the drive, and,
/// unless pictures are re-encoded as JPEG, the remaining operations applied to them must be
/// bit-identical to the whole recipe. The result appears complete or not at all.
pub fn materialize(
    dataset: &Dataset,
    recipe: &Recipe,
    to: &Path,
    options: &PrepareOptions,
    progress: &mut dyn FnMut(PrepareProgress),
) -> Result<PrepareSummary, Error> {
    if options.part_rule.is_some() {
        return sharded::prepare_alone(dataset, recipe, to, options, progress);
    }
    let Point { operations, .. } = options.point;
    refuse_prepared(dataset, recipe, operations)?;
    let (prepared, columns, carried) = prepared_columns(dataset, recipe, options);
    let beginning = recipe.beginning(operations);
    let written = writer_options(dataset, &prepared, options);
    Writer::may_write(to, &written)?;
    trial::run(dataset, recipe, to, options)?;
    let mut writer = Writer::create(to, Arc::new(columns), &written)?;
    let parts_resumed = writer.states().len() as u64;
    let mut state = match writer.states().last() {
        None => State::default(),
        Some(text) => serde_json::from_str(text).map_err(|_| DatasetsError::ResumeDiffers {
            path: writer.place().to_path_buf(),
            difference: Box::new(ResumeConflict::Journal { problem: text.clone() }),
        })?,
    };
    let work = Work { dataset, carried: &carried, beginning: &beginning, options };
    match work.run(&mut writer, &mut state, progress) {
        Ok(()) => (),
        Err(Error::Stopped) => return Err(writer.with_remains(DatasetsError::Interrupted).into()),
        Err(Error::Datasets(error)) => return Err(writer.with_remains(*error).into()),
        Err(error) => {
            writer.discard();
            return Err(error);
        }
    }
    let provenance = provenance(dataset, &prepared, options, state.left_out.len() as u64);
    let manifest = dataset.manifest();
    let stored = Stored { source_bytes: manifest.image_bytes, ..Stored::default() };
    let written = writer.finish(manifest.labels.clone(), stored, provenance)?;
    Ok(PrepareSummary {
        destination: written.destination,
        samples: written.manifest.samples,
        cut: options.point.to_string(),
        prepared,
        source_bytes: manifest.image_bytes,
        stored_bytes: written.manifest.image_bytes,
        file_bytes: written.file_bytes,
        parts: written.manifest.parts.len() as u64,
        parts_resumed,
        unreadable: state.left_out,
        cleaned: written.cleaned,
        notes: written.notes,
        replaced: written.replaced,
    })
}

/// How samples are stored, the columns of the result, and the further columns that rows carry over.
fn prepared_columns(
    dataset: &Dataset,
    recipe: &Recipe,
    options: &PrepareOptions,
) -> (Prepared, Columns, Vec<usize>) {
    let quality = options.is_jpeg().then_some(options.jpeg_quality);
    let codec = if options.is_jpeg() { Codec::None } else { options.codec };
    let prepared = Prepared::of(recipe, options.point.operations, codec, quality);
    let (columns, carried) = carried(dataset.columns());
    let columns = Columns {
        kind: ContentKind::of_prepared(&prepared),
        name: String::new(),
        prepared: Some(prepared.clone()),
        ..columns
    };
    (prepared, columns, carried)
}

/// Refuses a dataset that was prepared as far or with losses.
fn refuse_prepared(dataset: &Dataset, recipe: &Recipe, operations: usize) -> Result<(), Error> {
    let Some(start) = dataset.start(recipe)? else { return Ok(()) };
    let is_lossy = dataset.manifest().prepared().is_some_and(|it| it.jpeg_quality.is_some());
    if start.operations() >= operations || is_lossy {
        let path = dataset.path().to_path_buf();
        return Err(Error::AlreadyPrepared { path, operations: start.operations() });
    }
    Ok(())
}

/// The options that determine rows and parts.
fn writer_options(
    dataset: &Dataset,
    prepared: &Prepared,
    options: &PrepareOptions,
) -> WriterOptions {
    let inputs = WriterInputs::default()
        .with(WriterInput::Operation, "prepare")
        .with(WriterInput::Parents, hexadecimal(&dataset.manifest_sha256()))
        .option(Setting::Cut, Some(options.point.to_string()))
        .option(Setting::Recipe, Some(prepared.recipe_sha256.clone()))
        .option(Setting::Codec, Some(prepared.codec.name()))
        .option(Setting::LossyJpeg, prepared.jpeg_quality.map(u64::from))
        .option(Setting::OnError, Some(options.on_error.name()))
        .option(Setting::PartSize, Some(options.part_bytes_target));
    WriterOptions {
        force: options.force,
        part_bytes_target: options.part_bytes_target,
        sources: vec![dataset.path().to_path_buf()],
        inputs,
        resume: options.resume,
    }
}

fn provenance(
    dataset: &Dataset,
    prepared: &Prepared,
    options: &PrepareOptions,
    skipped: u64,
) -> Provenance {
    let mut said = BTreeMap::from([
        ("operation".to_owned(), "prepare".to_owned()),
        ("cut".to_owned(), options.point.to_string()),
        ("codec".to_owned(), prepared.codec.name().to_owned()),
        ("parents".to_owned(), hexadecimal(&dataset.manifest_sha256())),
    ]);
    if let Some(quality) = prepared.jpeg_quality {
        said.insert("lossy-jpeg".to_owned(), quality.to_string());
    }
    Provenance {
        tool: TOOL.to_owned(),
        source: dataset.path().display().to_string(),
        skipped,
        options: said,
        time: options.time.clone(),
        recipe: None,
    }
}

/// The inputs of the preparation.
struct Work<'a> {
    dataset: &'a Dataset,
    /// Further columns that are copied.
    carried: &'a [usize],
    beginning: &'a Recipe,
    options: &'a PrepareOptions,
}

impl Work<'_> {
    /// Prepares the remaining samples and writes the rows.
    fn run(
        &self,
        writer: &mut Writer,
        state: &mut State,
        progress: &mut dyn FnMut(PrepareProgress),
    ) -> Result<(), Error> {
        let samples = self.dataset.len();
        // After the first sample that cannot be read, the rest is only checked.
        let mut is_writing = true;
        progress(PrepareProgress { done: state.next, samples });
        self.each(state.next..samples, &mut |sample, prepared| {
            match prepared {
                PreparedRow::Row(row) if is_writing => {
                    let noted = &mut || {
                        let state = State { next: sample, left_out: state.left_out.clone() };
                        serde_json::to_string(&state).expect("texts and numbers serialise")
                    };
                    writer.push_noting(*row, noted)?;
                }
                PreparedRow::Row(_) => (),
                PreparedRow::LeftOut(left_out) => {
                    is_writing = self.options.on_error == OnError::Skip;
                    state.left_out.push(left_out);
                }
            }
            progress(PrepareProgress { done: sample + 1, samples });
            Ok(())
        })?;
        if !is_writing || (writer.samples() == 0 && !state.left_out.is_empty()) {
            let (files, checked) = (std::mem::take(&mut state.left_out), samples);
            // The incomplete result is not useful.
            return Err(Error::Unreadable(Box::new(DatasetsError::Unreadable { files, checked })));
        }
        Ok(())
    }

    /// Prepares a range of samples, and passes on their rows in order.
    fn each(
        &self,
        samples: Range<u64>,
        take: &mut dyn FnMut(u64, PreparedRow) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { dataset, beginning, options, .. } = self;
        let threads = match options.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads if threads > crate::profile::THREADS_MOST => {
                let most = crate::profile::THREADS_MOST as u64;
                let (name, setting) = ("threads", Setting::Threads);
                return Err(Error::Number { name, setting, value: threads as u64, least: 1, most });
            }
            threads => threads,
        };
        let ahead = BYTES_AHEAD_MAX.min(MemoryLimit::of_this_process().bytes / 16);
        let begin = || StoredSampleBuilder::new(dataset, beginning, options);
        let build = |builder: &mut Result<StoredSampleBuilder<'_>, Error>, sample| match builder {
            _ if options.stop.load(Ordering::Relaxed) => Err(Error::Stopped),
            Ok(builder) => builder.build(dataset, sample),
            Err(_) => Err(StoredSampleBuilder::new(dataset, beginning, options)
                .err()
                .unwrap_or(Error::Stopped)),
        };
        let bytes = |made: &Result<Vec<u8>, Error>| made.as_ref().map_or(0, |it| it.len() as u64);
        let mut rows = DatasetRows { work: self, record_batch: None };
        in_order(samples, (threads, ahead), begin, build, bytes, |sample, made| {
            if options.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            let key = dataset.key(sample)?;
            let prepared = match made {
                Ok(content) => PreparedRow::Row(Box::new(rows.row(sample, key, content)?)),
                Err(error) => match why_left_out(&error) {
                    Some(reason) => PreparedRow::LeftOut(LeftOut { path: key, reason }),
                    None => return Err(error),
                },
            };
            take(sample, prepared)
        })
    }
}

/// Why a sample that cannot be prepared is unreadable; `None` if the error is not the sample's.
fn why_left_out(error: &Error) -> Option<Message> {
    match error {
        Error::Dataset(PrepareError::DecodeMemory { source, .. }) => {
            Some(Message::from(source.to_string()).remedy(source.remedy()))
        }
        Error::Dataset(error) if error.is_damage() => Some(error.what().into()),
        _ => None,
    }
}

/// The result of a sample.
enum PreparedRow {
    Row(Box<Row>),
    /// It cannot be read or decoded.
    LeftOut(LeftOut),
}

/// Rows in order, with their further columns.
struct DatasetRows<'a> {
    work: &'a Work<'a>,
    /// The most recently read record batch with its further columns.
    record_batch: Option<(usize, Arc<arrow_array::RecordBatch>)>,
}

impl DatasetRows<'_> {
    fn row(&mut self, sample: u64, key: String, content: Vec<u8>) -> Result<Row, Error> {
        let Work { dataset, carried, .. } = self.work;
        let label = dataset.locate(sample)?.label;
        let mut extra = None;
        if !carried.is_empty() {
            let (record_batch, row) = dataset.batch_of(sample)?;
            if self.record_batch.as_ref().is_none_or(|(number, _)| *number != record_batch) {
                let read = dataset.extra(record_batch, Some(carried))?;
                self.record_batch = Some((record_batch, Arc::new(read)));
            }
            extra = self.record_batch.as_ref().map(|(_, batch)| (Arc::clone(batch), row));
        }
        Ok(Row { key, image: content, label, entry_points: None, extra })
    }
}
