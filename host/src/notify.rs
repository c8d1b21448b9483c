//! Who is told at once, and not only in an epoch's events, what the consumer waits for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A function that is told, once an epoch at most, that the consumer waits for a device, and why.
/// It is called on the consumer's thread.
#[derive(Clone)]
pub struct Notify {
    /// How long the wait for one batch has lasted by then.
    pub after: Duration,
    tell: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Notify {
    /// Tells `tell` of waits that are longer than `after`.
    pub fn new(after: Duration, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { after, tell: Arc::new(tell) }
    }

    pub(crate) fn tell(&self, text: &str) {
        (self.tell)(text);
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notify(after {:?})", self.after)
    }
}
