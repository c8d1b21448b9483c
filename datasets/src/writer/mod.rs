//! Writes rows into a dataset, which appears complete or not at all.
//!
//! Rows are stored unchanged: the form of an image and its entry points are decided by the caller.
//! In reading order: [`Writer`], [`WriterOptions`], [`WriterInputs`] (what determines the bytes),
//! [`Written`], then `parts` (rows into part files), `one_part` (one of them), `part_file` and
//! `part_drain` (their bytes to the drive), and `journal` (what another process needs to resume).

mod journal;
mod one_part;
mod part_drain;
mod part_file;
mod parts;
mod written;

use crate::Error;
use crate::destination::{Destination, JOURNAL_NAME, LeftoverFolder, Replace, Staging};
use crate::key_index::index_keys;
pub use crate::writer_inputs::{ResumeConflict, Value, WriterInput, WriterInputs};
use journal::{Journal, JournalContent};
use meetpoint_format::dataset::{Columns, EntryPointsStored, Manifest, Provenance, Row, Stored};
pub(crate) use one_part::OnePart;
use parts::Parts;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};
use written::WrittenParts;
pub(crate) use written::{RowCounts, sha256_of};

/// Default number of bytes after which the next part begins.
pub const PART_BYTES_TARGET: u64 = 256 << 20;

/// Program and version, as in the provenance of a dataset.
pub const TOOL: &str = concat!("meetpoint ", env!("CARGO_PKG_VERSION"));

/// Formats a time for the provenance of a dataset: RFC 3339, in UTC, in whole seconds. Times before
/// 1970 become the start of 1970.
pub fn utc_time(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from 1 March of the year 0, so that leap days come last; see Howard
    // Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The time for the provenance of what is written now: the present, or the seconds since 1970 that
/// `SOURCE_DATE_EPOCH` in the environment says, with which the same source gives the same bytes.
///
/// An error where that is not a whole number.
pub fn provenance_time() -> Result<String, Error> {
    let Some(value) = std::env::var_os("SOURCE_DATE_EPOCH") else {
        return Ok(utc_time(SystemTime::now()));
    };
    let seconds = value.to_str().and_then(|text| text.parse().ok());
    let time = seconds.and_then(|it| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(it)));
    time.map(utc_time).ok_or_else(|| Error::Epoch { value: value.display().to_string() })
}

/// How to write a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterOptions {
    /// Replace a dataset at the destination.
    pub force: bool,
    /// Bytes after which the next part begins.
    pub part_bytes_target: u64,
    /// Files and folders of the source: none may be inside the destination, nor the destination
    /// inside one of them.
    pub sources: Vec<PathBuf>,
    /// The inputs and options that determine the rows. They are recorded in the journal.
    pub inputs: WriterInputs,
    /// Resume a killed writer with the same inputs, and retain the written parts when this one is
    /// dropped. Otherwise leftovers are removed.
    pub resume: bool,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            force: false,
            part_bytes_target: PART_BYTES_TARGET,
            sources: Vec::new(),
            inputs: WriterInputs::default(),
            resume: false,
        }
    }
}

/// The written dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The dataset.
    pub destination: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    /// Bytes of the dataset's files.
    pub file_bytes: u64,
    /// Leftovers of killed processes that were removed.
    pub cleaned: Vec<PathBuf>,
    /// Notes on other leftovers, as sentences: parts that were written again, folders that were not
    /// removed.
    pub notes: Vec<String>,
    /// Whether a dataset was replaced.
    pub replaced: bool,
}

/// A dataset being written, in a folder beside its destination; dropped before it is finished, it
/// leaves nothing behind unless [`WriterOptions::resume`] is set.
pub struct Writer {
    to: PathBuf,
    columns: Arc<Columns>,
    destination: Destination,
    /// Dropped before the folder in which it writes.
    parts: Parts,
    staging: Staging,
    states: Vec<String>,
}

impl Writer {
    /// Checks that the destination can be created or replaced; [`Self::create`] checks it too.
    pub fn may_write(to: &Path, options: &WriterOptions) -> Result<(), Error> {
        destination(to, options).map(|_| ())
    }

    /// Bytes already written by an interrupted command that can resume; 0 if there is none.
    pub fn retained_bytes(to: &Path) -> Result<u64, Error> {
        let failed = |source| Error::Write { path: to.to_path_buf(), source };
        crate::destination::retained_bytes(to).map_err(failed)
    }

    /// Starts a dataset with these columns, or resumes one.
    ///
    /// The destination must not exist, unless it is a dataset and [`WriterOptions::force`] is set.
    /// Leftovers of killed processes that wrote to it are removed, except those that are resumed.
    pub fn create(
        to: &Path,
        columns: Arc<Columns>,
        options: &WriterOptions,
    ) -> Result<Self, Error> {
        let mut destination = destination(to, options)?;
        let remains = if options.resume { find(&destination, &options.inputs)? } else { None };
        destination.clean()?;
        let (mut staging, journal, found) = match remains {
            Some(remains) => {
                let staging = Staging::resume(remains)?;
                let (journal, found) = Journal::resume(staging.content())?;
                (staging, journal, found)
            }
            None => {
                let staging = match options.resume {
                    true => Staging::create_resumable(&destination)?,
                    false => Staging::create(&destination)?,
                };
                let journal = Journal::create(staging.content(), &options.inputs)?;
                (staging, journal, JournalContent::default())
            }
        };
        staging.keep(options.resume);
        let JournalContent { written, states, again } = found;
        destination.notes.extend(again);
        let to = to.to_path_buf();
        let (folder, target) = (staging.content(), options.part_bytes_target);
        let parts = Parts::new(folder, Arc::clone(&columns), target, journal, written);
        Ok(Self { to, columns, destination, staging, parts, states })
    }

    /// The columns of its rows.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The states passed to [`Self::push_noting`] at the end of each retained part; the rows of
    /// these parts must not be pushed again. Empty if there is nothing to resume.
    pub fn states(&self) -> &[String] {
        &self.states
    }

    /// Adds a row. The caller must ensure that keys are unique.
    pub fn push(&mut self, row: Row) -> Result<(), Error> {
        self.parts.push(row, &mut String::new)
    }

    /// Adds a row; if a part ends before it, the return value of `state` is recorded for a writer
    /// that resumes after that part.
    pub fn push_noting(
        &mut self,
        row: Row,
        state: &mut dyn FnMut() -> String,
    ) -> Result<(), Error> {
        self.parts.push(row, state)
    }

    /// The folder in which it writes.
    pub fn place(&self) -> &Path {
        self.staging.content()
    }

    /// Number of rows so far, including those of a resumed writer.
    pub fn samples(&self) -> u64 {
        self.parts.samples()
    }

    /// Adds the retained parts of the dataset to the error that ended the writer. Without a
    /// complete part, nothing is retained.
    pub fn with_remains(&mut self, error: Error) -> Error {
        let can_resume =
            matches!(error, Error::Write { .. } | Error::Remote(_) | Error::Interrupted);
        if !self.staging.is_retained() || !can_resume {
            return error;
        }
        self.parts.keep();
        let (place, parts) = (self.place().to_path_buf(), self.parts.journal.parts());
        if parts == 0 {
            self.staging.keep(matches!(error, Error::Remote(_)));
            return error;
        }
        match error {
            Error::Interrupted => Error::Stopped { place, parts },
            error => Error::Kept { error: Box::new(error), place, parts },
        }
    }

    /// Removes everything, whatever [`WriterOptions::resume`] is.
    pub fn discard(mut self) {
        self.staging.keep(false);
    }

    /// Writes the remaining rows and the manifest, syncs everything, and renames the dataset to its
    /// destination.
    ///
    /// `labels` are the names of the labels by index. In `stored`, the samples and bytes of entry
    /// points are replaced by counts; the rest is used unchanged.
    pub fn finish(
        mut self,
        labels: Vec<String>,
        stored: Stored,
        provenance: Provenance,
    ) -> Result<Written, Error> {
        let ended = self.end(labels, stored, provenance);
        let (manifest, file_bytes) = ended.map_err(|error| self.with_remains(error))?;
        // Once the journal is removed, nothing can be resumed.
        self.staging.keep(false);
        let replaced = self.staging.commit(&self.destination)?;
        Ok(Written {
            destination: self.to,
            manifest,
            file_bytes,
            cleaned: self.destination.cleaned,
            notes: self.destination.notes,
            replaced,
        })
    }

    /// Writes everything that remains; returns the manifest and the bytes of all files.
    fn end(
        &mut self,
        labels: Vec<String>,
        stored: Stored,
        provenance: Provenance,
    ) -> Result<(Manifest, u64), Error> {
        let WrittenParts { entries, rows } = self.parts.finish()?;
        let manifest = Manifest {
            samples: rows.samples,
            image_bytes: rows.image_bytes,
            image_bytes_max: rows.image_bytes_max,
            labels,
            parts: entries,
            stored: Some(Stored {
                entry_points: EntryPointsStored {
                    spacing: stored.entry_points.spacing,
                    samples: rows.entry_points,
                    bytes: rows.entry_points_bytes,
                },
                ..stored
            }),
            ..Manifest::new(&self.columns, provenance)
        };
        let text = manifest.to_json();
        self.staging.write_manifest(text.as_bytes())?;
        let keys = index_keys(self.staging.content(), &AtomicBool::new(false), &mut |_| ())?;
        self.parts.journal.remove()?;
        let parts: u64 = manifest.parts.iter().map(|part| part.bytes).sum();
        Ok((manifest, parts + text.len() as u64 + keys.bytes))
    }
}

fn destination(to: &Path, options: &WriterOptions) -> Result<Destination, Error> {
    Destination::resolve(&options.sources, to, &Replace::Dataset { force: options.force })
}

/// The leftovers of a writer with these inputs. An error if another process is writing, or if all
/// leftovers are foreign or cannot be resumed, since they would be removed.
fn find(destination: &Destination, inputs: &WriterInputs) -> Result<Option<LeftoverFolder>, Error> {
    let (mut same, mut other) = (Vec::new(), None);
    let mut places = destination.places()?;
    if let Some(place) = places.in_use.pop() {
        return Err(Error::InUse { destination: destination.path().to_path_buf(), place });
    }
    if let Some((path, entry)) = places.foreign.pop() {
        return Err(Error::ResumeForeign { path, entry });
    }
    for remains in places.remains {
        match journal::compare(remains.path(), inputs) {
            Some(Ok(())) => same.push(remains),
            Some(Err(difference)) => other = Some((remains.path().to_path_buf(), difference)),
            None => {}
        }
    }
    let journal_bytes = |remains: &LeftoverFolder| {
        remains.path().join(JOURNAL_NAME).metadata().map_or(0, |metadata| metadata.len())
    };
    match (same.into_iter().max_by_key(journal_bytes), other) {
        (None, Some((path, difference))) => {
            Err(Error::ResumeDiffers { path, difference: Box::new(difference) })
        }
        (best, _) => Ok(best),
    }
}

#[cfg(test)]
mod tests {
    use super::utc_time;
    use std::time::{Duration, SystemTime};

    #[test]
    fn times_are_those_of_the_calendar() {
        let at = |seconds| utc_time(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        // As printed by `date -u -d @SECONDS +%FT%TZ`.
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(at(1_798_761_599), "2026-12-31T23:59:59Z");
    }
}
