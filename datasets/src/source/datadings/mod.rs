//! datadings: `X.msgpack`, concatenated samples as MessagePack maps, with `X.msgpack.offsets` and
//! `X.msgpack.keys`, or with the older `X.msgpack.index`.
//!
//! A value of bytes is a range of the file. Arrays of NumPy (as `msgpack-numpy` writes them) become
//! columns of arrays. Each sample is compared with its key in the index; only [`verify`] compares
//! checksums, since that needs another pass over the file.

mod index;
mod sample;
mod verify;

use super::budget::MemoryBudget;
use super::rows::records::{Record, RecordTable, Records};
use super::rows::row_source::TABLE_OPTIONS;
use super::rows::table::{open_file, read_at, too_large};
use super::rows::value::{Kind, Value};
use super::rows::{RowSource, malformed};
use super::{OpenFile, Source, SourceOptions};
use crate::message::Message;
use crate::store::StorePath;
use crate::{Error, natural_order};
use index::Index;
use std::io::Read;
use std::sync::Arc;

pub use verify::{Verified, verify};

/// Longest sample that is read into memory.
const SAMPLE_BYTES_MAX: u64 = 1 << 31;
/// Maximum number of entries of a folder that are examined to find such a file.
const FOLDER_ENTRIES_MAX: usize = 10_000;

/// Returns the evidence that `path` is a datadings file.
pub fn recognise(path: &StorePath) -> Result<Option<String>, Error> {
    if path.is_dir() {
        let files = files_in(path, FOLDER_ENTRIES_MAX)?;
        return Ok((!files.is_empty()).then(|| {
            let name = files[0].file_name().unwrap_or_default().display();
            format!("it holds {name}, whose index is beside it")
        }));
    }
    let is_named = path.extension().is_some_and(|name| name == "msgpack");
    if !is_named || !path.is_file() {
        return Ok(None);
    }
    let mut first = Vec::new();
    let unreadable = |source| Error::Source { path: path.to_path_buf(), source };
    let file = path.open().map_err(unreadable)?;
    file.take(1).read_to_end(&mut first).map_err(unreadable)?;
    let is_map = matches!(first.first(), Some(0x80..=0x8f | 0xde | 0xdf));
    Ok((is_map && has_index(path))
        .then(|| "it begins with a MessagePack map, and its index is beside it".to_owned()))
}

/// Whether a file has an index beside it.
fn has_index(path: &StorePath) -> bool {
    ["offsets", "index"].iter().any(|suffix| index::beside(path, suffix).exists())
}

/// Files with an index among the first `most` entries of a folder, in natural order.
fn files_in(folder: &StorePath, most: usize) -> Result<Vec<StorePath>, Error> {
    let unreadable = |source| Error::Source { path: folder.to_path_buf(), source };
    let mut files = Vec::new();
    for entry in folder.list().map_err(unreadable)?.take(most) {
        let (path, _) = entry.map_err(unreadable)?;
        if path.extension().is_some_and(|name| name == "msgpack") && has_index(&path) {
            files.push(path);
        }
    }
    files.sort_by(|left, right| natural_order(&left.shown(), &right.shown()));
    Ok(files)
}

/// Opens a datadings file, or the one in a folder.
pub fn open(path: &StorePath, options: &SourceOptions) -> Result<Box<dyn Source>, Error> {
    options.allow_only("a datadings file", &TABLE_OPTIONS)?;
    let files = if path.is_dir() { files_in(path, usize::MAX)? } else { vec![path.clone()] };
    let path = match files.as_slice() {
        [file] => file,
        [] => return Err(malformed(path, None, "holds no .msgpack file with its index beside it")),
        [first, second, ..] => {
            let problem = Message::from(format!(
                "holds several datadings files, {} and {}",
                first.display(),
                second.display()
            ))
            .remedy("name one of them");
            return Err(malformed(path, None, problem));
        }
    };
    let samples = Samples::open(path, MemoryBudget::of(options))?;
    let table = RecordTable::open(samples, options.columns.is_some())?;
    Ok(Box::new(RowSource::open(table, options, &path.display().to_string())?))
}

/// The samples of a file.
struct Samples {
    path: StorePath,
    name: Arc<str>,
    file: Arc<OpenFile>,
    bytes: u64,
    index: Index,
    next: u64,
    /// Where the last sample ended.
    end: u64,
    budget: MemoryBudget,
}

impl Samples {
    fn open(path: &StorePath, budget: MemoryBudget) -> Result<Self, Error> {
        let (file, bytes) = open_file(path)?;
        let index = Index::open(path, bytes)?;
        let name = path.display().to_string().into();
        let path = path.clone();
        Ok(Self { path, name, file, bytes, index, next: 0, end: 0, budget })
    }
}

impl Records for Samples {
    fn next(&mut self) -> Result<Option<Record>, Error> {
        let Some((start, end, key)) = self.index.next()? else { return Ok(None) };
        let number = self.next;
        let fault = |problem: String| {
            malformed(&self.path, Some(start), format!("sample {number}: {problem}"))
        };
        if end - start > SAMPLE_BYTES_MAX {
            let length = end - start;
            return Err(fault(format!("{length} bytes, the limit is {SAMPLE_BYTES_MAX}")));
        }
        let over =
            |over| too_large(&self.path, Some(format!("sample {number}")), Some(start), over);
        let mut held = self.budget.hold(end - start).map_err(over)?;
        let mut bytes = vec![0; (end - start) as usize];
        read_at(&self.file, &mut bytes, start)?;
        held.grow(sample::values_bytes(&bytes)).map_err(over)?;
        let fields = sample::parse(&bytes, start).map_err(fault)?;
        let stored = fields.iter().find(|(name, _)| name == "key").map(|(_, value)| value);
        match (stored, &key) {
            (Some(Value::Text(stored)), Some(key)) if stored != key => {
                return Err(fault(format!(
                    "its key is {stored:?}, where the index has {key:?}; the index belongs to \
                     another file"
                )));
            }
            (Some(Value::Text(_)), _) => {}
            (Some(_), _) => return Err(fault("its key is not a text".to_owned())),
            (None, _) => return Err(fault("it has no key".to_owned())),
        }
        self.next += 1;
        self.end = end;
        let file_name = Arc::clone(&self.name);
        let file = Some(Arc::clone(&self.file));
        Ok(Some(Record { file_name, file, number, fields, bytes: bytes.len(), _held: held }))
    }

    fn declared(&self) -> Vec<(String, Kind)> {
        Vec::new()
    }

    fn noun(&self) -> &'static str {
        "sample"
    }

    fn rows(&self) -> Option<u64> {
        Some(self.index.samples)
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }
}
