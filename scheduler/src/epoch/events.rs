//! Events: what happened, as the driver reports it.

use crate::device::DeviceLoss;
use crate::epoch::Epoch;
use crate::ledger::{Entry, State};
use crate::types::{BatchIndex, DeviceId, Generation, Outcome, Source, Time, VoidReason};

impl Epoch {
    /// The host finished a batch that was assigned to it.
    pub fn host_finished(&mut self, now: Time, batch: BatchIndex) -> Outcome {
        self.advance_clock(now);
        let ledger = &mut self.board.ledger;
        if !ledger.holds(batch) {
            return self.void(VoidReason::OutOfRange);
        }
        let claimed = |entry: &Entry| entry.source == Source::Host && entry.state == State::Claimed;
        let Some(entry) = ledger.entry(batch).filter(claimed) else {
            return self.void(VoidReason::NotClaimed);
        };
        ledger.finish_at_host(batch);
        if self.board.any_order {
            self.board.ready_host.push_back(batch);
        }
        self.board.steps.host_finished(self.board.now, batch.0);
        self.pace_host_finished(entry.began);
        self.check_step();
        Outcome::Accepted
    }

    /// A device has published a batch in the spool. It may be used only after it was fetched.
    pub fn device_published(
        &mut self,
        now: Time,
        device: DeviceId,
        batch: BatchIndex,
        generation: Generation,
    ) -> Outcome {
        self.advance_clock(now);
        let now = self.board.now;
        self.heard(device);
        match self.held(device, batch, generation) {
            Err(reason) => return self.void(reason),
            Ok(State::Claimed) => {}
            Ok(_) => return self.void(VoidReason::NotClaimed),
        }
        let holder = self.board.device_mut(device);
        holder.claimed.remove(batch);
        holder.published.push(batch);
        holder.batch.add(now.saturating_sub(holder.busy_since));
        holder.busy_since = now;
        self.pace_published();
        self.board.ledger.publish(batch);
        self.board.refresh(device);
        if self.board.any_order {
            self.board.note_published(batch);
        }
        self.plan.learn(&mut self.board);
        self.check_step();
        Outcome::Accepted
    }

    /// A published batch is in host memory and passed every check. It must have been returned by
    /// [`Epoch::fetch`].
    pub fn device_fetched(
        &mut self,
        now: Time,
        device: DeviceId,
        batch: BatchIndex,
        generation: Generation,
    ) -> Outcome {
        self.advance_clock(now);
        match self.held(device, batch, generation) {
            Err(reason) => return self.void(reason),
            Ok(State::Fetching) => {}
            Ok(_) => return self.void(VoidReason::NotClaimed),
        }
        let holder = self.board.device_mut(device);
        holder.published.remove(batch);
        holder.ready += 1;
        self.board.ledger.finish_fetch(batch);
        self.board.fetching -= 1;
        self.board.fetched += 1;
        if self.board.any_order {
            self.board.ready_device.push_back(batch);
        }
        self.check_step();
        Outcome::Accepted
    }

    /// A granted or published batch failed (at the device, torn, corrupt): the host must prepare
    /// it.
    pub fn device_rejected(
        &mut self,
        now: Time,
        device: DeviceId,
        batch: BatchIndex,
        generation: Generation,
    ) -> Outcome {
        self.advance_clock(now);
        let state = match self.held(device, batch, generation) {
            Err(reason) => return self.void(reason),
            Ok(state) => state,
        };
        if state == State::Claimed {
            // The device itself reported it, and continues with the next batch.
            self.heard(device);
            let now = self.board.now;
            let holder = self.board.device_mut(device);
            holder.claimed.remove(batch);
            holder.busy_since = now;
        } else {
            self.board.device_mut(device).published.remove(batch);
            self.board.fetching -= u32::from(state == State::Fetching);
        }
        self.board.device_mut(device).revoked += 1;
        self.board.ledger.take_back(batch);
        self.board.revoked += 1;
        self.plan.learn(&mut self.board);
        self.check_step();
        Outcome::Accepted
    }

    /// A device reported progress.
    pub fn device_progress(&mut self, now: Time, device: DeviceId) {
        self.advance_clock(now);
        self.heard(device);
    }

    /// The device is lost for this epoch.
    pub fn device_lost(&mut self, now: Time, device: DeviceId) {
        self.advance_clock(now);
        if usize::from(device.0) < self.board.devices.len() {
            self.board.give_up(device, DeviceLoss::Link);
            self.plan.learn(&mut self.board);
            self.check_step();
        }
    }

    /// A lost device has a new link, and holds no batch. It may get work again, under the returned
    /// generation, if the strategy has not assigned all batches yet. `ahead` replaces
    /// [`crate::DeviceConfig::ahead`]. `None` if it gets no work before the next epoch.
    pub fn device_joined(&mut self, now: Time, device: DeviceId, ahead: u32) -> Option<Generation> {
        self.advance_clock(now);
        let generation = self.board.rejoin(device, ahead)?;
        self.config.devices[usize::from(device.0)].ahead = ahead.max(1);
        self.plan.learn(&mut self.board);
        self.check_step();
        Some(generation)
    }

    /// The device is about to end: it prepares nothing more in this epoch, and what it published
    /// can still be fetched.
    pub fn device_leaving(&mut self, now: Time, device: DeviceId) {
        self.advance_clock(now);
        if self.board.devices.get(usize::from(device.0)).is_some_and(|it| it.lost.is_none()) {
            self.board.give_up(device, DeviceLoss::Leaving);
            self.plan.learn(&mut self.board);
            self.check_step();
        }
    }

    /// The accelerator is free: the previous step has ended. Call once per step, before asking.
    pub fn accelerator_ready(&mut self, now: Time) {
        self.advance_clock(now);
        let background = self.board.terms.background();
        self.board.steps.accelerator_ready(self.board.now, background);
        self.guard_step();
        self.plan.learn(&mut self.board);
    }

    /// To be called before any other method: this batch was published in the device's spool in an
    /// earlier epoch (reuse). It occupies a slot, and is fetched and consumed like any other. Void
    /// with [`VoidReason::NoPlace`] if the strategy cannot use it; the slot must then be released.
    pub fn preloaded(&mut self, now: Time, device: DeviceId, batch: BatchIndex) -> Outcome {
        self.advance_clock(now);
        if usize::from(device.0) >= self.board.devices.len() {
            return self.void(VoidReason::NotClaimed);
        }
        if !self.board.ledger.holds(batch) {
            return self.void(VoidReason::OutOfRange);
        }
        let (board, at) = (&self.board, self.board.device(device));
        let parts = &board.ledger.parts;
        let has_place = at.usable()
            && at.slots() < at.spool_slots
            && parts.locate(batch).0 == parts.of(device)
            && parts.is_untouched(batch)
            && self.plan.takes_preloaded(board, batch);
        if !has_place {
            return self.void(VoidReason::NoPlace);
        }
        let generation = at.generation;
        self.board.ledger.claim_for_device(batch, device, generation);
        self.board.ledger.publish(batch);
        self.board.device_mut(device).published.push(batch);
        if self.board.any_order {
            self.board.note_published(batch);
        }
        self.plan.learn(&mut self.board);
        self.check_step();
        Outcome::Accepted
    }

    /// Time has passed. Due at the latest at the time of [`crate::AcceleratorDecision::WaitUntil`].
    pub fn tick(&mut self, now: Time) {
        self.advance_clock(now);
        self.fence_stalled();
        self.check_step();
    }

    fn heard(&mut self, device: DeviceId) {
        let now = self.board.now;
        let Some(state) = self.board.devices.get_mut(usize::from(device.0)) else { return };
        state.last_sign = now;
        if state.silent {
            state.silent = false;
            self.board.refresh(device);
        }
    }

    /// The state of a batch that this device holds unready under this generation.
    fn held(
        &self,
        device: DeviceId,
        batch: BatchIndex,
        generation: Generation,
    ) -> Result<State, VoidReason> {
        let Some(holder) = self.board.devices.get(usize::from(device.0)) else {
            return Err(VoidReason::NotClaimed);
        };
        if matches!(holder.lost, Some(DeviceLoss::Link | DeviceLoss::Stalls)) {
            return Err(VoidReason::DeviceLost);
        }
        let ledger = &self.board.ledger;
        if !ledger.holds(batch) {
            return Err(VoidReason::OutOfRange);
        }
        let own = ledger.entry(batch).filter(|entry| {
            let unready =
                matches!(entry.state, State::Claimed | State::Published | State::Fetching);
            unready && entry.source == Source::Device(device) && entry.generation == generation
        });
        match own {
            Some(entry) => Ok(entry.state),
            None if generation < holder.generation => Err(VoidReason::OldGeneration),
            None => Err(VoidReason::NotClaimed),
        }
    }

    pub(super) fn void(&mut self, reason: VoidReason) -> Outcome {
        self.board.void_reports = self.board.void_reports.saturating_add(1);
        Outcome::Void(reason)
    }
}
