//! The invariants: what must be true of a job after any fault.

use super::job::TortureJob;
use super::processes;
use super::trouble::Reports;
use crate::runner::ledger::Entry;
use meetpoint_report::{Report, Verdict};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How long processes and files of an ended host may remain: a device notices that its host was
/// killed when the kernel closes the connection.
const LEFTOVERS_LIMIT: Duration = Duration::from_secs(20);

/// Guarantees that every strategy has.
const LEVELS: [&str; 3] = ["C0", "C1", "C2"];

/// How a host ended, as its exit code and output say.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ending {
    /// Exit code 0.
    Succeeded,
    /// Exit code 1 and an error with this cause.
    Reported { cause: String },
    /// Anything else.
    Wrong(String),
}

/// Reads how a host ended.
pub(super) fn ending(status: ExitStatus, stdout: &str, stderr: &str) -> Ending {
    match status.code() {
        Some(0) => Ending::Succeeded,
        Some(1) => {
            let document: Option<Value> = serde_json::from_str(stdout).ok();
            let error = document.as_ref().map(|document| &document["error"]);
            let text = |key| error.and_then(|error| error[key].as_str());
            match (text("cause"), text("remedy")) {
                (Some(cause), remedy) if remedy.is_some() || cause == "interrupted" => {
                    Ending::Reported { cause: cause.to_owned() }
                }
                (Some(cause), _) => {
                    let message = text("message").unwrap_or_default();
                    Ending::Wrong(format!("an error without a remedy: {cause}: {message}"))
                }
                (None, _) => Ending::Wrong(format!("exit code 1 without a document: {stderr}")),
            }
        }
        _ => Ending::Wrong(format!("it ended with {status}: {stderr}")),
    }
}

/// Whether a fault permits an error.
pub(super) fn permits(reports: Reports, cause: &str) -> bool {
    match reports {
        Reports::Nothing => false,
        Reports::Causes(causes) => causes.contains(&cause),
        Reports::Diagnosed => !["failed", "defect", "interrupted"].contains(&cause),
    }
}

/// Panics that a process reported.
pub(super) fn defects(name: &str, stderr: &str) -> Option<String> {
    let lines: Vec<&str> =
        stderr.lines().skip_while(|line| *line != "error: a defect of Meetpoint").collect();
    (!lines.is_empty()).then(|| format!("{name} panicked: {}", lines.join(" ")))
}

/// What is wrong with the report of a run that succeeded.
pub(super) fn report(stdout: &str) -> Vec<String> {
    let report: Report = match serde_json::from_str(stdout) {
        Ok(report) => report,
        Err(error) => return vec![format!("standard output is not a report: {error}")],
    };
    let [run] = &report.runs[..] else {
        return vec![format!("the report has {} runs", report.runs.len())];
    };
    let mut wrong = Vec::new();
    for level in &run.levels {
        let is_basic = LEVELS.contains(&level.level.as_str());
        if level.verdict == Verdict::Failed || is_basic && level.verdict != Verdict::Verified {
            let verdict = format!("{:?}: {:?}", level.verdict, level.findings);
            wrong.push(format!("{} is {verdict}", level.level));
        }
    }
    let levels: HashSet<&str> = run.levels.iter().map(|level| level.level.as_str()).collect();
    wrong.extend(
        LEVELS
            .into_iter()
            .filter(|level| !levels.contains(level))
            .map(|level| format!("the report does not mention {level}")),
    );
    wrong
}

/// The checksums of every sample of a job, as the host alone prepares it without a fault.
#[derive(Debug, Default)]
pub(super) struct HostAlone {
    /// By epoch and sample; several where a sample occurs several times in an epoch.
    checksums: HashMap<(u32, u64), Vec<u32>>,
}

impl HostAlone {
    /// From the ledger of a run of the host alone.
    pub(super) fn new(entries: &[Entry]) -> Self {
        let mut checksums: HashMap<(u32, u64), Vec<u32>> = HashMap::new();
        for entry in entries {
            for (sample, crc32c) in entry.samples.iter().zip(&entry.crc32c) {
                checksums.entry((entry.epoch, *sample)).or_default().push(*crc32c);
            }
        }
        Self { checksums }
    }

    /// Samples of a batch whose bytes differ.
    fn differing(&self, entry: &Entry) -> Vec<u64> {
        let pairs = entry.samples.iter().zip(&entry.crc32c);
        let differs = |(sample, crc32c): &(&u64, &u32)| {
            let known = self.checksums.get(&(entry.epoch, **sample));
            known.is_none_or(|known| !known.contains(crc32c))
        };
        pairs.filter(differs).map(|(sample, _)| *sample).collect()
    }
}

/// What is wrong with the batches that a job consumed.
pub(super) fn ledger(
    job: &TortureJob,
    entries: &[Entry],
    host_alone: &HostAlone,
    is_complete: bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut seen = HashSet::new();
    let mut batches: BTreeMap<(u32, u32), BTreeSet<u32>> = BTreeMap::new();
    for entry in entries {
        let Entry { rank, epoch, batch, damaged, .. } = *entry;
        if !seen.insert((rank, epoch, batch)) {
            wrong.push(format!("batch {batch} of epoch {epoch}, rank {rank} was consumed twice"));
        }
        batches.entry((rank, epoch)).or_default().insert(batch);
        let differing = host_alone.differing(entry);
        if differing.len() > damaged as usize {
            wrong.push(format!(
                "batch {batch} of epoch {epoch}, rank {rank}, prepared by {:?}: samples \
                 {differing:?} differ from the host alone, {damaged} are reported as damaged",
                entry.source
            ));
        }
    }
    if is_complete {
        let count = batches.values().map(BTreeSet::len).max().unwrap_or(0);
        for rank in 0..job.ranks {
            for epoch in 0..job.epochs {
                let consumed = batches.get(&(rank, epoch)).map_or(0, BTreeSet::len);
                let last = batches.get(&(rank, epoch)).and_then(BTreeSet::last);
                if consumed != count || last.is_none_or(|&last| last as usize + 1 != count) {
                    wrong.push(format!(
                        "epoch {epoch} of rank {rank} has {consumed} of {count} batches"
                    ));
                }
            }
        }
    }
    wrong
}

/// What is left of a job after its processes were expected to end: processes, and files in its
/// folders for sockets, spools and temporary files.
pub(super) fn leftovers(folder: &Path) -> Vec<String> {
    leftovers_of_host(folder, &[])
}

/// The same while devices that the campaign started still run.
pub(super) fn leftovers_of_host(folder: &Path, devices: &[u32]) -> Vec<String> {
    let until = Instant::now() + LEFTOVERS_LIMIT;
    loop {
        let mut left: Vec<String> = processes::marked(folder)
            .into_iter()
            .filter(|pid| !devices.contains(pid))
            .map(|pid| format!("a process is left: {}", processes::threads_of(pid).trim()))
            .collect();
        for name in ["r", "t", "spool"] {
            let entries = std::fs::read_dir(folder.join(name)).into_iter().flatten().flatten();
            left.extend(entries.map(|entry| format!("a file is left: {}", entry.path().display())));
        }
        if left.is_empty() || Instant::now() > until {
            return left;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::{Ending, HostAlone, ending, ledger, permits};
    use crate::runner::ledger::Entry;
    use crate::torture::job::TortureJob;
    use crate::torture::trouble::{PartDamage, Reports, Trouble};
    use meetpoint_host::stats::Preparer;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn entries() -> Vec<Entry> {
        let entry = |batch: u32| Entry {
            strategy: "wrr".to_owned(),
            rank: 0,
            epoch: 0,
            batch,
            source: Preparer::Host,
            samples: vec![u64::from(batch) * 2, u64::from(batch) * 2 + 1],
            crc32c: vec![batch, batch + 100],
            damaged: 0,
        };
        (0..4).map(entry).collect()
    }

    fn job() -> TortureJob {
        TortureJob { ranks: 1, epochs: 1, ..TortureJob::new(0, 0, 1) }
    }

    #[test]
    fn a_ledger_is_compared_batch_by_batch_and_byte_by_byte() {
        let (whole, job) = (entries(), job());
        let host_alone = HostAlone::new(&whole);
        let wrong =
            |entries: &[Entry], is_complete| ledger(&job, entries, &host_alone, is_complete).len();
        assert_eq!(wrong(&whole, true), 0);
        assert_eq!(wrong(&whole[..3], false), 0);
        assert_eq!(wrong(&whole[1..], true), 1, "the first is missing");
        assert_eq!(wrong(&[&whole[..], &whole[..1]].concat(), true), 1, "one is repeated");
        let mut other = whole.clone();
        other[2].crc32c[1] ^= 1;
        assert_eq!(wrong(&other, true), 1, "other bytes");
        other[2].damaged = 1;
        assert_eq!(wrong(&other, true), 0, "which were reported");
        assert_eq!(wrong(&[], true), 1, "nothing was consumed");
    }

    #[test]
    fn an_end_is_a_success_a_reported_error_or_wrong() {
        let exit = |code: i32| ExitStatus::from_raw(code << 8);
        assert_eq!(ending(exit(0), "", ""), Ending::Succeeded);
        let error = "{\"error\": {\"cause\": \"sample_checksum\", \"remedy\": \"verify\"}}";
        let reported = Ending::Reported { cause: "sample_checksum".to_owned() };
        assert_eq!(ending(exit(1), error, ""), reported);
        let bare = "{\"error\": {\"cause\": \"failed\", \"remedy\": null}}";
        for wrong in [
            ending(exit(1), bare, ""),
            ending(exit(1), "", "gone"),
            ending(exit(101), "", ""),
            ending(ExitStatus::from_raw(11), error, ""),
        ] {
            assert!(matches!(wrong, Ending::Wrong(_)), "{wrong:?}");
        }
        assert!(permits(Trouble::Part(PartDamage::Flipped).reports(true, true), "sample_checksum"));
        assert!(!permits(Trouble::Part(PartDamage::Flipped).reports(true, true), "defect"));
        assert!(!permits(Trouble::DeviceKilled.reports(true, true), "device_lost"));
        assert!(permits(Trouble::DeviceKilled.reports(false, true), "device_unreachable"));
        assert!(!permits(Reports::Nothing, "interrupted"));
    }
}
