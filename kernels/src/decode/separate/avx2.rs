//! Channels of pixels with AVX2, 16 pixels of 48 bytes at once: each plane is combined from its
//! bytes in three vectors.
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::portable;
use std::arch::x86_64::{
    __m128i, _mm_loadu_si128, _mm_or_si128, _mm_setzero_si128, _mm_shuffle_epi8, _mm_storeu_si128,
};

/// Number of pixels per step, and of bytes in a vector.
const STEP: usize = 16;

/// For each channel and vector, the index of the vector's byte for each position of the plane; an
/// index with the highest bit set gives 0.
const POSITIONS: [[[u8; STEP]; 3]; 3] = {
    let mut positions = [[[0x80; STEP]; 3]; 3];
    let mut byte = 0;
    while byte < 3 * STEP {
        positions[byte % 3][byte / STEP][byte / 3] = (byte % STEP) as u8;
        byte += 1;
    }
    positions
};

/// Like [`portable::separate`]. The caller must have checked that the machine has AVX2.
pub(super) fn separate(pixels: &[[u8; 3]], planes: [&mut [u8]; 3]) {
    // SAFETY: `separate` of the parent asserts that the machine has AVX2.
    unsafe { separate_avx2(pixels, planes) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; STEP]) -> __m128i {
    // SAFETY: the load takes the 16 bytes of the array and needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
fn separate_avx2(pixels: &[[u8; 3]], planes: [&mut [u8]; 3]) {
    let mut positions = [[_mm_setzero_si128(); 3]; 3];
    for (positions, bytes) in positions.as_flattened_mut().iter_mut().zip(POSITIONS.as_flattened())
    {
        *positions = load(bytes);
    }
    let (steps, rest) = pixels.as_chunks::<STEP>();
    let [(reds, red), (greens, green), (blues, blue)] =
        planes.map(|plane| plane.as_chunks_mut::<STEP>());
    for (((step, red), green), blue) in steps.iter().zip(reds).zip(greens).zip(blues) {
        let bytes = step.as_flattened().as_chunks::<STEP>().0;
        let vectors = [load(&bytes[0]), load(&bytes[1]), load(&bytes[2])];
        for (plane, positions) in [red, green, blue].into_iter().zip(&positions) {
            let part = |vector: usize| _mm_shuffle_epi8(vectors[vector], positions[vector]);
            let found = _mm_or_si128(_mm_or_si128(part(0), part(1)), part(2));
            // SAFETY: the store fills the 16 bytes of the array and needs no alignment.
            unsafe { _mm_storeu_si128(plane.as_mut_ptr().cast(), found) };
        }
    }
    portable::separate(rest, [red, green, blue]);
}
