//! Writes one part file from rows, and returns its manifest entry.

use super::part_file::{PartFile, Pieces, SyncingPart};
use super::written::RowCounts;
use crate::Error;
use meetpoint_format::checksum::hexadecimal;
use meetpoint_format::dataset::{Columns, DatasetError, PartEncoder, PartEntry, Row};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A part to which rows are added.
pub(crate) struct OnePart {
    path: PathBuf,
    encoder: PartEncoder<PartFile>,
    /// Counts of its rows.
    pub(crate) rows: RowCounts,
}

/// A complete part whose last bytes are being written to the drive.
pub(super) struct EndedPart {
    /// The entry without file name and SHA-256.
    entry: PartEntry,
    ending: SyncingPart,
    path: PathBuf,
}

impl OnePart {
    /// Creates the file, which must not exist.
    pub(super) fn begin(
        path: PathBuf,
        columns: &Arc<Columns>,
        pieces: &mut Pieces,
    ) -> Result<Self, Error> {
        let file = PartFile::create(&path, std::mem::take(pieces))
            .map_err(|source| Error::Write { path: path.clone(), source })?;
        let encoder = PartEncoder::new(file, Arc::clone(columns));
        let encoder = encoder.map_err(|error| failure(&path, error))?;
        Ok(Self { path, encoder, rows: RowCounts::default() })
    }

    /// Like [`Self::begin`], for a part that is written alone.
    pub(crate) fn create(path: PathBuf, columns: &Arc<Columns>) -> Result<Self, Error> {
        Self::begin(path, columns, &mut Pieces::default())
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.encoder.bytes()
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: Row) -> Result<(), Error> {
        let added = RowCounts::of(&row);
        self.encoder.push(row).map_err(|error| failure(&self.path, error))?;
        self.rows.add(&added);
        Ok(())
    }

    /// Ends the part. Its bytes are written to the drive while `pieces` serve the next part.
    pub(super) fn end(self, pieces: &mut Pieces) -> Result<EndedPart, Error> {
        let Self { path, encoder, .. } = self;
        let finished = encoder.finish().map_err(|error| failure(&path, error))?;
        let (ending, free) = match finished.sink.finish() {
            Ok(ended) => ended,
            Err(source) => return Err(Error::Write { path, source }),
        };
        *pieces = free;
        let entry = PartEntry {
            file: String::new(),
            samples: finished.samples,
            bytes: finished.bytes,
            tail_crc32c: finished.tail_crc32c,
            sha256: String::new(),
        };
        Ok(EndedPart { entry, ending, path })
    }

    /// Ends a part that is written alone, and waits until it is on the drive.
    pub(crate) fn finish(self, name: &str) -> Result<(PartEntry, RowCounts), Error> {
        let rows = self.rows;
        let ended = self.end(&mut Pieces::default())?;
        Ok((ended.wait(name.to_owned())?, rows))
    }
}

impl EndedPart {
    /// Waits until the part is on the drive, and returns its entry with this file name.
    pub(super) fn wait(self, file: String) -> Result<PartEntry, Error> {
        let Self { entry, ending, path } = self;
        let sha256 = ending.wait().map_err(|source| Error::Write { path, source })?;
        Ok(PartEntry { file, sha256: hexadecimal(&sha256), ..entry })
    }
}

fn failure(path: &Path, error: DatasetError) -> Error {
    match error {
        DatasetError::Write(source) => Error::Write { path: path.to_path_buf(), source },
        error => Error::Row(error),
    }
}
