//! How an emulated core was used, and what disturbed it.

use meetpoint_format::wire;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How an emulated core was used while it had work. Times are in nanoseconds.
///
/// Waits for storage and delays by injected faults are left out, so all time is computing, sleep or
/// contention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CoreUse {
    /// Time in which the core could compute.
    pub available_ns: u64,
    /// CPU time within `available_ns`.
    pub cpu_ns: u64,
    /// Time within `available_ns` in which the thread neither computed nor slept for the
    /// emulation.
    pub contention_ns: u64,
    /// Time in which the thread was ready to run and another one had its core, as Linux counts it
    /// (`schedstat`); `None` if it is not measured.
    pub run_delay_ns: Option<u64>,
    /// Time that the hypervisor took from the core, in steps of 10 ms; the sum over all cores that
    /// the thread may use if it is not bound to one. `None` if it is not measured.
    pub steal_ns: Option<u64>,
    /// Number of sleeps of the emulation.
    pub sleeps: u64,
    /// Mean time by which the thread woke up late.
    pub late_mean_ns: u64,
    /// Half of the sleeps ended at most this much late.
    pub late_p50_ns: u64,
    /// 99 % of the sleeps ended at most this much late.
    pub late_p99_ns: u64,
    /// The longest of these times.
    pub late_max_ns: u64,
}

/// Why an emulated core had less than its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disturbance {
    /// The hypervisor used the core.
    Steal,
    /// Another thread used the core.
    Contention,
    /// The thread woke up late from its sleeps.
    LateWakeUps,
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Steal => "steal",
            Self::Contention => "contention",
            Self::LateWakeUps => "late wake-ups",
        })
    }
}

impl CoreUse {
    /// The achieved share of the core; 0 if there was no work.
    pub fn share(&self) -> f64 {
        match self.available_ns {
            0 => 0.0,
            available => self.cpu_ns as f64 / available as f64,
        }
    }

    /// The causes of a share below `target`, the longest disturbance first.
    ///
    /// The work then took longer than it would have at the target. A disturbance is a cause if it
    /// lasted for at least half of this additional time. Empty if the share was reached, or if no
    /// measured disturbance lasted that long.
    pub fn causes(&self, target: f64) -> Vec<Disturbance> {
        let excess = self.available_ns as f64 - self.cpu_ns as f64 / target;
        if excess <= 0.0 {
            return Vec::new();
        }
        let steal = self.steal_ns.unwrap_or(0);
        let mut all = [
            (Disturbance::Steal, steal),
            // The clocks of the thread do not show who used its core.
            (Disturbance::Contention, self.contention_ns.saturating_sub(steal)),
            (Disturbance::LateWakeUps, self.late_mean_ns.saturating_mul(self.sleeps)),
        ];
        all.sort_by_key(|(_, time_ns)| std::cmp::Reverse(*time_ns));
        let explaining = all.into_iter().filter(|(_, time_ns)| *time_ns as f64 >= excess / 2.0);
        explaining.map(|(disturbance, _)| disturbance).collect()
    }
}

impl From<CoreUse> for wire::CoreUse {
    fn from(core: CoreUse) -> Self {
        let CoreUse {
            available_ns,
            cpu_ns,
            contention_ns,
            run_delay_ns,
            steal_ns,
            sleeps,
            late_mean_ns,
            late_p50_ns,
            late_p99_ns,
            late_max_ns,
        } = core;
        Self {
            available_ns,
            cpu_ns,
            contention_ns,
            run_delay_ns,
            steal_ns,
            sleeps,
            late_mean_ns,
            late_p50_ns,
            late_p99_ns,
            late_max_ns,
        }
    }
}

impl From<wire::CoreUse> for CoreUse {
    fn from(core: wire::CoreUse) -> Self {
        let wire::CoreUse {
            available_ns,
            cpu_ns,
            contention_ns,
            run_delay_ns,
            steal_ns,
            sleeps,
            late_mean_ns,
            late_p50_ns,
            late_p99_ns,
            late_max_ns,
        } = core;
        Self {
            available_ns,
            cpu_ns,
            contention_ns,
            run_delay_ns,
            steal_ns,
            sleeps,
            late_mean_ns,
            late_p50_ns,
            late_p99_ns,
            late_max_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CoreUse, Disturbance};
    use meetpoint_format::wire;

    const MS: u64 = 1_000_000;

    /// A core that should have had half of 1 s for its work, and took longer.
    fn slow(contention: u64, steal: Option<u64>, late: u64) -> CoreUse {
        CoreUse {
            available_ns: 1200 * MS,
            cpu_ns: 500 * MS,
            contention_ns: contention * MS,
            steal_ns: steal.map(|steal| steal * MS),
            sleeps: 100,
            late_mean_ns: late * MS / 100,
            ..CoreUse::default()
        }
    }

    #[test]
    fn a_disturbance_is_a_cause_if_it_lasted_for_half_of_the_excess_time() {
        use Disturbance::{Contention, LateWakeUps, Steal};
        for (core, causes) in [
            (slow(200, None, 0), vec![Contention]),
            (slow(100, None, 0), vec![Contention]),
            (slow(99, None, 0), vec![]),
            (slow(200, Some(150), 0), vec![Steal]),
            (slow(400, Some(150), 0), vec![Contention, Steal]),
            (slow(0, Some(0), 120), vec![LateWakeUps]),
            (slow(110, Some(0), 120), vec![LateWakeUps, Contention]),
            (slow(0, None, 0), vec![]),
        ] {
            assert_eq!(core.causes(0.5), causes, "{core:?}");
        }
    }

    #[test]
    fn a_share_that_is_reached_or_exceeded_has_no_cause() {
        let core = slow(400, Some(200), 200);
        assert_eq!(core.causes(500.0 / 1200.0 - 1e-9), []);
        assert_eq!(core.causes(0.1), []);
        assert_eq!(CoreUse::default().causes(0.5), []);
        assert_eq!(CoreUse::default().share(), 0.0);
    }

    #[test]
    fn figures_that_were_not_measured_stay_absent_in_the_message() {
        for (run_delay_ns, steal_ns) in [(None, None), (Some(0), Some(3)), (Some(7), None)] {
            let core = CoreUse {
                available_ns: 1,
                cpu_ns: 2,
                contention_ns: 3,
                run_delay_ns,
                steal_ns,
                sleeps: 4,
                late_mean_ns: 5,
                late_p50_ns: 6,
                late_p99_ns: 7,
                late_max_ns: 8,
            };
            assert_eq!(CoreUse::from(wire::CoreUse::from(core)), core);
        }
    }
}
