//! Computes the weighted means of lines with AVX2, eight float32 numbers at once.
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::weighted_lines::WeightedLines;
use crate::vector::BLOCK;
use std::arch::x86_64::{
    __m256, __m256i, _mm_loadl_epi64, _mm256_add_ps, _mm256_and_si256, _mm256_andnot_si256,
    _mm256_blendv_epi8, _mm256_cmpeq_epi8, _mm256_cvtepi32_ps, _mm256_cvtepu8_epi32,
    _mm256_cvttps_epi32, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_mul_ps,
    _mm256_packs_epi32, _mm256_packus_epi16, _mm256_permutevar8x32_epi32, _mm256_set1_epi8,
    _mm256_set1_ps, _mm256_setr_epi32, _mm256_setzero_ps, _mm256_storeu_si256, _mm256_sub_ps,
};

/// Numbers per vector, and vectors per block.
const LANES: usize = 8;
const VECTORS: usize = BLOCK / LANES;

/// Like `portable::weighted_mean`. The caller must have checked that the machine has AVX2.
pub(super) fn weighted_mean<const TAPS: usize>(weighted: WeightedLines<'_, TAPS>) {
    // SAFETY: `weighted_mean` of the parent asserts that the machine has AVX2.
    unsafe { weighted_mean_avx2(weighted) }
}

#[target_feature(enable = "avx2")]
fn weighted_mean_avx2<const TAPS: usize>(weighted: WeightedLines<'_, TAPS>) {
    let WeightedLines { lines, weights, error, out, doubtful } = weighted;
    let (weights, error) = (weights.map(|it| _mm256_set1_ps(it)), _mm256_set1_ps(error));
    for first in (0..out.len()).step_by(BLOCK) {
        let blocks: [&[u8; BLOCK]; TAPS] = lines.map(|line| {
            line[first..].first_chunk().expect("a line goes on for a block behind the end")
        });
        let mut sums = [_mm256_setzero_ps(); VECTORS];
        for (number, sum) in sums.iter_mut().enumerate() {
            for tap in 0..TAPS {
                let bytes: &[u8; LANES] =
                    blocks[tap][number * LANES..].first_chunk().expect("a block has whole vectors");
                *sum = _mm256_add_ps(*sum, _mm256_mul_ps(numbers(bytes), weights[tap]));
            }
        }
        let least = bytes(sums.map(|sum| _mm256_sub_ps(sum, error)));
        let most = bytes(sums.map(|sum| _mm256_add_ps(sum, error)));
        // The weighted mean of equal bytes is exact.
        let byte = load(blocks[0]);
        let mut is_flat = _mm256_set1_epi8(-1);
        for block in &blocks[1..] {
            is_flat = _mm256_and_si256(is_flat, _mm256_cmpeq_epi8(load(block), byte));
        }
        let values = _mm256_blendv_epi8(least, byte, is_flat);
        let is_settled = _mm256_cmpeq_epi8(least, most);
        let doubts = _mm256_andnot_si256(is_settled, _mm256_andnot_si256(is_flat, ones()));
        let rest = &mut out[first..];
        let mut found = _mm256_movemask_epi8(doubts) as u32;
        match rest.first_chunk_mut::<BLOCK>() {
            Some(rest) => store(rest, values),
            None => {
                let mut block = [0; BLOCK];
                store(&mut block, values);
                found &= (1 << rest.len()) - 1;
                rest.copy_from_slice(&block[..rest.len()]);
            }
        }
        while found != 0 {
            doubtful.push(first + found.trailing_zeros() as usize);
            found &= found - 1;
        }
    }
}

/// All bits set.
#[inline]
#[target_feature(enable = "avx2")]
fn ones() -> __m256i {
    _mm256_set1_epi8(-1)
}

/// Converts bytes to numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn numbers(bytes: &[u8; LANES]) -> __m256 {
    // SAFETY: the load takes the eight bytes of the array and needs no alignment.
    let bytes = unsafe { _mm_loadl_epi64(bytes.as_ptr().cast()) };
    _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))
}

/// Truncates numbers to bytes, clamped to 0..=255.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes(numbers: [__m256; VECTORS]) -> __m256i {
    let [a, b, c, d] = numbers.map(|it| _mm256_cvttps_epi32(it));
    let packed = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    // Each half of the vectors was packed separately.
    _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(block: &[u8; BLOCK]) -> __m256i {
    // SAFETY: the load takes the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_loadu_si256(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(block: &mut [u8; BLOCK], values: __m256i) {
    // SAFETY: the store fills the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_storeu_si256(block.as_mut_ptr().cast(), values) };
}
