//! The sources of samples: one trait, and one file or folder for each kind of source.
//!
//! A source yields its samples in a repeatable order, as long as nothing changes; it does not
//! decide how they are stored. If a file contains the unchanged bytes of a sample, the source
//! yields their location ([`Content::File`], [`Content::Range`]), so that many threads can read
//! them, and they can be indexed without a copy.
//!
//! In reading order: [`Source`] (the trait), [`SourceSchema`] (the columns of its samples),
//! [`Entry`] and [`Item`] (one of them), [`Finished`] (totals at the end), [`SourceOptions`] (the
//! user's options), [`detect()`] (the kind of a source), then a module for each kind, and
//! `in_place` (a source of any kind with the locations of its samples as a further column).

pub mod arrow;
mod budget;
pub mod cifar;
mod columns;
pub mod datadings;
mod detect;
pub mod ffcv;
pub mod folder;
pub mod idx;
mod in_place;
mod input;
mod json;
mod limit;
mod links;
mod location;
pub(crate) mod malformed;
pub mod mds;
pub mod meetpoint;
mod names;
mod options;
pub mod parquet;
mod pixels;
mod reader_source;
mod rows;
pub(crate) mod side_files;
mod side_labels;
mod stamp;
pub mod table;
pub mod tar;
pub mod tfrecord;
mod unread_table;
mod unused_label;
pub mod zip;

pub use crate::over_budget::OverBudget;
pub use crate::sample_origin::SampleOrigin;
pub use budget::{MEMORY_BYTES, memory_bytes_default};
pub use detect::{KINDS, OpenSource, SourceKind, detect, kind_named};
pub(crate) use in_place::InPlace;
pub use location::{find, is_url, open, open_in};
pub(crate) use location::{missing, refuse_destination, stamp, stamp_listing};
pub use options::SourceOptions;
pub use pixels::PixelStore;
pub(crate) use pixels::as_png;
pub use stamp::SourceStamp;
pub use unread_table::UnreadTable;
pub use unused_label::UnusedLabel;

use crate::store::StorePath;
use crate::{Error, LeftOut};
use arrow_array::RecordBatch;
use std::fs::File;
use std::sync::Arc;

pub use meetpoint_format::dataset::{Columns as SourceSchema, ContentKind};

/// The size of a source, as far as it is known in advance; for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Samples.
    pub samples: Option<u64>,
    /// Bytes to read.
    pub bytes: Option<u64>,
}

/// The bytes of a sample, or their location.
#[derive(Debug, Clone)]
pub enum Content {
    /// In memory: no file contains them unchanged.
    Bytes(Vec<u8>),
    /// A separate file, with its length when it was listed.
    File {
        /// Its path.
        path: StorePath,
        /// Its length.
        bytes: u64,
    },
    /// A range of a file that also contains other samples.
    Range {
        /// The file.
        file: Arc<OpenFile>,
        /// First byte.
        offset: u64,
        /// Length.
        bytes: u64,
    },
}

impl Content {
    /// The file that contains them.
    pub(crate) fn path(&self) -> Option<&StorePath> {
        match self {
            Self::Bytes(_) => None,
            Self::File { path, .. } => Some(path),
            Self::Range { file, .. } => Some(&file.path),
        }
    }

    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { bytes, .. } | Self::Range { bytes, .. } => *bytes,
        }
    }
}

/// A file of a source, open for reading at any offset.
#[derive(Debug)]
pub struct OpenFile {
    /// Its path.
    pub path: StorePath,
    /// Open for reading.
    pub file: File,
}

/// One sample.
#[derive(Debug, Clone)]
pub struct Item {
    /// Unique name, 1 to 4,096 bytes.
    pub key: String,
    /// Its location.
    pub origin: SampleOrigin,
    /// Its bytes; empty for [`ContentKind::None`].
    pub content: Content,
    /// Index into the labels, or the integer in the source.
    pub label: Option<i32>,
    /// Its further columns: a row of a record batch with the schema [`SourceSchema::extra`]; `None`
    /// if the schema has no fields.
    pub extra: Option<(Arc<RecordBatch>, usize)>,
}

impl Item {
    /// Its name for the user: the key if it is a separate file, otherwise its location.
    pub fn name(&self) -> String {
        match (&self.origin.member, self.origin.offset) {
            (None, None) => self.key.clone(),
            _ => self.origin.to_string(),
        }
    }
}

/// What a source yields.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A sample.
    Sample(Box<Item>),
    /// A sample that cannot be read; the source can continue after it.
    Unreadable(LeftOut),
    /// Something that is not a sample, named.
    NotASample(LeftOut),
    /// A hidden or side file, which is only counted.
    Ignored,
}

/// The totals of a source at its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Finished {
    /// Names of the labels by index. Empty if there are no labels, or if they are integers without
    /// names, which are then named by their digits.
    pub labels: Vec<String>,
    /// Columns that are named like a label but are not the class label.
    pub unused_labels: Vec<UnusedLabel>,
}

/// Yields samples in a repeatable order.
pub trait Source: Send {
    /// The columns of its samples.
    fn schema(&self) -> &SourceSchema;

    /// The size, as far as it is known.
    fn size(&self) -> Size;

    /// The next sample; `None` at the end. Not called again after an error, since the rest cannot
    /// be read. Memory is bounded by a few samples (a record batch or a row group, if the format
    /// has them).
    fn next(&mut self) -> Result<Option<Entry>, Error>;

    /// The totals at the end; called once after [`Self::next`] returned `None`.
    fn finish(&mut self) -> Result<Finished, Error>;

    /// The first table that may contain labels of the samples, and is not read.
    fn unread_table(&self) -> Option<&UnreadTable> {
        None
    }
}
