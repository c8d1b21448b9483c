//! Decisions: what each part should do now.

use crate::epoch::Epoch;
use crate::epoch::device::Lost;
use crate::ledger::State;
use crate::strategies::{Next, Rescue};
use crate::types::{
    AcceleratorDecision, BatchIndex, DeviceDecision, DeviceId, Generation, HostDecision, Source,
    Time, WorkRun,
};

/// A driver is never told to wait longer than this.
const WAIT_MAX_NS: u64 = 1_000_000_000;

impl Epoch {
    /// What host preparation should do.
    pub fn host(&mut self, now: Time) -> HostDecision {
        self.tell(now);
        let plan = self.plan.as_ref();
        let Some(batch) = plan.pick_for_host(&self.board) else {
            return HostDecision::Done;
        };
        // The batch that is consumed next always finds a place: one is kept for it while a device
        // may fail on a batch that comes before this one.
        let reserve = plan.next(&self.board) != Next::Only(batch)
            && plan.device_may_precede(&self.board, batch)
            && !self.board.all_lost()
            && (self.board.any_unready() || self.board.ledger.untouched() > 0);
        let limit = self.board.config.host_ahead - u32::from(reserve);
        if self.board.ledger.host_open() >= limit {
            return HostDecision::Idle;
        }
        self.board.ledger.claim_for_host(batch);
        self.board.steps.host_claimed(self.board.now, batch.0);
        self.plan.as_mut().learn(&self.board);
        self.check_step();
        HostDecision::Prepare(batch)
    }

    /// What a device should be told.
    pub fn device(&mut self, now: Time, device: DeviceId) -> DeviceDecision {
        self.tell(now);
        let Some(state) = self.board.devices.get_mut(usize::from(device.0)) else {
            return DeviceDecision::Idle;
        };
        if state.revoke_due {
            state.revoke_due = false;
            return DeviceDecision::Revoke(state.generation);
        }
        let ended = state.lost == Some(Lost::Stalls)
            || (state.claimed.is_empty() && self.plan.as_ref().grants_ended(&self.board));
        let state = self.board.device_mut(device);
        if ended && !state.stop_said {
            state.stop_said = true;
            return DeviceDecision::Stop;
        }
        if ended || !state.usable() {
            return DeviceDecision::Idle;
        }
        self.grant(device)
    }

    /// Claims for a device as much as its lookahead, the spool and the strategy allow.
    fn grant(&mut self, id: DeviceId) -> DeviceDecision {
        let board = &mut self.board;
        let device = &board.devices[usize::from(id.0)];
        let lookahead = device.ahead.saturating_sub(device.claimed.len());
        let slots = device.spool_slots.saturating_sub(device.slots());
        let most = lookahead.min(slots);
        if most == 0 {
            return DeviceDecision::Idle;
        }
        let count = self.plan.as_ref().grant(board, id).min(most).min(board.ledger.untouched());
        if count == 0 {
            return DeviceDecision::Idle;
        }
        let descending = self.plan.as_ref().grants_from_back();
        let now = board.now;
        let device = &mut board.devices[usize::from(id.0)];
        if device.claimed.is_empty() {
            device.busy_since = now;
            device.last_sign = now;
        }
        let generation = device.generation;
        let mut first = None;
        for _ in 0..count {
            let batch = board.ledger.claim_for_device(id, generation, descending);
            device.claimed.insert(batch);
            first.get_or_insert(batch);
        }
        self.plan.as_mut().learn(&self.board);
        self.check_step();
        let first = first.expect("count is at least one");
        DeviceDecision::Work(WorkRun { first, count, descending }, generation)
    }

    /// Which published batch should be brought into host memory next, in the order in which they
    /// will be consumed; it counts as being fetched from here on.
    pub fn fetch(&mut self, now: Time) -> Option<(BatchIndex, DeviceId, Generation)> {
        self.tell(now);
        if self.board.fetching + self.board.fetched >= self.board.config.fetch_ahead {
            return None;
        }
        let batch = self.plan.as_mut().next_fetch(&mut self.board)?;
        let Source::Device(device) = self.board.ledger.source(batch) else {
            unreachable!("only what a device published is fetched");
        };
        self.board.ledger.begin_fetch(batch);
        self.board.fetching += 1;
        self.check_step();
        Some((batch, device, self.board.ledger.generation(batch)))
    }

    /// What the accelerator should do.
    pub fn accelerator(&mut self, now: Time) -> AcceleratorDecision {
        self.tell(now);
        if self.board.ledger.consumed() == self.board.ledger.batches() {
            return AcceleratorDecision::Done;
        }
        self.fence_stalled();
        let ready = match self.plan.as_ref().next(&self.board) {
            Next::Only(batch) => (self.board.ledger.state(batch) == State::Ready).then_some(batch),
            Next::Any { host_first: true } => {
                let host = self.board.ready_host.pop_front();
                host.or_else(|| self.board.ready_device.pop_front())
            }
            Next::Any { host_first: false } => {
                let device = self.board.ready_device.pop_front();
                device.or_else(|| self.board.ready_host.pop_front())
            }
            Next::Unknown => None,
        };
        if let Some(batch) = ready {
            let source = self.board.consume(batch);
            self.check_step();
            return AcceleratorDecision::Consume(batch, source);
        }
        let rescue = self.plan.as_mut().rescue(&self.board);
        if let Rescue::TakeBack(device) = rescue {
            self.board.fence(device);
            self.plan.as_mut().learn(&self.board);
        }
        self.check_step();
        AcceleratorDecision::WaitUntil(self.wait_until(rescue))
    }

    /// The earliest time at which waiting may end without an event; later than now.
    fn wait_until(&self, rescue: Rescue) -> Time {
        let board = &self.board;
        let mut until = board.now.saturating_add(WAIT_MAX_NS);
        if let Rescue::WaitUntil(due) = rescue {
            until = until.min(due);
        }
        for device in &board.devices {
            if let Some(due) = device.stall_due(&board.config) {
                until = until.min(due);
            }
        }
        until.max(board.now.saturating_add(1))
    }
}
