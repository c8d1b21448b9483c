//! The resize with AVX2: sums of eight output values at once, two taps per multiplication.
//!
//! Weights of 24 bits are too wide for the 16-bit multiplication, so they are split into two parts
//! with separate sums; `high * 2^11 + low` modulo 2^32 equals the sum of [`super::portable`].
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

mod down;
mod gather;
mod runs;

pub(super) use down::{Pair, down};

use super::coefficients::{Coefficients, PRECISION_BITS, WEIGHT_MAX};
use super::line::Line;
use gather::Gather;
use runs::Runs;
use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_slli_epi32, _mm256_srai_epi32,
};

/// Number of low bits of a weight that are multiplied separately.
const LOW_BITS: u32 = 11;

/// Number of output values in a vector of sums.
const GROUP: usize = 8;

/// Weights of the pass along the rows, in an order that depends on their runs.
#[derive(Debug, Default)]
pub(super) struct Packed {
    /// Whether neighbouring runs are close enough for `gather`.
    is_close: bool,
    gather: Gather,
    runs: Runs,
}

impl Packed {
    /// Splits and packs the weights.
    pub(super) fn pack(&mut self, coefficients: &Coefficients) {
        self.is_close = self.gather.pack(coefficients);
        if !self.is_close {
            self.runs.pack(coefficients);
        }
    }

    /// The pass along the rows.
    pub(super) fn across(&self, lines: &[Line<'_>], out: &mut [u8]) {
        if self.is_close {
            self.gather.across(lines, out);
        } else {
            self.runs.across(lines, out);
        }
    }
}

/// Splits two weights into both low parts and both high parts.
#[inline]
fn parts(first: i32, second: i32) -> (i32, i32) {
    const LOW: i32 = (1 << LOW_BITS) - 1;
    const { assert!(WEIGHT_MAX < 1 << (LOW_BITS + 15)) };
    let low = (first & LOW) | (second & LOW) << 16;
    let high = (first >> LOW_BITS) & 0xffff | (second >> LOW_BITS) << 16;
    (low, high)
}

/// Combines the sums of both parts and shifts out the fraction, leaving 32 bits each. `low` already
/// includes the rounding constant.
#[inline]
#[target_feature(enable = "avx2")]
fn finish(low: __m256i, high: __m256i) -> __m256i {
    let sum = _mm256_add_epi32(_mm256_slli_epi32::<{ LOW_BITS as i32 }>(high), low);
    _mm256_srai_epi32::<{ PRECISION_BITS as i32 }>(sum)
}

/// Eight numbers as a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn load(numbers: &[i32; 8]) -> __m256i {
    // SAFETY: the load takes the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_loadu_si256(numbers.as_ptr().cast()) }
}
