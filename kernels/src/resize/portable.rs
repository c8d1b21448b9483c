//! The reference implementation of a resize: both passes in plain integer arithmetic.
//!
//! Sums wrap in 32 bits. They cannot overflow with weights that add up to one; with wrapping, every
//! order of addition, and so every instruction set, gives the same result in any case.

use super::coefficients::{Coefficients, PRECISION_BITS};

/// Half of a unit of the result, added for rounding.
pub(super) const HALF: i32 = 1 << (PRECISION_BITS - 1);

/// Bytes of an output row that the pass along the columns computes at once.
pub(super) const STEP: usize = 32;

/// The pass along a row of a plane.
pub(super) fn across(coefficients: &Coefficients, row: &[u8], out: &mut [u8]) {
    for (x, out) in out.iter_mut().take(coefficients.runs.len()).enumerate() {
        let (first, weights) = coefficients.run(x);
        let products = row[first..]
            .iter()
            .zip(weights)
            .map(|(value, weight)| i32::from(*value).wrapping_mul(*weight));
        *out = clip(products.fold(HALF, i32::wrapping_add));
    }
}

/// The pass along the columns: one output row from the rows of `from` at the offsets `taps`, one
/// per weight.
#[inline(always)]
pub(super) fn down(from: &[u8], taps: &[usize], weights: &[i32], out: &mut [u8]) {
    for (step, out) in out.as_chunks_mut::<STEP>().0.iter_mut().enumerate() {
        let mut sums = [HALF; STEP];
        for (tap, weight) in taps.iter().zip(weights) {
            let values = &from[tap + step * STEP..][..STEP];
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum = sum.wrapping_add(i32::from(*value).wrapping_mul(*weight));
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = clip(sum);
        }
    }
}

/// Rounds a sum to a byte.
#[inline(always)]
pub(super) fn clip(sum: i32) -> u8 {
    (sum >> PRECISION_BITS).clamp(0, 255) as u8
}
