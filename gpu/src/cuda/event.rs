#![expect(unsafe_code, reason = "the driver is a C library")]
//! Events: points in the work of a stream, for waits and measurements.

use super::context::{Context, Handle};
use crate::Error;
use cudarc::driver::sys;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a wait polls without a pause before it sleeps between polls.
const SPIN: Duration = Duration::from_micros(30);
/// The shortest and the longest sleep between two polls; in between, a small share of the waiting
/// time so far.
const SLEEP: [Duration; 2] = [Duration::from_micros(10), Duration::from_millis(1)];
const SLEEP_PART: u32 = 20;

/// A point in the work of a stream. An event that was never recorded counts as done.
pub struct Event {
    pub(super) handle: Handle<sys::CUevent_st>,
    context: Arc<Context>,
}

impl std::fmt::Debug for Event {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Event({:p})", self.handle.0)
    }
}

impl Event {
    pub(super) fn new(context: &Arc<Context>) -> Result<Self, Error> {
        let _entered = context.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the context is current; the pointer is to a local variable.
        context.check("cuEventCreate", unsafe { sys::cuEventCreate(&raw mut handle, 0) })?;
        Ok(Self { handle: Handle(handle), context: Arc::clone(context) })
    }

    /// Records the event behind the work of a stream so far.
    ///
    /// # Safety
    ///
    /// The stream exists.
    pub(super) unsafe fn record(&self, stream: sys::CUstream) -> Result<(), Error> {
        let _entered = self.context.enter()?;
        // SAFETY: the event exists; so does the stream, as the caller says.
        let result = unsafe { sys::cuEventRecord(self.handle.0, stream) };
        self.context.check("cuEventRecord", result)
    }

    /// Whether the work before it is done.
    pub fn query(&self) -> Result<bool, Error> {
        let _entered = self.context.enter()?;
        // SAFETY: the event exists.
        let result = unsafe { sys::cuEventQuery(self.handle.0) };
        self.context.is_done("cuEventQuery", result)
    }

    /// Waits until the work before it is done; [`Error::Hung`] after `limit`.
    pub fn wait(&self, limit: Duration) -> Result<(), Error> {
        self.wait_unless(limit, &|| false)
    }

    /// Like [`Self::wait`], but returns [`Error::Stopped`] when `is_stopped` returns true, which is
    /// checked at each poll.
    pub fn wait_unless(&self, limit: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        let start = Instant::now();
        while !self.query()? {
            if is_stopped() {
                return Err(Error::Stopped);
            }
            let waited = start.elapsed();
            if waited >= limit {
                self.context.add_late(self.handle);
                return Err(Error::Hung { seconds: limit.as_secs_f64() });
            }
            if waited < SPIN {
                std::hint::spin_loop();
            } else {
                let sleep = (waited / SLEEP_PART).clamp(SLEEP[0], SLEEP[1]);
                std::thread::sleep(sleep.min(limit - waited));
            }
        }
        Ok(())
    }

    /// The time of the GPU between an earlier event and this one, both done.
    pub fn milliseconds_since(&self, earlier: &Self) -> Result<f32, Error> {
        let _entered = self.context.enter()?;
        let mut milliseconds = 0.0;
        let (from, to) = (earlier.handle.0, self.handle.0);
        // SAFETY: both events exist; the pointer is to a local variable.
        let result = unsafe { sys::cuEventElapsedTime(&raw mut milliseconds, from, to) };
        self.context.check("cuEventElapsedTime", result)?;
        Ok(milliseconds)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Some(_entered) = self.context.enter_to_free() {
            // SAFETY: it is destroyed once; the driver keeps it until the work before it is done.
            let _ = unsafe { sys::cuEventDestroy_v2(self.handle.0) };
        }
    }
}
