//! Seeded draws for the engines that shake their callers; the same seed, the same draws.

/// SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).
#[derive(Debug, Clone)]
pub(crate) struct Draws {
    state: u64,
}

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not zero. The bias, below `limit` / 2^64, does not matter.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs for seed 1234567 that the algorithm's reference code prints.
    #[test]
    fn the_draws_are_those_of_the_reference() {
        let mut draws = Draws::new(1_234_567);
        let first: Vec<u64> = std::iter::repeat_with(|| draws.next()).take(3).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
