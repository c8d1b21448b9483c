//! One running epoch: passes real events to the scheduler, and its decisions to the parts
//! concerned.
//!
//! In reading order: this file (the host and the consumer), `end` (the state of one device),
//! `devices` (messages to and from devices).

mod devices;
mod end;

pub(crate) use end::DeviceEnd;

use super::batch_order::{BatchOrder, OrderedScheduler};
use crate::Error;
use crate::batch::{Contents, Memory, Table};
use crate::clock::monotonic_ns;
use crate::damage::DamageBook;
use crate::device_link::{Session, SlotContents, SlotLease};
use crate::event_log::EventLog;
use crate::events::{DeviceLabel, Event, EventKind};
use crate::stats::{BatchCheck, BatchRecord, Displacement, Meter, Preparer, Schedule};
use meetpoint_format::wire::PROGRESS_INTERVAL_MS;
use meetpoint_prepare::PrepareStats;
use meetpoint_scheduler::{
    BatchIndex, CommonTimes, Config, DeviceId, Epoch as Scheduler, Generation, HostDecision,
    Outcome, Source,
};
use meetpoint_storage::Counters;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A device that fails on this many batches in a row gets no more work in the epoch: its spool is
/// permanently full, its memory too small, or its writes do not arrive.
const FAILURES_IN_A_ROW_MAX: u32 = 3;

/// Longest time without a message from a device with work, before it counts as stalled.
const QUIET_MAX_NS: u64 = 4 * PROGRESS_INTERVAL_MS * 1_000_000;

/// Number of records for which memory is reserved in advance.
const RECORDS_RESERVED: usize = 1 << 16;

/// Number of a run that the consumer has not begun.
const NOT_BEGUN: u64 = 0;

/// The parameters of an epoch.
#[derive(Debug)]
pub(crate) struct RunSetup {
    pub(crate) epoch: u32,
    pub(crate) config: Config,
    /// The link of each device; `None` if it could not be reopened.
    pub(crate) sessions: Vec<Option<Arc<Session>>>,
    /// The order of the batches, unless it is ascending.
    pub(crate) order: Option<Arc<BatchOrder>>,
    /// Events since the previous epoch.
    pub(crate) events: Vec<EventKind>,
    /// The times common to all ranks when this epoch began, for the next one.
    pub(crate) known_before: Option<CommonTimes>,
}

/// A batch in host memory.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) memory: Memory,
    pub(crate) table: Table,
    pub(crate) contents: Contents,
    /// When its preparation began and ended, by [`monotonic_ns`].
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// Statistics, if the host prepared it.
    pub(crate) stats: Option<PrepareStats>,
    /// CPU time of its samples' checksums.
    pub(crate) verify_ns: u64,
    /// How long fetching took, if it was fetched.
    pub(crate) bring_ns: u64,
}

/// A published slot to bring into host memory.
#[derive(Debug)]
pub(crate) struct FetchTask {
    pub(crate) serial: u64,
    pub(crate) epoch: u32,
    pub(crate) device: DeviceId,
    pub(crate) batch: BatchIndex,
    pub(crate) generation: Generation,
    pub(crate) published: PublishedSlot,
}

/// A slot that waits to be fetched, and its contents.
#[derive(Debug)]
pub(crate) struct PublishedSlot {
    /// `None` once fetching has begun.
    pub(crate) lease: Option<SlotLease>,
    pub(crate) contents: SlotContents,
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
    pub(crate) bring: Meter,
    pub(crate) verify_ns: u64,
    /// Time during which threads of the host prepared batches, summed over the threads.
    pub(crate) busy_ns: u64,
    /// Time during which the consumer waited for batches that the host prepared.
    pub(crate) host_wait_ns: u64,
    pub(crate) counters: Counters,
    /// Damaged samples in batches of the host with missing data filled in, under a lenient recipe.
    pub(crate) filled_in: u64,
    /// Batches of the host that were larger than the memory reserved for them, and the bytes of the
    /// largest.
    pub(crate) oversized: (u64, u64),
    /// Samples in batches of the host.
    pub(crate) host_samples: u64,
    /// Of these, samples taken from the cache.
    pub(crate) cached: u64,
}

/// One epoch.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) serial: u64,
    pub(crate) epoch: u32,
    /// The scheduler's time 0, by [`monotonic_ns`].
    zero_ns: u64,
    /// When the consumer began the epoch, by [`monotonic_ns`]; later than `zero_ns` if devices ran
    /// ahead.
    pub(crate) begun_ns: u64,
    /// Device batches that were published before `begun_ns`.
    pub(crate) ahead_batches: u32,
    /// Device batches that were retained from an earlier epoch.
    pub(crate) reused_batches: u32,
    /// Whether a device that had begun the epoch was lost before the consumer began it.
    pub(super) is_broken: bool,
    pub(super) scheduler: OrderedScheduler,
    devices: Vec<DeviceEnd>,
    pub(super) ready: BTreeMap<u32, Ready>,
    failure: Option<Error>,
    has_failed: bool,
    /// The reason of the failure, for the other ranks.
    why_failed: String,
    log: EventLog,
    pub(crate) records: Vec<BatchRecord>,
    pub(crate) checks: Vec<BatchCheck>,
    pub(crate) samples: u64,
    /// Damaged samples in consumed batches.
    pub(crate) damage: DamageBook,
    pub(crate) meters: RunMeters,
    /// End of the last step, once the consumer has requested the next batch.
    pub(crate) ended_ns: Option<u64>,
    /// As in [`RunSetup`].
    pub(super) known_before: Option<CommonTimes>,
}

impl Run {
    /// An epoch that devices may begin before the consumer does.
    pub(super) fn ahead(setup: RunSetup) -> Result<Self, Error> {
        Self::new(NOT_BEGUN, setup)
    }

    pub(super) fn new(serial: u64, setup: RunSetup) -> Result<Self, Error> {
        let batches = (setup.config.batches as usize).min(RECORDS_RESERVED);
        let mut log = EventLog::default();
        setup.events.into_iter().for_each(|kind| log.add(0, kind));
        let count = setup.sessions.len();
        let end = |(number, session)| DeviceEnd::new(DeviceLabel::new(number, count), session);
        let [wait, prepare, read, step, fetch, bring] = std::array::from_fn(|_| Meter::new());
        let zero_ns = monotonic_ns();
        Ok(Self {
            serial,
            epoch: setup.epoch,
            scheduler: OrderedScheduler::new(Scheduler::new(setup.config)?, setup.order),
            zero_ns,
            begun_ns: zero_ns,
            ahead_batches: 0,
            reused_batches: 0,
            is_broken: false,
            known_before: setup.known_before,
            devices: setup.sessions.into_iter().enumerate().map(end).collect(),
            ready: BTreeMap::new(),
            failure: None,
            has_failed: false,
            why_failed: String::new(),
            log,
            records: Vec::with_capacity(batches),
            checks: Vec::new(),
            samples: 0,
            damage: DamageBook::default(),
            meters: RunMeters {
                wait,
                prepare,
                read,
                step,
                fetch,
                bring,
                verify_ns: 0,
                busy_ns: 0,
                host_wait_ns: 0,
                counters: Counters::default(),
                filled_in: 0,
                oversized: (0, 0),
                host_samples: 0,
                cached: 0,
            },
            ended_ns: None,
        })
    }

    /// The scheduler's time.
    pub(super) fn now(&self) -> u64 {
        monotonic_ns().saturating_sub(self.zero_ns)
    }

    /// Nanoseconds since the consumer began the epoch.
    pub(super) fn elapsed(&self) -> u64 {
        monotonic_ns().saturating_sub(self.begun_ns)
    }

    /// Notes that something happened, now.
    pub(crate) fn note(&mut self, kind: EventKind) {
        self.log.add(self.elapsed(), kind);
    }

    /// Whether an event was recorded that meets a condition.
    pub(super) fn has_event(&self, is_it: impl Fn(&EventKind) -> bool) -> bool {
        self.log.any(is_it)
    }

    pub(crate) fn scheduler(&self) -> &OrderedScheduler {
        &self.scheduler
    }

    /// How far batches are from their order; `None` if they are in order.
    pub(crate) fn displacement(&self) -> Option<Displacement> {
        self.scheduler.displacement()
    }

    /// Whether it consists of anything other than all batches in order.
    pub(crate) fn has_order(&self) -> bool {
        self.scheduler.has_order()
    }

    /// The events from index `first` on.
    pub(crate) fn events_from(&self, first: usize) -> Vec<Event> {
        self.log.from(first)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Why the epoch failed, in words; empty if it did not.
    pub(crate) fn why_failed(&self) -> &str {
        &self.why_failed
    }

    /// The scheduler's decisions so far.
    pub(crate) fn schedule(&self) -> Schedule {
        self.scheduler.schedule()
    }

    /// All events, for the report.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        let elapsed = self.elapsed();
        for end in &self.devices {
            end.failures.repeats(end.label).for_each(|kind| self.log.add(elapsed, kind));
        }
        let (samples, has_devices) = (self.meters.filled_in, !self.devices.is_empty());
        if samples > 0 {
            self.log.add(elapsed, EventKind::SamplesFilledIn { samples, has_devices });
        }
        let (batches, bytes_max) = self.meters.oversized;
        if batches > 0 {
            self.log.add(elapsed, EventKind::BatchesOversized { batches, bytes_max });
        }
        self.damage.stats().event().into_iter().for_each(|kind| self.log.add(elapsed, kind));
        std::mem::take(&mut self.log).finish(elapsed)
    }

    // Methods for the host.

    pub(super) fn host(&mut self) -> HostDecision {
        let decision = self.scheduler.host(self.now());
        if let HostDecision::Prepare(_) = decision {
            self.pump();
        }
        decision
    }

    pub(super) fn host_finished(&mut self, batch: BatchIndex, prepared: Prepared) {
        let now = self.now();
        let prepare_ns = prepared.end_ns.saturating_sub(prepared.start_ns);
        self.meters.prepare.add(prepare_ns);
        self.meters.busy_ns += prepare_ns;
        if let Some(stats) = prepared.stats {
            self.meters.read.add(stats.read_wait_ns);
            self.meters.filled_in += u64::from(stats.filled_in);
            self.meters.host_samples += u64::from(stats.samples);
            self.meters.cached += u64::from(stats.cached);
        }
        if let Memory::Own(_) = prepared.memory {
            let (batches, bytes) = &mut self.meters.oversized;
            (*batches, *bytes) = (*batches + 1, prepared.table.layout.bytes().max(*bytes));
        }
        if self.scheduler.host_finished(now, batch) == Outcome::Accepted {
            self.make_ready(batch, prepared);
        }
    }

    /// A thread has read more: adds its counters.
    pub(super) fn read(&mut self, more: Counters) {
        let total = &mut self.meters.counters;
        total.bytes_read_device += more.bytes_read_device;
        total.bytes_read += more.bytes_read;
        total.bytes_written += more.bytes_written;
    }

    /// The epoch cannot continue; only the first reason counts.
    pub(super) fn fail(&mut self, error: Error) {
        if !self.has_failed {
            self.has_failed = true;
            self.why_failed = error.to_string();
            self.failure = Some(error);
        }
    }

    /// Returns the error once, and after that only the fact that the epoch has failed.
    pub(super) fn check_failure(&mut self) -> Result<(), Error> {
        match self.failure.take() {
            Some(error) => Err(error),
            None if self.has_failed => Err(Error::EpochFailed),
            None => Ok(()),
        }
    }

    /// Whether a batch is ready for the consumer.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    fn make_ready(&mut self, batch: BatchIndex, prepared: Prepared) {
        self.meters.verify_ns += prepared.verify_ns;
        let ready_ns = self.elapsed();
        let replaced = self.ready.insert(batch.0, Ready { prepared, ready_ns });
        assert!(replaced.is_none(), "the scheduler accepts a batch once");
    }

    /// The consumer begins an epoch that devices have begun already.
    pub(super) fn catch_up(&mut self, serial: u64, events: Vec<EventKind>) {
        self.serial = serial;
        self.begun_ns = monotonic_ns();
        events.into_iter().for_each(|kind| self.note(kind));
        let now = self.now();
        for end in &mut self.devices {
            let published = u32::try_from(end.published.len()).expect("batches have 32 bits");
            self.ahead_batches += published;
            // A device that waited for a slot had no reason to send a message.
            end.heard(now);
            self.scheduler.device_progress(now, end.id);
        }
    }

    /// Records a batch that is handed to the consumer.
    pub(super) fn note_consumed(&mut self, batch: BatchIndex, source: Source, ready: &mut Ready) {
        let since = |time_ns: u64| time_ns.saturating_sub(self.begun_ns);
        let device = match source {
            Source::Host => None,
            Source::Device(device) => Some(device.0),
        };
        let source = Preparer::from(source);
        let prepared = &mut ready.prepared;
        self.damage.enter(batch.0, &prepared.contents.replacements);
        self.records.push(BatchRecord {
            batch: batch.0,
            source,
            device,
            memory: prepared.memory.kind(),
            prepare_start_ns: since(prepared.start_ns),
            prepare_end_ns: since(prepared.end_ns),
            ready_ns: ready.ready_ns,
            consume_ns: self.elapsed(),
            step_end_ns: 0,
        });
        self.samples += prepared.contents.samples.len() as u64;
        if let Some(crc32c) = prepared.contents.crc32c.take() {
            let samples = prepared.contents.places();
            let left_out = prepared.contents.left_out().collect();
            let batch = batch.0;
            self.checks.push(BatchCheck { batch, source, device, samples, crc32c, left_out });
        }
    }
}
