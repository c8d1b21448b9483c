//! Columns of batches: equal from host and device for every kind, and checked before they are used.

use crate::support::device::{Behaviour, FakeDevice, Fault};
use crate::support::{BatchCopy, config, consume, events_of, pack_with, picture, sorted};
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray,
    Float64Array, ListArray, RecordBatch, StringArray, UInt16Array,
};
use arrow_schema::Field;
use meetpoint_format::column::ColumnError;
use meetpoint_format::slot::SlotHeader;
use meetpoint_host::stats::{BatchFault, EventKind};
use meetpoint_host::verify::{Fact, Reference, Verdict, verify};
use meetpoint_host::{DeviceSource, Error, Loader, LoaderConfig, SpoolKind};
use meetpoint_kernels::Cpu;
use meetpoint_prepare::{Action, Error as PrepareError, OnError};
use meetpoint_scheduler::{AnyStrategy, DeviceOnly, HostOnly, Level};
use meetpoint_storage::EngineKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const SAMPLES: u32 = 30;

/// Columns of every kind and of every width, in arbitrary order.
const ALL: [&str; 12] = [
    "caption", "label", "boxes", "image", "key", "area", "ids", "mask", "hash", "flag", "small",
    "sample",
];

/// What differs from the usual content of the columns.
#[derive(Debug, Clone, Copy, Default)]
struct Different {
    /// A sample whose mask is null.
    null_mask: Option<u32>,
    /// A column that has another value in the sample [`ALTERED`].
    column: Option<&'static str>,
}

/// The sample that differs in a column.
const ALTERED: u32 = 17;

/// Its further columns.
fn further(different: Different) -> RecordBatch {
    let all = || 0..SAMPLES;
    let is_altered = |column, it| different.column == Some(column) && it == ALTERED;
    let more = |column, it| u32::from(is_altered(column, it));
    let count = |sample: u32| (sample % 4) as usize;
    let row = |sample: u32| {
        let second = if is_altered("boxes", sample) { 0.25 } else { 0.5 };
        (0..count(sample)).map(move |at| [sample as f32, at as f32, second, -1.5])
    };
    let coordinates = all().flat_map(row).map(|it| Some(it.map(Some)));
    let coordinates = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(coordinates, 4);
    let item = Arc::new(Field::new("item", coordinates.data_type().clone(), true));
    let lengths = arrow_buffer::OffsetBuffer::from_lengths(all().map(count));
    let boxes = ListArray::new(item, lengths, Arc::new(coordinates), None);
    let ids = all().map(|it| {
        let first = it * 10 + more("ids", it);
        Some((0..it % 3).map(move |at| Some(i64::from(first + at))))
    });
    let ids = ListArray::from_iter_primitive::<Int64Type, _, _>(ids);
    let area = all().map(|it| Some(f64::from(it + more("area", it)) / 7.0));
    let caption = all().map(|it| {
        let letter = if is_altered("caption", it) { "é" } else { "ß" };
        letter.repeat(it as usize)
    });
    let mask = |it| {
        let value = (it + more("mask", it)) as u8;
        (Some(it) != different.null_mask).then(|| vec![value; it as usize * 3])
    };
    let hash = all().map(|it| [it as u8, it as u8, (it + more("hash", it)) as u8]);
    let flag = all().map(|it| Some((it % 3 == 0) != is_altered("flag", it)));
    let small = all().map(|it| Some((it + more("small", it)) as u16));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("boxes", Arc::new(boxes)),
        ("area", Arc::new(area.collect::<Float64Array>())),
        ("ids", Arc::new(ids)),
        ("caption", Arc::new(StringArray::from_iter_values(caption))),
        ("mask", Arc::new(all().map(mask).collect::<BinaryArray>())),
        ("hash", Arc::new(FixedSizeBinaryArray::try_from_iter(hash).unwrap())),
        ("flag", Arc::new(flag.collect::<BooleanArray>())),
        ("small", Arc::new(small.collect::<UInt16Array>())),
    ];
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn dataset(null_mask: Option<u32>) -> tempfile::TempDir {
    different_dataset(Different { null_mask, ..Different::default() })
}

fn different_dataset(different: Different) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let of_sample = |it: u32| match different.column == Some("image") && it == ALTERED {
        true => picture(it + 1),
        false => picture(it),
    };
    let images = (0..SAMPLES).map(of_sample).collect();
    pack_with(folder.path(), images, 2, Some(&Arc::new(further(different))));
    folder
}

fn with_columns(dataset: &Path, columns: &[&str]) -> LoaderConfig {
    let mut config = config(dataset);
    config.columns = columns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().into();
    config
}

fn with_device(config: &LoaderConfig, device: &FakeDevice) -> LoaderConfig {
    LoaderConfig {
        strategy: AnyStrategy::DeviceOnly(DeviceOnly),
        devices: vec![DeviceSource::Connect { socket: device.socket() }],
        stall_timeout: Duration::from_secs(30),
        ..config.clone()
    }
}

fn of_host(config: &LoaderConfig) -> Vec<BatchCopy> {
    let config = LoaderConfig { strategy: AnyStrategy::HostOnly(HostOnly), ..config.clone() };
    let mut loader = Loader::open(config).unwrap();
    consume(loader.start_epoch(0).unwrap()).0
}

#[test]
fn every_kind_of_column_is_equal_from_host_and_device_in_memory_and_in_a_file() {
    let dataset = dataset(None);
    let spool_folder = tempfile::tempdir().unwrap();
    let file = SpoolKind::File { directory: spool_folder.path().to_path_buf() };
    for (kind, columns) in
        [(SpoolKind::Memory, &ALL[..]), (file, &ALL[..]), (SpoolKind::Memory, &["key", "ids"])]
    {
        let mut config = with_columns(dataset.path(), columns);
        let expected = of_host(&config);
        for seen in &expected {
            let names: Vec<&str> = seen.columns.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, columns, "in the order in which they were named");
            let keys = seen.columns.iter().find(|(name, _)| name == "key").map(|(_, keys)| keys);
            let expected = seen.samples.iter().map(|sample| format!("{sample}.jpg").into_bytes());
            assert!(keys.unwrap().iter().cloned().eq(expected));
        }
        config.spool.kind = kind;
        let device = FakeDevice::start(Behaviour::default());
        let mut loader = Loader::open(with_device(&config, &device)).unwrap();
        let (seen, stats) = consume(loader.start_epoch(0).unwrap());
        assert_eq!(sorted(seen), expected);
        assert_eq!((stats.schedule.host_batches, events_of(&stats)), (0, vec![]));
        let (job, stop) = (loader.job(), loader.stop_handle());
        let engine = EngineKind::Threads;
        let reference = Reference::prepare(job, [0], engine, Cpu::Portable, &stop).unwrap();
        let strategy = AnyStrategy::DeviceOnly(DeviceOnly);
        for level in verify(strategy, job, std::slice::from_ref(&stats), &reference) {
            let is_checked = matches!(level.level, Level::C0 | Level::C1 | Level::C2 | Level::C6);
            let is_verified = matches!(level.verdict, Verdict::Verified { .. });
            assert!(is_verified || !is_checked, "{:?}: {:?}", level.level, level.verdict);
        }
    }
}

#[test]
fn a_value_that_differs_in_any_column_is_found_by_verification() {
    let dataset = dataset(None);
    let mut loader = Loader::open(with_columns(dataset.path(), &ALL)).unwrap();
    let (_, stats) = consume(loader.start_epoch(0).unwrap());
    let equality = |column: Option<&'static str>| {
        let other = different_dataset(Different { column, ..Different::default() });
        let mut other = Loader::open(with_columns(other.path(), &ALL)).unwrap();
        let (_, of_other) = consume(other.start_epoch(0).unwrap());
        let reference = Reference::of_host_only(other.job(), &[of_other]);
        let strategy = AnyStrategy::HostOnly(HostOnly);
        let levels = verify(strategy, loader.job(), std::slice::from_ref(&stats), &reference);
        levels.into_iter().find(|level| level.level == Level::C2).unwrap().verdict
    };
    assert!(matches!(equality(None), Verdict::Verified { .. }));
    let altered = ["image", "boxes", "area", "ids", "caption", "mask", "hash", "flag", "small"];
    let named_by_the_dataset = ["key", "label", "sample"];
    assert_eq!(altered.len() + named_by_the_dataset.len(), ALL.len());
    for column in altered {
        let verdict = equality(Some(column));
        let Verdict::Failed { place } = verdict else { panic!("{column}: {verdict:?}") };
        assert!(
            matches!(place.fact, Fact::OtherTensor { sample, .. } if sample == u64::from(ALTERED)),
            "{column}: {place}"
        );
    }
}

#[test]
fn columns_that_the_cache_is_too_small_for_are_reported_once() {
    let dataset = dataset(None);
    let config = with_columns(dataset.path(), &["image", "area", "caption"]);
    let mut loader = Loader::open(config).unwrap();
    let (_, stats) = consume(loader.start_epoch(0).unwrap());
    assert_eq!(events_of(&stats), [], "they fit");
    loader.job().dataset.keep_columns(1);
    let (_, stats) = consume(loader.start_epoch(1).unwrap());
    let events = events_of(&stats);
    let [EventKind::ColumnsReadAgain { reads, bytes, needed_bytes, cache_bytes: 1 }] = events[..]
    else {
        panic!("{events:?}")
    };
    // Two columns for each sample; the previous epoch had already read them.
    assert_eq!(reads, 2 * u64::from(SAMPLES));
    assert!(bytes > needed_bytes && needed_bytes > 1, "{bytes} {needed_bytes}");
    let (_, stats) = consume(loader.start_epoch(2).unwrap());
    assert_eq!(events_of(&stats), [], "it was reported before");
}

type Misdescription = fn(&mut SlotHeader, &mut [u8]);

/// The table of the misbehaving device has the columns key, label, image, boxes.
const MISDESCRIPTIONS: [&str; 4] = ["key", "label", "image", "boxes"];

fn offset_of(header: &SlotHeader, column: usize, n: usize) -> std::ops::Range<usize> {
    let start = header.columns[column].extent.offset as usize + 8 * n;
    start..start + 8
}

#[test]
fn a_device_that_misdescribes_its_columns_costs_time_and_no_batch() {
    let dataset = dataset(None);
    let config = with_columns(dataset.path(), &MISDESCRIPTIONS);
    let expected = of_host(&config);
    let lies: [(&str, Misdescription); 15] = [
        ("overlaps another column", |header, _| {
            header.columns[0].extent.offset = header.columns[1].extent.offset;
        }),
        ("begins outside", |header, _| header.columns[0].extent.offset = u64::MAX - 63),
        ("ends outside", |header, _| header.columns[3].extent.bytes = u64::MAX),
        ("has rows for more than a slot", |header, _| {
            header.columns[3].extent.rows = 1 << 30;
            header.columns[3].extent.bytes = 40 + (16 << 30);
            header.payload_bytes = header.columns[3].extent.offset + 40 + (16 << 30);
        }),
        ("has rows that overflow", |header, _| header.columns[3].extent.rows = u64::MAX / 2),
        ("has fewer samples", |header, _| header.samples -= 1),
        ("has a column less", |header, _| header.columns.truncate(3)),
        ("has a column more", |header, _| header.columns.push(header.columns[0])),
        ("has its columns in another order", |header, _| header.columns.swap(1, 2)),
        ("has another type", |header, _| header.columns[1].element = 12),
        ("has another shape", |header, _| header.columns[2].axes[0] = 768),
        ("begins behind its first value", |header, payload| {
            payload[offset_of(header, 0, 0)].copy_from_slice(&1_i64.to_le_bytes());
        }),
        ("ends behind its last value", |header, payload| {
            payload[offset_of(header, 3, 4)].copy_from_slice(&i64::MAX.to_le_bytes());
        }),
        ("is no text", |header, payload| {
            payload[header.columns[0].extent.offset as usize + 40] = 0xff;
        }),
        ("has a label that the dataset does not name", |header, payload| {
            payload[offset_of(header, 1, 1)].copy_from_slice(&2_i64.to_le_bytes());
        }),
    ];
    let spool_folder = tempfile::tempdir().unwrap();
    let file = SpoolKind::File { directory: spool_folder.path().to_path_buf() };
    for (kind, (what, lie)) in [SpoolKind::Memory, file]
        .into_iter()
        .flat_map(|kind| lies.iter().map(move |lie| (kind.clone(), lie)))
    {
        let faults = vec![(2, Fault::Lies(*lie))];
        let device = FakeDevice::start(Behaviour { faults, ..Behaviour::default() });
        let mut config = with_device(&config, &device);
        config.spool.kind = kind;
        let mut loader = Loader::open(config).unwrap();
        let (seen, stats) = consume(loader.start_epoch(0).unwrap());
        assert_eq!(sorted(seen), expected, "{what}");
        let events = events_of(&stats);
        let is_it = |event: &EventKind| {
            matches!(event, EventKind::BatchFailed { fault: BatchFault::Refused { .. }, .. })
        };
        assert!(events.len() == 1 && is_it(&events[0]), "{what}: {events:?}");
        assert_eq!(stats.schedule.host_batches, 1, "{what}");
    }
}

#[test]
fn a_null_removes_its_sample_from_batches_of_host_and_device_alike() {
    let dataset = dataset(Some(13));
    let mut config = with_columns(dataset.path(), &ALL);
    config.on_error = OnError::Always(Action::Skip);
    let expected = of_host(&config);
    let samples: Vec<u64> = expected.iter().flat_map(|seen| seen.samples.clone()).collect();
    assert_eq!((samples.len(), samples.contains(&13)), (29, false));
    let device = FakeDevice::start(Behaviour::default());
    let mut loader = Loader::open(with_device(&config, &device)).unwrap();
    let (seen, stats) = consume(loader.start_epoch(0).unwrap());
    assert_eq!(sorted(seen), expected);
    assert_eq!(stats.schedule.host_batches, 1, "the batch with the damaged sample");

    config.on_error = OnError::default();
    let mut loader = Loader::open(config).unwrap();
    let mut epoch = loader.start_epoch(0).unwrap();
    let error = loop {
        match epoch.next_batch() {
            Ok(batch) => assert!(batch.is_some(), "the sample is in a batch"),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(&error, Error::Prepare(PrepareError::NullValue { key, column, .. })
            if key == "13.jpg" && column == "mask"),
        "{error}"
    );
}

#[test]
fn a_label_is_read_from_the_batch_and_absent_where_it_is_no_column() {
    let dataset = dataset(None);
    let plain = of_host(&config(dataset.path()));
    for seen in &plain {
        let labels = seen.samples.iter().map(|sample| Some((*sample % 2) as i32));
        assert!(seen.labels.iter().copied().eq(labels));
        assert_eq!(seen.bytes.len(), seen.samples.len() * 16 * 16 * 3);
    }
    let only = of_host(&with_columns(dataset.path(), &["image"]));
    for (seen, plain) in only.iter().zip(&plain) {
        assert_eq!((&seen.bytes, seen.labels.len()), (&plain.bytes, 0));
    }
    let without = of_host(&with_columns(dataset.path(), &["label"]));
    for (seen, plain) in without.iter().zip(&plain) {
        assert_eq!((seen.bytes.len(), &seen.labels), (0, &plain.labels));
    }
}

#[test]
fn invalid_columns_are_refused_before_anything_starts() {
    let dataset = dataset(None);
    let refused = |columns: &[&str]| match Loader::open(with_columns(dataset.path(), columns)) {
        Err(Error::Prepare(PrepareError::Columns { source, .. })) => source,
        other => panic!("{other:?}"),
    };
    assert!(matches!(
        refused(&["image", "boxess"]),
        ColumnError::Unknown { nearest: Some(nearest), .. } if nearest == "boxes"
    ));
    assert!(matches!(refused(&["label", "label"]), ColumnError::Twice { .. }));
    assert!(matches!(refused(&[]), ColumnError::Empty { .. }));
}

#[test]
fn memory_and_quota_that_the_longest_values_do_not_fit_are_refused_with_the_figures() {
    let folder = tempfile::tempdir().unwrap();
    let long = vec![7_u8; 3 << 20];
    let long = BinaryArray::from_iter_values((0..4).map(|_| &long[..]));
    let further = RecordBatch::try_from_iter([("blob", Arc::new(long) as ArrayRef)]).unwrap();
    pack_with(folder.path(), (0..4).map(picture).collect(), 2, Some(&Arc::new(further)));
    let mut config = with_columns(folder.path(), &["image", "blob"]);
    config.memory_budget_bytes = 24 << 20;
    let refused = Loader::open(config.clone());
    assert!(
        matches!(refused, Err(Error::BudgetTooSmall { ring_slot_bytes: 0xe0_0000, .. })),
        "four samples of 3 MiB take more than 12: {refused:?}"
    );
    config.memory_budget_bytes = 64 << 20;
    let device = FakeDevice::start(Behaviour::default());
    let mut config = with_device(&config, &device);
    config.spool.quota_bytes = 16 << 20;
    let refused = Loader::open(config.clone());
    assert!(
        matches!(refused, Err(Error::QuotaTooSmall { slot_bytes, .. }) if slot_bytes > 12 << 20),
        "{refused:?}"
    );
    config.spool.quota_bytes = 64 << 20;
    let mut loader = Loader::open(config).unwrap();
    let (seen, stats) = consume(loader.start_epoch(0).unwrap());
    assert_eq!((seen[0].columns[1].1[3].len(), stats.schedule.host_batches), (3 << 20, 0));
}
