//! The recipes of the PRESTO paper for pictures: profiled, prepared and run, with the same bits
//! from the files and from every cut.

use super::jobs::job;
use super::support::{packed, run};
use serde_json::Value;
use std::path::Path;

/// A job with a shipped recipe, whose samples are verified.
fn job_of(recipe: &str, dataset: &str) -> String {
    let text = job("host-only", 1, "");
    let (start, end) = (text.find("[[recipe").expect("a recipe"), text.find("[device]"));
    let end = end.expect("a device");
    let text = format!("recipe = \"{recipe}\"\n{}{}", &text[..start], &text[end..]);
    text.replace("small.set", dataset)
}

fn document(done: &super::support::Finished) -> Value {
    serde_json::from_str(&done.stdout).expect("a JSON document")
}

/// One sample as the model sees it.
fn shown(folder: &Path, recipe: &str, dataset: &str) -> Vec<u8> {
    run(folder, &["show", dataset, "3", "--recipe", recipe, "-o", "x.npy"]).success();
    std::fs::read(folder.join("x.npy")).expect("an array")
}

fn check(folder: &Path, recipe: &str, cuts: &[&str]) {
    let profile = ["profile", recipe, "small.set", "--runs=2", "--samples=4", "--codecs=none"];
    let profile = document(&run(folder, &[&profile[..], &["--json"]].concat()).success());
    let results = profile["results"].as_array().expect("a list of results");
    for (index, operation) in cuts.iter().enumerate() {
        let is_point = |it: &Value| it["operation"] == *operation && it["operations"] == index + 1;
        assert!(results.iter().any(is_point), "{recipe}: {operation}");
    }
    let refused = profile["refused_points"].as_array().expect("a list");
    assert!(refused.iter().any(|it| it["operation"] == "random_crop"), "{recipe}: {refused:?}");

    let expected = shown(folder, recipe, "small.set");
    for cut in cuts {
        let prepare = ["prepare", recipe, "small.set", "cut.set", "--cut", cut, "--force"];
        run(folder, &prepare).success();
        assert!(shown(folder, recipe, "cut.set") == expected, "{recipe}: {cut}");
        let job = job_of(recipe, "cut.set");
        std::fs::write(folder.join("job.toml"), job).expect("a job file");
        let report = document(&run(folder, &["run", "job.toml", "--json"]).success());
        super::jobs::check_run(&report["runs"][0]);
        assert_eq!(report["job"]["columns"][0]["dtype"], "float32", "{recipe}: {cut}");
    }
    let prepare = ["prepare", recipe, "small.set", "cut2.set", "--cut", "random_crop"];
    let refused = run(folder, &prepare);
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    assert!(refused.stderr.contains("random_crop"), "{refused:?}");
}

#[test]
fn photographs_are_profiled_prepared_and_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    packed(folder, 48);
    check(folder, "presto-cv", &["decode", "resize"]);
    check(folder, "presto-cv2-jpg", &["decode", "resize"]);
    check(folder, "presto-cv-grey", &["decode", "resize", "grayscale"]);
}

#[test]
fn pictures_of_16_bits_are_profiled_prepared_and_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    super::modes::packed(folder, 3, 16);
    check(folder, "presto-cv2-png", &["decode", "resize"]);
}

#[test]
fn a_tuned_run_says_what_it_ended_with_and_delivers_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    packed(folder, 48);
    let job = job_of("presto-cv", "small.set");
    std::fs::write(folder.join("job.toml"), &job).expect("a job file");
    let plain = document(&run(folder, &["run", "job.toml", "--json"]).success());
    let words = ["run", "job.toml", "--tune", "--epochs", "2", "--json"];
    let tuned = document(&run(folder, &words).success());
    super::jobs::check_run(&tuned["runs"][0]);
    let [before, after] = [&plain, &tuned].map(|report| &report["runs"][0]["epochs"][0]);
    assert_eq!(before["order_hash"], after["order_hash"]);
    assert!(before["tuning"].is_null());
    assert_eq!(tuned["job"]["tune"], "auto");
    let tuning = &after["tuning"];
    assert!(tuning["end"]["workers"].as_u64().expect("a number") >= 1);
    let budget = tuning["budget"]["ahead_max"].as_u64().expect("a number");
    assert!(tuning["end"]["ahead"].as_u64().expect("a number") <= budget);
    // In the job file, and undone on the command line.
    std::fs::write(folder.join("job.toml"), format!("tune = \"auto\"\n{job}")).expect("a job");
    let untuned = document(&run(folder, &["run", "job.toml", "--no-tune", "--json"]).success());
    assert!(untuned["runs"][0]["epochs"][0]["tuning"].is_null());
    std::fs::write(folder.join("job.toml"), format!("tune = \"yes\"\n{job}")).expect("a job");
    run(folder, &["run", "job.toml"]).refused(&["tune", "auto", "off"]);
}
