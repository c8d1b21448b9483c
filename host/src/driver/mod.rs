//! The scheduler behind a lock, driven by real events and the real time.
//!
//! Decisions and reports are made under the lock; preparing, reading and checking are not. In
//! reading order: this file (the waits of each thread), `run` (one epoch: events in, decisions
//! out), `ahead` (devices that begin the next one), `links` (the events of links), `reopened`
//! (devices whose lost links are opened again), `consumer` (the requests of the consumer's thread).

mod ahead;
mod batch_order;
mod consumer;
mod links;
mod reopened;
mod run;

pub(crate) use batch_order::BatchOrder;
pub(crate) use consumer::Step;
pub(crate) use run::{FetchTask, Prepared, Run, RunSetup};

use crate::causes::{Loss, SlotRefusal};
use crate::events::EventKind;
use crate::ring::{Ring, RingSlot};
use crate::stop::WAIT_SLICE;
use crate::{Error, StopHandle};
use meetpoint_scheduler::{BatchIndex, Concurrency, HostDecision};
use meetpoint_storage::Counters;
use reopened::EndedTry;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the threads of a loader share.
#[derive(Debug)]
pub(crate) struct Driver {
    state: Mutex<State>,
    /// Workers and fetching threads wait here for work.
    work: Condvar,
    /// The consumer waits here for a batch.
    ready: Condvar,
    /// Workers that the tuner has parked wait here.
    parked: Condvar,
    stop: StopHandle,
    /// Number of the current run; 0 if there is none. Read without the lock, so that a thread that
    /// is preparing notices when its batch is not needed any more.
    current: AtomicU64,
    /// Whether the consumer waits for a batch.
    is_awaited: AtomicBool,
    /// How long a thread waits for memory while the consumer waits for a batch.
    place_timeout: Duration,
    /// Devices begin only epochs with lower numbers ahead of the consumer.
    epochs_ahead: u32,
    /// Workers with this number or a higher one are parked.
    workers_active: AtomicU32,
    /// How many batches workers may be ahead, within the scheduler's configuration.
    host_ahead: AtomicU32,
    /// Each batch that the consumer holds has a clone.
    kept: Arc<()>,
}

#[derive(Debug)]
struct State {
    run: Option<Run>,
    /// The next epoch, if a device has begun it already.
    ahead: Option<Run>,
    /// Highest generation of discarded epochs that devices began ahead.
    generation_given_up: u32,
    runs_begun: u64,
    is_closing: bool,
    /// Why devices were lost between epochs, by their numbers.
    lost_between: BTreeMap<u16, Loss>,
    /// The last attempts to reopen lost links between epochs, by the numbers of their devices.
    tries_between: BTreeMap<u16, EndedTry>,
}

/// A batch that a worker is to prepare.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostTask {
    pub(crate) serial: u64,
    pub(crate) epoch: u32,
    pub(crate) batch: BatchIndex,
}

impl Driver {
    /// Devices begin the next epoch early if its number is below `epochs_ahead`.
    pub(crate) fn new(stop: StopHandle, place_timeout: Duration, epochs_ahead: u32) -> Self {
        let state = State {
            run: None,
            ahead: None,
            generation_given_up: 0,
            runs_begun: 0,
            is_closing: false,
            lost_between: BTreeMap::new(),
            tries_between: BTreeMap::new(),
        };
        Self {
            state: Mutex::new(state),
            work: Condvar::new(),
            ready: Condvar::new(),
            parked: Condvar::new(),
            stop,
            current: AtomicU64::new(0),
            is_awaited: AtomicBool::new(false),
            place_timeout,
            epochs_ahead,
            workers_active: AtomicU32::new(u32::MAX),
            host_ahead: AtomicU32::new(u32::MAX),
            kept: Arc::new(()),
        }
    }

    /// Begins an epoch; returns the number of the run.
    pub(crate) fn begin(&self, mut setup: RunSetup) -> Result<u64, Error> {
        let mut state = self.lock();
        assert!(state.run.is_none(), "the epoch before was ended: it borrowed the loader");
        state.add_changes_between(&mut setup);
        let serial = state.runs_begun + 1;
        let mut run = match state.take_ahead(&mut setup, serial) {
            Some(run) => run,
            None => Run::new(serial, setup)?,
        };
        run.scheduler.set_host_ahead(self.host_ahead.load(Ordering::SeqCst));
        run.begin();
        state.runs_begun = serial;
        state.run = Some(run);
        self.current.store(serial, Ordering::SeqCst);
        drop(state);
        self.wake_all();
        Ok(serial)
    }

    /// Records an event of the running epoch.
    pub(crate) fn note(&self, kind: EventKind) {
        if let Some(run) = &mut self.lock().run {
            run.note(kind);
        }
    }

    /// Ends the epoch, finished or not. Work in progress for it is discarded.
    pub(crate) fn end(&self) -> Option<Run> {
        self.current.store(0, Ordering::SeqCst);
        // Also reached while unwinding.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let run = state.run.take();
        if run.as_ref().is_none_or(|run| run.ended_ns.is_none()) {
            state.give_up_ahead();
        }
        drop(state);
        self.wake_all();
        run
    }

    /// Queries the running epoch.
    pub(crate) fn ask<T>(&self, question: impl FnOnce(&Run) -> T) -> Option<T> {
        self.lock().run.as_ref().map(question)
    }

    /// Ends all threads.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_closing = true;
        state.ahead = None;
        drop(state);
        self.current.store(0, Ordering::SeqCst);
        self.parked.notify_all();
        self.wake_all();
    }

    /// Changes how many workers prepare, and how many batches they may be ahead from now on. Excess
    /// workers finish their current batch.
    pub(crate) fn set_concurrency(&self, concurrency: Concurrency) {
        // Under the lock: otherwise a worker that is about to park would miss the notification.
        let mut state = self.lock();
        self.workers_active.store(concurrency.workers, Ordering::SeqCst);
        self.host_ahead.store(concurrency.ahead, Ordering::SeqCst);
        if let Some(run) = &mut state.run {
            run.scheduler.set_host_ahead(concurrency.ahead);
        }
        drop(state);
        self.parked.notify_all();
        self.work.notify_all();
    }

    /// Whether the results for a run are still needed.
    pub(crate) fn is_current(&self, serial: u64) -> bool {
        self.current.load(Ordering::SeqCst) == serial && !self.stop.is_stopped()
    }

    /// A token for a batch that the consumer receives.
    pub(crate) fn keep(&self) -> Arc<()> {
        Arc::clone(&self.kept)
    }

    // Methods for workers.

    /// Waits for a batch that a worker should prepare; `None` when the loader closes. A parked
    /// worker gets none.
    pub(crate) fn next_for_host(&self, worker: u32) -> Option<HostTask> {
        self.wait_for_work(Some(worker), |run| match run.host() {
            HostDecision::Prepare(batch) => {
                Some(HostTask { serial: run.serial, epoch: run.epoch, batch })
            }
            HostDecision::Idle | HostDecision::Done => None,
        })
    }

    /// A worker is done with a batch; `None`: it was abandoned because the run is over.
    pub(crate) fn host_finished(
        &self,
        serial: u64,
        batch: BatchIndex,
        result: Result<Option<Prepared>, Error>,
        read: Counters,
    ) {
        self.notify(serial, |run| {
            run.read(read);
            match result {
                Ok(Some(prepared)) => run.host_finished(batch, prepared),
                Ok(None) => {}
                Err(error) => run.fail(error),
            }
        });
    }

    /// The run cannot continue. May be called during unwinding.
    pub(crate) fn fail(&self, serial: u64, error: Error) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = state.run.as_mut().filter(|run| run.serial == serial) {
            run.fail(error);
        }
        drop(state);
        self.wake_all();
    }

    /// Waits for memory for a batch of a run; `None` if the run is over, or failed because the
    /// consumer retains all memory while it waits for a batch.
    pub(crate) fn wait_for_slot(&self, ring: &Ring, serial: u64) -> Option<RingSlot> {
        let mut short_since = None;
        loop {
            if let Some(place) = ring.wait(WAIT_SLICE.min(self.place_timeout)) {
                return Some(place);
            }
            if !self.is_current(serial) {
                return None;
            }
            // The driver's own token is not a batch of the consumer.
            let kept = Arc::strong_count(&self.kept) - 1;
            if kept == 0 || !self.is_awaited.load(Ordering::SeqCst) {
                short_since = None;
                continue;
            }
            let since: Instant = *short_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= self.place_timeout {
                let (places, waited) = (ring.slots(), self.place_timeout);
                self.fail(serial, Error::AllBatchesKept { kept, places, waited });
                return None;
            }
        }
    }

    // Methods for fetching threads.

    /// Waits for a published slot to fetch; `None` when the loader closes.
    pub(crate) fn next_fetch(&self) -> Option<FetchTask> {
        self.wait_for_work(None, Run::fetch)
    }

    /// A slot was fetched and checked, or refused for a reason.
    pub(crate) fn fetched(
        &self,
        task: &FetchTask,
        result: Result<Prepared, SlotRefusal>,
        read: Counters,
    ) {
        self.notify(task.serial, |run| {
            run.read(read);
            match result {
                Ok(prepared) => run.fetched(task, prepared),
                Err(refusal) => run.refused(task, refusal),
            }
        });
    }

    // Waits.

    fn wait_for_work<T>(
        &self,
        worker: Option<u32>,
        mut ask: impl FnMut(&mut Run) -> Option<T>,
    ) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.is_closing {
                return None;
            }
            if worker.is_some_and(|number| number >= self.workers_active.load(Ordering::SeqCst)) {
                let waited = self.parked.wait_timeout(state, WAIT_SLICE);
                state = waited.expect("no thread panics while it holds the driver").0;
                continue;
            }
            let is_stopped = self.stop.is_stopped();
            if let Some(run) = state.run.as_mut().filter(|run| !run.has_failed() && !is_stopped)
                && let Some(task) = ask(run)
            {
                return Some(task);
            }
            let waited = self.work.wait_timeout(state, WAIT_SLICE);
            state = waited.expect("no thread panics while it holds the driver").0;
        }
    }

    /// Passes an event to the run with this number; drops it if that run is over.
    fn notify(&self, serial: u64, event: impl FnOnce(&mut Run)) {
        let mut state = self.lock();
        if let Some(run) = state.run.as_mut().filter(|run| run.serial == serial) {
            event(run);
            run.pump();
        }
        drop(state);
        self.wake_all();
    }

    /// Records a device's message.
    fn notify_device(&self, event: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        event(&mut state);
        self.run_ahead(&mut state);
        drop(state);
        self.wake_all();
    }

    fn wake_all(&self) {
        self.work.notify_all();
        self.ready.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the driver")
    }
}

/// A configuration for tests: four batches under round robin, and one device.
#[cfg(test)]
fn four_batches() -> meetpoint_scheduler::Config {
    use meetpoint_scheduler::{AnyStrategy, Config, DeviceConfig, Holders, Learned, Wrr};
    Config {
        batches: 4,
        strategy: AnyStrategy::Wrr(Wrr),
        host_ahead: 1,
        fetch_ahead: 4,
        devices: vec![DeviceConfig { ahead: 2, spool_slots: 4, first_generation: 1 }],
        holders: Holders::Shared,
        stall_timeout_ns: 1_000_000_000,
        stalls_max: 3,
        profile_batches: 1,
        learned: Learned::nothing(),
        replay: None,
        ranks: 1,
        costs: None,
    }
}
