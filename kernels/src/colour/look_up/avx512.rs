//! Look-ups with AVX-512 VBMI, 64 at once: the lower seven bits of a value select an entry in each
//! half of the table, and the highest bit selects one of the two results.
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use crate::colour::tables::Table;
use std::arch::x86_64::{
    __m512i, _mm512_loadu_si512, _mm512_mask_blend_epi8, _mm512_movepi8_mask,
    _mm512_permutex2var_epi8, _mm512_setzero_si512, _mm512_storeu_si512,
};

/// Values of a step, and of a part of the table.
const STEP: usize = 64;

/// Like [`super::portable::look_up`]. The caller must have checked that the machine has AVX-512.
pub(super) fn look_up(table: &Table, values: &mut [u8]) {
    // SAFETY: `look_up` of the parent asserts that the machine has AVX-512.
    unsafe { look_up_avx512(table, values) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; STEP]) -> __m512i {
    // SAFETY: the load takes the 64 bytes of the array and needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn look_up_avx512(table: &Table, values: &mut [u8]) {
    let mut parts = [_mm512_setzero_si512(); 4];
    for (part, bytes) in parts.iter_mut().zip(table.as_chunks::<STEP>().0) {
        *part = load(bytes);
    }
    let (steps, rest) = values.as_chunks_mut::<STEP>();
    for step in steps {
        look_up_step(parts, step);
    }
    if !rest.is_empty() {
        let mut step = [0; STEP];
        step[..rest.len()].copy_from_slice(rest);
        look_up_step(parts, &mut step);
        rest.copy_from_slice(&step[..rest.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn look_up_step(parts: [__m512i; 4], step: &mut [u8; STEP]) {
    let value = load(step);
    let low = _mm512_permutex2var_epi8(parts[0], value, parts[1]);
    let high = _mm512_permutex2var_epi8(parts[2], value, parts[3]);
    let result = _mm512_mask_blend_epi8(_mm512_movepi8_mask(value), low, high);
    // SAFETY: the store fills the 64 bytes of the array and needs no alignment.
    unsafe { _mm512_storeu_si512(step.as_mut_ptr().cast(), result) };
}
