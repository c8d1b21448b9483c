//! Packing, inspecting and verifying a dataset, and reading it with other programs.

use super::support::{packed, pictures, run};
use crate::layers::root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python with these modules; `None` if there is none, which is reported on standard error; a
/// failure if MEETPOINT_REQUIRE_PYARROW is set.
fn python_with(modules: &str) -> Option<String> {
    let python = std::env::var("MEETPOINT_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python)
        .args(["-c", &format!("import {modules}")])
        .output()
        .is_ok_and(|output| output.status.success());
    if has {
        return Some(python);
    }
    assert!(
        std::env::var_os("MEETPOINT_REQUIRE_PYARROW").is_none(),
        "{python} has not all of {modules}, and MEETPOINT_REQUIRE_PYARROW is set"
    );
    eprintln!("SKIPPED: {python} has not all of {modules} (pip install -r tests/requirements.txt)");
    None
}

/// The output of a script for a dataset.
fn said(python: &str, script: &str, arguments: &[&str], set: &Path) -> String {
    let script = root().join(script);
    let output = Command::new(python).arg(script).args(arguments).arg(set).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

const PYARROW: &str = "tests/golden/pyarrow_reads_dataset.py";
const POLARS_AND_DUCKDB: &str = "tests/golden/polars_and_duckdb_read_dataset.py";
/// The reader of the documentation.
const READER: &str = "docs/reader.py";

/// A dataset with further columns, and one in each form, with the number of rows.
fn sets(folder: &Path) -> Vec<(PathBuf, usize)> {
    pictures(folder, 12);
    let mut sets = vec![(root().join("datasets/tests/golden/version-3"), 6)];
    for form in ["jpeg", "fast", "compact"] {
        let name = format!("{form}.set");
        run(folder, &["pack", "pictures", &name, "--form", form]).success();
        sets.push((folder.join(name), 12));
    }
    sets
}

#[test]
fn plain_pyarrow_reads_a_packed_dataset() {
    let Some(python) = python_with("pyarrow") else { return };
    let folder = tempfile::tempdir().unwrap();
    let set = packed(folder.path(), 20);
    let text = said(&python, PYARROW, &[], &set);
    assert_eq!(text.lines().count(), 20, "{text}");
}

#[test]
fn plain_pyarrow_reads_the_datasets_of_every_form() {
    let Some(python) = python_with("pyarrow") else { return };
    let folder = tempfile::tempdir().unwrap();
    for (set, rows) in sets(folder.path()) {
        let text = said(&python, PYARROW, &[], &set);
        assert_eq!(text.lines().count(), rows, "{}: {text}", set.display());
    }
}

#[test]
fn plain_pyarrow_reads_further_columns() {
    let Some(python) = python_with("pyarrow") else { return };
    let set = root().join("datasets/tests/golden/version-3");
    let text = said(&python, PYARROW, &["--columns"], &set);
    let first = text.lines().next().unwrap();
    let values: serde_json::Value =
        serde_json::from_str(first.rsplit('\t').next().unwrap()).unwrap();
    assert_eq!(values["caption"], "a picture");
    assert_eq!(values["thumbnail"]["path"], "fine/10.png");
    assert!(values["thumbnail"]["bytes"].as_str().unwrap().starts_with("89504e47"));
    assert_eq!(values["boxes"], serde_json::json!([]));
    assert_eq!(values["daytime"], 0);
    assert_eq!(values["small"], serde_json::json!([0, 1, 2, 3]));
    let nulls = text.lines().nth(1).unwrap();
    assert!(nulls.contains("\"caption\": null, \"thumbnail\": null"), "{nulls}");
}

#[test]
fn polars_and_duckdb_read_the_datasets_of_every_form() {
    let Some(python) = python_with("pyarrow, polars, duckdb") else { return };
    let folder = tempfile::tempdir().unwrap();
    for (set, rows) in sets(folder.path()) {
        let text = said(&python, POLARS_AND_DUCKDB, &[], &set);
        assert_eq!(text, format!("polars {rows}\nduckdb {rows}\n"), "{}", set.display());
    }
}

/// The reader of the documentation and the one with pyarrow, which share no code that reads a part,
/// give the same output.
#[test]
fn the_reader_of_the_documentation_reads_every_form() {
    let Some(python) = python_with("json") else { return };
    let folder = tempfile::tempdir().unwrap();
    let has_pyarrow = python_with("pyarrow").is_some();
    for (set, rows) in sets(folder.path()) {
        let text = said(&python, READER, &[], &set);
        assert_eq!(text.lines().count(), rows, "{}: {text}", set.display());
        if has_pyarrow {
            assert_eq!(text, said(&python, PYARROW, &[], &set));
        }
    }
}

#[test]
fn the_reader_of_the_documentation_finds_damage() {
    let Some(python) = python_with("json") else { return };
    let folder = tempfile::tempdir().unwrap();
    let set = packed(folder.path(), 4);
    let part = set.join("part-00000.arrow");
    let bytes = std::fs::read(&part).unwrap();
    // A byte of the message, one of an image, one of the footer.
    let message = bytes.windows(4).rposition(|bytes| bytes == [0xff; 4]).unwrap();
    for at in [message - 200, bytes.len() / 2, bytes.len() - 40] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        std::fs::write(&part, damaged).unwrap();
        let output = Command::new(&python).arg(root().join(READER)).arg(&set).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("part-00000.arrow") && said.contains("changed"), "{at}: {said}");
    }
}

#[test]
fn keys_are_relative_paths_in_natural_order() {
    let folder = tempfile::tempdir().unwrap();
    let source = pictures(folder.path(), 24);
    std::fs::remove_dir_all(source.join("dog")).unwrap();
    run(folder.path(), &["pack", "pictures/cat", "flat.set"]).success();
    let shown = run(folder.path(), &["show", "flat.set", "1", "-o", "one.png"]).success();
    assert!(
        shown.stdout.contains("2.jpg"),
        "after 0.jpg comes 2.jpg, not 10.jpg: {}",
        shown.stdout
    );
    run(folder.path(), &["show", "flat.set", "10.jpg", "-o", "ten.npy"]).success();
    let npy = std::fs::read(folder.path().join("ten.npy")).unwrap();
    assert!(npy.starts_with(b"\x93NUMPY\x01\x00"));
    run(folder.path(), &["show", "flat.set", "99", "-o", "x.png"]).refused(&["99", "12"]);
    run(folder.path(), &["show", "flat.set", "no.jpg", "-o", "x.png"]).refused(&["no.jpg"]);
}

#[test]
fn what_is_shown_depends_on_seed_and_epoch_alone() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 6);
    let recipe = "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"random_resized_crop\"\n\
                  size = 32\n";
    std::fs::write(folder.path().join("recipe.toml"), recipe).unwrap();
    let show = |seed: &str, epoch: &str| {
        let arguments = ["show", "small.set", "3", "--recipe", "recipe.toml", "-o", "x.npy"];
        let arguments = [&arguments[..], &["--seed", seed, "--epoch", epoch]].concat();
        run(folder.path(), &arguments).success();
        std::fs::read(folder.path().join("x.npy")).unwrap()
    };
    assert_eq!(show("1", "0"), show("1", "0"));
    assert_ne!(show("1", "0"), show("2", "0"));
    assert_ne!(show("1", "0"), show("1", "1"));
}

#[test]
fn further_columns_are_listed_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let set = root().join("datasets/tests/golden/version-3");
    let set = set.to_str().unwrap();
    let listed = run(folder.path(), &["inspect", set]).success().stdout;
    for words in ["(version 3)", "5 beside the content", "caption: Utf8 (text)", "(label)"] {
        assert!(listed.contains(words), "{words} is not in {listed}");
    }
    let shown = run(folder.path(), &["show", set, "0", "-o", "x.png"]).success().stdout;
    for words in ["caption: \"a picture\"", "daytime: 0", "small: [0,1,2,3]", "\"fine/10.png\""] {
        assert!(shown.contains(words), "{words} is not in {shown}");
    }
    let json = run(folder.path(), &["show", set, "1", "-o", "x.png", "--json"]).success().stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["columns"]["caption"], serde_json::Value::Null);
    assert_eq!(json["columns"]["boxes"], serde_json::json!([[8.0, 9.0, 10.0, 11.0]]));
    run(folder.path(), &["verify", set, "--deep"]).success();
}
