//! Epochs with a correct or misbehaving device: the batches are always the same.
use crate::support::device::{Behaviour, FakeDevice, Fault};
use crate::support::{BatchCopy, config, consume, dataset, events_of, sorted};
use meetpoint_format::slot::SlotError;
use meetpoint_host::stats::{
    Attempt, BatchFault, Breach, DeviceLabel, EpochStats, EventKind, Exit, LossCause, Phase,
    Preparer, Remaining, SlotRefusal,
};
use meetpoint_host::verify::{Reference, Verdict, verify};
use meetpoint_host::{DeviceSource, Error, Loader, LoaderConfig, SpawnDevice, SpoolKind};
use meetpoint_scheduler::{
    AnyStrategy, Auto, DeviceOnly, Goal, HostOnly, Mte, Order, Split, Tail, Wrr,
};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;
use tonic::Code;

const MTE: AnyStrategy = AnyStrategy::Mte(Mte { split: Split::Fixed(5), tail: Tail::Descending });
const MTE_ASCENDING: AnyStrategy =
    AnyStrategy::Mte(Mte { split: Split::Fixed(5), tail: Tail::Ascending });

fn with_device(dataset: &Path, device: &FakeDevice, strategy: AnyStrategy) -> LoaderConfig {
    let mut config = config(dataset);
    config.strategy = strategy;
    config.devices = vec![device.source()];
    // Long enough that only a silent device exceeds it, also on a loaded machine.
    config.stall_timeout = Duration::from_secs(30);
    config
}

fn of_host_alone(dataset: &Path, epochs: u32) -> (Vec<Vec<BatchCopy>>, Vec<EpochStats>) {
    let mut loader = Loader::open(config(dataset)).unwrap();
    (0..epochs).map(|epoch| consume(loader.start_epoch(epoch).unwrap())).unzip()
}

/// Runs epochs with a misbehaving device and compares every batch with that of the host alone.
fn survives(behaviour: Behaviour, change: impl Fn(&mut LoaderConfig)) -> Vec<EpochStats> {
    let folder = dataset(60);
    let (expected, _) = of_host_alone(folder.path(), 3);
    let device = FakeDevice::start(behaviour);
    let mut config = with_device(folder.path(), &device, AnyStrategy::DeviceOnly(DeviceOnly));
    change(&mut config);
    let mut loader = Loader::open(config).unwrap();
    let mut stats = Vec::new();
    for (epoch, expected) in (0..).zip(expected) {
        loader.reopen_devices().unwrap();
        let (seen, measured) = consume(loader.start_epoch(epoch).unwrap());
        assert_eq!(sorted(seen), expected, "{:?}", measured.events);
        stats.push(measured);
    }
    stats
}

/// The only device.
const DEVICE: DeviceLabel = DeviceLabel { number: 0, of: 1 };

/// The batch and fault of each batch that failed.
fn failed_batches(events: &[EventKind]) -> Vec<(u32, &BatchFault)> {
    let failed = |event| match event {
        &EventKind::BatchFailed { batch, ref fault, .. } => Some((batch, fault)),
        _ => None,
    };
    events.iter().filter_map(failed).collect()
}

/// Why published slots were refused; a panic if a batch failed for another reason.
fn refusals(events: &[EventKind]) -> Vec<&SlotRefusal> {
    fn refusal((_, fault): (u32, &BatchFault)) -> &SlotRefusal {
        match fault {
            BatchFault::Refused { refusal } => refusal,
            other => panic!("{other:?}"),
        }
    }
    failed_batches(events).into_iter().map(refusal).collect()
}

/// A failed preparation, in the words of the test's device.
fn undecoded() -> BatchFault {
    BatchFault::Preparation { detail: "it would not decode".to_owned() }
}

#[test]
fn every_strategy_and_spool_gives_the_bytes_of_the_host_alone() {
    let folder = dataset(61);
    let (expected, host_stats) = of_host_alone(folder.path(), 2);
    let host = Loader::open(config(folder.path())).unwrap();
    let reference = Reference::of_host_only(host.job(), &host_stats);
    let spool_folder = tempfile::tempdir().unwrap();
    let file = SpoolKind::File { directory: spool_folder.path().to_path_buf() };
    for strategy in [AnyStrategy::DeviceOnly(DeviceOnly), MTE, MTE_ASCENDING, AnyStrategy::Wrr(Wrr)]
    {
        for kind in [SpoolKind::Memory, file.clone()] {
            for workers in [0, 2] {
                let device = FakeDevice::start(Behaviour::default());
                let mut config = with_device(folder.path(), &device, strategy);
                config.spool.kind = kind.clone();
                config.workers = workers;
                let mut loader = Loader::open(config).unwrap();
                let job = loader.job().clone();
                let mut runs = Vec::new();
                for (epoch, expected) in (0..).zip(&expected) {
                    let (seen, stats) = consume(loader.start_epoch(epoch).unwrap());
                    let what = format!("{strategy:?} {kind:?} {workers} workers");
                    assert_eq!(&sorted(seen), expected, "{what}");
                    assert_eq!(events_of(&stats), [], "{what}");
                    let device = &stats.devices[0];
                    assert!(device.batches >= u64::from(stats.schedule.device_batches));
                    assert!(device.bytes_written > 0 || strategy == AnyStrategy::Wrr(Wrr));
                    if let AnyStrategy::Mte(Mte { .. }) = strategy {
                        assert_eq!(stats.schedule.device_batches, 5, "{what}");
                    }
                    if strategy == AnyStrategy::DeviceOnly(DeviceOnly) {
                        assert_eq!(stats.schedule.host_batches, 0, "{what}");
                        assert_eq!(stats.fetch.count, 16, "{what}");
                    }
                    runs.push(stats);
                }
                for judged in verify(strategy, &job, &runs, &reference) {
                    let is_claimed = strategy.levels().contains(&judged.level);
                    match judged.verdict {
                        Verdict::Verified { .. } | Verdict::NotChecked { .. } => {
                            assert!(is_claimed, "{:?}", judged.level);
                        }
                        Verdict::NotClaimed => assert!(!is_claimed, "{:?}", judged.level),
                        Verdict::Failed { place } => panic!("{:?}: {place}", judged.level),
                    }
                }
            }
        }
    }
    assert_eq!(std::fs::read_dir(spool_folder.path()).unwrap().count(), 0);
}

#[test]
fn a_corrupt_or_torn_slot_is_refused_and_its_batch_prepared_by_the_host() {
    let faults = vec![(2, Fault::Corrupt), (4, Fault::Torn)];
    let stats = survives(Behaviour { faults, ..Behaviour::default() }, |_| {});
    let events = events_of(&stats[0]);
    let refused = refusals(&events);
    let count = |is_this: fn(&SlotError) -> bool| {
        let of_this =
            |it: &&&SlotRefusal| matches!(it, SlotRefusal::Content { error } if is_this(error));
        refused.iter().filter(of_this).count()
    };
    let of_image =
        count(|it| matches!(it, SlotError::ColumnChecksum { column, .. } if column == "image"));
    let of_header = count(|it| matches!(it, SlotError::HeaderChecksum { .. }));
    assert_eq!([of_image, of_header], [1, 1], "{events:?}");
    assert_eq!((events.len(), stats[0].schedule.host_batches), (2, 2));
    assert_eq!(events_of(&stats[1]), []);
}

#[test]
fn a_corrupt_slot_in_a_spool_file_is_refused_too() {
    let spool_folder = tempfile::tempdir().unwrap();
    let faults = vec![(1, Fault::Corrupt), (3, Fault::Torn)];
    let stats = survives(Behaviour { faults, ..Behaviour::default() }, |config| {
        config.spool.kind = SpoolKind::File { directory: spool_folder.path().to_path_buf() };
    });
    let events = events_of(&stats[0]);
    assert_eq!(refusals(&events).len(), 2);
}

#[test]
fn a_batch_that_the_device_cannot_prepare_is_prepared_by_the_host() {
    let faults = vec![(3, Fault::Failed)];
    let stats = survives(Behaviour { faults, ..Behaviour::default() }, |_| {});
    let events = events_of(&stats[0]);
    assert_eq!(failed_batches(&events), [(2, &undecoded())]);
    assert_eq!((stats[0].schedule.host_batches, stats[0].schedule.device_batches), (1, 14));
}

#[test]
fn a_device_that_fails_on_everything_gets_no_more_work_and_fills_no_report() {
    let faults = (1..=15).map(|batch| (batch, Fault::Failed)).collect();
    let stats = survives(Behaviour { faults, ..Behaviour::default() }, |_| {});
    let device = DEVICE;
    let given_up = EventKind::DeviceGivenUp {
        device,
        failures: 3,
        fault: undecoded(),
        remaining: Remaining::Host,
    };
    let repeats = EventKind::BatchesFailed { device, batches: 2, fault: Some(undecoded()) };
    let events = events_of(&stats[0]);
    assert_eq!(events[1..], [given_up, repeats]);
    assert_eq!(failed_batches(&events).len(), 1);
    assert_eq!(stats[0].schedule.host_batches, 15);
}

#[test]
fn a_device_whose_batches_all_arrive_corrupt_gets_no_more_work() {
    let faults = (1..=15).map(|batch| (batch, Fault::Corrupt)).collect();
    let stats = survives(Behaviour { faults, ..Behaviour::default() }, |_| {});
    let events = events_of(&stats[0]);
    let is_given_up = |it: &EventKind| matches!(it, EventKind::DeviceGivenUp { failures: 3, .. });
    assert_eq!(events.iter().filter(|it| is_given_up(it)).count(), 1, "{events:?}");
    assert_eq!(stats[0].schedule.host_batches, 15);
}

#[test]
fn a_device_that_fails_now_and_then_retains_its_work() {
    let faults = [1, 2, 4, 5, 7, 8].map(|batch| (batch, Fault::Failed)).to_vec();
    let stats = survives(Behaviour { faults, ..Behaviour::default() }, |_| {});
    let events = events_of(&stats[0]);
    assert!(!events.iter().any(EventKind::is_device_loss), "{events:?}");
    assert_eq!((stats[0].schedule.host_batches, stats[0].schedule.device_batches), (6, 9));
}

#[test]
fn a_device_that_drops_the_link_costs_no_batch_and_is_connected_to_again() {
    for workers in [0, 1] {
        let faults = vec![(4, Fault::Drop)];
        let stats = survives(Behaviour { faults, ..Behaviour::default() }, |config| {
            config.workers = workers;
        });
        let events = events_of(&stats[0]);
        let is_lost = |it: &EventKind| {
            matches!(it, EventKind::DeviceLost { device: DEVICE, phase: Phase::Epoch, .. })
        };
        assert_eq!(events.iter().filter(|it| is_lost(it)).count(), 1, "{events:?}");
        assert!(stats[0].schedule.device_lost);
        let attempt = Attempt::Connect;
        assert_eq!(events_of(&stats[1]), [EventKind::DeviceReopened { device: DEVICE, attempt }]);
        assert_eq!(stats[1].schedule.device_batches, 15);
        assert_eq!(events_of(&stats[2]), []);
    }
}

#[test]
fn a_silent_device_is_fenced_off_and_works_again_when_it_is_heard_of() {
    let faults = vec![(3, Fault::Silent)];
    let stats = survives(Behaviour { faults, ..Behaviour::default() }, |config| {
        config.stall_timeout = Duration::from_millis(300);
    });
    assert!(stats[0].schedule.stalls >= 1);
    let events = events_of(&stats[0]);
    let is_stall = |it: &EventKind| matches!(it, EventKind::DeviceStalled { .. });
    let is_lost = |it: &EventKind| matches!(it, EventKind::DeviceLost { .. });
    assert!(events.iter().any(is_stall) && !events.iter().any(is_lost), "{events:?}");
}

#[test]
fn a_device_that_is_silent_at_the_end_is_opened_again_for_the_next_epoch() {
    let faults = vec![(1, Fault::Hang)];
    let stats = survives(Behaviour { faults, ..Behaviour::default() }, |config| {
        config.stall_timeout = Duration::from_millis(300);
    });
    assert_eq!(stats[0].schedule.host_batches, 15, "{:?}", events_of(&stats[0]));
    let events = events_of(&stats[1]);
    let [EventKind::DeviceLost { phase: Phase::BetweenEpochs, reason, .. }, opened] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(reason.cause, LossCause::Silent);
    let attempt = Attempt::Connect;
    assert_eq!(opened, &EventKind::DeviceReopened { device: DEVICE, attempt });
    assert!(stats[1].schedule.device_batches > 0, "{events:?}");
}

#[test]
fn a_device_that_gives_away_a_slot_that_it_does_not_own_is_cut_off() {
    let faults = vec![(3, Fault::Steal)];
    // The consumer retains the slot of the second batch while the third is published in it.
    let folder = dataset(60);
    let (expected, _) = of_host_alone(folder.path(), 1);
    let device = FakeDevice::start(Behaviour { faults, ..Behaviour::default() });
    let mut loader =
        Loader::open(with_device(folder.path(), &device, AnyStrategy::DeviceOnly(DeviceOnly)))
            .unwrap();
    let mut epoch = loader.start_epoch(0).unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = epoch.next_batch().unwrap() {
        batches.push(batch);
        if batches.len() > 3 {
            // Only the first few are recorded: the device was disconnected by then.
            let dropped = batches.pop().unwrap();
            assert_eq!(BatchCopy::from(&dropped), expected[0][dropped.index() as usize]);
        }
    }
    let stats = epoch.finish();
    for batch in &batches {
        assert_eq!(BatchCopy::from(batch), expected[0][batch.index() as usize]);
    }
    let events = events_of(&stats);
    let [EventKind::DeviceLost { phase: Phase::Epoch, reason, .. }] = &events[..] else {
        panic!("{events:?}");
    };
    let is_theft =
        matches!(reason.cause, LossCause::Breach { breach: Breach::SlotNotOwned { .. } });
    assert!(is_theft, "{reason}");
    assert_eq!(stats.records.len(), 15);
}

#[test]
fn slots_of_another_generation_or_epoch_have_no_effect_and_come_back() {
    let faults = vec![(2, Fault::OldGeneration), (20, Fault::OtherEpoch)];
    let stats = survives(Behaviour { faults, ..Behaviour::default() }, |config| {
        config.stall_timeout = Duration::from_millis(300);
        // Few slots, so that a slot that was not released would be noticed.
        config.spool.quota_bytes = 40 << 10;
    });
    assert!(stats[0].schedule.void_reports >= 1);
    assert!(stats.iter().all(|stats| stats.is_complete));
}

#[test]
fn a_consumer_that_retains_device_batches_does_not_starve_the_device() {
    let folder = dataset(60);
    let (expected, _) = of_host_alone(folder.path(), 1);
    let device = FakeDevice::start(Behaviour::default());
    let mut config = with_device(folder.path(), &device, AnyStrategy::DeviceOnly(DeviceOnly));
    // Three slots for fifteen batches, all of which are retained.
    config.spool.quota_bytes = 3 * (8 << 10);
    let mut loader = Loader::open(config).unwrap();
    assert_eq!(loader.spool_slots(), Some(3));
    let mut epoch = loader.start_epoch(0).unwrap();
    let mut kept = Vec::new();
    while let Some(batch) = epoch.next_batch().unwrap() {
        kept.push(batch);
    }
    let stats = epoch.finish();
    assert_eq!(stats.schedule.device_batches, 15, "{:?}", events_of(&stats));
    drop(loader);
    for (batch, expected) in kept.iter().zip(&expected[0]) {
        assert_eq!(&BatchCopy::from(batch), expected);
    }
}

#[test]
fn an_epoch_that_is_dropped_early_leaves_no_slot_behind() {
    let folder = dataset(60);
    let device = FakeDevice::start(Behaviour::default());
    let mut config = with_device(folder.path(), &device, AnyStrategy::Wrr(Wrr));
    config.spool.quota_bytes = 40 << 10;
    config.workers = 1;
    let mut loader = Loader::open(config).unwrap();
    for round in 0..10 {
        let mut epoch = loader.start_epoch(0).unwrap();
        for _ in 0..round {
            epoch.next_batch().unwrap().unwrap();
        }
    }
    let (seen, stats) = consume(loader.start_epoch(1).unwrap());
    assert_eq!((seen.len(), events_of(&stats)), (15, Vec::new()));
}

#[test]
fn records_contain_when_the_device_worked_on_a_batch() {
    let folder = dataset(60);
    let device = FakeDevice::start(Behaviour::default());
    let mut loader =
        Loader::open(with_device(folder.path(), &device, AnyStrategy::DeviceOnly(DeviceOnly)))
            .unwrap();
    let (_, stats) = consume(loader.start_epoch(0).unwrap());
    for record in &stats.records {
        assert_eq!(record.source, Preparer::Device);
        assert!(record.prepare_start_ns <= record.prepare_end_ns);
        assert!(record.prepare_end_ns <= record.ready_ns, "{record:?}");
        assert!(record.ready_ns <= record.consume_ns);
    }
    assert_eq!(stats.devices[0].batches, 15);
}

#[test]
fn a_device_that_cannot_be_used_is_an_error_with_socket_and_remedy() {
    let folder = dataset(8);
    let refused = |behaviour: Behaviour| {
        let device = FakeDevice::start(behaviour);
        let config = with_device(folder.path(), &device, AnyStrategy::Wrr(Wrr));
        let error = Loader::open(config).unwrap_err().to_string();
        assert!(error.contains(&device.socket().display().to_string()), "{error}");
        error
    };
    let error = refused(Behaviour { speaks_version: Some(99), ..Behaviour::default() });
    assert!(error.contains("protocol version 99 (program fake)"), "{error}");
    let reason = "device serves another version of this dataset";
    let refuses = Some((Code::FailedPrecondition, reason));
    let error = refused(Behaviour { refuses, ..Behaviour::default() });
    assert!(error.contains(&format!("refused `load`: {reason}")), "{error}");

    let mut config = config(folder.path());
    config.strategy = AnyStrategy::Wrr(Wrr);
    config.devices = vec![DeviceSource::Connect { socket: "/no/such/socket".into() }];
    let error = Loader::open(config.clone()).unwrap_err().to_string();
    assert!(error.contains("/no/such/socket: there is no such socket"), "{error}");
    config.strategy = AnyStrategy::HostOnly(HostOnly);
    Loader::open(config).expect("host-only does not look for a device");
}

#[test]
fn a_socket_where_something_else_listens_is_an_error_and_no_hang() {
    let folder = dataset(8);
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"220 smtp at your service\r\n").unwrap();
    });
    let mut config = config(folder.path());
    config.strategy = AnyStrategy::Wrr(Wrr);
    config.devices = vec![DeviceSource::Connect { socket: socket.clone() }];
    let error = Loader::open(config).unwrap_err();
    assert!(matches!(error, Error::NotADevice { .. }), "{error}");
    let reason = error.to_string().replace(&socket.display().to_string(), "");
    assert!(!reason.contains("h2"), "{error}");
    other.join().unwrap();
}

#[test]
fn a_socket_that_hangs_or_hangs_up_at_the_start_is_a_lost_device() {
    let folder = dataset(20);
    // An empty SETTINGS frame, with which an HTTP/2 server begins.
    let settings = &b"\0\0\0\x04\0\0\0\0\0"[..];
    for (says, hangs_up) in [(&b""[..], true), (b"", false), (settings, true), (settings, false)] {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let stranger = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(says).unwrap();
            if !hangs_up {
                // Until the host disconnects.
                let _ = stream.read_to_end(&mut Vec::new());
            }
        });
        let mut config = config(folder.path());
        config.strategy = AnyStrategy::DeviceOnly(DeviceOnly);
        config.devices = vec![DeviceSource::Connect { socket: socket.clone() }];
        let mut loader = Loader::open(config).unwrap();
        stranger.join().unwrap();
        let (seen, stats) = consume(loader.start_epoch(0).unwrap());
        assert_eq!((seen.len(), stats.schedule.host_batches), (5, 5));
        let events = events_of(&stats);
        let EventKind::DeviceLost { phase: Phase::Start, reason, remedy, .. } = &events[0] else {
            panic!("{events:?}");
        };
        let LossCause::NotOpened { cause, detail } = &reason.cause else { panic!("{reason:?}") };
        assert_eq!((&cause[..], remedy.is_some()), ("device_unresponsive", true), "{says:?}");
        let expected = if hangs_up { "it ended the connection" } else { "within 5s" };
        assert!(detail.contains(expected), "{says:?}: {detail}");
        assert!(detail.contains(&socket.display().to_string()), "{detail}");
    }
}

#[test]
fn a_device_process_that_never_listens_leaves_the_host_to_go_on_alone() {
    let folder = dataset(16);
    let arguments: Vec<OsString> = ["-c", "exec sleep 600"].map(Into::into).to_vec();
    let spawn = SpawnDevice { program: "/bin/sh".into(), arguments };
    let mut config = config(folder.path());
    config.strategy = AnyStrategy::DeviceOnly(DeviceOnly);
    config.devices = vec![DeviceSource::Spawn(spawn.clone())];
    let mut loader = Loader::open(config).unwrap();
    assert!(loader.devices().all(|device| device.is_none()));
    let (seen, stats) = consume(loader.start_epoch(0).unwrap());
    assert_eq!((seen.len(), stats.schedule.host_batches), (4, 4));
    let events = events_of(&stats);
    let EventKind::DeviceLost { phase: Phase::Start, reason, .. } = &events[0] else {
        panic!("{events:?}");
    };
    let LossCause::NotOpened { cause, detail } = &reason.cause else { panic!("{reason:?}") };
    assert_eq!(cause, "device_unresponsive");
    // The user has not chosen its socket.
    assert!(detail.contains("/bin/sh") && !detail.contains("device.sock"), "{detail}");
}

#[test]
fn a_device_program_that_ends_at_once_is_an_error_with_its_output() {
    let folder = dataset(8);
    let mut config = config(folder.path());
    config.strategy = AnyStrategy::Wrr(Wrr);
    let arguments = ["-c", "echo wrong knob >&2; exit 1"].map(Into::into).to_vec();
    config.devices =
        vec![DeviceSource::Spawn(SpawnDevice { program: "/bin/sh".into(), arguments })];
    let error = Loader::open(config).unwrap_err();
    assert!(matches!(error, Error::DeviceEnded { .. }), "{error}");
    assert!(error.to_string().contains("wrong knob"), "{error}");
}

#[test]
fn a_device_that_is_killed_before_it_serves_leaves_the_host_to_go_on_alone() {
    let folder = dataset(16);
    let auto = AnyStrategy::Auto(Auto { goal: Goal::Throughput, order: Order::Any });
    for strategy in [AnyStrategy::DeviceOnly(DeviceOnly), AnyStrategy::Wrr(Wrr), auto] {
        let mut config = config(folder.path());
        config.strategy = strategy;
        let arguments = ["-c", "kill -9 $$"].map(Into::into).to_vec();
        config.devices =
            vec![DeviceSource::Spawn(SpawnDevice { program: "/bin/sh".into(), arguments })];
        let mut loader = Loader::open(config).unwrap();
        assert!(loader.devices().all(|device| device.is_none()));
        for epoch in 0..2 {
            loader.reopen_devices().unwrap();
            let (seen, stats) = consume(loader.start_epoch(epoch).unwrap());
            assert_eq!(seen.len(), 4, "{strategy:?}");
            assert_eq!(stats.schedule.host_batches, 4, "{strategy:?}");
            assert!(stats.schedule.device_lost, "{strategy:?}");
            // How it was lost, and that it could not be started again.
            let losses = if epoch == 0 { 2 } else { 1 };
            let killed = events_of(&stats).into_iter().filter(|event| match event {
                EventKind::DeviceLost { reason, .. }
                | EventKind::DeviceNotReopened { reason, .. } => {
                    let exit = reason.process.as_ref().map(|end| end.exit);
                    matches!(exit, Some(Exit::Signal { signal: 9, .. }))
                        && reason.cause == LossCause::ProcessEnded
                }
                _ => false,
            });
            assert_eq!(killed.count(), losses, "{strategy:?}: {:?}", stats.events);
        }
    }
}

#[test]
fn a_device_that_is_stopped_before_it_serves_leaves_the_host_to_go_on_alone() {
    let folder = dataset(16);
    let mut config = config(folder.path());
    config.strategy = AnyStrategy::Auto(Auto { goal: Goal::Throughput, order: Order::Any });
    let arguments = ["-c", "kill -STOP $$"].map(Into::into).to_vec();
    config.devices =
        vec![DeviceSource::Spawn(SpawnDevice { program: "/bin/sh".into(), arguments })];
    let mut loader = Loader::open(config).unwrap();
    assert!(loader.devices().all(|device| device.is_none()));
    let (seen, stats) = consume(loader.start_epoch(0).unwrap());
    assert_eq!((seen.len(), stats.schedule.host_batches), (4, 4));
    let is_stopped = |event: &EventKind| match event {
        EventKind::DeviceLost { reason, remedy, .. } => {
            matches!(reason.cause, LossCause::ProcessStopped { .. }) && remedy.is_some()
        }
        _ => false,
    };
    assert!(events_of(&stats).iter().any(is_stopped), "{:?}", stats.events);
}

#[test]
fn an_interrupt_while_a_device_program_starts_ends_the_wait() {
    let folder = dataset(8);
    let mut config = config(folder.path());
    config.strategy = AnyStrategy::Wrr(Wrr);
    // `exec`, so that the program itself is what gets killed.
    let arguments = ["-c", "exec sleep 600"].map(Into::into).to_vec();
    config.devices =
        vec![DeviceSource::Spawn(SpawnDevice { program: "/bin/sh".into(), arguments })];
    let stop = config.stop.clone();
    let opening = std::thread::spawn(move || Loader::open(config).map(|_| ()));
    stop.stop();
    assert!(matches!(opening.join().unwrap(), Err(Error::Interrupted)));
}
