//! Batches from a dataset on disk, through every kind of engine, sound and failing.

use crate::support::{
    NoRoom, RECIPE, SAMPLES, expected, job, picture, prepare_all, shuffled, write,
};
use meetpoint_format::batching::{Batching, Rank};
use meetpoint_format::dataset::{MANIFEST_NAME, part_name};
use meetpoint_format::recipe::Recipe;
use meetpoint_kernels::{Cpu, jpeg};
use meetpoint_prepare::{CpuPreparer, Dataset, Error, Job, Preparer};
use meetpoint_storage::faulty::{Fault, FaultPlan, FaultyEngine};
use meetpoint_storage::{
    Access, AlignedBuffer, Completion, Counters, Engine, EngineKind, Error as StorageError, FileId,
    Limits, RefusedRequest, Request, RequestKind, open_engine,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn batches_of_ranks_and_of_devices_hold_the_same_samples_as_any() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let parts = u32::try_from(dataset.manifest().parts.len()).unwrap();
    assert!(parts > 1);
    for (devices, rank, ranks) in [(1, 1, 3), (2, 0, 1), (2, 0, 3), (parts, 2, 3)] {
        let mut job = job(&dataset, 3);
        let holders = dataset.spread(devices, &[]).unwrap();
        let (options, sampling) = (*job.batching.options(), Arc::clone(job.batching.sampling()));
        job.batching = Batching::new(options, sampling, Rank { rank, ranks }, holders).unwrap();
        prepare_all(&job, open_engine(EngineKind::Threads, 2).unwrap().engine);
    }
    assert!(dataset.is_unchanged());
    std::fs::write(folder.path().join(MANIFEST_NAME), "{}").unwrap();
    assert!(!dataset.is_unchanged());
}

#[test]
fn every_engine_and_depth_gives_the_same_batches() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    for depth in [1, 2, 5, 64] {
        prepare_all(&job(&dataset, 7), open_engine(EngineKind::Threads, depth).unwrap().engine);
        prepare_all(&job(&dataset, 7), open_engine(EngineKind::Auto, depth).unwrap().engine);
        for seed in 0..6 {
            prepare_all(&job(&dataset, 7), shuffled(&dataset, depth, seed));
        }
    }
    prepare_all(&job(&dataset, 1), shuffled(&dataset, 8, 1));
    prepare_all(&job(&dataset, 100), shuffled(&dataset, 8, 1));
}

#[test]
fn an_engine_that_refuses_requests_is_bypassed() {
    let folder = tempfile::tempdir().unwrap();
    prepare_all(&job(&write(folder.path(), |_, _| ()), 7), Box::new(NoRoom));
}

/// Counts the buffers that are requested from an engine.
struct Counting {
    inner: Box<dyn Engine>,
    buffers: Arc<AtomicUsize>,
}

impl Engine for Counting {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn limits(&self) -> Limits {
        self.inner.limits()
    }
    fn open(&mut self, path: &Path, access: Access) -> Result<FileId, StorageError> {
        self.inner.open(path, access)
    }
    fn adopt(&mut self, file: std::fs::File, name: &str) -> Result<FileId, StorageError> {
        self.inner.adopt(file, name)
    }
    fn close(&mut self, file: FileId) {
        self.inner.close(file);
    }
    fn is_direct(&self, file: FileId) -> bool {
        self.inner.is_direct(file)
    }
    fn file_bytes(&self, file: FileId) -> Result<u64, StorageError> {
        self.inner.file_bytes(file)
    }
    fn submit(&mut self, request: Request) -> Result<(), Box<RefusedRequest>> {
        self.inner.submit(request)
    }
    fn wait(
        &mut self,
        timeout: Duration,
        out: &mut Vec<Completion>,
    ) -> Result<usize, StorageError> {
        self.inner.wait(timeout, out)
    }
    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }
    fn counters(&self) -> Counters {
        self.inner.counters()
    }
    fn buffer(&mut self, bytes: usize) -> AlignedBuffer {
        self.buffers.fetch_add(1, Ordering::Relaxed);
        self.inner.buffer(bytes)
    }
}

#[test]
fn buffers_are_used_again_from_batch_to_batch() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let buffers = Arc::new(AtomicUsize::new(0));
    let engine = Counting { inner: shuffled(&dataset, 4, 1), buffers: Arc::clone(&buffers) };
    prepare_all(&job(&dataset, 7), Box::new(engine));
    // 46 samples in 8 batches; at most 4 are read at once and as many wait to be decoded.
    let count = buffers.load(Ordering::Relaxed);
    assert!((4..=8).contains(&count), "{count} buffers for a depth of 4");
}

#[test]
fn a_failed_read_is_named_and_the_next_batch_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let faults = [Fault::Broken, Fault::ShortRead { bytes: 3 }, Fault::Busy];
    for fault in faults {
        let plan = FaultPlan::none().and(RequestKind::Read, 2, fault);
        let engine = FaultyEngine::new(shuffled(&dataset, 4, 1), plan);
        let job = job(&dataset, 6);
        let mut preparer = CpuPreparer::new(job.clone(), Box::new(engine), Cpu::detect()).unwrap();
        let mut out = vec![0; preparer.spec().bytes() * 6];
        let error = preparer.prepare(0, 0, &mut out, &mut |_| true).unwrap_err();
        let sample = job.batching.samples_of(&job.batching.order(0), 0).nth(2).unwrap();
        let named = format!("key {sample}.jpg: ");
        assert!(matches!(error, Error::Read { .. }), "{error}");
        assert!(error.to_string().contains(&named) && error.to_string().contains(".arrow"));
        for batch in 0..4 {
            preparer.prepare(0, batch, &mut out, &mut |_| true).unwrap();
            let expected = expected(&job, 0, batch);
            assert!(out[..expected.len()] == expected, "batch {batch} differs after {fault:?}");
        }
    }
}

#[test]
fn a_batch_can_be_cancelled_at_every_poll() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let job = job(&dataset, 6);
    let mut preparer =
        CpuPreparer::new(job.clone(), shuffled(&dataset, 4, 1), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes() * 6];
    let mut questions = 0;
    let whole = preparer
        .prepare(0, 1, &mut out, &mut |_| {
            questions += 1;
            true
        })
        .unwrap();
    assert_eq!(whole.stats.samples, 6);
    assert!(questions > 12, "only {questions} questions in 6 samples");
    let mut stopped = 0;
    for limit in 0..questions {
        let mut left = limit;
        let given_up = preparer.prepare(0, 1, &mut out, &mut |done| {
            assert!(done <= 6);
            left -= 1;
            left >= 0
        });
        match given_up {
            Ok(whole) => assert_eq!(whole.samples.len(), 6),
            Err(Error::Interrupted) => stopped += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(stopped > 6, "only {stopped} batches were given up");
    preparer.prepare(1, 2, &mut out, &mut |_| true).unwrap();
    assert!(out == expected(&job, 1, 2), "a batch after one given up differs");
}

#[test]
fn positions_and_batches_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let engine = shuffled(&dataset, 4, 1);
    let mut preparer = CpuPreparer::new(job(&dataset, 6), engine, Cpu::detect()).unwrap();
    let bytes = preparer.spec().bytes();
    let mut out = vec![0; bytes * 6];
    let error = preparer.prepare(0, 4, &mut out, &mut |_| true).unwrap_err();
    assert!(matches!(error, Error::NoSuchBatch { batch: 4, batches: 4 }), "{error}");
    out.pop();
    let error = preparer.prepare(0, 0, &mut out, &mut |_| true).unwrap_err();
    assert!(matches!(error, Error::OutputTooSmall { needed, .. } if needed == bytes * 6));
    // The last batch has 5 samples, for which there is room.
    assert_eq!(preparer.prepare(0, 3, &mut out, &mut |_| true).unwrap().stats.samples, 5);
}

#[test]
fn a_recipe_without_a_fixed_shape_makes_no_batches() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let recipe = Recipe::from_toml("[[operation]]\nname = \"decode\"\n").unwrap();
    let job = Job { recipe: Arc::new(recipe), ..job(&dataset, 6) };
    let made = CpuPreparer::new(job, shuffled(&dataset, 4, 1), Cpu::detect());
    assert!(matches!(made.err(), Some(Error::NoFixedShape)));
}

#[test]
fn a_folder_that_is_no_dataset_says_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let error = |path: &Path| Dataset::open(path).unwrap_err().to_string();
    assert!(error(folder.path()).contains("it holds no dataset.json"));
    assert!(error(&folder.path().join("nothing")).contains("No such file"));
    std::fs::write(folder.path().join("file"), "text").unwrap();
    assert!(error(&folder.path().join("file")).contains("it is not a folder"));
    std::fs::write(folder.path().join(MANIFEST_NAME), "{").unwrap();
    assert!(error(folder.path()).contains("line 1 column 1"));
}

#[test]
fn a_missing_part_is_named() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), |_, _| ());
    std::fs::remove_file(folder.path().join(part_name(1))).unwrap();
    let error = Dataset::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("part-00001.arrow: No such file"), "{error}");
}

#[test]
fn hosts_and_devices_distinguish_datasets() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let sha256 = |folder: &Path| Dataset::open(folder).unwrap().manifest_sha256();
    write(one.path(), |_, _| ());
    write(two.path(), |_, _| ());
    assert_eq!(sha256(one.path()), sha256(two.path()));
    write(two.path(), |sample, image| image.extend(vec![0; usize::from(sample == 3)]));
    assert_ne!(sha256(one.path()), sha256(two.path()));
}

#[test]
fn recipes_are_refused_by_the_limit_that_the_kernels_have() {
    assert_eq!(meetpoint_format::recipe::PIXELS_MAX, meetpoint_kernels::decode::PIXELS_MAX);
}

#[test]
fn samples_in_a_coefficient_form_give_the_same_tensors() {
    for form in [jpeg::Form::Compact, jpeg::Form::Fast] {
        let folder = tempfile::tempdir().unwrap();
        let dataset = write(folder.path(), |sample, image| {
            if sample % 3 != 0 {
                *image = jpeg::to_form(image, form).unwrap();
            }
        });
        prepare_all(&job(&dataset, 4), shuffled(&dataset, 4, 1));
        for sample in 0..SAMPLES {
            assert!(dataset.read_file(sample).unwrap() == picture(sample), "{form:?} {sample}");
        }
    }
}

#[test]
fn entry_points_are_retained_only_for_recipes_that_decode_regions() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let whole = RECIPE.replace("random_resized_crop\"\nsize = 16", "resize\"\nsize = [16, 16]");
    let recipe = Arc::new(Recipe::from_toml(&whole).unwrap());
    let whole = Job { recipe, ..job(&dataset, 4) };
    CpuPreparer::new(whole, shuffled(&dataset, 4, 1), Cpu::Portable).unwrap();
    assert!(dataset.locate(0).unwrap().entry_points.is_none());
    let regions = job(&dataset, 4);
    CpuPreparer::new(regions, shuffled(&dataset, 4, 1), Cpu::Portable).unwrap();
    let found = dataset.locate(0).unwrap().entry_points.expect("a JPEG has them");
    let expected = jpeg::entry_points(&picture(0), jpeg::Spacing::McuRow).unwrap();
    assert_eq!(Some(found.as_ref()), expected.as_deref());
    assert!(dataset.entry_points_bytes() > 0);
}
