//! The measured times of a run, batch by batch. A replay in the simulator must result in the same
//! total.

use crate::outcome::{RankOutcome, WorkKind};
use crate::scenario::{Distribution, Scenario, ScenarioError, Span, Values};

/// Times of a run at one rank, in nanoseconds, in the order in which each began.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// Host preparation of each batch, including reads. Empty: as in the scenario.
    pub host_ns: Vec<u64>,
    /// Work of each device on each batch, including reads and writes. Empty: as in the scenario.
    pub device_ns: Vec<Vec<u64>>,
    /// From taking each batch to requesting the next. Empty: as in the scenario.
    pub step_ns: Vec<u64>,
}

impl Trace {
    /// The times of a simulated rank whose timeline was recorded.
    pub fn of(rank: &RankOutcome, devices: usize) -> Self {
        let mut trace = Self { device_ns: vec![Vec::new(); devices], ..Self::default() };
        let mut timeline = rank.timeline.clone().unwrap_or_default();
        timeline.sort_by_key(|interval| interval.start_ns);
        for interval in timeline {
            let took = interval.end_ns - interval.start_ns;
            match interval.what {
                WorkKind::Preparing => trace.host_ns.push(took),
                WorkKind::AtDevice(device) => trace.device_ns[device as usize].push(took),
                WorkKind::Step(_) => trace.step_ns.push(took),
                WorkKind::Fetching => {}
            }
        }
        trace
    }
}

impl Scenario {
    /// The scenario with the measured times, in their order, instead of its distributions. They
    /// include all work of a part, so the scenario's bandwidths and copies are ignored. The trace
    /// does not include the split or the record of the run: set `mte.split` or `replay` as well, or
    /// the scheduler determines its own.
    ///
    /// # Errors
    ///
    /// If the number of devices differs from the scenario's.
    pub fn replaying(&self, trace: &Trace) -> Result<Self, ScenarioError> {
        let count = self.device_count();
        if !trace.device_ns.is_empty() && trace.device_ns.len() != count {
            let problem = format!("has {count} devices, the trace {}", trace.device_ns.len());
            return Err(ScenarioError::new("devices", problem, "as many as were recorded"));
        }
        let mut replayed = self.clone();
        if let Some(times) = in_order(&trace.host_ns) {
            replayed.host.preparation = times;
            replayed.host.efficiency = 1.0;
            replayed.host.cores = None;
            replayed.storage.host_read_bandwidth = None;
            replayed.storage.latency = Span(0);
        }
        if let Some(times) = in_order(&trace.step_ns) {
            replayed.accelerator.step = times;
            replayed.accelerator.direct_read = Span(0);
            replayed.host.copy = Span(0);
        }
        if !trace.device_ns.is_empty() {
            let each = self.devices.iter().flat_map(|kind| (0..kind.count).map(move |_| kind));
            let each = each.zip(&trace.device_ns).map(|(kind, times)| {
                let mut device = kind.clone();
                device.count = 1;
                if let Some(times) = in_order(times) {
                    device.preparation = times;
                    device.read_bandwidth = None;
                    device.write_bandwidth = None;
                    device.drive_bandwidth = None;
                }
                device
            });
            replayed.devices = each.collect();
        }
        Ok(replayed)
    }
}

fn in_order(times: &[u64]) -> Option<Distribution> {
    let values = times.iter().copied().map(Span).collect();
    (!times.is_empty()).then_some(Distribution::Trace(Values { file: None, values }))
}
