//! Weights of the pixels around a position in float32, and the error of their sum compared with the
//! float64 arithmetic that gives Pillow's bits.
//!
//! A sum in float32 differs from that of Pillow by less than [`Taps::error`]. If the sum minus this
//! error and the sum plus this error have the same integer part, that is Pillow's result. The few
//! other values are doubtful and computed with Pillow's arithmetic, by [`Taps::exact`].

use super::interpolate::{between, cubic};
use crate::vector::{truncated, whole};

/// The weighted pixels along an axis: of the four around a position, the second and the third, or
/// all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taps {
    Two,
    Four,
}

impl Taps {
    /// Upper bound of the error of a sum in float32.
    ///
    /// Bytes are exact. A distance is rounded by up to 2^-25. The weights of four pixels, whose
    /// magnitudes add up to at most 1.5 along an axis, differ by 3 * 10^-7 in all, those of a
    /// distance rounded included. A sum of 255 times 1.5 times that along both axes, and the
    /// roundings of the products and sums, of which none exceeds 574, are below 5 * 10^-4. Two
    /// weights add up to 1, and no sum exceeds 255: the same terms are below 1.2 * 10^-4.
    pub(super) fn error(self) -> f32 {
        match self {
            Self::Two => 1.0 / 4096.0,
            Self::Four => 1.0 / 1024.0,
        }
    }

    /// The weights of the four pixels at a distance after the second, 0 to 1.
    #[inline(always)]
    pub(super) fn weights(self, distance: f32) -> [f32; 4] {
        let rest = 1.0 - distance;
        match self {
            Self::Two => [0.0, rest, distance, 0.0],
            Self::Four => {
                let product = distance * rest;
                [
                    -(product * rest),
                    rest + rest * product,
                    distance + distance * product,
                    -(product * distance),
                ]
            }
        }
    }

    /// Pillow's value at a distance after the second of four numbers along an axis.
    #[inline(always)]
    pub(super) fn along(self, numbers: [f64; 4], distance: f64) -> f64 {
        match self {
            Self::Two => between(numbers[1], numbers[2], distance),
            Self::Four => cubic(numbers, distance),
        }
    }

    /// Pillow's byte for a value: clamped, then truncated.
    #[inline(always)]
    pub(super) fn byte(value: f64) -> u8 {
        whole(if value < 255.0 { value } else { 255.0 }) as u8
    }

    /// Pillow's byte at a distance after the second of four bytes along one axis.
    pub(super) fn exact(self, bytes: [u8; 4], distance: f64) -> u8 {
        Self::byte(self.along(bytes.map(f64::from), distance))
    }
}

/// The lowest and the highest byte that a value can have.
#[inline(always)]
pub(super) fn bounds(value: f32, error: f32) -> [u8; 2] {
    [truncated(value - error), truncated(value + error)]
}
