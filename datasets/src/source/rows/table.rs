//! A table: record batches, and the location of the content if a file contains its bytes unchanged.

use super::hugging_face::Features;
use crate::Error;
use crate::message::Message;
use crate::source::malformed::malformed;
use crate::source::{Content, OpenFile, OverBudget, SampleOrigin};
use crate::store::StorePath;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use meetpoint_kernels::contain_panic;
use std::sync::Arc;

/// The column that contains the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentColumn {
    /// Index of the column.
    pub(crate) column: usize,
    /// If it is a struct, the index of its child with the bytes.
    pub(crate) bytes: Option<usize>,
    /// If it is a struct, the index of its child with a path.
    pub(crate) path: Option<usize>,
}

/// The content of one row.
#[derive(Debug, Clone)]
pub(crate) enum RowContent {
    /// The bytes or their location.
    Here(Content),
    /// The row has no content.
    Missing,
    /// It cannot be read, and why.
    Unreadable(Message),
}

/// The location of the content of a batch's rows.
#[derive(Debug)]
pub(crate) enum Contents {
    /// In the batch itself.
    Inside,
    /// The batch's offsets are relative to this offset of the file; the batch itself does not
    /// contain the bytes.
    At {
        /// The file.
        file: Arc<OpenFile>,
        /// The offset in the file that corresponds to offset 0.
        base: u64,
    },
    /// First byte and length in a file for each row with content; the batch contains the bytes too.
    Placed {
        /// The file.
        file: Arc<OpenFile>,
        /// First byte and length by row.
        places: Vec<Option<(u64, u64)>>,
    },
    /// Given for each row.
    Beside(Vec<RowContent>),
}

/// A batch of rows.
#[derive(Debug)]
pub(crate) struct Batch {
    /// File, as a user would name it.
    pub(crate) file: String,
    /// Index of the first row in that file.
    pub(crate) first_row: u64,
    /// The columns, with the types of [`Table::schema`].
    pub(crate) columns: RecordBatch,
    /// The location of the content.
    pub(crate) contents: Contents,
    /// The noun for a row in an error: `row`, `record`, `sample`.
    pub(crate) noun: &'static str,
}

/// Rows in one or more files.
pub(crate) trait Table: Send {
    /// Columns of all files, in plain types.
    fn schema(&self) -> &SchemaRef;

    /// The features that the metadata declare.
    fn features(&self) -> &Features;

    /// Number of all rows, if known.
    fn rows(&self) -> Option<u64>;

    /// Bytes to read, if known.
    fn bytes(&self) -> Option<u64>;

    /// The first bytes of a column's first value, at least 16 if it has as many; empty if the first
    /// rows have none.
    fn first_bytes(&mut self, column: ContentColumn) -> Result<Vec<u8>, Error>;

    /// Whether each row has a path beside the content, and all paths are different.
    fn are_paths_unique(&mut self, column: ContentColumn) -> Result<bool, Error>;

    /// Called once before the first [`Self::next`], with the content column.
    fn start(&mut self, content: Option<ContentColumn>) -> Result<(), Error>;

    /// The next rows, in order; `None` at the end.
    fn next(&mut self) -> Result<Option<Batch>, Error>;

    /// Final checks after the last row.
    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// The error of a file that needs more memory than a source may take.
pub(crate) fn too_large(
    file: &StorePath,
    member: Option<String>,
    offset: Option<u64>,
    over: OverBudget,
) -> Error {
    let origin = Box::new(SampleOrigin { file: file.display().to_string(), member, offset });
    Error::OverBudget { origin, over }
}

/// The error of a file that cannot be read.
pub(crate) fn unreadable(path: &StorePath, source: std::io::Error) -> Error {
    Error::Source { path: path.to_path_buf(), source }
}

/// Opens a file.
pub(crate) fn open_file(path: &StorePath) -> Result<(Arc<OpenFile>, u64), Error> {
    let file = path.open().map_err(|error| unreadable(path, error))?;
    let metadata = file.metadata().map_err(|error| unreadable(path, error))?;
    if !metadata.is_file() {
        return Err(malformed(path, None, Message::from("no regular file").remedy("name a file")));
    }
    Ok((Arc::new(OpenFile { path: path.clone(), file }), metadata.len()))
}

/// Reads exactly the bytes `offset .. offset + bytes.len()` of a file.
pub(crate) fn read_at(file: &OpenFile, bytes: &mut [u8], offset: u64) -> Result<(), Error> {
    use std::os::unix::fs::FileExt;
    file.file.read_exact_at(bytes, offset).map_err(|error| {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            let wanted = bytes.len();
            let problem = Message::from(format!(
                "ends within the {wanted} bytes that should be there: it is truncated"
            ))
            .remedy("fetch the file again");
            malformed(&file.path, Some(offset), problem)
        } else {
            unreadable(&file.path, error)
        }
    })
}

/// Calls a decoder of another crate. A panic on malformed bytes becomes an error of the file.
pub(crate) fn guarded<T>(
    path: &StorePath,
    what: &str,
    decode: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    contain_panic(decode).unwrap_or_else(|_| {
        let problem =
            Message::from(format!("the {what} is damaged such that it cannot be decoded"))
                .remedy("fetch it again");
        Err(malformed(path, None, problem))
    })
}
