//! Converts bytes to float32 with AVX2: the same operations as in the tables, eight at once.
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::Arithmetic;
use std::arch::x86_64::{
    __m256, _mm_loadl_epi64, _mm256_cvtepi32_ps, _mm256_cvtepu8_epi32, _mm256_div_ps,
    _mm256_loadu_ps, _mm256_mul_ps, _mm256_set1_ps, _mm256_storeu_ps, _mm256_sub_ps,
};

/// Elements of a step: whole vectors, and whole rounds of three channels.
pub(super) const STEP: usize = 24;

/// Converts bytes whose channels alternate by three, in whole steps. Returns the number of
/// converted bytes.
///
/// The caller must have checked that the machine has AVX2.
pub(super) fn floats(
    from: &[u8],
    arithmetic: &Arithmetic,
    channels: [usize; 3],
    out: &mut [u8],
) -> usize {
    // SAFETY: `TensorWriter` comes here only on a machine with AVX2.
    unsafe {
        if channels == [channels[0]; 3] {
            plane_avx2(from, arithmetic, channels[0], out)
        } else {
            floats_avx2(from, arithmetic, channels, out)
        }
    }
}

/// Like [`floats`] for one channel, in steps of single vectors.
#[target_feature(enable = "avx2")]
fn plane_avx2(from: &[u8], arithmetic: &Arithmetic, channel: usize, out: &mut [u8]) -> usize {
    let Arithmetic { scale, divides, mean, std } = *arithmetic;
    let numbers = [scale, mean[channel], std[channel]].map(|number| _mm256_set1_ps(number));
    let steps = from.as_chunks::<8>().0;
    for (out, from) in out.as_chunks_mut::<32>().0.iter_mut().zip(steps) {
        eight(from, divides, numbers, out);
    }
    steps.len() * 8
}

/// Converts eight bytes with scale, mean and deviation.
#[inline]
#[target_feature(enable = "avx2")]
fn eight(from: &[u8; 8], divides: bool, [scale, mean, std]: [__m256; 3], out: &mut [u8; 32]) {
    // SAFETY: the load takes the 8 bytes of the array and needs no alignment.
    let bytes = unsafe { _mm_loadl_epi64(from.as_ptr().cast()) };
    let values = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    let scaled = if divides { _mm256_div_ps(values, scale) } else { _mm256_mul_ps(values, scale) };
    let elements = _mm256_div_ps(_mm256_sub_ps(scaled, mean), std);
    // SAFETY: the store fills the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_storeu_ps(out.as_mut_ptr().cast(), elements) };
}

#[target_feature(enable = "avx2")]
fn floats_avx2(
    from: &[u8],
    arithmetic: &Arithmetic,
    channels: [usize; 3],
    out: &mut [u8],
) -> usize {
    let scale = _mm256_set1_ps(arithmetic.scale);
    // Vector v of a step begins with channel 8 * v modulo 3.
    let rounds = |numbers: [f32; 3]| -> [__m256; 3] {
        std::array::from_fn(|vector| {
            let eight: [f32; 8] =
                std::array::from_fn(|lane| numbers[channels[(8 * vector + lane) % 3]]);
            // SAFETY: the load takes the 32 bytes of the array and needs no alignment.
            unsafe { _mm256_loadu_ps(eight.as_ptr()) }
        })
    };
    let (mean, std) = (rounds(arithmetic.mean), rounds(arithmetic.std));
    let steps = from.as_chunks::<STEP>().0;
    for (out, from) in out.as_chunks_mut::<{ 4 * STEP }>().0.iter_mut().zip(steps) {
        let (out, _) = out.as_chunks_mut::<32>();
        for (vector, (out, from)) in out.iter_mut().zip(from.as_chunks::<8>().0).enumerate() {
            eight(from, arithmetic.divides, [scale, mean[vector], std[vector]], out);
        }
    }
    steps.len() * STEP
}
