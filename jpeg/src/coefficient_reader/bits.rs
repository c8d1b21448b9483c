//! Reads the bits of entropy-coded data without stuffed bytes.

use std::ops::Range;

/// Appends entropy-coded bytes without the zeros stuffed after 0xff, and returns the offset where
/// they end: that of a 0xff before something else than zero, or the end of the range.
pub(super) fn unstuff(file: &[u8], range: Range<usize>, out: &mut Vec<u8>) -> usize {
    let mut at = range.start;
    while let Some(ahead) = memchr::memchr(0xff, &file[at..range.end]) {
        let found = at + ahead;
        if file.get(found + 1) != Some(&0) || found + 1 == range.end {
            out.extend_from_slice(&file[at..found]);
            return found;
        }
        out.extend_from_slice(&file[at..=found]);
        at = found + 2;
    }
    out.extend_from_slice(&file[at..range.end]);
    range.end
}

/// The offset in the file of the byte at `index` after unstuffing from `start`.
pub(super) fn stuffed_offset(file: &[u8], start: usize, index: usize) -> usize {
    let mut at = start;
    for _ in 0..index {
        at += if file.get(at..at + 2) == Some(&[0xff, 0]) { 2 } else { 1 };
    }
    at.min(file.len())
}

/// A position in unstuffed bytes. Past their end it reads zeros; callers check [`Bits::overrun`]
/// after each block.
#[derive(Debug)]
pub(crate) struct Bits<'a> {
    bytes: &'a [u8],
    /// The next byte to load.
    at: usize,
    /// Bits not yet consumed, at the high end. Below those that `count` counts there may be more
    /// of the same data, which are loaded again.
    buffer: u64,
    count: u32,
}

impl<'a> Bits<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, buffer: 0, count: 0 }
    }

    /// Loads at least 56 bits.
    #[inline(always)]
    pub(crate) fn refill(&mut self) {
        let word = match self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => self.last_word(),
        };
        self.buffer |= word >> self.count;
        self.at += (63 - self.count as usize) / 8;
        self.count |= 56;
    }

    /// Loads at least 32 bits.
    #[inline(always)]
    pub(crate) fn refill_half(&mut self) {
        if self.count < 32 {
            self.refill();
        }
    }

    #[cold]
    fn last_word(&self) -> u64 {
        let mut word = [0; 8];
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        word[..rest.len()].copy_from_slice(rest);
        u64::from_be_bytes(word)
    }

    /// The next 1 to 32 bits, without consuming them.
    #[inline(always)]
    pub(crate) fn peek(&self, count: u32) -> u32 {
        (self.buffer >> (64 - count)) as u32
    }

    /// Skips loaded bits.
    #[inline(always)]
    pub(crate) fn consume(&mut self, count: u32) {
        self.buffer <<= count;
        self.count -= count;
    }

    /// Takes 1 to 32 loaded bits.
    #[inline(always)]
    pub(crate) fn take(&mut self, count: u32) -> u32 {
        let bits = self.peek(count);
        self.consume(count);
        bits
    }

    /// Takes a value of 1 to 16 loaded bits (T.81 Figure F.12).
    #[inline(always)]
    pub(crate) fn take_signed(&mut self, size: u32) -> i32 {
        signed(self.take(size), size)
    }

    /// Takes one bit.
    #[inline(always)]
    pub(crate) fn take_bit(&mut self) -> bool {
        if self.count == 0 {
            self.refill();
        }
        self.take(1) == 1
    }

    /// Number of bits taken.
    #[inline(always)]
    pub(crate) fn position(&self) -> usize {
        self.at * 8 - self.count as usize
    }

    /// Whether more bits were taken than available.
    #[inline(always)]
    pub(crate) fn overrun(&self) -> bool {
        self.position() > self.bytes.len() * 8
    }

    /// Takes the bits to the end of the byte. A one is set above them, which encodes their number.
    pub(crate) fn take_padding(&mut self) -> u8 {
        self.refill();
        match self.position().wrapping_neg() % 8 {
            0 => 1,
            open => 1 << open | self.take(open as u32) as u8,
        }
    }
}

/// The value of `size` bits (T.81 Figure F.12): unchanged in the upper half, negative below.
#[inline(always)]
pub(super) fn signed(bits: u32, size: u32) -> i32 {
    let negative = (bits >> (size - 1)) as i32 - 1;
    bits as i32 + (negative & (1 - (1 << size)))
}
