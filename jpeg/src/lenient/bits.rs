//! Bits as libjpeg reads them from damaged data.
//!
//! libjpeg has two readers. The fast one gives up at a marker, and the block is read again over
//! what it has written. To reproduce this, and to reproduce when data count as missing, both
//! readers load bytes exactly when libjpeg does (jdhuff.c, jdhuff.h).

use super::super::markers::HuffmanSpec;
use super::input::Input;

/// Bits of a lookup.
const LOOKUP_BITS: u32 = 8;

/// A length above the longest code: the bits are not a code.
const NO_CODE: usize = 17;

/// Minimum number of bits after the careful reader has loaded bytes.
const FILLED: u32 = 57;

/// Bits that were loaded and not consumed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bits {
    /// Only the lower ones are valid.
    buffer: u64,
    left: u32,
}

impl Bits {
    fn peek(&self, count: u32) -> u32 {
        (self.buffer >> (self.left - count)) as u32 & ((1 << count) - 1)
    }

    fn take(&mut self, count: u32) -> u32 {
        let bits = self.peek(count);
        self.left -= count;
        bits
    }

    fn push(&mut self, byte: u8) {
        self.buffer = self.buffer << 8 | u64::from(byte);
        self.left += 8;
    }
}

/// A Huffman table.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// By the next bits: length of the code and symbol; length 9 for longer codes.
    lookup: [(u8, u8); 1 << LOOKUP_BITS],
    /// By length: the largest code, -1 if there is none.
    largest: [i32; NO_CODE + 1],
    /// By length: index of the symbol less the code.
    offsets: [i32; NO_CODE + 1],
    symbols: [u8; 256],
}

impl Table {
    /// `None` for ambiguous codes, as libjpeg checks it: of a length that is in use, the code of
    /// all ones must be free.
    pub(super) fn new(spec: &HuffmanSpec) -> Option<Self> {
        let mut table = Self {
            lookup: [(LOOKUP_BITS as u8 + 1, 0); 1 << LOOKUP_BITS],
            largest: [-1; NO_CODE + 1],
            offsets: [0; NO_CODE + 1],
            symbols: spec.symbols,
        };
        table.largest[NO_CODE] = i32::MAX;
        let last = spec.counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        let (mut code, mut index) = (0_i32, 0_i32);
        for (length, count) in (1_u32..).zip(&spec.counts[..last]) {
            for _ in 0..*count {
                if length <= LOOKUP_BITS {
                    let free = LOOKUP_BITS - length;
                    let from = (code as usize) << free;
                    let symbol = spec.symbols[index as usize];
                    table.lookup.get_mut(from..from + (1 << free))?.fill((length as u8, symbol));
                }
                code += 1;
                index += 1;
            }
            if *count > 0 {
                table.offsets[length as usize] = index - code;
                table.largest[length as usize] = code - 1;
            }
            if *count > 0 && code >= 1 << length {
                return None;
            }
            code <<= 1;
        }
        Some(table)
    }

    /// The symbol of a code of a length; 0 for bits that are not a code.
    fn symbol(&self, code: i32, length: usize) -> u8 {
        match length {
            NO_CODE => 0,
            _ => self.symbols[(code + self.offsets[length]) as usize & 255],
        }
    }
}

/// A reader of bits.
pub(super) trait ReadBits {
    /// Reads a code; an invalid one is 17 bits long and means 0.
    fn symbol(&mut self, table: &Table) -> u8;

    /// Reads bits, 1 to 16.
    fn value(&mut self, count: u32) -> u32;
}

/// The reader that stops at markers and substitutes zeros after them.
#[derive(Debug)]
pub(super) struct MarkerCheckedBits<'s, 'a> {
    pub(super) input: &'s mut Input<'a>,
    pub(super) bits: &'s mut Bits,
    /// Whether bits were substituted.
    pub(super) is_short: &'s mut bool,
}

impl MarkerCheckedBits<'_, '_> {
    /// Loads bits.
    fn need(&mut self, count: u32) {
        if self.bits.left < count {
            self.fill(count);
        }
    }

    fn fill(&mut self, count: u32) {
        while self.input.unread.is_none() && self.bits.left < FILLED {
            match self.input.byte() {
                0xff => match self.behind_ff() {
                    0 => self.bits.push(0xff),
                    marker => self.input.unread = Some(marker),
                },
                byte => self.bits.push(byte),
            }
        }
        if count > self.bits.left {
            *self.is_short = true;
            self.bits.buffer <<= FILLED - self.bits.left;
            self.bits.left = FILLED;
        }
    }

    /// The first byte that is not 0xff.
    fn behind_ff(&mut self) -> u8 {
        loop {
            match self.input.byte() {
                0xff => (),
                byte => return byte,
            }
        }
    }
}

impl ReadBits for MarkerCheckedBits<'_, '_> {
    fn symbol(&mut self, table: &Table) -> u8 {
        if self.bits.left < LOOKUP_BITS {
            self.fill(0);
        }
        let mut length = 1;
        if self.bits.left >= LOOKUP_BITS {
            let (short, symbol) = table.lookup[self.bits.peek(LOOKUP_BITS) as usize];
            if u32::from(short) <= LOOKUP_BITS {
                self.bits.left -= u32::from(short);
                return symbol;
            }
            length = usize::from(short);
        }
        self.need(length as u32);
        let mut code = self.bits.take(length as u32) as i32;
        while code > table.largest[length] {
            self.need(1);
            code = code << 1 | self.bits.take(1) as i32;
            length += 1;
        }
        table.symbol(code, length)
    }

    fn value(&mut self, count: u32) -> u32 {
        self.need(count);
        self.bits.take(count)
    }
}

/// The fast reader.
#[derive(Debug)]
pub(super) struct FastBits<'a> {
    pub(super) input: Input<'a>,
    pub(super) bits: Bits,
    /// Whether it reached a marker, or 0xff twice: the bits that were read must be discarded.
    pub(super) failed: bool,
}

impl FastBits<'_> {
    fn fill(&mut self) {
        if self.bits.left > 16 {
            return;
        }
        for _ in 0..6 {
            let byte = self.input.byte();
            if byte != 0xff {
                self.bits.push(byte);
            } else if self.input.byte() == 0 {
                self.bits.push(0xff);
            } else {
                self.failed = true;
                self.input.step_back();
                self.input.step_back();
                self.bits.push(0);
            }
        }
    }
}

impl ReadBits for FastBits<'_> {
    fn symbol(&mut self, table: &Table) -> u8 {
        self.fill();
        let (short, symbol) = table.lookup[self.bits.peek(LOOKUP_BITS) as usize];
        if u32::from(short) <= LOOKUP_BITS {
            self.bits.left -= u32::from(short);
            return symbol;
        }
        let mut length = usize::from(short);
        let mut code = self.bits.take(length as u32) as i32;
        while code > table.largest[length] {
            code = code << 1 | self.bits.take(1) as i32;
            length += 1;
        }
        table.symbol(code, length)
    }

    fn value(&mut self, count: u32) -> u32 {
        self.fill();
        self.bits.take(count)
    }
}

/// The value of bits (T.81 Figure F.12, EXTEND).
pub(super) fn extend(bits: u32, size: u32) -> i32 {
    let bits = bits as i32;
    if bits < 1 << (size - 1) { bits - (1 << size) + 1 } else { bits }
}
