//! Measurements are not lost if standard output, the disk or one strategy fails.

use super::jobs::{SAMPLES, job};
use super::support::{command, finish, packed, run};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

/// A packed dataset and a job file for it.
fn prepare(folder: &Path, text: &str) {
    packed(folder, SAMPLES);
    std::fs::write(folder.join("job.toml"), text).unwrap();
}

fn report_in(folder: &Path) -> Value {
    assert!(folder.join("report.html").is_file());
    serde_json::from_slice(&std::fs::read(folder.join("report.json")).unwrap()).unwrap()
}

#[test]
fn a_reader_that_leaves_early_costs_no_report_and_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path(), &job("host-only", 0, ""));
    for json in [&[][..], &["--json"]] {
        let arguments = [&["run", "job.toml", "--report", "out"], json].concat();
        let mut child = command(folder.path(), &arguments).spawn().unwrap();
        drop(child.stdout.take());
        let done = finish(child);
        assert_eq!(done.code(), Some(0), "{done:?}");
        assert!(!done.stderr.contains("error:"), "{done:?}");
        assert_eq!(report_in(&folder.path().join("out"))["runs"].as_array().unwrap().len(), 1);
        std::fs::remove_dir_all(folder.path().join("out")).unwrap();
    }
}

#[test]
fn a_full_standard_output_costs_no_report_and_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path(), &job("host-only", 0, ""));
    let mut command = command(folder.path(), &["run", "job.toml", "--report", "out"]);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let done = finish(command.stdout(Stdio::from(full)).spawn().unwrap());
    done.refused(&["failed to write to standard output", "free space"]);
    report_in(&folder.path().join("out"));
}

#[test]
fn a_report_that_cannot_be_written_costs_no_table() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path(), &job("host-only", 0, ""));
    // A folder of the file's name with something in it stands in for a full disk.
    std::fs::create_dir_all(folder.path().join("out/report.json/x")).unwrap();
    let done = run(folder.path(), &["run", "job.toml", "--report", "out"]);
    let done = done.refused(&["could not be written to out", "free space", "--report"]);
    assert!(done.stdout.contains("samples/s") && done.stdout.contains("host-only"), "{done:?}");
    assert!(!done.stdout.contains("report:") && !done.stderr.contains(".tmp"), "{done:?}");
    let done = run(folder.path(), &["run", "job.toml", "--report", "out", "--json"]).refused(&[]);
    let document: Value = serde_json::from_str(&done.stdout).expect("one document, the report");
    assert_eq!(document["runs"][0]["strategy"], "host-only");
}

#[test]
fn a_strategy_that_fails_costs_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let text = job("wrr", 0, "").replace(
        "kind = \"emulated\"\nallow_shared = true",
        "kind = \"connect\"\nsocket = \"nobody.sock\"",
    );
    prepare(folder.path(), &text);
    let arguments = ["run", "job.toml", "--strategy", "all", "--report", "out"];
    let done = run(folder.path(), &arguments).refused(&["strategy mte failed", "nobody.sock"]);
    for part in ["host-only", "mte", "FAILED", "no such socket", "report: "] {
        assert!(done.stdout.contains(part), "{part} in {done:?}");
    }
    let report = report_in(&folder.path().join("out"));
    assert_eq!(report["runs"].as_array().unwrap().len(), 1);
    let failed = report["failures"].as_array().unwrap().iter();
    let failed: Vec<&str> = failed.map(|failure| failure["what"].as_str().unwrap()).collect();
    let with_devices =
        ["mte", "mte-feedback", "wrr", "wrr-frozen", "windowed", "auto", "device-only"];
    assert_eq!(failed, with_devices);
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("strategy wrr failed: ") && page.contains(">FAILED<"));
    // If it is the only strategy, its failure is the result.
    run(folder.path(), &["run", "job.toml", "--strategy", "wrr"]).refused(&["strategy wrr failed"]);
    // A failure of every strategy is reported once.
    std::fs::remove_file(folder.path().join("small.set/part-00000.arrow")).unwrap();
    let done = run(folder.path(), &arguments).refused(&["part-00000.arrow"]);
    assert_eq!(done.stderr.matches("part-00000.arrow").count(), 1, "{done:?}");
}

#[test]
fn a_failure_under_json_is_a_document_too() {
    let folder = tempfile::tempdir().unwrap();
    let error = |arguments: &[&str]| {
        let done = run(folder.path(), arguments);
        let document: Value = serde_json::from_str(&done.stdout).expect("one document");
        let error = document["error"].clone();
        assert_eq!(error["exit_code"], done.code().unwrap(), "{done:?}");
        assert!(!done.stderr.is_empty(), "the terminal has a message as well");
        error
    };
    std::fs::write(folder.path().join("job.toml"), "dataset = 3\n").unwrap();
    let wrong = error(&["run", "job.toml", "--json"]);
    assert!(wrong["message"].as_str().unwrap().starts_with("job.toml:1:11: "), "{wrong}");
    assert_eq!(wrong["remedy"], "set `dataset` to the path of a packed dataset, or a list of them");
    assert_eq!(error(&["inspect", "absent", "--json"])["exit_code"], 1);
    let usage = error(&["run", "job.toml", "--strategy", "fly", "--json"]);
    assert_eq!(usage["exit_code"], 2);
    assert!(usage["message"].as_str().unwrap().ends_with("wrr-frozen, windowed, auto]"), "{usage}");
}

#[test]
fn a_demo_that_fails_leaves_no_empty_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    run(folder.path(), &["demo", "--images", "empty", "--keep", "new/deep"]).refused(&["empty"]);
    assert!(!folder.path().join("new").exists());
    let mut command = command(folder.path(), &["demo", "--pictures", "2"]);
    let done = finish(command.env("TMPDIR", "/nowhere/at/all").spawn().unwrap());
    let done = done.refused(&["/nowhere/at/all", "TMPDIR"]);
    assert!(!done.stderr.contains("meetpoint-demo-"), "{done:?}");
}

#[test]
fn the_table_of_the_readme_names_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let help = run(folder.path(), &["--help"]).success().stdout;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let mut commands: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    commands.sort_unstable();
    assert!(commands.len() > 15, "{help}");
    let readme = std::fs::read_to_string(crate::layers::root().join("README.md")).unwrap();
    let rows = readme.lines().skip_while(|line| *line != "| command | what it does |").skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let mut named: Vec<&str> = rows
        .flat_map(|row| row.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2))
        .collect();
    named.sort_unstable();
    assert_eq!(named, commands);
}
