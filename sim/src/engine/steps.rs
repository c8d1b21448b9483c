//! What the ranks of a training do together: agree on the source of a step, and end it when the
//! slowest has.
//!
//! A rank that is not in time is named, and ends the run. A training whose host failed repeats the
//! step after a restart.

use std::ops::Range;

use meetpoint_scheduler::{Proposal, Time};

use super::World;
use super::queue::Event;
use super::rank::Phase;
use crate::outcome::LostRank;
use crate::scenario::RankFaultKind;

/// The progress of the ranks of a training in the current step.
#[derive(Debug)]
pub(super) struct Steps {
    /// First rank.
    first: u32,
    ranks: u32,
    /// Ranks that proposed.
    proposed: u32,
    /// The combination of the proposals.
    combined: Option<Proposal>,
    /// Ranks that began the step.
    started: u32,
    /// How long the slowest of these takes.
    longest_ns: u64,
    /// When the slowest of these ends it.
    ends: Time,
    /// Ranks that have consumed every batch.
    done: u32,
    /// Since when a rank waits for the others.
    open_since: Option<Time>,
    timer_is_set: bool,
    /// Steps of the epoch that have ended.
    taken: u32,
    /// When the training has restarted after the failure of a host, if it must repeat the step.
    restarted_at: Option<Time>,
}

impl Steps {
    pub(super) fn new(first: u32, ranks: u32) -> Self {
        Self {
            first,
            ranks,
            proposed: 0,
            combined: None,
            started: 0,
            longest_ns: 0,
            ends: 0,
            done: 0,
            open_since: None,
            timer_is_set: false,
            taken: 0,
            restarted_at: None,
        }
    }

    pub(super) fn begin_epoch(&mut self) {
        *self = Self::new(self.first, self.ranks);
    }

    fn members(&self) -> Range<u32> {
        self.first..self.first + self.ranks
    }

    fn all_done(&self) -> bool {
        self.done == self.ranks
    }
}

impl World<'_> {
    /// The training of a rank.
    fn training_of(&self, rank: u32) -> u32 {
        rank / self.steps[0].ranks
    }

    fn steps_of(&mut self, training: u32) -> &mut Steps {
        &mut self.steps[training as usize]
    }

    /// Steps of the epoch that have ended, of all trainings.
    pub(super) fn steps_taken(&self) -> u64 {
        self.steps_taken
    }

    /// A rank has consumed every batch.
    pub(super) fn rank_done(&mut self, rank: u32) {
        let training = self.training_of(rank);
        let steps = self.steps_of(training);
        steps.done += 1;
        self.trainings_done += u32::from(self.steps[training as usize].all_done());
    }

    pub(super) fn all_done(&self) -> bool {
        self.trainings_done as usize == self.steps.len()
    }

    /// A rank proposes its step.
    pub(super) fn propose(&mut self, rank: u32, proposal: Proposal) {
        if self.dies_now(rank) {
            return;
        }
        self.ranks[rank as usize].phase = Phase::Proposed(proposal);
        let training = self.training_of(rank);
        let agreed_at = self.now.saturating_add(self.scenario.ranks.cost.0);
        let steps = self.steps_of(training);
        steps.combined = Some(steps.combined.map_or(proposal, |it| it.combine(proposal)));
        steps.proposed += 1;
        if steps.proposed == steps.ranks {
            self.queue.post(agreed_at, Event::Agreed { training });
        }
        self.somebody_waits(training);
    }

    /// All ranks of a training have proposed, and the result is known to all.
    pub(super) fn agreed(&mut self, training: u32) {
        let now = self.now;
        let steps = self.steps_of(training);
        steps.proposed = 0;
        let combined = steps.combined.take().expect("all ranks proposed");
        let members = steps.members();
        for rank in members.clone() {
            let rank = &mut self.ranks[rank as usize];
            rank.scheduler.agreed(now, combined.agreement());
            rank.phase = Phase::Asking;
        }
        for rank in members {
            self.discard(rank);
            self.poll(rank);
        }
    }

    /// A rank has begun the step.
    pub(super) fn step_started(&mut self, rank: u32, ends: Time) {
        let (training, now) = (self.training_of(rank), self.now);
        let steps = self.steps_of(training);
        steps.started += 1;
        steps.longest_ns = steps.longest_ns.max(ends - now);
        steps.ends = steps.ends.max(ends);
        if steps.started == steps.ranks {
            let ends = steps.ends;
            self.queue.post(ends, Event::StepEnds { training });
        }
        self.somebody_waits(training);
    }

    /// The slowest rank has ended the step.
    pub(super) fn step_ends(&mut self, training: u32) {
        let now = self.now;
        let steps = self.steps_of(training);
        if let Some(restarted) = steps.restarted_at.take() {
            let again = restarted.max(now).saturating_add(steps.longest_ns);
            self.queue.post(again, Event::StepEnds { training });
            return;
        }
        (steps.started, steps.ends, steps.longest_ns, steps.open_since) = (0, 0, 0, None);
        steps.taken += 1;
        let members = steps.members();
        self.steps_taken += 1;
        for rank in members.clone() {
            self.ranks[rank as usize].end_step(now);
        }
        for rank in members {
            if !self.dies_now(rank) {
                self.poll(rank);
            }
        }
    }

    /// A host fails: its training repeats the current step after the restart.
    pub(super) fn host_fails(&mut self, host: u32) {
        let training = self.training_of(host * self.scenario.ranks.count);
        let restarted = self.now.saturating_add(self.scenario.hosts.time_to_restart.0);
        let steps = self.steps_of(training);
        if !steps.all_done() {
            steps.restarted_at = Some(restarted);
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
            self.somebody_waits(self.training_of(rank));
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

    fn somebody_waits(&mut self, training: u32) {
        let now = self.now;
        let steps = self.steps_of(training);
        if steps.ranks == 1 || steps.open_since.is_some() {
            return;
        }
        steps.open_since = Some(now);
        self.set_timer(training);
    }

    fn set_timer(&mut self, training: u32) {
        let timeout = self.scenario.ranks.timeout.0;
        let steps = self.steps_of(training);
        if let Some(since) = steps.open_since
            && !std::mem::replace(&mut steps.timer_is_set, true)
        {
            self.queue.post(since.saturating_add(timeout), Event::Timeout { training });
        }
    }

    /// Checks whether a rank was waited for too long.
    pub(super) fn timeout(&mut self, training: u32) {
        let (timeout, now) = (self.scenario.ranks.timeout.0, self.now);
        let steps = self.steps_of(training);
        steps.timer_is_set = false;
        let overdue = steps.open_since.is_some_and(|since| since.saturating_add(timeout) <= now);
        if !overdue {
            self.set_timer(training);
            return;
        }
        // A rank is missing if it is absent, or has no batch yet while the others have one.
        let is_missing = |phase: Phase| match phase {
            Phase::Absent => 0,
            Phase::Asking => 1,
            Phase::Proposed(_) | Phase::InStep | Phase::Done => 2,
        };
        let members = self.steps[training as usize].members();
        let missing = members
            .map(|rank| (rank, &self.ranks[rank as usize]))
            .min_by_key(|(_, rank)| is_missing(rank.phase));
        let (rank, found) = missing.expect("there is a rank");
        if is_missing(found.phase) == 2 {
            // All have begun a step that takes longer than the timeout: no rank is late.
            self.steps_of(training).open_since = Some(now);
            self.set_timer(training);
            return;
        }
        self.lost =
            Some(LostRank { rank, epoch: self.epoch, step: found.outcome.steps + 1, at_ns: now });
    }
}
