//! Paces transfers without an engine: copies into shared memory that emulates a device's memory.

use super::{Achieved, Direction, Lead, Pace, Pacer, WaitDecision};
use std::time::{Duration, Instant};

/// Longest sleep between two calls of `go_on`.
pub const SLICE_MAX: Duration = Duration::from_millis(20);

/// Delays a thread until a device of a given pace would have finished.
#[derive(Debug)]
pub struct Throttle {
    since: Instant,
    pacer: Pacer,
    lead: Lead,
    achieved: Achieved,
}

impl Throttle {
    /// An idle device.
    pub fn new(pace: Pace) -> Self {
        Self {
            since: Instant::now(),
            pacer: Pacer::new(pace),
            lead: Lead::default(),
            achieved: Achieved::default(),
        }
    }

    /// Begins a command and returns its start. Work from here on, such as the copy, counts towards
    /// its time.
    pub fn begin(&mut self) -> Duration {
        self.lead.device_time(self.since.elapsed())
    }

    /// Waits until the device would have completed a command of `bytes` that began at `begun`, and
    /// returns `true`; or returns `false` as soon as `go_on` does, which is called every
    /// [`SLICE_MAX`].
    pub fn finish(
        &mut self,
        begun: Duration,
        direction: Direction,
        bytes: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> bool {
        let times = self.pacer.command(begun, direction, bytes);
        let mut slept = false;
        loop {
            let clock = self.since.elapsed();
            match self.lead.reach(clock, times.due, slept) {
                WaitDecision::Reached => {
                    let over = self.lead.device_time(clock).max(times.due);
                    self.achieved.enter(direction, bytes, times, over);
                    return true;
                }
                WaitDecision::SleepUntil(until) => {
                    if !go_on() {
                        return false;
                    }
                    std::thread::sleep((until - clock).min(SLICE_MAX));
                    slept = true;
                }
            }
        }
    }

    /// The pace achieved so far.
    pub fn achieved(&self) -> Achieved {
        self.achieved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_takes_at_least_its_time_less_what_may_run_ahead() {
        let pace = Pace { write_bytes_per_second: Some(1_000_000), ..Pace::default() };
        let mut throttle = Throttle::new(pace);
        let start = Instant::now();
        for _ in 0..10 {
            let begun = throttle.begin();
            assert!(throttle.finish(begun, Direction::Write, 1000, &mut || true));
        }
        assert!(start.elapsed() >= Duration::from_millis(10) - crate::slow::LEAD_MAX);
        let achieved = throttle.achieved().write;
        assert_eq!((achieved.commands, achieved.bytes), (10, 10_000));
        assert!(achieved.bytes_per_second().unwrap() <= 1_000_000.0);
    }

    #[test]
    fn a_delayed_thread_can_be_interrupted() {
        let pace = Pace { latency: Duration::from_secs(3600), ..Pace::default() };
        let mut throttle = Throttle::new(pace);
        let begun = throttle.begin();
        let mut asked = 0;
        let went_on = throttle.finish(begun, Direction::Write, 0, &mut || {
            asked += 1;
            asked < 3
        });
        assert!(!went_on);
        assert_eq!(asked, 3);
    }
}
