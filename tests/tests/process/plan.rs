//! `meetpoint plan` and `run --plan`: what is written, applied, reported and refused.

use super::support::{Finished, packed, run};
use serde_json::Value;
use std::path::Path;

const RECIPE: &str = "\
[[operation]]
name = \"decode\"
[[operation]]
name = \"resize\"
size = 32
[[operation]]
name = \"random_crop\"
size = 24
";

/// A packed dataset, a recipe, and the results of a short profile of them.
fn prepare(folder: &Path) {
    packed(folder, 12);
    std::fs::write(folder.join("recipe.toml"), RECIPE).unwrap();
    let short = ["--runs", "2", "--samples", "4", "--threads", "1,2", "--csv", "results.csv"];
    run(folder, &[&["profile", "recipe.toml", "small.set"][..], &short].concat()).success();
}

fn planned(folder: &Path, further: &[&str]) -> Finished {
    let plan = ["plan", "recipe.toml", "small.set", "--profile", "results.csv"];
    run(folder, &[&plan[..], &["--batch-size", "4", "--epochs", "3"], further].concat())
}

fn report(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("out/report.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_plan_is_explained_written_applied_and_compared_with_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    prepare(folder);
    let pins = ["--pin", "stored=packed", "--pin", "workers=2", "--pin", "cache=8MiB"];
    let done = planned(folder, &[&pins[..], &["-o", "plan.toml"]].concat()).success();
    for part in ["Best for 3 epochs", "a cache of", "There is no device"] {
        assert!(done.stdout.contains(part), "{part} in {done:?}");
    }
    let text = std::fs::read_to_string(folder.join("plan.toml")).unwrap();
    assert!(
        text.contains("# The user fixed the background threads to 2.\nworkers = 2\n"),
        "{text}"
    );
    run(folder, &["run", "--plan", "plan.toml", "--report", "out"]).success();
    let report = report(folder);
    let ran = &report["runs"][0];
    assert_eq!(ran["levels"][2]["verdict"], "verified", "{ran}");
    let plan = &ran["plan"];
    assert_eq!(plan["is_first_epoch"], false);
    assert_eq!(plan["achieved"]["cache_hit_share"], 1.0);
    assert!(plan["predicted"]["epoch_seconds"].as_f64().unwrap() > 0.0);
    let hits = |epoch: usize| ran["epochs"][epoch]["cache"]["hits"].as_u64().unwrap();
    assert_eq!((hits(0), hits(1), hits(2)), (0, 12, 12));
}

/// Adds rows to the results in which a GPU makes the packed files a hundred times as fast.
fn add_gpu(folder: &Path) {
    let path = folder.join("results.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    let heading: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let column = |name: &str| heading.iter().position(|it| *it == name).unwrap();
    let mut all = text.clone();
    for line in text.lines().filter(|it| it.starts_with("packed,0,,none,")) {
        let mut row: Vec<String> = line.split(',').map(str::to_owned).collect();
        if row[column("cache")] == "application" {
            continue;
        }
        for rate in ["cold_per_second", "per_second"] {
            let faster = row[column(rate)].parse::<f64>().unwrap() * 100.0;
            row[column(rate)] = faster.to_string();
        }
        row[column("gpu")] = "cuda:0".to_owned();
        row[column("gpu_seconds")] = "1e-7".to_owned();
        all += &(row.join(",") + "\n");
    }
    std::fs::write(&path, all).unwrap();
}

#[test]
fn a_plan_with_a_gpu_is_a_job_with_it_and_is_compared_with_a_run_without() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    prepare(folder);
    planned(folder, &["--gpu-decode", "cuda:0"]).refused(&["cuda:0", "--gpu-decode cuda:0"]);
    add_gpu(folder);
    planned(folder, &["--gpu-decode", "cuda:1"]).refused(&["no measurement", "cuda:1"]);
    let done = planned(folder, &["--gpu-decode", "cuda:0", "-o", "plan.toml"]).success();
    assert!(done.stdout.contains("cuda:0 can prepare a share of each batch"), "{done:?}");
    let text = std::fs::read_to_string(folder.join("plan.toml")).unwrap();
    assert!(text.contains("\ngpu_decode = \"cuda:0\"\n"), "{text}");
    assert!(!text.contains("\n[plan.offline]\n"), "{text}");
    // Wrong usage, before anything is measured.
    let misused = |done: Finished, parts: &[&str]| {
        assert_eq!(done.code(), Some(2), "{done:?}");
        for part in parts {
            assert!(done.stderr.contains(part), "{part} in {done:?}");
        }
    };
    misused(planned(folder, &["--step", "10000000000s"]), &["--step", "more than a day"]);
    misused(planned(folder, &["--pin", "gpu=none", "--pin", "gpu=cuda:0"]), &["more than once"]);
    let pinned = ["--gpu-decode", "cuda:0", "--pin", "gpu=cuda:1"];
    misused(planned(folder, &pinned), &["gpu is fixed to cuda:1, but cuda:0 is measured"]);
    let words = ["plan", "imagenet-resnet@2", "small.set", "--pin", "gpu=cuda:0"];
    misused(run(folder, &words), &["no GPU is measured", "--gpu-decode cuda:0"]);
    // No power model of a GPU that draws no watts.
    planned(folder, &["--goal", "energy"]).refused(&["draws no watts", "--power"]);
    planned(folder, &["--goal", "energy", "--power", "server-h100"]).success();
    // The key is that of a job, so a run can turn it off.
    run(folder, &["run", "--plan", "plan.toml", "--no-gpu-decode", "--report", "out"]).success();
    let report = report(folder);
    let plan = &report["runs"][0]["plan"];
    assert!(plan["predicted"]["gpu_seconds"].as_f64().unwrap() > 0.0, "{plan}");
    assert_eq!(plan["achieved"]["gpu_seconds"], 0.0);
    assert_eq!(plan["deviations"][0]["kind"], "gpu_unused", "{plan}");
    planned(folder, &["--pin", "gpu=none", "-o", "cpu.toml"]).success();
    let text = std::fs::read_to_string(folder.join("cpu.toml")).unwrap();
    assert!(text.contains("# No GPU. The user fixed the GPU to none.\n"), "{text}");
    assert!(!text.contains("gpu_decode"), "{text}");
    // A wrong figure is refused with the file and the line.
    let results = std::fs::read_to_string(folder.join("results.csv")).unwrap();
    let line = results.lines().count();
    std::fs::write(folder.join("results.csv"), results.replace("cuda:0,1e-7", "cuda:0,0")).unwrap();
    let refused = planned(folder, &[]).refused(&["results.csv", "`gpu_seconds` is 0"]);
    let lines = (line - 3)..=line;
    assert!(lines.into_iter().any(|it| refused.stderr.contains(&format!("line {it}:"))));
}

#[test]
fn a_plan_with_an_offline_part_names_the_command_and_runs_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    prepare(folder);
    let pins = ["--pin", "stored=2-resize", "--pin", "codec=lz4", "--pin", "cache=0"];
    planned(folder, &[&pins[..], &["-o", "plan.toml"]].concat()).success();
    let missing = run(folder, &["run", "--plan", "plan.toml"]);
    let missing = missing.refused(&["prepares 2-resize in advance", "meetpoint prepare "]);
    let command = missing.stderr.split('`').find(|it| it.starts_with("meetpoint ")).unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    run(folder, &words).success();
    run(folder, &["run", "--plan", "plan.toml", "--report", "out"]).success();
    assert_eq!(report(folder)["runs"][0]["levels"][2]["verdict"], "verified");
    // Other datasets that were made from the same source.
    let prepared = ["prepare", "recipe.toml", "small.set", "decoded.set", "--cut", "1"];
    run(folder, &prepared).success();
    run(folder, &["dataset", "shuffle", "small.set", "shuffled.set"]).success();
    for (other, difference) in [("decoded.set", "cut 1-decode"), ("shuffled.set", "`shuffle`")] {
        let refused = run(folder, &["run", "--plan", "plan.toml", "--dataset", other]);
        refused.refused(&["another dataset", "made from it by", difference]);
    }
}

#[test]
fn a_plan_for_another_recipe_or_dataset_is_refused_with_the_difference() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    prepare(folder);
    planned(folder, &["--pin", "stored=packed", "-o", "plan.toml"]).success();
    let again = planned(folder, &["-o", "plan.toml"]);
    again.refused(&["plan.toml exists", "--force"]);
    std::fs::write(folder.join("recipe.toml"), RECIPE.replace("size = 32", "size = 33")).unwrap();
    let other = run(folder, &["run", "--plan", "plan.toml"]);
    other.refused(&["another recipe", "operation 2", "size = 32", "size = 33"]);
    std::fs::write(folder.join("recipe.toml"), RECIPE).unwrap();
    std::fs::create_dir(folder.join("other")).unwrap();
    packed(&folder.join("other"), 13);
    let other = run(folder, &["run", "--plan", "plan.toml", "--dataset", "other/small.set"]);
    other.refused(&["another dataset", "12 samples", "13"]);
    let job = "dataset = \"small.set\"\nrecipe = \"recipe.toml\"\nbatch_size = 4\n";
    std::fs::write(folder.join("job.toml"), job).unwrap();
    run(folder, &["run", "--plan", "job.toml"]).refused(&["no table [plan]"]);
}

#[test]
fn what_does_not_fit_or_does_not_exist_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    prepare(folder);
    let large = ["plan", "recipe.toml", "small.set", "--batch-size", "13"];
    run(folder, &large).refused(&["a batch of 13", "12 samples", "batch_size to 12"]);
    planned(folder, &["--memory-limit", "1kB"]).refused(&["no plan fits the limits"]);
    planned(folder, &["--pin", "stored=9-blur"]).refused(&["no measurement of 9-blur"]);
    assert_eq!(planned(folder, &["--pin", "worker=2"]).code(), Some(2));
    assert_eq!(planned(folder, &["--device", "gpu"]).code(), Some(2));
    let job = "dataset = \"small.set\"\nrecipe = \"recipe.toml\"\nbatch_size = 4\n\
               cache = \"900TiB\"\n";
    std::fs::write(folder.join("job.toml"), job).unwrap();
    run(folder, &["run", "job.toml"]).refused(&["a cache of 900 TiB"]);
}
