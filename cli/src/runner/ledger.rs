//! The ledger of a run: a line of JSON for each consumed batch, written when it is consumed.
//!
//! A line is one write to a file opened for appending, so a killed process leaves whole lines. With
//! it, two runs of a job can be compared byte for byte, and a run can resume after another one.

use crate::surface::failure::Fault;
use anyhow::Context;
use meetpoint_diagnose::shown;
use meetpoint_format::checksum::crc32c_of;
use meetpoint_host::stats::Preparer;
use meetpoint_host::{Accelerator, Batch};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// One consumed batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The strategy of the run.
    pub(crate) strategy: String,
    /// The rank that consumed it.
    pub(crate) rank: u32,
    /// Its epoch.
    pub(crate) epoch: u32,
    /// Its index in the epoch.
    pub(crate) batch: u32,
    /// The end that prepared it.
    pub(crate) source: Preparer,
    /// Its samples as indices in the dataset, without skipped ones.
    pub(crate) samples: Vec<u64>,
    /// CRC-32C of the values of each of these samples in all columns.
    pub(crate) crc32c: Vec<u32>,
    /// Damaged samples that were replaced or skipped.
    pub(crate) damaged: u32,
}

impl Entry {
    /// Describes a batch.
    pub(crate) fn of(strategy: &str, rank: u32, batch: &Batch) -> Self {
        let names = batch.columns().iter().map(|column| column.name.as_str());
        let columns: Vec<_> = names.filter_map(|name| batch.column(name)).collect();
        let checksum = |sample: usize| {
            crc32c_of(columns.iter().flat_map(|column| {
                [
                    column.shape_bytes(sample).unwrap_or_default(),
                    column.value(sample).unwrap_or_default(),
                ]
            }))
        };
        Self {
            strategy: strategy.to_owned(),
            rank,
            epoch: batch.epoch(),
            batch: batch.index(),
            source: batch.source().into(),
            samples: batch.samples().to_vec(),
            crc32c: (0..batch.samples().len()).map(checksum).collect(),
            damaged: u32::try_from(batch.replacements().len()).unwrap_or(u32::MAX),
        }
    }
}

/// A ledger that is written.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: File,
    /// The first failure; nothing is written after it.
    failed: Mutex<Option<std::io::Error>>,
}

impl Ledger {
    /// Opens the file for appending, or creates it.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(|error| not_written(path, &error))?;
        Ok(Self { path: path.to_path_buf(), file, failed: Mutex::default() })
    }

    /// Appends a line. A failure is returned by [`Self::finish`].
    pub(crate) fn add(&self, entry: &Entry) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.is_some() {
            return;
        }
        let mut line = serde_json::to_string(entry).expect("numbers and texts are JSON");
        line.push('\n');
        *failed = (&self.file).write_all(line.as_bytes()).err();
    }

    /// The first failure to write, if any.
    pub(crate) fn finish(&self) -> anyhow::Result<()> {
        match self.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(not_written(&self.path, &error)),
            None => Ok(()),
        }
    }
}

fn not_written(path: &Path, error: &std::io::Error) -> anyhow::Error {
    let message = format!("failed to write the ledger {}: {error}", shown(path));
    Fault::new("ledger_not_written", message, "free space, or name another file with --ledger")
        .into()
}

/// The entries of a ledger, in the order in which they were written; none if the file does not
/// exist. An incomplete last line is left out.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<Entry>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error).with_context(|| format!("failed to read {}", shown(path)));
        }
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let entry = |(number, line): (usize, &str)| {
        serde_json::from_str(line).with_context(|| {
            let message = format!("{}, line {}: not an entry", shown(path), number + 1);
            Fault::new("not_a_ledger", message, "name a file that --ledger wrote")
        })
    };
    whole.lines().enumerate().map(entry).collect()
}

/// Writes every batch to a ledger before the step of another accelerator.
pub(super) struct Recording {
    pub(super) ledger: Arc<Ledger>,
    pub(super) strategy: &'static str,
    pub(super) rank: u32,
    pub(super) step: Box<dyn Accelerator>,
}

impl Accelerator for Recording {
    fn step(&mut self, batch: &Batch) {
        self.ledger.add(&Entry::of(self.strategy, self.rank, batch));
        self.step.step(batch);
    }

    fn finish(&mut self) {
        self.step.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Ledger, read};
    use meetpoint_host::stats::Preparer;

    fn entry(batch: u32) -> Entry {
        Entry {
            strategy: "wrr".to_owned(),
            rank: 0,
            epoch: 1,
            batch,
            source: Preparer::Device,
            samples: vec![4, 2],
            crc32c: vec![7, u32::MAX],
            damaged: 0,
        }
    }

    #[test]
    fn entries_are_appended_and_a_torn_last_line_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        assert_eq!(read(&path).unwrap(), []);
        for batch in 0..2 {
            let ledger = Ledger::open(&path).unwrap();
            ledger.add(&entry(batch));
            ledger.finish().unwrap();
        }
        assert_eq!(read(&path).unwrap(), [entry(0), entry(1)]);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.truncate(text.len() - 10);
        std::fs::write(&path, &text).unwrap();
        assert_eq!(read(&path).unwrap(), [entry(0)]);
        std::fs::write(&path, "something else\n").unwrap();
        assert!(read(&path).is_err());
    }
}
