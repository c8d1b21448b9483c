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

#[test]
fn sequential_epochs_fetch_at_most_a_tenth_more_than_the_dataset() {
    let given = Given::new(120);
    let there = job(given.open(given.bytes / 2).unwrap(), Sampling::sequential(120));
    for number in 0..3 {
        given.server.take_sent();
        epoch(&there, number);
        let sent = given.server.take_sent();
        assert!(sent <= given.bytes * 11 / 10, "epoch {number}: {sent} of {}", given.bytes);
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
