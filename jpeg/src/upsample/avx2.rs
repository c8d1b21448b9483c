//! The upsampling with AVX2: 32 samples of a row at a time.
//!
//! The last step of a row overlaps the one before; rows of fewer than 32 samples go to the portable
//! code.
#![expect(unsafe_code, reason = "loads and stores of vectors")]

use super::{Side, portable};
use crate::steps::steps;
use std::arch::x86_64::*;

/// Samples of a step.
const STEP: usize = 32;

/// As [`portable::h2v1`].
#[target_feature(enable = "avx2")]
pub(super) fn h2v1(row: &[u8], out: &mut [u8]) {
    let count = out.len() / 2;
    if count < STEP {
        return portable::h2v1(row, out);
    }
    for at in steps::<STEP>(count) {
        let [left, sample, right] = around(row, at);
        let even = quarter_down(sample, left);
        let odd = quarter_up(sample, right);
        let low = _mm256_unpacklo_epi8(even, odd);
        let high = _mm256_unpackhi_epi8(even, odd);
        store(out, 2 * at, low, high);
    }
}

/// As [`portable::h2v2`].
#[target_feature(enable = "avx2")]
pub(super) fn h2v2(near: &[u8], far: &[u8], out: &mut [u8]) {
    let count = out.len() / 2;
    if count < STEP {
        return portable::h2v2(near, far, out);
    }
    for at in steps::<STEP>(count) {
        let near = around(near, at);
        let far = around(far, at);
        let low = _mm256_unpacklo_epi8;
        let high = _mm256_unpackhi_epi8;
        let low = both(
            [low(near[1], near[0]), low(near[1], near[2])],
            [low(far[1], far[0]), low(far[1], far[2])],
        );
        let high = both(
            [high(near[1], near[0]), high(near[1], near[2])],
            [high(far[1], far[0]), high(far[1], far[2])],
        );
        store(out, 2 * at, low, high);
    }
}

/// Sixteen times the even and the odd columns of 16 samples between two rows, from each sample
/// paired with its left and with its right neighbour.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn weighted(near: [__m256i; 2], far: [__m256i; 2]) -> [__m256i; 2] {
    let near_weights = _mm256_set1_epi16(0x0309);
    let far_weights = _mm256_set1_epi16(0x0103);
    let even = _mm256_add_epi16(
        _mm256_maddubs_epi16(near[0], near_weights),
        _mm256_maddubs_epi16(far[0], far_weights),
    );
    let odd = _mm256_add_epi16(
        _mm256_maddubs_epi16(near[1], near_weights),
        _mm256_maddubs_epi16(far[1], far_weights),
    );
    [even, odd]
}

/// Even and odd columns of 16 adjacent samples, from each sample paired with its left and with its
/// right neighbour.
#[target_feature(enable = "avx2")]
fn both(near: [__m256i; 2], far: [__m256i; 2]) -> __m256i {
    let [even, odd] = weighted(near, far);
    let even = _mm256_srli_epi16::<4>(_mm256_add_epi16(even, _mm256_set1_epi16(8)));
    // The sum has 12 bits: shifted left, its upper 8 fill the upper byte.
    let odd = _mm256_slli_epi16::<4>(_mm256_add_epi16(odd, _mm256_set1_epi16(7)));
    _mm256_or_si256(even, _mm256_and_si256(odd, _mm256_set1_epi16(0xFF00u16 as i16)))
}

/// As [`portable::h1v2`].
#[target_feature(enable = "avx2")]
pub(super) fn h1v2(near: &[u8], far: &[u8], side: Side, out: &mut [u8]) {
    let count = out.len();
    if count < STEP {
        return portable::h1v2(near, far, side, out);
    }
    for at in steps::<STEP>(count) {
        let (near, far) = (load(near, at), load(far, at));
        let between = match side {
            Side::Upper => quarter_down(near, far),
            Side::Lower => quarter_up(near, far),
        };
        store_one(out, at, between);
    }
}

/// As [`portable::replicate`] with a factor of 2.
#[target_feature(enable = "avx2")]
pub(super) fn replicate(row: &[u8], before: usize, out: &mut [u8]) {
    // Whole samples only; half a one may stand before and after them.
    let (row, out) = match before {
        0 => (row, out),
        _ => {
            let (first, rest) = out.split_at_mut(1);
            first[0] = row[0];
            (&row[1..], rest)
        }
    };
    let count = out.len() / 2;
    if count < STEP {
        if !out.is_empty() {
            portable::replicate(row, 2, 0, out);
        }
        return;
    }
    for at in steps::<STEP>(count) {
        let samples = load(row, at);
        let low = _mm256_unpacklo_epi8(samples, samples);
        let high = _mm256_unpackhi_epi8(samples, samples);
        store(out, 2 * at, low, high);
    }
    if let Some(last) = out.get_mut(2 * count) {
        *last = row[count];
    }
}

/// `(3 * near + far + 1) >> 2`: the rounded-up mean of both, and the rounded-down one of that and
/// `near`.
#[target_feature(enable = "avx2")]
fn quarter_down(near: __m256i, far: __m256i) -> __m256i {
    mean_down(near, _mm256_avg_epu8(near, far))
}

/// `(3 * near + far + 2) >> 2`: the rounded-down mean of both, and the rounded-up one of that and
/// `near`.
#[target_feature(enable = "avx2")]
fn quarter_up(near: __m256i, far: __m256i) -> __m256i {
    _mm256_avg_epu8(near, mean_down(near, far))
}

#[target_feature(enable = "avx2")]
fn mean_down(first: __m256i, second: __m256i) -> __m256i {
    let odd = _mm256_and_si256(_mm256_xor_si256(first, second), _mm256_set1_epi8(1));
    _mm256_sub_epi8(_mm256_avg_epu8(first, second), odd)
}

/// The left neighbours of the samples of a step, the samples, and their right neighbours.
#[target_feature(enable = "avx2")]
fn around(row: &[u8], at: usize) -> [__m256i; 3] {
    let samples: &[u8; STEP + 2] = row[at..].first_chunk().expect("a step lies in its row");
    // SAFETY: each load takes 32 of the 34 bytes of the array and needs no alignment.
    unsafe {
        [
            _mm256_loadu_si256(samples.as_ptr().cast()),
            _mm256_loadu_si256(samples.as_ptr().add(1).cast()),
            _mm256_loadu_si256(samples.as_ptr().add(2).cast()),
        ]
    }
}

/// 32 bytes of a row.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load(samples: &[u8], at: usize) -> __m256i {
    let samples: &[u8; STEP] = samples[at..].first_chunk().expect("a step lies in its row");
    // SAFETY: the load takes the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_loadu_si256(samples.as_ptr().cast()) }
}

/// Stores the columns of 32 samples, in the order of the unpack instructions.
#[target_feature(enable = "avx2")]
fn store(out: &mut [u8], at: usize, low: __m256i, high: __m256i) {
    let first = _mm256_permute2x128_si256::<0x20>(low, high);
    let last = _mm256_permute2x128_si256::<0x31>(low, high);
    let out: &mut [u8; 2 * STEP] = out[at..].first_chunk_mut().expect("a step lies in its row");
    // SAFETY: the stores fill the 64 bytes of the array and need no alignment.
    unsafe {
        _mm256_storeu_si256(out.as_mut_ptr().cast(), first);
        _mm256_storeu_si256(out.as_mut_ptr().add(STEP).cast(), last);
    }
}

/// Writes 32 bytes of a row.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn store_one(out: &mut [u8], at: usize, samples: __m256i) {
    let out: &mut [u8; STEP] = out[at..].first_chunk_mut().expect("a step lies in its row");
    // SAFETY: the store fills the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), samples) };
}
