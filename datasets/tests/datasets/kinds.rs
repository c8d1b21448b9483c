//! Every kind of source, written by other programs, becomes a sound dataset by detection of its
//! kind.

use crate::support::golden;
use meetpoint_datasets::source::{self, Entry, SourceOptions};
use meetpoint_datasets::store::StorePath;
use meetpoint_datasets::{OnError, PackOptions, pack, verify};
use meetpoint_prepare::Dataset;
use std::path::Path;

/// The sources and their kinds.
const SOURCES: [(&str, &str); 20] = [
    ("cifar-10-binary.tar.gz", "cifar"),
    ("cifar-100-binary", "cifar"),
    ("mnist", "idx"),
    ("classes.zip", "zip"),
    ("wds.tar.gz", "tar"),
    ("table-csv", "table"),
    ("table-jsonl", "table"),
    ("tables/ffcv/photos.beton", "ffcv"),
    ("tables/mds-plain", "mds"),
    ("tables/mds-zstd", "mds"),
    ("tables/mds-gz", "mds"),
    ("tables/tfrecord/photos-train.tfrecord.gz", "tfrecord"),
    ("tables/tfrecord/photos-train.tfrecord-00000-of-00001", "tfrecord"),
    ("tables/parquet/snappy-2.0.parquet", "parquet"),
    ("tables/parquet/zstd-1.0.parquet", "parquet"),
    ("tables/saved/train", "arrow"),
    ("tables/arrow/stream.arrow", "arrow"),
    ("tables/arrow/uncompressed.feather", "arrow"),
    ("tables/datadings/photos.msgpack", "datadings"),
    ("tables/datadings/legacy.msgpack", "datadings"),
];

/// Some of them have a sample without content, which is left out.
fn options() -> PackOptions {
    PackOptions { on_error: OnError::Skip, ..PackOptions::default() }
}

/// Keys of a source in its order.
fn keys_of(path: &Path) -> Vec<String> {
    let mut source = source::open(path, None, &SourceOptions::default()).unwrap();
    let mut keys = Vec::new();
    while let Some(entry) = source.next().unwrap() {
        if let Entry::Sample(item) = entry {
            keys.push(item.key);
        }
    }
    keys
}

#[test]
fn every_kind_is_found_out_and_becomes_a_sound_dataset() {
    let folder = tempfile::tempdir().unwrap();
    for (index, (name, kind)) in SOURCES.iter().enumerate() {
        let from = golden().join("sources").join(name);
        assert_eq!(source::detect(&StorePath::local(&from)).unwrap().name, *kind, "{name}");
        let to = folder.path().join(format!("{index}.set"));
        let summary = pack(&from, &to, &options(), &mut |_| ())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(verify(&to, &mut |_| ()).unwrap().is_sound(), "{name}");
        let dataset = Dataset::open(&to).unwrap();
        let packed: Vec<_> = (0..dataset.len()).map(|row| dataset.key(row).unwrap()).collect();
        assert!(!packed.is_empty() && packed == keys_of(&from), "{name}");
        assert_eq!(dataset.columns().kind, summary.kind, "{name}");
        let names: Vec<_> =
            dataset.columns().extra.fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, summary.columns, "{name}");
    }
}

#[test]
fn a_pack_of_any_kind_gives_the_same_bytes_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    for (index, (name, _)) in SOURCES.iter().enumerate() {
        let packed = [1, 5].map(|threads| {
            let to = folder.path().join(format!("{index}-{threads}.set"));
            let options = PackOptions { threads, ..options() };
            let from = golden().join("sources").join(name);
            pack(&from, &to, &options, &mut |_| ()).unwrap();
            crate::support::files(&to)
        });
        assert!(packed[0] == packed[1], "{name}");
    }
}
