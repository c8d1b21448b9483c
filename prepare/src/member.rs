//! One folder of a dataset: its manifest, its index and the files behind them.
//!
//! Samples, record batches and parts are numbered from 0; [`crate::Dataset`] numbers them over all
//! its folders.

use crate::contents::Contents;
use crate::keys::Keys;
use crate::{Error, KeyLookup};
use arrow_array::RecordBatch;
use meetpoint_format::dataset::{
    Columns, DatasetError, Index, KeyedRows, MANIFEST_BYTES_MAX, MANIFEST_NAME, Manifest,
    PartBytes, PartEntry, PartLayout, SampleLocation,
};
use meetpoint_storage::files::{FileSet, FileState, open_regular, read_at_most};
use meetpoint_storage::{Error as StorageError, is_of_the_file};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Number of parts whose footers take longer to read than starting a thread takes.
const PARTS_PER_THREAD: usize = 64;
/// Maximum number of threads that read footers.
const OPEN_THREADS_MAX: usize = 8;

/// Opens a file of a dataset by its path.
pub type OpenFile<'a> = dyn Fn(&Path) -> io::Result<File> + Sync + 'a;

/// One folder, opened for reading.
#[derive(Debug)]
pub(crate) struct Member {
    path: PathBuf,
    index: Index,
    parts: Parts,
    manifest_sha256: [u8; 32],
    keys: OnceLock<Keys>,
    /// The files of images that are not in the parts.
    contents: Option<Contents>,
}

/// The files of the parts, in the order of the manifest.
#[derive(Debug)]
struct Parts(FileSet);

impl PartBytes for Parts {
    fn part_bytes(&self, part: usize) -> io::Result<u64> {
        Ok(self.0.file_bytes(part))
    }

    fn read_exact_at(&self, part: usize, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(part, offset, into)
    }
}

impl Member {
    /// Opens the folder: reads the manifest and the footers of the parts.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Open { path: path.to_path_buf(), source };
        if !std::fs::metadata(path).map_err(failed)?.is_dir() {
            let problem = "it is not a folder";
            return Err(Error::NotADataset { path: path.to_path_buf(), problem });
        }
        Self::open_with(path, &open_regular)
    }

    /// Opens a folder with a function that opens the manifest and the parts.
    pub(crate) fn open_with(path: &Path, open: &OpenFile<'_>) -> Result<Self, Error> {
        let text = read_manifest(path, open)?;
        let damaged = |source| Error::Dataset { path: path.to_path_buf(), source };
        let manifest = Manifest::from_json(&text).map_err(damaged)?;
        let (parts, layouts) = open_parts(path, &manifest.parts, open)?;
        let index = Index::of_layouts(manifest, layouts).map_err(damaged)?;
        let manifest_sha256 = Sha256::digest(&text).into();
        let contents = index.root().map(Contents::open).transpose()?;
        let (path, keys) = (path.to_path_buf(), OnceLock::new());
        Ok(Self { path, index, parts, manifest_sha256, keys, contents })
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        self.index.manifest()
    }

    /// SHA-256 of `dataset.json`.
    pub(crate) fn manifest_sha256(&self) -> [u8; 32] {
        self.manifest_sha256
    }

    /// Whether `dataset.json` is unchanged since it was opened.
    pub(crate) fn is_unchanged(&self) -> bool {
        let now = read_manifest(&self.path, &open_regular).map(|text| Sha256::digest(&text));
        now.is_ok_and(|now| now[..] == self.manifest_sha256)
    }

    pub(crate) fn len(&self) -> u64 {
        self.manifest().samples
    }

    pub(crate) fn record_batches(&self) -> usize {
        self.index.record_batches()
    }

    pub(crate) fn columns(&self) -> &Arc<Columns> {
        self.index.columns()
    }

    pub(crate) fn part_path(&self, part: usize) -> PathBuf {
        self.path.join(&self.manifest().parts[part].file)
    }

    /// The files outside of the parts.
    pub(crate) fn contents(&self) -> Option<&Contents> {
        self.contents.as_ref()
    }

    pub(crate) fn keep_entry_points(&self, bytes_max: u64) {
        self.index.keep_entry_points(bytes_max);
    }

    pub(crate) fn entry_points_bytes(&self) -> u64 {
        self.index.entry_points_bytes()
    }

    pub(crate) fn locate(&self, sample: u64) -> Result<SampleLocation, Error> {
        self.index.locate(sample, &self.parts).map_err(|source| self.damaged(source))
    }

    pub(crate) fn batch_of(&self, sample: u64) -> Result<(usize, usize), Error> {
        self.index.batch_of(sample).map_err(|source| self.damaged(source))
    }

    pub(crate) fn content_of(&self, record_batch: usize) -> Option<(usize, Range<u64>)> {
        self.index.content_of(record_batch)
    }

    pub(crate) fn samples_of(&self, record_batch: usize) -> Range<u64> {
        self.index.samples_of(record_batch)
    }

    pub(crate) fn keyed_rows(&self, record_batch: usize) -> Result<KeyedRows, Error> {
        let read = self.index.keyed_rows(record_batch, &self.parts);
        read.map_err(|source| self.damaged(source))
    }

    pub(crate) fn keys_of(&self, record_batch: usize) -> Result<Vec<String>, Error> {
        let keys = self.index.keys(record_batch, &self.parts);
        keys.map_err(|source| self.damaged(source))
    }

    pub(crate) fn extra(
        &self,
        record_batch: usize,
        projection: Option<&[usize]>,
    ) -> Result<RecordBatch, Error> {
        let read = self.index.extra(record_batch, projection, &self.parts);
        read.map_err(|source| self.damaged(source))
    }

    /// The samples that may have a key; `None` without an index of keys.
    pub(crate) fn candidates(&self, key: &str) -> Result<Option<Vec<u64>>, Error> {
        self.keys().candidates(key, &self.path)
    }

    /// The sample with a key, by scanning all keys.
    pub(crate) fn scan(&self, key: &str) -> Result<Option<u64>, Error> {
        self.index.find(key, &self.parts).map_err(|source| self.damaged(source))
    }

    pub(crate) fn key_lookup(&self) -> KeyLookup {
        self.keys().lookup()
    }

    /// The index of keys, opened on first use.
    fn keys(&self) -> &Keys {
        self.keys.get_or_init(|| Keys::open(&self.path, self.manifest_sha256, self.len()))
    }

    /// Reads bytes of a part synchronously.
    pub(crate) fn read_part(
        &self,
        part: usize,
        offset: u64,
        into: &mut [u8],
    ) -> Result<(), StorageError> {
        self.parts.read_exact_at(part, offset, into).map_err(|source| {
            let (path, wanted) = (self.part_path(part), into.len());
            match self.parts.0.file_bytes_now(part) {
                Ok(bytes) if source.kind() == ErrorKind::UnexpectedEof => {
                    let got = bytes.saturating_sub(offset).min(wanted as u64) as usize;
                    StorageError::ShortRead { path, offset, wanted, got }
                }
                _ => StorageError::Io { action: "read", path, offset, bytes: wanted, source },
            }
        })
    }

    /// The current state of the file of a part; `None` if it cannot be determined.
    pub(crate) fn part_state(&self, part: usize) -> Option<FileState> {
        self.parts.0.file_state(part).ok()
    }

    fn damaged(&self, source: DatasetError) -> Error {
        Error::Dataset { path: self.path.clone(), source }
    }
}

/// Opens parts and reads their footers, on several threads if there are many.
fn open_parts(
    path: &Path,
    entries: &[PartEntry],
    open: &OpenFile<'_>,
) -> Result<(Parts, Vec<PartLayout>), Error> {
    let some = |entries: &[PartEntry]| {
        let files = FileSet::open_with(entries.iter().map(|part| path.join(&part.file)), &open);
        let parts = Parts(files.map_err(|error| missing_part(path, error))?);
        let read = |(part, entry)| PartLayout::read(part, entry, &parts);
        let layouts = entries.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>();
        match layouts {
            Ok(layouts) => Ok((parts, layouts)),
            Err(source) => Err(Error::Dataset { path: path.to_path_buf(), source }),
        }
    };
    if entries.len() < 2 * PARTS_PER_THREAD {
        return some(entries);
    }
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = (entries.len() / PARTS_PER_THREAD).min(cores).min(OPEN_THREADS_MAX);
    let mut shares = entries.chunks(entries.len().div_ceil(threads));
    let own = shares.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let others: Vec<_> = shares.map(|share| scope.spawn(move || some(share))).collect();
        let (mut parts, mut layouts) = some(own)?;
        for other in others {
            let (files, read) = other.join().expect("reading footers does not panic")?;
            parts.0.append(files.0);
            layouts.extend(read);
        }
        Ok((parts, layouts))
    })
}

/// The error for a part that cannot be opened: damage of the dataset, unless this process is at a
/// limit.
fn missing_part(path: &Path, error: StorageError) -> Error {
    match error {
        StorageError::Open { path: file, source } if is_of_the_file(&source) => {
            let part = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Error::Dataset { path: path.to_path_buf(), source: DatasetError::Io { part, source } }
        }
        error => error.into(),
    }
}

/// Why the manifest cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{MANIFEST_NAME}: {0}")]
struct ManifestError(#[source] io::Error);

fn read_manifest(path: &Path, open: &OpenFile<'_>) -> Result<Vec<u8>, Error> {
    let failed = |source| Error::Open { path: path.to_path_buf(), source };
    let opened = open(&path.join(MANIFEST_NAME));
    match opened.and_then(|file| read_at_most(file, MANIFEST_BYTES_MAX)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let problem = "it holds no dataset.json";
            Err(Error::NotADataset { path: path.to_path_buf(), problem })
        }
        Err(error) => Err(failed(io::Error::new(error.kind(), ManifestError(error)))),
        Ok(text) => Ok(text),
    }
}
