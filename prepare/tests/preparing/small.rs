//! Small samples: record batches that are read whole, and retained.

use crate::support::{NoRoom, SAMPLES, damage, expected, job, prepare_all, shuffled, write};
use meetpoint_kernels::Cpu;
use meetpoint_prepare::{Action, CpuPreparer, Dataset, Error, Job, OnError, Preparer};
use meetpoint_storage::faulty::{Fault, FaultPlan, FaultyEngine};
use meetpoint_storage::{BLOCK_BYTES, Engine, EngineKind, RequestKind, open_engine};
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// More than the samples have.
const ROOM: u64 = 1 << 20;
/// Memory of a record batch besides its samples: it is read in whole blocks.
const BUFFER_EXTRA_BYTES: u64 = 2 * BLOCK_BYTES as u64;

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
    let bytes = dataset.manifest().image_bytes + 2 * BUFFER_EXTRA_BYTES;
    assert_eq!(dataset.small_samples_bytes(), bytes);
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
            let bytes = dataset.manifest().image_bytes + BUFFER_EXTRA_BYTES;
            assert!((1..bytes).contains(&dataset.small_samples_bytes()));
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

/// Sets the modification time of the parts, since a file may be written twice in one tick of the
/// clock of its file system.
fn touch(dataset: &Dataset, seconds: u64) {
    for part in 0..dataset.manifest().parts.len() {
        let file = File::options().write(true).open(dataset.part_path(part)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    }
}

#[test]
fn a_part_that_changed_meanwhile_is_read_again_in_the_next_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    dataset.keep_small_samples(ROOM);
    let engine = open_engine(EngineKind::Threads, 8).unwrap().engine;
    let mut preparer = preparer(&dataset, engine);
    assert_eq!((epoch(&mut preparer, &dataset, 0), epoch(&mut preparer, &dataset, 1)), (2, 2));
    let original = std::fs::read(dataset.part_path(1)).unwrap();
    damage(&dataset, 12);
    touch(&dataset, 1);
    let mut out = vec![0; preparer.spec().bytes() * 6];
    let mut batches = (0..4).map(|batch| preparer.prepare(2, batch, &mut out, &mut |_| true));
    let error = batches.find_map(Result::err).unwrap();
    assert!(matches!(&error, Error::ChecksumMismatch { row: 2, key, .. } if key == "12.jpg"));
    std::fs::write(dataset.part_path(1), original).unwrap();
    touch(&dataset, 2);
    let reads = epoch(&mut preparer, &dataset, 3);
    assert_eq!(epoch(&mut preparer, &dataset, 4), reads, "both parts are retained again");
    let bytes = dataset.manifest().image_bytes + 2 * BUFFER_EXTRA_BYTES;
    assert_eq!(dataset.small_samples_bytes(), bytes);
}

#[test]
fn nothing_is_retained_if_that_was_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    dataset.keep_small_samples(0);
    dataset.keep_small_samples_by_memory();
    let mut alone = preparer(&dataset, shuffled(&dataset, 8, 1));
    assert_eq!(epoch(&mut alone, &dataset, 0), SAMPLES);
    assert_eq!(dataset.small_samples_bytes(), 0);
}

#[test]
fn the_memory_for_small_samples_is_at_most_what_they_take() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let all = dataset.manifest().image_bytes + 2 * BUFFER_EXTRA_BYTES;
    assert_eq!(dataset.small_samples_bytes_of(ROOM), all);
    assert_eq!(dataset.small_samples_bytes_of(100), 100);
    assert_eq!(
        (dataset.small_samples_bytes_max(100), dataset.small_samples_bytes_max(0)),
        (100, 0)
    );
}
