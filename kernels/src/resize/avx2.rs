//! The resize with AVX2: four input pixels of a row at once, and the vertical pass compiled for it.
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::coefficients::{Coefficients, PRECISION_BITS};
use super::portable::{self, HALF};
use std::arch::x86_64::{
    __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_loadu_si128, _mm_packs_epi32, _mm_packus_epi16,
    _mm_set1_epi32, _mm_setzero_si128, _mm_srai_epi32, _mm256_add_epi32,
    _mm256_broadcastsi128_si256, _mm256_castsi256_si128, _mm256_extracti128_si256,
    _mm256_madd_epi16, _mm256_permutevar8x32_epi32, _mm256_setr_epi8, _mm256_setr_epi32,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi32,
};

/// Input pixels that one step takes.
const STEP: usize = 4;

/// Bytes that one step loads; 12 of them are pixels.
const LOAD: usize = 16;

/// Low bits of a weight that are multiplied on their own: a weight of 24 bits is too wide for the
/// 16-bit multiplication, its two parts are not.
const LOW_BITS: u32 = 11;

/// Weights of one axis, four to a vector: `[low 0, low 1, low 2, low 3, high 0, .. high 3]`.
#[derive(Debug, Clone, Default)]
pub(super) struct Packed {
    steps_max: usize,
    weights: Vec<[i16; 2 * STEP]>,
}

impl Packed {
    /// Splits and packs the weights.
    pub(super) fn pack(&mut self, coefficients: &Coefficients) {
        self.steps_max = coefficients.taps_max.div_ceil(STEP);
        self.weights.clear();
        for weights in coefficients.weights.chunks_exact(coefficients.taps_max) {
            self.weights.extend(weights.chunks(STEP).map(|weights| {
                let mut packed = [0; 2 * STEP];
                for (tap, weight) in weights.iter().enumerate() {
                    packed[tap] = (weight & ((1 << LOW_BITS) - 1)) as i16;
                    packed[STEP + tap] = (weight >> LOW_BITS) as i16;
                }
                packed
            }));
        }
    }
}

/// One row of the horizontal pass. `row` may go on behind the row's end, which saves copies.
///
/// The machine must have AVX2, which the caller has found out.
pub(super) fn horizontal(row: &[u8], coefficients: &Coefficients, packed: &Packed, out: &mut [u8]) {
    // SAFETY: `Resizer` comes here only where its instruction set includes AVX2, and refuses one
    // that the machine lacks.
    unsafe { horizontal_avx2(row, coefficients, packed, out) }
}

/// One row of the vertical pass, as [`portable::vertical`]; the same condition.
pub(super) fn vertical(rows: &[u8], stride: usize, weights: &[i32], out: &mut [u8]) {
    // SAFETY: as for `horizontal`, the machine has AVX2: `Resizer` has checked it.
    unsafe { vertical_avx2(rows, stride, weights, out) }
}

#[target_feature(enable = "avx2")]
fn vertical_avx2(rows: &[u8], stride: usize, weights: &[i32], out: &mut [u8]) {
    portable::vertical(rows, stride, weights, out);
}

#[target_feature(enable = "avx2")]
fn horizontal_avx2(row: &[u8], coefficients: &Coefficients, packed: &Packed, out: &mut [u8]) {
    let weights = packed.weights.chunks_exact(packed.steps_max);
    for (((first, count), weights), out) in
        coefficients.runs.iter().zip(weights).zip(out.chunks_exact_mut(3))
    {
        let mut low = _mm256_setzero_si256();
        let mut high = _mm256_setzero_si256();
        let steps = (*count as usize).div_ceil(STEP);
        for (step, weights) in weights[..steps].iter().enumerate() {
            let pixels = spread(&row[(*first as usize + step * STEP) * 3..]);
            let (low_weights, high_weights) = broadcast(weights);
            low = _mm256_add_epi32(low, _mm256_madd_epi16(pixels, low_weights));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(pixels, high_weights));
        }
        let sums = _mm256_add_epi32(_mm256_slli_epi32::<{ LOW_BITS as i32 }>(high), low);
        let sum = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        let rounded = _mm_add_epi32(sum, _mm_set1_epi32(HALF));
        let shifted = _mm_srai_epi32::<{ PRECISION_BITS as i32 }>(rounded);
        let words = _mm_packs_epi32(shifted, _mm_setzero_si128());
        let bytes = _mm_packus_epi16(words, _mm_setzero_si128());
        out.copy_from_slice(&_mm_cvtsi128_si32(bytes).to_le_bytes()[..3]);
    }
}

/// Four pixels as 16-bit pairs for `madd`: `r0 r1 g0 g1 b0 b1 0 0 | r2 r3 g2 g3 b2 b3 0 0`.
///
/// Behind the end of `pixels` it reads zeros.
#[target_feature(enable = "avx2")]
fn spread(pixels: &[u8]) -> __m256i {
    let mut tail = [0; LOAD];
    let bytes: &[u8; LOAD] = match pixels.first_chunk() {
        Some(bytes) => bytes,
        None => {
            tail[..pixels.len()].copy_from_slice(pixels);
            &tail
        }
    };
    // SAFETY: the load takes the 16 bytes of the array and needs no alignment.
    let loaded = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
    let order = _mm256_setr_epi8(
        0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, //
        6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1,
    );
    _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(loaded), order)
}

/// The low and the high parts of four weights, each pair in all places of its half.
#[target_feature(enable = "avx2")]
fn broadcast(weights: &[i16; 2 * STEP]) -> (__m256i, __m256i) {
    // SAFETY: the load takes the 16 bytes of the array and needs no alignment.
    let loaded = unsafe { _mm_loadu_si128(weights.as_ptr().cast()) };
    let both = _mm256_broadcastsi128_si256(loaded);
    let low = _mm256_permutevar8x32_epi32(both, _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
    let high = _mm256_permutevar8x32_epi32(both, _mm256_setr_epi32(2, 2, 2, 2, 3, 3, 3, 3));
    (low, high)
}
