//! Halved chroma and luma to colours with AVX2: 32 pixels at a time.
//!
//! Even and odd pixels are computed separately, as 16-bit values in the order of their chroma
//! samples, and are interleaved once they are bytes again. The last step of a row overlaps the one
//! before.
#![expect(unsafe_code, reason = "loads and stores of vectors")]

use crate::colour::{PlanesMut, avx2::pixels};
use crate::steps::steps;
use crate::upsample::avx2::{load, store_one as store, weighted};
use std::arch::x86_64::*;

/// Samples of chroma of a step.
pub(super) const STEP: usize = 16;

/// As [`super::portable::to_rgb`], of [`STEP`] samples or more.
#[target_feature(enable = "avx2")]
pub(super) fn to_rgb<const ROWS: usize>(
    luma: &[u8],
    [cb, cr]: [[&[u8]; ROWS]; 2],
    [red, green, blue]: &mut PlanesMut<'_>,
) {
    let turns = both_halves(&[0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]);
    for at in steps::<STEP>(luma.len() / 2) {
        let (cb, cr) = (full(cb, at), full(cr, at));
        let at = 2 * at;
        let luma = load(luma, at);
        let even = pixels(_mm256_and_si256(luma, _mm256_set1_epi16(255)), cb[0], cr[0]);
        let odd = pixels(_mm256_srli_epi16::<8>(luma), cb[1], cr[1]);
        // Eight even ones and eight odd ones in each half.
        let [red_apart, green_apart, blue_apart] = [
            _mm256_packus_epi16(even[0], odd[0]),
            _mm256_packus_epi16(even[1], odd[1]),
            _mm256_packus_epi16(even[2], odd[2]),
        ];
        store(red, at, _mm256_shuffle_epi8(red_apart, turns));
        store(green, at, _mm256_shuffle_epi8(green_apart, turns));
        store(blue, at, _mm256_shuffle_epi8(blue_apart, turns));
    }
}

/// Twice the distance from 128 of 16 samples of chroma at full resolution.
#[inline]
#[target_feature(enable = "avx2")]
fn full<const ROWS: usize>(rows: [&[u8]; ROWS], at: usize) -> EvenOdd {
    let near = around(rows[0], at);
    if ROWS == 1 { across(near) } else { across_and_down(near, around(rows[ROWS - 1], at)) }
}

/// 16 values for even pixels, and 16 for the odd ones after them.
type EvenOdd = [__m256i; 2];

/// Twice the distance from 128 of chroma between the samples of a row, from each paired with its
/// left and with its right neighbour.
#[inline]
#[target_feature(enable = "avx2")]
fn across([left, right]: EvenOdd) -> EvenOdd {
    let weights = _mm256_set1_epi16(0x0103);
    // The added term rounds, and subtracts 128 from the quotient.
    let even = _mm256_add_epi16(_mm256_maddubs_epi16(left, weights), _mm256_set1_epi16(1 - 512));
    let odd = _mm256_add_epi16(_mm256_maddubs_epi16(right, weights), _mm256_set1_epi16(2 - 512));
    [twice(_mm256_srai_epi16::<2>(even)), twice(_mm256_srai_epi16::<2>(odd))]
}

/// The same between the samples of two rows.
#[inline]
#[target_feature(enable = "avx2")]
fn across_and_down(near: EvenOdd, far: EvenOdd) -> EvenOdd {
    let [even, odd] = weighted(near, far);
    let even = _mm256_add_epi16(even, _mm256_set1_epi16(8 - 2048));
    let odd = _mm256_add_epi16(odd, _mm256_set1_epi16(7 - 2048));
    [twice(_mm256_srai_epi16::<4>(even)), twice(_mm256_srai_epi16::<4>(odd))]
}

#[inline]
#[target_feature(enable = "avx2")]
fn twice(values: __m256i) -> __m256i {
    _mm256_add_epi16(values, values)
}

/// Each sample of a step paired with its left neighbour, where the step begins, and with its right
/// one.
#[inline]
#[target_feature(enable = "avx2")]
fn around(row: &[u8], at: usize) -> EvenOdd {
    let row: &[u8; STEP + 2] = row[at..].first_chunk().expect("a step lies in its row");
    // SAFETY: each load takes 16 of the 18 bytes of the array and needs no alignment.
    let (first, last) = unsafe {
        (_mm_loadu_si128(row.as_ptr().cast()), _mm_loadu_si128(row.as_ptr().add(2).cast()))
    };
    // Samples 0 to 7 are bytes 1 to 8 of the first half, samples 8 to 15 bytes 7 to 14 of the last.
    let samples = _mm256_set_m128i(last, first);
    let left = _mm256_setr_epi8(
        1, 0, 2, 1, 3, 2, 4, 3, 5, 4, 6, 5, 7, 6, 8, 7, //
        7, 6, 8, 7, 9, 8, 10, 9, 11, 10, 12, 11, 13, 12, 14, 13,
    );
    let right = _mm256_setr_epi8(
        1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, //
        7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15,
    );
    [_mm256_shuffle_epi8(samples, left), _mm256_shuffle_epi8(samples, right)]
}

/// The same order for both halves of a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn both_halves(places: &[u8; 16]) -> __m256i {
    // SAFETY: the load takes the 16 bytes of the array and needs no alignment.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(places.as_ptr().cast()) })
}
