//! Targets of a recipe in batches: moved with their images, filtered with their boxes.

#![expect(clippy::unwrap_used, reason = "a helper fails its test by panicking")]

use arrow_array::types::{Float64Type, Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, FixedSizeListArray, ListArray, RecordBatch};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field;
use meetpoint_diagnose::Diagnose;
use meetpoint_format::batching::{BatchOptions, Batching};
use meetpoint_format::column::{BatchLayout, ColumnBytes, ColumnError};
use meetpoint_format::dataset::{
    Columns, MANIFEST_NAME, Manifest, PartEncoder, PartEntry, Provenance, Row, Stored, part_name,
};
use meetpoint_format::recipe::Recipe;
use meetpoint_format::sampler::Sampling;
use meetpoint_kernels::{Cpu, Interrupt};
use meetpoint_prepare::{Action, CpuPreparer, Dataset, Error, Job, OnError, Preparer};
use meetpoint_storage::{EngineKind, open_engine};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const SAMPLES: u64 = 6;
const SIDES: (u32, u32) = (9, 8);

/// Mirrors, and doubles both sides.
const RECIPE: &str = "
    [[operation]]
    name = 'decode'
    [[operation]]
    name = 'random_horizontal_flip'
    p = 1.0
    [[operation]]
    name = 'resize'
    size = [16, 18]
    [targets.boxes]
    kind = 'boxes'
    format = 'xyxy'
    min_size = 1
    filters = ['labels', 'joints', 'masks']
    [targets.joints]
    kind = 'keypoints'
    swap = [[0, 1]]
    [targets.masks]
    kind = 'mask'
    [targets.mask]
    kind = 'mask'
";

const COLUMNS: [&str; 6] = ["image", "boxes", "labels", "joints", "masks", "mask"];

/// Corners; box 1 is too narrow to be retained.
fn boxes_of(sample: u64) -> Vec<[f64; 4]> {
    let corners = |at: u64| {
        let (x, y) = (at as f64, 0.5 * at as f64);
        [x, y, x + if at == 1 { 0.25 } else { 2.0 }, y + 3.0]
    };
    (0..sample % 4).map(corners).collect()
}

/// The elements of a mask, row by row.
fn mask_of(sample: u64) -> Vec<u8> {
    let (width, height) = SIDES;
    (0..width * height).map(|at| (u64::from(at) + sample) as u8).collect()
}

/// A list for each sample, of values of fixed shapes, one after another.
fn lists(values: ArrayRef, lengths: impl Iterator<Item = u64>) -> ArrayRef {
    let item = Field::new("item", values.data_type().clone(), true);
    let lengths = OffsetBuffer::from_lengths(lengths.map(|it| it as usize));
    Arc::new(ListArray::new(Arc::new(item), lengths, values, None))
}

/// Values of `length` inner ones each.
fn grouped(values: ArrayRef, length: i32) -> ArrayRef {
    let item = Field::new("item", values.data_type().clone(), true);
    Arc::new(FixedSizeListArray::new(Arc::new(item), length, values, None))
}

/// The further columns of all samples. `odd` has one label too many.
fn further(odd: Option<u64>) -> RecordBatch {
    let all = || 0..SAMPLES;
    let counts = || all().map(|it| boxes_of(it).len() as u64);
    let objects = || all().flat_map(|sample| (0..boxes_of(sample).len()).map(move |_| sample));
    let numbers = |values: Vec<f64>| -> ArrayRef {
        Arc::new(arrow_array::PrimitiveArray::<Float64Type>::from(values))
    };
    let bytes = |values: Vec<u8>| -> ArrayRef {
        Arc::new(arrow_array::PrimitiveArray::<UInt8Type>::from(values))
    };
    let (width, height) = (SIDES.0 as i32, SIDES.1 as i32);
    let picture = |values| grouped(grouped(bytes(values), width), height);
    let corners = numbers(all().flat_map(boxes_of).flatten().collect());
    let joints = numbers(objects().flat_map(|it| [it as f64, 1.0, 2.5, 3.0]).collect());
    let labels = all().map(|sample| {
        let count = boxes_of(sample).len() as i64 + i64::from(odd == Some(sample));
        Some((0..count).map(move |at| Some(100 * sample.cast_signed() + at)))
    });
    let columns: [(&str, ArrayRef); 5] = [
        ("boxes", lists(grouped(corners, 4), counts())),
        ("labels", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(labels))),
        ("joints", lists(grouped(grouped(joints, 2), 2), counts())),
        ("masks", lists(picture(objects().flat_map(mask_of).collect()), counts())),
        ("mask", picture(all().flat_map(mask_of).collect())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, it)| (name, it, true))).unwrap()
}

fn write(folder: &Path, odd: Option<u64>) -> Arc<Dataset> {
    let further = Arc::new(further(odd));
    let columns = Arc::new(Columns { extra: further.schema(), ..Columns::images() });
    let mut encoder = PartEncoder::new(Vec::new(), Arc::clone(&columns)).unwrap();
    let (width, height) = (SIDES.0 as u16, SIDES.1 as u16);
    let mut longest = 0;
    for sample in 0..SAMPLES {
        let mut image = Vec::new();
        let pixels = [sample as u8 * 9, 80, 200].repeat(usize::from(width * height));
        let jpeg = jpeg_encoder::Encoder::new(&mut image, 90);
        jpeg.encode(&pixels, width, height, jpeg_encoder::ColorType::Rgb).unwrap();
        longest = longest.max(image.len() as u64);
        let extra = Some((Arc::clone(&further), sample as usize));
        let key = format!("{sample}.jpg");
        encoder.push(Row { key, image, label: None, entry_points: None, extra }).unwrap();
    }
    let made = encoder.finish().unwrap();
    std::fs::write(folder.join(part_name(0)), &made.sink).unwrap();
    let part = PartEntry {
        file: part_name(0),
        samples: made.samples,
        bytes: made.bytes,
        tail_crc32c: made.tail_crc32c,
        sha256: Sha256::digest(&made.sink).iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    let provenance = Provenance {
        tool: "test".into(),
        source: "none".into(),
        skipped: 0,
        options: BTreeMap::new(),
        ..Provenance::default()
    };
    let manifest = Manifest {
        samples: SAMPLES,
        image_bytes: SAMPLES * longest,
        image_bytes_max: longest,
        parts: vec![part],
        stored: Some(Stored::default()),
        ..Manifest::new(&columns, provenance)
    };
    std::fs::write(folder.join(MANIFEST_NAME), manifest.to_json()).unwrap();
    Arc::new(Dataset::open(folder).unwrap())
}

fn job(dataset: &Arc<Dataset>, columns: &[&str], on_error: OnError) -> Job {
    let batch_options = BatchOptions { batch_size: SAMPLES as u32, drop_last: false, seed: 3 };
    Job {
        dataset: Arc::clone(dataset),
        recipe: Arc::new(Recipe::from_toml(RECIPE).unwrap()),
        batching: Batching::alone(batch_options, Sampling::shuffled(SAMPLES)),
        on_error,
        columns: columns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().into(),
    }
}

/// A sample, and its values in each column of a batch except the image.
type Values = (u64, Vec<Vec<u8>>);

/// The values of the batch of a job.
fn values(job: &Job) -> Result<Vec<Values>, Error> {
    let engine = open_engine(EngineKind::Threads, 4).unwrap().engine;
    let mut preparer = CpuPreparer::new(job.clone(), engine, Cpu::detect())?;
    let columns = job.batch_columns()?;
    let longest = job.value_bytes_max(&columns, &Interrupt::default())?;
    let most = BatchLayout::bytes_max(&columns, SAMPLES as u32, &longest);
    let mut out = vec![0xA5; usize::try_from(most).unwrap()];
    let prepared = preparer.prepare(0, 0, &mut out, &mut |_| true)?;
    let all = prepared.samples.iter().enumerate().map(|(at, sample)| {
        let of = |(index, column)| {
            let bytes = ColumnBytes::new(column, index, &prepared.layout, &out).unwrap();
            bytes.check().unwrap();
            bytes.value(at).unwrap().to_vec()
        };
        (*sample, columns.as_slice().iter().enumerate().skip(1).map(of).collect())
    });
    Ok(all.collect())
}

fn floats(numbers: impl IntoIterator<Item = f64>) -> Vec<u8> {
    numbers.into_iter().flat_map(|number| (number as f32).to_le_bytes()).collect()
}

/// A mask mirrored and doubled.
fn moved_mask(sample: u64) -> Vec<u8> {
    let mask = mask_of(sample);
    let (width, height) = (SIDES.0 as usize, SIDES.1 as usize);
    let at = |x: usize, y: usize| mask[y / 2 * width + width - 1 - x / 2];
    (0..2 * height)
        .flat_map(|y| (0..2 * width).map(move |x| (x, y)))
        .map(|(x, y)| at(x, y))
        .collect()
}

#[test]
fn targets_move_with_their_images_and_columns_lose_the_rows_of_small_boxes() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), None);
    let got = values(&job(&dataset, &COLUMNS, OnError::default())).unwrap();
    assert_eq!(got.len(), SAMPLES as usize);
    for (sample, values) in got {
        let kept = || (0..boxes_of(sample).len()).filter(|at| *at != 1);
        let boxes = boxes_of(sample);
        let corners = kept().flat_map(|at| {
            let [left, top, right, bottom] = boxes[at];
            [18.0 - 2.0 * right, 2.0 * top, 18.0 - 2.0 * left, 2.0 * bottom]
        });
        let x = 18.0 - 2.0 * sample as f64;
        let joints = kept().flat_map(|_| [13.0, 6.0, x, 2.0]);
        let labels = kept().flat_map(|at| (100 * sample + at as u64).to_le_bytes());
        let masks = kept().flat_map(|_| moved_mask(sample));
        let expected = [
            floats(corners),
            labels.collect(),
            floats(joints),
            masks.collect(),
            moved_mask(sample),
        ];
        assert_eq!(values, expected, "sample {sample}");
    }
}

#[test]
fn targets_may_be_left_out_and_columns_are_filtered_nevertheless() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), None);
    let got = values(&job(&dataset, &["image", "labels"], OnError::default())).unwrap();
    for (sample, values) in got {
        let kept = (0..boxes_of(sample).len()).filter(|at| *at != 1);
        let labels: Vec<u8> =
            kept.flat_map(|at| (100 * sample + at as u64).to_le_bytes()).collect();
        assert_eq!(values, [labels], "sample {sample}");
    }
}

#[test]
fn a_column_with_other_rows_than_boxes_is_damage_of_its_sample() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), Some(2));
    match values(&job(&dataset, &COLUMNS, OnError::default())).unwrap_err() {
        error @ Error::RowsOfBoxes { .. } => {
            assert!(error.is_damage() && error.remedy().is_some());
            let Error::RowsOfBoxes { key, column, boxes, rows, count, .. } = error else { return };
            assert_eq!((&key[..], &column[..], &boxes[..]), ("2.jpg", "labels", "boxes"));
            assert_eq!((rows, count), (3, 2));
        }
        other => panic!("{other}"),
    }
    let skipping = OnError::Always(Action::Skip);
    let got = values(&job(&dataset, &COLUMNS, skipping)).unwrap();
    assert_eq!(got.len(), SAMPLES as usize - 1);
    assert!(got.iter().all(|(sample, _)| *sample != 2));
    // Without the column, nothing is wrong.
    let without = job(&dataset, &["image", "boxes", "mask"], OnError::default());
    assert_eq!(values(&without).unwrap().len(), SAMPLES as usize);
}

#[test]
fn a_target_without_its_images_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), None);
    match job(&dataset, &["key", "mask"], OnError::default()).batch_columns() {
        Err(Error::Columns { source: ColumnError::WithoutImage { name }, .. }) => {
            assert_eq!(name, "mask");
        }
        other => panic!("{other:?}"),
    }
}
