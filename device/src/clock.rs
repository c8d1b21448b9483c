//! CPU time of a thread, and durations as numbers.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).expect("CPU time is not negative");
    let nanoseconds = u32::try_from(time.tv_nsec).expect("nanoseconds are below a second");
    Duration::new(seconds, nanoseconds)
}

/// A duration in nanoseconds.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("a run is shorter than 584 years")
}
