//! Executes `random_apply`, `random_choice` and `random_order`, which choose the contained
//! operations to execute for a sample, and their order.

use crate::random::shuffle;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{RandomApply, RandomChoice, RandomOrder};
use std::fmt::Debug;

/// An operation that contains others.
pub(crate) trait Choice: Debug + Send + Sync {
    /// Selects, from the numbers of the contained operations, those to execute, in order.
    fn choose<'a>(&self, draws: &mut Draws, content: &'a mut [u8]) -> &'a [u8];
}

impl Choice for RandomApply {
    fn choose<'a>(&self, draws: &mut Draws, content: &'a mut [u8]) -> &'a [u8] {
        if draws.chance(self.p) { content } else { &[] }
    }
}

impl Choice for RandomChoice {
    fn choose<'a>(&self, draws: &mut Draws, content: &'a mut [u8]) -> &'a [u8] {
        let weight = |index: usize| self.p.get(index).copied().unwrap_or(1.0);
        let total = (0..content.len()).fold(0.0, |sum, index| sum + weight(index));
        let position = draws.uniform() * total;
        let mut sum = 0.0;
        let mut chosen = 0;
        for index in (0..content.len()).filter(|index| weight(*index) > 0.0) {
            sum += weight(index);
            chosen = index;
            if position < sum {
                break;
            }
        }
        &content[chosen..=chosen]
    }
}

impl Choice for RandomOrder {
    fn choose<'a>(&self, draws: &mut Draws, content: &'a mut [u8]) -> &'a [u8] {
        shuffle(content, draws);
        content
    }
}

#[cfg(test)]
mod tests {
    use super::Choice;
    use meetpoint_format::random::{DrawKey, Draws};
    use meetpoint_format::recipe::{
        Operation, RandomApply, RandomChoice, RandomInvert, RandomOrder,
    };
    use std::collections::BTreeMap;

    const SAMPLES: u64 = 24_000;

    fn operations(count: usize) -> Vec<Operation> {
        vec![RandomInvert { p: 0.5 }.into(); count]
    }

    /// Counts how often each list is chosen from the numbers 5, 6, ….
    fn counts(choice: &dyn Choice, count: u8) -> BTreeMap<Vec<u8>, u64> {
        let mut counts = BTreeMap::new();
        for sample in 0..SAMPLES {
            let key = DrawKey { seed: 1, epoch: 0, sample, operation: 4 };
            let mut content: Vec<u8> = (5..5 + count).collect();
            let chosen = choice.choose(&mut Draws::new(key), &mut content).to_vec();
            *counts.entry(chosen).or_insert(0) += 1;
        }
        counts
    }

    /// Chi-square statistic of counts against expected shares.
    fn chi_square(counts: &BTreeMap<Vec<u8>, u64>, shares: &[(Vec<u8>, f64)]) -> f64 {
        assert_eq!(counts.len(), shares.len(), "{counts:?}");
        let of = |(chosen, share): &(Vec<u8>, f64)| {
            let expected = share * SAMPLES as f64;
            (counts[chosen] as f64 - expected).powi(2) / expected
        };
        shares.iter().map(of).sum()
    }

    /// The 0.999 quantile of the chi-square distribution is 10.83 for 1, 13.82 for 2 and 20.52 for
    /// 5 degrees of freedom.
    #[test]
    fn what_is_chosen_has_the_shares_that_the_keys_say() {
        let apply = RandomApply { operations: operations(2), p: 0.3 };
        let shares = [(vec![], 0.7), (vec![5, 6], 0.3)];
        assert!(chi_square(&counts(&apply, 2), &shares) < 10.83);

        let weighted = RandomChoice { operations: operations(4), p: vec![1.0, 0.0, 2.5, 0.5] };
        let shares = [(vec![5], 0.25), (vec![7], 0.625), (vec![8], 0.125)];
        assert!(chi_square(&counts(&weighted, 4), &shares) < 13.82);

        let plain = RandomChoice { operations: operations(3), p: vec![] };
        let shares = [5, 6, 7].map(|number| (vec![number], 1.0 / 3.0));
        assert!(chi_square(&counts(&plain, 3), &shares) < 13.82);

        let order = RandomOrder { operations: operations(3) };
        let orders = [[5, 6, 7], [5, 7, 6], [6, 5, 7], [6, 7, 5], [7, 5, 6], [7, 6, 5]];
        let shares = orders.map(|order| (order.to_vec(), 1.0 / 6.0));
        assert!(chi_square(&counts(&order, 3), &shares) < 20.52);
    }
}
