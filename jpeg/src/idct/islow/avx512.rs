//! The exact transform with AVX-512: four blocks at a time, one in each quarter of a vector.
//!
//! Step by step that of [`super::avx2`].
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::{
    COLUMN_MAX, EVEN_INNER, EVEN_OUTER, FIRST_SHIFT, ODD, ROUND_AND_LEVEL, SIDE, flat_row,
    flat_sample, portable,
};
use crate::Block;
use crate::idct::{CORNER_EXTENT, store};
use std::arch::x86_64::*;

/// Blocks transformed at once.
const LANES: usize = 4;

/// The second of each pair of 16-bit values.
const SECONDS: __mmask32 = 0xAAAA_AAAA;

/// The blocks of a vector; at the end of a run the last one is repeated.
type Group<'a> = [&'a Block; LANES];

/// Transforms a run of blocks. The caller has checked that it fits the output.
///
/// # Safety
///
/// `out` must hold `7 * stride + 8 * blocks.len()` bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) unsafe fn run(
    table: &[i16; 64],
    blocks: &[Block],
    extents: &[u8],
    out: &mut [u8],
    stride: usize,
) {
    let groups = blocks.chunks(LANES).zip(extents.chunks(LANES));
    for (index, (blocks, extents)) in groups.enumerate() {
        let group: Group<'_> = std::array::from_fn(|lane| &blocks[lane.min(blocks.len() - 1)]);
        let out = &mut out[index * LANES * SIDE..];
        let samples = match extents.iter().copied().max() {
            Some(0) => Some(flat(table, &group)),
            Some(1..=CORNER_EXTENT) => corner(table, &group),
            _ => full(table, &group),
        };
        let Some(samples) = samples else {
            for (column, block) in blocks.iter().enumerate() {
                store(&portable::transform(table, block), &mut out[column * SIDE..], stride);
            }
            continue;
        };
        let to = out.as_mut_ptr();
        let mask = (1u8 << blocks.len()) - 1;
        for (row, samples) in samples.into_iter().enumerate() {
            // SAFETY: 8 bytes a block are stored in each of 8 rows, for which `out` has room; the
            // mask excludes the bytes of blocks beyond the run.
            unsafe {
                let (low_to, high_to) = (to.add(row * stride), to.add((row + 4) * stride));
                _mm256_mask_storeu_epi64(low_to.cast(), mask, _mm512_castsi512_si256(samples));
                let high = _mm512_extracti64x4_epi64::<1>(samples);
                _mm256_mask_storeu_epi64(high_to.cast(), mask, high);
            }
        }
    }
}

/// Rows `n` and `n + 4` of all blocks, in the transform's output order.
type Samples = [__m512i; 4];

/// Blocks of one value each.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn flat(table: &[i16; 64], blocks: &Group<'_>) -> Samples {
    let [first, second, third, fourth] = blocks.map(|block| flat_row(flat_sample(table, block)));
    [_mm512_setr_epi64(first, second, third, fourth, first, second, third, fourth); 4]
}

/// Transforms any blocks; `None` if they need the portable code.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn full(table: &[i16; 64], blocks: &Group<'_>) -> Option<Samples> {
    let rows = dequantised::<8>(table, blocks)?;
    let [in0, in1, in2, in3, in4, in5, in6, in7] = rows;
    let low = [
        _mm512_unpacklo_epi16(in0, in4),
        _mm512_unpacklo_epi16(in1, in5),
        _mm512_unpacklo_epi16(in2, in6),
        _mm512_unpacklo_epi16(in3, in7),
    ];
    let high = [
        _mm512_unpackhi_epi16(in0, in4),
        _mm512_unpackhi_epi16(in1, in5),
        _mm512_unpackhi_epi16(in2, in6),
        _mm512_unpackhi_epi16(in3, in7),
    ];
    let low = sums(low, first_rounding());
    let high = sums(high, _mm512_set1_epi32(1 << (FIRST_SHIFT - 1)));
    // A row of 32-bit sums of columns 0 to 3 and one of columns 4 to 7 become one of 16-bit values
    // in the order 0 4 1 5 2 6 3 7: the pairs that the second pass multiplies.
    let mut between = [_mm512_setzero_si512(); SIDE];
    for (row, between) in between.iter_mut().enumerate() {
        *between = _mm512_mask_blend_epi16(
            SECONDS,
            _mm512_srli_epi32::<FIRST_SHIFT>(low[row]),
            _mm512_slli_epi32::<{ 16 - FIRST_SHIFT }>(high[row]),
        );
    }
    let [row0, row1, row2, row3, row4, row5, row6, row7] = between;
    let zero = _mm512_setzero_si512();
    let low = sums(transpose(row0, row1, row2, row3), zero);
    let high = sums(transpose(row4, row5, row6, row7), zero);
    Some(finish(low, high))
}

/// Transforms blocks whose non-zero coefficients are in the 4x4 of lowest frequency.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn corner(table: &[i16; 64], blocks: &Group<'_>) -> Option<Samples> {
    let [in0, in1, in2, in3] = dequantised::<4>(table, blocks)?;
    // Only columns 0 to 3 are non-zero, half of each vector: in the order 0 2 1 3, to form pairs
    // for the second pass.
    let even = _mm512_shuffle_epi32::<0b11_01_10_00>(_mm512_unpacklo_epi16(in0, in2));
    let odd = _mm512_shuffle_epi32::<0b11_01_10_00>(_mm512_unpacklo_epi16(in1, in3));
    let sums = corner_sums(even, odd, first_rounding());
    let mut shifted = sums;
    for shifted in &mut shifted {
        *shifted = _mm512_srai_epi32::<FIRST_SHIFT>(*shifted);
    }
    let [row0, row1, row2, row3, row4, row5, row6, row7] = shifted;
    let rows01 = _mm512_packs_epi32(row0, row1);
    let rows23 = _mm512_packs_epi32(row2, row3);
    let rows45 = _mm512_packs_epi32(row4, row5);
    let rows67 = _mm512_packs_epi32(row6, row7);
    let zero = _mm512_setzero_si512();
    let low = corner_sums(evens(rows01, rows23), odds(rows01, rows23), zero);
    let high = corner_sums(evens(rows45, rows67), odds(rows45, rows67), zero);
    Some(finish(low, high))
}

/// The first rows of the blocks, dequantised; `None` if a column is beyond [`COLUMN_MAX`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn dequantised<const ROWS: usize>(
    table: &[i16; 64],
    blocks: &Group<'_>,
) -> Option<[__m512i; ROWS]> {
    let mut rows = [_mm512_setzero_si512(); ROWS];
    let mut magnitudes = _mm512_setzero_si512();
    for (quarter, rows) in rows.chunks_exact_mut(4).enumerate() {
        let at = quarter * 4 * SIDE;
        // Four rows of a block per vector; transposed, a row of four blocks.
        let [first, second, third, fourth] = blocks.map(|block| load(&block.0, at));
        let rows01 = [
            _mm512_shuffle_i32x4::<0b01_00_01_00>(first, second),
            _mm512_shuffle_i32x4::<0b01_00_01_00>(third, fourth),
        ];
        let rows23 = [
            _mm512_shuffle_i32x4::<0b11_10_11_10>(first, second),
            _mm512_shuffle_i32x4::<0b11_10_11_10>(third, fourth),
        ];
        let turned = [
            _mm512_shuffle_i32x4::<0b10_00_10_00>(rows01[0], rows01[1]),
            _mm512_shuffle_i32x4::<0b11_01_11_01>(rows01[0], rows01[1]),
            _mm512_shuffle_i32x4::<0b10_00_10_00>(rows23[0], rows23[1]),
            _mm512_shuffle_i32x4::<0b11_01_11_01>(rows23[0], rows23[1]),
        ];
        for (index, (row, turned)) in rows.iter_mut().zip(turned).enumerate() {
            let factors = _mm512_broadcast_i32x4(load_row(table, at + index * SIDE));
            *row = _mm512_mullo_epi16(turned, factors);
            magnitudes = _mm512_adds_epu16(magnitudes, _mm512_abs_epi16(*row));
        }
    }
    let beyond = _mm512_cmpgt_epu16_mask(magnitudes, _mm512_set1_epi16(COLUMN_MAX));
    (beyond == 0).then_some(rows)
}

/// Four rows of a block.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load(values: &[i16; 64], at: usize) -> __m512i {
    let values: &[i16; 4 * SIDE] = values[at..].first_chunk().expect("four rows follow");
    // SAFETY: the load takes the 64 bytes of the array and needs no alignment.
    unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
}

/// A row of a table.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load_row(values: &[i16; 64], at: usize) -> __m128i {
    let values: &[i16; SIDE] = values[at..].first_chunk().expect("a row begins at a multiple of 8");
    // SAFETY: the load takes the 16 bytes of the array and needs no alignment.
    unsafe { _mm_loadu_si128(values.as_ptr().cast()) }
}

/// The rounding terms of the first pass and, in column 0, of the second.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn first_rounding() -> __m512i {
    const ROUND: i32 = 1 << (FIRST_SHIFT - 1);
    const COLUMN_0: i32 = ROUND + (ROUND_AND_LEVEL << FIRST_SHIFT);
    _mm512_set4_epi32(ROUND, ROUND, ROUND, COLUMN_0)
}

/// The sums of a pass, from the pairs of inputs 0 4, 1 5, 2 6, 3 7.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn sums([in04, in15, in26, in37]: [__m512i; 4], rounding: __m512i) -> [__m512i; SIDE] {
    let outer0 = _mm512_add_epi32(times(in04, EVEN_OUTER, EVEN_OUTER), rounding);
    let outer1 = _mm512_add_epi32(times(in04, EVEN_OUTER, -EVEN_OUTER), rounding);
    let [[second0, sixth0], [second1, sixth1]] = EVEN_INNER;
    let inner = [times(in26, second0, sixth0), times(in26, second1, sixth1)];
    let even = [
        _mm512_add_epi32(outer0, inner[0]),
        _mm512_add_epi32(outer1, inner[1]),
        _mm512_sub_epi32(outer1, inner[1]),
        _mm512_sub_epi32(outer0, inner[0]),
    ];
    let mut odd = [_mm512_setzero_si512(); 4];
    for (odd, [first, fifth, third, seventh]) in odd.iter_mut().zip(ODD) {
        *odd = _mm512_add_epi32(times(in15, first, fifth), times(in37, third, seventh));
    }
    mirrored(even, odd)
}

/// The sums of a pass, from the pairs of inputs 0 2 and 1 3 when all others are 0.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn corner_sums(in02: __m512i, in13: __m512i, rounding: __m512i) -> [__m512i; SIDE] {
    let [[inner0, _], [inner1, _]] = EVEN_INNER;
    let mut even = [_mm512_setzero_si512(); 4];
    for (even, inner) in even.iter_mut().zip([inner0, inner1, -inner1, -inner0]) {
        *even = _mm512_add_epi32(times(in02, EVEN_OUTER, inner), rounding);
    }
    let mut odd = [_mm512_setzero_si512(); 4];
    for (odd, [first, _, third, _]) in odd.iter_mut().zip(ODD) {
        *odd = times(in13, first, third);
    }
    mirrored(even, odd)
}

/// Outputs 0 to 3, and with the odd part taken away 7 to 4.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn mirrored(even: [__m512i; 4], odd: [__m512i; 4]) -> [__m512i; SIDE] {
    let mut sums = [_mm512_setzero_si512(); SIDE];
    for (row, (even, odd)) in even.into_iter().zip(odd).enumerate() {
        sums[row] = _mm512_add_epi32(even, odd);
        sums[7 - row] = _mm512_sub_epi32(even, odd);
    }
    sums
}

/// The products of the values of each pair with their factors, added up.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn times(pairs: __m512i, first: i16, second: i16) -> __m512i {
    let factors = i32::from(first) & 0xFFFF | i32::from(second) << 16;
    _mm512_madd_epi16(pairs, _mm512_set1_epi32(factors))
}

/// Four rows of pairs of columns as four pairs of columns of four rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn transpose(row0: __m512i, row1: __m512i, row2: __m512i, row3: __m512i) -> [__m512i; 4] {
    let low01 = _mm512_unpacklo_epi32(row0, row1);
    let low23 = _mm512_unpacklo_epi32(row2, row3);
    let high01 = _mm512_unpackhi_epi32(row0, row1);
    let high23 = _mm512_unpackhi_epi32(row2, row3);
    [
        _mm512_unpacklo_epi64(low01, low23),
        _mm512_unpackhi_epi64(low01, low23),
        _mm512_unpacklo_epi64(high01, high23),
        _mm512_unpackhi_epi64(high01, high23),
    ]
}

/// Columns 0 2 of four rows, from two rows of columns 0 2 1 3 in each argument.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn evens(rows01: __m512i, rows23: __m512i) -> __m512i {
    let (first, second) = (_mm512_castsi512_ps(rows01), _mm512_castsi512_ps(rows23));
    _mm512_castps_si512(_mm512_shuffle_ps::<0b10_00_10_00>(first, second))
}

/// Columns 1 3 likewise.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn odds(rows01: __m512i, rows23: __m512i) -> __m512i {
    let (first, second) = (_mm512_castsi512_ps(rows01), _mm512_castsi512_ps(rows23));
    _mm512_castps_si512(_mm512_shuffle_ps::<0b11_01_11_01>(first, second))
}

/// Converts the sums of the second pass to samples: of each column, rows 0 to 3 and rows 4 to 7.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn finish(low: [__m512i; SIDE], high: [__m512i; SIDE]) -> Samples {
    // The upper 16 bits of each sum, in the order of rows 0 4 1 5 2 6 3 7.
    let mut columns = [_mm512_setzero_si512(); SIDE];
    for (index, column) in columns.iter_mut().enumerate() {
        let low = _mm512_srli_epi32::<16>(low[index]);
        let words = _mm512_mask_blend_epi16(SECONDS, low, high[index]);
        *column = _mm512_srai_epi16::<2>(words);
    }
    let [column0, column1, column2, column3, column4, column5, column6, column7] = columns;
    let columns02 = _mm512_packus_epi16(column0, column2);
    let columns13 = _mm512_packus_epi16(column1, column3);
    let columns46 = _mm512_packus_epi16(column4, column6);
    let columns57 = _mm512_packus_epi16(column5, column7);
    let columns01 = _mm512_unpacklo_epi8(columns02, columns13);
    let columns23 = _mm512_unpackhi_epi8(columns02, columns13);
    let columns45 = _mm512_unpacklo_epi8(columns46, columns57);
    let columns67 = _mm512_unpackhi_epi8(columns46, columns57);
    let first_low = _mm512_unpacklo_epi16(columns01, columns23);
    let first_high = _mm512_unpackhi_epi16(columns01, columns23);
    let last_low = _mm512_unpacklo_epi16(columns45, columns67);
    let last_high = _mm512_unpackhi_epi16(columns45, columns67);
    let mut rows = [
        _mm512_unpacklo_epi32(first_low, last_low),
        _mm512_unpackhi_epi32(first_low, last_low),
        _mm512_unpacklo_epi32(first_high, last_high),
        _mm512_unpackhi_epi32(first_high, last_high),
    ];
    // Each quarter holds two rows of its block; put the blocks' rows side by side.
    let order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    for rows in &mut rows {
        *rows = _mm512_permutexvar_epi64(order, *rows);
    }
    rows
}
