//! Further columns of a record batch: their positions, and their values by Arrow's own decoder.
//!
//! Each column is read separately: its bytes are one range of the part with a separate checksum.
//! The message is checked against the bytes first, so that false lengths cause an error instead of
//! a panic or a large allocation.

use super::Columns;
use super::columns::shape_of;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::reader::RecordBatchDecoder;
use arrow_schema::{DataType, FieldRef, Schema, UnionMode};
use flatbuffers::FlatBufferBuilder;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Most elements of an array, nested ones included.
const ELEMENTS_MAX: i64 = i32::MAX as i64;
/// Longest column of a record batch in bytes.
const COLUMN_BYTES_MAX: u64 = 1 << 30;

/// The positions of the further columns of a record batch in their part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraTable {
    rows: u32,
    columns: Vec<ColumnPosition>,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ColumnPosition {
    bytes: Range<u64>,
    /// Length and count of nulls of each array.
    nodes: Vec<(i64, i64)>,
    /// Offset from the first of `bytes`, and length.
    buffers: Vec<(i64, i64)>,
}

/// The bytes of a column, aligned for every type.
#[derive(Debug)]
pub struct ExtraBytes(MutableBuffer);

impl ExtraBytes {
    /// `bytes` zeros, to be filled.
    pub fn zeroed(bytes: usize) -> Self {
        Self(MutableBuffer::from_len_zeroed(bytes))
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// The bytes, to be filled.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.0.as_slice_mut()
    }
}

impl ExtraTable {
    /// Finds the columns of a record batch, as described by its message; `body` is its range in the
    /// part. The further columns start after a given number of nodes and buffers, which end at
    /// `first`.
    pub(super) fn parse(
        batch: &arrow_ipc::RecordBatch<'_>,
        columns: &Columns,
        core: (usize, usize),
        first: u64,
        body: &Range<u64>,
    ) -> Result<Self, String> {
        let nodes: Vec<_> = batch.nodes().into_iter().flatten().skip(core.0).collect();
        let buffers: Vec<_> = batch.buffers().into_iter().flatten().skip(core.1).collect();
        let mut ranges = Vec::with_capacity(buffers.len());
        let mut end = first;
        for buffer in &buffers {
            let range = super::layout::range_in(body, buffer.offset(), buffer.length())
                .filter(|range| range.start >= end)
                .ok_or("a buffer of a further column extends beyond the body")?;
            end = range.end;
            ranges.push(range);
        }
        let mut places = Vec::with_capacity(columns.extra.fields().len());
        let (mut node, mut buffer) = (0, 0);
        for field in columns.extra.fields() {
            let (node_count, buffer_count) = shape_of(field.data_type(), 0)?;
            let missing = || format!("column `{}` is not in the message", field.name());
            let own_nodes = nodes.get(node..node + node_count).ok_or_else(missing)?;
            let own_buffers = ranges.get(buffer..buffer + buffer_count).ok_or_else(missing)?;
            (node, buffer) = (node + node_count, buffer + buffer_count);
            let start = |index: usize| ranges.get(index).map_or(body.end, |range| range.start);
            let bytes = start(buffer - buffer_count)..start(buffer);
            let signed = |bytes: u64| i64::try_from(bytes).expect("it was one");
            places.push(ColumnPosition {
                nodes: own_nodes.iter().map(|node| (node.length(), node.null_count())).collect(),
                buffers: own_buffers
                    .iter()
                    .map(|at| (signed(at.start - bytes.start), signed(at.end - at.start)))
                    .collect(),
                bytes,
            });
        }
        if (node, buffer) != (nodes.len(), buffers.len()) {
            return Err("it has columns that the schema does not name".to_owned());
        }
        let rows = u32::try_from(batch.length()).map_err(|_| "an invalid length")?;
        Ok(Self { rows, columns: places })
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// The position of a column in the part; an error if it exceeds the limit.
    pub fn range(&self, column: usize) -> Result<Range<u64>, String> {
        let range = self.columns[column].bytes.clone();
        let bytes = range.end - range.start;
        if bytes > COLUMN_BYTES_MAX {
            return Err(format!("{bytes} bytes, the limit is {COLUMN_BYTES_MAX}"));
        }
        Ok(range)
    }

    /// Decodes a column from its bytes, whose checksum the caller has verified.
    pub fn decode(
        &self,
        column: usize,
        field: &FieldRef,
        bytes: ExtraBytes,
    ) -> Result<ArrayRef, String> {
        let place = &self.columns[column];
        let held = i64::try_from(bytes.as_slice().len()).map_err(|_| "too many bytes")?;
        if place.buffers.iter().any(|(offset, length)| offset.saturating_add(*length) > held) {
            return Err("a buffer extends beyond the column".to_owned());
        }
        // Arrow requires this of every buffer, and its decoder relies on it.
        if let Some((offset, _)) = place.buffers.iter().find(|(offset, _)| offset % 8 != 0) {
            return Err(format!("a buffer at byte {offset} of it, not a multiple of 8"));
        }
        check_nodes(field.data_type(), &mut place.nodes.iter(), &mut place.buffers.iter())?;
        if place.nodes[0].0 != i64::from(self.rows) {
            return Err(format!("{} elements for {} rows", place.nodes[0].0, self.rows));
        }
        let message = message(place, self.rows);
        let message = arrow_ipc::root_as_message(&message)
            .map_err(|error| format!("its description does not parse: {error}"))?;
        let batch = message.header_as_record_batch().expect("a record batch was put in");
        let schema = Arc::new(Schema::new(vec![Arc::clone(field)]));
        let data = Buffer::from(bytes.0);
        let dictionaries = HashMap::new();
        let version = arrow_ipc::MetadataVersion::V5;
        let decoder = RecordBatchDecoder::try_new(&data, batch, schema, &dictionaries, &version);
        let decoded = decoder
            .and_then(RecordBatchDecoder::read_record_batch)
            .map_err(|error| error.to_string())?;
        let array = Arc::clone(decoded.column(0));
        debug_assert_eq!(array.len(), self.rows as usize);
        Ok(array)
    }
}

/// Checks lengths and null counts against each other and against the buffers, because Arrow's
/// decoder trusts them.
fn check_nodes(
    data_type: &DataType,
    nodes: &mut std::slice::Iter<'_, (i64, i64)>,
    buffers: &mut std::slice::Iter<'_, (i64, i64)>,
) -> Result<(), String> {
    use DataType as T;
    let (length, nulls) = *nodes.next().ok_or("too few arrays")?;
    if !(0..=ELEMENTS_MAX).contains(&length) || !(0..=length).contains(&nulls) {
        return Err(format!("{nulls} nulls of {length} elements"));
    }
    let mut next = || buffers.next().map(|buffer| buffer.1).ok_or("too few buffers");
    match data_type {
        T::Null => return Ok(()),
        T::Union(_, mode) => {
            let (types, offsets) = (next()?, length * 4);
            if types < length || *mode == UnionMode::Dense && next()? < offsets {
                return Err("a union shorter than its elements".to_owned());
            }
        }
        _ => {
            let validity = next()?;
            if nulls > 0 && validity < length.cast_unsigned().div_ceil(8).cast_signed() {
                return Err(format!("{validity} bytes of validity for {length} elements"));
            }
        }
    }
    let mut offsets = |width: i64| match next()? {
        bytes if bytes % width == 0 => Ok(()),
        bytes => Err(format!("{bytes} bytes of offsets, not a multiple of {width}")),
    };
    let children: Vec<&FieldRef> = match data_type {
        T::List(child) | T::Map(child, _) => {
            offsets(4)?;
            vec![child]
        }
        T::LargeList(child) => {
            offsets(8)?;
            vec![child]
        }
        T::FixedSizeList(child, _) => vec![child],
        T::Struct(children) => children.iter().collect(),
        T::Union(children, _) => children.iter().map(|(_, child)| child).collect(),
        T::Utf8 | T::Binary => {
            offsets(4)?;
            next()?;
            Vec::new()
        }
        T::LargeUtf8 | T::LargeBinary => {
            offsets(8)?;
            next()?;
            Vec::new()
        }
        _ => {
            next()?;
            Vec::new()
        }
    };
    for child in children {
        check_nodes(child.data_type(), nodes, buffers)?;
    }
    Ok(())
}

/// A message that describes one column, with buffer offsets relative to the column's first byte.
fn message(place: &ColumnPosition, rows: u32) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let buffers: Vec<_> =
        place.buffers.iter().map(|at| arrow_ipc::Buffer::new(at.0, at.1)).collect();
    let nodes: Vec<_> =
        place.nodes.iter().map(|node| arrow_ipc::FieldNode::new(node.0, node.1)).collect();
    let buffers = builder.create_vector(&buffers);
    let nodes = builder.create_vector(&nodes);
    let batch = {
        let mut batch = arrow_ipc::RecordBatchBuilder::new(&mut builder);
        batch.add_length(i64::from(rows));
        batch.add_nodes(nodes);
        batch.add_buffers(buffers);
        batch.finish()
    };
    let header = arrow_ipc::MessageHeader::RecordBatch;
    super::message::finish_message(builder, header, batch.as_union_value(), 0)
}
