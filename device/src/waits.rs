//! How long a thread waited for its storage.
//!
//! Such a wait is part of the emulated device's time; any other time off the core replaces a sleep
//! of the governor.

use crate::clock::{nanoseconds, thread_cpu_time};
use meetpoint_storage::{
    Access, AlignedBuffer, Completion, Counters, Engine, EngineNote, Error, FileId, Limits,
    RefusedRequest, Request,
};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Sum over a worker's waits for storage, in nanoseconds. Only the worker's thread writes.
#[derive(Debug, Default)]
pub(crate) struct StorageWaits {
    idle_ns: AtomicU64,
}

impl StorageWaits {
    /// Time that the thread spent waiting for storage.
    pub(crate) fn idle(&self) -> Duration {
        Duration::from_nanos(self.idle_ns.load(Ordering::Relaxed))
    }

    /// Runs a closure that waits for storage, and adds its duration.
    pub(crate) fn during<T>(&self, wait: impl FnOnce() -> T) -> T {
        let (start, start_cpu) = (Instant::now(), thread_cpu_time());
        let done = wait();
        let idle = start.elapsed().saturating_sub(thread_cpu_time() - start_cpu);
        self.idle_ns.fetch_add(nanoseconds(idle), Ordering::Relaxed);
        done
    }
}

/// An engine that adds up the duration of [`Engine::wait`]. For one thread only.
pub(crate) struct WatchedEngine {
    inner: Box<dyn Engine>,
    waits: Arc<StorageWaits>,
}

impl WatchedEngine {
    pub(crate) fn new(inner: Box<dyn Engine>) -> Self {
        Self { inner, waits: Arc::default() }
    }

    /// The sum of the waits.
    pub(crate) fn waits(&self) -> Arc<StorageWaits> {
        Arc::clone(&self.waits)
    }
}

impl Engine for WatchedEngine {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn open(&mut self, path: &Path, access: Access) -> Result<FileId, Error> {
        self.inner.open(path, access)
    }

    fn adopt(&mut self, file: File, name: &str) -> Result<FileId, Error> {
        self.inner.adopt(file, name)
    }

    fn close(&mut self, file: FileId) {
        self.inner.close(file);
    }

    fn is_direct(&self, file: FileId) -> bool {
        self.inner.is_direct(file)
    }

    fn file_bytes(&self, file: FileId) -> Result<u64, Error> {
        self.inner.file_bytes(file)
    }

    fn submit(&mut self, request: Request) -> Result<(), Box<RefusedRequest>> {
        self.inner.submit(request)
    }

    fn wait(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<usize, Error> {
        if timeout.is_zero() {
            return self.inner.wait(timeout, out);
        }
        self.waits.during(|| self.inner.wait(timeout, out))
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }

    fn buffer(&mut self, bytes: usize) -> AlignedBuffer {
        self.inner.buffer(bytes)
    }

    fn notes(&self) -> &[EngineNote] {
        self.inner.notes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_is_idle_and_computing_is_not() {
        let waits = StorageWaits::default();
        let nap = Duration::from_millis(20);
        waits.during(|| std::thread::sleep(nap));
        assert!(waits.idle() >= nap - Duration::from_millis(2), "{:?}", waits.idle());
        let waits = StorageWaits::default();
        let start = Instant::now();
        let computed = waits.during(|| {
            let start = thread_cpu_time();
            while thread_cpu_time() - start < nap {
                std::hint::black_box(start);
            }
            thread_cpu_time() - start
        });
        assert!(waits.idle() + computed <= start.elapsed());
    }
}
