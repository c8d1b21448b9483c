//! The source of the coefficients of a picture.

use super::form::{FormReader, RowComponent};
use super::lenient::LenientRows;
use super::rows::BlockRows;
use super::sequential::Sequential;
use super::{Block, Coefficients};
use crate::Error;
use std::ops::Range;

/// A source of coefficients, row of MCUs by row of MCUs from top to bottom.
#[expect(clippy::large_enum_variant, reason = "there is one for each picture, on the stack")]
pub(super) enum Source<'a, 'b> {
    /// Entropy-coded data, decoded in order.
    Sequential(Sequential<'a>),
    /// All coefficients of the picture.
    Whole(&'a Coefficients),
    /// The coefficient form.
    Form(&'a mut FormReader<'b>),
    /// Damaged entropy-coded data, filled in.
    Lenient(LenientRows<'a>),
}

impl Source<'_, '_> {
    /// Fills `rows`, which has the size of these columns of MCUs.
    pub(super) fn row(
        &mut self,
        mcu_row: u32,
        columns: Range<u32>,
        rows: &mut BlockRows,
    ) -> Result<(), Error> {
        match self {
            Self::Sequential(scan) => scan.row(mcu_row, columns, rows),
            Self::Lenient(scan) => scan.row(mcu_row, columns, rows),
            Self::Whole(coefficients) => {
                copy(coefficients, mcu_row, &columns, rows);
                Ok(())
            }
            Self::Form(reader) => {
                let count = reader.frame().components.len();
                let mut into = rows.components_mut().each_mut().map(|component| {
                    let (blocks, extents) = component.all_mut();
                    RowComponent { blocks, extents }
                });
                Ok(reader.row(mcu_row, columns, &mut into[..count])?)
            }
        }
    }
}

fn copy(from: &Coefficients, mcu_row: u32, columns: &Range<u32>, into: &mut BlockRows) {
    let mcus = (columns.end - columns.start) as usize;
    for (index, plane) in from.planes.iter().enumerate() {
        let rows = into.component_mut(index);
        for row in 0..rows.high() {
            let y = mcu_row as usize * rows.high() + row;
            let (blocks, extents) = rows.row_mut(row);
            let x = columns.start as usize * blocks.len() / mcus;
            let at = y * plane.blocks_wide as usize + x;
            blocks.copy_from_slice(&plane.blocks[at..at + blocks.len()]);
            for (extent, Block(block)) in extents.iter_mut().zip(blocks) {
                let is_dc_only = block[1..].iter().all(|coefficient| *coefficient == 0);
                *extent = if is_dc_only { 0 } else { 63 };
            }
        }
    }
}
