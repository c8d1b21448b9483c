//! How long the stream of the consumer waits for batches, on the clock of the GPU.
//!
//! When the consumer requests a batch, an event marks the end of the work in its stream so far.
//! From this event until the batch is complete, the stream is idle.

use super::streams::{ConsumerStream, Consumers, Event};
use crate::Error;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of batches whose idle time is yet to be measured. If there are more, the oldest
/// are not measured.
const UNMEASURED_MAX: usize = 64;

/// Measures how long the stream of the consumer is idle. Batches may call it from any thread.
#[derive(Debug)]
pub(super) struct Idle<E>(Mutex<State<E>>);

#[derive(Debug)]
struct State<E> {
    /// The latest export.
    latest: Option<Latest<E>>,
    /// The end of the consumer's work when it requested the next batch.
    asked: Option<Arc<E>>,
    /// For each batch: the end of the work when it was requested, and its completion.
    unmeasured: VecDeque<[Arc<E>; 2]>,
    idle: Duration,
    measured: u64,
}

#[derive(Debug)]
struct Latest<E> {
    /// The ordinal of the batch.
    batch: u64,
    /// A stream that exists as long as the batch.
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

    /// Call when a batch is exported to a stream; `None` if the streams of its consumers are not
    /// known.
    pub(super) fn exported(&self, batch: u64, stream: Option<ConsumerStream>) {
        let mut state = self.lock();
        if state.latest.as_ref().is_none_or(|latest| latest.batch <= batch) {
            state.latest = stream.map(|stream| Latest { batch, stream, dropped: None });
        }
    }

    /// Call when a batch is dropped, after which its stream may no longer exist. `end` is the end
    /// of the work in the stream, if it is known.
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

    /// Call when the consumer requests a batch.
    pub(super) fn asked<C: Consumers<Event = E>>(&self, consumers: &C) {
        // While the lock is held, the batch cannot be dropped, so its stream exists.
        let mut state = self.lock();
        state.asked = state.latest.as_ref().and_then(|latest| match &latest.dropped {
            Some(end) => Some(Arc::clone(end)),
            // If the stream no longer exists, the end of its work is unknown.
            None => consumers.record(latest.stream).ok().map(Arc::new),
        });
    }

    /// Call when the consumer receives the requested batch; `ready` is its completion.
    pub(super) fn handed(&self, ready: &Arc<E>) {
        let mut state = self.lock();
        let Some(asked) = state.asked.take() else { return };
        if state.unmeasured.len() == UNMEASURED_MAX {
            state.unmeasured.pop_front();
        }
        state.unmeasured.push_back([asked, Arc::clone(ready)]);
    }

    /// Time that the stream was idle, and the number of batches for which it is known.
    pub(super) fn measured(&self) -> Result<(Duration, u64), Error> {
        let mut state = self.lock();
        while let Some([asked, ready]) = state.unmeasured.front() {
            if !asked.is_done()? || !ready.is_done()? {
                break;
            }
            // 0 if the batch was complete before.
            let waited = ready.since(asked)?;
            state.idle += waited;
            state.measured += 1;
            state.unmeasured.pop_front();
        }
        Ok((state.idle, state.measured))
    }
}
