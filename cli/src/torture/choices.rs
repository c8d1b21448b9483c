//! Seeded choices: the same numbers for the same seed and job on every machine.

use meetpoint_format::split_mix::{SplitMix64, mix};

/// The random choices of one job.
#[derive(Debug, Clone)]
pub(super) struct Choices {
    random: SplitMix64,
}

impl Choices {
    /// The choices of a job of a campaign.
    pub(super) fn new(seed: u64, job: u64) -> Self {
        Self { random: SplitMix64::new(mix(seed ^ mix(job.wrapping_add(0x2545_f491_4f6c_dd1d)))) }
    }

    /// Uniform in `low..=high`; the bias of the multiplication does not matter here.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = u128::from(high - low) + 1;
        low + ((span * u128::from(self.random.next_u64())) >> 64) as u64
    }

    /// As [`Self::between`], for small numbers.
    pub(super) fn small(&mut self, low: u32, high: u32) -> u32 {
        u32::try_from(self.between(low.into(), high.into())).expect("between two of 32 bits")
    }

    /// True in `percent` of 100 cases.
    pub(super) fn is_one_of_100(&mut self, percent: u64) -> bool {
        self.between(0, 99) < percent
    }

    /// One of the values, each equally likely.
    pub(super) fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.between(0, values.len() as u64 - 1) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Choices;

    #[test]
    fn choices_follow_from_seed_and_job_and_reach_both_ends() {
        let draw = |seed, job| {
            let mut choices = Choices::new(seed, job);
            (0..200).map(|_| choices.between(3, 7)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
        let mut all = draw(9, 9);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all, [3, 4, 5, 6, 7]);
        assert_eq!(Choices::new(0, 0).between(u64::MAX, u64::MAX), u64::MAX);
    }
}
