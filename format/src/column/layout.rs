//! Where each column of a batch lies in its payload.
//!
//! The layout is a function of the columns, the number of samples and the number of rows of each
//! column of variable length. Host and device compute it alike, so a slot whose table differs from
//! it is refused: overlaps, gaps and extents outside of the payload cannot be expressed.

use super::BatchColumns;

/// Alignment in bytes of a column, relative to the payload.
pub const COLUMN_ALIGNMENT: u64 = 64;

/// Bytes of an offset of a column of variable length (int64).
pub(super) const OFFSET_BYTES: u64 = 8;

/// Where one column lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// First byte, relative to the payload.
    pub offset: u64,
    /// Bytes, those of the offsets included.
    pub bytes: u64,
    /// Rows: samples, or the sum of the lengths of all samples where those vary.
    pub rows: u64,
}

/// Where the columns of a batch lie.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchLayout {
    samples: u32,
    extents: Vec<Extent>,
    bytes: u64,
}

impl BatchLayout {
    /// The layout of a batch of `samples` whose columns of variable length have `rows(column)` rows
    /// in all. `None` where 64 bits cannot hold its size.
    ///
    /// The image comes first, then the other columns of fixed length, then those of variable
    /// length, each group in the order of the columns.
    pub fn new(
        columns: &BatchColumns,
        samples: u32,
        mut rows: impl FnMut(usize) -> u64,
    ) -> Option<Self> {
        let all = columns.as_slice();
        let mut extents = vec![Extent::default(); all.len()];
        let mut end = 0_u64;
        for group in 0..3 {
            for (index, column) in all.iter().enumerate() {
                let own = match (column.source, column.kind.is_variable()) {
                    (source, _) if source.is_picture() => 0,
                    (_, false) => 1,
                    (_, true) => 2,
                };
                if own != group {
                    continue;
                }
                let offset = end.checked_next_multiple_of(COLUMN_ALIGNMENT)?;
                let row_bytes = column.kind.row_bytes()?;
                let (rows, offsets) = match column.kind.is_variable() {
                    true => (rows(index), OFFSET_BYTES * (u64::from(samples) + 1)),
                    false => (u64::from(samples), 0),
                };
                let bytes = rows.checked_mul(row_bytes)?.checked_add(offsets)?;
                end = offset.checked_add(bytes)?;
                extents[index] = Extent { offset, bytes, rows };
            }
        }
        Some(Self { samples, extents, bytes: end })
    }

    /// Most bytes of a batch of `samples`, where the value of a sample in column i has at most
    /// `value_bytes_max[i]` bytes (ignored where the length is fixed); `u64::MAX` where 64 bits
    /// cannot hold that.
    pub fn bytes_max(columns: &BatchColumns, samples: u32, value_bytes_max: &[u64]) -> u64 {
        let rows = |index: usize| {
            let row_bytes = columns.as_slice()[index].kind.row_bytes().unwrap_or(u64::MAX).max(1);
            value_bytes_max[index].div_ceil(row_bytes).saturating_mul(u64::from(samples))
        };
        Self::new(columns, samples, rows).map_or(u64::MAX, |layout| layout.bytes)
    }

    /// Samples of the batch.
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// Where the column with an index lies.
    pub fn extent(&self, column: usize) -> Extent {
        self.extents[column]
    }

    /// Where all columns lie, in their order.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Bytes of the payload.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
