//! The emulated core outside of a device, to measure how well this machine can emulate it.
//!
//! Work runs in the calling thread on the core that a device would use, and sleeps as its worker
//! does. Everything that can distort the result is measured too.

use crate::clock::thread_cpu_time;
use crate::disturbance::KernelCounters;
use crate::governor::CpuThrottle;
use crate::meters::core_use;
use crate::{Error, ServeNotice, cores};
use meetpoint_link::{CoreUse, Emulation};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The calling thread as an emulated core.
#[derive(Debug)]
pub struct SlowCore {
    throttle: CpuThrottle,
    core: Option<usize>,
    notice: Option<ServeNotice>,
    begun: Instant,
    begun_cpu: Duration,
}

impl SlowCore {
    /// Binds the calling thread to the core of the emulation, and slows it down from now on.
    ///
    /// Refuses values outside their ranges, a core that this process may not use, and to share the
    /// only core unless [`Emulation::allow_shared`] is set.
    pub fn new(emulation: &Emulation) -> Result<Self, Error> {
        emulation.check()?;
        let choice = cores::choose(emulation)?;
        if let Some(core) = choice.core {
            cores::pin(core)
                .map_err(|source| Error::Process { action: "bind to a core", source })?;
        }
        let counters = KernelCounters::of_this_thread(choice.core);
        let ratio = emulation.targets.cpu_ratio;
        let mut throttle = CpuThrottle::new(ratio, Arc::default(), Some(counters));
        throttle.begin_batch();
        Ok(Self {
            throttle,
            core: choice.core,
            notice: choice.notice,
            begun: Instant::now(),
            begun_cpu: thread_cpu_time(),
        })
    }

    /// The core that it is bound to.
    pub fn core(&self) -> Option<usize> {
        self.core
    }

    /// Why its measurements are not valid, if it shares a core.
    pub fn notice(&self) -> Option<&ServeNotice> {
        self.notice.as_ref()
    }

    /// Sleeps for the work since the last call, once enough has accumulated.
    pub fn pay(&mut self) {
        self.throttle.pay(&mut || true);
    }

    /// CPU time so far.
    pub fn cpu(&self) -> Duration {
        thread_cpu_time().saturating_sub(self.begun_cpu)
    }

    /// Time so far.
    pub fn wall(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Sleeps for the rest of the work, and returns what was used.
    pub fn finish(mut self) -> CoreUse {
        self.throttle.settle(&mut || true);
        let (wall, cpu) = (self.wall(), self.cpu());
        self.throttle.end_batch();
        core_use(wall, cpu, &self.throttle.disturbances())
    }
}

#[cfg(test)]
mod tests {
    use super::SlowCore;
    use meetpoint_link::{Emulation, Targets};
    use std::time::Duration;

    #[test]
    fn every_moment_is_cpu_time_sleep_or_contention() {
        let targets = Targets { cpu_ratio: Some(0.5), ..Targets::default() };
        let emulation = Emulation { targets, allow_shared: true, memory_bytes_max: None };
        let mut core = SlowCore::new(&emulation).unwrap();
        while core.cpu() < Duration::from_millis(20) {
            std::hint::black_box(core.cpu());
            core.pay();
        }
        let used = core.finish();
        assert!(used.cpu_ns >= 20_000_000, "{used:?}");
        assert!(used.cpu_ns + used.contention_ns <= used.available_ns, "{used:?}");
        assert!(used.late_p50_ns <= used.late_p99_ns, "{used:?}");
        assert!(used.late_mean_ns.max(used.late_p99_ns) <= used.late_max_ns, "{used:?}");
        // However busy the machine is, a governed thread never gets more than its share.
        assert!(used.share() <= 0.55, "{used:?}");
    }
}
