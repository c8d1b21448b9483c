//! The reference for the exact transform: libjpeg-turbo's order of operations, with its overflows.

use super::{BETWEEN_BITS, CONSTANT_BITS, FIRST_SHIFT, SECOND_SHIFT, SIDE, flat_sample};
use crate::Block;
use crate::idct::store;

/// Eight rows of eight values.
type Rows = [[i16; SIDE]; SIDE];

/// Transforms a run of blocks.
pub(super) fn run(
    table: &[i16; 64],
    blocks: &[Block],
    extents: &[u8],
    out: &mut [u8],
    stride: usize,
) {
    for (index, (block, extent)) in blocks.iter().zip(extents).enumerate() {
        let samples = match extent {
            0 => [[flat_sample(table, block); SIDE]; SIDE],
            _ => transform(table, block),
        };
        store(&samples, &mut out[index * SIDE..], stride);
    }
}

/// Transforms a block.
pub(super) fn transform(table: &[i16; 64], block: &Block) -> [[u8; SIDE]; SIDE] {
    let row = |v: usize| -> [i16; SIDE] {
        std::array::from_fn(|u| block.0[v * SIDE + u].wrapping_mul(table[v * SIDE + u]))
    };
    let between = if block.0[SIDE..].iter().all(|value| *value == 0) {
        // libjpeg-turbo's shortcut for columns of one coefficient: it wraps to 16 bits where the
        // transform would clamp.
        [row(0).map(|value| value << BETWEEN_BITS); SIDE]
    } else {
        pass::<FIRST_SHIFT>(&std::array::from_fn(row))
    };
    let columns = pass::<SECOND_SHIFT>(&transpose(&between));
    transpose(&columns).map(|row| row.map(|value| (i32::from(value) + 128).clamp(0, 255) as u8))
}

fn transpose(rows: &Rows) -> Rows {
    std::array::from_fn(|row| std::array::from_fn(|column| rows[column][row]))
}

/// One pass over all columns: rounded, shifted, clamped to 16 bits.
fn pass<const SHIFT: u32>(rows: &Rows) -> Rows {
    let mut out = [[0; SIDE]; SIDE];
    for column in 0..SIDE {
        let sums = butterfly(std::array::from_fn(|row| rows[row][column]));
        for (row, sum) in sums.into_iter().enumerate() {
            let rounded = sum.wrapping_add(1 << (SHIFT - 1)) >> SHIFT;
            out[row][column] = rounded.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        }
    }
    out
}

/// The eight sums of a column, in the names of jidctint.c.
#[inline(always)]
fn butterfly(column: [i16; SIDE]) -> [i32; SIDE] {
    let [in0, in1, in2, in3, in4, in5, in6, in7] = column;
    let outer = |value: i16| i32::from(value) << CONSTANT_BITS;
    let (tmp0, tmp1) = (outer(in0.wrapping_add(in4)), outer(in0.wrapping_sub(in4)));
    let tmp2 = pair([in2, in6], [4_433, 4_433 - 15_137]);
    let tmp3 = pair([in2, in6], [4_433 + 6_270, 4_433]);
    let even = [
        tmp0.wrapping_add(tmp3),
        tmp1.wrapping_add(tmp2),
        tmp1.wrapping_sub(tmp2),
        tmp0.wrapping_sub(tmp3),
    ];

    let z34 = [in7.wrapping_add(in3), in5.wrapping_add(in1)];
    let z3 = pair(z34, [9_633 - 16_069, 9_633]);
    let z4 = pair(z34, [9_633, 9_633 - 3_196]);
    let odd = [
        pair([in7, in1], [-7_373, 12_299 - 7_373]).wrapping_add(z4),
        pair([in5, in3], [-20_995, 25_172 - 20_995]).wrapping_add(z3),
        pair([in5, in3], [16_819 - 20_995, -20_995]).wrapping_add(z4),
        pair([in7, in1], [2_446 - 7_373, -7_373]).wrapping_add(z3),
    ];
    std::array::from_fn(|row| match row {
        0..4 => even[row].wrapping_add(odd[row]),
        _ => even[7 - row].wrapping_sub(odd[7 - row]),
    })
}

/// Two products added up.
#[inline(always)]
fn pair(values: [i16; 2], weights: [i32; 2]) -> i32 {
    let [first, second] = values.map(i32::from);
    (first * weights[0]).wrapping_add(second * weights[1])
}
