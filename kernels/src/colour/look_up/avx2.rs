//! Look-ups with AVX2, 32 at once: the lower four bits of a value select an entry in each of the 16
//! parts of the table, and the upper four bits select one of the 16 results.
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::portable;
use crate::colour::tables::Table;
use std::arch::x86_64::{
    _mm_loadu_si128, _mm256_and_si256, _mm256_blendv_epi8, _mm256_broadcastsi128_si256,
    _mm256_loadu_si256, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_slli_epi16, _mm256_storeu_si256,
};

/// Values of a step.
const STEP: usize = 32;
/// Parts of a table.
const PARTS: usize = 16;

/// Like [`portable::look_up`]. The caller must have checked that the machine has AVX2.
pub(super) fn look_up(table: &Table, values: &mut [u8]) {
    // SAFETY: `look_up` of the parent asserts that the machine has AVX2.
    unsafe { look_up_avx2(table, values) }
}

#[target_feature(enable = "avx2")]
fn look_up_avx2(table: &Table, values: &mut [u8]) {
    let mut parts = [_mm256_setzero_si256(); PARTS];
    for (part, bytes) in parts.iter_mut().zip(table.as_chunks::<PARTS>().0) {
        // SAFETY: the load takes the 16 bytes of the array and needs no alignment.
        *part = _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) });
    }
    let low = _mm256_set1_epi8(15);
    let (steps, rest) = values.as_chunks_mut::<STEP>();
    for step in steps {
        // SAFETY: the load takes the 32 bytes of the array and needs no alignment.
        let value = unsafe { _mm256_loadu_si256(step.as_ptr().cast()) };
        let inside = _mm256_and_si256(value, low);
        // The highest bit of each byte in these vectors is bit 4, 5, 6 and 7 of the value.
        let bit4 = _mm256_slli_epi16::<3>(value);
        let bit5 = _mm256_slli_epi16::<2>(value);
        let bit6 = _mm256_slli_epi16::<1>(value);
        let mut found = parts.map(|part| _mm256_shuffle_epi8(part, inside));
        for (count, bit) in [(8, bit4), (4, bit5), (2, bit6), (1, value)] {
            for index in 0..count {
                found[index] = _mm256_blendv_epi8(found[2 * index], found[2 * index + 1], bit);
            }
        }
        let result = found[0];
        // SAFETY: the store fills the 32 bytes of the array and needs no alignment.
        unsafe { _mm256_storeu_si256(step.as_mut_ptr().cast(), result) };
    }
    portable::look_up(table, rest);
}
