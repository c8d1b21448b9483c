//! Damaged samples: named, replaced, left out, or decided about one by one.

use crate::support::{NoRoom, SAMPLES, SEED, damage, expected, job, picture, shuffled, write};
use meetpoint_format::replacement::candidates;
use meetpoint_kernels::{Cpu, SampleId, SamplePreparer};
use meetpoint_prepare::{
    Action, CpuPreparer, DamagePolicy, Dataset, Error, Job, OnError, PreparedBatch, Preparer,
    samples_held,
};
use meetpoint_storage::faulty::{Fault, FaultPlan, FaultyEngine};
use meetpoint_storage::{EngineKind, RequestKind, open_engine};
use std::path::Path;
use std::sync::{Arc, Mutex};

#[test]
fn a_damaged_sample_is_named_and_the_next_batch_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    damage(&dataset, 13);
    let job = job(&dataset, 4);
    let mut preparer =
        CpuPreparer::new(job.clone(), shuffled(&dataset, 8, 3), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes() * 4];
    let mut failed = 0;
    for batch in 0..6 {
        match preparer.prepare(0, batch, &mut out, &mut |_| true) {
            Ok(_) => {
                let expected = expected(&job, 0, batch);
                assert!(out[..expected.len()] == expected, "batch {batch} differs");
            }
            Err(Error::ChecksumMismatch { part, row, key, .. }) => {
                failed += 1;
                assert!(part.ends_with("part-00001.arrow"), "{part}");
                assert_eq!((row, key.as_str()), (3, "13.jpg"));
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(failed, 1);
    assert!(matches!(dataset.read_sample(13), Err(Error::ChecksumMismatch { row: 3, .. })));
}

#[test]
fn a_sample_that_does_not_decode_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |sample, image| {
        if sample == 5 {
            image.truncate(image.len() / 2);
        }
    });
    let job = job(&dataset, 100);
    let mut preparer = CpuPreparer::new(job, shuffled(&dataset, 8, 3), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes() * 23];
    let error = preparer.prepare(0, 0, &mut out, &mut |_| true).unwrap_err();
    assert!(matches!(&error, Error::Sample { row: 5, key, .. } if key == "5.jpg"), "{error}");
}

/// Damaged in three ways: what was packed does not decode, a byte changed, and a read fails later.
const DAMAGED: [u64; 3] = [3, 11, 12];

fn damaged_dataset(folder: &Path) -> Arc<Dataset> {
    let dataset = write(folder, |sample, image| {
        if sample == DAMAGED[0] {
            image.truncate(40);
        }
    });
    DAMAGED[1..].iter().for_each(|sample| damage(&dataset, *sample));
    dataset
}

/// The expected batch when damaged samples are replaced, computed independently position by
/// position.
fn replaced(job: &Job, epoch: u32, batch: u32) -> (Vec<u64>, Vec<u8>) {
    let mut preparer = SamplePreparer::new(&job.recipe, Cpu::Portable);
    let bytes = job.recipe.output().unwrap().bytes();
    let order = job.batching.order(epoch);
    let (mut held, mut out) = (Vec::new(), Vec::new());
    for sample in job.batching.samples_of(&order, batch) {
        let mut walk = std::iter::once(sample).chain(candidates(SEED, epoch, sample, SAMPLES));
        let by = walk.find(|candidate| !DAMAGED.contains(candidate)).unwrap();
        held.push(by);
        let start = out.len();
        out.resize(start + bytes, 0);
        let id = SampleId { seed: SEED, epoch, sample };
        preparer.prepare((&picture(by)).into(), id, &mut out[start..], &mut || ()).unwrap();
    }
    (held, out)
}

#[test]
fn a_damaged_sample_is_replaced_alike_by_every_engine_and_instruction_set() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = damaged_dataset(folder.path());
    let on_error = OnError::Always(Action::Replace);
    let job = Job { on_error, ..job(&dataset, 6) };
    let engines = (0..3).map(|seed| shuffled(&dataset, 8, seed));
    let auto = open_engine(EngineKind::Auto, 4).unwrap().engine;
    for (engine, cpu) in engines
        .chain([auto, Box::new(NoRoom) as _])
        .zip([Cpu::Portable, Cpu::detect()].into_iter().cycle())
    {
        let mut preparer = CpuPreparer::new(job.clone(), engine, cpu).unwrap();
        let mut met = 0;
        for (epoch, batch) in (0..2).flat_map(|epoch| (0..4).map(move |batch| (epoch, batch))) {
            let mut out = vec![0; preparer.spec().bytes() * 6];
            let prepared = preparer.prepare(epoch, batch, &mut out, &mut |_| true).unwrap();
            let PreparedBatch { samples, replacements, stats, .. } = prepared;
            let (held, expected) = replaced(&job, epoch, batch);
            assert!(out[..expected.len()] == expected, "epoch {epoch} batch {batch}");
            assert_eq!(stats.samples, job.batching.batch_len(batch));
            let order = job.batching.order(epoch);
            let wanted = job.batching.samples_of(&order, batch);
            assert_eq!(samples_held(wanted, &replacements), held);
            assert_eq!(samples, held);
            assert_eq!(stats.replaced as usize, replacements.len());
            for replacement in replacements {
                assert!(DAMAGED.contains(&replacement.damage.sample));
                assert_eq!(replacement.damage.key, format!("{}.jpg", replacement.damage.sample));
                let location = dataset.locate(replacement.damage.sample).unwrap();
                assert_eq!(replacement.damage.offset, location.offset);
                assert_eq!(Path::new(&replacement.damage.file), dataset.part_path(location.part));
                assert_eq!(replacement.damage.epoch, epoch);
                met += 1;
            }
        }
        assert_eq!(met, 2 * DAMAGED.len());
    }
}

#[test]
fn a_damaged_sample_is_left_out_and_the_others_move_up() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = damaged_dataset(folder.path());
    let sound = tempfile::tempdir().unwrap();
    let whole = job(&write(sound.path(), |_, _| ()), 6);
    let job = Job { on_error: OnError::Always(Action::Skip), ..job(&dataset, 6) };
    let mut preparer = CpuPreparer::new(job, shuffled(&dataset, 8, 5), Cpu::detect()).unwrap();
    let bytes = preparer.spec().bytes();
    let mut left_out = 0;
    for batch in 0..4 {
        let mut out = vec![0; bytes * 6];
        let prepared = preparer.prepare(1, batch, &mut out, &mut |_| true).unwrap();
        let PreparedBatch { replacements, stats, .. } = prepared;
        let order = whole.batching.order(1);
        let wanted: Vec<u64> = whole.batching.samples_of(&order, batch).collect();
        let tensors = expected(&whole, 1, batch);
        let sound = wanted.iter().copied().zip(tensors.chunks_exact(bytes));
        let sound = sound.filter(|(sample, _)| !DAMAGED.contains(sample));
        let (held, kept): (Vec<u64>, Vec<&[u8]>) = sound.unzip();
        assert!(out[..held.len() * bytes] == kept.concat(), "batch {batch}");
        assert_eq!(samples_held(wanted.into_iter(), &replacements), held);
        assert_eq!(stats.samples - stats.left_out, u32::try_from(held.len()).unwrap());
        left_out += stats.left_out;
    }
    assert_eq!(left_out, 3);
}

#[test]
fn a_damage_policy_receives_each_damage_and_decides_sample_by_sample() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = damaged_dataset(folder.path());
    let reported = Arc::new(Mutex::new(Vec::new()));
    let policy = {
        let reported = Arc::clone(&reported);
        DamagePolicy::new(move |damage| {
            reported.lock().unwrap().push(damage.clone());
            match damage.sample {
                3 => Action::Raise,
                11 => Action::Skip,
                _ => Action::Replace,
            }
        })
    };
    let job = Job { on_error: OnError::Ask(policy), ..job(&dataset, 1) };
    let order = job.batching.order(0);
    let batch_of =
        |sample| (0..23).find(|&it| job.batching.samples_of(&order, it).any(|is| is == sample));
    let mut preparer =
        CpuPreparer::new(job.clone(), shuffled(&dataset, 8, 5), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes()];
    let mut prepare =
        |sample| preparer.prepare(0, batch_of(sample).unwrap(), &mut out, &mut |_| true);
    assert!(prepare(3).unwrap_err().to_string().contains("key 3.jpg"));
    assert_eq!(prepare(11).unwrap().stats.left_out, 1);
    assert_eq!(prepare(12).unwrap().stats.replaced, 1);
    let reported = reported.lock().unwrap();
    assert_eq!(reported.iter().map(|damage| damage.sample).collect::<Vec<_>>(), [3, 11, 12]);
    assert!(reported[1].what.contains("checksum is 0x"), "{reported:?}");
    assert!(reported.iter().all(|damage| damage.remedy.is_some()), "{reported:?}");
}

#[test]
fn a_read_that_fails_is_damage_of_its_sample_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let job = Job { on_error: OnError::Always(Action::Skip), ..job(&dataset, 6) };
    // A temporary lack of a resource is not damage of the sample.
    let faults =
        [(Fault::Broken, true), (Fault::ShortRead { bytes: 3 }, true), (Fault::Busy, false)];
    for (fault, is_damage) in faults {
        let plan = FaultPlan::none().and(RequestKind::Read, 2, fault);
        let engine = FaultyEngine::new(shuffled(&dataset, 1, 2), plan);
        let mut preparer = CpuPreparer::new(job.clone(), Box::new(engine), Cpu::detect()).unwrap();
        let mut out = vec![0; preparer.spec().bytes() * 6];
        let prepared = preparer.prepare(0, 0, &mut out, &mut |_| true);
        assert_eq!(prepared.is_ok(), is_damage, "{fault:?}: {prepared:?}");
        if let Ok(PreparedBatch { replacements, stats, .. }) = prepared {
            assert_eq!((stats.samples, stats.left_out), (6, 1));
            assert!(!replacements[0].damage.what.is_empty());
        }
    }
}

#[test]
fn a_dataset_without_a_sound_sample_ends_with_the_error_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, image| image.truncate(40));
    let job = Job { on_error: OnError::Always(Action::Replace), ..job(&dataset, 6) };
    let mut preparer = CpuPreparer::new(job, shuffled(&dataset, 8, 5), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes() * 6];
    let error = preparer.prepare(0, 0, &mut out, &mut |_| true).unwrap_err();
    assert!(matches!(error, Error::NoReplacement { tried: 256, .. }), "{error}");
    assert!(error.to_string().contains("none of 256 candidates"), "{error}");
}
