//! Samples of datasets into a dataset: the end that all operations which write have in common.
//!
//! Rows are copied as they are stored: coefficient forms and entry points are carried over and not
//! made anew, and every content is held against its checksum on the way.

use super::gather::{Input, Picks, each_row};
use crate::Error;
use crate::jpeg::form_of;
use crate::writer::{PART_BYTES_TARGET, Writer, WriterOptions, Written};
use meetpoint_format::dataset::{Columns, EntryPointsStored, Form, Provenance, Row, Stored};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How to write what comes of an operation.
#[derive(Debug, Clone)]
pub struct CopyOptions {
    /// Replace a dataset at the destination.
    pub force: bool,
    /// Bytes after which the next part begins.
    pub part_bytes_target: u64,
    /// Bytes of rows that are in memory at once; a single row may have more.
    pub memory_bytes: u64,
    /// Threads that read; 0 for as many as the machine has.
    pub threads: usize,
    /// Set from elsewhere to stop: nothing is left behind.
    pub stop: Arc<AtomicBool>,
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self {
            force: false,
            part_bytes_target: PART_BYTES_TARGET,
            memory_bytes: 256 << 20,
            threads: 0,
            stop: Arc::default(),
        }
    }
}

/// How far an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Samples that are done.
    pub samples_done: u64,
    /// All samples to do.
    pub samples: u64,
    /// Bytes of the content of samples that are done.
    pub bytes_done: u64,
}

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
    /// Number of labels; those that no sample has are kept.
    pub labels: u64,
    /// Remains of processes that were killed, removed.
    pub cleaned: Vec<PathBuf>,
    /// Whether a dataset was replaced.
    pub replaced: bool,
}

impl CopySummary {
    pub(super) fn of(written: Written) -> Self {
        let manifest = written.manifest;
        Self {
            destination: written.destination,
            samples: manifest.samples,
            image_bytes: manifest.image_bytes,
            file_bytes: written.file_bytes,
            parts: manifest.parts.len() as u64,
            labels: manifest.labels.len() as u64,
            cleaned: written.cleaned,
            replaced: written.replaced,
        }
    }
}

/// What an operation makes: from what, called what, with which labels.
pub(super) struct Deed<'a> {
    /// Its name, as on the command line.
    pub(super) name: &'static str,
    /// What decided on the result, by the names of the command line.
    pub(super) options: Vec<(&'static str, String)>,
    pub(super) inputs: &'a [Input],
    /// Samples of the result.
    pub(super) samples: u64,
    /// Names of its labels.
    pub(super) labels: Vec<String>,
}

impl Deed<'_> {
    /// Writes the samples that `picks` names, in that order, to the dataset `to`.
    pub(super) fn copy(
        self,
        to: &Path,
        picks: &mut Picks<'_>,
        options: &CopyOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<CopySummary, Error> {
        let columns = Arc::new(self.columns());
        let sources = self.inputs.iter().map(|input| input.dataset.path().to_path_buf()).collect();
        let mut writer = Writer::create(
            to,
            columns,
            &WriterOptions {
                force: options.force,
                part_bytes_target: options.part_bytes_target,
                sources,
            },
        )?;
        let mut tally = Tally::default();
        let mut done = Progress { samples: self.samples, ..Progress::default() };
        progress(done);
        each_row(self.inputs, picks, options, &mut |row| {
            tally.add(&row);
            done.samples_done += 1;
            done.bytes_done += row.image.len() as u64;
            writer.push(row)?;
            progress(done);
            Ok(())
        })?;
        let (stored, provenance) = (self.stored(&tally), self.provenance());
        Ok(CopySummary::of(writer.finish(self.labels, stored, provenance)?))
    }

    /// The columns, which all inputs share.
    fn columns(&self) -> Columns {
        self.inputs[0].dataset.columns().clone()
    }

    /// In which form the result is, and what became of the files it was packed from.
    ///
    /// Forms and entry points are counted. What else became of a file is known of a dataset as a
    /// whole and not of a sample: where samples are left out, these are the most that there may be,
    /// and bytes of files in proportion.
    fn stored(&self, tally: &Tally) -> Stored {
        let form = |input: &Input| input.dataset.manifest().form();
        let forms = self.inputs.iter().map(form);
        let mut stored = Stored {
            form: forms.max_by_key(|form| *form != Form::Jpeg).unwrap_or_default(),
            converted: tally.converted,
            ..Stored::default()
        };
        let mut samples = 0_u64;
        let mut image_bytes = 0_u64;
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
            for (reason, count) in &of_input.kept {
                *stored.kept.entry(*reason).or_default() += count;
            }
            let spacing = of_input.entry_points.spacing;
            stored.entry_points.spacing = stored.entry_points.spacing.or(spacing);
        }
        if self.samples < samples {
            stored.rewritten = stored.rewritten.min(self.samples);
            stored.transcoded = stored.transcoded.min(stored.rewritten);
            stored.kept.values_mut().for_each(|count| *count = (*count).min(self.samples));
            let share = u128::from(stored.source_bytes) * u128::from(tally.image_bytes)
                / u128::from(image_bytes.max(1));
            stored.source_bytes = u64::try_from(share).expect("a part of a u64");
        }
        stored
    }

    /// What was done to what.
    fn provenance(&self) -> Provenance {
        let mut options = BTreeMap::new();
        if let [input] = self.inputs {
            options = input.dataset.manifest().provenance.options.clone();
        }
        let tool = concat!("meetpoint ", env!("CARGO_PKG_VERSION"));
        let mut step = format!("{tool} {}", self.name);
        for (name, value) in &self.options {
            step.push_str(&format!(" {name}={value}"));
        }
        // What was done before stays in front.
        let history = match options.get("history") {
            Some(before) => format!("{before}; {step}"),
            None => step,
        };
        options.insert("operation".to_owned(), self.name.to_owned());
        options.insert("history".to_owned(), history);
        let described = self.inputs.iter().map(|input| {
            let identity = input.dataset.manifest_sha256();
            identity.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        });
        options.insert("parents".to_owned(), described.collect::<Vec<_>>().join(","));
        let sources = self.inputs.iter().map(|input| input.dataset.path().display().to_string());
        Provenance {
            tool: tool.to_owned(),
            source: sources.collect::<Vec<_>>().join(", "),
            skipped: 0,
            options,
        }
    }
}

/// What was copied, counted.
#[derive(Debug, Default)]
struct Tally {
    image_bytes: u64,
    /// Samples in a coefficient form.
    converted: u64,
}

impl Tally {
    fn add(&mut self, row: &Row) {
        self.image_bytes += row.image.len() as u64;
        self.converted += u64::from(form_of(&row.image) != Form::Jpeg);
    }
}
