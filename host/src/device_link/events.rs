//! What happens on a link, passed to the part of the host that acts on it.

use super::{Session, SlotLease};
use crate::causes::Loss;
use crate::events::Attempt;
use meetpoint_format::wire;
use meetpoint_scheduler::DeviceId;
use std::sync::Arc;

/// Receives the events of links; the loader's driver implements it.
///
/// The thread of the link calls every method, so events of one device arrive in order and those of
/// several devices concurrently. A method may take a lock for a short time but waits for nothing
/// else: until it returns, the link's messages are not read. A device is identified by its session,
/// which is a new one after each reopening; a session that no epoch uses any more is not an error.
pub(crate) trait LinkEvents: Send + Sync {
    /// The device published a batch in a slot, and the host owns the slot until `lease` is dropped.
    /// Its content is not checked yet. Times are of this machine's clock.
    fn published(&self, session: &Arc<Session>, lease: SlotLease, published: &wire::Published);

    /// The device is alive: it sent a heartbeat or a piece of a slot.
    fn progress(&self, session: &Arc<Session>);

    /// The device cannot prepare a batch, which another part of the host is to prepare.
    fn failed(&self, session: &Arc<Session>, failed: &wire::Failed);

    /// The device is about to end: it prepares nothing more, and what it published is still used.
    /// The session is closed after this call, and [`lost`](Self::lost) is not called for it.
    fn leaving(&self, session: &Arc<Session>);

    /// The link ended although this side did not close it as planned. Called once, after the last
    /// event of the session.
    fn lost(&self, session: &Arc<Session>, loss: Loss);

    /// The session has new meters.
    fn meters_arrived(&self);

    /// A lost device has another link. It gets work in the running epoch, as far as the strategy
    /// has any left for it, or else from the next epoch on. `threads`: batches that it prepares at
    /// the same time.
    fn reopened(&self, session: &Arc<Session>, attempt: Attempt, threads: u32);

    /// The link of a lost device could not be opened.
    fn not_reopened(&self, device: DeviceId, attempt: Attempt, reason: Loss);
}
