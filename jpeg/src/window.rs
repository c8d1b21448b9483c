//! Samples of one component: a window of rows that moves down the picture.

use super::Block;
use super::geometry::ComponentNeed;
use super::idct::{self, Dequantiser};
use super::rows::ComponentRows;
use super::upsample::Upsampling;
use crate::Cpu;
use std::ops::Range;

/// Bytes after the end of a row that may be read.
const SLACK: usize = 64;

/// Rows that stay when the next ones are added: those that interpolation still needs.
const RETAINED_MAX: usize = 2;

/// Bytes before a row. With the triangle filter along rows, the last of them repeats the first
/// sample of the component, and the sample after the last one repeats that one.
const MARGIN: usize = 32;

/// A window of rows.
#[derive(Debug, Default)]
pub(super) struct Window {
    samples: Vec<u8>,
    stride: usize,
    /// Column of the component at which the window begins.
    first_column: usize,
    /// Rows in the window, as rows of the component.
    rows: Range<usize>,
    /// Rows of the component that are not padding.
    height: usize,
    /// The column of the window where its last samples are repeated, if they are.
    end: Option<usize>,
}

impl Window {
    /// Resizes for some columns of MCUs, retaining its memory.
    pub(super) fn start(&mut self, need: &ComponentNeed, mcu_columns: &Range<u32>, row: u32) {
        let (mcu_wide, mcu_high) = need.mcu;
        let wide = ((mcu_columns.end - mcu_columns.start) * mcu_wide) as usize;
        let high = mcu_high as usize + RETAINED_MAX;
        self.stride = MARGIN + wide.next_multiple_of(SLACK) + SLACK;
        self.first_column = (mcu_columns.start * mcu_wide) as usize;
        self.height = need.height as usize;
        let end = (need.width as usize - self.first_column).min(wide);
        let filtered = [Upsampling::FancyH2V1, Upsampling::FancyH2V2];
        self.end = filtered.contains(&need.upsampling).then_some(end);
        let top = (row * mcu_high) as usize;
        self.rows = top..top;
        if self.samples.len() < self.stride * high {
            self.samples.resize(self.stride * high, 0);
        }
    }

    /// Adds the rows of the next row of MCUs. Rows before `keep_from` are dropped.
    pub(super) fn add(
        &mut self,
        cpu: Cpu,
        dequantiser: &Dequantiser,
        blocks: &ComponentRows,
        need: &ComponentNeed,
        keep_from: usize,
    ) {
        let side = need.scale.side();
        let kept = self.rows.end - keep_from.clamp(self.rows.start, self.rows.end);
        debug_assert!(kept <= RETAINED_MAX, "interpolation needs at most {RETAINED_MAX} rows");
        let from = (self.rows.len() - kept) * self.stride;
        self.samples.copy_within(from..from + kept * self.stride, 0);
        self.rows.start = self.rows.end - kept;
        for row in 0..blocks.high() {
            let first = self.rows.end as u32;
            if first < need.rows.end && first + side > need.rows.start {
                let out = &mut self.samples[self.rows.len() * self.stride + MARGIN..];
                let stride = self.stride;
                let (blocks, extents): (&[Block], &[u8]) = blocks.row(row);
                match need.scale.transform() {
                    Some(scale) => {
                        idct::scaled(cpu, scale, dequantiser, blocks, extents, out, stride);
                    }
                    None => idct::islow(cpu, dequantiser, blocks, extents, out, stride),
                }
                self.repeat_ends(side as usize);
            }
            self.rows.end += side as usize;
        }
    }

    /// Repeats the samples at the ends of the rows that are being added.
    fn repeat_ends(&mut self, rows: usize) {
        let Some(end) = self.end else { return };
        let added = self.samples[self.rows.len() * self.stride..].chunks_exact_mut(self.stride);
        for row in added.take(rows) {
            row[MARGIN - 1] = row[MARGIN];
            row[MARGIN + end] = row[MARGIN + end - 1];
        }
    }

    /// Column at which the rows begin.
    pub(super) fn first_column(&self) -> usize {
        self.first_column
    }

    /// Row after the last one.
    pub(super) fn end(&self) -> usize {
        self.rows.end
    }

    /// The samples of a row, those of the component's last one for rows below it.
    #[inline]
    pub(super) fn row(&self, row: usize) -> &[u8] {
        &self.row_with_ends(row)[1..]
    }

    /// The row from one sample earlier. With the triangle filter along its rows, the first and the
    /// last sample of the component are repeated.
    #[inline]
    pub(super) fn row_with_ends(&self, row: usize) -> &[u8] {
        let row = row.min(self.height - 1) - self.rows.start;
        &self.samples[row * self.stride + MARGIN - 1..(row + 1) * self.stride]
    }
}
