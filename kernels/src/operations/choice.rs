//! Executes `random_apply`, `random_choice` and `random_order`: which of the operations that they
//! contain are executed for a sample, and in which order.

use crate::random::shuffle;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{RandomApply, RandomChoice, RandomOrder};
use std::fmt::Debug;

/// An operation that contains others.
pub(crate) trait Choice: Debug + Send + Sync {
    /// The numbers of those that are executed, in order, of the numbers of all that it contains.
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
