//! Reorders the bytes of a row with AVX2, 32 pixels at once.
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::Bits;
use crate::planes::Row;
use std::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_blend_epi32, _mm256_blendv_epi8, _mm256_loadu_si256,
    _mm256_permute2x128_si256, _mm256_set1_epi8, _mm256_setr_epi8, _mm256_shuffle_epi8,
    _mm256_storeu_si256, _mm256_xor_si256,
};

/// Pixels of a step.
const STEP: usize = 32;

/// Interleaves three planes, like [`super::portable::interleave`].
///
/// The caller must have checked that the machine has AVX2.
pub(super) fn interleave(row: Row<'_>, mirrored: bool, bits: Bits, out: &mut [u8]) {
    // SAFETY: `TensorWriter` comes here only on a machine with AVX2.
    unsafe {
        match (mirrored, bits == Bits::NONE) {
            (true, true) => interleave_avx2::<true, false>(row, bits, out),
            (true, false) => interleave_avx2::<true, true>(row, bits, out),
            (false, true) => interleave_avx2::<false, false>(row, bits, out),
            (false, false) => interleave_avx2::<false, true>(row, bits, out),
        }
    }
}

/// Reverses bytes, like [`super::portable::reverse`], with the same condition.
pub(super) fn reverse(from: &[u8], out: &mut [u8]) {
    // SAFETY: `TensorWriter` comes here only on a machine with AVX2.
    unsafe { reverse_avx2(from, out) }
}

#[target_feature(enable = "avx2")]
fn interleave_avx2<const MIRRORED: bool, const CHANGED: bool>(
    row: Row<'_>,
    bits: Bits,
    out: &mut [u8],
) {
    let (whole, rest) = (row.width / STEP * STEP, row.width % STEP);
    let (first, last) =
        if MIRRORED { out.split_at_mut(rest * 3) } else { out.split_at_mut(whole * 3) };
    let (steps, partial) = if MIRRORED { (last, first) } else { (first, last) };
    let steps = steps.as_chunks_mut::<{ 3 * STEP }>().0;
    let count = steps.len();
    for (index, out) in steps.iter_mut().enumerate() {
        let x = if MIRRORED { (count - 1 - index) * STEP } else { index * STEP };
        let (parts, _) = out.as_chunks_mut::<STEP>();
        for (part, pixels) in parts.iter_mut().zip(step::<MIRRORED, CHANGED>(row, x, bits)) {
            store(part, pixels);
        }
    }
    if rest > 0 {
        // Bytes beyond the row's end come last, or first if mirrored, and are left out.
        let skip = if MIRRORED { (STEP - rest) * 3 } else { 0 };
        let mut bytes = [[0; STEP]; 3];
        for (part, pixels) in bytes.iter_mut().zip(step::<MIRRORED, CHANGED>(row, whole, bits)) {
            store(part, pixels);
        }
        partial.copy_from_slice(&bytes.as_flattened()[skip..][..rest * 3]);
    }
}

/// Three vectors of 32 pixels from column `x` on.
#[inline]
#[target_feature(enable = "avx2")]
fn step<const MIRRORED: bool, const CHANGED: bool>(
    row: Row<'_>,
    x: usize,
    bits: Bits,
) -> [__m256i; 3] {
    let [red, green, blue] = row.planes;
    let planes = [load(red, x), load(green, x), load(blue, x)];
    if !CHANGED {
        return pixels::<MIRRORED>(planes);
    }
    let retained = _mm256_set1_epi8(bits.retained.cast_signed());
    let inverted = _mm256_set1_epi8(bits.inverted.cast_signed());
    let [red, green, blue] = planes;
    pixels::<MIRRORED>([
        _mm256_xor_si256(_mm256_and_si256(red, retained), inverted),
        _mm256_xor_si256(_mm256_and_si256(green, retained), inverted),
        _mm256_xor_si256(_mm256_and_si256(blue, retained), inverted),
    ])
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(out: &mut [u8; STEP], bytes: __m256i) {
    // SAFETY: the store fills the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), bytes) };
}

/// 32 bytes of a plane, whose length is padded to a multiple of 32.
#[inline]
#[target_feature(enable = "avx2")]
fn load(plane: &[u8], x: usize) -> __m256i {
    let bytes: &[u8; STEP] = plane[x..].first_chunk().expect("a row has whole steps");
    // SAFETY: the load takes the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// 32 pixels of three planes, `r0 g0 b0 r1 ..`, or in reverse order.
#[inline]
#[target_feature(enable = "avx2")]
fn pixels<const MIRRORED: bool>(planes: [__m256i; 3]) -> [__m256i; 3] {
    // In each half, 16 pixels become 48 bytes. Value p of channel c belongs at 3p + c; one shuffle
    // moves it there modulo 16, and every third byte of each such vector is used.
    let spread = [spread::<0>(), spread::<1>(), spread::<2>()];
    let planes: [__m256i; 3] = std::array::from_fn(|channel| {
        let order = if MIRRORED { mirrored(spread[channel]) } else { spread[channel] };
        let plane = planes[channel];
        let plane = if MIRRORED { _mm256_permute2x128_si256::<1>(plane, plane) } else { plane };
        _mm256_shuffle_epi8(plane, order)
    });
    let [red, green, blue] = planes;
    let [zeroth, first, second] = [third::<0>(), third::<1>(), third::<2>()];
    let a = _mm256_blendv_epi8(_mm256_blendv_epi8(red, green, first), blue, second);
    let b = _mm256_blendv_epi8(_mm256_blendv_epi8(red, green, zeroth), blue, first);
    let c = _mm256_blendv_epi8(_mm256_blendv_epi8(red, blue, zeroth), green, second);
    // The lower halves form the first 48 bytes, the upper halves the rest.
    [
        _mm256_permute2x128_si256::<0x20>(a, b),
        _mm256_blend_epi32::<0xf0>(c, a),
        _mm256_permute2x128_si256::<0x31>(b, c),
    ]
}

/// A shuffle, the same in both halves.
#[inline]
#[target_feature(enable = "avx2")]
fn both(bytes: [i8; 16]) -> __m256i {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
    _mm256_setr_epi8(
        a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, //
        a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p,
    )
}

/// Moves value p of a channel to 3p + channel modulo 16.
#[inline]
#[target_feature(enable = "avx2")]
fn spread<const CHANNEL: usize>() -> __m256i {
    both(
        const {
            let mut order = [0; 16];
            let mut value = 0;
            while value < 16 {
                order[(3 * value + CHANNEL) % 16] = value as i8;
                value += 1;
            }
            order
        },
    )
}

/// The same shuffle for values in reverse order.
#[inline]
#[target_feature(enable = "avx2")]
fn mirrored(order: __m256i) -> __m256i {
    use std::arch::x86_64::_mm256_sub_epi8;
    _mm256_sub_epi8(_mm256_set1_epi8(15), order)
}

/// A mask of every third byte of a half.
#[inline]
#[target_feature(enable = "avx2")]
fn third<const FROM: usize>() -> __m256i {
    both(
        const {
            let mut mask = [0; 16];
            let mut at = FROM;
            while at < 16 {
                mask[at] = -1;
                at += 3;
            }
            mask
        },
    )
}

#[target_feature(enable = "avx2")]
fn reverse_avx2(from: &[u8], out: &mut [u8]) {
    let (steps, rest) = from.as_chunks::<STEP>();
    let at = out.len() - steps.len() * STEP;
    let (first, whole) = out.split_at_mut(at);
    super::portable::reverse(rest, first);
    let order = both([15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    for (out, bytes) in whole.as_chunks_mut::<STEP>().0.iter_mut().rev().zip(steps) {
        // SAFETY: the load takes the 32 bytes of the array and needs no alignment.
        let bytes = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
        let halves = _mm256_shuffle_epi8(bytes, order);
        let turned = _mm256_permute2x128_si256::<1>(halves, halves);
        store(out, turned);
    }
}
