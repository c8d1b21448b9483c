//! Options of commands from the package: dictionaries whose keys are the names of the command
//! line's options.

use crate::errors;
use crate::exceptions::ProblemText;
use meetpoint_datasets::operations::{CopyOptions, Selection};
use meetpoint_datasets::options::{
    Choice, parse_entry_points, parse_range, parse_restart_interval,
};
use meetpoint_datasets::shards::PartRule;
use meetpoint_datasets::source::{PixelStore, SourceOptions};
use meetpoint_datasets::store::{RemoteOptions, TransferMonitor};
use meetpoint_datasets::writer::provenance_time;
use meetpoint_datasets::{
    Check, JpegOptions, OnError, PackOptions, RestartMarkers, Shards, UnpackOptions,
};
use meetpoint_format::dataset::Codec;
use meetpoint_format::recipe::Recipe;
use meetpoint_planner::{PrepareOptions, find_cut};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The flag that stops work.
pub(crate) type Stop = Arc<AtomicBool>;

/// The value of an option with a closed set of values.
pub(crate) fn choice<T: Choice>(py: Python<'_>, option: &str, name: &str) -> PyResult<T> {
    T::named(name).ok_or_else(|| {
        let names: Vec<String> = T::ALL.iter().map(|it| format!("{:?}", it.name())).collect();
        let remedy = format!("set {option} to one of {}", names.join(", "));
        refused(py, (format!("{option} is {name:?}"), remedy))
    })
}

/// The value of an option with a separate syntax.
fn parsed<T>(py: Python<'_>, option: &str, value: Result<T, String>) -> PyResult<T> {
    value.map_err(|wrong| refused(py, format!("{option}: {wrong}")))
}

/// The error for an invalid option.
pub(crate) fn refused(py: Python<'_>, said: impl Into<ProblemText>) -> PyErr {
    errors::plain(py, "SettingError", said)
}

/// How to handle samples that cannot be read; Python uses "raise" for "fail".
fn on_error(py: Python<'_>, word: &str) -> PyResult<OnError> {
    match word {
        "raise" => Ok(OnError::Fail),
        "skip" => Ok(OnError::Skip),
        _ => {
            let remedy = "set on_error to \"raise\" or \"skip\"";
            Err(refused(py, (format!("on_error is {word:?}"), remedy)))
        }
    }
}

/// The time for the provenance.
fn time(py: Python<'_>) -> PyResult<String> {
    provenance_time().map_err(|error| errors::of_datasets(py, &error))
}

/// Options about the source.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SourceArguments {
    pub(crate) from_: Option<String>,
    content: Option<String>,
    kind: Option<String>,
    label: Option<String>,
    key: Option<String>,
    columns: Option<Vec<String>>,
    split: Option<String>,
    table: Option<PathBuf>,
    root: Option<PathBuf>,
    sample_bytes_max: u64,
    source_memory: Option<u64>,
    cache: Option<PathBuf>,
    cache_size: u64,
    anonymous: bool,
}

impl SourceArguments {
    /// `follow_links` is separate, because indexed content must not be reached through such links.
    pub(crate) fn options(
        &self,
        py: Python<'_>,
        follow_links: bool,
        stop: &Stop,
    ) -> PyResult<SourceOptions> {
        let kind = self.kind.as_deref().map(|kind| choice(py, "kind", kind)).transpose()?;
        Ok(SourceOptions {
            content: self.content.clone(),
            kind,
            label: self.label.clone(),
            key: self.key.clone(),
            columns: self.columns.clone(),
            split: self.split.clone(),
            store: None,
            table: self.table.clone(),
            root: self.root.clone(),
            follow_links,
            sample_bytes_max: Some(self.sample_bytes_max),
            memory_bytes_max: self.source_memory,
            remote: RemoteOptions {
                cache: self.cache.clone(),
                cache_bytes: self.cache_size,
                anonymous: self.anonymous,
                watch: TransferMonitor { stop: Arc::clone(stop), ..TransferMonitor::default() },
            },
        })
    }
}

/// How to create a dataset from a source, whether its content is copied or not.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PackArguments {
    force: bool,
    resume: bool,
    on_error: String,
    entry_points: String,
    check: String,
    part_size: u64,
    part_samples: Option<u64>,
    part_source_bytes: Option<u64>,
    threads: usize,
}

impl PackArguments {
    /// JPEGs are unchanged.
    pub(crate) fn options(
        &self,
        py: Python<'_>,
        source: &SourceArguments,
        stop: &Stop,
    ) -> PyResult<PackOptions> {
        let entry_points = parsed(py, "entry_points", parse_entry_points(&self.entry_points))?;
        Ok(PackOptions {
            force: self.force,
            from: source.from_.clone(),
            source: source.options(py, false, stop)?,
            resume: self.resume,
            time: Some(time(py)?),
            on_error: on_error(py, &self.on_error)?,
            check: choice::<Check>(py, "check", &self.check)?,
            jpeg: JpegOptions { entry_points, ..JpegOptions::default() },
            part_bytes_target: self.part_size,
            part_rule: PartRule::of(self.part_samples, self.part_source_bytes),
            threads: self.threads,
            stop: Arc::clone(stop),
            ..PackOptions::default()
        })
    }
}

/// How a dataset is prepared by the first operations of a recipe.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PrepareArguments {
    cut: String,
    codec: String,
    lossy_jpeg: Option<u8>,
    force: bool,
    resume: bool,
    on_error: String,
    part_size: u64,
    part_samples: Option<u64>,
    part_source_bytes: Option<u64>,
    threads: usize,
}

impl PrepareArguments {
    pub(crate) fn options(
        &self,
        py: Python<'_>,
        recipe: &Recipe,
        stop: &Stop,
    ) -> PyResult<PrepareOptions> {
        let codec = choice::<Codec>(py, "codec", &self.codec)?;
        let is_jpeg = self.lossy_jpeg.is_some();
        if is_jpeg && codec != Codec::None {
            let wrong = "codec is for arrays, and lossy_jpeg stores JPEGs".to_owned();
            return Err(refused(py, (wrong, "leave one of them out")));
        }
        let point = find_cut(recipe, &self.cut, is_jpeg)
            .map_err(|error| errors::of_planner(py, &error.into()))?;
        let options = PrepareOptions::new(point, codec);
        Ok(PrepareOptions {
            jpeg_quality: self.lossy_jpeg.unwrap_or(options.jpeg_quality),
            force: self.force,
            resume: self.resume,
            on_error: on_error(py, &self.on_error)?,
            part_bytes_target: self.part_size,
            part_rule: PartRule::of(self.part_samples, self.part_source_bytes),
            time: Some(time(py)?),
            threads: self.threads,
            stop: Arc::clone(stop),
            ..options
        })
    }
}

/// How JPEGs are stored.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct JpegArguments {
    form: String,
    progressive: String,
    restart_interval: Option<String>,
    optimize_huffman: bool,
    store: Option<String>,
}

impl JpegArguments {
    /// How a source without picture files stores its pixels.
    pub(crate) fn pixels(&self, py: Python<'_>) -> PyResult<Option<PixelStore>> {
        self.store.as_deref().map(|store| choice(py, "store", store)).transpose()
    }

    pub(crate) fn options(&self, py: Python<'_>, jpeg: JpegOptions) -> PyResult<JpegOptions> {
        let restarts = self.restart_interval.as_deref().map(parse_restart_interval);
        let restarts = parsed(py, "restart_interval", restarts.transpose())?;
        Ok(JpegOptions {
            form: choice(py, "form", &self.form)?,
            progressive: choice(py, "progressive", &self.progressive)?,
            restarts: restarts.unwrap_or(RestartMarkers::Keep),
            optimise_huffman: self.optimize_huffman,
            ..jpeg
        })
    }
}

/// Whether to replace an existing dataset.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SinkArguments {
    to: String,
    shard_size: Option<u64>,
    shard_samples: Option<u64>,
    without: Vec<String>,
    force: bool,
    on_error: String,
    threads: usize,
}

impl SinkArguments {
    /// The rule by which files end, if one is given.
    pub(crate) fn rule(
        &self,
        py: Python<'_>,
        options: &Bound<'_, PyAny>,
    ) -> PyResult<Option<PartRule>> {
        let samples = options.get_item("part_samples")?.extract()?;
        let rule = PartRule::of(samples, options.get_item("part_source_bytes")?.extract()?);
        if rule.is_some() && (self.shard_size.is_some() || self.shard_samples.is_some()) {
            let wrong = "files end after parts or after shards, not both".to_owned();
            return Err(refused(py, (wrong, "leave shard_size and shard_samples out")));
        }
        Ok(rule)
    }

    pub(crate) fn options(&self, py: Python<'_>, stop: &Stop) -> PyResult<UnpackOptions> {
        Ok(UnpackOptions {
            sink: choice(py, "to", &self.to)?,
            shards: Shards::after(self.shard_size, self.shard_samples),
            without: self.without.clone(),
            force: self.force,
            on_error: on_error(py, &self.on_error)?,
            threads: self.threads,
            stop: Arc::clone(stop),
        })
    }
}

/// How to write the result of an operation.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct WriteArguments {
    force: bool,
    resume: bool,
    part_size: u64,
    memory: u64,
    threads: usize,
}

impl WriteArguments {
    pub(crate) fn options(&self, stop: &Stop) -> CopyOptions {
        CopyOptions {
            force: self.force,
            part_bytes_target: self.part_size,
            memory_bytes: self.memory,
            threads: self.threads,
            resume: self.resume,
            stop: Arc::clone(stop),
        }
    }
}

/// Which samples to select.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SelectionArguments {
    label: Vec<String>,
    key: Vec<String>,
    range: Option<String>,
    invert: bool,
}

impl SelectionArguments {
    pub(crate) fn selection(&self, py: Python<'_>) -> PyResult<Selection> {
        let range = self.range.as_deref().map(parse_range).transpose();
        Ok(Selection {
            labels: self.label.clone(),
            keys: self.key.clone(),
            range: parsed(py, "range", range)?,
            invert: self.invert,
        })
    }
}
