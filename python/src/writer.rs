//! A dataset written sample by sample.

use crate::{errors, guarded};
use meetpoint_datasets::{Writer as DatasetWriter, WriterOptions};
use meetpoint_format::dataset::{Columns, Provenance, Row, Stored};
use pyo3::prelude::*;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A writer of a dataset of images. See `_native.pyi`.
#[pyclass(frozen, module = "meetpoint._native")]
pub(crate) struct Writer {
    /// `None` once it is finished or abandoned.
    state: Mutex<Option<State>>,
}

struct State {
    writer: DatasetWriter,
    keys: HashSet<String>,
    bytes: u64,
}

#[guarded]
#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (path, *, force, part_bytes))]
    fn new(py: Python<'_>, path: PathBuf, force: bool, part_bytes: u64) -> PyResult<Self> {
        let options =
            WriterOptions { force, part_bytes_target: part_bytes, ..WriterOptions::default() };
        let writer = DatasetWriter::create(&path, Arc::new(Columns::images()), &options);
        let writer = writer.map_err(|error| errors::of_datasets(py, &error))?;
        let state = State { writer, keys: HashSet::new(), bytes: 0 };
        Ok(Self { state: Mutex::new(Some(state)) })
    }

    #[pyo3(signature = (key, image, label))]
    fn push(
        &self,
        py: Python<'_>,
        key: String,
        image: Vec<u8>,
        label: Option<i32>,
    ) -> PyResult<()> {
        self.with(py, |state| {
            if !state.keys.insert(key.clone()) {
                let message = format!("key {key:?} already exists");
                let said = (message, "give each sample a key of its own");
                return Err(errors::plain(py, "PackError", said));
            }
            state.bytes += image.len() as u64;
            let row = Row { key, image, label, entry_points: None, extra: None };
            state.writer.push(row).map_err(|error| errors::of_datasets(py, &error))
        })
    }

    fn finish(&self, py: Python<'_>, labels: Vec<String>, source: String) -> PyResult<u64> {
        let Some(State { writer, bytes, .. }) = self.take() else {
            return Err(over(py));
        };
        let stored = Stored { source_bytes: bytes, ..Stored::default() };
        let tool = meetpoint_datasets::writer::TOOL.to_owned();
        let provenance = Provenance { tool, source, ..Provenance::default() };
        let written = py.detach(|| writer.finish(labels, stored, provenance));
        written
            .map(|written| written.manifest.samples)
            .map_err(|error| errors::of_datasets(py, &error))
    }

    fn discard(&self) {
        if let Some(state) = self.take() {
            state.writer.discard();
        }
    }
}

impl Writer {
    fn take(&self) -> Option<State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn with<T>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut State) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(state.as_mut().ok_or_else(|| over(py))?)
    }
}

fn over(py: Python<'_>) -> PyErr {
    errors::plain(py, "ClosedError", ("the writer was finished or abandoned", "create another"))
}
