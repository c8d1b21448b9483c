//! Batches from a dataset on disk, through every kind of engine, sound and failing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use meetpoint_format::batching::{Batching, Cut, Rank};
use meetpoint_format::dataset::{
    Columns, EntryPointSpacing, EntryPointsStored, Form, MANIFEST_NAME, Manifest, PartEncoder,
    PartEntry, Provenance, Row, Stored, part_name,
};
use meetpoint_format::recipe::{OnError as DamagedJpeg, Recipe};
use meetpoint_format::replacement::candidates;
use meetpoint_format::sampler::Sampling;
use meetpoint_kernels::{Cpu, Interrupt, SampleId, SamplePreparer, decode_bytes, jpeg};
use meetpoint_prepare::{
    Action, BatchPreparer, Dataset, DecodeMemory, Error, Job, Judge, OnError, samples_held,
};
use meetpoint_storage::faulty::{Fault, FaultPlan, FaultyEngine};
use meetpoint_storage::memory::{self, MemoryEngine, MemoryFiles};
use meetpoint_storage::{
    Access, AlignedBuffer, Completion, Counters, Engine, EngineKind, Error as StorageError, FileId,
    Limits, Refused, Request, RequestKind, open_engine,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const RECIPE: &str = r#"
[[operation]]
name = "decode"
[[operation]]
name = "random_resized_crop"
size = 16
[[operation]]
name = "random_horizontal_flip"
"#;
const SEED: u64 = 42;
const SAMPLES: u64 = 23;

fn picture(sample: u64) -> Vec<u8> {
    let (width, height) = (20 + sample as u16, 40 - sample as u16);
    let pixels: Vec<u8> = (0..usize::from(width) * usize::from(height) * 3)
        .map(|index| ((index as u64 * 5) ^ (sample * 29)) as u8)
        .collect();
    let mut bytes = Vec::new();
    jpeg_encoder::Encoder::new(&mut bytes, 90)
        .encode(&pixels, width, height, jpeg_encoder::ColorType::Rgb)
        .unwrap();
    bytes
}

/// Writes a dataset of two parts; `change` may spoil an image before it is written.
fn write(folder: &Path, change: impl Fn(u64, &mut Vec<u8>)) -> Arc<Dataset> {
    let mut parts = Vec::new();
    let (mut image_bytes, mut image_bytes_max) = (0, 0);
    let (mut samples, mut entry_points_bytes) = (0, 0);
    for (index, range) in [0..10, 10..SAMPLES].into_iter().enumerate() {
        let mut encoder = PartEncoder::new(Vec::new(), Arc::new(Columns::images())).unwrap();
        for sample in range {
            let mut image = picture(sample);
            let entry_points = jpeg::entry_points(&image, jpeg::Spacing::McuRow).unwrap();
            change(sample, &mut image);
            let entry_points = entry_points.filter(|_| jpeg::form_of(&image).is_none());
            samples += u64::from(entry_points.is_some());
            entry_points_bytes += entry_points.as_ref().map_or(0, |bytes| bytes.len() as u64);
            image_bytes += image.len() as u64;
            image_bytes_max = image_bytes_max.max(image.len() as u64);
            let key = format!("{sample}.jpg");
            encoder.push(Row { key, image, label: None, entry_points, extra: None }).unwrap();
        }
        let part = encoder.finish().unwrap();
        std::fs::write(folder.join(part_name(index)), &part.sink).unwrap();
        parts.push(PartEntry {
            file: part_name(index),
            samples: part.samples,
            bytes: part.bytes,
            tail_crc32c: part.tail_crc32c,
            sha256: "0".repeat(64),
        });
    }
    let manifest = Manifest {
        samples: SAMPLES,
        image_bytes,
        image_bytes_max,
        labels: Vec::new(),
        parts,
        stored: Some(Stored {
            // Files are let pass in any form.
            form: Form::Compact,
            entry_points: EntryPointsStored {
                spacing: Some(EntryPointSpacing::McuRow),
                samples,
                bytes: entry_points_bytes,
            },
            ..Stored::default()
        }),
        ..Manifest::new(
            &Columns::images(),
            Provenance {
                tool: "test".into(),
                source: "none".into(),
                skipped: 0,
                options: BTreeMap::new(),
                ..Provenance::default()
            },
        )
    };
    std::fs::write(folder.join(MANIFEST_NAME), manifest.to_json()).unwrap();
    Arc::new(Dataset::open(folder).unwrap())
}

/// Changes a byte of a sample's image on disk, behind the checksum's back.
fn damage(dataset: &Dataset, sample: u64) {
    let location = dataset.locate(sample).unwrap();
    let path = dataset.part_path(location.part);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(location.offset + location.bytes / 2).unwrap()] ^= 4;
    std::fs::write(path, bytes).unwrap();
}

fn job(dataset: &Arc<Dataset>, batch_size: u32) -> Job {
    let recipe = Arc::new(Recipe::from_toml(RECIPE).unwrap());
    let cut = Cut { batch_size, drop_last: false, seed: SEED };
    let batching = Batching::alone(cut, Sampling::shuffled(SAMPLES));
    // The other columns have tests of their own.
    let columns = vec!["image".to_owned()].into();
    let on_error = OnError::default();
    Job { dataset: Arc::clone(dataset), recipe, batching, on_error, columns }
}

/// What a batch must be: each sample prepared alone.
fn expected(job: &Job, epoch: u32, batch: u32) -> Vec<u8> {
    let mut preparer = SamplePreparer::new(&job.recipe, Cpu::Portable);
    let bytes = job.recipe.output().unwrap().bytes();
    let order = job.batching.order(epoch);
    let mut out = Vec::new();
    for sample in job.batching.samples_of(&order, batch) {
        let start = out.len();
        out.resize(start + bytes, 0);
        let id = SampleId { seed: SEED, epoch, sample };
        preparer.prepare((&picture(sample)).into(), id, &mut out[start..], &mut || ()).unwrap();
    }
    out
}

/// The parts of a dataset in memory, under the names that they have on disk.
fn in_memory(dataset: &Dataset) -> MemoryFiles {
    let files = MemoryFiles::default();
    for part in 0..dataset.manifest().parts.len() {
        let path = dataset.part_path(part);
        files.put(&path, std::fs::read(&path).unwrap());
    }
    files
}

fn shuffled(dataset: &Dataset, depth: usize, seed: u64) -> Box<dyn Engine> {
    let direct = seed.is_multiple_of(2);
    Box::new(MemoryEngine::new(in_memory(dataset), depth, direct, memory::Order::Shuffled(seed)))
}

fn prepare_all(job: &Job, engine: Box<dyn Engine>) {
    let mut preparer = BatchPreparer::new(job.clone(), engine, Cpu::detect()).unwrap();
    let bytes = preparer.spec().bytes() * job.batching.batch_size() as usize;
    for epoch in 0..2 {
        for batch in 0..u32::try_from(job.batching.batches()).unwrap() {
            let mut out = vec![0x77; bytes + 5];
            let stats = preparer.prepare(epoch, batch, &mut out, &mut |_| true).unwrap();
            let expected = expected(job, epoch, batch);
            assert!(out[..expected.len()] == expected, "epoch {epoch} batch {batch} differs");
            assert!(out[expected.len()..].iter().all(|byte| *byte == 0x77), "wrote too far");
            assert_eq!(stats.samples, job.batching.batch_len(batch));
        }
    }
}

#[test]
fn batches_of_ranks_and_of_devices_hold_the_same_samples_as_any() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let parts = u32::try_from(dataset.manifest().parts.len()).unwrap();
    assert!(parts > 1);
    for (devices, rank, ranks) in [(1, 1, 3), (2, 0, 1), (2, 0, 3), (parts, 2, 3)] {
        let mut job = job(&dataset, 3);
        let holders = dataset.spread(devices, &[]).unwrap();
        let (cut, sampling) = (*job.batching.cut(), Arc::clone(job.batching.sampling()));
        job.batching = Batching::new(cut, sampling, Rank { rank, ranks }, holders).unwrap();
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

/// An engine with room for nothing.
struct NoRoom;

impl Engine for NoRoom {
    fn name(&self) -> &'static str {
        "no room"
    }
    fn limits(&self) -> Limits {
        Limits { depth: 0 }
    }
    fn open(&mut self, _: &Path, _: Access) -> Result<FileId, StorageError> {
        Ok(FileId(0))
    }
    fn adopt(&mut self, _: std::fs::File, _: &str) -> Result<FileId, StorageError> {
        Ok(FileId(0))
    }
    fn close(&mut self, _: FileId) {}
    fn is_direct(&self, _: FileId) -> bool {
        false
    }
    fn file_bytes(&self, _: FileId) -> Result<u64, StorageError> {
        Ok(0)
    }
    fn submit(&mut self, request: Request) -> Result<(), Box<Refused>> {
        Err(Box::new(Refused { request, error: StorageError::QueueFull { depth: 0 } }))
    }
    fn wait(&mut self, _: Duration, _: &mut Vec<Completion>) -> Result<usize, StorageError> {
        Ok(0)
    }
    fn in_flight(&self) -> usize {
        0
    }
    fn counters(&self) -> Counters {
        Counters::default()
    }
}

#[test]
fn an_engine_without_room_is_done_without() {
    let folder = tempfile::tempdir().unwrap();
    prepare_all(&job(&write(folder.path(), |_, _| ()), 7), Box::new(NoRoom));
}

/// Counts the buffers that are asked of an engine.
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
    fn submit(&mut self, request: Request) -> Result<(), Box<Refused>> {
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
fn a_damaged_sample_is_named_and_the_next_batch_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    damage(&dataset, 13);
    let job = job(&dataset, 4);
    let mut preparer =
        BatchPreparer::new(job.clone(), shuffled(&dataset, 8, 3), Cpu::detect()).unwrap();
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
    let mut preparer = BatchPreparer::new(job, shuffled(&dataset, 8, 3), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes() * 23];
    let error = preparer.prepare(0, 0, &mut out, &mut |_| true).unwrap_err();
    assert!(matches!(&error, Error::Sample { row: 5, key, .. } if key == "5.jpg"), "{error}");
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
        let mut preparer =
            BatchPreparer::new(job.clone(), Box::new(engine), Cpu::detect()).unwrap();
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
fn a_batch_can_be_given_up_at_every_question() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let job = job(&dataset, 6);
    let mut preparer =
        BatchPreparer::new(job.clone(), shuffled(&dataset, 4, 1), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes() * 6];
    let mut questions = 0;
    let whole = preparer
        .prepare(0, 1, &mut out, &mut |_| {
            questions += 1;
            true
        })
        .unwrap();
    assert_eq!(whole.samples, 6);
    assert!(questions > 12, "only {questions} questions in 6 samples");
    let mut stopped = 0;
    for limit in 0..questions {
        let mut left = limit;
        let stats = preparer
            .prepare(0, 1, &mut out, &mut |done| {
                assert!(done <= 6);
                left -= 1;
                left >= 0
            })
            .unwrap();
        stopped += u32::from(stats.samples < 6);
    }
    assert!(stopped > 6, "only {stopped} batches were given up");
    preparer.prepare(1, 2, &mut out, &mut |_| true).unwrap();
    assert!(out == expected(&job, 1, 2), "a batch after one given up differs");
}

#[test]
fn places_and_batches_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let engine = shuffled(&dataset, 4, 1);
    let mut preparer = BatchPreparer::new(job(&dataset, 6), engine, Cpu::detect()).unwrap();
    let bytes = preparer.spec().bytes();
    let mut out = vec![0; bytes * 6];
    let error = preparer.prepare(0, 4, &mut out, &mut |_| true).unwrap_err();
    assert!(matches!(error, Error::NoSuchBatch { batch: 4, batches: 4 }), "{error}");
    out.pop();
    let error = preparer.prepare(0, 0, &mut out, &mut |_| true).unwrap_err();
    assert!(matches!(error, Error::OutputTooSmall { needed, .. } if needed == bytes * 6));
    // The last batch has 5 samples, for which there is room.
    assert_eq!(preparer.prepare(0, 3, &mut out, &mut |_| true).unwrap().samples, 5);
}

#[test]
fn a_recipe_without_a_fixed_shape_makes_no_batches() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let recipe = Recipe::from_toml("[[operation]]\nname = \"decode\"\n").unwrap();
    let job = Job { recipe: Arc::new(recipe), ..job(&dataset, 6) };
    let made = BatchPreparer::new(job, shuffled(&dataset, 4, 1), Cpu::detect());
    assert!(matches!(made.err(), Some(Error::NoFixedShape)));
}

#[test]
fn a_folder_that_is_no_dataset_says_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let error = |path: &Path| Dataset::open(path).unwrap_err().to_string();
    assert!(error(folder.path()).contains("it holds no dataset.json"));
    assert!(error(&folder.path().join("nothing")).contains("No such file"));
    std::fs::write(folder.path().join("file"), "text").unwrap();
    assert!(error(&folder.path().join("file")).contains("it is no folder"));
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
fn host_and_device_can_tell_datasets_apart() {
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
fn entry_points_are_kept_for_recipes_that_decode_regions_alone() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let whole = RECIPE.replace("random_resized_crop\"\nsize = 16", "resize\"\nsize = [16, 16]");
    let recipe = Arc::new(Recipe::from_toml(&whole).unwrap());
    let whole = Job { recipe, ..job(&dataset, 4) };
    BatchPreparer::new(whole, shuffled(&dataset, 4, 1), Cpu::Portable).unwrap();
    assert!(dataset.locate(0).unwrap().entry_points.is_none());
    let regions = job(&dataset, 4);
    BatchPreparer::new(regions, shuffled(&dataset, 4, 1), Cpu::Portable).unwrap();
    let found = dataset.locate(0).unwrap().entry_points.expect("a JPEG has them");
    let expected = jpeg::entry_points(&picture(0), jpeg::Spacing::McuRow).unwrap();
    assert_eq!(Some(found.as_ref()), expected.as_deref());
    assert!(dataset.entry_points_bytes() > 0);
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

/// What a batch must be when damaged samples are replaced, place by place: an oracle of its own.
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
        let mut preparer = BatchPreparer::new(job.clone(), engine, cpu).unwrap();
        let mut met = 0;
        for (epoch, batch) in (0..2).flat_map(|epoch| (0..4).map(move |batch| (epoch, batch))) {
            let mut out = vec![0; preparer.spec().bytes() * 6];
            let stats = preparer.prepare(epoch, batch, &mut out, &mut |_| true).unwrap();
            let (held, expected) = replaced(&job, epoch, batch);
            assert!(out[..expected.len()] == expected, "epoch {epoch} batch {batch}");
            assert_eq!(stats.samples, job.batching.batch_len(batch));
            let order = job.batching.order(epoch);
            let wanted = job.batching.samples_of(&order, batch);
            assert_eq!(samples_held(wanted, preparer.mended()), held);
            assert_eq!(stats.replaced as usize, preparer.mended().len());
            for mended in preparer.mended() {
                assert!(DAMAGED.contains(&mended.damage.sample));
                assert_eq!(mended.damage.key, format!("{}.jpg", mended.damage.sample));
                let location = dataset.locate(mended.damage.sample).unwrap();
                assert_eq!(mended.damage.offset, location.offset);
                assert_eq!(Path::new(&mended.damage.file), dataset.part_path(location.part));
                assert_eq!(mended.damage.epoch, epoch);
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
    let mut preparer = BatchPreparer::new(job, shuffled(&dataset, 8, 5), Cpu::detect()).unwrap();
    let bytes = preparer.spec().bytes();
    let mut left_out = 0;
    for batch in 0..4 {
        let mut out = vec![0; bytes * 6];
        let stats = preparer.prepare(1, batch, &mut out, &mut |_| true).unwrap();
        let order = whole.batching.order(1);
        let wanted: Vec<u64> = whole.batching.samples_of(&order, batch).collect();
        let tensors = expected(&whole, 1, batch);
        let sound = wanted.iter().copied().zip(tensors.chunks_exact(bytes));
        let sound = sound.filter(|(sample, _)| !DAMAGED.contains(sample));
        let (held, kept): (Vec<u64>, Vec<&[u8]>) = sound.unzip();
        assert!(out[..held.len() * bytes] == kept.concat(), "batch {batch}");
        assert_eq!(samples_held(wanted.into_iter(), preparer.mended()), held);
        assert_eq!(stats.samples - stats.left_out, u32::try_from(held.len()).unwrap());
        left_out += stats.left_out;
    }
    assert_eq!(left_out, 3);
}

#[test]
fn a_judge_is_told_what_is_wrong_and_where_and_decides_sample_by_sample() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = damaged_dataset(folder.path());
    let told = Arc::new(Mutex::new(Vec::new()));
    let judge = {
        let told = Arc::clone(&told);
        Judge::new(move |damage| {
            told.lock().unwrap().push(damage.clone());
            match damage.sample {
                3 => Action::Raise,
                11 => Action::Skip,
                _ => Action::Replace,
            }
        })
    };
    let job = Job { on_error: OnError::Ask(judge), ..job(&dataset, 1) };
    let order = job.batching.order(0);
    let batch_of =
        |sample| (0..23).find(|&it| job.batching.samples_of(&order, it).any(|is| is == sample));
    let mut preparer =
        BatchPreparer::new(job.clone(), shuffled(&dataset, 8, 5), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes()];
    let mut prepare =
        |sample| preparer.prepare(0, batch_of(sample).unwrap(), &mut out, &mut |_| true);
    assert!(prepare(3).unwrap_err().to_string().contains("key 3.jpg"));
    assert_eq!(prepare(11).unwrap().left_out, 1);
    assert_eq!(prepare(12).unwrap().replaced, 1);
    let told = told.lock().unwrap();
    assert_eq!(told.iter().map(|damage| damage.sample).collect::<Vec<_>>(), [3, 11, 12]);
    assert!(told[1].what.contains("checksum is 0x"), "{told:?}");
    assert!(told.iter().all(|damage| damage.remedy.is_some()), "{told:?}");
}

#[test]
fn a_read_that_fails_is_damage_of_its_sample_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let job = Job { on_error: OnError::Always(Action::Skip), ..job(&dataset, 6) };
    // What this process has too little of just now says nothing of the sample.
    let faults =
        [(Fault::Broken, true), (Fault::ShortRead { bytes: 3 }, true), (Fault::Busy, false)];
    for (fault, is_damage) in faults {
        let plan = FaultPlan::none().and(RequestKind::Read, 2, fault);
        let engine = FaultyEngine::new(shuffled(&dataset, 1, 2), plan);
        let mut preparer =
            BatchPreparer::new(job.clone(), Box::new(engine), Cpu::detect()).unwrap();
        let mut out = vec![0; preparer.spec().bytes() * 6];
        let prepared = preparer.prepare(0, 0, &mut out, &mut |_| true);
        assert_eq!(prepared.is_ok(), is_damage, "{fault:?}: {prepared:?}");
        if let Ok(stats) = prepared {
            assert_eq!((stats.samples, stats.left_out), (6, 1));
            assert!(!preparer.mended()[0].damage.what.is_empty());
        }
    }
}

#[test]
fn a_dataset_without_a_sound_sample_ends_with_the_error_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, image| image.truncate(40));
    let job = Job { on_error: OnError::Always(Action::Replace), ..job(&dataset, 6) };
    let mut preparer = BatchPreparer::new(job, shuffled(&dataset, 8, 5), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes() * 6];
    let error = preparer.prepare(0, 0, &mut out, &mut |_| true).unwrap_err();
    assert!(matches!(error, Error::NoReplacement { tried: 256, .. }), "{error}");
    assert!(error.to_string().contains("none of 256 other samples"), "{error}");
}

#[test]
fn an_interrupt_ends_a_batch_inside_its_samples_and_damages_none() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |_, _| ());
    let job = Job { on_error: OnError::Always(Action::Skip), ..job(&dataset, 3) };
    let mut preparer = BatchPreparer::new(job, shuffled(&dataset, 8, 5), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes() * 3];
    let mut prepare = |raised_at: usize| {
        let polled = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&polled);
        let poll = move || counter.fetch_add(1, Ordering::Relaxed) >= raised_at;
        preparer.set_interrupt(Interrupt::when(poll));
        let prepared = preparer.prepare(0, 0, &mut out, &mut |_| true);
        assert!(preparer.mended().is_empty());
        (prepared, polled.load(Ordering::Relaxed))
    };
    let (prepared, polls) = prepare(usize::MAX);
    assert_eq!(prepared.unwrap().samples, 3);
    assert!(polls > 3 * 2, "rows of every sample: {polls}");
    for raised_at in 0..polls {
        let (prepared, _) = prepare(raised_at);
        assert!(matches!(prepared, Err(Error::Interrupted)), "{raised_at}: {prepared:?}");
    }
    assert_eq!(prepare(usize::MAX).0.unwrap().samples, 3);
}

/// A small progressive file whose header promises many pixels.
fn bomb() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut bytes, 90);
    encoder.set_progressive(true);
    encoder.encode(&[7; 16 * 16 * 3], 16, 16, jpeg_encoder::ColorType::Rgb).unwrap();
    let frame = bytes.windows(2).position(|two| two == [0xff, 0xc2]).unwrap();
    bytes[frame + 5..frame + 9].copy_from_slice(&[0x10, 0, 0x10, 0]);
    bytes
}

#[test]
fn a_picture_whose_decoding_needs_more_than_the_budget_is_refused_and_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |sample, image| {
        if sample == 3 {
            *image = bomb();
        }
    });
    let job = Job { on_error: OnError::Always(Action::Skip), ..job(&dataset, 23) };
    let mut preparer = BatchPreparer::new(job, shuffled(&dataset, 8, 5), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes() * 23];
    let needs = decode_bytes(&bomb(), DamagedJpeg::Fail).unwrap();
    for (limit, is_enough) in [(needs - 1, false), (needs, true)] {
        let memory = DecodeMemory::new(limit);
        preparer.set_decode_memory(Arc::clone(&memory));
        match preparer.prepare(0, 0, &mut out, &mut |_| true) {
            // Then it is read, and found to break off.
            Ok(stats) => assert_eq!((is_enough, stats.left_out), (true, 1)),
            Err(Error::DecodeMemory { key, needed, limit: told, .. }) => {
                assert_eq!((is_enough, key.as_str()), (false, "3.jpg"));
                assert_eq!((needed, told), (needs, limit));
            }
            Err(other) => panic!("{other}"),
        }
        assert_eq!(memory.reserved(), 0);
    }
}

#[test]
fn a_batch_is_given_up_while_it_waits_for_memory() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), |sample, image| {
        if sample == 3 {
            *image = bomb();
        }
    });
    let job = job(&dataset, 1);
    let order = job.batching.order(0);
    let mut batches = 0..23;
    let batch = batches.find(|it| job.batching.samples_of(&order, *it).any(|is| is == 3)).unwrap();
    let mut preparer = BatchPreparer::new(job, shuffled(&dataset, 8, 5), Cpu::detect()).unwrap();
    let mut out = vec![0; preparer.spec().bytes()];
    let memory = DecodeMemory::new(decode_bytes(&bomb(), DamagedJpeg::Fail).unwrap());
    let of_another = memory.reserve(memory.limit(), &mut || true).unwrap();
    preparer.set_decode_memory(memory);
    let mut questions = 0;
    let stats = preparer.prepare(0, batch, &mut out, &mut |_| {
        questions += 1;
        questions < 4
    });
    assert_eq!((stats.unwrap().samples, questions), (0, 4));
    let polls = AtomicUsize::new(0);
    let poll = move || polls.fetch_add(1, Ordering::Relaxed) > 2;
    preparer.set_interrupt(Interrupt::when(poll));
    let interrupted = preparer.prepare(0, batch, &mut out, &mut |_| true);
    assert!(matches!(interrupted, Err(Error::Interrupted)));
    drop(of_another);
}
