//! The pass along the rows for strong shrinking: 16 taps of one output value at once.

use super::super::super::planes::ROW_SLACK;
use super::super::coefficients::Coefficients;
use super::super::line::Line;
use super::super::portable::{HALF, clip};
use super::{LOW_BITS, load, parts};
use std::arch::x86_64::{
    __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_loadu_si128, _mm_shuffle_epi32,
    _mm_unpackhi_epi64, _mm256_add_epi32, _mm256_castsi256_si128, _mm256_cvtepu8_epi16,
    _mm256_extracti128_si256, _mm256_madd_epi16, _mm256_setzero_si256, _mm256_slli_epi32,
};

/// Taps of a step.
const TAPS: usize = 16;

/// Weights of 16 taps.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
struct Step {
    low: [i32; TAPS / 2],
    high: [i32; TAPS / 2],
}

/// Weights in steps; the number of steps per output value depends on its run.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// First input position and number of steps of each output value.
    runs: Vec<(u32, u32)>,
    steps: Vec<Step>,
    /// Bytes of a row that may be read.
    reach: usize,
}

impl Runs {
    /// Packs the weights.
    pub(super) fn pack(&mut self, coefficients: &Coefficients) {
        self.runs.clear();
        self.steps.clear();
        self.reach = 0;
        for output in 0..coefficients.runs.len() {
            let (first, weights) = coefficients.run(output);
            let steps = weights.len().div_ceil(TAPS);
            self.runs.push((first as u32, steps as u32));
            self.reach = self.reach.max(first + steps * TAPS);
            self.steps.extend(weights.chunks(TAPS).map(|weights| {
                let mut step = Step { low: [0; TAPS / 2], high: [0; TAPS / 2] };
                for (place, weights) in weights.chunks(2).enumerate() {
                    let second = weights.get(1).copied().unwrap_or(0);
                    (step.low[place], step.high[place]) = parts(weights[0], second);
                }
                step
            }));
        }
        const { assert!(TAPS <= ROW_SLACK) };
    }

    /// The pass along the rows.
    pub(super) fn across(&self, lines: &[Line<'_>], out: &mut [u8]) {
        for line in lines {
            let out = &mut out[line.to..][..self.runs.len()];
            assert!(line.from.len() >= self.reach, "a row goes on behind its end");
            // SAFETY: the machine has AVX2, for which `Passes` has been made, and the row has the
            // bytes that are read.
            unsafe { self.row(line.from, out) };
        }
    }

    /// One row.
    ///
    /// # Safety
    ///
    /// The row has `reach` bytes.
    #[target_feature(enable = "avx2")]
    unsafe fn row(&self, row: &[u8], out: &mut [u8]) {
        let mut steps = self.steps.iter();
        for (out, (first, count)) in out.iter_mut().zip(&self.runs) {
            let mut low = _mm256_setzero_si256();
            let mut high = _mm256_setzero_si256();
            for (index, step) in steps.by_ref().take(*count as usize).enumerate() {
                // SAFETY: the load ends within `reach` and needs no alignment.
                let bytes = unsafe {
                    _mm_loadu_si128(row.as_ptr().add(*first as usize + index * TAPS).cast())
                };
                let taps = _mm256_cvtepu8_epi16(bytes);
                low = _mm256_add_epi32(low, _mm256_madd_epi16(taps, load(&step.low)));
                high = _mm256_add_epi32(high, _mm256_madd_epi16(taps, load(&step.high)));
            }
            let sums = _mm256_add_epi32(low, _mm256_slli_epi32::<{ LOW_BITS as i32 }>(high));
            *out = clip(total(sums).wrapping_add(HALF));
        }
    }
}

/// The sum of eight numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn total(sums: __m256i) -> i32 {
    let four = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
    let two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<1>(two)))
}
