//! Small samples: record batches that are read whole, and retained.

use crate::support::{NoRoom, SAMPLES, damage, expected, job, prepare_all, shuffled, write};
use meetpoint_kernels::Cpu;
use meetpoint_prepare::{Action, CpuPreparer, Dataset, Error, Job, OnError, Preparer};
use meetpoint_storage::faulty::{Fault, FaultPlan, FaultyEngine};
use meetpoint_storage::{Engine, RequestKind};
use std::sync::Arc;

/// More than the samples have.
const ROOM: u64 = 1 << 20;

/// Prepares all batches of an epoch in batches of 6, and compares them with samples prepared alone.
/// Returns the reads so far.
fn epoch(preparer: &mut CpuPreparer, dataset: &Arc<Dataset>, epoch: u32) -> u64 {
    let job = job(dataset, 6);
    let mut out = vec![0; preparer.spec().bytes() * 6];
    for batch in 0..u32::try_from(job.batching.batches()).unwrap() {
        let prepared = preparer.prepare(epoch, batch, &mut out, &mut |_| true).unwrap();
        let expected = expected(&job, epoch, batch);
        assert!(out[..expected.len()] == expected, "epoch {epoch} batch {batch} differs");
        assert!(prepared.replacements.is_empty(), "{prepared:?}");
    }
    preparer.counters().reads
}

fn preparer(dataset: &Arc<Dataset>, engine: Box<dyn Engine>) -> CpuPreparer {
    CpuPreparer::new(job(dataset, 6), engine, Cpu::detect()).unwrap()
}

#[test]
fn batches_are_the_same_with_any_memory_for_small_samples() {
    for granted in [0, 1, 20_000, ROOM] {
        for depth in [1, 8] {
            for seed in 0..4 {
                let folder = tempfile::tempdir().unwrap();
                let dataset = write(folder.path(), |_, _| ());
                dataset.keep_small_samples(granted);
                for batch_size in [1, 5, 23] {
                    prepare_all(&job(&dataset, batch_size), shuffled(&dataset, depth, seed));
                }
                prepare_all(&job(&dataset, 6), Box::new(NoRoom));
                assert!(dataset.small_samples_bytes() <= granted);
            }
        }
    }
}

#[test]
fn record_batches_of_small_samples_are_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    dataset.keep_small_samples(ROOM);
    let mut first = preparer(&dataset, shuffled(&dataset, 8, 1));
    // Two parts, with a record batch each.
    assert_eq!((epoch(&mut first, &dataset, 0), epoch(&mut first, &dataset, 1)), (2, 2));
    assert_eq!(dataset.small_samples_bytes(), dataset.manifest().image_bytes);
    // Other preparers of the dataset share them.
    let mut second = preparer(&dataset, shuffled(&dataset, 8, 2));
    assert_eq!(epoch(&mut second, &dataset, 2), 0);
}

#[test]
fn samples_are_read_alone_unless_their_dataset_retains_small_ones() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let mut alone = preparer(&dataset, shuffled(&dataset, 8, 1));
    assert_eq!(epoch(&mut alone, &dataset, 0), SAMPLES);
    assert_eq!(dataset.small_samples_bytes(), 0);
}

#[test]
fn without_room_record_batches_are_read_whole_where_a_batch_needs_much_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    dataset.keep_small_samples(1);
    let mut preparer = CpuPreparer::new(job(&dataset, 23), shuffled(&dataset, 8, 1), Cpu::detect());
    let preparer = preparer.as_mut().unwrap();
    let mut out = vec![0; preparer.spec().bytes() * 23];
    let prepared = preparer.prepare(0, 0, &mut out, &mut |_| true).unwrap();
    assert!(out == expected(&job(&dataset, 23), 0, 0));
    assert_eq!(preparer.counters().reads, 2);
    assert_eq!(prepared.stats.bytes_read, dataset.manifest().image_bytes);
    assert_eq!(dataset.small_samples_bytes(), 0);
}

#[test]
fn only_samples_that_are_read_count_as_read() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    dataset.keep_small_samples(ROOM);
    let mut preparer = CpuPreparer::new(job(&dataset, 23), shuffled(&dataset, 8, 1), Cpu::detect());
    let preparer = preparer.as_mut().unwrap();
    let mut out = vec![0; preparer.spec().bytes() * 23];
    for bytes in [dataset.manifest().image_bytes, 0] {
        let prepared = preparer.prepare(0, 0, &mut out, &mut |_| true).unwrap();
        assert_eq!(prepared.stats.bytes_read, bytes);
    }
}

#[test]
fn a_damaged_sample_of_a_record_batch_in_memory_is_named_in_every_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    damage(&dataset, 12);
    dataset.keep_small_samples(ROOM);
    let mut raising = preparer(&dataset, shuffled(&dataset, 8, 1));
    let mut out = vec![0; raising.spec().bytes() * 6];
    let mut batches = (0..4).map(|batch| raising.prepare(0, batch, &mut out, &mut |_| true));
    let error = batches.find_map(Result::err).unwrap();
    assert!(matches!(&error, Error::ChecksumMismatch { row: 2, key, .. } if key == "12.jpg"));
    let skips = Job { on_error: OnError::Always(Action::Skip), ..job(&dataset, 23) };
    let mut preparer = CpuPreparer::new(skips, shuffled(&dataset, 8, 1), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes() * 23];
    for epoch in 0..3 {
        let prepared = preparer.prepare(epoch, 0, &mut out, &mut |_| true).unwrap();
        let damaged: Vec<u64> = prepared.replacements.iter().map(|it| it.damage.sample).collect();
        assert_eq!((damaged, prepared.stats.left_out), (vec![12], 1));
    }
}

#[test]
fn samples_are_read_alone_where_their_record_batch_cannot_be_read_whole() {
    for fault in [Fault::Broken, Fault::ShortRead { bytes: 3 }, Fault::Busy] {
        for number in 0..2 {
            let folder = tempfile::tempdir().unwrap();
            let dataset = write(folder.path(), |_, _| ());
            dataset.keep_small_samples(ROOM);
            let plan = FaultPlan::none().and(RequestKind::Read, number, fault);
            let engine = FaultyEngine::new(shuffled(&dataset, 4, 2), plan);
            let mut preparer = preparer(&dataset, Box::new(engine));
            epoch(&mut preparer, &dataset, 0);
            epoch(&mut preparer, &dataset, 1);
            // The other record batch is retained.
            assert!((1..dataset.manifest().image_bytes).contains(&dataset.small_samples_bytes()));
        }
    }
}

#[test]
fn a_batch_that_was_given_up_leaves_the_next_one_sound() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    dataset.keep_small_samples(ROOM);
    let mut preparer = preparer(&dataset, shuffled(&dataset, 8, 1));
    let mut out = vec![0; preparer.spec().bytes() * 6];
    for asked in [1, 2, 4] {
        let mut left = asked;
        let mut pace = |_| {
            left -= 1;
            left > 0
        };
        let given_up = preparer.prepare(0, 0, &mut out, &mut pace);
        assert!(matches!(given_up, Err(Error::Interrupted)), "{given_up:?}");
    }
    epoch(&mut preparer, &dataset, 0);
}
