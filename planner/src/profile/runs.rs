//! The results of several runs of one strategy.

use super::meters::Usage;
use crate::statistics::Moments;

/// A run over the chosen samples.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) usage: Usage,
    /// Samples that were prepared.
    pub(super) samples: usize,
    /// Seconds of a thread for each sample; empty with a GPU, which prepares many at a time.
    pub(super) per_sample: Moments,
    /// Seconds in which the GPU had work; `None` without one.
    pub(super) gpu_seconds: Option<f64>,
}

/// The results of several runs of one strategy.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) per_second: Moments,
    pub(super) per_sample: Moments,
    /// Samples that were prepared in all runs.
    pub(super) prepared: f64,
    pub(super) cpu_seconds: f64,
    pub(super) context_switches: u64,
    pub(super) peak_memory_bytes: u64,
    pub(super) seconds: f64,
    /// `None` once a run did not report it.
    pub(super) disk_bytes: Option<u64>,
    /// `None` once a run was not measured.
    pub(super) joules: Option<f64>,
    /// `None` once a run was without a GPU.
    pub(super) gpu_seconds: Option<f64>,
    /// `None` once a run was without a GPU whose joules were measured.
    pub(super) gpu_joules: Option<f64>,
}

impl Runs {
    pub(super) fn of(runs: &[Run]) -> Self {
        let mut all = Self {
            disk_bytes: Some(0),
            joules: Some(0.0),
            gpu_seconds: Some(0.0),
            gpu_joules: Some(0.0),
            ..Self::default()
        };
        for Run { usage, samples, per_sample, gpu_seconds } in runs {
            all.per_second.add(*samples as f64 / usage.seconds);
            all.per_sample.merge(*per_sample);
            all.prepared += *samples as f64;
            all.cpu_seconds += usage.cpu_seconds;
            all.context_switches += usage.context_switches;
            all.peak_memory_bytes = all.peak_memory_bytes.max(usage.peak_memory_bytes);
            all.seconds += usage.seconds;
            all.disk_bytes = all.disk_bytes.zip(usage.disk_bytes).map(|(sum, it)| sum + it);
            all.joules = all.joules.zip(usage.joules).map(|(sum, it)| sum + it);
            all.gpu_seconds = all.gpu_seconds.zip(*gpu_seconds).map(|(sum, it)| sum + it);
            let board = usage.board_joules.filter(|_| gpu_seconds.is_some());
            all.gpu_joules = all.gpu_joules.zip(board).map(|(sum, it)| sum + it);
        }
        all
    }

    /// Relative standard error due to the choice of samples, each of which was prepared in every
    /// run.
    pub(super) fn sampling_error(&self, runs: u32, population: u64) -> f64 {
        let samples = self.per_sample.count() / u64::from(runs);
        if samples >= population || self.per_sample.mean() == 0.0 {
            return 0.0;
        }
        let left_out = 1.0 - samples as f64 / population as f64;
        let relative = self.per_sample.deviation() / self.per_sample.mean();
        relative * (left_out / samples as f64).sqrt()
    }
}
