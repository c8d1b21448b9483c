//! Turns: the workers of a device prepare one batch at a time.
//!
//! A device has one processor for all its hosts, so its emulated speeds apply to all of them
//! together. A worker queues for each batch and gives up its turn at the batch's end, or when its
//! spool is full: neither a slow host nor a dead one delays the others. A worker that returns with
//! a prepared batch to write goes to the head of the queue.

use crate::fault::BatchFaults;
use crate::meters::{HeartbeatMonitor, Heartbeats};
use meetpoint_link::Fault;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a wait lasts before the worker checks whether to continue.
const WAIT_SLICE: Duration = Duration::from_millis(50);

/// The end of the queue at which to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueEnd {
    /// With a batch to be prepared.
    Tail,
    /// With a batch to be written.
    Head,
}

#[derive(Debug, Default)]
struct State {
    /// Numbers of the waiting workers, the next one first.
    waiting: VecDeque<u64>,
    next_number: u64,
    /// Heartbeats of the worker whose turn it is.
    at_work: Option<Arc<Heartbeats>>,
    /// Number of workers.
    workers: usize,
    /// Batches begun since there was a worker.
    begun: u64,
    /// Slow-down factor of a fault.
    stretch: f64,
}

/// The queue of one device.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

impl Turns {
    /// Counts a worker for the lifetime of the returned value. The first worker after a pause
    /// resets the count of batches, which faults refer to.
    pub(crate) fn join(self: &Arc<Self>) -> Member {
        let mut state = self.lock();
        if state.workers == 0 {
            state.begun = 0;
            state.stretch = 1.0;
        }
        state.workers += 1;
        Member(Arc::clone(self))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave the state inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker of the device.
#[derive(Debug)]
pub(crate) struct Member(Arc<Turns>);

impl Member {
    /// Waits for a turn; `None` if `go_on` cancels it. A waiting worker counts as alive while the
    /// one whose turn it is does.
    pub(crate) fn wait(
        &self,
        end: QueueEnd,
        heartbeats: &Arc<Heartbeats>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<Turn> {
        let mut state = self.0.lock();
        let number = state.next_number;
        state.next_number += 1;
        match end {
            QueueEnd::Tail => state.waiting.push_back(number),
            QueueEnd::Head => state.waiting.push_front(number),
        }
        let mut monitor = HeartbeatMonitor::default();
        if let Some(other) = &state.at_work {
            monitor.is_alive(other);
        }
        loop {
            if state.at_work.is_none() && state.waiting.front() == Some(&number) {
                state.waiting.pop_front();
                state.at_work = Some(Arc::clone(heartbeats));
                return Some(Turn(Arc::clone(&self.0)));
            }
            let (after, waited) = self
                .0
                .changed
                .wait_timeout(state, WAIT_SLICE)
                .unwrap_or_else(PoisonError::into_inner);
            state = after;
            if waited.timed_out() {
                let other = state.at_work.clone();
                if other.is_none_or(|other| monitor.is_alive(&other)) {
                    heartbeats.beat();
                }
            }
            if !go_on() {
                state.waiting.retain(|waiting| *waiting != number);
                self.0.changed.notify_all();
                return None;
            }
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.lock().workers -= 1;
    }
}

/// A worker's turn; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Turns>);

impl Turn {
    /// Begins a batch: returns its faults and the current slow-down.
    pub(crate) fn begin(&self, faults: &[Fault]) -> (BatchFaults, f64) {
        let mut state = self.0.lock();
        state.begun += 1;
        let plan = BatchFaults::at(faults, state.begun);
        state.stretch = plan.slow.unwrap_or(state.stretch);
        (plan, state.stretch)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.lock().at_work = None;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn turns() -> (Arc<Turns>, Arc<Heartbeats>) {
        (Arc::default(), Arc::default())
    }

    fn wait_until_queued(turns: &Turns, wanted: usize) {
        while turns.lock().waiting.len() < wanted {
            std::thread::yield_now();
        }
    }

    #[test]
    fn turns_are_taken_in_order_and_writers_go_first() {
        let (turns, heartbeats) = turns();
        let own = turns.join();
        let turn = own.wait(QueueEnd::Tail, &heartbeats, &mut || true).unwrap();
        let (started, order) = channel();
        std::thread::scope(|scope| {
            for (end, name) in [(QueueEnd::Tail, 2), (QueueEnd::Tail, 3), (QueueEnd::Head, 1)] {
                let waiting = turns.lock().waiting.len();
                let (turns, heartbeats, started) = (&turns, &heartbeats, started.clone());
                scope.spawn(move || {
                    let turn = turns.join().wait(end, heartbeats, &mut || true).unwrap();
                    started.send(name).unwrap();
                    drop(turn);
                });
                wait_until_queued(turns, waiting + 1);
            }
            drop(turn);
        });
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
        assert!(turns.lock().at_work.is_none());
    }

    #[test]
    fn a_worker_that_gives_up_leaves_the_queue_and_delays_no_other() {
        let (turns, heartbeats) = turns();
        let own = turns.join();
        let turn = own.wait(QueueEnd::Tail, &heartbeats, &mut || true).unwrap();
        assert!(own.wait(QueueEnd::Head, &heartbeats, &mut || false).is_none());
        assert!(turns.lock().waiting.is_empty());
        drop(turn);
        assert!(own.wait(QueueEnd::Tail, &heartbeats, &mut || false).is_some());
    }

    #[test]
    fn a_waiting_worker_sends_heartbeats_while_the_working_one_does() {
        let (turns, at_work) = turns();
        let turn = turns.join().wait(QueueEnd::Tail, &at_work, &mut || true).unwrap();
        let waiting = Arc::new(Heartbeats::default());
        let mut monitor = HeartbeatMonitor::default();
        let mut wait = |gives: bool| {
            let mut asked = 0;
            turns.join().wait(QueueEnd::Tail, &waiting, &mut || {
                asked += 1;
                if gives {
                    at_work.beat();
                }
                asked < 3
            });
            monitor.is_alive(&waiting)
        };
        assert!(!wait(false));
        assert!(wait(true));
        assert!(!wait(false));
        drop(turn);
    }

    #[test]
    fn batches_are_counted_over_all_workers_and_restart_after_a_pause() {
        let (turns, heartbeats) = turns();
        let faults = ["corrupt@3".parse().unwrap(), "slow@2:x4".parse().unwrap()];
        for _ in 0..2 {
            let (one, other) = (turns.join(), turns.join());
            let begin = |member: &Member| {
                member.wait(QueueEnd::Tail, &heartbeats, &mut || true).unwrap().begin(&faults)
            };
            assert_eq!(begin(&one), (BatchFaults::default(), 1.0));
            assert_eq!(
                begin(&other),
                (BatchFaults { slow: Some(4.0), ..BatchFaults::default() }, 4.0)
            );
            drop(other);
            assert_eq!(begin(&one), (BatchFaults { corrupt: true, ..BatchFaults::default() }, 4.0));
        }
    }
}
