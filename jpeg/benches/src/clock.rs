//! CPU time of a thread, which excludes other threads and processes.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread, in nanoseconds since it began.
pub fn thread_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
