//! What this machine has, what Meetpoint uses of it, and the remedy for what is missing.
//!
//! Files are read below a root that tests replace; results of system calls are collected once in
//! [`Probes`]. In reading order: [`system`], [`probes`], then one file per topic; `cuda_probe`
//! tests CUDA.

mod cuda;
#[cfg(feature = "cuda")]
mod cuda_probe;
mod memory;
mod probes;
mod processor;
mod sensors;
mod storage;
mod system;

pub(crate) use probes::{Probes, folder_of};
pub(crate) use processor::model as processor_model;
pub(crate) use system::System;

use serde::Serialize;

/// Availability of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// Fully available.
    Ready,
    /// Available with a limit, or a slower alternative is used.
    Limited,
    /// Not available. Everything works without it, but slower or with fewer figures in reports.
    Missing,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// What was checked.
    pub topic: &'static str,
    /// Its availability.
    pub state: State,
    /// What was found.
    pub found: String,
    /// How Meetpoint uses it.
    pub used: String,
    /// How to improve it.
    pub remedy: Option<String>,
}

impl Finding {
    fn ready(topic: &'static str, found: impl Into<String>, used: impl Into<String>) -> Self {
        Self { topic, state: State::Ready, found: found.into(), used: used.into(), remedy: None }
    }

    fn limited(topic: &'static str, found: impl Into<String>, used: impl Into<String>) -> Self {
        Self { state: State::Limited, ..Self::ready(topic, found, used) }
    }

    fn missing(topic: &'static str, found: impl Into<String>, used: impl Into<String>) -> Self {
        Self { state: State::Missing, ..Self::ready(topic, found, used) }
    }

    fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}

/// Runs all checks.
pub(crate) fn examine(system: &System, probes: &Probes) -> Vec<Finding> {
    let mut findings = vec![
        processor::cores(system, probes),
        processor::instruction_set(),
        processor::cgroup(system),
        memory::limit(system),
        memory::huge_pages(system),
        memory::memlock(system, probes),
        storage::io_uring(probes),
        storage::direct(probes),
        storage::nvme(system),
        storage::computational(probes),
        storage::spdk(),
        sensors::gpu(system),
        sensors::gpudirect(system),
    ];
    findings.extend(cuda::findings(system, probes.cuda.as_ref()));
    findings.extend(sensors::energy(system.meters(), sensors::METERS_WARM_UP));
    findings
}

/// The findings as lines for a terminal.
pub(crate) fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.topic.len()).max().unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        let mark = match finding.state {
            State::Ready => "yes    ",
            State::Limited => "limited",
            State::Missing => "no     ",
        };
        let topic = finding.topic;
        text.push_str(&format!("{topic:width$}  {mark}  {}\n", finding.found));
        let indent = " ".repeat(width + 11);
        text.push_str(&format!("{indent}uses: {}\n", finding.used));
        if let Some(remedy) = &finding.remedy {
            text.push_str(&format!("{indent}remedy: {remedy}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Finding, text};

    #[test]
    fn every_finding_says_what_is_there_what_is_used_and_the_remedy() {
        let finding = Finding::missing("RAPL", "no counters", "a model").remedy("run on metal");
        let expected = "RAPL  no       no counters\n               uses: a model\n               \
                        remedy: run on metal\n";
        assert_eq!(text(&[finding]), expected);
    }
}
