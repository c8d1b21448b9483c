//! Runs one job: the host alone for comparison, then the job with its fault, then the invariants.

use super::child::Running;
use super::consumer::Gate;
use super::growth::{Sample, Trend, trends};
use super::injection::Injection;
use super::job::{TortureJob, Transport};
use super::judge::{self, Ending, HostAlone};
use super::processes::{self, Holdings};
use super::served::{Devices, TOKEN};
use super::sets;
use super::trouble::Trouble;
use crate::runner::ledger;
use crate::surface::Stop;
use anyhow::Context;
use rustix::process::Signal;
use serde::Serialize;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Deadline of a process. Reached only when something hangs.
const LIMIT: Duration = Duration::from_secs(150);
/// Deadline of a job with many epochs.
const ENDURANCE_LIMIT: Duration = Duration::from_secs(900);
/// How often a running job is observed.
const LOOK_EVERY: Duration = Duration::from_millis(3);
/// Factor of the number of epochs in the second run, which confirms that resources grow.
const CONFIRMING_TIMES: u32 = 4;
/// Name of the subfolder of the second run in the folder of the job.
const LONGER: &str = "longer";
/// Name of the gate of a job with many epochs.
const GATE: &str = "epochs";

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    /// Every batch was consumed.
    Survived,
    /// The run ended with an error that the fault permits.
    Reported,
    /// An invariant was violated.
    Failed,
}

/// The result of a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Outcome {
    pub(super) job: TortureJob,
    /// Whether the fault happened; one that was too late for its run did not.
    pub(super) is_injected: bool,
    pub(super) verdict: Verdict,
    /// Cause of the reported error.
    pub(super) cause: Option<String>,
    /// Violated invariants.
    pub(super) violations: Vec<String>,
    /// Batches consumed, and of these, batches of devices.
    pub(super) batches: u64,
    pub(super) device_batches: u64,
    /// What processes of a job with many epochs held.
    pub(super) trends: Vec<Trend>,
    /// The resources that grew in the first run, which had fewer epochs.
    pub(super) grew_at_first: Vec<String>,
    pub(super) seconds: f64,
}

impl Outcome {
    /// Whether growing resources are the only violations.
    fn only_grew(&self) -> bool {
        let growing = self.trends.iter().filter(|trend| trend.is_growing()).count();
        growing > 0 && growing == self.violations.len()
    }
}

/// A job in its folder.
struct Attempt<'a> {
    job: &'a TortureJob,
    folder: &'a Path,
    /// The dataset that the job reads.
    set: PathBuf,
    injection: Injection<'a>,
    stop: &'a Stop,
    host_samples: Vec<Sample>,
    device_samples: Vec<Sample>,
}

/// Runs a job in a new folder. If only its resources grew, runs it again with more epochs, whose
/// outcome counts: a leak continues, readers that were opened late do not.
///
/// An error means that the campaign failed, not the job.
pub(super) fn run(
    job: &TortureJob,
    sets: &Path,
    folder: &Path,
    stop: &Stop,
) -> anyhow::Result<Outcome> {
    let first = run_once(job, sets, folder, stop)?;
    if !first.only_grew() {
        return Ok(first);
    }
    let longer = TortureJob { epochs: job.epochs.saturating_mul(CONFIRMING_TIMES), ..job.clone() };
    let second = run_once(&longer, sets, &folder.join(LONGER), stop)?;
    let seconds = first.seconds + second.seconds;
    Ok(Outcome { grew_at_first: first.violations, seconds, ..second })
}

fn run_once(job: &TortureJob, sets: &Path, folder: &Path, stop: &Stop) -> anyhow::Result<Outcome> {
    let begun = Instant::now();
    let set = prepare(job, sets, folder)?;
    let root = if job.trouble.is_of_part() { folder.join("data") } else { sets.to_path_buf() };
    let mut attempt = Attempt {
        job,
        folder,
        injection: Injection::new(job, set.clone(), Devices::new(folder, &root)),
        set,
        stop,
        host_samples: Vec::new(),
        device_samples: Vec::new(),
    };
    let outcome = attempt.execute();
    if outcome.is_err() {
        // Interrupted, or the campaign cannot work: nothing of the job may remain.
        kill_all(folder);
    }
    let mut outcome = outcome?;
    outcome.seconds = begun.elapsed().as_secs_f64();
    Ok(outcome)
}

/// Creates the folders of a job and the files that do not depend on its devices.
fn prepare(job: &TortureJob, sets: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    for name in ["r", "t", "spool"] {
        let path = folder.join(name);
        std::fs::create_dir_all(&path)
            .with_context(|| format!("failed to create {}", path.display()))?;
    }
    write(folder, "token", TOKEN)?;
    let set = job.set.folder(sets);
    if !job.trouble.is_of_part() {
        return Ok(set);
    }
    let data = folder.join("data").join(set.file_name().context("a set has a name")?);
    sets::copy(&set, &data)?;
    Ok(data)
}

fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
}

fn kill_all(folder: &Path) {
    for pid in processes::marked(folder) {
        processes::signal(pid, Signal::KILL);
    }
}

impl Attempt<'_> {
    fn execute(&mut self) -> anyhow::Result<Outcome> {
        let host_alone = match self.host_alone()? {
            Ok(host_alone) => host_alone,
            Err(why) => return Ok(self.failed_alone(why)),
        };
        let own_devices = self.job.has_own_devices();
        if own_devices && self.job.trouble != Trouble::DeviceLate {
            self.injection.devices.start(self.job)?;
        }
        let mut violations = Vec::new();
        let mut ending = self.host(&mut violations)?;
        let mut was_killed = false;
        if self.job.trouble == Trouble::HostKilled && self.injection.is_injected() {
            violations.extend(judge::leftovers_of_host(self.folder, &self.injection.devices.ids()));
            was_killed = true;
            ending = self.host(&mut violations)?;
        }
        violations.extend(self.injection.devices.end(self.job)?);
        violations.extend(judge::leftovers(self.folder));
        // Whatever is left was reported; the next job starts without it.
        kill_all(self.folder);
        let entries = ledger::read(&self.folder.join("ledger.jsonl"))?;
        let is_own = own_devices || self.job.trouble == Trouble::DeviceLate;
        let reports = self.job.trouble.reports(self.had_begun(&entries), is_own);
        let (verdict, cause) = match ending {
            Ending::Succeeded => (Verdict::Survived, None),
            Ending::Reported { cause } => {
                if !judge::permits(reports, &cause) {
                    violations.push(format!("it ended with the error {cause}"));
                }
                (Verdict::Reported, Some(cause))
            }
            Ending::Wrong(why) => {
                violations.push(why);
                (Verdict::Failed, None)
            }
        };
        let is_complete = verdict == Verdict::Survived;
        violations.extend(judge::ledger(self.job, &entries, &host_alone, is_complete));
        let device_batches = entries
            .iter()
            .filter(|entry| entry.source == meetpoint_host::stats::Preparer::Device)
            .count() as u64;
        let trends = self.trends(&mut violations, was_killed);
        Ok(Outcome {
            job: self.job.clone(),
            is_injected: self.injection.is_injected(),
            verdict: if violations.is_empty() { verdict } else { Verdict::Failed },
            cause,
            violations,
            batches: entries.len() as u64,
            device_batches,
            trends,
            grew_at_first: Vec::new(),
            seconds: 0.0,
        })
    }

    /// Whether a batch was consumed before the fault.
    fn had_begun(&self, entries: &[ledger::Entry]) -> bool {
        self.job.trouble.has_moment() && self.job.after_batches > 0 && !entries.is_empty()
    }

    /// The result of a job that the host alone cannot run.
    fn failed_alone(&self, why: String) -> Outcome {
        Outcome {
            job: self.job.clone(),
            is_injected: false,
            verdict: Verdict::Failed,
            cause: None,
            violations: vec![why],
            batches: 0,
            device_batches: 0,
            trends: Vec::new(),
            grew_at_first: Vec::new(),
            seconds: 0.0,
        }
    }

    /// The bytes of every sample, by the host alone and before any fault; or why it failed.
    fn host_alone(&self) -> anyhow::Result<Result<HostAlone, String>> {
        let job = TortureJob {
            step_ms: 0,
            memory_budget_bytes: self.job.memory_budget_bytes.max(64 << 20) * 4,
            is_tuned: false,
            runs_ahead: false,
            reuses: self.job.reuses,
            chooses_by_saving: false,
            cache: None,
            transport: Transport::Spawned,
            ..self.job.clone()
        };
        write(self.folder, "alone.toml", &job.text(&self.set.display().to_string(), &[]))?;
        let line = [
            "run",
            "alone.toml",
            "--strategy",
            "host-only",
            "--ledger",
            "alone.jsonl",
            "--no-verify",
            "--json",
        ];
        let mut running = Running::start(self.folder, "alone", &line)?;
        let mut until = Instant::now() + self.limit();
        let status = loop {
            self.stop.check()?;
            match running.wait(LOOK_EVERY * 5)? {
                Some(status) => break status,
                // Something outside of the campaign has stopped it.
                None if processes::is_stopped(running.id()) => {
                    until = Instant::now() + self.limit();
                }
                None if Instant::now() > until => {
                    let threads = processes::threads_of(running.id());
                    return Ok(Err(format!("the host alone hangs: {threads}")));
                }
                None => {}
            }
        };
        if !status.success() {
            return Ok(Err(format!("the host alone failed: {}", running.stderr())));
        }
        Ok(Ok(HostAlone::new(&ledger::read(&self.folder.join("alone.jsonl"))?)))
    }

    fn limit(&self) -> Duration {
        if self.job.is_endurance { ENDURANCE_LIMIT } else { LIMIT }
    }

    /// Runs the host once, with the fault unless it has happened.
    fn host(&mut self, violations: &mut Vec<String>) -> anyhow::Result<Ending> {
        let addresses = match self.job.trouble {
            Trouble::DeviceLate => self.later_addresses()?,
            _ => self.injection.devices.addresses(),
        };
        write(
            self.folder,
            "job.toml",
            &self.job.text(&self.set.display().to_string(), &addresses),
        )?;
        let resumes = self.job.trouble == Trouble::HostKilled || self.job.is_endurance;
        let mut line = match resumes {
            true => vec!["consume", "job.toml", "--ledger", "ledger.jsonl", "--json"],
            false => vec!["run", "job.toml", "--ledger", "ledger.jsonl", "--json"],
        };
        // The files that a verification would read have changed.
        let is_verified = !resumes && !self.job.trouble.is_of_part();
        if !resumes && !is_verified {
            line.push("--no-verify");
        }
        if self.job.is_endurance {
            line.extend(["--gate", GATE]);
        }
        let name = if resumes && self.injection.is_injected() { "resumed" } else { "host" };
        let mut host = Running::start(self.folder, name, &line)?;
        if self.job.trouble == Trouble::DeviceLate && self.job.has_own_devices() {
            self.injection.start_devices_later();
        }
        let status = self.observe(&mut host)?;
        let (stdout, stderr) = (host.stdout(), host.stderr());
        violations.extend(judge::defects("the host", &stderr));
        let Some(status) = status else {
            return Ok(Ending::Wrong(format!("it hung, and was killed after {:?}", self.limit())));
        };
        if self.job.trouble == Trouble::HostKilled && self.injection.is_injected() && name == "host"
        {
            return Ok(Ending::Succeeded);
        }
        let ending = judge::ending(status, &stdout, &stderr);
        if ending == Ending::Succeeded && is_verified {
            violations.extend(judge::report(&stdout));
        }
        Ok(ending)
    }

    /// Addresses at which devices will listen once they are started.
    fn later_addresses(&self) -> anyhow::Result<Vec<String>> {
        if !self.job.has_own_devices() {
            return Ok(Vec::new());
        }
        (0..self.job.devices)
            .map(|number| match self.job.transport {
                Transport::Unix | Transport::Spawned => Ok(format!("d{number}")),
                // The discard service: nothing listens there, so the device never comes.
                Transport::Tcp => Ok("tcp://127.0.0.1:9".to_owned()),
            })
            .collect()
    }

    /// Watches the host until it ends; `None` if it had to be killed.
    fn observe(&mut self, host: &mut Running) -> anyhow::Result<Option<std::process::ExitStatus>> {
        let mut until = Instant::now() + self.limit();
        let mut progress = Progress::new(&self.folder.join("ledger.jsonl"));
        loop {
            self.stop.check()?;
            progress.update();
            if self.job.is_endurance {
                self.sample(host)?;
            }
            self.injection.inject_if_due(host, progress.batches)?;
            self.injection.end_faults(false)?;
            if let Some(status) = host.wait(LOOK_EVERY)? {
                self.injection.end_faults(true)?;
                return Ok(Some(status));
            }
            if Instant::now() > until {
                let all = processes::marked(self.folder);
                if !self.injection.is_pending() && all.iter().any(|pid| processes::is_stopped(*pid))
                {
                    // Something outside of the campaign has stopped it.
                    until = Instant::now() + self.limit();
                    continue;
                }
                let text: String = all.into_iter().map(processes::threads_of).collect();
                write(self.folder, "hang.txt", &text)?;
                host.signal(Signal::KILL);
                host.wait(Duration::from_secs(10))?;
                self.injection.end_faults(true)?;
                return Ok(None);
            }
        }
    }

    /// Records what host and device hold after an epoch; the host then begins the next.
    fn sample(&mut self, host: &Running) -> anyhow::Result<()> {
        let gate = self.folder.join(GATE);
        let epoch = u32::try_from(Gate::ended(&gate))?;
        if self.host_samples.last().map_or(0, |last| last.epoch) == epoch {
            return Ok(());
        }
        // A process that ends meanwhile has no further epoch.
        let holdings = Holdings::of(host.id()).unwrap_or_default();
        self.host_samples.push(Sample { epoch, holdings });
        let device = processes::devices_of(host.id()).first().copied().and_then(Holdings::of);
        if let Some(holdings) = device {
            self.device_samples.push(Sample { epoch, holdings });
        }
        Gate::open_until(&gate, epoch.into())
    }

    /// The trends of a job with many epochs; those that grow are violations.
    fn trends(&self, violations: &mut Vec<String>, was_killed: bool) -> Vec<Trend> {
        if !self.job.is_endurance || was_killed {
            return Vec::new();
        }
        let mut all = trends("host", &self.host_samples);
        // Each restart of a killed device is a new process.
        if self.job.trouble == Trouble::None {
            all.extend(trends("device", &self.device_samples));
        }
        if all.is_empty() {
            violations.push("too few epochs were observed for a trend".to_owned());
        }
        for trend in all.iter().filter(|trend| trend.is_growing()) {
            let Trend { process, resource, samples, mean, rise, rise_max } = trend;
            violations.push(format!(
                "{resource} of the {process} grow by {rise:.1} over {samples} samples with a mean \
                 of {mean:.1}; {rise_max:.1} are permitted"
            ));
        }
        all
    }
}

/// How far a ledger has grown.
struct Progress {
    path: PathBuf,
    file: Option<File>,
    /// Whole lines so far.
    batches: u64,
    /// The beginning of a line that is not whole yet.
    rest: Vec<u8>,
}

impl Progress {
    fn new(path: &Path) -> Self {
        let (path, file, rest) = (path.to_path_buf(), None, Vec::new());
        Self { path, file, batches: 0, rest }
    }

    fn update(&mut self) {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &mut self.file else { return };
        if file.read_to_end(&mut self.rest).is_err() {
            return;
        }
        self.batches += self.rest.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let whole = self.rest.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        self.rest.drain(..whole);
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, TortureJob, Trend, Verdict};

    #[test]
    fn only_growing_resources_are_confirmed_with_more_epochs() {
        let trend = |rise| Trend {
            process: "host",
            resource: "descriptors",
            samples: 39,
            mean: 20.0,
            rise,
            rise_max: 0.9,
        };
        let only_grew = |rises: &[f64], violations: &[&str]| {
            let outcome = Outcome {
                job: TortureJob::new(1, 11, 60),
                is_injected: true,
                verdict: Verdict::Failed,
                cause: None,
                violations: violations.iter().map(|&it| it.to_owned()).collect(),
                batches: 1,
                device_batches: 0,
                trends: rises.iter().copied().map(trend).collect(),
                grew_at_first: Vec::new(),
                seconds: 1.0,
            };
            outcome.only_grew()
        };
        assert!(only_grew(&[0.0, 2.3], &["descriptors grow"]));
        assert!(!only_grew(&[0.0, 0.5], &["a batch was consumed twice"]));
        assert!(!only_grew(&[2.3], &["descriptors grow", "a batch was consumed twice"]));
        assert!(!only_grew(&[0.0], &[]));
    }
}
