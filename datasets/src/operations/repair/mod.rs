//! Recovers samples of a dataset whose manifest is lost or whose parts are damaged.
//!
//! In reading order: [`repair`], `part` (the rows of a part that are proven intact), `manifest`
//! (the recovered or reconstructed `dataset.json`).

mod manifest;
mod part;

use super::copy::CopySummary;
use super::copy_options::{CopyOptions, Progress};
use crate::Error;
use crate::error::OperationError;
use crate::key_index::index_keys;
use crate::message::Message;
use crate::verify::{VerifyOptions, verify_with};
use crate::writer::{Writer, WriterOptions};
pub use manifest::{LabelsFrom, ManifestState};
use manifest::{PriorManifest, RecoveredSamples};
use meetpoint_diagnose::{Command, Remedy};
use meetpoint_format::dataset::{Columns, locates_content};
use meetpoint_format::key_index::KEY_INDEX_NAME;
use meetpoint_prepare::Dataset;
use part::{Part, RepairLosses};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The destination of the recovered samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepairTo {
    /// A separate dataset; the damaged one is only read.
    Dataset(PathBuf),
    /// The damaged dataset, which is replaced once the new one is complete.
    InPlace,
}

/// The recovered and the lost samples.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RepairSummary {
    /// The repaired dataset; `None` if a dataset to be repaired in place was intact.
    pub repaired: Option<CopySummary>,
    /// Number of recovered samples.
    pub samples: u64,
    /// Number of lost samples, as far as it is known.
    pub samples_lost: u64,
    /// What was lost, in order.
    pub lost: Vec<Lost>,
    /// The state of `dataset.json`.
    pub manifest: ManifestState,
    /// The source of the names of the labels.
    pub labels_from: LabelsFrom,
    /// Whether the index of keys was rebuilt in place, because only the index was damaged.
    pub keys_indexed: bool,
}

/// Samples that were not recovered.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Lost {
    /// Part file.
    pub part: String,
    /// The first of its rows that are lost.
    pub first_row: u64,
    /// Number of consecutive lost rows; 0 if unknown.
    pub samples: u64,
    /// Key, if this is a single sample whose key is known.
    pub key: Option<String>,
    /// Why.
    pub reason: String,
}

/// Writes every sample of `from` that is proven intact to a dataset, and lists the others.
///
/// Without a manifest, the parts are those in the folder, in the order of their names, and names of
/// labels are taken from the keys if those start with folders. Of two samples with the same key,
/// the first is recovered. Memory: 24 bytes per sample, and a record batch.
pub fn repair(
    from: &Path,
    to: &RepairTo,
    options: &CopyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<RepairSummary, Error> {
    if *to == RepairTo::InPlace
        && let Some(summary) = nothing_to_do(from, options, progress)?
    {
        return Ok(summary);
    }
    let before = PriorManifest::read(from)?;
    let mut found = RepairLosses::default();
    let parts = open_parts(from, &before, &mut found)?;
    let hopeless =
        |problem: Message| OperationError::Hopeless { path: from.to_path_buf(), problem };
    let columns = columns(&parts).ok_or_else(|| {
        hopeless(
            Message::from("none of its parts has a readable footer, which locates the rows")
                .remedy(Remedy::advice("restore a part").or("pack again")),
        )
    })?;
    if columns.extra.fields().iter().any(|field| locates_content(field)) {
        return Err(hopeless(
            Message::from("its content is in other files").remedy(Remedy::run(Command::Index)),
        )
        .into());
    }
    let (path, sources, force) = match to {
        RepairTo::Dataset(to) => (to.as_path(), vec![from.to_path_buf()], options.force),
        RepairTo::InPlace => (from, Vec::new(), true),
    };
    let part_bytes_target = options.part_bytes_target;
    let written = WriterOptions { force, part_bytes_target, sources, ..Default::default() };
    let mut writer = Writer::create(path, Arc::new(columns), &written)?;
    let mut saved = before.labels();
    save(&parts, &mut writer, &mut saved, &mut found, options, progress)?;
    let samples = writer.samples();
    if samples == 0 {
        return Err(hopeless("no sample of it can be proven intact".into()).into());
    }
    let samples_lost = found.lost.iter().map(|lost| lost.samples).sum();
    let is_sound = found.lost.is_empty()
        && before.state == ManifestState::Sound
        && parts.iter().all(|part| part.is_proven && part.has_sound_head());
    let (labels, labels_from) = saved.names();
    let repaired = if is_sound && *to == RepairTo::InPlace {
        None
    } else {
        let stored = before.stored(&saved, samples);
        let provenance = before.provenance(from, samples_lost);
        Some(CopySummary::of(writer.finish(labels, stored, provenance)?, 0))
    };
    let RepairLosses { lost } = found;
    let manifest = before.state;
    Ok(RepairSummary {
        repaired,
        samples,
        samples_lost,
        lost,
        manifest,
        labels_from,
        keys_indexed: false,
    })
}

/// The result for a dataset whose parts and manifest are sound and need not be written again;
/// rebuilds a damaged index of keys. `None` if there is something to repair.
fn nothing_to_do(
    path: &Path,
    options: &CopyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<RepairSummary>, Error> {
    if !path.is_dir() {
        return Ok(None);
    }
    let look = VerifyOptions {
        threads: options.threads,
        stop: Arc::clone(&options.stop),
        ..VerifyOptions::default()
    };
    let report = match verify_with(path, &look, &mut |step| {
        // The progress counts samples, since samples are repaired.
        let share = step.bytes_done as f64 / step.bytes.max(1) as f64;
        let samples_done = (share * step.samples as f64) as u64;
        progress(Progress { samples_done, samples: step.samples, bytes_done: step.bytes_done });
    }) {
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        // A dataset that does not open is examined row by row.
        Err(_) => return Ok(None),
        Ok(report) => report,
    };
    if report.problems.iter().any(|problem| problem.file != KEY_INDEX_NAME) {
        return Ok(None);
    }
    let keys_indexed = !report.is_sound();
    if keys_indexed {
        index_keys(path, &options.stop, &mut |_| ())?;
    }
    let has_labels = !Dataset::open(path)?.manifest().labels.is_empty();
    Ok(Some(RepairSummary {
        repaired: None,
        samples: report.samples,
        samples_lost: 0,
        lost: Vec::new(),
        manifest: ManifestState::Sound,
        labels_from: if has_labels { LabelsFrom::Manifest } else { LabelsFrom::Nowhere },
        keys_indexed,
    }))
}

/// Writes the sound rows of the parts that have the writer's columns.
fn save(
    parts: &[Part],
    writer: &mut Writer,
    saved: &mut RecoveredSamples,
    found: &mut RepairLosses,
    options: &CopyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let mut keys = Keys::default();
    let mut done =
        Progress { samples: parts.iter().map(Part::samples).sum(), ..Default::default() };
    progress(done);
    for part in parts {
        if part.columns() != writer.columns() {
            let reason = "its columns are not those of the other parts".to_owned();
            let (part, samples) = (part.name().to_owned(), part.samples());
            found.lost.push(Lost { part, first_row: 0, samples, key: None, reason });
            continue;
        }
        part.rows(found, &mut |found, place, row| {
            if options.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            done.samples_done += 1;
            done.bytes_done += row.image.len() as u64;
            progress(done);
            let reason = keys.add(&row.key).or_else(|| saved.add(&row).err());
            match reason {
                None => writer.push(row),
                Some(reason) => {
                    let (part, key) = (part.name().to_owned(), Some(row.key));
                    found.lost.push(Lost { part, first_row: place, samples: 1, key, reason });
                    Ok(())
                }
            }
        })?;
    }
    Ok(())
}

/// Opens the parts that have a footer; the others are lost.
fn open_parts(
    from: &Path,
    before: &PriorManifest,
    found: &mut RepairLosses,
) -> Result<Vec<Part>, Error> {
    let mut parts = Vec::new();
    for (name, listed) in before.parts(from)? {
        match Part::open(from, &name, listed) {
            Ok(part) => parts.push(part),
            Err(problem) => {
                let reason = format!("{problem}; restore it or pack again, its rows are lost here");
                let samples = listed.map_or(0, |entry| entry.samples);
                found.lost.push(Lost { part: name, first_row: 0, samples, key: None, reason });
            }
        }
    }
    Ok(parts)
}

/// The columns that most samples have, among the parts whose footer matches the manifest, or among
/// all parts if none does.
fn columns(parts: &[Part]) -> Option<Columns> {
    let any_proven = parts.iter().any(|part| part.is_proven);
    let voters = || parts.iter().filter(|part| part.is_proven || !any_proven);
    let samples_with = |columns: &Columns| -> u64 {
        voters().filter(|part| part.columns() == columns).map(Part::samples).sum()
    };
    // Ties go to the first part.
    let most = voters()
        .map(Part::columns)
        .reduce(|best, other| if samples_with(other) > samples_with(best) { other } else { best });
    most.cloned()
}

/// Keys that were seen, by the first half of their SHA-256.
#[derive(Default)]
struct Keys {
    seen: HashSet<[u8; 16]>,
}

impl Keys {
    /// Adds a key; returns the problem if it was seen before.
    fn add(&mut self, key: &str) -> Option<String> {
        let digest = Sha256::digest(key.as_bytes());
        let is_first = self.seen.insert(digest[..16].try_into().expect("half of 32 bytes"));
        (!is_first).then(|| "an earlier sample has the same key".to_owned())
    }
}
