//! Datasets at a URL that commands use in place: trained on, inspected, verified.

use crate::support::{ProcessOutput, pack_here, pictures, program, run};
use crate::web::{Fault, Web};
use std::path::Path;
use std::time::{Duration, Instant};

const CACHE: [&str; 4] = ["--cache-dir", "cache", "--cache-size", "64MiB"];

const JOB: &str = "dataset = \"here.set\"
batch_size = 4
workers = 2
shuffle = true
epochs = 2
strategy = \"host-only\"
[[recipe.operation]]
name = \"decode\"
[[recipe.operation]]
name = \"center_crop\"
size = 16
";

/// A server with a dataset, which is also here.
fn with_dataset(folder: &Path, samples: u32) -> Web {
    pack_here(folder, &pictures(&folder.join("photos"), samples), "here.set", &[]);
    std::fs::write(folder.join("job.toml"), JOB).unwrap();
    let web = Web::start();
    web.put_all("/there.set", &folder.join("here.set"));
    web
}

fn run_job(folder: &Path, web: &Web, report: &str) -> ProcessOutput {
    let url = format!("{}/there.set", web.url);
    let arguments = ["run", "job.toml", "--dataset", &url, "--report", report];
    run(program(folder, &[&arguments[..], &CACHE].concat()))
}

fn report(folder: &Path, name: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(folder.join(name).join("report.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_run_reads_its_dataset_from_a_url_and_reports_what_it_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let web = with_dataset(folder.path(), 40);
    run_job(folder.path(), &web, "there").success();
    let here = ["run", "job.toml", "--report", "here"];
    run(program(folder.path(), &here)).success();
    let [here, there] = ["here", "there"].map(|name| report(folder.path(), name));
    let epochs =
        |report: &serde_json::Value| report["runs"][0]["epochs"].as_array().unwrap().clone();
    for (here, there) in epochs(&here).iter().zip(epochs(&there)) {
        assert_eq!(here["order_hash"], there["order_hash"]);
        assert!(here["store"].is_null());
    }
    let store = &epochs(&there)[0]["store"];
    assert!(store["fetched_bytes"].as_u64().unwrap() > 0, "{store}");
    assert!(store["requests"].as_u64().unwrap() > 0, "{store}");
    // The second epoch finds everything in the cache.
    assert_eq!(epochs(&there)[1]["store"]["requests"], 0);
}

#[test]
fn a_run_that_is_killed_leaves_a_cache_that_the_next_one_uses() {
    let folder = tempfile::tempdir().unwrap();
    let web = with_dataset(folder.path(), 40);
    web.state().slowness = Duration::from_millis(30);
    let url = format!("{}/there.set", web.url);
    let arguments = ["run", "job.toml", "--dataset", &url, "--report", "killed"];
    let mut child = program(folder.path(), &[&arguments[..], &CACHE].concat()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_part = |request: &(String, String, Option<String>)| request.1.ends_with(".arrow");
    while web.state().requests.iter().filter(|request| is_part(request)).count() < 2 {
        assert!(Instant::now() < deadline, "it requests parts");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    web.state().slowness = Duration::ZERO;
    run_job(folder.path(), &web, "again").success();
    web.state().requests.clear();
    run_job(folder.path(), &web, "cached").success();
    let parts = web.state().requests.iter().filter(|request| is_part(request)).count();
    let files = std::fs::read_dir(folder.path().join("here.set")).unwrap().count();
    assert!(parts <= 2 * files, "{parts} requests: only the footers, when it checks and runs");
}

#[test]
fn inspect_and_verify_take_a_url() {
    let folder = tempfile::tempdir().unwrap();
    let web = with_dataset(folder.path(), 10);
    let url = format!("{}/there.set", web.url);
    for command in ["inspect", "verify"] {
        let arguments = [&[command, &url][..], &CACHE].concat();
        let said = run(program(folder.path(), &arguments)).success();
        assert!(said.stdout.contains("10"), "{}", said.stdout);
    }
}

#[test]
fn what_cannot_be_done_at_a_url_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let web = with_dataset(folder.path(), 60);
    let url = format!("{}/there.set", web.url);
    let device = format!("{JOB}[device]\nkind = \"emulated\"\n").replace("host-only", "mte");
    std::fs::write(folder.path().join("device.toml"), device).unwrap();
    let arguments = ["run", "device.toml", "--dataset", &url];
    let said = run(program(folder.path(), &[&arguments[..], &CACHE].concat()));
    said.refused(&[&url, "devices read folders of their own machine", "host-only"]);
    // A cache that holds the whole dataset is large enough for any reader.
    let arguments = ["run", "job.toml", "--dataset", &url, "--cache-dir", "cache"];
    let small = ["--cache-size", "64KiB"];
    let said = run(program(folder.path(), &[&arguments[..], &small].concat()));
    said.refused(&["readers may need", "--cache-size"]);
    let show = ["show", &url, "0", "--output", "0.png"];
    run(program(folder.path(), &show)).refused(&["cannot be used here"]);
    web.fault("/there.set/dataset.json", Fault { status: Some((403, 99)), ..Fault::default() });
    run_job(folder.path(), &web, "refused").refused(&["dataset.json", "403"]);
}
