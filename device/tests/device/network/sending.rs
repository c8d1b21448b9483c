//! The batches that a device sends.

use super::{BATCH, load, network, open, stream_request};
use crate::support::{Device, Host, Link, Spool, StreamEvent, take, talk};
use meetpoint_format::wire::host_message::Message;
use meetpoint_format::wire::{Release, SLOT_DATA_BYTES_MAX, SpoolKind};
use std::os::unix::fs::FileExt;

/// Writes the sent pieces of a slot to their positions in a shared slot.
fn receive(link: &mut Link, spool: &Spool) {
    for piece in link.data.drain(..) {
        assert!(piece.data.len() <= SLOT_DATA_BYTES_MAX);
        let offset = u64::from(piece.slot) * spool.slot_bytes + piece.offset;
        assert!(piece.offset + piece.data.len() as u64 <= spool.slot_bytes);
        spool.file.write_all_at(&piece.data, offset).unwrap();
    }
}

#[test]
fn batches_are_sent_with_the_bytes_that_a_shared_spool_holds() {
    let shared = Device::start(|_| ());
    let of_shared: Vec<Vec<u8>> = talk(async {
        let mut host = Host::connect(shared.socket()).await;
        let spool = Spool::new(SpoolKind::Memory, 4, BATCH);
        host.load(&shared, &spool, |_| ()).await.unwrap();
        let mut link = host.run().await.unwrap();
        link.grant(3, 1, 3, 4).await;
        let mut payloads = Vec::new();
        for _ in 0..4 {
            let published = link.published().await;
            payloads.push(take(&spool, &published, 5));
        }
        payloads
    });
    let device = network(|_| ());
    talk(async {
        let mut host = open(&device).await;
        // Two slots are enough for any number of batches.
        let spool = Spool::new(SpoolKind::Memory, 2, BATCH);
        let reply = load(&mut host, stream_request(&device, &spool)).await.unwrap();
        assert_eq!((reply.samples, reply.batches), (20, 4));
        let mut link = host.run().await.unwrap();
        link.grant(3, 1, 3, 4).await;
        for expected in &of_shared {
            let published = link.published().await;
            receive(&mut link, &spool);
            assert!(take(&spool, &published, 5) == *expected, "batch {}", published.batch);
            link.say(Message::Release(Release { slot: published.slot })).await;
        }
    });
    assert_eq!(device.stop().batches, 4);
}

#[test]
fn a_host_that_reads_nothing_delays_no_other_and_loses_only_its_own_work() {
    let device = network(|options| options.hosts = 2);
    talk(async {
        let mut slow = open(&device).await;
        // More than all buffers between device and host hold.
        let spool = Spool::new(SpoolKind::Memory, 64, 64 << 20);
        load(&mut slow, stream_request(&device, &spool)).await.unwrap();
        let stuck = slow.run().await.unwrap();
        for first in 0..4 {
            stuck.grant(first, first + 1, 3, 4).await;
        }
        let mut other = open(&device).await;
        let spool = Spool::new(SpoolKind::Memory, 4, BATCH);
        load(&mut other, stream_request(&device, &spool)).await.unwrap();
        let mut link = other.run().await.unwrap();
        link.grant(0, 1, 3, 4).await;
        for _ in 0..4 {
            link.published().await;
        }
        drop(stuck);
    });
    device.stop();
}

#[test]
fn a_batch_that_is_revoked_while_it_is_sent_is_not_published() {
    let device = network(|_| ());
    talk(async {
        let mut host = open(&device).await;
        let spool = Spool::new(SpoolKind::Memory, 1, BATCH);
        load(&mut host, stream_request(&device, &spool)).await.unwrap();
        let mut link = host.run().await.unwrap();
        link.grant(0, 1, 3, 4).await;
        let first = link.published().await;
        receive(&mut link, &spool);
        take(&spool, &first, 5);
        // The next batch waits for the only slot.
        let revoke = meetpoint_format::wire::Revoke { epoch: 0, generation: 2 };
        link.say(Message::Revoke(revoke)).await;
        link.say(Message::Release(Release { slot: first.slot })).await;
        let work = meetpoint_format::wire::Work {
            epoch: 0,
            generation: 2,
            first: 0,
            count: 1,
            descending: true,
        };
        link.say(Message::Work(work)).await;
        let second = link.published().await;
        assert_eq!((second.batch, second.generation), (0, 2));
        receive(&mut link, &spool);
        take(&spool, &second, 5);
    });
}

#[test]
fn a_job_that_is_wrong_in_the_middle_ends_alone() {
    let device = network(|options| options.hosts = 2);
    talk(async {
        let spool = Spool::new(SpoolKind::Memory, 2, BATCH);
        let mut host = open(&device).await;
        load(&mut host, stream_request(&device, &spool)).await.unwrap();
        let mut link = host.run().await.unwrap();
        link.say(Message::Release(Release { slot: 77 })).await;
        assert!(matches!(link.next().await, StreamEvent::Ended(Some(_))));
        let mut again = open(&device).await;
        load(&mut again, stream_request(&device, &spool)).await.unwrap();
        let mut link = again.run().await.unwrap();
        link.grant(0, 1, 3, 2).await;
        link.published().await;
    });
}
