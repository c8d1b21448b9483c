//! Python's interface to the exporter of metrics to an OpenTelemetry collector.

use crate::exceptions::ProblemText;
use crate::{errors, guarded};
use meetpoint_metrics::{Error, Exporter, Settings};
use pyo3::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time between two checks of Python's signals.
const SLICE: Duration = Duration::from_millis(50);

/// A dictionary with exactly these keys.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ExportSettings {
    endpoint: Option<String>,
    /// Seconds.
    interval: Option<f64>,
    attributes: Vec<(String, String)>,
    rank: u32,
    ranks: u32,
}

impl From<ExportSettings> for Settings {
    fn from(settings: ExportSettings) -> Self {
        let ExportSettings { endpoint, interval, attributes, rank, ranks } = settings;
        Self { endpoint, interval_seconds: interval, attributes, rank, ranks }
    }
}

/// An exporter. See `_native.pyi`.
#[pyclass(frozen, module = "meetpoint._native")]
pub(crate) struct MetricsExporter {
    /// The process that created it.
    process: u32,
    exporter: Arc<Exporter>,
}

impl From<Arc<Exporter>> for MetricsExporter {
    fn from(exporter: Arc<Exporter>) -> Self {
        Self { process: std::process::id(), exporter }
    }
}

/// The exception for an exporter that cannot be started.
pub(crate) fn raised(py: Python<'_>, error: Error) -> PyErr {
    match error {
        Error::Thread(error) => error.into(),
        error => errors::plain(py, "SettingError", ProblemText::of(&error)),
    }
}

#[guarded]
#[pymethods]
impl MetricsExporter {
    #[getter]
    fn exports(&self) -> u64 {
        self.exporter.status().exports
    }

    #[getter]
    fn failures(&self) -> u64 {
        self.exporter.status().failures
    }

    #[getter]
    fn failure(&self) -> Option<String> {
        self.exporter.status().failure
    }

    fn take_failure(&self) -> Option<String> {
        self.exporter.take_failure()
    }

    fn flush(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        if self.process != std::process::id() {
            return Err(errors::forked(py));
        }
        let refused = |_| {
            let remedy = "set timeout to a number of seconds from 0";
            let said = (format!("timeout is {timeout}"), remedy);
            errors::plain(py, "SettingError", said)
        };
        let limit = Duration::try_from_secs_f64(timeout).map_err(refused)?;
        let begun = Instant::now();
        let mut flushed = self.exporter.flush();
        loop {
            let left = limit.saturating_sub(begun.elapsed());
            let (answers, slice) = (flushed, left.min(SLICE));
            let (answers, answer) = py.detach(move || {
                let answer = answers.wait(slice);
                (answers, answer)
            });
            match answer {
                Some(answer) => return Ok(answer.is_ok()),
                None if left.is_zero() => return Ok(false),
                None => py.check_signals()?,
            }
            flushed = answers;
        }
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.exporter.close());
    }
}
