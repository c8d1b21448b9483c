//! Writes samples into a sink: many threads read them, their order is restored, and damaged ones
//! are handled by `on_error`.

use crate::sink::feed::{Next, in_order};
use crate::sink::tree::{Root, Tree};
use crate::sink::{
    Closed, OutSample, Refusal, Sink, SinkKind, check_file_key, file_name as name_of,
};
use crate::source::{ContentKind, as_png};
use crate::threads::threads;
use crate::{Error, LeftOut, OnError, UnpackOptions};
use arrow_array::RecordBatch;
use meetpoint_diagnose::{Change, Remedy, Setting};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A row of a record batch.
pub(super) type ExtraRow = (Arc<RecordBatch>, usize);

/// A sample whose file was read.
pub(super) struct ReadSample {
    pub(super) key: String,
    pub(super) label: Option<i32>,
    pub(super) extra: Option<ExtraRow>,
    pub(super) file: Vec<u8>,
    /// Whether the file was restored from a coefficient form.
    pub(super) is_converted: bool,
}

/// The result of reading a sample.
pub(super) enum Outcome {
    /// A sample.
    Sample(ReadSample),
    /// A sample that cannot be read.
    Damaged(LeftOut),
    /// An entry that is not a sample, either listed or only counted.
    Other(Option<LeftOut>),
    /// The source failed as a whole.
    Broken(Error),
}

/// An outcome, after a thread wrote the file for sinks with one file per sample.
struct Done {
    outcome: Outcome,
    /// Name of its file, if it differs from the key.
    file_name: Option<String>,
    /// Whether the file was written.
    is_written: bool,
    /// Why the file was not written.
    refusal: Option<Refusal>,
    /// Length of the file.
    bytes: u64,
}

/// The state of writing.
#[derive(Default)]
pub(super) struct Written {
    pub(super) samples: u64,
    /// Samples that were processed, including those left out.
    pub(super) checked: u64,
    /// Files and bytes below a [`Sink::root`].
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) converted: u64,
    pub(super) damaged: Vec<LeftOut>,
    pub(super) problems: WriteProblems,
    pub(super) others: Vec<LeftOut>,
    pub(super) ignored: u64,
}

/// The causes for samples that cannot be written.
#[derive(Default)]
pub(super) struct WriteProblems {
    /// Some cannot be read.
    has_damaged: bool,
    /// Some have a key, label or content that the sink cannot store.
    has_refused: bool,
    /// Further columns with values that the sink cannot store.
    columns: BTreeSet<String>,
}

impl WriteProblems {
    /// The remedy; `repair` is the one for unreadable samples.
    pub(super) fn remedy(&self, sink: SinkKind, repair: &'static str) -> Remedy {
        let mut remedy: Option<Remedy> = self.has_damaged.then(|| repair.into());
        let mut add = |purpose: String, setting: Setting, change: Change| {
            remedy = Some(match remedy.take() {
                Some(before) => before.or_by(purpose, setting, change),
                None => Remedy::by(purpose, setting, change),
            });
        };
        if self.has_refused {
            let purpose = format!("choose a sink that holds all of them, unlike {},", sink.words());
            add(purpose, Setting::To, Change::Other);
        }
        if !self.columns.is_empty() {
            let names = self.columns.iter().map(String::as_str).collect::<Vec<_>>().join(",");
            let what = if self.columns.len() == 1 { "that column" } else { "those columns" };
            add(format!("leave {what} out"), Setting::Without, Change::To(names));
        }
        let skip = Change::To("skip".to_owned());
        add("leave these samples out".to_owned(), Setting::OnError, skip);
        remedy.expect("samples can be left out")
    }
}

impl Written {
    /// Adds the files and bytes of the sink.
    pub(super) fn add(&mut self, closed: &Closed) {
        self.files += closed.tally.files;
        self.bytes += closed.tally.bytes;
    }
}

/// Writes all samples that `next` and `read` yield to the sink.
///
/// After a sample that cannot be written, the others are only checked, unless such samples are
/// skipped.
pub(super) fn drive<J: Send>(
    sink: &mut dyn Sink,
    kind: ContentKind,
    options: &UnpackOptions,
    next: &mut Next<'_, J>,
    bytes_of: &(dyn Fn(&J) -> u64 + Sync),
    read: &(dyn Fn(J) -> Outcome + Sync),
    progress: &mut dyn FnMut(&Written),
) -> Result<Written, Error> {
    let root = sink.root();
    let is_only_looked_at = AtomicBool::new(false);
    let mut written = Written::default();
    progress(&written);
    let work = |tree: &mut Option<Tree<'_>>, job: J| {
        let mut outcome = read(job);
        if let Outcome::Sample(sample) = &mut outcome
            && kind == ContentKind::Image
            && let Some(png) = as_png(&sample.key, &sample.file)
        {
            sample.file = png;
        }
        let tree = tree.as_mut().filter(|_| !is_only_looked_at.load(Ordering::Relaxed));
        write_file(outcome, tree, options.sink, kind)
    };
    let mut receive = |done: Done| {
        if options.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let is_looked_at = is_only_looked_at.load(Ordering::Relaxed);
        if put(sink, root.as_deref(), done, is_looked_at, &mut written)? {
            is_only_looked_at.fetch_or(options.on_error == OnError::Fail, Ordering::Relaxed);
        }
        progress(&written);
        Ok(())
    };
    let start = || root.as_ref().map(|root| root.tree());
    in_order(threads(options.threads)?, next, bytes_of, &start, &work, &mut receive)?;
    Ok(written)
}

/// Writes the file of a sample, for sinks with one file per sample.
fn write_file(
    outcome: Outcome,
    tree: Option<&mut Tree<'_>>,
    sink: SinkKind,
    kind: ContentKind,
) -> Done {
    let is_written = tree.is_some();
    let mut done = Done { outcome, file_name: None, is_written, refusal: None, bytes: 0 };
    let Outcome::Sample(sample) = &mut done.outcome else { return done };
    done.bytes = sample.file.len() as u64;
    if sink != SinkKind::Folder {
        return done;
    }
    let name = name_of(&sample.key, &sample.file, kind);
    let written = check_file_key(&name)
        .map_err(|problem| Refusal::Sample(problem.to_owned()))
        .and_then(|()| tree.map_or(Ok(()), |tree| tree.write(&name, &sample.file)));
    done.is_written &= written.is_ok();
    done.refusal = written.err();
    done.file_name = Some(name).filter(|name| *name != sample.key);
    sample.file = Vec::new();
    done
}

/// Writes a sample, or records why it cannot; returns whether one was left out.
fn put(
    sink: &mut dyn Sink,
    root: Option<&Root>,
    done: Done,
    is_only_looked_at: bool,
    written: &mut Written,
) -> Result<bool, Error> {
    let sample = match done.outcome {
        Outcome::Sample(sample) => sample,
        Outcome::Damaged(left_out) => {
            written.checked += 1;
            written.problems.has_damaged = true;
            written.damaged.push(left_out);
            return Ok(true);
        }
        Outcome::Other(None) => {
            written.ignored += 1;
            return Ok(false);
        }
        Outcome::Other(Some(other)) => {
            written.others.push(other);
            return Ok(false);
        }
        Outcome::Broken(error) => return Err(error),
    };
    written.checked += 1;
    let extra = sample.extra.as_ref().map(|(batch, row)| (batch, *row));
    let ReadSample { key, label, file, .. } = &sample;
    let file_name = done.file_name.as_ref().unwrap_or(key);
    let out = OutSample { key, file_name, file, label: *label, extra };
    let refusal = match done.refusal {
        None => {
            let refusal = sink.put(&out, !is_only_looked_at).err();
            let is_refused = refusal.as_ref().is_some_and(|why| !matches!(why, Refusal::Write(_)));
            if let (true, Some(root)) = (is_refused && done.is_written, root) {
                root.remove(file_name)?;
            }
            refusal
        }
        refusal => refusal,
    };
    match refusal {
        Some(Refusal::Write(error)) => Err(error),
        Some(Refusal::Sample(reason)) => {
            written.problems.has_refused = true;
            written.damaged.push(LeftOut { path: sample.key, reason: reason.into() });
            Ok(true)
        }
        Some(Refusal::Column { column, problem }) => {
            let reason = format!("its column `{column}` {problem}");
            written.problems.columns.insert(column);
            written.damaged.push(LeftOut { path: sample.key, reason: reason.into() });
            Ok(true)
        }
        None => {
            written.samples += 1;
            written.converted += u64::from(sample.is_converted);
            if root.is_some() {
                written.files += 1;
                written.bytes += done.bytes;
            }
            Ok(false)
        }
    }
}
