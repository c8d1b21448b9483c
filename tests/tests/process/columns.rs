//! `run` with columns: from a job or `--columns`, verified at both ends, named in the report.

use super::jobs::{check_run, job};
use super::support::{packed, run};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Packs 48 pictures again, with columns: a number, a text, a list, and a list of lists.
fn with_columns(folder: &Path) {
    packed(folder, 48);
    run(folder, &["unpack", "small.set", "files"]).success();
    let mut names = Vec::new();
    let mut folders = vec![folder.join("files")];
    while let Some(inside) = folders.pop() {
        for entry in std::fs::read_dir(inside).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(extension) if extension == "jpg" => {
                    let name = path.strip_prefix(folder).expect("below it");
                    names.push(name.display().to_string());
                }
                _ => {}
            }
        }
    }
    names.sort();
    assert_eq!(names.len(), 48);
    let mut rows = String::new();
    for (number, name) in names.iter().enumerate() {
        let row = json!({
            "file_name": name,
            "area": number as f64 / 2.0,
            "caption": "ß".repeat(number % 5),
            "ids": vec![number; number % 3],
            "corners": [[0, number], [1]],
        });
        writeln!(rows, "{row}").expect("a string");
    }
    std::fs::write(folder.join("rows.jsonl"), rows).expect("a file");
    run(folder, &["pack", "rows.jsonl", "small.set", "--force"]).success();
}

fn report(folder: &Path, job: &str, arguments: &[&str]) -> Value {
    std::fs::write(folder.join("job.toml"), job).expect("a job file");
    let mut all = vec!["run", "job.toml", "--json"];
    all.extend(arguments);
    let done = run(folder, &all).success();
    serde_json::from_str(&done.stdout).expect("--json prints one JSON document")
}

#[test]
fn columns_of_every_kind_are_verified_at_both_ends_and_named_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    with_columns(folder.path());
    let asked = r#"columns = ["caption", "image", "ids", "area", "key"]"#;
    for spool in ["", "\n[spool]\nkind = \"file\"\ndirectory = \".\"\nquota = \"8MiB\"\n"] {
        let job = format!("{asked}\n{}{spool}", job("device-only", 1, ""));
        let report = report(folder.path(), &job, &[]);
        check_run(&report["runs"][0]);
        assert_eq!(report["runs"][0]["totals"]["device_batches"], 12);
        let expected = json!([
            {"name": "caption", "kind": "text", "dtype": "uint8", "shape": []},
            {"name": "image", "kind": "tensor", "dtype": "uint8", "shape": [48, 48, 3]},
            {"name": "ids", "kind": "ragged", "dtype": "int64", "shape": []},
            {"name": "area", "kind": "tensor", "dtype": "float64", "shape": []},
            {"name": "key", "kind": "text", "dtype": "uint8", "shape": []},
        ]);
        assert_eq!(report["job"]["columns"], expected);
    }
    // The option replaces those of the job.
    let job = format!("{asked}\n{}", job("wrr", 0, ""));
    let report = report(folder.path(), &job, &["--columns", "label, ids"]);
    check_run(&report["runs"][0]);
    let names = report["job"]["columns"].as_array().expect("a list").iter();
    let names: Vec<&str> = names.map(|column| column["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["label", "ids"]);
}

#[test]
fn a_fault_of_the_device_costs_no_column() {
    let folder = tempfile::tempdir().unwrap();
    with_columns(folder.path());
    for fault in ["corrupt@2", "tear@2", "die@2"] {
        let device = format!("faults = [\"{fault}\"]");
        let job = format!("columns = [\"ids\", \"image\"]\n{}", job("device-only", 0, &device));
        let report = report(folder.path(), &job, &[]);
        check_run(&report["runs"][0]);
        assert!(report["runs"][0]["totals"]["host_batches"].as_u64() > Some(0), "{fault}");
    }
}

#[test]
fn invalid_columns_are_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    with_columns(folder.path());
    let refused = |columns: &str, words: &[&str]| {
        let job = format!("columns = {columns}\n{}", job("host-only", 0, ""));
        std::fs::write(folder.path().join("job.toml"), job).expect("a job file");
        run(folder.path(), &["run", "job.toml"]).refused(words);
    };
    refused("5", &["job.toml", "`columns`", "a list of names"]);
    refused("[]", &["job.toml", "empty list"]);
    refused(r#"["image", "ids", "image"]"#, &["job.toml", "\"image\" twice"]);
    refused(r#"["image", "capption"]"#, &["small.set", "\"capption\"", "\"caption\"?", "area"]);
    refused(r#"["corners"]"#, &["small.set", "\"corners\"", "List(List(Int64))", "leave"]);
    let job = job("host-only", 0, "");
    std::fs::write(folder.path().join("job.toml"), job).expect("a job file");
    let arguments = ["run", "job.toml", "--columns", "image,idss"];
    run(folder.path(), &arguments).refused(&["\"idss\"", "\"ids\"?"]);
}
