//! Rows into a dataset that appears whole or not at all.
//!
//! Rows are stored as they come: in which form an image is, and which entry points it has, is
//! decided before. In reading order: [`Writer`], [`WriterOptions`] and [`Written`], then `parts`
//! (rows into part files).

mod parts;

use crate::Error;
use crate::place::{Destination, Replace, Staging};
use crate::source::{ContentKind, SourceSchema, Whence};
use meetpoint_format::dataset::{EntryPointsStored, Manifest, Provenance, Row, Stored, schema};
use parts::Parts;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes after which the next part begins, where nothing else is said.
pub const PART_BYTES_TARGET: u64 = 256 << 20;

/// How to write a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterOptions {
    /// Replace a dataset at the destination.
    pub force: bool,
    /// Bytes after which the next part begins.
    pub part_bytes_target: u64,
    /// Files and folders that are read for it: none may lie in the destination, nor the
    /// destination in one of them.
    pub sources: Vec<PathBuf>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self { force: false, part_bytes_target: PART_BYTES_TARGET, sources: Vec::new() }
    }
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The dataset.
    pub destination: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    /// Bytes of the dataset's files.
    pub file_bytes: u64,
    /// Remains of killed processes that were removed.
    pub cleaned: Vec<PathBuf>,
    /// Whether a dataset was replaced.
    pub replaced: bool,
}

/// A dataset being written, in a folder beside its destination; dropped before it is finished, it
/// leaves nothing behind.
pub struct Writer {
    to: PathBuf,
    destination: Destination,
    staging: Staging,
    parts: Parts,
}

impl Writer {
    /// Begins a dataset of such columns.
    ///
    /// The destination must not exist, or be a dataset and [`WriterOptions::force`] be set; remains
    /// of killed processes that wrote to it are removed.
    pub fn create(
        to: &Path,
        columns: Arc<SourceSchema>,
        options: &WriterOptions,
    ) -> Result<Self, Error> {
        if columns.kind != ContentKind::Image || !columns.extra.fields().is_empty() {
            let problem = "only pictures with a label are written".to_owned();
            let whence = Whence { file: to.display().to_string(), ..Whence::default() };
            return Err(Error::Malformed { whence: Box::new(whence), problem });
        }
        drop(columns);
        let replace = Replace::Dataset { force: options.force };
        let destination = Destination::resolve(&options.sources, to, &replace)?;
        let staging = Staging::create(&destination)?;
        let parts = Parts::new(staging.content(), options.part_bytes_target);
        Ok(Self { to: to.to_path_buf(), destination, staging, parts })
    }

    /// Adds a row. Keys are not compared: that they are unique is for the caller to know.
    pub fn push(&mut self, row: Row) -> Result<(), Error> {
        self.parts.push(row)
    }

    /// Rows so far.
    pub fn samples(&self) -> u64 {
        self.parts.samples()
    }

    /// Writes what is left and the manifest, syncs everything, and lets the dataset appear.
    ///
    /// `labels` are the names of the labels by index. Of `stored`, samples and bytes of the entry
    /// points are counted here; the rest is taken as it is.
    pub fn finish(
        mut self,
        labels: Vec<String>,
        stored: Stored,
        provenance: Provenance,
    ) -> Result<Written, Error> {
        let written = self.parts.finish()?;
        let manifest = Manifest {
            format: schema::FORMAT.to_owned(),
            version: schema::VERSION,
            samples: written.samples,
            image_bytes: written.image_bytes,
            image_bytes_max: written.image_bytes_max,
            labels,
            parts: written.entries,
            stored: Some(Stored {
                entry_points: EntryPointsStored {
                    spacing: stored.entry_points.spacing,
                    samples: written.entry_points,
                    bytes: written.entry_points_bytes,
                },
                ..stored
            }),
            provenance,
        };
        let text = manifest.to_json();
        self.staging.write_manifest(text.as_bytes())?;
        let replaced = self.staging.commit(&self.destination)?;
        Ok(Written {
            destination: self.to,
            file_bytes: manifest.parts.iter().map(|part| part.bytes).sum::<u64>()
                + text.len() as u64,
            manifest,
            cleaned: self.destination.cleaned,
            replaced,
        })
    }
}
