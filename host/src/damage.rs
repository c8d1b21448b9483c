//! The records of damaged samples: those of an epoch, their limit, and the quarantine file.
//!
//! A sample is recorded when its batch is consumed, never when it is prepared, so that samples of
//! discarded batches are not recorded.

use crate::Error;
use crate::events::EventKind;
use meetpoint_prepare::{Action, Damage, Dataset, Replacement};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Maximum number of damaged samples of one epoch that are recorded; the rest is only counted.
pub const DAMAGE_RECORDS_MAX: usize = 10_000;

/// Longest quarantine file that is resumed.
const QUARANTINE_BYTES_MAX: u64 = 256 << 20;

/// A damaged sample and how it was handled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamageRecord {
    /// What is wrong with which sample.
    #[serde(flatten)]
    pub damage: Damage,
    /// Index of the batch that it belongs to.
    pub batch: u32,
    /// What was done.
    pub action: Action,
    /// The sample that replaces it.
    pub replaced_by: Option<u64>,
}

impl DamageRecord {
    fn new(batch: u32, replacement: &Replacement) -> Self {
        let action = match replacement.replaced_by {
            Some(_) => Action::Replace,
            None => Action::Skip,
        };
        let (damage, replaced_by) = (replacement.damage.clone(), replacement.replaced_by);
        Self { damage, batch, action, replaced_by }
    }
}

/// The damaged samples of an epoch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct DamageStats {
    /// Samples that were skipped, so that their batches were shorter.
    pub left_out: u64,
    /// Samples that were replaced by others.
    pub replaced: u64,
    /// Each of them, in the order in which their batches were consumed; the first
    /// [`DAMAGE_RECORDS_MAX`] of the epoch.
    pub records: Vec<DamageRecord>,
}

impl DamageStats {
    /// Number of skipped and replaced samples.
    pub fn samples(&self) -> u64 {
        self.left_out + self.replaced
    }

    /// The event for them; `None` if there are none.
    pub(crate) fn event(&self) -> Option<EventKind> {
        let first = self.records.first()?;
        let Damage { key, file, cause, what, .. } = &first.damage;
        Some(EventKind::SamplesDamaged {
            replaced: self.replaced,
            left_out: self.left_out,
            key: key.clone(),
            file: file.clone(),
            cause: cause.clone(),
            detail: what.clone(),
        })
    }
}

/// The damaged samples of a running epoch.
#[derive(Debug, Default)]
pub(crate) struct DamageBook(DamageStats);

impl DamageBook {
    /// Records those of a consumed batch.
    pub(crate) fn enter(&mut self, batch: u32, replacements: &[Replacement]) {
        for replacement in replacements {
            match replacement.replaced_by {
                Some(_) => self.0.replaced += 1,
                None => self.0.left_out += 1,
            }
            if self.0.records.len() < DAMAGE_RECORDS_MAX {
                self.0.records.push(DamageRecord::new(batch, replacement));
            }
        }
    }

    pub(crate) fn stats(&self) -> &DamageStats {
        &self.0
    }

    pub(crate) fn take(&mut self) -> DamageStats {
        std::mem::take(&mut self.0)
    }
}

/// A file with one line of JSON for every damaged sample. Each line is appended with one write, so
/// that all previous lines survive a crash.
#[derive(Debug)]
pub(crate) struct Quarantine {
    path: PathBuf,
    file: File,
    dataset: String,
    /// SHA-256 of the dataset's manifest.
    manifest: String,
    /// Samples of this dataset that the file contains.
    known: HashSet<u64>,
}

/// One line.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    dataset: String,
    manifest_sha256: String,
    #[serde(flatten)]
    record: DamageRecord,
}

impl Quarantine {
    /// Opens or creates the file, and reads which samples of the dataset it contains. An incomplete
    /// last line is terminated and ignored, as are lines of other programs.
    pub(crate) fn open(path: &Path, dataset: &Dataset) -> Result<Self, Error> {
        let failed = |source| Error::Quarantine { path: path.to_path_buf(), source };
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() || metadata.len() > QUARANTINE_BYTES_MAX {
            let problem = "it is not a file, or longer than 256 MiB: move it away";
            return Err(failed(std::io::Error::other(problem)));
        }
        let manifest: String =
            dataset.manifest_sha256().iter().map(|byte| format!("{byte:02x}")).collect();
        let mut known = HashSet::new();
        let mut ends_whole = true;
        // Other processes may append to it at the same time.
        let mut lines = BufReader::new((&file).take(QUARANTINE_BYTES_MAX));
        let mut text = Vec::new();
        while lines.read_until(b'\n', &mut text).map_err(failed)? > 0 {
            ends_whole = text.ends_with(b"\n");
            let line = serde_json::from_slice(&text);
            known.extend(line.ok().and_then(|line: Line| {
                (line.manifest_sha256 == manifest).then_some(line.record.damage.sample)
            }));
            text.clear();
        }
        if !ends_whole {
            file.seek(SeekFrom::End(0)).and_then(|_| file.write_all(b"\n")).map_err(failed)?;
        }
        let (path, dataset) = (path.to_path_buf(), dataset.path().display().to_string());
        Ok(Self { path, file, dataset, manifest, known })
    }

    /// Adds the damaged samples of a batch that the file does not contain.
    pub(crate) fn add(&mut self, batch: u32, replacements: &[Replacement]) -> Result<(), Error> {
        for replacement in replacements {
            if !self.known.insert(replacement.damage.sample) {
                continue;
            }
            let line = Line {
                dataset: self.dataset.clone(),
                manifest_sha256: self.manifest.clone(),
                record: DamageRecord::new(batch, replacement),
            };
            let mut text = serde_json::to_vec(&line).expect("numbers and texts are always JSON");
            text.push(b'\n');
            self.file
                .write_all(&text)
                .map_err(|source| Error::Quarantine { path: self.path.clone(), source })?;
        }
        Ok(())
    }
}
