//! A packed dataset for Python: its samples by number and by key.

use crate::table::{self, Stream};
use crate::{errors, guarded, stores};
use meetpoint_format::dataset::SampleLocation;
use meetpoint_prepare::{Dataset as HostDataset, MappedDataset};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

/// An open dataset. See `_native.pyi`.
#[pyclass(frozen, module = "meetpoint._native")]
pub(crate) struct Dataset {
    dataset: Arc<HostDataset>,
    /// Its mapped parts, if mapping was requested.
    mapped: Option<MappedDataset>,
}

#[guarded]
#[pymethods]
impl Dataset {
    #[new]
    #[pyo3(signature = (
        path, *, mapped = false, cache_dir = None, cache_size = None, anonymous = false
    ))]
    fn new(
        py: Python<'_>,
        path: Vec<PathBuf>,
        mapped: bool,
        cache_dir: Option<PathBuf>,
        cache_size: Option<u64>,
        anonymous: bool,
    ) -> PyResult<Self> {
        let options = stores::options((cache_dir, cache_size, anonymous), None);
        let opened = py.detach(|| {
            let dataset = Arc::new(HostDataset::open_paths(&stores::paths(path, options))?);
            dataset.check_remote(1, 1)?;
            let mapped = mapped.then(|| MappedDataset::new(Arc::clone(&dataset), false));
            Ok(Self { dataset, mapped: mapped.transpose()? })
        });
        opened.map_err(|error| errors::of_prepare(py, &error))
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.dataset.path().to_path_buf()
    }

    #[getter]
    fn label_names(&self) -> Vec<String> {
        self.dataset.manifest().labels.clone()
    }

    #[getter]
    fn sha256(&self) -> String {
        self.dataset.manifest_sha256().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[getter]
    fn manifest(&self) -> String {
        self.dataset.manifest().to_json()
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.dataset.len()).expect("a dataset's samples fit 64 bits")
    }

    fn key(&self, py: Python<'_>, sample: u64) -> PyResult<String> {
        self.read(py, sample, |dataset| dataset.key(sample))
    }

    /// Key, file and label.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        sample: u64,
    ) -> PyResult<(String, Bound<'py, PyBytes>, Option<i32>)> {
        let key = self.key(py, sample)?;
        let Some(mapped) = &self.mapped else {
            let location = self.read(py, sample, |dataset| dataset.locate(sample))?;
            let file = self.read_file(py, sample, &location)?;
            return Ok((key, file, location.label));
        };
        let (location, original) = self.read(py, sample, |dataset| {
            let (location, stored) = mapped.sample(sample)?;
            let original = dataset.file_of(sample, &location, stored)?;
            Ok((location, original))
        })?;
        Ok((key, PyBytes::new(py, &original), location.label))
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        table::names(&self.dataset)
    }

    fn stream<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<String>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let stream = Stream::of(&self.dataset, &columns).map_err(|missing| {
            let there = table::names(&self.dataset).join(", ");
            let message = format!("the dataset has no column {missing:?}");
            errors::plain(py, "SettingError", (message, format!("it has {there}")))
        })?;
        stream.capsule(py)
    }

    fn find(&self, py: Python<'_>, key: &str) -> PyResult<Option<u64>> {
        let found = py.detach(|| self.dataset.find(key));
        found.map_err(|error| errors::of_prepare(py, &error))
    }
}

impl Dataset {
    /// A sample's file, read directly into memory of Python, which saves a copy.
    fn read_file<'py>(
        &self,
        py: Python<'py>,
        sample: u64,
        location: &SampleLocation,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let dataset = &self.dataset;
        let failed = |error: meetpoint_prepare::Error| errors::of_prepare(py, &error);
        let bytes = usize::try_from(location.bytes).expect("at most 256 MiB");
        let stored = PyBytes::new_with(py, bytes, |into| {
            py.detach(|| dataset.read_located_into(sample, location, into)).map_err(failed)
        })?;
        let bytes = stored.as_bytes();
        match py.detach(|| dataset.file_of(sample, location, bytes)).map_err(failed)? {
            Cow::Borrowed(_) => Ok(stored),
            Cow::Owned(file) => Ok(PyBytes::new(py, &file)),
        }
    }

    /// Reads something of an existing sample, while other threads run.
    fn read<'a, T: Send>(
        &'a self,
        py: Python<'_>,
        sample: u64,
        read: impl FnOnce(&'a HostDataset) -> Result<T, meetpoint_prepare::Error> + Send,
    ) -> PyResult<T> {
        let samples = self.dataset.len();
        if sample >= samples {
            let message = format!("sample {sample} of {samples}; they count from 0");
            return Err(PyIndexError::new_err(message));
        }
        py.detach(|| read(&self.dataset)).map_err(|error| errors::of_prepare(py, &error))
    }
}
