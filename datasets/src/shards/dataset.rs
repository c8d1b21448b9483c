//! Writes parts of a dataset in shards, and joins them to the dataset.

use super::ListingDigest;
use super::folder::{Attempt, Line, PlanFolder};
use crate::destination::{Destination, Replace, Staging};
use crate::error::ShardError;
use crate::key_index::index_keys;
use crate::stored_part::StoredPart;
use crate::writer::{OnePart, RowCounts, Written, sha256_of};
use crate::{Error, LeftOut};
use meetpoint_format::dataset::{
    Columns, EntryPointsStored, MANIFEST_NAME, Manifest, PartEntry, PartLayout, Provenance, Row,
    Stored, part_name,
};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A finished part of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartResult {
    /// Its file; `None` if all of its samples were left out.
    entry: Option<PartEntry>,
    rows: RowCounts,
    /// How its samples were converted.
    pub stored: Stored,
    /// Samples that were left out.
    pub left_out: Vec<LeftOut>,
}

/// A part of a dataset that is being written.
pub struct PartBuilder<'a> {
    attempt: &'a Attempt<'a>,
    part: u64,
    columns: Arc<Columns>,
    open: Option<OnePart>,
    listed: ListingDigest,
    /// How its samples were converted.
    pub stored: Stored,
    /// Samples that were left out.
    pub left_out: Vec<LeftOut>,
}

impl<'a> PartBuilder<'a> {
    /// Begins a part; its file is created with its first row.
    pub fn new(attempt: &'a Attempt<'a>, part: u64, columns: &Arc<Columns>) -> Self {
        Self {
            attempt,
            part,
            columns: Arc::clone(columns),
            open: None,
            listed: ListingDigest::default(),
            stored: Stored::default(),
            left_out: Vec::new(),
        }
    }

    /// The digest of the listing of its samples so far.
    pub fn listed(&mut self) -> &mut ListingDigest {
        &mut self.listed
    }

    /// Adds a row.
    pub fn push(&mut self, row: Row) -> Result<(), Error> {
        let name = part_name(super::folder::index(self.part));
        let part = match &mut self.open {
            Some(part) => part,
            none => none.insert(OnePart::create(self.attempt.path(&name), &self.columns)?),
        };
        part.push(row)
    }

    /// Ends and publishes the part. Fails if its samples differ from those of the plan.
    pub fn finish(self) -> Result<Line<PartResult>, Error> {
        let Self { attempt, part, open, listed, stored, left_out, .. } = self;
        let plan = attempt.folder().plan();
        if listed.finish() != plan.parts[super::folder::index(part)].sha256 {
            let source = plan.source.as_ref().map(|source| source.path.clone());
            return Err(ShardError::PartChanged { source: source.unwrap_or_default(), part }.into());
        }
        let name = part_name(super::folder::index(part));
        let (entry, rows) = match open {
            None => (None, RowCounts::default()),
            Some(open) => {
                let (entry, rows) = open.finish(&name)?;
                (Some(entry), rows)
            }
        };
        let files: Vec<_> =
            entry.iter().map(|entry| (attempt.path(&name), entry.file.clone())).collect();
        attempt.publish(part, &files, PartResult { entry, rows, stored, left_out })
    }
}

/// Sums over all parts.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// How samples were converted; the form is that of the first part.
    pub stored: Stored,
    /// Samples that were left out, in the order of the source.
    pub left_out: Vec<LeftOut>,
    /// Number of rows.
    pub samples: u64,
}

impl Totals {
    /// The sums over these parts.
    pub fn of(parts: &[PartResult]) -> Self {
        let mut totals = Self::default();
        for (index, part) in parts.iter().enumerate() {
            let (all, one) = (&mut totals.stored, &part.stored);
            if index == 0 {
                all.form = one.form;
            }
            all.source_bytes += one.source_bytes;
            all.converted += one.converted;
            all.rewritten += one.rewritten;
            all.transcoded += one.transcoded;
            if let Some(restarts) = &one.restart_markers {
                all.restart_markers.get_or_insert_default().add(restarts);
            }
            for (reason, count) in &one.kept {
                *all.kept.entry(*reason).or_default() += count;
            }
            totals.left_out.extend(part.left_out.iter().cloned());
            totals.samples += part.rows.samples;
        }
        totals
    }
}

/// The content of the joined dataset's manifest, and how it is created.
#[derive(Debug)]
pub struct Joined {
    /// Replace a dataset at the destination.
    pub force: bool,
    /// The sources. None may contain the destination, or be inside it.
    pub sources: Vec<PathBuf>,
    /// Names of the labels by index.
    pub labels: Vec<String>,
    /// How samples were converted. The counts of entry points are taken from the parts.
    pub stored: Stored,
    /// Its provenance.
    pub provenance: Provenance,
    /// Files of killed processes that have been removed.
    pub cleaned: Vec<PathBuf>,
}

/// Checks every byte of the parts, publishes them as the dataset, and removes the folder of the
/// plan. Succeeds if the same dataset already exists, because an earlier commit may have been
/// killed after the rename.
pub fn join(folder: PlanFolder, parts: &[PartResult], joined: Joined) -> Result<Written, Error> {
    let to = folder.plan().destination.clone();
    let mut rows = RowCounts::default();
    let mut columns: Option<Columns> = None;
    let mut entries = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let Some(entry) = &part.entry else { continue };
        let found = check_part(&folder, index as u64, entry)?;
        if columns.as_ref().is_some_and(|columns| *columns != found) {
            let problem = "its columns differ from those of earlier parts";
            return Err(damaged(&folder, index as u64, &entry.file, problem));
        }
        columns = Some(found);
        rows.add(&part.rows);
        let file = part_name(entries.len());
        entries.push((entry.file.clone(), PartEntry { file, ..entry.clone() }));
    }
    let Some(columns) = columns else { return Err(Error::NoSamples { path: to }) };
    let manifest = Manifest {
        samples: rows.samples,
        image_bytes: rows.image_bytes,
        image_bytes_max: rows.image_bytes_max,
        labels: joined.labels,
        parts: entries.iter().map(|(_, entry)| entry.clone()).collect(),
        stored: Some(Stored {
            entry_points: EntryPointsStored {
                spacing: joined.stored.entry_points.spacing,
                samples: rows.entry_points,
                bytes: rows.entry_points_bytes,
            },
            ..joined.stored
        }),
        ..Manifest::new(&columns, joined.provenance)
    };
    let text = manifest.to_json();
    let mut cleaned = joined.cleaned;
    let there = std::fs::read(to.join(MANIFEST_NAME));
    let is_there = there.is_ok_and(|there| there == text.as_bytes());
    let (mut notes, mut replaced) = (Vec::new(), false);
    if !is_there {
        let replace = Replace::Dataset { force: joined.force };
        let mut destination = Destination::resolve(&joined.sources, &to, &replace)?;
        destination.clean()?;
        let mut staging = Staging::create(&destination)?;
        for (name, entry) in &entries {
            place(&folder.path().join(name), &staging.content().join(&entry.file))?;
        }
        staging.write_manifest(text.as_bytes())?;
        index_keys(staging.content(), &AtomicBool::new(false), &mut |_| ())?;
        replaced = staging.commit(&destination)?;
        cleaned.append(&mut destination.cleaned);
        notes.append(&mut destination.notes);
    }
    let mut files = text.len() as u64;
    for name in entries.iter().map(|(_, entry)| entry.file.as_str()).chain(["keys.idx"]) {
        files += to.join(name).metadata().map_or(0, |metadata| metadata.len());
    }
    let (attempts, note) = folder.remove();
    cleaned.extend(attempts);
    notes.extend(note);
    Ok(Written { destination: to, manifest, file_bytes: files, cleaned, notes, replaced })
}

/// Checks the file of a part against its record and returns its columns.
fn check_part(folder: &PlanFolder, part: u64, entry: &PartEntry) -> Result<Columns, Error> {
    let path = folder.path().join(&entry.file);
    let wrong = |problem: &str| damaged(folder, part, &entry.file, problem);
    if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
        return Err(wrong("it is not a regular file"));
    }
    if entry.file != part_name(super::folder::index(part)) {
        return Err(wrong("its record names another file"));
    }
    let mut file = match meetpoint_storage::files::open_regular(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(wrong("it is missing, but its record exists"));
        }
        Err(source) => return Err(Error::Source { path, source }),
    };
    let read = |source| Error::Source { path: path.clone(), source };
    if file.metadata().map_err(read)?.len() != entry.bytes {
        return Err(wrong("its length differs from that in its record"));
    }
    if sha256_of(&mut file).map_err(read)? != entry.sha256 {
        return Err(wrong("its SHA-256 differs from that in its record"));
    }
    let bytes = StoredPart { path: path.clone() };
    let layout = PartLayout::read(0, entry, &bytes)
        .map_err(|error| damaged(folder, part, &entry.file, &error.to_string()))?;
    Ok(layout.columns)
}

fn damaged(folder: &PlanFolder, part: u64, file: &str, problem: &str) -> Error {
    folder.damaged(part, folder.path().join(file), problem)
}

/// Hard-links a file to another path, or copies it if the file system has no hard links.
pub(crate) fn place(from: &Path, to: &Path) -> Result<(), Error> {
    if std::fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    std::fs::copy(from, to)
        .and_then(|_| File::open(to)?.sync_all())
        .map_err(|source| Error::Write { path: to.to_path_buf(), source })
}
