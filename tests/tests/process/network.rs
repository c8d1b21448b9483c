//! Devices over a network, with real processes: every strategy, every refusal, and a network that
//! fails.

use super::held_run::HeldRun;
use super::jobs::{BATCHES, SAMPLES, check_devices, check_run, job, number, report};
use super::proxy::{Proxy, TransferFault};
use super::support::{PATIENCE, command, finish, packed, run, until, wait};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::Ordering;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A device started by hand; killed when dropped.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) port: u16,
    /// What it printed before it served.
    pub(crate) printed: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a device on a port that the system chooses. Its copy of the dataset is its own.
fn serve(folder: &Path, extra: &[&str]) -> Served {
    let listen = ["device", "serve", "--listen", "tcp://127.0.0.1:0", "--allow-shared"];
    let root = ["--root", "photos=copy"];
    serving(command(folder, &[&listen[..], &root[..], extra].concat()))
}

/// Starts a device or an agent, and waits until it serves.
pub(crate) fn serving(mut program: Command) -> Served {
    let mut child = program.spawn().expect("the device starts");
    let stdout = child.stdout.take().expect("standard output is a pipe");
    let mut stdout = BufReader::new(stdout);
    let mut printed = String::new();
    // All of its description is written at once, and ends with one of these lines.
    while !["not slowed down\n", "emulated: "].iter().any(|last| printed.contains(last)) {
        let bytes = stdout.read_line(&mut printed).expect("it says where it listens");
        assert!(bytes > 0, "it ended after {printed:?}");
    }
    let line = printed.lines().next().expect("a line");
    let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
    let port = port.unwrap_or_else(|| panic!("no port in {line:?}"));
    // Its later output is ignored, but must not block it.
    std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    Served { child, port, printed }
}

/// A folder with a dataset, a copy of it for the device, keys and a token.
pub(crate) fn temporary_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let set = packed(folder.path(), SAMPLES);
    let copy = folder.path().join("copy/photos.set");
    std::fs::create_dir_all(&copy).expect("a folder");
    for file in std::fs::read_dir(set).expect("the set reads").flatten() {
        std::fs::copy(file.path(), copy.join(file.file_name())).expect("a copy");
    }
    let keys = ["device", "keys", "keys", "--server", "127.0.0.1", "--server", "localhost"];
    run(folder.path(), &[&keys[..], &["--client", "client"]].concat()).success();
    std::fs::write(folder.path().join("token"), TOKEN).expect("a token");
    folder
}

pub(crate) const TLS: [&str; 8] = [
    "--ca",
    "keys/ca.pem",
    "--cert",
    "keys/server.pem",
    "--key",
    "keys/server.key",
    "--crl",
    "keys/crl.pem",
];

/// The job with a device at a port.
pub(crate) fn remote_job(strategy: &str, port: u16, settings: &str) -> String {
    let device = format!("kind = \"connect\"\naddress = \"tcp://127.0.0.1:{port}\"\n{settings}");
    job(strategy, 0, "").replace("kind = \"emulated\"\nallow_shared = true", &device)
}

pub(crate) const KEYS: &str = "keys = \"keys\"";

#[test]
fn making_keys_names_every_file_that_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let keys = |words: &[&str]| run(folder.path(), words).success().stdout;
    let said = keys(&["device", "keys", "new", "--client", "trainer"]);
    let names = ["ca.pem", "ca.key", "crl.pem", "trainer.pem", "trainer.key"];
    let written = names.map(|name| format!("new/{name}"));
    assert_eq!(said.lines().collect::<Vec<_>>(), written);
    let said = keys(&["device", "keys", "new", "--revoke", "new/trainer.pem"]);
    assert_eq!(said.lines().collect::<Vec<_>>(), written[..3]);
}

#[test]
fn every_strategy_is_verified_with_a_device_that_shares_no_storage() {
    let folder = temporary_folder();
    let device = serve(folder.path(), &TLS);
    let text = remote_job("wrr", device.port, KEYS);
    let report = report(folder.path(), &text, &["--strategy", "all", "--epochs", "2"]);
    let runs = report["runs"].as_array().expect("runs");
    assert!(runs.len() >= 8, "{}", runs.len());
    for run in runs {
        check_run(run);
        check_devices(run);
    }
    let of = |name: &str| runs.iter().find(|run| run["strategy"] == name).expect("it was run");
    assert_eq!(number(of("device-only"), "/totals/device_batches"), 2 * BATCHES);
    assert_eq!(report["job"]["devices"][0]["kind"], "remote", "{}", report["job"]["devices"]);
}

#[test]
fn a_device_is_named_on_the_command_line_and_in_the_environment() {
    let folder = temporary_folder();
    let device = serve(folder.path(), &["--token-file", "token"]);
    std::fs::write(folder.path().join("job.toml"), job("device-only", 0, "")).expect("a job");
    let address = format!("tcp://127.0.0.1:{}", device.port);
    let arguments = ["run", "job.toml", "--json", "--device", &address];
    let check = |finished: super::support::Finished| {
        let report: Value = serde_json::from_str(&finished.success().stdout).expect("a report");
        check_run(&report["runs"][0]);
        assert_eq!(number(&report, "/runs/0/totals/device_batches"), BATCHES);
    };
    let given = [&arguments[..], &["--device-token-file", "token", "--device-root", "photos"]];
    check(run(folder.path(), &given.concat()));
    // The job needs a device and names none.
    let without = job("device-only", 0, "").replace("[device]\nkind = \"emulated\"\n", "[spool]\n");
    let without = without.replace("allow_shared = true\n", "");
    std::fs::write(folder.path().join("job.toml"), without).expect("a job");
    check(run(folder.path(), &given.concat()));
    let mut with_variable = command(folder.path(), &arguments);
    with_variable.env("MEETPOINT_DEVICE_TOKEN_FILE", "token");
    check(finish(with_variable.spawn().expect("the program starts")));
    let line = format!("device = \"{address}\"\n");
    let text = job("device-only", 0, "");
    let text = text.replace("[device]\nkind = \"emulated\"\nallow_shared = true\n", "");
    std::fs::write(folder.path().join("named.toml"), format!("{line}{text}")).expect("a job");
    let mut named = command(folder.path(), &["run", "named.toml", "--json"]);
    named.env("MEETPOINT_DEVICE_TOKEN_FILE", "token");
    check(finish(named.spawn().expect("the program starts")));
    let probe = |device: &str| {
        run(folder.path(), &["device", "probe", "--device", device, "--device-token-file", "token"])
    };
    let file_missing = "failed to read the address of a device in address";
    probe("file:address").refused(&[file_missing, "remedy: write tcp://HOST:PORT"]);
    std::fs::write(folder.path().join("address"), &address).expect("a file");
    for device in [&address, "file:address"] {
        let probed = probe(device).success();
        assert!(probed.stdout.contains("serves photos\n"), "{}", probed.stdout);
        assert!(!probed.stdout.contains("copy"), "no path is named: {}", probed.stdout);
    }
    let in_file = ["run", "job.toml", "--json", "--device", "file:address"];
    check(run(folder.path(), &[&in_file[..], &["--device-token-file", "token"]].concat()));
}

#[test]
fn hosts_that_may_not_connect_are_refused_in_one_line_with_a_remedy() {
    let folder = temporary_folder();
    let other = ["device", "keys", "others", "--server", "elsewhere", "--client", "client"];
    run(folder.path(), &other).success();
    let more = ["device", "keys", "keys", "--client", "revoked"];
    run(folder.path(), &more).success();
    run(folder.path(), &["device", "keys", "keys", "--revoke", "keys/revoked.pem"]).success();
    let secured = serve(folder.path(), &[&TLS[..], &["--token-file", "token"]].concat());
    let plain = serve(folder.path(), &["--token-file", "token"]);
    let token = "token_file = \"token\"";
    let with = |settings: &str| format!("{settings}\n{token}");
    let revoked =
        with("ca = \"keys/ca.pem\"\ncert = \"keys/revoked.pem\"\nkey = \"keys/revoked.key\"");
    let unknown =
        with("ca = \"keys/ca.pem\"\ncert = \"others/client.pem\"\nkey = \"others/client.key\"");
    let cases: [(u16, String, [&str; 2]); 9] = [
        (secured.port, with("keys = \"others\""), ["signed by a CA", "same CA"]),
        (secured.port, unknown, ["did not accept the certificate", "same CA"]),
        (secured.port, revoked, ["has been revoked", "meetpoint device keys"]),
        (
            secured.port,
            with("keys = \"keys\"\nserver_name = \"csd.example\""),
            ["is for another name", "--server csd.example"],
        ),
        (secured.port, with(""), ["only TLS", "certificates"]),
        (secured.port, KEYS.to_owned(), ["the call has none", "token_file"]),
        (plain.port, with(KEYS), ["does not speak TLS", "--cert"]),
        (plain.port, String::new(), ["the call has none", "token_file"]),
        (plain.port, with("root = \"videos\""), ["no dataset", "root"]),
    ];
    for (port, settings, words) in cases {
        std::fs::write(folder.path().join("job.toml"), remote_job("wrr", port, &settings))
            .expect("a job");
        let refused = run(folder.path(), &["run", "job.toml"]).refused(&words);
        assert_eq!(refused.stderr.matches("remedy:").count(), 1, "{}", refused.stderr);
    }
    std::fs::write(folder.path().join("job.toml"), job("wrr", 0, "")).expect("a job");
    let far = ["run", "job.toml", "--device", "tcp://192.0.2.1:7000"];
    run(folder.path(), &far).refused(&["not be encrypted", "meetpoint device keys"]);
    let open = ["device", "serve", "--listen", "tcp://0.0.0.0:0", "--root", "a=copy"];
    run(folder.path(), &open).refused(&["not be encrypted", "--cert"]);
    let tokenless = ["device", "serve", "--listen", "tcp://127.0.0.1:0", "--root", "a=copy"];
    run(folder.path(), &tokenless).refused(&["asks for no token", "--token-file"]);
}

/// Opening a pipe would block until another process writes to it, whatever signals arrive.
#[test]
fn pipes_as_files_of_keys_and_tokens_are_refused_without_waiting() {
    let folder = temporary_folder();
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    let serve = ["device", "serve", "--listen", "tcp://127.0.0.1:0", "--root", "a=copy"];
    let (ca, cert, key) = ("keys/ca.pem", "keys/server.pem", "keys/server.key");
    for files in [
        &["--token-file", "pipe"][..],
        &["--ca", "pipe", "--cert", cert, "--key", key],
        &["--ca", ca, "--cert", "pipe", "--key", key],
        &["--ca", ca, "--cert", cert, "--key", "pipe"],
        &["--ca", ca, "--cert", cert, "--key", key, "--crl", "pipe"],
    ] {
        run(folder.path(), &[&serve[..], files].concat()).refused(&["pipe", "regular file"]);
    }
}

/// Epochs through a proxy. The device is lost in the first one, and the second one is held until it
/// has joined it.
const EPOCHS: u64 = 3;

/// Bytes of a batch: four pictures of 48 by 48 pixels.
const BATCH_BYTES: u64 = 4 * 48 * 48 * 3;

/// Runs epochs through a proxy for each fault and number of bytes after which it begins. Each batch
/// arrives once, and the device is used again.
pub(crate) fn check_faults(
    folder: &Path,
    settings: &str,
    faults: &[(TransferFault, u64)],
    serve: impl Fn() -> Served,
) {
    for &(trouble, after) in faults {
        let device = serve();
        let proxy = Proxy::start(device.port, trouble, after);
        let text = remote_job("device-only", proxy.port, settings).replace("30s", "500ms");
        std::fs::write(folder.join("job.toml"), text).expect("a job");
        let epochs = EPOCHS.to_string();
        let held = HeldRun::start(folder, &["job.toml", "--json", "--epochs", &epochs]);
        if trouble != TransferFault::Trickle {
            // Less than a batch is sent before the first one.
            let is_used_again = || proxy.passed_again.load(Ordering::SeqCst) >= 2 * BATCH_BYTES;
            assert!(until(PATIENCE, is_used_again), "{trouble:?}: the device is not used again");
        }
        let done = held.release().success();
        let report: Value = serde_json::from_str(&done.stdout).expect("a report");
        let run = &report["runs"][0];
        check_run(run);
        let (host, own) =
            (number(run, "/totals/host_batches"), number(run, "/totals/device_batches"));
        assert_eq!(host + own, EPOCHS * BATCHES, "{trouble:?}");
        let events = run["events"].as_array().expect("events");
        let is = |kind: &str| events.iter().any(|event| event["kind"] == kind);
        match trouble {
            TransferFault::Trickle => {}
            TransferFault::Cut
            | TransferFault::Reset
            | TransferFault::Garble
            | TransferFault::Repeat => {
                assert!(is("device_lost") && is("device_reopened"), "{trouble:?} {events:?}");
                assert!(proxy.connections.load(Ordering::SeqCst) >= 2, "{trouble:?}");
            }
            TransferFault::Silence => {
                assert!(is("device_stalled") && is("device_reopened"), "{events:?}");
            }
        }
        let later = run["epochs"].as_array().expect("epochs").iter().skip(1);
        let mut later = later.flat_map(|epoch| epoch["batches"].as_array().expect("batches"));
        assert!(later.any(|batch| batch["source"] != "host"), "{trouble:?}: {events:?}");
    }
}

#[test]
fn a_network_that_fails_costs_no_batch() {
    let folder = temporary_folder();
    let settings = format!("{KEYS}\nserver_name = \"127.0.0.1\"");
    let faults = [(TransferFault::Cut, 150_000), (TransferFault::Repeat, 150_000)];
    check_faults(folder.path(), &settings, &faults, || {
        serve(folder.path(), &[&TLS[..], &["--threads", "3"]].concat())
    });
}

#[test]
fn a_device_that_is_killed_or_stopped_costs_no_batch() {
    use rustix::process::{Pid, Signal, kill_process};
    let folder = temporary_folder();
    for signal in [Signal::KILL, Signal::STOP, Signal::TERM] {
        let mut device = serve(folder.path(), &[&TLS[..], &["--cpu-ratio", "0.3"]].concat());
        let text = remote_job("device-only", device.port, KEYS).replace("30s", "500ms");
        std::fs::write(folder.path().join("job.toml"), text).expect("a job");
        let host = command(folder.path(), &["run", "job.toml", "--json"]).spawn();
        let host = host.expect("the program starts");
        let threads = format!("/proc/{}/task", device.child.id());
        let is_preparing = || {
            std::fs::read_dir(&threads).into_iter().flatten().flatten().any(|entry| {
                let name = std::fs::read_to_string(entry.path().join("comm"));
                let times = std::fs::read_to_string(entry.path().join("schedstat"));
                let ns = times.unwrap_or_default();
                let ns = ns.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
                name.is_ok_and(|name| name.trim() == "prepare") && ns > 3_000_000
            })
        };
        assert!(until(PATIENCE, is_preparing), "the device begins to prepare");
        let pid = Pid::from_child(&device.child);
        kill_process(pid, signal).expect("a child can be signalled");
        let done = finish(host).success();
        let report: Value = serde_json::from_str(&done.stdout).expect("a report");
        check_run(&report["runs"][0]);
        if signal == Signal::TERM {
            assert!(wait(&mut device.child, PATIENCE).is_some(), "SIGTERM ends a device");
        }
    }
}

#[test]
fn private_keys_are_private_and_nothing_is_replaced_without_a_word() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let first = ["device", "keys", "k", "--server", "a", "--client", "b"];
    run(folder.path(), &first).success();
    for name in ["ca.key", "server.key", "b.key"] {
        let path = folder.path().join("k").join(name);
        let mode = std::fs::metadata(path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    run(folder.path(), &first).refused(&["server.pem exists", "--force"]);
    let read = |name: &str| std::fs::read(folder.path().join("k").join(name)).expect("it reads");
    let (ca, server) = (read("ca.pem"), read("server.pem"));
    run(folder.path(), &[&first[..], &["--force"]].concat()).success();
    assert!(read("ca.pem") == ca && read("server.pem") != server);
    for wrong in ["../x", "ca", "", "a b"] {
        run(folder.path(), &["device", "keys", "k", "--client", wrong])
            .refused(&["name of a host"]);
    }
    std::fs::write(folder.path().join("x.pem"), "x").expect("a file");
    run(folder.path(), &["device", "keys", "k", "--revoke", "x.pem"]).refused(&["x.pem"]);
    let none = run(folder.path(), &["device", "keys", "k"]);
    assert_eq!(none.code(), Some(2), "{}", none.stderr);
}
