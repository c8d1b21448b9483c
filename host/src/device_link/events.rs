//! The events of a link, as a trait that the part of the host that acts on them implements.

use super::{Session, SlotLease};
use crate::causes::Loss;
use crate::events::Attempt;
use meetpoint_format::wire;
use meetpoint_scheduler::DeviceId;
use std::sync::Arc;

/// Receives the events of links; the loader's driver implements it.
///
/// The thread of the link calls every method, so events of one device arrive in order and those of
/// several devices concurrently. A method may take a lock for a short time but must not wait for
/// anything else: until it returns, the link's messages are not read. A session identifies a
/// device, which has a new session after each reopening; events of a session that no epoch uses are
/// valid.
pub(crate) trait LinkEvents: Send + Sync {
    /// The device published a batch in a slot, and the host owns the slot until `lease` is dropped.
    /// Its content is not checked yet. Times are of this machine's clock.
    fn published(&self, session: &Arc<Session>, lease: SlotLease, published: &wire::Published);

    /// The device is alive: it sent a heartbeat or a piece of a slot.
    fn progress(&self, session: &Arc<Session>);

    /// The device cannot prepare a batch, so the host must prepare it.
    fn failed(&self, session: &Arc<Session>, failed: &wire::Failed);

    /// The device is shutting down: it prepares nothing more, but its published batches are used.
    /// The session is closed after this call, and [`lost`](Self::lost) is not called for it.
    fn leaving(&self, session: &Arc<Session>);

    /// The link ended, and this side had not closed it as planned. Called once, after the last
    /// event of the session.
    fn lost(&self, session: &Arc<Session>, loss: Loss);

    /// The session has new meters.
    fn meters_arrived(&self);

    /// A lost device has a new link. It gets work in the running epoch if the strategy has any left
    /// for it, otherwise from the next epoch on. `threads`: number of batches that it prepares at
    /// the same time.
    fn reopened(&self, session: &Arc<Session>, attempt: Attempt, threads: u32);

    /// The link of a lost device could not be opened.
    fn not_reopened(&self, device: DeviceId, attempt: Attempt, reason: Loss);
}
