//! A job on an emulated device, measured against the host alone and against the closed forms.
//!
//! The program runs as a user runs it, in processes of its own. Each row's ratio is measured time
//! over predicted time (of the profile measured in the same run), or samples a second over those
//! of `host-only` in the same round. Rounds whose emulation missed its target are left out and
//! counted.

use anyhow::{Context, ensure};
use meetpoint_benches::{Options, Report, Row, Target, median, pictures};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// How far a measured time may be from its closed form.
const ERROR_MAX: f64 = 0.05;

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
    for workers in [0, 1] {
        compare(&set, folder.path(), workers, rounds, &options, &mut report)?;
    }
    report.finish(&options)
}

/// What the rounds of one strategy came to.
#[derive(Default)]
struct Rounds {
    /// Measured over predicted, less one, without its sign.
    errors: Vec<f64>,
    predicted: Vec<f64>,
    seconds: Vec<f64>,
    gains: Vec<f64>,
}

fn compare(
    set: &Path,
    folder: &Path,
    workers: u32,
    rounds: usize,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    let job = folder.join("job.toml");
    std::fs::write(&job, job_text(set, workers, options.quick)).context("writing a job")?;
    let mut by_strategy: BTreeMap<String, Rounds> = BTreeMap::new();
    let mut invalid = 0;
    for _ in 0..rounds {
        let round = run(&job, folder)?;
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
    let knobs = run["device"]["knobs"].as_array().cloned().unwrap_or_default();
    knobs.iter().any(|knob| {
        let (Some(achieved), Some(target)) = (knob["achieved"].as_f64(), knob["target"].as_f64())
        else {
            return true;
        };
        (achieved / target - 1.0).abs() > 0.05
    })
}

fn run(job: &Path, folder: &Path) -> anyhow::Result<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_meetpoint-under-bench"))
        .args(["run", "--json", "--strategy", "all", "--no-verify", "--report"])
        .arg(folder.join("report"))
        .arg(job)
        .stdin(Stdio::null())
        .output()
        .context("starting the program")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the program failed: {said}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// A device at half a core's speed: t_s is about twice the host's preparation.
fn job_text(set: &Path, workers: u32, quick: bool) -> String {
    let (batch_size, step) = if quick { (4, "5ms") } else { (16, "10ms") };
    format!(
        r#"dataset = "{}"
batch_size = {batch_size}
drop_last = true
workers = {workers}

[[recipe.operation]]
name = "decode"
[[recipe.operation]]
name = "random_resized_crop"
size = 224
[[recipe.operation]]
name = "random_horizontal_flip"

[device]
kind = "emulated"
cpu_ratio = 0.5
allow_shared = true

[spool]
kind = "memory"
quota = "512MiB"

[accelerator]
kind = "emulated"
step = "{step}"
"#,
        set.display()
    )
}
