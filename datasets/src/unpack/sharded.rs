//! Conversion divided into shards; with a [`PartRule`], one process converts by the same code.
//!
//! Each part becomes a separate file, or several if the format limits the file size. The commit
//! numbers the files in order.

use super::convert::{Job, read};
use super::drive::{Written, drive};
use super::{CarriedColumns, ConvertSummary, UnpackOptions, foreign};
use crate::destination::{Destination, Replace, Staging};
use crate::error::ShardError;
use crate::key_set::KeySet;
use crate::pack::can_resume;
use crate::pack::census::Census;
use crate::shards::{
    Attempt, Line, ListingDigest, PartRule, PartSplitter, PlanFolder, ShardCommand, ShardOptions,
    ShardPlan, ShardSummary, absolute_options, absolute_source, alone, check_rule, folder_of,
    list_stamps, place,
};
use crate::sink::{self, Shards, join_indexes, sample_name};
use crate::source::{self, Entry, Finished, Source, SourceOptions, UnusedLabel};
use crate::writer::sha256_of;
use crate::{ConvertProgress, Error, LeftOut, OnError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The data of a conversion plan besides the listing.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ConvertJob {
    /// Kind of the source, if the user named it.
    from: Option<String>,
    options: UnpackOptions,
    labels: Vec<String>,
    unused_labels: Vec<UnusedLabel>,
    /// Samples that the source cannot read.
    unreadable: Vec<LeftOut>,
    not_samples: Vec<LeftOut>,
    ignored: u64,
}

/// A file of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PartOutput {
    /// Its name in the sink of the part.
    name: String,
    bytes: u64,
    sha256: String,
}

/// A converted part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ConvertedPart {
    files: Vec<PartOutput>,
    samples: u64,
    damaged: Vec<LeftOut>,
    notes: Vec<String>,
}

fn existing(path: &Path) -> Vec<PathBuf> {
    path.exists().then(|| path.to_path_buf()).into_iter().collect()
}

/// Lists the source and cuts the listing into parts. Returns the stamps of its files too.
fn plan(
    from: &Path,
    to: &Path,
    (kind, said): (Option<&str>, &SourceOptions),
    options: &UnpackOptions,
    rule: PartRule,
) -> Result<(ShardPlan, Vec<u128>), Error> {
    options.check()?;
    check_rule(rule)?;
    if !options.sink.has_shards() {
        return Err(ShardError::SinkWithoutShards { sink: options.sink }.into());
    }
    let (from, said) = (absolute_source(from), absolute_options(said.clone()));
    destination(&from, to, options)?;
    let place = source::find(&from, &said.remote)?;
    let (stamps, stamp) = list_stamps(&place, &said)?;
    let mut source = source::open_in(&place, kind, &said)?;
    CarriedColumns::of(&source.schema().extra, &options.without)?;
    let (mut census, mut splitter) = (Census::default(), PartSplitter::new(rule));
    let (mut unreadable, mut not_samples, mut ignored) = (Vec::new(), Vec::new(), 0);
    let (mut names, mut has_labels) = (KeySet::default(), None);
    while let Some(entry) = source.next()? {
        if options.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        match entry {
            Entry::Sample(item) => {
                census.look_at(&item)?;
                let name = sample_name(options.sink, &item.key);
                let has_label = item.label.is_some();
                let is_alike = *has_labels.get_or_insert(has_label) == has_label;
                let problem = if !names.insert(&name) {
                    Some(format!("its name in a shard, {name:?}, is that of another sample"))
                } else if !is_alike && options.sink.has_labels_throughout() {
                    Some("some samples have a label and some have none".to_owned())
                } else {
                    None
                };
                if let Some(problem) = problem {
                    return Err(sink::unheld(options.sink, sink::KEY, &problem));
                }
                splitter.add_item(&item);
            }
            Entry::Unreadable(left_out) => unreadable.push(left_out),
            Entry::NotASample(other) => not_samples.push(other),
            Entry::Ignored => ignored += 1,
        }
    }
    let Finished { labels, unused_labels } = source.finish()?;
    if !unreadable.is_empty() && options.on_error == OnError::Fail {
        let checked = splitter.samples() + unreadable.len() as u64;
        return Err(Error::Unreadable { files: unreadable, checked });
    }
    if splitter.samples() == 0 {
        return Err(Error::NoSamples { path: from });
    }
    let job = ConvertJob {
        from: kind.map(str::to_owned),
        options: options.clone(),
        labels,
        unused_labels,
        unreadable,
        not_samples,
        ignored,
    };
    let plan = ShardPlan::new(ShardCommand::Convert, to, splitter.finish(), &job).with_source(
        &from,
        &said,
        stamp.to_string(),
    );
    Ok((plan, stamps))
}

fn destination(from: &Path, to: &Path, options: &UnpackOptions) -> Result<Destination, Error> {
    let foreign = |path: &Path| foreign::entry_of(path, options.sink, None);
    let replace = Replace::Files { force: options.force, foreign: &foreign };
    Destination::resolve(&existing(from), to, &replace)
}

/// Plans to convert `from` into `to` in a number of shards. A duplicate key is always an error,
/// even if samples that cannot be read are skipped.
pub fn plan_convert(
    from: &Path,
    to: &Path,
    source: (Option<&str>, &SourceOptions),
    options: &UnpackOptions,
    rule: PartRule,
    shards: u64,
) -> Result<PlanFolder, Error> {
    let (plan, stamps) = plan(from, to, source, options, rule)?;
    let path = folder_of(&plan.destination);
    PlanFolder::create(&path, plan.in_shards(shards)?, &stamps)
}

/// Converts the parts of a shard that are not finished.
pub fn run_convert(
    folder: &PlanFolder,
    shard: u64,
    options: &mut ShardOptions<'_>,
    progress: &mut dyn FnMut(ConvertProgress),
) -> Result<ShardSummary, Error> {
    let attempt = folder.attempt(shard)?;
    let missing = attempt.missing::<ConvertedPart>()?;
    if !missing.is_empty() {
        let converted = run_missing(&attempt, &missing, options, progress);
        converted.map_err(|error| attempt.explain(error))?;
    }
    Ok(attempt.summary(&missing))
}

fn run_missing(
    attempt: &Attempt<'_>,
    missing: &[Range<u64>],
    options: &mut ShardOptions<'_>,
    progress: &mut dyn FnMut(ConvertProgress),
) -> Result<(), Error> {
    let folder = attempt.folder();
    let plan = folder.plan();
    let job: ConvertJob = plan.job(folder.path())?;
    let planned = plan.source.as_ref().expect("conversion has a source");
    folder.check_source()?;
    let with = UnpackOptions {
        threads: options.threads,
        stop: Arc::clone(&options.stop),
        ..job.options.clone()
    };
    let mut said = planned.options.clone();
    said.remote.watch.stop = Arc::clone(&options.stop);
    let mut done = ConvertProgress::default();
    let parts = missing.iter().cloned().flatten();
    let samples = parts.map(|part| plan.parts[usize::try_from(part).expect("listed")].samples);
    done.size.samples = Some(samples.sum());
    for range in missing {
        let mut source = source::open(&planned.path, job.from.as_deref(), &said)?;
        let first = plan.parts[usize::try_from(range.start).expect("it is listed")].first;
        let mut passed = 0;
        while passed < first {
            match source.next()? {
                Some(Entry::Sample(_)) => passed += 1,
                Some(_) => {}
                None => break,
            }
        }
        for part in range.clone() {
            let one = OnePart { attempt, part, job: &job, with: &with };
            let line = one.convert(&mut *source, &mut |samples| {
                progress(ConvertProgress { samples_done: done.samples_done + samples, ..done });
            })?;
            done.samples_done += plan.parts[usize::try_from(part).expect("it is listed")].samples;
            options.report(&line);
        }
    }
    folder.check_source()
}

/// A part that is being converted.
struct OnePart<'a> {
    attempt: &'a Attempt<'a>,
    part: u64,
    job: &'a ConvertJob,
    with: &'a UnpackOptions,
}

impl OnePart<'_> {
    fn convert(
        &self,
        source: &mut dyn Source,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Line<ConvertedPart>, Error> {
        let Self { attempt, part, job, with } = self;
        let plan = attempt.folder().plan();
        let planned = &plan.parts[usize::try_from(*part).expect("it is listed")];
        let carried = CarriedColumns::of(&source.schema().extra, &with.without)?;
        let mut schema = source.schema().clone();
        schema.extra = Arc::clone(&carried.schema);
        let name = format!("part-{part:05}");
        let folder = attempt.path(&name);
        std::fs::create_dir(&folder)
            .map_err(|source| Error::Write { path: folder.clone(), source })?;
        let one_file = Shards { never: true, ..Shards::default() };
        let mut sink = sink::create(with.sink, &folder, &schema, one_file)?;
        let (mut listed, mut samples) = (ListingDigest::default(), 0);
        let mut next = || {
            while samples < planned.samples {
                match source.next()? {
                    None => break,
                    Some(Entry::Sample(mut item)) => {
                        samples += 1;
                        listed.add_item(&item, item.content.bytes());
                        item.extra = item.extra.map(|(batch, row)| (carried.project(batch), row));
                        return Ok(Some(Job::Read(item)));
                    }
                    // The plan has recorded it.
                    Some(_) => {}
                }
            }
            Ok(None)
        };
        let bytes_of = |job: &Job| match job {
            Job::Read(item) => item.content.bytes(),
            _ => 0,
        };
        let mut report = |written: &Written| progress(written.checked);
        let kind = schema.kind;
        let mut written =
            drive(sink.as_mut(), kind, with, &mut next, &bytes_of, &read, &mut report)?;
        if listed.finish() != planned.sha256 {
            let source = plan.source.as_ref().map(|source| source.path.clone());
            let (source, part) = (source.unwrap_or_default(), *part);
            return Err(ShardError::PartChanged { source, part }.into());
        }
        let damaged = std::mem::take(&mut written.damaged);
        if with.on_error == OnError::Fail && !damaged.is_empty() {
            let remedy = written.problems.remedy(with.sink, "repair them");
            return Err(Error::Unconverted { samples: damaged, checked: written.checked, remedy });
        }
        let notes = sink.finish(&job.labels)?.notes;
        let mut files = Vec::new();
        for file in outputs(&folder)? {
            let path = folder.join(&file);
            let read = |source| Error::Source { path: path.clone(), source };
            let mut opened = File::open(&path).map_err(read)?;
            let bytes = opened.metadata().map_err(read)?.len();
            let sha256 = sha256_of(&mut opened).map_err(read)?;
            files.push(PartOutput { name: file, bytes, sha256 });
        }
        let named =
            files.iter().map(|file| (folder.join(&file.name), stored_as(*part, &file.name)));
        let named: Vec<_> = named.collect();
        let samples = written.samples;
        let result = ConvertedPart { files, samples, damaged, notes };
        let line = attempt.publish(*part, &named, result)?;
        // The folder is empty. If removal fails, it is removed with the attempt.
        let _ = std::fs::remove_dir(&folder);
        Ok(line)
    }
}

/// Names of the files in a folder, in order.
fn outputs(folder: &Path) -> Result<Vec<String>, Error> {
    let failed = |source| Error::Source { path: folder.to_path_buf(), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Name of a file of a part in the folder of the plan.
fn stored_as(part: u64, name: &str) -> String {
    format!("part-{part:05}.{name}")
}

/// Joins the files of all shards.
pub fn commit_convert(folder: PlanFolder) -> Result<ConvertSummary, Error> {
    commit(folder, Vec::new())
}

fn commit(folder: PlanFolder, mut cleaned: Vec<PathBuf>) -> Result<ConvertSummary, Error> {
    let parts: Vec<ConvertedPart> = folder.all_done()?;
    let plan = folder.plan();
    let job: ConvertJob = plan.job(folder.path())?;
    folder.check_source()?;
    let sink = job.options.sink;
    let (mut damaged, mut notes) = (job.unreadable, BTreeSet::new());
    let (mut samples, mut bytes) = (0, 0);
    let (mut placed, mut indexes) = (Vec::new(), Vec::new());
    let mut labels_file = None;
    for (part, result) in (0..).zip(&parts) {
        samples += result.samples;
        damaged.extend(result.damaged.iter().cloned());
        notes.extend(result.notes.iter().cloned());
        for file in &result.files {
            let path = folder.path().join(stored_as(part, &file.name));
            check_file(&folder, part, &path, file)?;
            if sink.is_index(&file.name) {
                indexes.push(path);
            } else if sink.is_shard(&file.name) {
                placed.push((path, sink.shard_name(placed.len())));
                bytes += file.bytes;
            } else if labels_file.is_none() {
                bytes += file.bytes;
                labels_file = Some((path, file.name.clone()));
            }
        }
    }
    if samples == 0 {
        return Err(Error::NoSamples { path: plan.destination.clone() });
    }
    placed.extend(labels_file);
    let to = plan.destination.clone();
    let mut replaced = false;
    if !is_placed(&placed, &to) {
        let from = plan.source.as_ref().map(|source| source.path.clone()).unwrap_or_default();
        let mut destination = destination(&from, &to, &job.options)?;
        destination.clean()?;
        let staging = Staging::create_for_files(&destination)?;
        for (path, name) in &placed {
            place(path, &staging.content().join(name))?;
        }
        join_indexes(sink, &indexes, staging.content())?;
        replaced = staging.commit(&destination)?;
        cleaned.append(&mut destination.cleaned);
    }
    let index_bytes = sink.index_name().and_then(|name| to.join(name).metadata().ok());
    let mut summary = ConvertSummary {
        destination: to,
        sink,
        samples,
        files: placed.len() as u64 + u64::from(index_bytes.is_some()),
        bytes: bytes + index_bytes.map_or(0, |index| index.len()),
        labels: job.labels,
        unused_labels: job.unused_labels,
        notes: notes.into_iter().collect(),
        without: job.options.without,
        damaged,
        not_samples: job.not_samples,
        ignored: job.ignored,
        cleaned,
        replaced,
    };
    let (attempts, note) = folder.remove();
    summary.cleaned.extend(attempts);
    summary.notes.extend(note);
    Ok(summary)
}

/// Whether all files are already at the destination, because an earlier commit was killed after the
/// rename.
fn is_placed(placed: &[(PathBuf, String)], to: &Path) -> bool {
    let same = |(from, name): &(PathBuf, String)| {
        let of = |path: &Path| path.metadata().map(|it| (it.dev(), it.ino())).ok();
        of(from).is_some() && of(from) == of(&to.join(name))
    };
    placed.iter().all(same)
}

fn check_file(folder: &PlanFolder, part: u64, path: &Path, file: &PartOutput) -> Result<(), Error> {
    let damaged = |problem: &str| folder.damaged(part, path.to_path_buf(), problem);
    if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
        return Err(damaged("it is not a regular file"));
    }
    let mut opened = match meetpoint_storage::files::open_regular(path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(damaged("it is missing, but its record exists"));
        }
        Err(source) => return Err(Error::Source { path: path.to_path_buf(), source }),
    };
    let read = |source| Error::Source { path: path.to_path_buf(), source };
    if opened.metadata().map_err(read)?.len() != file.bytes {
        return Err(damaged("its length differs from that in its record"));
    }
    if sha256_of(&mut opened).map_err(read)? != file.sha256 {
        return Err(damaged("its SHA-256 differs from that in its record"));
    }
    Ok(())
}

/// Converts `from` into `to` in this process, with files that end according to `rule`. The files
/// are identical to those that shards on many hosts write.
pub fn convert_by_rule(
    from: &Path,
    to: &Path,
    source: (Option<&str>, &SourceOptions),
    options: &UnpackOptions,
    rule: PartRule,
    progress: &mut dyn FnMut(ConvertProgress),
) -> Result<ConvertSummary, Error> {
    let (plan, stamps) = plan(from, to, source, options, rule)?;
    let run = |folder: &PlanFolder| {
        let (threads, stop) = (options.threads, Arc::clone(&options.stop));
        let mut with = ShardOptions { threads, stop, line: &mut |_| () };
        run_convert(folder, 0, &mut with, progress).map(|_| ())
    };
    alone(plan, &stamps, false, run, commit, can_resume)
}
