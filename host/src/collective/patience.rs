//! How long other ranks have been waited for in vain.
//!
//! Only time in which this process ran counts: after all were stopped together (Ctrl-Z, a debugger,
//! a machine that was paused) nobody is given up for what nobody could do.

use std::time::{Duration, Instant};

/// More time than this between two looks was not waited: whoever waits looks more often.
const BETWEEN_LOOKS_MAX: Duration = Duration::from_secs(1);

/// One wait for some ranks.
#[derive(Debug)]
pub(super) struct Patience {
    looked: Instant,
    waited: Duration,
    /// Of each rank: its signs of life so far, and what had been waited when the last one came.
    heard: Vec<(u64, Duration)>,
}

impl Patience {
    /// Begins to wait. `signs`: those of each rank until now.
    pub(super) fn new(signs: &[u64]) -> Self {
        let heard = signs.iter().map(|&signs| (signs, Duration::ZERO)).collect();
        Self { looked: Instant::now(), waited: Duration::ZERO, heard }
    }

    /// Counts the time since the last look.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        let passed = now.saturating_duration_since(std::mem::replace(&mut self.looked, now));
        self.pass(passed);
    }

    fn pass(&mut self, passed: Duration) {
        self.waited += passed.min(BETWEEN_LOOKS_MAX);
    }

    /// How long was waited since a rank last gave a sign of life, of which there are so many now.
    pub(super) fn silent(&mut self, rank: usize, signs: u64) -> Duration {
        let (known, since) = &mut self.heard[rank];
        if std::mem::replace(known, signs) != signs {
            *since = self.waited;
        }
        self.waited - *since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_of_life_begins_the_wait_for_that_rank_anew() {
        let mut patience = Patience::new(&[4, 0]);
        let slice = Duration::from_millis(100);
        (0..5).for_each(|_| patience.pass(slice));
        assert_eq!([patience.silent(0, 4), patience.silent(1, 0)], [5 * slice; 2]);
        assert_eq!(patience.silent(0, 5), Duration::ZERO);
        patience.pass(slice);
        assert_eq!([patience.silent(0, 5), patience.silent(1, 0)], [slice, 6 * slice]);
    }

    #[test]
    fn time_in_which_the_process_stood_still_is_not_waited() {
        let mut patience = Patience::new(&[0]);
        patience.pass(Duration::from_secs(3600));
        assert_eq!(patience.silent(0, 0), BETWEEN_LOOKS_MAX);
    }
}
