//! An open dataset: manifest, index and the files behind them. Shareable among threads.

use crate::column_cache::{ColumnCache, ColumnsReadAgain};
use crate::contents::Contents;
use crate::keys::Keys;
use crate::recent::RecentKeys;
use crate::{Error, KeyLookup, original};
use arrow_array::{ArrayRef, RecordBatch};
use meetpoint_format::checksum::crc32c;
use meetpoint_format::column::{BatchColumns, ColumnSource, TargetColumn, value_bytes_max};
use meetpoint_format::dataset::{
    Columns, DatasetError, Index, KeyedRows, MANIFEST_BYTES_MAX, MANIFEST_NAME, Manifest,
    PartBytes, PartEntry, PartLayout, SampleLocation,
};
use meetpoint_format::holders::{Holders, HoldersError};
use meetpoint_format::recipe::Recipe;
use meetpoint_kernels::Interrupt;
use meetpoint_storage::files::{FileSet, open_regular, read_at_most};
use meetpoint_storage::{Error as StorageError, is_of_the_file};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Parts whose footers take a thread longer to read than it takes to start another.
const PARTS_PER_THREAD: usize = 64;
/// Most threads that read footers.
const OPEN_THREADS_MAX: usize = 8;

/// Opens a file of a dataset by its path.
pub type OpenFile<'a> = dyn Fn(&Path) -> io::Result<File> + Sync + 'a;

/// A dataset opened for reading.
#[derive(Debug)]
pub struct Dataset {
    path: PathBuf,
    index: Index,
    parts: Parts,
    manifest_sha256: [u8; 32],
    keys: OnceLock<Keys>,
    recent_keys: RecentKeys,
    column_cache: ColumnCache,
    /// Where images lie that are not in the parts.
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

impl Dataset {
    /// Opens the folder: reads the manifest and the footers of the parts.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Open { path: path.to_path_buf(), source };
        if !std::fs::metadata(path).map_err(failed)?.is_dir() {
            let problem = "it is not a folder";
            return Err(Error::NotADataset { path: path.to_path_buf(), problem });
        }
        Self::open_with(path, &open_regular)
    }

    /// Opens a folder whose manifest and parts another function opens; `path` is its name. An index
    /// of keys and a manifest that changed are not seen there.
    pub fn open_with(path: &Path, open: &OpenFile<'_>) -> Result<Self, Error> {
        let text = read_manifest(path, open)?;
        let damaged = |source| Error::Dataset { path: path.to_path_buf(), source };
        let manifest = Manifest::from_json(&text).map_err(damaged)?;
        let (parts, layouts) = open_parts(path, &manifest.parts, open)?;
        let index = Index::of_layouts(manifest, layouts).map_err(damaged)?;
        let manifest_sha256 = Sha256::digest(&text).into();
        let (keys, recent_keys, column_cache) = Default::default();
        let contents = index.root().map(Contents::open).transpose()?;
        let path = path.to_path_buf();
        Ok(Self { path, index, parts, manifest_sha256, keys, recent_keys, column_cache, contents })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        self.index.manifest()
    }

    /// SHA-256 of `dataset.json`, by which host and device know that they mean the same dataset.
    pub fn manifest_sha256(&self) -> [u8; 32] {
        self.manifest_sha256
    }

    /// Whether `dataset.json` still is what was opened.
    pub fn is_unchanged(&self) -> bool {
        let now = read_manifest(&self.path, &open_regular).map(|text| Sha256::digest(&text));
        now.is_ok_and(|now| now[..] == self.manifest_sha256)
    }

    /// Number of samples.
    pub fn len(&self) -> u64 {
        self.manifest().samples
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its parts spread over devices: part p on device `of_part[p]`, or on p mod `devices` where
    /// `of_part` is empty.
    pub fn spread(&self, devices: u32, of_part: &[u32]) -> Result<Holders, HoldersError> {
        let parts: Vec<u64> = self.manifest().parts.iter().map(|part| part.samples).collect();
        Holders::of_parts(&parts, devices, of_part)
    }

    /// Path of a part's file.
    pub fn part_path(&self, part: usize) -> PathBuf {
        self.path.join(&self.manifest().parts[part].file)
    }

    /// Where a sample lies.
    pub fn locate(&self, sample: u64) -> Result<SampleLocation, Error> {
        self.index.locate(sample, &self.parts).map_err(|source| self.damaged(source))
    }

    /// Keeps entry points from now on, in at most so many bytes of memory.
    pub fn keep_entry_points(&self, bytes_max: u64) {
        self.index.keep_entry_points(bytes_max);
    }

    /// Caches further columns in at most so many bytes of memory from now on.
    pub fn keep_columns(&self, bytes_max: usize) {
        self.column_cache.set_bytes_max(bytes_max);
    }

    /// What was read again of further columns since the call before, if that is more than what was
    /// asked for, because the cache is too small; the first time only.
    pub fn take_columns_read_again(&self) -> Option<ColumnsReadAgain> {
        self.column_cache.take_read_again()
    }

    /// Bytes of memory that the entry points kept so far take.
    pub fn entry_points_bytes(&self) -> u64 {
        self.index.entry_points_bytes()
    }

    /// Number of record batches, for going through all samples in order.
    pub fn record_batches(&self) -> usize {
        self.index.record_batches()
    }

    /// The keys and entry points of a record batch's rows, with one read for all of them.
    pub fn keyed_rows(&self, record_batch: usize) -> Result<KeyedRows, Error> {
        let read = self.index.keyed_rows(record_batch, &self.parts);
        read.map_err(|source| self.damaged(source))
    }

    /// The file that the image of a sample lies in: its part, or one elsewhere.
    pub fn content_path(&self, location: &SampleLocation) -> PathBuf {
        match (&location.file, &self.contents) {
            (Some(file), Some(contents)) => contents.root().join(&file.path),
            _ => self.part_path(location.part),
        }
    }

    /// The folder below which images stay in files of their own, where they are not in the parts.
    pub fn content_root(&self) -> Option<&Path> {
        self.contents.as_ref().map(Contents::root)
    }

    /// The files outside of the parts.
    pub(crate) fn contents(&self) -> Option<&Contents> {
        self.contents.as_ref()
    }

    /// The columns of samples.
    pub fn columns(&self) -> &Arc<Columns> {
        self.index.columns()
    }

    /// The record batch that a sample is in, and its row there.
    pub fn batch_of(&self, sample: u64) -> Result<(usize, usize), Error> {
        self.index.batch_of(sample).map_err(|source| self.damaged(source))
    }

    /// The samples of a record batch.
    pub fn samples_of(&self, record_batch: usize) -> Range<u64> {
        self.index.samples_of(record_batch)
    }

    /// The further columns of a record batch, all or those of a projection in its order. Only
    /// their bytes are read, each compared with its checksum.
    pub fn extra(
        &self,
        record_batch: usize,
        projection: Option<&[usize]>,
    ) -> Result<RecordBatch, Error> {
        let read = self.index.extra(record_batch, projection, &self.parts);
        read.map_err(|source| self.damaged(source))
    }

    /// A further column of a record batch, from memory where it was read lately.
    pub(crate) fn further(&self, record_batch: usize, column: usize) -> Result<ArrayRef, Error> {
        self.column_cache.of((record_batch, column), || {
            let read = self.extra(record_batch, Some(&[column]))?;
            Ok(Arc::clone(read.column(0)))
        })
    }

    /// The columns of batches with these names.
    pub fn select(&self, names: &[String], recipe: &Recipe) -> Result<BatchColumns, Error> {
        let spec = recipe.output().ok_or(Error::NoFixedShape)?;
        let columns = BatchColumns::select(names, self.columns(), (recipe, &spec))
            .map_err(|source| Error::Columns { path: self.path.clone(), source })?;
        let has_labels = columns.position_of(ColumnSource::Label).is_some();
        if has_labels && recipe.labels().is_some() && self.manifest().labels.is_empty() {
            let (_, on_batches) = recipe.split();
            let operation = on_batches.first().map_or("", |operation| operation.name());
            return Err(Error::NoLabels { path: self.path.clone(), operation });
        }
        Ok(columns)
    }

    /// The targets of a recipe that batches with these columns need.
    pub(crate) fn targets(
        &self,
        columns: &BatchColumns,
        recipe: &Recipe,
    ) -> Result<Vec<TargetColumn>, Error> {
        let spec = recipe.output().ok_or(Error::NoFixedShape)?;
        columns
            .targets(self.columns(), (recipe, &spec))
            .map_err(|source| Error::Columns { path: self.path.clone(), source })
    }

    /// Bytes of the longest value of each of these columns in this dataset.
    ///
    /// Reads all of the columns whose length varies, and nothing for the others.
    pub fn value_bytes_max(
        &self,
        columns: &BatchColumns,
        interrupt: &Interrupt,
    ) -> Result<Vec<u64>, Error> {
        let mut longest = vec![0; columns.len()];
        for (column, longest) in columns.as_slice().iter().zip(&mut longest) {
            if !column.kind.is_variable() {
                *longest = column.kind.row_bytes().expect("columns were checked");
                continue;
            }
            for record_batch in 0..self.record_batches() {
                interrupt.check().map_err(|_| Error::Interrupted)?;
                let bytes = match column.source {
                    ColumnSource::Further(index) | ColumnSource::Target(index) => {
                        value_bytes_max(column, &self.further(record_batch, index)?)
                    }
                    ColumnSource::Key => {
                        let keys = self.index.keys(record_batch, &self.parts);
                        let keys = keys.map_err(|source| self.damaged(source))?;
                        keys.iter().map(String::len).max().unwrap_or(0) as u64
                    }
                    ColumnSource::Image | ColumnSource::Label | ColumnSource::Sample => 0,
                };
                *longest = bytes.max(*longest);
            }
        }
        self.column_cache.count_anew();
        Ok(longest)
    }

    /// A sample's key.
    pub fn key(&self, sample: u64) -> Result<String, Error> {
        let (record_batch, row) = self.batch_of(sample)?;
        let read = || self.index.keys(record_batch, &self.parts);
        let keys = self.recent_keys.of(record_batch, read);
        Ok(keys.map_err(|source| self.damaged(source))?[row].clone())
    }

    /// The sample with a key: with one small read and one of its record batch's keys where the
    /// dataset has `keys.idx`, else by looking through all keys ([`Self::key_lookup`] tells which).
    ///
    /// An index of keys that is damaged is an error, never a key that is not found.
    pub fn find(&self, key: &str) -> Result<Option<u64>, Error> {
        let Some(candidates) = self.keys().candidates(key, &self.path)? else {
            return self.index.find(key, &self.parts).map_err(|source| self.damaged(source));
        };
        for sample in candidates {
            if self.key(sample)? == key {
                return Ok(Some(sample));
            }
        }
        Ok(None)
    }

    /// How keys are found.
    pub fn key_lookup(&self) -> KeyLookup {
        self.keys().lookup()
    }

    /// The index of keys, opened when it is first needed.
    fn keys(&self) -> &Keys {
        self.keys.get_or_init(|| Keys::open(&self.path, self.manifest_sha256, self.len()))
    }

    /// A sample's stored bytes, read plainly and checked against their checksum.
    pub fn read_sample(&self, sample: u64) -> Result<Vec<u8>, Error> {
        let location = self.locate(sample)?;
        self.read_located(sample, &location)
    }

    /// The file of a sample: its stored bytes, or what their coefficient form was made from.
    pub fn read_file(&self, sample: u64) -> Result<Vec<u8>, Error> {
        let location = self.locate(sample)?;
        let stored = self.read_located(sample, &location)?;
        match self.file_of(sample, &location, &stored)? {
            Cow::Borrowed(_) => Ok(stored),
            Cow::Owned(file) => Ok(file),
        }
    }

    /// The file that a sample's stored bytes were made from; the bytes themselves where they are
    /// the file.
    pub fn file_of<'a>(
        &self,
        sample: u64,
        location: &SampleLocation,
        stored: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, Error> {
        original(stored).map_err(|source| {
            let (part, row, key) = self.place_in_words(sample, location);
            Error::Sample { part, row, key, source }
        })
    }

    /// As [`Self::read_sample`], for a sample that was located.
    pub fn read_located(&self, sample: u64, location: &SampleLocation) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; usize::try_from(location.bytes).expect("at most 256 MiB")];
        self.read_located_into(sample, location, &mut bytes)?;
        Ok(bytes)
    }

    /// As [`Self::read_located`], into memory of `location.bytes` bytes.
    pub fn read_located_into(
        &self,
        sample: u64,
        location: &SampleLocation,
        into: &mut [u8],
    ) -> Result<(), Error> {
        self.read_image(sample, location, into)?;
        self.check_image(sample, location, into)
    }

    /// Reads an image plainly.
    pub(crate) fn read_image(
        &self,
        sample: u64,
        location: &SampleLocation,
        into: &mut [u8],
    ) -> Result<(), Error> {
        let &SampleLocation { part, offset, .. } = location;
        if let (Some(file), Some(contents)) = (&location.file, &self.contents) {
            let read = contents.read_exact_at(file, offset, into);
            return read.map_err(|error| self.in_place(sample, location, error));
        }
        self.parts.read_exact_at(part, offset, into).map_err(|source| {
            let (path, wanted) = (self.part_path(part), into.len());
            let source = match self.parts.0.file_bytes_now(part) {
                Ok(bytes) if source.kind() == ErrorKind::UnexpectedEof => {
                    let got = bytes.saturating_sub(offset).min(wanted as u64) as usize;
                    StorageError::ShortRead { path, offset, wanted, got }
                }
                _ => StorageError::Io { action: "read", path, offset, bytes: wanted, source },
            };
            let (_, row, key) = self.place_in_words(sample, location);
            Error::Read { row, key, source }
        })
    }

    /// An error of a file outside of the parts, with the sample that was wanted from it.
    pub(crate) fn in_place(&self, sample: u64, location: &SampleLocation, error: Error) -> Error {
        use Error::{Content, ContentChanged, ContentChecksum};
        if !matches!(error, Content { .. } | ContentChanged { .. } | ContentChecksum { .. }) {
            return error;
        }
        let (_, row, key) = self.place_in_words(sample, location);
        Error::InPlace { row, key, source: Box::new(error) }
    }

    /// Holds the bytes of an image against their checksum.
    pub(crate) fn check_image(
        &self,
        sample: u64,
        location: &SampleLocation,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let got = crc32c(bytes);
        if got == location.crc32c {
            return Ok(());
        }
        let expected = location.crc32c;
        if location.file.is_some() {
            let (path, offset) = (self.content_path(location), location.offset);
            let bytes = location.bytes;
            let error = Error::ContentChecksum { path, offset, bytes, got, expected };
            return Err(self.in_place(sample, location, error));
        }
        let (part, row, key) = self.place_in_words(sample, location);
        Err(Error::ChecksumMismatch { part, row, key, got, expected })
    }

    /// Part file, row and key of a sample, for an error.
    pub(crate) fn place_in_words(
        &self,
        sample: u64,
        location: &SampleLocation,
    ) -> (String, u64, String) {
        let key = self.key(sample).unwrap_or_else(|error| format!("(unreadable: {error})"));
        (self.content_path(location).display().to_string(), location.row, key)
    }

    fn damaged(&self, source: DatasetError) -> Error {
        Error::Dataset { path: self.path.clone(), source }
    }
}

/// Opens parts and reads their footers, many of them on several threads.
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

/// A part that does not open, which is damage of the dataset unless this process is at a limit.
fn missing_part(path: &Path, error: StorageError) -> Error {
    match error {
        StorageError::Open { path: file, source } if is_of_the_file(&source) => {
            let part = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Error::Dataset { path: path.to_path_buf(), source: DatasetError::Io { part, source } }
        }
        error => error.into(),
    }
}

/// Why the manifest does not read.
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
