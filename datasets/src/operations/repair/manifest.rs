//! Recovers or reconstructs the manifest of a damaged dataset.

use super::super::copy::history;
use crate::error::OperationError;
use crate::jpeg::{entry_points, form_of};
use crate::message::Message;
use crate::writer::{TOOL, utc_time};
use crate::{Error, natural_order};
use meetpoint_diagnose::Remedy;
use meetpoint_format::dataset::{
    EntryPointSpacing, EntryPointsStored, Form, MANIFEST_BYTES_MAX, MANIFEST_NAME, Manifest,
    NotConverted, PartEntry, Provenance, Row, Stored,
};
use meetpoint_kernels::ImageFormat;
use meetpoint_kernels::jpeg::entry_points::decode;
use meetpoint_prepare::original;
use meetpoint_storage::files::read_regular;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

/// Maximum label of a dataset whose manifest is lost, since every label below it gets a name.
const LABEL_MAX: i32 = 1 << 24;

/// The state of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ManifestState {
    /// Intact.
    Sound,
    /// Damaged; the readable part was used.
    Damaged,
    /// It exists, but none of it could be read.
    Unreadable,
    /// It does not exist.
    Lost,
}

/// The source of the names of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabelsFrom {
    /// From the manifest.
    Manifest,
    /// From a damaged manifest: check them.
    DamagedManifest,
    /// From the first folder of the keys, which was the same for all samples of a label. Labels
    /// without a remaining sample are named by their number.
    Keys,
    /// The names are unknown, so the labels' numbers are used.
    Numbers,
    /// There are no labels.
    Nowhere,
}

/// What is known about the dataset before the repair.
pub(super) struct PriorManifest {
    pub(super) state: ManifestState,
    manifest: Option<Manifest>,
}

impl PriorManifest {
    /// Reads as much of the manifest as possible.
    pub(super) fn read(from: &Path) -> Result<Self, Error> {
        if !from.is_dir() {
            let problem = "it is not a folder";
            let path = from.to_path_buf();
            return Err(meetpoint_prepare::Error::NotADataset { path, problem }.into());
        }
        let lost = Self { state: ManifestState::Lost, manifest: None };
        let unreadable = Self { state: ManifestState::Unreadable, manifest: None };
        let text = match read_regular(&from.join(MANIFEST_NAME), MANIFEST_BYTES_MAX) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(lost),
            Err(_) => return Ok(unreadable),
            Ok(text) => text,
        };
        if let Ok(manifest) = Manifest::from_json(&text) {
            return Ok(Self { state: ManifestState::Sound, manifest: Some(manifest) });
        }
        Ok(match unchecked(&text) {
            Some(manifest) => Self { state: ManifestState::Damaged, manifest: Some(manifest) },
            None => unreadable,
        })
    }

    /// The parts that the manifest lists, or else those in the folder, by name.
    pub(super) fn parts(&self, from: &Path) -> Result<Vec<(String, Option<&PartEntry>)>, Error> {
        if self.state == ManifestState::Sound
            && let Some(manifest) = &self.manifest
        {
            let entries = manifest.parts.iter();
            return Ok(entries.map(|entry| (entry.file.clone(), Some(entry))).collect());
        }
        let failed = |source| Error::Source { path: from.to_path_buf(), source };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(from).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if let Some(name) = name.to_str().filter(|name| is_part_name(name)) {
                names.push(name.to_owned());
            }
        }
        if names.is_empty() {
            let problem = Message::from("it has neither a readable manifest nor parts")
                .remedy(Remedy::advice("restore a part").or("pack again"));
            return Err(OperationError::Hopeless { path: from.to_path_buf(), problem }.into());
        }
        names.sort_by(|left, right| natural_order(left, right));
        Ok(names.into_iter().map(|name| (name, None)).collect())
    }

    /// Starts to collect the contents of the new manifest.
    pub(super) fn labels(&self) -> RecoveredSamples {
        let known = self.manifest.as_ref().map(|manifest| manifest.labels.clone());
        let from = match self.state {
            ManifestState::Sound => LabelsFrom::Manifest,
            ManifestState::Damaged | ManifestState::Unreadable | ManifestState::Lost => {
                LabelsFrom::DamagedManifest
            }
        };
        RecoveredSamples { known, from, ..RecoveredSamples::default() }
    }

    /// The form of the recovered samples.
    pub(super) fn stored(&self, saved: &RecoveredSamples, samples: u64) -> Stored {
        let before = self.manifest.as_ref().and_then(|manifest| manifest.stored.clone());
        let counted = Stored {
            form: saved.form,
            source_bytes: saved.source_bytes,
            converted: saved.converted,
            entry_points: EntryPointsStored { spacing: saved.spacing, samples: 0, bytes: 0 },
            ..Stored::default()
        };
        let mut stored = Stored { converted: saved.converted, ..before.unwrap_or(counted) };
        stored.rewritten = stored.rewritten.min(samples);
        let all = self.manifest.as_ref().map(|manifest| manifest.samples);
        stored.restart_markers = stored.restart_markers.filter(|_| all == Some(samples));
        stored.transcoded = stored.transcoded.min(stored.rewritten);
        stored.kept.values_mut().for_each(|count| *count = (*count).min(samples));
        stored.kept.remove(&NotConverted::NotJpeg);
        if saved.not_jpeg > 0 {
            stored.kept.insert(NotConverted::NotJpeg, saved.not_jpeg);
        }
        stored
    }

    /// The provenance of the repaired dataset.
    pub(super) fn provenance(&self, from: &Path, samples_lost: u64) -> Provenance {
        let before = self.manifest.as_ref().map(|manifest| manifest.provenance.clone());
        let (mut options, recipe) =
            before.map_or_else(Default::default, |before| (before.options, before.recipe));
        let step = format!("repair lost={samples_lost}");
        let history = history(options.get("history"), &step);
        options.insert("operation".to_owned(), "repair".to_owned());
        options.insert("history".to_owned(), history);
        Provenance {
            tool: TOOL.to_owned(),
            source: from.display().to_string(),
            skipped: samples_lost,
            options,
            time: Some(utc_time(SystemTime::now())),
            recipe,
        }
    }
}

/// Parses a manifest without checking its checksum.
fn unchecked(text: &[u8]) -> Option<Manifest> {
    let mut value: serde_json::Value = serde_json::from_slice(text).ok()?;
    value.as_object_mut()?.remove(meetpoint_format::dataset::SELF_SHA256);
    serde_json::from_value(value).ok()
}

fn is_part_name(name: &str) -> bool {
    let number = name.strip_prefix("part-").and_then(|rest| rest.strip_suffix(".arrow"));
    number.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// What is known about the recovered samples.
pub(super) struct RecoveredSamples {
    /// Names of the labels, if a manifest has them.
    known: Option<Vec<String>>,
    from: LabelsFrom,
    /// First folder of the keys of each label; `None` if there are several or none.
    folders: BTreeMap<i32, Option<String>>,
    form: Form,
    converted: u64,
    not_jpeg: u64,
    source_bytes: u64,
    spacing: Option<EntryPointSpacing>,
}

impl Default for RecoveredSamples {
    fn default() -> Self {
        Self {
            known: None,
            from: LabelsFrom::Nowhere,
            folders: BTreeMap::new(),
            form: Form::Jpeg,
            converted: 0,
            not_jpeg: 0,
            source_bytes: 0,
            spacing: None,
        }
    }
}

impl RecoveredSamples {
    /// Adds a sample; the error is why it cannot be recovered.
    pub(super) fn add(&mut self, row: &Row) -> Result<(), String> {
        if let Some(label) = row.label {
            let known = self.known.as_ref().map(|names| names.len());
            let is_known = |names| usize::try_from(label).is_ok_and(|label| label < names);
            if known.is_some_and(|names| !is_known(names)) {
                return Err(format!("label {label} has no name in dataset.json"));
            }
            if !(0..=LABEL_MAX).contains(&label) {
                return Err(format!("label {label}, the greatest without names is {LABEL_MAX}"));
            }
            let folder = row.key.split_once('/').map(|(folder, _)| folder.to_owned());
            let first = self.folders.entry(label).or_insert_with(|| folder.clone());
            if *first != folder {
                *first = None;
            }
        }
        let form = form_of(&row.image);
        let file_bytes = if form == Form::Jpeg || self.known.is_some() {
            row.image.len()
        } else {
            original(&row.image).map_or(row.image.len(), |file| file.len())
        };
        self.source_bytes += file_bytes as u64;
        if form == Form::Jpeg {
            let is_jpeg = ImageFormat::of(&row.image) == Some(ImageFormat::Jpeg);
            self.not_jpeg += u64::from(!is_jpeg);
        } else {
            self.form = form;
            self.converted += 1;
        }
        if let (None, Some(points)) = (self.spacing, &row.entry_points) {
            self.spacing = Some(spacing_of(&row.image, points));
        }
        Ok(())
    }

    /// The names of the labels, and their source.
    pub(super) fn names(&self) -> (Vec<String>, LabelsFrom) {
        if let Some(known) = &self.known {
            return (known.clone(), self.from);
        }
        let Some((last, _)) = self.folders.last_key_value() else {
            return (Vec::new(), LabelsFrom::Nowhere);
        };
        // A label without a remaining sample has no folder to take its name from.
        let name = |label: i32| match self.folders.get(&label) {
            Some(folder) => folder.clone(),
            None => Some(label.to_string()),
        };
        let names: Option<Vec<String>> = (0..=*last).map(name).collect();
        let is_distinct = |names: &Vec<String>| {
            let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
            distinct.len() == names.len() && names.iter().all(|name| !name.is_empty())
        };
        match names.filter(is_distinct) {
            Some(names) => (names, LabelsFrom::Keys),
            None => ((0..=*last).map(|label| label.to_string()).collect(), LabelsFrom::Numbers),
        }
    }
}

/// The spacing of a file's entry points.
fn spacing_of(file: &[u8], points: &[u8]) -> EntryPointSpacing {
    let by_row = entry_points(file, EntryPointSpacing::McuRow);
    let mcus = decode(points, &mut Vec::new()).map(|head| head.spacing).unwrap_or(0);
    match mcus {
        0 => EntryPointSpacing::McuRow,
        _ if by_row.as_deref() == Some(points) => EntryPointSpacing::McuRow,
        mcus => EntryPointSpacing::Mcus(mcus),
    }
}
