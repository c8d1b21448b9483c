//! The clocks of this machine, in nanoseconds.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

/// `CLOCK_MONOTONIC`: the same for every process of the machine.
pub fn monotonic_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Monotonic))
}

/// CPU time of all threads of this process since it began.
pub fn process_cpu_ns() -> u64 {
    to_ns(clock_gettime(ClockId::ProcessCPUTime))
}

/// CPU time of this thread since it began.
pub fn thread_cpu_ns() -> u64 {
    to_ns(clock_gettime(ClockId::ThreadCPUTime))
}

/// A duration in nanoseconds, saturating at 64 bits.
pub fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Sleeps until a time of [`monotonic_ns`]. A signal may end it early.
pub(crate) fn sleep_until(deadline_ns: u64) {
    let deadline = Timespec {
        tv_sec: i64::try_from(deadline_ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(deadline_ns % 1_000_000_000).expect("less than a second"),
    };
    // If the sleep is interrupted or fails, the caller checks the clock and sleeps again.
    let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &deadline);
}

fn to_ns(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).expect("these clocks begin at zero");
    let rest = u64::try_from(time.tv_nsec).expect("nanoseconds are not negative");
    seconds * 1_000_000_000 + rest
}
