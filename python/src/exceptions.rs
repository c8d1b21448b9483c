//! The exceptions of `meetpoint.errors`, raised by the name of their class.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::Path;

/// What an exception of the package says beside its sentence.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Dataset, part or recipe.
    pub(crate) file: Option<String>,
    /// Row in the part.
    pub(crate) row: Option<u64>,
    /// Key of the sample.
    pub(crate) key: Option<String>,
}

/// An exception of `meetpoint.errors` by the name of its class.
pub(crate) fn raise(py: Python<'_>, class: &str, message: &str, place: Place) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = py.import("meetpoint.errors")?.getattr(class)?;
        let details = PyDict::new(py);
        // Remedies stand after the last semicolon, by the convention of all our errors.
        let remedy = message.rsplit_once("; ").map(|(_, remedy)| remedy.to_owned());
        details.set_item("file", place.file)?;
        details.set_item("row", place.row)?;
        details.set_item("key", place.key)?;
        details.set_item("remedy", remedy)?;
        Ok(PyErr::from_value(class.call((message,), Some(&details))?))
    };
    made().unwrap_or_else(|error| error)
}

/// An exception without a place.
pub(crate) fn plain(py: Python<'_>, class: &str, message: impl Into<String>) -> PyErr {
    raise(py, class, &message.into(), Place::default())
}

/// A file or folder as a place.
pub(crate) fn at(path: &Path) -> Place {
    Place { file: Some(path.display().to_string()), ..Place::default() }
}
