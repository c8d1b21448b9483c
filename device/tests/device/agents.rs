//! A device as a server: several threads, metrics, health, and draining.

use crate::reference::{of_samples, prepared};
use crate::support::{
    Device, Host, SAMPLE_BYTES, Session, Spool, StreamEvent, jpeg, session, take, talk,
};
use meetpoint_device::{Error, ServeOptions};
use meetpoint_format::wire::host_message::Message;
use meetpoint_format::wire::{LoadRequest, Release, SpoolKind};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

const BATCH: u64 = 5 * SAMPLE_BYTES;

fn agent(threads: u32, change: impl FnOnce(&mut ServeOptions)) -> Device {
    let images = (0..100).map(|index| jpeg(index, 64)).collect();
    Device::start_with(images, |options| {
        options.hosts = 4;
        options.threads = threads;
        options.metrics = Some("tcp://127.0.0.1:0".parse().unwrap());
        change(options);
    })
}

/// A GET request to the address for monitoring: status and body.
fn get(device: &Device, path: &str) -> (u16, String) {
    let address = device.ready.metrics.as_ref().unwrap();
    let mut stream = TcpStream::connect((&address.host[..], address.port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    // The body is in one chunk, or of a known length.
    (status, body.to_owned())
}

/// The value of a metric, with its labels.
fn value(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.split(' ').next() == Some(name));
    let line = line.unwrap_or_else(|| panic!("{name} is not in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn several_threads_give_the_same_bits_to_several_hosts() {
    let device = agent(3, |_| ());
    talk(async {
        let mut ranks = Vec::new();
        for rank in [0, 1] {
            let of_rank = |load: &mut LoadRequest| (load.rank, load.ranks) = (rank, 2);
            ranks.push(session(&device, 4, of_rank).await);
        }
        for Session { link, .. } in &ranks {
            link.grant(0, 1, 9, 10).await;
        }
        for (rank, Session { spool, link, .. }) in (0..).zip(&mut ranks) {
            let mut left: Vec<u32> = (0..10).collect();
            while !left.is_empty() {
                let published = link.published().await;
                let at = left.iter().position(|batch| *batch == published.batch);
                left.remove(at.expect("every batch once"));
                let payload = take(spool, &published, 5);
                assert!(
                    payload == prepared(&device, &of_samples(100, (rank, 2)), 0, published.batch)
                );
                link.say(Message::Release(Release { slot: published.slot })).await;
            }
            let meters = link.meters_at(10).await;
            assert_eq!((meters.batches, meters.spool_bytes_written), (10, 10 * (4096 + BATCH)));
            assert!(meters.cpu_ns > 0 && meters.dataset_bytes_read > 0);
        }
    });
    let (status, text) = get(&device, "/metrics");
    assert_eq!(status, 200);
    for (name, expected) in [
        (r#"meetpoint_agent_jobs_total{client="local"}"#, 2.0),
        (r#"meetpoint_agent_batches_total{client="local"}"#, 20.0),
        (r#"meetpoint_agent_samples_total{client="local"}"#, 100.0),
        (r#"meetpoint_agent_sent_bytes_total{client="local"}"#, 20.0 * (4096 + BATCH) as f64),
        ("meetpoint_agent_threads", 3.0),
        ("meetpoint_agent_hosts_max", 4.0),
        ("meetpoint_agent_draining", 0.0),
    ] {
        assert_eq!(value(&text, name), expected, "{name}");
    }
    assert!(value(&text, r#"meetpoint_agent_cpu_seconds_total{client="local"}"#) > 0.0);
    let summary = device.stop();
    assert_eq!((summary.jobs, summary.batches), (2, 20));
    let [client] = &summary.clients[..] else { panic!("{summary:?}") };
    assert_eq!((&client.client[..], client.batches, client.samples), ("local", 20, 100));
}

#[test]
fn a_worker_that_is_stuck_does_not_hold_up_the_other_threads() {
    let device = agent(2, |options| options.faults = vec!["stall@1".parse().unwrap()]);
    talk(async {
        let Session { spool, mut link, host: _host } = session(&device, 4, |_| ()).await;
        link.grant(0, 1, 3, 4).await;
        // Which of the four is stuck depends on which thread begins first.
        let mut seen = BTreeSet::new();
        for _ in 0..3 {
            let published = link.published().await;
            assert!(seen.insert(published.batch), "{} twice", published.batch);
            let payload = take(&spool, &published, 5);
            let alone = of_samples(100, (0, 1));
            assert!(payload == prepared(&device, &alone, 0, published.batch));
        }
    });
    device.stop();
}

#[test]
fn a_device_that_drains_delivers_what_it_prepares_and_accepts_no_jobs() {
    // Its first batch takes until the device drains and longer.
    let device = agent(1, |options| options.faults = vec!["stall@1:2s".parse().unwrap()]);
    talk(async {
        let Session { spool, mut link, host } = session(&device, 4, |_| ()).await;
        link.grant(0, 1, 9, 4).await;
        while link.progress.is_empty() {
            let _ = tokio::time::timeout(Duration::from_millis(20), link.next()).await;
        }
        assert_eq!(get(&device, "/healthz"), (200, "serving\n".to_owned()));
        assert_eq!(health(&device).await, ServingStatus::Serving);
        let mut waits = Host::connect(device.socket()).await;
        device.ask_to_end();
        draining(&device).await;
        assert_eq!(health(&device).await, ServingStatus::NotServing);
        let (_, text) = get(&device, "/metrics");
        assert_eq!(value(&text, "meetpoint_agent_draining"), 1.0);
        // New jobs are refused, with a reason.
        let of_other = Spool::new(SpoolKind::Memory, 1, BATCH);
        let status = waits.load(&device, &of_other, |_| ()).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{status}");
        assert!(meetpoint_link::refusal::remedy(&status).is_some());
        let published = link.published().await;
        assert_eq!(published.batch, 9);
        assert!(take(&spool, &published, 5) == prepared(&device, &of_samples(100, (0, 1)), 0, 9));
        match link.next().await {
            StreamEvent::Draining => {}
            other => panic!("{other:?}"),
        }
        drop((link, host, waits));
    });
    let summary = device.end();
    assert_eq!((summary.batches, summary.loads_refused, summary.cut_off), (1, 1, false));
}

/// Waits until the device drains.
async fn draining(device: &Device) {
    while get(device, "/healthz").0 != 503 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The state by gRPC health v1.
async fn health(device: &Device) -> ServingStatus {
    let address = device.ready.metrics.as_ref().unwrap();
    let endpoint = format!("http://{}:{}", address.host, address.port);
    let channel = tonic::transport::Endpoint::from_shared(endpoint).unwrap().connect().await;
    let mut client = HealthClient::new(channel.unwrap());
    let service = "meetpoint.device.v1.Device".to_owned();
    let reply = client.check(HealthCheckRequest { service }).await.unwrap();
    reply.into_inner().status()
}

#[test]
fn a_second_request_ends_a_device_that_drains_at_once() {
    let device = agent(1, |options| options.faults = vec!["stall@1".parse().unwrap()]);
    talk(async {
        let Session { mut link, .. } = session(&device, 4, |_| ()).await;
        link.grant(0, 1, 9, 4).await;
        while link.progress.is_empty() {
            let _ = tokio::time::timeout(Duration::from_millis(20), link.next()).await;
        }
        device.ask_to_end();
        draining(&device).await;
        device.ask_to_end();
        loop {
            if let StreamEvent::Ended(_) = link.next().await {
                break;
            }
        }
    });
    let summary = device.end();
    assert_eq!((summary.batches, summary.cut_off), (0, true));
}

#[test]
fn a_device_that_drains_ends_when_time_is_up() {
    let device = agent(1, |options| {
        options.faults = vec!["stall@1".parse().unwrap()];
        options.drain_timeout = Duration::from_millis(100);
    });
    talk(async {
        let Session { mut link, .. } = session(&device, 4, |_| ()).await;
        link.grant(0, 1, 9, 4).await;
        while link.progress.is_empty() {
            let _ = tokio::time::timeout(Duration::from_millis(20), link.next()).await;
        }
        device.ask_to_end();
        while !matches!(link.next().await, StreamEvent::Ended(_)) {}
    });
    assert!(device.end().cut_off);
}

#[test]
fn an_idle_device_that_drains_ends_without_waiting() {
    let device = agent(2, |_| ());
    device.ask_to_end();
    assert!(!device.end().cut_off);
}

#[test]
fn unknown_pages_are_not_found_and_other_methods_are_refused() {
    let device = agent(1, |_| ());
    assert_eq!(get(&device, "/healthz"), (200, "serving\n".to_owned()));
    assert_eq!(get(&device, "/").0, 404);
    device.stop();
}

#[test]
fn an_invalid_number_of_threads_is_refused_at_the_start() {
    for (threads, is_emulated) in [(0, false), (1025, false), (2, true)] {
        let folder = tempfile::tempdir().unwrap();
        let roots = vec![folder.path().to_path_buf()];
        let mut options = ServeOptions::new(folder.path().join("s"), roots);
        options.threads = threads;
        options.emulation.targets.cpu_ratio = is_emulated.then_some(0.5);
        options.emulation.allow_shared = true;
        let error = meetpoint_device::serve(options, |_| (), Default::default()).unwrap_err();
        assert!(matches!(error, Error::Threads { given, .. } if given == threads), "{error}");
    }
}
