//! Batches with samples from an application cache: the same bits, within the budget.

use crate::contract::prepare;
use crate::support::{SAMPLES, damage, expected, job, shuffled, write};
use meetpoint_diagnose::Diagnose;
use meetpoint_format::recipe::{CutRefusal, Recipe};
use meetpoint_kernels::Cpu;
use meetpoint_prepare::cache::{CacheError, CacheSettings, CacheSlot, SampleCache, bytes_for};
use meetpoint_prepare::{Action, CpuPreparer, Job, OnError, Preparer};
use meetpoint_storage::MemoryLimit;
use std::sync::Arc;

const BATCH: u32 = 6;
const EPOCHS: u32 = 4;

fn open(job: &Job, bytes: u64, operations: Option<usize>) -> Result<Arc<SampleCache>, CacheError> {
    CacheSlot::default().open(job, &CacheSettings { bytes, operations }, 0, false)
}

/// A preparer of a job with a cache of a given number of bytes, where its recipe has something to
/// cache.
pub(crate) fn caching(job: &Job, bytes: u64) -> Box<dyn Preparer> {
    let engine = shuffled(&job.dataset, 5, 4);
    let mut preparer = CpuPreparer::new(job.clone(), engine, Cpu::detect()).unwrap();
    match open(job, bytes, None) {
        Ok(cache) => preparer.set_cache(cache),
        Err(CacheError::NothingToCache { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    Box::new(preparer)
}

/// Prepares all epochs with preparers that take turns; returns the samples from the cache of each.
fn cached_of_epochs(job: &Job, cache: &Arc<SampleCache>, preparers: usize) -> Vec<u32> {
    let make = |seed| {
        let engine = shuffled(&job.dataset, 3, seed);
        let mut preparer = CpuPreparer::new(job.clone(), engine, Cpu::detect()).unwrap();
        preparer.set_cache(Arc::clone(cache));
        preparer
    };
    let mut preparers: Vec<_> = (0..preparers as u64).map(make).collect();
    let bytes = job.recipe.output().unwrap().bytes() * BATCH as usize;
    let batches = u32::try_from(job.batching.batches()).unwrap();
    let of_epoch = |epoch| {
        let mut cached = 0;
        for batch in 0..batches {
            let mut out = vec![0; bytes];
            let turn = batch as usize % preparers.len();
            let prepared = prepare(&mut preparers[turn], (epoch, batch), &mut out).unwrap();
            let expected = expected(job, epoch, batch);
            assert!(out[..expected.len()] == expected, "epoch {epoch}, batch {batch} differs");
            cached += prepared.stats.cached;
            let stats = cache.stats();
            assert!(stats.bytes <= stats.budget_bytes);
            assert_eq!(stats.samples, stats.added - stats.evicted);
        }
        cached
    };
    (0..EPOCHS).map(of_epoch).collect()
}

#[test]
fn later_epochs_take_samples_from_the_cache_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    for operations in [Some(1), None] {
        let job = job(&dataset, BATCH);
        let cache = open(&job, 4 << 20, operations).unwrap();
        let cached = cached_of_epochs(&job, &cache, 2);
        let all = u32::try_from(SAMPLES).unwrap();
        assert_eq!(cached, [0, all, all, all], "after {} operations", cache.operations());
    }
}

#[test]
fn a_small_cache_holds_as_many_as_fit_and_hits_them_in_every_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let job = job(&dataset, BATCH);
    // Decoded pictures have 20 to 40 pixels on a side: one block or two each.
    for samples in [1, 3, 7] {
        let budget = bytes_for(0.0, SAMPLES) + samples * 4300;
        let least = open(&job, 1, Some(1)).unwrap_err();
        let CacheError::TooSmall { least, .. } = least else { panic!("{least}") };
        let cache = open(&job, budget.min(least + samples * 4300), Some(1)).unwrap();
        let cached = cached_of_epochs(&job, &cache, 1);
        assert_eq!(cached[0], 0);
        for hits in &cached[1..] {
            assert!((1..=samples as u32 + 1).contains(hits), "{cached:?} of {samples}");
        }
    }
}

#[test]
fn a_damaged_sample_is_never_cached_and_its_replacement_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    damage(&dataset, 13);
    let mut job = job(&dataset, BATCH);
    job.on_error = OnError::Always(Action::Replace);
    let bytes = job.recipe.output().unwrap().bytes() * BATCH as usize;
    let (mut with, mut without) = (
        caching(&job, 4 << 20),
        CpuPreparer::new(job.clone(), shuffled(&dataset, 2, 6), Cpu::detect()).unwrap(),
    );
    for epoch in 0..3 {
        for batch in 0..u32::try_from(job.batching.batches()).unwrap() {
            let (mut a, mut b) = (vec![0; bytes], vec![0; bytes]);
            let cached = prepare(&mut *with, (epoch, batch), &mut a).unwrap();
            let plain = prepare(&mut without, (epoch, batch), &mut b).unwrap();
            assert!(a == b, "epoch {epoch}, batch {batch}");
            assert_eq!(
                (cached.samples, cached.replacements.len()),
                (plain.samples, plain.replacements.len())
            );
        }
    }
}

#[test]
fn an_invalid_cache_is_refused_with_the_figures() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let mut job = job(&dataset, BATCH);
    let least = open(&job, 1000, None).unwrap_err();
    assert!(matches!(least, CacheError::TooSmall { bytes: 1000, samples: SAMPLES, .. }));
    let limit = MemoryLimit { bytes: 3 << 30, available_bytes: 0, file: None };
    let settings = CacheSettings { bytes: 2 << 30, operations: None };
    assert!(settings.check(&limit, 1 << 30).is_ok());
    let refused = settings.check(&limit, (1 << 30) + 1).unwrap_err();
    assert!(matches!(refused, CacheError::TooLarge { bytes, .. } if bytes == 2 << 30));
    assert!(refused.remedy().is_some());
    let refused = open(&job, 4 << 20, Some(9)).unwrap_err();
    assert!(matches!(refused, CacheError::Operations { asked: 9, least: 1, .. }), "{refused}");
    let random = "[[operation]]\nname = \"decode\"\nscaled = true\n[[operation]]\n\
                  name = \"random_resized_crop\"\nsize = 8\n";
    job.recipe = Arc::new(Recipe::from_toml(random).unwrap());
    let refused = open(&job, 4 << 20, None).unwrap_err();
    let because = CutRefusal::LooksAhead { by: "decode", position: 1 };
    assert!(matches!(refused, CacheError::NothingToCache { because: Some(it) } if it == because));
}
