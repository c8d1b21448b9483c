//! Emulates a slow core: the thread sleeps in proportion to the CPU time that it used.
//!
//! The kernels call back between stages, each about a stripe of rows and well below a millisecond.
//! A period of the duty cycle consists of several stages, together [`QUANTUM`] of CPU time,
//! followed by a sleep. [`Governor`] only computes; [`CpuThrottle`] reads the thread's clocks and
//! sleeps.

use crate::clock::{nanoseconds, thread_cpu_time};
use crate::disturbance::{DisturbanceMeter, KernelCounters};
use crate::waits::StorageWaits;
use crate::wake_ups::{WakeUpSummary, WakeUps};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Less CPU time than this is not worth a sleep in the middle of a batch. A sleep makes the caches
/// cold and takes about 40 us of CPU time itself on a virtual machine. With short slices that
/// dominates: a core of ratio 0.06 did a third of the work expected from its CPU time.
const QUANTUM: Duration = Duration::from_millis(2);

/// Sleeps shorter than this are deferred until more has accumulated.
const SLEEP_MIN: Duration = Duration::from_micros(200);

/// Maximum oversleep that is credited; any more lowers the achieved ratio.
const CREDIT_MAX: Duration = Duration::from_millis(20);

/// Longest sleep between two checks whether to continue.
const SLICE_MAX: Duration = Duration::from_millis(20);

/// The duty cycle in virtual time: CPU time in, time to sleep out.
///
/// A core of ratio r needs t / r for work that takes t here, so each t of CPU time owes t · (1/r −
/// 1) of sleep. Oversleep is credited, so errors of single sleeps do not accumulate.
#[derive(Debug, Clone)]
pub(crate) struct Governor {
    /// 1/r − 1.
    sleep_per_cpu: f64,
    cpu_ns: u64,
    /// CPU time at the last request of a sleep.
    paid_cpu_ns: u64,
    slept_ns: u64,
}

impl Governor {
    /// A core of which `ratio` (above 0, at most 1) is used.
    pub(crate) fn new(ratio: f64) -> Self {
        Self { sleep_per_cpu: 1.0 / ratio - 1.0, cpu_ns: 0, paid_cpu_ns: 0, slept_ns: 0 }
    }

    /// Accounts for a thread's activity. Time off the core that is not a wait for storage counts as
    /// sleep, because another thread or the hypervisor used the core.
    pub(crate) fn enter(&mut self, time_use: TimeUse) {
        self.cpu_ns += nanoseconds(time_use.cpu);
        self.slept(time_use.off_core());
    }

    /// How long to sleep now; zero while less than a [`QUANTUM`] is owed and settling is not
    /// required.
    pub(crate) fn sleep(&mut self, settle: bool) -> Duration {
        if !settle && self.cpu_ns - self.paid_cpu_ns < nanoseconds(QUANTUM) {
            return Duration::ZERO;
        }
        let sleep = Duration::from_nanos(self.owed_ns().saturating_sub(self.slept_ns));
        if sleep < SLEEP_MIN {
            return Duration::ZERO;
        }
        self.paid_cpu_ns = self.cpu_ns;
        sleep
    }

    /// Accounts for time off the core.
    fn slept(&mut self, time: Duration) {
        let most = self.owed_ns().saturating_add(nanoseconds(CREDIT_MAX));
        self.slept_ns = self.slept_ns.saturating_add(nanoseconds(time)).min(most);
    }

    /// Total sleep owed for the CPU time so far.
    fn owed_ns(&self) -> u64 {
        // 2^53 ns are 104 days of CPU time; until then the product is exact to the nanosecond.
        (self.cpu_ns as f64 * self.sleep_per_cpu).round() as u64
    }
}

/// What a thread did between two moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TimeUse {
    wall: Duration,
    cpu: Duration,
    /// Waiting for storage.
    idle: Duration,
}

impl TimeUse {
    /// Time in which the thread could have computed and did not.
    ///
    /// This is a difference of clocks, because no counter of the kernel includes all of it: on some
    /// kernels, run_delay of schedstat misses much of a preempted thread's wait, and it never
    /// includes time that the hypervisor takes.
    fn off_core(self) -> Duration {
        self.wall.saturating_sub(self.cpu).saturating_sub(self.idle)
    }
}

/// The clocks of a thread at one moment.
#[derive(Debug, Clone, Copy)]
struct Clocks {
    wall: Instant,
    cpu: Duration,
    idle: Duration,
}

impl Clocks {
    fn of_this_thread(storage: &StorageWaits) -> Self {
        Self { wall: Instant::now(), cpu: thread_cpu_time(), idle: storage.idle() }
    }

    fn since(&self, earlier: &Self) -> TimeUse {
        TimeUse {
            wall: self.wall - earlier.wall,
            cpu: self.cpu.saturating_sub(earlier.cpu),
            idle: self.idle.saturating_sub(earlier.idle),
        }
    }
}

/// What disturbed a thread so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Disturbances {
    /// The sleeps of the emulation.
    pub(crate) wake_ups: WakeUpSummary,
    /// Time within batches in which it waited for its core; `None` if it was not measured.
    pub(crate) run_delay: Option<Duration>,
    /// Time within batches that the hypervisor took from its core; `None` if it is not measured.
    pub(crate) steal: Option<Duration>,
}

/// Slows down the thread that created it.
#[derive(Debug)]
pub(crate) struct CpuThrottle {
    governor: Option<Governor>,
    storage_waits: Arc<StorageWaits>,
    /// The clocks at the end of the last accounted interval.
    seen: Clocks,
    /// Slow-down factor of a fault; 1 is none.
    stretch: f64,
    stretched: Duration,
    wake_ups: WakeUps,
    meter: DisturbanceMeter,
}

impl CpuThrottle {
    /// A throttle for the calling thread; without a ratio, only [`CpuThrottle::stretch`] has an
    /// effect. `storage_waits` and `counters` are those of this thread. Without counters, run delay
    /// and steal are not measured.
    pub(crate) fn new(
        ratio: Option<f64>,
        storage_waits: Arc<StorageWaits>,
        counters: Option<KernelCounters>,
    ) -> Self {
        // Avoids the usual 50 µs by which sleeps are too long. If this is not permitted, sleeps are
        // longer, and the excess is credited as always.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let seen = Clocks::of_this_thread(&storage_waits);
        let governor = ratio.map(Governor::new);
        Self {
            governor,
            storage_waits,
            seen,
            stretch: 1.0,
            stretched: Duration::ZERO,
            wake_ups: WakeUps::default(),
            meter: DisturbanceMeter::new(counters),
        }
    }

    /// A batch begins or resumes: the counters of the kernel are read from now on.
    pub(crate) fn begin_batch(&mut self) {
        self.meter.begin();
    }

    /// The batch ends, or waits for a slot.
    pub(crate) fn end_batch(&mut self) {
        self.meter.end();
    }

    /// Slows everything down by `factor` from now on.
    pub(crate) fn stretch(&mut self, factor: f64) {
        self.stretch = factor;
    }

    /// Accounts for the CPU time since the last call of any method, but ignores the remaining time,
    /// in which the thread had nothing to compute.
    pub(crate) fn skip(&mut self) {
        let now = Clocks::of_this_thread(&self.storage_waits);
        let cpu = now.since(&self.seen).cpu;
        self.enter(TimeUse { wall: cpu, cpu, idle: Duration::ZERO });
        self.seen = now;
    }

    fn enter(&mut self, time_use: TimeUse) {
        if let Some(governor) = &mut self.governor {
            governor.enter(time_use);
        }
    }

    /// Accounts for the time since the last call of any method.
    fn account(&mut self) {
        let now = Clocks::of_this_thread(&self.storage_waits);
        self.enter(now.since(&self.seen));
        self.seen = now;
    }

    /// Sleeps the owed time once it is long enough, and calls `go_on` at least every 20 ms; returns
    /// `false` as soon as `go_on` does.
    pub(crate) fn pay(&mut self, go_on: &mut dyn FnMut() -> bool) -> bool {
        self.pay_up(false, go_on)
    }

    /// Sleeps all of the owed time, as [`CpuThrottle::pay`] does, at the end of a batch.
    pub(crate) fn settle(&mut self, go_on: &mut dyn FnMut() -> bool) -> bool {
        self.pay_up(true, go_on)
    }

    fn pay_up(&mut self, settle: bool, go_on: &mut dyn FnMut() -> bool) -> bool {
        let mut whole = true;
        let begun = self.seen.wall;
        self.account();
        let sleep = self.governor.as_mut().map_or(Duration::ZERO, |it| it.sleep(settle));
        if !sleep.is_zero() {
            whole = sleep_until(self.seen.wall + sleep, Some(&mut self.wake_ups), go_on);
            // Sleeping and waking up takes CPU time too, about 40 us on a virtual machine.
            self.account();
        }
        if self.stretch > 1.0 {
            let took = self.seen.wall - begun;
            let end = self.seen.wall + took.mul_f64(self.stretch - 1.0);
            whole &= sleep_until(end, None, go_on);
            self.stretched += self.seen.wall.elapsed();
            self.skip();
        }
        whole
    }

    /// What disturbed the thread so far.
    pub(crate) fn disturbances(&self) -> Disturbances {
        Disturbances {
            wake_ups: self.wake_ups.summary(),
            run_delay: self.meter.run_delay(),
            steal: self.meter.steal(),
        }
    }

    /// Time slept by [`CpuThrottle::stretch`], which is not part of the emulation.
    pub(crate) fn stretched(&self) -> Duration {
        self.stretched
    }
}

/// Sleeps in slices. A slice that ends late shortens the next one, so only the end counts as late.
fn sleep_until(
    end: Instant,
    wake_ups: Option<&mut WakeUps>,
    go_on: &mut dyn FnMut() -> bool,
) -> bool {
    let begun = Instant::now();
    let requested = end.saturating_duration_since(begun);
    if requested.is_zero() {
        return true;
    }
    let mut now = begun;
    let goes_on = loop {
        std::thread::sleep(end.saturating_duration_since(now).min(SLICE_MAX));
        now = Instant::now();
        let goes_on = go_on();
        if now >= end || !goes_on {
            break goes_on;
        }
    };
    if let Some(wake_ups) = wake_ups {
        wake_ups.add(now - begun, requested);
    }
    goes_on
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);
    const MS: Duration = Duration::from_millis(1);

    /// Works in stages of `stage` on a clock whose sleeps are `late` too long.
    fn work(ratio: f64, stage: Duration, stages: u32, late: Duration) -> (Duration, u32) {
        let mut governor = Governor::new(ratio);
        let (mut clock, mut sleeps) = (Duration::ZERO, 0);
        for _ in 0..stages {
            clock += stage;
            governor.enter(computed(stage));
            let sleep = governor.sleep(false);
            if !sleep.is_zero() {
                clock += sleep + late;
                governor.slept(sleep + late);
                sleeps += 1;
            }
        }
        (clock, sleeps)
    }

    fn computed(cpu: Duration) -> TimeUse {
        TimeUse { wall: cpu, cpu, idle: Duration::ZERO }
    }

    #[test]
    fn time_off_the_core_counts_as_sleep_and_a_wait_for_storage_does_not() {
        let mut governor = Governor::new(0.25);
        let mut clock = Duration::ZERO;
        for stage in 0..1000 {
            // Another thread has the core for up to 2 ms, and a read takes 0.5 ms.
            let (kept, idle) = (stage % 3 * MS, MS / 2);
            let time_use = TimeUse { wall: MS + kept + idle, cpu: MS, idle };
            governor.enter(time_use);
            let sleep = governor.sleep(false);
            governor.slept(sleep);
            clock += time_use.wall + sleep;
        }
        let wanted = 1000 * (4 * MS + MS / 2);
        assert!(clock.abs_diff(wanted) <= 4 * MS, "{clock:?}");
    }

    #[test]
    fn in_virtual_time_work_takes_exactly_one_over_the_ratio_as_long() {
        for (ratio, times) in [(1.0, 1), (0.5, 2), (0.25, 4), (0.125, 8), (0.1, 10), (0.01, 100)] {
            let (took, _) = work(ratio, MS, 1000, Duration::ZERO);
            assert_eq!(took, 1000 * times * MS, "ratio {ratio}");
        }
    }

    #[test]
    fn late_sleeps_do_not_accumulate() {
        for late in [10 * US, 70 * US, 900 * US] {
            let (took, _) = work(0.5, MS, 10_000, late);
            let wanted = 20_000 * MS;
            assert!(took.abs_diff(wanted) <= MS + late, "{took:?}, {late:?} late");
        }
    }

    #[test]
    fn short_stages_share_a_sleep() {
        let (took, sleeps) = work(0.5, 10 * US, 10_000, Duration::ZERO);
        assert_eq!((took, sleeps), (20_000 * 10 * US, 50));
    }

    #[test]
    fn a_slow_core_computes_for_a_quantum_too() {
        let (took, sleeps) = work(0.05, 10 * US, 10_000, Duration::ZERO);
        assert_eq!((took, sleeps), (200_000 * 10 * US, 50));
    }

    #[test]
    fn an_account_is_settled_however_little_was_used() {
        let mut governor = Governor::new(0.25);
        governor.enter(computed(100 * US));
        assert_eq!(governor.sleep(false), Duration::ZERO);
        assert_eq!(governor.sleep(true), 300 * US);
        governor.slept(300 * US);
        assert_eq!(governor.sleep(true), Duration::ZERO);
    }

    #[test]
    fn a_core_at_full_ratio_never_sleeps() {
        assert_eq!(work(1.0, 7 * MS, 1000, Duration::ZERO), (7000 * MS, 0));
    }

    #[test]
    fn a_very_late_sleep_is_credited_only_in_part() {
        let mut governor = Governor::new(0.5);
        let mut charge = |cpu, slept| {
            governor.enter(computed(cpu));
            let sleep = governor.sleep(true);
            governor.slept(slept);
            sleep
        };
        assert_eq!(charge(MS, 1000 * MS), MS);
        assert_eq!(charge(CREDIT_MAX, Duration::ZERO), Duration::ZERO);
        // 999 ms too long were slept; 20 ms of that are credited and now used up.
        assert_eq!(charge(5 * MS, Duration::ZERO), 5 * MS);
    }

    #[test]
    fn a_throttle_settles_all_but_the_cost_of_its_last_sleep() {
        for ratio in [0.5, 0.25] {
            let mut throttle = CpuThrottle::new(Some(ratio), Arc::default(), None);
            let mut sum = 0_u64;
            for stage in 0..40_u64 {
                // Some 0.3 to 1.2 ms of real work, as kernels take between two stages.
                for step in 0..100_000 * (1 + stage % 4) {
                    sum = std::hint::black_box(sum.rotate_left(5) ^ step);
                }
                assert!(throttle.pay(&mut || true));
            }
            assert!(throttle.settle(&mut || true));
            let governor = throttle.governor.unwrap();
            // Falling asleep and waking up takes CPU time too: it shortens the sleep and owes more.
            // Both are accounted for, so this holds however long the machine takes for either.
            let unpaid_ns = governor.cpu_ns - governor.paid_cpu_ns;
            let most_ns = unpaid_ns as f64 / ratio + SLEEP_MIN.as_nanos() as f64 + 1.0;
            let left_ns = governor.owed_ns().saturating_sub(governor.slept_ns);
            assert!(
                left_ns as f64 <= most_ns,
                "{left_ns} of {most_ns} ns at {ratio}: {governor:?}"
            );
        }
    }

    #[test]
    fn a_throttle_stops_on_request() {
        let mut throttle = CpuThrottle::new(Some(0.001), Arc::default(), None);
        let start = thread_cpu_time();
        while thread_cpu_time() - start < 10 * MS {
            std::hint::black_box(start);
        }
        // Ten seconds are owed.
        assert!(!throttle.pay(&mut || false));
    }
}
