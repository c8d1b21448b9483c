//! Computes sums of pixels and their bytes with AVX2; a vector of eight numbers contains the
//! channels of two pixels.
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::row::{Pixels, Row, Shape};
use crate::vector::BLOCK;
use crate::warp::packed::{PIXEL_BYTES, Packed};
use std::arch::x86_64::{
    __m128, __m256, __m256i, _mm_add_ps, _mm_cvtepi32_ps, _mm_cvtepu8_epi32, _mm_cvtsi32_si128,
    _mm_loadl_epi64, _mm_mul_ps, _mm_set1_ps, _mm_storeu_ps, _mm256_add_ps, _mm256_and_si256,
    _mm256_andnot_si256, _mm256_castps256_ps128, _mm256_cvtepi32_ps, _mm256_cvtepu8_epi32,
    _mm256_cvttps_epi32, _mm256_extractf128_ps, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_mul_ps,
    _mm256_or_si256, _mm256_packs_epi32, _mm256_packus_epi16, _mm256_permutevar8x32_epi32,
    _mm256_set_m128, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setr_epi8, _mm256_setr_epi32,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_storeu_si256, _mm256_sub_ps,
    _mm256_testz_si256, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi32,
    _mm256_unpacklo_epi64, _mm256_xor_si256,
};

/// Like `portable::sums`. The caller must have checked that the machine has AVX2.
pub(super) fn sums(packed: &Packed, shape: Shape, row: &mut Row) {
    // Around the pixel at an offset, one row and pixel before it and two after it are loaded.
    let (stride, length) = (packed.stride(), packed.bytes().len());
    // SAFETY: `sums::compute` asserts that the machine has AVX2.
    let (first, last) = unsafe { ends(row) };
    let end = (last as usize + 2 * stride + 3) * PIXEL_BYTES;
    assert!(first as usize > stride && end <= length, "the pixels around are packed");
    // SAFETY: the machine has AVX2, as above, and the pixels are packed, as asserted.
    unsafe {
        match shape {
            Shape::Square2 => square2(packed, row),
            Shape::Square4 => square4(packed, row),
            Shape::Column4 => column4(packed, row),
        }
    }
}

/// The first and the last of the offsets.
#[target_feature(enable = "avx2")]
fn ends(row: &Row) -> (u32, u32) {
    let (mut first, mut last) = (u32::MAX, 0);
    for Pixels { offsets, .. } in &row.blocks {
        for offset in offsets {
            (first, last) = (first.min(*offset), last.max(*offset));
        }
    }
    (first, last)
}

/// The channels of two pixels.
///
/// # Safety
///
/// Eight bytes at the pointer must be readable.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn two_pixels(at: *const u8) -> __m256 {
    // SAFETY: the caller promises eight bytes, and the load needs no alignment.
    let bytes = unsafe { _mm_loadl_epi64(at.cast()) };
    _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))
}

/// The channels of a pixel.
///
/// # Safety
///
/// Four bytes at the pointer must be readable.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn one_pixel(at: *const u8) -> __m128 {
    // SAFETY: the caller promises four bytes, and the load needs no alignment.
    let bytes = unsafe { at.cast::<i32>().read_unaligned() };
    _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes)))
}

/// Stores the sums of the channels.
#[inline]
#[target_feature(enable = "avx2")]
fn store(out: &mut [f32; PIXEL_BYTES], sums: __m128) {
    // SAFETY: the store fills the four numbers of the array and needs no alignment.
    unsafe { _mm_storeu_ps(out.as_mut_ptr(), sums) };
}

/// A weight for each of two pixels.
#[inline]
#[target_feature(enable = "avx2")]
fn weights(left: f32, right: f32) -> __m256 {
    _mm256_set_m128(_mm_set1_ps(right), _mm_set1_ps(left))
}

/// The sum of two pixels.
#[inline]
#[target_feature(enable = "avx2")]
fn added(pixels: __m256) -> __m128 {
    _mm_add_ps(_mm256_castps256_ps128(pixels), _mm256_extractf128_ps::<1>(pixels))
}

/// # Safety
///
/// The pixels around every offset must be packed.
#[target_feature(enable = "avx2")]
unsafe fn square2(packed: &Packed, row: &mut Row) {
    let stride = packed.stride() * PIXEL_BYTES;
    let bytes = packed.bytes().as_ptr();
    for Pixels { offsets, across, down, sums, .. } in &mut row.blocks {
        let ([_, left, right, _], [_, above, below, _]) = (across, down);
        for index in 0..BLOCK {
            let at = bytes.wrapping_add(offsets[index] as usize * PIXEL_BYTES);
            // SAFETY: the caller promises the pixels at the offset, behind it, and below these.
            let [upper, lower] = unsafe { [two_pixels(at), two_pixels(at.wrapping_add(stride))] };
            let upper = _mm256_mul_ps(upper, _mm256_set1_ps(above[index]));
            let lower = _mm256_mul_ps(lower, _mm256_set1_ps(below[index]));
            let line = _mm256_add_ps(upper, lower);
            let weights = weights(left[index], right[index]);
            store(&mut sums[index], added(_mm256_mul_ps(line, weights)));
        }
    }
}

/// # Safety
///
/// The pixels around every offset must be packed.
#[target_feature(enable = "avx2")]
unsafe fn square4(packed: &Packed, row: &mut Row) {
    let stride = packed.stride() * PIXEL_BYTES;
    let bytes = packed.bytes().as_ptr();
    for Pixels { offsets, across, down, sums, .. } in &mut row.blocks {
        for index in 0..BLOCK {
            let at = bytes.wrapping_add(offsets[index] as usize * PIXEL_BYTES);
            let first = at.wrapping_sub(stride + PIXEL_BYTES);
            let line = |tap: usize| {
                let from = first.wrapping_add(tap * stride);
                let weight = _mm256_set1_ps(down[tap][index]);
                // SAFETY: the caller promises four pixels of each of the four rows.
                let [left, right] =
                    unsafe { [two_pixels(from), two_pixels(from.wrapping_add(2 * PIXEL_BYTES))] };
                [_mm256_mul_ps(left, weight), _mm256_mul_ps(right, weight)]
            };
            let lines = [line(0), line(1), line(2), line(3)];
            let sum = |side: usize| {
                let first = _mm256_add_ps(lines[0][side], lines[1][side]);
                _mm256_add_ps(first, _mm256_add_ps(lines[2][side], lines[3][side]))
            };
            let left = _mm256_mul_ps(sum(0), weights(across[0][index], across[1][index]));
            let right = _mm256_mul_ps(sum(1), weights(across[2][index], across[3][index]));
            store(&mut sums[index], added(_mm256_add_ps(left, right)));
        }
    }
}

/// # Safety
///
/// The pixels around every offset must be packed.
#[target_feature(enable = "avx2")]
unsafe fn column4(packed: &Packed, row: &mut Row) {
    let stride = packed.stride() * PIXEL_BYTES;
    let bytes = packed.bytes().as_ptr();
    for Pixels { offsets, down, sums, .. } in &mut row.blocks {
        for index in 0..BLOCK {
            let at = bytes.wrapping_add(offsets[index] as usize * PIXEL_BYTES);
            let first = at.wrapping_sub(stride);
            let line = |tap: usize| {
                // SAFETY: the caller promises the pixel and those of its column around it.
                let pixel = unsafe { one_pixel(first.wrapping_add(tap * stride)) };
                _mm_mul_ps(pixel, _mm_set1_ps(down[tap][index]))
            };
            let upper = _mm_add_ps(line(0), line(1));
            store(&mut sums[index], _mm_add_ps(upper, _mm_add_ps(line(2), line(3))));
        }
    }
}

/// Pixels of a vector.
const LANES: usize = 8;

/// Like `portable::make_pixels`. The caller must have checked that the machine has AVX2.
pub(super) fn make_pixels(row: &mut Row, fill: [u8; PIXEL_BYTES], error: f32) {
    // SAFETY: `sums::make_pixels` asserts that the machine has AVX2.
    unsafe { make_pixels_avx2(row, fill, error) }
}

#[target_feature(enable = "avx2")]
fn make_pixels_avx2(row: &mut Row, fill: [u8; PIXEL_BYTES], error: f32) {
    let (fill, error) = (_mm256_set1_epi32(i32::from_le_bytes(fill)), _mm256_set1_ps(error));
    for Pixels { sums, inside, values, doubts, is_doubtful, .. } in &mut row.blocks {
        let mut doubtful = _mm256_setzero_si256();
        let sums = sums.as_chunks::<LANES>().0.iter();
        let inside = inside.as_chunks::<LANES>().0.iter();
        let values = values.as_chunks_mut::<LANES>().0.iter_mut();
        let doubts = doubts.as_chunks_mut::<LANES>().0.iter_mut();
        for ((sums, inside), (values, doubts)) in sums.zip(inside).zip(values.zip(doubts)) {
            let sums = sums.as_flattened().as_chunks::<LANES>().0;
            // SAFETY: each load takes the eight numbers of an array and needs no alignment.
            let sums = [0, 1, 2, 3].map(|it| unsafe { _mm256_loadu_ps(sums[it].as_ptr()) });
            let inside = load(inside);
            let least = bytes(sums.map(|sum| _mm256_sub_ps(sum, error)));
            let most = bytes(sums.map(|sum| _mm256_add_ps(sum, error)));
            let value = _mm256_and_si256(least, inside);
            store_pixels(values, _mm256_or_si256(value, _mm256_andnot_si256(inside, fill)));
            let doubt = _mm256_and_si256(_mm256_xor_si256(least, most), inside);
            store_pixels(doubts, doubt);
            doubtful = _mm256_or_si256(doubtful, doubt);
        }
        *is_doubtful = _mm256_testz_si256(doubtful, doubtful) == 0;
    }
}

/// Like `portable::separate`. The caller must have checked that the machine has AVX2.
pub(super) fn separate(pixels: &[u32; BLOCK], planes: [&mut [u8; BLOCK]; 3]) {
    // SAFETY: `sums::separate` asserts that the machine has AVX2.
    unsafe { separate_avx2(pixels, planes) }
}

#[target_feature(enable = "avx2")]
fn separate_avx2(pixels: &[u32; BLOCK], [red, green, blue]: [&mut [u8; BLOCK]; 3]) {
    let pixels = pixels.as_chunks::<LANES>().0;
    // In each half, the bytes of a channel of four pixels are adjacent.
    let together = _mm256_setr_epi8(
        0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10,
        14, 3, 7, 11, 15,
    );
    let [a, b, c, d] = [0, 1, 2, 3].map(|it| _mm256_shuffle_epi8(load(&pixels[it]), together));
    let (lower, upper) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
    store_bytes(red, in_order(_mm256_unpacklo_epi64(lower, upper)));
    store_bytes(green, in_order(_mm256_unpackhi_epi64(lower, upper)));
    let (lower, upper) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
    store_bytes(blue, in_order(_mm256_unpacklo_epi64(lower, upper)));
}

/// Truncates numbers to bytes, clamped to 0..=255.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes(numbers: [__m256; 4]) -> __m256i {
    let [a, b, c, d] = numbers.map(|it| _mm256_cvttps_epi32(it));
    in_order(_mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d)))
}

/// Restores the order after each half of some vectors was packed separately.
#[inline]
#[target_feature(enable = "avx2")]
fn in_order(packed: __m256i) -> __m256i {
    _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(pixels: &[u32; LANES]) -> __m256i {
    // SAFETY: the load takes the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_loadu_si256(pixels.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_pixels(pixels: &mut [u32; LANES], values: __m256i) {
    // SAFETY: the store fills the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_storeu_si256(pixels.as_mut_ptr().cast(), values) };
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_bytes(plane: &mut [u8; BLOCK], values: __m256i) {
    // SAFETY: the store fills the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_storeu_si256(plane.as_mut_ptr().cast(), values) };
}
