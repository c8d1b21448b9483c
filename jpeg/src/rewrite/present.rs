//! A bit mask of the non-zero coefficients of a block, in zigzag order.

use crate::markers::NATURAL;

/// By row and mask of its non-zero coefficients: their mask in zigzag order.
static ZIGZAG_BITS: [[u64; 256]; 8] = zigzag_bits();

const fn zigzag_bits() -> [[u64; 256]; 8] {
    let mut bits = [[0; 256]; 8];
    let mut position = 0;
    while position < 64 {
        let (row, column) = (NATURAL[position] as usize / 8, NATURAL[position] as usize % 8);
        let mut columns = 0;
        while columns < 256 {
            bits[row][columns] |= ((columns >> column & 1) as u64) << position;
            columns += 1;
        }
        position += 1;
    }
    bits
}

/// A bit for each zigzag position that is not zero.
#[inline(always)]
pub(super) fn present(block: &[i16; 64]) -> u64 {
    // Compilers vectorise the comparison.
    let flags: [u8; 64] = std::array::from_fn(|index| u8::from(block[index] != 0));
    let mut bits = 0;
    for (row, by_columns) in flags.as_chunks::<8>().0.iter().zip(&ZIGZAG_BITS) {
        // The product has the lowest bit of each byte, in their order, in its highest byte.
        let columns = u64::from_le_bytes(*row).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= by_columns[columns as usize];
    }
    bits
}

/// Bits of the positions from `first` to `last`.
pub(super) fn band(first: u8, last: u8) -> u64 {
    (u64::MAX >> (63 - last)) & (u64::MAX << first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_mark_non_zero_coefficients(
            values in prop::collection::vec((0..64usize, any::<i16>()), 0..80),
            first in 0..64u8, length in 0..64u8,
        ) {
            let mut block = [0; 64];
            for (place, value) in values {
                block[place] = value;
            }
            let last = (first + length).min(63);
            let bits = present(&block) & band(first, last);
            for (position, natural) in (0..).zip(NATURAL) {
                let expected =
                    block[usize::from(natural)] != 0 && (first..=last).contains(&position);
                prop_assert_eq!(bits >> position & 1 == 1, expected);
            }
        }
    }
}
