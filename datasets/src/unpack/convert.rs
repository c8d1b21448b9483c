//! Converts a source directly to a sink, without a dataset.

use super::drive::{Outcome, ReadSample, Written, drive};
use super::{CarriedColumns, UnpackOptions, foreign};
use crate::destination::{Destination, Replace, Staging};
use crate::error::RemoteError;
use crate::key_set::KeySet;
use crate::sink::{self, SinkKind};
use crate::source::{Content, Entry, Finished, Item, Size, Source, UnusedLabel};
use crate::store::StorePath;
use crate::{Error, LeftOut, OnError};
use meetpoint_storage::is_of_the_file;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConvertProgress {
    /// Samples written or left out so far.
    pub samples_done: u64,
    /// Bytes read so far.
    pub bytes_done: u64,
    /// The size of the source, as far as it is known.
    pub size: Size,
}

/// The result of a conversion.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ConvertSummary {
    /// The folder.
    pub destination: PathBuf,
    /// The kind of sink.
    pub sink: SinkKind,
    /// Samples written.
    pub samples: u64,
    /// Files written.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Names of the labels by index.
    pub labels: Vec<String>,
    /// Columns that are named like a label but are not the class label.
    pub unused_labels: Vec<UnusedLabel>,
    /// Values that the sink stores in another form than the source, as sentences.
    pub notes: Vec<String>,
    /// Further columns that were left out on request.
    pub without: Vec<String>,
    /// Samples that were left out by [`OnError::Skip`].
    pub damaged: Vec<LeftOut>,
    /// Files in the source that are not samples.
    pub not_samples: Vec<LeftOut>,
    /// Hidden and side files in the source.
    pub ignored: u64,
    /// Leftovers of killed processes that were removed.
    pub cleaned: Vec<PathBuf>,
    /// Whether a folder was replaced.
    pub replaced: bool,
}

/// Writes every sample of a source into the folder `to`, as [`UnpackOptions::sink`] says.
///
/// Samples are copied without decoding them. `from` is the path that the source reads: messages
/// name it, and the destination must not lie in it. As with [`super::unpack`], the folder appears
/// complete or not at all.
///
/// ```
/// use meetpoint_datasets::source::{self, SourceOptions};
/// use meetpoint_datasets::{SinkKind, UnpackOptions, convert};
///
/// # let folder = tempfile::tempdir()?;
/// # let to = folder.path().join("shards");
/// // An archive of pictures becomes shards of WebDataset.
/// let from = "tests/golden/sources/classes.zip".as_ref();
/// let mut zip = source::open(from, None, &SourceOptions::default())?;
/// let options = UnpackOptions { sink: SinkKind::WebDataset, ..UnpackOptions::default() };
/// let summary = convert(&mut *zip, from, &to, &options, &mut |_| ())?;
/// let mut shards = source::open(&to, Some("tar"), &SourceOptions::default())?;
/// let mut samples = 0;
/// while shards.next()?.is_some() {
///     samples += 1;
/// }
/// assert_eq!(samples, summary.samples);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn convert(
    source: &mut dyn Source,
    from: &Path,
    to: &Path,
    options: &UnpackOptions,
    progress: &mut dyn FnMut(ConvertProgress),
) -> Result<ConvertSummary, Error> {
    options.check()?;
    let kept = CarriedColumns::of(&source.schema().extra, &options.without)?;
    let mut schema = source.schema().clone();
    schema.extra = Arc::clone(&kept.schema);
    let foreign = |path: &Path| foreign::entry_of(path, options.sink, None);
    let replace = Replace::Files { force: options.force, foreign: &foreign };
    // A pattern or a remote source cannot contain the destination.
    let sources: Vec<PathBuf> = from.exists().then(|| from.to_path_buf()).into_iter().collect();
    let mut destination = Destination::resolve(&sources, to, &replace)?;
    destination.clean()?;
    let staging = Staging::create_for_files(&destination)?;
    let mut sink = sink::create(options.sink, staging.content(), &schema, options.shards)?;

    let size = source.size();
    let mut keys = KeySet::default();
    let mut bytes_done = 0;
    let taken = AtomicU64::new(0);
    let mut next = || {
        let entry = source.next()?;
        Ok(entry.map(|entry| match entry {
            Entry::Sample(mut item) => {
                item.extra = item.extra.map(|(batch, row)| (kept.project(batch), row));
                bytes_done += item.content.bytes();
                taken.store(bytes_done, Ordering::Relaxed);
                if keys.insert(&item.key) { Job::Read(item) } else { Job::Twice(item) }
            }
            Entry::Unreadable(left_out) => Job::Unreadable(left_out),
            Entry::NotASample(other) => Job::Other(Some(other)),
            Entry::Ignored => Job::Other(None),
        }))
    };
    let bytes_of = |job: &Job| match job {
        Job::Read(item) => item.content.bytes(),
        _ => 0,
    };
    let mut report = |written: &Written| {
        let bytes_done = taken.load(Ordering::Relaxed);
        progress(ConvertProgress { samples_done: written.checked, bytes_done, size });
    };
    let mut written = {
        let kind = schema.kind;
        drive(sink.as_mut(), kind, options, &mut next, &bytes_of, &read, &mut report)?
    };
    check(&mut written, from, options)?;
    let Finished { labels, unused_labels } = source.finish()?;
    let closed = sink.finish(&labels)?;
    written.add(&closed);
    let replaced = staging.commit(&destination)?;
    Ok(ConvertSummary {
        destination: to.to_path_buf(),
        sink: options.sink,
        samples: written.samples,
        files: written.files,
        bytes: written.bytes,
        labels,
        unused_labels,
        notes: closed.notes,
        without: options.without.clone(),
        damaged: written.damaged,
        not_samples: written.others,
        ignored: written.ignored,
        cleaned: destination.cleaned,
        replaced,
    })
}

/// Checks whether the result may be committed.
fn check(written: &mut Written, from: &Path, options: &UnpackOptions) -> Result<(), Error> {
    let all_failed = written.samples == 0 && !written.damaged.is_empty();
    if all_failed || options.on_error == OnError::Fail && !written.damaged.is_empty() {
        let samples = std::mem::take(&mut written.damaged);
        let remedy = written.problems.remedy(options.sink, "repair them");
        return Err(Error::Unconverted { samples, checked: written.checked, remedy });
    }
    if written.samples == 0 {
        return Err(Error::NoSamples { path: from.to_path_buf() });
    }
    Ok(())
}

/// What a thread is to do about an entry.
pub(super) enum Job {
    Read(Box<Item>),
    /// A sample whose key is a duplicate.
    Twice(Box<Item>),
    Unreadable(LeftOut),
    Other(Option<LeftOut>),
}

/// Reads the bytes of an entry.
pub(super) fn read(job: Job) -> Outcome {
    let item = match job {
        Job::Read(item) => item,
        Job::Twice(item) => {
            let reason = format!("its key {:?} occurs twice", item.key);
            return Outcome::Damaged(LeftOut {
                path: item.origin.to_string(),
                reason: reason.into(),
            });
        }
        Job::Unreadable(left_out) => return Outcome::Damaged(left_out),
        Job::Other(other) => return Outcome::Other(other),
    };
    let Item { key, origin, content, label, extra } = *item;
    let path = content.path().map(StorePath::to_path_buf);
    match bytes_of(content) {
        Ok(file) => Outcome::Sample(ReadSample { key, label, extra, file, is_converted: false }),
        // A failed fetch does not make the sample damaged.
        Err(ReadFailure::NotFetched(failure)) => Outcome::Broken(Error::of_remote(failure)),
        Err(ReadFailure::Changed(path)) => Outcome::Broken(Error::SourceChanged { path }),
        Err(ReadFailure::Failed(source)) if !is_of_the_file(&source) => {
            let path = path.unwrap_or_else(|| PathBuf::from(&origin.file));
            Outcome::Broken(Error::Source { path, source })
        }
        Err(ReadFailure::Failed(error)) => {
            Outcome::Damaged(LeftOut { path: origin.to_string(), reason: error.to_string().into() })
        }
    }
}

/// Why the bytes of a sample could not be read.
enum ReadFailure {
    Failed(std::io::Error),
    Changed(PathBuf),
    /// The object that contains it could not be fetched.
    NotFetched(RemoteError),
}

impl From<std::io::Error> for ReadFailure {
    fn from(error: std::io::Error) -> Self {
        match RemoteError::of_file(&error) {
            Some(failure) => Self::NotFetched(failure),
            None => Self::Failed(error),
        }
    }
}

fn bytes_of(content: Content) -> Result<Vec<u8>, ReadFailure> {
    match content {
        Content::Bytes(bytes) => Ok(bytes),
        Content::File { path, bytes } => {
            let file = path.open()?;
            let mut read = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
            // One byte more than listed detects a file that has grown.
            file.take(bytes.saturating_add(1)).read_to_end(&mut read)?;
            if read.len() as u64 == bytes {
                Ok(read)
            } else {
                Err(ReadFailure::Changed(path.to_path_buf()))
            }
        }
        Content::Range { file, offset, bytes } => {
            let length = file.file.metadata()?.len();
            let end = offset.checked_add(bytes);
            if end.is_none_or(|end| end > length) {
                return Err(ReadFailure::Changed(file.path.to_path_buf()));
            }
            let mut read = vec![0; usize::try_from(bytes).expect("no longer than a file")];
            file.file.read_exact_at(&mut read, offset)?;
            Ok(read)
        }
    }
}
