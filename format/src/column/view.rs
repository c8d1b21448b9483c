//! The values of a column in memory, and the checks of bytes that another process wrote.
//!
//! Nothing here indexes without a check: a device shares the memory and may change it after it was
//! checked.

use super::layout::{OFFSET_BYTES, SHAPE_BYTES, bytes_before_values, row_bytes};
use super::{BatchLayout, Column, ColumnKind, ElementType, VARIES};
use serde::{Deserialize, Serialize};

/// A problem in the content of a column whose checksum is correct.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentError {
    /// Offsets that do not begin at 0, decrease, or do not end at the number of rows.
    #[error("offset {index} is {got}, expected {least} to {most}")]
    Offset {
        /// Index of the offset.
        index: usize,
        /// As found.
        got: i64,
        /// Smallest valid value.
        least: i64,
        /// Largest valid value.
        most: i64,
    },
    /// A text that is not UTF-8.
    #[error("the text of sample {index} of the batch is not UTF-8")]
    Text {
        /// Position in the batch.
        index: usize,
    },
    /// A shape whose number of elements differs from the offsets, or with a different length along
    /// an axis that is common to all samples.
    #[error(
        "the shape of sample {index} of the batch is {got:?}, which does not fit {elements} \
             elements of axes {axes:?}"
    )]
    Shape {
        /// Position in the batch.
        index: usize,
        /// As found.
        got: Vec<i64>,
        /// Elements of the sample.
        elements: i64,
        /// The axes, as they are declared.
        axes: Vec<u32>,
    },
    /// A bool that is neither 0 nor 1.
    #[error("a bool is {got}, expected 0 or 1")]
    Bool {
        /// As found.
        got: u8,
    },
}

/// A column of a batch: its declaration and its bytes.
#[derive(Debug, Clone, Copy)]
pub struct ColumnBytes<'a> {
    column: &'a Column,
    samples: usize,
    /// Offsets, if the length varies.
    offsets: &'a [u8],
    /// The shapes, if they differ between samples.
    shapes: &'a [u8],
    values: &'a [u8],
    row_bytes: usize,
}

impl<'a> ColumnBytes<'a> {
    /// The column with an index in a payload; `None` if the payload is shorter than the layout.
    pub fn new(
        column: &'a Column,
        index: usize,
        layout: &BatchLayout,
        payload: &'a [u8],
    ) -> Option<Self> {
        let extent = layout.extent(index);
        let start = usize::try_from(extent.offset).ok()?;
        let bytes = usize::try_from(extent.bytes).ok()?;
        let bytes = payload.get(start..start.checked_add(bytes)?)?;
        let samples = layout.samples() as usize;
        let (offsets, before) = match column.kind.has_offsets() {
            true => {
                let before = bytes_before_values(&column.kind, layout.samples());
                (OFFSET_BYTES as usize * (samples + 1), usize::try_from(before).ok()?)
            }
            false => (0, 0),
        };
        let (before, values) = bytes.split_at_checked(before)?;
        let (offsets, shapes) = before.split_at_checked(offsets)?;
        let row_bytes = row_bytes(&column.kind, layout.all_axes(index))?;
        let row_bytes = usize::try_from(row_bytes).ok()?;
        Some(Self { column, samples, offsets, shapes, values, row_bytes })
    }

    /// Its declaration.
    pub fn column(&self) -> &'a Column {
        self.column
    }

    /// Samples of the batch.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Rows of all samples together.
    pub fn rows(&self) -> usize {
        self.values.len() / self.row_bytes.max(1)
    }

    /// The values of all samples, one after another.
    pub fn values(&self) -> &'a [u8] {
        self.values
    }

    /// The n-th offset, in rows: the value of sample n lies between offsets n and n + 1. `None`
    /// beyond the last.
    pub fn offset(&self, n: usize) -> Option<i64> {
        if !self.column.kind.has_offsets() {
            return (n <= self.samples).then_some(i64::try_from(n).ok()?);
        }
        let at = n.checked_mul(OFFSET_BYTES as usize)?;
        let bytes = self.offsets.get(at..)?.first_chunk()?;
        Some(i64::from_le_bytes(*bytes))
    }

    /// The shape of a sample's value, if shapes differ between samples; `None` for other columns
    /// and if the sample does not exist.
    pub fn shape(&self, sample: usize) -> Option<Vec<i64>> {
        let rank = self.column.kind.rank_of_shapes();
        let bytes = rank * SHAPE_BYTES as usize;
        let own = self.shape_bytes(sample).filter(|own| rank > 0 && own.len() == bytes)?;
        Some(own.as_chunks().0.iter().copied().map(i64::from_le_bytes).collect())
    }

    /// The bytes of the shape of a sample's value; empty if shapes do not differ.
    pub fn shape_bytes(&self, sample: usize) -> Option<&'a [u8]> {
        let bytes = self.column.kind.rank_of_shapes() * SHAPE_BYTES as usize;
        let start = sample.checked_mul(bytes)?;
        self.shapes.get(start..start.checked_add(bytes)?)
    }

    /// The bytes of a sample's value; `None` if the sample does not exist, or if the memory was
    /// changed so that offsets are out of range.
    pub fn value(&self, sample: usize) -> Option<&'a [u8]> {
        let at = |n| usize::try_from(self.offset(n)?).ok()?.checked_mul(self.row_bytes);
        self.values.get(at(sample)?..at(sample.checked_add(1)?)?)
    }

    /// Checks what a checksum cannot: offsets, UTF-8 and bools.
    pub fn check(&self) -> Result<(), ContentError> {
        if self.column.kind.has_offsets() {
            self.check_offsets()?;
        }
        if self.column.kind.rank_of_shapes() > 0 {
            (0..self.samples).try_for_each(|index| self.check_shape(index))?;
        }
        if self.column.kind == ColumnKind::Text {
            let is_text = |sample| self.value(sample).is_some_and(|it| str::from_utf8(it).is_ok());
            if let Some(index) = (0..self.samples).find(|sample| !is_text(*sample)) {
                return Err(ContentError::Text { index });
            }
        }
        if self.column.kind.element() == ElementType::Bool
            && let Some(&got) = self.values.iter().find(|byte| **byte > 1)
        {
            return Err(ContentError::Bool { got });
        }
        Ok(())
    }

    /// Checks that the shape of a sample has as many elements as its (already checked) offsets say.
    fn check_shape(&self, index: usize) -> Result<(), ContentError> {
        let got = self.shape(index).unwrap_or_default();
        let at = |n| self.offset(n).unwrap_or_default();
        let (axes, elements) = (self.column.kind.axes(), at(index + 1) - at(index));
        let fits = |(length, axis): (&i64, &u32)| {
            *length >= 0 && (*axis == VARIES || *length == i64::from(*axis))
        };
        let product = got.iter().try_fold(1_i64, |product, length| product.checked_mul(*length));
        if got.iter().zip(axes).all(fits) && product == Some(elements) {
            return Ok(());
        }
        Err(ContentError::Shape { index, got, elements, axes: axes.to_vec() })
    }

    /// Checks that offsets begin at 0, never decrease and end at the number of rows.
    fn check_offsets(&self) -> Result<(), ContentError> {
        let rows = i64::try_from(self.rows()).unwrap_or(i64::MAX);
        let mut before = 0;
        for index in 0..=self.samples {
            let least = if index == self.samples { rows } else { before };
            let most = if index == 0 { 0 } else { rows };
            let got = self.offset(index).unwrap_or(i64::MIN);
            if got < least || got > most {
                return Err(ContentError::Offset { index, got, least, most });
            }
            before = got;
        }
        Ok(())
    }
}
