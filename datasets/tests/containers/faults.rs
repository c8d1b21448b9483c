//! Archives and tables that are damaged, truncated or hostile: an error that names the location, or
//! an unchanged sample; never a panic.

use super::allocations::largest;
use super::golden::{bytes_of, golden, hex};
use meetpoint_datasets::source::{
    Entry, Item, OpenSource as Open, SourceOptions, cifar, idx, open, table, tar, zip,
};
use meetpoint_datasets::store::StorePath;
use meetpoint_diagnose::{Diagnose, Surface};
use proptest::prelude::*;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The result of a source: samples, left-out entries with their reasons, and the final error.
#[derive(Debug, Default)]
struct Outcome {
    items: Vec<Item>,
    left_out: Vec<String>,
    noted: Vec<String>,
    error: Option<String>,
}

/// Bytes of the largest single allocation that any file may cause: the window of a zstd frame,
/// which
/// its ring buffer rounds up to a power of two.
const ALLOCATION_BYTES_MAX: usize = (256 << 20) + (1 << 10);

fn read(path: &Path, open: Open) -> Outcome {
    let outcome = read_all(path, open);
    assert!(largest() <= ALLOCATION_BYTES_MAX, "{} bytes in one piece", largest());
    outcome
}

fn read_all(path: &Path, open: Open) -> Outcome {
    let mut outcome = Outcome::default();
    let mut source = match open(&StorePath::local(path), &SourceOptions::default()) {
        Ok(source) => source,
        Err(error) => {
            outcome.error = Some(error.in_full(Surface::CommandLine));
            return outcome;
        }
    };
    loop {
        match source.next() {
            Ok(Some(Entry::Sample(item))) => outcome.items.push(*item),
            Ok(Some(Entry::Unreadable(left_out))) => {
                outcome.left_out.push(format!("{}: {}", left_out.path, left_out.reason));
            }
            Ok(Some(Entry::NotASample(left_out))) => {
                outcome.noted.push(left_out.reason.to_string());
            }
            Ok(Some(Entry::Ignored)) => {}
            Ok(None) => return outcome,
            Err(error) => {
                outcome.error = Some(error.in_full(Surface::CommandLine));
                return outcome;
            }
        }
    }
}

fn error_of(path: &Path, open: Open) -> String {
    let outcome = read(path, open);
    outcome.error.clone().unwrap_or_else(|| panic!("no error: {outcome:?}"))
}

fn file(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// A member with any name, type and claimed length.
fn member(name: &[u8], kind: u8, claimed: u64, data: &[u8]) -> Vec<u8> {
    let mut header = ::tar::Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.set_entry_type(::tar::EntryType::new(kind));
    header.set_mode(0o644);
    header.set_size(claimed);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(data);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn archive(members: &[(&[u8], u8, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, kind, data) in members {
        bytes.extend(member(name, *kind, data.len() as u64, data));
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

#[test]
fn a_tar_file_that_was_cut_short_anywhere_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(golden("wds-000.tar")).unwrap();
    let end = whole.len() - whole.iter().rev().take_while(|byte| **byte == 0).count();
    let end = end.next_multiple_of(512);
    for bytes in (0..end + 512).step_by(331).chain([end, end + 511]) {
        let path = file(&folder, "a.tar", &whole[..bytes]);
        let error = error_of(&path, tar::open);
        assert!(error.contains("a.tar"), "{bytes}: {error}");
    }
    assert_eq!(read(&file(&folder, "a.tar", &whole[..end + 512]), tar::open).items.len(), 3);
}

#[test]
fn data_after_the_end_marker_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(golden("wds-000.tar")).unwrap();
    let path = file(&folder, "a.tar", &[whole.clone(), whole].concat());
    let error = error_of(&path, tar::open);
    assert!(error.contains("other data follow"), "{error}");
}

#[test]
fn names_that_lead_out_links_and_devices_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = archive(&[
        (b"a.jpg", b'0', b"picture"),
        (b"../b.jpg", b'0', b"picture"),
        (b"/c.jpg", b'0', b"picture"),
        (b"d\xff.jpg", b'0', b"picture"),
        (b"e.jpg", b'2', b""),
        (b"f.jpg", b'1', b""),
        (b"g.jpg", b'3', b""),
        (b"noextension", b'0', b"x"),
    ]);
    let outcome = read(&file(&folder, "a.tar", &bytes), tar::open);
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.items.len(), 1);
    assert_eq!(bytes_of(&outcome.items[0].content), b"picture");
    for word in ["leads out", "absolute", "d\\xFF.jpg", "e.jpg is a link", "f.jpg is a link"] {
        assert!(outcome.left_out.iter().any(|left_out| left_out.contains(word)), "{outcome:?}");
    }
    assert_eq!(outcome.left_out.len(), 5);
    assert_eq!(outcome.noted.len(), 2);
}

#[test]
fn a_length_that_the_archive_does_not_have_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for claimed in [4096, 1 << 40, u64::MAX / 2, u64::MAX] {
        let mut bytes = member(b"a.jpg", b'0', claimed, b"picture");
        bytes.resize(bytes.len() + 1024, 0);
        let error = error_of(&file(&folder, "a.tar", &bytes), tar::open);
        assert!(error.contains("a.jpg") && error.contains("truncated"), "{error}");
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&bytes).unwrap();
        let path = file(&folder, "a.tar.gz", &packed.finish().unwrap());
        let error = error_of(&path, tar::open);
        assert!(error.contains("a.jpg") || error.contains("truncated"), "{error}");
    }
}

#[test]
fn samples_that_are_torn_apart_or_doubled_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let torn = archive(&[(b"a.jpg", b'0', b"1"), (b"b.jpg", b'0', b"2"), (b"a.cls", b'0', b"3")]);
    let error = error_of(&file(&folder, "a.tar", &torn), tar::open);
    assert!(error.contains("a second time") && error.contains("--sort=name"), "{error}");
    let twice = archive(&[(b"a.jpg", b'0', b"1"), (b"a.JPG", b'0', b"2")]);
    let error = error_of(&file(&folder, "a.tar", &twice), tar::open);
    assert!(error.contains("occurs twice"), "{error}");
    let empty = file(&folder, "a.tar", &[0; 1024]);
    assert!(error_of(&empty, tar::open).contains("no samples"));
}

#[test]
fn a_value_of_another_type_is_an_error_that_names_its_sample() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = archive(&[
        (b"a.json", b'0', br#"{"x": {"y": [1, 2]}}"#),
        (b"b.json", b'0', br#"{"x": {"y": [1, "two"]}}"#),
    ]);
    let error = error_of(&file(&folder, "a.tar", &bytes), tar::open);
    for word in ["b.json", "field x: field y: in a list", "a text", "an integer"] {
        assert!(error.contains(word), "{error}");
    }
    let bytes = archive(&[
        (b"a.json", b'0', br#"{"x": 1}"#),
        (b"b.json", b'0', br#"{"x": 1"#),
        (b"c.json", b'0', br#"{"x": 0.5}"#),
    ]);
    let outcome = read(&file(&folder, "a.tar", &bytes), tar::open);
    assert_eq!((outcome.items.len(), outcome.error), (2, None));
    assert!(outcome.left_out[0].contains("invalid JSON"), "{:?}", outcome.left_out);
}

#[test]
fn keys_that_shards_share_get_the_name_of_their_shard() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = archive(&[(b"0.jpg", b'0', b"picture")]);
    file(&folder, "x-0.tar", &bytes);
    file(&folder, "x-1.tar", &bytes);
    let outcome = read(folder.path(), tar::open);
    let keys: Vec<&str> = outcome.items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!(keys, ["x-0/0", "x-1/0"]);
}

#[test]
fn a_zip_archive_that_was_cut_short_anywhere_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(golden("classes.zip")).unwrap();
    for bytes in (0..whole.len()).step_by(7) {
        let error = error_of(&file(&folder, "a.zip", &whole[..bytes]), zip::open);
        assert!(error.contains("a.zip"), "{bytes}: {error}");
    }
}

fn zipped(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut archive = rawzip::ZipArchiveWriter::new(&mut bytes);
    for (name, data) in members {
        let path = rawzip::path::EntryPath::verbatim(name.as_bytes());
        let (mut entry, config) = archive.new_file(path).start().unwrap();
        let mut writer = config.wrap(&mut entry);
        writer.write_all(data).unwrap();
        let (_, descriptor) = writer.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap();
    bytes
}

#[test]
fn harmful_members_of_a_zip_archive_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let twice = zipped(&[("a.jpg", b"1"), ("./a.jpg", b"2")]);
    let error = error_of(&file(&folder, "a.zip", &twice), zip::open);
    assert!(error.contains("occurs twice"), "{error}");
    let bytes = zipped(&[("a.jpg", b"picture"), ("../b.jpg", b"x"), ("/c.jpg", b"x")]);
    let outcome = read(&file(&folder, "a.zip", &bytes), zip::open);
    assert_eq!((outcome.items.len(), outcome.left_out.len()), (1, 2), "{outcome:?}");
    // The flag for encryption (APPNOTE 4.4.4, bit 0), in the directory.
    let mut bytes = zipped(&[("a.jpg", b"picture"), ("b.jpg", b"picture")]);
    let directory = bytes.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
    bytes[directory + 8] |= 1;
    let outcome = read(&file(&folder, "a.zip", &bytes), zip::open);
    assert_eq!(outcome.items.len(), 1, "{outcome:?}");
    assert!(outcome.left_out[0].contains("encrypted"), "{outcome:?}");
    let place = "a.zip, member a.jpg, at byte 0: it is encrypted";
    assert!(outcome.left_out[0].contains(place), "{outcome:?}");
    let none = zipped(&[("a.txt", b"text")]);
    assert!(error_of(&file(&folder, "a.zip", &none), zip::open).contains("no images"));
}

#[test]
fn a_zip_member_that_inflates_to_more_than_declared_is_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    let mut archive = rawzip::ZipArchiveWriter::new(&mut bytes);
    let builder = archive.new_file("bomb.jpg");
    let builder = builder.compression_method(rawzip::CompressionMethod::DEFLATE);
    let (mut entry, config) = builder.start().unwrap();
    let encoder = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::best());
    let mut writer = config.wrap(encoder);
    writer.write_all(&vec![0; 8 << 20]).unwrap();
    let (encoder, descriptor) = writer.finish().unwrap();
    encoder.finish().unwrap();
    entry.finish(descriptor).unwrap();
    archive.finish().unwrap();
    // Its length in the directory (APPNOTE 4.3.12, "uncompressed size").
    let directory = bytes.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
    bytes[directory + 24..directory + 28].copy_from_slice(&100_u32.to_le_bytes());
    let outcome = read(&file(&folder, "a.zip", &bytes), zip::open);
    assert_eq!((outcome.items.len(), outcome.left_out.len()), (0, 1), "{outcome:?}");
}

#[test]
fn a_table_names_the_row_that_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder, "a.jpg", b"picture");
    let cases: [(&str, &[u8], &str); 7] = [
        ("t.csv", b"file_name,x\na.jpg,1\na.jpg\n", "1 fields"),
        ("t.csv", b"file_name,x,x\na.jpg,1,2\n", "two columns"),
        ("t.csv", b"file_name\n\xff.jpg\n", "UTF-8"),
        ("t.csv", b"name\na.jpg\n", "--content"),
        ("t.csv", b"file_name\n", "no rows"),
        ("t.jsonl", b"{\"file_name\":\"a.jpg\",\"x\":1}\n{\"x\":[1]}\n", "row 2"),
        ("t.jsonl", b"{\"file_name\":\"a.jpg\"}\n[]\n", "line 2"),
    ];
    for (name, text, word) in cases {
        let error = error_of(&file(&folder, name, text), table::open);
        assert!(error.contains(name) && error.contains(word), "{error}");
    }
    let names = b"file_name,x\nnone.jpg,1\n../a.jpg,1\n/etc/passwd,1\n,1\na.jpg,2\n.,3\n";
    let outcome = read(&file(&folder, "t.csv", names), table::open);
    assert_eq!((outcome.items.len(), outcome.left_out.len()), (1, 5), "{outcome:?}");
    assert!(outcome.left_out[0].contains("row 1"), "{outcome:?}");
    let mut open_quote = b"file_name,x\na.jpg,\"".to_vec();
    open_quote.resize(17 << 20, b'x');
    let error = error_of(&file(&folder, "t.csv", &open_quote), table::open);
    assert!(error.contains("double quote"), "{error}");
}

#[test]
fn invalid_cifar_and_idx_files_are_errors_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut batch = vec![0; 3 * 3073];
    batch[3073] = 10;
    let outcome = read(&file(&folder, "data_batch_1.bin", &batch), cifar::open);
    assert_eq!((outcome.items.len(), outcome.left_out.len()), (2, 1), "{outcome:?}");
    let error = error_of(&file(&folder, "data_batch_1.bin", &batch[1..]), cifar::open);
    assert!(error.contains("truncated"), "{error}");
    let python = archive(&[(b"cifar-10-batches-py/data_batch_1", b'0', b"pickle")]);
    let error = error_of(&file(&folder, "cifar-10-python.tar", &python), cifar::open);
    assert!(error.contains("binary version"), "{error}");
    let name = "train-images-idx3-ubyte";
    let head = |kind: u8, count: u8| vec![0, 0, kind, 3, 0, 0, 0, count, 0, 0, 0, 1, 0, 0, 0, 2];
    let cases = [
        ([head(0x0d, 1), vec![0; 8]].concat(), "floats of 32 bits"),
        ([head(8, 2), vec![0; 3]].concat(), "its header says 2"),
        ([head(8, 1), vec![0; 3]].concat(), "continues"),
        ([vec![0, 0, 8, 3], vec![0xff; 12], vec![0; 9]].concat(), "pictures of"),
        (vec![0, 0, 8], "header"),
        (b"\x89PNG".to_vec(), "does not begin"),
    ];
    for (bytes, word) in cases {
        let error = error_of(&file(&folder, name, &bytes), idx::open);
        assert!(error.contains(name) && error.contains(word), "{error}");
    }
    file(&folder, "train-labels-idx1-ubyte", &[0, 0, 8, 1, 0, 0, 0, 2, 0, 0]);
    let error = error_of(&file(&folder, name, &[head(8, 1), vec![0; 2]].concat()), idx::open);
    assert!(error.contains("2 labels for 1"), "{error}");
}

/// The files that are changed at random, and whether a checksum protects the bytes of their
/// samples.
const CHANGED: [(&str, Open, bool); 8] = [
    ("wds-000.tar", tar::open, false),
    ("wds.tar.gz", tar::open, true),
    ("wds.tar.zst", tar::open, true),
    ("classes.zip", zip::open, true),
    ("cifar-10-binary.tar.gz", cifar::open, true),
    ("mnist/train-images-idx3-ubyte.gz", idx::open, true),
    ("table-csv/metadata.csv", table::open, false),
    ("table-jsonl/metadata.jsonl", table::open, false),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_file_gives_what_was_in_it_or_an_error(
        which in 0..CHANGED.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in proptest::option::weighted(0.3, any::<prop::sample::Index>()),
    ) {
        let (name, open, is_guarded) = CHANGED[which];
        let path = golden(name);
        let mut bytes = std::fs::read(&path).unwrap();
        let whole = read(&path, open);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let folder = tempfile::tempdir().unwrap();
        let changed = file(&folder, path.file_name().unwrap().to_str().unwrap(), &bytes);
        let outcome = read(&changed, open);
        if is_guarded && outcome.error.is_none() {
            let known: Vec<String> =
                whole.items.iter().map(|item| hex(&bytes_of(&item.content))).collect();
            for item in &outcome.items {
                prop_assert!(known.contains(&hex(&bytes_of(&item.content))), "{}", item.key);
            }
        }
    }
}

#[test]
fn a_damaged_file_of_a_recognised_kind_has_the_error_of_that_kind() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes, words) in [
        ("a.tar", vec![7; 1024], "not the header of a tar member"),
        ("a.tar.gz", vec![7; 1024], "not the header of a tar member"),
        ("empty.tar", Vec::new(), "without an end mark"),
        ("nothing.tar", vec![0; 1024], "no samples in it"),
        ("a.tfrecord", vec![7; 64], "the length of a record: checksum"),
        ("a.zip", vec![7; 64], "not a ZIP archive"),
        ("a.parquet", vec![7; 64], "truncated, damaged or of another kind"),
        ("a.jsonl", b"{".to_vec(), "a.jsonl"),
        ("a.beton", vec![7; 64], "a.beton"),
        ("a.msgpack", vec![7; 64], "has no index"),
    ] {
        let path = file(&folder, name, &bytes);
        let error = open(&path, None, &SourceOptions::default()).err().unwrap().to_string();
        assert!(error.contains(name) && error.contains(words), "{name}: {error}");
        assert!(!error.contains("cannot determine the format"), "{error}");
    }
}
