//! A short campaign of random faults, its replay and its end; the ledger of a run; what this
//! machine can emulate.

use super::jobs::{BATCHES, SAMPLES, job};
use super::support::{PATIENCE, command, finish, packed, run, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;

fn document(folder: &Path, arguments: &[&str]) -> Value {
    let done = run(folder, arguments);
    let text = &done.stdout;
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

#[test]
fn a_short_campaign_of_random_faults_violates_nothing_and_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let campaign = ["torture", "--seed", "5", "--jobs", "12", "--epochs", "18", "--json"];
    let summary = document(folder.path(), &campaign);
    assert_eq!(summary["failures"], Value::Array(Vec::new()), "{:#}", summary["failures"]);
    let outcomes = summary["outcomes"].as_array().expect("outcomes");
    assert_eq!(outcomes.len(), 12);
    let trends = outcomes[11]["trends"].as_array().expect("the twelfth is an endurance job");
    assert!(trends.len() >= 6, "{trends:?}");
    assert!(outcomes.iter().all(|outcome| outcome["verdict"] != "failed"));
    let again = ["torture", "--seed", "5", "--job", "2", "--json"];
    let again = document(folder.path(), &again);
    assert_eq!(again["outcomes"][0]["job"], outcomes[2]["job"]);
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "nothing is written to the working directory");
}

#[test]
fn an_interrupt_ends_a_campaign_with_its_summary_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut campaign = command(folder.path(), &["torture", "--duration", "1000s", "--json"]);
    let campaign = campaign.env("TMPDIR", folder.path()).spawn().expect("the program starts");
    let has_begun = || {
        std::fs::read_dir(folder.path()).unwrap().flatten().any(|entry| {
            entry.path().join("job-00001").exists() || entry.path().join("job-00000/r").exists()
        })
    };
    assert!(until(PATIENCE, has_begun), "the first job begins");
    kill_process(Pid::from_child(&campaign), Signal::INT).unwrap();
    let done = finish(campaign).success();
    let summary: Value = serde_json::from_str(&done.stdout).expect("a summary");
    assert_eq!(summary["is_interrupted"], true);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "its folder is removed");
    let mark = folder.path().display().to_string();
    assert_eq!(super::support::processes_with(&mark), Vec::<u32>::new());
}

#[test]
fn the_ledgers_of_two_strategies_have_the_same_samples_and_checksums() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    std::fs::write(folder.path().join("job.toml"), job("wrr", 1, "")).unwrap();
    let ledger = |strategy: &str| {
        let name = format!("{strategy}.jsonl");
        let arguments = ["run", "job.toml", "--strategy", strategy, "--ledger", &name];
        run(folder.path(), &arguments).success();
        let text = std::fs::read_to_string(folder.path().join(&name)).expect("a ledger");
        let mut entries: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        entries.sort_by_key(|entry| entry["batch"].as_u64());
        entries
    };
    let [alone, both] = ["host-only", "device-only"].map(ledger);
    assert_eq!(alone.len() as u64, BATCHES);
    assert_eq!(both.len() as u64, BATCHES);
    for (host, device) in alone.iter().zip(&both) {
        for key in ["epoch", "rank", "batch", "samples", "crc32c", "damaged"] {
            assert_eq!(host[key], device[key], "{key}");
        }
        assert_eq!((&host["source"], &device["source"]), (&"host".into(), &"device".into()));
    }
    let missing = ["run", "job.toml", "--ledger", "nowhere/ledger.jsonl"];
    run(folder.path(), &missing).refused(&["nowhere/ledger.jsonl", "remedy:"]);
}

#[test]
fn declared_devices_are_measured_or_refused_with_their_sources() {
    let folder = tempfile::tempdir().unwrap();
    let calibrate = ["device", "calibrate", "--time", "5ms", "--allow-shared", "--json"];
    let all = document(folder.path(), &[&calibrate[..], &["--all"]].concat());
    let profiles = all["profiles"].as_array().expect("profiles");
    assert_eq!(profiles.len(), 3);
    for profile in profiles {
        assert!(profile["measured"].is_object() != profile["refused"].is_string(), "{profile}");
        let source = &profile["profile"]["pixels_per_second"]["source"];
        assert!(source.as_str().is_some_and(|source| source.len() > 20), "{source}");
    }
    let sweep = document(folder.path(), &[&calibrate[..], &["--sweep"]].concat());
    let targets = sweep["sweep"].as_array().expect("targets").iter();
    let targets: Vec<f64> = targets.map(|it| it["target"].as_f64().expect("a share")).collect();
    assert_eq!((targets.len(), targets[0], targets[9]), (10, 0.01, 1.0));
    for it in sweep["sweep"].as_array().expect("targets") {
        let off = it["achieved"].as_f64().unwrap() / it["target"].as_f64().unwrap() - 1.0;
        assert_eq!(it["is_valid"], off.abs() <= 0.05, "{it}");
        assert!(it["causes"].as_array().is_some_and(|it| it.is_empty() || off < 0.0), "{it}");
        let has = |name: &str| it.get(name).is_some();
        assert!(
            has("steal_seconds") && has("run_delay_seconds") && has("late_p99_seconds"),
            "{it}"
        );
    }
    let figure = |value: &str| {
        format!("about = \"x\"\n[jpeg]\nvalue = \"{value}\"\nbasis = \"assumed\"\nsource = \"y\"\n")
    };
    std::fs::write(folder.path().join("fast.toml"), figure("999999MP/s")).unwrap();
    run(folder.path(), &[&calibrate[..5], &["fast.toml"]].concat())
        .refused(&["a core of this machine", "simulate"]);
    run(folder.path(), &["device", "calibrate", "z80"]).refused(&["z80", "a53, a78, fpga"]);
}

#[test]
fn a_job_runs_with_a_declared_device() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    std::fs::write(folder.path().join("job.toml"), job("wrr", 0, "")).unwrap();
    let figure = "value = \"20MP/s\"\nbasis = \"assumed\"\nsource = \"slow enough everywhere\"\n";
    let latency = "value = \"1ms\"\nbasis = \"assumed\"\nsource = \"a test\"\n";
    let profile = format!("about = \"x\"\n[jpeg]\n{figure}[latency]\n{latency}");
    std::fs::write(folder.path().join("mine.toml"), profile).unwrap();
    let arguments = ["run", "job.toml", "--json", "--device-profile", "mine.toml"];
    let report = document(folder.path(), &arguments);
    super::jobs::check_run(&report["runs"][0]);
    let knobs = report["runs"][0]["devices"][0]["knobs"].as_array().expect("knobs");
    let target = |name: &str| {
        let knob = knobs.iter().find(|knob| knob["name"] == name);
        knob.unwrap_or_else(|| panic!("no {name}: {knobs:?}"))["target"].as_f64().unwrap()
    };
    assert!((0.001..1.0).contains(&target("cpu-ratio")));
    assert!(target("latency") > 0.0);
    assert!(knobs.iter().all(|knob| knob["is_valid"].is_boolean() && knob["causes"].is_array()));
    let core = &report["runs"][0]["devices"][0]["core_use"];
    let seconds = |name: &str| core[name].as_f64().unwrap_or_else(|| panic!("no {name}: {core}"));
    let used = seconds("cpu_seconds") + seconds("contention_seconds");
    assert!(used > 0.0 && used <= seconds("available_seconds") + 1e-9, "{core}");
    assert!(seconds("late_p50_seconds") <= seconds("late_p99_seconds"), "{core}");
    assert!(seconds("late_p99_seconds") <= seconds("late_max_seconds"), "{core}");
    // The kernel of a test may lack these counters; they are then null, but present.
    for name in ["steal_seconds", "run_delay_seconds"] {
        let counter = core.get(name).unwrap_or_else(|| panic!("no {name}: {core}"));
        assert!(counter.is_null() || counter.as_f64().unwrap() >= 0.0, "{core}");
    }
}
