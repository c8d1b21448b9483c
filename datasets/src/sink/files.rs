//! Files of a sink: buffered, counted, and synced when they are finished.

use crate::Error;
use crate::source::side_files::LABELS_NAME;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Size of the write buffer.
const BUFFER_BYTES: usize = 1 << 20;

/// Counts of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Number of finished files.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
}

impl Tally {
    /// Counts one more file.
    pub(super) fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }
}

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Output {
    /// `None` while it is parked.
    file: Option<BufWriter<File>>,
    path: PathBuf,
    bytes: u64,
}

impl Output {
    /// Creates the file, which must not exist.
    pub(super) fn create(path: PathBuf) -> Result<Self, Error> {
        match File::create_new(&path) {
            Ok(file) => {
                let file = Some(BufWriter::with_capacity(BUFFER_BYTES, file));
                Ok(Self { file, path, bytes: 0 })
            }
            Err(source) => Err(Error::Write { path, source }),
        }
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends bytes.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.write_all(bytes).map_err(|source| self.failed(source))
    }

    /// Syncs the file, and counts it.
    pub(super) fn finish(mut self, tally: &mut Tally) -> Result<(), Error> {
        let synced = self.open().and_then(|file| {
            file.flush()?;
            file.get_ref().sync_all()
        });
        synced.map_err(|source| self.failed(source))?;
        tally.add(self.bytes);
        Ok(())
    }

    /// Closes the file until it is written to again, so that many can be unfinished at once.
    pub(super) fn park(&mut self) -> Result<(), Error> {
        self.flush().map_err(|source| self.failed(source))?;
        self.file = None;
        Ok(())
    }

    /// The file, reopened if it was parked.
    fn open(&mut self) -> std::io::Result<&mut BufWriter<File>> {
        if self.file.is_none() {
            let file = File::options().append(true).open(&self.path)?;
            self.file = Some(BufWriter::new(file));
        }
        Ok(self.file.as_mut().expect("it was opened just now"))
    }

    /// An error of writing to it.
    pub(super) fn failed(&self, source: std::io::Error) -> Error {
        Error::Write { path: self.path.clone(), source }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.open()?.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Writes a small file in one step.
pub(super) fn write_whole(path: PathBuf, bytes: &[u8], tally: &mut Tally) -> Result<(), Error> {
    let mut output = Output::create(path)?;
    output.append(bytes)?;
    output.finish(tally)
}

/// Writes the names of the labels beside the samples, unless they are just the label numbers.
pub(super) fn write_labels(
    folder: &Path,
    labels: &[String],
    tally: &mut Tally,
) -> Result<bool, Error> {
    if labels.iter().enumerate().all(|(index, name)| *name == index.to_string()) {
        return Ok(false);
    }
    let mut text = serde_json::to_string_pretty(labels).expect("a list of strings serialises");
    text.push('\n');
    write_whole(folder.join(LABELS_NAME), text.as_bytes(), tally)?;
    Ok(true)
}
