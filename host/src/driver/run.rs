//! One epoch under way: real events to the scheduler, its decisions to whoever they concern.

use crate::Error;
use crate::batch::{Contents, Memory};
use crate::clock::monotonic_ns;
use crate::device_link::{Session, SlotLease};
use crate::events::{Event, EventLog, Failures};
use crate::stats::{BatchCheck, BatchRecord, Meter, Preparer};
use meetpoint_format::wire::{self, Meters, PROGRESS_INTERVAL_MS};
use meetpoint_prepare::PrepareStats;
use meetpoint_scheduler::{
    BatchIndex, Config, DeviceDecision, DeviceId, Epoch as Scheduler, Generation, HostDecision,
    Outcome, Source, Summary,
};
use meetpoint_storage::Counters;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The one device of a run.
const DEVICE: DeviceId = DeviceId(0);

/// A device that fails on so many batches one after another gets no more work in the epoch: its
/// spool is full for good, its memory too small, or what it writes does not arrive.
const FAILURES_IN_A_ROW_MAX: u32 = 3;

/// A device with work speaks more often than this, or it hangs.
const QUIET_MAX_NS: u64 = 4 * PROGRESS_INTERVAL_MS * 1_000_000;

/// Records for which room is made beforehand.
const RECORDS_RESERVED: usize = 1 << 16;

/// What an epoch is begun with.
#[derive(Debug)]
pub(crate) struct RunSetup {
    pub(crate) epoch: u32,
    pub(crate) config: Config,
    /// The link; `None` where there is none, or it could not be opened again.
    pub(crate) session: Option<Arc<Session>>,
    /// What happened since the epoch before, as sentences.
    pub(crate) events: Vec<String>,
}

/// A batch in host memory.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) memory: Memory,
    pub(crate) contents: Contents,
    /// When its preparation began and ended, of [`monotonic_ns`].
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// Where the host prepared it.
    pub(crate) stats: Option<PrepareStats>,
    /// CPU time of its samples' checksums.
    pub(crate) verify_ns: u64,
}

/// A published slot that is to be brought into host memory.
#[derive(Debug)]
pub(crate) struct FetchTask {
    pub(crate) serial: u64,
    pub(crate) epoch: u32,
    pub(crate) batch: BatchIndex,
    pub(crate) generation: Generation,
    pub(crate) published: PublishedSlot,
}

/// A slot that waits to be fetched, and when the device worked on it.
#[derive(Debug)]
pub(crate) struct PublishedSlot {
    /// `None` once it was taken for fetching.
    pub(crate) lease: Option<SlotLease>,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// A batch that can be consumed.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) prepared: Prepared,
    pub(crate) ready_ns: u64,
}

/// Times of an epoch.
#[derive(Debug)]
pub(crate) struct RunMeters {
    pub(crate) wait: Meter,
    pub(crate) prepare: Meter,
    pub(crate) read: Meter,
    pub(crate) step: Meter,
    pub(crate) fetch: Meter,
    pub(crate) verify_ns: u64,
    pub(crate) counters: Counters,
}

/// One epoch.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) serial: u64,
    pub(crate) epoch: u32,
    /// The scheduler's zero, of [`monotonic_ns`].
    pub(crate) zero_ns: u64,
    pub(super) scheduler: Scheduler,
    session: Option<Arc<Session>>,
    /// The device's totals when the epoch began.
    pub(crate) meters_before: Meters,
    published: BTreeMap<u32, PublishedSlot>,
    pub(super) ready: BTreeMap<u32, Ready>,
    failure: Option<Error>,
    has_failed: bool,
    stalls_seen: u32,
    /// When the device was last heard of or given work.
    heard_ns: u64,
    /// The device was fenced off while it hung, and was not heard of since.
    is_silent: bool,
    /// Batches that the device failed on.
    failures: Failures,
    /// Batches that the device could not prepare since it last published one.
    unprepared_in_a_row: u32,
    /// Published batches that were refused since one was accepted.
    refused_in_a_row: u32,
    pub(crate) slots_published: u64,
    log: EventLog,
    pub(crate) records: Vec<BatchRecord>,
    pub(crate) checks: Vec<BatchCheck>,
    pub(crate) samples: u64,
    pub(crate) meters: RunMeters,
    /// End of the last step, once the consumer asked again.
    pub(crate) ended_ns: Option<u64>,
}

impl Run {
    pub(super) fn new(serial: u64, setup: RunSetup) -> Result<Self, Error> {
        let batches = (setup.config.batches as usize).min(RECORDS_RESERVED);
        let mut log = EventLog::default();
        setup.events.into_iter().for_each(|text| log.add(0, text));
        let meters_before = setup.session.as_ref().map(|it| it.meters()).unwrap_or_default();
        let [wait, prepare, read, step, fetch] = std::array::from_fn(|_| Meter::new());
        Ok(Self {
            serial,
            epoch: setup.epoch,
            scheduler: Scheduler::new(setup.config)?,
            zero_ns: monotonic_ns(),
            session: setup.session,
            meters_before,
            published: BTreeMap::new(),
            ready: BTreeMap::new(),
            failure: None,
            has_failed: false,
            stalls_seen: 0,
            heard_ns: 0,
            is_silent: false,
            failures: Failures::default(),
            unprepared_in_a_row: 0,
            refused_in_a_row: 0,
            slots_published: 0,
            log,
            records: Vec::with_capacity(batches),
            checks: Vec::new(),
            samples: 0,
            meters: RunMeters {
                wait,
                prepare,
                read,
                step,
                fetch,
                verify_ns: 0,
                counters: Counters::default(),
            },
            ended_ns: None,
        })
    }

    /// Nanoseconds since the epoch began.
    pub(super) fn now(&self) -> u64 {
        monotonic_ns().saturating_sub(self.zero_ns)
    }

    pub(crate) fn summary(&self) -> Summary {
        self.scheduler.summary()
    }

    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    pub(crate) fn uses(&self, session: &Arc<Session>) -> bool {
        self.session.as_ref().is_some_and(|own| Arc::ptr_eq(own, session))
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Gives the device its first work, or gives it up at once where there is none.
    pub(super) fn begin(&mut self) {
        let device = self.scheduler.config().devices.first().copied();
        match (&self.session, device) {
            (Some(session), Some(device)) => {
                session.start_epoch(self.epoch, device.first_generation);
            }
            (None, Some(_)) => self.scheduler.device_lost(0, DEVICE),
            (_, None) => {}
        }
        self.pump();
    }

    /// Passes on what the device should be told, and notes what the scheduler found out.
    pub(super) fn pump(&mut self) {
        let now = self.now();
        let mut was_revoked = false;
        loop {
            let decision = self.scheduler.device(now, DEVICE);
            let Some(session) = &self.session else { break };
            match decision {
                DeviceDecision::Work(run, generation) => {
                    self.heard_ns = now;
                    session.work(self.epoch, run, generation);
                }
                DeviceDecision::Revoke(generation) => {
                    was_revoked = true;
                    session.revoke(self.epoch, generation.0);
                }
                // The device waits for the next epoch by itself.
                DeviceDecision::Stop => {}
                DeviceDecision::Idle => break,
            }
        }
        let summary = self.scheduler.summary();
        if summary.stalls > self.stalls_seen {
            self.note_stall(now, &summary);
        } else if was_revoked {
            let quiet_ns = now.saturating_sub(self.heard_ns);
            self.is_silent = quiet_ns > QUIET_MAX_NS;
            let quiet = Duration::from_nanos(quiet_ns);
            let why = match self.is_silent {
                true => format!(", not having heard of it for {quiet:.1?}"),
                false => ": it is sooner done with it".to_owned(),
            };
            let text = format!("the host took back what the device had not finished{why}");
            self.log.add(now, text);
        }
    }

    fn note_stall(&mut self, now: u64, summary: &Summary) {
        self.stalls_seen = summary.stalls;
        self.is_silent = true;
        let config = self.scheduler.config();
        let silence = Duration::from_nanos(config.stall_timeout_ns);
        let (stalls, stalls_max) = (summary.stalls, config.stalls_max);
        let what_next = if summary.device_lost {
            "it gets no more work in this epoch"
        } else {
            "it gets work again when it is heard of"
        };
        let text = format!(
            "the device had work and published nothing in time (it may be silent for \
             {silence:?}): its unfinished batches went back to the host, stall {stalls} of \
             {stalls_max}; {what_next}"
        );
        self.log.add(now, text);
        if summary.device_lost {
            self.published.clear();
        }
    }

    /// The device spoke.
    fn heard(&mut self) {
        self.heard_ns = self.now();
        self.is_silent = false;
    }

    /// Whether the device was fenced off while it hung, and was not heard of since.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// A batch of the device has to be prepared by the host.
    fn note_failure(&mut self, now: u64, reason: &str, text: String) {
        if self.failures.enter(reason) {
            self.log.add(now, text);
        }
    }

    /// The device failed on as many batches one after another: it gets no more work.
    fn give_up_device(&mut self, now: u64, why: &str) {
        // Whoever failed for good fails on what it was already given, too.
        let generation = self.scheduler.summary().last_generation;
        self.scheduler.device_lost(now, DEVICE);
        self.published.clear();
        if let Some(session) = &self.session {
            session.revoke(self.epoch, generation.saturating_add(1));
        }
        let text = format!(
            "the device failed on {FAILURES_IN_A_ROW_MAX} batches one after another ({why}): it \
             gets no more work in this epoch; the host goes on alone"
        );
        self.log.add(now, text);
    }

    /// Everything that happened, for the report.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        let now = self.now();
        for text in self.failures.untold() {
            self.log.add(now, text);
        }
        std::mem::take(&mut self.log).finish(now)
    }

    // The host's end.

    pub(super) fn host(&mut self) -> HostDecision {
        let decision = self.scheduler.host(self.now());
        if let HostDecision::Prepare(_) = decision {
            self.pump();
        }
        decision
    }

    pub(super) fn host_finished(&mut self, batch: BatchIndex, prepared: Prepared) {
        let now = self.now();
        self.meters.prepare.add(prepared.end_ns.saturating_sub(prepared.start_ns));
        if let Some(stats) = prepared.stats {
            self.meters.read.add(stats.read_wait_ns);
        }
        if self.scheduler.host_finished(now, batch) == Outcome::Accepted {
            self.make_ready(batch, prepared, now);
        }
    }

    /// A thread has read this much more.
    pub(super) fn read(&mut self, more: Counters) {
        let total = &mut self.meters.counters;
        total.bytes_read_device += more.bytes_read_device;
        total.bytes_read += more.bytes_read;
        total.bytes_written += more.bytes_written;
    }

    /// The epoch cannot go on; the first reason counts.
    pub(super) fn fail(&mut self, error: Error) {
        if !self.has_failed {
            self.has_failed = true;
            self.failure = Some(error);
        }
    }

    /// Why the epoch cannot go on: the reason once, then that there was one.
    pub(super) fn check_failure(&mut self) -> Result<(), Error> {
        match self.failure.take() {
            Some(error) => Err(error),
            None if self.has_failed => Err(Error::EpochFailed),
            None => Ok(()),
        }
    }

    // The device's end.

    pub(super) fn published(&mut self, message: &wire::Published, lease: SlotLease) {
        self.slots_published += 1;
        self.heard();
        if message.epoch != self.epoch {
            return;
        }
        let now = self.now();
        let (batch, generation) = (BatchIndex(message.batch), Generation(message.generation));
        if self.scheduler.device_published(now, DEVICE, batch, generation) == Outcome::Accepted {
            let slot = PublishedSlot {
                lease: Some(lease),
                start_ns: message.started_ns,
                end_ns: message.published_ns,
            };
            self.published.insert(batch.0, slot);
            self.unprepared_in_a_row = 0;
        }
    }

    pub(super) fn progress(&mut self) {
        self.heard();
        self.scheduler.device_progress(self.now(), DEVICE);
    }

    pub(super) fn failed(&mut self, message: &wire::Failed) {
        self.heard();
        if message.epoch != self.epoch {
            return;
        }
        let now = self.now();
        let (batch, generation) = (BatchIndex(message.batch), Generation(message.generation));
        if self.scheduler.device_rejected(now, DEVICE, batch, generation) == Outcome::Accepted {
            self.published.remove(&batch.0);
            let (batch, reason) = (batch.0, message.reason.trim());
            let text = format!(
                "the device could not prepare batch {batch} ({reason}); the host prepares it"
            );
            self.note_failure(now, reason, text);
            self.unprepared_in_a_row += 1;
            if self.unprepared_in_a_row == FAILURES_IN_A_ROW_MAX {
                self.give_up_device(now, reason);
            }
        }
    }

    pub(super) fn lost(&mut self, why: &str) {
        let now = self.now();
        self.scheduler.device_lost(now, DEVICE);
        self.published.clear();
        self.log.add(now, format!("the device was lost: {why}; the host goes on alone"));
    }

    /// The slot that should be fetched next.
    pub(super) fn fetch(&mut self) -> Option<FetchTask> {
        let (batch, _, generation) = self.scheduler.fetch(self.now())?;
        let published = self
            .published
            .remove(&batch.0)
            .expect("what the scheduler wants fetched was published and not taken back");
        Some(FetchTask { serial: self.serial, epoch: self.epoch, batch, generation, published })
    }

    pub(super) fn fetched(&mut self, task: &FetchTask, prepared: Prepared) {
        let now = self.now();
        let outcome = self.scheduler.device_fetched(now, DEVICE, task.batch, task.generation);
        if outcome == Outcome::Accepted {
            let published = task.published.end_ns.saturating_sub(self.zero_ns);
            self.refused_in_a_row = 0;
            self.meters.fetch.add(now.saturating_sub(published));
            self.make_ready(task.batch, prepared, now);
        }
    }

    pub(super) fn refused(&mut self, task: &FetchTask, why: &str) {
        let now = self.now();
        let outcome = self.scheduler.device_rejected(now, DEVICE, task.batch, task.generation);
        if outcome == Outcome::Accepted {
            let batch = task.batch.0;
            let text =
                format!("batch {batch} of the device was refused ({why}); the host prepares it");
            self.note_failure(now, why, text);
            self.refused_in_a_row += 1;
            if self.refused_in_a_row == FAILURES_IN_A_ROW_MAX {
                self.give_up_device(now, why);
            }
        }
    }

    fn make_ready(&mut self, batch: BatchIndex, prepared: Prepared, now: u64) {
        self.meters.verify_ns += prepared.verify_ns;
        let replaced = self.ready.insert(batch.0, Ready { prepared, ready_ns: now });
        assert!(replaced.is_none(), "the scheduler accepts a batch once");
    }

    /// Enters a batch that is being handed to the consumer in the books.
    pub(super) fn note_consumed(&mut self, batch: BatchIndex, source: Source, ready: &mut Ready) {
        let since = |time_ns: u64| time_ns.saturating_sub(self.zero_ns);
        let source = Preparer::from(source);
        let prepared = &mut ready.prepared;
        self.records.push(BatchRecord {
            batch: batch.0,
            source,
            prepare_start_ns: since(prepared.start_ns),
            prepare_end_ns: since(prepared.end_ns),
            ready_ns: ready.ready_ns,
            consume_ns: self.now(),
            step_end_ns: 0,
        });
        self.samples += prepared.contents.samples.len() as u64;
        if let Some(crc32c) = prepared.contents.crc32c.take() {
            let samples = prepared.contents.samples.clone();
            self.checks.push(BatchCheck { batch: batch.0, source, samples, crc32c });
        }
    }
}
