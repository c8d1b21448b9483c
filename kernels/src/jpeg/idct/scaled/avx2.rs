//! The transform to 4x4 samples with AVX2: two blocks at a time, one in each half of a vector, step
//! by step like the exact transform.
#![expect(unsafe_code, reason = "stores of vectors")]

use crate::jpeg::Block;
use crate::jpeg::idct::islow::ROUND_AND_LEVEL;
use crate::jpeg::idct::islow::avx2::{dequantised, times, transpose};
use crate::jpeg::idct::store;
use std::arch::x86_64::*;

/// Blocks transformed at once.
const LANES: usize = 2;

/// Samples of a row of a block.
const SIDE: usize = 4;

/// What the first pass shifts out.
const FIRST_SHIFT: i32 = 12;

/// What the inputs 1, 5, 3, 7 add to the outputs 0 and 1; the outputs 3 and 2 take it away.
const ODD: [[i16; 4]; 2] = [[20_995, -4_926, 7_373, -4_176], [8_697, 11_893, -17_799, -1_730]];

/// Transforms a run of blocks. `out` must hold 4 rows of it.
#[target_feature(enable = "avx2")]
pub(super) fn four(table: &[i16; 64], blocks: &[Block], out: &mut [u8], stride: usize) {
    for (index, blocks) in blocks.chunks(LANES).enumerate() {
        let out = &mut out[index * LANES * SIDE..];
        let Some(samples) = transform(table, &blocks[0], &blocks[blocks.len() - 1]) else {
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
/// code. The bound of the exact transform holds here too: no constant divided by what is shifted
/// out is larger.
#[target_feature(enable = "avx2")]
fn transform(table: &[i16; 64], first: &Block, last: &Block) -> Option<__m256i> {
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
    const ROUND: i32 = 1 << (FIRST_SHIFT - 1);
    const COLUMN_0: i32 = ROUND + (ROUND_AND_LEVEL << FIRST_SHIFT);
    let rounding = _mm256_setr_epi32(COLUMN_0, ROUND, ROUND, ROUND, COLUMN_0, ROUND, ROUND, ROUND);
    let low = sums(low, rounding);
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
    let columns = sums(transpose(row0, row1, row2, row3), _mm256_setzero_si256());
    // The upper 16 bits of each sum, two columns of a row side by side.
    let [column0, column1, column2, column3] = columns;
    let side_by_side = |first, second| {
        let words = _mm256_blend_epi16::<0b1010_1010>(_mm256_srli_epi32::<16>(first), second);
        _mm256_srai_epi16::<3>(words)
    };
    let bytes = _mm256_packus_epi16(side_by_side(column0, column1), side_by_side(column2, column3));
    let rows = _mm256_unpacklo_epi16(bytes, _mm256_unpackhi_epi64(bytes, bytes));
    Some(_mm256_permutevar8x32_epi32(rows, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)))
}

/// The sums of a pass, from the pairs of inputs 0 4, 1 5, 2 6, 3 7; input 4 does not count.
#[target_feature(enable = "avx2")]
fn sums([in04, in15, in26, in37]: [__m256i; 4], rounding: __m256i) -> [__m256i; SIDE] {
    let outer = _mm256_add_epi32(times(in04, 1 << 14, 0), rounding);
    let inner = times(in26, 15_137, -6_270);
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
