//! FFCV: a `.beton` file, version 2.
//!
//! The format, according to FFCV's `types.py`, `fields/` and `memory_allocator.py`: a header of 24
//! bytes, a descriptor of 1,041 bytes for each field, a table with a row for each sample, pages
//! with the data, and a table of allocations, the only record of a JPEG's length. Fields are
//! floats, integers, pictures (JPEG, or pixels, which become PNG), bytes, arrays and JSON.

mod layout;

use super::budget::Reservation;
use super::rows::hugging_face::Features;
use super::rows::picture::png;
use super::rows::records::{Record, RecordTable, Records};
use super::rows::row_source::TABLE_OPTIONS;
use super::rows::table::{open_file, read_at};
use super::rows::value::{Axes, Kind, Value};
use super::rows::{RowSource, malformed};
use super::{OpenFile, Source, SourceOptions};
use crate::Error;
use crate::store::StorePath;
use arrow_schema::DataType;
use layout::{Field, FieldKind, Layout};
use std::io::Read;
use std::sync::Arc;

/// Longest value that is read into memory.
const VALUE_BYTES_MAX: u64 = 1 << 31;
/// Modes of pictures: JPEG, and raw pixels.
const MODE_JPEG: u64 = 0;
const MODE_PIXELS: u64 = 1;

/// Returns the evidence that `path` is a `.beton` file.
pub fn recognise(path: &StorePath) -> Result<Option<String>, Error> {
    let is_named = path.extension().is_some_and(|name| name == "beton");
    if !is_named || !path.is_file() {
        return Ok(None);
    }
    let mut first = Vec::new();
    let unreadable = |source| Error::Source { path: path.to_path_buf(), source };
    let file = path.open().map_err(unreadable)?;
    file.take(2).read_to_end(&mut first).map_err(unreadable)?;
    Ok((first == [2, 0]).then(|| "it is named .beton and begins with version 2".to_owned()))
}

/// Opens a `.beton` file.
pub fn open(path: &StorePath, options: &SourceOptions) -> Result<Box<dyn Source>, Error> {
    options.allow_only("an FFCV file", &TABLE_OPTIONS)?;
    let (file, bytes) = open_file(path)?;
    let layout = Layout::read(&file, bytes)?;
    let name = path.display().to_string().into();
    let samples = Samples { path: path.clone(), name, file, bytes, layout, next: 0 };
    let table = RecordTable::open(samples, options.columns.is_some())?;
    Ok(Box::new(RowSource::open(table, options, &path.display().to_string())?))
}

/// The samples of a file.
struct Samples {
    path: StorePath,
    name: Arc<str>,
    file: Arc<OpenFile>,
    bytes: u64,
    layout: Layout,
    next: u64,
}

impl Samples {
    fn value(&self, field: &Field, row: &[u8]) -> Result<Value, Error> {
        let number = self.next;
        let fault = |problem: String| {
            let name = &field.name;
            let problem = format!("sample {number}, field {name:?}: {problem}");
            malformed(&self.path, None, problem)
        };
        let row = &row[field.offset..];
        let word = |at: usize, bytes: usize| {
            let mut wide = [0; 8];
            wide[..bytes].copy_from_slice(&row[at..at + bytes]);
            u64::from_le_bytes(wide)
        };
        Ok(match &field.kind {
            FieldKind::Float => Value::Float(f64::from_bits(word(0, 8))),
            FieldKind::Int => Value::Int(word(0, 8).cast_signed()),
            FieldKind::Image => {
                let (mode, width, height) = (word(0, 1), word(1, 2), word(3, 2));
                let pointer = word(5, 8);
                match mode {
                    MODE_JPEG => {
                        let bytes = self.layout.allocated(pointer);
                        let bytes = bytes.ok_or_else(|| {
                            fault(format!("a picture at {pointer}, where nothing was allocated"))
                        })?;
                        Value::Bytes { bytes: self.read(pointer, bytes, fault)?, at: Some(pointer) }
                    }
                    MODE_PIXELS => {
                        let pixels = self.read(pointer, width * height * 3, fault)?;
                        let file = png("RGB", width as u32, height as u32, &pixels);
                        Value::Bytes { bytes: file.map_err(fault)?, at: None }
                    }
                    other => return Err(fault(format!("a picture of mode {other}"))),
                }
            }
            FieldKind::Bytes => {
                let (pointer, bytes) = (word(0, 8), word(8, 8));
                Value::Bytes { bytes: self.read(pointer, bytes, fault)?, at: Some(pointer) }
            }
            FieldKind::Json => {
                let mut text = self.read(word(0, 8), word(8, 8), fault)?;
                // FFCV terminates text with a zero byte, which marks its end in a padded batch.
                while text.last() == Some(&0) {
                    text.pop();
                }
                let text = String::from_utf8(text);
                Value::Text(text.map_err(|_| fault("JSON that is not UTF-8".to_owned()))?)
            }
            FieldKind::Array { dtype, shape, is_big_endian, bytes } => {
                let mut bytes = self.read(word(0, 8), *bytes, fault)?;
                if *is_big_endian {
                    let width = super::rows::value::width(dtype);
                    bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
                }
                Value::Tensor { dtype: dtype.clone(), shape: shape.clone(), bytes }
            }
        })
    }

    fn read(
        &self,
        pointer: u64,
        bytes: u64,
        fault: impl Fn(String) -> Error,
    ) -> Result<Vec<u8>, Error> {
        let is_within = pointer.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        if !is_within || bytes > VALUE_BYTES_MAX {
            let all = self.bytes;
            return Err(fault(format!(
                "{bytes} bytes at {pointer} in a file of {all}; it is truncated or damaged"
            )));
        }
        let mut value = vec![0; bytes as usize];
        read_at(&self.file, &mut value, pointer)?;
        Ok(value)
    }
}

impl Records for Samples {
    fn next(&mut self) -> Result<Option<Record>, Error> {
        if self.next == self.layout.samples {
            return Ok(None);
        }
        let mut row = vec![0; self.layout.row_bytes];
        let at = self.layout.rows_at + self.next * self.layout.row_bytes as u64;
        read_at(&self.file, &mut row, at)?;
        let fields = self.layout.fields.iter();
        let fields = fields.map(|field| Ok((field.name.clone(), self.value(field, &row)?)));
        let fields = fields.collect::<Result<Vec<_>, Error>>()?;
        let size = |value: &Value| match value {
            Value::Bytes { bytes, .. } | Value::Tensor { bytes, .. } => bytes.len(),
            Value::Text(text) => text.len(),
            _ => 8,
        };
        let bytes = fields.iter().map(|(_, value)| size(value)).sum();
        let number = self.next;
        self.next += 1;
        let (file_name, file) = (Arc::clone(&self.name), Some(Arc::clone(&self.file)));
        let held = Reservation::default();
        Ok(Some(Record { file_name, file, number, fields, bytes, _held: held }))
    }

    fn declared(&self) -> Vec<(String, Kind)> {
        let kind = |field: &Field| match &field.kind {
            FieldKind::Float => Kind::Number(DataType::Float64),
            FieldKind::Int => Kind::Number(DataType::Int64),
            FieldKind::Image | FieldKind::Bytes => Kind::Bytes,
            FieldKind::Json => Kind::Text,
            FieldKind::Array { dtype, shape, .. } => {
                Kind::Tensor(dtype.clone(), Axes::Fixed(shape.clone()))
            }
        };
        self.layout.fields.iter().map(|field| (field.name.clone(), kind(field))).collect()
    }

    fn features(&self) -> Features {
        let fields = self.layout.fields.iter();
        let images = fields.filter(|field| matches!(field.kind, FieldKind::Image));
        Features { images: images.map(|field| field.name.clone()).collect(), ..Features::default() }
    }

    fn noun(&self) -> &'static str {
        "sample"
    }

    fn rows(&self) -> Option<u64> {
        Some(self.layout.samples)
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }
}
