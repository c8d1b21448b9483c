//! Huffman tables as the kernels look them up.

use meetpoint_jpeg::HuffmanSpec;

/// Bits of a lookup, as in `cuda/jpeg.cuh`.
const PEEK_BITS: u32 = 10;

/// Lengths of codes, and one word more for alignment.
const LENGTHS: usize = 18;

/// Words of a table: lookups, ends, offsets, symbols.
pub(super) const TABLE_WORDS: usize = (1 << PEEK_BITS) + 2 * LENGTHS + 256 / 4;

/// Tables that are cached: the files of a dataset share a few.
const CACHED_MAX: usize = 64;

/// Tables of the latest batches.
#[derive(Debug, Default)]
pub(super) struct TableCache {
    known: Vec<(HuffmanSpec, Box<[u32; TABLE_WORDS]>)>,
    /// Those of the batch, by their index in it.
    batch: Vec<HuffmanSpec>,
}

impl TableCache {
    /// Begins a batch.
    pub(super) fn clear(&mut self) {
        self.batch.clear();
    }

    /// The index in the batch of a table, whose words are appended to `words` when it is new.
    pub(super) fn index(&mut self, spec: &HuffmanSpec, words: &mut Vec<u32>) -> u32 {
        if let Some(index) = self.batch.iter().position(|known| known == spec) {
            return index as u32;
        }
        let at = self.known.iter().position(|(known, _)| known == spec).unwrap_or_else(|| {
            if self.known.len() == CACHED_MAX {
                self.known.remove(0);
            }
            self.known.push((*spec, Box::new(table(spec))));
            self.known.len() - 1
        });
        words.extend_from_slice(&self.known[at].1[..]);
        self.batch.push(*spec);
        self.batch.len() as u32 - 1
    }
}

/// A code of this length, as `JpegEntry` in `cuda/jpeg_codes.cuh`.
fn entry(length: u32, symbol: u8) -> u32 {
    let (size, zeros) = (u32::from(symbol & 15), u32::from(symbol >> 4));
    // Without a value, only 16 zeros do not end the block (T.81 F.1.2.2).
    let advance = if size == 0 && zeros != 15 { 64 } else { zeros + 1 };
    (length + size) | size << 8 | advance << 16 | length << 24
}

/// Builds a table (T.81 C.2).
fn table(spec: &HuffmanSpec) -> [u32; TABLE_WORDS] {
    let mut words = [0; TABLE_WORDS];
    let (looks, rest) = words.split_at_mut(1 << PEEK_BITS);
    let (ends, rest) = rest.split_at_mut(LENGTHS);
    let (offsets, symbols) = rest.split_at_mut(LENGTHS);
    let mut index = 0_usize;
    for length in 1..=16_u32 {
        let at = length as usize;
        let first = ends[at - 1] >> (16 - length);
        let count = u32::from(spec.counts[at - 1]);
        offsets[at] = (index as u32).wrapping_sub(first);
        ends[at] = (first + count) << (16 - length);
        if length <= PEEK_BITS {
            for code in first..first + count {
                let symbol = spec.symbols[(index + (code - first) as usize) & 255];
                let free = PEEK_BITS - length;
                let these = (code << free) as usize..((code + 1) << free) as usize;
                // A table that has too many codes leaves some out.
                looks.get_mut(these).unwrap_or_default().fill(entry(length, symbol));
            }
        }
        index += count as usize;
    }
    for (word, four) in symbols.iter_mut().zip(spec.symbols.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*four);
    }
    words
}
