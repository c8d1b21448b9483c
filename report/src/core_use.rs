//! How an emulated core was used, and what disturbed it, in the units of a report.

use crate::units;
use meetpoint_host::stats::{CoreUse, SpeedLimit};
use serde::{Deserialize, Serialize};

/// How an emulated core was used while it had work, without waits for storage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EmulatedCore {
    /// Time in which the core could compute.
    pub available_seconds: f64,
    /// CPU time within `available_seconds`.
    pub cpu_seconds: f64,
    /// Time within `available_seconds` in which the thread neither computed nor slept for the
    /// emulation.
    pub contention_seconds: f64,
    /// Time in which the thread was ready to run and another one had its core, as Linux counts it;
    /// `None` if it is not measured.
    pub run_delay_seconds: Option<f64>,
    /// Time that the hypervisor took from the core, in steps of 10 ms; `None` if it is not
    /// measured.
    pub steal_seconds: Option<f64>,
    /// Number of sleeps of the emulation.
    pub sleeps: u64,
    /// Mean time by which the thread woke up late.
    pub late_mean_seconds: f64,
    /// Half of the sleeps ended at most this much late.
    pub late_p50_seconds: f64,
    /// 99 % of the sleeps ended at most this much late.
    pub late_p99_seconds: f64,
    /// The longest of these times.
    pub late_max_seconds: f64,
}

impl From<CoreUse> for EmulatedCore {
    fn from(core: CoreUse) -> Self {
        let seconds = |time_ns: u64| time_ns as f64 / 1e9;
        Self {
            available_seconds: seconds(core.available_ns),
            cpu_seconds: seconds(core.cpu_ns),
            contention_seconds: seconds(core.contention_ns),
            run_delay_seconds: core.run_delay_ns.map(seconds),
            steal_seconds: core.steal_ns.map(seconds),
            sleeps: core.sleeps,
            late_mean_seconds: seconds(core.late_mean_ns),
            late_p50_seconds: seconds(core.late_p50_ns),
            late_p99_seconds: seconds(core.late_p99_ns),
            late_max_seconds: seconds(core.late_max_ns),
        }
    }
}

impl EmulatedCore {
    /// Names of the columns that show what disturbed it.
    pub const COLUMNS: [&'static str; 7] =
        ["contention", "run delay", "steal", "sleeps", "late p50", "late p99", "late max"];

    /// Its values in these columns.
    pub fn columns(&self) -> [String; 7] {
        let measured = |time: Option<f64>| time.map_or_else(not_measured, units::seconds);
        let late = |time: f64| match self.sleeps {
            0 => "-".to_owned(),
            _ => units::seconds(time),
        };
        [
            units::seconds(self.contention_seconds),
            measured(self.run_delay_seconds),
            measured(self.steal_seconds),
            self.sleeps.to_string(),
            late(self.late_p50_seconds),
            late(self.late_p99_seconds),
            late(self.late_max_seconds),
        ]
    }
}

fn not_measured() -> String {
    "not measured".to_owned()
}

/// The disturbances that explain an invalid limit, as the end of a sentence; empty if there are
/// none.
pub fn because(limit: &SpeedLimit) -> String {
    let causes: Vec<String> = limit.causes.iter().map(ToString::to_string).collect();
    match causes.is_empty() {
        true => String::new(),
        false => format!(" (cause: {})", causes.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{EmulatedCore, because};
    use meetpoint_host::stats::{CoreUse, Disturbance, SpeedLimit};

    #[test]
    fn what_was_not_measured_is_named_and_what_never_happened_is_zero() {
        let core = CoreUse { available_ns: 7, run_delay_ns: Some(0), ..CoreUse::default() };
        let columns = EmulatedCore::from(core).columns();
        assert_eq!(columns[1..5], ["0 s", "not measured", "0", "-"]);
        let core = CoreUse { sleeps: 3, late_p99_ns: 2_000_000, ..core };
        let columns = EmulatedCore::from(core).columns();
        assert_eq!(columns[3..6], ["3", "0 s", "2.00 ms"]);
        let document = serde_json::to_value(EmulatedCore::from(core)).unwrap();
        assert!(document["steal_seconds"].is_null());
        assert_eq!(document["run_delay_seconds"], 0.0);
        assert_eq!(document["late_p99_seconds"], 0.002);
    }

    #[test]
    fn causes_end_a_sentence() {
        let mut limit = SpeedLimit::new("cpu-ratio", "ratio", 0.5, 0.4);
        assert_eq!(because(&limit), "");
        limit.causes = vec![Disturbance::Steal, Disturbance::LateWakeUps];
        assert_eq!(because(&limit), " (cause: steal, late wake-ups)");
    }
}
