//! `meetpoint prepare`: what is stored, read back, run with a device, resumed and refused.

use super::jobs::report;
use super::support::{command, finish, packed, run, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const RECIPE: &str = "\
[[operation]]
name = \"decode\"
[[operation]]
name = \"resize\"
size = 48
[[operation]]
name = \"random_resized_crop\"
size = 24
[[operation]]
name = \"to_dtype\"
dtype = \"float32\"
scale = true
";

/// A packed dataset of a given number of samples, and a recipe.
fn begin(folder: &Path, samples: u32) {
    packed(folder, samples);
    std::fs::write(folder.join("recipe.toml"), RECIPE).unwrap();
}

fn shown(folder: &Path, dataset: &str, epoch: &str) -> Vec<u8> {
    let arguments =
        ["show", dataset, "3", "--recipe", "recipe.toml", "--epoch", epoch, "-o", "seen.npy"];
    run(folder, &arguments).success();
    let seen = std::fs::read(folder.join("seen.npy")).unwrap();
    std::fs::remove_file(folder.join("seen.npy")).unwrap();
    seen
}

#[test]
fn a_prepared_dataset_is_shown_verified_and_run_with_a_device_like_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    begin(folder, 24);
    let prepare = ["prepare", "recipe.toml", "small.set", "prepared.set", "--cut", "resize"];
    let done = run(folder, &[&prepare[..], &["--codec", "lz4", "--json"]].concat()).success();
    let summary: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(
        (&summary["samples"], &summary["cut"], &summary["prepared"]["codec"]),
        (&24.into(), &"2-resize".into(), &"lz4".into())
    );
    for epoch in ["0", "1"] {
        let [source, prepared] = ["small.set", "prepared.set"].map(|it| shown(folder, it, epoch));
        assert!(source == prepared, "epoch {epoch}");
    }
    assert!(shown(folder, "prepared.set", "0") != shown(folder, "prepared.set", "1"));
    run(folder, &["verify", "prepared.set", "--deep"]).success();
    let inspected = run(folder, &["inspect", "prepared.set"]).success();
    assert!(inspected.stdout.contains("by 2 operations: decode, resize"), "{inspected:?}");

    let operations = RECIPE.replace("[[operation]]", "[[recipe.operation]]");
    let job = format!(
        "dataset = \"prepared.set\"\nbatch_size = 2\nseed = 5\nstrategy = \"wrr\"\nworkers = 1\n\
         {operations}\n[device]\nkind = \"emulated\"\nallow_shared = true\n\
         [accelerator]\nkind = \"emulated\"\nstep = \"20ms\"\n"
    );
    let report = report(folder, &job, &[]);
    let levels = report["runs"][0]["levels"].as_array().unwrap();
    let verdict = |name: &str| levels.iter().find(|it| it["level"] == name).unwrap();
    for level in ["C0", "C1", "C2"] {
        assert_eq!(verdict(level)["verdict"], "verified", "{level} in {report}");
    }
}

#[test]
fn a_recipe_that_is_not_continued_and_a_cut_that_is_none_are_refused_with_the_operation() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    begin(folder, 4);
    let prepare = |further: &[&str]| {
        let all = ["prepare", "recipe.toml", "small.set", "prepared.set"];
        run(folder, &[&all[..], further].concat())
    };
    let wrong: [(&[&str], &str); 5] = [
        (&["--cut", "3"], "`random_resized_crop`, has random parameters"),
        (&["--cut", "9"], "4 operations"),
        (&["--cut", "rotate"], "1-decode, 2-resize"),
        (&["--cut", "2-resize-jpeg"], "--lossy-jpeg"),
        (&["--cut", "packed"], "meetpoint pack"),
    ];
    for (arguments, word) in wrong {
        let done = prepare(arguments);
        assert_eq!(done.code(), Some(2), "{done:?}");
        assert!(done.stderr.contains(word), "{word} in {done:?}");
    }
    prepare(&["--cut", "2", "--lossy-jpeg", "80"]).success();
    let other = RECIPE.replace("size = 48", "size = 50");
    std::fs::write(folder.join("recipe.toml"), other).unwrap();
    let show = ["show", "prepared.set", "0", "--recipe", "recipe.toml", "-o", "x.npy"];
    run(folder, &show).refused(&["operation 2 was `resize", "size = 48", "size = 50"]);
}

#[test]
fn a_preparation_that_is_stopped_leaves_nothing_and_with_resume_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    begin(folder, 200);
    let all = ["prepare", "recipe.toml", "small.set", "prepared.set", "--cut", "1"];
    let resumable = [&all[..], &["--resume", "--threads", "1", "--part-size", "64KiB"]].concat();
    let child = command(folder, &resumable).spawn().unwrap();
    let has_part = || {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        let mut partial =
            entries.filter(|it| it.file_name().to_string_lossy().contains(".partial-"));
        partial.any(|it| it.path().join("part-00001.arrow").exists())
    };
    let begun = until(Duration::from_secs(60), has_part);
    assert!(begun, "parts are written");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let stopped = finish(child);
    // It may have ended before the signal.
    if stopped.code() != Some(0) {
        assert!(!folder.join("prepared.set").exists(), "{stopped:?}");
        let done = run(folder, &resumable).success();
        assert!(done.stdout.contains("retained from"), "{done:?}");
        run(folder, &["verify", "prepared.set", "--deep"]).success();
    }
}
