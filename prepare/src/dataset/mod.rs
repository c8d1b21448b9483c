//! An open dataset: one folder, or several that are served as one. Shareable among threads.
//!
//! Samples, record batches and parts are numbered over all folders, in order; with one folder, the
//! numbers are its own.
//!
//! In reading order: this file (members and locations), `reading` (samples, synchronously),
//! `memory` (what is retained).

mod memory;
mod reading;

use crate::column_cache::ColumnCache;
use crate::concatenation::Concatenation;
use crate::contents::Contents;
use crate::dataset_folder::{DatasetFolder, OpenFile};
use crate::paths::{DatasetPaths, is_url};
use crate::picture_sizes::PictureSizes;
use crate::recent_keys::RecentKeys;
use crate::remote::Reading;
use crate::shape::collated_shape;
use crate::small_samples::SmallSamples;
use crate::{Error, KeyLookup};
use arrow_array::{ArrayRef, RecordBatch};
use meetpoint_format::column::{
    BatchColumns, Collate, ColumnKind, ColumnNames, ColumnSource, TargetColumn, value_bytes_max,
};
use meetpoint_format::dataset::{Columns, DatasetError, KeyedRows, Manifest, SampleLocation};
use meetpoint_format::holders::{Holders, HoldersError};
use meetpoint_format::recipe::Recipe;
use meetpoint_kernels::Interrupt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A dataset opened for reading.
///
/// ```
/// use meetpoint_prepare::Dataset;
///
/// let dataset = Dataset::open("../datasets/tests/golden/version-3".as_ref())?;
/// assert_eq!((dataset.len(), dataset.manifest().parts.len()), (6, 1));
/// // Samples are found by their number or by their key, and checked when they are read.
/// let key = dataset.key(4)?;
/// assert_eq!(dataset.find(&key)?, Some(4));
/// let location = dataset.locate(4)?;
/// assert_eq!(dataset.read_sample(4)?.len() as u64, location.bytes);
/// # Ok::<(), meetpoint_prepare::Error>(())
/// ```
#[derive(Debug)]
pub struct Dataset {
    /// The folder, or a combined name of several.
    path: PathBuf,
    members: Vec<DatasetFolder>,
    /// By folder, if there are several.
    starts: Vec<Start>,
    /// Common properties of several folders; `None` for one.
    concatenation: Option<Concatenation>,
    recent_keys: RecentKeys,
    column_cache: ColumnCache,
    small_samples: SmallSamples,
    pub(crate) picture_sizes: OnceLock<Arc<PictureSizes>>,
    /// The batches that are being read, if a folder is in a store.
    reading: Option<Arc<Reading>>,
}

/// Numbers of samples, record batches and parts in the preceding folders.
#[derive(Debug, Clone, Copy, Default)]
struct Start {
    sample: u64,
    record_batch: usize,
    part: usize,
}

impl Dataset {
    /// Opens the folder: reads the manifest and the footers of the parts.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self::alone(DatasetFolder::open(path)?))
    }

    /// Opens a folder with a function that opens the manifest and the parts; `path` is its name. An
    /// index of keys is not used, and changes of the manifest are not detected.
    pub fn open_with(path: &Path, open: &OpenFile<'_>) -> Result<Self, Error> {
        Ok(Self::alone(DatasetFolder::open_with(path, open)?))
    }

    /// Opens one or several folders as one dataset: the samples of the first, those of the second,
    /// and so on. Their columns must be the same. Labels are merged by name, in order of first
    /// occurrence.
    pub fn open_all<P: AsRef<Path>>(paths: &[P]) -> Result<Self, Error> {
        let mut members = Vec::with_capacity(paths.len());
        for path in paths {
            members.push(DatasetFolder::open(path.as_ref())?);
        }
        Self::of_members(members)
    }

    /// As [`Self::open_all`], where folders may be in stores.
    pub fn open_paths(paths: &DatasetPaths) -> Result<Self, Error> {
        let dataset = Self::open_for_samples(paths)?;
        dataset.read_footers()?;
        Ok(dataset)
    }

    /// As [`Self::open_paths`], but the footer of a part in a store is read when one of its samples
    /// is first requested. So the number of requests on opening does not depend on the number of
    /// parts. With several folders, all footers are read.
    ///
    /// Methods that use the numbers of record batches, such as [`Self::record_batches`], panic
    /// unless [`Self::read_footers`] was called before.
    pub fn open_for_samples(paths: &DatasetPaths) -> Result<Self, Error> {
        let mut members = Vec::with_capacity(paths.as_slice().len());
        for path in paths.as_slice() {
            members.push(match paths.remote().filter(|_| is_url(path)) {
                None => DatasetFolder::open(path)?,
                Some(remote) => {
                    let opened = remote.open(path);
                    let folder =
                        opened.map_err(|source| Error::Open { path: path.clone(), source })?;
                    DatasetFolder::open_remote(path, folder)?
                }
            });
        }
        Self::of_members(members)
    }

    pub(crate) fn of_members(mut members: Vec<DatasetFolder>) -> Result<Self, Error> {
        match members.len() {
            1 => Ok(Self::alone(members.remove(0))),
            _ => Self::of_several(members),
        }
    }

    fn alone(member: DatasetFolder) -> Self {
        let path = member.path().to_path_buf();
        Self::of(path, vec![member], Vec::new(), None)
    }

    fn of(
        path: PathBuf,
        members: Vec<DatasetFolder>,
        starts: Vec<Start>,
        concatenation: Option<Concatenation>,
    ) -> Self {
        let (recent_keys, column_cache, small_samples) = Default::default();
        let picture_sizes = OnceLock::new();
        let is_remote = members.iter().any(|member| member.remote().is_some());
        let reading = is_remote.then(Arc::default);
        Self {
            path,
            members,
            starts,
            concatenation,
            recent_keys,
            column_cache,
            small_samples,
            picture_sizes,
            reading,
        }
    }

    fn of_several(members: Vec<DatasetFolder>) -> Result<Self, Error> {
        members.iter().try_for_each(DatasetFolder::read_all_footers)?;
        let concatenation = Some(Concatenation::new(&members)?);
        let mut next = Start::default();
        let starts = members.iter().map(|member| {
            let start = next;
            next.sample += member.len();
            next.record_batch += member.record_batches();
            next.part += member.manifest().parts.len();
            start
        });
        let starts = starts.collect();
        let names: Vec<_> =
            members.iter().map(|member| member.path().display().to_string()).collect();
        Ok(Self::of(names.join(", ").into(), members, starts, concatenation))
    }

    /// The folder; a combined name if there are several, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folders.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.members.iter().map(DatasetFolder::path)
    }

    /// Samples of each folder.
    pub fn samples_of_folders(&self) -> impl Iterator<Item = u64> {
        self.members.iter().map(DatasetFolder::len)
    }

    /// The manifest; a combined one for several folders.
    pub fn manifest(&self) -> &Manifest {
        match &self.concatenation {
            None => self.members[0].manifest(),
            Some(concatenation) => concatenation.manifest(),
        }
    }

    /// SHA-256 of `dataset.json`, with which host and device check that they use the same dataset;
    /// for several folders, that of all checksums.
    pub fn manifest_sha256(&self) -> [u8; 32] {
        match &self.concatenation {
            None => self.members[0].manifest_sha256(),
            Some(concatenation) => concatenation.sha256(),
        }
    }

    /// SHA-256 of the `dataset.json` of each folder.
    pub fn manifests_sha256(&self) -> impl Iterator<Item = [u8; 32]> {
        self.members.iter().map(DatasetFolder::manifest_sha256)
    }

    /// Whether every `dataset.json` is unchanged since it was opened.
    pub fn is_unchanged(&self) -> bool {
        self.members.iter().all(DatasetFolder::is_unchanged)
    }

    /// Number of samples.
    pub fn len(&self) -> u64 {
        self.manifest().samples
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The assignment of its parts to devices: part p to device `of_part[p]`, or to p mod `devices`
    /// if `of_part` is empty.
    pub fn spread(&self, devices: u32, of_part: &[u32]) -> Result<Holders, HoldersError> {
        let parts: Vec<u64> = self.manifest().parts.iter().map(|part| part.samples).collect();
        Holders::of_parts(&parts, devices, of_part)
    }

    /// The index of the folder of a sample, and the sample's index in it.
    fn of_sample(&self, sample: u64) -> Result<(usize, u64), Error> {
        if self.starts.is_empty() {
            return Ok((0, sample));
        }
        let samples = self.len();
        if sample >= samples {
            let source = DatasetError::OutOfRange { index: sample, samples };
            return Err(Error::Dataset { path: self.path.clone(), source });
        }
        let member = self.starts.partition_point(|start| start.sample <= sample) - 1;
        Ok((member, sample - self.starts[member].sample))
    }

    /// The index of the folder of a record batch, and the record batch's index in it.
    fn of_record_batch(&self, record_batch: usize) -> (usize, usize) {
        if self.starts.is_empty() {
            return (0, record_batch);
        }
        let after = self.starts.partition_point(|start| start.record_batch <= record_batch);
        (after - 1, record_batch - self.starts[after - 1].record_batch)
    }

    /// The index of the folder of a part, and the part's index in it.
    fn of_part(&self, part: usize) -> (usize, usize) {
        if self.starts.is_empty() {
            return (0, part);
        }
        let after = self.starts.partition_point(|start| start.part <= part);
        (after - 1, part - self.starts[after - 1].part)
    }

    fn offset_of(&self, member: usize) -> Start {
        self.starts.get(member).copied().unwrap_or_default()
    }

    /// Reads all footers that were not read yet: see [`Self::open_for_samples`].
    pub fn read_footers(&self) -> Result<(), Error> {
        self.members.iter().try_for_each(DatasetFolder::read_all_footers)
    }

    /// Path of a part's file.
    pub fn part_path(&self, part: usize) -> PathBuf {
        let (member, part) = self.of_part(part);
        self.members[member].part_path(part)
    }

    /// The location of a sample.
    pub fn locate(&self, sample: u64) -> Result<SampleLocation, Error> {
        let (member, own) = self.of_sample(sample)?;
        let mut location = self.members[member].locate(own)?;
        if let Some(concatenation) = &self.concatenation {
            location.part += self.starts[member].part;
            location.label = location.label.map(|label| concatenation.label(member, label));
        }
        Ok(location)
    }

    /// Number of record batches, for iterating over all samples in order.
    pub fn record_batches(&self) -> usize {
        self.members.iter().map(DatasetFolder::record_batches).sum()
    }

    /// The keys and entry points of a record batch's rows, with one read for all of them.
    pub fn keyed_rows(&self, record_batch: usize) -> Result<KeyedRows, Error> {
        let (member, own) = self.of_record_batch(record_batch);
        let mut rows = self.members[member].keyed_rows(own)?;
        rows.first_sample += self.offset_of(member).sample;
        Ok(rows)
    }

    /// The file that contains the image of a sample: its part, or a file in place.
    pub fn content_path(&self, location: &SampleLocation) -> PathBuf {
        match (&location.file, self.contents(location.part)) {
            (Some(file), Some((_, contents))) => contents.root().join(&file.path),
            _ => self.part_path(location.part),
        }
    }

    /// The folder below which images are in separate files, if they are not in the parts; the first
    /// one, if there are several.
    pub fn content_root(&self) -> Option<&Path> {
        self.content_roots().next()
    }

    /// The folders below which images are in separate files.
    pub fn content_roots(&self) -> impl Iterator<Item = &Path> {
        self.members.iter().filter_map(DatasetFolder::contents).map(Contents::root)
    }

    /// The files outside of the parts that contain the samples of a part, and the index of their
    /// folder.
    pub(crate) fn contents(&self, part: usize) -> Option<(usize, &Contents)> {
        let (member, _) = self.of_part(part);
        Some((member, self.members[member].contents()?))
    }

    /// Number of folders.
    pub fn folders(&self) -> usize {
        self.members.len()
    }

    /// The folder of a part, the index of the part in it, and the index of the folder's first part.
    pub(crate) fn member_of_part(&self, part: usize) -> (&DatasetFolder, usize, usize) {
        let (member, own) = self.of_part(part);
        (&self.members[member], own, part - own)
    }

    /// The folder of a sample, the sample's index in it, and the index of the folder's first part.
    pub(crate) fn member_of_sample(
        &self,
        sample: u64,
    ) -> Result<(&DatasetFolder, u64, usize), Error> {
        let (member, own) = self.of_sample(sample)?;
        Ok((&self.members[member], own, self.offset_of(member).part))
    }

    /// The folders, and the index of the first part of each.
    pub(crate) fn members(&self) -> impl Iterator<Item = (usize, &DatasetFolder)> {
        let members = self.members.iter().enumerate();
        members.map(|(index, member)| (self.offset_of(index).part, member))
    }

    /// The batches that are being read, if a folder is in a store.
    pub(crate) fn reading(&self) -> Option<&Arc<Reading>> {
        self.reading.as_ref()
    }

    /// The first sample of the folder of a part.
    pub(crate) fn first_sample_of_part(&self, part: usize) -> u64 {
        let (member, _) = self.of_part(part);
        self.offset_of(member).sample
    }

    /// The columns of samples.
    pub fn columns(&self) -> &Arc<Columns> {
        self.members[0].columns()
    }

    /// The record batch that contains a sample, and the sample's row in it.
    pub fn batch_of(&self, sample: u64) -> Result<(usize, usize), Error> {
        let (member, own) = self.of_sample(sample)?;
        let (record_batch, row) = self.members[member].batch_of(own)?;
        Ok((self.offset_of(member).record_batch + record_batch, row))
    }

    /// The samples of a record batch.
    pub fn samples_of(&self, record_batch: usize) -> Range<u64> {
        let (member, own) = self.of_record_batch(record_batch);
        let (range, before) = (self.members[member].samples_of(own), self.offset_of(member).sample);
        range.start + before..range.end + before
    }

    /// The further columns of a record batch: all, or those of a projection in its order. Only
    /// their bytes are read; each column is compared with its checksum.
    pub fn extra(
        &self,
        record_batch: usize,
        projection: Option<&[usize]>,
    ) -> Result<RecordBatch, Error> {
        let (member, own) = self.of_record_batch(record_batch);
        self.members[member].extra(own, projection)
    }

    /// A further column of the record batch that contains a sample, from memory if it was read
    /// recently, and the sample's row in it.
    pub(crate) fn further(&self, sample: u64, column: usize) -> Result<(ArrayRef, usize), Error> {
        let (member, own) = self.of_sample(sample)?;
        let (first, row) = self.beside(member, own)?;
        let array = self.column_cache.of((first, column), || -> Result<ArrayRef, Error> {
            let read = self.members[member].extra_beside(own, Some(&[column]))?;
            Ok(Arc::clone(read.column(0)))
        });
        Ok((array?, row))
    }

    /// The first sample of the record batch that contains a sample of a folder, by which caches
    /// name the record batch, and the sample's row in it.
    fn beside(&self, member: usize, own: u64) -> Result<(u64, usize), Error> {
        let first = self.members[member].samples_beside(own)?.start;
        let row = usize::try_from(own - first).expect("a record batch has at most 65,536 rows");
        Ok((self.offset_of(member).sample + first, row))
    }

    /// The columns of batches with these names. Refuses a recipe that does not match prepared
    /// samples.
    pub fn select(&self, names: &ColumnNames, recipe: &Recipe) -> Result<BatchColumns, Error> {
        self.start(recipe)?;
        let collate = names.collate();
        let spec = collated_shape(recipe, collate)?;
        let columns = BatchColumns::select(names, self.columns(), (recipe, &spec), collate)
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
        collate: Collate,
    ) -> Result<Vec<TargetColumn>, Error> {
        let spec = collated_shape(recipe, collate)?;
        columns
            .targets(self.columns(), (recipe, &spec), collate)
            .map_err(|source| Error::Columns { path: self.path.clone(), source })
    }

    /// Bytes of the longest value of each of these columns in this dataset, including padding, if
    /// the pictures of each column of [`Recipe::images`] have at most the heights and widths in
    /// `limits`, which is empty if all pictures have the same size.
    ///
    /// Reads only columns of variable length.
    pub fn value_bytes_max(
        &self,
        columns: &BatchColumns,
        (recipe, limits): (&Recipe, &[(u32, u32)]),
        interrupt: &Interrupt,
    ) -> Result<Vec<u64>, Error> {
        let mut longest = vec![0; columns.len()];
        for (column, longest) in columns.as_slice().iter().zip(&mut longest) {
            let row_bytes = column.kind.row_bytes().expect("columns were checked");
            if !column.kind.is_variable() {
                *longest = row_bytes;
                continue;
            }
            let has_sizes = column.kind.is_padded() || column.kind.rank_of_shapes() > 0;
            let (is_image, index) = match column.source {
                ColumnSource::Image => (true, 0),
                ColumnSource::View(index) => (true, index),
                ColumnSource::PaddingMask(index) => (false, index),
                // Targets belong to the only picture.
                ColumnSource::Label
                | ColumnSource::Key
                | ColumnSource::Sample
                | ColumnSource::Further(_)
                | ColumnSource::Target(_)
                | ColumnSource::ImageSize(_) => (false, 0),
            };
            let (height, width) = limits.get(index).copied().unwrap_or((1, 1));
            let pixels = u64::from(height).saturating_mul(u64::from(width));
            // Masks of objects: a sample can have any number.
            let is_list = match &column.kind {
                ColumnKind::PaddedRagged { .. } => true,
                ColumnKind::Shaped { axes, .. } => !is_image && axes.len() == 3,
                ColumnKind::Tensor { .. }
                | ColumnKind::Ragged { .. }
                | ColumnKind::Bytes
                | ColumnKind::Text
                | ColumnKind::Padded { .. } => false,
            };
            if has_sizes && !is_list {
                let images = &recipe.images()[index];
                let channels = if is_image { images.result.channels } else { 1 };
                let bytes = u64::from(channels) * column.kind.element().bytes();
                *longest = pixels.saturating_mul(bytes).saturating_mul(images.pictures() as u64);
                continue;
            }
            self.read_footers()?;
            for record_batch in 0..self.record_batches() {
                interrupt.check().map_err(|_| Error::Interrupted)?;
                let bytes = match column.source {
                    ColumnSource::Further(index) | ColumnSource::Target(index) => {
                        let first = self.samples_of(record_batch).start;
                        value_bytes_max(column, &self.further(first, index)?.0)
                    }
                    ColumnSource::Key => {
                        let keys = self.keys_of(record_batch)?;
                        keys.iter().map(String::len).max().unwrap_or(0) as u64
                    }
                    ColumnSource::Image
                    | ColumnSource::View(_)
                    | ColumnSource::Label
                    | ColumnSource::Sample
                    | ColumnSource::ImageSize(_)
                    | ColumnSource::PaddingMask(_) => 0,
                };
                *longest = bytes.max(*longest);
            }
            if has_sizes {
                *longest = longest.saturating_mul(pixels);
            }
        }
        self.column_cache.reset_counts();
        Ok(longest)
    }

    fn keys_of(&self, record_batch: usize) -> Result<Vec<String>, Error> {
        let (member, own) = self.of_record_batch(record_batch);
        self.members[member].keys_of(own)
    }

    /// A sample's key.
    pub fn key(&self, sample: u64) -> Result<String, Error> {
        let (member, own) = self.of_sample(sample)?;
        let (first, row) = self.beside(member, own)?;
        let keys = self.recent_keys.of(first, || self.members[member].keys_beside(own));
        Ok(keys?[row].clone())
    }

    /// The sample with a key: with `keys.idx`, by one small read and one of its record batch's
    /// keys; otherwise by a scan of all keys ([`Self::key_lookup`] says which). With several
    /// folders, the first folder that has the key is used.
    ///
    /// A damaged index of keys is an error; it never makes a key appear absent.
    pub fn find(&self, key: &str) -> Result<Option<u64>, Error> {
        for (member, folder) in self.members.iter().enumerate() {
            let before = self.offset_of(member).sample;
            let Some(candidates) = folder.candidates(key)? else {
                match folder.scan(key)? {
                    Some(sample) => return Ok(Some(before + sample)),
                    None => continue,
                }
            };
            for sample in candidates {
                if self.key(before + sample)? == key {
                    return Ok(Some(before + sample));
                }
            }
        }
        Ok(None)
    }

    /// How keys are found, in the first folder.
    pub fn key_lookup(&self) -> KeyLookup {
        self.members[0].key_lookup()
    }
}

impl Drop for Dataset {
    fn drop(&mut self) {
        self.stop_remote();
    }
}
