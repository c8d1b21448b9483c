//! Faults with real processes: the epoch ends with the same batches and bytes, and the report names
//! the fault.

use super::jobs::{BATCHES, SAMPLES, check_run, job, number, report};
use super::support::{PATIENCE, command, finish, packed, run, until, wait};
use serde_json::Value;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

/// Runs the job with a fault of the device and compares the result with that of the same job
/// without it.
fn with_fault(fault: &str, strategy: &str, workers: u32, extra: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let device = format!("faults = [\"{fault}\"]");
    // The epoch outlasts the stall timeout of the job, so that a stall is detected.
    let job = job(strategy, workers, &device).replace("20ms", "80ms").replace("30s", "500ms");
    let report = report(folder.path(), &format!("{job}{extra}"), &[]);
    let run = &report["runs"][0];
    check_run(run);
    assert_eq!(
        number(run, "/totals/host_batches") + number(run, "/totals/device_batches"),
        BATCHES
    );
    assert!(
        !run["events"].as_array().expect("events").is_empty(),
        "{fault} under {strategy} left no event: {run}"
    );
    run.clone()
}

#[test]
fn a_device_killed_in_mid_epoch_costs_no_batch() {
    for strategy in ["wrr", "mte", "device-only"] {
        for workers in [0, 1] {
            let run = with_fault("die@2", strategy, workers, "");
            assert!(number(&run, "/totals/host_batches") > 0, "the host took over: {run}");
        }
    }
}

#[test]
fn a_stalled_device_is_fenced_off() {
    for strategy in ["wrr", "device-only"] {
        with_fault("stall@2", strategy, 0, "");
    }
    with_fault("stall@2:1500ms", "mte", 1, "");
}

#[test]
fn a_corrupt_slot_is_prepared_again_by_the_host() {
    for strategy in ["wrr", "mte", "device-only"] {
        let run = with_fault("corrupt@1", strategy, 0, "");
        let said = run["events"].to_string();
        assert!(said.contains("checksum"), "{said}");
    }
}

#[test]
fn a_torn_publish_is_prepared_again_by_the_host() {
    for spool in ["", "\n[spool]\nkind = \"file\"\ndirectory = \".\"\nquota = \"8MiB\"\n"] {
        let run = with_fault("tear@1", "wrr", 1, spool);
        let said = run["events"].to_string();
        assert!(said.contains("checksum"), "{said}");
    }
}

#[test]
fn a_spool_without_space_leaves_the_work_to_the_host() {
    let spool = "\n[spool]\nkind = \"file\"\ndirectory = \".\"\nquota = \"8MiB\"\n";
    let run = with_fault("enospc@2", "wrr", 0, spool);
    let said = run["events"].to_string().to_lowercase();
    assert!(said.contains("space"), "{said}");
    // Three batches show that it is permanently full: no more are given to it, and each reason is
    // listed once.
    let run = with_fault("enospc@2", "device-only", 0, spool);
    let events = run["events"].as_array().unwrap();
    let of_kind = |kind| events.iter().filter(|it| it["kind"] == kind).collect::<Vec<&Value>>();
    let failed = of_kind("batch_failed");
    assert_eq!(failed.len(), 1, "{events:?}");
    assert_eq!(failed[0]["fault"]["kind"], "preparation");
    assert_eq!(of_kind("device_given_up").len(), 1, "{events:?}");
    let repeats = of_kind("batches_failed");
    assert_eq!((repeats.len(), &repeats[0]["batches"]), (1, &2.into()), "{events:?}");
    // The one before the fault, unless it was still to be fetched when the device was given up.
    assert!(number(&run, "/totals/device_batches") <= 1);
}

#[test]
fn a_cut_link_costs_no_batch() {
    with_fault("drop-link@2", "wrr", 0, "");
    with_fault("drop-link@2", "mte", 1, "");
}

#[test]
fn a_device_that_becomes_much_slower_costs_no_batch() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let report = report(folder.path(), &job("wrr", 0, "faults = [\"slow@2:x50\"]"), &[]);
    check_run(&report["runs"][0]);
}

/// A device started by hand; killed when dropped.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(folder: &Path, extra: &[&str]) -> Served {
    let mut arguments =
        vec!["device", "serve", "--socket", "device.sock", "--root", ".", "--allow-shared"];
    arguments.extend(extra);
    let device = Served(command(folder, &arguments).spawn().expect("the device starts"));
    let socket = folder.join("device.sock");
    // The socket exists before its permissions are set, and accepts connections afterwards.
    let is_ready = || std::os::unix::net::UnixStream::connect(&socket).is_ok();
    assert!(until(PATIENCE, is_ready), "no socket");
    device
}

fn connected_job(strategy: &str) -> String {
    job(strategy, 0, "").replace(
        "kind = \"emulated\"\nallow_shared = true",
        "kind = \"connect\"\nsocket = \"device.sock\"",
    )
}

#[test]
fn a_device_of_the_users_own_serves_runs_one_after_another() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let mut device = serve(folder.path(), &["--cpu-ratio", "0.8"]);
    let mode = std::fs::metadata(folder.path().join("device.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let probe = run(folder.path(), &["device", "probe", "--socket", "device.sock", "--json"]);
    let probe: Value = serde_json::from_str(&probe.success().stdout).unwrap();
    assert_eq!(number(&probe, "/process_id"), u64::from(device.0.id()));
    for _ in 0..2 {
        let report = report(folder.path(), &connected_job("wrr"), &[]);
        check_run(&report["runs"][0]);
        assert!(number(&report, "/runs/0/totals/device_batches") > 0);
    }
    let pid = rustix::process::Pid::from_child(&device.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(wait(&mut device.0, PATIENCE).is_some(), "SIGTERM ends a device");
    assert!(!folder.path().join("device.sock").exists(), "it takes its socket with it");
}

#[test]
fn killing_the_users_device_and_unlinking_its_socket_cost_no_batch() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    for kill in [true, false] {
        let mut device = serve(folder.path(), &["--cpu-ratio", "0.2"]);
        std::fs::write(folder.path().join("job.toml"), connected_job("wrr")).unwrap();
        let host = command(folder.path(), &["run", "job.toml", "--json"]).spawn().unwrap();
        // The device's preparing thread exists before the run begins, and until then a lost device
        // is an error. Once the thread has used this much CPU time, batches are in progress.
        let computed = |task: &Path| {
            let times = std::fs::read_to_string(task.join("schedstat")).unwrap_or_default();
            times.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0)
        };
        let threads = format!("/proc/{}/task", device.0.id());
        let is_working = || {
            std::fs::read_dir(&threads).into_iter().flatten().flatten().any(|entry| {
                std::fs::read_to_string(entry.path().join("comm")).is_ok_and(|name| {
                    name.trim() == "prepare" && computed(&entry.path()) > 3_000_000
                })
            })
        };
        assert!(until(PATIENCE, is_working), "the device begins to prepare");
        if kill {
            device.0.kill().unwrap();
        } else {
            std::fs::remove_file(folder.path().join("device.sock")).unwrap();
        }
        let done = finish(host).success();
        let report: Value = serde_json::from_str(&done.stdout).unwrap();
        check_run(&report["runs"][0]);
        if !kill {
            let refused = run(folder.path(), &["run", "job.toml"]);
            refused.refused(&["device.sock"]);
        }
        drop(device);
        let _ = std::fs::remove_file(folder.path().join("device.sock"));
    }
}

/// Process ids of the hosts that the device in `folder` works for.
fn hosts(folder: &Path) -> Vec<u64> {
    let probe = run(folder, &["device", "probe", "--socket", "device.sock", "--json"]).success();
    let probe: Value = serde_json::from_str(&probe.stdout).expect("one JSON document");
    let hosts = probe["hosts"].as_array().expect("a list of hosts").iter();
    hosts.map(|host| host.as_u64().expect("a process id")).collect()
}

#[test]
fn killing_one_of_two_hosts_of_a_device_costs_the_other_no_batch() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let device = serve(folder.path(), &["--cpu-ratio", "0.5", "--hosts", "2"]);
    let start = |name: &str, step: &str| {
        let job = connected_job("wrr").replace("20ms", step);
        std::fs::write(folder.path().join(name), job).unwrap();
        command(folder.path(), &["run", name, "--json"]).spawn().unwrap()
    };
    let mut killed = start("killed.toml", "5s");
    let has = |host: &Child| {
        let id = u64::from(host.id());
        until(PATIENCE, || hosts(folder.path()).contains(&id))
    };
    assert!(has(&killed), "the first host has the device");
    let stays = start("stays.toml", "300ms");
    assert!(has(&stays), "the second host has the device as well");
    killed.kill().unwrap();
    wait(&mut killed, PATIENCE).expect("a killed process ends");
    let done = finish(stays).success();
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    check_run(&report["runs"][0]);
    assert!(number(&report, "/runs/0/totals/device_batches") > 0);
    assert!(until(PATIENCE, || hosts(folder.path()).is_empty()), "both have gone");
    drop(device);
}

/// Changes a byte in the middle of some pictures of a packed dataset, without updating its
/// checksums.
fn damage(folder: &Path, pictures: &[&str]) {
    let part = folder.join("small.set/part-00000.arrow");
    let mut bytes = std::fs::read(&part).expect("a small set has one part");
    for picture in pictures {
        let image = std::fs::read(folder.join("pictures").join(picture)).expect("it was packed");
        let found = bytes.windows(image.len()).position(|window| window == image);
        bytes[found.expect("files are packed as they are") + image.len() / 2] ^= 8;
    }
    std::fs::write(&part, bytes).expect("the part is writable");
}

#[test]
fn damaged_samples_are_replaced_alike_under_every_strategy_and_named_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let names = |folder: &str| {
        let folder = std::fs::read_dir(folder).expect("pictures").flatten();
        let mut names: Vec<String> =
            folder.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let cats = names(&folder.path().join("pictures/cat").display().to_string());
    let bad: Vec<String> = [0, 5, 6].map(|at| format!("cat/{}", cats[at])).to_vec();
    damage(folder.path(), &bad.iter().map(String::as_str).collect::<Vec<_>>());
    let job = format!(
        "on_error = \"replace\"\nmax_errors = 3\nquarantine = \"bad.jsonl\"\n{}",
        job("wrr", 1, "")
    );
    let arguments = ["--strategy", "all", "--trace-events", "trace.json"];
    let report = report(folder.path(), &job, &arguments);
    let runs = report["runs"].as_array().expect("runs");
    assert!(runs.len() >= 7, "{report}");
    for run in runs {
        check_run(run);
        let damage = run["damage"].as_array().expect("damage");
        let mut keys: Vec<&str> =
            damage.iter().map(|it| it["key"].as_str().expect("a key")).collect();
        keys.sort_unstable();
        assert_eq!(keys, bad, "{run}");
        assert!(damage.iter().all(|it| it["action"] == "replace" && it["replaced_by"].is_u64()));
        assert_eq!(damage.len(), 3);
        assert!(!run["explanation"]["ceilings"].as_array().expect("ceilings").is_empty());
    }
    let kept = std::fs::read_to_string(folder.path().join("bad.jsonl")).expect("a quarantine");
    assert_eq!(kept.lines().count(), 3, "each once, whatever the strategy: {kept}");
    let trace = std::fs::read_to_string(folder.path().join("trace.json")).expect("a trace");
    let trace: Value = serde_json::from_str(&trace).expect("a trace is JSON");
    let steps = trace["traceEvents"].as_array().expect("events").iter();
    let steps = steps.filter(|event| event["name"] == "step").count();
    assert_eq!(steps as u64, BATCHES * runs.len() as u64);
    let limited = job.replace("max_errors = 3", "max_errors = 2");
    std::fs::write(folder.path().join("limited.toml"), limited).expect("a job file");
    run(folder.path(), &["run", "limited.toml"]).refused(&["max_errors is 2", "verify"]);
}

/// Opening a pipe blocks until another process writes to it; reading it at an offset is impossible.
/// Whenever the part becomes one, the job ends: with all its batches, or with an error about it.
#[test]
fn a_part_that_becomes_a_pipe_never_blocks_a_job() {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let part = folder.path().join("small.set/part-00000.arrow");
    let original = std::fs::read(&part).unwrap();
    std::fs::write(folder.path().join("job.toml"), job("wrr", 1, "")).unwrap();
    for delay_ms in [0, 50, 100, 200, 400, 800] {
        let arguments = ["run", "job.toml", "--epochs", "2", "--json"];
        let child = command(folder.path(), &arguments).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay_ms));
        std::fs::remove_file(&part).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &part, mode).unwrap();
        let done = finish(child);
        if done.code() == Some(0) {
            let report: Value = serde_json::from_str(&done.stdout).unwrap();
            check_run(&report["runs"][0]);
        } else {
            done.refused(&["part-00000.arrow"]);
        }
        std::fs::remove_file(&part).unwrap();
        std::fs::write(&part, &original).unwrap();
    }
}
