//! Streams of prefix codes that are written and read some at a time, one symbol from each in turn.
//!
//! Symbol i of a run comes from lane i modulo their number. The lanes know nothing of each other,
//! so a processor looks up several codes at once where a single stream would have it wait for each.

use super::bank::{CODE_BITS, DecodeTable};
use super::codes::{ESCAPE, Words};

/// Bytes that must be readable behind a row: the eight narrow groups of a block and a word.
pub(super) const SLACK: usize = 72;

/// Bytes of a load.
const WORD: usize = 8;

/// Symbols that a decoder may write behind a run's end.
pub(super) const OVERRUN: usize = 20;

/// Symbols of a lane between two loads: 4 codes of 10 bits and 7 bits of a begun byte fit in 64.
const BETWEEN_LOADS: usize = 4;

/// Where each lane stands, in bits from the start of the bytes that it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lanes<const N: usize>(pub(super) [usize; N]);

impl<const N: usize> Lanes<N> {
    /// Reads `count` symbols to the start of `out`, which holds [`OVERRUN`] more.
    ///
    /// Behind the last eight of `bytes` it reads these again and again: what comes out is
    /// meaningless then, and the lanes stand where nothing good ends.
    #[inline(always)]
    pub(super) fn read(&mut self, bytes: &[u8], table: &DecodeTable, out: &mut [u8], count: usize) {
        let step = N * BETWEEN_LOADS;
        let (whole, rest) = (count / step * step, count % step);
        for out in out[..whole].chunks_exact_mut(step) {
            self.step(bytes, table, out, [BETWEEN_LOADS; N]);
        }
        if rest > 0 {
            // Each lane goes on by its own share only.
            let share = std::array::from_fn(|lane| (rest + N - 1 - lane) / N);
            self.step(bytes, table, &mut out[whole..whole + step], share);
        }
    }

    /// Four symbols of each lane, of which it takes the first `share`.
    #[inline(always)]
    fn step(&mut self, bytes: &[u8], table: &DecodeTable, out: &mut [u8], share: [usize; N]) {
        let last = bytes.len() - WORD;
        let mut bits = self.0.map(|place| {
            let at = (place >> 3).min(last);
            let loaded = bytes[at..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk));
            loaded >> (place & 7)
        });
        let mut used = [0u32; N];
        for turn in 0..BETWEEN_LOADS {
            for lane in 0..N {
                let entry = table[bits[lane] as usize & ((1 << CODE_BITS) - 1)];
                // The low six bits are the length: shifts take no more.
                bits[lane] >>= entry & 63;
                let takes = if turn < share[lane] { u32::from(entry) } else { 0 };
                used[lane] = used[lane].wrapping_add(takes);
                out[turn * N + lane] = (entry >> 8) as u8;
            }
        }
        for (place, used) in self.0.iter_mut().zip(used) {
            // The symbols are summed up along with the lengths, above them.
            *place += used as usize & 0xff;
        }
    }
}

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

    /// Writes a run of bytes in a code each; those whose code has no word for them are escapes.
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
