//! A folder of images into a dataset, whole or not at all.
//!
//! In reading order: `scan` (which files, in which order, with which label), `check` (does a
//! file read and decode, what is stored of it), `pipeline` (many checks at once, results in order,
//! memory bounded), `parts` (rows into part files).

mod check;
mod parts;
mod pipeline;
mod scan;

use crate::Error;
use crate::jpeg::{Fate, JpegOptions};
use crate::place::{Destination, Replace, Staging};
use check::Verdict;
use meetpoint_format::dataset::{Columns, EntryPointsStored, Manifest, Provenance, Row, Stored};
use parts::{Parts, Written};
use scan::Source;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What to do about a file that does not read or decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// Look at all files, write nothing, and name those that do not read.
    #[default]
    Fail,
    /// Leave them out, and name them.
    Skip,
}

/// How far a file is looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Check {
    /// It is decoded whole.
    #[default]
    Decode,
    /// Its header is read.
    Header,
}

/// How to pack.
#[derive(Debug, Clone)]
pub struct PackOptions {
    /// Replace a dataset at the destination.
    pub force: bool,
    /// What to do about unreadable files.
    pub on_error: OnError,
    /// What makes a file unreadable.
    pub check: Check,
    /// In which form JPEGs are stored.
    pub jpeg: JpegOptions,
    /// Bytes after which the next part begins.
    pub part_bytes_target: u64,
    /// Threads that read and check; 0 for as many as the machine has.
    pub threads: usize,
    /// Set from elsewhere to stop: nothing is left behind.
    pub stop: Arc<AtomicBool>,
}

impl Default for PackOptions {
    fn default() -> Self {
        Self {
            force: false,
            on_error: OnError::default(),
            check: Check::default(),
            jpeg: JpegOptions::default(),
            part_bytes_target: 256 << 20,
            threads: 0,
            stop: Arc::default(),
        }
    }
}

/// How far it is. Bytes are those of the source files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PackProgress {
    /// Files that are packed or left out.
    pub files_done: u64,
    /// Files to look at.
    pub files: u64,
    /// Bytes of the files that are done.
    pub bytes_done: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// A file that is not in the dataset.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    /// Path relative to the source, `/`-separated.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// What was packed.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PackSummary {
    /// The dataset.
    pub destination: PathBuf,
    /// Samples in it.
    pub samples: u64,
    /// Bytes of all images as they are stored.
    pub image_bytes: u64,
    /// Bytes of images and entry points for each byte of the files that were packed.
    pub ratio: f64,
    /// What became of the files.
    pub stored: Stored,
    /// Bytes of the dataset's files.
    pub file_bytes: u64,
    /// Part files.
    pub parts: u64,
    /// Label names; empty for a flat folder.
    pub labels: Vec<String>,
    /// Images that do not read or decode, left out by [`OnError::Skip`].
    pub unreadable: Vec<LeftOut>,
    /// Files that are images neither by name nor by content.
    pub not_images: Vec<LeftOut>,
    /// Hidden files and side files of desktops (`.DS_Store`, `Thumbs.db`, …), not looked at.
    pub ignored: u64,
    /// Remains of packs that were killed, removed.
    pub cleaned: Vec<PathBuf>,
    /// Whether a dataset was replaced.
    pub replaced: bool,
}

/// Packs the images in the folder `from` into the dataset `to`.
///
/// Sub-folders of the first level are classes, as in torchvision's `ImageFolder`; a folder with
/// images at the top and no sub-folders has no labels. Keys are relative paths and come in
/// [natural order](crate::natural_order). A dataset of that name is there whole or not at all:
/// parts and manifest are written and synced under another name, then renamed.
pub fn pack(
    from: &Path,
    to: &Path,
    options: &PackOptions,
    progress: &mut dyn FnMut(PackProgress),
) -> Result<PackSummary, Error> {
    let replace = Replace::Dataset { force: options.force };
    let destination = Destination::resolve(from, to, &replace)?;
    let mut source = scan::scan(from)?;
    let mut staging = Staging::create(&destination)?;
    let mut unreadable = std::mem::take(&mut source.unreadable);
    let columns = Arc::new(Columns::images());
    let parts = Parts::new(staging.content(), Arc::clone(&columns), options.part_bytes_target);
    let (written, stored) = write_parts(from, &source, parts, options, &mut unreadable, progress)?;
    let bytes_out = written.image_bytes + written.entry_points_bytes;
    let provenance = Provenance {
        tool: concat!("meetpoint ", env!("CARGO_PKG_VERSION")).to_owned(),
        source: from.display().to_string(),
        skipped: unreadable.len() as u64,
        options: options.jpeg.by_name(),
        time: None,
        recipe: None,
    };
    let manifest = Manifest {
        samples: written.samples,
        image_bytes: written.image_bytes,
        image_bytes_max: written.image_bytes_max,
        labels: source.labels,
        parts: written.entries,
        stored: Some(stored.clone()),
        ..Manifest::new(&columns, provenance)
    };
    let text = manifest.to_json();
    staging.write_manifest(text.as_bytes())?;
    let replaced = staging.commit(&destination)?;
    Ok(PackSummary {
        destination: to.to_path_buf(),
        samples: manifest.samples,
        image_bytes: manifest.image_bytes,
        ratio: bytes_out as f64 / stored.source_bytes as f64,
        stored,
        file_bytes: manifest.parts.iter().map(|part| part.bytes).sum::<u64>() + text.len() as u64,
        parts: manifest.parts.len() as u64,
        labels: manifest.labels,
        unreadable,
        not_images: source.not_images,
        ignored: source.ignored,
        cleaned: destination.cleaned,
        replaced,
    })
}

/// Checks every file and writes the sound ones; the others are appended to `unreadable`.
fn write_parts(
    from: &Path,
    source: &Source,
    mut parts: Parts,
    options: &PackOptions,
    unreadable: &mut Vec<LeftOut>,
    progress: &mut dyn FnMut(PackProgress),
) -> Result<(Written, Stored), Error> {
    let mut stored = Stored { form: options.jpeg.form, ..Stored::default() };
    let unreadable_names = unreadable.len() as u64;
    let mut done = PackProgress {
        files: source.files.len() as u64,
        bytes: source.files.iter().map(|file| file.bytes).sum(),
        ..PackProgress::default()
    };
    progress(done);
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    pipeline::check_all(from, &source.files, options, threads, &mut |index, verdict| {
        if options.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let file = &source.files[index];
        match verdict {
            Verdict::Sound(converted, source_bytes) => {
                // After a file that does not read, the others are only looked at.
                if options.on_error == OnError::Skip || unreadable.is_empty() {
                    count(&mut stored, converted.fate, source_bytes);
                    parts.push(Row {
                        key: file.key.clone(),
                        image: converted.stored,
                        label: file.label,
                        entry_points: converted.entry_points,
                        extra: None,
                    })?;
                }
            }
            Verdict::Unreadable(reason) => {
                unreadable.push(LeftOut { path: file.key.clone(), reason });
            }
            Verdict::Changed => {
                return Err(Error::SourceChanged { path: from.join(&file.key) });
            }
        }
        done.files_done += 1;
        done.bytes_done += file.bytes;
        progress(done);
        Ok(())
    })?;
    let all_failed = parts.samples() == 0;
    if all_failed || options.on_error == OnError::Fail && !unreadable.is_empty() {
        let files = std::mem::take(unreadable);
        return Err(Error::Unreadable { files, checked: done.files + unreadable_names });
    }
    let written = parts.finish()?;
    stored.entry_points = EntryPointsStored {
        spacing: options.jpeg.entry_points,
        samples: written.entry_points,
        bytes: written.entry_points_bytes,
    };
    Ok((written, stored))
}

/// Counts a file that is packed.
fn count(stored: &mut Stored, fate: Fate, source_bytes: u64) {
    stored.source_bytes += source_bytes;
    stored.converted += u64::from(fate.is_converted);
    stored.rewritten += u64::from(fate.is_rewritten);
    stored.transcoded += u64::from(fate.is_transcoded);
    if let Some(reason) = fate.kept {
        *stored.kept.entry(reason).or_default() += 1;
    }
}
