//! A sample to be written to a part, and the number of bytes it adds.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use std::ops::Range;
use std::sync::Arc;

/// One sample to be written to a part.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// Unique name.
    pub key: String,
    /// The content: an encoded image, or other bytes.
    pub image: Vec<u8>,
    /// Index into the labels.
    pub label: Option<i32>,
    /// Entry points, at which decoding can start in the middle of the image; not empty.
    pub entry_points: Option<Vec<u8>>,
    /// Its further columns: a row of a record batch that has the fields of
    /// [`Columns::extra`](super::Columns::extra); absent where there are none.
    pub extra: Option<(Arc<RecordBatch>, usize)>,
}

impl Row {
    /// Bytes that it adds to a part, excluding its key and numbers: content, entry points and an
    /// estimate of the further columns by their types.
    pub fn bytes(&self) -> u64 {
        let own = self.image.len() + self.entry_points.as_ref().map_or(0, Vec::len);
        let extra = self.extra.as_ref().map_or(0, |(batch, row)| {
            if *row < batch.num_rows() { row_bytes(batch, *row) } else { 0 }
        });
        own as u64 + extra
    }
}

/// Bytes of one row of every column.
pub(super) fn row_bytes(batch: &RecordBatch, row: usize) -> u64 {
    batch.columns().iter().map(|column| range_bytes(column, row..row + 1)).sum()
}

/// Bytes of a range of elements of an array, including nested ones, without validity.
fn range_bytes(array: &dyn Array, range: Range<usize>) -> u64 {
    use DataType as T;
    let count = range.len() as u64;
    let offsets = |start: u64, end: u64, width: u64| end - start + count * width;
    match array.data_type() {
        T::Utf8 => {
            let ends = array.as_string::<i32>().value_offsets();
            offsets(ends[range.start] as u64, ends[range.end] as u64, 4)
        }
        T::Binary => {
            let ends = array.as_binary::<i32>().value_offsets();
            offsets(ends[range.start] as u64, ends[range.end] as u64, 4)
        }
        T::LargeUtf8 => {
            let ends = array.as_string::<i64>().value_offsets();
            offsets(ends[range.start] as u64, ends[range.end] as u64, 8)
        }
        T::LargeBinary => {
            let ends = array.as_binary::<i64>().value_offsets();
            offsets(ends[range.start] as u64, ends[range.end] as u64, 8)
        }
        T::List(_) => {
            let list = array.as_list::<i32>();
            let ends = list.value_offsets();
            let inner = ends[range.start] as usize..ends[range.end] as usize;
            range_bytes(list.values(), inner) + count * 4
        }
        T::LargeList(_) => {
            let list = array.as_list::<i64>();
            let ends = list.value_offsets();
            let inner = ends[range.start] as usize..ends[range.end] as usize;
            range_bytes(list.values(), inner) + count * 8
        }
        T::Map(..) => {
            let map = array.as_map();
            let ends = map.value_offsets();
            let inner = ends[range.start] as usize..ends[range.end] as usize;
            range_bytes(map.entries(), inner) + count * 4
        }
        T::FixedSizeList(_, length) => {
            let (list, length) = (array.as_fixed_size_list(), *length as usize);
            range_bytes(list.values(), range.start * length..range.end * length)
        }
        T::Struct(_) => {
            let columns = array.as_struct().columns();
            columns.iter().map(|column| range_bytes(column, range.clone())).sum()
        }
        T::FixedSizeBinary(width) => *width as u64 * count,
        T::Boolean => count.div_ceil(8),
        plain => match plain.primitive_width() {
            Some(width) => width as u64 * count,
            // Nulls have no bytes; for a union, the whole is an upper bound.
            None => array.slice(range.start, range.len()).get_array_memory_size() as u64,
        },
    }
}
