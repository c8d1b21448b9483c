//! Recipes as texts: checked, normalised and described.

use crate::exceptions::ProblemText;
use crate::{errors, guarded, work};
use meetpoint_diagnose::Diagnose;
use meetpoint_format::recipe::{
    Change, ChangeError, Images, Recipe, SHIPPED, find_shipped, schema,
};
use meetpoint_prepare::{find_recipe, read_recipe_files};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};

/// Parses a recipe in TOML; returns its canonical TOML, its form in JSON, its hash and the type of
/// its output.
///
/// `made_of` lists the transforms from which the text was created, for errors: for each operation
/// the position of its transform, from 1, and its class; 0 for an operation that was added.
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
    described.set_item("form", recipe.form())?;
    // Files that cannot be read are reported as an error when a loader is opened.
    let with_files = py.detach(|| read_recipe_files(recipe.clone()));
    let hash = with_files.map_or_else(|_| recipe.hash(), |recipe| recipe.hash());
    described.set_item("hash", hash.to_string())?;
    described.set_item("is_deterministic", recipe.is_deterministic())?;
    let outputs = PyDict::new(py);
    for images in recipe.images() {
        outputs.set_item(&images.column, output(py, images)?)?;
    }
    described.set_item("outputs", outputs)?;
    Ok(described)
}

/// The canonical TOML of a recipe file, or of the shipped recipe of this name.
#[guarded]
#[pyfunction]
pub(crate) fn load_recipe(py: Python<'_>, name: PathBuf) -> PyResult<String> {
    let found = find_recipe(&name, Path::new(""));
    found.map(|recipe| recipe.to_toml()).map_err(|error| errors::of_recipe_file(py, &error))
}

/// The shipped recipes as JSON, each with its TOML.
#[guarded]
#[pyfunction]
pub(crate) fn shipped_recipes() -> PyResult<String> {
    let recipes: Vec<_> = SHIPPED
        .iter()
        .map(|it| {
            serde_json::json!({
                "name": it.name, "version": it.version, "about": it.about, "source": it.source,
                "toml": it.file(),
            })
        })
        .collect();
    Ok(work::json(&recipes))
}

/// The shipped recipe of a name with some keys changed, given as `KEY=VALUE` in TOML.
#[guarded]
#[pyfunction]
pub(crate) fn shipped_recipe(py: Python<'_>, name: &str, changes: Vec<String>) -> PyResult<String> {
    let refused = |error: &dyn Diagnose| errors::plain(py, "RecipeError", ProblemText::of(error));
    let shipped = find_shipped(name).map_err(|error| refused(&error))?;
    let parsed = changes.iter().map(|it| it.parse()).collect::<Result<Vec<Change>, ChangeError>>();
    let changed = parsed.and_then(|changes| shipped.recipe().changed(&changes));
    changed.map(|recipe| recipe.to_toml()).map_err(|error| refused(&error))
}

/// The declarations of all operations as JSON, as `meetpoint recipe schema --json` prints them.
#[guarded]
#[pyfunction]
pub(crate) fn recipe_schema() -> PyResult<String> {
    let schema = schema(None).expect("there are operations");
    serde_json::to_string(&schema).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// A recipe in TOML, with the files that it needs.
pub(crate) fn read(py: Python<'_>, toml: &str) -> PyResult<Recipe> {
    let recipe = Recipe::from_toml(toml).map_err(|error| errors::of_recipe(py, &error))?;
    read_recipe_files(recipe).map_err(|error| errors::of_prepare(py, &error))
}

/// Shape, type and layout of one sample of a column, if they do not depend on the picture.
pub(crate) fn output<'py>(
    py: Python<'py>,
    images: &Images,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(spec) = images.spec() else { return Ok(None) };
    let described = PyDict::new(py);
    described.set_item("shape", images.axes(&spec))?;
    described.set_item("dtype", spec.dtype.name())?;
    described.set_item("layout", spec.layout.name())?;
    Ok(Some(described))
}
