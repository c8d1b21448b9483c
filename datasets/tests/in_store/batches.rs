//! Batches that are prepared from a dataset in a store.

use crate::server::Fault;
use crate::support::{Given, allocated, usage};
use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::{SampleColumns, Sampling};
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

/// A dataset of about this many parts of a few samples each.
fn in_parts(parts: u32) -> Given {
    let given = Given::with_parts_of(4 * parts, 120 << 10);
    let found = Dataset::open(&given.set).unwrap().manifest().parts.len();
    assert!(found >= parts as usize, "{found} parts");
    given
}

#[test]
fn opening_and_the_first_samples_cost_the_same_requests_whatever_the_number_of_parts() {
    let requests = [4, 64].map(|parts| {
        let given = in_parts(parts);
        let dataset = given.open_for_samples(CACHE_BYTES).unwrap();
        // The manifest, and the end of the first part, which says what the columns are.
        assert_eq!(given.server.state().requests.len(), 2);
        let local = Dataset::open(&given.set).unwrap();
        assert_eq!(dataset.len(), local.len());
        for sample in 0..8 {
            assert_eq!(dataset.read_sample(sample).unwrap(), local.read_sample(sample).unwrap());
        }
        given.server.state().requests.len()
    });
    assert_eq!(requests[0], requests[1]);
}

#[test]
fn the_first_batch_costs_a_bounded_number_of_requests_and_bytes_in_any_order() {
    for parts in [4, 64] {
        let given = in_parts(parts);
        for shuffled in [false, true] {
            given.server.state().requests.clear();
            given.server.take_sent();
            let dataset = given.open_for_samples(CACHE_BYTES).unwrap();
            let samples = dataset.len();
            let sampling = match shuffled {
                true => Sampling::shuffled(samples),
                false => Sampling::sequential(samples),
            };
            let there = job(dataset, sampling);
            let mut memory = vec![0; BATCH_BYTES];
            preparer(&there).prepare(0, 0, &mut memory, &mut |_| true).unwrap();
            // The batch and what is prefetched meanwhile: up to a quarter of the cache, and the
            // footers and tables of the four batches that follow.
            let sent = given.server.take_sent();
            assert!(sent <= 8 << 20, "{parts} parts: {sent}");
            let requests = given.server.state().requests.len();
            assert!(requests <= 2 + 5 * 8 * 4, "{parts} parts: {requests} requests");
        }
    }
}

#[test]
fn each_footer_is_fetched_once_by_all_threads_together() {
    let given = in_parts(16);
    let local = Arc::new(Dataset::open(&given.set).unwrap());
    let samples = local.len();
    let here = job(Arc::clone(&local), Sampling::shuffled(samples));
    let there = given.open_for_samples(1 << 30).unwrap();
    let there = job(there, Sampling::shuffled(samples));
    for number in 0..2 {
        assert!(epoch(&here, number) == epoch(&there, number), "epoch {number}");
    }
    let parts = &local.manifest().parts;
    let state = given.server.state();
    for part in parts {
        let end = (part.bytes - (16 << 10), part.bytes);
        let is_end = |(path, range): &&(String, Option<(u64, u64)>)| {
            path.ends_with(&part.file)
                && range.is_some_and(|(start, last)| start == end.0 && last + 1 >= end.1)
        };
        assert_eq!(state.requests.iter().filter(is_end).count(), 1, "{}", part.file);
    }
}

#[test]
fn keys_columns_and_samplers_read_the_footers_that_they_need() {
    let given = in_parts(8);
    let local = Dataset::open(&given.set).unwrap();
    let there = given.open_for_samples(1 << 30).unwrap();
    let last = local.len() - 1;
    assert_eq!(there.key(last).unwrap(), local.key(last).unwrap());
    let parts = &local.manifest().parts;
    let ends = [&parts[0].file, &parts[parts.len() - 1].file];
    let is_expected = |path: &str| {
        path.ends_with("dataset.json") || ends.iter().any(|part| path.ends_with(part.as_str()))
    };
    assert!(given.server.state().requests.iter().all(|(path, _)| is_expected(path)));
    let key = local.key(9).unwrap();
    assert_eq!(there.find(&key).unwrap(), Some(9));
    assert_eq!(there.record_batches(), local.record_batches());
    assert_eq!(there.whole_numbers("label").unwrap(), local.whole_numbers("label").unwrap());
    let fresh = given.open_for_samples(1 << 30).unwrap();
    assert_eq!(fresh.whole_numbers("label").unwrap(), local.whole_numbers("label").unwrap());
    assert_eq!(fresh.batch_of(last).unwrap(), local.batch_of(last).unwrap());
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
