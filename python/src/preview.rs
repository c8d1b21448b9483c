//! Contact sheets for Python.

use crate::exceptions::ProblemText;
use crate::{errors, guarded};
use meetpoint_datasets::{Preview, PreviewError, PreviewOptions, preview};
use meetpoint_prepare::Dataset;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::Arc;

/// The PNG, its width and height, and number and key of the sample in each row.
type PreviewImage<'py> = (Bound<'py, PyBytes>, (u32, u32), Vec<(u64, String)>);

/// Draws the results of a recipe for samples of a dataset.
#[guarded]
#[pyfunction]
pub(crate) fn contact_sheet<'py>(
    py: Python<'py>,
    dataset: PathBuf,
    recipe: &str,
    samples: u32,
    draws: u32,
    seed: u64,
    epoch: u32,
) -> PyResult<PreviewImage<'py>> {
    let recipe = Arc::new(crate::recipe::read(py, recipe)?);
    let options = PreviewOptions { samples, draws, seed, epoch };
    let drawn = py.detach(|| {
        let dataset = Arc::new(Dataset::open(&dataset)?);
        preview(&dataset, &recipe, &options)
    });
    let Preview { png, size, rows, epochs: _ } = drawn.map_err(|error| of_preview(py, &error))?;
    Ok((PyBytes::new(py, &png), size, rows))
}

fn of_preview(py: Python<'_>, error: &PreviewError) -> PyErr {
    let class = match error {
        PreviewError::Prepare(error) => return errors::of_prepare(py, error),
        PreviewError::NotImages { .. } | PreviewError::NoSamples { .. } => "DatasetError",
        PreviewError::Range { .. } | PreviewError::TooLarge => "SettingError",
        PreviewError::Encode(_) => "MeetpointError",
    };
    errors::plain(py, class, ProblemText::of(error))
}
