//! Unpacking with AVX-512 VBMI: a block goes from zigzag to natural order in one permutation.
//!
//! Widths and masks are expanded as with AVX2: `pdep` is as good there.
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::super::unpack::{RowComponent, Target};
use super::{PLACES, Zigzag};
use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_castsi512_si256, _mm512_cvtepi8_epi16,
    _mm512_extracti64x4_epi64, _mm512_load_si512, _mm512_loadu_si512, _mm512_maskz_mov_epi8,
    _mm512_maskz_permutexvar_epi8, _mm512_movepi8_mask, _mm512_set1_epi8, _mm512_setzero_si512,
    _mm512_srli_epi16, _mm512_store_si512, _mm512_sub_epi8, _mm512_test_epi8_mask,
    _mm512_xor_si512,
};

/// See [`super::spread`].
pub(super) fn spread<const FOLDED: bool>(
    class: usize,
    from: &[Zigzag],
    targets: &[Target],
    into: &mut RowComponent<'_>,
) {
    // SAFETY: `Kernel::new` has checked that the machine has these features.
    unsafe { spread_vbmi::<FOLDED>(class, from, targets, into) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,lzcnt")]
fn spread_vbmi<const FOLDED: bool>(
    class: usize,
    from: &[Zigzag],
    targets: &[Target],
    into: &mut RowComponent<'_>,
) {
    // What lies behind the class may be left from other blocks, the last byte means nothing.
    let used = (u64::MAX >> (64 - 16 * class)) & (u64::MAX >> 1);
    // SAFETY: the load takes the 64 bytes of the array and needs no alignment.
    let places = unsafe { _mm512_loadu_si512(PLACES.as_ptr().cast()) };
    let there = !_mm512_movepi8_mask(places);
    for (bytes, target) in from.iter().zip(targets) {
        // SAFETY: the load takes 64 bytes that start at a multiple of 64.
        let all = unsafe { _mm512_load_si512(bytes.0.as_ptr().cast()) };
        let bytes = _mm512_maskz_mov_epi8(used, all);
        let nonzero = _mm512_test_epi8_mask(bytes, bytes);
        let natural = _mm512_maskz_permutexvar_epi8(there, places, bytes);
        let natural = if FOLDED { unfold(natural) } else { natural };
        let low = _mm512_cvtepi8_epi16(_mm512_castsi512_si256(natural));
        let high = _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64::<1>(natural));
        let index = target.index as usize;
        into.extents[index] = 64 - nonzero.leading_zeros() as u8;
        let block = &mut into.blocks[index].0;
        let rows = block.as_chunks_mut::<32>().0;
        // SAFETY: both are 64 bytes of a block, which starts at a multiple of 64.
        unsafe {
            _mm512_store_si512(rows[0].as_mut_ptr().cast(), low);
            _mm512_store_si512(rows[1].as_mut_ptr().cast(), high);
        }
        block[0] = target.dc;
    }
}

/// Turns 0, 1, 2, 3, .. into 0, -1, 1, -2, ..
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn unfold(folded: __m512i) -> __m512i {
    let halved = _mm512_and_si512(_mm512_srli_epi16::<1>(folded), _mm512_set1_epi8(0x7f));
    let odd = _mm512_and_si512(folded, _mm512_set1_epi8(1));
    _mm512_xor_si512(halved, _mm512_sub_epi8(_mm512_setzero_si512(), odd))
}
