//! What an epoch under way knows of one device.

use super::PublishedSlot;
use crate::device_link::Session;
use crate::events::Failures;
use meetpoint_format::wire::Meters;
use meetpoint_scheduler::DeviceId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One device's end of an epoch.
#[derive(Debug)]
pub(crate) struct DeviceEnd {
    pub(super) id: DeviceId,
    /// What events call it: "the device", or "device 1" where there are several.
    pub(super) name: String,
    /// The link; `None` where it could not be opened again.
    pub(super) session: Option<Arc<Session>>,
    /// Its totals when the epoch began.
    pub(crate) meters_before: Meters,
    /// What it published and what is not being fetched yet.
    pub(super) published: BTreeMap<u32, PublishedSlot>,
    pub(super) stalls_seen: u32,
    /// When it was last heard of or given work.
    pub(super) heard_ns: u64,
    /// It was fenced off while it hung, and was not heard of since.
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
    pub(super) fn new(number: u16, name: String, session: Option<Arc<Session>>) -> Self {
        Self {
            id: DeviceId(number),
            name,
            meters_before: session.as_ref().map(|it| it.meters()).unwrap_or_default(),
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

    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// Whether it was fenced off while it hung, and was not heard of since.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// The device spoke.
    pub(super) fn heard(&mut self, now: u64) {
        self.heard_ns = now;
        self.is_silent = false;
    }

    /// Whether events should tell of this failure.
    pub(super) fn is_news(&mut self, reason: &str) -> bool {
        self.failures.enter(reason)
    }
}

/// What events and notices call the device with this number among `devices`.
pub(crate) fn device_name(number: usize, devices: usize) -> String {
    if devices > 1 { format!("device {number}") } else { "the device".to_owned() }
}
