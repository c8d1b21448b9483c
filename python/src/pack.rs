//! Packing a source of samples from Python, with its progress.
#![expect(clippy::needless_pass_by_value, reason = "what Python passes is its own")]

use crate::errors;
use meetpoint_datasets::{OnError, PackOptions, PackProgress};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Least time between two calls of the progress function.
const EVERY: Duration = Duration::from_millis(50);

/// Packs a source; returns the summary as JSON. See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (source, destination, *, kind, force, skip, part_bytes, threads, progress))]
#[expect(clippy::too_many_arguments, reason = "they are keywords for whoever calls it")]
pub(crate) fn pack(
    py: Python<'_>,
    source: PathBuf,
    destination: PathBuf,
    kind: Option<String>,
    force: bool,
    skip: bool,
    part_bytes: u64,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = PackOptions {
        force,
        from: kind,
        on_error: if skip { OnError::Skip } else { OnError::Fail },
        part_bytes_target: part_bytes,
        threads,
        ..PackOptions::default()
    };
    let stop = options.stop.clone();
    let mut refused: Option<PyErr> = None;
    let mut told: Option<Instant> = None;
    let mut tell = |done: PackProgress| {
        let is_last = Some(done.samples_done) == done.samples;
        if refused.is_some() || (!is_last && told.is_some_and(|told| told.elapsed() < EVERY)) {
            return;
        }
        told = Some(Instant::now());
        let PackProgress { samples_done, samples, bytes_done, bytes } = done;
        let said = Python::attach(|py| -> PyResult<()> {
            py.check_signals()?;
            if let Some(progress) = &progress {
                progress.call1(py, (samples_done, samples, bytes_done, bytes))?;
            }
            Ok(())
        });
        if let Err(error) = said {
            stop.store(true, Ordering::Relaxed);
            refused = Some(error);
        }
    };
    let packed = py.detach(|| meetpoint_datasets::pack(&source, &destination, &options, &mut tell));
    match (packed, refused) {
        // Nothing is left behind by a pack that was stopped.
        (Err(_), Some(error)) => Err(error),
        (Err(error), None) => Err(errors::of_datasets(py, &error)),
        (Ok(_), Some(error)) => Err(error),
        (Ok(summary), None) => Ok(serde_json::to_string(&summary)
            .expect("a summary is of numbers, texts and lists of them")),
    }
}
