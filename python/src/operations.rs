//! The operations on datasets: `meetpoint dataset` for Python.
#![expect(clippy::needless_pass_by_value, reason = "Python hands over values that it owns")]

use crate::options::{SelectionArguments, Stop, WriteArguments, choice, refused};
use crate::work::{self, Step};
use crate::{errors, guarded};
use meetpoint_datasets::Error;
use meetpoint_datasets::operations::{
    self, Amount, CopyOptions, DiffOptions, Progress, RepairTo, Share, SplitBy,
};
use pyo3::prelude::*;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time between two checks of signals.
const SLICE: Duration = Duration::from_millis(50);

/// Rows that are read ahead of the consumer.
const ROWS_AHEAD: usize = 256;

impl From<Progress> for Step {
    fn from(progress: Progress) -> Self {
        let Progress { samples_done, samples, bytes_done } = progress;
        Self { samples_done, samples: Some(samples), bytes_done, bytes: None }
    }
}

/// Runs an operation; returns its result as JSON.
fn run<T: Serialize + Send>(
    py: Python<'_>,
    stop: &Stop,
    progress: Option<Py<PyAny>>,
    operation: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<T, Error> + Send,
) -> PyResult<String> {
    let done = work::run(py, stop, progress.as_ref(), |report| {
        operation(&mut |step| report(step.into()))
    })?;
    Ok(work::json(&done))
}

/// A share as typed.
fn share(py: Python<'_>, option: &str, text: &str) -> PyResult<Share> {
    Share::parse(text).ok_or_else(|| {
        let remedy = format!("set {option} to a number above 0, or one with a \"%\"");
        refused(py, (format!("{option} is {text}"), remedy))
    })
}

#[guarded]
#[pyfunction]
pub(crate) fn shuffle(
    py: Python<'_>,
    dataset: PathBuf,
    destination: PathBuf,
    seed: u64,
    writing: WriteArguments,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let stop = Stop::default();
    let options = writing.options(&stop);
    run(py, &stop, progress, |report| {
        operations::shuffle(&dataset, &destination, seed, &options, report)
    })
}

/// How to sample.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SampleArguments {
    n: Option<u64>,
    fraction: Option<String>,
    per_class: bool,
    seed: u64,
}

#[guarded]
#[pyfunction]
pub(crate) fn sample(
    py: Python<'_>,
    dataset: PathBuf,
    destination: PathBuf,
    options: SampleArguments,
    writing: WriteArguments,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let amount = match (options.n, &options.fraction) {
        (Some(samples), None) => Amount::Samples(samples),
        (None, Some(fraction)) => Amount::Fraction(share(py, "fraction", fraction)?),
        _ => return Err(refused(py, "give either n or fraction")),
    };
    let stop = Stop::default();
    let copy = writing.options(&stop);
    let SampleArguments { per_class, seed, .. } = options;
    run(py, &stop, progress, |report| {
        operations::sample(&dataset, &destination, amount, per_class, seed, &copy, report)
    })
}

#[guarded]
#[pyfunction]
pub(crate) fn select(
    py: Python<'_>,
    dataset: PathBuf,
    destination: PathBuf,
    fitting: SelectionArguments,
    writing: WriteArguments,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let selection = fitting.selection(py)?;
    let stop = Stop::default();
    let options = writing.options(&stop);
    run(py, &stop, progress, |report| {
        operations::select(&dataset, &destination, &selection, &options, report)
    })
}

#[guarded]
#[pyfunction]
pub(crate) fn merge(
    py: Python<'_>,
    datasets: Vec<PathBuf>,
    destination: PathBuf,
    order: &str,
    prefix: Vec<String>,
    writing: WriteArguments,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let order = choice(py, "order", order)?;
    let stop = Stop::default();
    let options = writing.options(&stop);
    run(py, &stop, progress, |report| {
        operations::merge(&datasets, &destination, order, &prefix, &options, report)
    })
}

/// How to split.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SplitArguments {
    parts: Vec<(PathBuf, String)>,
    stratify: bool,
    seed: Option<u64>,
    by: Option<String>,
    to: Option<PathBuf>,
}

impl SplitArguments {
    fn split_by(self, py: Python<'_>) -> PyResult<SplitBy> {
        let is_drawn = self.stratify || self.seed.is_some();
        match (self.by, self.to) {
            (Some(column), Some(folder)) if self.parts.is_empty() && !is_drawn => {
                Ok(SplitBy::Column { column, folder })
            }
            (None, None) if !self.parts.is_empty() => {
                let parts = self.parts.into_iter();
                let parts = parts.map(|(path, text)| Ok((path, share(py, "a share", &text)?)));
                Ok(SplitBy::Shares {
                    parts: parts.collect::<PyResult<_>>()?,
                    stratify: self.stratify,
                    seed: self.seed.unwrap_or(0),
                })
            }
            _ => Err(refused(
                py,
                (
                    "a split is by shares or by a column",
                    "give parts, with stratify and seed as needed, or by and to",
                ),
            )),
        }
    }
}

#[guarded]
#[pyfunction]
pub(crate) fn split(
    py: Python<'_>,
    dataset: PathBuf,
    options: SplitArguments,
    writing: WriteArguments,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let by = options.split_by(py)?;
    let stop = Stop::default();
    let options = writing.options(&stop);
    run(py, &stop, progress, |report| operations::split(&dataset, &by, &options, report))
}

#[guarded]
#[pyfunction]
pub(crate) fn stats(
    py: Python<'_>,
    dataset: PathBuf,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let stop = Stop::default();
    run(py, &stop, progress, |report| operations::stats(&dataset, threads, &stop, report))
}

#[guarded]
#[pyfunction]
pub(crate) fn diff(
    py: Python<'_>,
    left: PathBuf,
    right: PathBuf,
    list: usize,
    trust_checksums: bool,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let stop = Stop::default();
    let options = DiffOptions { named_max: list, trust_checksums, threads };
    run(py, &stop, progress, |report| operations::diff(&left, &right, &options, &stop, report))
}

/// How to repair.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RepairArguments {
    in_place: bool,
    force: bool,
    part_size: u64,
}

#[guarded]
#[pyfunction]
pub(crate) fn repair(
    py: Python<'_>,
    dataset: PathBuf,
    destination: Option<PathBuf>,
    options: RepairArguments,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let to = match (destination, options.in_place) {
        (Some(path), false) => RepairTo::Dataset(path),
        (None, true) => RepairTo::InPlace,
        _ => return Err(refused(py, "give either a destination or in_place=True")),
    };
    let stop = Stop::default();
    let copy = CopyOptions {
        force: options.force,
        part_bytes_target: options.part_size,
        stop: Arc::clone(&stop),
        ..CopyOptions::default()
    };
    run(py, &stop, progress, |report| operations::repair(&dataset, &to, &copy, report))
}

/// A message of the thread of [`RowReader`].
enum RowMessage {
    /// A row as JSON.
    Row(String),
    Failed(Error),
    End,
}

/// Rows of a dataset, read by a separate thread slightly ahead of the consumer.
#[pyclass(frozen, module = "meetpoint._native")]
pub(crate) struct RowReader {
    /// `None` once all rows were returned, or one could not be read.
    reading: Mutex<Option<Reading>>,
}

struct Reading {
    rows: Receiver<RowMessage>,
    thread: JoinHandle<()>,
}

#[guarded]
#[pymethods]
impl RowReader {
    #[new]
    fn new(
        py: Python<'_>,
        dataset: PathBuf,
        fitting: SelectionArguments,
        most: u64,
        columns: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let selection = fitting.selection(py)?;
        let (send, rows) = sync_channel(ROWS_AHEAD);
        let read = move || {
            let read =
                operations::rows(&dataset, &selection, most, columns.as_deref(), &mut |row| {
                    Ok(send.send(RowMessage::Row(work::json(&row))).is_ok())
                });
            // It is lost if the iterator was dropped.
            let _ = send.send(read.map_or_else(RowMessage::Failed, |()| RowMessage::End));
        };
        let thread = std::thread::Builder::new().name("meetpoint-rows".to_owned()).spawn(read)?;
        Ok(Self { reading: Mutex::new(Some(Reading { rows, thread })) })
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<String>> {
        loop {
            let received = py.detach(|| {
                let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
                let received = reading.as_ref().map(|it| it.rows.recv_timeout(SLICE))?;
                if let Err(RecvTimeoutError::Disconnected) = received
                    && let Some(Err(panic)) = reading.take().map(|it| it.thread.join())
                {
                    std::panic::resume_unwind(panic);
                }
                if let Ok(RowMessage::Failed(_) | RowMessage::End) = received {
                    *reading = None;
                }
                Some(received)
            });
            match received {
                None | Some(Ok(RowMessage::End) | Err(RecvTimeoutError::Disconnected)) => {
                    return Ok(None);
                }
                Some(Ok(RowMessage::Row(row))) => return Ok(Some(row)),
                Some(Ok(RowMessage::Failed(error))) => return Err(errors::of_datasets(py, &error)),
                Some(Err(RecvTimeoutError::Timeout)) => py.check_signals()?,
            }
        }
    }
}
