//! Turns: the workers of a device prepare one batch at a time.
//!
//! A device has one processor for all its hosts, so its emulated speeds apply to all of them
//! together. A worker queues for each batch and gives up its turn at the batch's end, or when its
//! spool is full: neither a slow host nor a dead one delays the others. A worker that returns with
//! a prepared batch to write goes to the head of the queue.

use crate::fault::BatchFaults;
use crate::meters::{Signs, Watch};
use meetpoint_link::Fault;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a wait lasts before the worker checks whether to continue.
const WAIT_SLICE: Duration = Duration::from_millis(50);

/// The end of the queue at which to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// With a batch to be prepared.
    Tail,
    /// With a batch to be written.
    Head,
}

#[derive(Debug, Default)]
struct State {
    /// Numbers of the waiting workers, the next one first.
    line: VecDeque<u64>,
    next_number: u64,
    /// Signs of life of the worker whose turn it is.
    at_work: Option<Arc<Signs>>,
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
        place: Line,
        signs: &Arc<Signs>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<Turn> {
        let mut state = self.0.lock();
        let number = state.next_number;
        state.next_number += 1;
        match place {
            Line::Tail => state.line.push_back(number),
            Line::Head => state.line.push_front(number),
        }
        let mut watch = Watch::default();
        if let Some(other) = &state.at_work {
            watch.lives(other);
        }
        loop {
            if state.at_work.is_none() && state.line.front() == Some(&number) {
                state.line.pop_front();
                state.at_work = Some(Arc::clone(signs));
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
                if other.is_none_or(|other| watch.lives(&other)) {
                    signs.give();
                }
            }
            if !go_on() {
                state.line.retain(|waiting| *waiting != number);
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

    fn turns() -> (Arc<Turns>, Arc<Signs>) {
        (Arc::default(), Arc::default())
    }

    fn stands_in_line(turns: &Turns, wanted: usize) {
        while turns.lock().line.len() < wanted {
            std::thread::yield_now();
        }
    }

    #[test]
    fn turns_are_taken_in_order_and_writers_go_first() {
        let (turns, signs) = turns();
        let own = turns.join();
        let turn = own.wait(Line::Tail, &signs, &mut || true).unwrap();
        let (started, order) = channel();
        std::thread::scope(|scope| {
            for (place, name) in [(Line::Tail, 2), (Line::Tail, 3), (Line::Head, 1)] {
                let waiting = turns.lock().line.len();
                let (turns, signs, started) = (&turns, &signs, started.clone());
                scope.spawn(move || {
                    let turn = turns.join().wait(place, signs, &mut || true).unwrap();
                    started.send(name).unwrap();
                    drop(turn);
                });
                stands_in_line(turns, waiting + 1);
            }
            drop(turn);
        });
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
        assert!(turns.lock().at_work.is_none());
    }

    #[test]
    fn a_worker_that_gives_up_leaves_the_queue_and_delays_no_other() {
        let (turns, signs) = turns();
        let own = turns.join();
        let turn = own.wait(Line::Tail, &signs, &mut || true).unwrap();
        assert!(own.wait(Line::Head, &signs, &mut || false).is_none());
        assert!(turns.lock().line.is_empty());
        drop(turn);
        assert!(own.wait(Line::Tail, &signs, &mut || false).is_some());
    }

    #[test]
    fn a_worker_that_waits_lives_as_long_as_the_one_at_work() {
        let (turns, at_work) = turns();
        let turn = turns.join().wait(Line::Tail, &at_work, &mut || true).unwrap();
        let waiting = Arc::new(Signs::default());
        let mut watch = Watch::default();
        let mut wait = |gives: bool| {
            let mut asked = 0;
            turns.join().wait(Line::Tail, &waiting, &mut || {
                asked += 1;
                if gives {
                    at_work.give();
                }
                asked < 3
            });
            watch.lives(&waiting)
        };
        assert!(!wait(false));
        assert!(wait(true));
        assert!(!wait(false));
        drop(turn);
    }

    #[test]
    fn batches_are_counted_over_all_workers_and_restart_after_a_pause() {
        let (turns, signs) = turns();
        let faults = ["corrupt@3".parse().unwrap(), "slow@2:x4".parse().unwrap()];
        for _ in 0..2 {
            let (one, other) = (turns.join(), turns.join());
            let begin = |member: &Member| {
                member.wait(Line::Tail, &signs, &mut || true).unwrap().begin(&faults)
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
