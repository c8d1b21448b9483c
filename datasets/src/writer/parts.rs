//! Writes rows to part files, which are synced and hashed when they are full.

use super::journal::Journal;
use super::one_part::{EndedPart, OnePart};
use super::part_file::Pieces;
use super::written::{RowCounts, WrittenParts};
use crate::Error;
use meetpoint_format::dataset::{Columns, PartEntry, Row, part_name};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The part files of a dataset being written.
pub(super) struct Parts {
    /// Records complete parts.
    pub(super) journal: Journal,
    folder: PathBuf,
    columns: Arc<Columns>,
    bytes_target: u64,
    open: Option<OnePart>,
    /// What the open part does not have.
    pieces: Pieces,
    /// The part before the open one, which is being written to the drive.
    ended: Option<FullPart>,
    /// Parts that are on the drive.
    entries: Vec<PartEntry>,
    /// Row counts of all parts.
    rows: RowCounts,
}

/// A part that nothing is added to.
struct FullPart {
    name: String,
    part: EndedPart,
    /// What its end is noted with, where it is to be noted.
    note: Option<(RowCounts, String)>,
}

impl Parts {
    /// Parts of about `bytes_target` bytes in `folder`.
    ///
    /// `written` are the existing parts.
    pub(super) fn new(
        folder: &Path,
        columns: Arc<Columns>,
        bytes_target: u64,
        journal: Journal,
        written: WrittenParts,
    ) -> Self {
        let (folder, pieces) = (folder.to_path_buf(), Pieces::default());
        let WrittenParts { entries, rows } = written;
        let (open, ended) = (None, None);
        Self { journal, folder, columns, bytes_target, open, pieces, ended, entries, rows }
    }

    /// Adds a row, to the next part if this one is full; then `state` returns the state of the
    /// caller before this row.
    pub(super) fn push(
        &mut self,
        row: Row,
        state: &mut dyn FnMut() -> String,
    ) -> Result<(), Error> {
        let added = row.bytes();
        let is_full = |part: &OnePart| part.bytes() + added > self.bytes_target;
        if self.open.as_ref().is_some_and(|part| part.rows.samples > 0 && is_full(part)) {
            let note = (self.rows, state());
            self.end_part(Some(note))?;
        }
        let mut part = match self.open.take() {
            Some(part) => part,
            None => OnePart::begin(self.path(), &self.columns, &mut self.pieces)?,
        };
        let added = RowCounts::of(&row);
        part.push(row)?;
        self.open = Some(part);
        self.rows.add(&added);
        Ok(())
    }

    /// Rows so far.
    pub(super) fn samples(&self) -> u64 {
        self.rows.samples
    }

    /// Finishes the last part and waits until all are synced.
    pub(super) fn finish(&mut self) -> Result<WrittenParts, Error> {
        self.end_part(None)?;
        self.settle()?;
        Ok(WrittenParts { entries: std::mem::take(&mut self.entries), rows: self.rows })
    }

    /// Name of the open part, or of the next one.
    fn name(&self) -> String {
        part_name(self.entries.len() + usize::from(self.ended.is_some()))
    }

    fn path(&self) -> PathBuf {
        self.folder.join(self.name())
    }

    /// Ends the open part, once the previous one is synced.
    fn end_part(&mut self, note: Option<(RowCounts, String)>) -> Result<(), Error> {
        let Some(part) = self.open.take() else { return Ok(()) };
        let name = self.name();
        let part = part.end(&mut self.pieces)?;
        self.settle()?;
        self.ended = Some(FullPart { name, part, note });
        Ok(())
    }

    /// Waits until the ended part is synced, and records it.
    fn settle(&mut self) -> Result<(), Error> {
        let Some(FullPart { name, part, note }) = self.ended.take() else { return Ok(()) };
        let entry = part.wait(name)?;
        if let Some((rows, state)) = note {
            self.journal.note(&entry, &rows, state)?;
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Records the completed part, after which another writer resumes.
    pub(super) fn keep(&mut self) {
        // A failed part is not recorded, and so written again.
        let _ = self.settle();
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.keep();
    }
}
