//! Devices that begin the next epoch while the consumer finishes this one.
//!
//! A device begins once it can contribute nothing more to this epoch, so a slot of one epoch cannot
//! be mistaken for another's (C6). What it publishes stays in its slots until the consumer begins
//! the epoch as well.

use super::run::{DeviceEnd, Run, RunSetup};
use super::{Driver, State};
use crate::device_link::Session;
use std::sync::{Arc, PoisonError};

impl Driver {
    /// Lets every device that is done with this epoch begin the next.
    pub(super) fn run_ahead(&self, state: &mut State) {
        let State { run: Some(run), ahead, .. } = state else { return };
        let is_last = run.epoch.saturating_add(1) >= self.epochs_ahead;
        // The epoch after a resumed one begins only when the consumer begins it.
        let is_rest = run.has_order();
        if is_last || is_rest || run.has_failed() || run.scheduler().config().replay.is_some() {
            return;
        }
        while let Some(number) = run.next_to_run_ahead() {
            let next = match ahead {
                Some(next) => next,
                None => match run.next_epoch() {
                    Some(next) => ahead.insert(next),
                    None => return,
                },
            };
            run.leave_device(number);
            next.begin_device(number);
        }
        if let Some(next) = ahead {
            next.pump();
        }
    }

    /// Highest generation that was used for an epoch ahead of the consumer; 0 for none.
    pub(crate) fn generation_ahead(&self) -> u32 {
        // May run during unwinding.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ahead.as_ref().map_or(0, Run::last_generation).max(state.generation_given_up)
    }
}

impl State {
    /// The epoch of a device's message: the next one if the device has begun it.
    pub(super) fn run_of(&mut self, session: &Arc<Session>, epoch: u32) -> Option<&mut Run> {
        let ahead = self.ahead.as_mut().filter(|run| run.epoch == epoch && run.uses(session));
        ahead.or_else(|| self.run.as_mut().filter(|run| run.uses(session)))
    }

    /// The running epoch, and the next if a device has begun it.
    pub(super) fn runs_of(&mut self, session: &Arc<Session>) -> impl Iterator<Item = &mut Run> {
        let runs = self.run.iter_mut().chain(&mut self.ahead);
        runs.filter(|run| run.uses(session))
    }

    /// The next epoch differs from the expected one: what devices prepared for it is discarded.
    pub(super) fn give_up_ahead(&mut self) {
        if let Some(ahead) = self.ahead.take() {
            self.generation_given_up = self.generation_given_up.max(ahead.last_generation());
            ahead.revoke();
        }
    }

    /// The next epoch, if devices have begun exactly that.
    pub(super) fn take_ahead(&mut self, setup: &mut RunSetup, serial: u64) -> Option<Run> {
        if self.ahead.as_ref().is_none_or(|ahead| !ahead.is_of(setup)) {
            self.give_up_ahead();
            return None;
        }
        let mut run = self.ahead.take()?;
        run.catch_up(serial, std::mem::take(&mut setup.events));
        run.known_before = setup.known_before;
        Some(run)
    }
}

impl Run {
    /// A device that can contribute nothing more to this epoch and has not begun the next.
    fn next_to_run_ahead(&self) -> Option<usize> {
        let is_done = |end: &DeviceEnd| {
            let is_lost = || self.scheduler().device_summary(end.id()).is_none_or(|it| it.lost);
            end.is_done() && !is_lost()
        };
        self.devices().iter().position(is_done)
    }

    /// The epoch after this one, if no device has begun it.
    fn next_epoch(&self) -> Option<Run> {
        let mut config = self.scheduler().config().clone();
        config.learned = self.scheduler().learned();
        // Ranks get here at different steps, but must use the same times.
        config.learned.common = self.known_before;
        let generation = self.last_generation().checked_add(2)?;
        config.devices.iter_mut().for_each(|device| device.first_generation = generation);
        let sessions = self.devices().iter().map(|end| end.session().cloned()).collect();
        let (epoch, events) = (self.epoch + 1, Vec::new());
        let known_before = None;
        let setup = RunSetup { epoch, config, sessions, order: None, events, known_before };
        Run::ahead(setup).ok()
    }

    /// Highest generation in use.
    fn last_generation(&self) -> u32 {
        self.scheduler().summary().last_generation
    }

    /// Revokes the work of the devices that have begun the epoch.
    fn revoke(&self) {
        let generation = self.last_generation().saturating_add(1);
        for end in self.devices().iter().filter(|end| end.has_begun()) {
            if let Some(session) = end.session() {
                session.revoke(self.epoch, generation);
            }
        }
    }

    /// Whether it is the epoch that is to begin now, with the links that it began with.
    fn is_of(&self, setup: &RunSetup) -> bool {
        let is_same =
            |(end, session): (&DeviceEnd, &Option<Arc<Session>>)| match (end.session(), session) {
                (Some(own), Some(now)) => Arc::ptr_eq(own, now) && !now.is_closed(),
                (None, None) => true,
                _ => false,
            };
        self.epoch == setup.epoch
            && !self.is_broken
            && setup.config.replay.is_none()
            && self.devices().len() == setup.sessions.len()
            && self.devices().iter().zip(&setup.sessions).all(is_same)
    }
}
