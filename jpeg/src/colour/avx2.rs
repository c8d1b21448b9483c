//! The colour conversion with AVX2: 32 pixels at a time.
//!
//! The last step of a row overlaps the one before; rows of fewer than 32 pixels go to the portable
//! code.
#![expect(unsafe_code, reason = "loads and stores of vectors")]

use super::{
    Planes, PlanesMut, TWICE_CB_TO_BLUE, TWICE_CB_TO_GREEN, TWICE_CR_TO_GREEN, TWICE_CR_TO_RED,
    portable,
};
use crate::steps::steps;
use std::arch::x86_64::*;

/// Pixels of a step.
const STEP: usize = 32;

/// As [`portable::ycc_to_rgb`].
#[target_feature(enable = "avx2")]
pub(super) fn ycc_to_rgb(ycc: Planes<'_>, rgb: &mut PlanesMut<'_>) {
    let count = ycc[0].len();
    if count < STEP {
        return portable::ycc_to_rgb(ycc, rgb);
    }
    for at in steps::<STEP>(count) {
        let (y, cb, cr) = (load(ycc[0], at), load(ycc[1], at), load(ycc[2], at));
        let zero = _mm256_setzero_si256();
        let middle = _mm256_set1_epi8(128u8 as i8);
        let low = pixels(
            _mm256_unpacklo_epi8(y, zero),
            twice(_mm256_unpacklo_epi8(cb, middle)),
            twice(_mm256_unpacklo_epi8(cr, middle)),
        );
        let high = pixels(
            _mm256_unpackhi_epi8(y, zero),
            twice(_mm256_unpackhi_epi8(cb, middle)),
            twice(_mm256_unpackhi_epi8(cr, middle)),
        );
        for (plane, (low, high)) in rgb.iter_mut().zip(low.into_iter().zip(high)) {
            store(plane, at, _mm256_packus_epi16(low, high));
        }
    }
}

/// `2 * (byte - 128)` for bytes that are each followed by 128.
#[target_feature(enable = "avx2")]
fn twice(chroma: __m256i) -> __m256i {
    _mm256_maddubs_epi16(chroma, _mm256_set1_epi16(0xFE02u16 as i16))
}

/// Red, green and blue of 16 pixels, not yet clamped, from luma and twice the chroma.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn pixels(y: __m256i, cb: __m256i, cr: __m256i) -> [__m256i; 3] {
    let red = _mm256_mulhrs_epi16(cr, _mm256_set1_epi16(TWICE_CR_TO_RED));
    let blue = _mm256_mulhrs_epi16(cb, _mm256_set1_epi16(TWICE_CB_TO_BLUE));
    let low = green(_mm256_unpacklo_epi16(cb, cr));
    let high = green(_mm256_unpackhi_epi16(cb, cr));
    let green = _mm256_packs_epi32(low, high);
    [_mm256_add_epi16(y, red), _mm256_add_epi16(y, green), _mm256_add_epi16(y, blue)]
}

/// The contribution of chroma to green, from pairs of twice Cb and Cr.
#[target_feature(enable = "avx2")]
fn green(pairs: __m256i) -> __m256i {
    let factors = i32::from(TWICE_CB_TO_GREEN) & 0xFFFF | i32::from(TWICE_CR_TO_GREEN) << 16;
    let sum = _mm256_madd_epi16(pairs, _mm256_set1_epi32(factors));
    _mm256_srai_epi32::<16>(_mm256_add_epi32(sum, _mm256_set1_epi32(1 << 15)))
}

/// Where each byte of a channel's 16 pixels comes from, so that pixel `n` is at byte
/// `3 * n + channel`, modulo 16: the inverse of 3 is 11.
const SHUFFLES: [[u8; STEP]; 3] = {
    let mut places = [[0; STEP]; 3];
    let mut at = 0;
    while at < 3 * STEP {
        places[at / STEP][at % STEP] = ((at % 16 + 16 - at / STEP) * 11 % 16) as u8;
        at += 1;
    }
    places
};

/// Masks of every third byte of each half of a vector, beginning with byte 0, 1 and 2.
const EVERY_THIRD: [[u8; STEP]; 3] = {
    let mut masks = [[0; STEP]; 3];
    let mut at = 0;
    while at < STEP {
        masks[at % 16 % 3][at] = 255;
        at += 1;
    }
    masks
};

/// As [`portable::interleave`].
#[target_feature(enable = "avx2")]
pub(super) fn interleave(rgb: Planes<'_>, pixels: &mut [u8]) {
    let count = rgb[0].len();
    if count < STEP {
        return portable::interleave(rgb, pixels);
    }
    let order = [load(&SHUFFLES[0], 0), load(&SHUFFLES[1], 0), load(&SHUFFLES[2], 0)];
    let (second, last) = (load(&EVERY_THIRD[1], 0), load(&EVERY_THIRD[2], 0));
    for at in steps::<STEP>(count) {
        let mut placed = [_mm256_setzero_si256(); 3];
        for (channel, placed) in placed.iter_mut().enumerate() {
            *placed = _mm256_shuffle_epi8(load(rgb[channel], at), order[channel]);
        }
        let [red, green, blue] = placed;
        // Bytes 0 to 15 begin with red, 16 to 31 with green, 32 to 47 with blue.
        let begin = pick([red, green, blue], second, last);
        let middle = pick([green, blue, red], second, last);
        let end = pick([blue, red, green], second, last);
        let at = 3 * at;
        store(pixels, at, _mm256_permute2x128_si256::<0x20>(begin, middle));
        store(pixels, at + STEP, _mm256_permute2x128_si256::<0x30>(end, begin));
        store(pixels, at + 2 * STEP, _mm256_permute2x128_si256::<0x31>(middle, end));
    }
}

/// The bytes of three vectors in turn.
#[target_feature(enable = "avx2")]
fn pick(channels: [__m256i; 3], second: __m256i, last: __m256i) -> __m256i {
    let two = _mm256_blendv_epi8(channels[0], channels[1], second);
    _mm256_blendv_epi8(two, channels[2], last)
}

#[target_feature(enable = "avx2")]
fn load(row: &[u8], at: usize) -> __m256i {
    let row: &[u8; STEP] = row[at..].first_chunk().expect("a step lies in its row");
    // SAFETY: the load takes the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_loadu_si256(row.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
fn store(row: &mut [u8], at: usize, values: __m256i) {
    let row: &mut [u8; STEP] = row[at..].first_chunk_mut().expect("a step lies in its row");
    // SAFETY: the store fills the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_storeu_si256(row.as_mut_ptr().cast(), values) };
}
