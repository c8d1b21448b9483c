//! Inverse DCTs to fewer samples, for decoding at 1/2, 1/4 and 1/8: `jpeg_idct_4x4`,
//! `jpeg_idct_2x2` and `jpeg_idct_1x1`.
//!
//! The first two follow libjpeg-turbo's SSE2 code; the last one follows its C code, the only
//! version there is. 4x4 and 2x2 have vector code.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "calls behind a CPU check"))]

#[cfg(target_arch = "x86_64")]
mod avx2;

use super::{Dequantiser, SIDE, check_run, store};
use crate::Block;
use crate::Cpu;

/// Samples per side of a transformed block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Half the resolution.
    Four,
    /// A quarter.
    Two,
    /// An eighth: the mean of the block.
    One,
}

impl Scale {
    /// The number.
    pub(crate) fn side(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Two => 2,
            Self::One => 1,
        }
    }
}

/// Dequantises and transforms a run of adjacent blocks: block `i` fills columns `side * i` to
/// `side * i + side` of `side` rows of `out`, which are `stride` bytes apart.
///
/// `extents[i]` is the index in zigzag order of the last coefficient of block `i` that is not 0,
/// or any larger one: with too small an index the samples are unspecified.
pub(crate) fn scaled(
    cpu: Cpu,
    scale: Scale,
    dequantiser: &Dequantiser,
    blocks: &[Block],
    extents: &[u8],
    out: &mut [u8],
    stride: usize,
) {
    check_run(blocks, extents.len(), out, stride, scale.side());
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    let table = &dequantiser.steps;
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a machine with AVX-512 has AVX2 too, and that it has one was just checked.
        Cpu::Avx2 | Cpu::Avx512 => unsafe {
            match scale {
                Scale::Four => avx2::four(table, blocks, extents, out, stride),
                Scale::Two => avx2::two(table, blocks, extents, out, stride),
                Scale::One => run(scale, table, blocks, out, stride),
            }
        },
        _ => run(scale, table, blocks, out, stride),
    }
}

fn run(scale: Scale, table: &[i16; 64], blocks: &[Block], out: &mut [u8], stride: usize) {
    for (index, block) in blocks.iter().enumerate() {
        match scale {
            Scale::Four => store(&four(table, block), &mut out[index * 4..], stride),
            Scale::Two => store(&two(table, block), &mut out[index * 2..], stride),
            Scale::One => out[index] = one(table, block),
        }
    }
}

/// The single sample value, at 4x4 or 2x2, of a block with only a mean.
#[cfg(target_arch = "x86_64")]
#[inline]
fn flat_sample(scale: Scale, table: &[i16; 64], block: &Block) -> u8 {
    let mean = block.0[0].wrapping_mul(table[0]);
    match scale {
        // The first pass has 16 bits.
        Scale::Four => sample(round::<5>(i32::from(mean << 2))),
        _ => sample(round::<20>(i32::from(mean).wrapping_mul(1 << 17))),
    }
}

#[inline(always)]
fn dequantised(table: &[i16; 64], block: &Block) -> [[i16; SIDE]; SIDE] {
    let mut rows = [[0; SIDE]; SIDE];
    for (at, (value, factor)) in block.0.iter().zip(table).enumerate() {
        rows[at / SIDE][at % SIDE] = value.wrapping_mul(*factor);
    }
    rows
}

#[inline(always)]
fn four(table: &[i16; 64], block: &Block) -> [[u8; 4]; 4] {
    let rows = dequantised(table, block);
    let mut between = [[0; SIDE]; 4];
    let row4 = 4 * SIDE..5 * SIDE;
    if block.0[SIDE..row4.start].iter().chain(&block.0[row4.end..]).all(|value| *value == 0) {
        // libjpeg-turbo's shortcut, which wraps instead of clamping the sums.
        between = [rows[0].map(|value| value << 2); 4];
    } else {
        for column in 0..SIDE {
            let mut values = [0; SIDE];
            for (value, row) in values.iter_mut().zip(&rows) {
                *value = row[column];
            }
            for (row, sum) in between.iter_mut().zip(sums_of_four(values)) {
                row[column] = clamp(round::<12>(sum));
            }
        }
    }
    between.map(|row| sums_of_four(row).map(|sum| sample(round::<19>(sum))))
}

/// The four sums of a column; its value 4 is unused.
#[inline(always)]
fn sums_of_four(column: [i16; SIDE]) -> [i32; 4] {
    let [in0, in1, in2, in3, _, in5, in6, in7] = column.map(i32::from);
    let outer = in0 << 14;
    let inner = in2 * 15_137 - in6 * 6_270;
    let (even0, even1) = (outer.wrapping_add(inner), outer.wrapping_sub(inner));
    let odd0 = (in1 * 20_995 + in3 * 7_373).wrapping_add(in5 * -4_926 + in7 * -4_176);
    let odd1 = (in1 * 8_697 + in3 * -17_799).wrapping_add(in5 * 11_893 + in7 * -1_730);
    [
        even0.wrapping_add(odd0),
        even1.wrapping_add(odd1),
        even1.wrapping_sub(odd1),
        even0.wrapping_sub(odd0),
    ]
}

#[inline(always)]
fn two(table: &[i16; 64], block: &Block) -> [[u8; 2]; 2] {
    let rows = dequantised(table, block);
    let between = |column: usize| {
        let values = [rows[1][column], rows[3][column], rows[5][column], rows[7][column]];
        sums_of_two(i32::from(rows[0][column]), values).map(round::<13>)
    };
    // The mean's column keeps 32 bits, the others are clamped to 16.
    let mean = between(0);
    let columns = [1, 3, 5, 7].map(between);
    [0, 1].map(|row| {
        let values = columns.map(|column| clamp(column[row]));
        sums_of_two(mean[row], values).map(|sum| sample(round::<20>(sum)))
    })
}

/// The two sums of a column; only the odd values and the mean are used.
#[inline(always)]
fn sums_of_two(mean: i32, odd: [i16; 4]) -> [i32; 2] {
    let [in1, in3, in5, in7] = odd.map(i32::from);
    let even = mean.wrapping_mul(1 << 15);
    let odd = (in1 * 29_692 + in3 * -10_426).wrapping_add(in5 * 6_967 + in7 * -5_906);
    [even.wrapping_add(odd), even.wrapping_sub(odd)]
}

/// The mean of a block. libjpeg's table of samples repeats after 1,024 values.
#[inline(always)]
fn one(table: &[i16; 64], block: &Block) -> u8 {
    let mean = (i32::from(block.0[0]) * i32::from(table[0]) + 4) >> 3;
    let wrapped = (mean + 512).rem_euclid(1024) - 512;
    (wrapped + 128).clamp(0, 255) as u8
}

#[inline(always)]
fn round<const SHIFT: u32>(sum: i32) -> i32 {
    sum.wrapping_add(1 << (SHIFT - 1)) >> SHIFT
}

#[inline(always)]
fn clamp(value: i32) -> i16 {
    value.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

#[inline(always)]
fn sample(value: i32) -> u8 {
    (value.clamp(-128, 127) + 128) as u8
}
