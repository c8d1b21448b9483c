//! Draws with replacement: a sample by its share of the cumulative weights, in O(1) on average.

use crate::random::{DRAW_DOMAIN, halves, join, philox4x32_10};

/// Number of positions that are looked up together.
const CHUNK: usize = 64;

/// Cumulative weights of samples, with a guide table for searches: 16 bytes for each sample.
///
/// The guide table has as many entries as there are samples: entry g is the first sample whose
/// cumulative weight exceeds g/samples of the sum (Chen and Asau, "On generating random variates
/// from an empirical distribution", 1974). It affects how fast a sample is found, never which one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cumulative {
    /// For each sample: the sum of its weight and of all before it.
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

    /// The samples at the positions from `first` on, each by 64 random bits keyed by (seed, epoch,
    /// device, position): the first sample whose cumulative weight exceeds bits · total / 2^64,
    /// rounded down.
    pub(super) fn draw(&self, first: u64, (seed, epoch, device): (u64, u32, u16), out: &mut [u64]) {
        for (chunk, start) in out.chunks_mut(CHUNK).zip((first..).step_by(CHUNK)) {
            let mut bits = [0; CHUNK];
            for (bits, position) in bits.iter_mut().zip(start..).take(chunk.len()) {
                let [low, high] = halves(position);
                let counter = [low, high, epoch, DRAW_DOMAIN | u32::from(device)];
                let [a, b, ..] = philox4x32_10(counter, halves(seed));
                *bits = join(a, b);
            }
            self.find(&bits[..chunk.len()], chunk);
        }
    }

    /// The samples of at most [`CHUNK`] values of 64 random bits. Tables exceed the CPU caches, so
    /// each step is taken for all values, to overlap their memory accesses.
    fn find(&self, bits: &[u64], samples: &mut [u64]) {
        let scaled = |bits: u64, to: u64| ((u128::from(bits) * u128::from(to)) >> 64) as u64;
        let (total, cells) = (self.total(), self.guide.len());
        let mut ranges = [(0, 0); CHUNK];
        for (range, bits) in ranges.iter_mut().zip(bits) {
            let cell = scaled(*bits, cells as u64) as usize;
            // Values of this cell do not exceed the smallest value of the next one.
            let next = self.guide[(cell + 1).min(cells - 1)];
            let end = if cell + 1 < cells { next + 1 } else { self.sums.len() };
            *range = (self.guide[cell], end);
        }
        let mut sums = [0; CHUNK];
        for (sum, (first, _)) in sums.iter_mut().zip(&ranges[..bits.len()]) {
            *sum = self.sums[*first];
        }
        for (at, (sample, bits)) in samples.iter_mut().zip(bits).enumerate() {
            let (value, (first, end)) = (scaled(*bits, total), ranges[at]);
            *sample = first as u64;
            if sums[at] <= value {
                let others = &self.sums[first + 1..end];
                *sample += 1 + others.partition_point(|sum| *sum <= value) as u64;
            }
        }
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
            let bits: Vec<u64> = bits.into_iter().chain([0, u64::MAX]).collect();
            let mut found = vec![0; bits.len()];
            cumulative.find(&bits, &mut found);
            for (bits, found) in bits.into_iter().zip(found) {
                let mut value = ((u128::from(bits) * u128::from(total)) >> 64) as u64;
                let mut expected = 0;
                while value >= weights[expected] {
                    value -= weights[expected];
                    expected += 1;
                }
                prop_assert_eq!(found, expected as u64);
            }
        }
    }
}
