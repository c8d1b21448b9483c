//! `run` with recipes of several views, verified at both ends; `recipe check`, `show`, `profile`.

use super::jobs::check_run;
use super::support::{packed, run};
use serde_json::{Value, json};
use std::path::Path;

/// Two large and eight small pictures of each sample, as DINO has them.
const DINO: &str = r#"
[[operation]]
name = "decode"

[[views]]
column = "global"
count = 2
[[views.operations]]
name = "random_resized_crop"
size = 224
scale = [0.32, 1.0]
interpolation = "bicubic"
[[views.operations]]
name = "random_horizontal_flip"
[[views.operations]]
name = "random_apply"
p = 0.8
[[views.operations.operations]]
name = "color_jitter"
brightness = 0.4
contrast = 0.4
saturation = 0.2
hue = 0.1
[[views.operations]]
name = "random_grayscale"
p = 0.2
[[views.operations]]
name = "gaussian_blur"
kernel_size = 9
[[views.operations]]
name = "layout"
layout = "NCHW"

[[views]]
column = "local"
count = 8
[[views.operations]]
name = "random_resized_crop"
size = 96
scale = [0.05, 0.32]
interpolation = "bicubic"
[[views.operations]]
name = "random_horizontal_flip"
[[views.operations]]
name = "layout"
layout = "NCHW"
"#;

/// Two pictures of each sample, as SimCLR has them.
const SIMCLR: &str = r#"
[[operation]]
name = "decode"
[[views]]
column = "views"
count = 2
[[views.operations]]
name = "random_resized_crop"
size = 64
[[views.operations]]
name = "random_horizontal_flip"
[[views.operations]]
name = "random_grayscale"
p = 0.2
[[views.operations]]
name = "to_dtype"
dtype = "float32"
scale = true
"#;

const FIVE: &str = "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"resize\"\n\
                    size = 40\n[[operation]]\nname = \"five_crop\"\nsize = 32\n";

fn report(folder: &Path, recipe: &str, strategy: &str, arguments: &[&str]) -> Value {
    std::fs::write(folder.join("views.toml"), recipe).expect("a recipe");
    let job = format!(
        "dataset = \"small.set\"\nrecipe = \"views.toml\"\nbatch_size = 4\nseed = 7\n\
         strategy = \"{strategy}\"\nworkers = 1\nstall_timeout = \"30s\"\n\
         [device]\nkind = \"emulated\"\nallow_shared = true\n"
    );
    std::fs::write(folder.join("job.toml"), job).expect("a job file");
    let mut all = vec!["run", "job.toml", "--json"];
    all.extend(arguments);
    let done = run(folder, &all).success();
    serde_json::from_str(&done.stdout).expect("--json prints one JSON document")
}

fn column(name: &str, dtype: &str, shape: &[u32]) -> Value {
    json!({"name": name, "kind": "tensor", "dtype": dtype, "shape": shape})
}

#[test]
fn ten_views_of_each_sample_are_verified_at_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 48);
    let device = report(folder.path(), DINO, "device-only", &[]);
    check_run(&device["runs"][0]);
    assert_eq!(device["runs"][0]["totals"]["device_batches"], 12);
    let label = column("label", "int64", &[]);
    let (global, local) =
        (column("global", "uint8", &[2, 3, 224, 224]), column("local", "uint8", &[8, 3, 96, 96]));
    assert_eq!(device["job"]["columns"], json!([global, local, label]));
    let both = report(folder.path(), DINO, "wrr", &["--columns", "label,local"]);
    check_run(&both["runs"][0]);
    assert_eq!(both["job"]["columns"], json!([label, local]));
}

#[test]
fn two_views_and_five_crops_are_verified_at_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 48);
    for (recipe, columns) in [
        (SIMCLR, column("views", "float32", &[2, 64, 64, 3])),
        (FIVE, column("image", "uint8", &[5, 32, 32, 3])),
    ] {
        for strategy in ["host-only", "device-only", "mte"] {
            let report = report(folder.path(), recipe, strategy, &[]);
            check_run(&report["runs"][0]);
            assert_eq!(report["job"]["columns"][0], columns);
        }
    }
}

#[test]
fn a_job_may_hold_its_views() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 48);
    let job = "dataset = \"small.set\"\nbatch_size = 4\nstrategy = \"host-only\"\n\
               [[recipe.operation]]\nname = \"decode\"\n\
               [[recipe.views]]\ncolumn = \"x\"\ncount = 3\n\
               [[recipe.views.operations]]\nname = \"random_resized_crop\"\nsize = 16\n";
    std::fs::write(folder.path().join("job.toml"), job).expect("a job file");
    let done = run(folder.path(), &["run", "job.toml", "--json"]).success();
    let report: Value = serde_json::from_str(&done.stdout).expect("a document");
    check_run(&report["runs"][0]);
    assert_eq!(report["job"]["columns"][0], column("x", "uint8", &[3, 16, 16, 3]));
    let wrong = job.replace("count = 3", "cuont = 3");
    std::fs::write(folder.path().join("job.toml"), wrong).expect("a job file");
    run(folder.path(), &["run", "job.toml"]).refused(&["job.toml:8:1", "`cuont`", "`count`"]);
}

#[test]
fn a_recipe_with_views_is_checked_shown_and_not_profiled() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 48);
    std::fs::write(folder.path().join("dino.toml"), DINO).expect("a recipe");
    let checked = run(folder.path(), &["recipe", "check", "dino.toml"]).success();
    assert!(checked.stdout.contains("global: uint8, 2 x 3 x 224 x 224, 301056 bytes"));
    assert!(checked.stdout.contains("local: uint8, 8 x 3 x 96 x 96, 221184 bytes"));
    let json = run(folder.path(), &["recipe", "check", "dino.toml", "--json"]).success();
    let json: Value = serde_json::from_str(&json.stdout).expect("a document");
    assert_eq!(json["views"][1]["shape"], json!([8, 3, 96, 96]));
    assert_eq!(json["shape"], Value::Null);

    let show = |arguments: &[&str]| {
        let all = [&["show", "small.set", "3", "--recipe", "dino.toml"], arguments].concat();
        run(folder.path(), &all)
    };
    let shown = show(&["-o", "all.png", "--json"]).success();
    let shown: Value = serde_json::from_str(&shown.stdout).expect("a document");
    assert_eq!(shown["views"][0], json!({"column": "global", "shape": [2, 3, 224, 224]}));
    let file = std::fs::read(folder.path().join("all.png")).expect("a picture");
    // Width and height are the first two numbers of the header, PNG specification, 11.2.1.
    let side = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().expect("four bytes"));
    assert_eq!((side(16), side(20)), (2 * 224 + 8 * 96, 224));
    show(&["--view", "local", "-o", "local.npy"]).success();
    let array = std::fs::read(folder.path().join("local.npy")).expect("an array");
    let header = String::from_utf8_lossy(&array[..128]).into_owned();
    assert!(header.contains("(8, 3, 96, 96)"), "{header}");
    assert_eq!(array.len(), 128 + 8 * 3 * 96 * 96);
    show(&["-o", "x.npy"]).refused(&["one array", "global, local", "--view global"]);
    show(&["--view", "globl", "-o", "x.png"]).refused(&["\"globl\"", "global"]);

    let profiled = run(folder.path(), &["profile", "dino.toml", "small.set"]);
    profiled.refused(&["\"global\"", "several pictures", "common operations"]);
}
