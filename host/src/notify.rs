//! Immediate notifications of a device that was not reached at the start, and of a long wait for a
//! device. Both are also events of the epoch.

use crate::events::EventKind;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A function that is called at the beginning of the first epoch for each device that was not
/// reached at the start, and at most once per epoch when the consumer has waited long for a device.
/// It runs on the consumer's thread.
#[derive(Clone)]
pub struct Notify {
    /// How long the wait for one batch has lasted by then.
    pub after: Duration,
    call: Arc<dyn Fn(&EventKind) + Send + Sync>,
}

impl Notify {
    /// Calls `call` with an [`EventKind::DeviceAwaited`] for waits longer than `after`, and with an
    /// [`EventKind::DeviceLost`] for each device that was not reached at the start.
    pub fn new(after: Duration, call: impl Fn(&EventKind) + Send + Sync + 'static) -> Self {
        Self { after, call: Arc::new(call) }
    }

    pub(crate) fn call(&self, event: &EventKind) {
        (self.call)(event);
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notify(after {:?})", self.after)
    }
}
