//! Random selections: seeded choices among samples, of all or by label, in little memory.
//!
//! Every stratum (all samples, or those of one label) has a separate permutation ([`Order`]), and a
//! sample belongs to the owner of its position. No state is stored for a sample, so a selection
//! takes a few bytes per label for any number of samples.

use crate::Error;
use crate::error::OperationError;
use crate::share::Share;
use meetpoint_diagnose::Setting;
use meetpoint_format::order::Order;
use meetpoint_prepare::Dataset;

/// Divides each stratum among parts, by largest remainder.
///
/// Every part gets its quota of every stratum rounded down or up. The parts with the largest
/// shortfall over all strata so far are rounded up, so the sizes of the parts differ by about one
/// sample from those without strata. Ties go to the part named first.
pub(super) fn apportion(strata: &[u64], shares: &[Share]) -> Vec<Vec<u64>> {
    let all: i128 = shares.iter().map(|share| i128::from(share.0)).sum();
    let mut short = vec![0_i128; shares.len()];
    let divide = |count: &u64| {
        let mut sizes = Vec::with_capacity(shares.len());
        let mut rest = *count;
        let mut may_have_more = Vec::new();
        for (part, share) in shares.iter().enumerate() {
            let quota = i128::from(*count) * i128::from(share.0);
            let whole = u64::try_from(quota / all).expect("at most count");
            sizes.push(whole);
            rest -= whole;
            short[part] += quota % all;
            if quota % all > 0 {
                may_have_more.push(part);
            }
        }
        may_have_more.sort_by_key(|part| (std::cmp::Reverse(short[*part]), *part));
        for part in may_have_more.into_iter().take(usize::try_from(rest).expect("below parts")) {
            sizes[part] += 1;
            short[part] -= all;
        }
        sizes
    };
    strata.iter().map(divide).collect()
}

/// Strata of a dataset: all samples in one, or one for each label and one for those without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Strata {
    /// Number of samples of each; by label, then those without a label.
    pub(super) counts: Vec<u64>,
    is_by_label: bool,
}

impl Strata {
    /// A single stratum of all samples.
    pub(super) fn whole(dataset: &Dataset) -> Self {
        Self { counts: vec![dataset.len()], is_by_label: false }
    }

    /// Strata by label, as requested by `option`; reads the labels once, and refuses a dataset
    /// without labels.
    pub(super) fn by_label(dataset: &Dataset, option: Setting) -> Result<Self, Error> {
        let mut counts = vec![0; dataset.manifest().labels.len() + 1];
        for sample in 0..dataset.len() {
            counts[stratum_of(dataset, sample)?] += 1;
        }
        let (_, labelled) = counts.split_last().expect("those without a label have a place");
        if labelled.iter().all(|count| *count == 0) {
            let path = dataset.path().to_path_buf();
            return Err(OperationError::NoLabels { path, option }.into());
        }
        Ok(Self { counts, is_by_label: true })
    }

    /// Yields the samples in order, each with its stratum and its position in the permutation of
    /// the stratum.
    pub(super) fn places<'a>(
        &self,
        dataset: &'a Dataset,
        seed: u64,
    ) -> impl Iterator<Item = Result<NewPosition, Error>> + use<'a> {
        let orders: Vec<Order> = (0..)
            .zip(&self.counts)
            .map(|(stratum, count)| Order::shuffled(*count, seed, stratum))
            .collect();
        let mut seen = vec![0_u64; orders.len()];
        let is_by_label = self.is_by_label;
        (0..dataset.len()).map(move |sample| {
            let stratum = if is_by_label { stratum_of(dataset, sample)? } else { 0 };
            let place = orders[stratum].position_of(seen[stratum]);
            seen[stratum] += 1;
            Ok(NewPosition { sample, stratum, place })
        })
    }
}

/// The new position of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NewPosition {
    pub(super) sample: u64,
    pub(super) stratum: usize,
    /// Below the stratum's count.
    pub(super) place: u64,
}

fn stratum_of(dataset: &Dataset, sample: u64) -> Result<usize, Error> {
    let label = dataset.locate(sample)?.label;
    let index = label.and_then(|label| usize::try_from(label).ok());
    Ok(index.unwrap_or(dataset.manifest().labels.len()))
}

#[cfg(test)]
mod tests {
    use super::{Share, apportion};
    use proptest::prelude::*;

    fn shares(texts: &[&str]) -> Vec<Share> {
        texts.iter().map(|text| Share::parse(text).unwrap()).collect()
    }

    #[test]
    fn sizes_are_those_of_the_largest_remainder() {
        // Computed by hand: quotas 2.5, 1.5, 1 of 5.
        assert_eq!(apportion(&[5], &shares(&["0.5", "0.3", "0.2"])), [[3, 1, 1]]);
        assert_eq!(apportion(&[10_000], &shares(&["0.3", "0.3", "0.4"])), [[3000, 3000, 4000]]);
        // Quotas 0.8 and 0.2 of each of five classes with one sample: four to one, not five to
        // none.
        let parts = apportion(&[1; 5], &shares(&["0.8", "0.2"]));
        assert_eq!(parts.iter().map(|sizes| sizes[1]).sum::<u64>(), 1);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_every_quota_is_met_to_one(
            strata in proptest::collection::vec(0_u64..1000, 0..40),
            billionths in proptest::collection::vec(1_u64..2_000_000_000, 1..6),
        ) {
            let shares: Vec<Share> = billionths.iter().copied().map(Share).collect();
            let all: f64 = billionths.iter().map(|share| *share as f64).sum();
            let parts = apportion(&strata, &shares);
            let mut sums = vec![0; shares.len()];
            for (count, sizes) in strata.iter().zip(&parts) {
                prop_assert_eq!(sizes.iter().sum::<u64>(), *count);
                for (part, size) in sizes.iter().enumerate() {
                    let quota = *count as f64 * billionths[part] as f64 / all;
                    prop_assert!((*size as f64 - quota).abs() < 1.0 + 1e-6);
                    sums[part] += size;
                }
            }
            let samples: u64 = strata.iter().sum();
            for (part, sum) in sums.into_iter().enumerate() {
                let quota = samples as f64 * billionths[part] as f64 / all;
                prop_assert!((sum as f64 - quota).abs() < shares.len() as f64 + 1e-6);
            }
        }
    }
}
