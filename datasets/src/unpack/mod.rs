//! Exports samples of a dataset, or of any source, to a folder of another format, completely or not
//! at all.
//!
//! In reading order: [`unpack`] (a dataset), [`convert()`] (a source), `drive` (samples into a
//! sink), `foreign` (whether a folder holds something that would not be written again), [`sharded`]
//! (a source on many hosts).

mod convert;
mod drive;
mod foreign;
pub mod sharded;

pub use convert::{ConvertProgress, ConvertSummary, convert};

use crate::destination::{Destination, Replace, Staging};
use crate::jpeg::form_of;
use crate::sink::{self, Shards, SinkKind};
use crate::{Error, LeftOut, OnError};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use drive::{ExtraRow, Outcome, ReadSample, Written, drive};
use meetpoint_format::dataset::{Form, SampleLocation};
use meetpoint_kernels::{Error as PictureError, Interrupt};
use meetpoint_prepare::{Dataset, abandoning, original_until};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How to unpack.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct UnpackOptions {
    /// The kind of sink.
    pub sink: SinkKind,
    /// The size limits of files, for sinks with shards.
    pub shards: Shards,
    /// Further columns to leave out.
    pub without: Vec<String>,
    /// Replace a folder that contains only files that will be written again.
    pub force: bool,
    /// How to handle damaged samples, and those that the sink cannot store.
    pub on_error: OnError,
    /// Threads that read and write; 0 for as many as the machine has.
    #[serde(skip)]
    pub threads: usize,
    /// Set by another thread to stop: nothing is left behind.
    #[serde(skip)]
    pub stop: Arc<AtomicBool>,
}

impl UnpackOptions {
    /// Refuses options that exclude each other.
    fn check(&self) -> Result<(), Error> {
        match !self.sink.has_shards() && self.shards != Shards::default() {
            true => Err(Error::ShardsWithoutUse { sink: self.sink }),
            false => Ok(()),
        }
    }
}

/// The progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnpackProgress {
    /// Samples written or left out so far.
    pub samples_done: u64,
    /// All samples.
    pub samples: u64,
}

/// The result of unpacking.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct UnpackSummary {
    /// The folder.
    pub destination: PathBuf,
    /// The kind of sink.
    pub sink: SinkKind,
    /// Samples written.
    pub samples: u64,
    /// Files written.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Samples that were restored from the coefficient form.
    pub converted: u64,
    /// Samples of the dataset that packing re-wrote: their files have the same pixels as the
    /// original files, but different bytes.
    pub rewritten: u64,
    /// Values that the sink stores in another form than the dataset, as sentences.
    pub notes: Vec<String>,
    /// Further columns that were left out on request.
    pub without: Vec<String>,
    /// Samples that were left out by [`OnError::Skip`].
    pub damaged: Vec<LeftOut>,
    /// Leftovers of killed processes that were removed.
    pub cleaned: Vec<PathBuf>,
    /// Whether a folder was replaced.
    pub replaced: bool,
}

/// Writes every sample of the dataset `from` into the folder `to`, in the format that
/// [`UnpackOptions::sink`] names.
///
/// A sample is the file it was packed from, byte for byte, unless packing rewrote it. Nothing is
/// written outside `to`, whatever the keys are, and no link in it is followed. The folder appears
/// complete or not at all: it is written and synced under another name, then renamed. A dataset of
/// prepared arrays is an error, because no format stores their type and shape.
///
/// ```
/// use meetpoint_datasets::{UnpackOptions, unpack};
///
/// # let folder = tempfile::tempdir()?;
/// # let to = folder.path().join("files");
/// // A picture in a further column cannot be written to a folder, so it is left out.
/// let without = ["caption", "thumbnail", "boxes", "daytime", "small"].map(str::to_owned);
/// let options = UnpackOptions { without: without.to_vec(), ..UnpackOptions::default() };
/// let summary = unpack("tests/golden/version-3".as_ref(), &to, &options, &mut |_| ())?;
/// assert_eq!(summary.samples, 6);
/// assert!(to.join("coarse").is_dir() && to.join("fine").is_dir());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn unpack(
    from: &Path,
    to: &Path,
    options: &UnpackOptions,
    progress: &mut dyn FnMut(UnpackProgress),
) -> Result<UnpackSummary, Error> {
    options.check()?;
    let dataset = Dataset::open(from)?;
    let prepared = dataset.manifest().prepared();
    if prepared.is_some_and(|prepared| prepared.jpeg_quality.is_none()) {
        let (path, sink) = (from.to_path_buf(), options.sink);
        return Err(Error::PreparedArrays { path, sink });
    }
    let kept = CarriedColumns::of(&dataset.columns().extra, &options.without)?;
    let foreign = |path: &Path| foreign::entry_of(path, options.sink, Some(&dataset));
    let replace = Replace::Files { force: options.force, foreign: &foreign };
    let mut destination = Destination::resolve(&[from.to_path_buf()], to, &replace)?;
    destination.clean()?;

    let staging = Staging::create_for_files(&destination)?;
    let mut schema = dataset.columns().as_ref().clone();
    schema.extra = Arc::clone(&kept.schema);
    let mut sink = sink::create(options.sink, staging.content(), &schema, options.shards)?;

    let mut rows = DatasetRows::new(&dataset, kept);
    let samples = dataset.len();
    let mut next = || Ok(rows.next());
    let bytes_of = |row: &UnpackedRow| match row {
        UnpackedRow::Sample { location, .. } => location.bytes,
        UnpackedRow::Damaged(_) => 0,
    };
    let interrupt = abandoning(Interrupt::from(Arc::clone(&options.stop)));
    let read = |row: UnpackedRow| read(&dataset, row, &interrupt);
    let mut report = |written: &Written| {
        progress(UnpackProgress { samples_done: written.checked, samples });
    };
    let mut written = {
        let kind = schema.kind;
        drive(sink.as_mut(), kind, options, &mut next, &bytes_of, &read, &mut report)?
    };
    let all_failed = written.samples == 0 && !written.damaged.is_empty();
    if all_failed || options.on_error == OnError::Fail && !written.damaged.is_empty() {
        let remedy = written.problems.remedy(options.sink, "restore the dataset");
        return Err(Error::Damaged { samples: written.damaged, checked: samples, remedy });
    }
    let mut closed = sink.finish(&dataset.manifest().labels)?;
    closed.notes.extend(prepared.and_then(|prepared| prepared.jpeg_quality).map(|quality| {
        format!(
            "the samples are prepared pictures (JPEG, quality {quality}), not their source files"
        )
    }));
    written.add(&closed);
    let replaced = staging.commit(&destination)?;
    let stored = dataset.manifest().stored.as_ref();
    Ok(UnpackSummary {
        destination: to.to_path_buf(),
        sink: options.sink,
        samples: written.samples,
        files: written.files,
        bytes: written.bytes,
        converted: written.converted,
        rewritten: stored.map_or(0, |stored| stored.rewritten),
        notes: closed.notes,
        without: options.without.clone(),
        damaged: written.damaged,
        cleaned: destination.cleaned,
        replaced,
    })
}

/// The further columns that are exported.
struct CarriedColumns {
    /// Their indices among all further columns; `None` for all.
    projection: Option<Vec<usize>>,
    schema: SchemaRef,
}

impl CarriedColumns {
    /// All columns except the named ones.
    fn of(extra: &SchemaRef, without: &[String]) -> Result<Self, Error> {
        let names = || extra.fields().iter().map(|field| field.name().clone());
        if let Some(column) = without.iter().find(|name| !names().any(|there| there == **name)) {
            return Err(Error::NoColumn { column: column.clone(), there: names().collect() });
        }
        if without.is_empty() {
            return Ok(Self { projection: None, schema: Arc::clone(extra) });
        }
        let projection: Vec<usize> = names()
            .enumerate()
            .filter(|(_, name)| !without.contains(name))
            .map(|(i, _)| i)
            .collect();
        let schema = extra.project(&projection).expect("the places are those of its columns");
        Ok(Self { projection: Some(projection), schema: Arc::new(schema) })
    }

    /// Projects a batch of all columns to these.
    fn project(&self, batch: Arc<RecordBatch>) -> Arc<RecordBatch> {
        match &self.projection {
            None => batch,
            Some(projection) => {
                let projected = batch.project(projection);
                Arc::new(projected.expect("the places are those of its columns"))
            }
        }
    }
}

/// A row of the dataset, to be passed to a thread.
enum UnpackedRow {
    Sample { index: u64, key: String, location: SampleLocation, extra: Option<ExtraRow> },
    Damaged(LeftOut),
}

/// Iterates over the rows of a dataset, one record batch at a time.
struct DatasetRows<'a> {
    dataset: &'a Dataset,
    kept: CarriedColumns,
    batch: usize,
    ready: VecDeque<UnpackedRow>,
}

impl<'a> DatasetRows<'a> {
    fn new(dataset: &'a Dataset, kept: CarriedColumns) -> Self {
        Self { dataset, kept, batch: 0, ready: VecDeque::new() }
    }

    fn next(&mut self) -> Option<UnpackedRow> {
        while self.ready.is_empty() {
            if self.batch == self.dataset.record_batches() {
                return None;
            }
            self.read_batch(self.batch);
            self.batch += 1;
        }
        self.ready.pop_front()
    }

    fn read_batch(&mut self, batch: usize) {
        let rows = match self.dataset.keyed_rows(batch) {
            Ok(rows) => rows,
            Err(error) => {
                let path = "(a record batch)".to_owned();
                let reason = error.to_string();
                self.ready.push_back(UnpackedRow::Damaged(LeftOut { path, reason: reason.into() }));
                return;
            }
        };
        let extra = if self.kept.schema.fields().is_empty() {
            Ok(None)
        } else {
            self.dataset
                .extra(batch, self.kept.projection.as_deref())
                .map(|extra| Some(Arc::new(extra)))
        };
        for (row, key) in rows.keys.into_iter().enumerate() {
            let index = rows.first_sample + row as u64;
            let extra = match &extra {
                Ok(extra) => Ok(extra.as_ref().map(|batch| (Arc::clone(batch), row))),
                Err(error) => Err(error.to_string()),
            };
            let located = self.dataset.locate(index).map_err(|error| error.to_string());
            self.ready.push_back(match (extra, located) {
                (Ok(extra), Ok(location)) => UnpackedRow::Sample { index, key, location, extra },
                (Err(reason), _) | (_, Err(reason)) => {
                    UnpackedRow::Damaged(LeftOut { path: key, reason: reason.into() })
                }
            });
        }
    }
}

/// Reads the file of a row.
fn read(dataset: &Dataset, row: UnpackedRow, interrupt: &Interrupt) -> Outcome {
    let (index, key, location, extra) = match row {
        UnpackedRow::Sample { index, key, location, extra } => (index, key, location, extra),
        UnpackedRow::Damaged(left_out) => return Outcome::Damaged(left_out),
    };
    let stored = match dataset.read_located(index, &location) {
        Ok(stored) => stored,
        Err(error) => {
            return Outcome::Damaged(LeftOut { path: key, reason: error.to_string().into() });
        }
    };
    let is_converted = form_of(&stored) != Form::Jpeg;
    if !is_converted {
        let label = location.label;
        return Outcome::Sample(ReadSample { key, label, extra, file: stored, is_converted });
    }
    match original_until(&stored, interrupt) {
        Ok(file) => {
            let (label, file) = (location.label, file.into_owned());
            Outcome::Sample(ReadSample { key, label, extra, file, is_converted })
        }
        Err(PictureError::Interrupted) => Outcome::Broken(Error::Interrupted),
        Err(error) => {
            let reason = format!("cannot be restored from its form: {error}");
            Outcome::Damaged(LeftOut { path: key, reason: reason.into() })
        }
    }
}
