//! Parts and manifests, held against the Arrow implementation and against damage of every kind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type};
use meetpoint_format::checksum::crc32c;
use meetpoint_format::dataset::{
    DatasetError, FinishedPart, Index, Manifest, PartBytes, PartEncoder, PartEntry, PartLayout,
    Provenance, RecordBatchMetadata, Row, SampleLocation, part_name, schema,
};
use proptest::prelude::*;
use std::io::{Cursor, Error, ErrorKind};

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
    Row { key: format!("folder é/{index}.jpg"), image, label }
}

fn encode(rows: &[Row]) -> (Vec<u8>, PartEntry) {
    let mut encoder = PartEncoder::new(Vec::new()).unwrap();
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
    Manifest {
        format: schema::FORMAT.to_owned(),
        version: schema::VERSION,
        samples: parts.iter().map(|part| part.samples).sum(),
        image_bytes: lengths.clone().sum(),
        image_bytes_max: lengths.max().unwrap_or(0),
        labels: ["a", "b", "c"].map(str::to_owned).to_vec(),
        parts,
        provenance: Provenance { tool: "test".into(), source: "none".into(), skipped: 0 },
    }
}

/// All that an index tells of its samples.
fn answers(
    manifest: &Manifest,
    parts: &Memory,
) -> Result<Vec<(SampleLocation, String)>, DatasetError> {
    let index = Index::open(manifest.clone(), parts)?;
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
    assert_eq!(*reader.schema(), schema::schema());
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
            read.push(Row { key: keys.value(index).to_owned(), image, label });
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
    for (key, image, label, words) in [
        ("", vec![1], None, "key is empty"),
        (long.as_str(), vec![1], None, "4097 bytes"),
        ("k", vec![], None, "no bytes"),
        ("k", vec![1], Some(-1), "negative"),
    ] {
        let mut encoder = PartEncoder::new(Vec::new()).unwrap();
        let error = encoder.push(Row { key: key.into(), image, label }).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_record_batch_ends_before_it_gets_too_long() {
    let half = usize::try_from(schema::RECORD_BATCH_BYTES / 2).unwrap();
    let image = |bytes: usize| Row { key: bytes.to_string(), image: vec![1; bytes], label: None };
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
            let mut encoder = PartEncoder::new(Full(room))?;
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
        // And when the manifest tells the same lie.
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

/// Reads all of a record batch's tables without heeding its checksum.
fn read_unchecked(parts: &Memory, manifest: &Manifest) {
    let layout = PartLayout::read(0, &manifest.parts[0], parts).unwrap();
    for place in &layout.record_batches {
        let Ok(metadata) = RecordBatchMetadata::read(0, "part", place, parts) else { continue };
        let _ = metadata.rows();
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
            ("[a-z/é]{1,20}", proptest::collection::vec(any::<u8>(), 1..100), 0_i32..4),
            1..40,
        ),
    ) {
        let rows: Vec<Row> = rows
            .into_iter()
            .map(|(key, image, label)| Row { key, image, label: (label < 3).then_some(label) })
            .collect();
        let (bytes, entry) = encode(&rows);
        let manifest = manifest(vec![entry], &rows);
        let parts = Memory(vec![bytes]);
        for (row, (location, key)) in rows.iter().zip(answers(&manifest, &parts).unwrap()) {
            let start = usize::try_from(location.offset).unwrap();
            prop_assert_eq!(&parts.0[0][start..start + row.image.len()], &row.image[..]);
            prop_assert_eq!((key, location.label), (row.key.clone(), row.label));
        }
    }
}

#[test]
fn a_manifest_reads_back_equal() {
    let (_, manifest) = small();
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
fn a_manifest_that_lies_is_an_error_that_says_where() {
    let (_, manifest) = small();
    let error = |change: &dyn Fn(&mut Manifest)| {
        let mut lying = manifest.clone();
        change(&mut lying);
        Manifest::from_json(lying.to_json().as_bytes()).unwrap_err().to_string()
    };
    let part = |change: &dyn Fn(&mut PartEntry)| error(&|lying| change(&mut lying.parts[0]));
    for (found, words) in [
        (error(&|lying| lying.format = "other".into()), "format is \"other\""),
        (error(&|lying| lying.version = 2), "version is 2, this program reads version 1"),
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

#[test]
fn a_manifest_with_an_unknown_member_names_it_with_its_line() {
    use sha2::Digest;
    let (_, manifest) = small();
    let text = manifest.to_json();
    let (body, _) = text.rsplit_once(",\n  \"self_sha256\"").unwrap();
    let body = body.replacen("  \"version\"", "  \"extra\": 1,\n  \"version\"", 1);
    let digest = sha2::Sha256::digest(body.as_bytes());
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!("{body},\n  \"self_sha256\": \"{digits}\"\n}}\n");
    let error = Manifest::from_json(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("unknown field `extra`") && error.contains("line 3"), "{error}");
}

#[test]
fn a_manifest_that_is_no_json_names_line_and_column() {
    let error = Manifest::from_json(b"{\n  \"format\": oops\n}").unwrap_err().to_string();
    assert!(error.contains("line 2 column"), "{error}");
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
