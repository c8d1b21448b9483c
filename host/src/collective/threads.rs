//! A collective for ranks that are threads of one process.

use super::rank_wait::RankWait;
use super::{Collective, CollectiveError, Turn};
use crate::stop::WAIT_SLICE;
use meetpoint_scheduler::{Agreement, Proposal};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The collective of ranks that are threads of one process.
#[derive(Debug)]
pub struct Threads {
    ranks: u32,
    state: Mutex<State>,
    /// Notified when a rank takes a turn, or leaves.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// By epoch and number of the decision. An entry is removed once all ranks have taken its
    /// result, so there are at most two, and those of a failed epoch.
    decisions: BTreeMap<(u32, u64), PendingDecision>,
    /// The latest epoch that failed, and why.
    failed: Option<(u32, CollectiveError)>,
    /// The first rank that left permanently, and why.
    lost: Option<(u32, String)>,
    /// Number of heartbeats of each rank.
    heartbeats: Vec<u64>,
}

#[derive(Debug)]
struct PendingDecision {
    came: Vec<bool>,
    missing: u32,
    /// The proposals so far.
    combined: Proposal,
    /// Number of ranks that have taken the result.
    taken: u32,
}

impl Threads {
    /// A collective of `ranks` ranks (at least 1).
    pub fn new(ranks: u32) -> Arc<Self> {
        assert!(ranks > 0, "there is at least one rank");
        let state = State {
            decisions: BTreeMap::new(),
            failed: None,
            lost: None,
            heartbeats: vec![0; ranks as usize],
        };
        Arc::new(Self { ranks, state: Mutex::new(state), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while it is held leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the epoch for all ranks.
    fn fail(&self, state: &mut State, epoch: u32, error: CollectiveError) -> CollectiveError {
        // Decisions stay valid for ranks that have not read them yet.
        let stays = |of: u32, it: &PendingDecision| of > epoch || (of == epoch && it.missing == 0);
        state.decisions.retain(|(of, _), it| stays(*of, it));
        state.failed = Some((epoch, error.clone()));
        self.changed.notify_all();
        error
    }

    /// The rank leaves permanently; waiting ranks get an error at once.
    pub(super) fn lose(&self, rank: u32, why: &str) {
        let mut state = self.lock();
        state.lost.get_or_insert_with(|| (rank, why.to_owned()));
        self.changed.notify_all();
    }

    /// The first rank that left permanently, and why.
    pub(super) fn lost(&self) -> Option<(u32, String)> {
        self.lock().lost.clone()
    }
}

impl State {
    /// Why this turn cannot be taken any more.
    fn failure(&self, turn: &Turn<'_>) -> Option<CollectiveError> {
        let Turn { rank, epoch, number, .. } = *turn;
        let Some((_, error)) = self.failed.as_ref().filter(|(of, _)| *of == epoch) else {
            let (rank, why) = self.lost.as_ref()?;
            return Some(CollectiveError::Left { rank: *rank, epoch, why: why.clone() });
        };
        Some(match error {
            CollectiveError::Missing { ranks, .. } if ranks.contains(&rank) => {
                CollectiveError::Late { rank, epoch, number }
            }
            error => error.clone(),
        })
    }

    /// Ranks that neither took a turn nor sent a heartbeat within the timeout.
    fn silent(&self, turn: &Turn<'_>, wait: &mut RankWait) -> Vec<u32> {
        let decision = self.decisions.get(&(turn.epoch, turn.number));
        let decision = decision.expect("a decision ends when all took its result, or it failed");
        let missing =
            decision.came.iter().zip(&self.heartbeats).enumerate().filter(|(_, it)| !*it.0);
        let silent = missing.filter(|(at, it)| wait.silent(*at, *it.1) >= turn.limit);
        silent.map(|(at, _)| u32::try_from(at).expect("ranks have 32 bits")).collect()
    }

    /// Adds a rank's proposal; returns whether the rank was allowed to take this turn.
    fn enter(&mut self, turn: &Turn<'_>, ranks: u32, proposal: Proposal) -> bool {
        let key = (turn.epoch, turn.number);
        let is_first = !self.decisions.contains_key(&key);
        let decision = self.decisions.entry(key).or_insert_with(|| PendingDecision {
            came: vec![false; ranks as usize],
            missing: ranks,
            combined: proposal,
            taken: 0,
        });
        let Some(came) = decision.came.get_mut(turn.rank as usize).filter(|came| !**came) else {
            return false;
        };
        *came = true;
        decision.missing -= 1;
        if !is_first {
            decision.combined = decision.combined.combine(proposal);
        }
        true
    }
}

impl Threads {
    /// As [`Collective::agree`]; calls `meanwhile` at intervals while it waits.
    pub(super) fn agree_while(
        &self,
        turn: &Turn<'_>,
        proposal: Proposal,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Agreement, CollectiveError> {
        let key = (turn.epoch, turn.number);
        let mut state = self.lock();
        if let Some(error) = state.failure(turn) {
            return Err(error);
        }
        if turn.rank >= self.ranks || !state.enter(turn, self.ranks, proposal) {
            return Err(CollectiveError::NoTurn { rank: turn.rank, ranks: self.ranks });
        }
        self.changed.notify_all();
        let mut wait = RankWait::new(&state.heartbeats);
        loop {
            let met = state.decisions.get_mut(&key).filter(|decision| decision.missing == 0);
            if let Some(decision) = met {
                let agreement = decision.combined.agreement();
                decision.taken += 1;
                if decision.taken == self.ranks {
                    state.decisions.remove(&key);
                }
                return Ok(agreement);
            }
            if let Some(error) = state.failure(turn) {
                return Err(error);
            }
            if turn.stop.is_stopped() {
                return Err(CollectiveError::Interrupted);
            }
            wait.poll();
            let ranks = state.silent(turn, &mut wait);
            if !ranks.is_empty() {
                let Turn { epoch, number, limit: waited, .. } = *turn;
                let error = CollectiveError::Missing { ranks, epoch, number, waited };
                return Err(self.fail(&mut state, epoch, error));
            }
            let waited = self.changed.wait_timeout(state, turn.limit.min(WAIT_SLICE));
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            meanwhile();
            state = self.lock();
        }
    }
}

impl Collective for Threads {
    fn agree(&self, turn: &Turn<'_>, proposal: Proposal) -> Result<Agreement, CollectiveError> {
        self.agree_while(turn, proposal, &mut || {})
    }

    fn at_work(&self, rank: u32) {
        if let Some(heartbeats) = self.lock().heartbeats.get_mut(rank as usize) {
            *heartbeats += 1;
        }
    }

    fn leave(&self, rank: u32, epoch: u32, why: &str) {
        let mut state = self.lock();
        // The first reason stands; a rank that leaves because another is lost adds none.
        if state.lost.is_none() && state.failed.as_ref().is_none_or(|(failed, _)| *failed < epoch) {
            let error = CollectiveError::Left { rank, epoch, why: why.to_owned() };
            self.fail(&mut state, epoch, error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StopHandle;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(30);

    /// A proposal with distinct times.
    fn proposal(time_ns: u64) -> Proposal {
        let mut words = [0; Proposal::WORDS];
        words[3] = time_ns;
        Proposal::from_words(words)
    }

    fn turn(stop: &StopHandle, rank: u32, number: u64, limit: Duration) -> Turn<'_> {
        Turn { rank, epoch: 3, number, limit, stop }
    }

    #[test]
    fn all_ranks_get_the_combined_proposals() {
        let ranks = 4;
        let threads = Threads::new(ranks);
        let take = |rank: u32| {
            let stop = StopHandle::new();
            let turns = (0..50).map(|number| {
                let own = proposal(u64::from(rank) * 1000 + number);
                threads.agree(&turn(&stop, rank, number, LONG), own).unwrap()
            });
            turns.collect::<Vec<_>>()
        };
        let all: Vec<Vec<Agreement>> = std::thread::scope(|scope| {
            let take = &take;
            let threads: Vec<_> = (0..ranks).map(|rank| scope.spawn(move || take(rank))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let longest = |number: u64| proposal(3000 + number).agreement();
        let expected: Vec<Agreement> = (0..50).map(longest).collect();
        assert!(all.iter().all(|agreements| *agreements == expected));
        assert!(threads.lock().decisions.is_empty(), "finished decisions are removed");
    }

    #[test]
    fn a_missing_rank_is_named_and_is_too_late_afterwards() {
        let threads = Threads::new(3);
        let stop = StopHandle::new();
        let errors: Vec<String> = std::thread::scope(|scope| {
            let come = |rank| {
                let (threads, stop) = (&threads, &stop);
                scope.spawn(move || threads.agree(&turn(stop, rank, 7, SHORT), proposal(1)))
            };
            let threads = [come(0), come(2)];
            threads.map(|thread| thread.join().unwrap().unwrap_err().to_string()).to_vec()
        });
        for error in errors {
            assert!(error.starts_with("rank 1 missed decision 7 of epoch 3"), "{error}");
        }
        let late = threads.agree(&turn(&stop, 1, 7, LONG), proposal(1)).unwrap_err();
        assert_eq!(late, CollectiveError::Late { rank: 1, epoch: 3, number: 7 });
        let next = Turn { epoch: 4, ..turn(&stop, 0, 0, SHORT) };
        let error = threads.agree(&next, proposal(1)).unwrap_err().to_string();
        assert!(error.starts_with("ranks 1 and 2 missed"), "{error}");
    }

    /// Rank 0 checks the timeouts whenever it is woken; without the heartbeats before each check,
    /// rank 1 would have timed out ten times.
    #[test]
    fn heartbeats_extend_the_wait_and_a_silent_rank_times_out() {
        let threads = Threads::new(2);
        let stop = StopHandle::new();
        let (mut looks, limit) = (0, Duration::from_millis(20));
        let mut works = || {
            // Longer than the timeout, but a heartbeat precedes the next check.
            std::thread::sleep(limit);
            looks += 1;
            if looks < 10 {
                threads.at_work(1);
            }
        };
        let error = threads.agree_while(&turn(&stop, 0, 0, limit), proposal(1), &mut works);
        let error = error.unwrap_err().to_string();
        assert_eq!(looks, 10, "given up while it was at work: {error}");
        assert!(error.starts_with("rank 1 missed decision 0 of epoch 3"), "{error}");
        threads.at_work(7);
    }

    #[test]
    fn a_rank_that_leaves_is_named_at_once() {
        let threads = Threads::new(2);
        let stop = StopHandle::new();
        let error = std::thread::scope(|scope| {
            let waits = scope.spawn(|| threads.agree(&turn(&stop, 0, 0, LONG), proposal(1)));
            threads.leave(1, 3, "it panicked");
            waits.join().unwrap().unwrap_err()
        });
        assert_eq!(error.to_string(), "rank 1 left epoch 3: it panicked");
        threads.leave(0, 3, "its epoch failed");
        let error = threads.agree(&turn(&stop, 0, 1, LONG), proposal(1)).unwrap_err();
        assert_eq!(error.to_string(), "rank 1 left epoch 3: it panicked", "the first reason");
    }

    #[test]
    fn a_lost_rank_is_named_in_every_epoch_and_decisions_stand() {
        let threads = Threads::new(2);
        let stop = StopHandle::new();
        let agreed = std::thread::scope(|scope| {
            let waits = scope.spawn(|| threads.agree(&turn(&stop, 0, 0, LONG), proposal(1)));
            let own = threads.agree(&turn(&stop, 1, 0, LONG), proposal(2));
            threads.lose(1, "its process ended");
            [own, waits.join().unwrap()]
        });
        assert_eq!(agreed, [Ok(proposal(2).agreement()), Ok(proposal(2).agreement())]);
        threads.leave(0, 3, "rank 1 is lost");
        for epoch in [3, 4] {
            let turn = Turn { epoch, ..turn(&stop, 0, 1, LONG) };
            let error = threads.agree(&turn, proposal(1)).unwrap_err().to_string();
            assert_eq!(error, format!("rank 1 left epoch {epoch}: its process ended"));
        }
    }

    #[test]
    fn a_stop_ends_the_wait_and_a_turn_is_taken_once() {
        let threads = Threads::new(2);
        let stop = StopHandle::new();
        stop.stop();
        let waits = threads.agree(&turn(&stop, 0, 0, LONG), proposal(1));
        assert_eq!(waits, Err(CollectiveError::Interrupted));
        let twice = threads.agree(&turn(&stop, 0, 0, LONG), proposal(1));
        assert_eq!(twice, Err(CollectiveError::NoTurn { rank: 0, ranks: 2 }));
        let stranger = threads.agree(&turn(&stop, 2, 0, LONG), proposal(1));
        assert_eq!(stranger, Err(CollectiveError::NoTurn { rank: 2, ranks: 2 }));
    }

    #[test]
    fn a_rank_alone_agrees_with_itself() {
        let threads = Threads::new(1);
        let stop = StopHandle::new();
        let agreed = threads.agree(&turn(&stop, 0, 0, SHORT), proposal(5));
        assert_eq!(agreed, Ok(proposal(5).agreement()));
    }
}
