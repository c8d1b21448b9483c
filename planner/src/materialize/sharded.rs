//! Preparing divided into shards; with a [`PartRule`](meetpoint_datasets::shards::PartRule), one
//! process prepares by the same code.

use super::{
    PrepareOptions, PrepareProgress, PrepareSummary, PreparedRow, Work, find_cut, prepared_columns,
    provenance, refuse_prepared, trial, writer_options,
};
use crate::Error;
use crate::vocabulary::Codec;
use meetpoint_datasets::shards::{
    Attempt, Joined, PartBuilder, PartResult, PartSplitter, PlanFolder, ShardCommand, ShardError,
    ShardOptions, ShardPlan, ShardSummary, Totals, alone, check_rule, folder_of, join,
    with_remains,
};
use meetpoint_datasets::{Error as DatasetsError, OnError, Writer};
use meetpoint_format::checksum::hexadecimal;
use meetpoint_format::dataset::Stored;
use meetpoint_format::recipe::Recipe;
use meetpoint_prepare::{Dataset, read_recipe_files};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The data of a preparing plan besides the listing.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PrepareJob {
    /// Absolute path of the dataset that is read.
    dataset: PathBuf,
    /// The dataset as the user named it.
    name: PathBuf,
    /// SHA-256 of its manifest.
    manifest_sha256: String,
    /// The whole recipe, as TOML.
    recipe: String,
    cut: String,
    is_jpeg: bool,
    codec: Codec,
    jpeg_quality: u8,
    force: bool,
    on_error: OnError,
}

impl PrepareJob {
    /// The recipe and the options of the plan.
    fn read(&self) -> Result<(Recipe, PrepareOptions), Error> {
        let refused = |problem: String| {
            let folder = self.dataset.clone();
            Error::from(DatasetsError::from(ShardError::NoPlan { folder, problem }))
        };
        let recipe = Recipe::from_toml(&self.recipe).map_err(|error| refused(error.to_string()))?;
        let recipe = read_recipe_files(recipe).map_err(|error| refused(error.to_string()))?;
        let point = find_cut(&recipe, &self.cut, self.is_jpeg)?;
        let options = PrepareOptions {
            jpeg_quality: self.jpeg_quality,
            force: self.force,
            on_error: self.on_error,
            ..PrepareOptions::new(point, self.codec)
        };
        Ok((recipe, options))
    }

    /// The dataset, if it is the one that was planned.
    fn open(&self) -> Result<Dataset, Error> {
        let dataset = Dataset::open(&self.dataset)?;
        if hexadecimal(&dataset.manifest_sha256()) != self.manifest_sha256 {
            let (source, file) = (self.dataset.clone(), Some(self.dataset.join("dataset.json")));
            let changed = ShardError::SourceChanged { source, file, files: (1, 1) };
            return Err(DatasetsError::from(changed).into());
        }
        Ok(dataset)
    }
}

/// Lists the dataset and cuts the listing into parts.
fn plan(
    dataset: &Dataset,
    recipe: &Recipe,
    to: &Path,
    options: &PrepareOptions,
) -> Result<ShardPlan, Error> {
    let rule = options.part_rule.unwrap_or_default();
    check_rule(rule)?;
    refuse_prepared(dataset, recipe, options.point.operations)?;
    let (prepared, _, _) = prepared_columns(dataset, recipe, options);
    Writer::may_write(to, &writer_options(dataset, &prepared, options))?;
    trial::run(dataset, recipe, to, options)?;
    let mut splitter = PartSplitter::new(rule);
    for batch in 0..dataset.record_batches() {
        let rows = dataset.keyed_rows(batch)?;
        for (sample, key) in (rows.first_sample..).zip(&rows.keys) {
            let location = dataset.locate(sample)?;
            let bytes = location.bytes;
            splitter.add(bytes, |listed| listed.add(key, location.label, bytes, ""));
        }
    }
    let path = dataset.path().canonicalize().unwrap_or_else(|_| dataset.path().to_path_buf());
    let job = PrepareJob {
        dataset: path,
        name: dataset.path().to_path_buf(),
        manifest_sha256: hexadecimal(&dataset.manifest_sha256()),
        recipe: recipe.to_toml(),
        cut: options.point.to_string(),
        is_jpeg: options.is_jpeg(),
        codec: options.codec,
        jpeg_quality: options.jpeg_quality,
        force: options.force,
        on_error: options.on_error,
    };
    let plan = ShardPlan::new(ShardCommand::Prepare, to, splitter.finish(), &job);
    Ok(plan.at(options.time.clone()))
}

/// Plans to prepare a dataset in a number of shards.
pub fn plan_prepare(
    dataset: &Dataset,
    recipe: &Recipe,
    to: &Path,
    options: &PrepareOptions,
    shards: u64,
) -> Result<PlanFolder, Error> {
    let plan = plan(dataset, recipe, to, options)?;
    let plan = plan.in_shards(shards).map_err(DatasetsError::from)?;
    Ok(PlanFolder::create(&folder_of(&plan.destination), plan, &[])?)
}

/// Prepares the parts of a shard that are not finished.
pub fn run_prepare(
    folder: &PlanFolder,
    shard: u64,
    options: &mut ShardOptions<'_>,
    progress: &mut dyn FnMut(PrepareProgress),
) -> Result<ShardSummary, Error> {
    let attempt = folder.attempt(shard)?;
    let missing = attempt.missing::<PartResult>()?;
    if !missing.is_empty() {
        run_missing(&attempt, &missing, options, progress).map_err(|error| match error {
            Error::Datasets(error) => attempt.explain(*error).into(),
            error => error,
        })?;
    }
    Ok(attempt.summary(&missing))
}

fn run_missing(
    attempt: &Attempt<'_>,
    missing: &[Range<u64>],
    options: &mut ShardOptions<'_>,
    progress: &mut dyn FnMut(PrepareProgress),
) -> Result<(), Error> {
    let plan = attempt.folder().plan();
    let job: PrepareJob = plan.job(attempt.folder().path()).map_err(DatasetsError::from)?;
    let dataset = &job.open()?;
    let (recipe, mut with) = job.read()?;
    with.threads = options.threads;
    with.stop = Arc::clone(&options.stop);
    let (_, columns, carried) = prepared_columns(dataset, &recipe, &with);
    let columns = Arc::new(columns);
    let beginning = recipe.beginning(with.point.operations);
    let work = Work { dataset, carried: &carried, beginning: &beginning, options: &with };
    let planned = |part: u64| &plan.parts[usize::try_from(part).expect("it is listed")];
    let samples = missing.iter().cloned().flatten().map(|part| planned(part).samples).sum();
    let mut done = 0;
    progress(PrepareProgress { done, samples });
    for part in missing.iter().cloned().flatten() {
        let first = planned(part).first;
        let range = first..first + planned(part).samples;
        let mut builder = PartBuilder::new(attempt, part, &columns);
        work.each(range.clone(), &mut |sample, prepared| {
            let (key, location) = (dataset.key(sample)?, dataset.locate(sample)?);
            builder.listed().add(&key, location.label, location.bytes, "");
            match prepared {
                PreparedRow::Row(row) => builder.push(*row)?,
                PreparedRow::LeftOut(left_out) => builder.left_out.push(left_out),
            }
            done += 1;
            progress(PrepareProgress { done, samples });
            Ok(())
        })?;
        if with.on_error == OnError::Fail && !builder.left_out.is_empty() {
            let (files, checked) = (std::mem::take(&mut builder.left_out), done);
            return Err(Error::Unreadable(Box::new(DatasetsError::Unreadable { files, checked })));
        }
        options.report(&builder.finish()?);
    }
    Ok(())
}

/// Joins the parts of all shards into the prepared dataset.
pub fn commit_prepare(folder: PlanFolder) -> Result<PrepareSummary, Error> {
    commit(folder, Vec::new())
}

fn commit(folder: PlanFolder, cleaned: Vec<PathBuf>) -> Result<PrepareSummary, Error> {
    let parts: Vec<PartResult> = folder.all_done()?;
    let job: PrepareJob = folder.plan().job(folder.path()).map_err(DatasetsError::from)?;
    let dataset = job.open()?;
    let (recipe, mut options) = job.read()?;
    options.time.clone_from(&folder.plan().time);
    let (prepared, _, _) = prepared_columns(&dataset, &recipe, &options);
    let Totals { left_out, samples, .. } = Totals::of(&parts);
    if samples == 0 && !left_out.is_empty() {
        let (files, checked) = (left_out, dataset.len());
        return Err(Error::Unreadable(Box::new(DatasetsError::Unreadable { files, checked })));
    }
    let mut provenance = provenance(&dataset, &prepared, &options, left_out.len() as u64);
    provenance.source = job.name.display().to_string();
    let manifest = dataset.manifest();
    let source_bytes = manifest.image_bytes;
    let joined = Joined {
        force: job.force,
        sources: vec![job.dataset.clone()],
        labels: manifest.labels.clone(),
        stored: Stored { source_bytes, ..Stored::default() },
        provenance,
        cleaned,
    };
    let written = join(folder, &parts, joined)?;
    Ok(PrepareSummary {
        destination: written.destination,
        samples: written.manifest.samples,
        cut: options.point.to_string(),
        prepared,
        source_bytes,
        stored_bytes: written.manifest.image_bytes,
        file_bytes: written.file_bytes,
        parts: written.manifest.parts.len() as u64,
        parts_resumed: 0,
        unreadable: left_out,
        cleaned: written.cleaned,
        notes: written.notes,
        replaced: written.replaced,
    })
}

/// Prepares with a rule in this process.
pub(super) fn prepare_alone(
    dataset: &Dataset,
    recipe: &Recipe,
    to: &Path,
    options: &PrepareOptions,
    progress: &mut dyn FnMut(PrepareProgress),
) -> Result<PrepareSummary, Error> {
    let plan = plan(dataset, recipe, to, options)?;
    let mut parts_before = 0;
    let run = |folder: &PlanFolder| {
        let (threads, stop) = (options.threads, Arc::clone(&options.stop));
        let mut with = ShardOptions { threads, stop, line: &mut |_| () };
        parts_before = run_prepare(folder, 0, &mut with, progress)?.parts_before;
        Ok(())
    };
    let can_resume = |error: &Error| match error {
        Error::Stopped => true,
        Error::Datasets(error) => matches!(
            **error,
            DatasetsError::Interrupted | DatasetsError::Write { .. } | DatasetsError::Remote(_)
        ),
        _ => false,
    };
    let prepared = alone(plan, &[], options.resume, run, commit, can_resume);
    let summary = prepared.map_err(|error| match error {
        Error::Stopped if options.resume => with_remains(DatasetsError::Interrupted, to).into(),
        error => error,
    })?;
    Ok(PrepareSummary { parts_resumed: parts_before, ..summary })
}
