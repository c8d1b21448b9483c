//! Finds the meters of this machine, and selects which are read.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::gpu::Gpus;
use super::perf_event::{Counters, Kernel};
use super::{Meter, MeterError, MeterInfo, Nvml, ProbedMeter, Reading, Scope, Unusable};
use super::{battery, gpu, hwmon, perf, powercap};

/// Where meters are searched for.
pub struct Machine {
    /// Folder that stands for `/`.
    pub root: PathBuf,
    /// Opens performance events.
    pub counters: Box<dyn Counters>,
    /// The library for graphics boards, or the reason why there is none.
    pub gpus: Result<Arc<dyn Gpus>, Unusable>,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Machine").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        Self {
            root: PathBuf::from("/"),
            counters: Box::new(Kernel),
            gpus: Nvml::load().map(|nvml| Arc::new(nvml) as Arc<dyn Gpus>),
        }
    }
}

/// Every meter that was searched for.
#[derive(Debug, Default)]
pub struct Meters {
    listed: Vec<ProbedMeter>,
}

impl Meters {
    /// Searches for every kind of meter and reads each once.
    pub fn find(machine: Machine) -> Self {
        let root = &machine.root;
        let mut listed = powercap::list(root);
        listed.extend(perf::list(root, machine.counters.as_ref()));
        listed.extend(gpu::list(machine.gpus));
        listed.extend(hwmon::list(root));
        listed.extend(battery::list(root));
        mark_the_same(&mut listed);
        Self { listed }
    }

    /// All of them, those that do not work included.
    pub fn listed(&self) -> &[ProbedMeter] {
        &self.listed
    }

    /// Working meters whose reading no other meter duplicates.
    pub fn used(&self) -> impl Iterator<Item = &MeterInfo> {
        self.listed
            .iter()
            .filter(|listed| listed.meter.is_ok() && listed.same_as.is_none())
            .map(|listed| &listed.about)
    }

    /// Names of the meters that still show 0 after this time, although every machine uses energy.
    pub fn at_zero(&mut self, patience: Duration) -> Vec<String> {
        let end = Instant::now() + patience;
        loop {
            let at_zero: Vec<String> = self
                .used_mut()
                .filter_map(|(about, meter)| {
                    let shows_zero = match meter.read().ok()? {
                        Reading::Energy { microjoules, .. } => microjoules == 0,
                        Reading::Power { watts } => watts == 0.0,
                    };
                    shows_zero.then(|| about.name.clone())
                })
                .collect();
            if at_zero.is_empty() || Instant::now() >= end {
                return at_zero;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Why nothing can be measured on this machine; `None` if something can.
    pub fn why_none(&self) -> Option<NoMeters> {
        if self.used().next().is_some() {
            return None;
        }
        let unusable = self.listed.iter().filter_map(|listed| {
            let reason = listed.meter.as_ref().err()?.reason.clone();
            Some(UnusableMeter { meter: listed.about.name.clone(), reason })
        });
        Some(NoMeters { unusable: unusable.collect() })
    }

    /// The meters that are read, with their descriptions.
    pub(super) fn used_mut(&mut self) -> impl Iterator<Item = (&MeterInfo, &mut Box<dyn Meter>)> {
        self.listed.iter_mut().filter(|listed| listed.same_as.is_none()).filter_map(|listed| {
            let meter = listed.meter.as_mut().ok()?;
            Some((&listed.about, meter))
        })
    }
}

/// Why no energy meter is read: none of these works, or, if the list is empty, the search was
/// stopped because one did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NoMeters {
    /// The meters that were tried.
    pub unusable: Vec<UnusableMeter>,
}

/// A meter that does not work here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusableMeter {
    /// Its name.
    pub meter: String,
    /// What is wrong with it.
    pub reason: MeterError,
}

impl fmt::Display for NoMeters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unusable.is_empty() {
            return f.write_str("the energy meters are no longer read: one did not answer");
        }
        let reasons = self.unusable.iter().map(|it| format!("{}: {}", it.meter, it.reason));
        let reasons: Vec<String> = reasons.collect();
        write!(f, "no energy meter works on this machine ({})", reasons.join("; "))
    }
}

/// powercap and perf expose the same counters: if powercap works, perf is not read.
fn mark_the_same(listed: &mut [ProbedMeter]) {
    let works = |scope: Scope, listed: &[ProbedMeter]| {
        let found = listed.iter().find(|other| {
            other.meter.is_ok()
                && other.about.scope == scope
                && other.about.name.starts_with("rapl:")
        });
        found.map(|other| other.about.name.clone())
    };
    for place in 0..listed.len() {
        let one = &listed[place];
        if one.about.name.starts_with("perf:") && one.meter.is_ok() {
            listed[place].same_as = works(one.about.scope, listed);
        }
    }
}
