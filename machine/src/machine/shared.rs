//! Data that threads of several simulated processes use, and that a killed process leaves intact.
#![expect(unsafe_code, reason = "the running thread has exclusive access")]

use std::cell::UnsafeCell;

/// Data that only the running thread of the machine uses. Unlike a mutex, it cannot stay locked
/// when a process is killed.
#[derive(Debug, Default)]
pub(crate) struct Shared<T>(UnsafeCell<T>);

// SAFETY: one thread runs at a time, and `with` ends before another one can run.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(crate) fn new(data: T) -> Self {
        Self(UnsafeCell::new(data))
    }

    /// Uses the data. `with` must call no replaced function, and not use the same data again.
    pub(crate) fn with<R>(&self, with: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the calling thread runs and the closure makes no call at which another one could
        // run, so this is the only reference.
        with(unsafe { &mut *self.0.get() })
    }
}
