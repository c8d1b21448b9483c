//! The sinks of samples: one trait, and one file for each kind of sink.
//!
//! A sink receives samples one after another and writes files into a separate folder; it decides
//! neither how damaged samples are handled nor when the folder appears. It refuses values that it
//! cannot store, or mentions them in its notes: nothing is dropped silently.
//!
//! In reading order: [`SinkKind`] (the kinds), [`Sink`] (the trait), [`OutSample`] (a sample),
//! [`Refusal`] (why it is refused), [`Shards`] (when the next file begins), [`Closed`] (the
//! result); then `folder`, `webdataset`, `parquet` with `huggingface`, `mds`, `datadings` with
//! `bloom`, `tfrecord`; and what they share: `feed` (samples read by many threads, in order),
//! `tree` (files below a folder), `files`, `value` (cells as plain values), `extension`.

mod bloom;
mod datadings;
mod extension;
pub(crate) mod feed;
mod files;
mod folder;
mod huggingface;
mod mds;
mod parquet;
mod tfrecord;
pub(crate) mod tree;
mod value;
mod webdataset;

use crate::Error;
pub use crate::sink_kind::SinkKind;
use crate::source::{ContentKind, SourceSchema};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{Field, SchemaRef};
pub use files::Tally;
pub(crate) use folder::{METADATA_NAME, check_key as check_file_key, file_name, key_of_file_name};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tree::Root;
use value::Value;

/// Name of the column of keys, in formats with columns.
pub(crate) const KEY: &str = "key";
/// Name of the column of labels.
pub(crate) const LABEL: &str = "label";

impl SinkKind {
    /// Whether this sink writes files of this name; `None` if files are named after the keys.
    pub(crate) fn is_own_file(self, name: &str) -> Option<bool> {
        let numbered = |prefix: &str, suffix: &str| {
            let middle = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix));
            middle.is_some_and(|middle| {
                !middle.is_empty()
                    && middle.split("-of-").all(|number| {
                        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
                    })
            })
        };
        let is_own = match self {
            Self::Folder => return None,
            Self::WebDataset => numbered("shard-", ".tar"),
            Self::Parquet => return Some(numbered("data-", ".parquet")),
            Self::Mds => numbered("shard.", ".mds") || name == mds::INDEX_NAME,
            Self::Datadings => datadings::FILE_NAMES.contains(&name),
            Self::TfRecord => numbered("data-", ".tfrecord"),
        };
        Some(is_own || name == crate::source::side_files::LABELS_NAME)
    }
}

impl SinkKind {
    /// Name of the file of a given index, of a sink with shards.
    pub(crate) fn shard_name(self, index: usize) -> String {
        match self {
            Self::WebDataset => format!("shard-{index:06}.tar"),
            Self::Parquet => format!("data-{index:05}.parquet"),
            Self::Mds => format!("shard.{index:05}.mds"),
            Self::TfRecord => format!("data-{index:05}.tfrecord"),
            Self::Folder | Self::Datadings => unreachable!("it has no shards"),
        }
    }

    /// Whether a file holds samples.
    pub(crate) fn is_shard(self, name: &str) -> bool {
        let is_extra = name == crate::source::side_files::LABELS_NAME || self.is_index(name);
        !is_extra && self.is_own_file(name) == Some(true)
    }

    /// Name of the file that lists the shards, in formats that have one.
    pub(crate) fn index_name(self) -> Option<&'static str> {
        (self == Self::Mds).then_some(mds::INDEX_NAME)
    }

    /// Whether a file lists the shards.
    pub(crate) fn is_index(self, name: &str) -> bool {
        self.index_name() == Some(name)
    }

    /// Whether either all samples have a label or none has.
    pub(crate) fn has_labels_throughout(self) -> bool {
        self == Self::Mds
    }
}

/// What must be unique among the samples of a sink: the key, or the part of it that shards
/// distinguish.
pub(crate) fn sample_name(kind: SinkKind, key: &str) -> String {
    match kind {
        SinkKind::WebDataset => webdataset::stem_of(key),
        _ => key.to_owned(),
    }
}

/// Writes the file that lists the shards of several sinks, whose own lists are given in order.
pub(crate) fn join_indexes(
    kind: SinkKind,
    indexes: &[std::path::PathBuf],
    folder: &Path,
) -> Result<(), Error> {
    match kind.index_name() {
        Some(name) => mds::join_indexes(indexes, &folder.join(name)),
        None => Ok(()),
    }
}

/// When the next file begins, in sinks with shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Shards {
    /// After this number of bytes; `None` for the default of the format.
    pub bytes: Option<u64>,
    /// After this number of samples.
    pub samples: Option<u64>,
    /// Never: the caller creates another sink for the next file.
    pub(crate) never: bool,
}

impl Shards {
    /// After these bytes, and after this number of samples.
    pub fn after(bytes: Option<u64>, samples: Option<u64>) -> Self {
        Self { bytes, samples, never: false }
    }

    /// Whether a file of a given number of bytes and samples has no room for `more` bytes.
    fn is_full(&self, bytes: u64, samples: u64, more: u64, bytes_default: u64) -> bool {
        let bytes_max = self.bytes.unwrap_or(bytes_default);
        let too_long = bytes.saturating_add(more) > bytes_max;
        samples > 0 && !self.never && (too_long || self.samples.is_some_and(|most| samples >= most))
    }
}

/// A sample to write.
#[derive(Debug, Clone, Copy)]
pub struct OutSample<'a> {
    /// Its key.
    pub key: &'a str,
    /// Name of its file, for sinks with one file per sample: its key, with the extension of its
    /// content if the key has none. For other sinks its key.
    pub file_name: &'a str,
    /// Its file, never a coefficient form. Empty for a sink with [`Sink::root`], since the file was
    /// already written.
    pub file: &'a [u8],
    /// Index into the labels.
    pub label: Option<i32>,
    /// Its further columns: a row of a record batch.
    pub extra: Option<(&'a Arc<RecordBatch>, usize)>,
}

impl OutSample<'_> {
    /// Its further columns as plain values, with their names.
    fn values(&self) -> impl Iterator<Item = (&str, Value)> {
        self.extra.into_iter().flat_map(|(batch, row)| {
            let schema = batch.schema_ref();
            let pairs = schema.fields().iter().zip(batch.columns());
            pairs.map(move |(field, column)| (field.name().as_str(), value::cell(column, row)))
        })
    }

    /// Those of its further columns that JSON can store, as an object.
    fn json(&self) -> Result<serde_json::Map<String, serde_json::Value>, Refusal> {
        let mut object = serde_json::Map::new();
        for (name, value) in self.values() {
            if matches!(value, Value::Bytes(_)) {
                continue;
            }
            let value = value::json(value).map_err(|problem| Refusal::of_column(name, problem))?;
            object.insert(name.to_owned(), value);
        }
        Ok(object)
    }
}

/// Why a sample is not written.
#[derive(Debug)]
pub enum Refusal {
    /// It is damaged, or the sink cannot store it; nothing of it was written.
    Sample(String),
    /// The sink cannot store its value of a further column; nothing of it was written.
    Column {
        /// The column.
        column: String,
        /// Why not: "is null, which MDS cannot store".
        problem: String,
    },
    /// The destination cannot be written.
    Write(Error),
}

impl Refusal {
    /// A refusal because of a further column.
    fn of_column(column: &str, problem: impl Into<String>) -> Self {
        Self::Column { column: column.to_owned(), problem: problem.into() }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Write(error)
    }
}

/// The result of a finished sink.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Closed {
    /// Files and bytes, without those that threads wrote below [`Sink::root`].
    pub tally: Tally,
    /// Values that the sink stores in another form, as sentences.
    pub notes: Vec<String>,
}

/// Receives samples and writes them to files.
pub trait Sink {
    /// The folder in which threads write the files of samples before they call [`Self::put`], for a
    /// sink with one file per sample.
    fn root(&self) -> Option<Arc<Root>>;

    /// Writes the next sample completely or not at all. If `is_kept` is false, only checks whether
    /// it would be refused.
    fn put(&mut self, sample: &OutSample<'_>, is_kept: bool) -> Result<(), Refusal>;

    /// Writes the remaining rows, with the names of the labels by index (empty where there are
    /// none), and syncs everything.
    fn finish(self: Box<Self>, labels: &[String]) -> Result<Closed, Error>;
}

/// Creates a sink that writes into an existing, empty folder.
///
/// An error names the column that the sink cannot store.
pub(crate) fn create(
    kind: SinkKind,
    folder: &Path,
    schema: &SourceSchema,
    shards: Shards,
) -> Result<Box<dyn Sink>, Error> {
    check_names(kind, schema)?;
    let folder = folder.to_path_buf();
    let extra = &schema.extra;
    Ok(match kind {
        SinkKind::Folder => Box::new(folder::Folder::create(folder, schema)?),
        SinkKind::WebDataset => Box::new(webdataset::WebDataset::create(folder, schema, shards)?),
        SinkKind::Parquet => Box::new(parquet::Parquet::create(folder, schema, shards)?),
        SinkKind::Mds => Box::new(mds::Mds::create(folder, schema, shards)?),
        SinkKind::Datadings => Box::new(datadings::Datadings::create(folder, schema)?),
        SinkKind::TfRecord => {
            Box::new(tfrecord::TfRecord::create(folder, content_name(schema), extra, shards)?)
        }
    })
}

/// Name of the content column, for formats with columns: the name in the source, else that of its
/// kind; empty if samples have no content.
fn content_name(schema: &SourceSchema) -> &str {
    match (schema.name.as_str(), schema.kind) {
        (_, ContentKind::None) => "",
        ("", ContentKind::Image) => "image",
        ("", ContentKind::Audio) => "audio",
        ("", ContentKind::Text) => "text",
        ("", ContentKind::Bytes) => "bytes",
        (name, _) => name,
    }
}

/// Checks that column names are unique and differ from those of the key and the label.
fn check_names(kind: SinkKind, schema: &SourceSchema) -> Result<(), Error> {
    let mut names = BTreeSet::from([KEY, LABEL]);
    let content = content_name(schema);
    if !names.insert(content) {
        let reason = "the content has the name of the key or the label there";
        return Err(unheld(kind, content, reason));
    }
    for field in schema.extra.fields() {
        if !names.insert(field.name()) {
            let reason = "another column has that name there";
            return Err(unheld(kind, field.name(), reason));
        }
    }
    Ok(())
}

pub(crate) fn unheld(kind: SinkKind, column: &str, reason: &str) -> Error {
    Error::Unheld { sink: kind.words(), column: column.to_owned(), reason: reason.to_owned() }
}

/// The notes of a sink that stores values without their types.
fn type_notes(extra: &SchemaRef, held_as: &str, is_kept: &dyn Fn(&Field) -> bool) -> Vec<String> {
    let lost = extra.fields().iter().filter(|field| !is_kept(field));
    lost.map(|field| {
        let held = if value::is_plain(field.data_type()) {
            format!("is written as {held_as}, which does not record its type")
        } else {
            "is written as text".to_owned()
        };
        format!("column `{}` ({}) {held}", field.name(), field.data_type())
    })
    .collect()
}

/// One row of a record batch, as a separate batch.
fn one_row(batch: &RecordBatch, row: usize) -> RecordBatch {
    batch.slice(row, 1)
}

/// Whether a column has a null in a row.
fn is_null(batch: &RecordBatch, column: usize, row: usize) -> bool {
    batch.column(column).is_null(row)
}
