//! Samples into a sink: read by many threads, put in order, the damaged ones by what was asked.

use crate::sink::feed::{Next, in_order};
use crate::sink::tree::{Root, Tree};
use crate::sink::{Closed, OutSample, Refusal, Sink, SinkKind, check_file_key};
use crate::walk::threads;
use crate::{Error, LeftOut, OnError, UnpackOptions};
use arrow_array::RecordBatch;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A row of a record batch.
pub(super) type ExtraRow = (Arc<RecordBatch>, usize);

/// A sample whose file was read.
pub(super) struct Fed {
    pub(super) key: String,
    pub(super) label: Option<i32>,
    pub(super) extra: Option<ExtraRow>,
    pub(super) file: Vec<u8>,
    /// Whether the file came back from a coefficient form.
    pub(super) is_converted: bool,
}

/// What reading came to.
pub(super) enum Outcome {
    /// A sample.
    Sample(Fed),
    /// A sample that does not read.
    Damaged(LeftOut),
    /// Something else than a sample: named, or counted alone.
    Other(Option<LeftOut>),
    /// The source cannot be trusted any more.
    Broken(Error),
}

/// An outcome, after a thread has written the file where files stand alone.
struct Done {
    outcome: Outcome,
    /// Why the file was not written.
    refusal: Option<Refusal>,
    /// Length of the file.
    bytes: u64,
}

/// What was written.
#[derive(Default)]
pub(super) struct Written {
    pub(super) samples: u64,
    /// Looked at, those left out among them.
    pub(super) checked: u64,
    /// Files and bytes below a [`Sink::root`].
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) converted: u64,
    pub(super) damaged: Vec<LeftOut>,
    pub(super) others: Vec<LeftOut>,
    pub(super) ignored: u64,
}

impl Written {
    /// Files and bytes in all.
    pub(super) fn add(&mut self, closed: &Closed) {
        self.files += closed.tally.files;
        self.bytes += closed.tally.bytes;
    }
}

/// Puts all samples that `next` and `read` give into the sink.
///
/// After a sample that does not go, the others are only looked at, unless they are to be skipped.
pub(super) fn drive<J: Send>(
    sink: &mut dyn Sink,
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
        let outcome = read(job);
        let tree = tree.as_mut().filter(|_| !is_only_looked_at.load(Ordering::Relaxed));
        write_file(outcome, tree, options.sink)
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
    in_order(threads(options.threads), next, bytes_of, &start, &work, &mut receive)?;
    Ok(written)
}

/// Writes the file of a sample, where files stand alone.
fn write_file(outcome: Outcome, tree: Option<&mut Tree<'_>>, kind: SinkKind) -> Done {
    let mut done = Done { outcome, refusal: None, bytes: 0 };
    let Outcome::Sample(sample) = &mut done.outcome else { return done };
    done.bytes = sample.file.len() as u64;
    if kind != SinkKind::Folder {
        return done;
    }
    let written = check_file_key(&sample.key)
        .map_err(|problem| Refusal::Sample(problem.to_owned()))
        .and_then(|()| tree.map_or(Ok(()), |tree| tree.write(&sample.key, &sample.file)));
    done.refusal = written.err();
    sample.file = Vec::new();
    done
}

/// Puts a sample, or notes why not; tells whether one was left out.
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
    let out = OutSample { key: &sample.key, file: &sample.file, label: sample.label, extra };
    let refusal = match done.refusal {
        None if is_only_looked_at => None,
        None => {
            let refusal = sink.put(&out).err();
            if let (Some(Refusal::Sample(_)), Some(root)) = (&refusal, root) {
                root.remove(&sample.key)?;
            }
            refusal
        }
        refusal => refusal,
    };
    match refusal {
        Some(Refusal::Write(error)) => Err(error),
        Some(Refusal::Sample(reason)) => {
            written.damaged.push(LeftOut { path: sample.key, reason });
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
