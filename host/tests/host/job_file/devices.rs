//! The devices of a job, and what a strategy needs of them.

use super::{RECIPE, parse, place_and_text, with};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_host::job::{JobError, JobFile};
use meetpoint_host::{DeviceKind, RemoteAddress, RemoteDevice, Replacements, StrategyName};
use meetpoint_link::tls::TlsFiles;
use std::path::Path;

#[test]
fn a_device_makes_wrr_the_default() {
    let text = format!("dataset = \"s\"\nbatch_size = 1\n[device]\n{RECIPE}");
    assert_eq!(parse(&text).unwrap().strategy, StrategyName::Wrr);
}

#[test]
fn a_job_without_a_device_runs_with_devices_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.toml");
    let load = |lines: &str, devices| {
        std::fs::write(&path, format!("dataset = \"s\"\nbatch_size = 1\n{lines}\n{RECIPE}"))
            .unwrap();
        JobFile::load_for(&path, Replacements { devices, ..Replacements::default() })
    };
    let device = || vec![DeviceKind::Connect { socket: "d.sock".into() }];
    let job = load("strategy = \"device-only\"", device()).unwrap();
    assert_eq!(job.strategy, StrategyName::DeviceOnly);
    assert_eq!(job.devices[0].kind, device()[0]);
    assert_eq!(load("", device()).unwrap().strategy, StrategyName::Wrr);
    assert_eq!(load("", Vec::new()).unwrap().strategy, StrategyName::HostOnly);
    load("strategy = \"device-only\"", Vec::new()).unwrap_err();
    // Another strategy may need none.
    std::fs::write(&path, format!("dataset = \"s\"\nbatch_size = 1\nstrategy = \"wrr\"\n{RECIPE}"))
        .unwrap();
    let replaced = Replacements { has_strategies: true, ..Replacements::default() };
    JobFile::load_for(&path, replaced).unwrap();
}

#[test]
fn only_auto_and_the_host_alone_do_without_a_device() {
    for name in StrategyName::ALL {
        let lines = format!("dataset = \"s\"\nbatch_size = 1\nstrategy = \"{name}\"");
        match parse(&format!("{lines}\n{RECIPE}")) {
            Ok(job) => assert!(!name.needs_device(), "{:?}", job.strategy),
            Err(error) => {
                assert!(name.needs_device());
                assert!(error.to_string().contains("needs a device"), "{error}");
                assert_eq!(error.place, Some((3, 12)));
            }
        }
    }
}

#[test]
fn several_devices_come_from_a_count_or_from_tables_of_their_own() {
    let job = with("shared = true", "count = 3\ncpu_ratio = 0.5").unwrap();
    assert!(job.shared);
    assert_eq!(job.devices.len(), 3);
    assert!(job.devices.iter().all(|device| *device == job.devices[0]));
    let tables = "[[device]]\nparts = [0, 2]\nfaults = [\"die@2\"]\n[[device]]\n\
                  kind = \"connect\"\nsocket = \"d.sock\"\nparts = [1]\n";
    let text = format!("dataset = \"s\"\nbatch_size = 1\n{tables}{RECIPE}");
    let job = parse(&text).unwrap();
    assert_eq!(job.devices[0].parts, Some(vec![0, 2]));
    assert_eq!(job.devices[0].table, "device[0]");
    assert_eq!(job.devices[1].kind, DeviceKind::Connect { socket: "jobs/d.sock".into() });
    assert_eq!(job.devices[1].parts, Some(vec![1]));
}

#[test]
fn devices_that_contradict_each_other_are_refused_where_they_stand() {
    let lines = "dataset = \"s\"\nbatch_size = 1\n";
    for (tables, place, words) in [
        ("[device]\ncount = 0", (4, 9), "from 1 to 64"),
        ("[device]\ncount = 2\ncore = 1", (5, 8), "`core` applies to one device"),
        ("[device]\ncount = 2\nparts = [0]", (5, 9), "a [[device]] table for each"),
        ("[device]\nkind = \"connect\"\ncount = 2", (5, 1), "unknown key `device.count`"),
        ("[device]\nparts = []", (4, 9), "`device.parts`"),
        ("[[device]]\n[[device]]\nratio = 1", (5, 1), "unknown key `device[1].ratio`"),
        ("[[device]]\n[[device]]\ncpu_ratio = 2", (5, 13), "`device[1].cpu_ratio`"),
        ("[[device]]\nparts = [0]\n[[device]]", (3, 1), "1 of 2 devices name"),
        ("[[device]]\nparts = [0]\n[[device]]\nparts = [0]", (3, 1), "part 0 is named twice"),
        ("device = [1]", (3, 11), "two brackets"),
        ("device = \"csd:7000\"", (3, 10), "tcp://HOST:PORT"),
        ("[device]\nkind = \"connect\"\naddress = \"csd\"", (5, 11), "begin with tcp://"),
        (
            "[device]\nkind = \"connect\"\naddress = \"tcp://csd:7\"\nsocket = \"s\"",
            (6, 1),
            "unknown key `device.socket`",
        ),
        ("[device]\nkeys = \"k\"", (4, 1), "unknown key `device.keys`"),
    ] {
        let (found, text) = place_and_text(&format!("{lines}{tables}"));
        assert!(text.contains(words), "{words} in {text}");
        assert_eq!(found, Some(place), "{text}");
    }
}

#[test]
fn devices_on_other_machines_are_named_by_address_and_certificates() {
    let remote = |device: &str| {
        let text = format!("dataset = \"s\"\nbatch_size = 1\n{device}\n{RECIPE}");
        let job = parse(&text)?;
        match job.devices[0].kind.clone() {
            DeviceKind::Remote(device) => Ok::<_, JobError>(*device),
            kind => panic!("{kind:?}"),
        }
    };
    let address = "kind = \"connect\"\naddress = \"tcp://csd:7\"";
    let files = |ca: &str, cert: &str, key: &str| TlsFiles {
        ca: Path::new("jobs").join(ca),
        cert: Path::new("jobs").join(cert),
        key: Path::new("jobs").join(key),
        crl: None,
    };
    let bare = |address: &str| RemoteDevice::new(address.parse::<RemoteAddress>().unwrap());
    assert_eq!(remote("device = \"tcp://csd:7\"").unwrap(), bare("tcp://csd:7"));
    assert_eq!(remote(&format!("[device]\n{address}")).unwrap(), bare("tcp://csd:7"));
    for file in ["device = \"file:a\"", "[device]\nkind = \"connect\"\naddress = \"file:a\""] {
        assert_eq!(remote(file).unwrap(), bare("file:jobs/a"));
    }
    let keys = files("k/ca.pem", "k/client.pem", "k/client.key");
    for (more, tls) in [
        ("keys = \"k\"", keys.clone()),
        ("keys = \"k\"\ncert = \"c\"", TlsFiles { cert: "jobs/c".into(), ..keys }),
        ("ca = \"a\"\ncert = \"c\"\nkey = \"d\"", files("a", "c", "d")),
    ] {
        let device = remote(&format!("[device]\n{address}\n{more}")).unwrap();
        assert_eq!(device.tls, Some(tls), "{more}");
    }
    let rest = "server_name = \"n\"\ntoken_file = \"t\"\nroot = \"r\"";
    let device = remote(&format!("[device]\n{address}\n{rest}")).unwrap();
    assert_eq!((device.server_name.as_deref(), device.root.as_deref()), (Some("n"), Some("r")));
    assert_eq!(device.token_file.as_deref(), Some(Path::new("jobs/t")));
    let missing = remote(&format!("[device]\n{address}\nca = \"a\"")).unwrap_err();
    assert!(missing.to_string().contains("`device.cert` is missing"), "{missing}");
}

#[test]
fn a_strategy_that_needs_a_device_says_so() {
    let (place, text) = place_and_text("dataset=\"s\"\nbatch_size=1\nstrategy = \"wrr\"");
    assert_eq!(place, Some((3, 12)));
    assert!(text.contains("needs a device") && text.contains("[device]"), "{text}");
}

#[test]
fn what_a_device_would_refuse_is_refused_with_its_position() {
    for (lines, words) in [
        ("faults = [\"die@1\", \"melt@3\"]", ["job.toml:4:20: ", "melt@3", "die@N"]),
        ("cpu_ratio = 1e-9", ["job.toml:4:13: ", "`device.cpu_ratio`", "0.001 to 1"]),
        ("latency = \"2s\"", ["job.toml:4:11: ", "`device.latency` is 2s", "at most 1s"]),
        ("count = 2\ncpu_ratio = 1e-9", ["job.toml:5:13: ", "cpu_ratio", "0.001 to 1"]),
    ] {
        let text = format!("dataset = \"s\"\nbatch_size = 1\n[device]\n{lines}\n{RECIPE}");
        let refusal =
            JobFile::parse(&text, Path::new("job.toml")).unwrap_err().in_full(Surface::CommandLine);
        for word in words {
            assert!(refusal.contains(word), "{word} in {refusal}");
        }
    }
}
