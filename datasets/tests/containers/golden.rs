//! Archives, tables and binary files from other programs, compared with what those programs read
//! from them.
//!
//! The files and `expected_a.json` are made by `golden/sources/make_a.py`.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use meetpoint_datasets::source::{
    Content, ContentKind, Entry, Item, PixelStore, Source, SourceOptions, SourceSchema, detect,
    open,
};
use meetpoint_datasets::store::StorePath;
use meetpoint_diagnose::{Diagnose, Surface};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/sources").join(name)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn bytes_of(content: &Content) -> Vec<u8> {
    match content {
        Content::Bytes(bytes) => bytes.clone(),
        Content::File { path, bytes } => {
            let read = std::fs::read(path.path()).unwrap();
            assert_eq!(read.len() as u64, *bytes);
            read
        }
        Content::Range { file, offset, bytes } => {
            let mut read = vec![0; usize::try_from(*bytes).unwrap()];
            file.file.read_exact_at(&mut read, *offset).unwrap();
            read
        }
    }
}

fn value(array: &dyn Array, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Utf8 => json!(array.as_string::<i32>().value(row)),
        DataType::Boolean => json!(array.as_boolean().value(row)),
        DataType::Int64 => json!(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => json!(array.as_primitive::<Float64Type>().value(row)),
        DataType::Binary => json!(hex(array.as_binary::<i32>().value(row))),
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|index| value(&items, index)).collect()
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter();
            let named = fields.iter().zip(columns);
            named.map(|(field, column)| (field.name().clone(), value(column, row))).collect()
        }
        other => panic!("{other} is not expected"),
    }
}

fn columns_of(batch: &RecordBatch, row: usize) -> Map<String, Value> {
    let schema = batch.schema();
    let named = schema.fields().iter().zip(batch.columns());
    named.map(|(field, column)| (field.name().clone(), value(column, row))).collect()
}

/// The samples of a source; a left-out entry is an error.
fn read(source: &mut dyn Source) -> Vec<Item> {
    let mut items = Vec::new();
    while let Some(entry) = source.next().unwrap() {
        match entry {
            Entry::Sample(item) => items.push(*item),
            Entry::Unreadable(left_out) => panic!("{left_out:?}"),
            Entry::NotASample(_) | Entry::Ignored => {}
        }
    }
    let promised = source.size().samples;
    assert!(promised.is_none_or(|samples| samples == items.len() as u64), "{promised:?}");
    items
}

fn without_nulls(columns: &Map<String, Value>) -> Map<String, Value> {
    let some = columns.iter().filter(|(_, value)| !value.is_null());
    some.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Height and width, little-endian, then the pixels, hashed as the script does.
fn pixels(bytes: &[u8]) -> String {
    let (width, height, values) = match bytes {
        // Raw pixels of 32 by 32 or smaller, as small pictures are stored.
        [b'P', b'5' | b'6', ..] => raw(bytes),
        _ => {
            let picture = image::load_from_memory(bytes).unwrap();
            (picture.width(), picture.height(), picture.into_bytes())
        }
    };
    let mut data = height.to_le_bytes().to_vec();
    data.extend(width.to_le_bytes());
    data.extend(values);
    hex(&data)
}

/// Width, height and values of a file that `pack` writes: magic, size and 255 on a line each.
fn raw(bytes: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut lines = bytes.splitn(4, |byte| *byte == b'\n');
    let mut line = || lines.next().unwrap();
    line();
    let size = String::from_utf8(line().to_vec()).unwrap();
    let (width, height) = size.split_once(' ').unwrap();
    assert_eq!(line(), b"255");
    (width.parse().unwrap(), height.parse().unwrap(), line().to_vec())
}

fn check(name: &str, kind: &str) -> SourceSchema {
    let path = golden(name);
    assert_eq!(detect(&StorePath::local(&path)).unwrap().name, kind, "{name}");
    let expected = std::fs::read_to_string(golden("expected_a.json")).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let expected = expected[name].as_array().unwrap();
    let mut source = open(&path, None, &SourceOptions::default()).unwrap();
    let items = read(source.as_mut());
    assert_eq!(items.len(), expected.len(), "{name}");
    for (item, expected) in items.iter().zip(expected) {
        assert_eq!(json!(item.key), expected["key"], "{name}");
        assert_eq!(json!(item.label), expected["label"], "{name}: {}", item.key);
        let bytes = bytes_of(&item.content);
        match expected.get("pixels") {
            Some(expected) => assert_eq!(json!(pixels(&bytes)), *expected, "{}", item.key),
            None => assert_eq!(json!(hex(&bytes)), expected["sha256"], "{}", item.key),
        }
        let columns = item.extra.as_ref().map(|(batch, row)| columns_of(batch, *row));
        let columns = columns.unwrap_or_default();
        let expected = expected["columns"].as_object().unwrap();
        assert_eq!(without_nulls(&columns), without_nulls(expected), "{name}: {}", item.key);
    }
    source.schema().check().unwrap();
    source.schema().clone()
}

fn types(schema: &SourceSchema) -> Vec<String> {
    let fields = schema.extra.fields().iter();
    fields.map(|field| format!("{} {}", field.name(), field.data_type())).collect()
}

#[test]
fn shards_of_the_webdataset_library_come_as_the_library_reads_them() {
    let schema = check("wds-{000..001}.tar", "tar");
    assert_eq!((schema.kind, schema.name.as_str()), (ContentKind::Image, "image"));
    let types = types(&schema);
    for column in ["seg.png Binary", "txt Utf8", "npy Binary", "id Int64", "score Float64"] {
        assert!(types.iter().any(|known| known == column), "{types:?}");
    }
    for column in ["ok Boolean", "late Utf8", "json.key Utf8"] {
        assert!(types.iter().any(|known| known == column), "{types:?}");
    }
    let mask = schema.extra.field_with_name("seg.png").unwrap();
    assert_eq!(mask.metadata()["meetpoint.kind"], "image");
}

#[test]
fn members_of_plain_shards_are_ranges_and_of_compressed_ones_are_not() {
    for (name, is_range) in [("wds-000.tar", true), ("wds.tar.gz", false), ("wds.tar.zst", false)] {
        let mut source = open(&golden(name), None, &SourceOptions::default()).unwrap();
        for item in read(source.as_mut()) {
            assert_eq!(matches!(item.content, Content::Range { .. }), is_range, "{name}");
        }
    }
    check("wds.tar.gz", "tar");
    check("wds.tar.zst", "tar");
}

#[test]
fn long_names_and_names_of_classes_come_from_every_kind_of_tar() {
    for name in ["long-gnu.tar", "long-pax.tar", "long-python.tar"] {
        check(name, "tar");
        let mut source = open(&golden(name), None, &SourceOptions::default()).unwrap();
        read(source.as_mut());
        assert_eq!(source.finish().unwrap().labels, ["cat", "dog"]);
    }
}

#[test]
fn content_label_and_columns_can_be_selected() {
    let options = SourceOptions {
        content: Some("seg.png".to_owned()),
        label: Some("id".to_owned()),
        columns: Some(vec!["txt".to_owned(), "jpg".to_owned()]),
        ..SourceOptions::default()
    };
    // An id of the set does not fit into a label, which is reported per sample.
    let mut source = open(&golden("wds-{000..001}.tar"), None, &options).unwrap();
    assert_eq!(types(source.schema()), ["txt Utf8", "jpg Binary"]);
    let (mut samples, mut unreadable) = (0, 0);
    while let Some(entry) = source.next().unwrap() {
        match entry {
            Entry::Sample(item) => {
                samples += 1;
                assert!(bytes_of(&item.content).starts_with(b"\x89PNG"));
            }
            Entry::Unreadable(left_out) => {
                unreadable += 1;
                assert!(left_out.reason.to_string().contains("32-bit"), "{left_out:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((samples, unreadable), (1, 5));
    let refused = SourceOptions { content: Some("webp".to_owned()), ..SourceOptions::default() };
    let error = open(&golden("wds-000.tar"), None, &refused)
        .map(|_| ())
        .unwrap_err()
        .in_full(Surface::CommandLine);
    assert!(error.contains("webp") && error.contains("seg.png"), "{error}");
}

#[test]
fn tables_come_with_their_types_and_nulls() {
    for name in ["table-csv", "table-tsv", "table-jsonl"] {
        let schema = check(name, "table");
        let expected = ["count Int64", "score Float64", "flag Boolean", "text Utf8", "code Utf8"];
        let mut types = types(&schema);
        types.sort();
        let mut expected = expected.map(str::to_owned).to_vec();
        expected.sort();
        assert_eq!(types, expected, "{name}");
    }
}

#[test]
fn a_zip_archive_is_a_folder_tree() {
    check("classes.zip", "zip");
    let mut source = open(&golden("classes.zip"), None, &SourceOptions::default()).unwrap();
    let ranges = read(source.as_mut()).into_iter().map(|item| item.content);
    let ranges: Vec<bool> = ranges.map(|at| matches!(at, Content::Range { .. })).collect();
    assert_eq!(ranges, [false, true, true]);
    assert_eq!(source.finish().unwrap().labels, ["cat", "dög"]);
}

#[test]
fn pixels_are_stored_raw_or_as_png_with_the_same_values() {
    for name in ["cifar-10-batches-bin", "mnist"] {
        let stored = |store: PixelStore| {
            let options = SourceOptions { store: Some(store), ..SourceOptions::default() };
            let mut source = open(&golden(name), None, &options).unwrap();
            let content = read(source.as_mut()).into_iter().map(|item| match item.content {
                Content::Bytes(bytes) => bytes,
                other => panic!("{other:?} is a range of a file"),
            });
            content.collect::<Vec<_>>()
        };
        let (raw, png) = (stored(PixelStore::Raw), stored(PixelStore::Encoded));
        assert_eq!(raw, stored(PixelStore::Auto), "{name}");
        assert!(raw.iter().all(|file| file.starts_with(b"P")));
        assert!(png.iter().all(|file| file.starts_with(b"\x89PNG")));
        let values = |files: &[Vec<u8>]| files.iter().map(|it| pixels(it)).collect::<Vec<_>>();
        assert_eq!(values(&raw), values(&png), "{name}");
    }
    let options = SourceOptions { store: Some(PixelStore::Raw), ..SourceOptions::default() };
    assert!(open(&golden("classes.zip"), None, &options).is_err(), "it has picture files");
}

#[test]
fn cifar_comes_pixel_by_pixel_with_the_names_of_its_labels() {
    for name in ["cifar-10-batches-bin", "cifar-10-binary.tar.gz"] {
        check(name, "cifar");
        let mut source = open(&golden(name), None, &SourceOptions::default()).unwrap();
        read(source.as_mut());
        let labels = source.finish().unwrap().labels;
        assert_eq!((labels.len(), labels[9].as_str()), (10, "truck"));
    }
    let schema = check("cifar-100-binary", "cifar");
    let coarse = schema.extra.field_with_name("coarse_label").unwrap();
    assert!(coarse.metadata()["meetpoint.labels"].contains("coarse19"));
    let options = SourceOptions { split: Some("test".to_owned()), ..SourceOptions::default() };
    let mut source = open(&golden("cifar-10-binary.tar.gz"), None, &options).unwrap();
    assert_eq!(read(source.as_mut()).len(), 1);
}

#[test]
fn idx_files_come_pixel_by_pixel_plain_or_compressed() {
    check("mnist", "idx");
    let one = golden("mnist/train-images-idx3-ubyte.gz");
    assert_eq!(detect(&StorePath::local(&one)).unwrap().name, "idx");
    let mut source = open(&one, None, &SourceOptions::default()).unwrap();
    let items = read(source.as_mut());
    assert_eq!(items.len(), 3);
    assert!(items.iter().all(|item| item.label.is_some()));
}
