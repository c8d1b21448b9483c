//! Turns: how many batches a device prepares at the same time, and whose is next.
//!
//! An emulated device has one processor for all its hosts, so its speeds apply to all of them
//! together; an agent has as many turns as threads. A worker waits for a turn for each batch and
//! gives it up at the batch's end, or when its spool is full: neither a slow host nor a dead one
//! delays the others. A worker that returns with a prepared batch to write goes first; the others
//! have [fair shares](crate::shares).

use crate::fault::BatchFaults;
use crate::meters::{HeartbeatMonitor, Heartbeats};
use crate::shares::{Claimant, Shares};
use meetpoint_link::Fault;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long a wait lasts before the worker checks whether to continue.
const WAIT_SLICE: Duration = Duration::from_millis(50);

/// The end of the queue at which to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QueueEnd {
    /// With a batch to be written.
    Head,
    /// With a batch to be prepared.
    Tail,
}

/// A worker that waits for a turn.
#[derive(Debug)]
struct Waiting {
    number: u64,
    end: QueueEnd,
    who: Claimant,
    thread: Thread,
    heartbeats: Arc<Heartbeats>,
}

/// A worker whose turn it is.
#[derive(Debug)]
struct AtWork {
    heartbeats: Arc<Heartbeats>,
    /// What its loader was charged in advance.
    charged: Duration,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    next_number: u64,
    /// By the numbers of their waits.
    at_work: BTreeMap<u64, AtWork>,
    shares: Shares,
    /// Number of workers.
    workers: usize,
    /// Batches begun since there was a worker.
    begun: u64,
    /// Slow-down factor of a fault.
    stretch: f64,
}

/// The turns of one device.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Turns at the same time.
    turns_max: usize,
    state: Mutex<State>,
}

impl Turns {
    /// Turns for `turns_max` workers at the same time.
    pub(crate) fn new(turns_max: u32) -> Self {
        Self { turns_max: turns_max.max(1) as usize, state: Mutex::default() }
    }

    /// Counts a worker for the lifetime of the returned value. The first worker after a pause
    /// resets the count of batches, which faults refer to.
    pub(crate) fn join(self: &Arc<Self>, who: Claimant) -> Member {
        let mut state = self.lock();
        if state.workers == 0 {
            state.begun = 0;
            state.stretch = 1.0;
        }
        state.workers += 1;
        state.shares.join(&who);
        Member { turns: Arc::clone(self), who }
    }

    /// Workers whose turn it is.
    pub(crate) fn busy(&self) -> usize {
        self.lock().at_work.len()
    }

    /// Gives free turns to those who are next, and wakes them.
    fn dispatch(&self, state: &mut State) {
        while state.at_work.len() < self.turns_max {
            let State { waiting, shares, .. } = &*state;
            let rank = |it: &Waiting| match it.end {
                QueueEnd::Head => (QueueEnd::Head, Default::default(), it.number),
                QueueEnd::Tail => (QueueEnd::Tail, shares.rank(&it.who), it.number),
            };
            let next = (0..waiting.len()).min_by_key(|at| rank(&waiting[*at]));
            let Some(next) = next.map(|at| state.waiting.swap_remove(at)) else { return };
            let charged = state.shares.begin(&next.who);
            state.at_work.insert(next.number, AtWork { heartbeats: next.heartbeats, charged });
            next.thread.unpark();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave the state inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker of the device.
#[derive(Debug)]
pub(crate) struct Member {
    turns: Arc<Turns>,
    who: Claimant,
}

impl Member {
    /// Waits for a turn; `None` if `go_on` cancels it. A waiting worker counts as alive while any
    /// of those whose turn it is does.
    pub(crate) fn wait(
        &self,
        end: QueueEnd,
        heartbeats: &Arc<Heartbeats>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<Turn> {
        let number = self.enter(end, heartbeats);
        let mut others = OthersAtWork::default();
        others.are_alive(&self.turns.lock());
        loop {
            if let Some(turn) = self.granted(number) {
                return Some(turn);
            }
            let begun = Instant::now();
            std::thread::park_timeout(WAIT_SLICE);
            if begun.elapsed() >= WAIT_SLICE && others.are_alive(&self.turns.lock()) {
                heartbeats.beat();
            }
            if !go_on() {
                let mut state = self.turns.lock();
                state.waiting.retain(|waiting| waiting.number != number);
                drop(state);
                // It may have been granted meanwhile; dropping it passes it on.
                drop(self.granted(number));
                return None;
            }
        }
    }

    fn enter(&self, end: QueueEnd, heartbeats: &Arc<Heartbeats>) -> u64 {
        let mut state = self.turns.lock();
        let number = state.next_number;
        state.next_number += 1;
        state.shares.arrive(&self.who);
        let (who, thread) = (self.who.clone(), std::thread::current());
        let heartbeats = Arc::clone(heartbeats);
        state.waiting.push(Waiting { number, end, who, thread, heartbeats });
        self.turns.dispatch(&mut state);
        number
    }

    /// The turn with this number, if it was granted.
    fn granted(&self, number: u64) -> Option<Turn> {
        let is_granted = self.turns.lock().at_work.contains_key(&number);
        is_granted.then(|| Turn {
            turns: Arc::clone(&self.turns),
            who: self.who.clone(),
            number,
            begun: Instant::now(),
        })
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        state.workers -= 1;
        state.shares.leave(&self.who);
    }
}

/// Polls the heartbeats of the workers whose turn it is.
#[derive(Debug, Default)]
struct OthersAtWork(BTreeMap<u64, HeartbeatMonitor>);

impl OthersAtWork {
    /// Whether one of them had a heartbeat since the last poll, or there is none.
    fn are_alive(&mut self, state: &State) -> bool {
        self.0.retain(|number, _| state.at_work.contains_key(number));
        let mut is_any_alive = state.at_work.is_empty();
        for (number, other) in &state.at_work {
            let monitor = self.0.entry(*number).or_default();
            is_any_alive |= monitor.is_alive(&other.heartbeats);
        }
        is_any_alive
    }
}

/// A worker's turn; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    who: Claimant,
    number: u64,
    begun: Instant,
}

impl Turn {
    /// Begins a batch: returns its faults and the current slow-down.
    pub(crate) fn begin(&self, faults: &[Fault]) -> (BatchFaults, f64) {
        let mut state = self.turns.lock();
        state.begun += 1;
        let plan = BatchFaults::at(faults, state.begun);
        state.stretch = plan.slow.unwrap_or(state.stretch);
        (plan, state.stretch)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let took = self.begun.elapsed();
        let mut state = self.turns.lock();
        if let Some(ended) = state.at_work.remove(&self.number) {
            state.shares.end(&self.who, ended.charged, took);
        }
        self.turns.dispatch(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn turns() -> (Arc<Turns>, Arc<Heartbeats>) {
        (Arc::new(Turns::new(1)), Arc::default())
    }

    fn who() -> Claimant {
        Claimant { client: "a".into(), loader: 1 }
    }

    fn wait_until_queued(turns: &Turns, wanted: usize) {
        while turns.lock().waiting.len() < wanted {
            std::thread::yield_now();
        }
    }

    #[test]
    fn turns_are_taken_in_order_and_writers_go_first() {
        let (turns, heartbeats) = turns();
        let own = turns.join(who());
        let turn = own.wait(QueueEnd::Tail, &heartbeats, &mut || true).unwrap();
        let (started, order) = channel();
        std::thread::scope(|scope| {
            for (end, name) in [(QueueEnd::Tail, 2), (QueueEnd::Tail, 3), (QueueEnd::Head, 1)] {
                let waiting = turns.lock().waiting.len();
                let (turns, heartbeats, started) = (&turns, &heartbeats, started.clone());
                scope.spawn(move || {
                    let turn = turns.join(who()).wait(end, heartbeats, &mut || true).unwrap();
                    started.send(name).unwrap();
                    drop(turn);
                });
                wait_until_queued(turns, waiting + 1);
            }
            drop(turn);
        });
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(turns.busy(), 0);
    }

    #[test]
    fn a_worker_that_gives_up_leaves_the_queue_and_delays_no_other() {
        let (turns, heartbeats) = turns();
        let own = turns.join(who());
        let turn = own.wait(QueueEnd::Tail, &heartbeats, &mut || true).unwrap();
        assert!(own.wait(QueueEnd::Head, &heartbeats, &mut || false).is_none());
        assert!(turns.lock().waiting.is_empty());
        drop(turn);
        assert!(own.wait(QueueEnd::Tail, &heartbeats, &mut || false).is_some());
    }

    #[test]
    fn a_waiting_worker_sends_heartbeats_while_the_working_one_does() {
        let (turns, at_work) = turns();
        let turn = turns.join(who()).wait(QueueEnd::Tail, &at_work, &mut || true).unwrap();
        let waiting = Arc::new(Heartbeats::default());
        let mut monitor = HeartbeatMonitor::default();
        let mut wait = |gives: bool| {
            let mut asked = 0;
            turns.join(who()).wait(QueueEnd::Tail, &waiting, &mut || {
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
            let (one, other) = (turns.join(who()), turns.join(who()));
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

    #[test]
    fn as_many_workers_have_a_turn_as_there_are_turns() {
        let turns = Arc::new(Turns::new(2));
        let heartbeats = Arc::default();
        let (one, other, third) = (turns.join(who()), turns.join(who()), turns.join(who()));
        let wait = |member: &Member| member.wait(QueueEnd::Tail, &heartbeats, &mut || false);
        let (first, second) = (wait(&one), wait(&other));
        assert!(first.is_some() && second.is_some() && wait(&third).is_none());
        assert_eq!(turns.busy(), 2);
        drop(first);
        assert!(wait(&third).is_some());
    }

    #[test]
    fn the_client_that_used_less_time_is_next() {
        let (turns, heartbeats) = turns();
        let who = |client: &str, loader| Claimant { client: client.into(), loader };
        let busy = turns.join(who("busy", 1));
        // A batch of an hour, as far as the accounts know.
        turns.lock().shares.arrive(&who("busy", 1));
        turns.lock().shares.end(&who("busy", 1), Duration::ZERO, Duration::from_secs(3600));
        let turn = turns.join(who("other", 3)).wait(QueueEnd::Tail, &heartbeats, &mut || true);
        let (started, order) = channel();
        std::thread::scope(|scope| {
            for (member, name) in [(busy, "busy"), (turns.join(who("idle", 2)), "idle")] {
                let waiting = turns.lock().waiting.len();
                let (heartbeats, started) = (&heartbeats, started.clone());
                scope.spawn(move || {
                    let turn = member.wait(QueueEnd::Tail, heartbeats, &mut || true).unwrap();
                    started.send(name).unwrap();
                    drop(turn);
                });
                wait_until_queued(&turns, waiting + 1);
            }
            drop(turn);
        });
        assert_eq!(order.try_iter().collect::<Vec<_>>(), ["idle", "busy"]);
    }
}
