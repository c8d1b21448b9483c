//! Pillow's filter SMOOTH: a weighted mean of 3 x 3 values.

use super::between::blend;
use crate::vector::BLOCK;

/// Number of columns needed for a block of results.
const NEEDED: usize = BLOCK + 2;

/// Smooths a row with the rows above and below it, all of equal length, and blends each value with
/// the smoothed one, which is the result at a factor of 0. The values do not change in the first
/// and the last row, for which all three rows are the same, and in the first and the last column.
///
/// The sum of the values, with a weight of 5 for the centre, is divided by 13 and rounded to the
/// nearest integer; multiples of 1/13 are never ties.
#[inline(always)]
pub(super) fn smooth([above, row, below]: [&[u8]; 3], factor: f32, out: &mut [u8]) {
    if std::ptr::eq(above, row) || std::ptr::eq(below, row) || row.len() < 3 {
        for (out, value) in out.iter_mut().zip(row) {
            *out = blend(*value, *value, factor);
        }
        return;
    }
    let last = row.len() - 1;
    (out[0], out[last]) = (blend(row[0], row[0], factor), blend(row[last], row[last], factor));
    let mut x = 0;
    while x + 2 < row.len() {
        let count = BLOCK.min(row.len() - 2 - x);
        let mut rows = [[0; NEEDED]; 3];
        for (needed, row) in rows.iter_mut().zip([above, row, below]) {
            match row[x..].first_chunk() {
                Some(whole) => *needed = *whole,
                None => needed[..count + 2].copy_from_slice(&row[x..]),
            }
        }
        let mut values = [0; BLOCK];
        for (index, value) in values.iter_mut().enumerate() {
            let middle = rows[1][index + 1];
            let mut sum = 4 * u32::from(middle);
            for row in &rows {
                sum +=
                    u32::from(row[index]) + u32::from(row[index + 1]) + u32::from(row[index + 2]);
            }
            *value = blend(divided(sum), middle, factor);
        }
        out[x + 1..][..count].copy_from_slice(&values[..count]);
        x += count;
    }
}

/// Divides at most 13 * 255 by 13 and rounds, as a product with 2^19 / 13.
#[inline(always)]
fn divided(sum: u32) -> u8 {
    (((sum + 6) * 40330) >> 19) as u8
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_sum_is_divided_by_13_and_rounded() {
        for sum in 0..=13 * 255 {
            assert_eq!(u32::from(super::divided(sum)), (2 * sum + 13) / 26, "{sum}");
        }
    }
}
