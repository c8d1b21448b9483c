//! Operations on datasets from the command line: what they print, exit codes, kills.

use super::support::{command, finish, packed, run};
use std::path::Path;
use std::time::Duration;

fn json(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    let arguments = [arguments, &["--json"]].concat();
    serde_json::from_str(&run(folder, &arguments).success().stdout).unwrap()
}

#[test]
fn a_split_that_is_merged_differs_in_order_alone() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 30);
    let folder = folder.path();
    let parts = json(
        folder,
        &["dataset", "split", "small.set", "a.set=0.8", "b.set=20%", "--stratify", "--seed", "3"],
    );
    assert_eq!((&parts[0]["samples"], &parts[1]["samples"]), (&24.into(), &6.into()));
    run(folder, &["dataset", "merge", "b.set", "a.set", "again.set"]).success();
    let different = run(folder, &["dataset", "diff", "small.set", "again.set"]);
    assert_eq!(different.code(), Some(1), "{different:?}");
    for words in ["the order differs", "30 samples the same"] {
        assert!(different.stdout.contains(words), "{words}: {}", different.stdout);
    }
    assert_eq!(different.stderr, "", "findings are reported once");
    let same = run(folder, &["dataset", "diff", "small.set", "small.set"]).success();
    assert!(same.stdout.contains("no difference"), "{}", same.stdout);
    for set in ["a.set", "b.set", "again.set"] {
        run(folder, &["verify", set, "--deep"]).success();
    }
}

#[test]
fn results_of_operations_are_complete_datasets() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 20);
    let folder = folder.path();
    run(folder, &["dataset", "shuffle", "small.set", "mixed.set", "--seed", "1"]).success();
    run(folder, &["dataset", "sample", "mixed.set", "few.set", "-n", "3", "--per-class"]).success();
    run(folder, &["dataset", "select", "few.set", "cats.set", "--label", "cat"]).success();
    let rows = run(folder, &["dataset", "cat", "cats.set", "--json"]).success().stdout;
    let rows: Vec<serde_json::Value> =
        rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row["label"] == "cat"), "{rows:?}");
    let head = run(folder, &["dataset", "head", "small.set", "-n", "2"]).success().stdout;
    assert_eq!(head.lines().count(), 2, "{head}");
    let counted = json(folder, &["dataset", "stats", "few.set"]);
    assert_eq!((&counted["samples"], &counted["jpegs"]), (&6.into(), &6.into()));
    run(folder, &["unpack", "cats.set", "cats"]).success();
    let inspected = json(folder, &["inspect", "cats.set"]);
    let history = inspected["provenance"]["options"]["history"].as_str().unwrap();
    assert!(history.starts_with("shuffle seed=1; sample n=3"), "{history}");
}

#[test]
fn a_lost_manifest_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let set = packed(folder.path(), 12);
    std::fs::copy(set.join("dataset.json"), folder.path().join("kept.json")).unwrap();
    std::fs::remove_file(set.join("dataset.json")).unwrap();
    let folder = folder.path();
    run(folder, &["verify", "small.set"]).refused(&["dataset.json"]);
    let repaired = run(folder, &["dataset", "repair", "small.set", "saved.set"]).success();
    for words in ["12 samples", "dataset.json was missing", "folders in the keys"] {
        assert!(repaired.stdout.contains(words), "{words}: {}", repaired.stdout);
    }
    std::fs::rename(folder.join("kept.json"), set.join("dataset.json")).unwrap();
    run(folder, &["dataset", "diff", "small.set", "saved.set"]).success();
    run(folder, &["verify", "saved.set", "--deep"]).success();
    std::fs::write(set.join("dataset.json"), "{").unwrap();
    let repaired = run(folder, &["dataset", "repair", "small.set", "again.set"]).success();
    assert!(repaired.stdout.contains("dataset.json did not parse"), "{}", repaired.stdout);
    let part = set.join("part-00000.arrow");
    std::fs::write(&part, &std::fs::read(&part).unwrap()[..900]).unwrap();
    run(folder, &["dataset", "repair", "small.set", "none.set"])
        .refused(&["none of its parts has a readable footer", "restore a part"]);
}

#[test]
fn operations_that_cannot_be_done_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 6);
    let folder = folder.path();
    run(folder, &["dataset", "shuffle", "none.set", "x.set"]).refused(&["none.set"]);
    run(folder, &["dataset", "shuffle", "small.set", "small.set"]).refused(&["contains the other"]);
    let merged = ["dataset", "merge", "small.set", "small.set", "x.set"];
    run(folder, &merged).refused(&["key", "--prefix"]);
    run(folder, &["dataset", "sample", "small.set", "x.set", "-n", "7"]).refused(&["7", "of 6"]);
    run(folder, &["dataset", "select", "small.set", "x.set", "--label", "cow"]).refused(&["cow"]);
    let past = &["dataset", "cat", "small.set", "--range", "4..9"];
    run(folder, past).refused(&["no samples 4..9", "it has 6", "within 0..6"]);
    let past = &["dataset", "select", "small.set", "x.set", "--range", "6.."];
    run(folder, past).refused(&["no samples 6.. in"]);
    for wrong in [
        &["dataset", "split", "small.set"][..],
        &["dataset", "split", "small.set", "a.set=0.8", "--by", "label", "--to", "x"],
        &["dataset", "split", "small.set", "--by", "label", "--to", "x", "--stratify"],
        &["dataset", "split", "small.set", "a.set"],
        &["dataset", "merge", "small.set", "x.set"],
        &["dataset", "sample", "small.set", "x.set", "--fraction", "1.5"],
        &["dataset", "select", "small.set", "x.set", "--range", "5..3"],
        &["dataset", "repair", "small.set"],
    ] {
        assert_eq!(run(folder, wrong).code(), Some(2), "{wrong:?}");
    }
    assert!(!folder.join("x.set").exists());
}

/// A shuffle that is killed repeatedly gives the result of one that is not.
#[test]
fn a_killed_shuffle_resumes_without_a_lost_or_repeated_sample() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 120);
    let folder = folder.path();
    let resumed = [
        "dataset",
        "shuffle",
        "small.set",
        "mixed.set",
        "--seed",
        "5",
        "--resume",
        "--part-size",
        "16KiB",
        "--memory",
        "16KiB",
    ];
    // Longer each time, so that it ends on any machine.
    let mut kills = 0;
    for wait in (0..).map(|round: u64| Duration::from_micros(300 * round * round)) {
        let mut child = command(folder, &resumed).spawn().unwrap();
        let ended = super::support::wait(&mut child, wait).is_some();
        if !ended {
            // It may have ended already.
            let _ = child.kill();
            kills += 1;
        }
        let status = finish(child).status;
        if status.success() {
            break;
        }
        assert!(!ended || status.code().is_none(), "{status}: only a kill ends it early");
    }
    assert!(kills > 0);
    run(folder, &["dataset", "shuffle", "small.set", "whole.set", "--seed", "5"]).success();
    run(folder, &["dataset", "diff", "mixed.set", "whole.set"]).success();
    run(folder, &["verify", "mixed.set"]).success();
    let names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let remains = names.iter().filter(|name| name.to_string_lossy().contains("partial")).count();
    assert_eq!(remains, 0, "{names:?}");
}
