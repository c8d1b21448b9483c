//! A device that sends its batches over a network: batches have the bytes of the host alone,
//! whatever the device sends.

use crate::support::device::{Behaviour, FakeDevice, Fault};
use crate::support::{BatchCopy, config, consume, dataset, events_of, sorted};
use meetpoint_format::wire::{NETWORK_GREETING, SlotData};
use meetpoint_host::stats::{
    BatchFault, Breach, EpochStats, EventKind, Loss, LossCause, Phase, Remaining,
};
use meetpoint_host::verify::{Reference, Verdict, verify};
use meetpoint_host::{
    DeviceSource, Error, Loader, LoaderConfig, Notify, RemoteDevice, SpoolKind, TcpAddress,
};
use meetpoint_scheduler::{
    AnyStrategy, Auto, DeviceOnly, Mte, MteFeedback, Split, Tail, Windowed, Wrr,
};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tonic::Code;

const MTE: AnyStrategy = AnyStrategy::Mte(Mte { split: Split::Fixed(5), tail: Tail::Descending });

/// A change of the pieces of a slot before they are sent.
type Change = fn(&mut Vec<SlotData>);

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

/// Runs two epochs with a device that misbehaves, and compares every batch with that of the host
/// alone.
fn survives(faults: Vec<(u32, Fault)>) -> Vec<EpochStats> {
    survives_within(faults, Duration::from_secs(30))
}

fn survives_within(faults: Vec<(u32, Fault)>, stall_timeout: Duration) -> Vec<EpochStats> {
    let folder = dataset(60);
    let (expected, _) = of_host_alone(folder.path(), 2);
    let network = Some(folder.path().to_path_buf());
    let device = FakeDevice::start(Behaviour { faults, network, ..Behaviour::default() });
    let mut config = with_device(folder.path(), &device, AnyStrategy::DeviceOnly(DeviceOnly));
    config.stall_timeout = stall_timeout;
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

#[test]
fn every_strategy_and_spool_gives_the_bytes_of_the_host_alone() {
    let folder = dataset(61);
    let (expected, host_stats) = of_host_alone(folder.path(), 2);
    let host = Loader::open(config(folder.path())).unwrap();
    let reference = Reference::of_host_only(host.job(), &host_stats);
    let spool_folder = tempfile::tempdir().unwrap();
    let file = SpoolKind::File { directory: spool_folder.path().to_path_buf() };
    for strategy in [
        AnyStrategy::DeviceOnly(DeviceOnly),
        MTE,
        AnyStrategy::MteFeedback(MteFeedback),
        AnyStrategy::Windowed(Windowed::default()),
        AnyStrategy::Wrr(Wrr),
        AnyStrategy::Auto(Auto::default()),
    ] {
        for kind in [SpoolKind::Memory, file.clone()] {
            let network = Some(folder.path().to_path_buf());
            let device = FakeDevice::start(Behaviour { network, ..Behaviour::default() });
            let mut config = with_device(folder.path(), &device, strategy);
            config.spool.kind = kind.clone();
            let mut loader = Loader::open(config).unwrap();
            let job = loader.job().clone();
            let mut runs = Vec::new();
            for (epoch, expected) in (0..).zip(&expected) {
                let (seen, stats) = consume(loader.start_epoch(epoch).unwrap());
                assert_eq!(&sorted(seen), expected, "{strategy:?} {kind:?}");
                assert_eq!(events_of(&stats), [], "{strategy:?} {kind:?}");
                if strategy == AnyStrategy::DeviceOnly(DeviceOnly) {
                    assert_eq!((stats.schedule.host_batches, stats.fetch.count), (0, 16));
                }
                runs.push(stats);
            }
            for judged in verify(strategy, &job, &runs, &reference) {
                if let Verdict::Failed { place } = judged.verdict {
                    panic!("{strategy:?} {:?}: {place}", judged.level);
                }
            }
        }
    }
    assert_eq!(std::fs::read_dir(spool_folder.path()).unwrap().count(), 0);
}

#[test]
fn a_batch_that_arrives_damaged_or_in_part_is_prepared_by_the_host() {
    let cuts: [Change; 4] = [
        // Half of the payload.
        |pieces| {
            let half = pieces[0].data.len() / 2;
            pieces[0].data.truncate(half);
        },
        // Without the header, the publish announces a slot that is incomplete.
        |pieces| drop(pieces.pop()),
        // A header alone.
        |pieces| drop(pieces.remove(0)),
        // Nothing at all.
        |pieces| pieces.clear(),
    ];
    let mut faults = vec![(2, Fault::Corrupt), (4, Fault::Torn)];
    faults.extend((6..).step_by(2).zip(cuts.map(Fault::Sends)));
    let stats = survives(faults);
    let events = events_of(&stats[0]);
    let refused = |it: &&EventKind| {
        matches!(it, EventKind::BatchFailed { fault: BatchFault::Refused { .. }, .. })
    };
    assert!(events.iter().filter(refused).count() >= 3, "{events:?}");
    assert_eq!(
        (events.iter().any(EventKind::is_device_loss), stats[0].schedule.host_batches),
        (false, 6)
    );
    assert_eq!(events_of(&stats[1]), []);
}

#[test]
fn a_device_that_sends_what_it_may_not_loses_its_link_and_costs_no_batch() {
    type IsCause = fn(&LossCause) -> bool;
    let out_of_order: IsCause =
        |it| matches!(it, LossCause::Breach { breach: Breach::OutOfOrder { .. } });
    let outside: IsCause =
        |it| matches!(it, LossCause::Breach { breach: Breach::OutsideOfSlot { .. } });
    let no_such_slot: IsCause =
        |it| matches!(it, LossCause::Breach { breach: Breach::NoSuchSlot { .. } });
    let broke: IsCause = |it| matches!(it, LossCause::LinkBroke { .. });
    let changes: [(Change, IsCause); 9] = [
        // The payload again, after it was complete.
        (
            |pieces| {
                let again = SlotData { offset: pieces[0].offset + 1, ..pieces[0].clone() };
                pieces.push(again);
            },
            out_of_order,
        ),
        (|pieces| pieces[0].offset = 4097, out_of_order),
        (|pieces| pieces[0].offset = u64::MAX, outside),
        (|pieces| pieces[0].slot = 60_000, no_such_slot),
        (|pieces| pieces[0].slot = u32::MAX, no_such_slot),
        (|pieces| pieces[0].data = vec![1; 1 << 19].into(), outside),
        (|pieces| pieces[0].data = Vec::new().into(), outside),
        (|pieces| pieces[0].offset = 5, outside),
        // More than a message may hold.
        (|pieces| pieces[0].data = vec![1; 3 << 20].into(), broke),
    ];
    for (change, is_cause) in changes {
        let stats = survives(vec![(4, Fault::Sends(change))]);
        let events = events_of(&stats[0]);
        let lost = events.iter().find_map(|event| match event {
            EventKind::DeviceLost { reason, .. } => Some(reason.clone()),
            _ => None,
        });
        assert!(lost.is_some_and(|it: Loss| is_cause(&it.cause)), "{events:?}");
        let events = events_of(&stats[1]);
        assert!(matches!(events[..], [EventKind::DeviceReopened { .. }]), "{events:?}");
    }
}

#[test]
fn a_slot_that_was_given_away_cannot_be_written_to_or_given_again() {
    // The slot of batch 3 is published again, and the piece for it is refused before that. The host
    // prepares the batch after a stall.
    for fault in [Fault::Steal, Fault::OldGeneration, Fault::OtherEpoch] {
        let stats = survives_within(vec![(4, fault)], Duration::from_millis(500));
        assert_eq!(stats[0].batches, 15, "{fault:?}");
    }
}

#[test]
fn a_lost_device_is_connected_to_again_and_a_silent_one_fenced_off() {
    let stats = survives(vec![(3, Fault::Drop)]);
    assert!(events_of(&stats[0]).iter().any(EventKind::is_device_loss));
    assert!(matches!(events_of(&stats[1])[..], [EventKind::DeviceReopened { .. }]));
    let folder = dataset(60);
    let (expected, _) = of_host_alone(folder.path(), 1);
    let (faults, network) = (vec![(3, Fault::Hang)], Some(folder.path().to_path_buf()));
    let device = FakeDevice::start(Behaviour { faults, network, ..Behaviour::default() });
    let mut config = with_device(folder.path(), &device, AnyStrategy::DeviceOnly(DeviceOnly));
    config.stall_timeout = Duration::from_millis(300);
    let mut loader = Loader::open(config).unwrap();
    let (seen, stats) = consume(loader.start_epoch(0).unwrap());
    assert_eq!(sorted(seen), expected[0]);
    assert!(stats.schedule.stalls > 0);
}

/// Opens a loader with a device at an address where `stranger` accepts one connection.
fn with_stranger<T>(
    strategy: AnyStrategy,
    stranger: impl FnOnce(TcpStream) + Send + 'static,
    then: impl FnOnce(Result<Loader, Error>) -> T,
) -> T {
    let folder = dataset(20);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stranger = std::thread::spawn(move || stranger(listener.accept().unwrap().0));
    let result = then(Loader::open(with_address(folder.path(), port, strategy)));
    stranger.join().unwrap();
    result
}

/// A configuration with a device at a port of this machine.
fn with_address(dataset: &Path, port: u16, strategy: AnyStrategy) -> LoaderConfig {
    let address = TcpAddress { host: "127.0.0.1".to_owned(), port };
    let mut config = config(dataset);
    config.strategy = strategy;
    config.devices = vec![DeviceSource::Remote(Box::new(RemoteDevice::new(address)))];
    config
}

#[test]
fn a_process_that_speaks_something_else_is_an_error() {
    for says in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"mplink_9________", b"220"] {
        let speak = move |mut stream: TcpStream| stream.write_all(says).unwrap();
        let error = with_stranger(DeviceOnly.into(), speak, Result::unwrap_err);
        assert!(matches!(error, Error::NotADevice { .. }), "{says:?}: {error}");
    }
}

/// All events of two epochs that the host prepares alone.
fn alone(loader: Result<Loader, Error>) -> [Vec<EventKind>; 2] {
    let mut loader = loader.unwrap();
    [0, 1].map(|epoch| {
        loader.reopen_devices().unwrap();
        let (seen, stats) = consume(loader.start_epoch(epoch).unwrap());
        assert_eq!((seen.len(), stats.schedule.host_batches), (5, 5));
        assert!(stats.schedule.device_lost);
        events_of(&stats)
    })
}

/// Checks the events of a device that was not reached at the start, and returns the error's name
/// and message.
fn of_absent_device([first, second]: [Vec<EventKind>; 2]) -> (String, String) {
    let [EventKind::DeviceLost { phase: Phase::Start, reason, remaining, remedy, .. }, again] =
        &first[..]
    else {
        panic!("{first:?}");
    };
    assert_eq!((remaining, remedy.is_some()), (&Remaining::Host, true), "{first:?}");
    let LossCause::NotOpened { cause, detail } = &reason.cause else { panic!("{reason:?}") };
    assert!(detail.contains("tcp://127.0.0.1:"), "{detail}");
    assert!(matches!(again, EventKind::DeviceNotReopened { .. }), "{first:?}");
    assert!(matches!(second[..], [EventKind::DeviceNotReopened { .. }]), "{second:?}");
    (cause.clone(), detail.clone())
}

#[test]
fn an_address_that_hangs_or_hangs_up_at_the_start_is_a_lost_device() {
    let greeting: &'static [u8] = &NETWORK_GREETING;
    for (says, hangs_up) in [(&b""[..], true), (b"", false), (greeting, true), (greeting, false)] {
        let stranger = move |mut stream: TcpStream| {
            stream.write_all(says).unwrap();
            if !hangs_up {
                // Until the host disconnects.
                let _ = stream.read_to_end(&mut Vec::new());
            }
        };
        let (cause, detail) = of_absent_device(with_stranger(DeviceOnly.into(), stranger, alone));
        let expected = if hangs_up { "it ended the connection" } else { "within 5s" };
        assert!(detail.contains(expected), "{says:?}: {detail}");
        assert_eq!(cause, "device_unresponsive", "{says:?}");
    }
}

/// A port of this machine without a listener.
fn unused_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_device_that_is_absent_at_the_start_is_lost_under_every_strategy() {
    let folder = dataset(20);
    for strategy in [
        DeviceOnly.into(),
        MTE,
        MteFeedback.into(),
        Windowed::default().into(),
        Wrr.into(),
        Auto::default().into(),
    ] {
        let notified = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&notified);
        let mut config = with_address(folder.path(), unused_port(), strategy);
        config.notify = Some(Notify::new(Duration::from_secs(600), move |event| {
            sink.lock().unwrap().push(event.clone());
        }));
        let (cause, _) = of_absent_device(alone(Loader::open(config)));
        assert_eq!(cause, "device_unreachable");
        let notified = std::mem::take(&mut *notified.lock().unwrap());
        assert!(matches!(notified[..], [EventKind::DeviceLost { .. }]), "{notified:?}");
    }
}

#[test]
fn a_name_without_an_address_is_a_lost_device_and_cleartext_to_another_machine_an_error() {
    let folder = dataset(20);
    let open = |host: &str| {
        let address = TcpAddress { host: host.to_owned(), port: 7000 };
        let mut config = config(folder.path());
        config.strategy = DeviceOnly.into();
        config.devices = vec![DeviceSource::Remote(Box::new(RemoteDevice::new(address)))];
        Loader::open(config)
    };
    // No name server knows a name of the domain `invalid` (RFC 6761).
    let mut loader = open("agent.invalid").unwrap();
    let (_, stats) = consume(loader.start_epoch(0).unwrap());
    let events = events_of(&stats);
    let EventKind::DeviceLost { reason, .. } = &events[0] else { panic!("{events:?}") };
    assert!(reason.to_string().contains("agent.invalid"), "{reason}");
    // Documentation addresses (RFC 5737, RFC 3849): nothing is sent to them.
    for host in ["192.0.2.1", "2001:db8::1"] {
        let error = open(host).unwrap_err();
        let Error::DeviceUntrusted { problem, .. } = &error else { panic!("{error}") };
        assert!(problem.contains("not be encrypted"), "{error}");
    }
}

#[test]
fn a_device_that_refuses_for_now_is_lost_and_one_that_refuses_the_job_is_an_error() {
    let folder = dataset(20);
    let network = || Some(folder.path().to_path_buf());
    let full = |code| {
        let refuses = Some((code, "it is full"));
        let device =
            FakeDevice::start(Behaviour { refuses, network: network(), ..Behaviour::default() });
        let strategy = AnyStrategy::DeviceOnly(DeviceOnly);
        Loader::open(with_device(folder.path(), &device, strategy)).map(|loader| (loader, device))
    };
    for code in [Code::ResourceExhausted, Code::Unavailable] {
        let (mut loader, device) = full(code).unwrap();
        let (seen, stats) = consume(loader.start_epoch(0).unwrap());
        assert_eq!((seen.len(), stats.schedule.host_batches), (5, 5), "{code:?}");
        let events = events_of(&stats);
        let EventKind::DeviceLost { reason, .. } = &events[0] else { panic!("{events:?}") };
        let LossCause::NotOpened { cause, detail } = &reason.cause else { panic!("{reason:?}") };
        assert!(cause == "device_refused" && detail.contains("it is full"), "{reason:?}");
        device.accept();
        loader.reopen_devices().unwrap();
        let (_, stats) = consume(loader.start_epoch(1).unwrap());
        assert!(matches!(events_of(&stats)[..], [EventKind::DeviceReopened { .. }]), "{code:?}");
        assert_eq!(stats.schedule.device_batches, 5);
    }
    for code in [Code::FailedPrecondition, Code::Unauthenticated, Code::OutOfRange] {
        let error = full(code).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::DeviceRefused { .. }), "{error}");
    }
}

#[test]
fn one_of_two_devices_that_is_absent_leaves_the_other_its_work() {
    let folder = dataset(60);
    let (expected, _) = of_host_alone(folder.path(), 1);
    let network = Some(folder.path().to_path_buf());
    let device = FakeDevice::start(Behaviour { network, ..Behaviour::default() });
    let mut config = with_device(folder.path(), &device, AnyStrategy::DeviceOnly(DeviceOnly));
    config.shared_dataset = true;
    config.devices.extend(with_address(folder.path(), unused_port(), Wrr.into()).devices);
    let mut loader = Loader::open(config).unwrap();
    let described: Vec<bool> = loader.devices().map(|device| device.is_some()).collect();
    assert_eq!(described, [true, false]);
    let (seen, stats) = consume(loader.start_epoch(0).unwrap());
    assert_eq!(sorted(seen), expected[0]);
    assert!(stats.schedule.devices[0].batches > 0 && stats.schedule.devices[1].is_lost);
    let events = events_of(&stats);
    let EventKind::DeviceLost { device, remaining, .. } = &events[0] else { panic!("{events:?}") };
    assert_eq!((device.number, remaining), (1, &Remaining::HostAndDevices));
}

#[test]
fn a_device_with_another_clock_changes_neither_batches_nor_times() {
    let folder = dataset(60);
    let (expected, _) = of_host_alone(folder.path(), 1);
    for clock_ns in [Some(0), Some(u64::MAX), Some(u64::MAX / 2)] {
        let network = Some(folder.path().to_path_buf());
        let device = FakeDevice::start(Behaviour { clock_ns, network, ..Behaviour::default() });
        let config = with_device(folder.path(), &device, AnyStrategy::DeviceOnly(DeviceOnly));
        let mut loader = Loader::open(config).unwrap();
        let (seen, stats) = consume(loader.start_epoch(0).unwrap());
        assert_eq!(sorted(seen), expected[0]);
        assert_eq!(events_of(&stats), [], "{clock_ns:?}");
        for record in &stats.records {
            assert!(record.prepare_start_ns <= record.prepare_end_ns, "{record:?}");
            assert!(record.prepare_end_ns <= record.ready_ns, "{record:?}");
            assert!(record.ready_ns <= record.consume_ns, "{record:?}");
        }
    }
}
