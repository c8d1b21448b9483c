//! The events of links, which become events of the epoch that uses the device.

use super::Driver;
use crate::causes::{Loss, LossCause};
use crate::device_link::{LinkEvents, Session, SlotLease};
use crate::events::Attempt;
use meetpoint_format::wire;
use meetpoint_scheduler::DeviceId;
use std::sync::Arc;

impl LinkEvents for Driver {
    fn published(&self, session: &Arc<Session>, lease: SlotLease, published: &wire::Published) {
        self.notify_device(|state| {
            // Without a run the lease is dropped, which releases the slot.
            if let Some(run) = state.run_of(session, published.epoch) {
                run.published(session, published, lease);
                run.pump();
            }
        });
    }

    fn progress(&self, session: &Arc<Session>) {
        self.notify_device(|state| {
            for run in state.runs_of(session) {
                run.progress(session);
                run.pump();
            }
        });
    }

    fn failed(&self, session: &Arc<Session>, failed: &wire::Failed) {
        self.notify_device(|state| {
            if let Some(run) = state.run_of(session, failed.epoch) {
                run.failed(session, failed);
                run.pump();
            }
        });
    }

    fn leaving(&self, session: &Arc<Session>) {
        self.notify_device(|state| {
            if let Some(ahead) = state.ahead.as_mut().filter(|run| run.uses(session)) {
                ahead.is_broken = true;
            }
            match state.run.as_mut().filter(|run| run.uses(session)) {
                Some(run) => {
                    run.leaving(session);
                    run.pump();
                }
                None => state.lost_between(session, LossCause::ShuttingDown.into()),
            }
        });
    }

    fn lost(&self, session: &Arc<Session>, loss: Loss) {
        self.notify_device(|state| {
            if let Some(ahead) = state.ahead.as_mut().filter(|run| run.uses(session)) {
                ahead.is_broken = true;
            }
            match state.run.as_mut().filter(|run| run.uses(session)) {
                Some(run) => {
                    run.lost(session, loss);
                    run.pump();
                }
                None => state.lost_between(session, loss),
            }
        });
    }

    fn meters_arrived(&self) {
        if self.epochs_ahead > 0 {
            self.run_ahead(&mut self.lock());
        }
        self.ready.notify_all();
    }

    fn reopened(&self, session: &Arc<Session>, attempt: Attempt, threads: u32) {
        self.notify_device(|state| state.reopened(session, attempt, threads));
    }

    fn not_reopened(&self, device: DeviceId, attempt: Attempt, reason: Loss) {
        self.lock().not_reopened(device, attempt, reason);
    }
}
