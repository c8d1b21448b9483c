//! Prepared datasets: what is stored, that the rest of the recipe gives the bits of the whole, what
//! is refused, and what is resumed.

use crate::measuring::dataset;
use crate::recipe;
use meetpoint_datasets::{
    Error as DatasetsError, OnError, SinkKind, UnpackOptions, Writer, unpack, verify, verify_deep,
};
use meetpoint_diagnose::Diagnose;
use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::dataset::{ContentKind, PreparedError};
use meetpoint_format::recipe::{CutRefusal, Recipe};
use meetpoint_format::sampler::Sampling;
use meetpoint_kernels::{Cpu, SampleId};
use meetpoint_planner::{
    Codec, CutError, Error, PrepareOptions, PrepareSummary, find_cut, materialization_points,
    materialize,
};
use meetpoint_prepare::{
    CpuPreparer, Dataset, Error as PrepareError, Job, OnError as OnDamage, OnePreparer, Preparer,
};
use meetpoint_storage::{EngineKind, open_engine};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const OPERATIONS: &[&str] = &[
    "decode",
    "resize size = 24",
    "grayscale num_output_channels = 3",
    "center_crop size = 20",
    "random_horizontal_flip",
    "random_resized_crop size = 16",
    "to_dtype dtype = \"float32\";scale = true",
    "normalize mean = [0.4, 0.5, 0.6];std = [0.2, 0.3, 0.25]",
];

/// A recipe without random parameters, which can be cut after its elements.
const DETERMINISTIC: &[&str] = &[
    "decode",
    "resize size = [18, 22]",
    "to_dtype dtype = \"float16\";scale = true",
    "normalize mean = [0.4, 0.5, 0.6];std = [0.2, 0.3, 0.25]",
    "layout layout = \"NCHW\"",
];

fn prepare(
    from: &Dataset,
    recipe: &Recipe,
    to: &Path,
    options: &PrepareOptions,
) -> Result<PrepareSummary, Error> {
    materialize(from, recipe, to, options, &mut |_| ())
}

fn options(recipe: &Recipe, cut: &str, codec: Codec) -> PrepareOptions {
    PrepareOptions {
        threads: 3,
        ..PrepareOptions::new(find_cut(recipe, cut, false).unwrap(), codec)
    }
}

/// Every sample of two epochs, one by one.
fn samples(dataset: &Dataset, recipe: &Recipe) -> Vec<meetpoint_kernels::Tensor> {
    let mut preparer = OnePreparer::new(dataset, recipe, Cpu::detect()).unwrap();
    let ids = (0..2).flat_map(|epoch| (0..dataset.len()).map(move |sample| (epoch, sample)));
    ids.map(|(epoch, sample)| {
        preparer.prepare(sample, SampleId { seed: 3, epoch, sample }).unwrap()
    })
    .collect()
}

/// Every batch of two epochs, as a loader prepares them.
fn batches(dataset: &Arc<Dataset>, recipe: &Recipe) -> Vec<Vec<u8>> {
    let batch_options = BatchOptions { batch_size: 5, drop_last: false, seed: 3 };
    let batching = Batching::alone(batch_options, Sampling::shuffled(dataset.len()));
    let job = Job {
        dataset: Arc::clone(dataset),
        recipe: Arc::new(recipe.clone()),
        batching,
        on_error: OnDamage::default(),
        columns: vec!["image".to_owned(), "label".to_owned(), "key".to_owned()].into(),
    };
    let engine = open_engine(EngineKind::Threads, 8).unwrap().engine;
    let mut preparer = CpuPreparer::new(job, engine, Cpu::detect()).unwrap();
    let mut all = Vec::new();
    for (epoch, batch) in (0..2).flat_map(|epoch| (0..2).map(move |batch| (epoch, batch))) {
        let mut memory = vec![0u8; 1 << 20];
        let prepared = preparer.prepare(epoch, batch, &mut memory, &mut |_| true).unwrap();
        memory.truncate(usize::try_from(prepared.layout.bytes()).unwrap());
        all.push(memory);
    }
    all
}

#[test]
fn the_rest_of_a_recipe_gives_the_bits_of_the_whole_at_every_cut_with_every_codec() {
    let folder = tempfile::tempdir().unwrap();
    let source = dataset(folder.path(), 9);
    for operations in [OPERATIONS, DETERMINISTIC] {
        let recipe = recipe(operations);
        let expected = (samples(&source, &recipe), batches(&source, &recipe));
        let points = materialization_points(&recipe, false).legal;
        let cuts = points.iter().filter(|point| point.operations > 0);
        let mut checked = 0;
        for point in cuts.filter(|point| point.form.is_exact()) {
            for &codec in Codec::ALL {
                let to = folder.path().join(format!("{point}-{}", codec.name()));
                let summary =
                    prepare(&source, &recipe, &to, &options(&recipe, &point.to_string(), codec));
                assert_eq!(summary.unwrap().samples, 9);
                let prepared = Arc::new(Dataset::open(&to).unwrap());
                assert_eq!(prepared.columns().kind, ContentKind::Bytes);
                assert!(samples(&prepared, &recipe) == expected.0, "{point} {codec:?}: samples");
                assert!(batches(&prepared, &recipe) == expected.1, "{point} {codec:?}: batches");
                let mut report = verify(&to, &mut |_| ()).unwrap();
                verify_deep(&to, 1, &Arc::default(), &mut report, &mut |_| ()).unwrap();
                assert!(report.is_sound(), "{point}: {:?}", report.problems);
                std::fs::remove_dir_all(&to).unwrap();
                checked += 1;
            }
        }
        assert!(checked >= 12, "{checked}");
    }
}

#[test]
fn a_prepared_dataset_is_prepared_further() {
    let folder = tempfile::tempdir().unwrap();
    let source = dataset(folder.path(), 6);
    let recipe = recipe(OPERATIONS);
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    prepare(&source, &recipe, &first, &options(&recipe, "2", Codec::Lz4)).unwrap();
    let first = Dataset::open(&first).unwrap();
    prepare(&first, &recipe, &second, &options(&recipe, "4", Codec::None)).unwrap();
    let second = Dataset::open(&second).unwrap();
    assert!(samples(&second, &recipe) == samples(&source, &recipe));
    let again = prepare(
        &second,
        &recipe,
        &folder.path().join("third"),
        &options(&recipe, "4", Codec::None),
    );
    assert!(matches!(again, Err(Error::AlreadyPrepared { operations: 4, .. })), "{again:?}");
}

#[test]
fn jpegs_of_prepared_pictures_are_near_and_recorded_as_lossy() {
    let folder = tempfile::tempdir().unwrap();
    let source = dataset(folder.path(), 6);
    let recipe = recipe(OPERATIONS);
    let to = folder.path().join("lossy");
    let point = find_cut(&recipe, "2-resize-jpeg", true).unwrap();
    let options = PrepareOptions { jpeg_quality: 100, ..PrepareOptions::new(point, Codec::None) };
    let summary = prepare(&source, &recipe, &to, &options).unwrap();
    assert_eq!(summary.prepared.jpeg_quality, Some(100));
    let prepared = Dataset::open(&to).unwrap();
    assert_eq!(prepared.columns().kind, ContentKind::Image);
    let shapes = |dataset: &Dataset| -> Vec<_> {
        samples(dataset, &recipe).into_iter().map(|tensor| tensor.spec).collect()
    };
    assert_eq!(shapes(&prepared), shapes(&source));
    let further = prepare(
        &prepared,
        &recipe,
        &folder.path().join("further"),
        &self::options(&recipe, "4", Codec::None),
    );
    assert!(matches!(further, Err(Error::AlreadyPrepared { .. })), "{further:?}");
}

#[test]
fn unpack_refuses_prepared_arrays_and_mentions_that_jpegs_are_prepared() {
    let folder = tempfile::tempdir().unwrap();
    let source = dataset(folder.path(), 3);
    let recipe = recipe(OPERATIONS);
    let [arrays, jpegs, out] = ["arrays", "jpegs", "out"].map(|name| folder.path().join(name));
    prepare(&source, &recipe, &arrays, &options(&recipe, "2", Codec::Lz4)).unwrap();
    for sink in SinkKind::ALL {
        let options = UnpackOptions { sink, ..UnpackOptions::default() };
        let refused = unpack(&arrays, &out, &options, &mut |_| ()).unwrap_err();
        assert!(matches!(refused, DatasetsError::PreparedArrays { .. }), "{refused:?}");
        assert!(refused.remedy().is_some() && !out.exists());
    }
    let point = find_cut(&recipe, "2-resize-jpeg", true).unwrap();
    let options = PrepareOptions { jpeg_quality: 90, ..PrepareOptions::new(point, Codec::None) };
    prepare(&source, &recipe, &jpegs, &options).unwrap();
    let summary = unpack(&jpegs, &out, &UnpackOptions::default(), &mut |_| ()).unwrap();
    assert_eq!(summary.samples, 3);
    assert!(summary.notes.iter().any(|note| note.contains("prepared")), "{:?}", summary.notes);
}

#[test]
fn a_recipe_that_begins_otherwise_is_refused_by_its_first_operation_that_differs() {
    let folder = tempfile::tempdir().unwrap();
    let source = dataset(folder.path(), 4);
    let whole = recipe(OPERATIONS);
    let to = folder.path().join("prepared");
    prepare(&source, &whole, &to, &options(&whole, "3", Codec::None)).unwrap();
    let prepared = Dataset::open(&to).unwrap();
    let refused = |operations: &[&str]| match prepared.start(&recipe(operations)) {
        Err(PrepareError::Prepared { source, .. }) => source,
        other => panic!("{other:?}"),
    };
    let mut other = OPERATIONS.to_vec();
    other[1] = "resize size = 25";
    let PreparedError::Differs { position, stored, given } = refused(&other) else {
        panic!("it begins with other operations")
    };
    assert_eq!(position, 2);
    assert!(stored.contains("size = 24") && given.is_some_and(|it| it.contains("size = 25")));
    let shorter = refused(&OPERATIONS[..2]);
    assert!(matches!(shorter, PreparedError::Differs { position: 3, given: None, .. }));
    // The rest of the recipe may differ.
    assert!(
        prepared.start(&recipe(&[&OPERATIONS[..3], &["random_vertical_flip"]].concat())).is_ok()
    );
}

#[test]
fn what_a_later_crop_or_resize_decides_is_refused_where_the_recipe_has_one() {
    let folder = tempfile::tempdir().unwrap();
    let source = dataset(folder.path(), 4);
    // Decoding at a lower resolution depends on the last crop, of which there is one.
    let beginning = ["decode scaled = true", "center_crop size = 20"];
    let whole = recipe(&beginning);
    let to = folder.path().join("prepared");
    prepare(&source, &whole, &to, &options(&whole, "2", Codec::None)).unwrap();
    let prepared = Dataset::open(&to).unwrap();
    assert!(prepared.start(&whole).is_ok());
    let longer = recipe(&[&beginning[..], &["resize size = [8, 8]"]].concat());
    let refused = prepared.start(&longer);
    let because = CutRefusal::LooksAhead { by: "decode", position: 1 };
    assert!(
        matches!(
            &refused,
            Err(PrepareError::Prepared {
                source: PreparedError::Cut { operations: 2, because: found }, ..
            }) if *found == because
        ),
        "{refused:?}"
    );
    let random = find_cut(&recipe(OPERATIONS), "random_resized_crop", false);
    assert!(matches!(random, Err(CutError::Refused { .. })), "{random:?}");
}

#[test]
fn damaged_samples_fail_or_are_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let source = dataset(folder.path(), 6);
    let location = source.locate(4).unwrap();
    let path = source.part_path(location.part);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(location.offset + 40).unwrap()] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let source = Dataset::open(source.path()).unwrap();
    let recipe = recipe(OPERATIONS);
    let to = folder.path().join("prepared");
    let failing = options(&recipe, "2", Codec::None);
    let failed = prepare(&source, &recipe, &to, &failing);
    let Err(Error::Unreadable(error)) = failed else { panic!("{failed:?}") };
    let DatasetsError::Unreadable { files, checked: 6 } = *error else { panic!("{error:?}") };
    assert_eq!(files.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["4.jpg"]);
    assert!(!to.exists());
    let skipping = PrepareOptions { on_error: OnError::Skip, ..failing };
    let summary = prepare(&source, &recipe, &to, &skipping).unwrap();
    assert_eq!((summary.samples, summary.unreadable.len()), (5, 1));
    assert_eq!(Dataset::open(&to).unwrap().key(4).unwrap(), "5.jpg");
}

#[test]
fn a_command_that_was_stopped_is_resumed_with_the_same_options_only() {
    let folder = tempfile::tempdir().unwrap();
    let source = dataset(folder.path(), 12);
    let recipe = recipe(OPERATIONS);
    let [to, whole] = ["prepared", "whole"].map(|name| folder.path().join(name));
    let mut options = options(&recipe, "2", Codec::Zstd);
    options.part_bytes_target = 4000;
    prepare(&source, &recipe, &whole, &options).unwrap();
    options.resume = true;
    let stop = Arc::clone(&options.stop);
    let stopped = materialize(&source, &recipe, &to, &options, &mut |progress| {
        stop.store(progress.done >= 8, Ordering::Relaxed);
    });
    let Err(Error::Datasets(error)) = stopped else { panic!("{stopped:?}") };
    let DatasetsError::Stopped { parts, .. } = *error else { panic!("{error:?}") };
    assert!(parts > 0);
    let retained = std::fs::read_dir(folder.path().join("prepared.partial-0-0")).unwrap();
    let retained: u64 = retained.map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert_eq!(Writer::retained_bytes(&to).unwrap(), retained);
    assert_eq!(Writer::retained_bytes(&whole).unwrap(), 0);
    options.stop.store(false, Ordering::Relaxed);
    let other = PrepareOptions { codec: Codec::None, ..options.clone() };
    let refused = prepare(&source, &recipe, &to, &other);
    let Err(Error::Datasets(error)) = refused else { panic!("{refused:?}") };
    assert!(matches!(*error, DatasetsError::ResumeDiffers { .. }), "{error:?}");
    let summary = prepare(&source, &recipe, &to, &options).unwrap();
    assert_eq!((summary.samples, summary.parts_resumed), (12, parts));
    let parts = |path: &Path| Dataset::open(path).unwrap().manifest().parts.clone();
    assert_eq!(parts(&to), parts(&whole), "the same bytes as in one go");
}
