//! Requests that a device refuses, and its error messages.

use crate::support::{Device, Host, SAMPLE_BYTES, Spool, load_request, talk, write_dataset};
use meetpoint_device::{Error, ServeOptions, probe, serve};
use meetpoint_diagnose::{Command, Diagnose, Step};
use meetpoint_format::wire::host_message::Message;
use meetpoint_format::wire::sampler_option::Value as SamplerValue;
use meetpoint_format::wire::{
    LoadPart, LoadRequest, Release, SamplerOption, SpoolKind, StartEpoch, Work,
};
use meetpoint_link::Setting;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use tonic::{Code, Status};

const BATCH: u64 = 5 * SAMPLE_BYTES;

/// The error for a modified request.
async fn refusal(device: &Device, change: impl FnOnce(&mut LoadRequest)) -> Status {
    let mut host = Host::connect(device.socket()).await;
    let spool = Spool::new(SpoolKind::Memory, 2, BATCH);
    host.load(device, &spool, change).await.unwrap_err()
}

#[test]
fn every_request_that_cannot_be_served_is_refused_with_a_sentence() {
    type Change = fn(&mut LoadRequest);
    let cases: [(Change, Code, &str); 29] = [
        (|load| load.protocol_version += 1, Code::FailedPrecondition, "speaks version"),
        (|load| load.manifest_sha256[0] ^= 1, Code::FailedPrecondition, "another version of this"),
        (|load| load.manifest_sha256.clear(), Code::FailedPrecondition, "another version of this"),
        (|load| load.recipe_hash[31] ^= 1, Code::FailedPrecondition, "recipe's hash"),
        (|load| load.recipe_toml.push_str("nonsense"), Code::FailedPrecondition, "does not parse"),
        (|load| load.recipe_toml = "x".repeat(300 << 10), Code::InvalidArgument, "long"),
        (|load| load.sampler = None, Code::InvalidArgument, "names no sampler"),
        (
            |load| load.sampler.as_mut().unwrap().name = "shufled".to_owned(),
            Code::InvalidArgument,
            "no sampler \"shufled\"",
        ),
        (
            |load| load.sampler.as_mut().unwrap().checksum[0] ^= 1,
            Code::FailedPrecondition,
            "gives other samples on the device",
        ),
        (|load| load.batch_size = 0, Code::InvalidArgument, "at least one sample"),
        (|load| load.batch_size = u32::MAX, Code::OutOfRange, "bytes of memory"),
        (|load| load.batch_size = 5000, Code::InvalidArgument, "slots of"),
        (
            |load| (load.batch_size, load.drop_last) = (21, true),
            Code::InvalidArgument,
            "not even one is full",
        ),
        (|load| load.batch_size = 6, Code::InvalidArgument, "and hold"),
        (|load| load.spool_slots = 0, Code::InvalidArgument, "0 slots"),
        (|load| load.spool_slots = 3, Code::FailedPrecondition, "need more"),
        (|load| load.spool_slot_bytes += 1, Code::InvalidArgument, "whole blocks"),
        (|load| load.spool_token ^= 1 << 60, Code::FailedPrecondition, "no spool was passed"),
        (|load| load.rank = 1, Code::InvalidArgument, "rank 1 of 1"),
        (|load| load.ranks = 0, Code::InvalidArgument, "rank 0 of 0"),
        (|load| load.devices = 0, Code::InvalidArgument, "0 devices"),
        (|load| load.device = 1, Code::InvalidArgument, "out of range 0..1"),
        (|load| load.part_holders = vec![0, 0], Code::InvalidArgument, "has 2 entries"),
        (|load| load.part_holders = vec![1], Code::InvalidArgument, "part 0: device index"),
        (
            |load| load.columns[1] = "labell".into(),
            Code::FailedPrecondition,
            "no column \"labell\"",
        ),
        (|load| load.columns.clear(), Code::FailedPrecondition, "names no column"),
        (|load| load.columns[1] = "image".into(), Code::FailedPrecondition, "\"image\" twice"),
        (|load| load.columns.resize(61, String::new()), Code::InvalidArgument, "limit is 60"),
        (|load| load.spool_kind = 0, Code::FailedPrecondition, "of no kind"),
    ];
    let device = Device::start(|_| ());
    talk(async {
        for (change, code, sentence) in cases {
            let status = refusal(&device, change).await;
            assert_eq!(status.code(), code, "{status}");
            assert!(status.message().contains(sentence), "{status}");
        }
        // A refused host does not hold the device.
        let mut host = Host::connect(device.socket()).await;
        host.load(&device, &Spool::new(SpoolKind::Memory, 2, BATCH), |_| ()).await.unwrap();
    });
    let summary = device.stop();
    assert_eq!((summary.jobs, summary.loads_refused), (1, 29));
}

#[test]
fn a_dataset_outside_the_roots_is_denied_whether_it_is_there_or_not() {
    let device = Device::start(|_| ());
    let outside = device.folder.path().join("outside");
    write_dataset(&outside, vec![b"x".to_vec()]);
    let link = device.folder.path().join("root/link");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let traversal = device.folder.path().join("root/../outside");
    let sibling = device.folder.path().join("root-2/set");
    talk(async {
        let mut sentences = Vec::new();
        for path in [outside, "/nowhere".into(), link, traversal, sibling, PathBuf::new()] {
            let path = path.display().to_string();
            let status = refusal(&device, |load| load.datasets = vec![path.clone().into()]).await;
            assert_eq!(status.code(), Code::PermissionDenied, "{path}: {status}");
            sentences.push(status.message().replacen(&path, "", 1));
        }
        sentences.dedup();
        assert_eq!(sentences.len(), 1, "{sentences:?}");
        // The root itself is not a dataset, which may be revealed.
        let root = device.folder.path().join("root").display().to_string();
        let status = refusal(&device, |load| load.datasets = vec![root.into()]).await;
        assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
        assert!(status.message().contains("dataset.json"), "{status}");
    });
}

#[test]
fn a_second_host_learns_who_uses_the_device() {
    let device = Device::start(|_| ());
    talk(async {
        let mut first = Host::connect(device.socket()).await;
        let spool = Spool::new(SpoolKind::Memory, 2, BATCH);
        first.load(&device, &spool, |_| ()).await.unwrap();
        let status = refusal(&device, |_| ()).await;
        assert_eq!(status.code(), Code::ResourceExhausted);
        let own = format!("process id {}", std::process::id());
        assert!(status.message().contains(&own), "{status}");
        assert!(meetpoint_link::refusal::remedy(&status).is_some(), "{status}");
        // The current host can still run.
        first.run().await.unwrap();
    });
}

#[test]
fn a_run_without_a_job_or_beside_another_is_refused() {
    let device = Device::start(|_| ());
    talk(async {
        let mut host = Host::connect(device.socket()).await;
        let status = host.run().await.map(|_| ()).unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(status.message().contains("call Load first"), "{status}");
        let spool = Spool::new(SpoolKind::Memory, 2, BATCH);
        host.load(&device, &spool, |_| ()).await.unwrap();
        let _link = host.run().await.unwrap();
        let status = host.run().await.map(|_| ()).unwrap_err();
        assert!(status.message().contains("already has a Run stream"), "{status}");
    });
}

#[test]
fn invalid_messages_end_the_stream_with_the_reason() {
    let device = Device::start(|_| ());
    let work = |epoch, first, count| {
        Message::Work(Work { epoch, generation: 1, first, count, descending: false })
    };
    for (message, sentence) in [
        (work(0, 3, 2), "batches 0..4"),
        (work(1, 0, 1), "have not begun"),
        (Message::Release(Release { slot: 2 }), "slots 0..2"),
    ] {
        talk(async {
            let mut host = Host::connect(device.socket()).await;
            let spool = Spool::new(SpoolKind::Memory, 2, BATCH);
            host.load(&device, &spool, |_| ()).await.unwrap();
            let mut link = host.run().await.unwrap();
            let start = StartEpoch { epoch: 0, generation: 1 };
            link.say(Message::StartEpoch(start)).await;
            link.say(message).await;
            let status = loop {
                match link.receiver.message().await {
                    Ok(heard) => assert!(heard.is_some(), "the stream ended without a reason"),
                    Err(status) => break status,
                }
            };
            assert_eq!(status.code(), Code::InvalidArgument);
            assert!(status.message().contains(sentence), "{status}");
        });
    }
}

#[test]
fn a_batch_that_does_not_fit_the_devices_memory_is_refused() {
    let device = Device::start(|options| options.emulation.memory_bytes_max = Some(4096));
    talk(async {
        let status = refusal(&device, |_| ()).await;
        assert_eq!(status.code(), Code::OutOfRange);
        assert!(status.message().contains("limit of 4096"), "{status}");
    });
}

/// Lists are in memory three times while they are read; this limit has room for two and a half.
#[test]
fn lists_that_do_not_fit_the_devices_memory_are_refused_before_they_are_sent() {
    let list_bytes = 512 << 20;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let own_kib: u64 = own.trim().trim_end_matches(" kB").parse().unwrap();
    let limit = own_kib * 1024 + list_bytes * 5 / 2;
    let device = Device::start(|options| options.emulation.memory_bytes_max = Some(limit));
    talk(async {
        let status = refusal(&device, |load| {
            let sampler = load.sampler.as_mut().unwrap();
            sampler.name = "indices".to_owned();
            let value = Some(SamplerValue::Wholes(list_bytes / 8));
            sampler.options = vec![SamplerOption { name: "indices".to_owned(), value }];
        })
        .await;
        assert_eq!(status.code(), Code::OutOfRange, "{status}");
    });
}

#[test]
fn invalid_options_are_errors_before_anything_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let attempt = |roots: Vec<PathBuf>, change: fn(&mut ServeOptions)| {
        let mut options = ServeOptions::new(&socket, roots);
        change(&mut options);
        let error = serve(options, |_| panic!("it is not ready"), Arc::default());
        assert!(!socket.exists());
        error.unwrap_err()
    };
    let here = vec![folder.path().to_path_buf()];
    assert!(matches!(attempt(vec![], |_| ()), Error::NoRoots));
    let error = attempt(vec!["/nowhere".into()], |_| ()).to_string();
    assert!(error.contains("/nowhere"), "{error}");
    let error = attempt(here.clone(), |options| options.emulation.targets.cpu_ratio = Some(2.0));
    let Error::Emulation(error) = error else { panic!("{error}") };
    assert_eq!((error.setting, error.value.as_str()), (Setting::CpuRatio, "2"));
    let error = attempt(here, |options| options.emulation.targets.core = Some(1000));
    assert!(error.to_string().contains("core 1000"), "{error}");
}

#[test]
fn a_socket_in_use_is_not_taken_over() {
    let device = Device::start(|_| ());
    let options = ServeOptions::new(device.socket(), vec![device.folder.path().to_path_buf()]);
    let second = serve(options, |_| panic!("it is not ready"), Arc::default());
    assert!(matches!(second, Err(Error::SocketInUse { .. })));
    assert!(probe(device.socket()).is_ok());
}

#[test]
fn a_probe_of_nothing_or_of_something_else_is_an_error_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let error = probe(&socket).unwrap_err();
    assert!(error.to_string().contains("no such socket"), "{error}");
    let serve = Command::ServeDevice { socket: Some(socket.clone()) };
    assert_eq!(error.remedy().unwrap().steps()[0], Step::Run(serve));
    for what in ["a folder", "a file"] {
        let path = folder.path().join(what);
        match what {
            "a folder" => std::fs::create_dir(&path).unwrap(),
            _ => std::fs::write(&path, "").unwrap(),
        }
        let error = probe(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("it is {what}, not a socket")), "{error}");
    }
    // A process that accepts and sends nothing.
    let silent = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let error = probe(&socket).unwrap_err();
    assert!(matches!(error, Error::NotADevice { .. }), "{error}");
    assert!(error.to_string().contains("it did not answer within 3s"), "{error}");
    drop(silent);
    std::fs::remove_file(&socket).unwrap();
    // A server with another protocol.
    let web = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = web.accept().unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    });
    let error = probe(&socket).unwrap_err().to_string();
    server.join().unwrap();
    assert!(error.ends_with(": it does not speak the device link protocol"), "{error}");
    assert!(!error.replace(&socket.display().to_string(), "").contains("h2"), "{error}");
}

#[test]
fn a_probe_reports_whether_the_device_is_busy_and_for_whom() {
    let device = Device::start(|_| ());
    assert_eq!(probe(device.socket()).unwrap().works_for, None);
    let busy = talk(async {
        let mut host = Host::connect(device.socket()).await;
        let spool = Spool::new(SpoolKind::Memory, 2, BATCH);
        host.load(&device, &spool, |_| ()).await.unwrap();
        // The host's connection stays open until the answer arrives.
        let socket = device.socket().to_path_buf();
        let asked = tokio::task::spawn_blocking(move || probe(&socket)).await.unwrap();
        drop(host);
        asked.unwrap()
    });
    assert_eq!(busy.works_for, Some(std::process::id()));
}

#[test]
fn a_spool_serves_one_load_only() {
    let device = Device::start(|_| ());
    let spool = Spool::new(SpoolKind::Memory, 2, BATCH);
    talk(async {
        let mut host = Host::connect(device.socket()).await;
        host.load(&device, &spool, |_| ()).await.unwrap();
        drop(host);
        let mut other = Host::connect(device.socket()).await;
        let status = loop {
            // Until the device detects that the first host has disconnected, it refuses the second
            // one for that reason.
            let request = load_request(&device, &spool);
            let status =
                other.client.load(tokio_stream::once(LoadPart::from(request))).await.unwrap_err();
            if status.code() != Code::ResourceExhausted {
                break status;
            }
        };
        assert!(status.message().contains("no spool was passed"), "{status}");
    });
}
