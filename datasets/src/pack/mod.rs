//! Packs a source into a dataset, which appears complete or not at all.
//!
//! In reading order: `check` (checks and converts a sample), `pipeline` (parallel checks, ordered
//! results, bounded memory), `census` (keys and labels of all samples), `rows` (checked samples
//! become rows and are counted), [`sharded`] (the same on many hosts).

pub(crate) mod census;
mod check;
mod pipeline;
mod rows;
pub mod sharded;

use crate::choice::Choice;
use crate::error::RemoteError;
use crate::jpeg::{JpegOptions, Progressive};
use crate::message::Message;
use crate::shards::PartRule;
use crate::source::{
    self, ContentKind, Finished, InPlace, PixelStore, Source, SourceOptions, SourceStamp,
    UnusedLabel, is_url,
};
use crate::store::StorePath;
use crate::writer::{PART_BYTES_TARGET, TOOL, Value, WriterInput, WriterInputs};
use crate::{Error, LeftOut, Writer, WriterOptions};
use census::first_place;
use check::SampleCheck;
use meetpoint_diagnose::{Remedy, Setting};
use meetpoint_format::dataset::schema::IMAGE_BYTES_MAX;
use meetpoint_format::dataset::{Provenance, Stored, locates_content};
use pipeline::PipelineOptions;
use rows::PackState;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What to do about a file that cannot be read or decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// Check all files, write nothing, and list the unreadable ones.
    #[default]
    Fail,
    /// Leave unreadable files out, and list them.
    Skip,
}

/// How thoroughly a file is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The whole file is decoded.
    #[default]
    Decode,
    /// Only the header is read.
    Header,
}

/// How to pack.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PackOptions {
    /// Replace a dataset at the destination.
    pub force: bool,
    /// Name of the kind of source; `None` detects it.
    pub from: Option<String>,
    /// Options of the source.
    pub source: SourceOptions,
    /// Resume a killed pack with the same source and options, and retain complete parts if this
    /// pack is stopped.
    pub resume: bool,
    /// How to handle unreadable samples.
    pub on_error: OnError,
    /// How thoroughly files are checked.
    pub check: Check,
    /// The form in which JPEGs are stored.
    pub jpeg: JpegOptions,
    /// Leave the content in place, and record its location; images are then not changed, so of
    /// `jpeg` only the spacing of entry points applies. See [`index()`](crate::index::index()).
    pub in_place: bool,
    /// Bytes after which the next part begins, unless `part_rule` is given.
    pub part_bytes_target: u64,
    /// When the next part begins, from the listing of the source alone, so that shards on many
    /// hosts give the same bytes as one process.
    pub part_rule: Option<PartRule>,
    /// When it is packed, for the provenance: RFC 3339, in UTC
    /// ([`utc_time`](crate::writer::utc_time)). Without it the same source gives the same bytes.
    pub time: Option<String>,
    /// Threads that read and check; 0 for as many as the machine has.
    #[serde(skip)]
    pub threads: usize,
    /// Set by another thread to stop: nothing is left behind.
    #[serde(skip)]
    pub stop: Arc<AtomicBool>,
}

impl Default for PackOptions {
    fn default() -> Self {
        Self {
            force: false,
            from: None,
            source: SourceOptions::default(),
            resume: false,
            on_error: OnError::default(),
            check: Check::default(),
            jpeg: JpegOptions::default(),
            in_place: false,
            part_bytes_target: PART_BYTES_TARGET,
            part_rule: None,
            time: None,
            threads: 0,
            stop: Arc::default(),
        }
    }
}

/// The progress. Bytes are those of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PackProgress {
    /// Samples that were packed or left out.
    pub samples_done: u64,
    /// Number of samples to check, if known in advance.
    pub samples: Option<u64>,
    /// Bytes of the samples processed so far.
    pub bytes_done: u64,
    /// Bytes of all samples, if known in advance.
    pub bytes: Option<u64>,
}

/// The result of packing.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PackSummary {
    /// The dataset.
    pub destination: PathBuf,
    /// Samples in it.
    pub samples: u64,
    /// The kind of their content.
    pub kind: ContentKind,
    /// Names of the further columns.
    pub columns: Vec<String>,
    /// Bytes of all content as stored.
    pub image_bytes: u64,
    /// Ratio of the stored bytes (content and entry points) to those of the packed samples.
    pub ratio: f64,
    /// The form of the images, and how many files were converted.
    pub stored: Stored,
    /// Bytes of the dataset's files.
    pub file_bytes: u64,
    /// Part files.
    pub parts: u64,
    /// Parts retained from an earlier, interrupted pack.
    pub parts_resumed: u64,
    /// Label names; empty if there are no labels.
    pub labels: Vec<String>,
    /// Columns that are named like a label but are not the class label.
    pub unused_labels: Vec<UnusedLabel>,
    /// Samples that cannot be read or are invalid, left out by [`OnError::Skip`].
    pub unreadable: Vec<LeftOut>,
    /// Files of the source that are not samples.
    pub not_samples: Vec<LeftOut>,
    /// Hidden files and side files of desktops (`.DS_Store`, `Thumbs.db`, …), which are not read.
    pub ignored: u64,
    /// Leftovers of killed packs that were removed.
    pub cleaned: Vec<PathBuf>,
    /// Notes on other leftovers, as sentences: parts that were packed again, folders that were not
    /// removed.
    pub notes: Vec<String>,
    /// Whether a dataset was replaced.
    pub replaced: bool,
}

/// Packs the source `from` into the dataset `to`.
///
/// The kind of the source is recognised from its content
/// ([`source::detect`](crate::source::detect())) unless [`PackOptions::from`] names it. Rows are in
/// the order of the source; for a folder that is the [natural order](crate::natural_order) of the
/// paths. The dataset appears complete or not at all: parts and manifest are written and synced
/// under another name, then renamed.
///
/// ```
/// use meetpoint_datasets::{PackOptions, pack};
/// use meetpoint_prepare::Dataset;
///
/// # let folder = tempfile::tempdir()?;
/// # let to = folder.path().join("table.set");
/// // A folder of pictures with a table of their captions.
/// let options = PackOptions { part_bytes_target: 64 << 20, ..PackOptions::default() };
/// let summary = pack("tests/golden/sources/table-csv".as_ref(), &to, &options, &mut |progress| {
///     assert!(progress.samples.is_none_or(|all| progress.samples_done <= all));
/// })?;
/// assert_eq!((summary.parts, summary.unreadable.len()), (1, 0));
/// assert_eq!(Dataset::open(&to)?.len(), summary.samples);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn pack(
    from: &Path,
    to: &Path,
    options: &PackOptions,
    progress: &mut dyn FnMut(PackProgress),
) -> Result<PackSummary, Error> {
    if options.part_rule.is_some() {
        return sharded::pack_alone(from, to, options, progress);
    }
    let writer_options = WriterOptions {
        force: options.force,
        part_bytes_target: options.part_bytes_target,
        // A pattern is not a path; the files that it matches are not a dataset, so they are never
        // replaced.
        sources: from.exists().then(|| from.to_path_buf()).into_iter().collect(),
        inputs: WriterInputs::default(),
        resume: options.resume,
    };
    Writer::may_write(to, &writer_options)?;
    refuse_in_place_elsewhere(from, options)?;
    refuse_longer_samples(options)?;
    let mut options = options.clone();
    // Files outside the source cannot be indexed in place, so links that lead out are refused.
    options.source.follow_links |= options.in_place;
    let options = &options;
    let place = source::find(from, &options.source.remote)?;
    let stamp = source::stamp(&place, &options.source)?;
    let open = || -> Result<Box<dyn Source>, Error> {
        let source = source::open_in(&place, options.from.as_deref(), &options.source)?;
        match options.in_place {
            true => Ok(Box::new(InPlace::wrap(&place, source)?)),
            false => Ok(source),
        }
    };
    let mut source = open()?;
    let columns = Arc::new(source.schema().clone());
    refuse_options_without_use(columns.kind, options)?;
    let options = &without_rewriting(columns.kind, options);
    let inputs = writer_inputs(from, stamp, options);
    let writer = Writer::create(to, columns, &WriterOptions { inputs, ..writer_options })?;
    let parts_resumed = writer.states().len() as u64;
    let mut rows = PackState::new(from, source.size(), writer, options, progress)?;
    let written = write_rows(from, &place, stamp, &mut *source, &mut rows, options);
    // A failed fetch is reported instead of its consequences.
    let cause = |error| match error {
        Error::Interrupted => error,
        error => place.store().check().err().unwrap_or(error),
    };
    match written.map_err(cause) {
        Ok(ended) => finish(rows, ended, from, parts_resumed, options),
        // Complete parts are retained if another attempt can succeed.
        Err(error) if can_resume(&error) => Err(rows.writer.with_remains(error)),
        Err(error) => {
            rows.writer.discard();
            match error {
                Error::DuplicateKey { key, first: None, second } => {
                    let first = first_place(&key, &mut *open()?)?.map(Box::new);
                    Err(Error::DuplicateKey { key, first, second })
                }
                error => Err(error),
            }
        }
    }
}

/// Whether another try may find what this one did not.
pub(crate) fn can_resume(error: &Error) -> bool {
    let of_store =
        matches!(error, Error::Remote(RemoteError::Refused { .. } | RemoteError::Cache { .. }));
    of_store || matches!(error, Error::Interrupted | Error::Write { .. })
}

/// The totals after all rows are written.
struct PackTotals {
    labels: Vec<String>,
    unused_labels: Vec<UnusedLabel>,
    ignored: u64,
}

/// Checks every sample and writes the sound ones.
fn write_rows(
    from: &Path,
    place: &StorePath,
    stamp: SourceStamp,
    source: &mut dyn Source,
    rows: &mut PackState<'_>,
    options: &PackOptions,
) -> Result<PackTotals, Error> {
    let pipeline_options = PipelineOptions {
        how: SampleCheck { kind: source.schema().kind, check: options.check, jpeg: &options.jpeg },
        threads: options.threads,
        passed: rows.passed,
        until: None,
        stop: &options.stop,
    };
    let drained = pipeline::go_through(source, &pipeline_options, &mut |event| rows.take(event))?;
    // A failed fetch does not make samples unreadable.
    place.store().check()?;
    let all_failed = rows.writer.samples() == 0;
    if !rows.is_sound() && (all_failed || options.on_error == OnError::Fail) {
        let checked = rows.samples();
        let mut files = std::mem::take(&mut rows.left_out);
        files.append(&mut rows.found);
        return Err(Error::Unreadable { files, checked });
    }
    if all_failed {
        return Err(Error::NoSamples { path: from.to_path_buf() });
    }
    if stamp != source::stamp(place, &options.source)? {
        return Err(Error::SourceChanged { path: from.to_path_buf() });
    }
    let Finished { labels, unused_labels } = drained.finished;
    Ok(PackTotals { labels: rows.labels(labels)?, unused_labels, ignored: drained.ignored })
}

/// Commits the dataset and summarises it.
fn finish(
    rows: PackState<'_>,
    ended: PackTotals,
    from: &Path,
    parts_resumed: u64,
    options: &PackOptions,
) -> Result<PackSummary, Error> {
    let PackState { writer, mut stored, left_out: mut unreadable, mut found, not_samples, .. } =
        rows;
    unreadable.append(&mut found);
    let kind = writer.columns().kind;
    let is_image = kind == ContentKind::Image;
    let fields = writer.columns().extra.fields().iter().filter(|field| !locates_content(field));
    let columns = fields.map(|field| field.name().clone()).collect();
    stored.entry_points.spacing = options.jpeg.entry_points.filter(|_| is_image);
    let provenance = Provenance {
        tool: TOOL.to_owned(),
        source: from.display().to_string(),
        skipped: unreadable.len() as u64,
        options: if is_image { options.jpeg.by_name() } else { BTreeMap::new() },
        time: options.time.clone(),
        recipe: None,
    };
    let written = writer.finish(ended.labels, stored, provenance)?;
    let manifest = written.manifest;
    let stored = manifest.stored.expect("the writer puts it in");
    let bytes_out = manifest.image_bytes + stored.entry_points.bytes;
    Ok(PackSummary {
        destination: written.destination,
        samples: manifest.samples,
        kind,
        columns,
        image_bytes: manifest.image_bytes,
        ratio: bytes_out as f64 / stored.source_bytes.max(1) as f64,
        stored,
        file_bytes: written.file_bytes,
        parts: manifest.parts.len() as u64,
        parts_resumed,
        labels: manifest.labels,
        unused_labels: ended.unused_labels,
        unreadable,
        not_samples,
        ignored: ended.ignored,
        cleaned: written.cleaned,
        notes: written.notes,
        replaced: written.replaced,
    })
}

/// Refuses to index a remote source in place.
fn refuse_in_place_elsewhere(from: &Path, options: &PackOptions) -> Result<(), Error> {
    if !options.in_place || !is_url(from) {
        return Ok(());
    }
    Err(Error::NotInPlace {
        origin: from.display().to_string(),
        problem: Message::from("an indexed source must be on this machine")
            .remedy(Remedy::advice("pack it instead").or("fetch it first")),
    })
}

/// Refuses a maximum sample size beyond the limit of datasets.
fn refuse_longer_samples(options: &PackOptions) -> Result<(), Error> {
    match options.source.sample_bytes_max {
        Some(asked) if asked > IMAGE_BYTES_MAX => {
            Err(Error::SampleLimit { asked, limit: IMAGE_BYTES_MAX })
        }
        _ => Ok(()),
    }
}

/// Everything that determines the rows and parts.
fn writer_inputs(from: &Path, stamp: SourceStamp, options: &PackOptions) -> WriterInputs {
    let from = from.canonicalize().unwrap_or_else(|_| from.to_path_buf());
    // The cache and memory limits do not affect the result.
    let SourceOptions {
        content,
        kind,
        label,
        key,
        columns,
        split,
        store,
        table,
        root,
        follow_links,
        sample_bytes_max,
        memory_bytes_max: _,
        remote: _,
    } = options.source.clone();
    let path = |path: Option<PathBuf>| path.map(|path| path.display().to_string());
    let inputs = WriterInputs::default()
        .with(WriterInput::Source, from.display().to_string())
        .with(WriterInput::SourceFiles, stamp.to_string())
        .with(WriterInput::InPlace, options.in_place)
        .option(Setting::From, options.from.clone())
        .option(Setting::Content, content)
        .option(Setting::Kind, kind.map(ContentKind::name))
        .option(Setting::Label, label)
        .option(Setting::Key, key)
        .option(Setting::Columns, columns.map(Value::List))
        .option(Setting::Split, split)
        .option(Setting::Store, store.map(PixelStore::name))
        .option(Setting::Table, path(table))
        .option(Setting::Root, path(root))
        .option(Setting::FollowLinks, Some(follow_links))
        .option(Setting::SampleBytesMax, sample_bytes_max)
        .option(Setting::OnError, Some(options.on_error.name()))
        .option(Setting::Check, Some(options.check.name()))
        .option(Setting::PartSize, Some(options.part_bytes_target));
    let jpeg = options.jpeg.values().into_iter();
    jpeg.fold(inputs, |inputs, (setting, value)| inputs.option(setting, Some(value)))
}

/// The options, without re-writing if the content stays in place.
fn without_rewriting(kind: ContentKind, options: &PackOptions) -> PackOptions {
    let mut options = options.clone();
    if options.in_place && kind == ContentKind::Image {
        let entry_points = options.jpeg.entry_points;
        let progressive = Progressive::Keep;
        options.jpeg = JpegOptions { entry_points, progressive, ..JpegOptions::default() };
    }
    options
}

/// Refuses options for images if the content is something else.
fn refuse_options_without_use(kind: ContentKind, options: &PackOptions) -> Result<(), Error> {
    let without_use = if kind == ContentKind::Image {
        None
    } else if options.check != Check::default() {
        Some(Setting::Check)
    } else {
        options.jpeg.first_set()
    };
    match without_use {
        None => Ok(()),
        Some(option) => Err(Error::OptionWithoutUse {
            option,
            value: None,
            source_words: "samples that are not images".to_owned(),
        }),
    }
}
