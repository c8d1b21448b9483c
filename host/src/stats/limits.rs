//! The speed limits of an emulated device, and whether they were met.

use meetpoint_format::wire::Meters;
use meetpoint_link::{CoreUse, Disturbance, Targets};
use serde::{Deserialize, Serialize};

/// Maximum relative deviation of a speed limit from its target. Beyond it, the times of a run are
/// invalid.
pub const OFF_TARGET_MAX: f64 = 0.05;

/// A speed limit of the emulation, as measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpeedLimit {
    /// `cpu-ratio`, `read-bandwidth`, `write-bandwidth` or `latency`.
    pub name: String,
    /// `ratio`, `bytes per second` or `seconds`.
    pub unit: String,
    /// The target.
    pub target: f64,
    /// The measured value.
    pub achieved: f64,
    /// Whether it is within [`OFF_TARGET_MAX`] of its target.
    pub is_valid: bool,
    /// The causes of an invalid share of a core, the longest disturbance first. Empty for other
    /// limits, and if no measured disturbance explains the deviation.
    pub causes: Vec<Disturbance>,
}

impl SpeedLimit {
    /// A limit and its verdict.
    pub fn new(name: &str, unit: &str, target: f64, achieved: f64) -> Self {
        let off = achieved / target - 1.0;
        Self {
            name: name.to_owned(),
            unit: unit.to_owned(),
            target,
            achieved,
            is_valid: off.abs() <= OFF_TARGET_MAX,
            causes: Vec::new(),
        }
    }

    /// The share of a core. `core`: how the core was used, if that was measured.
    pub fn of_core(target: f64, achieved: f64, core: Option<&CoreUse>) -> Self {
        let limit = Self::new("cpu-ratio", "ratio", target, achieved);
        let causes = match (limit.is_valid, core) {
            (false, Some(core)) => core.causes(target),
            _ => Vec::new(),
        };
        Self { causes, ..limit }
    }

    /// achieved / target - 1.
    pub fn off_ratio(&self) -> f64 {
        self.achieved / self.target - 1.0
    }
}

/// The speed limits that are set and were measured. A bandwidth without transfers is not measured.
pub(super) fn of_device(targets: &Targets, achieved: &Meters) -> Vec<SpeedLimit> {
    let core = achieved.core_use.map(CoreUse::from);
    let limit = |name: &str, unit: &str, target: Option<f64>, achieved: f64| {
        let target = target.filter(|_| achieved > 0.0)?;
        Some(SpeedLimit::new(name, unit, target, achieved))
    };
    let rate = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64);
    let seconds = |time_ns: u64| time_ns as f64 / 1e9;
    let ratio = achieved.cpu_ratio_achieved;
    let all = [
        targets
            .cpu_ratio
            .filter(|_| ratio > 0.0)
            .map(|target| SpeedLimit::of_core(target, ratio, core.as_ref())),
        limit(
            "read-bandwidth",
            "bytes per second",
            rate(targets.read_bytes_per_second),
            achieved.read_bytes_per_second_achieved,
        ),
        limit(
            "write-bandwidth",
            "bytes per second",
            rate(targets.write_bytes_per_second),
            achieved.write_bytes_per_second_achieved,
        ),
        limit(
            "latency",
            "seconds",
            targets.latency_ns.map(seconds),
            seconds(achieved.latency_ns_achieved),
        ),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::{SpeedLimit, of_device};
    use meetpoint_format::wire::{CoreUse, Meters};
    use meetpoint_link::{Disturbance, Targets};

    const MS: u64 = 1_000_000;

    #[test]
    fn a_limit_is_valid_up_to_five_percent_off_its_target() {
        for (achieved, is_valid) in [(94.9, false), (95.1, true), (104.9, true), (105.1, false)] {
            let limit = SpeedLimit::new("latency", "seconds", 100.0, achieved);
            assert_eq!(limit.is_valid, is_valid, "{limit:?}");
        }
    }

    #[test]
    fn only_limits_that_were_set_and_measured_are_listed() {
        let targets = Targets {
            cpu_ratio: Some(0.5),
            read_bytes_per_second: Some(1000),
            latency_ns: Some(100 * MS),
            ..Targets::default()
        };
        let meters = Meters {
            cpu_ratio_achieved: 0.51,
            write_bytes_per_second_achieved: 7.0,
            latency_ns_achieved: 200 * MS,
            ..Meters::default()
        };
        let found = of_device(&targets, &meters);
        let names: Vec<(&str, bool)> =
            found.iter().map(|limit| (&limit.name[..], limit.is_valid)).collect();
        assert_eq!(names, [("cpu-ratio", true), ("latency", false)]);
        assert_eq!(found[1].achieved, 0.2);
        assert_eq!(of_device(&targets, &Meters::default()), []);
    }

    #[test]
    fn an_invalid_share_of_a_core_has_its_causes_and_a_valid_one_has_none() {
        let core = CoreUse {
            available_ns: 1000 * MS,
            cpu_ns: 400 * MS,
            contention_ns: 300 * MS,
            steal_ns: Some(280 * MS),
            ..CoreUse::default()
        };
        let causes = |target: f64, core_use: Option<CoreUse>| {
            let targets = Targets { cpu_ratio: Some(target), ..Targets::default() };
            let meters = Meters { cpu_ratio_achieved: 0.4, core_use, ..Meters::default() };
            of_device(&targets, &meters).remove(0).causes
        };
        assert_eq!(causes(0.5, Some(core)), [Disturbance::Steal]);
        assert_eq!(causes(0.41, Some(core)), []);
        // A device that does not report them.
        assert_eq!(causes(0.5, None), []);
    }
}
