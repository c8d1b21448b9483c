//! Packing divided into shards; with a [`PartRule`](crate::shards::PartRule), one process packs by
//! the same code.

use super::census::{Census, first_place};
use super::check::{SampleCheck, Verdict};
use super::pipeline::{self, PipelineEvent, PipelineOptions};
use super::rows::count;
use super::{
    OnError, PackOptions, PackProgress, PackSummary, can_resume, refuse_in_place_elsewhere,
    refuse_longer_samples, refuse_options_without_use, without_rewriting,
};
use crate::error::ShardError;
use crate::jpeg::Converted;
use crate::shards::{
    Attempt, Joined, PartBuilder, PartResult, PartSplitter, PlanFolder, ShardCommand, ShardOptions,
    ShardPlan, ShardSummary, Totals, absolute_options, absolute_source, alone, check_rule,
    folder_of, join, list_stamps, with_remains,
};
use crate::source::{self, Entry, Finished, InPlace, Item, Source, UnusedLabel};
use crate::store::StorePath;
use crate::writer::TOOL;
use crate::{Error, LeftOut, Writer, WriterOptions};
use meetpoint_format::dataset::{Columns, ContentKind, Provenance, Row, locates_content};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The data of a packing plan besides the listing.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PackJob {
    /// The source, as the user named it.
    name: String,
    options: PackOptions,
    kind: ContentKind,
    /// Names of the further columns.
    columns: Vec<String>,
    labels: Vec<String>,
    unused_labels: Vec<UnusedLabel>,
    /// Samples that the source cannot read.
    unreadable: Vec<LeftOut>,
    not_samples: Vec<LeftOut>,
    ignored: u64,
}

fn open(place: &StorePath, options: &PackOptions) -> Result<Box<dyn Source>, Error> {
    let source = source::open_in(place, options.from.as_deref(), &options.source)?;
    match options.in_place {
        true => Ok(Box::new(InPlace::wrap(place, source)?)),
        false => Ok(source),
    }
}

/// Lists the source and cuts the listing into parts. Returns the stamps of its files too.
fn plan(from: &Path, to: &Path, options: &PackOptions) -> Result<(ShardPlan, Vec<u128>), Error> {
    let rule = options.part_rule.unwrap_or_default();
    check_rule(rule)?;
    let absolute_from = absolute_source(from);
    Writer::may_write(
        to,
        &WriterOptions {
            force: options.force,
            sources: existing(&absolute_from),
            ..WriterOptions::default()
        },
    )?;
    refuse_in_place_elsewhere(from, options)?;
    refuse_longer_samples(options)?;
    let mut options = options.clone();
    // Links out of the source are followed, so that the error says that they cannot stay in place.
    options.source.follow_links |= options.in_place;
    options.source = absolute_options(options.source);
    let place = source::find(&absolute_from, &options.source.remote)?;
    let (stamps, stamp) = list_stamps(&place, &options.source)?;
    let mut source = open(&place, &options)?;
    let kind = source.schema().kind;
    refuse_options_without_use(kind, &options)?;
    let options = without_rewriting(kind, &options);
    let fields = source.schema().extra.fields().iter().filter(|field| !locates_content(field));
    let columns = fields.map(|field| field.name().clone()).collect();
    let (mut census, mut splitter) = (Census::default(), PartSplitter::new(rule));
    let (mut unreadable, mut not_samples, mut ignored) = (Vec::new(), Vec::new(), 0);
    while let Some(entry) = source.next()? {
        if options.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        match entry {
            Entry::Sample(item) => {
                match census.look_at(&item) {
                    Err(Error::DuplicateKey { key, first: None, second }) => {
                        let mut again = open(&place, &options)?;
                        let first = first_place(&key, &mut *again)?.map(Box::new);
                        return Err(Error::DuplicateKey { key, first, second });
                    }
                    looked => looked?,
                }
                splitter.add_item(&item);
            }
            Entry::Unreadable(left_out) => unreadable.push(left_out),
            Entry::NotASample(left_out) => not_samples.push(left_out),
            Entry::Ignored => ignored += 1,
        }
    }
    let Finished { labels, unused_labels } = source.finish()?;
    place.store().check()?;
    if !unreadable.is_empty() && options.on_error == OnError::Fail {
        let checked = splitter.samples() + unreadable.len() as u64;
        return Err(Error::Unreadable { files: unreadable, checked });
    }
    if splitter.samples() == 0 {
        return Err(Error::NoSamples { path: from.to_path_buf() });
    }
    let (time, name) = (options.time.clone(), from.display().to_string());
    let job = PackJob {
        name,
        options: PackOptions { time: None, resume: false, ..options.clone() },
        kind,
        columns,
        labels: census.labels(labels)?,
        unused_labels,
        unreadable,
        not_samples,
        ignored,
    };
    let plan = ShardPlan::new(ShardCommand::Pack, to, splitter.finish(), &job).with_source(
        &absolute_from,
        &options.source,
        stamp.to_string(),
    );
    Ok((plan.at(time), stamps))
}

/// The path if it exists. Patterns and URLs do not.
fn existing(path: &Path) -> Vec<PathBuf> {
    path.exists().then(|| path.to_path_buf()).into_iter().collect()
}

/// Plans to pack `from` into `to` in a number of shards: lists the source, cuts it into parts and
/// writes the plan to the folder [`folder_of`] the destination. Does not read the content.
pub fn plan_pack(
    from: &Path,
    to: &Path,
    options: &PackOptions,
    shards: u64,
) -> Result<PlanFolder, Error> {
    let (plan, stamps) = plan(from, to, options)?;
    let path = folder_of(&plan.destination);
    PlanFolder::create(&path, plan.in_shards(shards)?, &stamps)
}

/// Packs the parts of a shard that are not finished.
pub fn run_pack(
    folder: &PlanFolder,
    shard: u64,
    options: &mut ShardOptions<'_>,
    progress: &mut dyn FnMut(PackProgress),
) -> Result<ShardSummary, Error> {
    let attempt = folder.attempt(shard)?;
    let missing = attempt.missing::<PartResult>()?;
    if !missing.is_empty() {
        let packed = run_missing(&attempt, &missing, options, progress);
        packed.map_err(|error| attempt.explain(error))?;
    }
    Ok(attempt.summary(&missing))
}

fn run_missing(
    attempt: &Attempt<'_>,
    missing: &[std::ops::Range<u64>],
    options: &mut ShardOptions<'_>,
    progress: &mut dyn FnMut(PackProgress),
) -> Result<(), Error> {
    let folder = attempt.folder();
    let plan = folder.plan();
    let job: PackJob = plan.job(folder.path())?;
    let planned = plan.source.as_ref().expect("packing has a source");
    folder.check_source()?;
    let mut with = PackOptions { threads: options.threads, ..job.options };
    with.stop = Arc::clone(&options.stop);
    with.source = planned.options.clone();
    with.source.remote.watch.stop = Arc::clone(&options.stop);
    let parts = missing.iter().cloned().flatten();
    let parts = parts.map(|part| &plan.parts[usize::try_from(part).expect("it is listed")]);
    let mut done = PackProgress {
        samples: Some(parts.clone().map(|part| part.samples).sum()),
        bytes: Some(parts.map(|part| part.source_bytes).sum()),
        ..PackProgress::default()
    };
    progress(done);
    for range in missing {
        let place = source::find(&planned.path, &with.source.remote)?;
        let mut source = open(&place, &with)?;
        let columns = Arc::new(source.schema().clone());
        let part = |index: u64| &plan.parts[usize::try_from(index).expect("it is listed")];
        let last = part(range.end - 1);
        let pipeline_options = PipelineOptions {
            how: SampleCheck { kind: columns.kind, check: with.check, jpeg: &with.jpeg },
            threads: with.threads,
            passed: part(range.start).first,
            until: Some(last.first + last.samples),
            stop: &with.stop,
        };
        let mut pass = Pass {
            attempt,
            columns,
            with: &with,
            next: range.start,
            open: None,
            samples: 0,
            found: Vec::new(),
            checked: 0,
            options,
            done: &mut done,
            progress,
        };
        let gone =
            pipeline::go_through(&mut *source, &pipeline_options, &mut |event| pass.take(event));
        let cause = |error| match error {
            Error::Interrupted => error,
            error => place.store().check().err().unwrap_or(error),
        };
        gone.map_err(cause)?;
        place.store().check()?;
        let Pass { next, found, checked, .. } = pass;
        if !found.is_empty() && with.on_error == OnError::Fail {
            return Err(Error::Unreadable { files: found, checked });
        }
        if next != range.end {
            return Err(ShardError::PartChanged { source: planned.path.clone(), part: next }.into());
        }
    }
    folder.check_source()
}

/// One pass over the source for consecutive parts.
struct Pass<'a, 'b> {
    attempt: &'a Attempt<'a>,
    columns: Arc<Columns>,
    with: &'a PackOptions,
    /// The current part, or the next one.
    next: u64,
    open: Option<PartBuilder<'a>>,
    /// Samples of the source in it so far.
    samples: u64,
    /// Samples that cannot be read, if that is an error.
    found: Vec<LeftOut>,
    checked: u64,
    options: &'a mut ShardOptions<'b>,
    done: &'a mut PackProgress,
    progress: &'a mut dyn FnMut(PackProgress),
}

impl Pass<'_, '_> {
    fn take(&mut self, event: PipelineEvent) -> Result<(), Error> {
        if self.with.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let PipelineEvent::Sample(item, bytes, verdict) = event else { return Ok(()) };
        self.checked += 1;
        let mut part = self.open.take().unwrap_or_else(|| {
            let mut part = PartBuilder::new(self.attempt, self.next, &self.columns);
            part.stored.form = self.with.jpeg.form;
            part
        });
        part.listed().add_item(&item, bytes);
        match verdict {
            // After a sample that cannot be read, the others are only checked.
            Verdict::Sound(..) if !self.found.is_empty() => {}
            Verdict::Sound(converted, source_bytes) => {
                let Converted { stored, entry_points, outcome } = converted;
                part.push(row(&item, stored, entry_points))?;
                count(&mut part.stored, outcome, source_bytes);
            }
            Verdict::Unreadable(reason) => {
                let left_out = LeftOut { path: item.name(), reason };
                match self.with.on_error {
                    OnError::Fail => self.found.push(left_out),
                    OnError::Skip => part.left_out.push(left_out),
                }
            }
            Verdict::Changed(path) => return Err(Error::SourceChanged { path }),
            Verdict::Failed(path, source) => return Err(Error::Source { path, source }),
            Verdict::Interrupted => return Err(Error::Interrupted),
        }
        self.samples += 1;
        self.done.samples_done += 1;
        self.done.bytes_done += bytes;
        (self.progress)(*self.done);
        let plan = self.attempt.folder().plan();
        let planned = &plan.parts[usize::try_from(self.next).expect("it is listed")];
        if self.samples < planned.samples {
            self.open = Some(part);
            return Ok(());
        }
        (self.samples, self.next) = (0, self.next + 1);
        if self.found.is_empty() {
            let line = part.finish()?;
            self.options.report(&line);
        }
        Ok(())
    }
}

fn row(item: &Item, image: Vec<u8>, entry_points: Option<Vec<u8>>) -> Row {
    Row { key: item.key.clone(), image, label: item.label, entry_points, extra: item.extra.clone() }
}

/// Joins the parts of all shards into the dataset.
pub fn commit_pack(folder: PlanFolder) -> Result<PackSummary, Error> {
    commit(folder, Vec::new())
}

fn commit(folder: PlanFolder, cleaned: Vec<PathBuf>) -> Result<PackSummary, Error> {
    let parts: Vec<PartResult> = folder.all_done()?;
    let job: PackJob = folder.plan().job(folder.path())?;
    folder.check_source()?;
    let source = folder.plan().source.as_ref().map(|source| source.path.clone());
    let time = folder.plan().time.clone();
    let planned_samples = folder.plan().samples;
    let Totals { mut stored, left_out, samples } = Totals::of(&parts);
    let mut unreadable = job.unreadable;
    let checked = planned_samples + unreadable.len() as u64;
    unreadable.extend(left_out);
    if samples == 0 {
        return Err(Error::Unreadable { files: unreadable, checked });
    }
    let is_image = job.kind == ContentKind::Image;
    stored.entry_points.spacing = job.options.jpeg.entry_points.filter(|_| is_image);
    let options = if is_image { job.options.jpeg.by_name() } else { BTreeMap::new() };
    let (skipped, tool) = (unreadable.len() as u64, TOOL.to_owned());
    let provenance = Provenance { tool, source: job.name, skipped, options, time, recipe: None };
    let joined = Joined {
        force: job.options.force,
        sources: source.iter().flat_map(|source| existing(source)).collect(),
        labels: job.labels,
        stored,
        provenance,
        cleaned,
    };
    let written = join(folder, &parts, joined)?;
    let manifest = written.manifest;
    let stored = manifest.stored.expect("the manifest has it");
    let bytes_out = manifest.image_bytes + stored.entry_points.bytes;
    Ok(PackSummary {
        destination: written.destination,
        samples: manifest.samples,
        kind: job.kind,
        columns: job.columns,
        image_bytes: manifest.image_bytes,
        ratio: bytes_out as f64 / stored.source_bytes.max(1) as f64,
        stored,
        file_bytes: written.file_bytes,
        parts: manifest.parts.len() as u64,
        parts_resumed: 0,
        labels: manifest.labels,
        unused_labels: job.unused_labels,
        unreadable,
        not_samples: job.not_samples,
        ignored: job.ignored,
        cleaned: written.cleaned,
        notes: written.notes,
        replaced: written.replaced,
    })
}

/// Packs with a rule in this process.
pub(super) fn pack_alone(
    from: &Path,
    to: &Path,
    options: &PackOptions,
    progress: &mut dyn FnMut(PackProgress),
) -> Result<PackSummary, Error> {
    let (plan, stamps) = plan(from, to, options)?;
    let mut parts_before = 0;
    let mut run = |folder: &PlanFolder| {
        let (threads, stop) = (options.threads, Arc::clone(&options.stop));
        let mut with = ShardOptions { threads, stop, line: &mut |_| () };
        parts_before = run_pack(folder, 0, &mut with, progress)?.parts_before;
        Ok(())
    };
    let packed = alone(plan, &stamps, options.resume, &mut run, commit, can_resume);
    let summary = packed.map_err(|error| match options.resume && can_resume(&error) {
        true => with_remains(error, to),
        false => error,
    })?;
    Ok(PackSummary { parts_resumed: parts_before, ..summary })
}
