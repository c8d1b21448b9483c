//! The colour conversion with AVX-512: 64 pixels at a time.
//!
//! The last step of a row overlaps the one before; rows of fewer than 64 pixels go to
//! [`super::avx2`].
#![expect(unsafe_code, reason = "loads and stores of vectors")]

use super::{
    Planes, PlanesMut, TWICE_CB_TO_BLUE, TWICE_CB_TO_GREEN, TWICE_CR_TO_GREEN, TWICE_CR_TO_RED,
    avx2,
};
use crate::steps::steps;
use std::arch::x86_64::*;

/// Pixels of a step.
const STEP: usize = 64;

/// As [`super::portable::ycc_to_rgb`].
#[target_feature(enable = "avx2,avx512f,avx512bw")]
pub(super) fn ycc_to_rgb(ycc: Planes<'_>, rgb: &mut PlanesMut<'_>) {
    let count = ycc[0].len();
    if count < STEP {
        return avx2::ycc_to_rgb(ycc, rgb);
    }
    for at in steps::<STEP>(count) {
        let (y, cb, cr) = (load(ycc[0], at), load(ycc[1], at), load(ycc[2], at));
        let zero = _mm512_setzero_si512();
        let middle = _mm512_set1_epi8(128u8 as i8);
        let low = pixels(
            _mm512_unpacklo_epi8(y, zero),
            twice(_mm512_unpacklo_epi8(cb, middle)),
            twice(_mm512_unpacklo_epi8(cr, middle)),
        );
        let high = pixels(
            _mm512_unpackhi_epi8(y, zero),
            twice(_mm512_unpackhi_epi8(cb, middle)),
            twice(_mm512_unpackhi_epi8(cr, middle)),
        );
        for (plane, (low, high)) in rgb.iter_mut().zip(low.into_iter().zip(high)) {
            store(plane, at, _mm512_packus_epi16(low, high));
        }
    }
}

/// `2 * (byte - 128)` for bytes that are each followed by 128.
#[target_feature(enable = "avx2,avx512f,avx512bw")]
fn twice(chroma: __m512i) -> __m512i {
    _mm512_maddubs_epi16(chroma, _mm512_set1_epi16(0xFE02u16 as i16))
}

/// Red, green and blue of 32 pixels, not yet clamped, from luma and twice the chroma.
#[target_feature(enable = "avx2,avx512f,avx512bw")]
fn pixels(y: __m512i, cb: __m512i, cr: __m512i) -> [__m512i; 3] {
    let red = _mm512_mulhrs_epi16(cr, _mm512_set1_epi16(TWICE_CR_TO_RED));
    let blue = _mm512_mulhrs_epi16(cb, _mm512_set1_epi16(TWICE_CB_TO_BLUE));
    let low = green(_mm512_unpacklo_epi16(cb, cr));
    let high = green(_mm512_unpackhi_epi16(cb, cr));
    let green = _mm512_packs_epi32(low, high);
    [_mm512_add_epi16(y, red), _mm512_add_epi16(y, green), _mm512_add_epi16(y, blue)]
}

/// The contribution of chroma to green, from pairs of twice Cb and Cr.
#[target_feature(enable = "avx2,avx512f,avx512bw")]
fn green(pairs: __m512i) -> __m512i {
    let factors = i32::from(TWICE_CB_TO_GREEN) & 0xFFFF | i32::from(TWICE_CR_TO_GREEN) << 16;
    let sum = _mm512_madd_epi16(pairs, _mm512_set1_epi32(factors));
    _mm512_srai_epi32::<16>(_mm512_add_epi32(sum, _mm512_set1_epi32(1 << 15)))
}

#[target_feature(enable = "avx2,avx512f,avx512bw")]
fn load(row: &[u8], at: usize) -> __m512i {
    let row: &[u8; STEP] = row[at..].first_chunk().expect("a step lies in its row");
    // SAFETY: the load takes the 64 bytes of the array and needs no alignment.
    unsafe { _mm512_loadu_si512(row.as_ptr().cast()) }
}

#[target_feature(enable = "avx2,avx512f,avx512bw")]
fn store(row: &mut [u8], at: usize, values: __m512i) {
    let row: &mut [u8; STEP] = row[at..].first_chunk_mut().expect("a step lies in its row");
    // SAFETY: the store fills the 64 bytes of the array and needs no alignment.
    unsafe { _mm512_storeu_si512(row.as_mut_ptr().cast(), values) };
}
