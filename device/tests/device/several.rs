//! A device that works for several hosts, and one of several devices.

use crate::reference::{alone, of_rank, prepared, spread};
use crate::support::{
    Device, Host, SAMPLE_BYTES, Session, Spool, StreamEvent, columns, expectation, jpeg, session,
    take, talk, write_parts,
};
use meetpoint_device::{ServeOptions, probe};
use meetpoint_diagnose::{Change, Remedy, Setting};
use meetpoint_format::slot::SlotHeader;
use meetpoint_format::wire::host_message::Message;
use meetpoint_format::wire::{LoadRequest, Release, SpoolKind};
use std::time::Duration;
use tonic::Code;

const BATCH: u64 = 5 * SAMPLE_BYTES;

/// A device that accepts two hosts.
fn for_two(change: impl FnOnce(&mut ServeOptions)) -> Device {
    Device::start(|options| {
        options.hosts = 2;
        change(options);
    })
}

#[test]
fn two_ranks_get_each_their_own_batches_from_one_device() {
    let device = for_two(|_| ());
    talk(async {
        let mut ranks = Vec::new();
        for rank in [0, 1] {
            let of_rank = |load: &mut LoadRequest| (load.rank, load.ranks) = (rank, 2);
            ranks.push(session(&device, 2, of_rank).await);
        }
        let info = probe_of(&device).await;
        assert_eq!(info.hosts, [std::process::id(); 2]);
        assert_eq!((info.hosts_max, info.works_for), (2, Some(std::process::id())));
        for Session { link, .. } in &ranks {
            link.grant(3, 1, 1, 2).await;
        }
        for (rank, Session { spool, link, .. }) in (0..).zip(&mut ranks) {
            for batch in [1, 0] {
                let published = link.published().await;
                assert_eq!((published.epoch, published.batch), (3, batch));
                let payload = take(spool, &published, 5);
                assert!(payload == prepared(&device, &of_rank(rank, 2), 3, batch));
                assert!(payload == prepared(&device, &alone(), 3, 2 * batch + rank));
            }
            let meters = link.meters_at(2).await;
            assert_eq!((meters.batches, meters.spool_bytes_written), (2, 2 * (4096 + BATCH)));
        }
    });
    let summary = device.stop();
    assert_eq!((summary.jobs, summary.batches), (2, 4));
}

/// A probe blocks, and the session must continue meanwhile.
async fn probe_of(device: &Device) -> meetpoint_link::DeviceInfo {
    let socket = device.socket().to_path_buf();
    tokio::task::spawn_blocking(move || probe(&socket)).await.unwrap().unwrap()
}

#[test]
fn a_host_that_releases_nothing_does_not_hold_up_the_other() {
    let device = for_two(|_| ());
    talk(async {
        let mut slow = session(&device, 1, |_| ()).await;
        let mut other = session(&device, 4, |_| ()).await;
        slow.link.grant(0, 1, 3, 4).await;
        let kept = slow.link.published().await;
        // Its next batch is prepared and waits for the slot, with all samples done.
        while !slow.link.progress.iter().any(|report| (report.batch, report.samples_done) == (2, 5))
        {
            let heard = tokio::time::timeout(Duration::from_millis(50), slow.link.next()).await;
            assert!(heard.is_err(), "{heard:?} without a free slot");
        }
        other.link.grant(0, 1, 3, 4).await;
        for batch in [3, 2, 1, 0] {
            let published = other.link.published().await;
            assert_eq!(published.batch, batch);
            take(&other.spool, &published, 5);
        }
        // The batch that waited was not lost, and neither was the slot that is in use.
        take(&slow.spool, &kept, 5);
        slow.link.say(Message::Release(Release { slot: kept.slot })).await;
        let next = slow.link.published().await;
        assert_eq!((next.batch, next.slot), (2, kept.slot));
        assert!(take(&slow.spool, &next, 5) == prepared(&device, &alone(), 0, 2));
    });
}

#[test]
fn a_long_queue_of_one_host_does_not_starve_the_other() {
    let images = (0..200).map(|index| jpeg(index, 64)).collect();
    let device = Device::start_with(images, |options| {
        options.hosts = 2;
        options.faults = vec!["stall@1:3s".parse().unwrap()];
    });
    talk(async {
        let mut busy = session(&device, 40, |_| ()).await;
        let mut other = session(&device, 2, |_| ()).await;
        busy.link.grant(0, 1, 39, 40).await;
        while busy.link.progress.is_empty() {
            let _ = tokio::time::timeout(Duration::from_millis(20), busy.link.next()).await;
        }
        other.link.grant(0, 1, 39, 2).await;
        let mut last_of = [0; 2];
        for (last, (link, batches)) in
            last_of.iter_mut().zip([(&mut busy.link, 40), (&mut other.link, 2)])
        {
            for _ in 0..batches {
                *last = link.published().await.published_ns;
            }
        }
        assert!(last_of[1] < last_of[0], "{last_of:?}");
        // The time in the queue is reported, separate from the batches' time.
        assert!(other.link.meters_at(2).await.turn_wait_ns > 0);
    });
}

#[test]
fn a_host_that_goes_in_mid_batch_leaves_the_other_its_work() {
    let device = for_two(|options| options.faults = vec!["stall@2".parse().unwrap()]);
    talk(async {
        let mut stays = session(&device, 4, |_| ()).await;
        stays.link.grant(0, 1, 3, 1).await;
        stays.link.published().await;
        let mut goes = session(&device, 4, |_| ()).await;
        goes.link.grant(0, 1, 3, 4).await;
        while goes.link.progress.is_empty() {
            let _ = tokio::time::timeout(Duration::from_millis(20), goes.link.next()).await;
        }
        // The device is stopped in a batch of the host that disconnects.
        stays.link.grant(1, 2, 2, 3).await;
        drop(goes);
        for batch in [2, 1, 0] {
            let published = stays.link.published().await;
            assert_eq!((published.epoch, published.batch), (1, batch));
        }
        // The device accepts another host.
        let mut comes = session(&device, 4, |_| ()).await;
        comes.link.grant(0, 1, 0, 1).await;
        assert_eq!(comes.link.published().await.batch, 0);
    });
}

#[test]
fn one_host_too_many_learns_whom_the_device_works_for() {
    let device = for_two(|_| ());
    talk(async {
        let first = session(&device, 1, |_| ()).await;
        let _second = session(&device, 1, |_| ()).await;
        let mut third = Host::connect(device.socket()).await;
        let spool = Spool::new(SpoolKind::Memory, 1, BATCH);
        let status = third.load(&device, &spool, |_| ()).await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted);
        let own = std::process::id();
        let expected = format!("serves 2 hosts (process id {own}, process id {own})");
        assert!(status.message().contains(&expected), "{status}");
        let remedy = meetpoint_link::refusal::remedy(&status).unwrap();
        let more = Remedy::set(Setting::DeviceHosts, Change::Raise).steps()[0].clone();
        assert!(remedy.steps().contains(&more), "{remedy:?}");
        drop(first);
        let gone = || async { probe_of(&device).await.hosts.len() == 1 };
        while !gone().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let spool = Spool::new(SpoolKind::Memory, 1, BATCH);
        third.load(&device, &spool, |_| ()).await.unwrap();
    });
}

#[test]
fn a_device_for_the_hosts_of_one_job_ends_with_the_last_of_them() {
    let device = for_two(|options| options.once = true);
    talk(async {
        let mut first = session(&device, 1, |_| ()).await;
        let second = session(&device, 1, |_| ()).await;
        drop(second);
        first.link.grant(0, 1, 3, 1).await;
        first.link.published().await;
    });
    assert_eq!(device.end().jobs, 2);
}

#[test]
fn faults_count_the_batches_of_all_hosts() {
    let device = for_two(|options| options.faults = vec!["corrupt@2".parse().unwrap()]);
    talk(async {
        let mut sessions = Vec::new();
        for _ in 0..2 {
            sessions.push(session(&device, 4, |_| ()).await);
        }
        for (number, Session { spool, link, .. }) in sessions.iter_mut().enumerate() {
            link.grant(0, 1, 3, 1).await;
            let published = link.published().await;
            let (header, payload) = spool.read(published.slot);
            let (header, columns) = (SlotHeader::decode(&header).unwrap(), columns());
            let layout = header.check(&expectation(spool, &published, 5, &columns)).unwrap();
            let checked = header.check_payload(&columns, &layout, &payload);
            assert_eq!(checked.is_err(), number == 1);
        }
    });
}

#[test]
fn an_invalid_number_of_hosts_is_refused_at_the_start() {
    for hosts in [0, 65] {
        let folder = tempfile::tempdir().unwrap();
        let roots = vec![folder.path().to_path_buf()];
        let options = ServeOptions { hosts, ..ServeOptions::new(folder.path().join("s"), roots) };
        let error = meetpoint_device::serve(options, |_| (), Default::default()).unwrap_err();
        assert!(error.to_string().contains(&format!("number of hosts is {hosts}")), "{error}");
    }
}

#[test]
fn a_device_prepares_the_batches_of_its_own_parts_and_no_others() {
    let device = Device::start(|_| ());
    let images = |part: u32| (0..5 + 5 * (part % 2)).map(|at| jpeg(10 * part + at, 64)).collect();
    // Parts of 5, 10 and 5 samples: two batches on each of two devices.
    write_parts(&device.dataset(), (0..3).map(images).collect());
    for (own, of_part) in [(0, vec![]), (1, vec![]), (0, vec![1, 0, 1])] {
        let batching = spread(&device, 2, &of_part);
        talk(async {
            let mut host = Host::connect(device.socket()).await;
            let spool = Spool::new(SpoolKind::Memory, 4, BATCH);
            let change = |load: &mut LoadRequest| {
                (load.device, load.devices) = (own, 2);
                load.part_holders.clone_from(&of_part);
            };
            let reply = host.load(&device, &spool, change).await.unwrap();
            assert_eq!((reply.batches, reply.batches_held), (4, 2));
            let mut link = host.run().await.unwrap();
            link.grant(2, 1, 3, 4).await;
            for batch in [3, 2, 1, 0] {
                let (holder, _) = batching.holder(batch);
                match link.next().await {
                    StreamEvent::Published(published) => {
                        assert_eq!((published.batch, u32::from(holder)), (batch, own));
                        let payload = take(&spool, &published, 5);
                        assert!(payload == prepared(&device, &batching, 2, batch));
                    }
                    StreamEvent::Failed(failed) => {
                        assert_eq!(failed.batch, batch);
                        assert_ne!(u32::from(holder), own);
                        let expected = format!("batch {batch} belongs to device {holder}");
                        assert!(failed.reason.contains(&expected), "{}", failed.reason);
                    }
                    other => panic!("{other:?}"),
                }
            }
        });
    }
}
