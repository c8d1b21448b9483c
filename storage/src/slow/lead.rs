//! Decides whether to sleep until a moment, or to run ahead of the clock instead.
//!
//! A sleep takes about 50 µs too long, so a sleep for each of many short commands would make a
//! device slower than its pace. Instead, the device's time may run up to [`LEAD_MAX`] ahead of the
//! clock before a sleep, and the time by which a sleep was too long is compensated.

use std::time::Duration;

/// How far the device's time may run ahead of the clock.
pub const LEAD_MAX: Duration = Duration::from_micros(200);

/// How much oversleeping is compensated; any more lowers the achieved pace.
pub const LATE_MAX: Duration = Duration::from_millis(5);

/// How far the device's time is ahead of the clock, or behind. The clock's time is an argument.
#[derive(Debug, Clone, Default)]
pub struct Lead {
    ahead_ns: i64,
}

/// Whether a moment of the device's time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitDecision {
    /// It has, or counts as reached.
    Reached,
    /// Sleep until the clock reaches this time, then call [`Lead::reach`] again.
    SleepUntil(Duration),
}

impl Lead {
    /// The device's time at `clock`.
    pub fn device_time(&self, clock: Duration) -> Duration {
        if self.ahead_ns >= 0 {
            clock + Duration::from_nanos(self.ahead_ns.unsigned_abs())
        } else {
            clock.saturating_sub(Duration::from_nanos(self.ahead_ns.unsigned_abs()))
        }
    }

    /// Whether the moment `due` of the device's time has come. Running ahead, and compensating for
    /// a sleep that began before `due`, both move the device's time to exactly `due`.
    pub fn reach(&mut self, clock: Duration, due: Duration, slept: bool) -> WaitDecision {
        if slept && clock >= due {
            let late = (clock - due).min(LATE_MAX);
            self.ahead_ns = -nanoseconds(late);
            return WaitDecision::Reached;
        }
        if self.device_time(clock) >= due {
            return WaitDecision::Reached;
        }
        let ahead = due.saturating_sub(clock);
        if ahead < LEAD_MAX {
            self.ahead_ns = nanoseconds(due) - nanoseconds(clock);
            return WaitDecision::Reached;
        }
        WaitDecision::SleepUntil(due)
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slow::{Direction, Pace, Pacer};

    const US: Duration = Duration::from_micros(1);

    /// One command after another, with a clock whose sleeps are too long by `late`.
    fn one_by_one(pace: Pace, bytes: u64, commands: u32, late: Duration) -> (Duration, u32) {
        let (mut pacer, mut lead) = (Pacer::new(pace), Lead::default());
        let (mut clock, mut sleeps) = (Duration::ZERO, 0);
        for _ in 0..commands {
            let due = pacer.command(lead.device_time(clock), Direction::Read, bytes).due;
            let mut slept = false;
            while let WaitDecision::SleepUntil(until) = lead.reach(clock, due, slept) {
                clock = until + late;
                slept = true;
                sleeps += 1;
            }
        }
        (clock, sleeps)
    }

    #[test]
    fn short_commands_meet_their_rate_with_few_and_late_sleeps() {
        let pace = Pace { latency: 30 * US, ..Pace::default() };
        for late in [Duration::ZERO, 60 * US, 300 * US] {
            let (took, sleeps) = one_by_one(pace, 0, 10_000, late);
            let wanted = 10_000 * 30 * US;
            assert!(took.abs_diff(wanted) <= LEAD_MAX + late, "{took:?} for {wanted:?}");
            assert!(sleeps < 2000, "{sleeps} sleeps");
        }
    }

    #[test]
    fn bandwidth_is_met_with_late_sleeps() {
        let pace = Pace { read_bytes_per_second: Some(1_000_000_000), ..Pace::default() };
        let (took, _) = one_by_one(pace, 4096, 100_000, 70 * US);
        let wanted = Duration::from_nanos(4096 * 100_000);
        assert!(took.abs_diff(wanted) <= 2 * LEAD_MAX, "{took:?} for {wanted:?}");
    }

    #[test]
    fn a_very_late_sleep_is_made_up_for_only_in_part() {
        let mut lead = Lead::default();
        let due = Duration::from_millis(1);
        assert_eq!(lead.reach(Duration::ZERO, due, false), WaitDecision::SleepUntil(due));
        let clock = Duration::from_millis(100);
        assert_eq!(lead.reach(clock, due, true), WaitDecision::Reached);
        assert_eq!(lead.device_time(clock), clock - LATE_MAX);
    }

    #[test]
    fn a_moment_that_has_passed_changes_nothing() {
        let mut lead = Lead::default();
        assert_eq!(lead.reach(10 * US, 5 * US, false), WaitDecision::Reached);
        assert_eq!(lead.device_time(10 * US), 10 * US);
    }
}
