//! Devices whose lost links are reopened during an epoch, and what happens to devices between two
//! epochs.

use super::State;
use super::run::{Run, RunSetup};
use crate::causes::Loss;
use crate::device_link::Session;
use crate::events::{Attempt, DeviceLabel, EventKind, Phase, Remaining};
use crate::limits::device_ahead;
use meetpoint_scheduler::DeviceId;
use std::sync::Arc;

/// The result of an attempt to reopen a lost link between epochs.
#[derive(Debug)]
pub(super) struct EndedTry {
    attempt: Attempt,
    /// The link, or why it could not be opened.
    outcome: Result<Arc<Session>, Loss>,
}

#[cfg(test)]
impl super::Driver {
    /// Number of devices with an attempt that ended between epochs.
    pub(crate) fn tries_between(&self) -> usize {
        self.lock().tries_between.len()
    }
}

impl State {
    /// A link ended that no running epoch uses.
    pub(super) fn lost_between(&mut self, session: &Arc<Session>, loss: Loss) {
        match &mut self.run {
            // The link was closing when the epoch began.
            Some(run) => run.lost_before(session.device(), loss),
            None => {
                self.lost_between.insert(session.device().0, loss);
            }
        }
    }

    /// As [`LinkEvents::reopened`](crate::device_link::LinkEvents::reopened).
    pub(super) fn reopened(&mut self, session: &Arc<Session>, attempt: Attempt, threads: u32) {
        if let Some(ahead) = &mut self.ahead {
            ahead.adopt(session);
        }
        match &mut self.run {
            Some(run) => {
                run.reopened(session, attempt, threads);
                run.pump();
            }
            None => {
                let outcome = Ok(Arc::clone(session));
                self.tries_between.insert(session.device().0, EndedTry { attempt, outcome });
            }
        }
    }

    /// As [`LinkEvents::not_reopened`](crate::device_link::LinkEvents::not_reopened).
    pub(super) fn not_reopened(&mut self, device: DeviceId, attempt: Attempt, reason: Loss) {
        match &mut self.run {
            Some(run) => run.not_reopened(device, attempt, reason),
            None => {
                let outcome = Err(reason);
                self.tries_between.insert(device.0, EndedTry { attempt, outcome });
            }
        }
    }

    /// Adds to an epoch what happened to its devices after the previous epoch.
    pub(super) fn add_changes_between(&mut self, setup: &mut RunSetup) {
        let count = setup.sessions.len();
        let label = |number: u16| DeviceLabel::new(usize::from(number), count);
        for number in self.lost_between.keys() {
            let own = &mut setup.sessions[usize::from(*number)];
            own.take_if(|session| session.is_closed());
        }
        let remaining = Remaining::of_devices(setup.sessions.iter().flatten().count());
        for (number, reason) in std::mem::take(&mut self.lost_between) {
            let (device, phase, remedy) = (label(number), Phase::BetweenEpochs, None);
            let lost = EventKind::DeviceLost { device, phase, reason, remaining, remedy };
            setup.events.push(lost);
        }
        let tries = std::mem::take(&mut self.tries_between);
        for (number, EndedTry { outcome, .. }) in &tries {
            let own = &mut setup.sessions[usize::from(*number)];
            if let (None, Ok(session)) = (&own, outcome)
                && !session.is_closed()
            {
                *own = Some(Arc::clone(session));
            }
        }
        let remaining = Remaining::of_devices(setup.sessions.iter().flatten().count());
        for (number, EndedTry { attempt, outcome }) in tries {
            let own = &setup.sessions[usize::from(number)];
            let is_open = own.as_ref().is_some_and(|session| !session.is_closed());
            if is_open && outcome.is_err() {
                // A later attempt has opened the link, which is about to be reported.
                continue;
            }
            let device = label(number);
            setup.events.push(match outcome {
                Ok(_) => EventKind::DeviceReopened { device, attempt },
                Err(reason) => EventKind::DeviceNotReopened { device, attempt, reason, remaining },
            });
        }
    }
}

/// Whether an event reports that the link of this device could not be opened.
fn is_failed_try(event: &EventKind, own: DeviceLabel) -> bool {
    matches!(event, EventKind::DeviceNotReopened { device, .. } if *device == own)
}

impl Run {
    /// As [`State::reopened`].
    fn reopened(&mut self, session: &Arc<Session>, attempt: Attempt, threads: u32) {
        let number = usize::from(session.device().0);
        // The device has already begun the epoch if the epoch found its link before this event.
        if !self.uses(session) {
            self.join(number, session, device_ahead(threads));
        }
        let device = DeviceLabel::new(number, self.devices().len());
        self.note(EventKind::DeviceReopened { device, attempt });
    }

    /// As [`State::not_reopened`]. Only the first failure of an epoch gets an event.
    fn not_reopened(&mut self, device: DeviceId, attempt: Attempt, reason: Loss) {
        let number = usize::from(device.0);
        let own = DeviceLabel::new(number, self.devices().len());
        if !self.has_event(|event| is_failed_try(event, own)) {
            let remaining = self.remaining_without(number);
            let device = own;
            self.note(EventKind::DeviceNotReopened { device, attempt, reason, remaining });
        }
    }

    /// A device was lost before the epoch began.
    fn lost_before(&mut self, device: DeviceId, reason: Loss) {
        let number = usize::from(device.0);
        let device = DeviceLabel::new(number, self.devices().len());
        let (phase, remedy) = (Phase::BetweenEpochs, None);
        let remaining = self.remaining_without(number);
        self.note(EventKind::DeviceLost { device, phase, reason, remaining, remedy });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StopHandle;
    use crate::causes::LossCause;
    use crate::device_link::LinkEvents;
    use crate::driver::{Driver, four_batches};
    use crate::limits::SpoolLimits;
    use crate::spool::Spool;
    use crate::{SpoolConfig, SpoolKind};
    use std::time::Duration;

    /// An epoch without its only device.
    fn setup(epoch: u32) -> RunSetup {
        let config = four_batches();
        let (order, events, known_before) = Default::default();
        RunSetup { epoch, config, sessions: vec![None], order, events, known_before }
    }

    #[test]
    fn an_epoch_reports_one_failed_attempt_of_a_device() {
        let driver = Driver::new(StopHandle::new(), Duration::from_secs(1), 0);
        let fail = |reason: &str| {
            let (cause, detail) = ("device_unreachable".to_owned(), reason.to_owned());
            let reason = LossCause::NotOpened { cause, detail }.into();
            driver.not_reopened(DeviceId(0), Attempt::Connect, reason);
        };
        let reasons = |driver: &Driver| {
            let events = driver.ask(|run| run.events_from(0)).unwrap();
            let reason = |kind| match kind {
                EventKind::DeviceNotReopened { reason, .. } => match reason.cause {
                    LossCause::NotOpened { detail, .. } => detail,
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            };
            events.into_iter().map(|event| reason(event.kind)).collect::<Vec<String>>()
        };
        driver.begin(setup(0)).unwrap();
        ["a", "b", "c"].into_iter().for_each(fail);
        assert_eq!(reasons(&driver), ["a"]);
        drop(driver.end());
        // The next epoch reports the last attempt before it.
        ["d", "e"].into_iter().for_each(fail);
        driver.begin(setup(1)).unwrap();
        fail("f");
        assert_eq!(reasons(&driver), ["e"]);
        drop(driver.end());
        driver.begin(setup(2)).unwrap();
        assert_eq!(reasons(&driver), [""; 0]);
    }

    #[test]
    fn a_failed_attempt_before_the_one_that_opened_the_link_is_not_reported() {
        let limits = SpoolLimits { slots: 4, slot_bytes: 8192, slots_scheduled: 4 };
        let config = SpoolConfig { kind: SpoolKind::Memory, quota_bytes: 1 << 20 };
        let spool = Spool::create(&config, limits).unwrap();
        let (session, _sent) = Session::new(DeviceId(0), spool, false);
        let driver = Driver::new(StopHandle::new(), Duration::from_secs(1), 0);
        let reason = LossCause::ProcessEnded.into();
        driver.not_reopened(DeviceId(0), Attempt::Connect, reason);
        // The link is open, and its thread has not reported it yet.
        let sessions = vec![Some(Arc::clone(&session))];
        driver.begin(RunSetup { sessions, ..setup(0) }).unwrap();
        driver.reopened(&session, Attempt::Connect, 1);
        let events = driver.ask(|run| run.events_from(0)).unwrap();
        let kinds: Vec<EventKind> = events.into_iter().map(|event| event.kind).collect();
        assert!(matches!(kinds[..], [EventKind::DeviceReopened { .. }]), "{kinds:?}");
    }
}
