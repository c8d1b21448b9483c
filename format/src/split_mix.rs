//! A seeded sequence of random numbers for repeatable results: fault injection, random samples,
//! generated pictures, tests. Random parameters of recipes never come from it, nor do secrets.

/// SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).
///
/// ```
/// use meetpoint_format::split_mix::SplitMix64;
///
/// let mut random = SplitMix64::new(1_234_567);
/// assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
/// ```
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

/// The output function of SplitMix64, a bijection whose output bits each depend on every input bit.
pub fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl SplitMix64 {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `limit`, which is not zero. The bias, below `limit` / 2^64, does not matter.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next_u64() % limit
    }
}

#[cfg(test)]
mod tests {
    use super::SplitMix64;

    /// The first outputs for seed 1234567 that the algorithm's reference code prints.
    #[test]
    fn the_numbers_are_those_of_the_reference() {
        let mut random = SplitMix64::new(1_234_567);
        let first: Vec<u64> = std::iter::repeat_with(|| random.next_u64()).take(3).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
