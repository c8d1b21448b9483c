//! Converts the samples of a source to rows of a dataset, and counts them.

use super::census::Census;
use super::check::Verdict;
use super::pipeline::PipelineEvent;
use super::{OnError, PackOptions, PackProgress};
use crate::LeftOut;
use crate::jpeg::{ConversionOutcome, Converted};
use crate::source::{Item, Size};
use crate::writer_inputs::ResumeConflict;
use crate::{Error, Writer};
use meetpoint_format::dataset::{Row, Stored};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::Ordering;

/// The position of a pack at the end of a part, from which another run resumes.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// Samples of the source that were packed or left out.
    samples: u64,
    /// Key of the last of them; empty if there is none.
    last_key: String,
    /// Counts of their conversions.
    stored: Stored,
    /// Samples that were left out since the previous part ended.
    unreadable: Vec<LeftOut>,
}

/// A pack in progress.
pub(super) struct PackState<'a> {
    pub(super) writer: Writer,
    /// Counts of the conversions of packed samples.
    pub(super) stored: Stored,
    /// Samples that the source cannot read.
    pub(super) left_out: Vec<LeftOut>,
    /// Samples that cannot be read or are invalid.
    pub(super) found: Vec<LeftOut>,
    /// Files that are not samples.
    pub(super) not_samples: Vec<LeftOut>,
    /// Where this pack started; samples before it are already packed.
    pub(super) passed: u64,
    /// Key of the last of these.
    passed_key: String,
    /// Number of entries of `found` that are recorded in the journal.
    noted: usize,
    from: &'a Path,
    options: &'a PackOptions,
    done: PackProgress,
    progress: &'a mut dyn FnMut(PackProgress),
    census: Census,
    last_key: String,
}

impl<'a> PackState<'a> {
    /// Starts after the rows that the resumed writer already has.
    pub(super) fn new(
        from: &'a Path,
        size: Size,
        writer: Writer,
        options: &'a PackOptions,
        progress: &'a mut dyn FnMut(PackProgress),
    ) -> Result<Self, Error> {
        let (mut last, mut found) = (State::default(), Vec::new());
        for text in writer.states() {
            last = serde_json::from_str(text).map_err(|error| Error::ResumeDiffers {
                path: writer.place().to_path_buf(),
                difference: Box::new(ResumeConflict::Journal { problem: error.to_string() }),
            })?;
            found.append(&mut last.unreadable);
        }
        if writer.states().is_empty() {
            last.stored.form = options.jpeg.form;
        }
        let done = PackProgress { samples: size.samples, bytes: size.bytes, ..Default::default() };
        progress(done);
        Ok(Self {
            writer,
            stored: last.stored,
            left_out: Vec::new(),
            noted: found.len(),
            found,
            not_samples: Vec::new(),
            passed: last.samples,
            passed_key: last.last_key,
            from,
            options,
            done,
            progress,
            census: Census::default(),
            last_key: String::new(),
        })
    }

    /// Processes the next result.
    pub(super) fn take(&mut self, event: PipelineEvent) -> Result<(), Error> {
        if self.options.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        match event {
            PipelineEvent::Unreadable(left_out) => self.left_out.push(left_out),
            PipelineEvent::NotASample(left_out) => self.not_samples.push(left_out),
            PipelineEvent::Passed(item) => {
                let bytes = item.content.bytes();
                self.census.look_at(&item)?;
                self.end_sample(item.key, bytes);
                if self.done.samples_done == self.passed && self.last_key != self.passed_key {
                    return Err(Error::SourceChanged { path: self.from.to_path_buf() });
                }
            }
            PipelineEvent::Sample(item, bytes, verdict) => {
                self.census.look_at(&item)?;
                match verdict {
                    Verdict::Sound(converted, source_bytes) => {
                        // After an unreadable sample, the others are checked but not written.
                        if self.options.on_error == OnError::Skip || self.is_sound() {
                            self.push(&item, converted, source_bytes)?;
                        }
                    }
                    Verdict::Unreadable(reason) => {
                        let left_out = LeftOut { path: item.name(), reason };
                        self.found.push(left_out);
                    }
                    Verdict::Changed(path) => return Err(Error::SourceChanged { path }),
                    Verdict::Failed(path, source) => return Err(Error::Source { path, source }),
                    Verdict::Interrupted => return Err(Error::Interrupted),
                }
                self.end_sample(item.key, bytes);
            }
        }
        Ok(())
    }

    /// Whether every sample so far can be read.
    pub(super) fn is_sound(&self) -> bool {
        self.left_out.is_empty() && self.found.is_empty()
    }

    /// Samples of the source so far.
    pub(super) fn samples(&self) -> u64 {
        self.done.samples_done + self.left_out.len() as u64
    }

    /// Names of the labels: `named`, the names from the source, or else the labels as digits.
    pub(super) fn labels(&self, named: Vec<String>) -> Result<Vec<String>, Error> {
        self.census.labels(named)
    }

    fn push(&mut self, item: &Item, converted: Converted, bytes: u64) -> Result<(), Error> {
        let Self { writer, stored, found, noted, last_key, done, .. } = self;
        let row = Row {
            key: item.key.clone(),
            image: converted.stored,
            label: item.label,
            entry_points: converted.entry_points,
            extra: item.extra.clone(),
        };
        writer.push_noting(row, &mut || {
            let state = State {
                samples: done.samples_done,
                last_key: last_key.clone(),
                stored: stored.clone(),
                unreadable: found[*noted..].to_vec(),
            };
            *noted = found.len();
            serde_json::to_string(&state).expect("strings and integers always serialise")
        })?;
        count(stored, converted.outcome, bytes);
        Ok(())
    }

    fn end_sample(&mut self, key: String, bytes: u64) {
        self.last_key = key;
        self.done.samples_done += 1;
        self.done.bytes_done += bytes;
        (self.progress)(self.done);
    }
}

/// Counts a sample that is packed.
pub(super) fn count(stored: &mut Stored, outcome: ConversionOutcome, source_bytes: u64) {
    stored.source_bytes += source_bytes;
    stored.converted += u64::from(outcome.is_converted);
    stored.rewritten += u64::from(outcome.is_rewritten);
    stored.transcoded += u64::from(outcome.is_transcoded);
    if let Some(restarts) = &outcome.restarts {
        stored.restart_markers.get_or_insert_default().add(restarts);
    }
    if let Some(reason) = outcome.kept {
        *stored.kept.entry(reason).or_default() += 1;
    }
}
