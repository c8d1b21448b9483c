//! The resources that a worker used, and the achieved speeds of the emulation.

use crate::clock::nanoseconds;
use crate::governor::Disturbances;
use crate::memory::peak_memory_bytes;
use crate::session::Job;
use meetpoint_format::wire::Meters;
use meetpoint_link::{CoreUse, Targets};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Sums over the batches of a job, of all its workers.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// CPU time of the workers.
    pub(crate) cpu: Duration,
    /// Bytes read from the dataset.
    pub(crate) read_bytes: u64,
    /// Bytes written to slots, or sent.
    pub(crate) written_bytes: u64,
    /// Time from the beginning of a batch to its publish, without waits for a slot.
    pub(crate) busy: Duration,
    /// Time in which at least one worker was busy.
    pub(crate) occupied: Occupation,
    /// CPU time in it.
    pub(crate) busy_cpu: Duration,
    /// Time in it in which the worker waited for storage, or was delayed by a fault.
    pub(crate) not_computing: Duration,
    /// Time in which batches waited for their turn.
    pub(crate) turn_wait: Duration,
    /// Batches published.
    pub(crate) batches: u64,
    /// What disturbed the only worker of an emulated device.
    pub(crate) disturbances: Disturbances,
}

impl Totals {
    /// How the worker used its core, without waits for storage. Time in which another thread used
    /// the core counts as available, so a shared core lowers the share.
    fn core_use(&self) -> CoreUse {
        let available = self.busy.saturating_sub(self.not_computing);
        core_use(available, self.busy_cpu, &self.disturbances)
    }

    /// The message. Figures of settings that are not set are 0; only a device with one worker has
    /// such settings.
    pub(crate) fn message(&self, job: &Job, targets: &Targets) -> Meters {
        let read = job.read_meter.as_ref().map(|meter| meter.achieved().read);
        let write = job.spool.achieved();
        let rate = |limit: Option<u64>, figures: Option<meetpoint_storage::slow::Figures>| {
            limit.and(figures).and_then(|figures| figures.bytes_per_second()).unwrap_or(0.0)
        };
        let latency = targets.latency_ns.and(read).and_then(|figures| figures.latency_mean());
        let core_use = self.core_use();
        Meters {
            cpu_ns: nanoseconds(self.cpu),
            busy_ns: nanoseconds(self.occupied.total),
            dataset_bytes_read: self.read_bytes,
            spool_bytes_written: self.written_bytes,
            batches: self.batches,
            cpu_ratio_achieved: targets.cpu_ratio.map_or(0.0, |_| core_use.share()),
            read_bytes_per_second_achieved: rate(targets.read_bytes_per_second, read),
            write_bytes_per_second_achieved: rate(targets.write_bytes_per_second, write),
            latency_ns_achieved: latency.map_or(0, nanoseconds),
            memory_bytes_max: peak_memory_bytes(),
            turn_wait_ns: nanoseconds(self.turn_wait),
            core_use: targets.is_limited().then(|| core_use.into()),
        }
    }
}

/// How an emulated core was used in a period without waits for storage.
pub(crate) fn core_use(available: Duration, cpu: Duration, disturbances: &Disturbances) -> CoreUse {
    let Disturbances { wake_ups, run_delay, steal } = disturbances;
    CoreUse {
        available_ns: nanoseconds(available),
        cpu_ns: nanoseconds(cpu),
        contention_ns: nanoseconds(available.saturating_sub(cpu).saturating_sub(wake_ups.slept)),
        run_delay_ns: run_delay.map(nanoseconds),
        steal_ns: steal.map(nanoseconds),
        sleeps: wake_ups.count,
        late_mean_ns: nanoseconds(wake_ups.late_mean),
        late_p50_ns: nanoseconds(wake_ups.late_p50),
        late_p99_ns: nanoseconds(wake_ups.late_p99),
        late_max_ns: nanoseconds(wake_ups.late_max),
    }
}

/// The time in which at least one of several workers is busy.
#[derive(Debug, Default)]
pub(crate) struct Occupation {
    workers: u32,
    since: Option<Instant>,
    total: Duration,
}

impl Occupation {
    /// A worker begins to be busy.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.workers += 1;
        self.since.get_or_insert(now);
    }

    /// A worker is busy no more.
    pub(crate) fn end(&mut self, now: Instant) {
        self.workers -= 1;
        if self.workers == 0
            && let Some(since) = self.since.take()
        {
            self.total += now.saturating_duration_since(since);
        }
    }
}

/// Heartbeats of a worker, seen from another thread.
///
/// A stuck worker sends none, which lets a host distinguish dead from slow.
#[derive(Debug, Default)]
pub(crate) struct Heartbeats {
    count: AtomicU64,
    samples_done: AtomicU32,
    thread: AtomicU32,
    at: Mutex<Option<(u32, u32, u32)>>,
}

impl Heartbeats {
    /// Begins a batch: epoch, batch and generation.
    pub(crate) fn begin(&self, at: (u32, u32, u32)) {
        self.samples_done.store(0, Ordering::Relaxed);
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
        self.beat();
    }

    /// Ends a batch.
    pub(crate) fn end(&self) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Sends a heartbeat.
    pub(crate) fn beat(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports the progress of a batch; more samples than before are a heartbeat.
    pub(crate) fn samples(&self, done: u32) {
        if self.samples_done.swap(done, Ordering::Relaxed) != done {
            self.beat();
        }
    }

    /// Registers the calling thread as the worker.
    pub(crate) fn this_thread(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.thread.store(thread.unsigned_abs(), Ordering::Relaxed);
    }
}

/// Polls the heartbeats of a worker.
#[derive(Debug, Default)]
pub(crate) struct HeartbeatMonitor {
    count: u64,
    cpu: Duration,
}

/// A worker that used less CPU time since the last poll is only waiting.
const CPU_HEARTBEAT: Duration = Duration::from_millis(1);

impl HeartbeatMonitor {
    /// Whether there was any heartbeat since the last poll.
    pub(crate) fn is_alive(&mut self, heartbeats: &Heartbeats) -> bool {
        let count = heartbeats.count.load(Ordering::Relaxed);
        let cpu = cpu_time_of(heartbeats.thread.load(Ordering::Relaxed));
        let is_alive = count != self.count || cpu.saturating_sub(self.cpu) >= CPU_HEARTBEAT;
        (self.count, self.cpu) = (count, cpu);
        is_alive
    }

    /// Epoch, batch, generation and samples done, if there is a batch and there was any heartbeat
    /// since the last poll. CPU time counts as one, because a long stage sends no other heartbeat.
    pub(crate) fn poll(&mut self, heartbeats: &Heartbeats) -> Option<((u32, u32, u32), u32)> {
        let is_alive = self.is_alive(heartbeats);
        let at = *heartbeats.at.lock().unwrap_or_else(PoisonError::into_inner);
        at.filter(|_| is_alive).map(|at| (at, heartbeats.samples_done.load(Ordering::Relaxed)))
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
    use crate::clock::thread_cpu_time;
    use crate::wake_ups::WakeUpSummary;

    #[test]
    fn a_worker_sends_heartbeats_only_while_it_works() {
        let (heartbeats, mut monitor) = (Heartbeats::default(), HeartbeatMonitor::default());
        assert_eq!(monitor.poll(&heartbeats), None);
        heartbeats.begin((1, 2, 3));
        heartbeats.samples(5);
        assert_eq!(monitor.poll(&heartbeats), Some(((1, 2, 3), 5)));
        assert_eq!(monitor.poll(&heartbeats), None);
        heartbeats.samples(5);
        assert_eq!(monitor.poll(&heartbeats), None);
        heartbeats.samples(6);
        assert_eq!(monitor.poll(&heartbeats), Some(((1, 2, 3), 6)));
        heartbeats.beat();
        heartbeats.end();
        assert_eq!(monitor.poll(&heartbeats), None);
    }

    #[test]
    fn what_is_neither_computing_nor_sleep_is_contention() {
        let ms = Duration::from_millis;
        let slept = |slept| WakeUpSummary { count: 7, slept, ..WakeUpSummary::default() };
        let disturbances =
            Disturbances { wake_ups: slept(ms(50)), run_delay: None, steal: Some(ms(10)) };
        let core = core_use(ms(100), ms(30), &disturbances);
        assert_eq!((core.available_ns, core.cpu_ns), (100_000_000, 30_000_000));
        assert_eq!((core.contention_ns, core.sleeps), (20_000_000, 7));
        assert_eq!((core.run_delay_ns, core.steal_ns), (None, Some(10_000_000)));
        // The clocks of a batch are read one after the other.
        let disturbances = Disturbances { wake_ups: slept(ms(71)), ..disturbances };
        assert_eq!(core_use(ms(100), ms(30), &disturbances).contention_ns, 0);
    }

    #[test]
    fn time_is_occupied_once_however_many_workers_are_busy() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let mut occupied = Occupation::default();
        occupied.begin(at(0));
        occupied.begin(at(2));
        occupied.end(at(5));
        occupied.end(at(7));
        occupied.begin(at(100));
        occupied.end(at(101));
        assert_eq!(occupied.total, Duration::from_millis(8));
    }

    #[test]
    fn cpu_time_of_a_worker_counts_as_a_heartbeat() {
        let (heartbeats, mut monitor) = (Heartbeats::default(), HeartbeatMonitor::default());
        heartbeats.begin((0, 0, 0));
        heartbeats.this_thread();
        monitor.poll(&heartbeats);
        if cpu_time_of(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).is_zero() {
            eprintln!("skipped: this kernel does not report a thread's CPU time");
            return;
        }
        let start = thread_cpu_time();
        while thread_cpu_time() - start < 30 * CPU_HEARTBEAT {
            std::hint::black_box(start);
        }
        assert!(monitor.poll(&heartbeats).is_some());
    }
}
