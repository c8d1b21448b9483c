//! The sums of pixels with AVX2: the channels of two pixels are a vector of eight numbers.
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::sums::{Row, Shape};
use crate::warp::packed::{PIXEL_BYTES, Packed};
use std::arch::x86_64::{
    __m128, __m256, _mm_add_ps, _mm_cvtepi32_ps, _mm_cvtepu8_epi32, _mm_cvtsi32_si128,
    _mm_loadl_epi64, _mm_mul_ps, _mm_set1_ps, _mm_storeu_ps, _mm256_add_ps, _mm256_castps256_ps128,
    _mm256_cvtepi32_ps, _mm256_cvtepu8_epi32, _mm256_extractf128_ps, _mm256_mul_ps,
    _mm256_set_m128, _mm256_set1_ps,
};

/// As `portable::sums`. The machine must have AVX2, and the pixels one row and column before and
/// two behind every offset must be packed, which the caller has found out.
pub(super) fn sums(packed: &Packed, shape: Shape, row: &mut Row) {
    // SAFETY: `sums::compute` is called on machines with AVX2, and asserts where pixels lie.
    unsafe {
        match shape {
            Shape::Square2 => square2(packed, row),
            Shape::Square4 => square4(packed, row),
            Shape::Column4 => column4(packed, row),
        }
    }
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
    let Row { offsets, across: [_, left, right, _], down: [_, above, below, _], sums, .. } = row;
    let weighed = left.iter().zip(right).zip(above.iter().zip(below));
    for ((offset, out), ((left, right), (above, below))) in offsets.iter().zip(sums).zip(weighed) {
        let at = packed.bytes().as_ptr().wrapping_add(*offset as usize * PIXEL_BYTES);
        // SAFETY: the caller promises the pixels at the offset, behind it, and below these.
        let [upper, lower] = unsafe { [two_pixels(at), two_pixels(at.wrapping_add(stride))] };
        let upper = _mm256_mul_ps(upper, _mm256_set1_ps(*above));
        let lower = _mm256_mul_ps(lower, _mm256_set1_ps(*below));
        let line = _mm256_add_ps(upper, lower);
        store(out, added(_mm256_mul_ps(line, weights(*left, *right))));
    }
}

/// # Safety
///
/// The pixels around every offset must be packed.
#[target_feature(enable = "avx2")]
unsafe fn square4(packed: &Packed, row: &mut Row) {
    let stride = packed.stride() * PIXEL_BYTES;
    let Row { offsets, across, down, sums, .. } = row;
    let length = offsets.len();
    let [across, down] = [across, down].map(|all| all.each_ref().map(|it| &it[..length]));
    for (index, (offset, out)) in offsets.iter().zip(sums).enumerate() {
        let at = packed.bytes().as_ptr().wrapping_add(*offset as usize * PIXEL_BYTES);
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
        store(out, added(_mm256_add_ps(left, right)));
    }
}

/// # Safety
///
/// The pixels around every offset must be packed.
#[target_feature(enable = "avx2")]
unsafe fn column4(packed: &Packed, row: &mut Row) {
    let stride = packed.stride() * PIXEL_BYTES;
    let Row { offsets, down, sums, .. } = row;
    let length = offsets.len();
    let down = down.each_ref().map(|it| &it[..length]);
    for (index, (offset, out)) in offsets.iter().zip(sums).enumerate() {
        let at = packed.bytes().as_ptr().wrapping_add(*offset as usize * PIXEL_BYTES);
        let first = at.wrapping_sub(stride);
        let line = |tap: usize| {
            // SAFETY: the caller promises the pixel and those of its column around it.
            let pixel = unsafe { one_pixel(first.wrapping_add(tap * stride)) };
            _mm_mul_ps(pixel, _mm_set1_ps(down[tap][index]))
        };
        let upper = _mm_add_ps(line(0), line(1));
        store(out, _mm_add_ps(upper, _mm_add_ps(line(2), line(3))));
    }
}
