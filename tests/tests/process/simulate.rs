//! `simulate` and `validate` on the command line: results, files and errors.

use super::support::{command, run, until};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SMALL: &str = "batches = 40\n[host]\npreparation = \"625ms\"\n[[devices]]\n\
                     preparation = \"2s\"\n[accelerator]\nstep = \"375ms\"\n";

fn scenarios() -> PathBuf {
    crate::layers::root().join("sim/scenarios")
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let done = run(folder, &[arguments, &["--json"]].concat()).success();
    serde_json::from_str(&done.stdout).expect("--json prints one JSON document")
}

#[test]
fn given_constants_the_simulator_meets_the_closed_forms() {
    let folder = tempfile::tempdir().unwrap();
    let typed = ["simulate", "--t-c", "1", "--t-g", "0.375", "--t-s", "2"];
    let document = json(folder.path(), &typed);
    let rows = document["rows"].as_array().unwrap();
    let of = |strategy: &str| rows.iter().find(|row| row["strategy"] == strategy).unwrap();
    // N·t_c·(t_s+t_g)/(t_s+t_c) and N·t_c·t_s/(t_s+t_c-t_g), by hand.
    for (strategy, wanted) in [("mte", 5000.0 * 2.375 / 3.0), ("wrr", 5000.0 * 2.0 / 2.625)] {
        let row = of(strategy);
        for key in ["formula_seconds", "simulated_seconds"] {
            let seconds = row[key].as_f64().unwrap();
            assert!((seconds / wanted - 1.0).abs() < 0.001, "{strategy} {key}: {seconds}");
        }
    }
    let done = run(folder.path(), &typed).success();
    for part in ["closed form", "simulated", "mte", "wrr", "time saved"] {
        assert!(done.stdout.contains(part), "{part} in {}", done.stdout);
    }
    let with_units = ["simulate", "--t-c", "80ms", "--t-g", "30ms", "--t-s", "160ms"];
    run(folder.path(), &with_units).success();
}

#[test]
fn the_tables_of_the_notes_are_regenerated_by_one_command() {
    let folder = tempfile::tempdir().unwrap();
    let document = json(folder.path(), &["simulate", "--table"]);
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 27);
    assert!(rows.iter().all(|row| row["agrees"] == true), "{rows:?}");
    let done = run(folder.path(), &["simulate", "--table"]).success();
    assert!(done.stdout.contains("27 of 27 figures"), "{}", done.stdout);
}

#[test]
fn every_scenario_that_ships_can_be_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(scenarios()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let document = json(folder.path(), &["simulate", &path.display().to_string()]);
            assert!(document["rows"][0]["outcome"]["total_s"].as_f64().unwrap() > 0.0);
            names.push(path);
        }
    }
    assert!(names.len() >= 3, "{names:?}");
}

#[test]
fn the_same_seed_gives_the_same_result_and_another_seed_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = scenarios().join("busy-server.toml").display().to_string();
    let of = |seed: &str| json(folder.path(), &["simulate", &path, "--seed", seed])["rows"].clone();
    assert_eq!(of("3"), of("3"));
    assert_ne!(of("3"), of("4"));
}

#[test]
fn a_sweep_writes_a_row_for_every_combination_and_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.toml"), SMALL).unwrap();
    let typed = [
        "simulate",
        "a.toml",
        "--sweep",
        "strategy=host-only,wrr",
        "--sweep",
        "devices.0.preparation=1s,2s,4s",
        "--csv",
        "out.csv",
        "--plot",
        "out.svg",
    ];
    let done = run(folder.path(), &typed).success();
    assert!(done.stdout.contains("host-only") && done.stdout.contains("4s"), "{}", done.stdout);
    let csv = std::fs::read_to_string(folder.path().join("out.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 6);
    assert!(lines[0].starts_with("seed,strategy,devices.0.preparation,total_s,"), "{}", lines[0]);
    assert!(lines[6].starts_with("0,wrr,4s,"), "{}", lines[6]);
    let columns = |line: &str| line.split(',').count();
    assert!(lines.iter().all(|line| columns(line) == columns(lines[0])));
    let svg = std::fs::read_to_string(folder.path().join("out.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("host-only") && svg.contains("wrr"));
    // A page holds the table too, and loads nothing.
    let page = ["simulate", "a.toml", "--plot", "out.html"];
    run(folder.path(), &page).success();
    let html = std::fs::read_to_string(folder.path().join("out.html")).unwrap();
    assert!(html.contains("<svg") && html.contains("device batches"));
    let outside = html.replace("http://www.w3.org/2000/svg", "");
    assert!(
        !outside.contains("http:") && !outside.contains("https:") && !outside.contains("<script")
    );
}

#[test]
fn a_bad_scenario_is_reported_with_its_position_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |text: &str, words: &[&str]| {
        std::fs::write(folder.path().join("bad.toml"), text).unwrap();
        run(folder.path(), &["simulate", "bad.toml"]).refused(words);
    };
    refused(&SMALL.replace("\"2s\"", "2"), &["bad.toml:5:15: ", "a time such as"]);
    refused(&SMALL.replace("[host]", "[hots]"), &["bad.toml:2:2: ", "hots", "host"]);
    refused(&SMALL.replace("40", "0"), &["bad.toml:1:11: ", "`batches` is 0"]);
    refused(&SMALL.replace("\"2s\"", "\"2s"), &["bad.toml:5:"]);
    refused("", &["bad.toml:", "batches"]);
    run(folder.path(), &["simulate", "absent.toml"]).refused(&["absent.toml", "simulation.md"]);
    let done = run(folder.path(), &["simulate", "bad.toml", "--json"]);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((done.code(), &document["error"]["exit_code"]), (Some(1), &Value::from(1)));
}

#[test]
fn a_bad_sweep_is_reported_with_its_path_and_value() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.toml"), SMALL).unwrap();
    for (sweep, words) in [
        ("host.wrokers=1,2", &["a.toml", "wrokers", "workers"][..]),
        ("devices.3.count=1", &["devices.3.count", "no element 3"]),
        ("batches=many", &["many"]),
        ("batches=10,0", &["`batches` is 0", "batches = 0"]),
    ] {
        run(folder.path(), &["simulate", "a.toml", "--sweep", sweep]).refused(words);
    }
    let done = run(folder.path(), &["simulate", "a.toml", "--sweep", "workers"]);
    assert_eq!(done.code(), Some(2), "{done:?}");
    assert!(done.stderr.contains("host.workers=0,4,16"), "{}", done.stderr);
}

#[test]
fn invalid_usage_and_paths_that_cannot_be_written_are_refused_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.toml"), SMALL).unwrap();
    for typed in [
        &["simulate"][..],
        &["simulate", "a.toml", "--table"],
        &["simulate", "--t-c", "1"],
        &["simulate", "--t-c", "0", "--t-g", "1", "--t-s", "1"],
        &["simulate", "--table", "--csv", "x.csv"],
    ] {
        let done = run(folder.path(), typed);
        assert_eq!(done.code(), Some(2), "{typed:?}: {done:?}");
    }
    for (typed, words) in [
        (["--csv", "no/x.csv"], ["no/x.csv", "create the folder"]),
        (["--plot", "x.png"], ["x.png", ".svg"]),
    ] {
        let all = [&["simulate", "a.toml"], &typed[..]].concat();
        run(folder.path(), &all).refused(&words);
    }
    let typed = ["simulate", "a.toml", "--sweep", "strategy=mte,wrr", "--plot", "x.svg"];
    run(folder.path(), &typed).refused(&["cannot be drawn", "--csv"]);
    assert!(!folder.path().join("x.svg").exists());
}

#[test]
fn a_simulation_that_is_interrupted_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let large = SMALL.replace("40", "100000000");
    std::fs::write(folder.path().join("a.toml"), large).unwrap();
    let typed = ["simulate", "a.toml", "--csv", "out.csv"];
    let mut child = command(folder.path(), &typed).spawn().unwrap();
    // Its start cannot be observed from outside, and the test does not depend on it. SIGINT would
    // be ignored where the tests run in the background of a shell.
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(until(Duration::from_secs(60), || child.try_wait().unwrap().is_some()));
    assert!(!child.wait().unwrap().success());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_recorded_run_is_replayed_and_what_is_no_report_is_refused() {
    use super::jobs::{SAMPLES, job};
    use super::support::packed;
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    std::fs::write(folder.path().join("job.toml"), job("host-only", 0, "")).unwrap();
    run(folder.path(), &["run", "job.toml", "--report", "out"]).success();
    let document = json(folder.path(), &["simulate", "--trace", "out/report.json"]);
    let row = &document["rows"][0];
    // All of its times are in the trace, so this holds on any machine.
    assert!(row["off_ratio"].as_f64().unwrap().abs() < 0.02, "{row}");
    run(folder.path(), &["simulate", "--trace", "job.toml"]).refused(&["job.toml", "not a report"]);
    run(folder.path(), &["simulate", "--trace", "none.json"]).refused(&["none.json"]);
}

#[test]
fn a_study_has_a_table_for_every_strategy() {
    let folder = tempfile::tempdir().unwrap();
    let typed = ["simulate", "--study", "misprofiled"];
    let done = run(folder.path(), &typed).success();
    for part in ["mte-feedback", "wrr-frozen", "auto", "true t_s 4 × the profile"] {
        assert!(done.stdout.contains(part), "{part} in {}", done.stdout);
    }
}

#[test]
fn the_closed_forms_are_validated_without_measuring() {
    let folder = tempfile::tempdir().unwrap();
    let typed = ["validate", "--no-measure", "--quick"];
    let document = json(folder.path(), &typed);
    assert!(document["failed"].as_array().unwrap().is_empty(), "{document}");
    assert!(document["closed_forms"].as_array().unwrap().len() > 100);
    assert!(run(folder.path(), &typed).success().stdout.contains("within 0.1 %"));
}

#[test]
fn the_study_of_many_hosts_takes_the_numbers_of_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let typed = ["simulate", "--study", "hosts", "--hosts", "1,2"];
    let document = json(folder.path(), &typed);
    let needed = document["needed"].as_array().unwrap();
    // Two kinds of batches and three links.
    assert_eq!(needed.len(), 2 * 3 * 2, "{needed:?}");
    let hosts: Vec<u64> = needed.iter().map(|it| it["hosts"].as_u64().unwrap()).collect();
    assert_eq!(hosts[..2], [1, 2]);
    let rows = document["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["samples_per_second"].as_f64().unwrap() > 0.0), "{rows:?}");
    // On 100 Gbit/s, the accelerators of a host need about as many agents as hosts.
    let last = |it: &&Value| it["elements"] == "uint8" && it["link_gbit_per_second"] == 100.0;
    let found = needed.iter().find(last).unwrap();
    assert!((1..=2).contains(&found["agents"].as_u64().unwrap()), "{found}");
}

#[test]
fn the_study_of_many_hosts_compares_selected_rows_with_the_host_alone() {
    let folder = tempfile::tempdir().unwrap();
    let study = ["simulate", "--study", "hosts", "--hosts", "2", "--agents", "0,3/2"];
    let rest = ["--links", "0.1,25", "--elements", "uint8", "--batches", "128", "--seeds", "2"];
    let typed = [&study[..], &rest[..]].concat();
    let document = json(folder.path(), &typed);
    assert_eq!((document["batches"].as_u64(), document["seeds"].as_u64()), (Some(128), Some(2)));
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 2, "{rows:?}");
    for row in rows {
        let ratio = &row["time_ratio"];
        if row["agents"] == 0 {
            assert!(ratio.is_null() && row["middle_time_ratio"].is_null(), "{row}");
            continue;
        }
        assert_eq!(row["agents"], 3);
        let (median, largest) = (ratio["median"].as_f64(), ratio["largest"].as_f64());
        assert!(median <= largest, "{row}");
        assert_eq!(median < Some(0.97), row["link_gbit_per_second"] == 25.0, "{row}");
    }
    let text = run(folder.path(), &typed).success().stdout;
    assert!(text.contains("median of 2 seeds") && text.contains("links of 0.1 Gbit/s"), "{text}");
    assert!(!text.contains("float32"), "{text}");
}

#[test]
fn options_without_effect_on_a_study_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for option in [
        ["--hosts", "1"],
        ["--agents", "1"],
        ["--links", "10"],
        ["--elements", "uint8"],
        ["--seeds", "2"],
        ["--batches", "400"],
    ] {
        let typed = [&["simulate", "--study", "ranks"][..], &option[..]].concat();
        let other = run(folder.path(), &typed);
        assert_eq!(other.code(), Some(2), "{option:?}: {}", other.stderr);
        assert!(other.stderr.contains(option[0]), "{}", other.stderr);
        let typed = [&["simulate", "--table"][..], &option[..]].concat();
        assert_eq!(run(folder.path(), &typed).code(), Some(2), "{option:?}");
    }
    for wrong in [
        ["--hosts", "0"],
        ["--hosts", "5000"],
        ["--hosts", "x"],
        ["--agents", "1.5"],
        ["--links", "0"],
        ["--links", "10,10"],
        ["--elements", "float64"],
        ["--seeds", "0"],
        ["--batches", "15"],
        ["--t-c", "1"],
    ] {
        let typed = [&["simulate", "--study", "hosts"][..], &wrong[..]].concat();
        assert_eq!(run(folder.path(), &typed).code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn a_scenario_that_would_be_simulated_for_hours_is_refused_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    for (changed, words) in [
        (SMALL.replace("batches = 40", "batches = 2147483647"), "at most 500000000"),
        (SMALL.replace("batches = 40", "batches = 100000\nepochs = 100000"), "at most 5000,"),
    ] {
        std::fs::write(folder.path().join("long.toml"), changed).unwrap();
        let refused = run(folder.path(), &["simulate", "long.toml"]);
        refused.refused(&["long.toml:1:", "`batches`", words]);
    }
}

#[test]
fn a_scenario_whose_batches_wait_for_many_rejected_requests_is_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let text = SMALL.replace("batches = 40", "batches = 3")
        + "[storage]\nread_bytes = \"1MB\"\n[stores]\nrequests = 100000\n\
           requests_per_second = 100\n";
    std::fs::write(folder.path().join("slow.toml"), text).unwrap();
    let document = json(folder.path(), &["simulate", "slow.toml"]);
    let total = document["rows"][0]["outcome"]["total_s"].as_f64().unwrap();
    assert!(total > 1000.0, "{total}");
}
