//! Unpacking with AVX2 and BMI2: `pdep` puts a group's numbers into 16 bits each at once.
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::super::geometry::GROUPS;
use super::portable;
use std::arch::x86_64::{
    _mm_and_si128, _mm_set_epi64x, _mm_set1_epi16, _mm_setzero_si128, _mm_srli_epi16,
    _mm_storeu_si128, _mm_sub_epi16, _mm_xor_si128, _pdep_u64,
};

/// Bit mask of the four 16-bit numbers of half a group, by its width.
const DEPOSIT_WIDE: [u64; 17] = {
    let mut deposit = [0; 17];
    let mut bits = 0;
    while bits <= 16 {
        deposit[bits] = ((1 << bits) - 1) * 0x0001_0001_0001_0001;
        bits += 1;
    }
    deposit
};

/// See [`super::nibbles`].
pub(super) fn nibbles(from: &[u8], to: &mut [u8]) -> u8 {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { nibbles_avx2(from, to) }
}

#[target_feature(enable = "avx2")]
fn nibbles_avx2(from: &[u8], to: &mut [u8]) -> u8 {
    portable::nibbles(from, to)
}

/// See [`super::wide_group`].
#[inline]
pub(super) fn wide_group(width: u8, data: &[u8]) -> [i16; GROUPS] {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { wide_group_bmi2(width, data) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn wide_group_bmi2(width: u8, data: &[u8]) -> [i16; GROUPS] {
    let window: &[u8; 24] = data.first_chunk().expect("the caller leaves room behind the groups");
    // Four numbers take half the bytes of eight, which may end in a half byte.
    let bits = 4 * usize::from(width);
    let half = |bit: usize| {
        let word = window[bit / 8..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        _pdep_u64(word >> (bit % 8), DEPOSIT_WIDE[usize::from(width)])
    };
    let folded = _mm_set_epi64x(half(bits) as i64, half(0) as i64);
    let halved = _mm_srli_epi16::<1>(folded);
    let odd = _mm_and_si128(folded, _mm_set1_epi16(1));
    let unfolded = _mm_xor_si128(halved, _mm_sub_epi16(_mm_setzero_si128(), odd));
    let mut values = [0; GROUPS];
    // SAFETY: the store takes the 16 bytes of the array and needs no alignment.
    unsafe { _mm_storeu_si128(values.as_mut_ptr().cast(), unfolded) };
    values
}
