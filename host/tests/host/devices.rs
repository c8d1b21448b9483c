//! Epochs with several devices, each with its own parts, speed, spool and end.

use crate::support::device::{Behaviour, FakeDevice, Fault};
use crate::support::{
    BatchCopy, config, consume, dataset_in_parts, events_of, pack, picture, sorted,
};
use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_host::stats::{Attempt, DeviceLabel, EpochStats, EventKind, Remaining};
use meetpoint_host::verify::{Reference, Verdict, verify};
use meetpoint_host::{DeviceSource, Loader, LoaderConfig, Notify, SpoolConfig, SpoolKind};
use meetpoint_prepare::Job;
use meetpoint_scheduler::{
    AnyStrategy, Auto, DeviceOnly, Goal, HostOnly, Level, Mte, MteFeedback, Order, Split, Tail,
    Windowed, Wrr, WrrFrozen,
};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MTE: AnyStrategy = AnyStrategy::Mte(Mte { split: Split::Fixed(8), tail: Tail::Descending });
const MTE_ASCENDING: AnyStrategy =
    AnyStrategy::Mte(Mte { split: Split::Optimal, tail: Tail::Ascending });

/// The strategies that use devices.
const STRATEGIES: [AnyStrategy; 8] = [
    AnyStrategy::DeviceOnly(DeviceOnly),
    MTE,
    MTE_ASCENDING,
    AnyStrategy::Wrr(Wrr),
    AnyStrategy::WrrFrozen(WrrFrozen),
    AnyStrategy::MteFeedback(MteFeedback),
    AnyStrategy::Windowed(Windowed { window: 6 }),
    AnyStrategy::Auto(Auto { goal: Goal::Throughput, order: Order::Any }),
];

fn with_devices(dataset: &Path, devices: &[&FakeDevice], strategy: AnyStrategy) -> LoaderConfig {
    let mut config = config(dataset);
    config.strategy = strategy;
    let source = |device: &&FakeDevice| DeviceSource::Connect { socket: device.socket() };
    config.devices = devices.iter().map(source).collect();
    // Long enough that only a silent device exceeds it, also on a loaded machine.
    config.stall_timeout = Duration::from_secs(30);
    config
}

fn faulty(faults: Vec<(u32, Fault)>) -> FakeDevice {
    FakeDevice::start(Behaviour { faults, ..Behaviour::default() })
}

fn good() -> FakeDevice {
    faulty(Vec::new())
}

/// The batches of the host alone for a loader with these devices.
fn of_host_alone(config: &LoaderConfig, epochs: u32) -> (Vec<Vec<BatchCopy>>, Vec<EpochStats>) {
    let mut config = config.clone();
    config.strategy = AnyStrategy::HostOnly(HostOnly);
    let mut loader = Loader::open(config).unwrap();
    (0..epochs).map(|epoch| consume(loader.start_epoch(epoch).unwrap())).unzip()
}

/// Runs epochs, and checks every batch against the host alone, and the levels that always hold.
fn run(config: LoaderConfig, epochs: u32) -> Vec<EpochStats> {
    let (expected, host_stats) = of_host_alone(&config, epochs);
    let strategy = config.strategy;
    let mut loader = Loader::open(config).unwrap();
    let mut runs = Vec::new();
    for (epoch, expected) in (0..).zip(expected) {
        loader.reopen_devices().unwrap();
        let (seen, stats) = consume(loader.start_epoch(epoch).unwrap());
        assert_eq!(sorted(seen), expected, "{:?}", stats.events);
        runs.push(stats);
    }
    check_levels(
        strategy,
        loader.job(),
        &runs,
        &Reference::of_host_only(loader.job(), &host_stats),
    );
    runs
}

fn check_levels(strategy: AnyStrategy, job: &Job, runs: &[EpochStats], reference: &Reference) {
    for judged in verify(strategy, job, runs, reference) {
        let must_hold = matches!(judged.level, Level::C0 | Level::C1 | Level::C2 | Level::C6);
        match judged.verdict {
            Verdict::Verified { .. } => {}
            Verdict::NotChecked { .. } | Verdict::NotClaimed => {
                assert!(!must_hold, "{:?}", judged.level);
            }
            Verdict::Failed { place } => panic!("{:?}: {place}", judged.level),
        }
    }
}

/// The devices that these events report as lost or silent.
fn lost(events: &[EventKind]) -> Vec<u16> {
    let number = |event: &EventKind| match event {
        EventKind::DeviceLost { device, .. }
        | EventKind::DeviceLeaving { device, .. }
        | EventKind::DeviceGivenUp { device, .. }
        | EventKind::DeviceStalled { device, .. } => Some(device.number),
        _ => None,
    };
    events.iter().filter_map(number).collect()
}

#[test]
fn devices_with_parts_and_spools_of_their_own_give_the_bytes_of_the_host_alone() {
    let folder = dataset_in_parts(101, 5);
    let spool_folder = tempfile::tempdir().unwrap();
    let file = SpoolKind::File { directory: spool_folder.path().to_path_buf() };
    for strategy in STRATEGIES {
        for workers in [0, 2] {
            for is_file in [[false, false], [false, true]] {
                let (first, second) = (good(), good());
                let mut config = with_devices(folder.path(), &[&first, &second], strategy);
                config.workers = workers;
                for (number, _) in (0..).zip(is_file).filter(|(_, is_file)| *is_file) {
                    let spool = SpoolConfig { kind: file.clone(), quota_bytes: 1 << 20 };
                    config.spools.insert(number, spool);
                }
                for stats in run(config, 2) {
                    let what = format!("{strategy:?}, {workers} workers, {is_file:?}");
                    assert_eq!(events_of(&stats), [], "{what}");
                    assert_eq!(stats.devices.len(), 2, "{what}");
                    let by = |number| {
                        stats.records.iter().filter(|it| it.device == Some(number)).count()
                    };
                    if strategy == AnyStrategy::DeviceOnly(DeviceOnly) {
                        assert_eq!(by(0) + by(1), stats.records.len(), "{what}");
                        assert!(by(0) > 0 && by(1) > 0, "{what}");
                    }
                    let of_devices = by(0) + by(1);
                    assert_eq!(of_devices, stats.schedule.device_batches as usize, "{what}");
                }
            }
        }
    }
    assert_eq!(std::fs::read_dir(spool_folder.path()).unwrap().count(), 0);
}

#[test]
fn batches_of_devices_can_be_written_to_in_place_and_the_next_ones_are_whole() {
    let folder = dataset_in_parts(120, 1);
    let spool_folder = tempfile::tempdir().unwrap();
    let file = SpoolKind::File { directory: spool_folder.path().to_path_buf() };
    for kind in [SpoolKind::Memory, file] {
        let device = good();
        let mut config =
            with_devices(folder.path(), &[&device], AnyStrategy::DeviceOnly(DeviceOnly));
        // Few slots, so that each is reused often.
        config.spool = SpoolConfig { kind, quota_bytes: 6 * 8192 };
        let (expected, _) = of_host_alone(&config, 2);
        let mut loader = Loader::open(config).unwrap();
        for (number, expected) in (0..).zip(expected) {
            let mut epoch = loader.start_epoch(number).unwrap();
            let (mut seen, mut last) = (Vec::new(), None);
            while let Some(mut batch) = epoch.next_batch().unwrap() {
                seen.push(BatchCopy::from(&batch));
                batch.bytes_mut().fill(0xA5);
                assert!(batch.bytes().iter().all(|&byte| byte == 0xA5));
                last = Some(batch);
            }
            let stats = epoch.finish();
            assert!(last.unwrap().bytes().iter().all(|&byte| byte == 0xA5));
            assert_eq!(sorted(seen), expected);
            assert_eq!(events_of(&stats), []);
            assert_eq!(stats.schedule.device_batches, 30);
        }
    }
}

#[test]
fn a_dataset_in_a_folder_whose_name_is_not_utf_8_is_served() {
    use std::os::unix::ffi::OsStrExt;
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    std::fs::create_dir(&folder).unwrap();
    pack(&folder, (0..16).map(picture).collect());
    let device = good();
    let stats = run(with_devices(&folder, &[&device], AnyStrategy::DeviceOnly(DeviceOnly)), 1);
    assert_eq!(stats[0].schedule.device_batches, 4);
}

#[test]
fn devices_that_share_the_dataset_take_from_one_end_each_at_its_pace() {
    let folder = dataset_in_parts(120, 1);
    for strategy in STRATEGIES {
        // For comparisons of rates: much longer than a batch takes on a loaded machine.
        let pause = Duration::from_millis(if strategy == AnyStrategy::DeviceOnly(DeviceOnly) {
            150
        } else {
            20
        });
        let slow = FakeDevice::start(Behaviour { pause, ..Behaviour::default() });
        let fast = good();
        let mut config = with_devices(folder.path(), &[&slow, &fast], strategy);
        config.shared_dataset = true;
        for stats in run(config, 2) {
            assert_eq!(events_of(&stats), []);
            if strategy == AnyStrategy::DeviceOnly(DeviceOnly) {
                let batches: Vec<u32> =
                    stats.schedule.devices.iter().map(|device| device.batches).collect();
                assert_eq!(batches.iter().sum::<u32>(), 30);
                assert!(batches[1] > batches[0], "the faster prepares more: {batches:?}");
            }
        }
    }
}

#[test]
fn a_device_that_dies_is_named_given_up_alone_and_revived_alone() {
    let folder = dataset_in_parts(120, 4);
    for workers in [0, 1] {
        let (dies, lives) = (faulty(vec![(4, Fault::Drop)]), good());
        let mut config =
            with_devices(folder.path(), &[&lives, &dies], AnyStrategy::DeviceOnly(DeviceOnly));
        config.workers = workers;
        let stats = run(config, 3);
        let events = events_of(&stats[0]);
        let [EventKind::DeviceLost { device, remaining, .. }] = &events[..] else {
            panic!("{events:?}");
        };
        assert_eq!((device.number, *remaining), (1, Remaining::HostAndDevices));
        let schedule = &stats[0].schedule;
        assert!(schedule.devices[1].is_lost && !schedule.devices[0].is_lost);
        assert_eq!(schedule.devices[0].batches, 15, "{events:?}");
        assert!(schedule.host_batches >= 11, "{events:?}");
        let (device, attempt) = (DeviceLabel { number: 1, of: 2 }, Attempt::Connect);
        assert_eq!(events_of(&stats[1]), [EventKind::DeviceReopened { device, attempt }]);
        assert_eq!(stats[1].schedule.device_batches, 30);
        assert_eq!(events_of(&stats[2]), []);
    }
}

#[test]
fn when_every_device_dies_the_host_goes_on_alone() {
    let folder = dataset_in_parts(120, 4);
    for strategy in STRATEGIES {
        let (first, second) = (faulty(vec![(1, Fault::Drop)]), faulty(vec![(2, Fault::Drop)]));
        let config = with_devices(folder.path(), &[&first, &second], strategy);
        let stats = run(config, 2);
        let events = events_of(&stats[0]);
        // Other strategies may not grant each device enough batches to reach its fault.
        if strategy == MTE {
            assert!(lost(&events).contains(&0), "{strategy:?}: {events:?}");
        }
        if strategy == AnyStrategy::DeviceOnly(DeviceOnly) {
            assert!(lost(&events).contains(&1), "{events:?}");
            let is_last = |event: &EventKind| {
                matches!(event, EventKind::DeviceLost { remaining: Remaining::Host, .. })
            };
            assert_eq!(events.iter().filter(|it| is_last(it)).count(), 1, "{events:?}");
        }
    }
}

#[test]
fn a_silent_device_is_fenced_off_alone() {
    let folder = dataset_in_parts(120, 4);
    let (silent, lives) = (faulty(vec![(3, Fault::Silent)]), good());
    let mut config =
        with_devices(folder.path(), &[&silent, &lives], AnyStrategy::DeviceOnly(DeviceOnly));
    config.stall_timeout = Duration::from_millis(500);
    let stats = run(config, 2);
    let events = events_of(&stats[0]);
    let is_stall = |it: &EventKind| matches!(it, EventKind::DeviceStalled { .. });
    assert!(events.iter().any(is_stall), "{events:?}");
    assert!(lost(&events).iter().all(|number| *number == 0), "{events:?}");
    assert!(stats[0].schedule.devices[0].stalls >= 1);
    assert_eq!(stats[0].schedule.devices[1].stalls, 0);
}

#[test]
fn a_device_that_only_fails_gets_no_more_work_and_the_others_do() {
    let folder = dataset_in_parts(120, 4);
    for fault in [Fault::Failed, Fault::Corrupt] {
        let (bad, lives) = (faulty((1..=60).map(|at| (at, fault)).collect()), good());
        let config =
            with_devices(folder.path(), &[&lives, &bad], AnyStrategy::DeviceOnly(DeviceOnly));
        let stats = run(config, 1);
        let events = events_of(&stats[0]);
        let is_given_up =
            |it: &EventKind| matches!(it, EventKind::DeviceGivenUp { failures: 3, .. });
        assert!(events.iter().any(is_given_up), "{events:?}");
        assert_eq!(lost(&events), [1]);
        let batches = stats[0].schedule.devices.iter().map(|device| device.batches);
        assert_eq!(batches.collect::<Vec<_>>(), [15, 0]);
    }
}

#[test]
fn too_few_parts_are_an_error_with_the_remedy() {
    let folder = dataset_in_parts(40, 2);
    let devices = [good(), good(), good()];
    let devices: Vec<&FakeDevice> = devices.iter().collect();
    let mut config = with_devices(folder.path(), &devices, AnyStrategy::Wrr(Wrr));
    let error = Loader::open(config.clone()).unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("2 parts, too few for 3 devices"), "{error}");
    assert!(error.contains("pack") && error.contains("set shared = true"), "{error}");
    config.shared_dataset = true;
    run(config.clone(), 1);
    config.shared_dataset = false;
    config.devices.pop();
    config.part_holders = vec![1, 1];
    let error = Loader::open(config.clone()).unwrap_err().to_string();
    assert!(error.contains("device 0 of 2 holds less than a batch"), "{error}");
    config.part_holders = vec![1, 0];
    run(config.clone(), 1);
    config.part_holders = vec![1, 0, 0];
    let error = Loader::open(config).unwrap_err().to_string();
    assert!(error.contains("failed to assign the parts"), "{error}");
}

#[test]
fn a_device_of_several_that_cannot_be_used_is_named() {
    let folder = dataset_in_parts(40, 2);
    let good = good();
    let mut config = with_devices(folder.path(), &[&good, &good], AnyStrategy::Wrr(Wrr));
    config.devices[1] = DeviceSource::Connect { socket: "/no/such/socket".into() };
    let error = Loader::open(config).unwrap_err().to_string();
    assert!(error.starts_with("device 1: no device answers at /no/such/socket"), "{error}");
}

/// A long wait is notified while it lasts, once per epoch, and is among its events.
#[test]
fn a_long_wait_for_a_device_is_notified_while_it_lasts() {
    let folder = dataset_in_parts(16, 2);
    let pause = Duration::from_millis(200);
    let slow = FakeDevice::start(Behaviour { pause, ..Behaviour::default() });
    let notified = Arc::new(Mutex::new(Vec::new()));
    for (strategy, expected) in
        [(AnyStrategy::DeviceOnly(DeviceOnly), 2), (AnyStrategy::HostOnly(HostOnly), 0)]
    {
        let mut config = with_devices(folder.path(), &[&slow], strategy);
        let sink = Arc::clone(&notified);
        config.notify = Some(Notify::new(Duration::from_millis(10), move |event| {
            sink.lock().unwrap().push(event.clone());
        }));
        let runs = run(config, 2);
        let notified = std::mem::take(&mut *notified.lock().unwrap());
        assert_eq!(notified.len(), expected, "{notified:?}");
        for (event, stats) in notified.iter().zip(&runs) {
            let EventKind::DeviceAwaited { waited_ns, .. } = event else { panic!("{event:?}") };
            assert!(*waited_ns >= 10_000_000, "{event:?}");
            assert!(stats.events.iter().any(|it| it.kind == *event), "{event:?}");
        }
    }
}
