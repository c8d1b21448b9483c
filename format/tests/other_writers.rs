//! Parts that the Arrow implementation wrote by the documented rules, not our encoder.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use arrow_array::{
    ArrayRef, BinaryArray, Int32Array, LargeBinaryArray, RecordBatch, StringArray, UInt32Array,
};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::{DataType, Field, Schema};
use meetpoint_format::checksum::crc32c;
use meetpoint_format::dataset::{
    Columns, EntryPointSpacing, EntryPointsStored, Index, Manifest, PartBytes, PartEntry,
    PartLayout, Provenance, RecordBatchMetadata, Stored, part_name, schema,
};
use std::sync::Arc;

const IMAGES: [&[u8]; 3] = [b"first image", b"second", b"the third image"];
const KEYS: [&str; 3] = ["a/1", "a/2", "b/1"];
const LABELS: [Option<i32>; 3] = [Some(1), None, Some(0)];
const ENTRY_POINTS: [Option<&[u8]>; 3] = [None, Some(b"here"), None];

struct Memory(Vec<u8>);

impl PartBytes for Memory {
    fn part_bytes(&self, _part: usize) -> std::io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_exact_at(&self, _part: usize, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        let start = usize::try_from(offset).unwrap();
        into.copy_from_slice(&self.0[start..start + into.len()]);
        Ok(())
    }
}

/// The five columns, followed by those of `extra`.
fn batch(extra: Vec<(Field, ArrayRef)>) -> RecordBatch {
    let mut fields: Vec<_> =
        Columns::images().schema().fields().iter().map(|f| (**f).clone()).collect();
    let crcs = IMAGES.map(crc32c);
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(KEYS)),
        Arc::new(LargeBinaryArray::from_iter_values(IMAGES)),
        Arc::new(Int32Array::from_iter(LABELS)),
        Arc::new(UInt32Array::from_iter_values(crcs)),
        Arc::new(BinaryArray::from_iter(ENTRY_POINTS)),
    ];
    for (field, column) in extra {
        fields.push(field);
        columns.push(column);
    }
    let metadata = Columns::images().schema().metadata().clone();
    let schema = Schema::new(fields).with_metadata(metadata);
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

/// The pairs of a footer's metadata.
#[derive(Debug, Default)]
struct Sums {
    head: u32,
    rest: u32,
    extra: Vec<u32>,
}

/// Writes a part with the given checksums in its footer.
fn write(batch: &RecordBatch, alignment: usize, sums: &Sums) -> Memory {
    let options =
        IpcWriteOptions::try_new(alignment, false, arrow_ipc::MetadataVersion::V5).unwrap();
    let mut writer =
        FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.write_metadata("meetpoint.head_crc32c", format!("{:08x}", sums.head));
    let described = format!("{}:{:08x}", batch.num_rows(), sums.rest);
    writer.write_metadata("meetpoint.record_batches", described);
    if !sums.extra.is_empty() {
        let digits: Vec<_> = sums.extra.iter().map(|crc| format!("{crc:08x}")).collect();
        writer.write_metadata("meetpoint.extra_columns", digits.join(":"));
    }
    Memory(writer.into_inner().unwrap())
}

fn entry(part: &Memory) -> PartEntry {
    let footer = i32::from_le_bytes(part.0[part.0.len() - 10..][..4].try_into().unwrap());
    let tail = part.0.len() - 10 - usize::try_from(footer).unwrap() - 8;
    PartEntry {
        file: part_name(0),
        samples: 3,
        bytes: part.0.len() as u64,
        tail_crc32c: crc32c(&part.0[tail..]),
        sha256: "0".repeat(64),
    }
}

/// Writes twice: the checksums have to be known before the footer is written.
fn part(batch: &RecordBatch, alignment: usize) -> Memory {
    let columns = batch.num_columns() - 5;
    let draft = write(batch, alignment, &Sums { extra: vec![0; columns], ..Sums::default() });
    let layout = PartLayout::read(0, &entry(&draft), &draft).unwrap();
    let metadata =
        RecordBatchMetadata::read(0, "draft", &layout.record_batches[0], &draft).unwrap();
    let table = metadata.extra(&layout.columns).unwrap();
    let slice = |range: std::ops::Range<u64>| {
        &draft.0[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()]
    };
    let sums = Sums {
        head: crc32c(slice(layout.head.clone())),
        rest: metadata.crc32c(),
        extra: (0..columns).map(|column| crc32c(slice(table.range(column).unwrap()))).collect(),
    };
    write(batch, alignment, &sums)
}

fn open(part: &Memory) -> Result<Index, meetpoint_format::dataset::DatasetError> {
    let spacing = Some(EntryPointSpacing::McuRow);
    let entry_points = EntryPointsStored { spacing, samples: 1, bytes: 4 };
    let lengths = IMAGES.map(|image| image.len() as u64);
    let columns = PartLayout::read(0, &entry(part), part)?.columns;
    let new = Manifest::new(&columns, Provenance { tool: "test".into(), ..Provenance::default() });
    let manifest = Manifest {
        samples: 3,
        image_bytes: lengths.iter().sum(),
        image_bytes_max: 15,
        labels: ["x", "y"].map(str::to_owned).to_vec(),
        parts: vec![entry(part)],
        stored: Some(Stored { entry_points, ..Stored::default() }),
        ..new
    };
    Index::open(manifest, part)
}

fn reads_right(index: &Index, part: &Memory, entry_points: [Option<&[u8]>; 3]) {
    index.keep_entry_points(1 << 20);
    for sample in 0..3 {
        let location = index.locate(sample as u64, part).unwrap();
        let start = usize::try_from(location.offset).unwrap();
        assert_eq!(&part.0[start..start + IMAGES[sample].len()], IMAGES[sample]);
        assert_eq!((location.crc32c, location.label), (crc32c(IMAGES[sample]), LABELS[sample]));
        assert_eq!(index.key(sample as u64, part).unwrap(), KEYS[sample]);
        assert_eq!(location.entry_points.as_ref().map(AsRef::as_ref), entry_points[sample]);
    }
}

#[test]
fn a_part_by_another_writer_reads() {
    for alignment in [8, 16, 32, 64] {
        let part = part(&batch(Vec::new()), alignment);
        reads_right(&open(&part).unwrap(), &part, ENTRY_POINTS);
    }
}

/// Two columns beside the five.
fn extra() -> Vec<(Field, ArrayRef)> {
    let numbers = Int32Array::from(vec![7, 8, 9]);
    let texts = StringArray::from(vec![Some("x"), None, Some("z")]);
    vec![
        (Field::new("width", DataType::Int32, false), Arc::new(numbers)),
        (Field::new("caption", DataType::Utf8, true), Arc::new(texts)),
    ]
}

#[test]
fn further_columns_by_another_writer_read() {
    for alignment in [8, 16, 32, 64] {
        let written = batch(extra());
        let part = part(&written, alignment);
        let index = open(&part).unwrap();
        reads_right(&index, &part, ENTRY_POINTS);
        let read = index.extra(0, None, &part).unwrap();
        assert_eq!(read.columns(), &written.columns()[5..]);
        let text = index.extra(0, Some(&[1]), &part).unwrap();
        assert_eq!(text.columns(), &written.columns()[6..]);
    }
}

#[test]
fn a_part_whose_footer_has_no_checksums_of_its_columns_is_refused() {
    let refused = |sums: &Sums| open(&write(&batch(extra()), 64, sums)).unwrap_err().to_string();
    let none = refused(&Sums::default());
    assert!(none.contains("the footer has no `meetpoint.extra_columns`"), "{none}");
    let short = refused(&Sums { extra: vec![1], ..Sums::default() });
    assert!(short.contains("`meetpoint.extra_columns` does not describe batch 0"), "{short}");
}

#[test]
fn columns_of_another_name_type_or_order_are_refused_by_name() {
    let full = batch(Vec::new());
    let refused = |change: &dyn Fn(&mut Vec<Field>, &mut Vec<ArrayRef>)| {
        let mut fields: Vec<_> = full.schema().fields().iter().map(|f| (**f).clone()).collect();
        let mut columns = full.columns().to_vec();
        change(&mut fields, &mut columns);
        let schema = Schema::new(fields).with_metadata(full.schema().metadata().clone());
        let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
        open(&write(&batch, 64, &Sums::default())).unwrap_err().to_string()
    };
    let renamed = refused(&|fields, _| fields[0] = fields[0].clone().with_name("name"));
    assert!(renamed.contains("column 0 is `name` Utf8, expected `key` Utf8"), "{renamed}");
    let nullable = refused(&|fields, _| fields[3] = fields[3].clone().with_nullable(true));
    assert!(nullable.contains("`crc32c` UInt32 nullable"), "{nullable}");
    let swapped = refused(&|fields, columns| {
        fields.swap(2, 3);
        columns.swap(2, 3);
    });
    assert!(swapped.contains("column 2 is `crc32c` UInt32, expected `label` Int32"), "{swapped}");
    let missing = refused(&|fields, columns| {
        fields.truncate(3);
        columns.truncate(3);
    });
    assert!(missing.contains("column 3 is missing, expected `crc32c`"), "{missing}");
    let retyped = refused(&|fields, columns| {
        fields[2] = Field::new("label", DataType::UInt32, true);
        columns[2] = columns[3].clone();
    });
    assert!(retyped.contains("column 2 is `label` UInt32 nullable, expected"), "{retyped}");
}

#[test]
fn a_part_of_another_version_or_without_one_is_refused() {
    let refused = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let metadata: std::collections::BTreeMap<_, _> = pairs.collect();
        let full = batch(Vec::new());
        let schema = (*full.schema()).clone().with_metadata(metadata);
        let batch = RecordBatch::try_new(Arc::new(schema), full.columns().to_vec()).unwrap();
        open(&write(&batch, 64, &Sums::default())).unwrap_err().to_string()
    };
    assert!(refused(&[]).contains("schema has no `meetpoint.format`"));
    for version in ["1", "2", "4", "03"] {
        let pairs = [("meetpoint.format", schema::FORMAT), ("meetpoint.version", version)];
        let other = refused(&pairs);
        assert!(other.contains(&format!("schema version is {version}, this program")), "{other}");
    }
}
