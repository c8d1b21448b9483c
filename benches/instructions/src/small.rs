//! Preparing small samples in batches, as the threads of a host do.

use crate::samples::write_dataset;
use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::recipe::{Recipe, find_shipped};
use meetpoint_format::sampler::Sampling;
use meetpoint_kernels::Cpu;
use meetpoint_prepare::cache::{CacheSettings, CacheSlot, SampleCache};
use meetpoint_prepare::{CpuPreparer, Dataset, DecodeMemory, Job, OnError, Preparer};
use meetpoint_storage::memory::{MemoryEngine, MemoryFiles, Order};
use std::path::Path;
use std::sync::Arc;

/// Samples of the dataset.
const SAMPLES: u64 = 1024;
const BATCH: u32 = 256;
/// Numbers of a signal.
const SIGNAL: usize = 2_048;
/// Columns and rows of a picture.
const SIDE: usize = 32;
/// Bytes of a picture of float32.
const SAMPLE_BYTES: usize = 3 * SIDE * SIDE * 4;
const READS: usize = 8;

/// A raw picture of noise on a gradient.
fn picture(number: u64) -> Vec<u8> {
    let mut state = number as u32 + 1;
    let mut noise = |at: usize| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state % 64) as u8 + (at % SIDE * 5) as u8
    };
    let pixels = (0..3 * SIDE * SIDE).map(&mut noise);
    format!("P6\n{SIDE} {SIDE}\n255\n").into_bytes().into_iter().chain(pixels).collect()
}

/// A NumPy file of one channel of float32, as long as the shortest samples of PRESTO's sweep.
fn signal(number: u64) -> Vec<u8> {
    let shape = format!("(1, {SIGNAL})");
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend(format!("{header:<117}\n").into_bytes());
    file.extend((0..SIGNAL).flat_map(|at| ((at as u64 * 31 + number) as f32).to_le_bytes()));
    file
}

/// A job of a dataset in a folder.
fn job(folder: &Path, file: &dyn Fn(u64) -> Vec<u8>, recipe: Recipe) -> anyhow::Result<Job> {
    write_dataset(folder, SAMPLES, file)?;
    let cut = BatchOptions { batch_size: BATCH, drop_last: true, seed: 1 };
    Ok(Job {
        recipe: Arc::new(recipe),
        batching: Batching::alone(cut, Sampling::shuffled(SAMPLES)),
        dataset: Arc::new(Dataset::open(folder)?),
        on_error: OnError::default(),
        columns: vec!["image".to_owned(), "label".to_owned()].into(),
    })
}

/// Prepares all batches of one epoch of a job, and then `times` batches.
fn prepare_job(job: Job, cache: Option<Arc<SampleCache>>, times: u64) -> anyhow::Result<()> {
    // From memory, since the waits for a thread that reads take a varying number of instructions.
    let files = MemoryFiles::default();
    for part in 0..job.dataset.manifest().parts.len() {
        let path = job.dataset.part_path(part);
        files.put(&path, std::fs::read(&path)?);
    }
    let engine = Box::new(MemoryEngine::new(files, READS, false, Order::Submission));
    let mut preparer = CpuPreparer::new(job, engine, Cpu::detect())?;
    // A host limits the memory for large pictures, so it estimates that of each sample.
    preparer.set_decode_memory(DecodeMemory::new(64 << 20));
    if let Some(cache) = cache {
        preparer.set_cache(cache);
    }
    let mut memory = vec![0; BATCH as usize * (SAMPLE_BYTES + 64) + 4096];
    let batches = (SAMPLES / u64::from(BATCH)) as u32;
    for number in 0..batches + u32::try_from(times)? {
        preparer.prepare(number / batches, number % batches, &mut memory, &mut |_| true)?;
    }
    Ok(())
}

/// Prepares `times` batches of 256 samples of the recipe `cifar` in shuffled order, from memory.
pub fn prepare(times: u64) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let job = job(folder.path(), &picture, find_shipped("cifar@1")?.recipe())?;
    job.dataset.keep_small_samples_by_memory();
    prepare_job(job, None, times)
}

/// Takes `times` batches of 256 finished signals of 8 kB from a cache, in shuffled order.
pub fn cached(times: u64) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let recipe = Recipe::from_toml(&format!(
        "operation = [{{ name = \"decode_signal\", num_channels = 1 }}, \
         {{ name = \"fix_length\", length = {SIGNAL} }}]"
    ))?;
    let job = job(folder.path(), &signal, recipe)?;
    let settings = CacheSettings { bytes: 64 << 20, operations: None };
    let cache = CacheSlot::default().open(&job, &settings, 0, false)?;
    prepare_job(job, Some(cache), times)
}
