//! Faults on demand, as a host observes them. `die` needs a real process and is tested with the
//! program.

use crate::support::{
    Device, Host, Link, SAMPLE_BYTES, Spool, StreamEvent, columns, expectation, take, talk,
};
use meetpoint_format::slot::{SlotError, SlotHeader};
use meetpoint_format::wire::host_message::Message;
use meetpoint_format::wire::{Published, Revoke, SpoolKind, Work};

const BATCH: u64 = 5 * SAMPLE_BYTES;

fn faulty(faults: &[&str]) -> Device {
    Device::start(|options| {
        options.faults = faults.iter().map(|text| text.parse().unwrap()).collect();
    })
}

/// A run of batches 3, 2, 1, 0 of epoch 0 under generation 1.
async fn run(device: &Device, spool: &Spool) -> (Host, Link) {
    let mut host = Host::connect(device.socket()).await;
    host.load(device, spool, |_| ()).await.unwrap();
    let link = host.run().await.unwrap();
    link.grant(0, 1, 3, 4).await;
    (host, link)
}

/// The header is as expected, but the payload does not match its checksum.
fn assert_broken_payload(spool: &Spool, published: &Published) {
    let (header, payload) = spool.read(published.slot);
    let (header, columns) = (SlotHeader::decode(&header).unwrap(), columns());
    let layout = header.check(&expectation(spool, published, 5, &columns)).unwrap();
    let checked = header.check_payload(&columns, &layout, &payload);
    assert!(matches!(checked, Err(SlotError::ColumnChecksum { .. })), "{checked:?}");
}

#[test]
fn a_corrupt_and_a_torn_publish_look_whole_but_for_the_checksum() {
    let device = faulty(&["corrupt@2", "tear@3"]);
    for kind in [SpoolKind::Memory, SpoolKind::File] {
        let spool = Spool::new(kind, 4, BATCH);
        talk(async {
            let (_host, mut link) = run(&device, &spool).await;
            take(&spool, &link.published().await, 5);
            assert_broken_payload(&spool, &link.published().await);
            assert_broken_payload(&spool, &link.published().await);
            take(&spool, &link.published().await, 5);
            drop(link.say);
            while link.receiver.message().await.unwrap().is_some() {}
        });
    }
}

#[test]
fn a_full_spool_fails_every_batch_from_its_first_on() {
    let device = faulty(&["enospc@2"]);
    let spool = Spool::new(SpoolKind::File, 4, BATCH);
    talk(async {
        let (_host, mut link) = run(&device, &spool).await;
        assert_eq!(link.published().await.batch, 3);
        for batch in [2, 1, 0] {
            let StreamEvent::Failed(failed) = link.next().await else {
                panic!("the spool is full")
            };
            assert_eq!(failed.batch, batch);
            assert!(failed.reason.contains("full"), "{}", failed.reason);
        }
    });
}

#[test]
fn a_dropped_link_ends_the_stream_and_the_job() {
    let device = faulty(&["drop-link@2"]);
    let spool = Spool::new(SpoolKind::Memory, 4, BATCH);
    talk(async {
        let (_host, mut link) = run(&device, &spool).await;
        // Messages sent just before may be lost with the connection.
        loop {
            match link.next().await {
                StreamEvent::Published(published) => assert_eq!(published.batch, 3),
                StreamEvent::Ended(status) => break assert!(status.is_some()),
                other => panic!("{other:?}"),
            }
        }
        // The device still runs and accepts the next host.
        let spool = Spool::new(SpoolKind::Memory, 4, BATCH);
        let mut other = Host::connect(device.socket()).await;
        other.load(&device, &spool, |load| load.seed += 1).await.unwrap();
    });
}

#[test]
fn a_stalled_worker_shows_no_progress_and_ignores_a_revoke_until_it_wakes() {
    let device = faulty(&["stall@2:1500ms"]);
    let spool = Spool::new(SpoolKind::Memory, 4, BATCH);
    talk(async {
        let (_host, mut link) = run(&device, &spool).await;
        assert_eq!(link.published().await.batch, 3);
        link.say(Message::Revoke(Revoke { epoch: 0, generation: 2 })).await;
        let work = Work { epoch: 0, generation: 2, first: 0, count: 1, descending: true };
        link.say(Message::Work(work)).await;
        let published = link.published().await;
        assert_eq!((published.batch, published.generation), (0, 2));
        // A working worker would have sent about fifteen progress messages.
        let reports = link.progress.iter().filter(|report| report.batch == 2).count();
        assert!(reports <= 5, "{:?}", link.progress);
    });
}

#[test]
fn a_slow_device_is_slower_by_its_factor_and_sends_heartbeats() {
    let device = faulty(&["slow@3:x1000"]);
    let spool = Spool::new(SpoolKind::Memory, 4, BATCH);
    talk(async {
        let (_host, mut link) = run(&device, &spool).await;
        assert_eq!(link.published().await.batch, 3);
        assert_eq!(link.published().await.batch, 2);
        let before = link.meters_at(2).await.cpu_ns;
        let slow = link.published().await;
        assert_eq!(slow.batch, 1);
        let cpu_ns = link.meters_at(3).await.cpu_ns - before;
        assert!(slow.busy_ns >= 100 * cpu_ns, "{} ns for {cpu_ns} ns of work", slow.busy_ns);
        let reports = link.progress.iter().filter(|report| report.batch == 1).count();
        assert!(reports >= 1 || slow.busy_ns < 1_000_000_000, "{:?}", link.progress);
    });
}
