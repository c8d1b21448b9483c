//! Rows into part files, each synced and with its SHA-256 when it is full.

use super::journal::Journal;
use super::part_file::{PartFile, Pieces};
use crate::Error;
use meetpoint_format::dataset::{Columns, DatasetError, PartEncoder, PartEntry, Row, part_name};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a part that are read at once.
const READ_BUFFER_BYTES: usize = 1 << 20;

/// What was written.
#[derive(Debug, Default)]
pub(super) struct WrittenParts {
    pub(super) entries: Vec<PartEntry>,
    pub(super) samples: u64,
    pub(super) image_bytes: u64,
    pub(super) image_bytes_max: u64,
    /// Samples with entry points.
    pub(super) entry_points: u64,
    pub(super) entry_points_bytes: u64,
}

/// The part files of a dataset being written.
pub(super) struct Parts {
    /// Where whole parts are noted.
    pub(super) journal: Journal,
    folder: PathBuf,
    columns: Arc<Columns>,
    bytes_target: u64,
    open: Option<PartEncoder<PartFile>>,
    /// What the open part does not have.
    pieces: Pieces,
    written: WrittenParts,
}

impl Parts {
    /// Parts of about `bytes_target` bytes in `folder`.
    ///
    /// `written` are those that are there already.
    pub(super) fn new(
        folder: &Path,
        columns: Arc<Columns>,
        bytes_target: u64,
        journal: Journal,
        written: WrittenParts,
    ) -> Self {
        let folder = folder.to_path_buf();
        let pieces = Pieces::default();
        Self { journal, folder, columns, bytes_target, open: None, pieces, written }
    }

    /// Adds a row, to the next part when this one is full; then `state` says where the caller is
    /// before this row.
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
            self.finish_part()?;
            self.journal.note(&self.written, state())?;
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
        self.written.entry_points += u64::from(row.entry_points.is_some());
        self.written.entry_points_bytes += entry_points_bytes;
        part.push(row).map_err(failed)?;
        self.open = Some(part);
        self.written.samples += 1;
        self.written.image_bytes += bytes;
        self.written.image_bytes_max = self.written.image_bytes_max.max(bytes);
        Ok(())
    }

    /// Rows so far.
    pub(super) fn samples(&self) -> u64 {
        self.written.samples
    }

    /// Finishes the last part, and gives what was written in all.
    pub(super) fn finish(&mut self) -> Result<WrittenParts, Error> {
        self.finish_part()?;
        Ok(std::mem::take(&mut self.written))
    }

    fn path(&self) -> PathBuf {
        self.folder.join(part_name(self.written.entries.len()))
    }

    fn finish_part(&mut self) -> Result<(), Error> {
        let Some(part) = self.open.take() else { return Ok(()) };
        let path = self.path();
        let written = |source: std::io::Error| Error::Write { path: path.clone(), source };
        let finished = part.finish().map_err(|error| failure(&path, error))?;
        let (sha256, pieces) = finished.sink.finish().map_err(written)?;
        self.pieces = pieces;
        self.written.entries.push(PartEntry {
            file: part_name(self.written.entries.len()),
            samples: finished.samples,
            bytes: finished.bytes,
            tail_crc32c: finished.tail_crc32c,
            sha256: hexadecimal(&sha256),
        });
        Ok(())
    }
}

/// The SHA-256 of everything in a file.
pub(super) fn sha256_of(file: &mut File) -> std::io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hexadecimal(&hasher.finalize())),
            count => hasher.update(&buffer[..count]),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string never fails");
        text
    })
}

fn failure(path: &Path, error: DatasetError) -> Error {
    match error {
        DatasetError::Write(source) => Error::Write { path: path.to_path_buf(), source },
        error => Error::Row(error),
    }
}
