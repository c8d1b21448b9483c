//! A dataset with content in place: indexed, inspected, verified and used by a run.

use super::jobs::{BATCHES, SAMPLES, check_run, job, number, report};
use super::support::{packed, pictures, run};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

#[test]
fn host_and_device_prepare_its_batches_and_a_change_is_refused_by_both_names() {
    let folder = tempfile::tempdir().unwrap();
    let source = pictures(folder.path(), SAMPLES);
    let done = run(folder.path(), &["index", "pictures", "small.set", "--json"]).success();
    let summary: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(number(&summary, "/samples"), u64::from(SAMPLES));
    for strategy in ["host-only", "device-only"] {
        let report = report(folder.path(), &job(strategy, 1, ""), &[]);
        let run = &report["runs"][0];
        check_run(run);
        let by_device = number(run, "/totals/device_batches");
        assert_eq!(by_device, if strategy == "host-only" { 0 } else { BATCHES }, "{run}");
    }
    run(folder.path(), &["verify", "small.set"]).success();
    std::fs::write(source.join("cat/4.jpg"), "another file").unwrap();
    let found = run(folder.path(), &["verify", "small.set"]);
    assert_eq!(found.code(), Some(1), "{found:?}");
    assert!(found.stdout.contains("cat/4.jpg"), "{found:?}");
    assert!(found.stdout.contains("row 2, key cat/4.jpg: changed since it was"), "{found:?}");
    assert!(found.stdout.contains("it has 12 bytes, had"), "{found:?}");
    std::fs::write(folder.path().join("job.toml"), job("host-only", 0, "")).unwrap();
    run(folder.path(), &["run", "job.toml"])
        .refused(&["cat/4.jpg", "changed since it was indexed"]);
    std::fs::remove_file(source.join("dog/1.jpg")).unwrap();
    let found = run(folder.path(), &["verify", "small.set"]);
    assert!(found.stdout.contains("key dog/1.jpg: "), "{found:?}");
    assert!(found.stdout.contains("DAMAGED in 2 places"), "{found:?}");
}

#[test]
fn inspect_reports_the_actual_keys_and_content() {
    let folder = tempfile::tempdir().unwrap();
    let source = pictures(folder.path(), 6);
    run(folder.path(), &["index", "pictures", "small.set"]).success();
    let looked = || -> Value {
        let done = run(folder.path(), &["inspect", "small.set", "--json"]).success();
        serde_json::from_str(&done.stdout).unwrap()
    };
    let said = looked();
    let root = source.canonicalize().unwrap();
    assert_eq!(said["content_root"].as_str(), root.to_str());
    assert_eq!(said["keys"]["how"], "index");
    std::fs::remove_file(folder.path().join("small.set/keys.idx")).unwrap();
    assert_eq!(looked()["keys"]["how"], "scan");
    run(folder.path(), &["index", "--keys", "small.set"]).success();
    assert_eq!(looked()["keys"]["how"], "index");
    run(folder.path(), &["verify", "small.set"]).success();
}

/// The pictures of a folder in a ZIP archive, stored.
fn zipped(pictures: &Path, archive: &Path) {
    let mut bytes = Vec::new();
    let mut to = rawzip::ZipArchiveWriter::new(&mut bytes);
    for class in ["cat", "dog"] {
        for entry in std::fs::read_dir(pictures.join(class)).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{class}/{}", path.file_name().unwrap().to_str().unwrap());
            let (mut member, config) = to.new_file(&name).start().unwrap();
            let mut writer = config.wrap(&mut member);
            writer.write_all(&std::fs::read(&path).unwrap()).unwrap();
            let (_, descriptor) = writer.finish().unwrap();
            member.finish(descriptor).unwrap();
        }
    }
    to.finish().unwrap();
    std::fs::write(archive, bytes).unwrap();
}

/// Every kind of shard that samples can stay in, as it is named to `index`, and the file of it.
fn shards(folder: &Path) -> Vec<(&'static str, PathBuf)> {
    packed(folder, SAMPLES);
    for (sink, to) in [("webdataset", "tars"), ("datadings", "dings"), ("parquet", "table")] {
        run(folder, &["unpack", "small.set", to, "--to", sink]).success();
    }
    zipped(&folder.join("pictures"), &folder.join("all.zip"));
    std::fs::copy(folder.join("small.set/part-00000.arrow"), folder.join("all.arrow")).unwrap();
    vec![
        ("tars", folder.join("tars/shard-000000.tar")),
        ("all.zip", folder.join("all.zip")),
        ("dings", folder.join("dings/data.msgpack")),
        ("all.arrow", folder.join("all.arrow")),
        ("table", folder.join("table/data-00000.parquet")),
    ]
}

#[test]
fn samples_stay_in_shards_and_archives_and_a_changed_shard_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (source, shard) in shards(folder) {
        let done = run(folder, &["index", source, "there.set", "--json", "--force"]).success();
        let summary: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(number(&summary, "/samples"), u64::from(SAMPLES), "{source}");
        let parts: u64 = number(&summary, "/file_bytes");
        assert!(parts < number(&summary, "/image_bytes") / 2, "{source}: something was copied");
        // The device serves content in archives as the host does.
        let strategy = if source == "tars" { "device-only" } else { "host-only" };
        let job = job(strategy, 1, "").replace("small.set", "there.set");
        check_run(&report(folder, &job, &[])["runs"][0]);
        run(folder, &["verify", "there.set", "--threads", "2"]).success();
        let mut bytes = std::fs::read(&shard).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&shard, bytes).unwrap();
        let name = shard.file_name().unwrap().to_str().unwrap();
        let found = run(folder, &["verify", "there.set"]);
        assert_eq!(found.code(), Some(1), "{found:?}");
        assert!(found.stdout.contains(name) && found.stdout.contains("DAMAGED in 1 place"));
        let samples = format!("it has {SAMPLES} samples, from row 0, key ");
        assert!(found.stdout.contains(&samples), "{found:?}");
        run(folder, &["run", "job.toml"]).refused(&[name, "changed since it was indexed"]);
    }
}

#[test]
fn the_output_of_index_describes_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let source = pictures(folder.path(), 6);
    std::os::unix::fs::symlink("nowhere", source.join("cat/link.jpg")).unwrap();
    run(folder.path(), &["index", "pictures", "small.set"]).refused(&[
        "1 of 7",
        "cat/link.jpg",
        "No such file",
        "--on-error skip",
    ]);
    let done = run(folder.path(), &["index", "pictures", "small.set", "--on-error", "skip"]);
    let text = done.success().stdout;
    assert!(text.contains("of content stay in pictures"), "{text}");
    for absent in ["content_place", " out (", "further column"] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }
    let raw = "../datasets/tests/golden/sources/mnist";
    let raw = Path::new(env!("CARGO_MANIFEST_DIR")).join(raw);
    run(folder.path(), &["index", raw.to_str().unwrap(), "raw.set"])
        .refused(&["pixels that packing encodes", "meetpoint pack"]);
}
