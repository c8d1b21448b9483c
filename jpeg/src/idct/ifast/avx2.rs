//! The fast transform with AVX2: two blocks at a time, one in each half of a vector.
#![expect(unsafe_code, reason = "stores of vectors")]

use super::{SHIFT, SIDE, TIMES_1_082, TIMES_1_414, TIMES_1_847, TIMES_MINUS_1_613, flat_sample};
use crate::Block;
use crate::idct::CORNER_EXTENT;
use crate::idct::islow::avx2::{both_blocks, flat};
use std::arch::x86_64::*;

/// Blocks transformed at once.
const LANES: usize = 2;

/// Rows `2 n` and `2 n + 1` of both blocks, as the transform leaves them.
type Samples = [__m256i; 4];

/// Transforms a run of blocks.
///
/// # Safety
///
/// `out` must hold `7 * stride + 8 * blocks.len()` bytes.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn run(
    table: &[i16; 64],
    blocks: &[Block],
    extents: &[u8],
    out: &mut [u8],
    stride: usize,
) {
    let groups = blocks.chunks(LANES).zip(extents.chunks(LANES));
    for (index, (blocks, extents)) in groups.enumerate() {
        let (first, last) = (&blocks[0], &blocks[blocks.len() - 1]);
        let samples = match extents[0].max(extents[extents.len() - 1]) {
            0 => flat(flat_sample(table, first), flat_sample(table, last)),
            1..=CORNER_EXTENT => corner(table, first, last),
            _ => full(table, first, last),
        };
        let to = out[index * LANES * SIDE..].as_mut_ptr();
        for (row, samples) in samples.into_iter().enumerate() {
            let second = _mm256_extracti128_si256::<1>(samples);
            let first = _mm256_castsi256_si128(samples);
            // SAFETY: 8 bytes a block are stored in each of 8 rows, for which `out` has room.
            unsafe {
                let first_to = to.add(2 * row * stride);
                let second_to = first_to.add(stride);
                if blocks.len() == LANES {
                    _mm_storeu_si128(first_to.cast(), first);
                    _mm_storeu_si128(second_to.cast(), second);
                } else {
                    _mm_storel_epi64(first_to.cast(), first);
                    _mm_storel_epi64(second_to.cast(), second);
                }
            }
        }
    }
}

/// Transforms any two blocks.
#[target_feature(enable = "avx2")]
fn full(table: &[i16; 64], first: &Block, last: &Block) -> Samples {
    let rows = pass(dequantised::<8>(table, first, last));
    let [row0, row1, row2, row3, row4, row5, row6, row7] = rows;
    let upper = pairs([row0, row1, row2, row3]);
    let lower = pairs([row4, row5, row6, row7]);
    let mut columns = [_mm256_setzero_si256(); SIDE];
    for (index, (upper, lower)) in upper.into_iter().zip(lower).enumerate() {
        columns[2 * index] = _mm256_unpacklo_epi64(upper, lower);
        columns[2 * index + 1] = _mm256_unpackhi_epi64(upper, lower);
    }
    finish(pass(columns))
}

/// Transforms two blocks whose coefficients lie in the 4x4 of lowest frequency.
#[target_feature(enable = "avx2")]
fn corner(table: &[i16; 64], first: &Block, last: &Block) -> Samples {
    let [in0, in1, in2, in3] = dequantised::<4>(table, first, last);
    let zero = _mm256_setzero_si256();
    let rows = pass([in0, in1, in2, in3, zero, zero, zero, zero]);
    // Only columns 0 to 3 hold anything, and so only half of each vector.
    let [row0, row1, row2, row3, row4, row5, row6, row7] = rows;
    let upper = low_pairs([row0, row1, row2, row3]);
    let lower = low_pairs([row4, row5, row6, row7]);
    let columns = [
        _mm256_unpacklo_epi64(upper[0], lower[0]),
        _mm256_unpackhi_epi64(upper[0], lower[0]),
        _mm256_unpacklo_epi64(upper[1], lower[1]),
        _mm256_unpackhi_epi64(upper[1], lower[1]),
        zero,
        zero,
        zero,
        zero,
    ];
    finish(pass(columns))
}

/// The first rows of both blocks times their multipliers.
#[target_feature(enable = "avx2")]
fn dequantised<const ROWS: usize>(
    table: &[i16; 64],
    first: &Block,
    last: &Block,
) -> [__m256i; ROWS] {
    let mut rows = [_mm256_setzero_si256(); ROWS];
    for (index, row) in rows.iter_mut().enumerate() {
        let [values, factors] = both_blocks(table, first, last, index);
        *row = _mm256_mullo_epi16(values, factors);
    }
    rows
}

/// Columns 0 1, 2 3, 4 5 and 6 7 of four rows.
#[target_feature(enable = "avx2")]
fn pairs(rows: [__m256i; 4]) -> [__m256i; 4] {
    let [first, second] = low_pairs(rows);
    let [row0, row1, row2, row3] = rows;
    let rows01 = _mm256_unpackhi_epi16(row0, row1);
    let rows23 = _mm256_unpackhi_epi16(row2, row3);
    [first, second, _mm256_unpacklo_epi32(rows01, rows23), _mm256_unpackhi_epi32(rows01, rows23)]
}

/// Columns 0 1 and 2 3 of four rows.
#[target_feature(enable = "avx2")]
fn low_pairs([row0, row1, row2, row3]: [__m256i; 4]) -> [__m256i; 2] {
    let rows01 = _mm256_unpacklo_epi16(row0, row1);
    let rows23 = _mm256_unpacklo_epi16(row2, row3);
    [_mm256_unpacklo_epi32(rows01, rows23), _mm256_unpackhi_epi32(rows01, rows23)]
}

/// One pass, as [`super::butterfly`].
#[target_feature(enable = "avx2")]
fn pass([in0, in1, in2, in3, in4, in5, in6, in7]: [__m256i; SIDE]) -> [__m256i; SIDE] {
    let add = _mm256_add_epi16;
    let sub = _mm256_sub_epi16;
    let (tmp10, tmp11, tmp13) = (add(in0, in4), sub(in0, in4), add(in2, in6));
    let tmp12 = sub(times(sub(in2, in6), TIMES_1_414), tmp13);
    let (tmp0, tmp3) = (add(tmp10, tmp13), sub(tmp10, tmp13));
    let (tmp1, tmp2) = (add(tmp11, tmp12), sub(tmp11, tmp12));

    let (z13, z10) = (add(in5, in3), sub(in5, in3));
    let (z11, z12) = (add(in1, in7), sub(in1, in7));
    let tmp7 = add(z11, z13);
    let tmp11 = times(sub(z11, z13), TIMES_1_414);
    let z5 = times(add(z10, z12), TIMES_1_847);
    let tmp10 = sub(times(z12, TIMES_1_082), z5);
    let tmp12 = add(sub(times(z10, TIMES_MINUS_1_613), z10), z5);
    let tmp6 = sub(tmp12, tmp7);
    let tmp5 = sub(tmp11, tmp6);
    let tmp4 = add(tmp10, tmp5);
    [
        add(tmp0, tmp7),
        add(tmp1, tmp6),
        add(tmp2, tmp5),
        sub(tmp3, tmp4),
        add(tmp3, tmp4),
        sub(tmp2, tmp5),
        sub(tmp1, tmp6),
        sub(tmp0, tmp7),
    ]
}

/// The upper 16 bits of the product of four times a value, which wraps, and a factor. (Four times
/// a sum is the sum of four times its parts, wrapping or not.)
#[target_feature(enable = "avx2")]
fn times(value: __m256i, factor: i16) -> __m256i {
    _mm256_mulhi_epi16(_mm256_slli_epi16::<2>(value), _mm256_set1_epi16(factor))
}

/// Makes samples of the sums of the second pass, of each column one vector.
#[target_feature(enable = "avx2")]
fn finish(mut columns: [__m256i; SIDE]) -> Samples {
    for column in &mut columns {
        *column = _mm256_srai_epi16::<{ SHIFT as i32 }>(*column);
    }
    let [column0, column1, column2, column3, column4, column5, column6, column7] = columns;
    // Clamped to -128..=127, and then 128 added.
    let columns02 = _mm256_packs_epi16(column0, column2);
    let columns13 = _mm256_packs_epi16(column1, column3);
    let columns46 = _mm256_packs_epi16(column4, column6);
    let columns57 = _mm256_packs_epi16(column5, column7);
    let columns01 = _mm256_unpacklo_epi8(columns02, columns13);
    let columns23 = _mm256_unpackhi_epi8(columns02, columns13);
    let columns45 = _mm256_unpacklo_epi8(columns46, columns57);
    let columns67 = _mm256_unpackhi_epi8(columns46, columns57);
    let first_upper = _mm256_unpacklo_epi16(columns01, columns23);
    let first_lower = _mm256_unpackhi_epi16(columns01, columns23);
    let last_upper = _mm256_unpacklo_epi16(columns45, columns67);
    let last_lower = _mm256_unpackhi_epi16(columns45, columns67);
    let mut rows = [
        _mm256_unpacklo_epi32(first_upper, last_upper),
        _mm256_unpackhi_epi32(first_upper, last_upper),
        _mm256_unpacklo_epi32(first_lower, last_lower),
        _mm256_unpackhi_epi32(first_lower, last_lower),
    ];
    // Each half holds two rows of its block; put the blocks' rows side by side.
    for rows in &mut rows {
        let side_by_side = _mm256_permute4x64_epi64::<0b11_01_10_00>(*rows);
        *rows = _mm256_xor_si256(side_by_side, _mm256_set1_epi8(i8::MIN));
    }
    rows
}
