//! Dequantisation and inverse DCT: runs of coefficient blocks to rows of samples.
//!
//! In reading order: [`mod@islow`] (the exact transform, libjpeg's default), [`mod@scaled`] (its
//! transforms to 4x4, 2x2 and 1x1 samples). Each agrees with
//! libjpeg-turbo as it runs on x86-64 with SIMD for every coefficient and every table, those
//! included that no encoder writes: products are cut to 16 bits, sums of two rows wrap, what leaves
//! the first pass is clamped to 16 bits. The C code of libjpeg computes such blocks differently.

mod islow;
mod scaled;
#[cfg(test)]
mod tests;

use super::{Block, QuantTable};

pub(crate) use islow::islow;
pub(crate) use scaled::{Scale, scaled};

/// Samples of a row or a column of a block.
const SIDE: usize = 8;

/// Last zigzag index up to which all coefficients are in the 4x4 of lowest frequency.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const CORNER_EXTENT: u8 = 9;

/// A quantisation table prepared for the transforms.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Dequantiser {
    /// The table itself; a value of 32,768 or more is negative, which makes no difference to 16-bit
    /// products.
    steps: [i16; 64],
}

impl Dequantiser {
    /// Prepares a table.
    pub(crate) fn new(table: &QuantTable) -> Self {
        Self { steps: table.0.map(|value| value as i16) }
    }

    /// The factors of the coefficients, in natural order.
    pub(crate) fn steps(&self) -> &[i16; 64] {
        &self.steps
    }
}

/// Checks that a run of blocks and its output fit together: `side` rows, `stride` bytes apart, of
/// `side` bytes a block.
fn check_run(blocks: &[Block], extents: usize, out: &[u8], stride: usize, side: usize) {
    let width = blocks.len() * side;
    assert_eq!(blocks.len(), extents, "every block has an extent");
    assert!(stride >= width, "rows of {width} bytes overlap at a stride of {stride}");
    let needed = stride.checked_mul(side - 1).and_then(|above| above.checked_add(width));
    assert!(needed.is_some_and(|needed| needed <= out.len()), "the output has room for the run");
}

/// Copies the samples of a block to their position in the output.
#[inline(always)]
fn store<const N: usize>(samples: &[[u8; N]; N], out: &mut [u8], stride: usize) {
    for (row, samples) in samples.iter().enumerate() {
        out[row * stride..][..N].copy_from_slice(samples);
    }
}
