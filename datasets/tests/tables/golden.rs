//! Each source yields the data that the program wrote into the files.

use crate::support::{bytes_of, options, read, recognised, sample, tables};
use meetpoint_datasets::source::Content;
use meetpoint_datasets::store::StorePath;
use meetpoint_diagnose::{Diagnose, Surface};
use serde_json::Value;

/// The expected output of each source, from the scripts make_b.py and make_ffcv.py.
fn expected() -> serde_json::Map<String, Value> {
    let read = |name: &str| -> serde_json::Map<String, Value> {
        let text = std::fs::read_to_string(tables().join(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let mut all = read("expected.json");
    all.extend(read("../ffcv/expected.json"));
    all
}

#[test]
fn each_source_yields_what_was_written() {
    let expected = expected();
    assert!(expected.len() > 25, "{}", expected.len());
    for (name, wanted) in &expected {
        let path = tables().join(wanted["path"].as_str().unwrap());
        let found = recognised(&path);
        let [(_, open)] = found[..] else { panic!("{name}: recognised as {found:?}") };
        let source = open(&StorePath::local(&path), &options(&wanted["options"]));
        let source = source.unwrap_or_else(|error| panic!("{name}: {error}"));
        let samples = source.size().samples;
        let got = read(source).unwrap_or_else(|error| panic!("{name}: {error}"));
        let rows = wanted["samples"].as_array().unwrap();
        for (item, wanted) in got.items.iter().zip(rows) {
            let mut got = sample(item);
            if let Some(pixels) = wanted["content"].as_str().unwrap().strip_prefix("pixels:") {
                got["content"] = format!("pixels:{}", decoded(&bytes_of(&item.content))).into();
                assert!(!pixels.is_empty());
            }
            assert_eq!(got, *wanted, "{name}: {}", item.origin);
        }
        assert_eq!(got.items.len(), rows.len(), "{name}: {:?}", got.unreadable);
        if let Some(samples) = samples {
            assert_eq!(samples as usize, rows.len() + got.unreadable.len(), "{name}");
        }
        assert_eq!(serde_json::to_value(&got.labels).unwrap(), wanted["labels"], "{name}");
        assert_eq!(serde_json::to_value(got.kind).unwrap(), wanted["kind"], "{name}");
        assert_eq!(got.name, wanted["name"], "{name}");
    }
}

fn decoded(png: &[u8]) -> String {
    let pixels = image::load_from_memory(png).unwrap().into_rgb8().into_raw();
    pixels.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes that a file contains unchanged are returned as a range of it.
#[test]
fn uncompressed_bytes_are_ranges() {
    let ranges = [
        "arrow/stream.arrow",
        "arrow/uncompressed.feather",
        "saved/train",
        "tfrecord/photos-train.tfrecord-00000-of-00001",
        "mds-plain",
        "datadings/photos.msgpack",
    ];
    for name in ranges {
        let path = tables().join(name);
        let (_, open) = recognised(&path)[0];
        let got = read(open(&StorePath::local(&path), &Default::default()).unwrap()).unwrap();
        let is_range = |content: &Content| matches!(content, Content::Range { .. });
        assert!(got.items.iter().all(|item| is_range(&item.content)), "{name}");
    }
}

#[test]
fn pictures_that_were_stored_as_pixels_are_unchanged() {
    let path = tables().join("mds-plain");
    let (_, open) = recognised(&path)[0];
    let options = options(&serde_json::json!({ "content": "thumb", "columns": "" }));
    let options = meetpoint_datasets::source::SourceOptions { columns: Some(vec![]), ..options };
    let got = read(open(&StorePath::local(&path), &options).unwrap()).unwrap();
    for (index, item) in got.items.iter().enumerate() {
        let wanted: String = (0..12).map(|pixel| format!("{:02x}", pixel + index)).collect();
        assert_eq!(decoded(&bytes_of(&item.content)), wanted);
    }
}

/// The only dataset with an MD5 list and key hashes of another program.
#[test]
fn the_checksums_of_datadings_are_right_and_damage_is_seen() {
    use meetpoint_datasets::source::datadings::verify;
    let folder = tempfile::tempdir().unwrap();
    crate::support::copy(&tables().join("datadings"), folder.path());
    let path = folder.path().join("photos.msgpack");
    let verified = verify(&StorePath::local(&path)).unwrap();
    assert_eq!((verified.files, verified.keys), (5, 5));
    for (name, at, words) in [
        ("photos.msgpack", 100, "MD5"),
        ("photos.msgpack.filter", 33, "MD5"),
        ("photos.msgpack.key_hashes", 9, "MD5"),
    ] {
        let file = folder.path().join(name);
        let sound = std::fs::read(&file).unwrap();
        let mut damaged = sound.clone();
        damaged[at] ^= 1;
        std::fs::write(&file, damaged).unwrap();
        let error = verify(&StorePath::local(&path)).unwrap_err().in_full(Surface::CommandLine);
        assert!(error.contains(words) && error.contains(name), "{error}");
        std::fs::write(&file, sound).unwrap();
    }
    std::fs::remove_file(folder.path().join("photos.msgpack.md5")).unwrap();
    let hashes = folder.path().join("photos.msgpack.key_hashes");
    let mut damaged = std::fs::read(&hashes).unwrap();
    damaged[9] ^= 1;
    std::fs::write(&hashes, damaged).unwrap();
    let error = verify(&StorePath::local(&path)).unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("hash") && error.contains("c/0.jpg"), "{error}");
}
