//! The host process: a training of several epochs, which checks every batch and every epoch.

use super::agent::{Location, ROOT_NAME, SharedLedger};
use super::dataset::Fixture;
use super::ledger::Ledger;
use super::plan::Plan;
use super::preparer::SlowPreparers;
use crate::machine::{self, current, with};
use meetpoint_diagnose::Diagnose;
use meetpoint_host::stats::{EpochStats, EventKind, Phase, Preparer};
use meetpoint_host::verify::{Reference, Verdict, verify};
use meetpoint_host::{
    Batch, DeviceSource, Epoch, Loader, LoaderConfig, RemoteDevice, SpoolConfig, SpoolKind,
    TcpAddress,
};
use meetpoint_scheduler::{Level, RecordKind, Source, StrategyName};
use meetpoint_storage::EngineKind;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time of a call that waits for a batch.
const BATCH_LIMIT: Duration = Duration::from_secs(60);

/// Maximum time to open or close a loader or an epoch, which may wait for each device.
const CALL_LIMIT: Duration = Duration::from_secs(120);

/// Maximum time from the end of an epoch until its slots are released.
const RELEASE_LIMIT: Duration = Duration::from_secs(1);

/// Time between two attempts to open a loader.
const RETRY: Duration = Duration::from_millis(500);

/// Attempts to open a loader.
const ATTEMPTS_MAX: u32 = 200;

/// Longer than any process is stopped, so that all of them run again.
const RECOVERY: Duration = Duration::from_secs(12);

/// What the host process needs.
#[derive(Clone)]
pub(super) struct Training {
    pub(super) plan: Arc<Plan>,
    pub(super) fixture: Arc<Fixture>,
    pub(super) ledger: SharedLedger,
    pub(super) locations: Vec<Location>,
    pub(super) folder: PathBuf,
}

/// Makes a call that must end within a time limit.
fn within<T>(limit: Duration, what: &'static str, call: impl FnOnce() -> T) -> T {
    let own = current().expect("a training is simulated");
    let limit_ns = u64::try_from(limit.as_nanos()).expect("limits are short");
    with(|machine| machine.promise(own, Some((limit_ns, what))));
    let result = call();
    with(|machine| machine.promise(own, None));
    result
}

impl Training {
    /// Runs the rest of the training.
    pub(super) fn run(&self) {
        let mut loader = self.open();
        self.check_job(&loader);
        while self.ledger.with(|ledger| ledger.epoch) < self.plan.epochs {
            self.epoch(&mut loader);
        }
        if self.plan.strategy.uses_devices() {
            self.ledger.with(|ledger| ledger.awaits_health = true);
            while !self.ledger.with(|ledger| ledger.is_healthy) {
                std::thread::sleep(RETRY);
            }
            std::thread::sleep(RECOVERY);
            // This epoch may detect that a link has ended without notice.
            self.epoch(&mut loader);
            within(CALL_LIMIT, "reopening devices", || loader.reopen_devices())
                .unwrap_or_else(|error| machine::fail(&format!("cannot reopen: {error}")));
            self.last_epoch(&mut loader);
        }
        within(CALL_LIMIT, "closing the loader", || drop(loader));
        self.ledger.with(|ledger| ledger.has_ended = true);
    }

    fn config(&self) -> LoaderConfig {
        let plan = &self.plan;
        let recipe = Arc::clone(&self.fixture.recipe);
        let spools = plan.devices.iter().map(|device| SpoolConfig {
            kind: match device.has_spool_file {
                true => SpoolKind::File { directory: self.folder.clone() },
                false => SpoolKind::Memory,
            },
            quota_bytes: device.spool_bytes,
        });
        let sources = self.locations.iter().map(|location| match location {
            Location::Sockets { offered, .. } => DeviceSource::Connect { socket: offered.clone() },
            Location::Ports { offered, .. } => {
                let address = TcpAddress { host: "127.0.0.1".to_owned(), port: *offered };
                let mut device = RemoteDevice::new(address);
                device.token_file = Some(self.folder.join("token"));
                device.root = Some(ROOT_NAME.to_owned());
                DeviceSource::Remote(Box::new(device))
            }
        });
        let dataset = self.fixture.dataset.clone();
        let mut config = LoaderConfig::new(dataset, recipe, plan.batch_size);
        config.devices = sources.collect();
        config.spools = (0..).zip(spools).collect();
        config.drop_last = plan.drops_last;
        config.seed = plan.job_seed;
        config.strategy = plan.strategy;
        config.workers = plan.workers;
        config.prefetch = plan.prefetch;
        config.memory_budget_bytes = plan.memory_bytes;
        config.preparers = Arc::new(SlowPreparers { sample_ns: plan.sample_ns });
        config.engine = EngineKind::Threads;
        config.read_depth = 2;
        config.stall_timeout = Duration::from_millis(plan.stall_timeout_ms);
        config.shared_dataset = plan.is_shared;
        config.run_ahead = if plan.runs_ahead { plan.epochs + 1 } else { 0 };
        config.verify_samples = true;
        config
    }

    /// Opens the loader, and like a supervisor tries again while a device cannot be reached.
    fn open(&self) -> Loader {
        for _ in 0..ATTEMPTS_MAX {
            let opened = within(CALL_LIMIT, "opening the loader", || Loader::open(self.config()));
            match opened {
                Ok(loader) => return loader,
                Err(error) => {
                    self.note(&format!("cannot open the loader ({}): {error}", error.cause()));
                    if !is_of_device(&error) {
                        machine::fail(&format!("opening the loader failed: {error}"));
                    }
                }
            }
            std::thread::sleep(RETRY);
        }
        machine::fail("the loader cannot be opened although all faults ended")
    }

    /// Adds a sentence to the trace, without the name of the folder, which differs from run to run.
    fn note(&self, text: &str) {
        let folder = self.folder.parent().unwrap_or(&self.folder).display().to_string();
        machine::note(&text.replace(&folder, ""));
    }

    /// The number of batches, and the samples of each, follow from the job alone.
    fn check_job(&self, loader: &Loader) {
        let batching = &loader.job().batching;
        let mut samples: Vec<u64> = Vec::new();
        let order = batching.order(0);
        for batch in 0..loader.batches_per_epoch() {
            samples.extend(batching.samples_of(&order, batch));
        }
        samples.sort_unstable();
        let count = samples.len();
        samples.dedup();
        if samples.len() != count || samples.is_empty() {
            machine::fail("an epoch of this job has a sample twice, or none");
        }
    }

    /// Consumes an epoch, or the rest of one, until it is complete or cancelled.
    fn epoch(&self, loader: &mut Loader) {
        let job = loader.job().clone();
        let batches = loader.batches_per_epoch();
        let (number, consumed, rest, cancels) = self
            .ledger
            .with(|ledger| (ledger.epoch, ledger.ranges(), ledger.rest.clone(), ledger.cancels));
        if consumed.len() == batches as usize {
            self.ledger.with(Ledger::end_epoch);
            return;
        }
        let is_whole = consumed.is_empty();
        machine::note(&format!("epoch {number} begins, {} batches consumed", consumed.len()));
        let begun = within(CALL_LIMIT, "beginning an epoch", || match is_whole {
            true => loader.start_epoch(number),
            false => loader.resume_epoch(number, &consumed, rest),
        });
        let mut epoch = begun.unwrap_or_else(|error| {
            machine::fail(&format!("epoch {number} cannot begin: {error}"))
        });
        let cancel = self.plan.cancels.get(cancels).filter(|cancel| cancel.epoch == number);
        let mut retained = VecDeque::new();
        let mut left = cancel.map(|cancel| cancel.after);
        while left != Some(0) {
            let Some(batch) = self.next(&mut epoch, number) else { break };
            self.check_batch(&batch, number, batches, &job.batching);
            let rest = epoch.rest_record();
            self.ledger.with(|ledger| ledger.rest = rest);
            std::thread::sleep(Duration::from_nanos(self.plan.step_ns));
            retained.push_back(batch);
            while retained.len() > self.plan.retained {
                self.check_bytes(&retained.pop_front().expect("there are more than none"));
            }
            left = left.map(|left| left - 1);
        }
        if let Some(cancel) = cancel.filter(|_| left == Some(0)) {
            machine::note(&format!("epoch {number} is cancelled"));
            within(CALL_LIMIT, "cancelling an epoch", || drop(epoch));
            self.ledger.with(|ledger| {
                ledger.cancels += 1;
                if !cancel.resumes {
                    ledger.begin_again();
                }
            });
            return;
        }
        retained.iter().for_each(|batch| self.check_bytes(batch));
        drop(retained);
        let stats = within(CALL_LIMIT, "ending an epoch", || epoch.finish());
        self.check_epoch(&stats, &job, is_whole);
        self.ledger.with(Ledger::end_epoch);
    }

    fn next(&self, epoch: &mut Epoch<'_>, number: u32) -> Option<Batch> {
        let next = within(BATCH_LIMIT, "the next batch", || epoch.next_batch());
        next.unwrap_or_else(|error| machine::fail(&format!("epoch {number} fails: {error}")))
    }

    /// C0, C1, C2: a batch is delivered once, has the samples of its index, and each sample has the
    /// bytes that one thread prepares without any device.
    fn check_batch(
        &self,
        batch: &Batch,
        epoch: u32,
        batches: u32,
        batching: &meetpoint_format::batching::Batching,
    ) {
        let index = batch.index();
        let what = format!("batch {index} of epoch {epoch}, from {:?}", batch.source());
        if index >= batches || batch.epoch() != epoch {
            machine::fail(&format!("{what}: no such batch"));
        }
        let is_device = matches!(batch.source(), Source::Device(_));
        let is_new = self.ledger.with(|ledger| {
            ledger.batches += 1;
            ledger.device_batches += u64::from(is_device);
            ledger.consumed.insert(index)
        });
        if !is_new {
            machine::fail(&format!("{what}: consumed twice"));
        }
        let expected: Vec<u64> = batching.samples_of(&batching.order(epoch), index).collect();
        if batch.samples() != expected {
            machine::fail(&format!("{what}: has other samples"));
        }
        self.check_bytes(batch);
        machine::note(&format!("consumes {what}"));
    }

    /// C2: each sample of a batch has the right bytes, now as well as at its delivery.
    fn check_bytes(&self, batch: &Batch) {
        let (index, epoch, bytes) = (batch.index(), batch.epoch(), batch.bytes());
        let of_sample = bytes.len() / batch.samples().len().max(1);
        for (sample, found) in batch.samples().iter().zip(bytes.chunks(of_sample.max(1))) {
            if self.fixture.sample(self.plan.job_seed, epoch, *sample) != Some(found) {
                let source = batch.source();
                machine::fail(&format!(
                    "batch {index} of epoch {epoch}, from {source:?}: sample {sample} has other \
                     bytes"
                ));
            }
        }
    }

    /// C0, C1, C3 and C4 of the epoch, as far as its strategy guarantees them, by the verification
    /// of the host.
    fn check_epoch(&self, stats: &EpochStats, job: &meetpoint_prepare::Job, is_whole: bool) {
        let number = stats.epoch;
        for event in &stats.events {
            self.note(&format!("event: {:?}", event.kind));
        }
        let consumed = self.ledger.with(|ledger| ledger.consumed.len());
        if !stats.is_complete || consumed != stats.batches as usize {
            machine::fail(&format!("epoch {number} ended after {consumed} of {}", stats.batches));
        }
        if !is_whole {
            return;
        }
        let nothing = Reference::merge([]);
        let verdicts = verify(self.plan.strategy, job, std::slice::from_ref(stats), &nothing);
        for verdict in verdicts {
            let is_checked = matches!(verdict.level, Level::C0 | Level::C1 | Level::C3 | Level::C4);
            if let (true, Verdict::Failed { place }) = (is_checked, &verdict.verdict) {
                let level = verdict.level;
                machine::fail(&format!("epoch {number} violates {level:?}: {place:?}"));
            }
        }
    }

    /// An epoch without faults, after all faults ended: every device works, no slot was lost, and
    /// the record of the epoch replays it.
    fn last_epoch(&self, loader: &mut Loader) {
        let job = loader.job().clone();
        let number = self.plan.epochs;
        self.ledger.with(|ledger| ledger.epoch = number);
        let (order, stats) = self.whole_epoch(loader, number);
        self.check_epoch(&stats, &job, true);
        if let Some(event) = stats.events.iter().find(|event| is_loss(&event.kind)) {
            machine::fail(&format!("a device is still lost after all faults: {:?}", event.kind));
        }
        self.check_slots(loader);
        // Other strategies may leave all of a short epoch to the host.
        let name = self.plan.strategy.name();
        if name == StrategyName::DeviceOnly && stats.schedule.device_batches == 0 {
            machine::fail("no device was used after all faults ended");
        }
        let Some(record) = stats.schedule.record.clone() else { return };
        if name.record() == RecordKind::None {
            return;
        }
        self.ledger.with(Ledger::begin_again);
        loader.set_replay(Some(record));
        let (again, stats) = self.whole_epoch(loader, number);
        self.check_epoch(&stats, &job, true);
        if again != order {
            machine::fail(&format!("the record was replayed as {again:?}, not {order:?}"));
        }
        self.check_slots(loader);
    }

    /// Consumes an epoch from its beginning; returns the order of batches and their sources.
    fn whole_epoch(&self, loader: &mut Loader, number: u32) -> (Vec<(u32, Preparer)>, EpochStats) {
        let job = loader.job().clone();
        let batches = loader.batches_per_epoch();
        self.ledger.with(Ledger::begin_again);
        let begun = within(CALL_LIMIT, "beginning an epoch", || loader.start_epoch(number));
        let mut epoch = begun.unwrap_or_else(|error| {
            machine::fail(&format!("epoch {number} cannot begin: {error}"))
        });
        while let Some(batch) = self.next(&mut epoch, number) {
            self.check_batch(&batch, number, batches, &job.batching);
            std::thread::sleep(Duration::from_nanos(self.plan.step_ns));
        }
        let stats = within(CALL_LIMIT, "ending an epoch", || epoch.finish());
        (stats.records.iter().map(|record| (record.batch, record.source)).collect(), stats)
    }

    /// When no batch is in use, slots of spools are released. A thread that fetches a batch which
    /// is not needed any more notices that within [`RELEASE_LIMIT`].
    fn check_slots(&self, loader: &Loader) {
        let deadline = Instant::now() + RELEASE_LIMIT;
        for device in 0..loader.slots_in_use().len() {
            while let Some(slots @ 1..) = loader.slots_in_use()[device] {
                if Instant::now() >= deadline {
                    machine::fail(&format!("device {device}: {slots} slots were not released"));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

impl Ledger {
    fn end_epoch(&mut self) {
        self.epoch += 1;
        self.begin_again();
    }

    fn begin_again(&mut self) {
        self.consumed.clear();
        self.rest = None;
    }
}

/// Whether an error says that a device cannot be used.
fn is_of_device(error: &meetpoint_host::Error) -> bool {
    error.cause().contains("device")
}

/// Whether an event says that a device cannot be used.
fn is_loss(kind: &EventKind) -> bool {
    matches!(
        kind,
        // A link that was lost between epochs was reopened, or there is another event.
        EventKind::DeviceLost { phase: Phase::Start | Phase::Epoch, .. }
            | EventKind::DeviceNotReopened { .. }
            | EventKind::DeviceGivenUp { .. }
            | EventKind::DeviceStalled { .. }
    )
}
