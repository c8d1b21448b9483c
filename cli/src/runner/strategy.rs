//! Selects the strategies to run, and skips one that would take absurdly long.

use meetpoint_host::GpuIndex;
use meetpoint_host::{JobFile, Notice, StrategyName};
use std::path::PathBuf;

/// `all` skips `device-only` if it would take more than this many times as long as `host-only`.
const ABSURD: f64 = 6.0;

/// The strategies to run, in this order, and options of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunPlan {
    /// The strategies.
    pub(super) strategies: Vec<StrategyName>,
    /// Whether one may be skipped.
    may_skip: bool,
    /// File for a trace of all strategies.
    pub(super) trace: Option<PathBuf>,
    /// GPU to which batches are delivered.
    pub(super) device_out: Option<GpuIndex>,
    /// File for a line about each consumed batch.
    pub(super) ledger: Option<PathBuf>,
}

/// The times of a strategy that has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) name: StrategyName,
    pub(super) epoch_ns: u64,
    /// Time of all devices together for a batch; 0 if not known.
    pub(super) t_s_ns: u64,
    pub(super) batches: u32,
}

impl RunPlan {
    /// These strategies, each once.
    pub(crate) fn of(strategies: &[StrategyName]) -> Self {
        let mut once: Vec<StrategyName> = Vec::new();
        for &name in strategies {
            if !once.contains(&name) {
                once.push(name);
            }
        }
        Self { strategies: once, may_skip: false, trace: None, device_out: None, ledger: None }
    }

    /// The strategy of the job itself.
    pub(crate) fn of_job(job: &JobFile) -> Self {
        Self::of(&[job.strategy])
    }

    /// Every strategy; `device-only` is last, because the times of the others predict how long it
    /// would take.
    pub(crate) fn all() -> Self {
        use StrategyName::DeviceOnly;
        let others = StrategyName::ALL.into_iter().filter(|&name| name != DeviceOnly);
        let strategies = others.chain([DeviceOnly]).collect();
        Self { strategies, may_skip: true, trace: None, device_out: None, ledger: None }
    }

    /// The same, with a trace in a file.
    #[must_use]
    pub(crate) fn traced(self, trace: Option<PathBuf>) -> Self {
        Self { trace, ..self }
    }

    /// The same, with batches that are delivered to a GPU.
    #[must_use]
    pub(crate) fn delivered_to(self, device_out: Option<GpuIndex>) -> Self {
        Self { device_out, ..self }
    }

    /// The same, with a ledger of the consumed batches.
    #[must_use]
    pub(crate) fn recorded(self, ledger: Option<PathBuf>) -> Self {
        Self { ledger, ..self }
    }

    /// Whether any of them cannot be run without a device.
    pub(crate) fn needs_device(&self) -> bool {
        self.strategies.iter().any(|name| name.needs_device())
    }

    /// Why a strategy is skipped, given the times so far; `None` if it is run.
    pub(super) fn reason_to_skip(&self, name: StrategyName, measured: &[Times]) -> Option<Notice> {
        if !self.may_skip || name != StrategyName::DeviceOnly {
            return None;
        }
        let host = measured.iter().find(|times| times.name == StrategyName::HostOnly)?;
        let device = measured.iter().rev().find(|times| times.t_s_ns > 0)?;
        let expected_ns = device.t_s_ns.saturating_mul(device.batches.into());
        let host_only_ns = host.epoch_ns;
        let ratio = expected_ns as f64 / host_only_ns.max(1) as f64;
        let left_out = Notice::StrategyLeftOut { strategy: name, expected_ns, host_only_ns };
        (ratio > ABSURD).then_some(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::{RunPlan, StrategyName, Times};

    fn measured(t_s_ns: u64) -> Vec<Times> {
        let times = |name, t_s_ns| Times { name, epoch_ns: 1_000, t_s_ns, batches: 10 };
        vec![times(StrategyName::HostOnly, 0), times(StrategyName::Wrr, t_s_ns)]
    }

    #[test]
    fn all_skips_device_only_if_it_would_take_too_long() {
        let all = RunPlan::all();
        assert_eq!(all.reason_to_skip(StrategyName::DeviceOnly, &measured(200)), None);
        let reason = all.reason_to_skip(StrategyName::DeviceOnly, &measured(2_000)).unwrap();
        assert!(reason.to_string().contains("20 times as long"), "{reason}");
        assert_eq!(all.reason_to_skip(StrategyName::Wrr, &measured(2_000)), None);
    }

    #[test]
    fn all_are_run_once_and_device_only_last() {
        let all = RunPlan::all();
        assert_eq!(all.strategies.len(), StrategyName::ALL.len());
        assert_eq!(all.strategies.first(), Some(&StrategyName::HostOnly));
        assert_eq!(all.strategies.last(), Some(&StrategyName::DeviceOnly));
        let twice = RunPlan::of(&[StrategyName::Wrr, StrategyName::Auto, StrategyName::Wrr]);
        assert_eq!(twice.strategies, [StrategyName::Wrr, StrategyName::Auto]);
    }

    #[test]
    fn strategies_selected_by_name_always_run() {
        let plan = RunPlan::of(&[StrategyName::DeviceOnly]);
        assert_eq!(plan.reason_to_skip(StrategyName::DeviceOnly, &measured(2_000)), None);
    }
}
