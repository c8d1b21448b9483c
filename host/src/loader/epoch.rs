//! One pass over the dataset.

use super::Loader;
use super::tuning::Tuning;
use crate::Error;
use crate::batch::Batch;
use crate::causes::LossCause;
use crate::clock::{self, monotonic_ns};
use crate::collective::{CollectiveError, Heartbeats, Turn};
use crate::config::LoaderConfig;
use crate::cores::Bound;
use crate::driver::{Driver, HostTask, Run, RunSetup, Step};
use crate::stats::{self, CacheUse, DeviceStats, EpochStats, Event, EventKind};
use crate::worker::FailOnPanic;
use meetpoint_prepare::cache::CacheStats;
use meetpoint_prepare::{ColumnsReadAgain, Damage, Replacement};
use meetpoint_scheduler::{Proposal, Record};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the end of an epoch waits for the devices' last meters.
const METERS_LIMIT: Duration = Duration::from_millis(250);

/// A running epoch. Dropping it cancels it: prepared batches are discarded.
#[derive(Debug)]
pub struct Epoch<'l> {
    loader: &'l mut Loader,
    epoch: u32,
    serial: u64,
    /// Decisions that this rank took part in.
    agreements: u64,
    /// Damaged samples so far, including those of an earlier part of the epoch.
    errors: u64,
    cpu_before_ns: u64,
    is_ended: bool,
    /// Heartbeats to the other ranks between decisions.
    heartbeats: Heartbeats,
    /// Whether a long wait was reported.
    was_wait_reported: bool,
    _bound: Option<Bound>,
}

impl<'l> Epoch<'l> {
    /// Begins an epoch.
    pub(super) fn begin(loader: &'l mut Loader, setup: RunSetup) -> Result<Self, Error> {
        let bound = match &loader.config.host_cores {
            Some(cores) if loader.own.is_some() => Some(Bound::new(cores)?),
            _ => None,
        };
        stats::reset_peak_resident();
        let cpu_before_ns = clock::process_cpu_ns();
        let epoch = setup.epoch;
        let batches = setup.config.batches;
        loader.gpu_epoch_began();
        let serial = loader.driver.begin(setup)?;
        if let Some(tuning) = &mut loader.tuning {
            tuning.epoch_began(batches);
        }
        let LoaderConfig { collective, rank, ranks, rank_timeout, .. } = &loader.config;
        let others = collective.clone().filter(|_| *ranks > 1);
        let heartbeats = Heartbeats::new(others, *rank, *rank_timeout);
        Ok(Self {
            loader,
            epoch,
            serial,
            agreements: 0,
            errors: 0,
            cpu_before_ns,
            is_ended: false,
            heartbeats,
            was_wait_reported: false,
            _bound: bound,
        })
    }

    /// Waits for the next batch; `None` when every batch was consumed.
    ///
    /// A call means that the step on the previous batch has ended. With no workers it may prepare
    /// the batch in this thread.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        let (since_ns, since) = (monotonic_ns(), Instant::now());
        let mut wait_report_due = self.wait_report_due(since);
        let driver = Arc::clone(&self.loader.driver);
        let _awaiting = driver.step_ended();
        loop {
            let due = [self.heartbeats.due(), wait_report_due].into_iter().flatten().min();
            match driver.next_step(self.loader.own.is_some(), due)? {
                Step::Consume(batch, source, ready) => {
                    if let Err(error) = self.settle(batch.0, &ready.contents.replacements) {
                        driver.fail(self.serial, error);
                        continue;
                    }
                    let batch = self.loader.hand_over(self.epoch, batch, source, *ready);
                    driver.note_wait(since_ns, source);
                    self.loader.tune();
                    self.loader.note_gpu_failure(&driver);
                    return Ok(Some(batch));
                }
                Step::Prepare(batch) => {
                    let (serial, epoch) = (self.serial, self.epoch);
                    let (own, heartbeats) = (self.loader.own.as_mut(), &mut self.heartbeats);
                    let guard = FailOnPanic { driver: &driver, serial };
                    let task = HostTask { serial, epoch, batch };
                    own.expect("only a loader without workers prepares here").work(
                        task,
                        &driver,
                        &mut || heartbeats.at_work(),
                    );
                    drop(guard);
                }
                Step::Agree(proposal) => self.agree(&driver, *proposal),
                Step::AtWork => {
                    self.heartbeats.at_work();
                    if wait_report_due.is_some_and(|due| Instant::now() >= due) {
                        self.report_long_wait(&driver, since.elapsed());
                        // It may have to wait for a device later.
                        wait_report_due = self.wait_report_due(Instant::now());
                    }
                }
                Step::Done => return Ok(None),
            }
        }
    }

    /// When to report a wait that began at this time; `None` if no callback is set.
    fn wait_report_due(&self, since: Instant) -> Option<Instant> {
        let notify = self.loader.config.notify.as_ref().filter(|_| !self.was_wait_reported)?;
        since.checked_add(notify.after)
    }

    /// Reports, once, a long wait of the consumer, if it is for a device.
    fn report_long_wait(&mut self, driver: &Driver, waited: Duration) {
        let Some(event) = driver.note_long_wait(waited) else { return };
        self.was_wait_reported = true;
        if let Some(notify) = &self.loader.config.notify {
            notify.call(&event);
        }
    }

    /// Whether the next batch is probably ready, so that [`Self::next_batch`] need not wait. It is
    /// `false` with ranks that agree on each step, because it is not known there. Without workers,
    /// the host has no batch ready.
    pub fn is_next_ready(&self) -> bool {
        let LoaderConfig { collective, devices, .. } = &self.loader.config;
        let is_alone = collective.is_none() || devices.is_empty();
        is_alone && self.loader.driver.ask(|run| run.has_ready()).unwrap_or(false)
    }

    /// The events so far, starting with the one at index `first`, as in [`EpochStats::events`].
    pub fn events_from(&self, first: usize) -> Vec<Event> {
        self.loader.driver.ask(|run| run.events_from(first)).unwrap_or_default()
    }

    /// The record of the order of the remaining batches, for [`Loader::resume_epoch`]; `None` if
    /// the strategy needs none, or if the order is not fixed.
    pub fn rest_record(&self) -> Option<Record> {
        let rest = |run: &Run| {
            let scheduler = run.scheduler();
            let consumed = u32::try_from(run.records.len()).ok()?;
            scheduler.record()?.rest(scheduler.config().batches, consumed)
        };
        self.loader.driver.ask(rest).flatten()
    }

    /// Sets the number of damaged samples in the part of this epoch that was consumed earlier: they
    /// count towards [`LoaderConfig::errors_max`].
    pub fn count_errors_before(&mut self, errors: u64) {
        self.errors += errors;
    }

    /// Damaged samples of the epoch so far.
    pub fn errors(&self) -> u64 {
        self.errors
    }

    /// Records and counts the damaged samples of a consumed batch.
    fn settle(&mut self, batch: u32, replacements: &[Replacement]) -> Result<(), Error> {
        let Some(last) = replacements.last() else { return Ok(()) };
        self.errors += replacements.len() as u64;
        if let Some(quarantine) = &mut self.loader.quarantine {
            quarantine.add(batch, replacements)?;
        }
        match self.loader.config.errors_max {
            Some(limit) if self.errors > limit => {
                let Damage { key, file, what, .. } = last.damage.clone();
                let (epoch, errors) = (self.epoch, self.errors);
                Err(Error::TooManyErrors { epoch, errors, limit, key, file, what })
            }
            _ => Ok(()),
        }
    }

    /// Sends a proposal to all ranks. If they do not agree, the epoch fails.
    fn agree(&mut self, driver: &Driver, proposal: Proposal) {
        let LoaderConfig { rank, rank_timeout, collective, stop, .. } = &self.loader.config;
        let collective = collective.as_ref().expect("ranks without a collective were refused");
        let (rank, epoch, number) = (*rank, self.epoch, self.agreements);
        self.agreements += 1;
        let turn = Turn { rank, epoch, number, limit: *rank_timeout, stop };
        let failure = match collective.agree(&turn, proposal) {
            Ok(agreement) if driver.agreed(agreement) => return,
            Ok(_) => CollectiveError::OutOfStep { rank, epoch, number }.into(),
            Err(CollectiveError::Interrupted) => Error::Interrupted,
            Err(error) => error.into(),
        };
        driver.fail(self.serial, failure);
    }

    /// Notifies the other ranks, once, that this one takes no more turns.
    fn leave_ranks(&mut self, run: &Run) {
        let Some(collective) = &self.loader.config.collective else { return };
        if run.ended_ns.is_none() {
            let why = match (std::thread::panicking(), run.has_failed()) {
                (true, _) => "it panicked",
                (false, true) => run.why_failed(),
                (false, false) => "it ended its epoch early",
            };
            collective.leave(self.loader.config.rank, self.epoch, why);
        }
    }

    /// Ends the epoch and returns its measurements.
    pub fn finish(mut self) -> EpochStats {
        let cpu_ns = clock::process_cpu_ns().saturating_sub(self.cpu_before_ns);
        let peak_bytes = stats::peak_resident_bytes();
        let now_ns = monotonic_ns();
        let driver = Arc::clone(&self.loader.driver);
        self.loader.note_gpu_failure(&driver);
        let gpu = self.loader.gpu_use_of_epoch();
        let run = self.end().expect("an epoch ends once");
        let mut stats = collect(run, self.loader, now_ns);
        if self.loader.config.choose_by_saving {
            let Loader { batch_times, job, .. } = &mut *self.loader;
            // A dataset that has become unreadable is reported by the next epoch.
            let _ = batch_times.learn(job, stats.epoch, &stats.records);
        }
        stats.gpu = gpu;
        stats.store = self.loader.store_use_of_epoch();
        stats.host_cpu_ns = cpu_ns;
        stats.host_peak_resident_bytes = peak_bytes;
        stats
    }

    /// Stops all work for this epoch.
    fn end(&mut self) -> Option<Run> {
        if std::mem::replace(&mut self.is_ended, true) {
            return None;
        }
        let run = self.loader.driver.end()?;
        self.loader.use_reopened();
        self.leave_ranks(&run);
        let generation = run.scheduler().summary().last_generation;
        let next = generation.max(self.loader.driver.generation_ahead()).saturating_add(2);
        self.loader.next_generation = self.loader.next_generation.max(next);
        let learned = run.scheduler().learned();
        let before = std::mem::replace(&mut self.loader.learned, learned);
        self.loader.known_before = before.common;
        for end in run.devices() {
            let Some(session) = end.session() else { continue };
            if run.ended_ns.is_none() {
                session.revoke(self.epoch, generation.saturating_add(1));
            }
            if end.is_silent() {
                // The link is reopened in the background once the next epoch begins. A device that
                // this process owns is restarted.
                session.break_off(LossCause::Silent);
            }
        }
        Some(run)
    }
}

impl Drop for Epoch<'_> {
    fn drop(&mut self) {
        drop(self.end());
    }
}

/// The use that a run made of the cache.
fn cache_use(run: &Run, loader: &Loader) -> Option<CacheUse> {
    let cache = loader.cache.as_ref()?;
    let CacheStats { budget_bytes, bytes, added, evicted, ranks, ranks_attached, .. } =
        cache.stats();
    let hits = run.meters.cached;
    Some(CacheUse {
        hits,
        misses: run.meters.host_samples - hits,
        added,
        evicted,
        bytes,
        budget_bytes,
        operations: cache.operations() as u64,
        ranks,
        ranks_attached,
    })
}

/// What a run measured.
fn collect(mut run: Run, loader: &Loader, now_ns: u64) -> EpochStats {
    let is_complete = run.ended_ns.is_some();
    let elapsed_ns = now_ns.saturating_sub(run.begun_ns);
    if let Some(record) = run.records.last_mut().filter(|record| record.step_end_ns == 0) {
        record.step_end_ns = elapsed_ns;
        run.meters.step.add(elapsed_ns - record.consume_ns.min(elapsed_ns));
    }
    let duration_ns = run.ended_ns.unwrap_or(elapsed_ns);
    let deadline = Instant::now() + METERS_LIMIT;
    let devices = run.devices().iter().enumerate().map(|(number, end)| {
        if let Some(session) = end.session().filter(|_| is_complete) {
            loader.driver.await_meters(session, end.batches_expected(), deadline);
        }
        let info = loader.devices.get(number).and_then(Option::as_ref);
        let targets = info.and_then(|info| info.emulation.as_ref());
        DeviceStats::since(&end.meters_before, &end.meters(), targets)
    });
    let devices = devices.collect();
    if let Some(again) = loader.job.dataset.take_columns_read_again() {
        let ColumnsReadAgain { reads, bytes, needed_bytes, cache_bytes } = again;
        run.note(EventKind::ColumnsReadAgain { reads, bytes, needed_bytes, cache_bytes });
    }
    let events = run.take_events();
    let schedule = run.schedule();
    let meters = &run.meters;
    EpochStats {
        epoch: run.epoch,
        batches: loader.batches,
        is_complete,
        samples: run.samples,
        begun_ns: run.begun_ns,
        duration_ns,
        order_crc32c: stats::order_crc32c(run.records.iter().map(|record| record.batch)),
        wait: meters.wait.quantiles(),
        prepare: meters.prepare.quantiles(),
        read: meters.read.quantiles(),
        step: meters.step.quantiles(),
        fetch: meters.fetch.quantiles(),
        bring: meters.bring.quantiles(),
        host_cpu_ns: 0,
        host_peak_resident_bytes: 0,
        host_bytes_read: meters.counters.bytes_read_device,
        host_bytes_written: meters.counters.bytes_written,
        verify_ns: meters.verify_ns,
        devices,
        schedule,
        ahead_batches: run.ahead_batches,
        reused_batches: run.reused_batches,
        displacement: run.displacement(),
        cache: cache_use(&run, loader),
        store: None,
        delivery: None,
        gpu: None,
        tuning: loader.tuning.as_ref().map(Tuning::used),
        events,
        damage: run.damage.take(),
        records: run.records,
        checks: run.checks,
    }
}
