//! Converts bytes of a plane to elements of four bytes with AVX-512 VBMI: each byte of an element
//! is a separate look-up, 64 at once, and the four are interleaved.
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::VALUES;
use std::arch::x86_64::{
    __m512i, _mm512_castsi512_ps, _mm512_loadu_si512, _mm512_mask_blend_epi8,
    _mm512_mask_storeu_ps, _mm512_maskz_loadu_epi8, _mm512_movepi8_mask, _mm512_permutex2var_epi8,
    _mm512_permutexvar_epi8, _mm512_setzero_si512, _mm512_unpackhi_epi8, _mm512_unpackhi_epi16,
    _mm512_unpacklo_epi8, _mm512_unpacklo_epi16,
};

/// Number of bytes per step, and in each part of a table.
const STEP: usize = 64;
/// Number of elements in a vector.
const LANES: usize = 16;
/// Bytes of an element.
const BYTES: usize = 4;

/// The bytes of the elements for the values of a byte: all first bytes, all second bytes, …
pub(super) type ByteTables = [[u8; VALUES]; BYTES];

/// Splits a table of elements by byte.
pub(super) fn byte_tables(elements: &[[u8; BYTES]; VALUES]) -> ByteTables {
    std::array::from_fn(|byte| elements.map(|element| element[byte]))
}

/// Fills the output, four bytes for each byte of a plane. The caller must have checked that the
/// machine has AVX-512.
pub(super) fn elements(from: &[u8], tables: &ByteTables, out: &mut [u8]) {
    assert_eq!(out.len(), BYTES * from.len(), "an element for each byte");
    // SAFETY: `TensorWriter` comes here only on a machine with AVX-512, and the output is as long.
    unsafe { elements_avx512(from, tables, out) }
}

/// For each position in four vectors of elements, the index of its byte, by quarters of the
/// vectors.
const ORDER: [u8; STEP] = {
    let mut order = [0; STEP];
    let mut at = 0;
    while at < STEP {
        let (quarter, vector, inside) = (at / 16, at / 4 % 4, at % 4);
        order[at] = (16 * vector + 4 * quarter + inside) as u8;
        at += 1;
    }
    order
};

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; STEP]) -> __m512i {
    // SAFETY: the load takes the 64 bytes of the array and needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// # Safety
///
/// The output must have four bytes for each byte.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn elements_avx512(from: &[u8], tables: &ByteTables, out: &mut [u8]) {
    let mut parts = [[_mm512_setzero_si512(); VALUES / STEP]; BYTES];
    for (parts, table) in parts.iter_mut().zip(tables) {
        for (part, bytes) in parts.iter_mut().zip(table.as_chunks::<STEP>().0) {
            *part = load(bytes);
        }
    }
    let order = load(&ORDER);
    for first in (0..from.len()).step_by(STEP) {
        let count = STEP.min(from.len() - first);
        let mask = u64::MAX >> (STEP - count);
        // SAFETY: the load takes `count` bytes from `first` on, which there are.
        let bytes = unsafe { _mm512_maskz_loadu_epi8(mask, from.as_ptr().add(first).cast()) };
        let bytes = _mm512_permutexvar_epi8(order, bytes);
        let is_upper = _mm512_movepi8_mask(bytes);
        let [a, b, c, d] = parts.map(|[first, second, third, fourth]| {
            let low = _mm512_permutex2var_epi8(first, bytes, second);
            let high = _mm512_permutex2var_epi8(third, bytes, fourth);
            _mm512_mask_blend_epi8(is_upper, low, high)
        });
        let (lower, upper) = (_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d));
        let [one, two] = [_mm512_unpacklo_epi16(lower, upper), _mm512_unpackhi_epi16(lower, upper)];
        let (lower, upper) = (_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d));
        let [three, four] =
            [_mm512_unpacklo_epi16(lower, upper), _mm512_unpackhi_epi16(lower, upper)];
        for (vector, elements) in [one, two, three, four].into_iter().enumerate() {
            let mask = (mask >> (LANES * vector)) as u16;
            let at = BYTES * (first + LANES * vector.min(count / LANES));
            // SAFETY: only elements of the `count` bytes are stored, for which there is room, and
            // the store begins at most at their end.
            unsafe {
                let to = out.as_mut_ptr().add(at).cast();
                _mm512_mask_storeu_ps(to, mask, _mm512_castsi512_ps(elements));
            }
        }
    }
}
