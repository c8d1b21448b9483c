//! Faults of agents and of the network before them: every batch is consumed once, and the agent is
//! used again. Hosts that an agent may not serve are refused.

use super::agents::{agent, metric, plain_job};
use super::jobs::{BATCHES, SAMPLES, check_run, number};
use super::network::{KEYS, TOKEN, check_faults, remote_job, serving, temporary_folder};
use super::proxy::TransferFault;
use super::support::{PATIENCE, command, finish, packed, run, until};
use meetpoint_link::tls::keys::{Authority, Subject, Validity};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, SystemTime};

#[test]
fn a_link_that_fails_or_is_slow_costs_no_batch_and_the_agent_is_used_again() {
    let folder = temporary_folder();
    let faults = [
        (TransferFault::Cut, 150_000),
        // In the first batch, which arrives in part.
        (TransferFault::Cut, 20_000),
        (TransferFault::Reset, 150_000),
        (TransferFault::Silence, 150_000),
        (TransferFault::Garble, 150_000),
        (TransferFault::Trickle, 20_000),
    ];
    check_faults(folder.path(), KEYS, &faults, || {
        serving(agent(folder.path(), &["--threads", "3"]))
    });
}

#[test]
fn an_agent_that_was_fenced_off_and_answers_late_changes_no_batch() {
    const EPOCHS: u64 = 4;
    let folder = temporary_folder();
    let agent = serving(agent(folder.path(), &["--threads", "2"]));
    let text = remote_job("device-only", agent.port, KEYS).replace("30s", "300ms");
    // Four slots, so that the agent is at most four batches ahead of the consumer.
    let text = text.replace("20ms", "100ms") + "\n[spool]\nquota = \"128KiB\"\n";
    std::fs::write(folder.path().join("job.toml"), text).expect("a job");
    let epochs = EPOCHS.to_string();
    let arguments = ["run", "job.toml", "--json", "--epochs", &epochs, "--ledger", "ledger"];
    let host = command(folder.path(), &arguments).spawn().expect("the program starts");
    let ledger = folder.path().join("ledger");
    let consumed = || std::fs::read_to_string(&ledger).unwrap_or_default().lines().count();
    assert!(until(PATIENCE, || consumed() >= 2), "batches of the agent arrive");
    let pid = Pid::from_child(&agent.child);
    kill_process(pid, Signal::STOP).expect("a child can be signalled");
    let then = consumed();
    // The host has taken over, and the agent then sends what it prepares for the old owner.
    assert!(until(PATIENCE, || consumed() > then + 4), "the host continues alone");
    kill_process(pid, Signal::CONT).expect("a child can be signalled");
    let report: Value = serde_json::from_str(&finish(host).success().stdout).expect("a report");
    let run = &report["runs"][0];
    check_run(run);
    let (host, own) = (number(run, "/totals/host_batches"), number(run, "/totals/device_batches"));
    assert_eq!(host + own, EPOCHS * BATCHES, "each batch once: {run}");
    assert!(host > 0 && own > 0, "{run}");
    assert_eq!(consumed() as u64, EPOCHS * BATCHES);
}

/// Keys with certificates that have expired or are not valid yet.
fn out_of_time(folder: &Path) {
    let authority = Authority::open_or_make(&folder.join("keys")).expect("an authority");
    let day = Duration::from_secs(86_400);
    let now = SystemTime::now();
    let host = |name: &str| Subject::Host { name: name.to_owned() };
    let past = Validity { begin: now - 3 * day, end: now - 2 * day };
    // As if the clock of the agent were behind that of the machine that issued it.
    let future = Validity { begin: now + 2 * day, end: now + 3 * day };
    for (name, validity) in [("late", past), ("early", future)] {
        authority.issue(&host(name), validity, true).expect("a certificate");
    }
}

#[test]
fn hosts_that_an_agent_may_not_serve_are_refused_in_one_line_with_a_remedy() {
    let folder = temporary_folder();
    let other = ["device", "keys", "others", "--server", "elsewhere", "--client", "client"];
    run(folder.path(), &other).success();
    out_of_time(folder.path());
    let agent = serving(agent(folder.path(), &["--token-file", "token"]));
    let token = "token_file = \"token\"";
    let own = |name: &str| {
        format!(
            "ca = \"keys/ca.pem\"\ncert = \"keys/{name}.pem\"\nkey = \"keys/{name}.key\"\n{token}"
        )
    };
    let cases: [(String, [&str; 2]); 8] = [
        (format!("keys = \"others\"\n{token}"), ["not signed by a CA", "same CA"]),
        (own("late"), ["has expired", "meetpoint device keys"]),
        (own("early"), ["did not accept the certificate", "meetpoint device keys"]),
        (format!("{KEYS}\nserver_name = \"a.test\"\n{token}"), ["another name", "--server a.test"]),
        (KEYS.to_owned(), ["the call has none", "token_file"]),
        (token.to_owned(), ["only TLS", "certificates"]),
        (format!("{KEYS}\nroot = \"videos\"\n{token}"), ["no dataset", "root"]),
        (format!("{KEYS}\ntoken_file = \"other\""), ["another token", "token_file"]),
    ];
    std::fs::write(folder.path().join("other"), TOKEN.replace('0', "f")).expect("a token");
    for (settings, words) in cases {
        let text = remote_job("wrr", agent.port, &settings);
        std::fs::write(folder.path().join("job.toml"), text).expect("a job");
        let refused = run(folder.path(), &["run", "job.toml"]).refused(&words);
        assert_eq!(refused.stderr.matches("remedy:").count(), 1, "{}", refused.stderr);
    }
    let elsewhere = tempfile::tempdir().expect("a folder");
    packed(elsewhere.path(), SAMPLES + 4);
    std::fs::rename(folder.path().join("small.set"), folder.path().join("old")).expect("moved");
    std::fs::rename(elsewhere.path().join("small.set"), folder.path().join("small.set"))
        .expect("on one file system");
    let text = remote_job("wrr", agent.port, &format!("{KEYS}\n{token}"));
    std::fs::write(folder.path().join("job.toml"), text).expect("a job");
    run(folder.path(), &["run", "job.toml"]).refused(&["no dataset", "byte for byte"]);
    let open = ["agent", "--listen", "tcp://0.0.0.0:0", "--root", "a=copy"];
    run(folder.path(), &open).refused(&["not be encrypted", "--cert"]);
    let tokenless = ["agent", "--listen", "tcp://127.0.0.1:0", "--root", "a=copy"];
    run(folder.path(), &tokenless).refused(&["asks for no token", "--token-file"]);
    assert_eq!(metric(&agent, r#"meetpoint_agent_refused_jobs_total{reason="dataset"}"#), 2.0);
    assert_eq!(metric(&agent, r#"meetpoint_agent_refused_jobs_total{reason="token"}"#), 2.0);
}

#[test]
fn an_agent_whose_certificate_expired_is_refused_and_used_once_it_is_renewed() {
    let folder = temporary_folder();
    let keys = folder.path().join("keys");
    let authority = Authority::open_or_make(&keys).expect("an authority");
    let hosts = vec!["127.0.0.1".to_owned()];
    let day = Duration::from_secs(86_400);
    let past = Validity { begin: SystemTime::now() - 3 * day, end: SystemTime::now() - day };
    let subject = Subject::Device { hosts };
    authority.issue(&subject, past, true).expect("a certificate");
    let agent = serving(agent(folder.path(), &[]));
    let address = format!("tcp://127.0.0.1:{}", agent.port);
    std::fs::write(folder.path().join("job.toml"), plain_job("device-only")).expect("a job");
    let arguments = ["run", "job.toml", "--json", "--device", &address, "--device-keys", "keys"];
    run(folder.path(), &arguments).refused(&["its certificate has expired", "--server HOST"]);
    authority.issue(&subject, Validity::days(1), true).expect("a certificate");
    let done = run(folder.path(), &arguments).success();
    let report: Value = serde_json::from_str(&done.stdout).expect("a report");
    assert_eq!(number(&report, "/runs/0/totals/device_batches"), BATCHES);
}
