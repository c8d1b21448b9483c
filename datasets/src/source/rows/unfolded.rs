//! Computes the bytes of columns after dictionaries, run ends and views are expanded, since a small
//! file can refer to one long value many times.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{Array, RunArray};
use arrow_schema::DataType;
use std::ops::Range;

/// Bytes of a column in plain types. Counting stops slightly above `limit`, which also bounds its
/// time.
pub(super) fn unfolded_bytes(array: &dyn Array, limit: u64) -> u64 {
    let mut count = Count { bytes: 0, limit };
    count.rows(array, 0..array.len());
    count.bytes
}

struct Count {
    bytes: u64,
    limit: u64,
}

impl Count {
    fn is_over(&self) -> bool {
        self.bytes > self.limit
    }

    fn add(&mut self, count: usize, width: usize) {
        self.bytes = self.bytes.saturating_add((count as u64).saturating_mul(width as u64));
    }

    /// Counts row by row, at least one byte each, so that the limit also bounds the number of rows.
    fn each(&mut self, rows: Range<usize>, mut one: impl FnMut(&mut Self, usize)) {
        for row in rows {
            if self.is_over() {
                return;
            }
            self.add(1, 1);
            one(self, row);
        }
    }

    fn rows(&mut self, array: &dyn Array, rows: Range<usize>) {
        let count = rows.len();
        if count == 0 || self.is_over() {
            return;
        }
        match array.data_type() {
            DataType::Dictionary(_, _) => {
                // Only these rows are normalised, since this may be called for each row of an outer
                // column.
                let slice = array.slice(rows.start, count);
                let dictionary = slice.as_any_dictionary();
                if dictionary.values().is_empty() {
                    return self.add(count, size_of::<i32>());
                }
                let keys = dictionary.normalized_keys();
                self.each(0..count, |count, row| {
                    let key = keys[row];
                    count.rows(dictionary.values(), key..key + 1);
                });
            }
            DataType::RunEndEncoded(ends, _) => match ends.data_type() {
                DataType::Int16 => self.runs::<Int16Type>(array.as_run(), rows),
                DataType::Int32 => self.runs::<Int32Type>(array.as_run(), rows),
                _ => self.runs::<Int64Type>(array.as_run(), rows),
            },
            DataType::Utf8 => self.values(array.as_string::<i32>().value_offsets(), rows),
            DataType::LargeUtf8 => self.values(array.as_string::<i64>().value_offsets(), rows),
            DataType::Binary => self.values(array.as_binary::<i32>().value_offsets(), rows),
            DataType::LargeBinary => self.values(array.as_binary::<i64>().value_offsets(), rows),
            // The length of a view is in its low half.
            DataType::Utf8View => {
                let views = array.as_string_view().views();
                self.each(rows, |count, row| count.add(1, views[row] as u32 as usize));
            }
            DataType::BinaryView => {
                let views = array.as_binary_view().views();
                self.each(rows, |count, row| count.add(1, views[row] as u32 as usize));
            }
            DataType::Struct(_) => {
                for column in array.as_struct().columns() {
                    self.rows(column, rows.clone());
                }
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let offsets = list.value_offsets();
                let inner = offsets[rows.start] as usize..offsets[rows.end] as usize;
                self.add(count, size_of::<i32>());
                self.rows(list.values(), inner);
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let offsets = list.value_offsets();
                let inner = offsets[rows.start] as usize..offsets[rows.end] as usize;
                self.add(count, size_of::<i64>());
                self.rows(list.values(), inner);
            }
            DataType::ListView(_) => {
                let list = array.as_list_view::<i32>();
                self.each(rows, |count, row| {
                    let start = list.value_offset(row) as usize;
                    count.rows(list.values(), start..start + list.value_size(row) as usize);
                });
            }
            DataType::LargeListView(_) => {
                let list = array.as_list_view::<i64>();
                self.each(rows, |count, row| {
                    let start = list.value_offset(row) as usize;
                    count.rows(list.values(), start..start + list.value_size(row) as usize);
                });
            }
            DataType::FixedSizeList(_, length) => {
                let length = usize::try_from(*length).unwrap_or(0);
                let values = array.as_fixed_size_list().values();
                self.rows(values, rows.start * length..rows.end * length);
            }
            DataType::Map(_, _) => {
                let map = array.as_map();
                let offsets = map.value_offsets();
                let inner = offsets[rows.start] as usize..offsets[rows.end] as usize;
                self.add(count, size_of::<i32>());
                self.rows(map.entries(), inner);
            }
            DataType::FixedSizeBinary(width) => {
                self.add(count, usize::try_from(*width).unwrap_or(0));
            }
            // Numbers have a fixed width; a boolean takes a bit.
            other => self.add(count, other.primitive_width().unwrap_or(1)),
        }
    }

    fn values<O: arrow_array::OffsetSizeTrait>(&mut self, offsets: &[O], rows: Range<usize>) {
        let bytes = offsets[rows.end].as_usize() - offsets[rows.start].as_usize();
        self.add(rows.len(), size_of::<O>());
        self.add(bytes, 1);
    }

    fn runs<R: RunEndIndexType>(&mut self, array: &RunArray<R>, rows: Range<usize>)
    where
        <R as ArrowPrimitiveType>::Native: Into<i64>,
    {
        let end_of = |end: <R as ArrowPrimitiveType>::Native| -> usize {
            let end: i64 = end.into();
            usize::try_from(end).unwrap_or(0)
        };
        let ends = array.run_ends().values();
        // Runs that end before these rows are skipped, since this may be called for each row.
        let first = ends.partition_point(|end| end_of(*end) <= rows.start);
        let mut start = rows.start;
        for (run, end) in ends.iter().enumerate().skip(first) {
            let end = end_of(*end);
            let length = end.min(rows.end).saturating_sub(start.max(rows.start));
            if length > 0 {
                let mut one = Self { bytes: 0, limit: self.limit };
                one.rows(array.values(), run..run + 1);
                self.add(length, usize::try_from(one.bytes).unwrap_or(usize::MAX).max(1));
            }
            if end >= rows.end || self.is_over() {
                return;
            }
            start = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::StringRunBuilder;
    use arrow_array::types::Int8Type;
    use arrow_array::{DictionaryArray, Int32Array, StringArray, StringViewArray};
    use std::sync::Arc;

    const LONG: usize = 1000;

    fn long() -> String {
        "x".repeat(LONG)
    }

    #[test]
    fn a_long_value_counts_as_often_as_it_occurs() {
        let long = long();
        let dictionary: DictionaryArray<Int8Type> = vec![long.as_str(); 50].into_iter().collect();
        let view = StringViewArray::from(vec![long.as_str(); 50]);
        let mut runs = StringRunBuilder::<Int32Type>::new();
        runs.extend(vec![Some(long.as_str()); 50]);
        let runs = runs.finish();
        let plain = StringArray::from(vec![long.as_str(); 50]);
        for array in [&dictionary as &dyn Array, &view, &runs, &plain] {
            let bytes = unfolded_bytes(array, u64::MAX);
            assert!((50_000..51_000).contains(&bytes), "{bytes} for {}", array.data_type());
        }
    }

    #[test]
    fn runs_beyond_any_memory_are_counted_by_their_ends() {
        let ends = Int32Array::from(vec![i32::MAX]);
        let values = StringArray::from(vec![long()]);
        let runs = RunArray::<Int32Type>::try_new(&ends, &values).unwrap();
        let bytes = unfolded_bytes(&runs, u64::MAX);
        assert!(bytes > (i32::MAX as u64) * LONG as u64, "{bytes}");
    }

    /// The work is proportional to the counted rows, not to their product with the rows of inner
    /// columns.
    #[test]
    fn columns_inside_of_views_are_looked_at_once_a_row() {
        const ROWS: usize = 200_000;
        let keys = Int32Array::from_iter_values((0..ROWS as i32).map(|row| row % 2));
        let values = Arc::new(StringArray::from(vec!["a", "bc"]));
        let dictionary = DictionaryArray::<Int32Type>::try_new(keys, values).unwrap();
        let mut runs = StringRunBuilder::<Int32Type>::new();
        (0..ROWS).for_each(|row| runs.append_value(if row % 2 == 0 { "a" } else { "bc" }));
        for inner in [Arc::new(dictionary) as Arc<dyn Array>, Arc::new(runs.finish())] {
            let field = Arc::new(arrow_schema::Field::new("item", inner.data_type().clone(), true));
            let offsets: Vec<i32> = (0..ROWS as i32).collect();
            let sizes = vec![1; ROWS];
            let views =
                arrow_array::ListViewArray::new(field, offsets.into(), sizes.into(), inner, None);
            let bytes = unfolded_bytes(&views, u64::MAX);
            assert!((300_000..3_000_000).contains(&bytes), "{bytes}");
        }
    }

    #[test]
    fn dictionaries_of_lists_count_in_both() {
        let inner = arrow_array::ListArray::from_iter_primitive::<Int32Type, _, _>([Some(
            (0..250).map(Some),
        )]);
        let keys = arrow_array::Int8Array::from(vec![0; 20]);
        let dictionary = DictionaryArray::<Int8Type>::try_new(keys, Arc::new(inner)).unwrap();
        let bytes = unfolded_bytes(&dictionary, u64::MAX);
        assert!((20_000..21_000).contains(&bytes), "{bytes}");
        assert!(unfolded_bytes(&dictionary, 100) < 3000);
    }
}
