//! `reproduce` and the measured part of `validate`: reports, kinds of rows, interruption.

use super::support::{command, finish, processes_with, run, until};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

fn report(folder: &Path) -> Value {
    let text = std::fs::read(folder.join("out/reproduction.json")).expect("a report");
    serde_json::from_slice(&text).expect("one JSON document")
}

/// Every object that has a `kind`, at any depth.
fn kinds(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(kind)) = map.get("kind") {
                found.push(kind.clone());
            }
            map.values().for_each(|value| kinds(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| kinds(value, found)),
        _ => {}
    }
}

#[test]
fn published_and_ours_stand_beside_each_other_each_with_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(folder.path(), &["reproduce", "--report", "out"]).success();
    for part in [
        "up to +23.5 %",
        "up to +27.6 %",
        "-19.7 %",
        "-37.6 %",
        "simulated",
        "modelled",
        "4.26",
        "What would falsify it",
        "Facts about the paper",
        "--measure does",
        "reproduction.html",
    ] {
        assert!(done.stdout.contains(part), "{part} in {}", done.stdout);
    }
    let report = report(folder.path());
    assert!(report["measured"].is_null());
    let mut found = Vec::new();
    for rows in ["simulated", "modelled", "region"] {
        kinds(&report[rows], &mut found);
    }
    let known = ["simulated", "modelled", "derived"];
    assert!(found.iter().all(|kind| known.contains(&kind.as_str())), "{found:?}");
    assert!(known.iter().all(|kind| found.iter().any(|found| found == kind)));
    let page = std::fs::read_to_string(folder.path().join("out/reproduction.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 3);
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    assert!(
        !outside.contains("http:") && !outside.contains("https:") && !outside.contains("<script")
    );
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let typed = ["reproduce", "--measure", "--report", "file"];
    run(folder.path(), &typed).refused(&["file is not a folder", "--report"]);
    let done = run(folder.path(), &["reproduce", "--quick"]);
    assert_eq!(done.code(), Some(2), "--quick is of --measure: {done:?}");
}

#[test]
fn the_first_setting_is_measured_and_marked_so() {
    let folder = tempfile::tempdir().unwrap();
    let typed = ["reproduce", "--measure", "--quick", "--batches", "8", "--report", "out"];
    let done = run(folder.path(), &typed).success();
    assert!(done.stdout.contains("measured") && done.stdout.contains("--quick"), "{}", done.stdout);
    let report = report(folder.path());
    let rows = report["measured"]["rows"].as_array().unwrap();
    let strategies: Vec<&str> = rows.iter().map(|row| row["strategy"].as_str().unwrap()).collect();
    assert_eq!(strategies, ["host-only", "mte", "wrr", "device-only"]);
    assert!(rows.iter().all(|row| row["kind"] == "measured"));
    // Modelled figures have separate rows, and so separate columns.
    assert!(rows.iter().all(|row| row.get("modelled_ratio").is_none()));
    let energy = report["measured"]["energy"].as_array().unwrap();
    assert!(energy.iter().all(|row| row["kind"] == "modelled"));
}

#[test]
fn an_interruption_ends_the_measuring_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    for typed in [&["validate", "--quick"][..], &["reproduce", "--measure", "--report", "out"]] {
        let mut command = command(folder.path(), typed);
        let mut child = command.env("TMPDIR", &temporary).spawn().unwrap();
        let has_begun = || std::fs::read_dir(&temporary).unwrap().next().is_some();
        let begun =
            until(Duration::from_secs(60), || has_begun() || child.try_wait().unwrap().is_some());
        assert!(begun && has_begun(), "{typed:?} made no folder");
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let done = finish(child);
        assert_eq!(done.code(), Some(1), "{done:?}");
        assert!(done.stderr.contains("interrupted"), "{done:?}");
        assert!(!has_begun(), "{typed:?} left its folder");
        assert_eq!(processes_with(&temporary.display().to_string()), Vec::<u32>::new());
        assert!(!folder.path().join("out").exists());
    }
}
