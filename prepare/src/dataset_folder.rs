//! One folder of a dataset: its manifest, its index and the files behind them.
//!
//! Samples, record batches and parts are numbered from 0; [`crate::Dataset`] numbers them over all
//! its folders.

use crate::contents::Contents;
use crate::keys::Keys;
use crate::paths::is_url;
use crate::remote::{RemoteFolder, read_blocking};
use crate::{Error, ExtentFolder, KeyLookup, RemoteRefusal};
use arrow_array::RecordBatch;
use meetpoint_format::dataset::{
    Columns, DatasetError, Index, KeyedRows, MANIFEST_BYTES_MAX, MANIFEST_NAME, Manifest,
    PartBytes, PartEntry, PartLayout, SampleLocation,
};
use meetpoint_storage::files::{FileSet, FileState, open_regular, read_at_most};
use meetpoint_storage::{Error as StorageError, is_of_the_file};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Number of parts whose footers take longer to read than starting a thread takes.
const PARTS_PER_THREAD: usize = 64;
/// Maximum number of threads that read footers.
const OPEN_THREADS_MAX: usize = 8;
/// Maximum number of parts in a store whose footers are read together.
const FOOTERS_AT_ONCE: usize = 32;

/// Opens a file of a dataset by its path.
pub type OpenFile<'a> = dyn Fn(&Path) -> io::Result<File> + Sync + 'a;

/// One folder, opened for reading.
#[derive(Debug)]
pub(crate) struct DatasetFolder {
    path: PathBuf,
    index: Index,
    parts: Parts,
    manifest_sha256: [u8; 32],
    keys: OnceLock<Keys>,
    /// Locked while footers are fetched from a store, so that none is fetched twice.
    fetches_footers: Mutex<()>,
    /// The files of images that are not in the parts.
    contents: Option<Contents>,
}

/// The files of the parts, in the order of the manifest.
#[derive(Debug)]
enum Parts {
    Local(Files),
    Remote(Arc<dyn RemoteFolder>),
    Extents(Arc<ExtentFolder>),
}

/// Files of this machine.
#[derive(Debug)]
struct Files(FileSet);

impl PartBytes for Files {
    fn part_bytes(&self, part: usize) -> io::Result<u64> {
        Ok(self.0.file_bytes(part))
    }

    fn read_exact_at(&self, part: usize, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(part, offset, into)
    }
}

impl PartBytes for Parts {
    fn part_bytes(&self, part: usize) -> io::Result<u64> {
        match self {
            Self::Local(files) => files.part_bytes(part),
            Self::Remote(folder) => folder.part_bytes(part),
            Self::Extents(folder) => Ok(folder.extents().parts()[part].bytes),
        }
    }

    fn read_exact_at(&self, part: usize, offset: u64, into: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Local(files) => files.read_exact_at(part, offset, into),
            Self::Remote(folder) => read_blocking(&**folder, part, offset, into),
            Self::Extents(folder) => {
                // The manifest is file 0.
                folder.read_exact_at(part + 1, offset, into).map_err(|error| match error {
                    StorageError::Io { source, .. } => source,
                    error @ StorageError::ShortRead { .. } => {
                        io::Error::new(ErrorKind::UnexpectedEof, error)
                    }
                    error => io::Error::other(error),
                })
            }
        }
    }
}

impl DatasetFolder {
    /// Opens the folder: reads the manifest and the footers of the parts.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        if is_url(path) {
            let (url, refusal) = (path.to_path_buf(), RemoteRefusal::NotOpened);
            return Err(Error::Remote { url, refusal });
        }
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
        let (files, layouts) = open_parts(path, &manifest.parts, open)?;
        let parts = Parts::Local(files);
        let index = Index::of_layouts(manifest, layouts).map_err(damaged)?;
        let manifest_sha256 = Sha256::digest(&text).into();
        let contents = index.root().map(Contents::open).transpose()?;
        let (path, keys) = (path.to_path_buf(), OnceLock::new());
        let fetches_footers = Mutex::default();
        Ok(Self { path, index, parts, manifest_sha256, keys, fetches_footers, contents })
    }

    /// Opens a folder in a store.
    pub(crate) fn open_remote(path: &Path, folder: Arc<dyn RemoteFolder>) -> Result<Self, Error> {
        let failed = |source| Error::Open { path: path.to_path_buf(), source };
        let damaged = |source| Error::Dataset { path: path.to_path_buf(), source };
        let text = folder.manifest().map_err(failed)?;
        let manifest = Manifest::from_json(&text).map_err(damaged)?;
        if manifest.is_in_place() {
            let (url, refusal) = (path.to_path_buf(), RemoteRefusal::InPlace);
            return Err(Error::Remote { url, refusal });
        }
        let manifest_sha256 = Sha256::digest(&text).into();
        folder.open_parts(&manifest, manifest_sha256).map_err(failed)?;
        let first = match manifest.parts.is_empty() {
            true => None,
            false => {
                folder.fetch_ends(&[0]).map_err(failed)?;
                let parts = Parts::Remote(Arc::clone(&folder));
                let layout = read_footer(0, &parts, &manifest).map_err(damaged)?;
                folder.ends_read(&[0]);
                Some(layout)
            }
        };
        let index = Index::of_first(manifest, first).map_err(damaged)?;
        let (parts, path, keys) = (Parts::Remote(folder), path.to_path_buf(), OnceLock::new());
        let (fetches_footers, contents) = Default::default();
        Ok(Self { path, index, parts, manifest_sha256, keys, fetches_footers, contents })
    }

    /// Reads the footers of these parts, together and in this order, except for those that were
    /// read. Does nothing unless the folder is in a store.
    pub(crate) fn read_footers(&self, parts: impl Iterator<Item = usize>) -> Result<(), Error> {
        let Parts::Remote(folder) = &self.parts else { return Ok(()) };
        let mut seen = HashSet::new();
        let is_missing = |part: &usize| !self.index.has_footer(*part) && seen.insert(*part);
        let missing: Vec<usize> = parts.filter(is_missing).collect();
        for some in missing.chunks(FOOTERS_AT_ONCE) {
            let guard = self.fetches_footers.lock().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have read some meanwhile.
            let some = some.iter().copied().filter(|part| !self.index.has_footer(*part));
            let some: Vec<usize> = some.collect();
            let path = || self.path.clone();
            folder.fetch_ends(&some).map_err(|source| Error::Open { path: path(), source })?;
            for part in &some {
                let layout = read_footer(*part, &self.parts, self.manifest());
                let added = layout.and_then(|layout| self.index.add_footer(*part, layout));
                added.map_err(|source| self.damaged(source))?;
            }
            folder.ends_read(&some);
            drop(guard);
        }
        Ok(())
    }

    /// Reads the footers of all parts that were not read yet.
    pub(crate) fn read_all_footers(&self) -> Result<(), Error> {
        match self.index.has_all_footers() {
            true => Ok(()),
            false => self.read_footers(0..self.manifest().parts.len()),
        }
    }

    /// The part of a sample.
    pub(crate) fn part_of(&self, sample: u64) -> Result<usize, Error> {
        self.index.part_of(sample).map_err(|source| self.damaged(source))
    }

    /// Reads the footer of the part of a sample, unless it was read.
    fn read_footer_of(&self, sample: u64) -> Result<(), Error> {
        match self.parts {
            Parts::Local(_) | Parts::Extents(_) => Ok(()),
            Parts::Remote(_) => self.read_footers(std::iter::once(self.part_of(sample)?)),
        }
    }

    /// Opens a folder by its extents.
    pub(crate) fn open_extents(folder: &Arc<ExtentFolder>) -> Result<Self, Error> {
        let path = folder.path().to_path_buf();
        let damaged = |source| Error::Dataset { path: path.clone(), source };
        let manifest = Manifest::from_json(&folder.manifest()?).map_err(damaged)?;
        folder.check_parts(&manifest)?;
        let parts = Parts::Extents(Arc::clone(folder));
        let read = |part: usize| PartLayout::read(part, &manifest.parts[part], &parts);
        let layouts = (0..manifest.parts.len()).map(read).collect::<Result<_, _>>();
        let layouts = layouts.map_err(damaged)?;
        let index = Index::of_layouts(manifest, layouts).map_err(damaged)?;
        let manifest_sha256 = folder.manifest_sha256();
        // An index of keys has no extents: keys are found by a scan.
        let keys = OnceLock::from(Keys::Absent);
        let (fetches_footers, contents) = Default::default();
        Ok(Self { path, index, parts, manifest_sha256, keys, fetches_footers, contents })
    }

    /// The extents; `None` if the folder is not read by extents.
    pub(crate) fn extents(&self) -> Option<&Arc<ExtentFolder>> {
        match &self.parts {
            Parts::Extents(folder) => Some(folder),
            Parts::Local(_) | Parts::Remote(_) => None,
        }
    }

    /// The folder in a store, if it is there.
    pub(crate) fn remote(&self) -> Option<&Arc<dyn RemoteFolder>> {
        match &self.parts {
            Parts::Local(_) | Parts::Extents(_) => None,
            Parts::Remote(folder) => Some(folder),
        }
    }

    /// The record batches that contain bytes of a part: their samples, narrowed to those of the
    /// bytes where the table is known.
    pub(crate) fn samples_of_bytes(&self, part: usize, range: &Range<u64>) -> Range<u64> {
        self.index.samples_of_bytes(part, range)
    }

    /// The part with the record batch of a sample, the bytes of the record batch in it, and whether
    /// its table is known.
    pub(crate) fn extent_beside(&self, sample: u64) -> Result<(usize, Range<u64>, bool), Error> {
        self.read_footer_of(sample)?;
        self.index.extent_beside(sample).map_err(|source| self.damaged(source))
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
        let text = match &self.parts {
            Parts::Local(_) => read_manifest(&self.path, &open_regular).ok(),
            Parts::Remote(folder) => folder.manifest().ok(),
            Parts::Extents(folder) => folder.manifest().ok(),
        };
        text.map(|text| Sha256::digest(&text)).is_some_and(|now| now[..] == self.manifest_sha256)
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
        self.read_footer_of(sample)?;
        self.again_if_damaged(|| self.index.locate(sample, &self.parts))
    }

    pub(crate) fn batch_of(&self, sample: u64) -> Result<(usize, usize), Error> {
        self.read_all_footers()?;
        self.index.batch_of(sample).map_err(|source| self.damaged(source))
    }

    /// The samples of the record batch that contains a sample.
    pub(crate) fn samples_beside(&self, sample: u64) -> Result<Range<u64>, Error> {
        self.read_footer_of(sample)?;
        self.index.samples_beside(sample).map_err(|source| self.damaged(source))
    }

    pub(crate) fn content_of(&self, record_batch: usize) -> Option<(usize, Range<u64>)> {
        self.index.content_of(record_batch)
    }

    pub(crate) fn samples_of(&self, record_batch: usize) -> Range<u64> {
        self.index.samples_of(record_batch)
    }

    pub(crate) fn keyed_rows(&self, record_batch: usize) -> Result<KeyedRows, Error> {
        self.again_if_damaged(|| self.index.keyed_rows(record_batch, &self.parts))
    }

    pub(crate) fn keys_of(&self, record_batch: usize) -> Result<Vec<String>, Error> {
        self.again_if_damaged(|| self.index.keys(record_batch, &self.parts))
    }

    /// The keys of the record batch that contains a sample.
    pub(crate) fn keys_beside(&self, sample: u64) -> Result<Vec<String>, Error> {
        self.read_footer_of(sample)?;
        self.again_if_damaged(|| self.index.keys_beside(sample, &self.parts))
    }

    /// As [`Self::extra`], of the record batch that contains a sample.
    pub(crate) fn extra_beside(
        &self,
        sample: u64,
        projection: Option<&[usize]>,
    ) -> Result<RecordBatch, Error> {
        self.read_footer_of(sample)?;
        self.again_if_damaged(|| self.index.extra_beside(sample, projection, &self.parts))
    }

    pub(crate) fn extra(
        &self,
        record_batch: usize,
        projection: Option<&[usize]>,
    ) -> Result<RecordBatch, Error> {
        self.again_if_damaged(|| self.index.extra(record_batch, projection, &self.parts))
    }

    /// The samples that may have a key; `None` without an index of keys.
    pub(crate) fn candidates(&self, key: &str) -> Result<Option<Vec<u64>>, Error> {
        self.keys().candidates(key, &self.path)
    }

    /// The sample with a key, by scanning all keys.
    pub(crate) fn scan(&self, key: &str) -> Result<Option<u64>, Error> {
        self.read_all_footers()?;
        self.again_if_damaged(|| self.index.find(key, &self.parts))
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
            let bytes = match &self.parts {
                Parts::Local(files) => files.0.file_bytes_now(part).ok(),
                Parts::Extents(folder) => Some(folder.extents().parts()[part].bytes),
                Parts::Remote(_) => None,
            };
            match bytes {
                Some(bytes) if source.kind() == ErrorKind::UnexpectedEof => {
                    let got = bytes.saturating_sub(offset).min(wanted as u64) as usize;
                    StorageError::ShortRead { path, offset, wanted, got }
                }
                _ => StorageError::Io { action: "read", path, offset, bytes: wanted, source },
            }
        })
    }

    /// The current state of the file of a part; `None` if it cannot be determined, or if the part
    /// is in a store or read by its extents.
    pub(crate) fn part_state(&self, part: usize) -> Option<FileState> {
        match &self.parts {
            Parts::Local(files) => files.0.file_state(part).ok(),
            Parts::Remote(_) | Parts::Extents(_) => None,
        }
    }

    fn damaged(&self, source: DatasetError) -> Error {
        Error::Dataset { path: self.path.clone(), source }
    }

    /// The result of a read; repeated once if what was read from a cache is damaged.
    fn again_if_damaged<T>(&self, read: impl Fn() -> Result<T, DatasetError>) -> Result<T, Error> {
        let read = again_if_damaged(&self.parts, self.manifest(), read);
        read.map_err(|source| self.damaged(source))
    }
}

/// Reads the footer of a part.
fn read_footer(
    part: usize,
    parts: &Parts,
    manifest: &Manifest,
) -> Result<PartLayout, DatasetError> {
    again_if_damaged(parts, manifest, || PartLayout::read(part, &manifest.parts[part], parts))
}

/// As [`DatasetFolder::again_if_damaged`].
fn again_if_damaged<T>(
    parts: &Parts,
    manifest: &Manifest,
    read: impl Fn() -> Result<T, DatasetError>,
) -> Result<T, DatasetError> {
    let first = read();
    let (Parts::Remote(folder), Err(error)) = (parts, &first) else { return first };
    let (DatasetError::Part { part, .. } | DatasetError::Extra { part, .. }) = error else {
        return first;
    };
    let Some(index) = manifest.parts.iter().position(|entry| entry.file == *part) else {
        return first;
    };
    folder.discard(index, 0..manifest.parts[index].bytes);
    read()
}

/// Opens parts and reads their footers, on several threads if there are many.
fn open_parts(
    path: &Path,
    entries: &[PartEntry],
    open: &OpenFile<'_>,
) -> Result<(Files, Vec<PartLayout>), Error> {
    let some = |entries: &[PartEntry]| {
        let files = FileSet::open_with(entries.iter().map(|part| path.join(&part.file)), &open);
        let files = Files(files.map_err(|error| missing_part(path, error))?);
        let read = |(part, entry)| PartLayout::read(part, entry, &files);
        let layouts = entries.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>();
        match layouts {
            Ok(layouts) => Ok((files, layouts)),
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
        let (mut files, mut layouts) = some(own)?;
        for other in others {
            let (more, read) = other.join().expect("reading footers does not panic")?;
            files.0.append(more.0);
            layouts.extend(read);
        }
        Ok((files, layouts))
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
