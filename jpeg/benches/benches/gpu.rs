//! JPEG files in memory to tensors on a GPU: decoding, a random crop, resize, flip, normalisation.
//!
//! Measures files with entry points (as `meetpoint pack` stores them), files without, files with
//! restart markers, and coefficient forms, with one thread and with several; compared with the same
//! pictures on all cores of the CPU. Before anything is timed, all tensors are compared with the
//! CPU's. Times are wall time until the work has completed; the first batches, which allocate and
//! compile, are not measured.
//!
//! Run it with `cargo bench -p meetpoint-jpeg-benches --bench gpu`. Options: `--dir FOLDER` of
//! JPEGs, `--device N`, `--batch N`. Without a GPU, it reports that and ends.
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use anyhow::{Context, bail, ensure};
use meetpoint_format::checksum::crc32c;
use meetpoint_format::recipe::Recipe;
use meetpoint_gpu::cuda::{Driver, Gpu, Options as GpuOptions};
use meetpoint_jpeg_benches::{Options, Report, Row, Target, encoded_picture, jpeg_files, median};
use meetpoint_kernels::jpeg::{Form, Restarts, Rewrite, Spacing, entry_points, rewrite, to_form};
use meetpoint_kernels::{Cpu, Encoded, SampleId, SamplePreparer};
use meetpoint_prepare::Tensors;
use meetpoint_prepare::gpu::{GpuBatch, GpuMemory, OfferOutcome};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const RECIPE: &str = r#"
[[operation]]
name = "decode"
[[operation]]
name = "random_resized_crop"
size = 224
[[operation]]
name = "random_horizontal_flip"
[[operation]]
name = "to_dtype"
dtype = "float32"
scale = true
[[operation]]
name = "normalize"
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]
[[operation]]
name = "layout"
layout = "NCHW"
"#;

/// Images per second that one GPU should reach.
const RATE_MIN: f64 = 50_000.0;

/// Pictures of a batch.
const BATCH: usize = 256;

/// A file and what the dataset stores beside it.
struct File {
    bytes: Vec<u8>,
    entry_points: Vec<u8>,
    crc32c: u32,
}

impl File {
    fn new(bytes: Vec<u8>, entry_points: Vec<u8>) -> Self {
        Self { crc32c: crc32c(&bytes), bytes, entry_points }
    }

    fn encoded(&self) -> Encoded<'_> {
        let Self { bytes, entry_points, crc32c } = self;
        Encoded { bytes, entry_points, crc32c: Some(*crc32c) }
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::from_args(&["dir", "device", "batch"])?;
    let recipe = Recipe::from_toml(RECIPE)?;
    let mut report = Report::new("gpu", &options);
    if let Err(error) = Driver::load() {
        report.note(format!("nothing was measured: {error}"));
        return report.finish(&options);
    }
    let number = |name: &str, default: usize| match options.own.get(name) {
        Some(text) => text.parse().with_context(|| format!("--{name} takes a number")),
        None => Ok(default),
    };
    let batch = number("batch", if options.quick { 16 } else { BATCH })?;
    let device = u32::try_from(number("device", 0)?).context("--device is an index")?;
    let gpu = Gpu::open(device, &GpuOptions::from_environment())?;
    report.note(gpu.info().name.clone());
    let plain = match options.path("dir") {
        Some(folder) => jpeg_files(&folder)?.into_iter().map(|(_, bytes)| bytes).collect(),
        None => (0..16).map(encoded_picture).collect::<anyhow::Result<Vec<_>>>()?,
    };
    let mean = plain.iter().map(Vec::len).sum::<usize>() / plain.len();
    report.note(format!("{} files of {mean} bytes on average, batches of {batch}", plain.len()));
    let cores = std::thread::available_parallelism()?.get();
    let on_cpu = cpu_rate(&recipe, &with_entry_points(&plain)?, batch, cores)?;
    report.row(Row::alone(format!("CPU, {cores} threads"), on_cpu, "images/s"));
    for (name, files) in [
        ("entry points", with_entry_points(&plain)?),
        ("no entry points", as_they_are(&plain)),
        ("restart markers", with_restarts(&plain)?),
        ("fast coefficient form", as_forms(&plain, Form::Fast)?),
        ("compact coefficient form", as_forms(&plain, Form::Compact)?),
    ] {
        let exact = compare(&gpu, &recipe, &files, batch)?;
        report.note(format!("{name}: {exact}"));
        for threads in [1, 4, cores.min(16)] {
            let times = gpu_times(&gpu, &recipe, &files, (batch, threads))?;
            let target = (name == "entry points" && threads > 4).then_some(RATE_MIN);
            let row = Row::alone(format!("GPU, {name}, {threads} threads"), times.rate, "images/s")
                .against("CPU", on_cpu);
            report.row(match target {
                Some(rate) => row.target(Target::ValueAtLeast(rate)),
                None => row,
            });
            if threads == 1 {
                let Times { staging_ms, gpu_ms, device_bytes, .. } = times;
                report.row(Row::alone(format!("GPU, {name}, staging a batch"), staging_ms, "ms"));
                report.row(Row::alone(format!("GPU, {name}, work of a batch"), gpu_ms, "ms"));
                let mib = device_bytes as f64 / f64::from(1 << 20);
                report.row(Row::alone(format!("GPU, {name}, memory"), mib, "MiB"));
            }
        }
    }
    report.finish(&options)
}

fn as_they_are(plain: &[Vec<u8>]) -> Vec<File> {
    plain.iter().map(|bytes| File::new(bytes.clone(), Vec::new())).collect()
}

fn with_entry_points(plain: &[Vec<u8>]) -> anyhow::Result<Vec<File>> {
    let file = |bytes: &Vec<u8>| {
        let points = entry_points(bytes, Spacing::McuRow)?.unwrap_or_default();
        Ok(File::new(bytes.clone(), points))
    };
    plain.iter().map(file).collect()
}

fn with_restarts(plain: &[Vec<u8>]) -> anyhow::Result<Vec<File>> {
    let how = Rewrite { restarts: Restarts::EveryMcuRows(1), ..Rewrite::default() };
    let file = |bytes: &Vec<u8>| Ok(File::new(rewrite(bytes, &how)?, Vec::new()));
    plain.iter().map(file).collect()
}

fn as_forms(plain: &[Vec<u8>], form: Form) -> anyhow::Result<Vec<File>> {
    let file = |bytes: &Vec<u8>| Ok(File::new(to_form(bytes, form)?, Vec::new()));
    plain.iter().map(file).collect()
}

fn id(number: usize) -> SampleId {
    SampleId { seed: 1, epoch: 0, sample: number as u64 }
}

/// Compares the tensors of two batches with the CPU's; prints how many the GPU prepared.
fn compare(
    gpu: &Arc<Gpu>,
    recipe: &Recipe,
    files: &[File],
    batch: usize,
) -> anyhow::Result<String> {
    let mut on_gpu = GpuBatch::new(Box::new(gpu.compute()?), recipe, &[0], GpuMemory::default())?;
    let mut preparer = SamplePreparer::new(recipe, Cpu::detect());
    let bytes = recipe.output().context("a recipe for a GPU")?.bytes();
    let (mut equal, mut unsound, mut refused) = (0, 0, 0);
    let mut why = String::new();
    for first in [0, batch] {
        on_gpu.begin()?;
        for position in 0..batch {
            let number = first + position;
            let file = files[number % files.len()].encoded();
            if let OfferOutcome::No(reason) = on_gpu.take(position, file, id(number))? {
                refused += 1;
                why = format!(", such as: {reason}");
            }
        }
        on_gpu.start(false)?;
        let flagged = on_gpu.wait()?;
        unsound += flagged.len();
        let mut tensors = vec![0; batch * bytes];
        on_gpu.download(&mut [Tensors { bytes: &mut tensors, each: bytes }])?;
        let mut expected = vec![0; bytes];
        for position in on_gpu.positions() {
            if flagged.contains(&position) {
                continue;
            }
            let number = first + position;
            let file = files[number % files.len()].encoded();
            preparer.prepare(file, id(number), &mut expected, &mut || ())?;
            let got = &tensors[position * bytes..][..bytes];
            if let Some(at) = got.iter().zip(&expected).position(|(got, cpu)| got != cpu) {
                bail!("picture {number} differs from the CPU's at byte {at}");
            }
            equal += 1;
        }
    }
    ensure!(equal > 0, "the GPU prepared nothing{why}");
    Ok(format!("{equal} tensors equal the CPU's, {unsound} flagged, {refused} refused{why}"))
}

/// The results of a measurement.
struct Times {
    /// Images per second of all threads.
    rate: f64,
    /// Milliseconds that a batch occupies its thread, and until the GPU has completed it.
    staging_ms: f64,
    gpu_ms: f64,
    /// Bytes of the GPU's memory for the batches of one thread.
    device_bytes: usize,
}

/// Prepares batches in several threads, each with two batches in turn: one is staged while the GPU
/// works on the other.
fn gpu_times(
    gpu: &Arc<Gpu>,
    recipe: &Recipe,
    files: &[File],
    (batch, threads): (usize, usize),
) -> anyhow::Result<Times> {
    let rounds = 24_usize.div_ceil(threads) + 4;
    let next = AtomicUsize::new(0);
    let barrier = std::sync::Barrier::new(threads + 1);
    let (seconds, results) = std::thread::scope(|scope| {
        let work = || -> anyhow::Result<(Vec<f64>, Vec<f64>, usize)> {
            let mut batches = Vec::new();
            for _ in 0..2 {
                let compute = Box::new(gpu.compute()?);
                batches.push((GpuBatch::new(compute, recipe, &[0], GpuMemory::default())?, false));
            }
            let (mut staging, mut working) = (Vec::new(), Vec::new());
            for round in 0..rounds + 6 {
                if round == 6 {
                    for (on_gpu, is_started) in &mut batches {
                        if std::mem::take(is_started) {
                            on_gpu.wait()?;
                        }
                    }
                    barrier.wait();
                    staging.clear();
                    working.clear();
                }
                let (on_gpu, is_started) = &mut batches[round % 2];
                if std::mem::take(is_started) {
                    on_gpu.wait()?;
                }
                let begun = Instant::now();
                on_gpu.begin()?;
                let first = next.fetch_add(batch, Ordering::Relaxed);
                for position in 0..batch {
                    let number = first + position;
                    let file = files[number % files.len()].encoded();
                    on_gpu.take(position, file, id(number))?;
                }
                staging.push(begun.elapsed().as_secs_f64() * 1e3);
                let begun = Instant::now();
                on_gpu.start(false)?;
                *is_started = true;
                if threads == 1 {
                    // Alone, to measure its own time.
                    on_gpu.wait()?;
                    *is_started = false;
                }
                working.push(begun.elapsed().as_secs_f64() * 1e3);
            }
            for (on_gpu, is_started) in &mut batches {
                if std::mem::take(is_started) {
                    on_gpu.wait()?;
                }
            }
            let bytes = batches.iter().map(|(on_gpu, _)| on_gpu.device_bytes()).sum();
            Ok((staging, working, bytes))
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        barrier.wait();
        let begun = Instant::now();
        let results: Vec<_> =
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        (begun.elapsed().as_secs_f64(), results)
    });
    let mut results = results.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let (staging, working, device_bytes) = results.swap_remove(0);
    Ok(Times {
        rate: (rounds * threads * batch) as f64 / seconds,
        staging_ms: median(&staging),
        gpu_ms: median(&working),
        device_bytes,
    })
}

/// Images per second of the CPU.
fn cpu_rate(recipe: &Recipe, files: &[File], batch: usize, threads: usize) -> anyhow::Result<f64> {
    let bytes = recipe.output().context("tensors have one size")?.bytes();
    let total = batch * 4;
    let next = AtomicUsize::new(0);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| -> anyhow::Result<()> {
                let mut preparer = SamplePreparer::new(recipe, Cpu::detect());
                let mut out = vec![0; bytes];
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= total {
                        return Ok(());
                    }
                    let file = files[number % files.len()].encoded();
                    preparer.prepare(file, id(number), &mut out, &mut || ())?;
                }
            });
        }
    });
    Ok(total as f64 / begun.elapsed().as_secs_f64())
}
