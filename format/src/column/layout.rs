//! The position of each column of a batch in its payload.
//!
//! The layout is a function of the columns, the number of samples and the number of rows of each
//! column of variable length. Host and device compute it independently, and a slot whose table
//! differs is refused, so overlaps, gaps and extents outside of the payload cannot occur.

use super::limits::AXES_MAX;
use super::{BatchColumns, ColumnKind};

/// Alignment in bytes of a column, relative to the payload.
pub const COLUMN_ALIGNMENT: u64 = 64;

/// Bytes of an offset of a column of variable length (int64).
pub(super) const OFFSET_BYTES: u64 = 8;

/// Bytes of a length in the shape of a sample (int64).
pub(super) const SHAPE_BYTES: u64 = 8;

/// The position of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// Offset of its first byte in the payload.
    pub offset: u64,
    /// Length in bytes, including the offsets.
    pub bytes: u64,
    /// Rows: samples, or the sum of the lengths of all samples where those vary.
    pub rows: u64,
}

/// The positions of the columns of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchLayout {
    samples: u32,
    extents: Vec<Extent>,
    /// Lengths of the axes of each column.
    axes: Vec<[u32; AXES_MAX]>,
    bytes: u64,
}

impl BatchLayout {
    /// The layout of a batch of `samples` whose columns of variable length have `rows(column)` rows
    /// in total. `None` if its size exceeds 64 bits.
    ///
    /// The image comes first, then the other columns of fixed length, then those of variable
    /// length, each group in the order of the columns. Axes that are padded have length 0.
    pub fn new(
        columns: &BatchColumns,
        samples: u32,
        rows: impl FnMut(usize) -> u64,
    ) -> Option<Self> {
        Self::with_axes(columns, samples, rows, |_| [0; AXES_MAX])
    }

    /// As [`Self::new`]; `axes(column)` gives the lengths of the padded axes of a column. The
    /// lengths of its other axes are ignored.
    pub fn with_axes(
        columns: &BatchColumns,
        samples: u32,
        mut rows: impl FnMut(usize) -> u64,
        mut axes: impl FnMut(usize) -> [u32; AXES_MAX],
    ) -> Option<Self> {
        let all = columns.as_slice();
        let lengths: Vec<[u32; AXES_MAX]> =
            (0..all.len()).map(|index| all[index].kind.lengths(&axes(index))).collect();
        let mut extents = vec![Extent::default(); all.len()];
        let mut end = 0_u64;
        for group in 0..3 {
            for (index, column) in all.iter().enumerate() {
                let own = match (column.source, column.kind.has_offsets()) {
                    (source, _) if source.is_picture() => 0,
                    (_, false) => 1,
                    (_, true) => 2,
                };
                if own != group {
                    continue;
                }
                let offset = end.checked_next_multiple_of(COLUMN_ALIGNMENT)?;
                let row_bytes = row_bytes(&column.kind, &lengths[index])?;
                let (rows, before) = match column.kind.has_offsets() {
                    true => (rows(index), bytes_before_values(&column.kind, samples)),
                    false => (u64::from(samples), 0),
                };
                let bytes = rows.checked_mul(row_bytes)?.checked_add(before)?;
                end = offset.checked_add(bytes)?;
                extents[index] = Extent { offset, bytes, rows };
            }
        }
        Some(Self { samples, extents, axes: lengths, bytes: end })
    }

    /// Upper bound of the bytes of a batch of `samples`, if a value of column i has at most
    /// `value_bytes_max[i]` bytes including padding (ignored for a fixed length); `u64::MAX` if the
    /// bound exceeds 64 bits.
    pub fn bytes_max(columns: &BatchColumns, samples: u32, value_bytes_max: &[u64]) -> u64 {
        let rows = |index: usize| {
            let kind = &columns.as_slice()[index].kind;
            // With padded axes of length 1.
            let row_bytes = kind.row_bytes().unwrap_or(u64::MAX).max(1);
            value_bytes_max[index].div_ceil(row_bytes).saturating_mul(u64::from(samples))
        };
        let Some(layout) = Self::with_axes(columns, samples, rows, |_| [1; AXES_MAX]) else {
            return u64::MAX;
        };
        let missing = columns.as_slice().iter().enumerate().map(|(index, column)| {
            let has_row = column.kind.is_padded() && !column.kind.has_offsets();
            if !has_row {
                return 0;
            }
            let all = value_bytes_max[index].saturating_mul(u64::from(samples));
            all.saturating_sub(layout.extents[index].bytes).saturating_add(COLUMN_ALIGNMENT)
        });
        missing.fold(layout.bytes, u64::saturating_add)
    }

    /// Samples of the batch.
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// The position of the column with an index.
    pub fn extent(&self, column: usize) -> Extent {
        self.extents[column]
    }

    /// The positions of all columns, in their order.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// The lengths of the axes of a column, outermost first: as [`ColumnKind::axes`], but padded
    /// axes have their length in this batch.
    pub fn axes(&self, columns: &BatchColumns, column: usize) -> &[u32] {
        &self.axes[column][..columns.as_slice()[column].kind.axes().len()]
    }

    /// The lengths of the axes of a column, followed by zeros.
    pub(crate) fn all_axes(&self, column: usize) -> &[u32; AXES_MAX] {
        &self.axes[column]
    }

    /// Bytes of the payload.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Bytes of the offsets and shapes of a column, before its values.
pub(super) fn bytes_before_values(kind: &ColumnKind, samples: u32) -> u64 {
    let samples = u64::from(samples);
    OFFSET_BYTES * (samples + 1) + SHAPE_BYTES * samples * kind.rank_of_shapes() as u64
}

/// Bytes of a row of a column whose axes have these lengths.
pub(super) fn row_bytes(kind: &ColumnKind, lengths: &[u32; AXES_MAX]) -> Option<u64> {
    kind.row_bytes_of(&lengths[..kind.axes().len()])
}
