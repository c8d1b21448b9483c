//! Changes of single values, as tables of 256 values or as bits.

use crate::tensor::Bits;

/// A result for each value of a byte.
pub(super) type Table = [u8; 256];

/// The identity.
pub(super) fn identity() -> Table {
    std::array::from_fn(|value| value as u8)
}

/// Subtracts every value from 255, which inverts its bits.
pub(super) fn invert() -> Bits {
    Bits { retained: 0xff, inverted: 0xff }
}

/// The table of a change of bits.
pub(super) fn of_bits(bits: Bits) -> Table {
    identity().map(|value| bits.of(value))
}

/// Subtracts values from a threshold on from 255.
pub(super) fn solarize(threshold: f64) -> Table {
    identity().map(|value| if f64::from(value) < threshold { value } else { 255 - value })
}

/// Adds a number to the values below a threshold.
pub(super) fn solarize_add(addend: u8, threshold: f64) -> Table {
    let add = |value: u8| value.saturating_add(addend);
    identity().map(|value| if f64::from(value) < threshold { add(value) } else { value })
}

/// Retains only the upper bits of every value.
pub(super) fn posterize(bits: u32) -> Bits {
    let lower = 0xff_u32.checked_shr(bits).unwrap_or(0) as u8;
    Bits { retained: !lower, inverted: 0 }
}

/// torchvision's `adjust_gamma` on PIL images.
pub(super) fn gamma(gamma: f64, gain: f64) -> Table {
    // The cast truncates and saturates at 255.
    identity().map(|value| {
        ((255.0 + 1.0 - 1e-3) * gain * libm::pow(f64::from(value) / 255.0, gamma)) as u8
    })
}

/// Half of the range of the sigmoid curve: crumpets' constant.
const SIGMOID_RANGE: f64 = 6.279;

/// The contrast of crumpets: a sigmoid curve, or its inverse if `contrast` is negative, followed by
/// a power of each value.
pub(super) fn tone(contrast: f64, gamma: f64) -> Table {
    let offset = 1.0 / (1.0 + libm::exp(SIGMOID_RANGE));
    let range = 1.0 - 2.0 * offset;
    let share = contrast.abs();
    identity().map(|value| {
        let at = f64::from(value) / 255.0;
        let curve = if contrast < 0.0 {
            let end = libm::atanh(range);
            (libm::atanh(range * (2.0 * at - 1.0)) + end) / (2.0 * end)
        } else {
            (1.0 / (1.0 + libm::exp(SIGMOID_RANGE - 2.0 * SIGMOID_RANGE * at)) - offset) / range
        };
        let mixed = (1.0 - share) * at + share * curve;
        let power = if gamma == 1.0 { mixed } else { libm::pow(mixed.clamp(0.0, 1.0), gamma) };
        (255.0 * power).round_ties_even() as u8
    })
}

/// Pillow's `ImageOps.autocontrast` of a channel with a histogram.
pub(super) fn autocontrast(histogram: &[u32; 256]) -> Table {
    let low = histogram.iter().position(|count| *count > 0);
    let high = histogram.iter().rposition(|count| *count > 0);
    let (Some(low), Some(high)) = (low, high) else { return identity() };
    if low == high {
        return identity();
    }
    let scale = 255.0 / (high - low) as f64;
    let offset = -(low as f64) * scale;
    identity().map(|value| (f64::from(value) * scale + offset) as u8)
}

/// Pillow's `ImageOps.equalize` of a channel with a histogram.
pub(super) fn equalize(histogram: &[u32; 256]) -> Table {
    let sum: u32 = histogram.iter().sum();
    let last = histogram.iter().rev().copied().find(|count| *count > 0).unwrap_or(0);
    let step = (sum - last) / 255;
    if step == 0 {
        return identity();
    }
    let mut below = step / 2;
    histogram.map(|count| {
        let value = (below / step).min(255) as u8;
        below += count;
        value
    })
}
