//! A job on an emulated device, measured against the host alone and against the closed forms.
//!
//! The program runs as a user runs it, in separate processes. Each row's ratio is measured time
//! over predicted time (of the profile measured in the same run), or samples a second over those
//! of `host-only` in the same round. Runs whose emulation missed its target are left out and
//! counted. The accelerator's step follows from a measurement of this machine, so that the closed
//! forms predict a gain.

use anyhow::{Context, ensure};
use meetpoint_benches::{Options, Report, Row, Target, median, pictures};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// How far a measured time may be from its closed form.
const ERROR_MAX: f64 = 0.05;
/// Share of a core that the device computes.
const CPU_RATIO: f64 = 0.5;
/// A step of the accelerator as a share of the host's time to prepare a batch: below 1, so that the
/// accelerator waits for the host, with workers too.
const STEP_OVER_PREPARE: f64 = 0.5;
/// Least time of the host alone, so that starts and ends weigh little.
const SECONDS_WANTED: f64 = 3.0;

fn main() -> anyhow::Result<()> {
    let options = Options::from_args(&["dir", "rounds"])?;
    let folder = tempfile::tempdir().context("making a temporary folder")?;
    let source = options.path("dir");
    let set =
        pictures::dataset(folder.path(), source.as_deref(), if options.quick { 32 } else { 1200 })?;
    let rounds = match options.own.get("rounds") {
        Some(rounds) => rounds.parse().context("--rounds takes a number")?,
        None if options.quick => 1,
        None => 5,
    };
    let mut report = Report::new("end_to_end", &options);
    let setting = Setting::measure(&set, folder.path(), options.quick)?;
    report.note(format!(
        "the host prepares a batch of {} in {:.2} ms; steps of {:.2} ms, {} epochs",
        setting.batch_size,
        setting.prepare_seconds * 1e3,
        setting.step_seconds() * 1e3,
        setting.epochs
    ));
    for workers in [0, 1] {
        compare(&setting, folder.path(), workers, rounds, &mut report)?;
    }
    report.finish(&options)
}

/// The job that is run.
struct Setting<'a> {
    set: &'a Path,
    batch_size: u32,
    /// Time of the host to prepare a batch.
    prepare_seconds: f64,
    epochs: u32,
    cores: Vec<usize>,
}

impl<'a> Setting<'a> {
    /// Measures how long the host takes for a batch, in one epoch without device or accelerator.
    fn measure(set: &'a Path, folder: &Path, is_quick: bool) -> anyhow::Result<Self> {
        let batch_size = if is_quick { 4 } else { 16 };
        let allowed = rustix::thread::sched_getaffinity(None).context("asking for cores")?;
        let cores = 0..rustix::thread::CpuSet::MAX_CPU;
        let cores = cores.filter(|core| allowed.is_set(*core)).collect();
        let mut setting = Self { set, batch_size, prepare_seconds: 0.0, epochs: 1, cores };
        let job = folder.join("alone.toml");
        std::fs::write(&job, setting.job_of_the_host(0)).context("writing a job")?;
        let report = run(&job, folder, "host-only")?;
        let epoch = &report["runs"][0]["epochs"][0];
        let prepare = epoch["profile"]["t_c_seconds"].as_f64().context("a profile has t_c")?;
        let batches = report["job"]["batches"].as_f64().context("a job has batches")?;
        setting.prepare_seconds = prepare;
        if !is_quick {
            let epoch = batches * (prepare + setting.step_seconds());
            setting.epochs = (SECONDS_WANTED / epoch).ceil().clamp(1.0, 20.0) as u32;
        }
        Ok(setting)
    }

    fn step_seconds(&self) -> f64 {
        self.prepare_seconds * STEP_OVER_PREPARE
    }

    fn job_of_the_host(&self, workers: u32) -> String {
        let host_cores = match &self.cores[..] {
            [host @ .., _] if !host.is_empty() => format!("host_cores = {host:?}\n"),
            _ => String::new(),
        };
        format!(
            r#"dataset = "{}"
batch_size = {}
epochs = {}
drop_last = true
workers = {workers}
{host_cores}
[[recipe.operation]]
name = "decode"
[[recipe.operation]]
name = "random_resized_crop"
size = 224
[[recipe.operation]]
name = "random_horizontal_flip"

"#,
            self.set.display(),
            self.batch_size,
            self.epochs
        )
    }

    /// With a device on a separate core at half its speed, so t_s is twice the host's
    /// preparation, and an accelerator.
    fn job(&self, workers: u32) -> String {
        let micros = (self.step_seconds() * 1e6).round().max(1.0);
        format!(
            r#"{}[device]
kind = "emulated"
cpu_ratio = {CPU_RATIO}
allow_shared = true

[spool]
kind = "memory"
quota = "512MiB"

[accelerator]
kind = "emulated"
step = "{micros}us"
"#,
            self.job_of_the_host(workers)
        )
    }
}

/// The figures of all rounds of one strategy.
#[derive(Default)]
struct Rounds {
    /// Measured over predicted, less one, without its sign.
    errors: Vec<f64>,
    predicted: Vec<f64>,
    seconds: Vec<f64>,
    gains: Vec<f64>,
}

fn compare(
    setting: &Setting<'_>,
    folder: &Path,
    workers: u32,
    rounds: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let job = folder.join("job.toml");
    std::fs::write(&job, setting.job(workers)).context("writing a job")?;
    let mut by_strategy: BTreeMap<String, Rounds> = BTreeMap::new();
    let mut invalid = 0;
    for _ in 0..rounds {
        let round = run(&job, folder, "all")?;
        let runs = round["runs"].as_array().context("a report has runs")?;
        let baseline = seconds(&runs[0])?;
        ensure!(runs[0]["strategy"] == "host-only", "the first strategy is the baseline");
        for run in runs {
            if is_off_target(run) {
                invalid += 1;
                continue;
            }
            let name = run["strategy"].as_str().context("a strategy has a name")?.to_owned();
            let rounds = by_strategy.entry(name).or_default();
            rounds.seconds.push(seconds(run)?);
            rounds.gains.push(baseline / seconds(run)?);
            let prediction = &run["prediction"];
            rounds.errors.extend(prediction["error_ratio"].as_f64().map(f64::abs));
            rounds.predicted.extend(prediction["seconds"].as_f64());
        }
    }
    report.note(format!("w = {workers}: {rounds} rounds, {invalid} runs left out as off target"));
    for (name, rounds) in &by_strategy {
        if !rounds.errors.is_empty() {
            let case = format!("w = {workers}, {name}: |measured / closed form - 1|");
            let error = median(&rounds.errors);
            report.row(Row::alone(case, error, "").target(Target::ValueAtMost(ERROR_MAX)));
            let case = format!("w = {workers}, {name}: time");
            report.row(
                Row::alone(case, median(&rounds.seconds), "s")
                    .against("closed form", median(&rounds.predicted)),
            );
        }
        if ["mte", "wrr"].iter().any(|faster| name.starts_with(faster)) {
            report.row(
                Row::alone(format!("w = {workers}, {name}: speed"), median(&rounds.gains), "x")
                    .against("host-only", 1.0)
                    .target(Target::RatioAtLeast(1.0)),
            );
        }
    }
    Ok(())
}

fn seconds(run: &Value) -> anyhow::Result<f64> {
    run["totals"]["seconds"].as_f64().context("a run has its time")
}

fn is_off_target(run: &Value) -> bool {
    let devices = run["devices"].as_array().into_iter().flatten();
    devices.flat_map(|device| device["knobs"].as_array().into_iter().flatten()).any(|limit| {
        let (Some(achieved), Some(target)) = (limit["achieved"].as_f64(), limit["target"].as_f64())
        else {
            return true;
        };
        (achieved / target - 1.0).abs() > 0.05
    })
}

fn run(job: &Path, folder: &Path, strategy: &str) -> anyhow::Result<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_meetpoint-under-bench"))
        .args(["run", "--json", "--strategy", strategy, "--no-verify", "--report"])
        .arg(folder.join("report"))
        .arg(job)
        .stdin(Stdio::null())
        .output()
        .context("starting the program")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the program failed: {said}");
    Ok(serde_json::from_slice(&output.stdout)?)
}
