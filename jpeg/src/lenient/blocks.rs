//! Blocks of damaged scans, as libjpeg reads them (jdhuff.c, jdphuff.c).
//!
//! Impossible values are accepted as libjpeg does: coefficients past the last one overwrite the
//! last one, values wrap around, positions beyond a band are written to.

use super::super::Block;
use super::super::markers::NATURAL;
use super::bits::{ReadBits, Table, extend};

/// The natural-order index of a zigzag position, which may exceed the last one.
fn natural(position: usize) -> usize {
    usize::from(NATURAL[position.min(63)])
}

/// The run of zeros and the size in a symbol.
fn split(symbol: u8) -> (usize, u32) {
    (usize::from(symbol >> 4), u32::from(symbol & 15))
}

/// A difference of DC values.
fn difference(bits: &mut impl ReadBits, table: &Table) -> i32 {
    match u32::from(bits.symbol(table)) {
        0 => 0,
        size => extend(bits.value(size), size),
    }
}

/// A block of a sequential scan.
pub(super) fn sequential(
    bits: &mut impl ReadBits,
    (dc_table, ac_table): (&Table, &Table),
    dc: &mut i32,
    Block(block): &mut Block,
) {
    *dc = dc.wrapping_add(difference(bits, dc_table));
    block[0] = *dc as i16;
    let mut position = 1;
    while position < 64 {
        match split(bits.symbol(ac_table)) {
            (15, 0) => position += 15,
            (_, 0) => break,
            (run, size) => {
                position += run;
                block[natural(position)] = extend(bits.value(size), size) as i16;
            }
        }
        position += 1;
    }
}

/// The first bits of a DC coefficient; false if the value exceeds libjpeg's range.
pub(super) fn dc_first(
    bits: &mut impl ReadBits,
    table: &Table,
    low: u32,
    dc: &mut i32,
    Block(block): &mut Block,
) -> bool {
    let Some(value) = dc.checked_add(difference(bits, table)) else { return false };
    *dc = value;
    block[0] = (value << low) as i16;
    true
}

/// One more bit of a DC coefficient.
pub(super) fn dc_refine(bits: &mut impl ReadBits, low: u32, Block(block): &mut Block) {
    if bits.value(1) == 1 {
        block[0] |= 1 << low;
    }
}

/// A band of AC coefficients in a scan.
#[derive(Debug, Clone, Copy)]
pub(super) struct Band {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) low: u32,
}

impl Band {
    /// Blocks of a run whose symbol has this size, this block among them.
    fn run_of_blocks(bits: &mut impl ReadBits, size: usize) -> u32 {
        let more = if size == 0 { 0 } else { bits.value(size as u32) };
        (1 << size) + more
    }

    /// The first bits of the coefficients of a block. `run` counts blocks that have none.
    pub(super) fn first(
        self,
        bits: &mut impl ReadBits,
        table: &Table,
        run: &mut u32,
        Block(block): &mut Block,
    ) {
        if *run > 0 {
            *run -= 1;
            return;
        }
        let mut position = self.first;
        while position <= self.last {
            match split(bits.symbol(table)) {
                (15, 0) => position += 15,
                (size, 0) => {
                    *run = Self::run_of_blocks(bits, size) - 1;
                    break;
                }
                (zeros, size) => {
                    position += zeros;
                    block[natural(position)] = (extend(bits.value(size), size) << self.low) as i16;
                }
            }
            position += 1;
        }
    }

    /// One more bit of the coefficients of a block.
    pub(super) fn refine(
        self,
        bits: &mut impl ReadBits,
        table: &Table,
        run: &mut u32,
        block: &mut Block,
    ) {
        let mut position = self.first;
        while *run == 0 && position <= self.last {
            let (zeros, size) = split(bits.symbol(table));
            let value = match (zeros, size) {
                (15, 0) => 0,
                (size, 0) => {
                    *run = Self::run_of_blocks(bits, size);
                    break;
                }
                // Any size counts as 1.
                _ if bits.value(1) == 1 => 1_i16 << self.low,
                _ => (-1_i16) << self.low,
            };
            position = self.correct(bits, block, position, zeros as u32);
            if value != 0 {
                block.0[natural(position)] = value;
            }
            position += 1;
        }
        if *run > 0 {
            self.correct(bits, block, position, u32::MAX);
            *run -= 1;
        }
    }

    /// Reads the next bit of the non-zero coefficients from a position on, skipping `zeros` zeros,
    /// and returns the position of the next zero or the end of the band.
    fn correct(
        self,
        bits: &mut impl ReadBits,
        Block(block): &mut Block,
        from: usize,
        mut zeros: u32,
    ) -> usize {
        let bit = 1_i16 << self.low;
        for position in from..=self.last {
            let coefficient = &mut block[natural(position)];
            if *coefficient == 0 {
                if zeros == 0 {
                    return position;
                }
                zeros -= 1;
            } else if bits.value(1) == 1 && *coefficient & bit == 0 {
                let more = if *coefficient > 0 { bit } else { bit.wrapping_neg() };
                *coefficient = coefficient.wrapping_add(more);
            }
        }
        self.last + 1
    }
}
