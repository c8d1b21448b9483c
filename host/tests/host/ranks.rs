//! Ranks as threads: equal steps from the same kind of source, and no wait for a rank is endless.

use crate::support::device::{Behaviour, FakeDevice, Fault};
use crate::support::{config, dataset_in_parts};
use meetpoint_host::collective::{CollectiveError, Threads};
use meetpoint_host::group::{self, GroupCallbacks, Progress, RankOutcome};
use meetpoint_host::stats::{EventKind, LossCause, Phase};
use meetpoint_host::verify::{RankRuns, Reference, Verdict, verify_ranks};
use meetpoint_host::{
    Accelerator, Batch, DeviceSource, Error, Loader, LoaderConfig, Null, SpawnDevice, StopHandle,
};
use meetpoint_kernels::Cpu;
use meetpoint_scheduler::{
    AnyStrategy, Auto, DeviceOnly, Goal, HostOnly, Level, Mte, MteFeedback, Order, Split, Tail,
    Wrr, WrrFrozen,
};
use meetpoint_storage::EngineKind;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const MTE: AnyStrategy =
    AnyStrategy::Mte(Mte { split: Split::EqualFinish, tail: Tail::Descending });

const STRATEGIES: [AnyStrategy; 6] = [
    AnyStrategy::HostOnly(HostOnly),
    AnyStrategy::Wrr(Wrr),
    MTE,
    AnyStrategy::WrrFrozen(WrrFrozen),
    AnyStrategy::MteFeedback(MteFeedback),
    AnyStrategy::Auto(Auto { goal: Goal::Throughput, order: Order::Any }),
];

/// Runs ranks whose accelerators take no time, each with devices of its own.
struct Ranks<'d> {
    devices: &'d [Vec<FakeDevice>],
    consumed: AtomicU32,
}

impl GroupCallbacks for Ranks<'_> {
    fn devices(&self, rank: u32) -> Option<Vec<DeviceSource>> {
        let own = self.devices.get(rank as usize)?;
        let source = |device: &FakeDevice| DeviceSource::Connect { socket: device.socket() };
        Some(own.iter().map(source).collect())
    }

    fn accelerator(&self, _loader: &Loader) -> Box<dyn Accelerator> {
        Box::new(Null)
    }

    fn before_epoch(&self, _loader: &mut Loader, _epoch: u32) {}

    fn consumed(&self, progress: Progress) {
        assert!(progress.consumed <= progress.batches);
        self.consumed.fetch_add(1, Ordering::SeqCst);
    }
}

fn ranks_config(dataset: &Path, strategy: AnyStrategy, ranks: u32) -> LoaderConfig {
    let mut config = config(dataset);
    config.strategy = strategy;
    config.ranks = ranks;
    config.stall_timeout = Duration::from_secs(30);
    config.memory_budget_bytes = 256 << 20;
    // The callbacks return the devices of each rank.
    config.devices = vec![DeviceSource::Connect { socket: "nowhere".into() }];
    config
}

fn judge(strategy: AnyStrategy, outcomes: &[RankOutcome], epochs: u32) {
    let stop = StopHandle::new();
    let reference = Reference::merge(outcomes.iter().map(|rank| {
        Reference::prepare(&rank.job, 0..epochs, EngineKind::Auto, Cpu::Portable, &stop).unwrap()
    }));
    let runs: Vec<RankRuns<'_>> =
        outcomes.iter().map(|rank| RankRuns { job: &rank.job, runs: &rank.epochs }).collect();
    for judged in verify_ranks(strategy, &runs, &reference) {
        use Level::{C0, C1, C2, C5, C6};
        let must_hold = [C0, C1, C2, C5, C6].contains(&judged.level);
        match judged.verdict {
            Verdict::Verified { .. } => {}
            Verdict::NotChecked { .. } | Verdict::NotClaimed => {
                assert!(!must_hold, "{strategy:?} {:?}", judged.level);
            }
            Verdict::Failed { place } => panic!("{strategy:?} {:?}: {place}", judged.level),
        }
    }
}

fn devices(ranks: u32, behaviour: impl Fn(u32) -> Behaviour) -> Vec<Vec<FakeDevice>> {
    (0..ranks).map(|rank| vec![FakeDevice::start(behaviour(rank))]).collect()
}

#[test]
fn ranks_take_equal_steps_from_the_same_kind_of_source() {
    // 43 batches: with 2 and 4 ranks the last steps are incomplete.
    let folder = dataset_in_parts(170, 2);
    for ranks in [2, 4] {
        for strategy in STRATEGIES {
            for workers in [0, 1] {
                let devices = devices(ranks, |rank| Behaviour {
                    pause: Duration::from_millis(u64::from(rank)),
                    ..Behaviour::default()
                });
                let mut config = ranks_config(folder.path(), strategy, ranks);
                config.workers = workers;
                let callbacks = Ranks { devices: &devices, consumed: AtomicU32::new(0) };
                let outcomes = group::run(&config, 2, &callbacks).unwrap();
                assert_eq!(outcomes.len(), ranks as usize);
                let steps = 43_u32.div_ceil(ranks);
                assert_eq!(callbacks.consumed.into_inner(), 2 * ranks * steps);
                judge(strategy, &outcomes, 2);
            }
        }
    }
}

#[test]
fn a_device_that_dies_at_one_rank_costs_no_batch_and_no_rank() {
    let folder = dataset_in_parts(160, 2);
    for strategy in STRATEGIES {
        let devices = devices(2, |rank| Behaviour {
            faults: if rank == 1 { vec![(3, Fault::Drop)] } else { vec![] },
            ..Behaviour::default()
        });
        let config = ranks_config(folder.path(), strategy, 2);
        let callbacks = Ranks { devices: &devices, consumed: AtomicU32::new(0) };
        let outcomes = group::run(&config, 2, &callbacks).unwrap();
        judge(strategy, &outcomes, 2);
    }
}

/// A rank that waits for its device sends heartbeats, so that no other rank times out, however long
/// the device takes and however often it stalls.
#[test]
fn a_rank_that_waits_for_its_device_longer_than_ranks_wait_for_each_other_is_not_given_up() {
    let folder = dataset_in_parts(40, 2);
    let devices = devices(2, |rank| Behaviour {
        faults: if rank == 1 { vec![(3, Fault::Hang)] } else { vec![] },
        ..Behaviour::default()
    });
    let mut config = ranks_config(folder.path(), AnyStrategy::DeviceOnly(DeviceOnly), 2);
    config.rank_timeout = Duration::from_secs(2);
    config.stall_timeout = Duration::from_secs(5);
    let callbacks = Ranks { devices: &devices, consumed: AtomicU32::new(0) };
    let outcomes = group::run(&config, 1, &callbacks).unwrap();
    let stalls = |rank: &RankOutcome| rank.epochs[0].schedule.devices[0].stalls;
    assert_eq!(outcomes.iter().map(stalls).collect::<Vec<_>>(), [0, 1]);
    judge(config.strategy, &outcomes, 1);
}

#[test]
fn a_rank_that_never_comes_is_named() {
    let folder = dataset_in_parts(80, 2);
    let device = FakeDevice::start(Behaviour::default());
    let mut config = ranks_config(folder.path(), AnyStrategy::Wrr(Wrr), 3);
    config.devices = vec![DeviceSource::Connect { socket: device.socket() }];
    config.collective = Some(Threads::new(3));
    config.rank_timeout = Duration::from_millis(300);
    config.rank = 1;
    let mut loader = Loader::open(config).unwrap();
    let mut epoch = loader.start_epoch(0).unwrap();
    let error = loop {
        match epoch.next_batch() {
            Ok(batch) => assert!(batch.is_some(), "the others never came"),
            Err(error) => break error,
        }
    };
    let Error::Collective(CollectiveError::Missing { ranks, .. }) = &error else {
        panic!("{error}");
    };
    assert_eq!(ranks, &[0, 2]);
    assert!(error.to_string().contains("ranks 0 and 2 missed decision 0"), "{error}");
    assert!(matches!(epoch.next_batch(), Err(Error::EpochFailed)));
}

/// Panics at a rank's third batch.
struct Panics;

impl Accelerator for Panics {
    fn step(&mut self, batch: &Batch) {
        assert!(batch.samples().is_empty(), "a broken accelerator");
    }
}

struct OneOf<'d>(Ranks<'d>, u32);

impl GroupCallbacks for OneOf<'_> {
    fn devices(&self, rank: u32) -> Option<Vec<DeviceSource>> {
        self.0.devices(rank)
    }

    fn accelerator(&self, loader: &Loader) -> Box<dyn Accelerator> {
        if loader.config().rank == self.1 { Box::new(Panics) } else { Box::new(Null) }
    }

    fn before_epoch(&self, _loader: &mut Loader, _epoch: u32) {}

    fn consumed(&self, _progress: Progress) {}
}

#[test]
fn a_rank_that_panics_is_named_and_ends_the_others() {
    let folder = dataset_in_parts(160, 2);
    let devices = devices(4, |_| Behaviour::default());
    let config = ranks_config(folder.path(), AnyStrategy::Wrr(Wrr), 4);
    let ranks = Ranks { devices: &devices, consumed: AtomicU32::new(0) };
    let error = group::run(&config, 1, &OneOf(ranks, 2)).unwrap_err();
    let Error::RankPanicked { rank: 2, message } = &error else { panic!("{error}") };
    assert!(message.contains("a broken accelerator"), "{message}");
    assert!(!config.stop.is_stopped(), "the caller's own switch is its own");
}

#[test]
fn a_rank_that_cannot_be_opened_ends_all() {
    let folder = dataset_in_parts(160, 2);
    let devices = devices(2, |_| Behaviour::default());
    let mut config = ranks_config(folder.path(), AnyStrategy::Wrr(Wrr), 2);
    config.memory_budget_bytes = 4 << 20;
    let callbacks = Ranks { devices: &devices, consumed: AtomicU32::new(0) };
    let error = group::run(&config, 1, &callbacks).unwrap_err().to_string();
    assert!(error.contains("the memory budget of 4 MiB is too small"), "{error}");
}

#[test]
fn a_device_process_that_never_listens_is_lost_to_all_ranks() {
    let folder = dataset_in_parts(32, 1);
    let mut config = ranks_config(folder.path(), AnyStrategy::DeviceOnly(DeviceOnly), 2);
    let arguments = ["-c", "exec sleep 600"].map(Into::into).to_vec();
    config.devices =
        vec![DeviceSource::Spawn(SpawnDevice { program: "/bin/sh".into(), arguments })];
    let callbacks = Ranks { devices: &[], consumed: AtomicU32::new(0) };
    let outcomes = group::run(&config, 1, &callbacks).unwrap();
    for outcome in &outcomes {
        let stats = &outcome.epochs[0];
        assert!(stats.schedule.device_lost && stats.schedule.host_batches > 0);
        let EventKind::DeviceLost { phase: Phase::Start, reason, .. } = &stats.events[0].kind
        else {
            panic!("{:?}", stats.events);
        };
        let LossCause::NotOpened { cause, detail } = &reason.cause else { panic!("{reason:?}") };
        assert_eq!(cause, "device_unresponsive");
        assert!(detail.starts_with("the shared device was lost"), "{detail}");
    }
}

#[test]
fn ranks_without_a_collective_are_refused() {
    let folder = dataset_in_parts(80, 2);
    let mut config = ranks_config(folder.path(), AnyStrategy::HostOnly(HostOnly), 2);
    let error = Loader::open(config.clone()).unwrap_err();
    assert!(matches!(error, Error::Setting { field: "ranks", got: 2, .. }), "{error}");
    config.collective = Some(Threads::new(2));
    config.rank = 2;
    let error = Loader::open(config).unwrap_err().to_string();
    assert!(error.contains("rank is 2"), "{error}");
}
