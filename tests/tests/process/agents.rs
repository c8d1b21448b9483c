//! Agents as services: several of them, found by name, watched, and drained by SIGTERM.

use super::held_run::HeldRun;
use super::jobs::{BATCHES, check_run, job, number};
use super::network::{KEYS, Served, TLS, remote_job, serving, temporary_folder};
use super::support::{PATIENCE, command, finish, run, until, wait};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command};

/// The command of an agent that is monitored, on ports that the system chooses.
pub(super) fn agent(folder: &Path, extra: &[&str]) -> Command {
    agent_at(folder, 0, extra)
}

/// The same, on this port.
pub(super) fn agent_at(folder: &Path, port: u16, extra: &[&str]) -> Command {
    let listen = format!("tcp://127.0.0.1:{port}");
    let fixed = ["agent", "--listen", &listen, "--metrics", "tcp://127.0.0.1:0"];
    command(folder, &[&fixed[..], &["--root", "photos=copy"], &TLS, extra].concat())
}

/// A page of its address for monitoring.
fn page(agent: &Served, path: &str) -> String {
    let line = agent.printed.lines().find_map(|line| line.strip_prefix("metrics at http://"));
    let address = line.and_then(|line| line.strip_suffix("/metrics")).expect("it is monitored");
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

pub(super) fn metric(agent: &Served, name: &str) -> f64 {
    let text = page(agent, "/metrics");
    let line = text.lines().find(|line| line.split(' ').next() == Some(name));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
}

fn terminate(child: &Child) {
    kill_process(Pid::from_child(child), Signal::TERM).expect("a child can be signalled");
}

/// A job without a table for its device, and without any other.
pub(super) fn plain_job(strategy: &str) -> String {
    let text = job(strategy, 0, "").replace("kind = \"emulated\"\nallow_shared = true\n", "");
    text.replacen("[device]\n", "", 1)
}

#[test]
fn two_agents_of_a_list_share_a_job_and_count_their_client() {
    let folder = temporary_folder();
    let agents = [0, 1].map(|_| serving(agent(folder.path(), &["--threads", "2"])));
    let list = agents.each_ref().map(|agent| format!("tcp://127.0.0.1:{}", agent.port)).join(",");
    let text = format!("device = \"{list}\"\n{}", plain_job("device-only"));
    std::fs::write(folder.path().join("job.toml"), text).expect("a job");
    let arguments = ["run", "job.toml", "--json", "--epochs", "2"];
    let mut program = command(folder.path(), &arguments);
    program.env("MEETPOINT_DEVICE_KEYS", "keys");
    let done = finish(program.spawn().expect("the program starts")).success();
    let report: Value = serde_json::from_str(&done.stdout).expect("a report");
    check_run(&report["runs"][0]);
    assert_eq!(number(&report, "/runs/0/totals/device_batches"), 2 * BATCHES);
    let of = |name: &str| agents.each_ref().map(|agent| metric(agent, name));
    let batches: f64 = of(r#"meetpoint_agent_batches_total{client="client"}"#).iter().sum();
    assert!(batches >= 2.0 * BATCHES as f64, "{batches}");
    assert_eq!(of(r#"meetpoint_agent_jobs_total{client="client"}"#), [1.0; 2]);
    assert!(of("meetpoint_agent_certificate_expiry_timestamp_seconds").iter().all(|it| *it > 1e9));
    assert!(page(&agents[0], "/healthz").ends_with("serving\n"));
}

#[test]
fn an_agent_that_gets_sigterm_delivers_its_batch_and_the_host_continues_at_once() {
    let folder = temporary_folder();
    // Its second batch takes until after the signal.
    let fault = ["--fault", "stall@2:4s", "--metrics", "tcp://127.0.0.1:0"];
    let serve = ["device", "serve", "--listen", "tcp://127.0.0.1:0", "--root", "photos=copy"];
    let program = command(folder.path(), &[&serve[..], &TLS, &fault].concat());
    let mut agent = serving(program);
    let text = remote_job("device-only", agent.port, KEYS);
    std::fs::write(folder.path().join("job.toml"), text).expect("a job");
    let host = command(folder.path(), &["run", "job.toml", "--json", "--epochs", "2"]).spawn();
    let host = host.expect("the program starts");
    let name = r#"meetpoint_agent_batches_total{client="client"}"#;
    assert!(until(PATIENCE, || metric(&agent, name) >= 1.0), "it publishes a batch");
    terminate(&agent.child);
    let report: Value = serde_json::from_str(&finish(host).success().stdout).expect("a report");
    let run = &report["runs"][0];
    check_run(run);
    assert!(number(run, "/totals/device_batches") >= 1, "what it prepared is used: {run}");
    let kinds: Vec<&str> = run["events"]
        .as_array()
        .expect("events")
        .iter()
        .filter_map(|it| it["kind"].as_str())
        .collect();
    // The second epoch may end before an attempt to connect has failed.
    assert_eq!(kinds[0], "device_leaving");
    assert!(kinds[1..].iter().all(|kind| *kind == "device_not_reopened"), "{kinds:?}");
    assert!(kinds.len() <= 2, "{kinds:?}");
    let status = wait(&mut agent.child, PATIENCE).expect("it ends");
    assert!(status.success(), "{status}");
}

#[test]
fn an_agent_notifies_systemd_and_an_idle_one_ends_at_sigterm() {
    let folder = temporary_folder();
    let socket = folder.path().join("notify");
    let systemd = UnixDatagram::bind(&socket).expect("a socket");
    systemd.set_read_timeout(Some(PATIENCE)).expect("it is set");
    let heard = || {
        let mut bytes = [0; 64];
        let count = systemd.recv(&mut bytes).expect("a message");
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    let mut program = agent(folder.path(), &[]);
    program.env("NOTIFY_SOCKET", &socket);
    let mut agent = serving(program);
    assert!(heard().starts_with("READY=1\n"));
    terminate(&agent.child);
    assert!(heard().starts_with("STOPPING=1\n"));
    let status = wait(&mut agent.child, PATIENCE).expect("it ends");
    assert!(status.success(), "{status}");
}

/// A name server that answers queries for `_meetpoint._tcp.agents.test` with one SRV record, and
/// knows no other name (RFC 1035, section 4.1; RFC 2782).
fn name_server(target: &'static str, port: u16) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let address = socket.local_addr().expect("it listens").to_string();
    std::thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((count, from)) = socket.recv_from(&mut query) {
            let query = &query[..count];
            let is_known = query[12..].starts_with(b"\x0a_meetpoint\x04_tcp\x06agents\x04test\0");
            let (code, answers) = if is_known { (0x80, 1) } else { (0x83, 0) };
            let mut answer = [&query[..2], &[0x81, code, 0, 1, 0, answers, 0, 0, 0, 0]].concat();
            answer.extend_from_slice(&query[12..]);
            if is_known {
                let name = [&[target.len() as u8], target.as_bytes(), &[0]].concat();
                let data = [&[0, 0, 0, 0][..], &port.to_be_bytes(), &name].concat();
                answer.extend_from_slice(&[0xc0, 12, 0, 33, 0, 1, 0, 0, 0, 60, 0]);
                answer.push(data.len() as u8);
                answer.extend_from_slice(&data);
            }
            let _ = socket.send_to(&answer, from);
        }
    });
    address
}

#[test]
fn an_agent_is_found_by_the_name_of_a_service() {
    let folder = temporary_folder();
    let agent = serving(agent(folder.path(), &[]));
    let server = name_server("localhost", agent.port);
    std::fs::write(folder.path().join("job.toml"), plain_job("device-only")).expect("a job");
    let with = |device: &str| {
        let arguments = ["run", "job.toml", "--json", "--device", device, "--device-keys", "keys"];
        let mut program = command(folder.path(), &arguments);
        program.env("MEETPOINT_DNS", &server);
        finish(program.spawn().expect("the program starts"))
    };
    let report: Value =
        serde_json::from_str(&with("srv:agents.test").success().stdout).expect("a report");
    check_run(&report["runs"][0]);
    assert_eq!(number(&report, "/runs/0/totals/device_batches"), BATCHES);
    assert_eq!(with("srv:other.test").code(), Some(1));
    assert_eq!(with("srv:a b").code(), Some(2));
}

#[test]
fn a_network_name_is_checked_against_the_certificate() {
    let folder = temporary_folder();
    let other = ["device", "keys", "keys", "--server", "elsewhere.test", "--force"];
    run(folder.path(), &other).success();
    let agent = serving(agent(folder.path(), &[]));
    let server = name_server("localhost", agent.port);
    std::fs::write(folder.path().join("job.toml"), plain_job("device-only")).expect("a job");
    let arguments = ["run", "job.toml", "--device", "srv:agents.test", "--device-keys", "keys"];
    let mut program = command(folder.path(), &arguments);
    program.env("MEETPOINT_DNS", &server);
    let refused = finish(program.spawn().expect("the program starts"));
    let refused = refused.refused(&["is for another name", "--server localhost"]);
    assert_eq!(refused.stderr.matches("remedy:").count(), 1, "{}", refused.stderr);
}

#[test]
fn an_agent_that_is_killed_and_restarted_is_used_again_in_a_later_epoch() {
    let folder = temporary_folder();
    let name = r#"meetpoint_agent_batches_total{client="client"}"#;
    let mut first = serving(agent(folder.path(), &["--threads", "2"]));
    let text = remote_job("device-only", first.port, KEYS);
    std::fs::write(folder.path().join("job.toml"), text).expect("a job");
    let mut host = HeldRun::start(folder.path(), &["job.toml", "--json", "--epochs", "5"]);
    host.await_held();
    first.child.kill().expect("it runs");
    first.child.wait().expect("it ends");
    // The next epoch begins without it.
    host.advance();
    let again = serving(agent_at(folder.path(), first.port, &["--threads", "2"]));
    assert!(until(PATIENCE, || metric(&again, name) >= 1.0), "it is used again");
    let report: Value = serde_json::from_str(&host.release().success().stdout).expect("a report");
    let run = &report["runs"][0];
    let (host, device) =
        (number(run, "/totals/host_batches"), number(run, "/totals/device_batches"));
    assert_eq!(host + device, 5 * BATCHES);
    let events = run["events"].as_array().expect("events");
    assert!(events.iter().any(|event| event["kind"] == "device_reopened"), "{events:?}");
}

#[test]
fn an_agent_that_moved_is_used_at_the_address_that_its_file_has_now() {
    let folder = temporary_folder();
    let [mut first, second] = [0, 1].map(|_| serving(agent(folder.path(), &["--threads", "2"])));
    let write = |text: &str| {
        std::fs::write(folder.path().join("new"), text).expect("a file");
        std::fs::rename(folder.path().join("new"), folder.path().join("address")).expect("renamed");
    };
    write(&format!("tcp://127.0.0.1:{}\n", first.port));
    std::fs::write(folder.path().join("job.toml"), plain_job("device-only")).expect("a job");
    let device = ["--device", "file:address", "--device-keys", "keys"];
    let arguments = [&["job.toml", "--json", "--epochs", "5"][..], &device].concat();
    let mut host = HeldRun::start(folder.path(), &arguments);
    host.await_held();
    write("tcp://127.0.0.1\n");
    first.child.kill().expect("it runs");
    first.child.wait().expect("it ends");
    // The next epoch begins without it.
    host.advance();
    host.await_held();
    write(&format!("tcp://localhost:{}\n", second.port));
    let name = r#"meetpoint_agent_batches_total{client="client"}"#;
    assert!(until(PATIENCE, || metric(&second, name) >= 1.0), "the other agent is used");
    let report: Value = serde_json::from_str(&host.release().success().stdout).expect("a report");
    let run = &report["runs"][0];
    check_run(run);
    let (host, device) =
        (number(run, "/totals/host_batches"), number(run, "/totals/device_batches"));
    assert_eq!(host + device, 5 * BATCHES);
    let events = run["events"].as_array().expect("events");
    let has = |kind: &str| events.iter().find(|event| event["kind"] == kind).expect(kind);
    assert_eq!(has("device_not_reopened")["reason"]["cause"], "address_file", "{events:?}");
    has("device_reopened");
}
