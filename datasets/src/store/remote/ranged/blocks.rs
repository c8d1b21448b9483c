//! The blocks of a dataset: fixed lengths of its parts, numbered over all parts.

use std::ops::Range;

/// Bytes of a block: small, since a sample that is needed alone is fetched in whole blocks, and a
/// multiple of the blocks of file systems, so that its space can be freed.
pub(super) const BLOCK_BYTES: u64 = 64 << 10;

/// The numbering of the blocks.
#[derive(Debug)]
pub(super) struct Blocks {
    /// Length of each part.
    bytes: Vec<u64>,
    /// The first block of each part, then the number of all blocks.
    first: Vec<u64>,
}

impl Blocks {
    /// The blocks of parts with these lengths.
    pub(super) fn new(bytes: Vec<u64>) -> Self {
        let mut first: Vec<u64> = vec![0];
        for bytes in &bytes {
            first.push(first[first.len() - 1].saturating_add(bytes.div_ceil(BLOCK_BYTES)));
        }
        Self { bytes, first }
    }

    /// Number of blocks.
    pub(super) fn len(&self) -> u64 {
        self.first[self.first.len() - 1]
    }

    /// Length of a part.
    pub(super) fn part_bytes(&self, part: usize) -> Option<u64> {
        self.bytes.get(part).copied()
    }

    /// Length of the longest part.
    pub(super) fn part_bytes_max(&self) -> u64 {
        self.bytes.iter().copied().max().unwrap_or(0)
    }

    /// Whether a range is within its part.
    pub(super) fn contains(&self, part: usize, range: &Range<u64>) -> bool {
        self.part_bytes(part).is_some_and(|bytes| range.start <= range.end && range.end <= bytes)
    }

    /// The blocks that contain a range of a part, which is within the part.
    pub(super) fn of(&self, part: usize, range: &Range<u64>) -> Range<u64> {
        let first = self.first[part];
        if range.start == range.end {
            return first..first;
        }
        first + range.start / BLOCK_BYTES..first + range.end.div_ceil(BLOCK_BYTES)
    }

    /// The part of a block, and its bytes there.
    pub(super) fn place(&self, block: u64) -> (usize, Range<u64>) {
        let part = self.first.partition_point(|first| *first <= block) - 1;
        let start = (block - self.first[part]) * BLOCK_BYTES;
        (part, start..(start + BLOCK_BYTES).min(self.bytes[part]))
    }

    /// The part of a run of blocks of one part, and their bytes there.
    pub(super) fn place_of(&self, run: &Range<u64>) -> (usize, Range<u64>) {
        let (part, first) = self.place(run.start);
        let (_, last) = self.place(run.end - 1);
        (part, first.start..last.end)
    }

    /// Where a byte of a part is in the file of the cache.
    pub(super) fn offset(&self, part: usize, byte: u64) -> u64 {
        self.first[part] * BLOCK_BYTES + byte
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_BYTES, Blocks};

    #[test]
    fn every_byte_of_every_part_is_in_one_block() {
        let blocks = Blocks::new(vec![BLOCK_BYTES * 2 + 1, 5, BLOCK_BYTES]);
        assert_eq!((blocks.len(), blocks.part_bytes(1), blocks.part_bytes(3)), (5, Some(5), None));
        assert_eq!(blocks.of(0, &(0..BLOCK_BYTES + 1)), 0..2);
        assert_eq!(blocks.of(0, &(BLOCK_BYTES * 2..BLOCK_BYTES * 2 + 1)), 2..3);
        assert_eq!(blocks.of(1, &(2..2)), 3..3);
        assert_eq!(blocks.place(3), (1, 0..5));
        assert_eq!(blocks.place_of(&(1..3)), (0, BLOCK_BYTES..BLOCK_BYTES * 2 + 1));
        assert_eq!(blocks.offset(2, 7), 4 * BLOCK_BYTES + 7);
        assert!(
            blocks.contains(2, &(0..BLOCK_BYTES)) && !blocks.contains(2, &(0..BLOCK_BYTES + 1))
        );
    }
}
