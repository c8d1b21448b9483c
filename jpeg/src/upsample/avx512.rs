//! The upsampling with AVX-512: 64 samples of a row at a time.
//!
//! The last step of a row overlaps the one before; rows of fewer than 64 samples go to
//! [`super::avx2`].
#![expect(unsafe_code, reason = "loads and stores of vectors")]

use super::avx2;
use crate::steps::steps;
use std::arch::x86_64::*;

/// Samples of a step.
const STEP: usize = 64;

/// As [`super::portable::h2v1`].
#[target_feature(enable = "avx2,avx512f,avx512bw")]
pub(super) fn h2v1(row: &[u8], out: &mut [u8]) {
    let count = out.len() / 2;
    if count < STEP {
        return avx2::h2v1(row, out);
    }
    for at in steps::<STEP>(count) {
        let [left, sample, right] = around(row, at);
        let even = quarter_down(sample, left);
        let odd = quarter_up(sample, right);
        let low = _mm512_unpacklo_epi8(even, odd);
        let high = _mm512_unpackhi_epi8(even, odd);
        store(out, 2 * at, low, high);
    }
}

/// As [`super::portable::h2v2`].
#[target_feature(enable = "avx2,avx512f,avx512bw")]
pub(super) fn h2v2(near: &[u8], far: &[u8], out: &mut [u8]) {
    let count = out.len() / 2;
    if count < STEP {
        return avx2::h2v2(near, far, out);
    }
    for at in steps::<STEP>(count) {
        let near = around(near, at);
        let far = around(far, at);
        let low = _mm512_unpacklo_epi8;
        let high = _mm512_unpackhi_epi8;
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

/// Even and odd columns of 64 adjacent samples, from each sample paired with its left and with its
/// right neighbour.
#[target_feature(enable = "avx2,avx512f,avx512bw")]
fn both(near: [__m512i; 2], far: [__m512i; 2]) -> __m512i {
    let near_weights = _mm512_set1_epi16(0x0309);
    let far_weights = _mm512_set1_epi16(0x0103);
    let even = _mm512_add_epi16(
        _mm512_maddubs_epi16(near[0], near_weights),
        _mm512_maddubs_epi16(far[0], far_weights),
    );
    let odd = _mm512_add_epi16(
        _mm512_maddubs_epi16(near[1], near_weights),
        _mm512_maddubs_epi16(far[1], far_weights),
    );
    let even = _mm512_srli_epi16::<4>(_mm512_add_epi16(even, _mm512_set1_epi16(8)));
    // The sum has 12 bits: shifted left, its upper 8 fill the upper byte.
    let odd = _mm512_slli_epi16::<4>(_mm512_add_epi16(odd, _mm512_set1_epi16(7)));
    _mm512_or_si512(even, _mm512_and_si512(odd, _mm512_set1_epi16(0xFF00u16 as i16)))
}

/// `(3 * near + far + 1) >> 2`: the rounded-up mean of both, and the rounded-down one of that and
/// `near`.
#[target_feature(enable = "avx2,avx512f,avx512bw")]
fn quarter_down(near: __m512i, far: __m512i) -> __m512i {
    mean_down(near, _mm512_avg_epu8(near, far))
}

/// `(3 * near + far + 2) >> 2`: the rounded-down mean of both, and the rounded-up one of that and
/// `near`.
#[target_feature(enable = "avx2,avx512f,avx512bw")]
fn quarter_up(near: __m512i, far: __m512i) -> __m512i {
    _mm512_avg_epu8(near, mean_down(near, far))
}

#[target_feature(enable = "avx2,avx512f,avx512bw")]
fn mean_down(first: __m512i, second: __m512i) -> __m512i {
    let odd = _mm512_and_si512(_mm512_xor_si512(first, second), _mm512_set1_epi8(1));
    _mm512_sub_epi8(_mm512_avg_epu8(first, second), odd)
}

/// The left neighbours of the samples of a step, the samples, and their right neighbours.
#[target_feature(enable = "avx2,avx512f,avx512bw")]
fn around(row: &[u8], at: usize) -> [__m512i; 3] {
    let samples: &[u8; STEP + 2] = row[at..].first_chunk().expect("a step lies in its row");
    // SAFETY: each load takes 64 of the 66 bytes of the array and needs no alignment.
    unsafe {
        [
            _mm512_loadu_si512(samples.as_ptr().cast()),
            _mm512_loadu_si512(samples.as_ptr().add(1).cast()),
            _mm512_loadu_si512(samples.as_ptr().add(2).cast()),
        ]
    }
}

/// Stores the columns of 64 samples, given as the unpack instructions leave them.
#[target_feature(enable = "avx2,avx512f,avx512bw")]
fn store(out: &mut [u8], at: usize, low: __m512i, high: __m512i) {
    let first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    let last = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    let first = _mm512_permutex2var_epi64(low, first, high);
    let last = _mm512_permutex2var_epi64(low, last, high);
    let out: &mut [u8; 2 * STEP] = out[at..].first_chunk_mut().expect("a step lies in its row");
    // SAFETY: the stores fill the 128 bytes of the array and need no alignment.
    unsafe {
        _mm512_storeu_si512(out.as_mut_ptr().cast(), first);
        _mm512_storeu_si512(out.as_mut_ptr().add(STEP).cast(), last);
    }
}
