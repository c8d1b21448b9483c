//! Errors of reading and writing datasets.
//!
//! In reading order: [`Error`], whose variants are facts, `message` (puts them into words) and
//! `diagnose` (their causes and remedies); then the errors of single modules, each with its words
//! and remedies: [`OperationError`] (operations on datasets), [`ShardError`] (work divided into
//! shards), [`RemoteError`] (stores). These modules return [`Error`], which contains their own, so
//! both are below them; each re-exports its own.

mod diagnose;
mod message;
mod operation;
mod remote;
mod shard;

pub(crate) use message::{link_leads_out, size_and_limit};
pub use operation::OperationError;
pub use remote::RemoteError;
pub use shard::ShardError;

use crate::left_out::LeftOut;
use crate::message::Message;
use crate::over_budget::OverBudget;
use crate::sample_origin::SampleOrigin;
use crate::sink_kind::SinkKind;
use crate::writer_inputs::ResumeConflict;
use meetpoint_diagnose::{Remedy, Setting};
use meetpoint_format::dataset::ContentKind;
use std::path::PathBuf;

/// Maximum number of labels without names. Their names are the numbers from 0.
pub(crate) const DIGIT_LABELS_MAX: i32 = 1 << 20;

/// A source that cannot become a dataset, or a dataset that cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The source cannot be read.
    Source {
        /// File or folder.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The source is not a folder.
    NotAFolder {
        /// The given path.
        path: PathBuf,
    },
    /// The format of the source cannot be determined.
    UnknownSource {
        /// The given path.
        path: PathBuf,
        /// Names and descriptions of all kinds.
        looked_for: Vec<(&'static str, &'static str)>,
    },
    /// The source matches several kinds.
    AmbiguousSource {
        /// The given path.
        path: PathBuf,
        /// Name and description of each kind, and why it matches.
        found: Vec<(&'static str, &'static str, String)>,
    },
    /// An unknown kind of source.
    NoSuchKind {
        /// The requested value.
        name: String,
        /// Names and descriptions of all kinds.
        kinds: Vec<(&'static str, &'static str)>,
    },
    /// No file of a kind in a folder.
    NoFilesOfKind {
        /// Source.
        path: PathBuf,
        /// The requested value.
        kind: ContentKind,
        /// Number of other files.
        others: u64,
    },
    /// A source without samples.
    NoSamples {
        /// Source.
        path: PathBuf,
    },
    /// Two samples with the same key.
    DuplicateKey {
        /// The key.
        key: String,
        /// Location of the first, if known.
        first: Option<Box<SampleOrigin>>,
        /// Location of the second.
        second: Box<SampleOrigin>,
    },
    /// A label without a name.
    LabelWithoutName {
        /// The sample.
        key: String,
        /// Its label.
        label: i32,
        /// Number of names; 0 if labels are integers.
        names: u64,
    },
    /// An interrupted command that cannot resume.
    ResumeDiffers {
        /// The working folder.
        path: PathBuf,
        /// What differs.
        difference: Box<ResumeConflict>,
    },
    /// Another process writes to the destination.
    InUse {
        /// Destination.
        destination: PathBuf,
        /// The folder that it writes to.
        place: PathBuf,
    },
    /// The folder to resume from contains files that Meetpoint did not write.
    ResumeForeign {
        /// The working folder.
        path: PathBuf,
        /// A file or folder in it.
        entry: String,
    },
    /// A source that violates its format, or uses an unsupported feature; the rest of it cannot be
    /// read.
    Malformed {
        /// Where.
        origin: Box<SampleOrigin>,
        /// The problem, with its remedy.
        problem: Message,
    },
    /// A source that needs more memory than its limit.
    OverBudget {
        /// Where.
        origin: Box<SampleOrigin>,
        /// What it needs.
        over: OverBudget,
    },
    /// An option that does not apply to this source or its kind of content.
    OptionWithoutUse {
        /// The option.
        option: Setting,
        /// The value of the option, if only that has no effect.
        value: Option<&'static str>,
        /// What the source is, in words: "a folder of images".
        source_words: String,
    },
    /// No image in the source.
    NoImages {
        /// Source.
        path: PathBuf,
        /// Number of other files.
        others: u64,
    },
    /// Images at the same level as class sub-folders.
    MixedLayout {
        /// Source.
        path: PathBuf,
        /// An image at the top.
        file: String,
        /// An image in a sub-folder.
        folder: String,
    },
    /// A class without images.
    EmptyClass {
        /// Source.
        path: PathBuf,
        /// Sub-folder.
        class: String,
    },
    /// Samples that cannot be decoded, under [`OnError::Fail`](crate::OnError::Fail).
    Unreadable {
        /// All of them.
        files: Vec<LeftOut>,
        /// Number of checked samples.
        checked: u64,
    },
    /// A file that changed while it was packed.
    SourceChanged {
        /// File.
        path: PathBuf,
    },
    /// A link in a source that leads out of it.
    LinkLeadsOut {
        /// The link.
        link: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// A sample that cannot be indexed in place.
    NotInPlace {
        /// The sample and where it is.
        origin: String,
        /// The reason, with its remedy.
        problem: Message,
    },
    /// The destination exists.
    Exists {
        /// Destination.
        path: PathBuf,
    },
    /// The destination is not a dataset, so it is not replaced.
    NotReplaced {
        /// Destination.
        path: PathBuf,
        /// A file in it, or its type.
        entry: String,
    },
    /// The destination contains files that are not part of the dataset, so it is not replaced.
    Foreign {
        /// Destination.
        path: PathBuf,
        /// A file or folder in it, or its type.
        entry: String,
    },
    /// Samples that cannot be unpacked, under [`OnError::Fail`](crate::OnError::Fail).
    Damaged {
        /// All of them, by key.
        samples: Vec<LeftOut>,
        /// Number of checked samples.
        checked: u64,
        /// What to do about them.
        remedy: Remedy,
    },
    /// Samples that cannot be converted, under [`OnError::Fail`](crate::OnError::Fail).
    Unconverted {
        /// All of them, by key or location.
        samples: Vec<LeftOut>,
        /// Number of checked samples.
        checked: u64,
        /// What to do about them.
        remedy: Remedy,
    },
    /// A column that a sink cannot store.
    Unheld {
        /// The sink, in words.
        sink: &'static str,
        /// The column.
        column: String,
        /// The cause.
        reason: String,
    },
    /// A column to leave out that does not exist.
    NoColumn {
        /// The given name.
        column: String,
        /// The columns.
        there: Vec<String>,
    },
    /// The source contains the destination, or the reverse.
    Overlap {
        /// Source.
        from: PathBuf,
        /// Destination.
        to: PathBuf,
    },
    /// The dataset cannot be written.
    Write {
        /// File or folder.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A dataset whose complete parts remain, so that the command can resume.
    Kept {
        /// The error.
        error: Box<Error>,
        /// The folder with the parts.
        place: PathBuf,
        /// Number of complete parts, at least 1.
        parts: u64,
    },
    /// An image that a dataset cannot store.
    Row(meetpoint_format::dataset::DatasetError),
    /// Samples that were prepared as arrays, which no sink can store with their type and shape.
    PreparedArrays {
        /// The dataset.
        path: PathBuf,
        /// The sink.
        sink: SinkKind,
    },
    /// A limit for shards, with a sink that writes none.
    ShardsWithoutUse {
        /// The sink.
        sink: SinkKind,
    },
    /// A maximum sample size beyond that of a dataset.
    SampleLimit {
        /// The requested value.
        asked: u64,
        /// The maximum of a dataset.
        limit: u64,
    },
    /// A remote source.
    Remote(RemoteError),
    /// An environment variable with an invalid time.
    Epoch {
        /// The value of `SOURCE_DATE_EPOCH`.
        value: String,
    },
    /// Too many threads.
    TooManyThreads {
        /// The requested number.
        threads: usize,
        /// The maximum.
        most: usize,
    },
    /// The system did not start a thread.
    Thread {
        /// Which one, from 1.
        number: usize,
        /// The requested number.
        threads: usize,
        /// Why.
        source: std::io::Error,
    },
    /// Stopped on request.
    Interrupted,
    /// Stopped on request; complete parts remain, so that the command can resume.
    Stopped {
        /// The folder with the parts.
        place: PathBuf,
        /// Number of complete parts, at least 1.
        parts: u64,
    },
    /// An operation on datasets that was refused.
    Operation(OperationError),
    /// Work that is divided into shards.
    Shards(ShardError),
    /// A dataset that cannot be read.
    Dataset(meetpoint_prepare::Error),
}

impl Error {
    /// The error of a transfer; [`Error::Interrupted`] if it was stopped.
    pub(crate) fn of_remote(error: RemoteError) -> Self {
        match error {
            RemoteError::Interrupted => Self::Interrupted,
            error => error.into(),
        }
    }
}

impl std::error::Error for Error {
    /// The cause, if the message does not already contain it.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Source { source, .. }
            | Self::Write { source, .. }
            | Self::Thread { source, .. } => Some(source),
            Self::Row(error) => error.source(),
            Self::Remote(error) => error.source(),
            Self::Operation(error) => error.source(),
            Self::Dataset(error) => error.source(),
            Self::NotAFolder { .. }
            | Self::UnknownSource { .. }
            | Self::AmbiguousSource { .. }
            | Self::NoSuchKind { .. }
            | Self::NoFilesOfKind { .. }
            | Self::NoSamples { .. }
            | Self::DuplicateKey { .. }
            | Self::LabelWithoutName { .. }
            | Self::ResumeDiffers { .. }
            | Self::InUse { .. }
            | Self::ResumeForeign { .. }
            | Self::Malformed { .. }
            | Self::OverBudget { .. }
            | Self::OptionWithoutUse { .. }
            | Self::NoImages { .. }
            | Self::MixedLayout { .. }
            | Self::EmptyClass { .. }
            | Self::Unreadable { .. }
            | Self::SourceChanged { .. }
            | Self::LinkLeadsOut { .. }
            | Self::NotInPlace { .. }
            | Self::Exists { .. }
            | Self::NotReplaced { .. }
            | Self::Foreign { .. }
            | Self::Damaged { .. }
            | Self::Unconverted { .. }
            | Self::Unheld { .. }
            | Self::NoColumn { .. }
            | Self::Overlap { .. }
            | Self::Kept { .. }
            | Self::Shards(_)
            | Self::PreparedArrays { .. }
            | Self::ShardsWithoutUse { .. }
            | Self::SampleLimit { .. }
            | Self::Epoch { .. }
            | Self::TooManyThreads { .. }
            | Self::Interrupted
            | Self::Stopped { .. } => None,
        }
    }
}

impl From<RemoteError> for Error {
    fn from(error: RemoteError) -> Self {
        Self::Remote(error)
    }
}

impl From<ShardError> for Error {
    fn from(error: ShardError) -> Self {
        Self::Shards(error)
    }
}

impl From<OperationError> for Error {
    fn from(error: OperationError) -> Self {
        Self::Operation(error)
    }
}

impl From<meetpoint_prepare::Error> for Error {
    fn from(error: meetpoint_prepare::Error) -> Self {
        Self::Dataset(error)
    }
}
