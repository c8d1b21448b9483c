//! The exceptions of `meetpoint.errors`, raised by the name of their class.

use meetpoint_diagnose::{Diagnose, Surface};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::Path;

/// The attributes of an exception of the package besides its message.
#[derive(Debug, Default)]
pub(crate) struct ErrorLocation {
    /// Dataset, part or recipe.
    pub(crate) file: Option<String>,
    /// Row in the part.
    pub(crate) row: Option<u64>,
    /// Key of the sample.
    pub(crate) key: Option<String>,
}

/// The problem, without the remedy.
#[derive(Debug)]
pub(crate) struct ProblemText {
    message: String,
    cause: Option<&'static str>,
    remedy: Option<String>,
}

impl ProblemText {
    /// An error with its causes, in the terms of Python.
    pub(crate) fn of<E: Diagnose + ?Sized>(error: &E) -> Self {
        let remedy = error.remedy().map(|remedy| remedy.spelled(Surface::Python));
        Self { message: error.message(Surface::Python), cause: Some(error.cause()), remedy }
    }
}

impl ProblemText {
    /// The cause and the remedy of an error with a separate message.
    pub(crate) fn new<E: Diagnose + ?Sized>(message: String, error: &E) -> Self {
        Self { message, ..Self::of(error) }
    }
}

impl From<&str> for ProblemText {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl From<String> for ProblemText {
    fn from(message: String) -> Self {
        Self { message, cause: None, remedy: None }
    }
}

impl<M: Into<String>, R: Into<String>> From<(M, R)> for ProblemText {
    fn from((message, remedy): (M, R)) -> Self {
        Self { message: message.into(), cause: None, remedy: Some(remedy.into()) }
    }
}

/// An exception of `meetpoint.errors` by the name of its class.
pub(crate) fn raise(py: Python<'_>, class: &str, said: ProblemText, place: ErrorLocation) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = py.import("meetpoint.errors")?.getattr(class)?;
        let details = PyDict::new(py);
        details.set_item("file", place.file)?;
        details.set_item("row", place.row)?;
        details.set_item("key", place.key)?;
        details.set_item("cause", said.cause)?;
        details.set_item("remedy", said.remedy)?;
        Ok(PyErr::from_value(class.call((said.message,), Some(&details))?))
    };
    made().unwrap_or_else(|error| error)
}

/// An exception without a location: only a message, or a message with its remedy.
pub(crate) fn plain(py: Python<'_>, class: &str, said: impl Into<ProblemText>) -> PyErr {
    raise(py, class, said.into(), ErrorLocation::default())
}

/// A location: a file or folder.
pub(crate) fn at(path: &Path) -> ErrorLocation {
    ErrorLocation { file: Some(path.display().to_string()), ..ErrorLocation::default() }
}
