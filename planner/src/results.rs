//! A measured strategy, and (in `file`) the CSV file that results are saved to and loaded from
//! without loss.

mod file;

pub use file::{CsvError, RowPosition, read_csv, read_json, write_csv};

use crate::enumerate::Strategy;
use crate::statistics::{normal_quantile, student_quantile};
use crate::vocabulary::{Cache, Codec, Form, GpuIndex, Point};
use serde::{Deserialize, Serialize};

/// How the page cache was bypassed in a cold run, and whether that had an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheDrop {
    /// Samples were read with O_DIRECT, which bypasses the page cache.
    Direct,
    /// `posix_fadvise(DONTNEED)`; probed pages were no longer cached afterwards.
    Dropped,
    /// `posix_fadvise(DONTNEED)`; pages were still in memory afterwards, as on tmpfs. Cold figures
    /// are then those of the page cache.
    Ineffective,
    /// `posix_fadvise(DONTNEED)`; the file system does not report whether pages are in memory.
    Unverified,
}

impl CacheDrop {
    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Dropped => "dropped",
            Self::Ineffective => "ineffective",
            Self::Unverified => "unverified",
        }
    }
}

/// A strategy with its measurements. Figures of the whole dataset are extrapolated from `samples`
/// samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The stored form.
    pub form: Form,
    /// Operations that are executed offline.
    pub operations: usize,
    /// Name of the last of these operations; empty if there is none.
    pub operation: String,
    /// Compression of each stored sample.
    pub codec: Codec,
    /// Threads that prepare samples.
    pub threads: usize,
    /// Where epochs after the first read stored samples from.
    pub cache: Cache,
    /// Samples of the dataset.
    pub dataset_samples: u64,
    /// Bytes of the dataset's content as stored.
    pub dataset_bytes: u64,
    /// Samples that were measured.
    pub samples: u64,
    /// Measured runs, each over all of these samples.
    pub runs: u32,
    /// Offline seconds for the whole dataset.
    pub offline_seconds: f64,
    /// Standard error of `offline_seconds` due to the choice of samples.
    pub offline_error: f64,
    /// Seconds of `offline_seconds` in which samples were read, prepared and compressed.
    pub process_seconds: f64,
    /// Seconds of `offline_seconds` in which they were written.
    pub save_seconds: f64,
    /// Bytes stored for the whole dataset.
    pub stored_bytes: f64,
    /// Standard error of `stored_bytes`.
    pub stored_error: f64,
    /// Bytes of the whole dataset in an application cache.
    pub cached_bytes: f64,
    /// Samples per second, cold: mean of the runs.
    pub cold_per_second: f64,
    /// Standard deviation of the cold runs.
    pub cold_deviation: f64,
    /// Samples per second from the strategy's cache: mean of the runs.
    pub per_second: f64,
    /// Standard deviation of these runs.
    pub per_second_deviation: f64,
    /// Relative standard error of both due to the choice of samples.
    pub sampling_error: f64,
    /// Processor seconds per sample.
    pub cpu_seconds: f64,
    /// Context switches per sample.
    pub context_switches: f64,
    /// Peak resident memory of the process in bytes during a run.
    pub peak_memory_bytes: u64,
    /// Bytes per second from the drive during the runs; `None` if the system does not report them.
    pub disk_bytes_per_second: Option<f64>,
    /// How the page cache was bypassed in cold runs.
    pub cache_drop: CacheDrop,
    /// Measured joules per sample, over all meters that do not overlap; `None` if the machine has
    /// no working meter.
    #[serde(default)]
    pub joules: Option<f64>,
    /// GPU that prepared a share of each batch; `None`: the CPU alone.
    #[serde(default, with = "crate::vocabulary::gpu_name")]
    pub gpu: Option<GpuIndex>,
    /// Seconds per sample in which the GPU had work: its times for batches, summed over the threads
    /// and limited to the duration of the run; `None` without a GPU.
    #[serde(default)]
    pub gpu_seconds: Option<f64>,
    /// Measured joules of the GPU's board per sample; `None` without a GPU, or if its meter does
    /// not work or there are several boards.
    #[serde(default)]
    pub gpu_joules: Option<f64>,
}

impl Measured {
    /// The strategy.
    pub fn strategy(&self) -> Strategy {
        let Self { codec, threads, cache, gpu, .. } = *self;
        Strategy { point: self.point(), codec, threads, cache, gpu }
    }

    /// The stored form.
    pub fn point(&self) -> Point {
        let Self { form, operations, .. } = *self;
        Point { form, operations, operation: self.operation.clone() }
    }

    /// Seconds of the first epoch, in which nothing is cached.
    pub fn first_epoch_seconds(&self) -> f64 {
        self.dataset_samples as f64 / self.cold_per_second
    }

    /// Seconds of each later epoch.
    pub fn epoch_seconds(&self) -> f64 {
        self.dataset_samples as f64 / self.per_second
    }

    /// Offline seconds plus those of `epochs` epochs.
    pub fn seconds(&self, epochs: u32) -> f64 {
        let later = f64::from(epochs.saturating_sub(1));
        self.offline_seconds + self.first_epoch_seconds() + later * self.epoch_seconds()
    }

    /// The error of [`Self::seconds`] at a confidence in 0..1; infinite after a single run, since
    /// the variance is then unknown.
    pub fn seconds_off(&self, epochs: u32, confidence: f64) -> f64 {
        let later = f64::from(epochs.saturating_sub(1));
        let sampled = normal_quantile(0.5 + confidence / 2.0);
        let cold = self.relative_off(self.cold_deviation / self.cold_per_second, confidence);
        let warm = self.relative_off(self.per_second_deviation / self.per_second, confidence);
        let terms = [
            sampled * self.offline_error,
            self.first_epoch_seconds() * cold,
            if later > 0.0 { later * self.epoch_seconds() * warm } else { 0.0 },
        ];
        terms.iter().map(|term| term * term).sum::<f64>().sqrt()
    }

    /// Relative half-width of the confidence interval of the cold rate; infinite after one run.
    pub fn cold_off(&self, confidence: f64) -> f64 {
        self.relative_off(self.cold_deviation / self.cold_per_second, confidence)
    }

    /// Relative half-width of the confidence interval of a rate with this relative deviation
    /// between runs.
    fn relative_off(&self, deviation: f64, confidence: f64) -> f64 {
        let p = 0.5 + confidence / 2.0;
        if self.runs < 2 {
            return f64::INFINITY;
        }
        let of_runs = student_quantile(p, self.runs - 1) * deviation / f64::from(self.runs).sqrt();
        of_runs.hypot(normal_quantile(p) * self.sampling_error)
    }

    /// The problem of the columns of the GPU; `None` if they are valid.
    fn gpu_problem(&self, at: RowPosition) -> Option<CsvError> {
        let figures = [("gpu_seconds", self.gpu_seconds), ("gpu_joules", self.gpu_joules)];
        let Some(gpu) = self.gpu else {
            let (column, _) = figures.into_iter().find(|(_, value)| value.is_some())?;
            return Some(CsvError::WithoutGpu { at, column });
        };
        if !self.strategy().suits_gpu() {
            let (point, codec, cache) = (self.point(), self.codec.name(), self.cache.name());
            let what = format!("{point} with the codec {codec} from the cache {cache}");
            return Some(CsvError::NotOnGpu { at, gpu, what });
        }
        self.gpu_seconds.is_none().then_some(CsvError::NoGpuSeconds { at, gpu })
    }

    /// A number that is out of range.
    fn range_problem(&self, at: RowPosition) -> Option<CsvError> {
        let numbers = [
            ("threads", self.threads as f64, COUNT),
            ("dataset_samples", self.dataset_samples as f64, COUNT),
            ("samples", self.samples as f64, COUNT),
            ("runs", f64::from(self.runs), COUNT),
            ("cold_per_second", self.cold_per_second, RATE),
            ("per_second", self.per_second, RATE),
            ("gpu_seconds", self.gpu_seconds.unwrap_or(1.0), GPU_SECONDS),
            ("gpu_joules", self.gpu_joules.unwrap_or(1.0), GPU_JOULES),
            ("cpu_seconds", self.cpu_seconds, SAMPLE_SECONDS),
            ("joules", self.joules.unwrap_or_default(), JOULES),
            ("cold_deviation", self.cold_deviation, DEVIATION),
            ("per_second_deviation", self.per_second_deviation, DEVIATION),
            ("offline_seconds", self.offline_seconds, AMOUNT),
            ("offline_error", self.offline_error, AMOUNT),
            ("process_seconds", self.process_seconds, AMOUNT),
            ("save_seconds", self.save_seconds, AMOUNT),
            ("stored_bytes", self.stored_bytes, AMOUNT),
            ("stored_error", self.stored_error, AMOUNT),
            ("cached_bytes", self.cached_bytes, AMOUNT),
            ("sampling_error", self.sampling_error, AMOUNT),
            ("context_switches", self.context_switches, AMOUNT),
            ("disk_bytes_per_second", self.disk_bytes_per_second.unwrap_or_default(), AMOUNT),
        ];
        // Not a number is in no range.
        let is_outside =
            |(_, value, range): &(&str, f64, Range)| !(range.least..=range.most).contains(value);
        let (column, value, Range { words, .. }) = numbers.into_iter().find(is_outside)?;
        Some(CsvError::Range { at, column, value, range: words })
    }

    /// Whether the columns of the operations do not fit the stored form.
    fn has_wrong_operations(&self) -> bool {
        match self.form {
            Form::Prepared | Form::Jpeg => self.operations == 0 || self.operation.is_empty(),
            Form::Files | Form::Packed | Form::CoefficientsFast | Form::CoefficientsCompact => {
                self.operations > 0 || !self.operation.is_empty()
            }
        }
    }
}

/// The permitted values of a column.
#[derive(Debug, Clone, Copy)]
struct Range {
    least: f64,
    most: f64,
    words: &'static str,
}

const fn range(least: f64, most: f64, words: &'static str) -> Range {
    Range { least, most, words }
}

const COUNT: Range = range(1.0, 1e15, "from 1 to 1e15");
const RATE: Range = range(1e-5, 1e9, "from 1e-5 to 1e9 samples per second");
const DEVIATION: Range = range(0.0, 1e9, "from 0 to 1e9 samples per second");
const SAMPLE_SECONDS: Range = range(0.0, 86_400.0, "from 0 to 86400 seconds per sample");
const GPU_SECONDS: Range = range(1e-12, 86_400.0, "from 1e-12 to 86400 seconds per sample");
const JOULES: Range = range(0.0, 1e9, "from 0 to 1e9 joules per sample");
const GPU_JOULES: Range = range(1e-12, 1e9, "from 1e-12 to 1e9 joules per sample");
/// Bytes, seconds of the whole dataset, and others.
const AMOUNT: Range = range(0.0, 1e18, "from 0 to 1e18");
