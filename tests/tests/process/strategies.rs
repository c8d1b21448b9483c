//! The strategies by name, their records, and several devices, on the command line.

use super::jobs::{BATCHES, SAMPLES, check_run, job, number, report};
use super::support::{packed, run};
use serde_json::Value;
use std::path::Path;

fn order(run: &Value) -> Vec<u64> {
    let batches = run["epochs"][0]["batches"].as_array().expect("a list of batches");
    batches.iter().map(|batch| batch["batch"].as_u64().expect("an index")).collect()
}

fn verdict<'r>(run: &'r Value, level: &str) -> &'r str {
    let levels = run["levels"].as_array().expect("levels");
    let found = levels.iter().find(|entry| entry["level"] == level);
    found.and_then(|entry| entry["verdict"].as_str()).unwrap_or_else(|| panic!("no {level}: {run}"))
}

/// A job of every strategy's own file: the report of its only run.
fn only_run(folder: &Path, text: &str, arguments: &[&str]) -> Value {
    let report = report(folder, text, arguments);
    let runs = report["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 1, "{report}");
    check_run(&runs[0]);
    runs[0].clone()
}

#[test]
fn strategies_that_fix_an_order_leave_a_record_that_replays_it() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    for name in ["mte", "mte-feedback", "wrr-frozen"] {
        let first = only_run(folder.path(), &job(name, 0, ""), &["--report", "first"]);
        assert_eq!(verdict(&first, "C3"), "verified", "{name}: {first}");
        let record = first["epochs"][0]["record"].as_str().expect("a record").to_owned();
        assert!(record.starts_with(&format!("{name}:")), "{record}");
        // A slower device and another worker do not change the order.
        let other = job("wrr", 1, "cpu_ratio = 0.5");
        for replay in [record.as_str(), "first/report.json"] {
            let again = only_run(folder.path(), &other, &["--replay", replay]);
            assert_eq!(again["strategy"], name);
            assert_eq!(order(&again), order(&first), "{name} by {replay}");
        }
        let line = format!("replay = \"{record}\"");
        let text = job(name, 0, "").replace("seed = 7", &format!("seed = 7\n{line}"));
        assert_eq!(order(&only_run(folder.path(), &text, &[])), order(&first), "{line}");
    }
}

#[test]
fn every_epoch_of_a_report_is_replayed_by_its_own_record() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let text = job("mte-feedback", 0, "");
    let first = report(folder.path(), &text, &["--epochs", "2", "--report", "first"]);
    let again = report(folder.path(), &text, &["--replay", "first/report.json"]);
    for epoch in 0..2 {
        let hash = |report: &Value| report["runs"][0]["epochs"][epoch]["order_hash"].clone();
        assert_eq!(hash(&again), hash(&first), "epoch {epoch}");
    }
}

#[test]
fn windowed_and_auto_with_order_baseline_preserve_the_order_of_the_host_alone() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let windowed = format!("{}\n[windowed]\nwindow = 4\n", job("windowed", 0, ""));
    let baseline = format!("{}\n[auto]\norder = \"baseline\"\n", job("auto", 1, ""));
    for text in [windowed, baseline] {
        let run = only_run(folder.path(), &text, &[]);
        assert_eq!(order(&run), (0..BATCHES).collect::<Vec<_>>(), "{run}");
        assert_eq!(verdict(&run, "C4"), "verified");
    }
}

#[test]
fn auto_reports_its_selection_with_and_without_a_device() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let with = only_run(folder.path(), &job("auto", 0, ""), &[]);
    assert!(with["epochs"][0]["picked"]["why"].is_string(), "{with}");
    let without =
        job("auto", 0, "").replace("kind = \"emulated\"\nallow_shared = true", "kind = \"none\"");
    let without = only_run(folder.path(), &without, &[]);
    let picked = &without["epochs"][0]["picked"];
    assert_eq!([&picked["strategy"], &picked["why"]], ["host-only", "no_device"]);
    assert_eq!(number(&without, "/totals/host_batches"), BATCHES);
}

#[test]
fn two_devices_hold_parts_of_their_own_and_one_may_die() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let text = job("wrr", 0, "count = 2").replace("seed = 7", "seed = 7\nshared = true");
    let both = only_run(folder.path(), &text, &[]);
    let devices = both["devices"].as_array().expect("devices");
    assert_eq!(devices.len(), 2);
    assert!(devices.iter().all(|device| device["is_lost"] == false), "{both}");
    let of_devices: u64 = devices.iter().map(|device| number(device, "/batches")).sum();
    assert_eq!(of_devices, number(&both, "/totals/device_batches"));

    let one = job("wrr", 0, "").replace("seed = 7", "seed = 7\nshared = true").replace(
        "[device]\nkind = \"emulated\"\nallow_shared = true\n",
        "[[device]]\nallow_shared = true\nfaults = [\"die@1\"]\n[[device]]\nallow_shared = true\n",
    );
    let one = only_run(folder.path(), &one, &[]);
    assert_eq!(one["devices"][0]["is_lost"], true, "{one}");
    assert_eq!(one["devices"][1]["is_lost"], false, "{one}");
    let lost = one["events"].as_array().unwrap().iter();
    let lost = lost.filter(|event| event["kind"] == "device_lost");
    let numbers: Vec<&Value> = lost.map(|event| &event["device"]["number"]).collect();
    assert_eq!(numbers, [0], "{one}");
}

#[test]
fn what_a_newcomer_mistypes_is_refused_with_what_would_be_right() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let refused = |text: &str, words: &[&str]| {
        std::fs::write(folder.path().join("job.toml"), text).unwrap();
        run(folder.path(), &["run", "job.toml"]).refused(words);
    };
    let good = job("wrr", 0, "");
    refused(
        &good.replace("\"wrr\"", "\"mte_feedback\""),
        &["job.toml:4:12: ", "mte_feedback", "\"mte-feedback\""],
    );
    let line = |line: &str, words: &[&str]| {
        refused(&good.replace("seed = 7", &format!("seed = 7\n{line}")), words);
    };
    line("reuse = true", &["job.toml:4:9: ", "shuffled", "shuffle = false"]);
    line("reuse = true\nshuffle = false", &["job.toml:4:9: ", "random parameters", "center_crop"]);
    line("replay = \"mte\"", &["job.toml:4:10: ", "not a record", "mte:812"]);
    line("choice = \"biggest\"", &["job.toml:4:10: ", "\"saving\""]);
    let tables = |tables: &str, words: &[&str]| refused(&format!("{good}{tables}"), words);
    tables("[windowed]\nsize = 4\n", &["unknown key `windowed.size`", "window"]);
    tables("[auto]\ngoal = \"time\"\n", &["`auto.goal`", "\"throughput\""]);
    std::fs::write(folder.path().join("job.toml"), &good).unwrap();
    let typed = |arguments: &[&str], words: &[&str]| {
        let mut all = vec!["run", "job.toml"];
        all.extend(arguments);
        run(folder.path(), &all).refused(words);
    };
    typed(&["--replay", "mte:few"], &["mte:few", "report.json"]);
    typed(&["--replay", "mte:3", "--strategy", "wrr"], &["record of mte", "leave --strategy out"]);
    typed(&["--replay", "mte:300"], &["300", "12"]);
    typed(&["--power", "desk"], &["no power preset desk", "desktop"]);
    let mistyped = run(folder.path(), &["run", "job.toml", "--strategy", "mte_feedback"]);
    assert_eq!(mistyped.code(), Some(2));
    assert!(mistyped.stderr.contains("mte-feedback"), "{mistyped:?}");
}

/// A job whose every epoch has the same batches, in three epochs.
fn repeated(strategy: &str, key: &str, spool: &str) -> String {
    job(strategy, 0, "")
        .replace("seed = 7", &format!("seed = 7\nepochs = 3\nshuffle = false\n{key}"))
        .replace("name = \"random_resized_crop\"\nsize = 48", "name = \"resize\"\nsize = [48, 48]")
        .replace("[[recipe.operation]]\nname = \"random_horizontal_flip\"\n", "")
        + spool
}

#[test]
fn batches_of_every_epoch_are_retained_in_either_kind_of_spool() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let file = "[spool]\nkind = \"file\"\ndirectory = \".\"\nquota = \"8MiB\"\n";
    for (strategy, spool) in [("mte", ""), ("wrr", file), ("windowed", "")] {
        let run = only_run(folder.path(), &repeated(strategy, "reuse = true", spool), &[]);
        let kept = |epoch: usize| number(&run, &format!("/epochs/{epoch}/reused_batches"));
        assert_eq!(kept(0), 0, "{strategy}");
        assert!(kept(1) > 0 && kept(2) > 0, "{strategy}: {run}");
        assert_eq!(verdict(&run, "C6"), "verified", "{strategy}: {run}");
        // Retained batches were neither read nor written again.
        let prepared = number(&run, "/totals/device_batches") - kept(1) - kept(2);
        let slot = 4096 + (4 * 48 * 48 * 3_u64).next_multiple_of(4096);
        let written = number(&run, "/totals/device_bytes_written");
        assert!(written <= (prepared + 6) * slot, "{strategy}: {prepared} batches, {run}");
    }
}

#[test]
fn a_spool_too_small_to_retain_a_batch_is_reported_with_a_size_that_suffices() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let suggested = |notices: &Value| {
        let all = notices.as_array().expect("a list");
        let found = all.iter().find(|it| it["kind"] == "nothing_reused")?;
        found["quota_bytes"].as_u64()
    };
    for kind in ["memory", "file"] {
        let place = if kind == "file" { "directory = \".\"\n" } else { "" };
        let text = |quota: &str| {
            let spool = format!("[spool]\nkind = \"{kind}\"\n{place}quota = \"{quota}\"\n");
            repeated("wrr", "reuse = true", &spool)
        };
        let outcome = |quota: &str| {
            let all = report(folder.path(), &text(quota), &[]);
            check_run(&all["runs"][0]);
            (number(&all, "/runs/0/epochs/2/reused_batches"), all["notices"].clone())
        };
        // Slots of 32 KiB.
        let (kept, notices) = outcome("96KiB");
        let asked = suggested(&notices).expect("it says what would be kept");
        assert!(kept == 0, "{kind}: {kept} kept, {notices}");
        // The requested size is sufficient.
        let (kept, notices) = outcome(&format!("{asked}B"));
        assert!(
            kept > 0 && suggested(&notices).is_none(),
            "{kind}, {asked}: {kept} kept, {notices}"
        );
    }
}

#[test]
fn devices_that_run_ahead_have_batches_ready_when_an_epoch_begins() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let text = job("mte", 0, "").replace("seed = 7", "seed = 7\nepochs = 3\nrun_ahead = true");
    let text = format!("{text}\n[mte]\nsplit = 2\n");
    let run = only_run(folder.path(), &text, &[]);
    assert_eq!(number(&run, "/epochs/0/ahead_batches"), 0);
    assert!(number(&run, "/epochs/2/ahead_batches") > 0, "{run}");
    assert_eq!(verdict(&run, "C6"), "verified");
    assert_eq!(verdict(&run, "C3"), "verified");
}

#[test]
fn a_choice_of_batches_gives_up_the_order_and_says_how_far() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let device = "read_bandwidth = \"2MB/s\"";
    let text = job("wrr", 0, device)
        .replace("seed = 7", "seed = 7\nepochs = 4\nchoice = \"saving\"")
        .replace("batch_size = 4", "batch_size = 4\ndescription = \"sizes differ\"");
    let run = only_run(folder.path(), &text, &[]);
    for level in ["C3", "C4"] {
        assert_eq!(verdict(&run, level), "not-claimed", "{run}");
    }
    // Nothing is known before the first epoch; where sizes and times go together it is then.
    assert!(run["epochs"][0]["displacement"].is_null(), "{run}");
    for epoch in run["epochs"].as_array().unwrap() {
        if let Some(moved) = epoch["displacement"].as_object() {
            let most = moved["max_batches"].as_u64().unwrap() as f64;
            let mean = moved["mean_batches"].as_f64().unwrap();
            assert!(mean <= most && most < BATCHES as f64, "{moved:?}");
            assert!(epoch["record"].is_null());
        }
    }
}

#[test]
fn ranks_take_equal_steps_from_the_same_kind_of_source() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    for strategy in ["mte-feedback", "wrr", "windowed"] {
        let text = job(strategy, 0, "").replace("seed = 7", "seed = 7\nranks = 2");
        let report = report(folder.path(), &text, &[]);
        let run = &report["runs"][0];
        for level in ["C0", "C1", "C2", "C5", "C6"] {
            assert_eq!(verdict(run, level), "verified", "{strategy}: {run}");
        }
        let ranks = run["ranks"].as_array().expect("ranks");
        assert_eq!(ranks.len(), 2);
        for rank in ranks {
            assert_eq!(number(rank, "/steps"), BATCHES / 2, "{strategy}: {run}");
            assert_eq!(rank["device_batches"], ranks[0]["device_batches"]);
        }
    }
}

#[test]
fn a_report_of_several_ranks_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let text = job("mte-feedback", 0, "").replace("seed = 7", "seed = 7\nranks = 2");
    report(folder.path(), &text, &["--report", "out"]);
    let again = ["run", "job.toml", "--replay", "out/report.json"];
    let done = run(folder.path(), &again).success();
    assert!(done.stdout.contains("replayed"), "{done:?}");
}

#[test]
fn devices_of_several_ranks_run_ahead_and_lose_nothing_when_they_die() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    for (strategy, device) in [
        ("mte", ""),
        ("auto", ""),
        ("windowed", "faults = [\"die@3\"]"),
        ("wrr", "faults = [\"corrupt@2\", \"die@9\"]"),
    ] {
        let lines = "seed = 7\nranks = 2\nepochs = 3\nrun_ahead = true";
        let text = job(strategy, 1, device).replace("seed = 7", lines);
        let text = if strategy == "mte" { format!("{text}\n[mte]\nsplit = 1\n") } else { text };
        let report = report(folder.path(), &text, &[]);
        let run = &report["runs"][0];
        for level in ["C0", "C1", "C2", "C5", "C6"] {
            assert_eq!(verdict(run, level), "verified", "{strategy}: {run}");
        }
        let ahead = (1..3).map(|epoch| number(run, &format!("/epochs/{epoch}/ahead_batches")));
        assert!(strategy != "mte" || ahead.sum::<u64>() > 0, "{run}");
    }
}

#[test]
fn keys_that_contradict_each_other_are_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let refused = |text: &str, words: &[&str]| {
        std::fs::write(folder.path().join("job.toml"), text).unwrap();
        run(folder.path(), &["run", "job.toml"]).refused(words);
    };
    let good = job("wrr", 0, "");
    let line = |line: &str, words: &[&str]| {
        refused(&good.replace("seed = 7", &format!("seed = 7\n{line}")), words);
    };
    let both = "run_ahead = true\nchoice = \"saving\"";
    line(both, &["job.toml:5:10: ", "`choice`", "leave one of the two out"]);
    let steps = "run_ahead = true\nreplay = \"mte:3\"\nstrategy = \"mte\"";
    refused(
        &good
            .replace("seed = 7", &format!("seed = 7\n{steps}"))
            .replace("strategy = \"wrr\"\n", ""),
        &["job.toml:4:13: ", "`run_ahead`", "`replay`"],
    );
    let reuse = repeated("wrr", "reuse = true\nrun_ahead = true", "");
    refused(&reuse, &["`reuse`", "need the slots"]);
    // Two devices hold parts of their own, and the dataset has one.
    refused(
        &good.replace("allow_shared = true", "allow_shared = true\ncount = 2"),
        &["job.toml:", "2 devices", "has 1", "--part-size", "shared = true"],
    );
}

#[test]
fn a_strategy_of_the_command_line_replaces_one_that_needs_a_device() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let text = job("device-only", 0, "");
    let text = text.replace("[device]\nkind = \"emulated\"\nallow_shared = true\n", "");
    std::fs::write(folder.path().join("job.toml"), text).unwrap();
    let done = run(folder.path(), &["run", "job.toml", "--strategy", "host-only", "--json"]);
    let report: Value = serde_json::from_str(&done.success().stdout).unwrap();
    assert_eq!(report["runs"][0]["strategy"], "host-only");
    for strategies in [&[][..], &["--strategy", "wrr"], &["--strategy", "host-only,wrr"]] {
        let refused = run(folder.path(), &[&["run", "job.toml"], strategies].concat());
        refused.refused(&["device", "host-only"]);
    }
}
