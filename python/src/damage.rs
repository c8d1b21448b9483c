//! Damaged samples: Python's policy, and how they are reported.

use meetpoint_diagnose::Surface;
use meetpoint_host::{Action, Damage, DamagePolicy, OnError, Replacement};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::sync::{Arc, Mutex, PoisonError};

use crate::errors;

/// The exception that a user's function raised when it was called for a sample.
pub(crate) type UserException = Arc<Mutex<Option<PyErr>>>;

/// `on_error` from the package: a word, or a function from a record to a word.
pub(crate) fn policy(
    py: Python<'_>,
    on_error: Py<PyAny>,
    raised: &UserException,
) -> PyResult<OnError> {
    if let Ok(word) = on_error.bind(py).cast::<PyString>() {
        let word = word.to_cow()?;
        return match Action::named(&word) {
            Some(action) => Ok(OnError::Always(action)),
            None => Err(errors::plain(py, "SettingError", expected(&format!("{word:?}")))),
        };
    }
    if !on_error.bind(py).is_callable() {
        let got = on_error.bind(py).repr()?.to_string();
        return Err(errors::plain(py, "SettingError", expected(&got)));
    }
    let raised = Arc::clone(raised);
    Ok(OnError::Ask(DamagePolicy::new(move |damage| {
        let decided = Python::try_attach(|py| {
            ask(py, &on_error, damage).unwrap_or_else(|error| {
                let mut raised = raised.lock().unwrap_or_else(PoisonError::into_inner);
                raised.get_or_insert(error);
                Action::Raise
            })
        });
        // Without an interpreter, nothing waits for the batch.
        decided.unwrap_or(Action::Raise)
    })))
}

fn expected(got: &str) -> (String, &'static str) {
    let remedy = "set on_error to \"raise\", \"skip\", \"replace\", or a function from a \
                  meetpoint.DamagedSample to one of these";
    (format!("on_error is {got}"), remedy)
}

/// Calls a user's function.
fn ask(py: Python<'_>, function: &Py<PyAny>, damage: &Damage) -> PyResult<Action> {
    let class = py.import("meetpoint._damage")?.getattr("DamagedSample")?;
    let answer = function.bind(py).call1((class.call((), Some(&fields(py, damage)?))?,))?;
    let word = answer.extract::<String>().ok();
    match word.as_deref().and_then(Action::named) {
        Some(action) => Ok(action),
        None => {
            let got = answer.repr()?.to_string();
            let message = format!("the function given as on_error returned {got}");
            let remedy = "return \"raise\", \"skip\" or \"replace\"";
            Err(errors::plain(py, "SettingError", (message, remedy)))
        }
    }
}

/// The arguments of `DamagedSample`.
fn fields<'py>(py: Python<'py>, damage: &Damage) -> PyResult<Bound<'py, PyDict>> {
    let Damage { epoch, sample, key, file, offset, cause: _, what, remedy } = damage;
    let fields = PyDict::new(py);
    fields.set_item("epoch", epoch)?;
    fields.set_item("sample", sample)?;
    fields.set_item("key", key)?;
    fields.set_item("file", file)?;
    fields.set_item("offset", offset)?;
    fields.set_item("what", what)?;
    let remedy = remedy.as_ref().map(|remedy| remedy.spelled(Surface::Python));
    fields.set_item("remedy", remedy)?;
    Ok(fields)
}

/// A damaged sample of a batch, and how it was handled.
pub(crate) fn record<'py>(
    py: Python<'py>,
    batch: u32,
    replacement: &Replacement,
) -> PyResult<Bound<'py, PyDict>> {
    let fields = fields(py, &replacement.damage)?;
    let action = match replacement.replaced_by {
        Some(_) => Action::Replace,
        None => Action::Skip,
    };
    fields.set_item("batch", batch)?;
    fields.set_item("action", action.as_str())?;
    fields.set_item("replaced_by", replacement.replaced_by)?;
    Ok(fields)
}
