//! Recipes that come with the program: listed, shown, changed, run by name, and as a sheet.

use super::jobs::{SAMPLES, job};
use super::support::{packed, run};
use serde_json::Value;

#[test]
fn shipped_recipes_are_listed_and_shown_as_files() {
    let folder = tempfile::tempdir().unwrap();
    let listed = run(folder.path(), &["recipe", "list", "--json"]).success().stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let recipes = listed["recipes"].as_array().unwrap();
    let table = run(folder.path(), &["recipe", "list"]).success().stdout;
    for recipe in recipes {
        let name = format!("{}@{}", recipe["name"].as_str().unwrap(), recipe["version"]);
        assert!(table.contains(&name), "{name} in {table}");
    }
    let shown = run(folder.path(), &["recipe", "show", "deit", "--set", "num_classes=7"]);
    std::fs::write(folder.path().join("mine.toml"), shown.success().stdout).unwrap();
    let check = |name: &str, more: &[&str]| {
        let arguments = [&["recipe", "check", name, "--json"], more].concat();
        let document = run(folder.path(), &arguments).success().stdout;
        serde_json::from_str::<Value>(&document).unwrap()["sha256"].clone()
    };
    assert_eq!(check("mine.toml", &[]), check("deit@1", &["--set", "num_classes=7"]));
    assert_ne!(check("mine.toml", &[]), check("deit", &[]));
}

#[test]
fn a_name_that_is_no_recipe_or_two_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], words: &[&str]| {
        run(folder.path(), arguments).refused(words);
    };
    refused(&["recipe", "show", "dait"], &["\"dait\"", "did you mean `deit`?"]);
    refused(&["recipe", "check", "dait"], &["no such file", "did you mean `deit`?"]);
    refused(&["recipe", "show", "deit@8"], &["the latest is deit@1", "choose deit@1"]);
    refused(&["recipe", "check", "deit.toml"], &["deit.toml", "shipped recipe"]);
    refused(&["recipe", "show", "deit-eval", "--set", "size=9"], &["several", "resize.size"]);
    std::fs::write(folder.path().join("deit"), "").unwrap();
    refused(&["recipe", "check", "deit"], &["both a file and", "./deit", "rename it"]);
}

#[test]
fn a_job_runs_a_shipped_recipe_at_host_and_device() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    std::fs::write(folder.path().join("job.toml"), job("wrr", 0, "")).unwrap();
    let arguments = ["run", "job.toml", "--recipe", "deit", "--set", "num_classes=2"];
    let small = ["--set", "random_resized_crop.size=32", "--report", "out", "--json"];
    let report = run(folder.path(), &[&arguments[..], &small].concat()).success().stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    assert!(report["job"]["recipe_toml"].as_str().unwrap().contains("timm_rand_augment"));
}

#[test]
fn a_job_names_a_shipped_recipe() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 8);
    let run_with = |name: &str| {
        let text = format!("dataset = \"small.set\"\nbatch_size = 4\nrecipe = \"{name}\"\n");
        std::fs::write(folder.path().join("job.toml"), text).unwrap();
        run(folder.path(), &["run", "job.toml", "--json"])
    };
    let report: Value = serde_json::from_str(&run_with("cifar-eval@1").success().stdout).unwrap();
    assert!(report["job"]["recipe_toml"].as_str().unwrap().contains("center_crop"));
    run_with("cifar-evel").refused(&["job.toml:3:10", "did you mean `cifar-eval`?"]);
    run_with("absent.toml").refused(&["job.toml:3:10", "absent.toml", "relative to the job file"]);
    std::fs::write(folder.path().join("cifar-eval"), "").unwrap();
    run_with("cifar-eval").refused(&["job.toml:3:10", "both a file and the shipped recipe"]);
}

#[test]
fn show_without_a_sample_draws_a_contact_sheet() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 5);
    let sheet = ["show", "small.set", "--recipe", "cifar", "--samples", "3", "--draws", "2"];
    let done = run(folder.path(), &[&sheet[..], &["-o", "sheet.png", "--json"]].concat());
    let document: Value = serde_json::from_str(&done.success().stdout).unwrap();
    // Pictures of 32 are enlarged to 128; the stored picture comes first.
    assert_eq!((&document["width"], &document["height"]), (&400.into(), &400.into()));
    assert_eq!(document["epochs"], serde_json::json!([0, 1]));
    let rows: Vec<u64> = document["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["sample"].as_u64())
        .collect();
    assert_eq!(rows, [0, 1, 3]);
    let file = std::fs::read(folder.path().join("sheet.png")).unwrap();
    // The header of a PNG: width and height are the first fields of IHDR.
    assert_eq!(file[12..24], [&b"IHDR"[..], &[0, 0, 1, 144, 0, 0, 1, 144]].concat()[..]);
    // Two large pictures and eight small ones in two rows; the stored picture is as wide as a large
    // one.
    let views = ["show", "small.set", "--recipe", "dinov2", "--samples", "1", "--draws", "1"];
    let done = run(folder.path(), &[&views[..], &["-o", "views.png", "--json"]].concat());
    let document: Value = serde_json::from_str(&done.success().stdout).unwrap();
    let width = 12 + 224 + 12 + 2 * (224 + 2) + 4 * (96 + 2) - 2 + 12;
    assert_eq!((&document["width"], &document["height"]), (&width.into(), &248.into()));
    let npy = run(folder.path(), &[&sheet[..], &["-o", "sheet.npy"]].concat());
    assert_eq!(npy.code(), Some(2));
    assert!(run(folder.path(), &["show", "small.set", "-o", "x.png"]).code() == Some(2));
    let boxes = ["show", "small.set", "--recipe", "coco-detection", "-o", "x.png"];
    run(folder.path(), &boxes).refused(&["boxes"]);
}
