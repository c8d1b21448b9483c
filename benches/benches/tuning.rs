//! A loader that adapts its workers and batches ahead, beside loaders where they are fixed.
//!
//! All loaders of a case are open at the same time and take turns, an epoch each; medians count. A
//! tuned loader keeps what it found for its next epoch. The first epochs, in which it tries, count
//! in the row of all epochs, whose goal is at most 2 % more than with fixed numbers.

use anyhow::Context;
use meetpoint_benches::{Options, Report, Row, Target, median, pictures};
use meetpoint_format::recipe::Recipe;
use meetpoint_host::{Loader, LoaderConfig, Tune};
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const RECIPE: &str = r#"
[[operation]]
name = "decode"
[[operation]]
name = "random_resized_crop"
size = 224
"#;

/// A tuned loader may take so much of the time of a fixed one.
const RATIO_MAX: f64 = 1.02;

/// A case: its name, workers at first, and the step of the consumer.
const CASES: [(&str, u32, Duration); 3] = [
    ("1 worker, no step", 1, Duration::ZERO),
    ("consumer's thread, no step", 0, Duration::ZERO),
    ("1 worker, step of 40 ms", 1, Duration::from_millis(40)),
];

/// One epoch.
#[derive(Debug, Clone, Copy)]
struct Pass {
    wall_ns: f64,
    cpu_ns: f64,
}

fn main() -> anyhow::Result<()> {
    let options = Options::from_args(&["dir"])?;
    let folder = tempfile::tempdir().context("making a temporary folder")?;
    let source = options.path("dir");
    let count = if options.quick { 64 } else { 480 };
    let path = pictures::dataset(folder.path(), source.as_deref(), count)?;
    let recipe = Arc::new(Recipe::from_toml(RECIPE)?);
    let mut report = Report::new("tuning", &options);
    for (name, workers, step) in CASES {
        // Steps take real time: fewer epochs say enough.
        let rounds = match (options.quick, step.is_zero()) {
            (true, _) => 2,
            (false, true) => 24,
            (false, false) => 6,
        };
        case(&path, &recipe, (name, workers, step), rounds, &mut report)?;
    }
    report.finish(&options)
}

fn case(
    path: &Path,
    recipe: &Arc<Recipe>,
    (name, workers, step): (&str, u32, Duration),
    rounds: u32,
    report: &mut Report,
) -> anyhow::Result<()> {
    let cores = u32::try_from(std::thread::available_parallelism().map_or(1, usize::from))?;
    let open = |workers: u32, tune: Tune| {
        let mut config = LoaderConfig::new(path, Arc::clone(recipe), 4);
        (config.workers, config.tune) = (workers, tune);
        Loader::open(config)
    };
    let mut fixed = open(workers, Tune::Off)?;
    let mut most = open(cores, Tune::Off)?;
    let mut tuned = open(workers, Tune::Auto)?;
    let (mut of_fixed, mut of_most, mut of_tuned) = (Vec::new(), Vec::new(), Vec::new());
    let mut used = Vec::new();
    for epoch in 0..rounds {
        of_fixed.push(pass(&mut fixed, epoch, step)?.0);
        let (tuned, what) = pass(&mut tuned, epoch, step)?;
        of_tuned.push(tuned);
        used.extend(what);
        of_most.push(pass(&mut most, epoch, step)?.0);
    }
    if let Some(last) = used.last() {
        report.note(format!("{name}: {last}"));
    }
    let tried: u32 = used.iter().map(|it| it.tried).sum();
    let kept: u32 = used.iter().map(|it| it.kept).sum();
    report.note(format!("{name}: {tried} moves tried in all epochs, {kept} kept"));
    let wall = |passes: &[Pass]| median(&passes.iter().map(|it| it.wall_ns).collect::<Vec<_>>());
    let cpu = |passes: &[Pass]| median(&passes.iter().map(|it| it.cpu_ns).collect::<Vec<_>>());
    let sum = |passes: &[Pass]| passes.iter().map(|it| it.wall_ns).sum::<f64>();
    let (tuned, fixed, most) = (&of_tuned[..], &of_fixed[..], &of_most[..]);
    report.row(
        Row::alone(format!("{name}: all epochs"), sum(tuned) / 1e6, "ms")
            .against("fixed, as at first", sum(fixed) / 1e6)
            .target(Target::RatioAtMost(RATIO_MAX)),
    );
    let late = tuned.len() / 2;
    report.row(
        Row::alone(format!("{name}: an epoch, later half"), wall(&tuned[late..]) / 1e6, "ms")
            .against(format!("fixed, {cores} workers"), wall(&most[late..]) / 1e6),
    );
    report.row(
        Row::alone(format!("{name}: CPU time of an epoch"), cpu(tuned) / 1e6, "ms")
            .against("fixed, as at first", cpu(fixed) / 1e6)
            .target(Target::RatioAtMost(1.05)),
    );
    Ok(())
}

fn pass(
    loader: &mut Loader,
    epoch: u32,
    step: Duration,
) -> anyhow::Result<(Pass, Option<meetpoint_host::stats::TuningUse>)> {
    let (cpu, wall) = (cpu_ns(), Instant::now());
    let mut running = loader.start_epoch(epoch)?;
    while let Some(batch) = running.next_batch()? {
        std::hint::black_box(batch.bytes());
        if !step.is_zero() {
            std::thread::sleep(step);
        }
    }
    let used = running.finish().tuning;
    let wall_ns = wall.elapsed().as_nanos() as f64;
    Ok((Pass { wall_ns, cpu_ns: cpu_ns() - cpu }, used))
}

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
