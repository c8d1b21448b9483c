//! Timeouts of waits for other ranks.
//!
//! Only time in which this process ran counts: after all ranks were stopped together (Ctrl-Z, a
//! debugger, a paused machine), no rank times out.

use std::time::{Duration, Instant};

/// Maximum time counted between two polls: a running process polls more often.
const BETWEEN_POLLS_MAX: Duration = Duration::from_secs(1);

/// One wait for some ranks.
#[derive(Debug)]
pub(super) struct RankWait {
    polled: Instant,
    waited: Duration,
    /// Per rank: the number of its heartbeats so far, and the time waited at the last one.
    heard: Vec<(u64, Duration)>,
}

impl RankWait {
    /// Begins a wait. `heartbeats`: the number of heartbeats of each rank so far.
    pub(super) fn new(heartbeats: &[u64]) -> Self {
        let heard = heartbeats.iter().map(|&heartbeats| (heartbeats, Duration::ZERO)).collect();
        Self { polled: Instant::now(), waited: Duration::ZERO, heard }
    }

    /// Counts the time since the last poll.
    pub(super) fn poll(&mut self) {
        let now = Instant::now();
        let passed = now.saturating_duration_since(std::mem::replace(&mut self.polled, now));
        self.pass(passed);
    }

    fn pass(&mut self, passed: Duration) {
        self.waited += passed.min(BETWEEN_POLLS_MAX);
    }

    /// Time waited since the last heartbeat of a rank, whose count is now `heartbeats`.
    pub(super) fn silent(&mut self, rank: usize, heartbeats: u64) -> Duration {
        let (known, since) = &mut self.heard[rank];
        if std::mem::replace(known, heartbeats) != heartbeats {
            *since = self.waited;
        }
        self.waited - *since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_restarts_the_wait_for_that_rank() {
        let mut wait = RankWait::new(&[4, 0]);
        let slice = Duration::from_millis(100);
        (0..5).for_each(|_| wait.pass(slice));
        assert_eq!([wait.silent(0, 4), wait.silent(1, 0)], [5 * slice; 2]);
        assert_eq!(wait.silent(0, 5), Duration::ZERO);
        wait.pass(slice);
        assert_eq!([wait.silent(0, 5), wait.silent(1, 0)], [slice, 6 * slice]);
    }

    #[test]
    fn time_in_which_the_process_was_stopped_does_not_count() {
        let mut wait = RankWait::new(&[0]);
        wait.pass(Duration::from_secs(3600));
        assert_eq!(wait.silent(0, 0), BETWEEN_POLLS_MAX);
    }
}
