//! The recipe `cifar` on pictures of 32 by 32: samples a second of CPU time of one core, from a
//! dataset of raw pixels and from one of PNGs.
//!
//! Batches are prepared as in a run: read, checked, decoded, cropped from the padded picture,
//! flipped and normalised to float32, in shuffled order. As in a run, the record batches of raw
//! pixels are read whole and retained; a row of its own has the first epoch, which reads all of
//! them, and another has samples that are read one by one. Rounds alternate; medians count. The
//! limit is a copy of what a sample reads and writes. A row has the recipe without reading.

use anyhow::Context;
use meetpoint_benches::{Options, Report, Row, Target, median};
use meetpoint_datasets::source::PixelStore;
use meetpoint_datasets::source::SourceOptions;
use meetpoint_datasets::{PackOptions, pack};
use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::recipe::find_shipped;
use meetpoint_format::sampler::Sampling;
use meetpoint_kernels::{Cpu, SampleId, SamplePreparer};
use meetpoint_prepare::{CpuPreparer, Dataset, Job, OnError, Preparer};
use meetpoint_storage::{EngineKind, open_engine};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a record of CIFAR-10: a label, then red, green and blue.
const RECORD_BYTES: usize = 1 + 3 * 1024;
/// Bytes of a sample of float32.
const SAMPLE_BYTES: usize = 3 * 1024 * 4;
const BATCH: u32 = 256;
const DEPTH: usize = 64;
/// What the recipe has to reach on one core.
const SAMPLES_LEAST: f64 = 200_000.0;

fn main() -> anyhow::Result<()> {
    let options = Options::from_args(&[])?;
    let folder = tempfile::tempdir().context("making a temporary folder")?;
    let samples = if options.quick { 2 * BATCH as usize } else { 40 * BATCH as usize };
    let source = folder.path().join("cifar");
    fs::create_dir(&source)?;
    fs::write(source.join("data_batch_1.bin"), records(samples))?;
    let mut report = Report::new("tiny", &options);
    let rounds = if options.quick { 1 } else { 9 };
    let raw = packed(&source, folder.path(), PixelStore::Raw)?;
    let png = packed(&source, folder.path(), PixelStore::Encoded)?;
    let (mut of_raw, mut of_png, mut of_copy) = (Vec::new(), Vec::new(), Vec::new());
    let mut of_recipe = Vec::new();
    let files: Vec<Vec<u8>> =
        (0..raw.len()).map(|sample| raw.read_file(sample)).collect::<Result<_, _>>()?;
    let single = Arc::new(Dataset::open(raw.path())?);
    let (mut from_single, mut of_single) = (preparer(&single)?, Vec::new());
    raw.keep_small_samples_by_memory();
    let mut of_first = Vec::new();
    for round in 0..rounds {
        let dataset = Arc::new(Dataset::open(raw.path())?);
        dataset.keep_small_samples_by_memory();
        of_first.push(epoch(&mut preparer(&dataset)?, samples, round)?);
    }
    let (mut from_raw, mut from_png) = (preparer(&raw)?, preparer(&png)?);
    for round in 0..=rounds {
        let alone = epoch(&mut from_single, samples, round)?;
        let rates = [epoch(&mut from_raw, samples, round)?, epoch(&mut from_png, samples, round)?];
        // The first reads the tables of the dataset.
        if round > 0 {
            of_single.push(alone);
            of_raw.push(rates[0]);
            of_png.push(rates[1]);
            of_copy.push(copies(samples));
            of_recipe.push(recipe_alone(&files)?);
        }
    }
    report.row(
        Row::alone("cifar from raw pixels", median(&of_raw), "samples/s")
            .against("a copy of as many bytes", median(&of_copy))
            .target(Target::ValueAtLeast(SAMPLES_LEAST)),
    );
    report.row(
        Row::alone("cifar from raw pixels, first epoch", median(&of_first), "samples/s")
            .against("later epochs", median(&of_raw)),
    );
    report.row(
        Row::alone("cifar from raw pixels, against single reads", median(&of_raw), "samples/s")
            .against("read one by one", median(&of_single)),
    );
    report.row(
        Row::alone("the recipe alone, on raw pixels in memory", median(&of_recipe), "samples/s")
            .against("with reading", median(&of_raw))
            .target(Target::ValueAtLeast(SAMPLES_LEAST)),
    );
    report.row(
        Row::alone("cifar from raw pixels, against PNG", median(&of_raw), "samples/s")
            .against("cifar from PNG", median(&of_png)),
    );
    report.finish(&options)
}

/// Records of noise on a gradient.
fn records(samples: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let noise = |at: usize| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        match at % RECORD_BYTES {
            0 => (state % 10) as u8,
            pixel => (state % 64) as u8 + (pixel % 32 * 5) as u8,
        }
    };
    (0..samples * RECORD_BYTES).map(noise).collect()
}

fn packed(source: &Path, folder: &Path, store: PixelStore) -> anyhow::Result<Arc<Dataset>> {
    let to = folder.join(format!("{store:?}.set"));
    let source_options = SourceOptions { store: Some(store), ..SourceOptions::default() };
    let options = PackOptions { source: source_options, ..PackOptions::default() };
    pack(source, &to, &options, &mut |_| ())?;
    Ok(Arc::new(Dataset::open(&to)?))
}

fn preparer(dataset: &Arc<Dataset>) -> anyhow::Result<CpuPreparer> {
    let batch_options = BatchOptions { batch_size: BATCH, drop_last: true, seed: 1 };
    let job = Job {
        dataset: Arc::clone(dataset),
        recipe: Arc::new(find_shipped("cifar@1")?.recipe()),
        batching: Batching::alone(batch_options, Sampling::shuffled(dataset.len())),
        on_error: OnError::default(),
        columns: vec!["image".to_owned(), "label".to_owned()].into(),
    };
    let engine = open_engine(EngineKind::Auto, DEPTH)?.engine;
    Ok(CpuPreparer::new(job, engine, Cpu::detect())?)
}

/// Samples a second of CPU time of this thread.
fn epoch(preparer: &mut CpuPreparer, samples: usize, epoch: u32) -> anyhow::Result<f64> {
    let mut memory = vec![0; BATCH as usize * (SAMPLE_BYTES + 64) + 4096];
    let started = cpu_seconds();
    for batch in 0..samples as u32 / BATCH {
        preparer.prepare(epoch, batch, &mut memory, &mut |_| true)?;
        std::hint::black_box(&memory);
    }
    Ok(samples as f64 / (cpu_seconds() - started))
}

/// The same of the recipe, on files in memory.
fn recipe_alone(files: &[Vec<u8>]) -> anyhow::Result<f64> {
    let mut preparer = SamplePreparer::new(&find_shipped("cifar@1")?.recipe(), Cpu::detect());
    let mut out = vec![0; SAMPLE_BYTES];
    let started = cpu_seconds();
    for (sample, file) in files.iter().enumerate() {
        let id = SampleId { seed: 1, epoch: 0, sample: sample as u64 };
        preparer.prepare(file.into(), id, &mut out, &mut || ())?;
        std::hint::black_box(&out);
    }
    Ok(files.len() as f64 / (cpu_seconds() - started))
}

/// The same of a copy of the bytes that a sample reads and writes.
fn copies(samples: usize) -> f64 {
    let from = vec![1_u8; BATCH as usize * (SAMPLE_BYTES + RECORD_BYTES)];
    let mut to = vec![0_u8; from.len()];
    let started = cpu_seconds();
    for _ in 0..samples / BATCH as usize {
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&to);
    }
    samples as f64 / (cpu_seconds() - started)
}

fn cpu_seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
