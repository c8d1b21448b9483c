//! Integers in proportion to weights, so that every machine draws the same samples.

use super::error::SamplerError;
use std::sync::Arc;

/// Maximum bits of an integer weight: the bits of a double-precision mantissa.
const BITS_MAX: u32 = 52;

/// ceil(weight / largest weight · 2^bits), where `bits` is 62 minus the bits of the number of
/// weights, at most 52: the sum is below 2^63, and a positive weight never becomes 0. The division
/// is rounded according to IEEE 754, and the multiplication by a power of two is exact.
pub(super) fn whole_weights(weights: &[f64]) -> Result<Arc<[u64]>, SamplerError> {
    let wrong = |weight: &f64| !weight.is_finite() || *weight < 0.0;
    if let Some(at) = weights.iter().position(wrong) {
        return Err(SamplerError::Weight { sample: at as u64, value: weights[at] });
    }
    let greatest = weights.iter().copied().fold(0.0, f64::max);
    if greatest <= 0.0 {
        return Err(SamplerError::NoWeight);
    }
    let bits = (62 - (u64::BITS - (weights.len() as u64).leading_zeros())).min(BITS_MAX);
    let scale = (1u64 << bits) as f64;
    // At least 1 for a positive weight, even if the quotient rounds to 0.
    let whole = |weight: &f64| match *weight > 0.0 {
        true => ((weight / greatest * scale).ceil() as u64).max(1),
        false => 0,
    };
    Ok(weights.iter().map(whole).collect())
}
