//! Interpolates between two values.

use crate::vector::truncated;

/// `Image.blend` of two values: `from` at 0, `to` at 1, clipped beyond.
#[inline(always)]
pub(super) fn blend(from: u8, to: u8, factor: f32) -> u8 {
    let difference = f32::from(to) - f32::from(from);
    truncated(f32::from(from) + factor * difference)
}
