//! Datasets that earlier versions of the program wrote, which must open, verify and read forever.
//!
//! All were packed from the pictures beside them, which `pictures.py` made. `UPDATE_GOLDEN=1`
//! writes that of the current version again; earlier ones never change.

use crate::support::{Bench, files, golden};
use arrow_array::builder::{FixedSizeListBuilder, Float32Builder, ListBuilder, UInt8Builder};
use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field, Schema};
use meetpoint_datasets::{
    JpegOptions, PackOptions, Progressive, UnpackOptions, inspect, pack, unpack, verify,
};
use meetpoint_diagnose::Diagnose;
use meetpoint_format::dataset::{
    Columns, MANIFEST_NAME, Manifest, PartEncoder, PartEntry, Provenance, Row, part_name, schema,
};
use meetpoint_prepare::Dataset;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

fn fixture(version: u32) -> std::path::PathBuf {
    golden().join(format!("version-{version}"))
}

/// Packs the pictures so that every one of them is stored as it is.
fn make(to: &Path) {
    let jpeg = JpegOptions { progressive: Progressive::Keep, ..JpegOptions::default() };
    let options = PackOptions { force: true, jpeg, ..PackOptions::default() };
    let bench = Bench::new();
    pack(&golden().join("pictures"), &bench.to(), &options, &mut |_| ()).unwrap();
    add_columns(&bench.dataset(), to);
}

/// Writes a dataset again, with further columns of several sorts.
fn add_columns(dataset: &Dataset, to: &Path) {
    let extra = Arc::new(extra());
    let columns = Arc::new(Columns { extra: extra.schema(), ..Columns::images() });
    let mut encoder = PartEncoder::new(Vec::new(), Arc::clone(&columns)).unwrap();
    let entry_points = dataset.keyed_rows(0).unwrap().entry_points.unwrap();
    for sample in 0..dataset.len() {
        let row = sample as usize;
        let row = Row {
            key: dataset.key(sample).unwrap(),
            image: dataset.read_sample(sample).unwrap(),
            label: dataset.locate(sample).unwrap().label,
            entry_points: entry_points.row(row).map(|found| found.as_ref().to_vec()),
            extra: Some((Arc::clone(&extra), row)),
        };
        encoder.push(row).unwrap();
    }
    let part = encoder.finish().unwrap();
    let packed = dataset.manifest();
    let provenance = Provenance {
        // The fixture must not contain their path on this machine.
        source: "pictures".to_owned(),
        time: Some("2026-01-31T23:59:59Z".to_owned()),
        recipe: Some("none".to_owned()),
        ..packed.provenance.clone()
    };
    let sha256 = Sha256::digest(&part.sink).iter().map(|byte| format!("{byte:02x}")).collect();
    let manifest = Manifest {
        samples: packed.samples,
        image_bytes: packed.image_bytes,
        image_bytes_max: packed.image_bytes_max,
        labels: packed.labels.clone(),
        stored: packed.stored.clone(),
        parts: vec![PartEntry {
            file: part_name(0),
            samples: part.samples,
            bytes: part.bytes,
            tail_crc32c: part.tail_crc32c,
            sha256,
        }],
        ..Manifest::new(&columns, provenance)
    };
    std::fs::create_dir_all(to).unwrap();
    std::fs::write(to.join(part_name(0)), part.sink).unwrap();
    std::fs::write(to.join(MANIFEST_NAME), manifest.to_json()).unwrap();
}

/// The further columns of the fixture: nulls, nested values, lists, a second picture, integers
/// with names, an array of a fixed shape.
fn extra() -> RecordBatch {
    let described = |name: &str, data_type: &DataType, pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Field::new(name, data_type.clone(), true).with_metadata(pairs.collect::<BTreeMap<_, _>>())
    };
    let captions = [Some("a picture"), None, Some("é 图"), Some(""), None, Some("the last")];
    let captions: ArrayRef = Arc::new(StringArray::from_iter(captions));
    let thumbnail = std::fs::read(golden().join("pictures/fine/10.png")).unwrap();
    let present = [true, false, true, true, false, true];
    let bytes = present.map(|present| present.then_some(thumbnail.as_slice()));
    let names = present.map(|present| present.then_some("fine/10.png"));
    let thumbnails: ArrayRef = Arc::new(StructArray::new(
        vec![Field::new("bytes", DataType::Binary, true), Field::new("path", DataType::Utf8, true)]
            .into(),
        vec![Arc::new(BinaryArray::from_iter(bytes)), Arc::new(StringArray::from_iter(names))],
        Some(present.to_vec().into()),
    ));
    let mut boxes = ListBuilder::new(ListBuilder::new(Float32Builder::new()));
    for row in 0..6_u8 {
        for number in 0..row % 3 {
            let corners = [0, 1, 2, 3].map(|corner| f32::from(row * 8 + number * 4 + corner));
            boxes.values().append_value(corners.map(Some));
        }
        boxes.append(row != 3);
    }
    let boxes: ArrayRef = Arc::new(boxes.finish());
    let times = [Some(0), Some(1), None, Some(1), Some(0), Some(1)];
    let times: ArrayRef = Arc::new(Int64Array::from_iter(times));
    let mut small = FixedSizeListBuilder::new(UInt8Builder::new(), 4);
    for row in 0..6 {
        (0..4).for_each(|pixel| small.values().append_value(row * 4 + pixel));
        small.append(true);
    }
    let small: ArrayRef = Arc::new(small.finish());
    let fields = vec![
        described("caption", captions.data_type(), &[("meetpoint.kind", "text")]),
        described("thumbnail", thumbnails.data_type(), &[("meetpoint.kind", "image")]),
        described("boxes", boxes.data_type(), &[("meetpoint.kind", "boxes")]),
        described(
            "daytime",
            times.data_type(),
            &[("meetpoint.kind", "label"), ("meetpoint.labels", "[\"day\", \"night\"]")],
        ),
        described(
            "small",
            small.data_type(),
            &[
                ("ARROW:extension:metadata", "{\"shape\":[2,2]}"),
                ("ARROW:extension:name", "arrow.fixed_shape_tensor"),
                ("meetpoint.kind", "array"),
            ],
        ),
    ];
    let columns = vec![captions, thumbnails, boxes, times, small];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

#[test]
fn the_fixture_opens_verifies_reads_and_unpacks() {
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        make(&fixture(schema::VERSION));
    }
    let pictures = files(&golden().join("pictures"));
    assert_eq!(pictures.len(), 6);
    let path = fixture(schema::VERSION);
    assert_eq!(verify(&path, &mut |_| ()).unwrap().problems, []);
    let dataset = Dataset::open(&path).unwrap();
    assert_eq!((dataset.manifest().version, dataset.len()), (schema::VERSION, 6));
    for sample in 0..dataset.len() {
        let key = dataset.key(sample).unwrap();
        assert!(dataset.read_file(sample).unwrap() == pictures[&key], "{key}");
    }
    assert_eq!(dataset.manifest().labels, ["coarse", "fine"]);
    assert!(inspect(&path).unwrap().stored.is_some());
    assert_eq!(dataset.extra(0, None).unwrap(), extra());
    let bench = Bench::new();
    let mut options = UnpackOptions::default();
    // A folder cannot store its second picture.
    let refused = unpack(&path, &bench.back(), &options, &mut |_| ()).unwrap_err();
    assert!(refused.to_string().contains("thumbnail"), "{refused}");
    let columns = dataset.columns().extra.fields();
    options.without = columns.iter().map(|field| field.name().clone()).collect();
    unpack(&path, &bench.back(), &options, &mut |_| ()).unwrap();
    assert!(files(&bench.back()) == pictures, "other files");
}

#[test]
fn the_layout_that_is_written_is_that_of_its_fixture() {
    let bench = Bench::new();
    make(&bench.to());
    let (made, kept) = (Dataset::open(&bench.to()).unwrap(), fixture(schema::VERSION));
    let kept = Dataset::open(&kept).unwrap();
    for sample in 0..made.len() {
        let (made, kept) = (made.locate(sample).unwrap(), kept.locate(sample).unwrap());
        assert_eq!(made, kept);
    }
    assert_eq!(made.extra(0, None).unwrap(), kept.extra(0, None).unwrap());
}

#[test]
fn another_version_is_refused_by_its_number_with_a_remedy() {
    let bench = Bench::new();
    make(&bench.to());
    let path = bench.to().join("dataset.json");
    let text = std::fs::read_to_string(&path).unwrap();
    for version in [1, 2, 4] {
        let other = format!("\"version\": {version}");
        std::fs::write(&path, text.replacen("\"version\": 3", &other, 1)).unwrap();
        let opened = Dataset::open(&bench.to()).unwrap_err();
        assert_eq!(opened.cause(), "dataset_version");
        assert!(opened.remedy().is_some());
        assert!(opened.to_string().contains(&format!("version is {version},")), "{opened}");
        let inspected = inspect(&bench.to()).unwrap_err();
        assert_eq!(inspected.cause(), "dataset_version");
        assert!(inspected.remedy().is_some());
    }
}
