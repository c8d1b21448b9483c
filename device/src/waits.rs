//! What a thread waited for: its storage, and a core that another thread had.
//!
//! The two must not be mixed up: a wait for the core while computing is as good as a sleep of the
//! governor, one that makes a read come late is a slow read.

use crate::governor::thread_cpu_time;
use crate::meters::nanoseconds;
use meetpoint_storage::{
    Access, AlignedBuffer, Completion, Counters, Engine, Error, FileId, Limits, Refused, Request,
};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a thread was kept from a core: the second figure of its schedstat file (see "Scheduler
/// statistics" in the kernel's documentation). Zero where the kernel does not tell.
#[derive(Debug)]
pub(crate) struct CoreWaits(Option<File>);

impl CoreWaits {
    pub(crate) fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// All of it until now.
    pub(crate) fn total(&self) -> Duration {
        let mut text = [0; 64];
        let read = self.0.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        let text = read.and_then(|bytes| std::str::from_utf8(&text[..bytes]).ok());
        let ns = text.and_then(|text| text.split(' ').nth(1)?.parse().ok());
        Duration::from_nanos(ns.unwrap_or(0))
    }
}

/// Sums over a worker's waits for storage, in nanoseconds. Only the worker's thread writes.
#[derive(Debug, Default)]
pub(crate) struct StorageWaits {
    idle_ns: AtomicU64,
    core_waits_ns: AtomicU64,
}

impl StorageWaits {
    /// Time in which the thread neither computed nor could have.
    pub(crate) fn idle(&self) -> Duration {
        Duration::from_nanos(self.idle_ns.load(Ordering::Relaxed))
    }

    /// The part of it in which its storage was done and another thread had the core.
    pub(crate) fn core_waits(&self) -> Duration {
        Duration::from_nanos(self.core_waits_ns.load(Ordering::Relaxed))
    }

    /// Does something that waits for storage, and enters how long.
    pub(crate) fn during<T>(&self, core: &CoreWaits, wait: impl FnOnce() -> T) -> T {
        let (start, start_cpu, start_core) = (Instant::now(), thread_cpu_time(), core.total());
        let done = wait();
        let idle = start.elapsed().saturating_sub(thread_cpu_time() - start_cpu);
        self.idle_ns.fetch_add(nanoseconds(idle), Ordering::Relaxed);
        let core_waits = core.total().saturating_sub(start_core);
        self.core_waits_ns.fetch_add(nanoseconds(core_waits), Ordering::Relaxed);
        done
    }
}

/// Enters how long the calls of [`Engine::wait`] take. To be used by one thread only.
pub(crate) struct WatchedEngine {
    inner: Box<dyn Engine>,
    /// Of the thread that waits first.
    core: Option<CoreWaits>,
    waits: Arc<StorageWaits>,
}

impl WatchedEngine {
    pub(crate) fn new(inner: Box<dyn Engine>) -> Self {
        Self { inner, core: None, waits: Arc::default() }
    }

    /// Where it is entered.
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

    fn submit(&mut self, request: Request) -> Result<(), Box<Refused>> {
        self.inner.submit(request)
    }

    fn wait(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<usize, Error> {
        if timeout.is_zero() {
            return self.inner.wait(timeout, out);
        }
        let core = self.core.get_or_insert_with(CoreWaits::of_this_thread);
        self.waits.during(core, || self.inner.wait(timeout, out))
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

    fn notes(&self) -> &[String] {
        self.inner.notes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_is_idle_and_computing_is_not() {
        let (core, waits) = (CoreWaits::of_this_thread(), StorageWaits::default());
        let nap = Duration::from_millis(20);
        waits.during(&core, || std::thread::sleep(nap));
        assert!(waits.idle() >= nap - Duration::from_millis(2), "{:?}", waits.idle());
        let waits = StorageWaits::default();
        let start = Instant::now();
        let computed = waits.during(&core, || {
            let start = thread_cpu_time();
            while thread_cpu_time() - start < nap {
                std::hint::black_box(start);
            }
            thread_cpu_time() - start
        });
        assert!(waits.idle() + computed <= start.elapsed());
    }
}
