//! Selects the replacement of a sample that cannot be read or decoded.
//!
//! A damaged sample's candidates are a sequence keyed (seed, epoch, sample), so host and devices
//! try the same ones in the same order; the first intact one is used. They are drawn from the whole
//! dataset, with repetition.

use crate::random::{REPLACEMENT_DOMAIN, halves, join, philox4x32_10};

/// Maximum number of candidates: if a tenth of the samples are intact, all fail once in 10^11.
pub const CANDIDATES_MAX: u32 = 256;

/// The candidates to replace a damaged sample of a dataset with `samples` samples, in order; never
/// the damaged sample itself.
///
/// Candidate *n* is the upper word of b * (samples - 1), where b is the first 64 bits of the block
/// with counter (sample, epoch, domain | n); the damaged sample is skipped when counting. A dataset
/// of one sample has no candidates.
pub fn candidates(
    seed: u64,
    epoch: u32,
    sample: u64,
    samples: u64,
) -> impl Iterator<Item = u64> + Clone {
    let others = samples.saturating_sub(1);
    let [low, high] = halves(sample);
    let tries = if others == 0 { 0 } else { CANDIDATES_MAX };
    (0..tries).map(move |number| {
        let counter = [low, high, epoch, REPLACEMENT_DOMAIN | number];
        let words = philox4x32_10(counter, halves(seed));
        let bits = join(words[0], words[1]);
        // At most `others` - 1.
        let drawn = ((u128::from(bits) * u128::from(others)) >> 64) as u64;
        drawn + u64::from(drawn >= sample)
    })
}

/// Positions of an epoch whose samples may replace a damaged one, in order: candidate *n* is the
/// upper word of b * positions, with b as in [`candidates`]. The damaged sample itself may be among
/// them.
pub fn candidates_among(
    seed: u64,
    epoch: u32,
    sample: u64,
    positions: u64,
) -> impl Iterator<Item = u64> + Clone {
    let [low, high] = halves(sample);
    let tries = if positions == 0 { 0 } else { CANDIDATES_MAX };
    (0..tries).map(move |number| {
        let counter = [low, high, epoch, REPLACEMENT_DOMAIN | number];
        let words = philox4x32_10(counter, halves(seed));
        ((u128::from(join(words[0], words[1])) * u128::from(positions)) >> 64) as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_those_of_an_implementation_of_its_own() {
        // Written by tests/golden/replacement.py, which has a separate implementation of Philox.
        let golden = include_str!("../tests/golden/replacement.txt");
        for line in golden.lines().filter(|line| !line.starts_with('#')) {
            let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
            let [seed, epoch, sample, samples, expected @ ..] = &numbers[..] else {
                panic!("{line}")
            };
            let epoch = u32::try_from(*epoch).unwrap();
            let first = candidates(*seed, epoch, *sample, *samples).take(expected.len());
            assert!(first.eq(expected.iter().copied()), "{line}");
        }
    }

    #[test]
    fn a_sample_never_replaces_itself_and_all_others_can() {
        for samples in [2_u64, 3, 10] {
            for sample in 0..samples {
                let mut times = vec![0; samples as usize];
                let all = (0..4).flat_map(|epoch| candidates(7, epoch, sample, samples));
                all.for_each(|candidate| times[candidate as usize] += 1);
                assert_eq!(times[sample as usize], 0);
                let others = (0..samples).filter(|other| *other != sample);
                assert!(others.clone().all(|other| times[other as usize] > 0), "{times:?}");
            }
        }
        assert_eq!(candidates(7, 0, 0, 1).count(), 0);
        assert_eq!(candidates(7, 0, 0, 0).count(), 0);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        assert!(candidates(u64::MAX, u32::MAX, u64::MAX - 1, u64::MAX).all(|it| it < u64::MAX));
    }
}
