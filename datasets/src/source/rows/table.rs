//! A table: record batches, and the bytes of the content beside them where these lie in a file.

use super::hugging_face::Features;
use crate::Error;
use crate::message::Message;
use crate::source::{Content, OpenFile, OverBudget, Whence};
use crate::store::StorePath;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use meetpoint_kernels::contain_panic;
use std::sync::Arc;

/// Which column holds the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentColumn {
    /// Index of the column.
    pub(crate) column: usize,
    /// Where it is a struct, the index of its child with the bytes.
    pub(crate) bytes: Option<usize>,
    /// Where it is a struct, the index of its child with a path.
    pub(crate) path: Option<usize>,
}

/// What a batch says about the content of one row.
#[derive(Debug, Clone)]
pub(crate) enum RowContent {
    /// The bytes or their place.
    Here(Content),
    /// The row has none.
    Missing,
    /// It cannot be read, and why.
    Unreadable(Message),
}

/// Where the content of the rows of a batch is.
#[derive(Debug)]
pub(crate) enum Contents {
    /// In the batch itself.
    Inside,
    /// The batch's offsets count from this byte of the file; the batch itself holds no bytes.
    At {
        /// The file.
        file: Arc<OpenFile>,
        /// Its byte for offset 0.
        base: u64,
    },
    /// Of each row that has any, its first byte and length in a file; the batch has the bytes too.
    Placed {
        /// The file.
        file: Arc<OpenFile>,
        /// By row.
        places: Vec<Option<(u64, u64)>>,
    },
    /// Said for each row.
    Beside(Vec<RowContent>),
}

/// Some rows.
#[derive(Debug)]
pub(crate) struct Batch {
    /// File, as a user would name it.
    pub(crate) file: String,
    /// Index of the first row in that file.
    pub(crate) first_row: u64,
    /// The columns, of the types of [`Table::schema`].
    pub(crate) columns: RecordBatch,
    /// Where the content is.
    pub(crate) contents: Contents,
    /// What a row is called in an error: `row`, `record`, `sample`.
    pub(crate) noun: &'static str,
}

/// Rows in one or more files.
pub(crate) trait Table: Send {
    /// Columns of all files: plain types.
    fn schema(&self) -> &SchemaRef;

    /// What the metadata say about them.
    fn features(&self) -> &Features;

    /// All rows, where known.
    fn rows(&self) -> Option<u64>;

    /// Bytes of what is read, where known.
    fn bytes(&self) -> Option<u64>;

    /// The first bytes that a column holds, at least 16 where there are as many; empty if no
    /// row among the first ones has any.
    fn first_bytes(&mut self, column: ContentColumn) -> Result<Vec<u8>, Error>;

    /// Whether the paths beside the content are there in each row, and each different.
    fn are_paths_unique(&mut self, column: ContentColumn) -> Result<bool, Error>;

    /// Called once before the first [`Self::next`]: which column is the content.
    fn start(&mut self, content: Option<ContentColumn>) -> Result<(), Error>;

    /// The next rows, in order; `None` at the end.
    fn next(&mut self) -> Result<Option<Batch>, Error>;

    /// A look at what was read as a whole, after the last row.
    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// The error of a source that breaks its format, about a file.
pub(crate) fn malformed(
    file: &StorePath,
    offset: Option<u64>,
    problem: impl Into<Message>,
) -> Error {
    Error::Malformed {
        whence: Box::new(Whence { file: file.display().to_string(), member: None, offset }),
        problem: problem.into(),
    }
}

/// The error of a file that needs more memory than a source may take.
pub(crate) fn too_large(
    file: &StorePath,
    member: Option<String>,
    offset: Option<u64>,
    over: OverBudget,
) -> Error {
    let whence = Box::new(Whence { file: file.display().to_string(), member, offset });
    Error::OverBudget { whence, over }
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

/// Calls a decoder of another crate. A panic on bytes that no writer makes is an error of the file.
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
