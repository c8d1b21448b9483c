//! The devices in an epoch: messages to them, their reports, and their events.

use super::{
    DeviceEnd, FAILURES_IN_A_ROW_MAX, FetchTask, NOT_BEGUN, Prepared, PublishedSlot, QUIET_MAX_NS,
    Run,
};
use crate::causes::{BatchFault, Loss, SlotRefusal};
use crate::device_link::{Session, SlotContents, SlotLease};
use crate::events::{EventKind, Phase, Remaining};
use meetpoint_format::wire;
use meetpoint_scheduler::{Agreement, BatchIndex, DeviceDecision, DeviceId, Generation, Outcome};
use std::sync::Arc;
use std::time::Duration;

impl Run {
    /// The devices of the epoch.
    pub(crate) fn devices(&self) -> &[DeviceEnd] {
        &self.devices
    }

    pub(crate) fn uses(&self, session: &Arc<Session>) -> bool {
        self.end_of(session).is_some()
    }

    /// The device that uses this session.
    fn end_of(&self, session: &Arc<Session>) -> Option<usize> {
        let number = usize::from(session.device().0);
        let own = self.devices.get(number)?.session.as_ref()?;
        Arc::ptr_eq(own, session).then_some(number)
    }

    /// Sends their first work to devices that have none yet; devices without a link are lost at
    /// once.
    pub(in crate::driver) fn begin(&mut self) {
        for number in 0..self.devices.len() {
            self.begin_device(number);
            self.take_retained(number);
        }
        self.pump();
    }

    /// Uses the batches that a device's slots still hold from an earlier epoch. Those that the
    /// strategy cannot use are released.
    fn take_retained(&mut self, number: usize) {
        let end = &mut self.devices[number];
        let Some(session) = &end.session else { return };
        for (lease, contents) in session.take_retained() {
            let batch = BatchIndex(contents.batch);
            if self.scheduler.preloaded(0, end.id, batch) == Outcome::Accepted {
                let slot = PublishedSlot { lease: Some(lease), contents };
                end.published.insert(batch.0, slot);
                self.reused_batches += 1;
            }
        }
    }

    /// Sends a device the message to begin the epoch, once.
    pub(in crate::driver) fn begin_device(&mut self, number: usize) {
        let end = &mut self.devices[number];
        if std::mem::replace(&mut end.has_begun, true) {
            return;
        }
        let config = self.scheduler.config().devices[number];
        match &end.session {
            Some(session) => {
                end.meters_before = session.meters();
                session.start_epoch(self.epoch, config.first_generation);
            }
            None => self.scheduler.device_lost(0, end.id),
        }
    }

    /// A lost device has a new link. If the strategy has no work left for it, it waits for the next
    /// epoch.
    pub(in crate::driver) fn join(&mut self, number: usize, session: &Arc<Session>, ahead: u32) {
        let now = self.now();
        let end = &mut self.devices[number];
        let ahead = ahead.min(self.scheduler.config().devices[number].spool_slots.max(1));
        if let Some(generation) = self.scheduler.device_joined(now, end.id, ahead) {
            end.join(session, now);
            session.start_epoch(self.epoch, generation.0);
        }
    }

    /// A device gets a link before it has begun this epoch.
    pub(in crate::driver) fn adopt(&mut self, session: &Arc<Session>) {
        if let Some(end) = self.devices.get_mut(usize::from(session.device().0)) {
            end.adopt(session);
        }
    }

    /// A device continues with the next epoch, to which its reports refer from now on.
    pub(in crate::driver) fn leave_device(&mut self, number: usize) {
        let end = &mut self.devices[number];
        end.meters_after = Some(end.meters());
    }

    /// Sends decisions to the devices, and records the scheduler's findings.
    pub(in crate::driver) fn pump(&mut self) {
        let now = self.now();
        self.drop_discarded(now);
        for number in 0..self.devices.len() {
            self.pump_device(now, number);
        }
    }

    /// Drops batches of devices that the host prepares again so that all ranks take the same
    /// source.
    fn drop_discarded(&mut self, now: u64) {
        while let Some((batch, device)) = self.scheduler.discard(now) {
            self.ready.remove(&batch.0);
            self.devices[usize::from(device.0)].published.remove(&batch.0);
        }
    }

    /// Applies the decision of all ranks.
    pub(in crate::driver) fn agreed(&mut self, agreement: Agreement) -> Outcome {
        let now = self.now();
        let outcome = self.scheduler.agreed(now, agreement);
        self.pump();
        outcome
    }

    fn pump_device(&mut self, now: u64, number: usize) {
        let Self { devices, scheduler, epoch, serial, .. } = self;
        let end = &mut devices[number];
        let ahead = scheduler.config().devices[number].ahead;
        if !end.has_begun || (*serial == NOT_BEGUN && !end.has_slots(ahead)) {
            return;
        }
        let mut was_revoked = false;
        loop {
            let decision = scheduler.device(now, end.id);
            let Some(session) = &end.session else { break };
            match decision {
                DeviceDecision::Work(run, generation) => {
                    end.heard_ns = now;
                    session.work(*epoch, run, generation);
                }
                DeviceDecision::Revoke(generation) => {
                    was_revoked = true;
                    session.revoke(*epoch, generation.0);
                }
                // The device waits for the next epoch by itself.
                DeviceDecision::Stop => end.has_stopped = true,
                DeviceDecision::Idle => break,
            }
        }
        let (stalls, _) = self.stalls_of(self.devices[number].id);
        if stalls > self.devices[number].stalls_seen {
            self.note_stall(number);
        } else if was_revoked {
            self.note_taken_back(now, number);
        }
    }

    /// How often a device stalled, and whether it was declared lost.
    fn stalls_of(&self, device: DeviceId) -> (u32, bool) {
        let summary = self.scheduler.device_summary(device).unwrap_or_default();
        (summary.stalls, summary.lost)
    }

    fn note_taken_back(&mut self, now: u64, number: usize) {
        let end = &mut self.devices[number];
        let quiet_ns = now.saturating_sub(end.heard_ns);
        end.is_silent = quiet_ns > QUIET_MAX_NS;
        let (device, silent_ns) = (end.label, end.is_silent.then_some(quiet_ns));
        self.note(EventKind::BatchesReclaimed { device, silent_ns });
    }

    fn note_stall(&mut self, number: usize) {
        let (stalls, is_given_up) = self.stalls_of(self.devices[number].id);
        let config = self.scheduler.config();
        let (timeout_ns, stalls_max) = (config.stall_timeout_ns, config.stalls_max);
        let end = &mut self.devices[number];
        end.stalls_seen = stalls;
        end.is_silent = true;
        let device = end.label;
        self.note(EventKind::DeviceStalled { device, timeout_ns, stalls, stalls_max, is_given_up });
        if is_given_up {
            self.devices[number].published.clear();
        }
    }

    /// Records how long the consumer has waited, and returns the event if it waits for a device.
    pub(in crate::driver) fn note_long_wait(&mut self, waited: Duration) -> Option<EventKind> {
        let id = self.scheduler.device_waited_for()?;
        let device = self.devices[usize::from(id.0)].label;
        let summary = self.scheduler.device_summary(id).unwrap_or_default();
        let waited_ns = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        let batch_ns = Some(summary.batch_ns).filter(|each| *each > 0);
        let event = EventKind::DeviceAwaited { device, waited_ns, batch_ns };
        self.note(event.clone());
        Some(event)
    }

    /// A batch of a device has to be prepared by the host.
    fn note_failure(&mut self, number: usize, batch: u32, fault: &BatchFault) {
        let end = &mut self.devices[number];
        if end.failures.enter(fault) {
            let (device, fault) = (end.label, fault.clone());
            self.note(EventKind::BatchFailed { device, batch, fault });
        }
    }

    /// A device failed on too many batches in a row: it gets no more work.
    fn give_up_device(&mut self, now: u64, number: usize, fault: BatchFault) {
        // A device that failed permanently will also fail on work already granted.
        let end = &mut self.devices[number];
        let summary = self.scheduler.device_summary(end.id);
        let generation = summary.expect("the epoch knows its devices").generation;
        self.scheduler.device_lost(now, end.id);
        end.published.clear();
        if let Some(session) = &end.session {
            session.revoke(self.epoch, generation.saturating_add(1));
        }
        let device = self.devices[number].label;
        let (failures, remaining) = (FAILURES_IN_A_ROW_MAX, self.remaining_without(number));
        self.note(EventKind::DeviceGivenUp { device, failures, fault, remaining });
    }

    /// Who prepares the batches of a device that was declared lost.
    pub(in crate::driver) fn remaining_without(&self, number: usize) -> Remaining {
        let others = self.devices.iter().filter(|other| usize::from(other.id.0) != number);
        Remaining::of_devices(others.filter(|other| !self.stalls_of(other.id).1).count())
    }

    // Messages of devices.

    pub(in crate::driver) fn published(
        &mut self,
        session: &Arc<Session>,
        message: &wire::Published,
        lease: SlotLease,
    ) {
        let now = self.now();
        let Some(number) = self.end_of(session) else { return };
        let end = &mut self.devices[number];
        end.slots_published += 1;
        end.heard(now);
        if message.epoch != self.epoch {
            return;
        }
        let (batch, generation) = (BatchIndex(message.batch), Generation(message.generation));
        if self.scheduler.device_published(now, end.id, batch, generation) == Outcome::Accepted {
            let contents = SlotContents {
                epoch: message.epoch,
                generation: message.generation,
                batch: message.batch,
                start_ns: message.started_ns,
                end_ns: message.published_ns,
            };
            let slot = PublishedSlot { lease: Some(lease), contents };
            end.published.insert(batch.0, slot);
            end.unprepared_in_a_row = 0;
        }
    }

    pub(in crate::driver) fn progress(&mut self, session: &Arc<Session>) {
        let now = self.now();
        let Some(number) = self.end_of(session) else { return };
        let end = &mut self.devices[number];
        end.heard(now);
        self.scheduler.device_progress(now, end.id);
    }

    pub(in crate::driver) fn failed(&mut self, session: &Arc<Session>, message: &wire::Failed) {
        let now = self.now();
        let Some(number) = self.end_of(session) else { return };
        let end = &mut self.devices[number];
        end.heard(now);
        if message.epoch != self.epoch {
            return;
        }
        let (batch, generation) = (BatchIndex(message.batch), Generation(message.generation));
        if self.scheduler.device_rejected(now, end.id, batch, generation) == Outcome::Accepted {
            end.published.remove(&batch.0);
            let (batch, detail) = (batch.0, message.reason.trim().to_owned());
            if message.is_damage {
                return self.note_failure(number, batch, &BatchFault::Damage { detail });
            }
            if message.exceeds_slot {
                return self.note_failure(number, batch, &BatchFault::Size { detail });
            }
            end.unprepared_in_a_row += 1;
            let is_last_straw = end.unprepared_in_a_row == FAILURES_IN_A_ROW_MAX;
            let fault = BatchFault::Preparation { detail };
            self.note_failure(number, batch, &fault);
            if is_last_straw {
                self.give_up_device(now, number, fault);
            }
        }
    }

    pub(in crate::driver) fn leaving(&mut self, session: &Arc<Session>) {
        let now = self.now();
        let Some(number) = self.end_of(session) else { return };
        let end = &mut self.devices[number];
        self.scheduler.device_leaving(now, end.id);
        let device = end.label;
        let remaining = self.remaining_without(number);
        self.note(EventKind::DeviceLeaving { device, remaining });
    }

    pub(in crate::driver) fn lost(&mut self, session: &Arc<Session>, reason: Loss) {
        let now = self.now();
        let Some(number) = self.end_of(session) else { return };
        let end = &mut self.devices[number];
        self.scheduler.device_lost(now, end.id);
        end.published.clear();
        let (device, phase) = (end.label, Phase::Epoch);
        let remaining = self.remaining_without(number);
        self.note(EventKind::DeviceLost { device, phase, reason, remaining, remedy: None });
    }

    // Fetching from their spools.

    /// The slot that should be fetched next.
    pub(in crate::driver) fn fetch(&mut self) -> Option<FetchTask> {
        let (batch, device, generation) = self.scheduler.fetch(self.now())?;
        let published = self.devices[usize::from(device.0)]
            .published
            .remove(&batch.0)
            .expect("what the scheduler wants fetched was published and not taken back");
        let (serial, epoch) = (self.serial, self.epoch);
        Some(FetchTask { serial, epoch, device, batch, generation, published })
    }

    pub(in crate::driver) fn fetched(&mut self, task: &FetchTask, prepared: Prepared) {
        let now = self.now();
        let outcome = self.scheduler.device_fetched(now, task.device, task.batch, task.generation);
        if outcome == Outcome::Accepted {
            let published = task.published.contents.end_ns.saturating_sub(self.begun_ns);
            self.devices[usize::from(task.device.0)].refused_in_a_row = 0;
            self.meters.bring.add(prepared.bring_ns);
            self.meters.fetch.add(self.elapsed().saturating_sub(published));
            self.make_ready(task.batch, prepared);
        }
    }

    pub(in crate::driver) fn refused(&mut self, task: &FetchTask, refusal: SlotRefusal) {
        let now = self.now();
        let outcome = self.scheduler.device_rejected(now, task.device, task.batch, task.generation);
        if outcome == Outcome::Accepted {
            let number = usize::from(task.device.0);
            let end = &mut self.devices[number];
            end.refused_in_a_row += 1;
            let is_last_straw = end.refused_in_a_row == FAILURES_IN_A_ROW_MAX;
            let fault = BatchFault::Refused { refusal };
            self.note_failure(number, task.batch.0, &fault);
            if is_last_straw {
                self.give_up_device(now, number, fault);
            }
        }
    }
}
