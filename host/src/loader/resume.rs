//! Resumes an epoch: batches consumed earlier, perhaps by another process, stay consumed.
//!
//! The scheduler receives the remaining batches as if they were the whole epoch, so every strategy
//! works on them from both ends.

use super::{Epoch, Loader};
use crate::driver::BatchOrder;
use crate::{Error, ResumeConflict};
use meetpoint_scheduler::Record;
use std::ops::Range;

impl Loader {
    /// Begins an epoch of which the batches in `consumed` were consumed before: ranges of indices,
    /// in any order.
    ///
    /// `rest` is the value of [`Epoch::rest_record`] when the epoch was interrupted: with it the
    /// rest has its original order. Without it, a strategy that decides by measurements decides
    /// again; the remaining batches are the same in any case.
    pub fn resume_epoch(
        &mut self,
        epoch: u32,
        consumed: &[Range<u32>],
        rest: Option<Record>,
    ) -> Result<Epoch<'_>, Error> {
        self.config.stop.check()?;
        let refuse = |conflict| Err(Error::Resume { epoch, conflict });
        if self.job.batching.devices() > 1 {
            return refuse(ResumeConflict::PartsOfTheirOwn);
        }
        if self.config.choose_by_saving {
            return refuse(ResumeConflict::ChosenAtStart);
        }
        let is_outside = |range: &Range<u32>| range.start >= range.end || range.end > self.batches;
        if consumed.iter().any(is_outside) {
            return refuse(ResumeConflict::OtherBatches);
        }
        let left = left(self.batches, consumed);
        if left.is_empty() {
            return refuse(ResumeConflict::AllConsumed);
        }
        let mut config = self.schedule_config();
        config.batches = u32::try_from(left.len()).expect("no more than there are batches");
        config.replay = rest.or(config.replay);
        self.begin(epoch, config, Some(BatchOrder::rest(left, self.batches)))
    }
}

/// The indices below `batches` that are in none of the ranges.
fn left(batches: u32, consumed: &[Range<u32>]) -> Vec<u32> {
    let mut is_consumed = vec![false; batches as usize];
    for range in consumed {
        is_consumed[range.start as usize..range.end as usize].fill(true);
    }
    (0..batches).filter(|&batch| !is_consumed[batch as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::left;

    #[test]
    fn the_rest_is_the_complement() {
        assert_eq!(left(8, &[]), (0..8).collect::<Vec<u32>>());
        assert_eq!(left(8, &[6..8, 0..3, 1..2]), [3, 4, 5]);
        assert_eq!(left(3, &[0..2, 2..3]), [] as [u32; 0]);
    }
}
