//! Agents that are absent or full when a job starts: the job runs without them, warns once, and
//! uses them from the first epoch in which they can be reached.

use super::agents::{agent, agent_at, metric, plain_job};
use super::held_run::HeldRun;
use super::jobs::{BATCHES, check_run, number};
use super::network::{KEYS, remote_job, serving, temporary_folder};
use super::support::{Finished, PATIENCE, command, run, until};
use serde_json::Value;
use std::net::TcpListener;
use std::path::Path;

/// A port of this machine without a listener.
fn unused_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it listens").port()
}

/// Runs the job without a device of its own with these devices, and returns the report.
fn run_with(folder: &Path, devices: &str, extra: &[&str]) -> (Value, Finished) {
    let fixed = ["run", "job.toml", "--json", "--device", devices, "--device-keys", "keys"];
    let done = run(folder, &[&fixed[..], extra].concat()).success();
    (serde_json::from_str(&done.stdout).expect("a report"), done)
}

/// The only warning of a lost device, which must have these words.
fn check_warning(done: &Finished, words: &[&str]) {
    let of_loss = |line: &&str| line.starts_with("note: ") && line.contains("was lost");
    let warnings: Vec<&str> = done.stderr.lines().filter(of_loss).collect();
    let [warning] = warnings[..] else { panic!("{}", done.stderr) };
    for word in words {
        assert!(warning.contains(word), "`{word}` is not in {warning}");
    }
}

/// The kinds of the events of a run, with the number of the device.
fn kinds(run: &Value) -> Vec<(&str, u64)> {
    let events = run["events"].as_array().expect("events").iter();
    let kind = |event: &'_ Value| event["device"]["number"].as_u64();
    events.filter_map(|event| Some((event["kind"].as_str()?, kind(event)?))).collect()
}

#[test]
fn one_of_two_agents_that_is_absent_leaves_the_other_its_work() {
    let folder = temporary_folder();
    let agent = serving(agent(folder.path(), &["--threads", "2"]));
    let absent = format!("tcp://127.0.0.1:{}", unused_port());
    let list = format!("tcp://127.0.0.1:{},{absent}", agent.port);
    std::fs::write(folder.path().join("job.toml"), plain_job("device-only")).expect("a job");
    let (report, done) = run_with(folder.path(), &list, &["--epochs", "2"]);
    let run = &report["runs"][0];
    check_run(run);
    assert!(number(run, "/totals/device_batches") > 0, "{run}");
    let words = ["device 1 was lost at the start", &absent, "the host and the other devices"];
    check_warning(&done, &words);
    check_warning(&done, &["start a device with", "correct the address"]);
    let kinds = kinds(run);
    // Each epoch reports at most one failed attempt.
    assert_eq!(kinds[0], ("device_lost", 1));
    assert!(kinds[1..].iter().all(|kind| *kind == ("device_not_reopened", 1)), "{kinds:?}");
    assert!(kinds.len() <= 3, "{kinds:?}");
}

#[test]
fn the_only_agent_that_is_absent_leaves_every_strategy_to_the_host() {
    let folder = temporary_folder();
    let absent = format!("tcp://127.0.0.1:{}", unused_port());
    std::fs::write(folder.path().join("job.toml"), plain_job("wrr")).expect("a job");
    for strategy in ["wrr", "mte", "mte-feedback", "wrr-frozen", "windowed", "auto", "device-only"]
    {
        let (report, done) = run_with(folder.path(), &absent, &["--strategy", strategy]);
        let run = &report["runs"][0];
        check_run(run);
        assert_eq!(number(run, "/totals/host_batches"), BATCHES, "{strategy}");
        let begins = format!("note: {strategy}: the device was lost at the start: no device ");
        check_warning(&done, &[&begins, &absent, "the host continues alone", "start a device"]);
        assert_eq!(kinds(run)[0], ("device_lost", 0), "{strategy}");
        assert_eq!(run["events"][0]["phase"], "start", "{strategy}");
        assert!(run["events"][0]["remedy"].is_array(), "{run}");
    }
}

#[test]
fn ranks_without_their_agent_step_together_and_warn_once() {
    let folder = temporary_folder();
    let absent = format!("tcp://127.0.0.1:{}", unused_port());
    let text = format!("ranks = 3\n{}", plain_job("wrr"));
    std::fs::write(folder.path().join("job.toml"), text).expect("a job");
    let (report, done) = run_with(folder.path(), &absent, &[]);
    assert_eq!(number(&report, "/runs/0/totals/host_batches"), BATCHES);
    check_warning(&done, &[&absent]);
}

#[test]
fn an_agent_that_starts_after_the_job_is_used_from_a_later_epoch_on() {
    let folder = temporary_folder();
    let port = unused_port();
    let text = remote_job("device-only", port, KEYS);
    std::fs::write(folder.path().join("job.toml"), text).expect("a job");
    let host = HeldRun::start(folder.path(), &["job.toml", "--json", "--epochs", "3"]);
    host.await_held();
    let agent = serving(agent_at(folder.path(), port, &["--threads", "2"]));
    let name = r#"meetpoint_agent_batches_total{client="client"}"#;
    assert!(until(PATIENCE, || metric(&agent, name) >= 1.0), "it is used");
    let done = host.release().success();
    let report: Value = serde_json::from_str(&done.stdout).expect("a report");
    let run = &report["runs"][0];
    let (host, device) =
        (number(run, "/totals/host_batches"), number(run, "/totals/device_batches"));
    assert_eq!(host + device, 3 * BATCHES);
    assert!(device > 0, "{run}");
    check_warning(&done, &["was lost at the start"]);
    let kinds = kinds(run);
    assert_eq!(kinds[0], ("device_lost", 0));
    assert!(kinds.contains(&("device_reopened", 0)), "{kinds:?}");
}

#[test]
fn a_full_agent_is_lost_for_now_and_says_how_many_hosts_it_serves() {
    let folder = temporary_folder();
    let agent = serving(agent(folder.path(), &["--hosts", "1"]));
    let text = remote_job("mte", agent.port, KEYS);
    std::fs::write(folder.path().join("job.toml"), &text).expect("a job");
    std::fs::write(folder.path().join("long.toml"), text.replace("20ms", "10s")).expect("a job");
    let first = command(folder.path(), &["run", "long.toml", "--json", "--no-verify"]).spawn();
    let mut first = first.expect("the program starts");
    let running = || metric(&agent, "meetpoint_agent_running_jobs") >= 1.0;
    assert!(until(PATIENCE, running), "the first host is served");
    let second = HeldRun::start(folder.path(), &["job.toml", "--json", "--epochs", "2"]);
    second.await_held();
    // Its first try, and one in the background.
    let name = r#"meetpoint_agent_refused_jobs_total{reason="full"}"#;
    assert!(until(PATIENCE, || metric(&agent, name) >= 2.0), "the second host is refused");
    let done = second.release().success();
    first.kill().expect("it runs");
    first.wait().expect("it ends");
    let report: Value = serde_json::from_str(&done.stdout).expect("a report");
    check_run(&report["runs"][0]);
    assert_eq!(number(&report, "/runs/0/totals/host_batches"), 2 * BATCHES);
    let address = format!("tcp://127.0.0.1:{}", agent.port);
    check_warning(&done, &[&address, "serves another host", "wait until that host has ended"]);
    assert!(!done.stderr.contains("certificate"), "{}", done.stderr);
}
