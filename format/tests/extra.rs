//! Further columns of a dataset, compared with the Arrow implementation and against damage.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use arrow_array::builder::{
    BooleanBuilder, FixedSizeListBuilder, Float32Builder, Int32Builder, ListBuilder, MapBuilder,
    StringBuilder,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Int64Array,
    LargeBinaryArray, NullArray, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Fields, Schema, UnionFields, UnionMode};
use meetpoint_format::checksum::crc32c;
use meetpoint_format::dataset::{
    Columns, ContentKind, DatasetError, ExtraBytes, Index, Manifest, PartBytes, PartEncoder,
    PartEntry, PartLayout, Provenance, RecordBatchMetadata, Row, part_name, schema,
};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Cursor, Error, ErrorKind};
use std::sync::Arc;

/// A part in memory that records its reads.
struct Memory(Vec<u8>, RefCell<Vec<std::ops::Range<u64>>>);

impl PartBytes for Memory {
    fn part_bytes(&self, _part: usize) -> std::io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_exact_at(&self, _part: usize, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        let start = usize::try_from(offset).unwrap();
        let bytes = self.0.get(start..start + into.len());
        into.copy_from_slice(bytes.ok_or(Error::from(ErrorKind::UnexpectedEof))?);
        self.1.borrow_mut().push(offset..offset + into.len() as u64);
        Ok(())
    }
}

fn memory(bytes: Vec<u8>) -> Memory {
    Memory(bytes, RefCell::default())
}

fn of_kind(name: &str, kind: &str, data_type: DataType) -> Field {
    let metadata = BTreeMap::from([(schema::KIND_KEY.to_owned(), kind.to_owned())]);
    Field::new(name, data_type, true).with_metadata(metadata)
}

/// Rows of every sort of column: primitive, text, bytes, nested, null, fixed in size.
fn all_sorts(rows: usize) -> RecordBatch {
    let mut boxes = ListBuilder::new(FixedSizeListBuilder::new(Float32Builder::new(), 4));
    let mut tags = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    let mut flags = ListBuilder::new(BooleanBuilder::new());
    for row in 0..rows {
        for number in 0..row % 3 {
            for corner in 0..4 {
                boxes.values().values().append_value((row * 10 + number + corner) as f32);
            }
            boxes.values().append(true);
            tags.keys().append_value(format!("tag {number}"));
            tags.values().append_option((number > 0).then_some(row as i32));
            flags.values().append_option((row % 4 > 1).then_some(number > 0));
        }
        boxes.append(row % 5 != 4);
        tags.append(true).unwrap();
        flags.append(row % 7 != 1);
    }
    let texts = |row: usize| (row % 3 != 2).then(|| format!("caption {row}"));
    let masks = |row: usize| row.is_multiple_of(2).then(|| vec![row as u8; row % 40]);
    let inner: Fields = vec![
        Field::new("author", DataType::Utf8, true),
        Field::new("year", DataType::Int64, false),
    ]
    .into();
    let nulls = (0..rows).map(|row| row % 6 != 0).collect::<Vec<_>>();
    let source = StructArray::new(
        inner,
        vec![
            Arc::new(StringArray::from_iter((0..rows).map(texts))),
            Arc::new(Int64Array::from_iter_values((0..rows).map(|row| 1900 + row as i64))),
        ],
        Some(nulls.into()),
    );
    let digits = (0..rows).map(|row| [row as u8; 5]);
    let decimals = Decimal128Array::from_iter_values((0..rows).map(|row| row as i128 * 7));
    let times = (0..rows).map(|row| row.is_multiple_of(2).then_some(row as i64));
    let times = TimestampMicrosecondArray::from_iter(times).with_timezone("UTC");
    let columns: Vec<(Field, ArrayRef)> = vec![
        (
            of_kind("caption", "text", DataType::Utf8),
            Arc::new(StringArray::from_iter((0..rows).map(texts))),
        ),
        (
            of_kind("mask", "image", DataType::LargeBinary),
            Arc::new(LargeBinaryArray::from_iter((0..rows).map(masks))),
        ),
        column("boxes", Arc::new(boxes.finish())),
        column("nothing", Arc::new(NullArray::new(rows))),
        column("source", Arc::new(source)),
        column("flags", Arc::new(flags.finish())),
        column("tags", Arc::new(tags.finish())),
        column("digits", Arc::new(FixedSizeBinaryArray::try_from_iter(digits).unwrap())),
        column("price", Arc::new(decimals)),
        column("time", Arc::new(times)),
        column("good", Arc::new(BooleanArray::from_iter((0..rows).map(|row| Some(row % 3 == 0))))),
        column("none", Arc::new(NullArray::new(rows))),
    ];
    let (fields, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn column(name: &str, array: ArrayRef) -> (Field, ArrayRef) {
    (Field::new(name, array.data_type().clone(), true), array)
}

fn columns_of(batch: &RecordBatch) -> Columns {
    Columns { extra: batch.schema(), ..Columns::images() }
}

/// The rows of a record batch with an image and a key each.
fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let batch = Arc::new(batch.clone());
    let row = |index: usize| Row {
        key: format!("{index}.jpg"),
        image: vec![index as u8; 1 + index % 9],
        label: Some(0),
        entry_points: index.is_multiple_of(2).then(|| vec![3; 5]),
        extra: Some((Arc::clone(&batch), index)),
    };
    (0..batch.num_rows()).map(row).collect()
}

fn encode(columns: &Columns, rows: &[Row]) -> (Memory, Manifest) {
    let mut encoder = PartEncoder::new(Vec::new(), Arc::new(columns.clone())).unwrap();
    rows.iter().for_each(|row| encoder.push(row.clone()).unwrap());
    let part = encoder.finish().unwrap();
    let lengths = rows.iter().map(|row| row.image.len() as u64);
    let mut manifest = Manifest {
        samples: part.samples,
        image_bytes: lengths.clone().sum(),
        image_bytes_max: lengths.max().unwrap_or(0),
        labels: vec!["a".to_owned()],
        parts: vec![PartEntry {
            file: part_name(0),
            samples: part.samples,
            bytes: part.bytes,
            tail_crc32c: part.tail_crc32c,
            sha256: "0".repeat(64),
        }],
        ..Manifest::new(columns, Provenance::default())
    };
    let entries = rows.iter().filter(|row| row.entry_points.is_some()).count() as u64;
    let entry_points = &mut manifest.stored.as_mut().unwrap().entry_points;
    (entry_points.samples, entry_points.bytes) = (entries, entries * 5);
    entry_points.spacing = (entries > 0).then(Default::default);
    (memory(part.sink), Manifest::from_json(manifest.to_json().as_bytes()).unwrap())
}

fn read_all(index: &Index, parts: &Memory) -> Result<RecordBatch, DatasetError> {
    let batches = (0..index.record_batches())
        .map(|batch| index.extra(batch, None, parts))
        .collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::clone(&index.columns().extra);
    Ok(arrow_select::concat::concat_batches(&schema, &batches).unwrap())
}

#[test]
fn every_sort_of_column_comes_back() {
    let batch = all_sorts(600);
    let (parts, manifest) = encode(&columns_of(&batch), &rows_of(&batch));
    let index = Index::open(manifest, &parts).unwrap();
    assert_eq!((index.record_batches(), index.samples_of(1)), (3, 256..512));
    assert_eq!(**index.columns(), columns_of(&batch));
    assert_eq!(read_all(&index, &parts).unwrap(), batch);
    for (sample, found) in [(0, (0, 0)), (255, (0, 255)), (256, (1, 0)), (599, (2, 87))] {
        assert_eq!(index.batch_of(sample).unwrap(), found);
        index.locate(sample, &parts).unwrap();
    }
    index.batch_of(600).unwrap_err();
}

#[test]
fn the_arrow_reader_reads_the_same_columns() {
    let batch = all_sorts(300);
    let (parts, _) = encode(&columns_of(&batch), &rows_of(&batch));
    let reader = arrow_ipc::reader::FileReader::try_new(Cursor::new(&parts.0), None).unwrap();
    assert_eq!(*reader.schema(), columns_of(&batch).schema());
    let batches: Vec<_> = reader.map(|batch| batch.unwrap()).collect();
    let read = arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap();
    read.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    assert_eq!(read.columns()[5..], *batch.columns());
}

#[test]
fn a_projection_gives_its_columns_in_its_order() {
    let batch = all_sorts(20);
    let (parts, manifest) = encode(&columns_of(&batch), &rows_of(&batch));
    let index = Index::open(manifest, &parts).unwrap();
    for projection in [&[4, 0, 4][..], &[3], &[11, 10], &[]] {
        let read = index.extra(0, Some(projection), &parts).unwrap();
        assert_eq!(read, batch.project(projection).unwrap());
        assert_eq!(read.num_rows(), 20);
    }
    let error = index.extra(0, Some(&[12]), &parts).unwrap_err().to_string();
    assert!(error.contains("column 12 of 12 further columns"), "{error}");
}

#[test]
fn rows_of_many_record_batches_and_slices_are_gathered() {
    let batch = all_sorts(90);
    let mut rows = rows_of(&batch);
    for (index, row) in rows.iter_mut().enumerate() {
        // A separate slice for every third row, and the whole record batch for the others.
        if index % 3 == 0 {
            row.extra = Some((Arc::new(batch.slice(index, 1)), 0));
        }
    }
    rows.reverse();
    let (parts, manifest) = encode(&columns_of(&batch), &rows);
    let index = Index::open(manifest, &parts).unwrap();
    let backwards: Vec<_> = (0..90).rev().map(|row| (0, row)).collect();
    let expected = arrow_select::interleave::interleave_record_batch(&[&batch], &backwards);
    assert_eq!(read_all(&index, &parts).unwrap(), expected.unwrap());
}

#[test]
fn a_column_costs_a_read_of_its_bytes_alone() {
    let batch = all_sorts(200);
    let (parts, manifest) = encode(&columns_of(&batch), &rows_of(&batch));
    let layout = PartLayout::read(0, &manifest.parts[0], &parts).unwrap();
    let place = &layout.record_batches[0];
    let metadata = RecordBatchMetadata::read(0, "part", place, &parts).unwrap();
    let table = metadata.extra(&layout.columns).unwrap();
    assert_eq!(table.columns(), 12);
    let index = Index::open(manifest, &parts).unwrap();
    parts.1.borrow_mut().clear();
    // Locating a sample reads the tables without further columns.
    index.locate(7, &parts).unwrap();
    let first = table.range(0).unwrap().start;
    assert!(parts.1.borrow().iter().all(|range| range.end <= first));
    for column in 0..12 {
        parts.1.borrow_mut().clear();
        index.extra(0, Some(&[column]), &parts).unwrap();
        assert_eq!(*parts.1.borrow(), [table.range(column).unwrap()], "column {column}");
    }
    // They follow one another up to the end of the record batch.
    let ranges: Vec<_> = (0..12).map(|column| table.range(column).unwrap()).collect();
    assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
    assert_eq!(ranges[11].end, place.range().end);
}

#[test]
fn every_flipped_bit_of_a_column_is_an_error_that_names_it() {
    let batch = all_sorts(9);
    let columns = columns_of(&batch);
    let (parts, manifest) = encode(&columns, &rows_of(&batch));
    let layout = PartLayout::read(0, &manifest.parts[0], &parts).unwrap();
    let metadata = RecordBatchMetadata::read(0, "part", &layout.record_batches[0], &parts).unwrap();
    let table = metadata.extra(&columns).unwrap();
    for (column, field) in columns.extra.fields().iter().enumerate() {
        for byte in table.range(column).unwrap() {
            let mut flipped = memory(parts.0.clone());
            flipped.0[byte as usize] ^= 1 << (byte % 8);
            let index = Index::open(manifest.clone(), &flipped).unwrap();
            // All other columns can still be read.
            index.locate(3, &flipped).unwrap();
            let others: Vec<_> = (0..12).filter(|other| *other != column).collect();
            index.extra(0, Some(&others), &flipped).unwrap();
            let error = index.extra(0, None, &flipped).unwrap_err().to_string();
            let words =
                format!("part-00000.arrow, rows 0 to 8, column `{}`: checksum", field.name());
            assert!(error.contains(&words) && error.contains("pack again"), "{error}");
        }
    }
}

/// Decodes all further columns without checking checksums, or only the column that contains a byte.
fn decode_unchecked(parts: &Memory, layout: &PartLayout, only: Option<u64>) {
    let place = &layout.record_batches[0];
    let Ok(metadata) = RecordBatchMetadata::read(0, "part", place, parts) else { return };
    let Ok(table) = metadata.extra(&layout.columns) else { return };
    for (column, field) in layout.columns.extra.fields().iter().enumerate() {
        let Ok(range) = table.range(column) else { continue };
        if only.is_some_and(|byte| !range.contains(&byte)) {
            continue;
        }
        let mut bytes = ExtraBytes::zeroed(usize::try_from(range.end - range.start).unwrap());
        parts.read_exact_at(0, range.start, bytes.as_mut_slice()).unwrap();
        if let Ok(array) = table.decode(column, field, bytes) {
            // Every returned value is valid, including nested values.
            array.to_data().validate_full().unwrap();
        }
    }
}

/// Changes every byte of the first record batch except its images.
fn change_every_byte(mut parts: Memory, manifest: &Manifest) {
    let layout = PartLayout::read(0, &manifest.parts[0], &parts).unwrap();
    let place = &layout.record_batches[0];
    let body = place.offset + place.metadata_bytes;
    for byte in place.range() {
        let at = usize::try_from(byte).unwrap();
        let right = parts.0[at];
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            if right != value {
                parts.0[at] = value;
                decode_unchecked(&parts, &layout, (byte >= body).then_some(byte));
            }
        }
        parts.0[at] = right;
        parts.1.borrow_mut().clear();
    }
}

#[test]
fn hostile_bytes_under_right_checksums_never_panic() {
    let batch = all_sorts(3);
    let (parts, manifest) = encode(&columns_of(&batch), &rows_of(&batch));
    change_every_byte(parts, &manifest);
}

#[test]
fn hostile_footers_with_columns_never_panic() {
    let batch = all_sorts(3);
    let (parts, manifest) = encode(&columns_of(&batch), &rows_of(&batch));
    let tail = PartLayout::read(0, &manifest.parts[0], &parts).unwrap().tail;
    let start = usize::try_from(tail.start).unwrap();
    for byte in start..parts.0.len() {
        for value in [0, 0x7f, 0xff] {
            let mut hostile = memory(parts.0.clone());
            hostile.0[byte] = value;
            let mut manifest = manifest.clone();
            manifest.parts[0].tail_crc32c = crc32c(&hostile.0[start..]);
            if let Ok(index) = Index::open(manifest, &hostile) {
                let _ = read_all(&index, &hostile);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn several_hostile_bytes_never_panic(
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..30),
    ) {
        let batch = all_sorts(9);
        let (mut parts, manifest) = encode(&columns_of(&batch), &rows_of(&batch));
        let layout = PartLayout::read(0, &manifest.parts[0], &parts).unwrap();
        let range = layout.record_batches[0].range();
        let (start, length) = (range.start as usize, (range.end - range.start) as usize);
        for (at, value) in changes {
            parts.0[start + at % length] = value;
        }
        decode_unchecked(&parts, &layout, None);
    }

    #[test]
    fn any_texts_numbers_and_lists_come_back(
        values in proptest::collection::vec(
            (
                proptest::option::of("[a-zé]{0,12}"),
                proptest::option::of(any::<i64>()),
                proptest::option::of(proptest::collection::vec(any::<i32>(), 0..5)),
                proptest::option::of(proptest::collection::vec(any::<u8>(), 0..50)),
            ),
            1..300,
        ),
    ) {
        let mut lists = ListBuilder::new(Int32Builder::new());
        for (_, _, list, _) in &values {
            list.iter().flatten().for_each(|value| lists.values().append_value(*value));
            lists.append(list.is_some());
        }
        let texts: StringArray = values.iter().map(|row| row.0.clone()).collect();
        let numbers: Int64Array = values.iter().map(|row| row.1).collect();
        let bytes: BinaryArray = values.iter().map(|row| row.3.as_deref()).collect();
        let columns: [(&str, ArrayRef, bool); 4] = [
            ("t", Arc::new(texts), true),
            ("n", Arc::new(numbers), true),
            ("l", Arc::new(lists.finish()), true),
            ("b", Arc::new(bytes), true),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let (parts, manifest) = encode(&columns_of(&batch), &rows_of(&batch));
        let index = Index::open(manifest, &parts).unwrap();
        prop_assert_eq!(read_all(&index, &parts).unwrap(), batch);
    }
}

#[test]
fn types_that_are_not_stored_are_refused_by_name_with_the_remedy() {
    use DataType as T;
    let item = || Arc::new(Field::new("item", T::Int32, true));
    let dictionary = T::Dictionary(Box::new(T::Int8), Box::new(T::Utf8));
    let ends = Arc::new(Field::new("run_ends", T::Int32, false));
    let run_ends = T::RunEndEncoded(ends, Arc::new(Field::new("values", T::Float32, true)));
    let nested = T::List(Arc::new(Field::new("item", dictionary.clone(), true)));
    let deep = (0..20).fold(T::Int8, |inner, _| T::List(Arc::new(Field::new("item", inner, true))));
    for (data_type, words) in [
        (dictionary, "dictionaries cannot be stored; cast it to Utf8"),
        (nested, "dictionaries cannot be stored"),
        (run_ends, "run-end encoded columns cannot be stored; cast it to Float32"),
        (T::Utf8View, "views cannot be stored; cast it to LargeUtf8"),
        (T::BinaryView, "views cannot be stored"),
        (T::ListView(item()), "cast it to List"),
        (T::LargeListView(item()), "cast it to LargeList"),
        (deep, "nested more than 16 deep"),
    ] {
        let extra = Arc::new(Schema::new(vec![Field::new("odd", data_type, true)]));
        let columns = Columns { extra, ..Columns::images() };
        let error = PartEncoder::new(Vec::new(), Arc::new(columns)).err().unwrap().to_string();
        assert!(error.contains("column `odd`") && error.contains(words), "{error}");
    }
}

#[test]
fn names_that_clash_and_labels_that_are_none_are_refused() {
    let refused = |name: &str, fields: Vec<Field>| {
        let extra = Arc::new(Schema::new(fields));
        let columns = Columns { name: name.to_owned(), extra, ..Columns::images() };
        PartEncoder::new(Vec::new(), Arc::new(columns)).err().unwrap().to_string()
    };
    let field = |name: &str| Field::new(name, DataType::Int8, true);
    assert!(refused("label", vec![]).contains("column `label` occurs twice"));
    assert!(refused("photo", vec![field("photo")]).contains("column `photo` occurs twice"));
    assert!(refused("image", vec![field("x"), field("x")]).contains("column `x` occurs twice"));
    assert!(refused("image", vec![field("")]).contains("1 to 255 bytes"));
    let metadata = BTreeMap::from([(schema::LABELS_KEY.to_owned(), "[1]".to_owned())]);
    let labelled = field("x").with_metadata(metadata);
    assert!(refused("image", vec![labelled]).contains("not a JSON list of strings"));
    let many = (0..257).map(|index| field(&index.to_string())).collect();
    assert!(refused("image", many).contains("257 further columns, the limit is 256"));
}

#[test]
fn rows_with_other_columns_are_refused() {
    let batch = all_sorts(4);
    let refused = |columns: &Columns, extra: Option<(RecordBatch, usize)>| {
        let extra = extra.map(|(batch, row)| (Arc::new(batch), row));
        let row = Row { key: "k".to_owned(), image: vec![1], extra, ..Row::default() };
        let mut encoder = PartEncoder::new(Vec::new(), Arc::new(columns.clone())).unwrap();
        encoder.push(row).unwrap_err().to_string()
    };
    let columns = columns_of(&batch);
    assert!(refused(&columns, None).contains("row \"k\": column `caption` is missing"));
    let other = refused(&columns, Some((batch.project(&[0, 1]).unwrap(), 0)));
    assert!(other.contains("2 further columns, expected 12"), "{other}");
    let swapped = batch.project(&[1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]).unwrap();
    let swapped = refused(&columns, Some((swapped, 0)));
    assert!(swapped.contains("column `mask` LargeBinary, expected `caption` Utf8"), "{swapped}");
    let beyond = refused(&columns, Some((batch.clone(), 4)));
    assert!(beyond.contains("row 4 of a record batch of 4 rows"), "{beyond}");
    let given = refused(&Columns::images(), Some((batch.clone(), 0)));
    assert!(given.contains("12 further columns, expected 0"), "{given}");
    let mut fields: Vec<_> = batch.schema().fields().iter().map(|f| (**f).clone()).collect();
    fields[0] = fields[0].clone().with_nullable(false);
    let strict = Columns { extra: Arc::new(Schema::new(fields)), ..Columns::images() };
    let null = refused(&strict, Some((batch, 2)));
    assert!(null.contains("column `caption` is null, but must not be"), "{null}");
}

#[test]
fn a_record_batch_ends_before_its_columns_get_too_long() {
    let half = usize::try_from(schema::RECORD_BATCH_BYTES / 2).unwrap();
    let lengths = [half - 100, half - 100, 200, 1];
    let second = LargeBinaryArray::from_iter_values(lengths.map(|bytes| vec![7; bytes]));
    let batch = RecordBatch::try_from_iter([("second", Arc::new(second) as ArrayRef)]).unwrap();
    let (parts, manifest) = encode(&columns_of(&batch), &rows_of(&batch));
    let layout = PartLayout::read(0, &manifest.parts[0], &parts).unwrap();
    let rows: Vec<u32> = layout.record_batches.iter().map(|batch| batch.rows).collect();
    assert_eq!(rows, [2, 2]);
    let index = Index::open(manifest, &parts).unwrap();
    assert_eq!(read_all(&index, &parts).unwrap(), batch);
}

#[test]
fn samples_of_columns_alone_have_no_content() {
    let batch = all_sorts(5).project(&[0, 2]).unwrap();
    let columns = Columns {
        kind: ContentKind::None,
        name: String::new(),
        extra: batch.schema(),
        prepared: None,
    };
    let mut rows = rows_of(&batch);
    for row in &mut rows {
        (row.image, row.entry_points) = (Vec::new(), None);
    }
    let (parts, manifest) = encode(&columns, &rows);
    assert_eq!((manifest.kind(), manifest.content_name()), (ContentKind::None, "content"));
    let index = Index::open(manifest, &parts).unwrap();
    assert_eq!(index.locate(4, &parts).unwrap().bytes, 0);
    assert_eq!(read_all(&index, &parts).unwrap(), batch);
    let mut encoder = PartEncoder::new(Vec::new(), Arc::new(columns)).unwrap();
    rows[0].image = vec![1];
    let error = encoder.push(rows[0].clone()).unwrap_err().to_string();
    assert!(error.contains("the content (none) has 1 bytes"), "{error}");
}

#[test]
fn the_content_has_the_name_and_kind_that_it_was_given() {
    let batch = all_sorts(3).project(&[1]).unwrap();
    for kind in ContentKind::ALL.into_iter().filter(|kind| *kind != ContentKind::None) {
        for (name, expected) in [("clip", "clip"), ("", kind.name())] {
            let columns =
                Columns { kind, name: name.to_owned(), extra: batch.schema(), prepared: None };
            let (parts, manifest) = encode(&columns, &rows_of(&batch));
            let index = Index::open(manifest.clone(), &parts).unwrap();
            assert_eq!((index.columns().kind, index.columns().content_name()), (kind, expected));
            let mut lying = manifest;
            lying.content.column = "other".to_owned();
            let error = Index::open(lying, &parts).unwrap_err().to_string();
            assert!(error.contains("dataset.json says `other`"), "{error}");
        }
    }
}

#[test]
fn the_manifest_lists_the_columns_and_parts_must_agree() {
    let batch = all_sorts(3);
    let (parts, manifest) = encode(&columns_of(&batch), &rows_of(&batch));
    let listed = manifest.columns.clone();
    let words: Vec<_> = listed.iter().map(|column| column.type_words.as_str()).collect();
    assert_eq!((words[0], words[1], words[3]), ("Utf8", "LargeBinary", "Null"));
    assert_eq!((listed[1].name.as_str(), listed[1].kind.as_deref()), ("mask", Some("image")));
    let refused = |change: &dyn Fn(&mut Manifest)| {
        let mut lying = manifest.clone();
        change(&mut lying);
        Index::open(lying, &parts).unwrap_err().to_string()
    };
    let typed = refused(&|lying| {
        lying.columns[0].type_words = "Int8".to_owned();
    });
    assert!(typed.contains("column 0 is `caption` Utf8, dataset.json says `caption` Int8"));
    let fewer = refused(&|lying| lying.columns.truncate(11));
    assert!(fewer.contains("column 11 is `none` Null, dataset.json says none"), "{fewer}");
}

#[test]
fn a_union_and_its_offsets_come_back() {
    use arrow_array::{Float64Array, UnionArray};
    let fields = UnionFields::try_new(
        [1, 4],
        [Field::new("n", DataType::Int64, true), Field::new("x", DataType::Float64, true)],
    )
    .unwrap();
    let children: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(vec![5, 6])), Arc::new(Float64Array::from(vec![0.5, 1.5]))];
    let types = vec![1_i8, 4, 4, 1].into();
    let offsets = Some(vec![0_i32, 0, 1, 1].into());
    let union = UnionArray::try_new(fields, types, offsets, children).unwrap();
    assert!(matches!(arrow_array::Array::data_type(&union), DataType::Union(_, UnionMode::Dense)));
    let batch = RecordBatch::try_from_iter([("either", Arc::new(union) as ArrayRef)]).unwrap();
    let (parts, manifest) = encode(&columns_of(&batch), &rows_of(&batch));
    let index = Index::open(manifest.clone(), &parts).unwrap();
    assert_eq!(read_all(&index, &parts).unwrap(), batch);
    change_every_byte(parts, &manifest);
}
