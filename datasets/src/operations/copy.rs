//! Writes samples of datasets into a dataset: the common last stage of all operations that write.
//!
//! Rows are copied as they are stored: coefficient forms and entry points are copied and not
//! rebuilt, and every content is compared with its checksum.

use super::copy_options::{CopyOptions, Progress};
use super::gather::{Input, InputSamples, each_row};
use crate::Error;
use crate::jpeg::form_of;
use crate::writer::{
    ResumeConflict, TOOL, Writer, WriterInput, WriterInputs, WriterOptions, Written, utc_time,
};
use meetpoint_diagnose::Setting;
use meetpoint_format::dataset::{ContentKind, Form, NotConverted, Provenance, Row, Stored};
use meetpoint_kernels::ImageFormat;
use meetpoint_prepare::Dataset;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// A dataset that an operation wrote.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CopySummary {
    /// The dataset.
    pub destination: PathBuf,
    /// Samples in it.
    pub samples: u64,
    /// Bytes of the content of all samples, as they are stored.
    pub image_bytes: u64,
    /// Bytes of the dataset's files.
    pub file_bytes: u64,
    /// Part files.
    pub parts: u64,
    /// Number of labels, including those that no sample has.
    pub labels: u64,
    /// Parts that were retained from a killed operation.
    pub parts_resumed: u64,
    /// Leftovers of killed processes that were removed.
    pub cleaned: Vec<PathBuf>,
    /// Notes on other leftovers, as sentences: parts that were written again, folders that were not
    /// removed.
    pub notes: Vec<String>,
    /// Whether a dataset was replaced.
    pub replaced: bool,
}

impl CopySummary {
    pub(super) fn of(written: Written, parts_resumed: u64) -> Self {
        let manifest = written.manifest;
        Self {
            destination: written.destination,
            samples: manifest.samples,
            image_bytes: manifest.image_bytes,
            file_bytes: written.file_bytes,
            parts: manifest.parts.len() as u64,
            labels: manifest.labels.len() as u64,
            parts_resumed,
            cleaned: written.cleaned,
            notes: written.notes,
            replaced: written.replaced,
        }
    }
}

/// An operation that writes a dataset: its name, options, inputs and labels.
pub(super) struct DatasetWrite<'a> {
    /// Its name, as on the command line.
    pub(super) name: &'static str,
    /// The options that determine the result, by their names on the command line.
    pub(super) options: Vec<(&'static str, String)>,
    pub(super) inputs: &'a [Input],
    /// Samples of the result.
    pub(super) samples: u64,
    /// Names of its labels.
    pub(super) labels: Vec<String>,
}

impl DatasetWrite<'_> {
    /// Writes the samples that `picks` yields, in that order, to the dataset `to`.
    pub(super) fn copy(
        self,
        to: &Path,
        picks: &mut InputSamples<'_>,
        options: &CopyOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<CopySummary, Error> {
        let columns = Arc::new(self.inputs[0].columns.clone());
        let written = self.writer_options(options);
        if let Some(summary) = self.written_before(to, options)? {
            return Ok(summary);
        }
        let kind = columns.kind;
        let mut writer = Writer::create(to, columns, &written)?;
        let parts_resumed = writer.states().len() as u64;
        let mut tally = match writer.states().last() {
            Some(state) => Tally::from_state(state).ok_or_else(|| Error::ResumeDiffers {
                path: writer.place().to_path_buf(),
                difference: Box::new(ResumeConflict::Journal { problem: state.clone() }),
            })?,
            None => Tally::default(),
        };
        let taken_over = writer.samples();
        let mut done = Progress {
            samples_done: taken_over,
            samples: self.samples,
            bytes_done: tally.image_bytes,
        };
        progress(done);
        let skipped = usize::try_from(taken_over).expect("samples that were written");
        let mut picks = picks.skip(skipped);
        let copied = each_row(self.inputs, &mut picks, options, &mut |row| {
            let before = tally;
            tally.add(&row, kind);
            done.samples_done += 1;
            done.bytes_done += row.image.len() as u64;
            writer.push_noting(row, &mut || before.to_state())?;
            progress(done);
            Ok(())
        });
        copied.map_err(|error| writer.with_remains(error))?;
        let (stored, provenance) = (self.stored(&tally), self.provenance());
        Ok(CopySummary::of(writer.finish(self.labels, stored, provenance)?, parts_resumed))
    }

    fn writer_options(&self, options: &CopyOptions) -> WriterOptions {
        let sources = self.inputs.iter().map(|input| input.dataset.path().to_path_buf());
        let inputs = WriterInputs::default()
            .with(WriterInput::Operation, self.step())
            .with(WriterInput::Parents, self.parents())
            .option(Setting::PartSize, Some(options.part_bytes_target));
        WriterOptions {
            force: options.force,
            part_bytes_target: options.part_bytes_target,
            sources: sources.collect(),
            inputs,
            resume: options.resume,
        }
    }

    /// The existing result, if the same operation was completed before and is now resumed.
    fn written_before(
        &self,
        to: &Path,
        options: &CopyOptions,
    ) -> Result<Option<CopySummary>, Error> {
        if !options.resume || !to.exists() {
            return Ok(None);
        }
        let Ok(dataset) = Dataset::open(to) else { return Ok(None) };
        let manifest = dataset.manifest().clone();
        let ours = self.provenance().options;
        let is_ours = ["history", "parents"]
            .into_iter()
            .all(|name| manifest.provenance.options.get(name) == ours.get(name));
        let manifest_bytes = manifest.to_json().len() as u64;
        let parts = manifest.parts.len() as u64;
        Ok(is_ours.then(|| {
            let file_bytes = manifest.parts.iter().map(|part| part.bytes).sum::<u64>();
            let written = Written {
                destination: to.to_path_buf(),
                file_bytes: file_bytes + manifest_bytes,
                manifest,
                cleaned: Vec::new(),
                notes: Vec::new(),
                replaced: false,
            };
            CopySummary::of(written, parts)
        }))
    }

    /// The form of the result, and the number of packed files that were converted.
    ///
    /// Forms and entry points are counted. Other conversions are recorded for a dataset as a whole
    /// and not per sample: if samples are left out, their counts are upper bounds, and the bytes of
    /// files are proportional.
    fn stored(&self, tally: &Tally) -> Stored {
        let form = |input: &Input| input.dataset.manifest().form();
        let forms = self.inputs.iter().map(form);
        let mut stored = Stored {
            form: forms.max_by_key(|form| *form != Form::Jpeg).unwrap_or_default(),
            converted: tally.converted,
            ..Stored::default()
        };
        let (mut samples, mut image_bytes) = (0_u64, 0_u64);
        for input in self.inputs {
            let manifest = input.dataset.manifest();
            samples += manifest.samples;
            image_bytes += manifest.image_bytes;
            let Some(of_input) = &manifest.stored else {
                stored.source_bytes += manifest.image_bytes;
                continue;
            };
            stored.source_bytes += of_input.source_bytes;
            stored.rewritten += of_input.rewritten;
            stored.transcoded += of_input.transcoded;
            if let Some(restarts) = &of_input.restart_markers {
                stored.restart_markers.get_or_insert_default().add(restarts);
            }
            for (reason, count) in &of_input.kept {
                *stored.kept.entry(*reason).or_default() += count;
            }
            let spacing = of_input.entry_points.spacing;
            stored.entry_points.spacing = stored.entry_points.spacing.or(spacing);
        }
        if self.samples < samples {
            stored.rewritten = stored.rewritten.min(self.samples);
            // Which of the files were left out is not known.
            stored.restart_markers = None;
            stored.transcoded = stored.transcoded.min(stored.rewritten);
            stored.kept.values_mut().for_each(|count| *count = (*count).min(self.samples));
            let share = u128::from(stored.source_bytes) * u128::from(tally.image_bytes)
                / u128::from(image_bytes.max(1));
            stored.source_bytes = u64::try_from(share).expect("a part of a u64");
        }
        stored.kept.remove(&NotConverted::NotJpeg);
        if tally.not_jpeg > 0 {
            stored.kept.insert(NotConverted::NotJpeg, tally.not_jpeg);
        }
        stored
    }

    /// The operation with its options, as text.
    fn step(&self) -> String {
        let mut step = self.name.to_owned();
        for (name, value) in &self.options {
            step.push_str(&format!(" {name}={value}"));
        }
        step
    }

    /// The identities of the inputs.
    fn parents(&self) -> String {
        let identities = self.inputs.iter().map(|input| {
            let identity = input.dataset.manifest_sha256();
            identity.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        });
        identities.collect::<Vec<_>>().join(",")
    }

    /// The provenance of the result: operation, inputs and options.
    fn provenance(&self) -> Provenance {
        let mut options = BTreeMap::new();
        let mut recipe = None;
        if let [input] = self.inputs {
            let before = &input.dataset.manifest().provenance;
            options = before.options.clone();
            recipe = before.recipe.clone();
        }
        options.insert("operation".to_owned(), self.name.to_owned());
        options.insert("history".to_owned(), history(options.get("history"), &self.step()));
        options.insert("parents".to_owned(), self.parents());
        let sources = self.inputs.iter().map(|input| input.dataset.path().display().to_string());
        Provenance {
            tool: TOOL.to_owned(),
            source: sources.collect::<Vec<_>>().join(", "),
            skipped: 0,
            options,
            time: Some(utc_time(SystemTime::now())),
            recipe,
        }
    }
}

/// The history of earlier operations, with one more step.
pub(super) fn history(before: Option<&String>, step: &str) -> String {
    match before {
        Some(before) => format!("{before}; {step}"),
        None => step.to_owned(),
    }
}

/// Counts of what was copied.
#[derive(Debug, Clone, Copy, Default, serde::Serialize, serde::Deserialize)]
struct Tally {
    image_bytes: u64,
    /// Samples in a coefficient form.
    converted: u64,
    /// Pictures that are not JPEG.
    not_jpeg: u64,
}

impl Tally {
    fn add(&mut self, row: &Row, kind: ContentKind) {
        self.image_bytes += row.image.len() as u64;
        if form_of(&row.image) != Form::Jpeg {
            self.converted += 1;
        } else if kind == ContentKind::Image {
            let is_jpeg = ImageFormat::of(&row.image) == Some(ImageFormat::Jpeg);
            self.not_jpeg += u64::from(!is_jpeg);
        }
    }

    /// The state to record in the journal at the end of a part.
    fn to_state(self) -> String {
        serde_json::to_string(&self).expect("integers always serialise")
    }

    fn from_state(state: &str) -> Option<Self> {
        serde_json::from_str(state).ok()
    }
}
