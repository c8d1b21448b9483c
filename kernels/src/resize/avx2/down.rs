//! The pass along the columns: two interleaved rows are two taps for every column.

use super::super::portable::{HALF, STEP};
use super::{finish, parts};
use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_packs_epi32,
    _mm256_packus_epi16, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_storeu_si256,
    _mm256_unpackhi_epi8, _mm256_unpacklo_epi8,
};

/// Maximum number of pairs of rows with a separate, unrolled loop.
const PAIRS_MAX: usize = 4;

/// Two rows and their weights.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Pair {
    rows: [usize; 2],
    low: i32,
    high: i32,
}

/// One row of the pass, like [`super::super::portable::down`]; `scratch` is memory for its pairs.
///
/// The caller must have checked that the machine has AVX2.
pub(in super::super) fn down(
    from: &[u8],
    taps: &[usize],
    weights: &[i32],
    scratch: &mut Vec<Pair>,
    out: &mut [u8],
) {
    assert!(taps.len() == weights.len(), "a weight for each row");
    assert!(
        taps.iter().all(|tap| *tap <= from.len() && from.len() - tap >= out.len()),
        "the rows are as long as the result"
    );
    let pair = |at: usize| {
        let first = taps[2 * at];
        let second = taps.get(2 * at + 1).copied().unwrap_or(first);
        let weight = weights.get(2 * at + 1).copied().unwrap_or(0);
        let (low, high) = parts(weights[2 * at], weight);
        Pair { rows: [first, second], low, high }
    };
    let count = taps.len().div_ceil(2);
    // SAFETY: `Passes` comes here only on a machine with AVX2, and all rows have the length of the
    // result, as just asserted.
    unsafe {
        match count {
            1 => some::<1>(from, std::array::from_fn(pair), out),
            2 => some::<2>(from, std::array::from_fn(pair), out),
            3 => some::<3>(from, std::array::from_fn(pair), out),
            PAIRS_MAX => some::<PAIRS_MAX>(from, std::array::from_fn(pair), out),
            _ => {
                scratch.clear();
                scratch.extend((0..count).map(pair));
                many(from, scratch, out);
            }
        }
    }
}

/// A known number of pairs.
///
/// # Safety
///
/// From the start of each row, `from` has at least as many bytes as `out`.
#[target_feature(enable = "avx2")]
unsafe fn some<const PAIRS: usize>(from: &[u8], pairs: [Pair; PAIRS], out: &mut [u8]) {
    let low: [__m256i; PAIRS] = std::array::from_fn(|at| _mm256_set1_epi32(pairs[at].low));
    let high: [__m256i; PAIRS] = std::array::from_fn(|at| _mm256_set1_epi32(pairs[at].high));
    let half = _mm256_set1_epi32(HALF);
    let zero = _mm256_setzero_si256();
    for (step, out) in out.as_chunks_mut::<STEP>().0.iter_mut().enumerate() {
        let mut taps = [[zero; PAIRS]; 4];
        for (at, pair) in pairs.iter().enumerate() {
            // SAFETY: the rows have the bytes of this step.
            let quarters = unsafe { interleaved(from, pair.rows, step) };
            for (taps, quarter) in taps.iter_mut().zip(quarters) {
                taps[at] = quarter;
            }
        }
        let sums = taps.map(|taps| {
            let mut sums = [half, zero];
            for at in 0..PAIRS {
                sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(taps[at], low[at]));
                sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(taps[at], high[at]));
            }
            finish(sums[0], sums[1])
        });
        narrow(sums, out);
    }
}

/// Any number of pairs.
///
/// # Safety
///
/// The same as for `some`.
#[target_feature(enable = "avx2")]
unsafe fn many(from: &[u8], pairs: &[Pair], out: &mut [u8]) {
    let half = _mm256_set1_epi32(HALF);
    let zero = _mm256_setzero_si256();
    for (step, out) in out.as_chunks_mut::<STEP>().0.iter_mut().enumerate() {
        let mut sums = [[half, zero]; 4];
        for pair in pairs {
            let (low, high) = (_mm256_set1_epi32(pair.low), _mm256_set1_epi32(pair.high));
            // SAFETY: the rows have the bytes of this step.
            let quarters = unsafe { interleaved(from, pair.rows, step) };
            for (sums, taps) in sums.iter_mut().zip(quarters) {
                sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(taps, low));
                sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(taps, high));
            }
        }
        narrow(sums.map(|[low, high]| finish(low, high)), out);
    }
}

/// 32 columns of two rows as pairs of 16 bits, in four vectors whose order [`narrow`] restores.
///
/// # Safety
///
/// Both rows have the bytes of the step.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn interleaved(from: &[u8], rows: [usize; 2], step: usize) -> [__m256i; 4] {
    // SAFETY: the loads take 32 bytes of the rows, says the caller, and need no alignment.
    let [upper, lower] =
        rows.map(|row| unsafe { _mm256_loadu_si256(from.as_ptr().add(row + step * STEP).cast()) });
    let zero = _mm256_setzero_si256();
    let left = _mm256_unpacklo_epi8(upper, lower);
    let right = _mm256_unpackhi_epi8(upper, lower);
    // Bytes u0 l0 u1 l1 .. become words.
    [
        _mm256_unpacklo_epi8(left, zero),
        _mm256_unpackhi_epi8(left, zero),
        _mm256_unpacklo_epi8(right, zero),
        _mm256_unpackhi_epi8(right, zero),
    ]
}

/// Stores four vectors of sums as 32 bytes in the order of the columns.
#[inline]
#[target_feature(enable = "avx2")]
fn narrow(sums: [__m256i; 4], out: &mut [u8; STEP]) {
    let words = [_mm256_packs_epi32(sums[0], sums[1]), _mm256_packs_epi32(sums[2], sums[3])];
    let bytes = _mm256_packus_epi16(words[0], words[1]);
    // SAFETY: the store fills the 32 bytes of the array and needs no alignment.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), bytes) };
}
