//! Parts and manifests, compared with the Arrow implementation and against damage of every kind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type};
use meetpoint_diagnose::Diagnose as _;
use meetpoint_format::checksum::crc32c;
use meetpoint_format::dataset::{
    Columns, ContentKind, DatasetError, EntryPointSpacing, EntryPointsStored, FinishedPart, Form,
    Index, Manifest, PartBytes, PartEncoder, PartEntry, PartLayout, Provenance,
    RecordBatchMetadata, Row, SampleLocation, Stored, part_name, schema,
};
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::{Cursor, Error, ErrorKind};
use std::sync::Arc;

/// Parts in memory.
struct Memory(Vec<Vec<u8>>);

impl PartBytes for Memory {
    fn part_bytes(&self, part: usize) -> std::io::Result<u64> {
        Ok(self.0[part].len() as u64)
    }

    fn read_exact_at(&self, part: usize, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        let start = usize::try_from(offset).unwrap();
        let bytes = self.0[part].get(start..start + into.len());
        into.copy_from_slice(bytes.ok_or(Error::from(ErrorKind::UnexpectedEof))?);
        Ok(())
    }
}

fn row(index: usize) -> Row {
    let image = (0..=index % 7 * 13).map(|byte| (byte * 31 + index) as u8).collect();
    let label = (index % 3 != 1).then_some((index % 3) as i32);
    let entry_points = (index % 4 != 2).then(|| vec![index as u8; 1 + index % 9]);
    Row { key: format!("folder é/{index}.jpg"), image, label, entry_points, extra: None }
}

fn encode(rows: &[Row]) -> (Vec<u8>, PartEntry) {
    let mut encoder = PartEncoder::new(Vec::new(), Arc::new(Columns::images())).unwrap();
    for row in rows {
        encoder.push(row.clone()).unwrap();
    }
    let FinishedPart { sink, samples, bytes, tail_crc32c } = encoder.finish().unwrap();
    assert_eq!(bytes, sink.len() as u64);
    let sha256 = "0".repeat(64);
    (sink, PartEntry { file: part_name(0), samples, bytes, tail_crc32c, sha256 })
}

fn manifest(parts: Vec<PartEntry>, rows: &[Row]) -> Manifest {
    let lengths = rows.iter().map(|row| row.image.len() as u64);
    let entries = rows.iter().filter_map(|row| row.entry_points.as_ref());
    let entry_points = EntryPointsStored {
        spacing: Some(EntryPointSpacing::McuRow),
        samples: entries.clone().count() as u64,
        bytes: entries.map(|bytes| bytes.len() as u64).sum(),
    };
    Manifest {
        samples: parts.iter().map(|part| part.samples).sum(),
        image_bytes: lengths.clone().sum(),
        image_bytes_max: lengths.max().unwrap_or(0),
        labels: ["a", "b", "c"].map(str::to_owned).to_vec(),
        parts,
        stored: Some(Stored { entry_points, ..Stored::default() }),
        ..Manifest::new(
            &Columns::images(),
            Provenance {
                tool: "test".into(),
                source: "none".into(),
                skipped: 0,
                options: BTreeMap::from([("form".into(), "jpeg".into())]),
                ..Provenance::default()
            },
        )
    }
}

/// All that an index reports about its samples.
fn answers(
    manifest: &Manifest,
    parts: &Memory,
) -> Result<Vec<(SampleLocation, String)>, DatasetError> {
    let index = Index::open(manifest.clone(), parts)?;
    index.keep_entry_points(u64::MAX);
    (0..manifest.samples)
        .map(|sample| Ok((index.locate(sample, parts)?, index.key(sample, parts)?)))
        .collect()
}

fn small() -> (Memory, Manifest) {
    let rows: Vec<Row> = (0..5).map(row).collect();
    let (bytes, entry) = encode(&rows);
    (Memory(vec![bytes]), manifest(vec![entry], &rows))
}

#[test]
fn the_arrow_reader_reads_what_was_written() {
    let rows: Vec<Row> = (0..600).map(row).collect();
    let (bytes, _) = encode(&rows);
    let reader = arrow_ipc::reader::FileReader::try_new(Cursor::new(bytes), None).unwrap();
    assert_eq!(*reader.schema(), Columns::images().schema());
    assert_eq!(reader.num_batches(), 3);
    let mut read = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
        let (keys, images) = (batch.column(0).as_string::<i32>(), batch.column(1));
        let (labels, crcs) = (batch.column(2).as_primitive::<Int32Type>(), batch.column(3));
        for index in 0..batch.num_rows() {
            let image = images.as_binary::<i64>().value(index).to_vec();
            assert_eq!(crcs.as_primitive::<UInt32Type>().value(index), crc32c(&image));
            let label = arrow_array::Array::is_valid(labels, index).then(|| labels.value(index));
            let entries = batch.column(4).as_binary::<i32>();
            let entry_points =
                arrow_array::Array::is_valid(entries, index).then(|| entries.value(index).to_vec());
            read.push(Row {
                key: keys.value(index).to_owned(),
                image,
                label,
                entry_points,
                extra: None,
            });
        }
    }
    assert!(read == rows, "other rows than those written");
}

#[test]
fn the_arrow_stream_reader_reads_the_part_after_its_magic_number() {
    let rows: Vec<Row> = (0..300).map(row).collect();
    let (bytes, _) = encode(&rows);
    let reader = arrow_ipc::reader::StreamReader::try_new(Cursor::new(&bytes[8..]), None).unwrap();
    let read: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(read, 300);
}

#[test]
fn the_index_finds_every_sample_in_every_part() {
    let rows: Vec<Row> = (0..700).map(row).collect();
    let (first, mut first_entry) = encode(&rows[..300]);
    let (second, mut second_entry) = encode(&rows[300..]);
    (first_entry.file, second_entry.file) = (part_name(0), part_name(1));
    let manifest = manifest(vec![first_entry, second_entry], &rows);
    let parts = Memory(vec![first, second]);
    let index = Index::open(manifest.clone(), &parts).unwrap();
    for (sample, row) in rows.iter().enumerate() {
        let location = index.locate(sample as u64, &parts).unwrap();
        assert_eq!((location.part, location.label), (usize::from(sample >= 300), row.label));
        assert_eq!(location.row, if sample < 300 { sample } else { sample - 300 } as u64);
        let mut image = vec![0; usize::try_from(location.bytes).unwrap()];
        parts.read_exact_at(location.part, location.offset, &mut image).unwrap();
        assert_eq!((&image, location.crc32c), (&row.image, crc32c(&row.image)));
        assert_eq!(index.key(sample as u64, &parts).unwrap(), row.key);
    }
    assert_eq!(index.find(&rows[456].key, &parts).unwrap(), Some(456));
    assert_eq!(index.find("nothing", &parts).unwrap(), None);
    for sample in [700, u64::MAX] {
        let error = index.locate(sample, &parts).unwrap_err();
        assert!(matches!(error, DatasetError::OutOfRange { samples: 700, .. }), "{error}");
    }
}

#[test]
fn rows_that_no_part_can_hold_are_refused() {
    let long = "k".repeat(schema::KEY_BYTES_MAX + 1);
    let long_entries = vec![0; usize::try_from(schema::ENTRY_POINTS_BYTES_MAX).unwrap() + 1];
    for (key, image, label, entry_points, words) in [
        ("", vec![1], None, None, "key is empty"),
        (long.as_str(), vec![1], None, None, "4097 bytes"),
        ("k", vec![], None, None, "no bytes"),
        ("k", vec![1], Some(-1), None, "negative"),
        ("k", vec![1], None, Some(vec![]), "entry points have no bytes"),
        ("k", vec![1], None, Some(long_entries), "bytes of entry points"),
    ] {
        let mut encoder = PartEncoder::new(Vec::new(), Arc::new(Columns::images())).unwrap();
        let error = encoder
            .push(Row { key: key.into(), image, label, entry_points, extra: None })
            .unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_record_batch_ends_before_it_gets_too_long() {
    let half = usize::try_from(schema::RECORD_BATCH_BYTES / 2).unwrap();
    let image = |bytes: usize| Row {
        key: bytes.to_string(),
        image: vec![1; bytes],
        label: None,
        entry_points: None,
        extra: None,
    };
    let rows = [image(half), image(half), image(1), image(3 * half), image(2)];
    let (bytes, entry) = encode(&rows);
    let layout = PartLayout::read(0, &entry, &Memory(vec![bytes])).unwrap();
    let rows: Vec<u32> = layout.record_batches.iter().map(|batch| batch.rows).collect();
    assert_eq!(rows, [2, 1, 1, 1]);
}

#[test]
fn a_full_disk_is_an_error_and_not_a_short_part() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(Error::from(ErrorKind::StorageFull))?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let needed = encode(&[row(1)]).0.len();
    for room in 0..=needed {
        let write = || {
            let mut encoder = PartEncoder::new(Full(room), Arc::new(Columns::images()))?;
            encoder.push(row(1))?;
            encoder.finish()
        };
        match write() {
            Ok(_) => assert_eq!(room, needed),
            Err(DatasetError::Write(error)) => assert_eq!(error.kind(), ErrorKind::StorageFull),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_part_cut_short_at_any_byte_is_an_error() {
    let (parts, manifest) = small();
    for length in 0..parts.0[0].len() {
        let cut = Memory(vec![parts.0[0][..length].to_vec()]);
        let error = answers(&manifest, &cut).unwrap_err();
        assert!(error.to_string().contains("part-00000.arrow"), "{error}");
        // Also if the manifest has the same wrong value.
        let mut lying = manifest.clone();
        lying.parts[0].bytes = length as u64;
        answers(&lying, &cut).unwrap_err();
        lying.parts[0].tail_crc32c = crc32c(&cut.0[0]);
        answers(&lying, &cut).unwrap_err();
    }
}

#[test]
fn a_flipped_bit_is_an_error_or_changes_no_answer() {
    let (parts, manifest) = small();
    let right = answers(&manifest, &parts).unwrap();
    let head = PartLayout::read(0, &manifest.parts[0], &parts).unwrap().head;
    let images = right[0].0.offset..right[4].0.offset + right[4].0.bytes;
    for byte in 0..parts.0[0].len() {
        for bit in 0..8 {
            let mut flipped = Memory(parts.0.clone());
            flipped.0[0][byte] ^= 1 << bit;
            let is_seen_elsewhere =
                head.contains(&(byte as u64)) || images.contains(&(byte as u64));
            match answers(&manifest, &flipped) {
                Ok(answers) => {
                    assert!(is_seen_elsewhere, "byte {byte} bit {bit} went unseen");
                    assert_eq!(answers, right);
                }
                Err(error) => assert!(!is_seen_elsewhere, "byte {byte}: {error}"),
            }
        }
    }
}

#[test]
fn hostile_footers_with_right_checksums_never_panic() {
    let (parts, manifest) = small();
    let tail = PartLayout::read(0, &manifest.parts[0], &parts).unwrap().tail;
    let start = usize::try_from(tail.start).unwrap();
    for byte in start..parts.0[0].len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut hostile = Memory(parts.0.clone());
            hostile.0[0][byte] = value;
            let mut manifest = manifest.clone();
            // The suffix may move the start of the tail; both checksums are tried.
            manifest.parts[0].tail_crc32c = crc32c(&hostile.0[0][start..]);
            let _ = answers(&manifest, &hostile);
        }
    }
}

/// Reads all of a record batch's tables without checking its checksum.
fn read_unchecked(parts: &Memory, manifest: &Manifest) {
    let layout = PartLayout::read(0, &manifest.parts[0], parts).unwrap();
    for place in &layout.record_batches {
        let Ok(metadata) = RecordBatchMetadata::read(0, "part", place, parts) else { continue };
        let _ = metadata.rows();
        let _ = metadata.entry_points();
        for row in 0..place.rows {
            let _ = metadata.key(row);
        }
    }
}

#[test]
fn hostile_record_batches_with_right_checksums_never_panic() {
    let (parts, manifest) = small();
    let layout = PartLayout::read(0, &manifest.parts[0], &parts).unwrap();
    let range = layout.record_batches[0].range();
    for byte in usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut hostile = Memory(parts.0.clone());
            hostile.0[0][byte] = value;
            read_unchecked(&hostile, &manifest);
        }
    }
}

proptest! {
    #[test]
    fn several_hostile_bytes_never_panic(
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..20),
    ) {
        let (mut parts, mut manifest) = small();
        let layout = PartLayout::read(0, &manifest.parts[0], &parts).unwrap();
        let tail = usize::try_from(layout.tail.start).unwrap();
        let length = parts.0[0].len();
        for (at, value) in &changes {
            parts.0[0][at % tail] = *value;
        }
        read_unchecked(&parts, &manifest);
        for (at, value) in changes {
            parts.0[0][tail + at % (length - tail)] = value;
        }
        manifest.parts[0].tail_crc32c = crc32c(&parts.0[0][tail..]);
        let _ = answers(&manifest, &parts);
    }

    #[test]
    fn any_rows_come_back(
        rows in proptest::collection::vec(
            (
                "[a-z/é]{1,20}",
                proptest::collection::vec(any::<u8>(), 1..100),
                0_i32..4,
                proptest::option::of(proptest::collection::vec(any::<u8>(), 1..30)),
            ),
            1..40,
        ),
    ) {
        let rows: Vec<Row> = rows
            .into_iter()
            .map(|(key, image, label, entry_points)| {
                Row { key, image, label: (label < 3).then_some(label), entry_points, extra: None }
            })
            .collect();
        let (bytes, entry) = encode(&rows);
        let manifest = manifest(vec![entry], &rows);
        let parts = Memory(vec![bytes]);
        for (row, (location, key)) in rows.iter().zip(answers(&manifest, &parts).unwrap()) {
            let start = usize::try_from(location.offset).unwrap();
            prop_assert_eq!(&parts.0[0][start..start + row.image.len()], &row.image[..]);
            prop_assert_eq!((key, location.label), (row.key.clone(), row.label));
            let entry_points = location.entry_points.as_ref().map(|found| found.as_ref().to_vec());
            prop_assert_eq!(entry_points, row.entry_points.clone());
        }
    }
}

#[test]
fn a_manifest_reads_back_equal() {
    let (_, mut manifest) = small();
    manifest.provenance.time = Some("2026-01-31T23:59:59.25Z".to_owned());
    manifest.provenance.recipe = Some("resized to 256 pixels".to_owned());
    assert_eq!(Manifest::from_json(manifest.to_json().as_bytes()).unwrap(), manifest);
}

#[test]
fn any_flipped_bit_and_any_cut_of_a_manifest_is_an_error() {
    let (_, manifest) = small();
    let text = manifest.to_json().into_bytes();
    for byte in 0..text.len() {
        for bit in 0..8 {
            let mut flipped = text.clone();
            flipped[byte] ^= 1 << bit;
            Manifest::from_json(&flipped).unwrap_err();
        }
        Manifest::from_json(&text[..byte]).unwrap_err();
    }
}

#[test]
fn a_manifest_of_another_version_is_refused_by_its_number() {
    let (_, manifest) = small();
    for version in [0, 1, 2, 4, u32::MAX] {
        let other = Manifest { version, ..manifest.clone() };
        let error = Manifest::from_json(other.to_json().as_bytes()).unwrap_err();
        assert!(matches!(error, DatasetError::Version { version: found } if found == version));
        assert_eq!(error.cause(), "dataset_version");
        assert!(error.remedy().is_some());
    }
    // What versions 1 and 2 lacked: the version alone decides, not whether the rest parses.
    let head = br#"{"format": "meetpoint-dataset", "version": 1}"#;
    let error = Manifest::from_json(head).unwrap_err();
    assert!(matches!(error, DatasetError::Version { version: 1 }), "{error}");
}

#[test]
fn a_manifest_without_a_member_is_refused_by_its_name() {
    let (_, manifest) = small();
    for member in ["content", "columns", "samples", "labels", "parts", "stored", "provenance"] {
        let mut value = serde_json::to_value(&manifest).unwrap();
        value.as_object_mut().unwrap().remove(member).unwrap();
        let text = serde_json::to_string_pretty(&value).unwrap();
        let body = text.strip_suffix("\n}").unwrap();
        let sha256 = Sha256::digest(body.as_bytes());
        let digits: String = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("{body},\n  \"self_sha256\": \"{digits}\"\n}}\n");
        let error = Manifest::from_json(text.as_bytes()).unwrap_err();
        let DatasetError::Manifest { problem } = error else { panic!("{error}") };
        assert!(problem.contains(&format!("`{member}`")), "{problem}");
    }
}

#[test]
fn a_false_manifest_is_an_error_with_its_position() {
    let (_, manifest) = small();
    let error = |change: &dyn Fn(&mut Manifest)| {
        let mut lying = manifest.clone();
        change(&mut lying);
        Manifest::from_json(lying.to_json().as_bytes()).unwrap_err().to_string()
    };
    let part = |change: &dyn Fn(&mut PartEntry)| error(&|lying| change(&mut lying.parts[0]));
    let stored =
        |change: &dyn Fn(&mut Stored)| error(&|lying| change(lying.stored.as_mut().unwrap()));
    for (found, words) in [
        (error(&|lying| lying.format = "other".into()), "format is \"other\""),
        (error(&|lying| lying.provenance.time = Some("today".into())), "a time in UTC"),
        (error(&|lying| lying.content.kind = ContentKind::None), "no content"),
        (error(&|lying| lying.stored = None), "missing member `stored`"),
        (stored(&|stored| stored.converted = 1), "the form is jpeg"),
        (stored(&|stored| stored.rewritten = 6), "stored.rewritten is 6 of 5"),
        (stored(&|stored| stored.transcoded = 1), "stored.transcoded is 1 of 0"),
        (stored(&|stored| stored.entry_points.bytes = 1), "stored.entry_points names"),
        (stored(&|stored| stored.entry_points.spacing = None), "stored.entry_points names"),
        (error(&|lying| lying.samples += 1), "samples is 6, the parts add up to 5"),
        (error(&|lying| lying.image_bytes = 1 << 40), "image_bytes is"),
        (error(&|lying| lying.image_bytes_max = 1 << 40), "image_bytes_max is"),
        (error(&|lying| lying.labels[1] = "a".into()), "label \"a\""),
        (error(&|lying| lying.parts.push(lying.parts[0].clone())), "listed twice"),
        (part(&|part| part.samples = u64::MAX), "samples is"),
        (part(&|part| part.samples = 0), "no samples"),
        (part(&|part| part.file = "../part".into()), "plain file name"),
        (part(&|part| part.file = "/etc/passwd".into()), "plain file name"),
        (part(&|part| part.file = "dataset.json".into()), "plain file name"),
        (part(&|part| part.file = String::new()), "plain file name"),
        (part(&|part| part.sha256 = "abc".into()), "sha256 of part"),
    ] {
        assert!(found.contains(words), "{found:?} does not say {words:?}");
    }
}

/// The text of a manifest with its checksum updated.
fn signed(text: &str) -> String {
    use sha2::Digest;
    let (body, _) = text.rsplit_once(",\n  \"self_sha256\"").unwrap();
    let digest = sha2::Sha256::digest(body.as_bytes());
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{body},\n  \"self_sha256\": \"{digits}\"\n}}\n")
}

#[test]
fn a_manifest_with_an_unknown_member_names_it_with_its_line() {
    let (_, manifest) = small();
    let text = manifest.to_json().replacen("  \"version\"", "  \"extra\": 1,\n  \"version\"", 1);
    let error = Manifest::from_json(signed(&text).as_bytes()).unwrap_err().to_string();
    assert!(error.contains("unknown field `extra`") && error.contains("line 3"), "{error}");
}

#[test]
fn a_manifest_that_is_no_json_names_line_and_column() {
    let error = Manifest::from_json(b"{\n  \"format\": oops\n}").unwrap_err().to_string();
    assert!(error.contains("line 2 column"), "{error}");
}

#[test]
fn the_spacing_of_entry_points_is_a_word_or_a_number_above_zero() {
    let (_, mut manifest) = small();
    let stored = manifest.stored.as_mut().unwrap();
    stored.form = Form::Compact;
    stored.entry_points.spacing = Some(EntryPointSpacing::Mcus(8));
    let text = manifest.to_json();
    assert!(text.contains("\"form\": \"compact\"") && text.contains("\"spacing\": 8"), "{text}");
    assert_eq!(Manifest::from_json(text.as_bytes()).unwrap(), manifest);
    for wrong in ["0", "65536", "\"rows\"", "1.5"] {
        let text = text.replacen("\"spacing\": 8", &format!("\"spacing\": {wrong}"), 1);
        let error = Manifest::from_json(signed(&text).as_bytes()).unwrap_err().to_string();
        assert!(error.contains("spacing") || error.contains("untagged"), "{wrong}: {error}");
    }
}

#[test]
fn entry_points_are_retained_on_demand_and_within_their_limit() {
    let rows: Vec<Row> = (0..700).map(row).collect();
    let (bytes, entry) = encode(&rows);
    let (manifest, parts) = (manifest(vec![entry], &rows), Memory(vec![bytes]));
    let index = Index::open(manifest, &parts).unwrap();
    let found = |index: &Index| -> Vec<bool> {
        let locate = |sample| index.locate(sample, &parts).unwrap().entry_points.is_some();
        (0..700).map(locate).collect()
    };
    assert!(found(&index).iter().all(|found| !found), "nobody has asked for them");
    assert_eq!(index.entry_points_bytes(), 0);
    // Room for the first record batch alone, whose table has been read without them.
    index.keep_entry_points(6000);
    let kept = found(&index);
    let expected: Vec<bool> =
        rows.iter().enumerate().map(|(i, row)| i < 256 && row.entry_points.is_some()).collect();
    assert_eq!(kept, expected);
    assert!((1..=6000).contains(&index.entry_points_bytes()), "{}", index.entry_points_bytes());
}

/// Parts in memory that count their reads.
struct Counting<'a> {
    parts: &'a Memory,
    reads: std::cell::Cell<u64>,
}

impl PartBytes for Counting<'_> {
    fn part_bytes(&self, part: usize) -> std::io::Result<u64> {
        self.parts.part_bytes(part)
    }

    fn read_exact_at(&self, part: usize, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        self.reads.set(self.reads.get() + 1);
        self.parts.read_exact_at(part, offset, into)
    }
}

#[test]
fn opening_is_one_read_a_part_and_entry_points_cost_no_read() {
    let rows: Vec<Row> = (0..700).map(row).collect();
    let (bytes, entry) = encode(&rows);
    let (manifest, memory) = (manifest(vec![entry], &rows), Memory(vec![bytes]));
    for granted in [0, 1 << 30] {
        let parts = Counting { parts: &memory, reads: std::cell::Cell::new(0) };
        let index = Index::open(manifest.clone(), &parts).unwrap();
        assert_eq!(parts.reads.get(), 1, "the end of the file, with the footer");
        index.keep_entry_points(granted);
        for turn in 0..1400 {
            // Every sample twice, out of order: 37 and 700 have no common divisor.
            index.locate(turn * 37 % 700, &parts).unwrap();
        }
        // Three record batches: their message, the bytes before the images, and the bytes after
        // them.
        assert_eq!(parts.reads.get(), 1 + 3 * 3, "{granted} bytes granted");
    }
}

#[test]
fn a_footer_that_one_read_does_not_hold_takes_a_second_one() {
    let few = |index| Row { key: format!("{index}"), image: vec![1], ..Row::default() };
    let rows: Vec<Row> = (0..200 * 256).map(few).collect();
    let (bytes, entry) = encode(&rows);
    let (manifest, memory) = (manifest(vec![entry], &rows), Memory(vec![bytes]));
    let parts = Counting { parts: &memory, reads: std::cell::Cell::new(0) };
    let index = Index::open(manifest.clone(), &parts).unwrap();
    assert_eq!((parts.reads.get(), index.record_batches()), (2, 200));
    assert_eq!(index.keys(199, &parts).unwrap()[255], "51199");
    let mut damaged = memory.0[0].clone();
    let place = damaged.len() - 5000;
    damaged[place] ^= 1;
    let error = Index::open(manifest, &Memory(vec![damaged])).unwrap_err().to_string();
    assert!(error.contains("checksum"), "{error}");
}

#[test]
fn the_keys_of_a_record_batch_come_with_one_read() {
    let rows: Vec<Row> = (0..300).map(row).collect();
    let (bytes, entry) = encode(&rows);
    let (manifest, parts) = (manifest(vec![entry], &rows), Memory(vec![bytes]));
    let index = Index::open(manifest, &parts).unwrap();
    let batches: Vec<_> =
        (0..index.record_batches()).map(|b| index.keyed_rows(b, &parts).unwrap()).collect();
    assert_eq!(batches.iter().map(|batch| batch.first_sample).collect::<Vec<_>>(), [0, 256]);
    let keys: Vec<_> = batches.into_iter().flat_map(|batch| batch.keys).collect();
    assert_eq!(keys, rows.iter().map(|row| row.key.clone()).collect::<Vec<_>>());
}

#[test]
fn a_part_of_another_dataset_is_an_error() {
    let (parts, mut manifest) = small();
    manifest.parts[0].samples = 6;
    let error = answers(&manifest, &parts).unwrap_err().to_string();
    assert!(error.contains("5 rows, dataset.json says 6"), "{error}");
    let (parts, mut manifest) = small();
    manifest.labels.truncate(1);
    let error = answers(&manifest, &parts).unwrap_err().to_string();
    assert!(error.contains("label 2, dataset.json names 1 labels"), "{error}");
    let (parts, mut manifest) = small();
    manifest.image_bytes_max = 1;
    let error = answers(&manifest, &parts).unwrap_err().to_string();
    assert!(error.contains("dataset.json says at most 1"), "{error}");
}
