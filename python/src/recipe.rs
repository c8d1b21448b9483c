//! Recipes as texts: checked, normalised and described.

use crate::{errors, guarded};
use meetpoint_format::recipe::{Recipe, TensorSpec, schema};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// Reads a recipe in TOML; returns its canonical TOML and JSON, its hash and what comes out.
///
/// `made_of` are the transforms that the text was made of, for errors: for each operation the
/// position of its transform, from 1, and its class; 0 for one that was added.
#[guarded]
#[pyfunction]
#[pyo3(signature = (toml, made_of=None))]
pub(crate) fn describe_recipe<'py>(
    py: Python<'py>,
    toml: &str,
    made_of: Option<Vec<(usize, String)>>,
) -> PyResult<Bound<'py, PyDict>> {
    let recipe = Recipe::from_toml(toml).map_err(|error| match &made_of {
        Some(transforms) => errors::of_transforms(py, &error, transforms),
        None => errors::of_recipe(py, &error),
    })?;
    let described = PyDict::new(py);
    described.set_item("toml", recipe.to_toml())?;
    described.set_item("canonical", recipe.canonical())?;
    described.set_item("hash", recipe.hash().to_string())?;
    described.set_item("is_deterministic", recipe.is_deterministic())?;
    described.set_item("output", recipe.output().map(|spec| output(py, spec)).transpose()?)?;
    Ok(described)
}

/// A text file, at most 1 MiB; a device, a pipe or a folder is an error.
#[guarded]
#[pyfunction]
pub(crate) fn read_text(path: PathBuf) -> PyResult<String> {
    Ok(meetpoint_storage::files::read_text(&path)?)
}

/// The declarations of all operations as JSON, as `meetpoint recipe schema --json` prints them.
#[guarded]
#[pyfunction]
pub(crate) fn recipe_schema() -> PyResult<String> {
    let schema = schema(None).expect("there are operations");
    serde_json::to_string(&schema).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// A recipe in TOML.
pub(crate) fn read(py: Python<'_>, toml: &str) -> PyResult<Recipe> {
    Recipe::from_toml(toml).map_err(|error| errors::of_recipe(py, &error))
}

/// Shape, type and layout of one sample.
pub(crate) fn output(py: Python<'_>, spec: TensorSpec) -> PyResult<Bound<'_, PyDict>> {
    let described = PyDict::new(py);
    let [_, shape @ ..] = spec.batch_shape(1);
    described.set_item("shape", shape.to_vec())?;
    described.set_item("dtype", spec.dtype.name())?;
    described.set_item("layout", spec.layout.name())?;
    Ok(described)
}
