//! Pictures of different sizes with real devices: padded or listed, grouped by aspect ratio, under
//! every strategy, several ranks, faults, and with slots that are too small.

use super::jobs::{BATCHES, SAMPLES, check_run, job, number, report};
use super::support::{packed, run};
use serde_json::{Value, json};

/// The job of `jobs` with a recipe whose pictures have sizes of their own, and further keys.
fn varied(strategy: &str, workers: u32, device: &str, keys: &str) -> String {
    let crop = "name = \"random_resized_crop\"\nsize = 48\n";
    let job = job(strategy, workers, device);
    assert!(job.contains(crop));
    let shortest = "name = \"random_shortest_size\"\nmin_size = [24, 31, 40]\nmax_size = 57\n";
    format!("{keys}\n{}", job.replace(crop, shortest))
}

const PAD: &str = "collate = { mode = \"pad\", multiple_of = 8, fill = 114 }\n\
                   columns = [\"image\", \"image_size\", \"padding_mask\", \"key\"]";

#[test]
fn every_strategy_delivers_the_same_padded_and_listed_pictures() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let grouped = "sampler = \"aspect_ratio\"";
    for keys in [PAD, "collate = \"list\"", &format!("{PAD}\n{grouped}")] {
        let job = varied("wrr", 1, "", keys);
        let report = report(folder.path(), &job, &["--strategy", "all"]);
        let mut of_devices = 0;
        for run in report["runs"].as_array().expect("runs") {
            check_run(run);
            of_devices += number(run, "/totals/device_batches");
        }
        assert!(of_devices > BATCHES, "devices prepared batches: {keys}");
        let columns = &report["job"]["columns"];
        if keys == "collate = \"list\"" {
            assert_eq!(report["job"]["collate"], "list");
            let image = json!(
                {"name": "image", "kind": "shaped", "dtype": "uint8", "shape": [0, 0, 3]}
            );
            assert_eq!(columns[0], image);
        } else {
            assert_eq!(report["job"]["collate"], "pad, multiple_of = 8, fill = 114");
            let mask = json!(
                {"name": "padding_mask", "kind": "padded tensor", "dtype": "bool", "shape": [0, 0]}
            );
            assert_eq!(columns[2], mask);
        }
    }
}

#[test]
fn a_spool_in_a_file_holds_padded_pictures_too() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let spool = "\n[spool]\nkind = \"file\"\ndirectory = \".\"\nquota = \"8MiB\"\n";
    let job = format!("{}{spool}", varied("device-only", 1, "", PAD));
    let report = report(folder.path(), &job, &[]);
    check_run(&report["runs"][0]);
    assert_eq!(number(&report["runs"][0], "/totals/device_batches"), BATCHES);
}

#[test]
fn a_device_that_dies_in_mid_epoch_costs_no_padded_batch() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let keys = format!("{PAD}\nsampler = \"aspect_ratio\"");
    for fault in ["die@2", "corrupt@1", "tear@1"] {
        let device = format!("faults = [\"{fault}\"]");
        let report = report(folder.path(), &varied("device-only", 0, &device, &keys), &[]);
        let run = &report["runs"][0];
        check_run(run);
        assert!(number(run, "/totals/host_batches") > 0, "{fault}: {run}");
    }
}

#[test]
fn ranks_divide_batches_of_similar_aspect_ratios() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let keys = format!("ranks = 2\n{PAD}\nsampler = {{ name = \"aspect_ratio\", factor = 2 }}");
    let report = report(folder.path(), &varied("wrr", 1, "", &keys), &[]);
    let levels = report["runs"][0]["levels"].as_array().expect("a list of levels");
    for level in ["C0", "C1", "C2", "C5"] {
        let verdict = levels.iter().find(|it| it["level"] == level).expect("a level");
        assert_eq!(verdict["verdict"], "verified", "{verdict}");
    }
}

#[test]
fn batches_that_exceed_their_slots_are_prepared_by_the_host_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let keys = "collate = { mode = \"pad\", max_size = [8, 8] }";
    for strategy in ["device-only", "mte", "wrr"] {
        let report = report(folder.path(), &varied(strategy, 1, "", keys), &[]);
        let run = &report["runs"][0];
        check_run(run);
        assert_eq!(number(run, "/totals/host_batches"), BATCHES, "{run}");
        let events = run["events"].as_array().expect("events");
        let of_kind = |kind: &str| -> Vec<&Value> {
            events.iter().filter(|event| event["kind"] == kind).collect()
        };
        assert!(of_kind("device_given_up").is_empty(), "nothing is wrong with it: {events:?}");
        if strategy == "device-only" {
            let failed = of_kind("batch_failed");
            assert!(failed.iter().all(|event| event["fault"]["kind"] == "size"), "{events:?}");
            assert!(!failed.is_empty());
        }
    }
}

#[test]
fn batches_that_exceed_the_memory_of_the_host_take_memory_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    for (collate, workers) in [("pad", 1), ("list", 0)] {
        let keys = format!("collate = {{ mode = \"{collate}\", max_size = [8, 8] }}");
        let job = varied("host-only", workers, "", &keys).replace("[24, 31, 40]", "[460, 500]");
        let report = report(folder.path(), &job.replace("max_size = 57", "max_size = 700"), &[]);
        let run = &report["runs"][0];
        check_run(run);
        let events = run["events"].as_array().expect("events");
        let oversized = events.iter().find(|event| event["kind"] == "batches_oversized");
        let oversized = oversized.unwrap_or_else(|| panic!("{events:?}"));
        assert_eq!(number(oversized, "/batches"), BATCHES);
        // Of four pictures with three channels.
        assert!(number(oversized, "/bytes_max") >= 4 * 460 * 460 * 3);
    }
}

#[test]
fn what_cannot_be_collated_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), 8);
    let refused = |keys: &str, words: &[&str]| {
        let job = varied("host-only", 0, "", keys);
        std::fs::write(folder.path().join("job.toml"), job).expect("a job file");
        run(folder.path(), &["run", "job.toml"]).refused(words);
    };
    refused("", &["no fixed shape", "collate"]);
    refused("collate = \"padd\"", &["job.toml", "\"padd\"", "\"stack\", \"pad\""]);
    refused("collate = 5", &["job.toml", "`collate`", "[collate]"]);
    refused("collate = { mode = \"list\", fill = 1 }", &["job.toml", "`fill`", "\"pad\""]);
    refused("collate = { mode = \"pad\", multiple_of = 0 }", &["`multiple_of`", "from 1"]);
    refused(
        "collate = { mode = \"pad\", max_size = [5] }",
        &["`collate.max_size`", "height and width"],
    );
    refused("collate = { mode = \"pad\", padding = 5 }", &["`collate.padding`"]);
    refused("collate = { mode = \"pad\", fill = 0.5 }", &["job.toml", "fill", "uint8"]);
    refused("collate = \"list\"\ncolumns = [\"image\", \"padding_mask\"]", &["\"padding_mask\""]);
    refused("collate = \"pad\"\ncolumns = [\"image_size\"]", &["\"image_size\"", "\"image\""]);
    refused(
        "collate = \"pad\"\nsampler = { name = \"aspect_ratio\", width = \"label\" }",
        &["`height`"],
    );
}

#[test]
fn the_option_of_the_command_replaces_the_key_of_the_job() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let job = varied("host-only", 0, "", "");
    let report = report(folder.path(), &job, &["--collate", "pad"]);
    check_run(&report["runs"][0]);
    assert_eq!(report["job"]["collate"], "pad, multiple_of = 1, fill = 0");
    let columns = report["job"]["columns"].as_array().expect("a list").iter();
    let names: Vec<&str> = columns.map(|it| it["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["image", "image_size", "label"]);
}
