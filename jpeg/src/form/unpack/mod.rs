//! Unpacks a row of MCUs: first the data that its blocks share, then the blocks.

pub(super) mod compact;
pub(super) mod fast;

use super::geometry::{GROUPS, Strip};
use super::simd::{self, Kernel};
use crate::Block;
use crate::form_error::{FormError, damaged};
use std::ops::Range;

/// One component's blocks of a row of MCUs, and how far their coefficients reach.
///
/// An *extent* is the zigzag index of a block's last coefficient that is not zero, 0 if there is
/// none but DC; or, where that is quicker to find, 9 if all lie among the four lowest frequencies
/// both across and down, and 63 if not.
#[derive(Debug)]
pub struct RowComponent<'a> {
    /// The component's block rows one below the other, each of the columns asked for.
    pub blocks: &'a mut [Block],
    /// One for each block.
    pub extents: &'a mut [u8],
}

/// The inputs for unpacking a row.
pub(super) struct Task<'a> {
    pub(super) kernel: Kernel,
    pub(super) strips: &'a [Strip],
    /// Blocks of all strips.
    pub(super) blocks: usize,
    /// Columns of MCUs that are needed.
    pub(super) columns: Range<usize>,
    /// The row's bytes and [`super::lanes::SLACK`] more, or still more.
    pub(super) bytes: &'a [u8],
    /// How many bytes are the row's.
    pub(super) length: usize,
    /// Their offset in the stored bytes.
    pub(super) offset: usize,
}

impl Task<'_> {
    fn fault(&self, reason: &'static str) -> FormError {
        damaged(self.offset, reason)
    }
}

/// Memory that is reused from row to row.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Class of each block.
    classes: Vec<u8>,
    /// DC of each block; before [`Shared::sum_dc`] differences.
    dc: Vec<i16>,
    /// Widths of groups.
    widths: Vec<u8>,
}

impl Shared {
    /// Resizes the lists with one entry for each block of a row.
    fn prepare(&mut self, task: &Task<'_>) {
        // One code holds three classes; the last one of a line may have two without meaning.
        self.classes.resize(task.blocks + 3, 0);
        // Groups of eight are stored whole, at the end of a line too.
        self.dc.resize(task.blocks + GROUPS, 0);
    }

    /// Turns differences of DC into DC.
    fn sum_dc(&mut self, kernel: Kernel, strips: &[Strip]) {
        for strip in strips {
            let mut above = 0;
            for line in self.dc[strip.first..][..strip.blocks()].chunks_exact_mut(strip.wide) {
                simd::prefix_sums(kernel, above, line);
                above = line[0];
            }
        }
    }
}

/// The strips of a kind: the first component, or all others.
fn strips_of_kind(strips: &[Strip], kind: usize) -> Range<usize> {
    if kind == 0 { 0..1 } else { 1..strips.len() }
}
