//! A measured strategy, and the CSV file that results are saved to and loaded from without loss.

use crate::enumerate::Strategy;
use crate::statistics::{normal_quantile, student_quantile};
use crate::vocabulary::{Cache, Codec, Form, GpuIndex, Point};
use meetpoint_diagnose::{Command, Diagnose, Remedy};
use serde::{Deserialize, Serialize};
use std::fmt;

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

    /// A number that is out of range: the column, its value and the permitted range.
    fn problem(&self) -> Option<(&'static str, f64, &'static str)> {
        let positive = [
            ("cold_per_second", self.cold_per_second),
            ("per_second", self.per_second),
            ("threads", self.threads as f64),
            ("dataset_samples", self.dataset_samples as f64),
            ("samples", self.samples as f64),
            ("runs", f64::from(self.runs)),
            ("gpu_seconds", self.gpu_seconds.unwrap_or(1.0)),
            ("gpu_joules", self.gpu_joules.unwrap_or(1.0)),
        ];
        let not_negative = [
            ("offline_seconds", self.offline_seconds),
            ("offline_error", self.offline_error),
            ("process_seconds", self.process_seconds),
            ("save_seconds", self.save_seconds),
            ("stored_bytes", self.stored_bytes),
            ("stored_error", self.stored_error),
            ("cached_bytes", self.cached_bytes),
            ("cold_deviation", self.cold_deviation),
            ("per_second_deviation", self.per_second_deviation),
            ("sampling_error", self.sampling_error),
            ("cpu_seconds", self.cpu_seconds),
            ("context_switches", self.context_switches),
            ("disk_bytes_per_second", self.disk_bytes_per_second.unwrap_or_default()),
            ("joules", self.joules.unwrap_or_default()),
        ];
        let is_bad = |value: f64| !value.is_finite() || value < 0.0;
        let zero = positive.into_iter().find(|(_, value)| is_bad(*value) || *value == 0.0);
        let zero = zero.map(|(name, value)| (name, value, "finite and above 0"));
        let negative = not_negative.into_iter().find(|(_, value)| is_bad(*value));
        zero.or(negative.map(|(name, value)| (name, value, "finite and at least 0")))
    }
}

/// The position of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowPosition {
    /// Line of a CSV file, counted from 1.
    Line(u64),
    /// Entry of a JSON document's `results`, counted from 1.
    Result(u64),
}

impl fmt::Display for RowPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Result(number) => write!(f, "result {number}"),
        }
    }
}

/// Why a file of results cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// It is not CSV with the columns of [`Measured`], or a value is not of its column's type.
    #[error("not a file of results: {reason}")]
    Csv {
        /// The parser's message, with the line.
        reason: String,
    },
    /// It has no rows.
    #[error("no results: the file has only a header")]
    Empty,
    /// A value is outside of its range.
    #[error("{at}: `{column}` is {value}, which is not {range}")]
    Range {
        /// The row.
        at: RowPosition,
        /// Column.
        column: &'static str,
        /// Its value.
        value: f64,
        /// The permitted range in words.
        range: &'static str,
    },
    /// Rows belong to different datasets.
    #[error("{at}: the dataset has {got} samples, but that of the first row has {expected}")]
    Dataset {
        /// The row.
        at: RowPosition,
        /// Samples of its dataset.
        got: u64,
        /// Samples of the first row's dataset.
        expected: u64,
    },
    /// A row without a GPU has a figure of a GPU.
    #[error("{at}: `{column}` has a value, but `gpu` is empty")]
    WithoutGpu {
        /// The row.
        at: RowPosition,
        /// The figure.
        column: &'static str,
    },
    /// A row with a GPU lacks the busy time of the GPU.
    #[error("{at}: `gpu` is {gpu}, but `gpu_seconds` is missing")]
    NoGpuSeconds {
        /// The row.
        at: RowPosition,
        /// The GPU.
        gpu: GpuIndex,
    },
    /// A row with a GPU is of samples that no GPU prepares.
    #[error("{at}: `gpu` is {gpu}, but no GPU prepares {what}")]
    NotOnGpu {
        /// The row.
        at: RowPosition,
        /// The GPU.
        gpu: GpuIndex,
        /// Stored form, codec and cache.
        what: String,
    },
}

impl Diagnose for CsvError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Csv { .. } => "results_csv",
            Self::Empty => "results_empty",
            Self::Range { .. } => "results_range",
            Self::Dataset { .. } => "results_dataset",
            Self::WithoutGpu { .. } | Self::NoGpuSeconds { .. } | Self::NotOnGpu { .. } => {
                "results_gpu"
            }
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::Csv { .. }
            | Self::Empty
            | Self::WithoutGpu { .. }
            | Self::NoGpuSeconds { .. }
            | Self::NotOnGpu { .. } => Remedy::run(Command::ProfileResults),
            Self::Range { range, .. } => format!("set it to a number that is {range}").into(),
            Self::Dataset { .. } => "compare strategies on one dataset only".into(),
        })
    }
}

impl From<csv::Error> for CsvError {
    fn from(error: csv::Error) -> Self {
        let reason = match error.kind() {
            csv::ErrorKind::Deserialize { pos, err } => {
                let line = pos.as_ref().map(|it| format!("line {}: ", it.line()));
                format!("{}{err}", line.unwrap_or_default())
            }
            _ => error.to_string(),
        };
        Self::Csv { reason }
    }
}

/// Results as CSV with a heading. Numbers have the fewest digits that parse to the same value.
pub fn write_csv(results: &[Measured]) -> Result<String, CsvError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in results {
        writer.serialize(row)?;
    }
    let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8(bytes).expect("names and numbers are UTF-8"))
}

/// Results from the document that `meetpoint profile --json` prints.
pub fn read_json(text: &str) -> Result<Vec<Measured>, CsvError> {
    #[derive(Deserialize)]
    struct Document {
        results: Vec<Measured>,
    }
    let document: Document =
        serde_json::from_str(text).map_err(|error| CsvError::Csv { reason: error.to_string() })?;
    checked((1..).map(RowPosition::Result).zip(document.results).collect())
}

/// Results from [`write_csv`].
pub fn read_csv(text: &str) -> Result<Vec<Measured>, CsvError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let heading = reader.headers()?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        let line = record.position().map_or(0, csv::Position::line);
        rows.push((RowPosition::Line(line), record.deserialize(Some(&heading))?));
    }
    checked(rows)
}

/// Refuses values outside of their ranges, and results of several datasets.
fn checked(rows: Vec<(RowPosition, Measured)>) -> Result<Vec<Measured>, CsvError> {
    let expected = rows.first().ok_or(CsvError::Empty)?.1.dataset_samples;
    let check = |(at, row): (RowPosition, Measured)| {
        if let Some((column, value, range)) = row.problem() {
            return Err(CsvError::Range { at, column, value, range });
        }
        if let Some(problem) = row.gpu_problem(at) {
            return Err(problem);
        }
        match row.dataset_samples {
            got if got != expected => Err(CsvError::Dataset { at, got, expected }),
            _ => Ok(row),
        }
    };
    rows.into_iter().map(check).collect()
}
