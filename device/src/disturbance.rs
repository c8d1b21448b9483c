//! Kernel counters of the core of a thread: time in which the thread waited for it, and time that
//! the hypervisor took from it.
//!
//! A counter that the kernel does not have is reported as not measured, never as 0.

use rustix::thread::{CpuSet, sched_getaffinity};
use std::fs::read_to_string;
use std::path::PathBuf;
use std::time::Duration;

/// The location of the kernel's counters for a thread.
#[derive(Debug, Clone)]
pub(crate) struct KernelCounters {
    /// The folder `/proc`.
    proc: PathBuf,
    /// The cores on which the thread may run.
    cores: Vec<usize>,
}

/// The counters at one moment; `None`: not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    run_delay: Option<Duration>,
    steal: Option<Duration>,
}

impl KernelCounters {
    /// The counters of the calling thread, which is bound to `core`. If it is bound to none, steal
    /// is the sum over the cores that it may use.
    pub(crate) fn of_this_thread(core: Option<usize>) -> Self {
        let cores = match core {
            Some(core) => vec![core],
            None => sched_getaffinity(None).map_or_else(
                |_| Vec::new(),
                |set| (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect(),
            ),
        };
        Self { proc: "/proc".into(), cores }
    }

    /// Must be called by the thread itself.
    fn read(&self) -> Reading {
        let text = |path| read_to_string(self.proc.join(path)).ok();
        Reading {
            run_delay: text("thread-self/schedstat").as_deref().and_then(run_delay_in),
            steal: text("stat").as_deref().and_then(|stat| {
                let of_cores = self.cores.iter().map(|core| steal_in(stat, *core));
                let sum = of_cores.sum::<Option<Duration>>();
                sum.filter(|_| !self.cores.is_empty())
            }),
        }
    }
}

/// Field 2 of a thread's `schedstat`: time in which it waited for a core, in nanoseconds. A kernel
/// without these statistics writes three zeros, which a thread that has used CPU time never has.
fn run_delay_in(schedstat: &str) -> Option<Duration> {
    let mut fields = schedstat.split_whitespace();
    let cpu_ns: u64 = fields.next()?.parse().ok()?;
    let run_delay_ns = fields.next()?.parse().ok()?;
    (cpu_ns > 0).then(|| Duration::from_nanos(run_delay_ns))
}

/// Field 8 of the core in `/proc/stat`, in 1/100 s (proc_stat(5)).
fn steal_in(stat: &str, core: usize) -> Option<Duration> {
    let name = format!("cpu{core} ");
    let fields = stat.lines().find_map(|line| line.strip_prefix(&name))?;
    let ticks: u64 = fields.split_whitespace().nth(7)?.parse().ok()?;
    Some(Duration::from_millis(ticks.checked_mul(10)?))
}

/// A sum of increases of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Sum {
    #[default]
    Empty,
    Measured(Duration),
    /// A reading was missing, or the counter decreased.
    Incomplete,
}

impl Sum {
    fn add(&mut self, from: Option<Duration>, to: Option<Duration>) {
        let grown = from.zip(to).and_then(|(from, to)| to.checked_sub(from));
        *self = match (*self, grown) {
            (Self::Empty, Some(grown)) => Self::Measured(grown),
            (Self::Measured(sum), Some(grown)) => Self::Measured(sum.saturating_add(grown)),
            (Self::Incomplete, _) | (_, None) => Self::Incomplete,
        };
    }

    fn measured(self) -> Option<Duration> {
        match self {
            Self::Measured(sum) => Some(sum),
            Self::Empty | Self::Incomplete => None,
        }
    }
}

/// Sums of the counters over intervals. Without counters, nothing is measured.
#[derive(Debug, Default)]
pub(crate) struct DisturbanceMeter {
    counters: Option<KernelCounters>,
    begun: Option<Reading>,
    run_delay: Sum,
    steal: Sum,
}

impl DisturbanceMeter {
    pub(crate) fn new(counters: Option<KernelCounters>) -> Self {
        Self { counters, ..Self::default() }
    }

    /// An interval begins.
    pub(crate) fn begin(&mut self) {
        self.begun = self.counters.as_ref().map(KernelCounters::read);
    }

    /// The interval ends.
    pub(crate) fn end(&mut self) {
        let (Some(counters), Some(begun)) = (&self.counters, self.begun.take()) else { return };
        let now = counters.read();
        self.run_delay.add(begun.run_delay, now.run_delay);
        self.steal.add(begun.steal, now.steal);
    }

    /// Time in which the thread waited for its core; `None` if it is not measured.
    pub(crate) fn run_delay(&self) -> Option<Duration> {
        self.run_delay.measured()
    }

    /// Time that the hypervisor took from its core; `None` if it is not measured.
    pub(crate) fn steal(&self) -> Option<Duration> {
        self.steal.measured()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const MS: Duration = Duration::from_millis(1);

    fn write(proc: &Path, file: &str, text: &str) {
        let path = proc.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn stat(first: u64, second: u64) -> String {
        format!("cpu  1 1 1 1 1 1 1 99 0 0\ncpu0 0 0 0 0 0 0 0 {first} 0 0\n")
            + &format!("cpu1 0 0 0 0 0 0 0 {second} 0 0\nintr 5 4\n")
    }

    /// Counters below a folder that takes the place of `/proc`.
    fn meter(proc: &Path, cores: &[usize]) -> DisturbanceMeter {
        let counters = KernelCounters { proc: proc.into(), cores: cores.to_vec() };
        DisturbanceMeter::new(Some(counters))
    }

    #[test]
    fn the_steal_of_a_core_is_read_from_its_line() {
        let stat =
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu1 1 2 3 4 5 6 7 81 0 0\ncpu10 1 2 3 4 5 6 7 5 0 0\n";
        assert_eq!(steal_in(stat, 1), Some(810 * MS));
        assert_eq!(steal_in(stat, 10), Some(50 * MS));
        assert_eq!(steal_in(stat, 2), None);
        assert_eq!(steal_in("cpu1 1 2 3\n", 1), None);
        assert_eq!(steal_in(&format!("cpu1 0 0 0 0 0 0 0 {}\n", u64::MAX), 1), None);
    }

    #[test]
    fn three_zeros_are_a_kernel_without_statistics_of_threads() {
        assert_eq!(run_delay_in("71 5000000 3\n"), Some(5 * MS));
        assert_eq!(run_delay_in("71 0 3\n"), Some(Duration::ZERO));
        for text in ["0 0 0\n", "", "71", "71 x 3", "-1 5 3"] {
            assert_eq!(run_delay_in(text), None, "{text:?}");
        }
    }

    #[test]
    fn intervals_add_up_and_what_is_between_them_is_left_out() {
        let proc = tempfile::tempdir().unwrap();
        let mut meter = meter(proc.path(), &[1]);
        assert_eq!((meter.run_delay(), meter.steal()), (None, None));
        let set = |delay_ms: u64, steal: u64| {
            let schedstat = format!("1000 {} 7\n", delay_ms * 1_000_000);
            write(proc.path(), "thread-self/schedstat", &schedstat);
            write(proc.path(), "stat", &stat(3, steal));
        };
        set(10, 100);
        meter.begin();
        set(12, 103);
        meter.end();
        set(500, 900);
        meter.begin();
        set(501, 900);
        meter.end();
        // An end without a beginning.
        set(900, 999);
        meter.end();
        assert_eq!((meter.run_delay(), meter.steal()), (Some(3 * MS), Some(30 * MS)));
    }

    #[test]
    fn steal_is_the_sum_over_the_cores_that_a_thread_may_use() {
        let proc = tempfile::tempdir().unwrap();
        write(proc.path(), "stat", &stat(10, 20));
        let mut both = meter(proc.path(), &[0, 1]);
        let mut with_another = meter(proc.path(), &[0, 1, 7]);
        let mut none = meter(proc.path(), &[]);
        [&mut both, &mut with_another, &mut none].into_iter().for_each(DisturbanceMeter::begin);
        write(proc.path(), "stat", &stat(11, 24));
        [&mut both, &mut with_another, &mut none].into_iter().for_each(DisturbanceMeter::end);
        assert_eq!(both.steal(), Some(50 * MS));
        assert_eq!((with_another.steal(), none.steal()), (None, None));
    }

    #[test]
    fn what_is_missing_for_one_interval_is_not_measured() {
        let proc = tempfile::tempdir().unwrap();
        let mut without_files = meter(&proc.path().join("absent"), &[0]);
        without_files.begin();
        without_files.end();
        assert_eq!((without_files.run_delay(), without_files.steal()), (None, None));
        let mut some = meter(proc.path(), &[0]);
        write(proc.path(), "stat", &stat(10, 0));
        for steal in [11, 12, 4, 20] {
            some.begin();
            write(proc.path(), "stat", &stat(steal, 0));
            some.end();
        }
        // The counter decreased once.
        assert_eq!((some.run_delay(), some.steal()), (None, None));
        let mut never = DisturbanceMeter::new(None);
        never.begin();
        never.end();
        assert_eq!((never.run_delay(), never.steal()), (None, None));
    }
}
