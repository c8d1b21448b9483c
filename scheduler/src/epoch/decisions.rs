//! Decisions: what host, devices and accelerator should do now.

use crate::decision::{AcceleratorDecision, DeviceDecision, HostDecision};
use crate::device::DeviceLoss;
use crate::epoch::Epoch;
use crate::epoch::agree::StepKind;
use crate::ledger::State;
use crate::strategies::plan::{Next, StallAction};
use crate::types::{BatchIndex, DeviceId, Generation, Source, Time, WorkRun};

/// The longest wait requested from a driver.
const WAIT_MAX_NS: u64 = 1_000_000_000;

impl Epoch {
    /// What host preparation should do next.
    pub fn host(&mut self, now: Time) -> HostDecision {
        self.advance_clock(now);
        self.guard_long_step();
        self.board.grants_allowed = self.allows_grants();
        let Some(batch) = self.plan.pick_for_host(&mut self.board) else {
            return HostDecision::Done;
        };
        // One of the host's open batches stays reserved for the next batch to consume, while a
        // device may fail on a batch before this one.
        let next = self.plan.next(&self.board);
        let is_next = matches!(next, Next::Only(position) if position.batch == batch);
        let reserve = !is_next
            && self.plan.device_may_precede(&self.board, batch)
            && (self.board.any_at_risk()
                || (!self.board.all_lost() && self.board.ledger.untouched() > 0));
        let limit = self.board.host_ahead - u32::from(reserve);
        if self.board.ledger.host_open() >= limit {
            return HostDecision::Idle;
        }
        let began = self.board.began();
        self.board.ledger.claim_for_host(batch, began);
        self.board.steps.host_claimed(self.board.now, batch.0);
        self.plan.learn(&mut self.board);
        self.check_step();
        HostDecision::Prepare(batch)
    }

    /// What a device should do next.
    pub fn device(&mut self, now: Time, device: DeviceId) -> DeviceDecision {
        self.advance_clock(now);
        let Some(state) = self.board.devices.get_mut(usize::from(device.0)) else {
            return DeviceDecision::Idle;
        };
        if state.revoke_due {
            state.revoke_due = false;
            return DeviceDecision::Revoke(state.generation);
        }
        let ended = matches!(state.lost, Some(DeviceLoss::Stalls | DeviceLoss::Slow))
            || (state.claimed.is_empty() && self.plan.grants_ended(&self.board, device));
        let state = self.board.device_mut(device);
        if ended && !state.stop_said {
            state.stop_said = true;
            return DeviceDecision::Stop;
        }
        // After a stop, the device waits for the next epoch and is granted nothing.
        if ended || state.stop_said || !state.usable() || !self.allows_grants() {
            return DeviceDecision::Idle;
        }
        self.grant(device)
    }

    /// Claims as many batches for a device as its lookahead, the spool and the strategy allow.
    fn grant(&mut self, id: DeviceId) -> DeviceDecision {
        let device = self.board.device(id);
        let ahead = device.ahead.min(self.guard_ahead_most());
        let lookahead = ahead.saturating_sub(device.claimed.len());
        let slots = device.spool_slots.saturating_sub(device.slots());
        let mut most = lookahead.min(slots).min(self.ranks.surplus_left(&self.board));
        most = most.min(self.guard_grants_most()).min(self.pace_grants_most(id));
        if !self.board.ledger.parts.shared() {
            most = most.min(1);
        }
        if most == 0 {
            return DeviceDecision::Idle;
        }
        let grant = self.plan.grant(&self.board, id).at_most(most);
        if grant.count() == 0 {
            return DeviceDecision::Idle;
        }
        let board = &mut self.board;
        let (now, part) = (board.now, board.ledger.parts.of(id));
        let device = &mut board.devices[usize::from(id.0)];
        if device.claimed.is_empty() {
            device.busy_since = now;
            device.last_sign = now;
        }
        let generation = device.generation;
        let mut first = None;
        for offset in 0..grant.count() {
            let n = if grant.from_back { grant.end - 1 - offset } else { grant.first + offset };
            let batch = board.ledger.parts.batch(part, n);
            board.ledger.claim_for_device(batch, id, generation);
            device.claimed.push(batch);
            first.get_or_insert(batch);
        }
        board.refresh(id);
        self.plan.granted(&self.board, id, grant);
        self.plan.learn(&mut self.board);
        self.check_step();
        let first = first.expect("a grant is of at least one batch");
        let run = WorkRun { first, count: grant.count(), descending: grant.from_back };
        DeviceDecision::Work(run, generation)
    }

    /// The published batch to bring into host memory next, in the order in which batches will be
    /// consumed; it counts as being fetched from now on.
    pub fn fetch(&mut self, now: Time) -> Option<(BatchIndex, DeviceId, Generation)> {
        self.advance_clock(now);
        if self.board.fetching + self.board.fetched >= self.board.terms.fetch_ahead {
            return None;
        }
        let batch = self.plan.next_fetch(&mut self.board)?;
        let entry = self.board.ledger.entry(batch).expect("a published batch is open");
        let Source::Device(device) = entry.source else {
            unreachable!("only batches of devices are fetched");
        };
        self.board.ledger.begin_fetch(batch);
        self.board.fetching += 1;
        self.check_step();
        Some((batch, device, entry.generation))
    }

    /// What the accelerator should do.
    pub fn accelerator(&mut self, now: Time) -> AcceleratorDecision {
        self.advance_clock(now);
        if self.board.ledger.consumed() == self.board.ledger.batches() {
            return AcceleratorDecision::Done;
        }
        self.fence_stalled();
        let next = self.plan.next(&self.board);
        if self.board.terms.ranks > 1 && self.ranks.kind.is_none() {
            return match self.proposal(next) {
                Some(mut proposal) => {
                    self.guard_ends_wait();
                    self.guard.propose(&self.board, &mut proposal);
                    AcceleratorDecision::Agree(proposal)
                }
                None => self.wait(next),
            };
        }
        let board = &mut self.board;
        let ready = match (next, self.ranks.kind) {
            (Next::Only(position), kind) => {
                let entry = board.ledger.entry(position.batch);
                let entry = entry.filter(|entry| entry.state == State::Ready);
                if kind == Some(StepKind::Host)
                    && entry.is_some_and(|entry| entry.source != Source::Host)
                {
                    // It became ready or due after all ranks agreed on the host.
                    self.make_host_step();
                    return self.wait(next);
                }
                entry.map(|_| position.batch)
            }
            (Next::Any { .. }, Some(StepKind::Device)) => board.ready_device.pop_front(),
            (Next::Any { .. }, Some(StepKind::Host)) => {
                let ready = board.ready_host.pop_front();
                if ready.is_none() {
                    // Since the agreement, devices may have been granted everything that was left.
                    self.make_host_step();
                }
                ready
            }
            (Next::Any { host_first: true }, None) => {
                board.ready_host.pop_front().or_else(|| board.ready_device.pop_front())
            }
            (Next::Any { host_first: false }, None) => {
                board.ready_device.pop_front().or_else(|| board.ready_host.pop_front())
            }
            (Next::Unknown, _) => None,
        };
        let Some(batch) = ready else { return self.wait(next) };
        self.guard_ends_wait();
        if let Next::Only(_) = next {
            self.plan.consumed(&self.board);
        }
        let source = self.board.consume(batch);
        self.ranks.kind = None;
        self.check_step();
        AcceleratorDecision::Consume(batch, source)
    }

    /// No device can prepare the next batch, which is reserved for devices: their spools are full
    /// of later batches, other ranks delay them, or they are late. Assigns it to the host. Returns
    /// whether the assignment changed.
    fn host_instead(&mut self, next: Next) -> bool {
        let Next::Only(position) = next else { return false };
        if self.plan.is_late_with(&self.board, position.batch) {
            return true;
        }
        let parts = &self.board.ledger.parts;
        if !position.from_device || !parts.is_untouched(position.batch) {
            return false;
        }
        let (part, _) = parts.locate(position.batch);
        let devices = if parts.shared() { 0..self.board.devices.len() } else { part..part + 1 };
        let allowed = self.allows_grants();
        let hopeless = self.board.devices[devices].iter().all(|device| {
            let full = device.slots() >= device.spool_slots;
            let surplus = self.ranks.surplus_left(&self.board) == 0;
            !device.usable() || (device.claimed.is_empty() && (full || surplus || !allowed))
        });
        hopeless && self.plan.give_to_host(position.batch)
    }

    /// Nothing can be consumed: decides how long to wait, and whether to take work back.
    fn wait(&mut self, next: Next) -> AcceleratorDecision {
        let revoked = self.board.revoked;
        let given = self.host_instead(next);
        let guarded = self.guard_waiting(next);
        let rescue = self.plan.rescue(&self.board);
        if let StallAction::TakeBack(device) = rescue {
            self.board.fence(device);
            self.plan.learn(&mut self.board);
        }
        self.check_step();
        if given || self.board.revoked != revoked {
            // There is work for the host: all parts ask again immediately.
            return AcceleratorDecision::WaitUntil(self.board.now.saturating_add(1));
        }
        let mut until = self.board.now.saturating_add(WAIT_MAX_NS).min(self.board.stall_bound());
        if let StallAction::WaitUntil(due) = rescue {
            until = until.min(due);
        }
        for due in [guarded, self.guard_looks_again(next)].into_iter().flatten() {
            until = until.min(due);
        }
        AcceleratorDecision::WaitUntil(until.max(self.board.now.saturating_add(1)))
    }
}
