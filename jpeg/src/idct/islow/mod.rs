//! The exact inverse DCT, `jpeg_idct_islow`: 13-bit constants, 32-bit sums, two rounded passes.
//!
//! Loeffler, Ligtenberg and Moschytz's transform is linear up to the rounding at the end of a pass,
//! so any order of multiplications and additions that does not overflow gives the same sums. The
//! vector code multiplies by the whole matrix of a pass, split into even and odd rows, two rows to
//! a multiplication; [`portable`] follows libjpeg-turbo's order and so reproduces its overflows.
//!
//! Where could they differ? libjpeg-turbo adds pairs of rows in 16 bits and clamps the first pass
//! to 16 bits. With no column whose magnitudes add up to more than [`COLUMN_MAX`] neither happens,
//! because a value of the first pass is at most 11,363 / 2,048 times that sum. Pixels cannot
//! produce more: by Parseval a block's coefficients have a norm of at most 1,024, so a column's
//! eight add up to at most 2,897. Larger ones, from crafted or damaged files, go to [`portable`].
#![expect(unsafe_code, reason = "calls behind a CPU check")]

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

use super::{Dequantiser, SIDE, check_run};
use crate::Block;
use crate::Cpu;

/// Fractional bits of the constants.
const CONSTANT_BITS: u32 = 13;

/// Fractional bits of the first pass's results.
const BETWEEN_BITS: u32 = 2;

/// Bits that the first pass shifts out.
const FIRST_SHIFT: u32 = CONSTANT_BITS - BETWEEN_BITS;

/// Bits that the second pass shifts out: those of the constants, those of the first pass, and 3 for
/// the two sums.
const SECOND_SHIFT: u32 = CONSTANT_BITS + BETWEEN_BITS + 3;

/// Largest sum of dequantised magnitudes of a column for which no sum overflows 16 bits: the first
/// pass is then at most 16,383.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const COLUMN_MAX: i16 = 2952;

/// Added to column 0 between the passes, this rounds the second pass and shifts its level by 128.
///
/// That column counts 8,192-fold in every sum, so this is 2^17, half of what is shifted out, and
/// 128 * 2^18.
#[cfg(target_arch = "x86_64")]
pub(super) const ROUND_AND_LEVEL: i32 = (1 << (SECOND_SHIFT - 1 - CONSTANT_BITS)) + (128 << 5);

/// Factors of the inputs 1, 5, 3, 7 in the outputs 0, 1, 2, 3. The outputs 7, 6, 5, 4 have the same
/// even part and subtract the odd part.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const ODD: [[i16; 4]; 4] = [
    [11_363, 6_437, 9_633, 2_260],
    [9_633, -11_362, -2_259, -6_436],
    [6_437, 2_261, -11_362, 9_633],
    [2_260, 9_633, -6_436, -11_363],
];

/// Factors of the inputs 0 and 4.
#[cfg(target_arch = "x86_64")]
const EVEN_OUTER: i16 = 1 << CONSTANT_BITS;

/// Factors of the inputs 2 and 6 in the outputs 0 and 1; negated for the outputs 3 and 2.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const EVEN_INNER: [[i16; 2]; 2] = [[10_703, 4_433], [4_433, -10_704]];

/// Dequantises and transforms a run of adjacent blocks: block `i` fills columns 8 * i to 8 * i + 8
/// of 8 rows of `out`, which are `stride` bytes apart.
///
/// `extents[i]` is the index in zigzag order of the last coefficient of block `i` that is not 0,
/// or any larger one: with too small an index the samples are unspecified.
pub(crate) fn islow(
    cpu: Cpu,
    dequantiser: &Dequantiser,
    blocks: &[Block],
    extents: &[u8],
    out: &mut [u8],
    stride: usize,
) {
    check_run(blocks, extents.len(), out, stride, SIDE);
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    let table = &dequantiser.steps;
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the machine has the instruction set and the run fits its output, as just checked.
        Cpu::Avx512 => unsafe { avx512::run(table, blocks, extents, out, stride) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as for AVX-512.
        Cpu::Avx2 => unsafe { avx2::run(table, blocks, extents, out, stride) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as for AVX-512.
        Cpu::Neon => unsafe { neon::run(table, blocks, extents, out, stride) },
        _ => portable::run(table, blocks, extents, out, stride),
    }
}

/// The single sample value of a block with only a mean.
#[inline]
fn flat_sample(table: &[i16; 64], block: &Block) -> u8 {
    let between = block.0[0].wrapping_mul(table[0]) << BETWEEN_BITS;
    (((i32::from(between) + 16) >> 5) + 128).clamp(0, 255) as u8
}

/// Eight copies of a sample, one row of a flat block, for the vector code.
#[cfg(any(target_arch = "x86_64", test))]
#[inline]
pub(super) fn flat_row(sample: u8) -> i64 {
    i64::from_ne_bytes([sample; SIDE])
}
