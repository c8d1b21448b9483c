//! A dataset whose content stays where it lies: indexed, looked into, verified, trained on.

use super::jobs::{BATCHES, SAMPLES, check_run, job, number, report};
use super::support::{pictures, run};
use serde_json::Value;

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
    assert!(found.stdout.contains("it has 12 bytes, had"), "{found:?}");
    std::fs::write(folder.path().join("job.toml"), job("host-only", 0, "")).unwrap();
    run(folder.path(), &["run", "job.toml"])
        .refused(&["cat/4.jpg", "changed since it was indexed"]);
}

#[test]
fn what_inspect_says_of_keys_and_content_is_so() {
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
