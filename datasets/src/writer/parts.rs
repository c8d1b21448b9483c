//! Writes rows to part files, which are synced and hashed when they are full.

use super::journal::Journal;
use super::part_file::{Ending, PartFile, Pieces};
use super::written::{RowCounts, WrittenParts, hexadecimal};
use crate::Error;
use meetpoint_format::dataset::{Columns, DatasetError, PartEncoder, PartEntry, Row, part_name};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The part files of a dataset being written.
pub(super) struct Parts {
    /// Records complete parts.
    pub(super) journal: Journal,
    folder: PathBuf,
    columns: Arc<Columns>,
    bytes_target: u64,
    open: Option<PartEncoder<PartFile>>,
    /// The buffers and thread, while no part is open.
    pieces: Pieces,
    /// The part before the open one, which is being synced.
    ended: Option<EndedPart>,
    /// Parts that are synced.
    entries: Vec<PartEntry>,
    /// Row counts of all parts.
    rows: RowCounts,
}

/// A complete part.
struct EndedPart {
    /// The entry without the SHA-256.
    entry: PartEntry,
    ending: Ending,
    /// The counts and state to record in the journal, if it is recorded.
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
        let bytes = row.image.len() as u64;
        let entry_points_bytes = row.entry_points.as_ref().map_or(0, |found| found.len() as u64);
        let added = row.bytes();
        let is_full = |part: &PartEncoder<_>| part.bytes() + added > self.bytes_target;
        if self.open.as_ref().is_some_and(|part| part.samples() > 0 && is_full(part)) {
            let note = (self.rows, state());
            self.end_part(Some(note))?;
        }
        let path = self.path();
        let failed = |error| failure(&path, error);
        let mut part = match self.open.take() {
            Some(part) => part,
            None => {
                let pieces = std::mem::take(&mut self.pieces);
                let file = PartFile::create(&path, pieces)
                    .map_err(|source| Error::Write { path: path.clone(), source })?;
                PartEncoder::new(file, Arc::clone(&self.columns)).map_err(failed)?
            }
        };
        self.rows.entry_points += u64::from(row.entry_points.is_some());
        self.rows.entry_points_bytes += entry_points_bytes;
        part.push(row).map_err(failed)?;
        self.open = Some(part);
        self.rows.samples += 1;
        self.rows.image_bytes += bytes;
        self.rows.image_bytes_max = self.rows.image_bytes_max.max(bytes);
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
        let (file, path) = (self.name(), self.path());
        let finished = part.finish().map_err(|error| failure(&path, error))?;
        let ended = finished.sink.finish();
        let (ending, pieces) = ended.map_err(|source| Error::Write { path, source })?;
        self.pieces = pieces;
        self.settle()?;
        let (samples, bytes) = (finished.samples, finished.bytes);
        let (tail_crc32c, sha256) = (finished.tail_crc32c, String::new());
        let entry = PartEntry { file, samples, bytes, tail_crc32c, sha256 };
        self.ended = Some(EndedPart { entry, ending, note });
        Ok(())
    }

    /// Waits until the ended part is synced, and records it.
    fn settle(&mut self) -> Result<(), Error> {
        let Some(EndedPart { mut entry, ending, note }) = self.ended.take() else { return Ok(()) };
        let path = self.folder.join(&entry.file);
        let sha256 = ending.wait().map_err(|source| Error::Write { path, source })?;
        entry.sha256 = hexadecimal(&sha256);
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

fn failure(path: &Path, error: DatasetError) -> Error {
    match error {
        DatasetError::Write(source) => Error::Write { path: path.to_path_buf(), source },
        error => Error::Row(error),
    }
}
