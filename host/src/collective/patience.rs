//! Timeouts of waits for other ranks.
//!
//! Only time in which this process ran counts: after all ranks were stopped together (Ctrl-Z, a
//! debugger, a paused machine), no rank times out.

use std::time::{Duration, Instant};

/// Maximum time counted between two polls: a running process polls more often.
const BETWEEN_LOOKS_MAX: Duration = Duration::from_secs(1);

/// One wait for some ranks.
#[derive(Debug)]
pub(super) struct Patience {
    looked: Instant,
    waited: Duration,
    /// Per rank: the number of its heartbeats so far, and the time waited at the last one.
    heard: Vec<(u64, Duration)>,
}

impl Patience {
    /// Begins a wait. `signs`: the number of heartbeats of each rank so far.
    pub(super) fn new(signs: &[u64]) -> Self {
        let heard = signs.iter().map(|&signs| (signs, Duration::ZERO)).collect();
        Self { looked: Instant::now(), waited: Duration::ZERO, heard }
    }

    /// Counts the time since the last poll.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        let passed = now.saturating_duration_since(std::mem::replace(&mut self.looked, now));
        self.pass(passed);
    }

    fn pass(&mut self, passed: Duration) {
        self.waited += passed.min(BETWEEN_LOOKS_MAX);
    }

    /// Time waited since the last heartbeat of a rank, whose count is now `signs`.
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
    fn a_sign_of_life_restarts_the_wait_for_that_rank() {
        let mut patience = Patience::new(&[4, 0]);
        let slice = Duration::from_millis(100);
        (0..5).for_each(|_| patience.pass(slice));
        assert_eq!([patience.silent(0, 4), patience.silent(1, 0)], [5 * slice; 2]);
        assert_eq!(patience.silent(0, 5), Duration::ZERO);
        patience.pass(slice);
        assert_eq!([patience.silent(0, 5), patience.silent(1, 0)], [slice, 6 * slice]);
    }

    #[test]
    fn time_in_which_the_process_was_stopped_does_not_count() {
        let mut patience = Patience::new(&[0]);
        patience.pass(Duration::from_secs(3600));
        assert_eq!(patience.silent(0, 0), BETWEEN_LOOKS_MAX);
    }
}
