//! Header, descriptors of fields and table of allocations of a `.beton` file.

use crate::Error;
use crate::message::Message;
use crate::source::OpenFile;
use crate::source::rows::malformed;
use crate::source::rows::table::read_at;
use crate::source::rows::value::{dtype_of, width};
use arrow_schema::DataType;

/// The version that is read.
const VERSION: u16 = 2;
const HEADER_BYTES: u64 = 24;
/// Bytes of a descriptor: type, name of 16 bytes, arguments of 1,024.
const DESCRIPTOR_BYTES: usize = 1 + 16 + 1024;
/// Bytes of an allocation: sample, first byte, length.
const ALLOCATION_BYTES: u64 = 24;
/// Maximum number of fields.
const FIELDS_MAX: u16 = 1024;
/// Maximum number of axes of an array.
const AXES_MAX: usize = 32;

/// The layout of a file.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) samples: u64,
    pub(super) fields: Vec<Field>,
    /// Offset of the table of samples.
    pub(super) rows_at: u64,
    pub(super) row_bytes: usize,
    /// First byte and length of each allocation, sorted.
    allocations: Vec<(u64, u64)>,
}

/// A field.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: FieldKind,
    /// Its offset in a row.
    pub(super) offset: usize,
}

/// The type of a field.
#[derive(Debug)]
pub(super) enum FieldKind {
    Float,
    Int,
    Image,
    Bytes,
    Json,
    Array { dtype: DataType, shape: Vec<usize>, is_big_endian: bool, bytes: u64 },
}

impl FieldKind {
    /// Bytes in a row, and their alignment: 1 for structs, the size for single numbers.
    fn place(&self) -> (usize, usize) {
        match self {
            Self::Float | Self::Int | Self::Array { .. } => (8, 8),
            Self::Image => (13, 1),
            Self::Bytes | Self::Json => (16, 1),
        }
    }
}

impl Layout {
    /// Reads and checks the layout of a file of `bytes` bytes.
    pub(super) fn read(file: &OpenFile, bytes: u64) -> Result<Self, Error> {
        let fault = |problem: String| malformed(&file.path, None, problem);
        let mut header = [0; HEADER_BYTES as usize];
        read_at(file, &mut header, 0)?;
        let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let long = |at: usize| {
            u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes of the header"))
        };
        let (version, count, samples, table_at) = (half(0), half(2), long(8), long(16));
        if version != VERSION {
            return Err(fault(format!("version {version}; only version {VERSION} is supported")));
        }
        if count > FIELDS_MAX {
            return Err(fault(format!("{count} fields, the limit is {FIELDS_MAX}")));
        }
        let mut descriptors = vec![0; usize::from(count) * DESCRIPTOR_BYTES];
        read_at(file, &mut descriptors, HEADER_BYTES)?;
        let mut fields: Vec<Field> = Vec::new();
        let (mut next, mut alignment) = (0usize, 1);
        for descriptor in descriptors.chunks_exact(DESCRIPTOR_BYTES) {
            let (name, kind) = field(descriptor).map_err(fault)?;
            if fields.iter().any(|field| field.name == name) {
                return Err(fault(format!("two fields {name:?}")));
            }
            let (size, align) = kind.place();
            let offset = next.next_multiple_of(align);
            next = offset + size;
            alignment = alignment.max(align);
            fields.push(Field { name, kind, offset });
        }
        let row_bytes = next.next_multiple_of(alignment);
        let rows_at = HEADER_BYTES + descriptors.len() as u64;
        let rows_end = samples
            .checked_mul(row_bytes as u64)
            .and_then(|rows| rows.checked_add(rows_at))
            .filter(|end| *end <= bytes);
        if rows_end.is_none() || table_at > bytes || fields.is_empty() {
            return Err(fault(format!(
                "{samples} samples of {count} fields in a file of {bytes} bytes; it is truncated, \
                 damaged, or was not finished"
            )));
        }
        let allocations = allocations(file, table_at, bytes)?;
        Ok(Self { samples, fields, rows_at, row_bytes, allocations })
    }

    /// Number of bytes allocated at an offset; the largest, if empty values share the offset.
    pub(super) fn allocated(&self, pointer: u64) -> Option<u64> {
        let behind = self.allocations.partition_point(|(start, _)| *start <= pointer);
        let (start, bytes) = *self.allocations.get(behind.checked_sub(1)?)?;
        (start == pointer).then_some(bytes)
    }
}

fn allocations(file: &OpenFile, at: u64, end: u64) -> Result<Vec<(u64, u64)>, Error> {
    if !(end - at).is_multiple_of(ALLOCATION_BYTES) {
        let problem =
            Message::from("a truncated table of allocations").remedy("fetch the file again");
        return Err(malformed(&file.path, Some(at), problem));
    }
    let mut allocations = Vec::new();
    let mut chunk = vec![0; ALLOCATION_BYTES as usize * 4096];
    let mut next = at;
    while next < end {
        let bytes = chunk.len().min((end - next) as usize);
        read_at(file, &mut chunk[..bytes], next)?;
        for entry in chunk[..bytes].chunks_exact(ALLOCATION_BYTES as usize) {
            let word = |at: usize| {
                u64::from_le_bytes(entry[at..at + 8].try_into().expect("eight bytes of an entry"))
            };
            allocations.push((word(8), word(16)));
        }
        next += bytes as u64;
    }
    allocations.sort_unstable();
    Ok(allocations)
}

fn field(descriptor: &[u8]) -> Result<(String, FieldKind), String> {
    let name = descriptor[1..17].split(|byte| *byte == 0).next().unwrap_or_default();
    let name =
        std::str::from_utf8(name).map_err(|_| "a field whose name is not a text".to_owned())?;
    let kind = match descriptor[0] {
        0 => FieldKind::Float,
        1 => FieldKind::Int,
        2 => FieldKind::Image,
        3 => FieldKind::Bytes,
        4 => array(&descriptor[17..]).map_err(|text| format!("field {name:?}: {text}"))?,
        5 => FieldKind::Json,
        other => return Err(format!("field {name:?} of type {other}; types 0 to 5 are read")),
    };
    Ok((name.to_owned(), kind))
}

/// Arguments: 32 axes, unused ones zero, the length of the description, and the description as
/// JSON: `[["", "<f4"]]`.
fn array(arguments: &[u8]) -> Result<FieldKind, String> {
    let word = |at: usize| {
        u64::from_le_bytes(arguments[at..at + 8].try_into().expect("arguments have 1,024 bytes"))
    };
    let mut shape: Vec<usize> =
        (0..AXES_MAX).map(|axis| usize::try_from(word(axis * 8)).unwrap_or(usize::MAX)).collect();
    while shape.last() == Some(&0) {
        shape.pop();
    }
    let start = AXES_MAX * 8 + 8;
    let length = usize::try_from(word(AXES_MAX * 8)).unwrap_or(usize::MAX);
    let text = arguments.get(start..start.saturating_add(length));
    let text = text.ok_or("a description longer than its field")?;
    let description: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| format!("a description: {error}"))?;
    let name = description[0][1].as_str().ok_or("an array of structured type")?;
    let (dtype, is_big_endian) =
        dtype_of(name).ok_or_else(|| format!("an array of type {name:?}"))?;
    let bytes = shape.iter().try_fold(width(&dtype), |product, axis| product.checked_mul(*axis));
    let bytes = bytes.filter(|bytes| i32::try_from(*bytes).is_ok());
    let bytes = bytes.ok_or_else(|| format!("an array of shape {shape:?}"))? as u64;
    Ok(FieldKind::Array { dtype, shape, is_big_endian, bytes })
}
