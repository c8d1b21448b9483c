//! The requests of the consumer's thread: the next batch, and what to do until it is ready.

use super::{Driver, Prepared};
use crate::Error;
use crate::clock::monotonic_ns;
use crate::device_link::Session;
use crate::events::EventKind;
use crate::stop::WAIT_SLICE;
use meetpoint_scheduler::{
    AcceleratorDecision, Agreement, BatchIndex, HostDecision, Outcome, Proposal, Source,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What the consumer's thread is to do.
pub(crate) enum Step {
    /// Use this batch.
    Consume(BatchIndex, Source, Box<Prepared>),
    /// Prepare this batch itself, then ask again.
    Prepare(BatchIndex),
    /// Send this to all ranks, report their agreement, then ask again.
    Agree(Box<Proposal>),
    /// The awaited batch is in progress, and the other ranks should be notified. Then ask again.
    AtWork,
    /// Every batch of the epoch was consumed.
    Done,
}

/// Marks the time during which the consumer waits for a batch.
pub(crate) struct WaitMarker<'d>(&'d Driver);

impl Drop for WaitMarker<'_> {
    fn drop(&mut self) {
        self.0.is_awaited.store(false, Ordering::SeqCst);
    }
}

impl Driver {
    /// The consumer is done with a step and wants the next batch.
    pub(crate) fn step_ended(&self) -> WaitMarker<'_> {
        self.is_awaited.store(true, Ordering::SeqCst);
        let mut state = self.lock();
        if let Some(run) = &mut state.run {
            let elapsed = run.elapsed();
            if let Some(record) = run.records.last_mut().filter(|it| it.step_end_ns == 0) {
                record.step_end_ns = elapsed;
                run.meters.step.add(elapsed - record.consume_ns);
            }
            if run.ended_ns.is_none() {
                let now = run.now();
                run.scheduler.accelerator_ready(now);
            }
            run.pump();
        }
        drop(state);
        self.wake_all();
        WaitMarker(self)
    }

    /// Waits until there is something for the consumer's thread to do. `prepares`: it prepares
    /// batches itself. `due`: when to report a wait that has not ended.
    pub(crate) fn next_step(&self, prepares: bool, due: Option<Instant>) -> Result<Step, Error> {
        let mut state = self.lock();
        let mut looks_again = prepares;
        loop {
            self.stop.check()?;
            let run = state.run.as_mut().expect("an epoch is under way while it is asked");
            run.check_failure()?;
            let now = run.now();
            let decision = run.scheduler.accelerator(now);
            run.pump();
            self.run_ahead(&mut state);
            let run = state.run.as_mut().expect("it is not ended meanwhile");
            let until = match decision {
                AcceleratorDecision::Consume(batch, source) => {
                    let ready = run.ready.remove(&batch.0);
                    let mut ready = ready.expect("what the scheduler calls ready is here");
                    run.note_consumed(batch, source, &mut ready);
                    drop(state);
                    self.work.notify_all();
                    return Ok(Step::Consume(batch, source, Box::new(ready.prepared)));
                }
                AcceleratorDecision::Done => {
                    let ended = run.records.last().map_or(0, |record| record.step_end_ns);
                    run.ended_ns.get_or_insert(ended);
                    return Ok(Step::Done);
                }
                AcceleratorDecision::WaitUntil(until) => until,
                AcceleratorDecision::Agree(proposal) => return Ok(Step::Agree(Box::new(proposal))),
            };
            if prepares && let HostDecision::Prepare(batch) = run.host() {
                return Ok(Step::Prepare(batch));
            }
            // The question may have fixed the order, so that a batch may now be ready.
            if std::mem::replace(&mut looks_again, false) {
                continue;
            }
            if run.scheduler.is_at_work() && due.is_some_and(|due| Instant::now() >= due) {
                return Ok(Step::AtWork);
            }
            // Claims may have been revoked: workers check for work again.
            self.work.notify_all();
            let limit = Duration::from_nanos(until.saturating_sub(now)).min(WAIT_SLICE);
            let waited = self.ready.wait_timeout(state, limit);
            state = waited.expect("no thread panics while it holds the driver").0;
            looks_again = prepares;
            if let Some(run) = &mut state.run {
                let now = run.now();
                run.scheduler.tick(now);
                run.pump();
            }
        }
    }

    /// Applies the decision of all ranks; returns whether it was this rank's turn.
    pub(crate) fn agreed(&self, agreement: Agreement) -> bool {
        let mut state = self.lock();
        let Some(run) = &mut state.run else { return true };
        let outcome = run.agreed(agreement);
        drop(state);
        self.work.notify_all();
        outcome == Outcome::Accepted
    }

    /// Records how long the consumer waited for the batch that it just received.
    pub(crate) fn note_wait(&self, since_ns: u64, source: Source) {
        if let Some(run) = &mut self.lock().run {
            let wait_ns = monotonic_ns().saturating_sub(since_ns);
            run.meters.wait.add(wait_ns);
            if source == Source::Host {
                run.meters.host_wait_ns += wait_ns;
            }
        }
    }

    /// Records a long wait of the consumer, and returns its event if it is for a device.
    pub(crate) fn note_long_wait(&self, waited: Duration) -> Option<EventKind> {
        self.lock().run.as_mut()?.note_long_wait(waited)
    }

    /// Waits until a device has reported on every slot that it published, or until the deadline.
    pub(crate) fn await_meters(&self, session: &Arc<Session>, batches: u64, deadline: Instant) {
        let mut state = self.lock();
        while session.meters().batches < batches
            && !session.is_closed()
            && let Some(left) = deadline.checked_duration_since(Instant::now())
        {
            let waited = self.ready.wait_timeout(state, left.min(WAIT_SLICE));
            state = waited.expect("no thread panics while it holds the driver").0;
        }
    }
}
