//! Batches that are prepared from a dataset in a store.

use crate::server::Fault;
use crate::support::{Given, allocated, usage};
use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::Sampling;
use meetpoint_kernels::Cpu;
use meetpoint_prepare::{CpuPreparer, Dataset, Job, OnError, Preparer};
use meetpoint_storage::{EngineKind, open_engine};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const RECIPE: &str = "operation = [{name = 'decode'}, {name = 'center_crop', size = 64}]";
const BATCH_BYTES: usize = 8 * 64 * 64 * 3;
/// Bytes of a block of the cache.
const BLOCK: u64 = 64 << 10;
/// A cache of about 50 samples.
const CACHE_BYTES: u64 = 2 << 20;

fn job(dataset: Arc<Dataset>, sampling: Sampling) -> Job {
    let cut = BatchOptions { batch_size: 8, drop_last: false, seed: 3 };
    Job {
        batching: Batching::alone(cut, sampling),
        dataset,
        recipe: Arc::new(Recipe::from_toml(RECIPE).unwrap()),
        on_error: OnError::default(),
        columns: vec!["image".to_owned()].into(),
    }
}

fn preparer(job: &Job) -> CpuPreparer {
    let engine = open_engine(EngineKind::Auto, 16).unwrap().engine;
    CpuPreparer::new(job.clone(), engine, Cpu::detect()).unwrap()
}

/// The batches of an epoch, by two threads that take them in turn.
fn epoch(job: &Job, epoch: u32) -> Vec<Vec<u8>> {
    let batches = u32::try_from(job.batching.batches()).unwrap();
    let next = AtomicU32::new(0);
    let work = || {
        let (mut preparer, mut done) = (preparer(job), Vec::new());
        loop {
            let batch = next.fetch_add(1, Ordering::Relaxed);
            if batch >= batches {
                return done;
            }
            let mut memory = vec![0; BATCH_BYTES];
            preparer.prepare(epoch, batch, &mut memory, &mut |_| true).unwrap();
            done.push((batch, memory));
        }
    };
    let mut all = std::thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.into_iter().flat_map(|it| it.join().unwrap()).collect::<Vec<_>>()
    });
    all.sort_by_key(|(batch, _)| *batch);
    all.into_iter().map(|(_, bytes)| bytes).collect()
}

#[test]
fn batches_equal_those_of_the_local_dataset_with_a_small_cache() {
    let given = Given::new(120);
    let limit = given.bytes / 2;
    let local = Arc::new(Dataset::open(&given.set).unwrap());
    for sampling in [Sampling::sequential(120), Sampling::shuffled(120)] {
        let here = job(Arc::clone(&local), sampling.clone());
        let there = job(given.open(limit).unwrap(), sampling);
        for number in 0..3 {
            assert!(epoch(&here, number) == epoch(&there, number), "epoch {number}");
            assert!(allocated(&given.cache()) <= limit);
        }
        assert!(usage(&there.dataset).evicted_bytes > 0);
    }
}

/// The dataset with a cache of two of its parts.
fn with_two_parts(given: &Given) -> Arc<Dataset> {
    let local = Dataset::open(&given.set).unwrap();
    let longest = local.manifest().parts.iter().map(|part| part.bytes).max().unwrap();
    assert!(given.bytes > 3 * longest, "the dataset is longer than the cache");
    given.open(2 * longest).unwrap()
}

#[test]
fn sequential_epochs_with_a_cache_of_two_parts_fetch_at_most_a_tenth_more_than_the_dataset() {
    let given = Given::new(120);
    let there = job(with_two_parts(&given), Sampling::sequential(120));
    // The first epoch includes the manifest and the footers.
    for number in 0..4 {
        epoch(&there, number);
        let sent = given.server.take_sent();
        assert!(sent <= given.bytes * 11 / 10, "epoch {number}: {sent} of {}", given.bytes);
    }
}

#[test]
fn shuffled_epochs_with_a_cache_of_two_parts_fetch_at_most_the_blocks_of_each_sample() {
    let given = Given::new(120);
    let dataset = with_two_parts(&given);
    // Each sample by itself, in whole blocks, and the tables of record batches.
    let blocks = |bytes: u64| bytes.div_ceil(BLOCK) * BLOCK;
    let of_samples: u64 = (0..120)
        .map(|sample| dataset.locate(sample).unwrap())
        .map(|it| blocks(it.offset + it.bytes) - it.offset / BLOCK * BLOCK)
        .sum();
    let tables = dataset.record_batches() as u64 * 3 * BLOCK;
    given.server.take_sent();
    let there = job(dataset, Sampling::shuffled(120));
    for number in 0..3 {
        epoch(&there, number);
        let sent = given.server.take_sent();
        let limit = of_samples + tables;
        assert!(sent <= limit, "epoch {number}: {sent} of {limit}, samples {}", given.bytes);
    }
}

#[test]
fn the_first_batch_costs_the_same_requests_and_bytes_in_a_dataset_of_any_length() {
    for samples in [60, 240] {
        let given = Given::new(samples);
        let parts = Dataset::open(&given.set).unwrap().manifest().parts.len();
        let dataset = given.open(CACHE_BYTES).unwrap();
        // The manifest, and the end of each part.
        let manifest = given.set.join("dataset.json").metadata().unwrap().len();
        assert_eq!(given.server.state().requests.len(), 1 + parts);
        assert!(given.server.take_sent() <= manifest + parts as u64 * (16 << 10));
        given.server.state().requests.clear();
        let there = job(dataset, Sampling::sequential(u64::from(samples)));
        let mut memory = vec![0; BATCH_BYTES];
        preparer(&there).prepare(0, 0, &mut memory, &mut |_| true).unwrap();
        // Then the batch and what is prefetched meanwhile, which is less than the cache.
        let sent = given.server.take_sent();
        assert!(sent <= CACHE_BYTES, "{samples} samples: {sent}");
        let requests = given.server.state().requests.len();
        assert!(requests <= 32, "{samples} samples: {requests} requests");
    }
}

#[test]
fn a_store_that_fails_now_and_then_changes_no_batch() {
    let given = Given::new(80);
    let local = Arc::new(Dataset::open(&given.set).unwrap());
    let there = given.open(given.bytes / 2).unwrap();
    for (fault, answers) in [
        (Fault::Status(503), 2),
        (Fault::Cut(10_000), 1),
        (Fault::Flip, 1),
        (Fault::Short, 1),
        (Fault::Stall, 1),
    ] {
        given.server.fault("part-00001.arrow", fault, answers);
        given.server.fault("part-00000.arrow", fault, answers);
    }
    let here = job(local, Sampling::shuffled(80));
    let there = job(there, Sampling::shuffled(80));
    for number in 0..2 {
        assert!(epoch(&here, number) == epoch(&there, number), "epoch {number}");
    }
    assert!(usage(&there.dataset).retries > 0);
}
