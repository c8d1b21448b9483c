//! The resources that a worker used, and the achieved speeds of the emulation.

use crate::clock::{nanoseconds, thread_cpu_time};
use crate::memory::peak_memory_bytes;
use crate::session::Job;
use meetpoint_format::wire::Meters;
use meetpoint_link::Targets;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Sums over the batches of a job.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Time from the beginning of a batch to its publish, without waits for a slot.
    pub(crate) busy: Duration,
    /// CPU time in it.
    pub(crate) busy_cpu: Duration,
    /// Time in it in which the worker waited for storage, or was delayed by a fault.
    pub(crate) not_computing: Duration,
    /// Time in which batches waited for their turn.
    pub(crate) turn_wait: Duration,
    /// Batches published.
    pub(crate) batches: u64,
}

impl Totals {
    /// The share of its computing time that the thread had the core.
    ///
    /// Time in which another thread used the core counts as well, so a shared core lowers this
    /// ratio.
    fn cpu_ratio(&self) -> f64 {
        let computing = self.busy.saturating_sub(self.not_computing).as_secs_f64();
        if computing > 0.0 { self.busy_cpu.as_secs_f64() / computing } else { 0.0 }
    }

    /// The message. Figures of settings that are not set are 0.
    pub(crate) fn message(&self, job: &Job, targets: &Targets) -> Meters {
        let read = job.read_meter.as_ref().map(|meter| meter.achieved().read);
        let write = job.spool.achieved();
        let rate = |limit: Option<u64>, figures: Option<meetpoint_storage::slow::Figures>| {
            limit.and(figures).and_then(|figures| figures.bytes_per_second()).unwrap_or(0.0)
        };
        let latency = targets.latency_ns.and(read).and_then(|figures| figures.latency_mean());
        Meters {
            cpu_ns: nanoseconds(thread_cpu_time()),
            busy_ns: nanoseconds(self.busy),
            dataset_bytes_read: job.preparer.counters().bytes_read,
            spool_bytes_written: job.spool.bytes_written(),
            batches: self.batches,
            cpu_ratio_achieved: targets.cpu_ratio.map_or(0.0, |_| self.cpu_ratio()),
            read_bytes_per_second_achieved: rate(targets.read_bytes_per_second, read),
            write_bytes_per_second_achieved: rate(targets.write_bytes_per_second, write),
            latency_ns_achieved: latency.map_or(0, nanoseconds),
            memory_bytes_max: peak_memory_bytes(),
            turn_wait_ns: nanoseconds(self.turn_wait),
        }
    }
}

/// Signs of life of a worker, seen from another thread.
///
/// A stuck worker gives none, which lets a host distinguish dead from slow.
#[derive(Debug, Default)]
pub(crate) struct Signs {
    count: AtomicU64,
    samples_done: AtomicU32,
    thread: AtomicU32,
    at: Mutex<Option<(u32, u32, u32)>>,
}

impl Signs {
    /// Begins a batch: epoch, batch and generation.
    pub(crate) fn begin(&self, at: (u32, u32, u32)) {
        self.samples_done.store(0, Ordering::Relaxed);
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
        self.give();
    }

    /// Ends a batch.
    pub(crate) fn end(&self) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Gives a sign.
    pub(crate) fn give(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports the progress of a batch; more samples than before are a sign of life.
    pub(crate) fn samples(&self, done: u32) {
        if self.samples_done.swap(done, Ordering::Relaxed) != done {
            self.give();
        }
    }

    /// Registers the calling thread as the worker.
    pub(crate) fn this_thread(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.thread.store(thread.unsigned_abs(), Ordering::Relaxed);
    }
}

/// Polls the signs of life of a worker.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    count: u64,
    cpu: Duration,
}

/// A worker that used less CPU time since the last poll is only waiting.
const CPU_SIGN: Duration = Duration::from_millis(1);

impl Watch {
    /// Whether there was any sign of life since the last poll.
    pub(crate) fn lives(&mut self, signs: &Signs) -> bool {
        let count = signs.count.load(Ordering::Relaxed);
        let cpu = cpu_time_of(signs.thread.load(Ordering::Relaxed));
        let lives = count != self.count || cpu.saturating_sub(self.cpu) >= CPU_SIGN;
        (self.count, self.cpu) = (count, cpu);
        lives
    }

    /// Epoch, batch, generation and samples done, if there is a batch and there was any sign since
    /// the last poll. CPU time counts as one, because a long stage gives no other sign.
    pub(crate) fn look(&mut self, signs: &Signs) -> Option<((u32, u32, u32), u32)> {
        let lives = self.lives(signs);
        let at = *signs.at.lock().unwrap_or_else(PoisonError::into_inner);
        at.filter(|_| lives).map(|at| (at, signs.samples_done.load(Ordering::Relaxed)))
    }
}

/// CPU time of a thread of this process; zero if the kernel does not report it (schedstat, see
/// "Scheduler statistics" in the kernel's documentation).
fn cpu_time_of(thread: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"));
    let ns = text.ok().and_then(|text| text.split(' ').next()?.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_does_nothing_gives_no_sign_and_one_that_does_gives_one() {
        let (signs, mut watch) = (Signs::default(), Watch::default());
        assert_eq!(watch.look(&signs), None);
        signs.begin((1, 2, 3));
        signs.samples(5);
        assert_eq!(watch.look(&signs), Some(((1, 2, 3), 5)));
        assert_eq!(watch.look(&signs), None);
        signs.samples(5);
        assert_eq!(watch.look(&signs), None);
        signs.samples(6);
        assert_eq!(watch.look(&signs), Some(((1, 2, 3), 6)));
        signs.give();
        signs.end();
        assert_eq!(watch.look(&signs), None);
    }

    #[test]
    fn a_worker_that_only_computes_gives_a_sign() {
        let (signs, mut watch) = (Signs::default(), Watch::default());
        signs.begin((0, 0, 0));
        signs.this_thread();
        watch.look(&signs);
        if cpu_time_of(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).is_zero() {
            eprintln!("skipped: this kernel does not report a thread's CPU time");
            return;
        }
        let start = thread_cpu_time();
        while thread_cpu_time() - start < 30 * CPU_SIGN {
            std::hint::black_box(start);
        }
        assert!(watch.look(&signs).is_some());
    }
}
