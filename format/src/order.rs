//! The order of an epoch: a seeded permutation with random access in O(1) memory.
//!
//! A Feistel network on pairs (left, right) of digits in base `side`, the smallest whole number
//! whose square reaches the length. A round maps (left, right) to
//! (right, (left + f(round, right)) mod side), where f is 64 bits of Philox scaled to the side.
//! Pairs beyond the length are mapped again until one lies within ("cycle walking"; Black and
//! Rogaway, "Ciphers with arbitrary finite domains", 2002); fewer than 2 * side pairs do, so hardly
//! any walk takes a second step.

mod lanes;

use crate::random::{MIXTURE_DOMAIN, ORDER_DOMAIN, halves, join, philox4x32_10};
use lanes::{Keys, LANES, Lanes};

/// Rounds of the network. Four make it a strong pseudo-random permutation for large sides (Luby and
/// Rackoff, 1988); small sides need more rounds until nearly every order is equally likely.
const ROUNDS: u32 = 12;

/// Up to this number of values are mapped one by one, which is then faster than using all lanes.
const FEW: usize = 4;

/// A permutation of `0..len`, a function of (seed, epoch, len, device) alone.
///
/// `Order::sequential` is the identity; `Order::shuffled` a keyed Feistel network with cycle
/// walking, so both directions take O(1) time and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    len: u64,
    shuffle: Option<Shuffle>,
}

/// The keyed network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shuffle {
    seed: u64,
    epoch: u32,
    /// Word 3 of the counters.
    domain: u32,
    /// Added to word 1 of the counters, whose lowest 4 bits are the round.
    stream: u32,
    /// Base of the digits: the square root of the length, rounded up.
    side: u64,
}

impl Order {
    /// The samples in the order of the dataset.
    pub fn sequential(len: u64) -> Self {
        Self { len, shuffle: None }
    }

    /// A permutation drawn from (seed, epoch).
    pub fn shuffled(len: u64, seed: u64, epoch: u32) -> Self {
        Self::shuffled_of(len, seed, epoch, 0)
    }

    /// A permutation of a device's own samples. Device 0's is that of [`Self::shuffled`].
    pub fn shuffled_of(len: u64, seed: u64, epoch: u32, device: u16) -> Self {
        let (domain, side) = (ORDER_DOMAIN | u32::from(device), square_root_up(len));
        Self { len, shuffle: Some(Shuffle { seed, epoch, domain, stream: 0, side }) }
    }

    /// A permutation of the samples that a device holds of one of several datasets, for the first
    /// pass over them. There are at most 4096 datasets.
    pub(crate) fn of_dataset(len: u64, seed: u64, epoch: u32, device: u16, dataset: u16) -> Self {
        let (domain, side) = (MIXTURE_DOMAIN | u32::from(device), square_root_up(len));
        let stream = u32::from(dataset) << 4;
        Self { len, shuffle: Some(Shuffle { seed, epoch, domain, stream, side }) }
    }

    /// The permutation of a later pass over the samples of a dataset: another one for each of 2^16
    /// passes, if it is shuffled.
    pub(crate) fn of_pass(mut self, pass: u64) -> Self {
        if let Some(shuffle) = &mut self.shuffle {
            shuffle.stream |= (pass as u32) << 16;
        }
        self
    }

    /// Number of samples.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The sample at a position. Panics when `position >= len`.
    pub fn sample_at(&self, position: u64) -> u64 {
        self.walk(position, Shuffle::forward)
    }

    /// The samples at many positions, each of which is replaced by its sample. Panics when one is
    /// not below `len`.
    pub fn samples_at(&self, positions: &mut [u64]) {
        Self::samples_of(positions, |_| *self);
    }

    /// As [`Self::samples_at`], where each position may have a different order, all with the same
    /// seed, epoch and device.
    pub(crate) fn samples_of(positions: &mut [u64], order_of: impl Fn(usize) -> Self) {
        for (chunk, values) in positions.chunks_mut(LANES).enumerate() {
            let order_of = |lane: usize| order_of(chunk * LANES + lane);
            let Some(keys) = order_of(0).keys().filter(|_| values.len() > FEW) else {
                let each = values.iter_mut().enumerate();
                each.for_each(|(lane, value)| *value = order_of(lane).sample_at(*value));
                continue;
            };
            let mut lanes = Lanes { values: [0; LANES], sides: [1; LANES], streams: [0; LANES] };
            for (lane, value) in values.iter().enumerate() {
                let Self { len, shuffle } = order_of(lane);
                assert!(*value < len, "{value} is not below the {len} samples");
                // A side of 2^32 does not fit into a lane; its result is then not used.
                let shuffle = shuffle.filter(|shuffle| shuffle.side <= u32::MAX.into());
                let Some(shuffle) = shuffle else { continue };
                lanes.values[lane] = *value;
                lanes.sides[lane] = shuffle.side;
                lanes.streams[lane] = shuffle.stream.into();
            }
            lanes::forward(keys, &mut lanes);
            for (lane, value) in values.iter_mut().enumerate() {
                let order = order_of(lane);
                *value = match order.shuffle {
                    Some(shuffle) if shuffle.side <= u32::MAX.into() => {
                        order.walk_on(lanes.values[lane], &shuffle, Shuffle::forward)
                    }
                    _ => order.sample_at(*value),
                };
            }
        }
    }

    /// The keys that its network shares with others; `None` if it is the identity.
    fn keys(&self) -> Option<Keys> {
        let Shuffle { seed, epoch, domain, .. } = self.shuffle?;
        Some(Keys { seed, epoch, domain })
    }

    /// The position of a sample: the inverse of [`Order::sample_at`]. Panics when `sample >= len`.
    pub fn position_of(&self, sample: u64) -> u64 {
        self.walk(sample, Shuffle::backward)
    }

    /// Maps `start` until the result lies below `len`. It terminates: the network is a permutation,
    /// so the walk follows a cycle that contains `start` itself.
    fn walk(&self, start: u64, step: fn(&Shuffle, u64) -> u64) -> u64 {
        assert!(start < self.len, "{start} is not below the {} samples", self.len);
        let Some(shuffle) = &self.shuffle else {
            return start;
        };
        self.walk_on(step(shuffle, start), shuffle, step)
    }

    /// Maps a value until it lies below `len`.
    fn walk_on(&self, mut value: u64, shuffle: &Shuffle, step: fn(&Shuffle, u64) -> u64) -> u64 {
        while value >= self.len {
            value = step(shuffle, value);
        }
        value
    }
}

impl Shuffle {
    /// The network, on values below side².
    fn forward(&self, value: u64) -> u64 {
        let (mut left, mut right) = (value / self.side, value % self.side);
        for round in 0..ROUNDS {
            let sum = left + self.offset(round, right);
            let next = if sum >= self.side { sum - self.side } else { sum };
            (left, right) = (right, next);
        }
        left * self.side + right
    }

    /// The network's inverse.
    fn backward(&self, value: u64) -> u64 {
        let (mut left, mut right) = (value / self.side, value % self.side);
        for round in (0..ROUNDS).rev() {
            let offset = self.offset(round, left);
            let previous =
                if right >= offset { right - offset } else { right + self.side - offset };
            (left, right) = (previous, left);
        }
        left * self.side + right
    }

    /// f(round, digit): pseudo-random, below the side.
    fn offset(&self, round: u32, digit: u64) -> u64 {
        let digit = u32::try_from(digit).expect("a digit is below the side, at most 2^32");
        let counter = [digit, self.stream | round, self.epoch, self.domain];
        let [low, high, ..] = philox4x32_10(counter, halves(self.seed));
        let scaled = u128::from(join(low, high)) * u128::from(self.side);
        (scaled >> 64) as u64
    }
}

/// The smallest whole number whose square is at least `value`: at most 2^32.
fn square_root_up(value: u64) -> u64 {
    let root = value.isqrt();
    if root * root < value { root + 1 } else { root }
}

#[cfg(test)]
mod tests {
    use super::{ORDER_DOMAIN, Order, Shuffle, square_root_up};
    use crate::golden;

    #[test]
    fn the_order_equals_the_one_computed_from_the_documentation() {
        for (key, samples) in golden::lines("order") {
            let number = |at: usize| key[at].parse::<u64>().unwrap();
            let epoch = u32::try_from(number(2)).unwrap();
            let order = Order::shuffled(number(0), number(1), epoch);
            for (position, sample) in samples.into_iter().map(golden::pair) {
                assert_eq!(order.sample_at(position), sample, "{key:?} {position}");
                assert_eq!(order.position_of(sample), position, "{key:?} {position}");
            }
        }
    }

    /// All lengths with the same side share a network, so it is tabulated once, and every length
    /// walks in the table as `Order` walks in the network.
    #[test]
    fn every_length_up_to_10000_gives_a_permutation() {
        let mut seen = vec![0; 10_001];
        for side in 1..=100u64 {
            let (seed, domain) = (side, ORDER_DOMAIN);
            let shuffle = Shuffle { seed, epoch: 1, domain, stream: 0, side };
            let table: Vec<u64> = (0..side * side).map(|value| shuffle.forward(value)).collect();
            for (value, image) in table.iter().enumerate() {
                assert_eq!(shuffle.backward(*image), value as u64, "side {side}");
            }
            for len in (side - 1) * (side - 1) + 1..=side * side {
                assert_eq!(square_root_up(len), side);
                for position in 0..len {
                    let mut sample = table[position as usize];
                    while sample >= len {
                        sample = table[sample as usize];
                    }
                    assert_ne!(seen[sample as usize], len, "len {len}: {sample} is repeated");
                    seen[sample as usize] = len;
                }
            }
        }
    }

    #[test]
    fn many_positions_at_a_time_have_the_samples_of_each_alone() {
        for len in [1, 2, 7, 100, 5000, (1 << 32) + 5, u64::MAX] {
            for order in [Order::shuffled(len, 3, 2), Order::sequential(len)] {
                for count in [0, 1, 4, 5, 16, 37] {
                    let first = len.saturating_sub(count);
                    let mut samples: Vec<u64> = (first..len).collect();
                    let expected: Vec<u64> =
                        samples.iter().map(|position| order.sample_at(*position)).collect();
                    order.samples_at(&mut samples);
                    assert_eq!(samples, expected, "{count} of {len}");
                }
            }
        }
    }

    #[test]
    fn short_orders_are_permutations_both_ways() {
        for len in 0..300 {
            let order = Order::shuffled(len, 9, 4);
            let mut samples: Vec<u64> = (0..len).map(|at| order.sample_at(at)).collect();
            for (position, sample) in samples.iter().enumerate() {
                assert_eq!(order.position_of(*sample), position as u64);
            }
            samples.sort_unstable();
            assert_eq!(samples, (0..len).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_inverse_holds_for_lengths_near_powers_of_two() {
        let lens = [1u64 << 32, 1 << 40, u64::MAX - 1];
        for len in lens.into_iter().flat_map(|len| [len - 1, len, len + 1]) {
            let order = Order::shuffled(len, 77, 2);
            let positions = (0..50u64).map(|step| len / 50 * step + step);
            for position in positions.chain([len - 1]) {
                let sample = order.sample_at(position);
                assert!(sample < len);
                assert_eq!(order.position_of(sample), position, "len {len}");
            }
        }
    }

    /// How often each sample lies at each position, over many epochs, is even: chi-square with
    /// 19 * 19 degrees of freedom, refused beyond five standard deviations.
    #[test]
    fn every_sample_is_at_every_position_equally_often() {
        const LEN: usize = 20;
        const EPOCHS: u32 = 2000;
        let mut counts = [[0u32; LEN]; LEN];
        for epoch in 0..EPOCHS {
            let order = Order::shuffled(LEN as u64, 1, epoch);
            for (position, row) in counts.iter_mut().enumerate() {
                row[order.sample_at(position as u64) as usize] += 1;
            }
        }
        let expected = f64::from(EPOCHS) / LEN as f64;
        let chi_square: f64 = counts
            .iter()
            .flatten()
            .map(|count| (f64::from(*count) - expected).powi(2) / expected)
            .sum();
        let freedom = (LEN as f64 - 1.0).powi(2);
        assert!((chi_square - freedom).abs() < 5.0 * (2.0 * freedom).sqrt(), "{chi_square}");
    }

    /// Ranges of positions compared with ranges of samples in orders of many samples: chi-square
    /// over 32 by 32 cells with 31 * 31 degrees of freedom, refused beyond five standard
    /// deviations. So a rank, a device or a window that takes a range of positions has samples from
    /// the whole dataset.
    #[test]
    fn stretches_of_positions_have_samples_from_everywhere() {
        const CELLS: u64 = 32;
        for len in [10_007, 65_536, 300_000] {
            let mut counts = [[0u32; CELLS as usize]; CELLS as usize];
            let order = Order::shuffled(len, 5, 1);
            for position in 0..len {
                let sample = order.sample_at(position);
                counts[(position * CELLS / len) as usize][(sample * CELLS / len) as usize] += 1;
            }
            let expected = len as f64 / (CELLS * CELLS) as f64;
            let chi_square: f64 = counts
                .iter()
                .flatten()
                .map(|count| (f64::from(*count) - expected).powi(2) / expected)
                .sum();
            let freedom = (CELLS as f64 - 1.0).powi(2);
            let deviations = (chi_square - freedom).abs() / (2.0 * freedom).sqrt();
            assert!(deviations < 5.0, "{len}: {chi_square}");
        }
    }

    /// Successive samples are no closer than expected at random: chi-square over the distance from
    /// one sample to the next, modulo the length, in 64 cells.
    #[test]
    fn neighbours_in_the_order_are_no_neighbours_among_the_samples() {
        const LEN: u64 = 100_003;
        let order = Order::shuffled(LEN, 8, 3);
        let mut counts = [0u32; 64];
        for position in 1..LEN {
            let (last, next) = (order.sample_at(position - 1), order.sample_at(position));
            counts[((next + LEN - last) % LEN * 64 / LEN) as usize] += 1;
        }
        let expected = (LEN - 1) as f64 / 64.0;
        let chi_square: f64 =
            counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
        // 63 degrees of freedom: 999 of 1000 fair shuffles stay below 103.4.
        assert!(chi_square < 103.4, "{chi_square}");
    }

    /// Adjacent and distant positions, near 2^40: no sample occurs twice, and all positions are
    /// recovered.
    #[test]
    fn samples_of_lengths_near_a_trillion_are_distinct() {
        for len in [(1u64 << 40) - 87, 1 << 40, (1 << 40) + 1] {
            let order = Order::shuffled(len, 21, 6);
            let apart = (0..10_000).map(|step| len / 10_000 * step + 20_000);
            let mut samples: Vec<u64> = (0..10_000)
                .chain(apart)
                .chain(len - 10_000..len)
                .map(|position| {
                    let sample = order.sample_at(position);
                    assert_eq!(order.position_of(sample), position, "len {len}");
                    sample
                })
                .collect();
            assert!(samples.iter().all(|sample| *sample < len));
            samples.sort_unstable();
            samples.dedup();
            assert_eq!(samples.len(), 30_000, "len {len}");
        }
    }

    /// Chi-square over the 24 orders of four samples, 23 degrees of freedom; 999 of 1000 fair
    /// shuffles stay below 49.73.
    #[test]
    fn every_order_of_four_samples_is_equally_frequent() {
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..4800 {
            let order = Order::shuffled(4, seed, 0);
            *counts.entry([0, 1, 2, 3].map(|at| order.sample_at(at))).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        let chi_square: f64 =
            counts.values().map(|count| (f64::from(*count) - 200.0).powi(2) / 200.0).sum();
        assert!(chi_square < 49.73, "{chi_square}");
    }

    #[test]
    fn seeds_and_epochs_give_different_orders() {
        let samples = |seed, epoch| {
            let order = Order::shuffled(1000, seed, epoch);
            (0..1000).map(|at| order.sample_at(at)).collect::<Vec<_>>()
        };
        let base = samples(1, 0);
        assert_eq!(base, samples(1, 0));
        for other in [samples(2, 0), samples(1, 1), samples(1 << 32 | 1, 0)] {
            // A fair permutation keeps one sample in place on average.
            let kept = base.iter().zip(&other).filter(|(a, b)| a == b).count();
            assert!(kept < 10, "{kept} of 1000 samples keep their position");
        }
    }

    #[test]
    fn a_sequential_order_is_the_identity() {
        let order = Order::sequential(5);
        assert_eq!((0..5).map(|at| order.sample_at(at)).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(order.position_of(3), 3);
        assert!(Order::sequential(0).is_empty());
        assert!(Order::shuffled(0, 1, 1).is_empty());
    }

    #[test]
    #[should_panic(expected = "5 is not below the 5 samples")]
    fn a_position_past_the_end_panics() {
        Order::shuffled(5, 0, 0).sample_at(5);
    }
}
