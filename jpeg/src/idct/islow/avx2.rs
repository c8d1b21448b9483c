//! The exact transform with AVX2: two blocks at a time, one in each half of a vector.
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::{
    COLUMN_MAX, EVEN_INNER, EVEN_OUTER, FIRST_SHIFT, ODD, ROUND_AND_LEVEL, SIDE, flat_sample,
    portable,
};
use crate::Block;
use crate::idct::{CORNER_EXTENT, store};
use std::arch::x86_64::*;

/// Blocks transformed at once.
const LANES: usize = 2;

/// Transforms a run of blocks. The caller has checked that it fits the output.
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
        let out = &mut out[index * LANES * SIDE..];
        let samples = match extents[0].max(extents[extents.len() - 1]) {
            0 => Some(flat(flat_sample(table, first), flat_sample(table, last))),
            1..=CORNER_EXTENT => corner(table, first, last),
            _ => full(table, first, last),
        };
        let Some(samples) = samples else {
            for (column, block) in blocks.iter().enumerate() {
                store(&portable::transform(table, block), &mut out[column * SIDE..], stride);
            }
            continue;
        };
        let to = out.as_mut_ptr();
        for (row, samples) in samples.into_iter().enumerate() {
            let high = _mm256_extracti128_si256::<1>(samples);
            let samples = _mm256_castsi256_si128(samples);
            // SAFETY: 8 bytes a block are stored in each of 8 rows, for which `out` has room.
            unsafe {
                let (low_to, high_to) = (to.add(row * stride), to.add((row + 4) * stride));
                if blocks.len() == LANES {
                    _mm_storeu_si128(low_to.cast(), samples);
                    _mm_storeu_si128(high_to.cast(), high);
                } else {
                    _mm_storel_epi64(low_to.cast(), samples);
                    _mm_storel_epi64(high_to.cast(), high);
                }
            }
        }
    }
}

/// Rows `n` and `n + 4` of both blocks, in the transform's output order.
type Samples = [__m256i; 4];

/// Two blocks of one value each.
#[target_feature(enable = "avx2")]
pub(in crate::idct) fn flat(first: u8, last: u8) -> Samples {
    let row = _mm_unpacklo_epi64(_mm_set1_epi8(first as i8), _mm_set1_epi8(last as i8));
    [_mm256_broadcastsi128_si256(row); 4]
}

/// Transforms any two blocks; `None` if they need the portable code.
#[target_feature(enable = "avx2")]
fn full(table: &[i16; 64], first: &Block, last: &Block) -> Option<Samples> {
    let rows = dequantised::<8>(table, first, last)?;
    let [in0, in1, in2, in3, in4, in5, in6, in7] = rows;
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
    let high = sums(high, _mm256_set1_epi32(1 << (FIRST_SHIFT - 1)));
    // A row of 32-bit sums of columns 0 to 3 and one of columns 4 to 7 become one of 16-bit values
    // in the order 0 4 1 5 2 6 3 7: the pairs that the second pass multiplies.
    let mut between = [_mm256_setzero_si256(); SIDE];
    for (row, between) in between.iter_mut().enumerate() {
        *between = _mm256_blend_epi16::<0b1010_1010>(
            _mm256_srli_epi32::<{ FIRST_SHIFT as i32 }>(low[row]),
            _mm256_slli_epi32::<{ 16 - FIRST_SHIFT as i32 }>(high[row]),
        );
    }
    let [row0, row1, row2, row3, row4, row5, row6, row7] = between;
    let zero = _mm256_setzero_si256();
    let low = sums(transpose(row0, row1, row2, row3), zero);
    let high = sums(transpose(row4, row5, row6, row7), zero);
    Some(finish(low, high))
}

/// Transforms two blocks whose non-zero coefficients are in the 4x4 of lowest frequency.
#[target_feature(enable = "avx2")]
fn corner(table: &[i16; 64], first: &Block, last: &Block) -> Option<Samples> {
    let [in0, in1, in2, in3] = dequantised::<4>(table, first, last)?;
    // Only columns 0 to 3 are non-zero, half of each vector: in the order 0 2 1 3, to form pairs
    // for the second pass.
    let even = _mm256_shuffle_epi32::<0b11_01_10_00>(_mm256_unpacklo_epi16(in0, in2));
    let odd = _mm256_shuffle_epi32::<0b11_01_10_00>(_mm256_unpacklo_epi16(in1, in3));
    let sums = corner_sums(even, odd, first_rounding());
    let mut shifted = sums;
    for shifted in &mut shifted {
        *shifted = _mm256_srai_epi32::<{ FIRST_SHIFT as i32 }>(*shifted);
    }
    let [row0, row1, row2, row3, row4, row5, row6, row7] = shifted;
    let rows01 = _mm256_packs_epi32(row0, row1);
    let rows23 = _mm256_packs_epi32(row2, row3);
    let rows45 = _mm256_packs_epi32(row4, row5);
    let rows67 = _mm256_packs_epi32(row6, row7);
    let zero = _mm256_setzero_si256();
    let low = corner_sums(evens(rows01, rows23), odds(rows01, rows23), zero);
    let high = corner_sums(evens(rows45, rows67), odds(rows45, rows67), zero);
    Some(finish(low, high))
}

/// The first rows of both blocks, dequantised; `None` if a column is beyond [`COLUMN_MAX`].
#[target_feature(enable = "avx2")]
pub(in crate::idct) fn dequantised<const ROWS: usize>(
    table: &[i16; 64],
    first: &Block,
    last: &Block,
) -> Option<[__m256i; ROWS]> {
    let mut rows = [_mm256_setzero_si256(); ROWS];
    let mut magnitudes = _mm256_setzero_si256();
    for (index, row) in rows.iter_mut().enumerate() {
        let [values, factors] = both_blocks(table, first, last, index);
        *row = _mm256_mullo_epi16(values, factors);
        magnitudes = _mm256_adds_epu16(magnitudes, _mm256_abs_epi16(*row));
    }
    let beyond = _mm256_subs_epu16(magnitudes, _mm256_set1_epi16(COLUMN_MAX));
    (_mm256_testz_si256(beyond, beyond) != 0).then_some(rows)
}

/// A row of both blocks, and their factors.
#[target_feature(enable = "avx2")]
pub(in crate::idct) fn both_blocks(
    table: &[i16; 64],
    first: &Block,
    last: &Block,
    row: usize,
) -> [__m256i; 2] {
    let at = row * SIDE;
    let low = _mm256_castsi128_si256(load(&first.0, at));
    let values = _mm256_inserti128_si256::<1>(low, load(&last.0, at));
    [values, _mm256_broadcastsi128_si256(load(table, at))]
}

/// Eight values of a block or a table.
#[target_feature(enable = "avx2")]
fn load(values: &[i16; 64], at: usize) -> __m128i {
    let values: &[i16; SIDE] = values[at..].first_chunk().expect("a row begins at a multiple of 8");
    // SAFETY: the load takes the 16 bytes of the array and needs no alignment.
    unsafe { _mm_loadu_si128(values.as_ptr().cast()) }
}

/// The rounding terms of the first pass and, in column 0, of the second.
#[target_feature(enable = "avx2")]
fn first_rounding() -> __m256i {
    const ROUND: i32 = 1 << (FIRST_SHIFT - 1);
    const COLUMN_0: i32 = ROUND + (ROUND_AND_LEVEL << FIRST_SHIFT);
    _mm256_setr_epi32(COLUMN_0, ROUND, ROUND, ROUND, COLUMN_0, ROUND, ROUND, ROUND)
}

/// The sums of a pass, from the pairs of inputs 0 4, 1 5, 2 6, 3 7.
#[target_feature(enable = "avx2")]
fn sums([in04, in15, in26, in37]: [__m256i; 4], rounding: __m256i) -> [__m256i; SIDE] {
    let outer0 = _mm256_add_epi32(times(in04, EVEN_OUTER, EVEN_OUTER), rounding);
    let outer1 = _mm256_add_epi32(times(in04, EVEN_OUTER, -EVEN_OUTER), rounding);
    let [[second0, sixth0], [second1, sixth1]] = EVEN_INNER;
    let inner = [times(in26, second0, sixth0), times(in26, second1, sixth1)];
    let even = [
        _mm256_add_epi32(outer0, inner[0]),
        _mm256_add_epi32(outer1, inner[1]),
        _mm256_sub_epi32(outer1, inner[1]),
        _mm256_sub_epi32(outer0, inner[0]),
    ];
    let mut odd = [_mm256_setzero_si256(); 4];
    for (odd, [first, fifth, third, seventh]) in odd.iter_mut().zip(ODD) {
        *odd = _mm256_add_epi32(times(in15, first, fifth), times(in37, third, seventh));
    }
    mirrored(even, odd)
}

/// The sums of a pass, from the pairs of inputs 0 2 and 1 3 when all others are 0.
#[target_feature(enable = "avx2")]
fn corner_sums(in02: __m256i, in13: __m256i, rounding: __m256i) -> [__m256i; SIDE] {
    let [[inner0, _], [inner1, _]] = EVEN_INNER;
    let mut even = [_mm256_setzero_si256(); 4];
    for (even, inner) in even.iter_mut().zip([inner0, inner1, -inner1, -inner0]) {
        *even = _mm256_add_epi32(times(in02, EVEN_OUTER, inner), rounding);
    }
    let mut odd = [_mm256_setzero_si256(); 4];
    for (odd, [first, _, third, _]) in odd.iter_mut().zip(ODD) {
        *odd = times(in13, first, third);
    }
    mirrored(even, odd)
}

/// Outputs 0 to 3, and with the odd part taken away 7 to 4.
#[target_feature(enable = "avx2")]
fn mirrored(even: [__m256i; 4], odd: [__m256i; 4]) -> [__m256i; SIDE] {
    let mut sums = [_mm256_setzero_si256(); SIDE];
    for (row, (even, odd)) in even.into_iter().zip(odd).enumerate() {
        sums[row] = _mm256_add_epi32(even, odd);
        sums[7 - row] = _mm256_sub_epi32(even, odd);
    }
    sums
}

/// The products of the values of each pair with their factors, added up.
#[target_feature(enable = "avx2")]
pub(in crate::idct) fn times(pairs: __m256i, first: i16, second: i16) -> __m256i {
    let factors = i32::from(first) & 0xFFFF | i32::from(second) << 16;
    _mm256_madd_epi16(pairs, _mm256_set1_epi32(factors))
}

/// Four rows of pairs of columns as four pairs of columns of four rows.
#[target_feature(enable = "avx2")]
pub(in crate::idct) fn transpose(
    row0: __m256i,
    row1: __m256i,
    row2: __m256i,
    row3: __m256i,
) -> [__m256i; 4] {
    let low01 = _mm256_unpacklo_epi32(row0, row1);
    let low23 = _mm256_unpacklo_epi32(row2, row3);
    let high01 = _mm256_unpackhi_epi32(row0, row1);
    let high23 = _mm256_unpackhi_epi32(row2, row3);
    [
        _mm256_unpacklo_epi64(low01, low23),
        _mm256_unpackhi_epi64(low01, low23),
        _mm256_unpacklo_epi64(high01, high23),
        _mm256_unpackhi_epi64(high01, high23),
    ]
}

/// Columns 0 2 of four rows, from two rows of columns 0 2 1 3 in each argument.
#[target_feature(enable = "avx2")]
pub(in crate::idct) fn evens(rows01: __m256i, rows23: __m256i) -> __m256i {
    let (first, second) = (_mm256_castsi256_ps(rows01), _mm256_castsi256_ps(rows23));
    _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(first, second))
}

/// Columns 1 3 likewise.
#[target_feature(enable = "avx2")]
pub(in crate::idct) fn odds(rows01: __m256i, rows23: __m256i) -> __m256i {
    let (first, second) = (_mm256_castsi256_ps(rows01), _mm256_castsi256_ps(rows23));
    _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(first, second))
}

/// Converts the sums of the second pass to samples: of each column, rows 0 to 3 and rows 4 to 7.
#[target_feature(enable = "avx2")]
fn finish(low: [__m256i; SIDE], high: [__m256i; SIDE]) -> Samples {
    // The upper 16 bits of each sum, in the order of rows 0 4 1 5 2 6 3 7.
    let mut columns = [_mm256_setzero_si256(); SIDE];
    for (index, column) in columns.iter_mut().enumerate() {
        let low = _mm256_srli_epi32::<16>(low[index]);
        let words = _mm256_blend_epi16::<0b1010_1010>(low, high[index]);
        *column = _mm256_srai_epi16::<2>(words);
    }
    let [column0, column1, column2, column3, column4, column5, column6, column7] = columns;
    let columns02 = _mm256_packus_epi16(column0, column2);
    let columns13 = _mm256_packus_epi16(column1, column3);
    let columns46 = _mm256_packus_epi16(column4, column6);
    let columns57 = _mm256_packus_epi16(column5, column7);
    let columns01 = _mm256_unpacklo_epi8(columns02, columns13);
    let columns23 = _mm256_unpackhi_epi8(columns02, columns13);
    let columns45 = _mm256_unpacklo_epi8(columns46, columns57);
    let columns67 = _mm256_unpackhi_epi8(columns46, columns57);
    let first_low = _mm256_unpacklo_epi16(columns01, columns23);
    let first_high = _mm256_unpackhi_epi16(columns01, columns23);
    let last_low = _mm256_unpacklo_epi16(columns45, columns67);
    let last_high = _mm256_unpackhi_epi16(columns45, columns67);
    let mut rows = [
        _mm256_unpacklo_epi32(first_low, last_low),
        _mm256_unpackhi_epi32(first_low, last_low),
        _mm256_unpacklo_epi32(first_high, last_high),
        _mm256_unpackhi_epi32(first_high, last_high),
    ];
    // Each half holds two rows of its block; put the blocks' rows side by side.
    for rows in &mut rows {
        *rows = _mm256_permute4x64_epi64::<0b11_01_10_00>(*rows);
    }
    rows
}
