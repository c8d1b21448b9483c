//! The resources that a run uses: processor time, context switches, memory, bytes from the drive,
//! energy.

use meetpoint_host::energy::{Coverage, Measurement, Meters, Recorder};
use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

/// What a run used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Usage {
    pub(super) seconds: f64,
    pub(super) cpu_seconds: f64,
    /// Of the threads that reported them.
    pub(super) context_switches: u64,
    /// Peak resident bytes of the process during the run.
    pub(super) peak_memory_bytes: u64,
    /// `None` if the system does not report it.
    pub(super) disk_bytes: Option<u64>,
    /// `None` if no meter works, or one failed.
    pub(super) joules: Option<f64>,
    /// Joules of the only graphics board that NVML sees; `None` if its meter does not work, or if
    /// there are several boards.
    pub(super) board_joules: Option<f64>,
}

/// A run that is being measured.
pub(super) struct Metering {
    begun: Instant,
    cpu_seconds: f64,
    disk_bytes: Option<u64>,
    /// `None` if no meter works.
    recorder: Option<Recorder>,
}

impl Metering {
    /// Begins; the meters are returned at the end.
    pub(super) fn begin(meters: &mut Meters) -> Self {
        // Resets VmHWM (proc(5)); if that is refused, the peak is that of the process so far.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let has_meters = meters.used().next().is_some();
        let recorder = has_meters.then(|| Recorder::start(std::mem::take(meters)));
        let (disk_bytes, cpu_seconds) = (disk_bytes(), cpu_seconds());
        Self { disk_bytes, cpu_seconds, recorder, begun: Instant::now() }
    }

    pub(super) fn end(self, context_switches: u64, meters: &mut Meters) -> Usage {
        let seconds = self.begun.elapsed().as_secs_f64();
        let measurement = self.recorder.map(|recorder| {
            let (measurement, given_back) = recorder.stop();
            *meters = given_back;
            measurement
        });
        let disk = disk_bytes().zip(self.disk_bytes);
        Usage {
            seconds,
            cpu_seconds: cpu_seconds() - self.cpu_seconds,
            context_switches,
            peak_memory_bytes: field("/proc/self/status", "VmHWM:").unwrap_or(0) * 1024,
            disk_bytes: disk.map(|(now, before)| now.saturating_sub(before)),
            joules: measurement.as_ref().and_then(Measurement::sum_joules),
            board_joules: measurement.as_ref().and_then(board_joules),
        }
    }
}

/// Joules of the only graphics board: NVML does not say which of several a GPU's index names.
fn board_joules(measurement: &Measurement) -> Option<f64> {
    let is_board = |coverage: &Coverage| matches!(coverage, Coverage::NvmlBoard { .. });
    let mut boards = measurement.meters.iter().filter(|meter| is_board(&meter.covers));
    match (boards.next(), boards.next()) {
        (Some(only), None) => only.joules,
        (None | Some(_), _) => None,
    }
}

/// Processor time of all threads of the process.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Bytes that were read from drives because of this process.
fn disk_bytes() -> Option<u64> {
    field("/proc/self/io", "read_bytes:")
}

/// Context switches of this thread so far.
pub(super) fn context_switches() -> u64 {
    let status = "/proc/thread-self/status";
    let names = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"];
    names.iter().filter_map(|name| field(status, name)).sum()
}

/// The number in the line that begins with `name`.
fn field(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_computes_has_used_the_processor_and_memory() {
        let mut meters = Meters::default();
        let metering = Metering::begin(&mut meters);
        let mut sum = 0u64;
        while cpu_seconds() - metering.cpu_seconds < 0.002 {
            sum = (0..10_000).fold(sum, |sum, number| std::hint::black_box(sum ^ number));
        }
        let usage = metering.end(3, &mut meters);
        assert!(usage.cpu_seconds >= 0.002 && usage.seconds > 0.0, "{usage:?} {sum}");
        assert!(usage.peak_memory_bytes > 1 << 16, "{usage:?}");
        assert_eq!((usage.context_switches, usage.joules), (3, None));
    }
}
