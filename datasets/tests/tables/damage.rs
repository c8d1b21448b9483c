//! Damaged files give errors or different samples, never a panic or more memory than stated.

use crate::memory::most;
use crate::support::{SOURCES, copy, options, read, recognised, tables};
use meetpoint_datasets::store::StorePath;
use meetpoint_diagnose::{Diagnose, Surface};
use proptest::prelude::*;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Maximum bytes held while one of the small files is read: read buffers of 1 MiB each, and
/// decompressed pages and samples of some kilobytes.
const HELD_MAX: usize = 24 << 20;

fn error_of(path: &Path, name: &str, values: &serde_json::Value) -> String {
    let (_, _, open) = SOURCES.iter().find(|(known, _, _)| *known == name).unwrap();
    let result = open(&StorePath::local(path), &options(values)).and_then(read);
    match result {
        Ok(got) => panic!("{}: {} samples", path.display(), got.items.len()),
        Err(error) => error.in_full(Surface::CommandLine),
    }
}

/// A copy of a golden file or folder.
fn copied(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(Path::new(name).file_name().unwrap());
    let from = tables().join(name);
    copy(&from, &path);
    for suffix in ["offsets", "keys", "index"] {
        let side = format!("{}.{suffix}", from.display());
        if Path::new(&side).exists() {
            copy(Path::new(&side), Path::new(&format!("{}.{suffix}", path.display())));
        }
    }
    (folder, path)
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

const FILES: [(&str, &str); 12] = [
    ("parquet/none-1.0.parquet", "parquet"),
    ("parquet/zstd-2.0.parquet", "parquet"),
    ("parquet/snappy-1.0.parquet", "parquet"),
    ("hub/double.parquet", "parquet"),
    ("arrow/stream.arrow", "arrow"),
    ("arrow/lz4.feather", "arrow"),
    ("arrow/uncompressed.feather", "arrow"),
    ("tfrecord/photos-train.tfrecord-00000-of-00001", "tfrecord"),
    ("tfrecord/photos-train.tfrecord.gz", "tfrecord"),
    ("datadings/photos.msgpack", "datadings"),
    ("datadings/legacy.msgpack", "datadings"),
    ("ffcv/photos.beton", "ffcv"),
];

#[test]
fn a_file_that_is_cut_off_is_an_error_that_names_it() {
    for (name, source) in FILES {
        let (_folder, path) = copied(name);
        let length = std::fs::metadata(&path).unwrap().len() as usize;
        // A stream of records may end after any record.
        for left in [length - 1, length / 2 + 1, 5] {
            let (_folder, path) = copied(name);
            change(&path, |bytes| bytes.truncate(left));
            let error = error_of(&path, source, &json!({}));
            let file = path.file_name().unwrap().to_str().unwrap();
            assert!(error.contains(file), "{name} at {left}: {error}");
        }
    }
}

#[test]
fn a_flipped_bit_in_checked_bytes_is_seen() {
    let bits = [
        ("tfrecord/photos-train.tfrecord-00000-of-00001", "tfrecord", 200, "checksum"),
        ("tfrecord/photos-train.tfrecord-00000-of-00001", "tfrecord", 3, "checksum"),
        ("parquet/none-1.0.parquet", "parquet", 300, "CRC"),
    ];
    for (name, source, at, words) in bits {
        let (_folder, path) = copied(name);
        change(&path, |bytes| bytes[at] ^= 1);
        let error = error_of(&path, source, &json!({}));
        assert!(error.contains(words), "{name}: {error}");
    }
    let (_folder, path) = copied("mds-plain");
    let shard = path.join("shard.00000.mds");
    change(&shard, |bytes| *bytes.last_mut().unwrap() ^= 1);
    let error = error_of(&path, "mds", &json!({}));
    assert!(error.contains("sha1") && error.contains("shard.00000.mds"), "{error}");
}

#[test]
fn what_is_not_read_is_refused_by_name() {
    let error = error_of(&tables().join("arrow/zstd.feather"), "arrow", &json!({}));
    assert!(error.contains("ZSTD") && error.contains("LZ4"), "{error}");
    let error = error_of(&tables().join("saved"), "arrow", &json!({}));
    assert!(error.contains("train, test") && error.contains("--split"), "{error}");
    let error = error_of(&tables().join("hub/data"), "parquet", &json!({ "split": "dev" }));
    assert!(error.contains("\"dev\"") && error.contains("test, train"), "{error}");
    for (from, to, words) in [
        ("\"jpeg\"", "\"pkl\"", "execute code"),
        ("\"jpeg\"", "\"heic\"", "\"heic\""),
        ("\"version\": 2", "\"version\": 3", "version 3"),
        ("shard.00000.mds", "../shard.00000.mds", "plain file name"),
    ] {
        let (_folder, path) = copied("mds-plain");
        let index = path.join("index.json");
        let text = std::fs::read_to_string(&index).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(&index, text.replace(from, to)).unwrap();
        let error = error_of(&path, "mds", &json!({}));
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn files_of_different_datasets_are_not_read_as_one() {
    let folder = tempfile::tempdir().unwrap();
    copy(&tables().join("parquet/named.parquet"), &folder.path().join("part-0.parquet"));
    copy(&tables().join("parquet/bare.parquet"), &folder.path().join("part-1.parquet"));
    let error = error_of(folder.path(), "parquet", &json!({}));
    assert!(error.contains("part-1.parquet") && error.contains("first file"), "{error}");
}

/// A label that no dataset can store is an error of its row only.
#[test]
fn a_label_out_of_range_makes_its_row_unreadable() {
    let (_, open) = recognised(&tables().join("parquet/bare.parquet"))[0];
    let fine = options(&json!({ "label": "a" }));
    let got = open(&StorePath::local(tables().join("parquet/bare.parquet")), &fine)
        .and_then(read)
        .unwrap();
    assert_eq!(got.items.iter().map(|item| item.label).collect::<Vec<_>>(), [Some(1), Some(2)]);
    let labels = options(&json!({ "label": "image/object/class/label" }));
    let path = tables().join("tfrecord/photos-train.tfrecord-00000-of-00001");
    let (_, open) = recognised(&path)[0];
    let error = open(&StorePath::local(&path), &labels).err().unwrap().to_string();
    assert!(error.contains("labels are integers or texts"), "{error}");
    let path = tables().join("mds-plain");
    let (_, open) = recognised(&path)[0];
    let typed = options(&json!({ "label": "small" }));
    let got = open(&StorePath::local(&path), &typed).and_then(read).unwrap();
    assert_eq!(got.items[0].label, Some(200));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("signed.arrow");
    let bytes = [Some(&b"a"[..]), Some(b"b"), Some(b"c")];
    let batch = arrow_array::RecordBatch::try_from_iter([
        ("data", std::sync::Arc::new(arrow_array::BinaryArray::from(bytes.to_vec())) as _),
        ("label", std::sync::Arc::new(arrow_array::Int64Array::from(vec![3, -1, 1 << 40])) as _),
    ])
    .unwrap();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let (_, open) = recognised(&path)[0];
    let got = open(&StorePath::local(&path), &options(&json!({}))).and_then(read).unwrap();
    assert_eq!((got.items.len(), got.items[0].label), (1, Some(3)));
    assert!(got.unreadable.iter().all(|line| line.contains("--label")), "{:?}", got.unreadable);
}

#[test]
fn an_index_of_another_file_is_seen() {
    let (_folder, path) = copied("datadings/photos.msgpack");
    let keys = format!("{}.keys", path.display());
    change(Path::new(&keys), |bytes| {
        let at = bytes.windows(3).position(|window| window == b"c/3").unwrap();
        bytes[at + 2] = b'8';
    });
    let error = error_of(&path, "datadings", &json!({}));
    assert!(error.contains("c/3.jpg") && error.contains("c/8.jpg"), "{error}");
    let offsets = format!("{}.offsets", path.display());
    change(Path::new(&offsets), |bytes| bytes.truncate(40));
    let error = error_of(&path, "datadings", &json!({}));
    assert!(error.contains("5 keys for 4 samples"), "{error}");
}

/// A folder of pictures may contain dangling links.
#[test]
fn a_broken_link_in_a_folder_does_not_stop_detection() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("a.parquet")).unwrap();
    assert!(recognised(folder.path()).is_empty());
    copy(&tables().join("parquet/bare.parquet"), &folder.path().join("b.parquet"));
    assert_eq!(recognised(folder.path())[0].0, "parquet");
}

#[test]
fn empty_files_are_of_no_kind() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.parquet", "a.arrow", "a.tfrecord", "a.msgpack", "a.beton"] {
        let path = folder.path().join(name);
        std::fs::write(&path, b"").unwrap();
        assert!(recognised(&path).is_empty(), "{name}");
    }
}

/// Opens and reads a path as this kind of source; a panic fails the test.
fn try_read(path: &Path, source: &str) -> usize {
    let (_, _, open) = SOURCES.iter().find(|(known, _, _)| *known == source).unwrap();
    let run = || open(&StorePath::local(path), &options(&json!({}))).and_then(read).is_ok();
    let (_, held) = most(run);
    held
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Changes bytes anywhere in the file, including lengths and offsets.
    #[test]
    fn damaged_files_take_no_more_memory_than_stated(
        places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        for (name, source) in FILES {
            let (_folder, path) = copied(name);
            change(&path, |bytes| {
                for (place, byte) in &places {
                    let place = place.index(bytes.len());
                    bytes[place] = *byte;
                }
                if let Some(cut) = cut {
                    bytes.truncate(cut.index(bytes.len()));
                }
            });
            let held = try_read(&path, source);
            prop_assert!(held <= HELD_MAX, "{name}: {held} bytes");
        }
    }

    #[test]
    fn damaged_indices_take_no_more_memory_than_stated(
        places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        which in 0usize..6,
    ) {
        let (name, side) = [
            ("mds-plain", "index.json"),
            ("mds-zstd", "shard.00000.mds.zstd"),
            ("saved/train", "state.json"),
            ("datadings", "photos.msgpack.offsets"),
            ("mds-gz", "index.json"),
            ("mds-plain", "shard.00000.mds"),
        ][which];
        let (_folder, path) = copied(name);
        if side.ends_with(".mds") {
            // Without the checksums, so that damaged data are parsed.
            let index = path.join("index.json");
            let text = std::fs::read_to_string(&index).unwrap();
            let mut list: serde_json::Value = serde_json::from_str(&text).unwrap();
            for shard in list["shards"].as_array_mut().unwrap() {
                shard["raw_data"]["hashes"] = json!({});
            }
            std::fs::write(&index, list.to_string()).unwrap();
        }
        change(&path.join(side), |bytes| {
            for (place, byte) in &places {
                let place = place.index(bytes.len());
                bytes[place] = *byte;
            }
        });
        let (path, source) = match name {
            "saved/train" => (path, "arrow"),
            "datadings" => (path.join("photos.msgpack"), "datadings"),
            _ => (path, "mds"),
        };
        let held = try_read(&path, source);
        prop_assert!(held <= HELD_MAX, "{name}: {held} bytes");
    }
}

#[test]
fn a_long_row_of_parquet_is_held_twice_and_not_more() {
    use arrow_array::{ArrayRef, BinaryArray, RecordBatch};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::properties::WriterProperties;
    const LONG: usize = 32 << 20;
    let folder = tempfile::tempdir().unwrap();
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
        let path = folder.path().join("long.parquet");
        let content: ArrayRef =
            std::sync::Arc::new(BinaryArray::from_iter_values([vec![7_u8; LONG]]));
        let batch = RecordBatch::try_from_iter([("bytes", content)]).unwrap();
        let properties = WriterProperties::builder().set_compression(compression);
        let properties = properties.set_dictionary_enabled(false).build();
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        drop(batch);
        let (_, _, open) = SOURCES.iter().find(|(known, _, _)| *known == "parquet").unwrap();
        let (length, held) = most(|| {
            let mut source =
                open(&StorePath::local(&path), &options(&json!({ "content": "bytes" }))).unwrap();
            match source.next().unwrap() {
                Some(meetpoint_datasets::source::Entry::Sample(item)) => item.content.bytes(),
                other => panic!("{other:?}"),
            }
        });
        assert_eq!(length, LONG as u64);
        assert!(held < LONG * 9 / 4, "{compression}: {held} bytes");
    }
}
