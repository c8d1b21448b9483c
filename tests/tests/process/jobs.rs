//! A job under every strategy: the report, and that only the order differs.

use super::support::{packed, run};
use serde_json::Value;
use std::path::Path;

pub(crate) const BATCHES: u64 = 12;
pub(crate) const SAMPLES: u32 = 48;

/// Runs a job file with `--json` and returns the report.
pub(crate) fn report(folder: &Path, job: &str, arguments: &[&str]) -> Value {
    std::fs::write(folder.join("job.toml"), job).expect("a job file");
    let mut all = vec!["run", "job.toml", "--json"];
    all.extend(arguments);
    let done = run(folder, &all).success();
    serde_json::from_str(&done.stdout).expect("--json prints one JSON document")
}

/// A job of 12 batches on `small.set`, with the lines of its `[device]` table.
pub(crate) fn job(strategy: &str, workers: u32, device: &str) -> String {
    format!(
        r#"dataset = "small.set"
batch_size = 4
seed = 7
strategy = "{strategy}"
workers = {workers}
stall_timeout = "30s"

[[recipe.operation]]
name = "decode"
[[recipe.operation]]
name = "random_resized_crop"
size = 48
[[recipe.operation]]
name = "random_horizontal_flip"

[device]
kind = "emulated"
allow_shared = true
{device}

[accelerator]
kind = "emulated"
step = "20ms"
"#
    )
}

pub(crate) fn number(value: &Value, pointer: &str) -> u64 {
    value
        .pointer(pointer)
        .and_then(Value::as_u64)
        .unwrap_or_else(|| panic!("no {pointer}: {value}"))
}

/// Panics unless every batch was consumed once and every level that was claimed was verified.
pub(crate) fn check_run(run: &Value) {
    let mut batches: Vec<u64> = run["epochs"][0]["batches"]
        .as_array()
        .expect("a list of batches")
        .iter()
        .map(|batch| batch["batch"].as_u64().expect("an index"))
        .collect();
    batches.sort_unstable();
    assert_eq!(batches, (0..BATCHES).collect::<Vec<_>>(), "each batch once: {run}");
    for level in run["levels"].as_array().expect("a list of levels") {
        let verdict = level["verdict"].as_str().expect("a verdict");
        assert_ne!(verdict, "failed", "{level}");
        if ["C0", "C1", "C2"].contains(&level["level"].as_str().expect("a level")) {
            assert_eq!(verdict, "verified", "{level}");
        }
    }
}

/// Checks that no device had a fault. `auto` may take batches back from one that is late because
/// the machine is busy.
pub(crate) fn check_devices(run: &Value) {
    let is_late = |event: &Value| {
        run["strategy"] == "auto"
            && event["kind"] == "batches_reclaimed"
            && event["silent_ns"].is_null()
    };
    assert!(run["events"].as_array().expect("events").iter().all(is_late), "{run}");
}

fn order(run: &Value) -> Vec<u64> {
    let batches = run["epochs"][0]["batches"].as_array().expect("a list of batches");
    batches.iter().map(|batch| batch["batch"].as_u64().expect("an index")).collect()
}

#[test]
fn every_strategy_delivers_the_same_samples_with_and_without_workers() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    for workers in [0, 2] {
        let report = report(folder.path(), &job("wrr", workers, ""), &["--strategy", "all"]);
        let runs = report["runs"].as_array().expect("runs");
        let names: Vec<&str> = runs.iter().map(|run| run["strategy"].as_str().unwrap()).collect();
        assert!(names.iter().any(|name| name.starts_with("mte")), "{names:?}");
        for run in runs {
            check_run(run);
            let name = run["strategy"].as_str().unwrap();
            let host = number(run, "/totals/host_batches");
            let device = number(run, "/totals/device_batches");
            assert_eq!(host + device, BATCHES, "{name}");
            match name {
                "host-only" => assert_eq!(device, 0),
                "device-only" => assert_eq!(host, 0, "{run}"),
                _ => assert!(device > 0, "{name} used no device batch: {run}"),
            }
            if ["host-only", "device-only"].contains(&name) {
                assert_eq!(order(run), (0..BATCHES).collect::<Vec<_>>(), "{name} keeps the order");
            }
        }
    }
}

#[test]
fn mte_with_an_ascending_tail_preserves_the_order_and_a_recorded_split_replays() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let ascending = format!("{}\n[mte]\ntail = \"ascending\"\n", job("mte", 0, ""));
    let first = report(folder.path(), &ascending, &[]);
    check_run(&first["runs"][0]);
    assert_eq!(order(&first["runs"][0]), (0..BATCHES).collect::<Vec<_>>());

    let descending = report(folder.path(), &job("mte", 0, ""), &[]);
    let split = number(&descending, "/runs/0/epochs/0/split");
    let replayed = format!("{}\n[mte]\nsplit = {split}\n", job("mte", 2, "cpu_ratio = 0.7"));
    let replayed = report(folder.path(), &replayed, &[]);
    check_run(&replayed["runs"][0]);
    assert_eq!(order(&replayed["runs"][0]), order(&descending["runs"][0]));
}

#[test]
fn a_file_spool_and_a_float_recipe_deliver_the_same_samples() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let spool = "[spool]\nkind = \"file\"\ndirectory = \".\"\nquota = \"8MiB\"\n";
    let job = format!("{}\n{spool}", job("wrr", 1, "")).replace(
        "[device]",
        "[[recipe.operation]]\nname = \"to_dtype\"\ndtype = \"float32\"\nscale = true\n\
         [[recipe.operation]]\nname = \"normalize\"\nmean = [0.485, 0.456, 0.406]\n\
         std = [0.229, 0.224, 0.225]\n[[recipe.operation]]\nname = \"layout\"\n\
         layout = \"NCHW\"\n\n[device]",
    );
    let report = report(folder.path(), &job, &[]);
    check_run(&report["runs"][0]);
    assert!(number(&report, "/runs/0/totals/device_batches") > 0);
    assert!(number(&report, "/runs/0/totals/device_bytes_written") > 0);
}

#[test]
fn epochs_differ_and_each_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let report = report(folder.path(), &job("wrr", 1, ""), &["--epochs", "3"]);
    let epochs = report["runs"][0]["epochs"].as_array().expect("epochs");
    assert_eq!(epochs.len(), 3);
    for epoch in epochs {
        assert_eq!(epoch["batches"].as_array().unwrap().len() as u64, BATCHES);
    }
    for level in report["runs"][0]["levels"].as_array().unwrap() {
        assert_ne!(level["verdict"], "failed", "{level}");
    }
}

#[test]
fn the_report_is_one_self_contained_page_and_one_document() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    std::fs::write(folder.path().join("job.toml"), job("wrr", 0, "")).unwrap();
    run(folder.path(), &["run", "job.toml", "--report", "out"]).success();
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("<svg"), "the page has no plot");
    for outside in ["src=\"http", "href=\"http", "<link", "@import", "url(http"] {
        assert!(!page.contains(outside), "the page refers to the outside: {outside}");
    }
    let document = std::fs::read(folder.path().join("out/report.json")).unwrap();
    let document: Value = serde_json::from_slice(&document).unwrap();
    assert_eq!(document["version"], 8);
}
