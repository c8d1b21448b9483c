//! Runs with a host that follows the protocol.

use crate::reference::{alone, prepared};
use crate::support::{
    Device, Host, PATIENCE, SAMPLE_BYTES, Spool, StreamEvent, jpeg, sequential, take, talk,
};
use meetpoint_device::probe;
use meetpoint_format::wire::host_message::Message;
use meetpoint_format::wire::{
    LoadPart, PROTOCOL_VERSION, Release, Revoke, SpoolKind, StartEpoch, Stop, Work,
};
use std::time::{Duration, Instant};

const BATCH: u64 = 5 * SAMPLE_BYTES;

#[test]
fn a_published_batch_is_what_the_host_would_have_prepared() {
    let device = Device::start(|_| ());
    for kind in [SpoolKind::Memory, SpoolKind::File] {
        let spool = Spool::new(kind, 4, BATCH);
        talk(async {
            let mut host = Host::connect(device.socket()).await;
            let reply = host.load(&device, &spool, |_| ()).await.unwrap();
            assert_eq!((reply.samples, reply.batches), (20, 4));
            let mut link = host.run().await.unwrap();
            link.grant(2, 9, 3, 4).await;
            for batch in [3, 2, 1, 0] {
                let published = link.published().await;
                assert_eq!((published.batch, published.epoch, published.generation), (batch, 2, 9));
                assert!(published.busy_ns > 0 && published.started_ns < published.published_ns);
                assert!(take(&spool, &published, 5) == prepared(&device, &alone(), 2, batch));
            }
            let meters = link.meters_at(4).await;
            assert_eq!(meters.spool_bytes_written, 4 * (4096 + BATCH));
            let images: u64 = (0..20).map(|index| jpeg(index, 64).len() as u64).sum();
            assert_eq!(meters.dataset_bytes_read, images);
            assert!(meters.cpu_ns > 0 && meters.busy_ns > 0 && meters.memory_bytes_max > 0);
            assert_eq!((meters.cpu_ratio_achieved, meters.latency_ns_achieved), (0.0, 0));
            assert_eq!(meters.core_use, None, "it is not slowed down");
        });
    }
    assert_eq!(device.stop().batches, 8);
}

#[test]
fn no_more_is_published_than_there_are_slots_and_a_release_makes_room() {
    let device = Device::start(|_| ());
    let spool = Spool::new(SpoolKind::Memory, 2, BATCH);
    talk(async {
        let mut host = Host::connect(device.socket()).await;
        host.load(&device, &spool, |_| ()).await.unwrap();
        let mut link = host.run().await.unwrap();
        link.grant(0, 1, 3, 4).await;
        let first = link.published().await;
        let second = link.published().await;
        assert_ne!(first.slot, second.slot);
        // The worker waits for a slot and sends heartbeats, with all samples done.
        while !link.progress.iter().any(|report| (report.batch, report.samples_done) == (1, 5)) {
            let heard = tokio::time::timeout(Duration::from_millis(50), link.next()).await;
            assert!(heard.is_err(), "{heard:?} without a free slot");
        }
        link.say(Message::Release(Release { slot: second.slot })).await;
        let third = link.published().await;
        assert_eq!((third.batch, third.slot), (1, second.slot));
        // The first slot did not change.
        take(&spool, &first, 5);
    });
}

#[test]
fn a_revoke_drops_the_queue_and_work_goes_on_under_the_new_generation() {
    let device = Device::start(|_| ());
    let spool = Spool::new(SpoolKind::Memory, 1, BATCH);
    talk(async {
        let mut host = Host::connect(device.socket()).await;
        host.load(&device, &spool, |_| ()).await.unwrap();
        let mut link = host.run().await.unwrap();
        link.grant(0, 1, 3, 4).await;
        let first = link.published().await;
        // The next batch is in progress or waits for the only slot; both are void now.
        link.say(Message::Revoke(Revoke { epoch: 0, generation: 2 })).await;
        let stale = Work { epoch: 0, generation: 1, first: 2, count: 1, descending: true };
        link.say(Message::Work(stale)).await;
        let work = Work { epoch: 0, generation: 2, first: 0, count: 2, descending: false };
        link.say(Message::Work(work)).await;
        link.say(Message::Release(Release { slot: first.slot })).await;
        let second = link.published().await;
        assert_eq!((second.batch, second.generation), (0, 2));
        take(&spool, &second, 5);
        link.say(Message::Release(Release { slot: second.slot })).await;
        assert_eq!(link.published().await.batch, 1);
    });
}

#[test]
fn an_epoch_may_begin_while_slots_of_the_one_before_are_in_use() {
    let device = Device::start(|_| ());
    let spool = Spool::new(SpoolKind::Memory, 3, BATCH);
    talk(async {
        let mut host = Host::connect(device.socket()).await;
        host.load(&device, &spool, |_| ()).await.unwrap();
        let mut link = host.run().await.unwrap();
        link.grant(0, 1, 3, 2).await;
        let early = [link.published().await, link.published().await];
        link.grant(1, 2, 3, 3).await;
        let late = link.published().await;
        assert_eq!((late.epoch, late.batch, late.generation), (1, 3, 2));
        // Messages about the previous epoch have no effect.
        link.say(Message::Revoke(Revoke { epoch: 0, generation: 7 })).await;
        let stale = Work { epoch: 0, generation: 7, first: 0, count: 1, descending: false };
        link.say(Message::Work(stale)).await;
        // All slots are in use: those of the previous epoch are intact, and are released one at a
        // time.
        for (leased, wanted) in early.iter().zip([2, 1]) {
            let payload = take(&spool, leased, 5);
            assert!(payload == prepared(&device, &alone(), 0, leased.batch));
            link.say(Message::Release(Release { slot: leased.slot })).await;
            let next = link.published().await;
            assert_eq!((next.epoch, next.batch, next.slot), (1, wanted, leased.slot));
            assert!(take(&spool, &next, 5) == prepared(&device, &alone(), 1, wanted));
        }
        let start = StartEpoch { epoch: 2, generation: 3 };
        link.say(Message::StartEpoch(start)).await;
    });
}

#[test]
fn the_last_short_batch_has_its_own_shape_and_a_stop_brings_the_meters() {
    let device = Device::start(|_| ());
    let spool = Spool::new(SpoolKind::Memory, 1, 8 * SAMPLE_BYTES);
    talk(async {
        let mut host = Host::connect(device.socket()).await;
        let reply = host.load(&device, &spool, |request| request.batch_size = 8).await.unwrap();
        assert_eq!(reply.batches, 3);
        let mut link = host.run().await.unwrap();
        link.grant(0, 1, 2, 1).await;
        let published = link.published().await;
        assert_eq!(take(&spool, &published, 4).len() as u64, 4 * SAMPLE_BYTES);
        link.meters_at(1).await;
        link.meters = None;
        link.say(Message::Stop(Stop {})).await;
        assert_eq!(link.meters_at(1).await.batches, 1);
    });
}

#[test]
fn a_damaged_sample_fails_its_batch_by_name_and_the_others_go_on() {
    let mut images: Vec<_> = (0..20).map(|index| jpeg(index, 64)).collect();
    images[7] = b"no picture at all".to_vec();
    let device = Device::start_with(images, |_| ());
    let spool = Spool::new(SpoolKind::Memory, 4, BATCH);
    talk(async {
        let mut host = Host::connect(device.socket()).await;
        host.load(&device, &spool, |request| request.sampler = sequential()).await.unwrap();
        let mut link = host.run().await.unwrap();
        link.grant(0, 1, 2, 3).await;
        assert_eq!(link.published().await.batch, 2);
        let StreamEvent::Failed(failed) = link.next().await else {
            panic!("batch 1 has a bad sample")
        };
        assert_eq!((failed.batch, failed.generation), (1, 1));
        assert!(failed.reason.contains("7.jpg") && failed.is_damage, "{}", failed.reason);
        assert_eq!(link.published().await.batch, 0);
    });
}

/// Whether this process still has the spool mapped.
fn is_mapped(spool: &Spool) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.contains(&format!("spool-of-test-{} ", spool.token))
}

async fn until_unmapped(spool: &Spool) {
    let start = Instant::now();
    while is_mapped(spool) {
        assert!(start.elapsed() < PATIENCE, "the spool is still mapped");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn the_end_of_the_stream_drops_the_job_and_another_host_can_have_the_device() {
    let device = Device::start(|_| ());
    talk(async {
        let mut host = Host::connect(device.socket()).await;
        let spool = Spool::new(SpoolKind::Memory, 1, BATCH);
        host.load(&device, &spool, |_| ()).await.unwrap();
        let mut link = host.run().await.unwrap();
        link.grant(0, 1, 3, 4).await;
        link.published().await;
        assert!(is_mapped(&spool));
        drop(link.say);
        while link.receiver.message().await.unwrap().is_some() {}
        until_unmapped(&spool).await;
        let mut other = Host::connect(device.socket()).await;
        let spool = Spool::new(SpoolKind::Memory, 1, BATCH);
        other.load(&device, &spool, |_| ()).await.unwrap();
    });
}

#[test]
fn a_connection_that_ends_in_mid_batch_drops_the_job() {
    let device = Device::start(|options| options.faults = vec!["stall@1".parse().unwrap()]);
    let spool = Spool::new(SpoolKind::Memory, 1, BATCH);
    talk(async {
        let mut host = Host::connect(device.socket()).await;
        host.load(&device, &spool, |_| ()).await.unwrap();
        let mut link = host.run().await.unwrap();
        link.grant(0, 1, 3, 4).await;
        while link.progress.is_empty() {
            let _ = tokio::time::timeout(Duration::from_millis(20), link.next()).await;
        }
    });
    // The runtime that owned the connection has been dropped.
    talk(async {
        until_unmapped(&spool).await;
        let mut other = Host::connect(device.socket()).await;
        let spool = Spool::new(SpoolKind::Memory, 1, BATCH);
        other.load(&device, &spool, |_| ()).await.unwrap();
    });
    assert_eq!(device.stop().jobs, 2);
}

#[test]
fn a_second_load_replaces_the_first_even_while_it_runs() {
    let device = Device::start(|_| ());
    let spool = Spool::new(SpoolKind::Memory, 1, BATCH);
    talk(async {
        let mut host = Host::connect(device.socket()).await;
        host.load(&device, &spool, |_| ()).await.unwrap();
        let mut first = host.run().await.unwrap();
        first.grant(0, 1, 3, 4).await;
        first.published().await;
        // The same spool is loaded again without another offer.
        let mut request = crate::support::load_request(&device, &spool);
        request.seed = 8;
        host.client.load(tokio_stream::once(LoadPart::from(request))).await.unwrap();
        assert!(matches!(first.next().await, StreamEvent::Ended(None)));
        let mut second = host.run().await.unwrap();
        second.grant(0, 1, 3, 1).await;
        let published = second.published().await;
        let (header, _) = spool.read(published.slot);
        assert_eq!(meetpoint_format::slot::SlotHeader::decode(&header).unwrap().seed, 8);
    });
}

#[test]
fn a_device_for_one_host_ends_with_it_and_leaves_nothing() {
    let device = Device::start(|options| options.once = true);
    let (socket, spool) = (device.socket().to_path_buf(), Spool::new(SpoolKind::Memory, 1, BATCH));
    talk(async {
        // A probe does not count as a host.
        let mut host = Host::connect(device.socket()).await;
        host.load(&device, &spool, |_| ()).await.unwrap();
        let mut link = host.run().await.unwrap();
        link.grant(0, 1, 3, 4).await;
        link.published().await;
    });
    let summary = device.end();
    assert_eq!((summary.jobs, summary.batches), (1, 1));
    assert!(!socket.exists() && !is_mapped(&spool));
}

#[test]
fn a_device_asked_to_stop_does_so_in_the_middle_of_a_job() {
    let device = Device::start(|options| options.faults = vec!["stall@1".parse().unwrap()]);
    let (socket, spool) = (device.socket().to_path_buf(), Spool::new(SpoolKind::Memory, 1, BATCH));
    talk(async {
        let mut host = Host::connect(device.socket()).await;
        host.load(&device, &spool, |_| ()).await.unwrap();
        let mut link = host.run().await.unwrap();
        link.grant(0, 1, 3, 4).await;
        assert_eq!(device.stop().batches, 0);
        assert!(matches!(link.next().await, StreamEvent::Ended(_)));
    });
    assert!(!socket.exists() && !is_mapped(&spool));
}

#[test]
fn a_device_that_nobody_comes_to_ends_after_its_idle_time() {
    let device = Device::start(|options| options.idle_timeout = Some(Duration::from_millis(50)));
    assert_eq!(device.end().jobs, 0);
}

#[test]
fn a_probe_describes_the_device() {
    let device = Device::start(|options| {
        options.emulation.targets.cpu_ratio = Some(0.5);
        options.emulation.targets.latency_ns = Some(100_000);
    });
    let info = probe(device.socket()).unwrap();
    assert_eq!(info, device.ready.device);
    assert_eq!((info.protocol_version, info.process_id), (PROTOCOL_VERSION, std::process::id()));
    let emulation = info.emulation.unwrap();
    assert_eq!((emulation.cpu_ratio, emulation.latency_ns), (Some(0.5), Some(100_000)));
    assert_eq!(emulation.read_bytes_per_second, None);
    let plain = Device::start(|_| ());
    assert_eq!(probe(plain.socket()).unwrap().emulation, None);
}

#[test]
fn a_device_says_that_it_is_healthy() {
    use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
    let device = Device::start(|_| ());
    talk(async {
        let mut stream = Some(tokio::net::UnixStream::connect(device.socket()).await.unwrap());
        let connector = tower::service_fn(move |_| {
            let stream = stream.take().map(hyper_util::rt::TokioIo::new);
            async move { stream.ok_or_else(|| std::io::Error::other("connected once already")) }
        });
        let endpoint = tonic::transport::Endpoint::from_static("http://device.invalid");
        let channel = endpoint.connect_with_connector(connector).await.unwrap();
        let service = "meetpoint.device.v1.Device".to_owned();
        let answer = HealthClient::new(channel).check(HealthCheckRequest { service }).await;
        let serving = tonic_health::pb::health_check_response::ServingStatus::Serving;
        assert_eq!(answer.unwrap().into_inner().status(), serving);
    });
}
