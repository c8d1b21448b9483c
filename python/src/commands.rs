//! The commands that create and convert datasets: pack, index, unpack, convert, verify.

use crate::options::{
    JpegArguments, PackArguments, PrepareArguments, SinkArguments, SourceArguments, Stop,
};
use crate::work::{self, Step};
use crate::{errors, guarded, recipe, stores};
use meetpoint_datasets::index::{index as index_source, index_keys as index_keys_of};
use meetpoint_datasets::unpack::sharded::convert_by_rule;
use meetpoint_datasets::{
    ConvertProgress, LeftOut, PackProgress, VerifyOptions, source, verify_deep, verify_with,
};
use meetpoint_diagnose::Surface;
use meetpoint_planner::materialize;
use meetpoint_prepare::Dataset;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

impl From<PackProgress> for Step {
    fn from(progress: PackProgress) -> Self {
        let PackProgress { samples_done, samples, bytes_done, bytes } = progress;
        Self { samples_done, samples, bytes_done, bytes }
    }
}

/// Packs a source; returns the summary as JSON, as do the other commands. See `_native.pyi`.
#[guarded]
#[pyfunction]
pub(crate) fn pack(
    py: Python<'_>,
    source: PathBuf,
    destination: PathBuf,
    options: Bound<'_, PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let stop = Stop::default();
    let (packing, of_source): (PackArguments, SourceArguments) =
        (options.extract()?, options.extract()?);
    let mut with = packing.options(py, &of_source, &stop)?;
    let storing = options.extract::<JpegArguments>()?;
    with.jpeg = storing.options(py, with.jpeg)?;
    with.source.store = storing.pixels(py)?;
    with.source.follow_links = options.get_item("follow_links")?.extract()?;
    let mut summary = work::run(py, &stop, progress.as_ref(), |report| {
        meetpoint_datasets::pack(&source, &destination, &with, &mut |step| report(step.into()))
    })?;
    LeftOut::spell(&mut summary.unreadable, Surface::Python);
    LeftOut::spell(&mut summary.not_samples, Surface::Python);
    Ok(work::json(&summary))
}

/// Executes the first operations of a recipe in TOML on a dataset and stores the results.
#[guarded]
#[pyfunction]
pub(crate) fn prepare(
    py: Python<'_>,
    recipe: &str,
    source: PathBuf,
    destination: PathBuf,
    options: Bound<'_, PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let stop = Stop::default();
    let recipe = recipe::read(py, recipe)?;
    let with = options.extract::<PrepareArguments>()?.options(py, &recipe, &stop)?;
    let of = (&*stop, progress.as_ref());
    let mut summary = work::run_with(py, of, errors::of_planner, |report| {
        let dataset = Dataset::open(&source)?;
        materialize(&dataset, &recipe, &destination, &with, &mut |step| {
            let (samples_done, samples) = (step.done, Some(step.samples));
            report(Step { samples_done, samples, ..Step::default() });
        })
    })?;
    LeftOut::spell(&mut summary.unreadable, Surface::Python);
    Ok(work::json(&summary))
}

/// Indexes a source in place.
#[guarded]
#[pyfunction]
pub(crate) fn index(
    py: Python<'_>,
    source: PathBuf,
    destination: PathBuf,
    options: Bound<'_, PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let stop = Stop::default();
    let (packing, of_source): (PackArguments, SourceArguments) =
        (options.extract()?, options.extract()?);
    let with = packing.options(py, &of_source, &stop)?;
    let mut summary = work::run(py, &stop, progress.as_ref(), |report| {
        index_source(&source, &destination, &with, &mut |step| report(step.into()))
    })?;
    LeftOut::spell(&mut summary.unreadable, Surface::Python);
    LeftOut::spell(&mut summary.not_samples, Surface::Python);
    Ok(work::json(&summary))
}

/// Creates the index of keys of a dataset.
#[guarded]
#[pyfunction]
pub(crate) fn index_keys(
    py: Python<'_>,
    dataset: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let stop = Stop::default();
    let summary = work::run(py, &stop, progress.as_ref(), |report| {
        index_keys_of(&dataset, &stop, &mut |step| {
            let samples = Some(step.samples);
            report(Step { samples_done: step.samples_done, samples, ..Step::default() });
        })
    })?;
    Ok(work::json(&summary))
}

/// Unpacks a dataset.
#[guarded]
#[pyfunction]
pub(crate) fn unpack(
    py: Python<'_>,
    dataset: PathBuf,
    destination: PathBuf,
    options: SinkArguments,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let stop = Stop::default();
    let with = options.options(py, &stop)?;
    let mut summary = work::run(py, &stop, progress.as_ref(), |report| {
        meetpoint_datasets::unpack(&dataset, &destination, &with, &mut |step| {
            let samples = Some(step.samples);
            report(Step { samples_done: step.samples_done, samples, ..Step::default() });
        })
    })?;
    LeftOut::spell(&mut summary.damaged, Surface::Python);
    Ok(work::json(&summary))
}

/// Converts a source.
#[guarded]
#[pyfunction]
pub(crate) fn convert(
    py: Python<'_>,
    source: PathBuf,
    destination: PathBuf,
    options: Bound<'_, PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let stop = Stop::default();
    let sink: SinkArguments = options.extract()?;
    let with = sink.options(py, &stop)?;
    let rule = sink.rule(py, &options)?;
    let of_source: SourceArguments = options.extract()?;
    let follow_links = options.get_item("follow_links")?.extract()?;
    let said = of_source.options(py, follow_links, &stop)?;
    let mut summary = work::run(py, &stop, progress.as_ref(), |report| {
        let mut tell = |step: ConvertProgress| {
            let (samples_done, bytes_done) = (step.samples_done, step.bytes_done);
            let source::Size { samples, bytes } = step.size;
            report(Step { samples_done, samples, bytes_done, bytes });
        };
        let kind = of_source.from_.as_deref();
        if let Some(rule) = rule {
            let from = (kind, &said);
            return convert_by_rule(&source, &destination, from, &with, rule, &mut tell);
        }
        let mut opened = source::open(&source, kind, &said)?;
        meetpoint_datasets::convert(opened.as_mut(), &source, &destination, &with, &mut tell)
    })?;
    LeftOut::spell(&mut summary.damaged, Surface::Python);
    LeftOut::spell(&mut summary.not_samples, Surface::Python);
    Ok(work::json(&summary))
}

/// Checks every bit of a dataset.
#[guarded]
#[pyfunction]
pub(crate) fn verify(
    py: Python<'_>,
    dataset: PathBuf,
    deep: bool,
    threads: usize,
    store: (Option<PathBuf>, Option<u64>, bool),
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let stop = Stop::default();
    let remote = stores::options(store, Some(&stop));
    let options = VerifyOptions { threads, stop: Arc::clone(&stop), remote };
    let report = work::run(py, &stop, progress.as_ref(), |report| {
        let mut tell = |bytes_done: u64, bytes: u64| {
            report(Step { bytes_done, bytes: Some(bytes), ..Step::default() });
        };
        let mut found =
            verify_with(&dataset, &options, &mut |step| tell(step.bytes_done, step.bytes))?;
        if deep && found.is_sound() {
            verify_deep(&dataset, threads, &stop, &mut found, &mut |step| {
                tell(step.bytes_done, step.bytes);
            })?;
        }
        Ok(found)
    })?;
    Ok(work::json(&report))
}

/// A size as typed, in bytes; `None` if it is not a size.
#[guarded]
#[pyfunction]
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    meetpoint_format::units::parse_bytes(text)
}
