//! A dataset into a folder of the files that it was packed from, whole or not at all.
//!
//! In reading order: [`unpack`] (each sample under its key), `tree` (files below a folder, never
//! outside of it), `foreign` (whether a folder holds something that the dataset does not).

mod foreign;
mod tree;

use crate::jpeg::form_of;
use crate::place::{Destination, Replace, Staging};
use crate::walk::{Sample, Unread, Visited, each_sample, threads};
use crate::{Error, LeftOut, OnError};
use meetpoint_format::dataset::Form;
use meetpoint_prepare::{Dataset, original};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tree::Tree;

/// How to unpack.
#[derive(Debug, Clone, Default)]
pub struct UnpackOptions {
    /// Replace a folder that holds nothing but files and folders of the dataset.
    pub force: bool,
    /// What to do about damaged samples.
    pub on_error: OnError,
    /// Threads that read and write; 0 for as many as the machine has.
    pub threads: usize,
    /// Set from elsewhere to stop: nothing is left behind.
    pub stop: Arc<AtomicBool>,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnpackProgress {
    /// Samples that are written or left out.
    pub samples_done: u64,
    /// All samples.
    pub samples: u64,
}

/// What was unpacked.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct UnpackSummary {
    /// The folder.
    pub destination: PathBuf,
    /// Files written.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Those of them that came back from the coefficient form.
    pub converted: u64,
    /// Samples of the dataset that were re-written when they were packed: they come back with the
    /// same pixels and other bytes than the files they were packed from.
    pub rewritten: u64,
    /// Samples that were left out by [`OnError::Skip`].
    pub damaged: Vec<LeftOut>,
    /// Remains of processes that were killed, removed.
    pub cleaned: Vec<PathBuf>,
    /// Whether a folder was replaced.
    pub replaced: bool,
}

/// Why a sample is not written.
enum Trouble {
    /// It is damaged, or its key cannot be a path.
    Sample(String),
    /// The destination cannot be written.
    Write(Error),
}

/// Writes every sample of the dataset `from` under its key into the folder `to`.
///
/// A sample is the file it was packed from, byte for byte, unless it was re-written then. Nothing
/// is written outside `to`, whatever the keys are, and no link is followed in it. The folder is
/// there whole or not at all: it is written and synced under another name, then renamed.
pub fn unpack(
    from: &Path,
    to: &Path,
    options: &UnpackOptions,
    progress: &mut dyn FnMut(UnpackProgress),
) -> Result<UnpackSummary, Error> {
    let dataset = Dataset::open(from)?;
    let foreign = |path: &Path| foreign::entry_of(path, &dataset);
    let replace = Replace::Files { force: options.force, foreign: &foreign };
    let mut destination = Destination::resolve(&[from.to_path_buf()], to, &replace)?;
    destination.clean()?;
    let staging = Staging::create_for_files(&destination)?;
    let written = write_files(&dataset, staging.content(), options, progress)?;
    let replaced = staging.commit(&destination)?;
    let stored = dataset.manifest().stored.as_ref();
    Ok(UnpackSummary {
        destination: to.to_path_buf(),
        files: written.files,
        bytes: written.bytes,
        converted: written.converted,
        rewritten: stored.map_or(0, |stored| stored.rewritten),
        damaged: written.damaged,
        cleaned: destination.cleaned,
        replaced,
    })
}

/// What was written, so far.
#[derive(Default)]
struct Written {
    files: u64,
    bytes: u64,
    converted: u64,
    damaged: Vec<LeftOut>,
}

/// A sample that was written: bytes of the file, and whether it came from a coefficient form.
struct File {
    bytes: u64,
    is_converted: bool,
}

fn write_files(
    dataset: &Dataset,
    to: &Path,
    options: &UnpackOptions,
    progress: &mut dyn FnMut(UnpackProgress),
) -> Result<Written, Error> {
    let failed = |source| Error::Write { path: to.to_path_buf(), source };
    let root = tree::Root::open(to).map_err(failed)?;
    // After a damaged sample, the others are only looked at when all are wanted.
    let is_only_looked_at = AtomicBool::new(false);
    let mut done = UnpackProgress { samples_done: 0, samples: dataset.len() };
    let mut written = Written::default();
    let mut damaged = Vec::new();
    progress(done);
    let mut receive = |visited: Result<Visited<Result<File, Trouble>>, Unread>| {
        if options.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let left_out = match visited {
            Ok(Visited { result: Ok(file), .. }) => {
                written.files += 1;
                written.bytes += file.bytes;
                written.converted += u64::from(file.is_converted);
                None
            }
            Ok(Visited { result: Err(Trouble::Write(error)), .. }) => return Err(error),
            Ok(Visited { sample, result: Err(Trouble::Sample(reason)) }) => {
                Some((sample.index, LeftOut { path: sample.key, reason }))
            }
            Err(Unread { error }) => {
                let path = "(a record batch)".to_owned();
                Some((u64::MAX, LeftOut { path, reason: error.to_string() }))
            }
        };
        if let Some(left_out) = left_out {
            is_only_looked_at.fetch_or(options.on_error == OnError::Fail, Ordering::Relaxed);
            damaged.push(left_out);
        }
        done.samples_done += 1;
        progress(done);
        Ok(())
    };
    let visit = |tree: &mut Tree<'_>, sample: &Sample| {
        let tree = (!is_only_looked_at.load(Ordering::Relaxed)).then_some(tree);
        write_file(dataset, sample, tree)
    };
    each_sample(dataset, threads(options.threads), &|| root.tree(), &visit, &mut receive)?;
    damaged.sort_by_key(|(sample, _)| *sample);
    written.damaged = damaged.into_iter().map(|(_, left_out)| left_out).collect();
    let all_failed = written.files == 0 && !written.damaged.is_empty();
    if all_failed || options.on_error == OnError::Fail && !written.damaged.is_empty() {
        return Err(Error::Damaged { samples: written.damaged, checked: done.samples });
    }
    // One sync of everything, instead of a wait for each file.
    root.sync().map_err(failed)?;
    Ok(written)
}

/// Reads a sample and writes its file, where there is a tree to write it in.
fn write_file(
    dataset: &Dataset,
    sample: &Sample,
    tree: Option<&mut Tree<'_>>,
) -> Result<File, Trouble> {
    tree::check_key(&sample.key).map_err(|problem| Trouble::Sample(problem.to_owned()))?;
    let damaged = |error: meetpoint_prepare::Error| Trouble::Sample(error.to_string());
    let stored = dataset.read_sample(sample.index).map_err(damaged)?;
    let is_converted = form_of(&stored) != Form::Jpeg;
    let file = original(&stored)
        .map_err(|error| Trouble::Sample(format!("does not come back from its form: {error}")))?;
    if let Some(tree) = tree {
        tree.write(&sample.key, &file)?;
    }
    Ok(File { bytes: file.len() as u64, is_converted })
}
