//! The exact transform with NEON: one block at a time, its rows in vectors of eight.
//!
//! NEON multiplies by a lane of a vector and accumulates, so rows are not paired here; the sums are
//! those of [`super::avx2`].
#![expect(unsafe_code, reason = "loads and stores of vectors, and calls behind a CPU check")]

use super::{COLUMN_MAX, EVEN_INNER, FIRST_SHIFT, ODD, SIDE, flat_sample, portable};
use crate::Block;
use crate::idct::{CORNER_EXTENT, store};
use std::arch::aarch64::*;

/// Transforms a run of blocks. The caller has checked that it fits the output.
///
/// # Safety
///
/// `out` must hold `7 * stride + 8 * blocks.len()` bytes.
#[target_feature(enable = "neon")]
pub(super) unsafe fn run(
    table: &[i16; 64],
    blocks: &[Block],
    extents: &[u8],
    out: &mut [u8],
    stride: usize,
) {
    for (index, (block, extent)) in blocks.iter().zip(extents).enumerate() {
        let out = &mut out[index * SIDE..];
        let samples = match extent {
            0 => Some([vdup_n_u8(flat_sample(table, block)); SIDE]),
            1..=CORNER_EXTENT => transform::<4>(table, block),
            _ => transform::<8>(table, block),
        };
        let Some(samples) = samples else {
            store(&portable::transform(table, block), out, stride);
            continue;
        };
        for (row, samples) in samples.into_iter().enumerate() {
            // SAFETY: 8 bytes are stored in each of 8 rows, for which `out` has room.
            unsafe { vst1_u8(out.as_mut_ptr().add(row * stride), samples) };
        }
    }
}

/// Transforms a block of which only the first `INPUTS` rows and columns are not 0, 4 or 8 of them;
/// `None` if it needs the portable code.
#[target_feature(enable = "neon")]
fn transform<const INPUTS: usize>(table: &[i16; 64], block: &Block) -> Option<[uint8x8_t; SIDE]> {
    let mut rows = [vdupq_n_s16(0); SIDE];
    let mut magnitudes = vdupq_n_u16(0);
    for (index, row) in rows[..INPUTS].iter_mut().enumerate() {
        *row = vmulq_s16(load(&block.0, index * SIDE), load(table, index * SIDE));
        magnitudes = vqaddq_u16(magnitudes, vreinterpretq_u16_s16(vabsq_s16(*row)));
    }
    if vmaxvq_u16(magnitudes) > COLUMN_MAX as u16 {
        return None;
    }
    let low = sums::<INPUTS>(rows.map(|row| vget_low_s16(row)));
    let mut between = low.map(|sum| vcombine_s16(first_shift(sum), vdup_n_s16(0)));
    if INPUTS == SIDE {
        let high = sums::<INPUTS>(rows.map(|row| vget_high_s16(row)));
        for (row, (low, high)) in between.iter_mut().zip(low.into_iter().zip(high)) {
            *row = vcombine_s16(first_shift(low), first_shift(high));
        }
    }
    let columns = transpose(between);
    let low = sums::<INPUTS>(columns.map(|column| vget_low_s16(column)));
    let high = sums::<INPUTS>(columns.map(|column| vget_high_s16(column)));
    let mut out = [vdupq_n_s16(0); SIDE];
    for (column, (low, high)) in out.iter_mut().zip(low.into_iter().zip(high)) {
        *column = vcombine_s16(vshrn_n_s32::<16>(low), vshrn_n_s32::<16>(high));
    }
    // The upper 16 bits of a sum, rounded to a quarter, are the sum rounded and shifted by 18.
    let level = vdup_n_u8(128);
    Some(transpose(out).map(|row| {
        let centred = vreinterpret_u8_s8(vqrshrn_n_s16::<2>(row));
        veor_u8(centred, level)
    }))
}

#[target_feature(enable = "neon")]
fn first_shift(sum: int32x4_t) -> int16x4_t {
    vrshrn_n_s32::<{ FIRST_SHIFT as i32 }>(sum)
}

/// The sums of a pass over four columns.
#[target_feature(enable = "neon")]
fn sums<const INPUTS: usize>(column: [int16x4_t; SIDE]) -> [int32x4_t; SIDE] {
    let [in0, in1, in2, in3, in4, in5, in6, in7] = column;
    let (mut outer0, mut outer1) = (vshll_n_s16::<13>(in0), vshll_n_s16::<13>(in0));
    if INPUTS == SIDE {
        let in4 = vshll_n_s16::<13>(in4);
        outer0 = vaddq_s32(outer0, in4);
        outer1 = vsubq_s32(outer1, in4);
    }
    let inner = EVEN_INNER.map(|[second, sixth]| {
        let sum = vmull_n_s16(in2, second);
        if INPUTS == SIDE { vmlal_n_s16(sum, in6, sixth) } else { sum }
    });
    let even = [
        vaddq_s32(outer0, inner[0]),
        vaddq_s32(outer1, inner[1]),
        vsubq_s32(outer1, inner[1]),
        vsubq_s32(outer0, inner[0]),
    ];
    let odd = ODD.map(|[first, fifth, third, seventh]| {
        let sum = vmlal_n_s16(vmull_n_s16(in1, first), in3, third);
        if INPUTS == SIDE { vmlal_n_s16(vmlal_n_s16(sum, in5, fifth), in7, seventh) } else { sum }
    });
    let mut sums = [vdupq_n_s32(0); SIDE];
    for (row, (even, odd)) in even.into_iter().zip(odd).enumerate() {
        sums[row] = vaddq_s32(even, odd);
        sums[7 - row] = vsubq_s32(even, odd);
    }
    sums
}

/// Eight values of a block or a table.
#[target_feature(enable = "neon")]
fn load(values: &[i16; 64], at: usize) -> int16x8_t {
    let values: &[i16; SIDE] = values[at..].first_chunk().expect("a row begins at a multiple of 8");
    // SAFETY: the load takes the 16 bytes of the array and needs no alignment.
    unsafe { vld1q_s16(values.as_ptr()) }
}

/// Rows as columns.
#[target_feature(enable = "neon")]
fn transpose(rows: [int16x8_t; SIDE]) -> [int16x8_t; SIDE] {
    let [row0, row1, row2, row3, row4, row5, row6, row7] = rows;
    // Pairs of rows, then fours: what was at (row, column) moves to (column, row) by one bit of the
    // index at each step.
    let [row0, row1] = turn16(row0, row1);
    let [row2, row3] = turn16(row2, row3);
    let [row4, row5] = turn16(row4, row5);
    let [row6, row7] = turn16(row6, row7);
    let [row0, row2] = turn32(row0, row2);
    let [row1, row3] = turn32(row1, row3);
    let [row4, row6] = turn32(row4, row6);
    let [row5, row7] = turn32(row5, row7);
    let [row0, row4] = turn64(row0, row4);
    let [row1, row5] = turn64(row1, row5);
    let [row2, row6] = turn64(row2, row6);
    let [row3, row7] = turn64(row3, row7);
    [row0, row1, row2, row3, row4, row5, row6, row7]
}

#[target_feature(enable = "neon")]
fn turn16(first: int16x8_t, second: int16x8_t) -> [int16x8_t; 2] {
    [vtrn1q_s16(first, second), vtrn2q_s16(first, second)]
}

#[target_feature(enable = "neon")]
fn turn32(first: int16x8_t, second: int16x8_t) -> [int16x8_t; 2] {
    let (first, second) = (vreinterpretq_s32_s16(first), vreinterpretq_s32_s16(second));
    let turned = [vtrn1q_s32(first, second), vtrn2q_s32(first, second)];
    turned.map(|row| vreinterpretq_s16_s32(row))
}

#[target_feature(enable = "neon")]
fn turn64(first: int16x8_t, second: int16x8_t) -> [int16x8_t; 2] {
    let (first, second) = (vreinterpretq_s64_s16(first), vreinterpretq_s64_s16(second));
    let turned = [vtrn1q_s64(first, second), vtrn2q_s64(first, second)];
    turned.map(|row| vreinterpretq_s16_s64(row))
}
