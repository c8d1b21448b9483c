//! Where samples come from: one trait, one file or folder for each kind of source.
//!
//! A source yields its samples in an order of its own, which is the same each time it is opened
//! and nothing changed; it decides nothing about how they are stored. What a sample's bytes are is
//! said as a place ([`Content::File`], [`Content::Range`]) wherever they lie somewhere as they are,
//! so that they are read by many threads, and can be indexed without a copy.
//!
//! In reading order: [`Source`] (the trait), [`SourceSchema`] (the columns of its samples),
//! [`Entry`] and [`Item`] (one of them), [`Finished`] (what is known at the end),
//! [`SourceOptions`] (what a user says about it), [`detect()`] (which kind something is), and then
//! a module for each kind.

pub mod arrow;
mod budget;
pub mod cifar;
mod columns;
pub mod datadings;
mod detect;
pub mod ffcv;
pub mod folder;
mod gathered;
pub mod idx;
mod input;
mod json;
mod limit;
mod links;
mod location;
pub mod mds;
pub mod meetpoint;
mod names;
mod options;
pub mod parquet;
mod pixels;
mod rows;
pub(crate) mod side_files;
mod side_labels;
mod stamp;
pub mod table;
pub mod tar;
pub mod tfrecord;
mod unused_label;
pub mod zip;

pub use crate::over_budget::OverBudget;
pub use crate::whence::Whence;
pub use budget::MEMORY_BYTES;
pub use detect::{KINDS, OpenSource, SourceKind, detect, kind_named};
pub use location::{find, is_url, open, open_in};
pub(crate) use location::{refuse_destination, stamp};
pub use options::SourceOptions;
pub use pixels::PixelStore;
pub(crate) use pixels::as_png;
pub use stamp::SourceStamp;
pub use unused_label::UnusedLabel;

use crate::store::StorePath;
use crate::{Error, LeftOut};
use arrow_array::RecordBatch;
use std::fs::File;
use std::sync::Arc;

pub use meetpoint_format::dataset::{Columns as SourceSchema, ContentKind};

/// How much there is, as far as it is known before the end; for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Samples.
    pub samples: Option<u64>,
    /// Bytes of what is read.
    pub bytes: Option<u64>,
}

/// The bytes of a sample, or where they are.
#[derive(Debug, Clone)]
pub enum Content {
    /// In memory: they lie nowhere as they are.
    Bytes(Vec<u8>),
    /// A file of their own, of so many bytes when it was listed.
    File {
        /// Its path.
        path: StorePath,
        /// Its length.
        bytes: u64,
    },
    /// A range of a file that holds others too.
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
    /// The file that they are in.
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
    /// Unique name, 1 to 4096 bytes.
    pub key: String,
    /// Where it lies.
    pub whence: Whence,
    /// Its bytes; empty for [`ContentKind::None`].
    pub content: Content,
    /// Index into the labels, or the integer that the source gives.
    pub label: Option<i32>,
    /// Its further columns: a row of a record batch with the schema [`SourceSchema::extra`]; absent
    /// where that has no fields.
    pub extra: Option<(Arc<RecordBatch>, usize)>,
}

impl Item {
    /// What the user knows it by: the key where it is a file of its own, else where it lies.
    pub fn name(&self) -> String {
        match (&self.whence.member, self.whence.offset) {
            (None, None) => self.key.clone(),
            _ => self.whence.to_string(),
        }
    }
}

/// What a source yields.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A sample.
    Sample(Box<Item>),
    /// A sample that cannot be read; the source can go on behind it.
    Unreadable(LeftOut),
    /// Something that is no sample, named.
    NotASample(LeftOut),
    /// Something that nobody expects to be a sample (hidden and side files), counted.
    Ignored,
}

/// What is known of a source at its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Finished {
    /// Names of the labels by index. Empty where there are no labels, or where they are integers
    /// without names: they then get their digits as names.
    pub labels: Vec<String>,
    /// Columns that are called a label and are not the class label.
    pub unused_labels: Vec<UnusedLabel>,
}

/// Where samples come from.
pub trait Source: Send {
    /// The columns of its samples.
    fn schema(&self) -> &SourceSchema;

    /// How much there is.
    fn size(&self) -> Size;

    /// The next sample; `None` at the end. After an error the source is not asked again: what
    /// follows cannot be read. Memory is bounded by some samples (a record batch or a row group
    /// where the format has such).
    fn next(&mut self) -> Result<Option<Entry>, Error>;

    /// What is known at the end; called once after [`Self::next`] gave `None`.
    fn finish(&mut self) -> Result<Finished, Error>;
}
