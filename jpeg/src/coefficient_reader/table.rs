//! Huffman tables for reading (T.81, F.2.2.3), two forms of lookup.

use super::super::markers::HuffmanSpec;
use super::bits::{Bits, signed};
use super::{AC_SIZE_MAX, Fault};

/// Bits of a lookup of symbols.
const LOOK: u32 = 9;

/// Bits of a lookup of whole coefficients.
const LOOK_RUN: u32 = 10;

/// Longest code.
const LENGTH_MAX: u32 = 16;

/// A lookup table for symbols.
#[derive(Debug)]
pub(crate) struct SymbolTable {
    /// By the next bits: symbol, and above it the length of its code; 0 if that is longer.
    lookup: [u16; 1 << LOOK],
    /// By length: the first 16 bits that belong to no code of the length or shorter.
    limits: [u32; LENGTH_MAX as usize + 1],
    /// By length: the number to add to a code to get its index in `symbols`.
    offsets: [i32; LENGTH_MAX as usize + 1],
    symbols: [u8; 256],
}

impl SymbolTable {
    pub(crate) fn new(spec: &HuffmanSpec) -> Self {
        let mut table = Self {
            lookup: [0; 1 << LOOK],
            limits: [0; LENGTH_MAX as usize + 1],
            offsets: [0; LENGTH_MAX as usize + 1],
            symbols: spec.symbols,
        };
        let (mut code, mut index) = (0_u32, 0_usize);
        for length in 1..=LENGTH_MAX {
            let count = u32::from(spec.counts[length as usize - 1]);
            table.offsets[length as usize] = index as i32 - code as i32;
            if length <= LOOK {
                for nth in 0..count {
                    let entry =
                        (length as u16) << 8 | u16::from(spec.symbols[index + nth as usize]);
                    let first = ((code + nth) << (LOOK - length)) as usize;
                    table.lookup[first..first + (1 << (LOOK - length))].fill(entry);
                }
            }
            code += count;
            index += count as usize;
            table.limits[length as usize] = code << (LENGTH_MAX - length);
            code <<= 1;
        }
        table
    }

    /// Takes a symbol; 16 bits must be loaded.
    #[inline(always)]
    pub(crate) fn take(&self, bits: &mut Bits<'_>) -> Result<u8, Fault> {
        let entry = self.lookup[bits.peek(LOOK) as usize];
        if entry == 0 {
            return self.take_long(bits);
        }
        bits.consume(u32::from(entry >> 8));
        Ok(entry as u8)
    }

    #[cold]
    fn take_long(&self, bits: &mut Bits<'_>) -> Result<u8, Fault> {
        let next = bits.peek(LENGTH_MAX);
        let length = (LOOK + 1..=LENGTH_MAX)
            .find(|length| next < self.limits[*length as usize])
            .ok_or(Fault::NoCode)?;
        bits.consume(length);
        let code = (next >> (LENGTH_MAX - length)) as i32;
        let index = (code + self.offsets[length as usize]) as usize;
        self.symbols.get(index).copied().ok_or(Fault::NoCode)
    }
}

/// Advance of the entry that ends a block: further than any coefficient.
pub(super) const END_OF_BLOCK: u32 = 64;

/// A table that yields a run of zeros and the coefficient after it in one lookup, if code and
/// coefficient together are short enough.
#[derive(Debug)]
pub(crate) struct RunTable {
    /// By the next bits: value, and below it by how much the position advances and how many bits
    /// that takes; 0 if the symbol must be looked up alone.
    lookup: [u32; 1 << LOOK_RUN],
    pub(super) symbols: SymbolTable,
}

impl RunTable {
    pub(crate) fn new(spec: &HuffmanSpec) -> Self {
        let symbols = SymbolTable::new(spec);
        let mut lookup = [0; 1 << LOOK_RUN];
        for (next, entry) in lookup.iter_mut().enumerate() {
            let next = next as u32;
            let known = symbols.lookup[(next >> (LOOK_RUN - LOOK)) as usize];
            let (symbol, length) = (u32::from(known & 0xff), u32::from(known >> 8));
            let (run, size) = (symbol >> 4, symbol & 15);
            let whole = length + size;
            *entry = if known == 0 || whole > LOOK_RUN || size > AC_SIZE_MAX {
                0
            } else if symbol == 0 {
                END_OF_BLOCK << 8 | length
            } else if size == 0 {
                0
            } else {
                let bits = (next >> (LOOK_RUN - whole)) & ((1 << size) - 1);
                (signed(bits, size) as u32) << 16 | (run + 1) << 8 | whole
            };
        }
        Self { lookup, symbols }
    }

    /// Looks up the next bits: value, advance and number of bits; 0 if the symbol must be looked up
    /// alone.
    #[inline(always)]
    pub(super) fn look(&self, bits: &Bits<'_>) -> u32 {
        self.lookup[bits.peek(LOOK_RUN) as usize]
    }
}
