//! Every kind of source, read from a bucket: the same dataset as from local files.

use crate::s3::S3;
use crate::support::{assert_same, copy, golden, pack_here, pictures, program, run};
use std::path::Path;

/// Packs a golden source from local files and from a bucket.
fn same(name: &str, further: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let server = S3::start(&folder.path().join("store"));
    let here = golden(name);
    let place = server.bucket("all").join("in");
    match name.ends_with(".msgpack") {
        true => copy(here.parent().unwrap(), &place),
        false => copy(&here, &place.join(here.file_name().unwrap())),
    }
    let further = [further, &["--on-error", "skip"]].concat();
    pack_here(folder.path(), &here, "here.set", &further);
    let url = format!("s3://all/in/{}", here.file_name().unwrap().to_str().unwrap());
    server.pack(folder.path(), &url, "there.set", &further).success();
    assert_same(folder.path(), "here.set", "there.set");
}

#[test]
fn archives() {
    same("wds-000.tar", &[]);
    same("wds.tar.zst", &[]);
    same("classes.zip", &[]);
    same("cifar-10-binary.tar.gz", &[]);
}

#[test]
fn folders_of_files() {
    same("mnist", &[]);
    same("cifar-100-binary", &[]);
    same("table-csv", &[]);
    same("table-jsonl", &[]);
}

#[test]
fn tables() {
    same("tables/parquet/zstd-2.0.parquet", &[]);
    same("tables/hub", &["--split", "train"]);
    same("tables/arrow/uncompressed.feather", &[]);
    same("tables/saved", &["--split", "train"]);
    same("tables/tfrecord/photos-train.tfrecord.gz", &[]);
}

#[test]
fn formats_of_other_loaders() {
    same("tables/mds-plain", &[]);
    same("tables/mds-zstd", &[]);
    // The side files are found beside the one that is named.
    same("tables/datadings/photos.msgpack", &[]);
    same("tables/ffcv/photos.beton", &[]);
}

#[test]
fn another_dataset_is_fetched_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let server = S3::start(&folder.path().join("store"));
    let here = pictures(&folder.path().join("photos"), 12);
    pack_here(folder.path(), &here, "first.set", &[]);
    copy(&folder.path().join("first.set"), &server.bucket("sets").join("first.set"));
    pack_here(folder.path(), Path::new("first.set"), "here.set", &[]);
    server.pack(folder.path(), "s3://sets/first.set", "there.set", &[]).success();
    assert_same(folder.path(), "here.set", "there.set");
    let few = ["--cache-size", "1000B"];
    let said = server.pack(folder.path(), "s3://sets/first.set", "no.set", &few);
    said.refused(&["s3://sets/first.set", "--cache-size"]);
}

#[test]
fn a_pattern_of_shards_converts_without_a_dataset_between() {
    let folder = tempfile::tempdir().unwrap();
    let server = S3::start(&folder.path().join("store"));
    for shard in ["wds-000.tar", "wds-001.tar"] {
        copy(&golden(shard), &server.bucket("all").join("d").join(shard));
        copy(&golden(shard), &folder.path().join("d").join(shard));
    }
    let arguments = [
        "convert",
        "s3://all/d/wds-{000..001}.tar",
        "there",
        "--cache",
        "cache",
        "--to",
        "parquet",
    ];
    run(server.program(folder.path(), &arguments)).success();
    run(program(folder.path(), &["convert", "d", "here", "--to", "parquet"])).success();
    for entry in std::fs::read_dir(folder.path().join("here")).unwrap().flatten() {
        let there = folder.path().join("there").join(entry.file_name());
        assert_eq!(std::fs::read(entry.path()).unwrap(), std::fs::read(there).unwrap());
    }
}
