//! Draws with replacement: a sample by its share of the cumulative weights, in O(1) on average.

use crate::random::{DRAW_DOMAIN, halves, join, philox4x32_10};

/// Cumulative weights of samples, with a guide to where a search begins: 16 bytes for each sample.
///
/// The guide has as many entries as there are samples: entry g is the first sample whose cumulative
/// weight exceeds g/samples of the sum (Chen and Asau, "On generating random variates from an
/// empirical distribution", 1974). It changes how fast a sample is found, never which.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cumulative {
    /// Of each sample: the sum of its weight and of all before it.
    sums: Vec<u64>,
    guide: Vec<usize>,
}

impl Cumulative {
    /// For weights whose sum is below 2^63.
    pub(super) fn new(weights: impl Iterator<Item = u64>) -> Self {
        let mut sum = 0;
        let sums: Vec<u64> = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        let cells = sums.len() as u128;
        let mut guide = Vec::with_capacity(sums.len());
        let mut found = 0;
        for cell in 0..cells {
            let least = cell * u128::from(sum) / cells;
            while found + 1 < sums.len() && u128::from(sums[found]) <= least {
                found += 1;
            }
            guide.push(found);
        }
        Self { sums, guide }
    }

    /// The sum of all weights.
    pub(super) fn total(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// The sample of 64 random bits: the first whose cumulative weight exceeds
    /// bits · total / 2^64, rounded down.
    pub(super) fn find(&self, bits: u64) -> u64 {
        let scaled = |to: u64| ((u128::from(bits) * u128::from(to)) >> 64) as u64;
        let value = scaled(self.total());
        let cell = scaled(self.guide.len() as u64) as usize;
        let first = self.guide[cell];
        // Values of this cell are no greater than the least of the next.
        let end = self.guide.get(cell + 1).map_or(self.sums.len(), |next| *next + 1);
        first as u64 + self.sums[first..end].partition_point(|sum| *sum <= value) as u64
    }

    /// The sample at a position, by 64 random bits keyed by (seed, epoch, device, position).
    pub(super) fn draw(&self, position: u64, seed: u64, epoch: u32, device: u16) -> u64 {
        let [low, high] = halves(position);
        let counter = [low, high, epoch, DRAW_DOMAIN | u32::from(device)];
        let [a, b, ..] = philox4x32_10(counter, halves(seed));
        self.find(join(a, b))
    }
}

#[cfg(test)]
mod tests {
    use super::Cumulative;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_guide_finds_what_a_search_from_the_beginning_finds(
            weights in prop::collection::vec(prop_oneof![Just(0), 1..5u64, 1..1u64 << 40], 1..60),
            bits in prop::collection::vec(any::<u64>(), 50),
        ) {
            prop_assume!(weights.iter().any(|weight| *weight > 0));
            let total: u64 = weights.iter().sum();
            let cumulative = Cumulative::new(weights.iter().copied());
            prop_assert_eq!(cumulative.total(), total);
            for bits in bits.into_iter().chain([0, u64::MAX]) {
                let mut value = ((u128::from(bits) * u128::from(total)) >> 64) as u64;
                let mut expected = 0;
                while value >= weights[expected] {
                    value -= weights[expected];
                    expected += 1;
                }
                prop_assert_eq!(cumulative.find(bits), expected as u64);
            }
        }
    }
}
