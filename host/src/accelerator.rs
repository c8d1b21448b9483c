//! The consumer of batches: an emulated accelerator, or none.

use crate::clock::{duration_ns, monotonic_ns, sleep_until};
use crate::stop::WAIT_SLICE;
use crate::{Batch, StopHandle};
use std::num::NonZero;
use std::time::Duration;

/// Something that trains on batches, one step at a time.
pub trait Accelerator {
    /// One step. Returns when it is done, or when it no longer needs the batch and continues until
    /// [`Self::finish`] or the next step.
    fn step(&mut self, batch: &Batch);

    /// Waits for the last step of an epoch.
    fn finish(&mut self) {}
}

/// Takes no time, so that only the loader is measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Null;

impl Accelerator for Null {
    fn step(&mut self, _batch: &Batch) {}
}

/// Takes a given time and no CPU, like a GPU from the host's point of view.
#[derive(Debug, Clone)]
pub struct Emulated {
    step: Duration,
    stop: StopHandle,
}

impl Emulated {
    /// An accelerator whose steps take `step`; `stop` interrupts a step.
    ///
    /// Sets the timer slack of the calling thread, which delays its wake-ups, to 1 ns.
    pub fn new(step: Duration, stop: StopHandle) -> Self {
        end_sleeps_on_time();
        Self { step, stop }
    }
}

impl Accelerator for Emulated {
    fn step(&mut self, _batch: &Batch) {
        sleep_for(self.step, &self.stop);
    }
}

/// Sets the timer slack of the calling thread to 1 ns.
pub(crate) fn end_sleeps_on_time() {
    // With the default slack, steps end 50 µs late; nothing else changes.
    let _ = rustix::thread::set_current_timer_slack(NonZero::new(1));
}

fn sleep_for(time: Duration, stop: &StopHandle) {
    wait_until(monotonic_ns().saturating_add(duration_ns(time)), stop);
}

/// Sleeps in slices until a time of the monotonic clock or the stop.
pub(crate) fn wait_until(deadline: u64, stop: &StopHandle) {
    loop {
        let now = monotonic_ns();
        if now >= deadline || stop.is_stopped() {
            return;
        }
        sleep_until(deadline.min(now + duration_ns(WAIT_SLICE)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::time::{ClockId, clock_gettime};

    #[test]
    fn a_step_takes_its_time_and_no_cpu() {
        let thread_cpu = || clock_gettime(ClockId::ThreadCPUTime);
        let (before, cpu_before) = (monotonic_ns(), thread_cpu());
        sleep_for(Duration::from_millis(150), &StopHandle::new());
        let (after, cpu_after) = (monotonic_ns(), thread_cpu());
        assert!(after - before >= 150_000_000);
        let cpu_ns = (cpu_after.tv_sec - cpu_before.tv_sec) * 1_000_000_000
            + (cpu_after.tv_nsec - cpu_before.tv_nsec);
        assert!(cpu_ns < 75_000_000, "{cpu_ns} ns of CPU");
    }

    #[test]
    fn a_stop_cuts_a_step_short() {
        let stop = StopHandle::new();
        stop.stop();
        sleep_for(Duration::from_secs(3600), &stop);
    }
}
