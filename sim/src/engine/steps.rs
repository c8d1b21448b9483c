//! What ranks do together: agree on the source of a step, and end it when the slowest has.
//!
//! A rank that is not in time is named, and ends the run.

use meetpoint_scheduler::{Proposal, Time};

use super::World;
use super::queue::Event;
use super::rank::Phase;
use crate::outcome::LostRank;
use crate::scenario::RankFaultKind;

/// The progress of all ranks in the current step.
#[derive(Debug)]
pub(super) struct Steps {
    ranks: u32,
    /// Ranks that proposed.
    proposed: u32,
    /// The combination of the proposals.
    combined: Option<Proposal>,
    /// Ranks that began the step.
    started: u32,
    /// When the slowest of these ends it.
    ends: Time,
    /// Ranks that have consumed every batch.
    done: u32,
    /// Since when a rank waits for the others.
    open_since: Option<Time>,
    timer_is_set: bool,
    /// Steps of the epoch that have ended.
    taken: u32,
}

impl Steps {
    pub(super) fn new(ranks: u32) -> Self {
        Self {
            ranks,
            proposed: 0,
            combined: None,
            started: 0,
            ends: 0,
            done: 0,
            open_since: None,
            timer_is_set: false,
            taken: 0,
        }
    }

    /// Steps of the epoch that have ended.
    pub(super) fn taken(&self) -> u32 {
        self.taken
    }

    pub(super) fn begin_epoch(&mut self) {
        *self = Self::new(self.ranks);
    }

    pub(super) fn rank_done(&mut self) {
        self.done += 1;
    }

    pub(super) fn all_done(&self) -> bool {
        self.done == self.ranks
    }
}

impl World<'_> {
    /// A rank proposes its step.
    pub(super) fn propose(&mut self, rank: u32, proposal: Proposal) {
        if self.dies_now(rank) {
            return;
        }
        self.ranks[rank as usize].phase = Phase::Proposed(proposal);
        let steps = &mut self.steps;
        steps.combined = Some(steps.combined.map_or(proposal, |it| it.combine(proposal)));
        steps.proposed += 1;
        if steps.proposed == steps.ranks {
            self.queue.post(self.now.saturating_add(self.scenario.ranks.cost.0), Event::Agreed);
        }
        self.somebody_waits();
    }

    /// All ranks have proposed, and the result is known to all.
    pub(super) fn agreed(&mut self) {
        let steps = &mut self.steps;
        steps.proposed = 0;
        let combined = steps.combined.take().expect("all ranks proposed");
        for rank in &mut self.ranks {
            rank.scheduler.agreed(self.now, combined.agreement());
            rank.phase = Phase::Asking;
        }
        for rank in 0..self.steps.ranks {
            self.discard(rank);
            self.poll(rank);
        }
    }

    /// A rank has begun the step.
    pub(super) fn step_started(&mut self, ends: Time) {
        let steps = &mut self.steps;
        steps.started += 1;
        steps.ends = steps.ends.max(ends);
        if steps.started == steps.ranks {
            let ends = steps.ends;
            self.queue.post(ends, Event::StepEnds);
        }
        self.somebody_waits();
    }

    /// The slowest rank has ended the step.
    pub(super) fn step_ends(&mut self) {
        let steps = &mut self.steps;
        (steps.started, steps.ends, steps.open_since) = (0, 0, None);
        steps.taken += 1;
        for rank in &mut self.ranks {
            rank.end_step(self.now);
        }
        for rank in 0..self.steps.ranks {
            if !self.dies_now(rank) {
                self.poll(rank);
            }
        }
    }

    /// Whether a rank is lost from now on; it then stays absent.
    pub(super) fn dies_now(&mut self, rank: u32) -> bool {
        let next = self.ranks[rank as usize].steps() + 1;
        let mut faults = self.scenario.ranks.faults.iter();
        let dies = faults.any(|fault| {
            fault.rank == rank && matches!(fault.kind, RankFaultKind::Die(step) if step <= next)
        });
        if dies {
            self.ranks[rank as usize].be_absent();
            self.somebody_waits();
        }
        dies
    }

    /// A late rank arrives.
    pub(super) fn arrives(&mut self, rank: u32) {
        let found = &mut self.ranks[rank as usize];
        found.phase = Phase::Asking;
        found.scheduler.accelerator_ready(self.now);
        self.poll(rank);
    }

    fn somebody_waits(&mut self) {
        if self.steps.ranks == 1 || self.steps.open_since.is_some() {
            return;
        }
        self.steps.open_since = Some(self.now);
        self.set_timer();
    }

    fn set_timer(&mut self) {
        if let Some(since) = self.steps.open_since
            && !std::mem::replace(&mut self.steps.timer_is_set, true)
        {
            let at = since.saturating_add(self.scenario.ranks.timeout.0);
            self.queue.post(at, Event::Timeout);
        }
    }

    /// Checks whether a rank was waited for too long.
    pub(super) fn timeout(&mut self) {
        self.steps.timer_is_set = false;
        let timeout = self.scenario.ranks.timeout.0;
        let overdue =
            self.steps.open_since.is_some_and(|since| since.saturating_add(timeout) <= self.now);
        if !overdue {
            self.set_timer();
            return;
        }
        // A rank is missing if it is absent, or has no batch yet while the others have one.
        let is_missing = |phase: Phase| match phase {
            Phase::Absent => 0,
            Phase::Asking => 1,
            Phase::Proposed(_) | Phase::InStep | Phase::Done => 2,
        };
        let missing = (0_u32..).zip(&self.ranks).min_by_key(|(_, rank)| is_missing(rank.phase));
        let (rank, found) = missing.expect("there is a rank");
        if is_missing(found.phase) == 2 {
            // All have begun a step that takes longer than the timeout: no rank is late.
            self.steps.open_since = Some(self.now);
            self.set_timer();
            return;
        }
        self.lost = Some(LostRank {
            rank,
            epoch: self.epoch,
            step: found.outcome.steps + 1,
            at_ns: self.now,
        });
    }
}
