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
pub struct Interrupt {
    is_raised: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    helper: Option<Arc<dyn Helper>>,
}

/// Runs work that cannot poll an interrupt, in such a way that the caller can abandon it.
///
/// The decoders of this crate poll and need none. It is for decoders of other crates, and for code
/// that must not start threads itself.
pub trait Helper: Send + Sync {
    /// Runs `work`. Returns [`Error::Interrupted`] as soon as `interrupt` is raised; the work, and
    /// the memory that it owns, then remain until it ends. Otherwise the work has ended.
    fn run(&self, work: Box<dyn FnOnce() + Send>, interrupt: &Interrupt) -> Result<(), Error>;
}

impl Interrupt {
    /// A request that a function reports. It is called often, so it must be cheap.
    pub fn when(is_raised: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { is_raised: Some(Arc::new(is_raised)), helper: None }
    }

    /// The same request, with a helper for work that cannot poll it.
    #[must_use]
    pub fn with_helper(self, helper: Arc<dyn Helper>) -> Self {
        Self { helper: Some(helper), ..self }
    }

    /// The helper for work that cannot poll; `None` to run it in the calling thread.
    pub fn helper(&self) -> Option<&dyn Helper> {
        self.helper.as_deref()
    }

    /// Whether to stop.
    pub fn is_raised(&self) -> bool {
        self.is_raised.as_ref().is_some_and(|is_raised| is_raised())
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
        f.write_str(if self.is_raised.is_some() { "Interrupt" } else { "Interrupt(never)" })
    }
}
