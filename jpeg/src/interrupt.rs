//! A request to stop, which long computations on one picture poll.

use crate::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop. Clones share it; the default is never raised.
///
/// Decoders poll it at least once per row of MCUs or blocks, and return [`Error::Interrupted`] once
/// it was raised.
#[derive(Clone, Default)]
pub struct Interrupt(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Interrupt {
    /// A request that a function reports. It is called often, so it must be cheap.
    pub fn when(is_raised: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_raised)))
    }

    /// Whether to stop.
    pub fn is_raised(&self) -> bool {
        self.0.as_ref().is_some_and(|is_raised| is_raised())
    }

    /// [`Error::Interrupted`] once it was raised.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_raised() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

impl From<Arc<AtomicBool>> for Interrupt {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self::when(move || flag.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Interrupt" } else { "Interrupt(never)" })
    }
}
