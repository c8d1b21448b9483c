//! What the host runtime costs over the kernels alone, and the memory that it holds.
//!
//! The peer is a loop over the same encoded samples in memory, in the same order, into one reused
//! buffer: no reads, no checks, no ring, no threads. Rounds of both alternate; medians count.

use anyhow::{Context, ensure};
use meetpoint_benches::{Options, Report, Row, Target, median, pictures};
use meetpoint_format::checksum::crc32c;
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::Sequential;
use meetpoint_host::{Loader, LoaderConfig};
use meetpoint_kernels::{Cpu, SampleId, SamplePreparer};
use meetpoint_prepare::Dataset;
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const RECIPE: &str = r#"
[[operation]]
name = "decode"
[[operation]]
name = "random_resized_crop"
size = 224
[[operation]]
name = "random_horizontal_flip"
"#;

/// The loader may take so much of the bare loop's CPU time, and a little more.
const OVERHEAD_MAX: f64 = 1.03;
const BUDGET_BYTES: u64 = 512 << 20;

/// One pass over the dataset.
#[derive(Debug, Clone, Copy)]
struct Pass {
    cpu_ns: f64,
    wall_ns: f64,
    /// Of the checksums of the samples: both must have made the same tensors.
    hash: u32,
}

fn main() -> anyhow::Result<()> {
    let options = Options::from_args(&["dir"])?;
    let folder = tempfile::tempdir().context("making a temporary folder")?;
    let source = options.path("dir");
    let path =
        pictures::dataset(folder.path(), source.as_deref(), if options.quick { 32 } else { 600 })?;
    let recipe = Arc::new(Recipe::from_toml(RECIPE)?);
    let mut report = Report::new("runtime", &options);
    overhead(&path, &recipe, if options.quick { 1 } else { 9 }, &mut report)?;
    memory(&path, &recipe, if options.quick { 16 } else { 256 }, &mut report)?;
    report.finish(&options)
}

fn overhead(
    path: &Path,
    recipe: &Arc<Recipe>,
    rounds: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let dataset = Dataset::open(path)?;
    let encoded: Vec<Vec<u8>> =
        (0..dataset.len()).map(|sample| dataset.read_sample(sample)).collect::<Result<_, _>>()?;
    let samples = encoded.len() as f64;
    let (mut bare, mut loader) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let epoch = u32::try_from(round).context("few rounds")?;
        bare.push(bare_loop(&encoded, recipe, epoch)?);
        loader.push(through_loader(path, recipe, epoch)?);
        let (ours, peer) = (loader[round].hash, bare[round].hash);
        ensure!(ours == peer, "round {round}: loader made {ours:#010x}, bare loop {peer:#010x}");
    }
    let of = |passes: &[Pass], figure: fn(&Pass) -> f64| {
        median(&passes.iter().map(figure).collect::<Vec<_>>()) / samples / 1e3
    };
    report.note(format!("{} samples, hash {:#010x}", encoded.len(), bare[0].hash));
    report.row(
        Row::alone("host-only, 1 worker: CPU time a sample", of(&loader, |p| p.cpu_ns), "us")
            .against("bare kernel loop", of(&bare, |p| p.cpu_ns))
            .target(Target::RatioAtMost(OVERHEAD_MAX)),
    );
    report.row(
        Row::alone("host-only, 1 worker: wall time a sample", of(&loader, |p| p.wall_ns), "us")
            .against("bare kernel loop", of(&bare, |p| p.wall_ns)),
    );
    Ok(())
}

fn cpu_ns(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn bare_loop(encoded: &[Vec<u8>], recipe: &Recipe, epoch: u32) -> anyhow::Result<Pass> {
    let bytes = recipe.output().context("the recipe has a fixed shape")?.bytes();
    let mut out = vec![0; bytes];
    let mut preparer = SamplePreparer::new(recipe, Cpu::detect());
    let (cpu, wall) = (cpu_ns(ClockId::ThreadCPUTime), Instant::now());
    let mut checks = Vec::with_capacity(encoded.len());
    let mut checking = 0.0;
    for (sample, encoded) in encoded.iter().enumerate() {
        let id = SampleId { seed: 0, epoch, sample: sample as u64 };
        preparer.prepare(encoded.into(), id, &mut out, &mut || ())?;
        let before = cpu_ns(ClockId::ThreadCPUTime);
        checks.push(crc32c(&out));
        checking += cpu_ns(ClockId::ThreadCPUTime) - before;
    }
    Ok(Pass {
        cpu_ns: cpu_ns(ClockId::ThreadCPUTime) - cpu - checking,
        wall_ns: wall.elapsed().as_nanos() as f64 - checking,
        hash: hash(&checks),
    })
}

fn through_loader(path: &Path, recipe: &Arc<Recipe>, epoch: u32) -> anyhow::Result<Pass> {
    let mut config = LoaderConfig::new(path, Arc::clone(recipe), 32);
    config.workers = 1;
    config.sampler = Sequential.into();
    config.memory_budget_bytes = BUDGET_BYTES;
    let mut loader = Loader::open(config)?;
    // The first epoch touches fresh memory; what is measured is a loader that runs.
    drain(&mut loader, epoch)?;
    let (cpu, wall) = (cpu_ns(ClockId::ProcessCPUTime), Instant::now());
    let (checks, checking) = drain(&mut loader, epoch)?;
    Ok(Pass {
        cpu_ns: cpu_ns(ClockId::ProcessCPUTime) - cpu - checking,
        wall_ns: wall.elapsed().as_nanos() as f64,
        hash: hash(&checks),
    })
}

/// Consumes an epoch; the checksum of each sample in dataset order, and the CPU time they took.
fn drain(loader: &mut Loader, epoch: u32) -> anyhow::Result<(Vec<u32>, f64)> {
    let mut checks = Vec::new();
    let mut checking = 0.0;
    let mut running = loader.start_epoch(epoch)?;
    while let Some(batch) = running.next_batch()? {
        let before = cpu_ns(ClockId::ThreadCPUTime);
        let bytes = batch.bytes();
        checks.extend(bytes.chunks(bytes.len() / batch.samples().len()).map(crc32c));
        checking += cpu_ns(ClockId::ThreadCPUTime) - before;
    }
    running.finish();
    Ok((checks, checking))
}

fn hash(checks: &[u32]) -> u32 {
    crc32c(&checks.iter().flat_map(|check| check.to_le_bytes()).collect::<Vec<_>>())
}

fn memory(
    path: &Path,
    recipe: &Arc<Recipe>,
    batch_size: u32,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut config = LoaderConfig::new(path, Arc::clone(recipe), batch_size);
    config.workers = 2;
    config.memory_budget_bytes = BUDGET_BYTES;
    let mut loader = Loader::open(config)?;
    let mut running = loader.start_epoch(0)?;
    while let Some(batch) = running.next_batch()? {
        std::hint::black_box(batch.bytes());
    }
    let stats = running.finish();
    report.row(
        Row::alone(
            format!("resident memory, batch {batch_size}, 2 workers"),
            stats.host_peak_resident_bytes as f64 / f64::from(1 << 20),
            "MiB",
        )
        .against("budget", BUDGET_BYTES as f64 / f64::from(1 << 20))
        .target(Target::RatioAtMost(1.0)),
    );
    Ok(())
}
