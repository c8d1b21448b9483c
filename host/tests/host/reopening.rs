//! Lost devices are reopened in the background: no epoch waits for a device that does not answer,
//! and a device that answers joins the running epoch.

use crate::support::device::{Behaviour, FakeDevice};
use crate::support::relay::{Relay, Relaying};
use crate::support::{BatchCopy, config, consume, dataset, events_of, sorted};
use meetpoint_host::stats::{EventKind, LossCause, Phase};
use meetpoint_host::{
    DeviceSource, Epoch, Error, Loader, LoaderConfig, RemoteAddress, RemoteDevice,
};
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

#[test]
fn a_device_that_moved_is_reached_at_the_address_that_its_file_has_now() {
    let folder = dataset(60);
    let mut alone = Loader::open(config(folder.path())).unwrap();
    let expected: Vec<Vec<BatchCopy>> =
        (0..5).map(|epoch| consume(alone.start_epoch(epoch).unwrap()).0).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    let write = |text: &str| std::fs::write(file.path(), text).unwrap();
    let write_port = |port: u16| write(&format!("tcp://127.0.0.1:{port}\n"));
    let mut config = config(folder.path());
    config.strategy = AnyStrategy::DeviceOnly(DeviceOnly);
    let address = RemoteAddress::File(file.path().to_path_buf());
    config.devices = vec![DeviceSource::Remote(Box::new(RemoteDevice::new(address)))];
    let error = Loader::open(config.clone()).unwrap_err();
    assert!(matches!(error, Error::AddressFile(_)), "an empty file at the start: {error}");

    let [first, second] = [0, 1].map(|_| network_device(folder.path()));
    write_port(first.port());
    let mut loader = Loader::open(config).unwrap();
    let (seen, stats) = consume(loader.start_epoch(0).unwrap());
    assert_eq!((sorted(seen), stats.schedule.device_batches), (expected[0].clone(), 15));
    let mut epoch = loader.start_epoch(1).unwrap();
    let mut seen = vec![BatchCopy::from(&epoch.next_batch().unwrap().unwrap())];
    drop(first);
    seen.extend(consume(epoch).0);
    assert_eq!(sorted(seen), expected[1]);

    // Nothing is sent to a documentation address (RFC 5737).
    for (number, text, expected_cause) in
        [(2, "127.0.0.1:7000", "address_file"), (3, "tcp://192.0.2.1:7000", "device_untrusted")]
    {
        write(text);
        loader.reopen_devices().unwrap();
        let (seen, stats) = consume(loader.start_epoch(number).unwrap());
        assert_eq!(sorted(seen), expected[number as usize], "{text}");
        let events = events_of(&stats);
        let [EventKind::DeviceNotReopened { reason, .. }] = &events[..] else {
            panic!("{text}: {events:?}")
        };
        let LossCause::NotOpened { cause, detail } = &reason.cause else { panic!("{reason:?}") };
        assert_eq!(cause, expected_cause, "{detail}");
    }

    write_port(second.port());
    loader.reopen_devices().unwrap();
    let (seen, stats) = consume(loader.start_epoch(4).unwrap());
    assert_eq!((sorted(seen), stats.schedule.device_batches), (expected[4].clone(), 15));
    assert!(events_of(&stats).iter().any(is_reopened), "{:?}", stats.events);
}
