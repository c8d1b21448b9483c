//! The transforms to 4x4 and 2x2 samples with AVX2: two blocks at a time, one in each half of a
//! vector, step by step like the exact transform.
#![expect(unsafe_code, reason = "stores of vectors")]

use super::{Scale, flat_sample};
use crate::Block;
use crate::idct::islow::ROUND_AND_LEVEL;
use crate::idct::islow::avx2::{both_blocks, dequantised, evens, odds, times, transpose};
use crate::idct::{CORNER_EXTENT, store};
use std::arch::x86_64::*;

/// Blocks transformed at once.
const LANES: usize = 2;

/// Samples of a row of a block.
const SIDE: usize = 4;

/// Bits that the first pass shifts out.
const FIRST_SHIFT: i32 = 12;

/// The rounding terms of the first pass and, in column 0, of the second.
const ROUND: i32 = 1 << (FIRST_SHIFT - 1);
const ROUND_COLUMN_0: i32 = ROUND + (ROUND_AND_LEVEL << FIRST_SHIFT);

/// Factor of the input 0.
const EVEN_OUTER: i16 = 1 << 14;

/// Factors of the inputs 2 and 6 in output 0; negated for output 1.
const EVEN_INNER: [i16; 2] = [15_137, -6_270];

/// Factors of the inputs 1, 5, 3, 7 in the outputs 0 and 1; the outputs 3 and 2 subtract them.
const ODD: [[i16; 4]; 2] = [[20_995, -4_926, 7_373, -4_176], [8_697, 11_893, -17_799, -1_730]];

/// Factors of the inputs 1, 3, 5, 7 in output 0 at 2x2; output 1 subtracts them.
const ODD_OF_TWO: [i16; 4] = [29_692, -10_426, 6_967, -5_906];

/// Transforms a run of blocks to 4x4 samples. `out` must hold 4 rows of it.
#[target_feature(enable = "avx2")]
pub(super) fn four(
    table: &[i16; 64],
    blocks: &[Block],
    extents: &[u8],
    out: &mut [u8],
    stride: usize,
) {
    let groups = blocks.chunks(LANES).zip(extents.chunks(LANES));
    for (index, (blocks, extents)) in groups.enumerate() {
        let (first, last) = (&blocks[0], &blocks[blocks.len() - 1]);
        let out = &mut out[index * LANES * SIDE..];
        let samples = match extents[0].max(extents[extents.len() - 1]) {
            0 => {
                let flat = |block| [flat_sample(Scale::Four, table, block); SIDE];
                let [first, last] = [flat(first), flat(last)].map(i32::from_ne_bytes);
                Some(_mm256_unpacklo_epi32(_mm256_set1_epi32(first), _mm256_set1_epi32(last)))
            }
            1..=CORNER_EXTENT => corner(table, first, last),
            _ => full(table, first, last),
        };
        let Some(samples) = samples else {
            for (column, block) in blocks.iter().enumerate() {
                store(&super::four(table, block), &mut out[column * SIDE..], stride);
            }
            continue;
        };
        let mut rows = [0; SIDE * LANES * SIDE];
        // SAFETY: the store fills the 32 bytes of the array and needs no alignment.
        unsafe { _mm256_storeu_si256(rows.as_mut_ptr().cast(), samples) };
        let width = blocks.len() * SIDE;
        for (row, samples) in rows.chunks_exact(LANES * SIDE).enumerate() {
            let out = &mut out[row * stride..][..width];
            match out.first_chunk_mut() {
                Some(out) => *out = *samples.first_chunk::<8>().expect("two blocks' rows"),
                None => out.copy_from_slice(&samples[..width]),
            }
        }
    }
}

/// Transforms two blocks to four rows of both, one after another; `None` if they need the portable
/// code. The bound of the exact transform holds here too: no constant relative to the shift is
/// larger.
#[target_feature(enable = "avx2")]
fn full(table: &[i16; 64], first: &Block, last: &Block) -> Option<__m256i> {
    let [in0, in1, in2, in3, in4, in5, in6, in7] = dequantised::<8>(table, first, last)?;
    let low = [
        _mm256_unpacklo_epi16(in0, in4),
        _mm256_unpacklo_epi16(in1, in5),
        _mm256_unpacklo_epi16(in2, in6),
        _mm256_unpacklo_epi16(in3, in7),
    ];
    let high = [
        _mm256_unpackhi_epi16(in0, in4),
        _mm256_unpackhi_epi16(in1, in5),
        _mm256_unpackhi_epi16(in2, in6),
        _mm256_unpackhi_epi16(in3, in7),
    ];
    let low = sums(low, first_rounding());
    let high = sums(high, _mm256_set1_epi32(ROUND));
    // Columns in the order 0 4 1 5 2 6 3 7.
    let mut between = [_mm256_setzero_si256(); SIDE];
    for (row, between) in between.iter_mut().enumerate() {
        *between = _mm256_blend_epi16::<0b1010_1010>(
            _mm256_srli_epi32::<FIRST_SHIFT>(low[row]),
            _mm256_slli_epi32::<{ 16 - FIRST_SHIFT }>(high[row]),
        );
    }
    let [row0, row1, row2, row3] = between;
    Some(finish(sums(transpose(row0, row1, row2, row3), _mm256_setzero_si256())))
}

/// Transforms two blocks whose non-zero coefficients are in the 4x4 of lowest frequency.
#[target_feature(enable = "avx2")]
fn corner(table: &[i16; 64], first: &Block, last: &Block) -> Option<__m256i> {
    let [in0, in1, in2, in3] = dequantised::<4>(table, first, last)?;
    // Only columns 0 to 3 are non-zero, half of each vector: in the order 0 2 1 3, to form pairs
    // for the second pass.
    let even = _mm256_shuffle_epi32::<0b11_01_10_00>(_mm256_unpacklo_epi16(in0, in2));
    let odd = _mm256_shuffle_epi32::<0b11_01_10_00>(_mm256_unpacklo_epi16(in1, in3));
    let mut rows = corner_sums(even, odd, first_rounding());
    for row in &mut rows {
        *row = _mm256_srai_epi32::<FIRST_SHIFT>(*row);
    }
    let rows01 = _mm256_packs_epi32(rows[0], rows[1]);
    let rows23 = _mm256_packs_epi32(rows[2], rows[3]);
    let (even, odd) = (evens(rows01, rows23), odds(rows01, rows23));
    Some(finish(corner_sums(even, odd, _mm256_setzero_si256())))
}

#[target_feature(enable = "avx2")]
fn first_rounding() -> __m256i {
    const COLUMN_0: i32 = ROUND_COLUMN_0;
    _mm256_setr_epi32(COLUMN_0, ROUND, ROUND, ROUND, COLUMN_0, ROUND, ROUND, ROUND)
}

/// Converts the sums of the second pass to samples, of each column four rows.
#[target_feature(enable = "avx2")]
fn finish([column0, column1, column2, column3]: [__m256i; SIDE]) -> __m256i {
    // The upper 16 bits of each sum, two columns of a row side by side.
    let side_by_side = |first, second| {
        let words = _mm256_blend_epi16::<0b1010_1010>(_mm256_srli_epi32::<16>(first), second);
        _mm256_srai_epi16::<3>(words)
    };
    let bytes = _mm256_packus_epi16(side_by_side(column0, column1), side_by_side(column2, column3));
    let rows = _mm256_unpacklo_epi16(bytes, _mm256_unpackhi_epi64(bytes, bytes));
    _mm256_permutevar8x32_epi32(rows, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

/// The sums of a pass, from the pairs of inputs 0 4, 1 5, 2 6, 3 7; input 4 is unused.
#[target_feature(enable = "avx2")]
fn sums([in04, in15, in26, in37]: [__m256i; 4], rounding: __m256i) -> [__m256i; SIDE] {
    let outer = _mm256_add_epi32(times(in04, EVEN_OUTER, 0), rounding);
    let inner = times(in26, EVEN_INNER[0], EVEN_INNER[1]);
    let even = [_mm256_add_epi32(outer, inner), _mm256_sub_epi32(outer, inner)];
    let mut odd = [_mm256_setzero_si256(); 2];
    for (odd, [first, fifth, third, seventh]) in odd.iter_mut().zip(ODD) {
        *odd = _mm256_add_epi32(times(in15, first, fifth), times(in37, third, seventh));
    }
    [
        _mm256_add_epi32(even[0], odd[0]),
        _mm256_add_epi32(even[1], odd[1]),
        _mm256_sub_epi32(even[1], odd[1]),
        _mm256_sub_epi32(even[0], odd[0]),
    ]
}

/// The sums of a pass, from the pairs of inputs 0 2 and 1 3 when all others are 0.
#[target_feature(enable = "avx2")]
fn corner_sums(in02: __m256i, in13: __m256i, rounding: __m256i) -> [__m256i; SIDE] {
    let [inner, _] = EVEN_INNER;
    let even0 = _mm256_add_epi32(times(in02, EVEN_OUTER, inner), rounding);
    let even1 = _mm256_add_epi32(times(in02, EVEN_OUTER, -inner), rounding);
    let [[first, _, third, _], [second, _, fourth, _]] = ODD;
    let (odd0, odd1) = (times(in13, first, third), times(in13, second, fourth));
    [
        _mm256_add_epi32(even0, odd0),
        _mm256_add_epi32(even1, odd1),
        _mm256_sub_epi32(even1, odd1),
        _mm256_sub_epi32(even0, odd0),
    ]
}

/// Transforms a run of blocks to 2x2 samples. `out` must hold 2 rows of it.
#[target_feature(enable = "avx2")]
pub(super) fn two(
    table: &[i16; 64],
    blocks: &[Block],
    extents: &[u8],
    out: &mut [u8],
    stride: usize,
) {
    let groups = blocks.chunks(LANES).zip(extents.chunks(LANES));
    for (index, (blocks, extents)) in groups.enumerate() {
        let (first, last) = (&blocks[0], &blocks[blocks.len() - 1]);
        let rows = match extents[0].max(extents[extents.len() - 1]) {
            0 => {
                let flat = |block| flat_sample(Scale::Two, table, block);
                let (first, last) = (flat(first), flat(last));
                [[first, first, last, last]; 2]
            }
            _ => samples_of_two(table, first, last),
        };
        let width = 2 * blocks.len();
        for (row, samples) in rows.iter().enumerate() {
            let out = &mut out[row * stride + index * LANES * 2..][..width];
            out.copy_from_slice(&samples[..width]);
        }
    }
}

/// Transforms two blocks to two rows of both.
#[target_feature(enable = "avx2")]
fn samples_of_two(table: &[i16; 64], first: &Block, last: &Block) -> [[u8; 4]; 2] {
    let mut inputs = [_mm256_setzero_si256(); 5];
    for (input, row) in inputs.iter_mut().zip([0, 1, 3, 5, 7]) {
        let [values, factors] = both_blocks(table, first, last, row);
        *input = _mm256_mullo_epi16(values, factors);
    }
    let [in0, in1, in3, in5, in7] = inputs;
    let [one, three, five, seven] = ODD_OF_TWO;
    let odd = |in13, in57| _mm256_add_epi32(times(in13, one, three), times(in57, five, seven));
    let odds = [
        odd(_mm256_unpacklo_epi16(in1, in3), _mm256_unpacklo_epi16(in5, in7)),
        odd(_mm256_unpackhi_epi16(in1, in3), _mm256_unpackhi_epi16(in5, in7)),
    ];
    // The mean 2^15 times, by way of the upper half of 32 bits.
    let zero = _mm256_setzero_si256();
    let evens = [
        _mm256_srai_epi32::<1>(_mm256_unpacklo_epi16(zero, in0)),
        _mm256_srai_epi32::<1>(_mm256_unpackhi_epi16(zero, in0)),
    ];
    let rounded = |sum| _mm256_srai_epi32::<13>(_mm256_add_epi32(sum, _mm256_set1_epi32(1 << 12)));
    let upper = [
        rounded(_mm256_add_epi32(evens[0], odds[0])),
        rounded(_mm256_add_epi32(evens[1], odds[1])),
    ];
    let lower = [
        rounded(_mm256_sub_epi32(evens[0], odds[0])),
        rounded(_mm256_sub_epi32(evens[1], odds[1])),
    ];
    // The odd columns of both rows, clamped to 16 bits; the others are unused.
    let factors = _mm256_broadcastsi128_si256(_mm_setr_epi16(0, one, 0, three, 0, five, 0, seven));
    let odds = _mm256_hadd_epi32(
        _mm256_madd_epi16(_mm256_packs_epi32(upper[0], upper[1]), factors),
        _mm256_madd_epi16(_mm256_packs_epi32(lower[0], lower[1]), factors),
    );
    let odds = _mm256_hadd_epi32(odds, odds);
    // The mean's column keeps its 32 bits.
    let means = _mm256_slli_epi32::<15>(_mm256_unpacklo_epi32(upper[0], lower[0]));
    let means = _mm256_add_epi32(means, _mm256_set1_epi32(1 << 19));
    let left = _mm256_srai_epi32::<20>(_mm256_add_epi32(means, odds));
    let right = _mm256_srai_epi32::<20>(_mm256_sub_epi32(means, odds));
    // Left and right of the upper row and of the lower one, clamped to -128..=127; then 128 is
    // added.
    let words = _mm256_packs_epi32(_mm256_unpacklo_epi32(left, right), zero);
    let bytes = _mm256_packs_epi16(words, zero);
    let bytes = _mm256_xor_si256(bytes, _mm256_set1_epi8(i8::MIN));
    let of_first = _mm256_extract_epi32::<0>(bytes).to_ne_bytes();
    let of_last = _mm256_extract_epi32::<4>(bytes).to_ne_bytes();
    [0, 2].map(|row| [of_first[row], of_first[row + 1], of_last[row], of_last[row + 1]])
}
