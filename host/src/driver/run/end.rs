//! The state of one device in a running epoch.

use super::PublishedSlot;
use crate::device_link::Session;
use crate::event_log::Failures;
use crate::events::DeviceLabel;
use meetpoint_format::wire::Meters;
use meetpoint_scheduler::DeviceId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One device's end of an epoch.
#[derive(Debug)]
pub(crate) struct DeviceEnd {
    pub(super) id: DeviceId,
    /// Its name in events.
    pub(super) label: DeviceLabel,
    /// The link; `None` if it could not be reopened.
    pub(super) session: Option<Arc<Session>>,
    /// Whether it was asked to begin the epoch.
    pub(super) has_begun: bool,
    /// Whether it gets no more work in this epoch.
    pub(super) has_stopped: bool,
    /// Its totals when it began the epoch.
    pub(crate) meters_before: Meters,
    /// Its totals when it began the next one, ahead of the consumer.
    pub(super) meters_after: Option<Meters>,
    /// Published slots that are not being fetched yet.
    pub(super) published: BTreeMap<u32, PublishedSlot>,
    pub(super) stalls_seen: u32,
    /// Time of its last message or grant.
    pub(super) heard_ns: u64,
    /// Whether it was fenced off after it stalled and has sent nothing since.
    pub(super) is_silent: bool,
    /// Batches that it failed on.
    pub(super) failures: Failures,
    /// Batches that it could not prepare since it last published one.
    pub(super) unprepared_in_a_row: u32,
    /// Published batches that were refused since one was accepted.
    pub(super) refused_in_a_row: u32,
    pub(crate) slots_published: u64,
}

impl DeviceEnd {
    pub(super) fn new(label: DeviceLabel, session: Option<Arc<Session>>) -> Self {
        Self {
            id: DeviceId(label.number),
            label,
            has_begun: false,
            has_stopped: false,
            meters_before: Meters::default(),
            meters_after: None,
            session,
            published: BTreeMap::new(),
            stalls_seen: 0,
            heard_ns: 0,
            is_silent: false,
            failures: Failures::default(),
            unprepared_in_a_row: 0,
            refused_in_a_row: 0,
            slots_published: 0,
        }
    }

    /// The device has a new link, over which it has begun the epoch and published nothing.
    pub(super) fn join(&mut self, session: &Arc<Session>, now: u64) {
        self.meters_before = session.meters();
        self.meters_after = None;
        self.session = Some(Arc::clone(session));
        (self.has_begun, self.has_stopped) = (true, false);
        self.published.clear();
        (self.unprepared_in_a_row, self.refused_in_a_row) = (0, 0);
        self.slots_published = 0;
        self.heard(now);
    }

    /// The device gets a link before it has begun the epoch.
    pub(super) fn adopt(&mut self, session: &Arc<Session>) {
        if !self.has_begun && self.session.as_ref().is_none_or(|own| own.is_closed()) {
            self.session = Some(Arc::clone(session));
        }
    }

    pub(crate) fn id(&self) -> DeviceId {
        self.id
    }

    /// Whether it was asked to begin the epoch.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether it has a slot for one more batch than it may have queued. Until the consumer begins
    /// the epoch, slots become free only as those of the previous epoch are released.
    pub(super) fn has_slots(&self, ahead: u32) -> bool {
        self.session.as_ref().is_some_and(|session| {
            let slots = session.spool().limits().slots_scheduled;
            session.leased().saturating_add(ahead) < slots
        })
    }

    /// Whether it can contribute nothing more to this epoch, including reports, and has not begun
    /// the next.
    pub(crate) fn is_done(&self) -> bool {
        let is_there = |session: &Arc<Session>| {
            !session.is_closed() && session.meters().batches >= self.batches_expected()
        };
        self.has_begun
            && self.has_stopped
            && !self.is_silent
            && self.meters_after.is_none()
            && self.session.as_ref().is_some_and(is_there)
    }

    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// Whether it was fenced off after it stalled and has sent nothing since.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Its totals at the end of this epoch, as far as reported.
    pub(crate) fn meters(&self) -> Meters {
        let now = || self.session.as_ref().map(|session| session.meters());
        self.meters_after.or_else(now).unwrap_or_default()
    }

    /// Total number of batches that it will have reported once its report on this epoch is
    /// complete.
    pub(crate) fn batches_expected(&self) -> u64 {
        self.meters_before.batches + self.slots_published
    }

    /// Records that the device sent a message.
    pub(super) fn heard(&mut self, now: u64) {
        self.heard_ns = now;
        self.is_silent = false;
    }
}
