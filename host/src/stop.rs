//! A switch that ends every wait of a loader.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest time that any thread of a loader waits before it checks the switch again.
pub(crate) const WAIT_SLICE: Duration = Duration::from_millis(100);

/// Stops a loader from another thread or a signal handler; clones share the switch.
#[derive(Debug, Clone, Default)]
pub struct StopHandle {
    stopped: Arc<AtomicBool>,
    /// A switch that also stops this one.
    above: Option<Arc<StopHandle>>,
}

impl StopHandle {
    /// A switch that is off.
    pub fn new() -> Self {
        Self::default()
    }

    /// A switch that is stopped together with this one, and can be stopped separately.
    pub fn child(&self) -> Self {
        Self { stopped: Arc::default(), above: Some(Arc::new(self.clone())) }
    }

    /// Ends every wait of the loader within 100 ms with [`crate::Error::Interrupted`]. It cannot be
    /// undone.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
            || self.above.as_ref().is_some_and(|above| above.is_stopped())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_stops_with_its_parent_and_not_the_other_way_round() {
        let parent = StopHandle::new();
        let (first, second) = (parent.child(), parent.child().child());
        first.stop();
        assert!(first.is_stopped() && !parent.is_stopped() && !second.is_stopped());
        parent.stop();
        assert!(second.is_stopped());
    }
}
