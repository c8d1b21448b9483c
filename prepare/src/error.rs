//! Errors between a batch index and its tensor.

use crate::csx_error::CsxRefusal;
use crate::decode_memory::TooLargeToDecode;
use crate::extents_error::ExtentFolderError;
use crate::recipe_files_error::RecipeFilesError;
use crate::remote::RemoteFailure;
use meetpoint_diagnose::{Remedy, printable, shown};
use meetpoint_format::column::{CollateError, ColumnError};
use meetpoint_format::dataset::{DatasetError, PreparedError};
use meetpoint_format::sampler::{DATASETS_MAX, SamplerError};
use meetpoint_kernels::{DoesNotFit, Error as PictureError};
use meetpoint_storage::{Error as StorageError, is_of_the_file};
use std::path::PathBuf;

/// A dataset or a sample that cannot be read. Every variant names the file or the sample.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder or its manifest cannot be read.
    #[error("failed to open dataset {}: {source}", shown(path))]
    Open {
        /// Dataset folder.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The folder does not contain a dataset.
    #[error("{} is not a dataset: {problem}", shown(path))]
    NotADataset {
        /// Folder.
        path: PathBuf,
        /// What it lacks.
        problem: &'static str,
    },
    /// The dataset is damaged.
    #[error("dataset {}: {source}", shown(path))]
    Dataset {
        /// Dataset folder.
        path: PathBuf,
        /// Cause.
        source: DatasetError,
    },
    /// A file that the recipe needs is not usable.
    #[error(transparent)]
    RecipeFile(Box<RecipeFilesError>),
    /// A dataset in a store that cannot be used like this.
    #[error("{} {refusal}", shown(url))]
    Remote {
        /// Its URL.
        url: PathBuf,
        /// Why.
        refusal: RemoteRefusal,
    },
    /// A dataset that cannot be read by its extents.
    #[error("extents {}: {source}", shown(path))]
    Extents {
        /// The file of extents.
        path: PathBuf,
        /// Cause.
        source: Box<ExtentFolderError>,
    },
    /// A device with primitive requests refused a job.
    #[error(transparent)]
    Csx(CsxRefusal),
    /// No folder was named.
    #[error("no dataset is named")]
    NoDataset,
    /// More folders than can be read as one dataset.
    #[error("{datasets} datasets: at most {DATASETS_MAX} are served as one")]
    TooManyDatasets {
        /// The number of folders.
        datasets: usize,
    },
    /// Folders that cannot be read as one dataset.
    #[error(
        "dataset {}: column `{column}` is {found}, in {} it is {expected}",
        shown(path),
        shown(first)
    )]
    ColumnsDiffer {
        /// The folder whose columns differ from those of the first.
        path: PathBuf,
        /// The first folder.
        first: PathBuf,
        /// Name of the column in the first folder, or in the other if the first lacks it.
        column: Box<str>,
        /// Name and type in the folder.
        found: Box<str>,
        /// Name and type in the first folder.
        expected: Box<str>,
    },
    /// The index of keys is not usable.
    #[error("dataset {}: {problem}", shown(path))]
    KeyIndex {
        /// Dataset folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// The remedy.
        remedy: Remedy,
    },
    /// A dataset that cannot be mapped into memory.
    #[error(
        "the content of this dataset stays in {}, where it may change while it is mapped",
        shown(root)
    )]
    NotMapped {
        /// Folder that contains the content.
        root: PathBuf,
    },
    /// The folder that contains the content does not exist.
    #[error("the content of this dataset stays in {}: {source}", shown(root))]
    NoRoot {
        /// Folder.
        root: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A file with content in place cannot be read.
    #[error("{}: {source}", shown(path))]
    Content {
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// A file with content in place changed since it was indexed.
    #[error("{} changed since it was indexed: {difference}", shown(path))]
    ContentChanged {
        /// File.
        path: PathBuf,
        /// The difference.
        difference: String,
    },
    /// Content in place differs from its checksum, in a file whose length and time are unchanged.
    #[error(
        "{}: checksum is {got:#010x}, expected {expected:#010x} for the {bytes} bytes at offset \
         {offset}",
        shown(path)
    )]
    ContentChecksum {
        /// File.
        path: PathBuf,
        /// First byte of the content.
        offset: u64,
        /// Bytes of it.
        bytes: u64,
        /// Computed.
        got: u32,
        /// Stored.
        expected: u32,
    },
    /// A sample whose content stays in place cannot be read.
    #[error("row {row}, key {}: {source}", printable(key))]
    InPlace {
        /// Row in the part of the index.
        row: u64,
        /// Key.
        key: String,
        /// Cause, which names the file.
        source: Box<Error>,
    },
    /// Blocks could not be read.
    #[error(transparent)]
    Storage(#[from] meetpoint_storage::Error),
    /// A sample could not be read.
    #[error("row {row}, key {}: {source}", printable(key))]
    Read {
        /// Row in the part; the cause names the part.
        row: u64,
        /// Key.
        key: String,
        /// Cause.
        source: meetpoint_storage::Error,
    },
    /// Reads did not complete.
    #[error("no read of {} completed for {seconds} s", shown(path))]
    ReadTimeout {
        /// Dataset folder.
        path: PathBuf,
        /// The time waited.
        seconds: u64,
    },
    /// Decoding a sample needs more memory than the budget allows.
    #[error("{}, row {row}, key {}: {source}", shown(part.as_ref()), printable(key))]
    DecodeMemory {
        /// Part file.
        part: String,
        /// Row in the part.
        row: u64,
        /// Key.
        key: String,
        /// What it needs and what is allowed.
        source: TooLargeToDecode,
    },
    /// The caller requested a stop. No sample is at fault.
    #[error("interrupted")]
    Interrupted,
    /// A batch index that is out of range.
    #[error("batch {batch} is not in 0..{batches}")]
    NoSuchBatch {
        /// The requested value.
        batch: u32,
        /// The number of batches.
        batches: u64,
    },
    /// Columns that no batch of the dataset can have.
    #[error("dataset {}: {source}", shown(path))]
    Columns {
        /// Dataset folder.
        path: PathBuf,
        /// Cause, which names the column.
        source: ColumnError,
    },
    /// A further column of a sample could not be read.
    #[error(
        "{}, row {row}, key {}: column {column:?} cannot be read: {source}",
        shown(part.as_ref()), printable(key)
    )]
    Column {
        /// Part file.
        part: String,
        /// Row in the part.
        row: u64,
        /// Key.
        key: String,
        /// Name of the column.
        column: String,
        /// Cause.
        source: Box<Error>,
    },
    /// A sample has no value in a column.
    #[error(
        "{}, row {row}, key {}: column {column:?} is null, or contains a null, and batches \
         hold no nulls",
        shown(part.as_ref()), printable(key)
    )]
    NullValue {
        /// Part file.
        part: String,
        /// Row in the part.
        row: u64,
        /// Key.
        key: String,
        /// Name of the column.
        column: String,
    },
    /// A column that does not have one row for each box with which it is filtered.
    #[error(
        "{}, row {row}, key {}: column {column:?} has {rows} values for the {count} boxes \
         of {boxes:?}, with which it is filtered",
        shown(part.as_ref()), printable(key)
    )]
    RowsOfBoxes {
        /// Part file.
        part: String,
        /// Row in the part.
        row: u64,
        /// Key.
        key: String,
        /// Name of the column.
        column: String,
        /// Column of the boxes.
        boxes: String,
        /// Values of the column.
        rows: usize,
        /// Boxes.
        count: usize,
    },
    /// Memory that is too small for the batch.
    #[error("the batch takes {needed} bytes, but the memory for it has {got}")]
    OutputTooSmall {
        /// Bytes available.
        got: usize,
        /// Bytes needed.
        needed: usize,
    },
    /// A recipe that does not begin with the operations by which the samples were prepared.
    #[error("dataset {}: {source}", shown(path))]
    Prepared {
        /// Dataset folder.
        path: PathBuf,
        /// Cause, which names the operation.
        source: PreparedError,
    },
    /// A prepared sample that differs from the manifest.
    #[error("{}, row {row}, key {}: {problem}", shown(part.as_ref()), printable(key))]
    PreparedSample {
        /// Part file.
        part: String,
        /// Row in the part.
        row: u64,
        /// Key.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The bytes of a sample differ from those that were packed.
    #[error(
        "{}, row {row}, key {}: checksum is {got:#010x}, expected {expected:#010x}",
        shown(part.as_ref()), printable(key)
    )]
    ChecksumMismatch {
        /// Part file.
        part: String,
        /// Row in the part.
        row: u64,
        /// Key.
        key: String,
        /// Computed.
        got: u32,
        /// Stored.
        expected: u32,
    },
    /// A sample cannot be decoded.
    #[error("{}, row {row}, key {}: {source}", shown(part.as_ref()), printable(key))]
    Sample {
        /// Part file.
        part: String,
        /// Row in the part.
        row: u64,
        /// Key.
        key: String,
        /// Cause.
        source: PictureError,
    },
    /// The recipe does not fit the picture of a sample, which may be intact.
    #[error("{}, row {row}, key {}: {source}", shown(part.as_ref()), printable(key))]
    RecipeDoesNotFit {
        /// Part file.
        part: String,
        /// Row in the part.
        row: u64,
        /// Key.
        key: String,
        /// Cause, which names the operation.
        source: Box<DoesNotFit>,
    },
    /// Preparing a sample panicked: a bug in the program, not a defect of the sample.
    #[error(
        "{}, row {row}, key {}: a defect of Meetpoint: a panic in preparing it: {message} \
         ({})",
        shown(part.as_ref()), printable(key),
        location.as_deref().unwrap_or("at an unknown line")
    )]
    Defect {
        /// Part file.
        part: String,
        /// Row in the part.
        row: u64,
        /// Key.
        key: String,
        /// The message of the panic.
        message: String,
        /// Source line of the panic.
        location: Option<String>,
    },
    /// No intact replacement was found for a damaged sample.
    #[error("{source}; none of {tried} candidates for its replacement is intact either")]
    NoReplacement {
        /// What is wrong with the sample.
        source: Box<Error>,
        /// Number of samples that were tried.
        tried: u32,
    },
    /// The recipe's output depends on the picture, so pictures cannot be stacked to a batch.
    #[error("the recipe's result has no fixed shape")]
    NoFixedShape,
    /// Several pictures of a sample in one column, which cannot have different shapes.
    #[error(
        "`collate` is \"{mode}\", but the recipe gives several pictures of each sample in the \
         column {column:?}"
    )]
    CollateViews {
        /// Mode of `collate`.
        mode: &'static str,
        /// The column.
        column: String,
    },
    /// An operation on batches, which takes pictures of one size.
    #[error(
        "`collate` is \"{mode}\", but `{operation}` of the recipe mixes the pictures of a batch, \
         which takes pictures of one size"
    )]
    CollateOnBatches {
        /// Mode of `collate`.
        mode: &'static str,
        /// The first operation that mixes pictures.
        operation: &'static str,
    },
    /// Options of `collate` that do not match the recipe.
    #[error(transparent)]
    Collate(#[from] CollateError),
    /// A batch of pictures of different sizes that exceeds its memory.
    #[error("the pictures of the batch take {needed} bytes, more than the {got} reserved for it")]
    BatchTooLarge {
        /// Bytes needed.
        needed: usize,
        /// Bytes available.
        got: usize,
    },
    /// Sizes of pictures were requested, which a prepared dataset does not have.
    #[error(
        "dataset {} holds samples that are prepared by the first operations of a recipe, so the \
         sizes of its pictures are not known",
        shown(path)
    )]
    NoPictureSizes {
        /// Dataset folder.
        path: PathBuf,
    },
    /// As `NoFixedShape`, for a view of the recipe.
    #[error("the result of the recipe's view {view:?} has no fixed shape")]
    ViewShape {
        /// Its column.
        view: String,
    },
    /// A dataset without labels, for a recipe with an operation on labels.
    #[error("dataset {} has no labels, but the recipe has `{operation}`", shown(path))]
    NoLabels {
        /// Dataset folder.
        path: PathBuf,
        /// The first operation on labels.
        operation: &'static str,
    },
    /// A sample whose label is not one of the recipe's classes. The sample itself is intact.
    #[error(
        "{}, row {row}, key {}: {}, but `num_classes` of the recipe is {classes}",
        shown(part.as_ref()), printable(key),
        label.map_or("no label".to_owned(), |label| format!("the label is {label}"))
    )]
    Label {
        /// Part file.
        part: String,
        /// Row in the part.
        row: u64,
        /// Key.
        key: String,
        /// The label, if it has one.
        label: Option<i32>,
        /// Number of classes of the recipe.
        classes: u32,
    },
    /// The options of the sampler are invalid, or do not match the dataset.
    #[error("sampler: {0}")]
    Sampler(#[from] SamplerError),
    /// The values of a column do not satisfy the requirements of a sampler.
    #[error("dataset {}, column {column:?}: {problem}", shown(path))]
    SamplerColumn {
        /// Dataset folder.
        path: PathBuf,
        /// Name of the column.
        column: String,
        /// The requirement that is violated.
        problem: String,
    },
}

/// Why a dataset in a store cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RemoteRefusal {
    /// The caller reads only folders of this machine.
    #[error("is a URL, and datasets in stores cannot be used here")]
    NotOpened,
    /// Its parts would have to be mapped into memory.
    #[error("is in a store, from where it cannot be mapped into memory")]
    NotMapped,
    /// Its content is in files of another machine.
    #[error("is in a store, but its content stays in files of the machine that indexed it")]
    InPlace,
    /// A device would have to read it.
    #[error("is in a store, and devices read folders of their own machine")]
    AtDevice,
}

impl From<RecipeFilesError> for Error {
    fn from(error: RecipeFilesError) -> Self {
        Self::RecipeFile(Box::new(error))
    }
}

impl Error {
    /// The failure of a store, if that is the reason.
    pub fn remote_failure(&self) -> Option<&RemoteFailure> {
        match self {
            Self::Open { source, .. }
            | Self::Dataset { source: DatasetError::Io { source, .. }, .. }
            | Self::Read { source: StorageError::Io { source, .. }, .. }
            | Self::Storage(StorageError::Io { source, .. }) => RemoteFailure::inside(source),
            Self::Column { source, .. } => source.remote_failure(),
            _ => None,
        }
    }

    /// Whether the work was interrupted, also while it waited for a store.
    pub fn is_interrupted(&self) -> bool {
        let failure = self.remote_failure();
        matches!(self, Self::Interrupted) || failure.is_some_and(RemoteFailure::is_interruption)
    }

    /// Whether the error means that one sample cannot be read or decoded, so that the batch can be
    /// prepared without it. Limits of this process and a recipe that does not fit a sample are not
    /// damage.
    pub fn is_damage(&self) -> bool {
        // A store that fails says nothing about the sample.
        if self.remote_failure().is_some() {
            return false;
        }
        match self {
            Self::ChecksumMismatch { .. }
            | Self::Sample { .. }
            | Self::PreparedSample { .. }
            | Self::NullValue { .. }
            | Self::RowsOfBoxes { .. }
            | Self::ContentChanged { .. }
            | Self::ContentChecksum { .. } => true,
            Self::Content { source, .. } => is_of_the_file(source),
            Self::InPlace { source, .. } => source.is_damage(),
            Self::Column { source, .. } => match &**source {
                Self::Dataset { source: DatasetError::Io { source, .. }, .. } => {
                    is_of_the_file(source)
                }
                Self::Dataset { .. } => true,
                _ => false,
            },
            Self::Read { source, .. } => match source {
                StorageError::Io { source, .. } => is_of_the_file(source),
                StorageError::ShortRead { .. } => true,
                _ => false,
            },
            Self::Open { .. }
            | Self::NotADataset { .. }
            | Self::Dataset { .. }
            | Self::RecipeFile(_)
            | Self::Remote { .. }
            | Self::Extents { .. }
            | Self::Csx(_)
            | Self::NoDataset
            | Self::TooManyDatasets { .. }
            | Self::ColumnsDiffer { .. }
            | Self::KeyIndex { .. }
            | Self::NotMapped { .. }
            | Self::NoRoot { .. }
            | Self::Storage(_)
            | Self::ReadTimeout { .. }
            | Self::DecodeMemory { .. }
            | Self::Interrupted
            | Self::NoSuchBatch { .. }
            | Self::Columns { .. }
            | Self::OutputTooSmall { .. }
            | Self::Prepared { .. }
            | Self::RecipeDoesNotFit { .. }
            | Self::Defect { .. }
            | Self::NoReplacement { .. }
            | Self::NoFixedShape
            | Self::CollateViews { .. }
            | Self::CollateOnBatches { .. }
            | Self::Collate(_)
            | Self::BatchTooLarge { .. }
            | Self::NoPictureSizes { .. }
            | Self::ViewShape { .. }
            | Self::NoLabels { .. }
            | Self::Label { .. }
            | Self::Sampler(_)
            | Self::SamplerColumn { .. } => false,
        }
    }

    /// The problem of a damaged sample, without its name.
    pub fn what(&self) -> String {
        match self {
            Self::InPlace { source, .. } => source.what(),
            Self::ChecksumMismatch { got, expected, .. }
            | Self::ContentChecksum { got, expected, .. } => {
                format!("checksum is {got:#010x}, expected {expected:#010x}")
            }
            Self::Sample { source, .. } => source.to_string(),
            Self::DecodeMemory { source, .. } => source.to_string(),
            Self::PreparedSample { problem, .. } => problem.clone(),
            Self::ContentChanged { difference, .. } => {
                format!("the file changed since it was indexed: {difference}")
            }
            Self::Content { source, .. } => format!("the file cannot be read: {source}"),
            Self::Read { source, .. } => source.to_string(),
            Self::Column { column, source, .. } => {
                format!("column {column:?} cannot be read: {source}")
            }
            Self::NullValue { column, .. } => {
                format!("column {column:?} is null, or contains a null")
            }
            Self::RowsOfBoxes { column, boxes, rows, count, .. } => {
                format!("column {column:?} has {rows} values for the {count} boxes of {boxes:?}")
            }
            other => other.to_string(),
        }
    }
}
