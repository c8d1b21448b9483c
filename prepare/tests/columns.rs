//! Columns of a batch beside its images, from a dataset with a column of every kind.

#![expect(clippy::unwrap_used, reason = "a helper fails its test by panicking")]

use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray, Float64Array,
    Int16Array, ListArray, RecordBatch, StringArray,
};
use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::column::{BatchLayout, ColumnBytes, ColumnError};
use meetpoint_format::dataset::{
    Columns, MANIFEST_NAME, Manifest, PartEncoder, PartEntry, Provenance, Row, Stored, part_name,
};
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::Sampling;
use meetpoint_kernels::{Cpu, Interrupt};
use meetpoint_prepare::{
    Action, CpuPreparer, Dataset, Error, Job, OnError, PreparedBatch, Preparer,
};
use meetpoint_storage::{EngineKind, open_engine};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const SAMPLES: u64 = 23;
const BATCH: u32 = 5;

const RECIPE: &str = "[[operation]]\nname = \"decode\"\n\
                      [[operation]]\nname = \"resize\"\nsize = [4, 6]\n";

/// A JPEG of one colour.
fn picture(sample: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let pixels = [sample as u8 * 9, 80, 200 - sample as u8].repeat(9 * 8);
    let encoder = jpeg_encoder::Encoder::new(&mut bytes, 90);
    encoder.encode(&pixels, 9, 8, jpeg_encoder::ColorType::Rgb).unwrap();
    bytes
}

fn boxes_of(sample: u64) -> Vec<[f32; 4]> {
    (0..sample % 4).map(|at| [sample as f32, at as f32, 0.5, -1.5]).collect()
}

fn ids_of(sample: u64) -> Vec<i64> {
    (0..sample % 3).map(|at| -(sample.cast_signed()) * 1000 + at.cast_signed()).collect()
}

fn caption_of(sample: u64) -> String {
    format!("größe {sample}{}", "!".repeat(sample as usize % 7))
}

/// The further columns of all samples; the area of `null_area` is null.
fn further(null_area: Option<u64>) -> RecordBatch {
    let all = || 0..SAMPLES;
    let coordinates = all().flat_map(boxes_of).map(|it| Some(it.map(Some)));
    let coordinates = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(coordinates, 4);
    let lengths = arrow_buffer::OffsetBuffer::from_lengths(all().map(|it| boxes_of(it).len()));
    let item =
        arrow_schema::Field::new("item", arrow_array::Array::data_type(&coordinates).clone(), true);
    let boxes = ListArray::new(Arc::new(item), lengths, Arc::new(coordinates), None);
    let ids = all().map(|it| Some(ids_of(it).into_iter().map(Some)));
    let size = all().map(|it| Some([Some(it as i64), Some(-1)]));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("boxes", Arc::new(boxes)),
        (
            "area",
            Arc::new(
                all()
                    .map(|it| (Some(it) != null_area).then_some(it as f64 / 3.0))
                    .collect::<Float64Array>(),
            ),
        ),
        ("ids", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(ids))),
        ("size", Arc::new(FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>(size, 2))),
        ("caption", Arc::new(StringArray::from_iter_values(all().map(caption_of)))),
        (
            "mask",
            Arc::new(BinaryArray::from_iter_values(all().map(|it| vec![it as u8; it as usize]))),
        ),
        (
            "hash",
            Arc::new(FixedSizeBinaryArray::try_from_iter(all().map(|it| [it as u8; 3])).unwrap()),
        ),
        ("flag", Arc::new(all().map(|it| Some(it.is_multiple_of(2))).collect::<BooleanArray>())),
        ("short", Arc::new(all().map(|it| Some(it as i16 - 9)).collect::<Int16Array>())),
        (
            "tags",
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(
                all().map(|_| None::<Vec<Option<i64>>>),
            )),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, it)| (name, it, true)))
        .unwrap()
}

/// Packs the samples into two parts.
fn write(folder: &Path, null_area: Option<u64>) -> Arc<Dataset> {
    let further = Arc::new(further(null_area));
    let columns = Arc::new(Columns { extra: further.schema(), ..Columns::images() });
    let mut parts = Vec::new();
    for (part, range) in [0..9, 9..SAMPLES].into_iter().enumerate() {
        let mut encoder = PartEncoder::new(Vec::new(), Arc::clone(&columns)).unwrap();
        for sample in range {
            let label = (!sample.is_multiple_of(3)).then_some(i32::try_from(sample % 2).unwrap());
            let (key, image) = (format!("{sample}.jpg"), picture(sample));
            let extra = Some((Arc::clone(&further), sample as usize));
            encoder.push(Row { key, image, label, entry_points: None, extra }).unwrap();
        }
        let made = encoder.finish().unwrap();
        std::fs::write(folder.join(part_name(part)), &made.sink).unwrap();
        parts.push(PartEntry {
            file: part_name(part),
            samples: made.samples,
            bytes: made.bytes,
            tail_crc32c: made.tail_crc32c,
            sha256: Sha256::digest(&made.sink).iter().map(|byte| format!("{byte:02x}")).collect(),
        });
    }
    let lengths = (0..SAMPLES).map(|sample| picture(sample).len() as u64);
    let manifest = Manifest {
        samples: SAMPLES,
        image_bytes: lengths.clone().sum(),
        image_bytes_max: lengths.max().unwrap(),
        labels: vec!["even".to_owned(), "odd".to_owned()],
        parts,
        stored: Some(Stored::default()),
        ..Manifest::new(
            &columns,
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

fn job(dataset: &Arc<Dataset>, columns: &[&str]) -> Job {
    let batch_options = BatchOptions { batch_size: BATCH, drop_last: false, seed: 11 };
    Job {
        dataset: Arc::clone(dataset),
        recipe: Arc::new(Recipe::from_toml(RECIPE).unwrap()),
        batching: Batching::alone(batch_options, Sampling::shuffled(SAMPLES)),
        on_error: OnError::default(),
        columns: columns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().into(),
    }
}

fn preparer(job: &Job) -> CpuPreparer {
    let engine = open_engine(EngineKind::Threads, 4).unwrap().engine;
    CpuPreparer::new(job.clone(), engine, Cpu::detect()).unwrap()
}

/// Memory for any batch of a job.
fn memory(job: &Job) -> Vec<u8> {
    let columns = job.batch_columns().unwrap();
    let longest = job.value_bytes_max(&columns, &Interrupt::default()).unwrap();
    vec![0xA5; usize::try_from(BatchLayout::bytes_max(&columns, BATCH, &longest)).unwrap()]
}

/// Little-endian bytes of numbers.
macro_rules! bytes {
    ($numbers:expr) => {
        $numbers.into_iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>()
    };
}

/// What a sample has in a column other than the image.
fn value(column: &str, sample: u64) -> Vec<u8> {
    match column {
        "label" => bytes!([if sample.is_multiple_of(3) { -1 } else { (sample % 2).cast_signed() }]),
        "key" => format!("{sample}.jpg").into_bytes(),
        "sample" => bytes!([sample]),
        "boxes" => bytes!(boxes_of(sample).concat()),
        "area" => bytes!([sample as f64 / 3.0]),
        "ids" => bytes!(ids_of(sample)),
        "size" => bytes!([sample.cast_signed(), -1]),
        "caption" => caption_of(sample).into_bytes(),
        "mask" => vec![sample as u8; sample as usize],
        "hash" => vec![sample as u8; 3],
        "flag" => vec![u8::from(sample.is_multiple_of(2))],
        "short" => bytes!([sample as i16 - 9]),
        other => panic!("{other}"),
    }
}

const ALL: [&str; 13] = [
    "caption", "boxes", "label", "image", "key", "area", "ids", "size", "mask", "hash", "flag",
    "short", "sample",
];

/// Compares every column but the image of a batch.
fn assert_columns(preparer: &CpuPreparer, prepared: &PreparedBatch, out: &[u8], samples: &[u64]) {
    let (columns, layout) = (preparer.columns(), &prepared.layout);
    assert_eq!(prepared.samples, samples);
    for (index, column) in columns.as_slice().iter().enumerate() {
        let view = ColumnBytes::new(column, index, layout, out).unwrap();
        view.check().unwrap();
        assert_eq!(view.samples(), samples.len());
        for (at, sample) in samples.iter().enumerate().filter(|_| column.name != "image") {
            let (got, expected) = (view.value(at).unwrap(), value(&column.name, *sample));
            assert_eq!(got, expected, "{} of sample {sample}", column.name);
        }
    }
}

#[test]
fn every_kind_of_column_holds_the_values_of_its_samples_in_batch_order() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), None);
    let (whole, images) = (job(&dataset, &ALL), job(&dataset, &["image"]));
    let (mut preparer, mut alone) = (preparer(&whole), preparer(&images));
    for (epoch, batch) in (0..2).flat_map(|epoch| (0..5).map(move |batch| (epoch, batch))) {
        let mut out = memory(&whole);
        let prepared = preparer.prepare(epoch, batch, &mut out, &mut |_| true).unwrap();
        assert_eq!(prepared.stats.samples, whole.batching.batch_len(batch));
        let order = whole.batching.order(epoch);
        let samples: Vec<u64> = whole.batching.samples_of(&order, batch).collect();
        assert_columns(&preparer, &prepared, &out, &samples);
        let mut plain = memory(&images);
        alone.prepare(epoch, batch, &mut plain, &mut |_| true).unwrap();
        let images = samples.len() * preparer.spec().bytes();
        assert!(out[..images] == plain[..images], "images come first, whatever else there is");
    }
}

#[test]
fn the_longest_values_bound_every_batch() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), None);
    let job = job(&dataset, &ALL);
    let columns = job.batch_columns().unwrap();
    let longest = job.value_bytes_max(&columns, &Interrupt::default()).unwrap();
    for (column, longest) in columns.as_slice().iter().zip(longest) {
        let expected = match &*column.name {
            "image" => 4 * 6 * 3,
            name => (0..SAMPLES).map(|sample| value(name, sample).len() as u64).max().unwrap(),
        };
        assert_eq!(longest, expected, "{}", column.name);
    }
}

#[test]
fn batches_without_images_read_no_content() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), None);
    let job = job(&dataset, &["key", "label"]);
    let mut preparer = preparer(&job);
    let mut out = memory(&job);
    let prepared = preparer.prepare(0, 1, &mut out, &mut |_| true).unwrap();
    let samples: Vec<u64> = job.batching.samples_of(&job.batching.order(0), 1).collect();
    assert_columns(&preparer, &prepared, &out, &samples);
    assert_eq!((prepared.stats.samples, prepared.stats.bytes_read), (BATCH, 0));
    assert_eq!(preparer.counters().bytes_read, 0);
}

#[test]
fn memory_that_is_too_small_is_refused_with_both_figures() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), None);
    let job = job(&dataset, &ALL);
    let mut preparer = preparer(&job);
    let mut out = memory(&job);
    let whole = preparer.prepare(0, 0, &mut out, &mut |_| true).unwrap();
    let needed = usize::try_from(whole.layout.bytes()).unwrap();
    for got in [0, 5 * 72, 5 * 72 + 1, needed - 1] {
        let refused = preparer.prepare(0, 0, &mut vec![0; got], &mut |_| true);
        let is_it = |needed_by: usize, memory: usize| {
            memory == got && needed_by == if got < 5 * 72 { 5 * 72 } else { needed }
        };
        assert!(
            matches!(refused, Err(Error::OutputTooSmall { got, needed }) if is_it(needed, got)),
            "{refused:?}"
        );
    }
    preparer.prepare(0, 0, &mut vec![0; needed], &mut |_| true).unwrap();
}

#[test]
fn a_null_is_damage_of_its_sample_and_removes_or_replaces_all_of_its_columns() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), Some(7));
    let names = ["image", "label", "area", "caption", "sample"];
    let order = job(&dataset, &names).batching.order(0);
    let samples_of =
        |batch| -> Vec<u64> { job(&dataset, &names).batching.samples_of(&order, batch).collect() };
    let batch = (0..5).find(|batch| samples_of(*batch).contains(&7)).unwrap();
    let samples = samples_of(batch);
    let position = samples.iter().position(|sample| *sample == 7).unwrap();

    let raising = job(&dataset, &names);
    let mut out = memory(&raising);
    let raised = preparer(&raising).prepare(0, batch, &mut out, &mut |_| true).unwrap_err();
    assert!(raised.is_damage());
    assert!(
        matches!(&raised, Error::NullValue { key, column, .. }
            if key == "7.jpg" && column == "area"),
        "{raised}"
    );

    let skipping = Job { on_error: OnError::Always(Action::Skip), ..raising.clone() };
    let mut skipper = preparer(&skipping);
    let prepared = skipper.prepare(0, batch, &mut out, &mut |_| true).unwrap();
    let stats = prepared.stats;
    assert_eq!((stats.samples, stats.left_out), (samples.len() as u32, 1));
    let rest: Vec<u64> = samples.iter().copied().filter(|sample| *sample != 7).collect();
    assert_columns(&skipper, &prepared, &out, &rest);

    let replacing = Job { on_error: OnError::Always(Action::Replace), ..raising.clone() };
    let mut replacer = preparer(&replacing);
    let prepared = replacer.prepare(0, batch, &mut out, &mut |_| true).unwrap();
    let by = prepared.replacements[0].replaced_by.unwrap();
    let mut replaced = samples.clone();
    replaced[position] = by;
    assert_columns(&replacer, &prepared, &out, &replaced);

    // Jobs without the column have no damage.
    let unaware = job(&dataset, &["image", "caption"]);
    let mut preparer = preparer(&unaware);
    let prepared = preparer.prepare(0, batch, &mut memory(&unaware), &mut |_| true).unwrap();
    assert_eq!((&prepared.replacements[..], &prepared.samples[..]), (&[][..], &samples[..]));
}

#[test]
fn a_column_that_is_corrupt_on_disk_is_damage_of_the_samples_of_its_record_batch() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), None);
    let path = dataset.part_path(0);
    let mut bytes = std::fs::read(&path).unwrap();
    let caption = caption_of(3).into_bytes();
    let at = bytes.windows(caption.len()).position(|it| it == caption).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let on_error = OnError::Always(Action::Skip);
    let job = Job { on_error, ..job(&dataset, &["image", "caption"]) };
    let columns = job.batch_columns().unwrap();
    assert!(job.value_bytes_max(&columns, &Interrupt::default()).is_err());
    let mut preparer = preparer(&job);
    let mut left_out = Vec::new();
    for batch in 0..5 {
        let prepared = preparer.prepare(0, batch, &mut vec![0; 4096], &mut |_| true).unwrap();
        left_out.extend(prepared.replacements.iter().map(|replacement| replacement.damage.sample));
    }
    left_out.sort_unstable();
    assert_eq!(left_out, (0..9).collect::<Vec<_>>(), "the first part has one record batch");
}

#[test]
fn invalid_columns_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), None);
    let refused = |names: &[&str]| match job(&dataset, names).batch_columns() {
        Err(Error::Columns { source, .. }) => source,
        other => panic!("{other:?}"),
    };
    assert!(matches!(
        refused(&["image", "capption"]),
        ColumnError::Unknown { nearest: Some(nearest), .. } if nearest == "caption"
    ));
    assert!(matches!(refused(&["image", "image"]), ColumnError::Twice { .. }));
    assert!(matches!(refused(&[]), ColumnError::Empty { available } if available.len() == 14));
}
