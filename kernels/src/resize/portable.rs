//! The meaning of a resize: both passes in plain integer arithmetic.
//!
//! Sums wrap in 32 bits. They cannot overflow with weights that add up to one; wrapping makes every
//! order of addition, and so every instruction set, agree in any case.

use super::coefficients::{Coefficients, PRECISION_BITS};

/// Half of the last place that is cut off.
pub(super) const HALF: i32 = 1 << (PRECISION_BITS - 1);

/// Bytes of an output row that the vertical pass sums up at once.
const STEP: usize = 32;

/// One row of the horizontal pass: RGB in, RGB out.
pub(super) fn horizontal(row: &[u8], coefficients: &Coefficients, out: &mut [u8]) {
    for (x, out) in out.chunks_exact_mut(3).enumerate() {
        let (first, weights) = coefficients.run(x);
        let mut sums = [HALF; 3];
        for (pixel, weight) in row[first * 3..].chunks_exact(3).zip(weights) {
            for (sum, value) in sums.iter_mut().zip(pixel) {
                *sum = sum.wrapping_add(i32::from(*value).wrapping_mul(*weight));
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = clip(sum);
        }
    }
}

/// One row of the vertical pass: bytes of a column are `stride` apart in `rows`, the first row
/// being that of the first weight.
#[inline(always)]
pub(super) fn vertical(rows: &[u8], stride: usize, weights: &[i32], out: &mut [u8]) {
    let mut at = 0;
    let mut chunks = out.chunks_exact_mut(STEP);
    for out in &mut chunks {
        let mut sums = [HALF; STEP];
        for (tap, weight) in weights.iter().enumerate() {
            let from: &[u8; STEP] =
                rows[tap * stride + at..][..STEP].try_into().expect("the length is that of a step");
            for (sum, value) in sums.iter_mut().zip(from) {
                *sum = sum.wrapping_add(i32::from(*value).wrapping_mul(*weight));
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = clip(sum);
        }
        at += STEP;
    }
    for (column, out) in chunks.into_remainder().iter_mut().enumerate() {
        let values = rows[at + column..].iter().step_by(stride);
        let sum = values.zip(weights).fold(HALF, |sum, (value, weight)| {
            sum.wrapping_add(i32::from(*value).wrapping_mul(*weight))
        });
        *out = clip(sum);
    }
}

/// A sum as a byte.
#[inline(always)]
pub(super) fn clip(sum: i32) -> u8 {
    (sum >> PRECISION_BITS).clamp(0, 255) as u8
}
