//! Samples of one component: a window of rows that moves down the picture.

use super::Block;
use super::geometry::ComponentNeed;
use super::idct::{self, Dequantiser};
use super::rows::ComponentRows;
use crate::Cpu;
use std::ops::Range;

/// Bytes behind the end of a row that may be read.
const SLACK: usize = 64;

/// Rows that stay when the next ones come: those that interpolation still looks at.
const KEPT_MAX: usize = 2;

/// A window of rows.
#[derive(Debug, Default)]
pub(super) struct Window {
    samples: Vec<u8>,
    stride: usize,
    /// Column of the picture's component where the window begins.
    first_column: usize,
    /// Rows in the window, as rows of the component.
    rows: Range<usize>,
    /// Rows of the component that are not padding.
    height: usize,
}

impl Window {
    /// Takes the size for some columns of MCUs, keeping what memory it has.
    pub(super) fn start(&mut self, need: &ComponentNeed, mcu_columns: &Range<u32>, row: u32) {
        let (mcu_wide, mcu_high) = need.mcu;
        let wide = ((mcu_columns.end - mcu_columns.start) * mcu_wide) as usize;
        let high = mcu_high as usize + KEPT_MAX;
        self.stride = wide.next_multiple_of(SLACK) + SLACK;
        self.first_column = (mcu_columns.start * mcu_wide) as usize;
        self.height = need.height as usize;
        let top = (row * mcu_high) as usize;
        self.rows = top..top;
        if self.samples.len() < self.stride * high {
            self.samples.resize(self.stride * high, 0);
        }
    }

    /// Adds the rows of the next row of MCUs. Rows before `keep_from` go.
    pub(super) fn add(
        &mut self,
        (cpu, fast): (Cpu, bool),
        dequantiser: &Dequantiser,
        blocks: &ComponentRows,
        need: &ComponentNeed,
        keep_from: usize,
    ) {
        let side = need.scale.side();
        let kept = self.rows.end - keep_from.clamp(self.rows.start, self.rows.end);
        debug_assert!(kept <= KEPT_MAX, "interpolation looks at {KEPT_MAX} rows at most");
        let from = (self.rows.len() - kept) * self.stride;
        self.samples.copy_within(from..from + kept * self.stride, 0);
        self.rows.start = self.rows.end - kept;
        for row in 0..blocks.high() {
            let first = self.rows.end as u32;
            if first < need.rows.end && first + side > need.rows.start {
                let out = &mut self.samples[self.rows.len() * self.stride..];
                let stride = self.stride;
                let (blocks, extents): (&[Block], &[u8]) = blocks.row(row);
                match need.scale.transform() {
                    Some(scale) => {
                        idct::scaled(cpu, scale, dequantiser, blocks, extents, out, stride);
                    }
                    None if fast => idct::ifast(cpu, dequantiser, blocks, extents, out, stride),
                    None => idct::islow(cpu, dequantiser, blocks, extents, out, stride),
                }
            }
            self.rows.end += side as usize;
        }
    }

    /// Column where the rows begin.
    pub(super) fn first_column(&self) -> usize {
        self.first_column
    }

    /// Row behind the last one.
    pub(super) fn end(&self) -> usize {
        self.rows.end
    }

    /// The samples of a row, those of the component's last one for rows below it.
    #[inline]
    pub(super) fn row(&self, row: usize) -> &[u8] {
        let row = row.min(self.height - 1) - self.rows.start;
        &self.samples[row * self.stride..(row + 1) * self.stride]
    }
}
