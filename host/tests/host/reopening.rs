//! Lost devices are reopened in the background: no epoch waits for a device that does not answer,
//! and a device that answers joins the running epoch.

use crate::support::device::{Behaviour, FakeDevice};
use crate::support::relay::{Relay, Relaying};
use crate::support::{BatchCopy, config, consume, dataset, events_of, sorted};
use meetpoint_host::stats::{EventKind, Phase};
use meetpoint_host::{Epoch, Loader, LoaderConfig};
use meetpoint_scheduler::{
    AnyStrategy, Auto, DeviceOnly, Goal, Mte, Order, Source, Split, Tail, Windowed, Wrr,
};
use std::path::Path;
use std::time::{Duration, Instant};

/// The configuration of a loader whose device is at a relay.
fn without_device(dataset: &Path, relay: &Relay, strategy: AnyStrategy) -> LoaderConfig {
    let mut config = config(dataset);
    config.strategy = strategy;
    config.devices = vec![relay.source()];
    config
}

fn network_device(dataset: &Path) -> FakeDevice {
    let network = Some(dataset.to_path_buf());
    FakeDevice::start(Behaviour { network, ..Behaviour::default() })
}

fn is_reopened(event: &EventKind) -> bool {
    matches!(event, EventKind::DeviceReopened { .. })
}

fn await_reopened(epoch: &Epoch<'_>) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !epoch.events_from(0).iter().any(|event| is_reopened(&event.kind)) {
        assert!(Instant::now() < deadline, "{:?}", epoch.events_from(0));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_device_that_answers_while_an_epoch_is_running_joins_it() {
    let folder = dataset(60);
    let (expected, _) =
        consume(Loader::open(config(folder.path())).unwrap().start_epoch(0).unwrap());
    let split = Mte { split: Split::EqualFinish, tail: Tail::Descending };
    let auto = Auto { goal: Goal::Throughput, order: Order::Any };
    for (strategy, gets_work) in [
        (AnyStrategy::DeviceOnly(DeviceOnly), true),
        (AnyStrategy::Wrr(Wrr), true),
        (AnyStrategy::Windowed(Windowed { window: 4 }), true),
        // Its split was fixed when the epoch began without devices.
        (AnyStrategy::Mte(split), false),
        (AnyStrategy::Auto(auto), false),
    ] {
        let (device, relay) = (network_device(folder.path()), Relay::start(Relaying::Refuse));
        let mut loader = Loader::open(without_device(folder.path(), &relay, strategy)).unwrap();
        relay.set(Relaying::Hold);
        let mut epoch = loader.start_epoch(0).unwrap();
        relay.await_held();
        let mut seen = Vec::new();
        for _ in 0..5 {
            let batch = epoch.next_batch().unwrap().unwrap();
            assert_eq!(batch.source(), Source::Host, "{strategy:?}");
            seen.push(BatchCopy::from(&batch));
        }
        assert!(!epoch.events_from(0).iter().any(|event| is_reopened(&event.kind)));
        relay.set(Relaying::To(device.port()));
        await_reopened(&epoch);
        if gets_work {
            device.await_batches(1);
        }
        let (rest, stats) = consume(epoch);
        seen.extend(rest);
        assert_eq!(sorted(seen), sorted(expected.clone()), "{strategy:?}");
        let events = events_of(&stats);
        assert!(
            matches!(events[0], EventKind::DeviceLost { phase: Phase::Start, .. }),
            "{strategy:?}: {events:?}"
        );
        assert_eq!(events.iter().filter(|it| is_reopened(it)).count(), 1, "{events:?}");
        // Under the others, the host may have prepared the rest before the device's first batch.
        let is_certain = matches!(strategy, AnyStrategy::DeviceOnly(_));
        assert!(stats.schedule.device_batches > 0 || !is_certain, "{strategy:?}: {events:?}");
        assert_eq!(loader.slots_in_use(), [Some(0)], "{strategy:?}");
        let (_, stats) = consume(loader.start_epoch(1).unwrap());
        assert_eq!(events_of(&stats), [], "{strategy:?}");
    }
}

#[test]
fn epochs_do_not_wait_for_a_device_that_does_not_answer_and_it_is_tried_once_at_a_time() {
    let folder = dataset(60);
    let relay = Relay::start(Relaying::Refuse);
    let strategy = AnyStrategy::DeviceOnly(DeviceOnly);
    let mut loader = Loader::open(without_device(folder.path(), &relay, strategy)).unwrap();
    relay.set(Relaying::Hold);
    for number in 0..5 {
        let mut epoch = loader.start_epoch(number).unwrap();
        if number == 0 {
            relay.await_held();
        }
        while let Some(batch) = epoch.next_batch().unwrap() {
            assert_eq!(batch.source(), Source::Host);
        }
        let stats = epoch.finish();
        assert!(stats.schedule.device_lost && stats.is_complete);
        let events = events_of(&stats);
        let failed = |it: &&EventKind| matches!(it, EventKind::DeviceNotReopened { .. });
        assert!(events.iter().filter(failed).count() <= 1, "{events:?}");
    }
    assert_eq!(relay.held_most(), 1);
    let device = network_device(folder.path());
    relay.set(Relaying::To(device.port()));
    loader.reopen_devices().unwrap();
    let (_, stats) = consume(loader.start_epoch(5).unwrap());
    assert!(events_of(&stats).iter().any(is_reopened), "{:?}", stats.events);
    assert_eq!(stats.schedule.device_batches, 15);
}
