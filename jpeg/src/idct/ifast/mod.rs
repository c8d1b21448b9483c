//! The fast inverse DCT, `jpeg_idct_ifast`: 16-bit sums, 8-bit constants, no rounding.
//!
//! Arai, Agui and Nakajima's transform, as libjpeg-turbo's SSE2 code does it: sums wrap, products
//! keep their upper 16 bits. (The C code of libjpeg, with 32-bit sums and another rounding, gives
//! other samples.)
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "calls behind a CPU check"))]

#[cfg(target_arch = "x86_64")]
mod avx2;

use super::{Dequantiser, SIDE, check_run, store};
use crate::Cpu;
use crate::{Block, QuantTable};

/// Eight rows of eight values.
type Rows = [[i16; SIDE]; SIDE];

/// Scale factors of the transform with 14 fractional bits: 1, and the square root of 2 times the
/// cosine of 1/16, 2/16, .. 7/16 of half a turn. A coefficient takes that of its row times that of
/// its column, which libjpeg has as a table, rounded from the exact product.
const SCALE_FACTORS: [[u32; SIDE]; SIDE] = [
    [16_384, 22_725, 21_407, 19_266, 16_384, 12_873, 8_867, 4_520],
    [22_725, 31_521, 29_692, 26_722, 22_725, 17_855, 12_299, 6_270],
    [21_407, 29_692, 27_969, 25_172, 21_407, 16_819, 11_585, 5_906],
    [19_266, 26_722, 25_172, 22_654, 19_266, 15_137, 10_426, 5_315],
    [16_384, 22_725, 21_407, 19_266, 16_384, 12_873, 8_867, 4_520],
    [12_873, 17_855, 16_819, 15_137, 12_873, 10_114, 6_967, 3_552],
    [8_867, 12_299, 11_585, 10_426, 8_867, 6_967, 4_799, 2_446],
    [4_520, 6_270, 5_906, 5_315, 4_520, 3_552, 2_446, 1_247],
];

/// Fractional bits of the scale factors that the multipliers lose.
const SCALE_SHIFT: u32 = 12;

/// The constants of the transform with 14 fractional bits, of which 8 are not 0; what they are
/// multiplied by is shifted by 2, so that the upper 16 bits of the product are the value.
const TIMES_1_082: i16 = 277 << 6;
const TIMES_1_414: i16 = 362 << 6;
const TIMES_1_847: i16 = 473 << 6;
/// 2.613 less 1, to stay below 2.
const TIMES_MINUS_1_613: i16 = -(413 << 6);

/// Bits that the second pass shifts out: two of the multipliers and three for the two sums.
const SHIFT: u32 = 5;

/// The table times the scale factors, with two fractional bits, cut to 16 bits.
pub(super) fn multipliers(table: &QuantTable) -> [i16; 64] {
    std::array::from_fn(|at| {
        let scaled = u64::from(table.0[at]) * u64::from(SCALE_FACTORS[at / SIDE][at % SIDE]);
        ((scaled + (1 << (SCALE_SHIFT - 1))) >> SCALE_SHIFT) as i16
    })
}

/// Dequantises and transforms a run of blocks side by side, as [`fn@super::islow`].
pub(crate) fn ifast(
    cpu: Cpu,
    dequantiser: &Dequantiser,
    blocks: &[Block],
    extents: &[u8],
    out: &mut [u8],
    stride: usize,
) {
    check_run(blocks, extents.len(), out, stride, SIDE);
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    let table = &dequantiser.ifast;
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a machine with AVX-512 has AVX2 too, and that it has one was just checked, as was
        // that the run fits its output.
        Cpu::Avx2 | Cpu::Avx512 => unsafe { avx2::run(table, blocks, extents, out, stride) },
        _ => run(table, blocks, extents, out, stride),
    }
}

#[inline(always)]
fn run(table: &[i16; 64], blocks: &[Block], extents: &[u8], out: &mut [u8], stride: usize) {
    for (index, (block, extent)) in blocks.iter().zip(extents).enumerate() {
        let samples = match extent {
            0 => [[flat_sample(table, block); SIDE]; SIDE],
            _ => transform(table, block),
        };
        store(&samples, &mut out[index * SIDE..], stride);
    }
}

/// The one sample of a block of which only the mean is not 0.
#[inline(always)]
fn flat_sample(table: &[i16; 64], block: &Block) -> u8 {
    sample(block.0[0].wrapping_mul(table[0]))
}

#[inline(always)]
fn transform(table: &[i16; 64], block: &Block) -> [[u8; SIDE]; SIDE] {
    let mut rows = [[0; SIDE]; SIDE];
    for (at, (value, factor)) in block.0.iter().zip(table).enumerate() {
        rows[at / SIDE][at % SIDE] = value.wrapping_mul(*factor);
    }
    let columns = pass(&transpose(&pass(&rows)));
    let mut samples = [[0; SIDE]; SIDE];
    for (samples, row) in samples.iter_mut().zip(transpose(&columns)) {
        for (sample_out, value) in samples.iter_mut().zip(row) {
            *sample_out = sample(value);
        }
    }
    samples
}

#[inline(always)]
fn sample(value: i16) -> u8 {
    ((value >> SHIFT) + 128).clamp(0, 255) as u8
}

#[inline(always)]
fn transpose(rows: &Rows) -> Rows {
    let mut columns = [[0; SIDE]; SIDE];
    for (row, values) in rows.iter().enumerate() {
        for (column, value) in values.iter().enumerate() {
            columns[column][row] = *value;
        }
    }
    columns
}

/// One pass over all columns.
#[inline(always)]
fn pass(rows: &Rows) -> Rows {
    let mut out = [[0; SIDE]; SIDE];
    for column in 0..SIDE {
        let mut values = [0; SIDE];
        for (value, row) in values.iter_mut().zip(rows) {
            *value = row[column];
        }
        for (row, value) in out.iter_mut().zip(butterfly(values)) {
            row[column] = value;
        }
    }
    out
}

/// The eight sums of a column, in the names of jidctfst.c.
#[inline(always)]
fn butterfly([in0, in1, in2, in3, in4, in5, in6, in7]: [i16; SIDE]) -> [i16; SIDE] {
    let add = i16::wrapping_add;
    let sub = i16::wrapping_sub;
    let (tmp10, tmp11, tmp13) = (add(in0, in4), sub(in0, in4), add(in2, in6));
    let tmp12 = sub(times(sub(in2, in6) << 2, TIMES_1_414), tmp13);
    let (tmp0, tmp3) = (add(tmp10, tmp13), sub(tmp10, tmp13));
    let (tmp1, tmp2) = (add(tmp11, tmp12), sub(tmp11, tmp12));

    let (z13, z10) = (add(in5, in3), sub(in5, in3));
    let (z11, z12) = (add(in1, in7), sub(in1, in7));
    let (scaled10, scaled12) = (z10 << 2, z12 << 2);
    let tmp7 = add(z11, z13);
    let tmp11 = times(sub(z11, z13) << 2, TIMES_1_414);
    let z5 = times(add(scaled10, scaled12), TIMES_1_847);
    let tmp10 = sub(times(scaled12, TIMES_1_082), z5);
    let tmp12 = add(sub(times(scaled10, TIMES_MINUS_1_613), z10), z5);
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

/// The upper 16 bits of a product.
#[inline(always)]
fn times(value: i16, factor: i16) -> i16 {
    ((i32::from(value) * i32::from(factor)) >> 16) as i16
}
