//! Devices that begin the next epoch early: the same batches, and none of one epoch in another.

use crate::support::device::{Behaviour, FakeDevice, Fault};
use crate::support::{BatchCopy, config, consume, dataset, sorted};
use meetpoint_host::stats::EpochStats;
use meetpoint_host::{DeviceSource, Epoch, Loader, LoaderConfig};
use meetpoint_scheduler::{AnyStrategy, Mte, Split, Tail};
use std::path::Path;
use std::time::Duration;

/// Of 15 batches the device prepares 5 in each epoch.
const SHARE: u32 = 5;

fn running_ahead(dataset: &Path, device: &FakeDevice) -> LoaderConfig {
    let mut config = config(dataset);
    config.strategy = AnyStrategy::Mte(Mte { split: Split::Fixed(SHARE), tail: Tail::Descending });
    config.devices = vec![DeviceSource::Connect { socket: device.socket() }];
    config.stall_timeout = Duration::from_secs(30);
    config.run_ahead = 4;
    config
}

fn of_host_alone(dataset: &Path, epochs: u32) -> Vec<Vec<BatchCopy>> {
    let mut loader = Loader::open(config(dataset)).unwrap();
    (0..epochs).map(|epoch| consume(loader.start_epoch(epoch).unwrap()).0).collect()
}

/// Consumes an epoch, and before its last step waits until the device has begun `begun` batches.
fn consume_once_ahead(
    mut epoch: Epoch<'_>,
    device: &FakeDevice,
    begun: u32,
) -> (Vec<BatchCopy>, EpochStats) {
    let mut seen = Vec::new();
    while let Some(batch) = epoch.next_batch().unwrap() {
        seen.push(BatchCopy::from(&batch));
        drop(batch);
        if seen.len() == 14 {
            device.await_batches(begun);
        }
    }
    (seen, epoch.finish())
}

#[test]
fn a_device_that_is_done_begins_the_next_epoch_and_no_epoch_after_the_last() {
    let folder = dataset(60);
    let expected = of_host_alone(folder.path(), 4);
    for workers in [0, 1] {
        let device = FakeDevice::start(Behaviour::default());
        let mut config = running_ahead(folder.path(), &device);
        config.workers = workers;
        let mut loader = Loader::open(config).unwrap();
        for (epoch, expected) in (0..).zip(&expected) {
            let running = loader.start_epoch(epoch).unwrap();
            let begun = SHARE * (epoch + 2).min(4);
            let (seen, stats) = consume_once_ahead(running, &device, begun);
            assert_eq!(&sorted(seen), expected, "{:?}", stats.events);
            assert_eq!(stats.schedule.device_batches, SHARE);
            assert_eq!(stats.devices[0].batches, u64::from(SHARE), "each epoch has its own");
            assert_eq!(stats.events, []);
            // The last was begun; how many messages the host has received depends on timing.
            let ahead = if epoch == 0 { 0..1 } else { 1..SHARE + 1 };
            assert!(ahead.contains(&stats.ahead_batches), "{}", stats.ahead_batches);
            let order = stats.records.iter().map(|record| record.consume_ns);
            assert!(order.is_sorted(), "times are those of the epoch");
        }
        device.await_batches(SHARE * 4);
    }
}

#[test]
fn an_epoch_out_of_order_voids_the_batches_prepared_ahead() {
    let folder = dataset(60);
    let expected = of_host_alone(folder.path(), 4);
    let device = FakeDevice::start(Behaviour::default());
    let mut loader = Loader::open(running_ahead(folder.path(), &device)).unwrap();
    let (seen, _) = consume_once_ahead(loader.start_epoch(0).unwrap(), &device, SHARE + 3);
    assert_eq!(sorted(seen), expected[0]);
    let (seen, stats) = consume(loader.start_epoch(3).unwrap());
    assert_eq!(sorted(seen), expected[3]);
    assert_eq!(stats.events, []);
    assert_eq!(stats.schedule.device_batches, SHARE);
}

#[test]
fn a_dropped_epoch_drops_the_batches_prepared_ahead() {
    let folder = dataset(60);
    let expected = of_host_alone(folder.path(), 2);
    let device = FakeDevice::start(Behaviour::default());
    let mut config = running_ahead(folder.path(), &device);
    // Few slots, so that a slot that was not released would be noticed.
    config.spool.quota_bytes = 12 * (8 << 10);
    let mut loader = Loader::open(config).unwrap();
    for _ in 0..5 {
        let mut epoch = loader.start_epoch(0).unwrap();
        for _ in 0..12 {
            epoch.next_batch().unwrap().unwrap();
        }
    }
    for (epoch, expected) in (0..).zip(&expected) {
        let (seen, stats) = consume(loader.start_epoch(epoch).unwrap());
        assert_eq!(&sorted(seen), expected);
        assert_eq!(stats.schedule.device_batches, SHARE, "{:?}", stats.events);
    }
}

#[test]
fn a_device_that_dies_ahead_is_opened_again_and_costs_no_batch() {
    let folder = dataset(60);
    let expected = of_host_alone(folder.path(), 3);
    let faults = vec![(SHARE + 2, Fault::Drop)];
    let device = FakeDevice::start(Behaviour { faults, ..Behaviour::default() });
    let mut loader = Loader::open(running_ahead(folder.path(), &device)).unwrap();
    let (seen, _) = consume_once_ahead(loader.start_epoch(0).unwrap(), &device, SHARE + 2);
    assert_eq!(sorted(seen), expected[0]);
    for (epoch, expected) in (1..).zip(&expected[1..]) {
        let (seen, stats) = consume(loader.start_epoch(epoch).unwrap());
        assert_eq!(&sorted(seen), expected, "{:?}", stats.events);
    }
}
