//! A sequence of numbers determined by a seed.

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators").
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// A sequence that differs for each seed and each purpose.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let mut random = Self(seed ^ purpose.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `count` times on average; never if it is 0.
    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        count > 0 && self.below(count) == 0
    }

    /// An element of a slice that is not empty.
    pub(crate) fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let index = self.below(from.len() as u64);
        &from[usize::try_from(index).expect("it is below a length")]
    }

    /// Fills a buffer.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) {
        for piece in buffer.chunks_mut(8) {
            let bytes = self.next().to_le_bytes();
            piece.copy_from_slice(&bytes[..piece.len()]);
        }
    }
}
