//! How long the stream of the consumer waits for batches, on the clock of the GPU.
//!
//! When the consumer requests a batch, an event marks the end of its work in its stream so far.
//! From there until the batch is complete, the stream is idle.

use super::streams::{ConsumerStream, Consumers, Event};
use crate::Error;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most batches whose time is not measured yet; of further ones the oldest are not.
const UNMEASURED_MAX: usize = 64;

/// What is known of the stream of the consumer. Batches report to it from any thread.
#[derive(Debug)]
pub(super) struct Idle<E>(Mutex<State<E>>);

#[derive(Debug)]
struct State<E> {
    /// The latest export.
    latest: Option<Latest<E>>,
    /// The end of the consumer's work when it asked for the next batch.
    asked: Option<Arc<E>>,
    /// That, and the readiness of the batch that was asked for.
    unmeasured: VecDeque<[Arc<E>; 2]>,
    idle: Duration,
    measured: u64,
}

#[derive(Debug)]
struct Latest<E> {
    /// The ordinal of the batch.
    batch: u64,
    /// The stream exists as long as the batch.
    stream: ConsumerStream,
    /// The end of the work of the stream when the batch was dropped.
    dropped: Option<Arc<E>>,
}

impl<E: Event> Idle<E> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            latest: None,
            asked: None,
            unmeasured: VecDeque::new(),
            idle: Duration::ZERO,
            measured: 0,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State<E>> {
        // A panic while it is held leaves the state consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A batch was exported to a stream; `None`: to consumers whose streams are not known.
    pub(super) fn exported(&self, batch: u64, stream: Option<ConsumerStream>) {
        let mut state = self.lock();
        if state.latest.as_ref().is_none_or(|latest| latest.batch <= batch) {
            state.latest = stream.map(|stream| Latest { batch, stream, dropped: None });
        }
    }

    /// A batch is dropped: its stream may not exist from here on. `None`: its end is not known.
    pub(super) fn dropped(&self, batch: u64, stream: ConsumerStream, end: Option<&Arc<E>>) {
        let mut state = self.lock();
        let latest = state.latest.as_mut();
        let Some(latest) = latest.filter(|it| it.batch == batch && it.stream == stream) else {
            return;
        };
        match end {
            Some(end) => latest.dropped = Some(Arc::clone(end)),
            None => state.latest = None,
        }
    }

    /// The consumer asks for a batch.
    pub(super) fn asked<C: Consumers<Event = E>>(&self, consumers: &C) {
        // The batch is not dropped meanwhile, so that its stream exists.
        let mut state = self.lock();
        state.asked = state.latest.as_ref().and_then(|latest| match &latest.dropped {
            Some(end) => Some(Arc::clone(end)),
            // A stream that does not exist any more is an unknown one.
            None => consumers.record(latest.stream).ok().map(Arc::new),
        });
    }

    /// The consumer gets the batch that it asked for.
    pub(super) fn handed(&self, ready: &Arc<E>) {
        let mut state = self.lock();
        let Some(asked) = state.asked.take() else { return };
        if state.unmeasured.len() == UNMEASURED_MAX {
            state.unmeasured.pop_front();
        }
        state.unmeasured.push_back([asked, Arc::clone(ready)]);
    }

    /// Time that the stream waited, and the number of batches for which that is known.
    pub(super) fn measured(&self) -> Result<(Duration, u64), Error> {
        let mut state = self.lock();
        while let Some([asked, ready]) = state.unmeasured.front() {
            if !asked.is_done()? || !ready.is_done()? {
                break;
            }
            // If the batch was complete before, there was no idle time.
            let waited = ready.since(asked)?;
            state.idle += waited;
            state.measured += 1;
            state.unmeasured.pop_front();
        }
        Ok((state.idle, state.measured))
    }
}
