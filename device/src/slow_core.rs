//! The emulated core outside of a device, to measure how well this machine can emulate it.
//!
//! Work runs in the calling thread on the core that a device would use, and sleeps as its worker
//! does. Everything that can falsify the result is measured with it.

use crate::clock::thread_cpu_time;
use crate::governor::{CpuThrottle, WakeUps};
use crate::{Error, cores};
use meetpoint_link::Emulation;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The calling thread as an emulated core.
#[derive(Debug)]
pub struct SlowCore {
    throttle: CpuThrottle,
    core: Option<usize>,
    notice: Option<String>,
    begun: Instant,
    begun_cpu: Duration,
    begun_steal: Option<Duration>,
}

/// What a thread used of its core, and what disturbed it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CoreUse {
    /// Time that it ran.
    pub wall: Duration,
    /// CPU time in it.
    pub cpu: Duration,
    /// Time in which it neither computed nor slept for the emulation: another thread had the core.
    pub contention: Duration,
    /// Time that the hypervisor took from the core, in steps of 10 ms; `None` if the kernel does
    /// not report it, or if the thread is not bound to a core.
    pub steal: Option<Duration>,
    /// Sleeps of the emulation.
    pub sleeps: u64,
    /// Mean time by which it woke up too late.
    pub late_mean: Duration,
    /// The longest of these times.
    pub late_max: Duration,
}

impl CoreUse {
    /// The share of the core that it used.
    pub fn share(&self) -> f64 {
        let wall = self.wall.as_secs_f64();
        if wall > 0.0 { self.cpu.as_secs_f64() / wall } else { 0.0 }
    }
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
        Ok(Self {
            throttle: CpuThrottle::new(emulation.targets.cpu_ratio, Arc::default()),
            core: choice.core,
            notice: choice.notice,
            begun: Instant::now(),
            begun_cpu: thread_cpu_time(),
            begun_steal: choice.core.and_then(core_steal),
        })
    }

    /// The core that it is bound to.
    pub fn core(&self) -> Option<usize> {
        self.core
    }

    /// Why its measurements are not valid, if it shares a core.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
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
        let WakeUps { count, slept, late, late_max } = self.throttle.wake_ups();
        let steal = self.core.and_then(core_steal).zip(self.begun_steal);
        CoreUse {
            wall,
            cpu,
            contention: wall.saturating_sub(cpu).saturating_sub(slept),
            steal: steal.map(|(now, begun)| now.saturating_sub(begun)),
            sleeps: count,
            late_mean: late / u32::try_from(count.max(1)).unwrap_or(u32::MAX),
            late_max,
        }
    }
}

/// Time that the hypervisor has taken from a core since the machine started.
pub fn core_steal(core: usize) -> Option<Duration> {
    steal_in(&std::fs::read_to_string("/proc/stat").ok()?, core)
}

/// From the content of `/proc/stat`: field 8 of the core, in 1/100 s (proc_stat(5)).
fn steal_in(stat: &str, core: usize) -> Option<Duration> {
    let name = format!("cpu{core} ");
    let fields = stat.lines().find_map(|line| line.strip_prefix(&name))?;
    let ticks: u64 = fields.split_whitespace().nth(7)?.parse().ok()?;
    Some(Duration::from_millis(ticks.checked_mul(10)?))
}

#[cfg(test)]
mod tests {
    use super::{SlowCore, steal_in};
    use meetpoint_link::{Emulation, Targets};
    use std::time::Duration;

    #[test]
    fn the_steal_of_a_core_is_read_from_its_line() {
        let stat =
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu1 1 2 3 4 5 6 7 81 0 0\ncpu10 1 2 3 4 5 6 7 5 0 0\n";
        assert_eq!(steal_in(stat, 1), Some(Duration::from_millis(810)));
        assert_eq!(steal_in(stat, 10), Some(Duration::from_millis(50)));
        assert_eq!(steal_in(stat, 2), None);
        assert_eq!(steal_in("cpu1 1 2 3\n", 1), None);
        assert_eq!(steal_in(&format!("cpu1 0 0 0 0 0 0 0 {}\n", u64::MAX), 1), None);
    }

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
        assert!(used.cpu >= Duration::from_millis(20), "{used:?}");
        assert!(used.cpu + used.contention <= used.wall, "{used:?}");
        assert!(used.late_mean <= used.late_max, "{used:?}");
        // However busy the machine is, a governed thread never gets more than its share.
        assert!(used.share() <= 0.55, "{used:?}");
    }
}
