//! Commands divided into shards: a plan, one shard, and the commit.

use crate::options::{
    JpegArguments, PackArguments, PrepareArguments, SinkArguments, SourceArguments, Stop,
};
use crate::work::{self, Step};
use crate::{errors, guarded, recipe};
use meetpoint_datasets::pack::sharded::{commit_pack, plan_pack, run_pack};
use meetpoint_datasets::shards::{PlanFolder, ShardCommand, ShardOptions};
use meetpoint_datasets::unpack::sharded::{commit_convert, plan_convert, run_convert};
use meetpoint_datasets::verify::sharded::{commit_verify, plan_verify, run_verify};
use meetpoint_datasets::{LeftOut, VerifyOptions, source};
use meetpoint_diagnose::Surface;
use meetpoint_planner::Error;
use meetpoint_planner::materialize::sharded::{commit_prepare, plan_prepare, run_prepare};
use meetpoint_prepare::Dataset;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// What a plan is, as JSON.
fn planned(folder: &PlanFolder) -> String {
    let plan = folder.plan();
    work::json(&serde_json::json!({
        "folder": folder.path(),
        "sha256": folder.sha256(),
        "command": plan.command.name(),
        "destination": plan.destination,
        "shards": plan.shards,
        "parts": plan.parts.len(),
        "samples": plan.samples,
        "source_bytes": plan.source_bytes,
        "idle_shards": plan.idle_shards(),
    }))
}

/// Plans a command; `positional` are its paths, a recipe's text first for `prepare`.
#[guarded]
#[pyfunction]
pub(crate) fn plan_shards(
    py: Python<'_>,
    command: &str,
    positional: Vec<String>,
    options: Bound<'_, PyAny>,
    shards: u64,
) -> PyResult<String> {
    let stop = Stop::default();
    let at = |index: usize| PathBuf::from(positional.get(index).cloned().unwrap_or_default());
    let folder = match command {
        "pack" => {
            let (packing, of_source): (PackArguments, SourceArguments) =
                (options.extract()?, options.extract()?);
            let mut with = packing.options(py, &of_source, &stop)?;
            let storing = options.extract::<JpegArguments>()?;
            with.jpeg = storing.options(py, with.jpeg)?;
            with.source.store = storing.pixels(py)?;
            with.source.follow_links = options.get_item("follow_links")?.extract()?;
            work::run(py, &stop, None, |_| plan_pack(&at(0), &at(1), &with, shards))?
        }
        "convert" => {
            let sink: SinkArguments = options.extract()?;
            let with = sink.options(py, &stop)?;
            let of_source: SourceArguments = options.extract()?;
            let follow_links = options.get_item("follow_links")?.extract()?;
            let said = of_source.options(py, follow_links, &stop)?;
            let rule = sink.rule(py, &options)?.unwrap_or_default();
            let kind = of_source.from_.as_deref();
            work::run(py, &stop, None, |_| {
                plan_convert(&at(0), &at(1), (kind, &said), &with, rule, shards)
            })?
        }
        "prepare" => {
            let text = positional.first().cloned().unwrap_or_default();
            let recipe = recipe::read(py, &text)?;
            let with = options.extract::<PrepareArguments>()?.options(py, &recipe, &stop)?;
            work::run_with(py, (&*stop, None), errors::of_planner, |_| {
                let dataset = Dataset::open(&at(1))?;
                plan_prepare(&dataset, &recipe, &at(2), &with, shards)
            })?
        }
        _ => work::run(py, &stop, None, |_| plan_verify(&at(0), shards))?,
    };
    Ok(planned(&folder))
}

/// What the plan of a folder is.
#[guarded]
#[pyfunction]
pub(crate) fn open_shards(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    let opened = PlanFolder::open(&folder).map_err(|error| errors::of_datasets(py, &error))?;
    Ok(planned(&opened))
}

/// Runs a shard; returns its summary with the lines of its parts.
#[guarded]
#[pyfunction]
pub(crate) fn run_shard(
    py: Python<'_>,
    folder: PathBuf,
    shard: u64,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let stop = Stop::default();
    let steps = (&*stop, progress.as_ref());
    work::run_with(py, steps, errors::of_planner, |report| -> Result<String, Error> {
        let folder = PlanFolder::open(&folder)?;
        let mut lines: Vec<serde_json::Value> = Vec::new();
        let mut line = |text: &str| {
            lines.push(serde_json::from_str(text).expect("a record is JSON"));
        };
        let mut with = ShardOptions { threads, stop: Arc::clone(&stop), line: &mut line };
        let summary = match folder.plan().command {
            ShardCommand::Pack => {
                run_pack(&folder, shard, &mut with, &mut |step| report(step.into()))?
            }
            ShardCommand::Convert => run_convert(&folder, shard, &mut with, &mut |step| {
                let (samples_done, bytes_done) = (step.samples_done, step.bytes_done);
                let source::Size { samples, bytes } = step.size;
                report(Step { samples_done, samples, bytes_done, bytes });
            })?,
            ShardCommand::Prepare => run_prepare(&folder, shard, &mut with, &mut |step| {
                let (samples_done, samples) = (step.done, Some(step.samples));
                report(Step { samples_done, samples, ..Step::default() });
            })?,
            ShardCommand::Verify => {
                let mut bytes_done = 0;
                run_verify(&folder, shard, &mut with, &mut |bytes| {
                    bytes_done += bytes;
                    report(Step { bytes_done, ..Step::default() });
                })?
            }
        };
        Ok(work::json(&serde_json::json!({"summary": summary, "lines": lines})))
    })
}

/// Joins the results of all shards; returns the name of the command and its summary.
#[guarded]
#[pyfunction]
pub(crate) fn commit_shards(py: Python<'_>, folder: PathBuf) -> PyResult<(String, String)> {
    let stop = Stop::default();
    work::run_with(py, (&*stop, None), errors::of_planner, |_| -> Result<_, Error> {
        let folder = PlanFolder::open(&folder)?;
        let _lock = folder.lock()?;
        let command = folder.plan().command;
        let text = match command {
            ShardCommand::Pack => {
                let mut summary = commit_pack(folder)?;
                LeftOut::spell(&mut summary.unreadable, Surface::Python);
                LeftOut::spell(&mut summary.not_samples, Surface::Python);
                work::json(&summary)
            }
            ShardCommand::Convert => {
                let mut summary = commit_convert(folder)?;
                LeftOut::spell(&mut summary.damaged, Surface::Python);
                LeftOut::spell(&mut summary.not_samples, Surface::Python);
                work::json(&summary)
            }
            ShardCommand::Prepare => {
                let mut summary = commit_prepare(folder)?;
                LeftOut::spell(&mut summary.unreadable, Surface::Python);
                work::json(&summary)
            }
            ShardCommand::Verify => {
                let options = VerifyOptions { stop: Arc::clone(&stop), ..VerifyOptions::default() };
                work::json(&commit_verify(folder, &options)?)
            }
        };
        Ok((command.name().to_owned(), text))
    })
}
