//! Random numbers that depend only on their purpose, never on the caller or the time.
//!
//! Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11): a keyed
//! function from a 128-bit counter to 128 random bits. The key is the seed, and the counter
//! identifies the purpose of the bits, so that two streams of one seed never share a block:
//!
//! ```text
//! key      word 0  seed, low half        word 1  seed, high half
//! counter  word 0  sample, low half      word 1  sample, high half ^ view << 16
//!          word 2  epoch
//!          word 3  operation (8 bits) << 24 | block (24 bits)
//! ```
//!
//! Views are numbered from 0, which is also the view of recipes without views. Samples of a recipe
//! with views stay below 2^48, as in every dataset whose index fits in memory.
//!
//! Operation 255 is not an operation: its counters belong to [`crate::order`],
//! [`crate::interleave`], [`crate::replacement`] and [`crate::sampler`].

/// Operations that can have random parameters: numbers 0..=254.
pub const OPERATIONS_MAX: u32 = 255;

/// Word 3 of the counters that belong to the order of an epoch; the device is added if a device's
/// samples have a separate order.
pub(crate) const ORDER_DOMAIN: u32 = 255 << 24;

/// Word 3 of the counters that belong to [`crate::interleave`].
pub(crate) const INTERLEAVE_DOMAIN: u32 = ORDER_DOMAIN | 1 << 16;

/// Word 3 of the counters that belong to [`crate::replacement`]; the number of the candidate is
/// added.
pub(crate) const REPLACEMENT_DOMAIN: u32 = ORDER_DOMAIN | 2 << 16;

/// Word 3 of the counters that belong to draws with replacement; the device is added.
pub(crate) const DRAW_DOMAIN: u32 = ORDER_DOMAIN | 3 << 16;

/// Word 3 of the counters that belong to draws without replacement.
pub(crate) const RACE_DOMAIN: u32 = ORDER_DOMAIN | 4 << 16;

/// Word 3 of the counters that belong to the orders of the datasets of a mixture; the device is
/// added.
pub(crate) const MIXTURE_DOMAIN: u32 = ORDER_DOMAIN | 5 << 16;

/// Maximum number of blocks of four words in one stream.
const BLOCKS_MAX: u32 = 1 << 24;

pub(crate) const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
pub(crate) const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
/// Rounds of the generator.
pub(crate) const PHILOX_ROUNDS: usize = 10;

/// Ten rounds of Philox4x32 on one counter block.
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..PHILOX_ROUNDS {
        let (high0, low0) = multiply(MULTIPLIERS[0], c0);
        let (high1, low1) = multiply(MULTIPLIERS[1], c2);
        (c0, c1, c2, c3) = (high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0);
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    [c0, c1, c2, c3]
}

/// High and low word of a product.
fn multiply(a: u32, b: u32) -> (u32, u32) {
    let product = u64::from(a) * u64::from(b);
    ((product >> 32) as u32, product as u32)
}

/// A 64-bit value as two words, low half first.
pub(crate) fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// Two words, low half first, as a 64-bit value.
pub(crate) fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// The purpose of a stream of draws. Equal keys give equal streams on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DrawKey {
    /// Seed of the job.
    pub seed: u64,
    /// Epoch, from 0.
    pub epoch: u32,
    /// Index of the sample in the dataset; its position in the epoch where the sampler may repeat
    /// samples, see [`crate::batching::Entry`].
    pub sample: u64,
    /// Number of the operation in the recipe, below [`OPERATIONS_MAX`]: operations are numbered
    /// from 0, each before those that it contains.
    pub operation: u32,
}

/// The stream of random numbers of one operation on one sample.
///
/// Words are returned in the order of the blocks and, within a block, from word 0 to word 3.
#[derive(Debug, Clone)]
pub struct Draws {
    key: DrawKey,
    view: u16,
    /// Number of the block that is computed when `words` runs out.
    block: u32,
    words: [u32; 4],
    /// Words of `words` that were returned.
    used: usize,
}

impl Draws {
    /// A stream at its beginning. Panics when `key.operation` is not below [`OPERATIONS_MAX`];
    /// a [`crate::recipe::Recipe`] has no such operation.
    pub fn new(key: DrawKey) -> Self {
        Self::of_view(key, 0)
    }

    /// As [`Self::new`], for a view by its number; `new` is for view 0.
    pub fn of_view(key: DrawKey, view: u16) -> Self {
        assert!(key.operation < OPERATIONS_MAX, "operation {} cannot draw", key.operation);
        Self { key, view, block: 0, words: [0; 4], used: 4 }
    }

    /// The next 32 random bits. Panics after 2^26 draws, where the stream ends.
    pub fn next_u32(&mut self) -> u32 {
        if self.used == self.words.len() {
            assert!(self.block < BLOCKS_MAX, "a stream holds 2^26 draws");
            let [low, high] = halves(self.key.sample);
            let high = high ^ u32::from(self.view) << 16;
            let last = self.key.operation << 24 | self.block;
            self.words = philox4x32_10([low, high, self.key.epoch, last], halves(self.key.seed));
            self.block += 1;
            self.used = 0;
        }
        let word = self.words[self.used];
        self.used += 1;
        word
    }

    /// Uniform in [0, 1) with 53 random bits: two draws, the first the low half of a 64-bit value
    /// whose upper 53 bits are divided by 2^53.
    pub fn uniform(&mut self) -> f64 {
        let low = self.next_u32();
        let high = self.next_u32();
        (join(low, high) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in [low, high): `low + (high - low) * uniform()`, or the next float below `high`
    /// where that rounds to `high`. When `high <= low` it is `low`, and one uniform is still drawn.
    pub fn uniform_in(&mut self, low: f64, high: f64) -> f64 {
        let uniform = self.uniform();
        if high <= low {
            return low;
        }
        let value = low + (high - low) * uniform;
        if value < high { value } else { high.next_down() }
    }

    /// Uniform in 0..=high without bias (Lemire, "Fast random integer generation in an interval",
    /// 2019): the upper word of draw * (high + 1), drawn again while the lower word is below
    /// 2^32 mod (high + 1).
    pub fn up_to(&mut self, high: u32) -> u32 {
        let Some(count) = high.checked_add(1) else {
            return self.next_u32();
        };
        // 2^32 mod count, in 32 bits.
        let rejected = count.wrapping_neg() % count;
        loop {
            let (upper, lower) = multiply(self.next_u32(), count);
            if lower >= rejected {
                return upper;
            }
        }
    }

    /// True with probability `p`: whether `uniform() < p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCKS_MAX, DrawKey, Draws, OPERATIONS_MAX, philox4x32_10};
    use crate::golden;

    const KEY: DrawKey = DrawKey { seed: 42, epoch: 3, sample: 7, operation: 1 };

    /// `kat_vectors` of the Random123 library, release 1.14.
    #[test]
    fn philox_gives_the_known_answers_of_random123() {
        let ones = u32::MAX;
        assert_eq!(
            philox4x32_10([0; 4], [0; 2]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox4x32_10([ones; 4], [ones; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox4x32_10(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    /// A stream at its beginning for the key that a golden line names.
    fn stream(words: &[&str]) -> Draws {
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let small = |at: usize| u32::try_from(number(at)).unwrap();
        let key =
            DrawKey { seed: number(0), epoch: small(1), sample: number(2), operation: small(3) };
        Draws::new(key)
    }

    #[test]
    fn draws_equal_those_computed_from_the_documentation() {
        for (key, words) in golden::lines("words") {
            let mut draws = stream(&key);
            for word in words {
                assert_eq!(draws.next_u32().to_string(), word, "{key:?}");
            }
        }
        for (key, words) in golden::lines("view_words") {
            let mut draws = Draws::of_view(stream(&key[..4]).key, key[4].parse().unwrap());
            for word in words {
                assert_eq!(draws.next_u32().to_string(), word, "{key:?}");
            }
        }
        for (key, highs) in golden::lines("up_to") {
            let mut draws = stream(&key);
            for (high, value) in highs.into_iter().map(golden::pair) {
                let high = u32::try_from(high).unwrap();
                assert_eq!(u64::from(draws.up_to(high)), value, "{key:?} {high}");
            }
        }
    }

    #[test]
    fn uniforms_equal_those_computed_from_the_documentation() {
        let bits = |value: f64| format!("{:016x}", value.to_bits());
        for (key, values) in golden::lines("uniform") {
            let mut draws = stream(&key);
            for value in values {
                assert_eq!(bits(draws.uniform()), value, "{key:?}");
            }
        }
        for (key, values) in golden::lines("uniform_in") {
            let mut draws = stream(&key);
            for value in values {
                assert_eq!(bits(draws.uniform_in(0.08, 1.0)), value, "{key:?}");
            }
        }
    }

    #[test]
    fn every_part_of_the_key_changes_the_stream() {
        let others = [
            DrawKey { seed: 43, ..KEY },
            DrawKey { seed: 42 | 1 << 32, ..KEY },
            DrawKey { epoch: 4, ..KEY },
            DrawKey { sample: 8, ..KEY },
            DrawKey { sample: 7 | 1 << 32, ..KEY },
            DrawKey { operation: 2, ..KEY },
        ];
        let block = |key| {
            let mut draws = Draws::new(key);
            [0; 4].map(|_| draws.next_u32())
        };
        assert_eq!(block(KEY), block(KEY));
        for other in others {
            assert_ne!(block(KEY), block(other), "{other:?}");
        }
    }

    #[test]
    fn views_of_a_sample_have_streams_of_their_own() {
        let block = |view| {
            let mut draws = Draws::of_view(KEY, view);
            [0; 4].map(|_| draws.next_u32())
        };
        let mut plain = Draws::new(KEY);
        assert_eq!(block(0), [0; 4].map(|_| plain.next_u32()));
        let blocks: std::collections::HashSet<_> = (0..300).map(block).collect();
        assert_eq!(blocks.len(), 300);
    }

    #[test]
    fn uniform_in_stays_below_high_even_where_the_sum_rounds_up() {
        let low = 1.0f64;
        let high = low.next_up();
        let mut draws = Draws::new(KEY);
        for _ in 0..1000 {
            assert!(draws.uniform_in(low, high) < high);
        }
    }

    #[test]
    fn an_empty_range_gives_its_low_end_and_still_draws() {
        let mut draws = Draws::new(KEY);
        assert_eq!(draws.uniform_in(2.0, 2.0).to_bits(), 2f64.to_bits());
        assert_eq!(draws.uniform_in(2.0, 1.0).to_bits(), 2f64.to_bits());
        let mut plain = Draws::new(KEY);
        for _ in 0..4 {
            plain.next_u32();
        }
        assert_eq!(draws.next_u32(), plain.next_u32());
    }

    /// Chi-square with 9 degrees of freedom: 999 of 1000 fair generators stay below 27.88.
    #[test]
    fn up_to_is_even_over_its_range() {
        let mut draws = Draws::new(KEY);
        let mut counts = [0u32; 10];
        for _ in 0..10_000 {
            counts[draws.up_to(9) as usize] += 1;
        }
        let chi_square: f64 =
            counts.iter().map(|count| (f64::from(*count) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi_square < 27.88, "{chi_square} {counts:?}");
    }

    #[test]
    fn a_probability_of_0_never_applies_and_one_of_1_always() {
        let mut draws = Draws::new(KEY);
        for _ in 0..1000 {
            assert!(!draws.chance(0.0));
            assert!(draws.chance(1.0));
        }
    }

    #[test]
    #[should_panic(expected = "cannot draw")]
    fn the_stream_of_the_order_is_not_that_of_an_operation() {
        Draws::new(DrawKey { operation: OPERATIONS_MAX, ..KEY });
    }

    #[test]
    #[should_panic(expected = "a stream holds 2^26 draws")]
    fn a_stream_ends_before_it_runs_into_the_next_operation() {
        let mut draws = Draws { block: BLOCKS_MAX - 1, ..Draws::new(KEY) };
        for _ in 0..5 {
            draws.next_u32();
        }
    }
}
