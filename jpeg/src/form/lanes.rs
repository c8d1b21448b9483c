//! Interleaved streams of prefix codes: one symbol from each in turn.
//!
//! Symbol i of a run comes from lane i modulo their number. Lanes are independent, so a processor
//! looks up several codes at once instead of waiting for each.

use super::codes::{ESCAPE, Words};

/// Bytes that must be readable after a row: eight narrow groups of a block and a word.
pub(super) const SLACK: usize = 72;

/// Position of each lane, in bits from the start of the bytes that it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lanes<const N: usize>(pub(super) [usize; N]);

/// Writes lanes.
#[derive(Debug)]
pub(super) struct LaneWriter {
    lanes: Vec<BitWriter>,
}

impl LaneWriter {
    /// That many empty lanes.
    pub(super) fn new(lanes: usize) -> Self {
        Self { lanes: (0..lanes).map(|_| BitWriter::default()).collect() }
    }

    /// Writes a run of bytes, each in its code; bytes without a word in their code are escaped.
    pub(super) fn run<'a>(
        &mut self,
        bytes: impl IntoIterator<Item = (u8, &'a Words)>,
        escapes: &mut Vec<u8>,
    ) {
        let lanes = self.lanes.len();
        for (index, (byte, words)) in bytes.into_iter().enumerate() {
            let word = words[usize::from(byte)];
            let (bits, length) = if byte == ESCAPE || word.1 == 0 {
                escapes.push(byte);
                words[usize::from(ESCAPE)]
            } else {
                word
            };
            self.lanes[index % lanes].push(u64::from(bits), u32::from(length));
        }
    }

    /// The bytes of each lane.
    pub(super) fn finish(self) -> Vec<Vec<u8>> {
        self.lanes.into_iter().map(BitWriter::finish).collect()
    }
}

/// Writes bits, the first to the lowest place of a byte.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    count: u32,
}

impl BitWriter {
    /// Appends the lowest `count` bits of `bits`, up to 16 and no others set.
    pub(super) fn push(&mut self, bits: u64, count: u32) {
        self.pending |= bits << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.count -= 8;
        }
    }

    /// The bytes, the last filled up with zeros.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}
