//! Locates a sample's bytes with as little reading as possible.
//!
//! Opening reads the footers of all parts, or only that of the first part. In the second case, the
//! caller adds the footer of a part before it requests a sample of the part, and the footers of all
//! parts before it requests anything by the number of a record batch. The table of a record batch
//! is read when one of its samples is first requested, and cached (16 bytes per sample and 8 for
//! its label).
//!
//! Further columns are read individually on request and not cached; their positions are part of the
//! table.
//!
//! Entry points are read together with the table. They are cached only on request, in the order in
//! which tables are read, as long as they fit into the granted memory; other samples are decoded
//! without them, which takes longer and does not change the result. An epoch requests every sample
//! once, in random order, so a cache with eviction would have no higher hit rate with the same
//! memory, and would read more.

use super::batch_reader::BatchReader;
use super::footers::{Batch, Footers, find_row};
use super::{
    Columns, ContentFile, DatasetError, EntryPointTable, EntryPoints, Manifest, PartBytes,
    PartLayout,
};
use arrow_array::RecordBatch;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Default limit of the bytes of entry points that an index caches: more than those of ImageNet-1k
/// with one for each row of MCUs.
pub const ENTRY_POINTS_BYTES_MAX: u64 = 512 << 20;

/// The location of one sample, and its properties that are known without reading the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleLocation {
    /// Index of the part in the manifest.
    pub part: usize,
    /// Row in the part.
    pub row: u64,
    /// First byte of the image in the part's file, or in `file`.
    pub offset: u64,
    /// Bytes of the image.
    pub bytes: u64,
    /// CRC-32C of the image's bytes.
    pub crc32c: u32,
    /// Index into the label names.
    pub label: Option<i32>,
    /// The entry points, if they were packed and are cached.
    pub entry_points: Option<EntryPoints>,
    /// The file that contains the image, if it is not the part.
    pub file: Option<ContentFile>,
}

/// The index of a dataset. It can be shared between threads.
#[derive(Debug)]
pub struct Index {
    manifest: Manifest,
    /// The columns, without the one that locates images in other files.
    columns: Arc<Columns>,
    /// The columns in the files.
    stored: Arc<Columns>,
    footers: Footers,
    /// Bytes of entry points that may be cached.
    entry_points_granted: AtomicU64,
    /// Bytes of entry points that are cached.
    entry_points_kept: AtomicU64,
}

/// The rows of a record batch with uncached values, for iterating over all samples in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedRows {
    /// Index of the first row in the dataset.
    pub first_sample: u64,
    /// The key of each row.
    pub keys: Vec<String>,
    /// Their entry points; `None` when no row has any.
    pub entry_points: Option<EntryPointTable>,
}

impl Index {
    /// Reads the footers and checks them against the manifest (sizes, row counts, schema).
    pub fn open(manifest: Manifest, parts: &dyn PartBytes) -> Result<Self, DatasetError> {
        let layouts = manifest.parts.iter().enumerate();
        let layouts = layouts.map(|(part, entry)| PartLayout::read(part, entry, parts));
        let layouts = layouts.collect::<Result<_, _>>()?;
        Self::of_layouts(manifest, layouts)
    }

    /// As [`Self::open`], with footers of all parts that are already read.
    pub fn of_layouts(manifest: Manifest, layouts: Vec<PartLayout>) -> Result<Self, DatasetError> {
        if layouts.len() != manifest.parts.len() {
            let problem = format!("{} footers of {}", layouts.len(), manifest.parts.len());
            return Err(DatasetError::Manifest { problem });
        }
        let mut layouts = layouts.into_iter();
        let index = Self::of_first(manifest, layouts.next())?;
        for (part, layout) in (1..).zip(layouts) {
            index.add_footer(part, layout)?;
        }
        Ok(index)
    }

    /// An index with the footer of only the first part, which names the columns. `first` is `None`
    /// for a dataset without parts.
    pub fn of_first(manifest: Manifest, first: Option<PartLayout>) -> Result<Self, DatasetError> {
        if first.is_some() == manifest.parts.is_empty() {
            let problem = match first {
                Some(_) => "a footer, but no part".to_owned(),
                None => "no footer of the first part".to_owned(),
            };
            return Err(DatasetError::Manifest { problem });
        }
        let stored = Arc::new(match &first {
            Some(layout) => layout.columns.clone(),
            None => {
                let name = manifest.content_name().to_owned();
                let prepared = manifest.prepared().cloned();
                Columns { kind: manifest.kind(), name, prepared, ..Columns::images() }
            }
        });
        if let Some(problem) = first.as_ref().and_then(|_| manifest.differs(&stored)) {
            let part = manifest.parts[0].file.clone();
            return Err(DatasetError::Part { part, problem });
        }
        let columns = match stored.root() {
            Some(_) => Arc::new(stored.without_place()),
            None if manifest.is_in_place() && manifest.samples > 0 => {
                let problem = "its content is in other files, but no column locates it";
                return Err(DatasetError::Manifest { problem: problem.to_owned() });
            }
            None => Arc::clone(&stored),
        };
        let footers = Footers::unread(manifest.parts.iter().map(|entry| entry.samples));
        let (entry_points_granted, entry_points_kept) = Default::default();
        let index =
            Self { manifest, columns, stored, footers, entry_points_granted, entry_points_kept };
        if let Some(layout) = first {
            index.add_footer(0, layout)?;
        }
        Ok(index)
    }

    /// Whether the footer of a part was read.
    pub fn has_footer(&self, part: usize) -> bool {
        self.footers.has(part)
    }

    /// Whether the footers of all parts were read.
    pub fn has_all_footers(&self) -> bool {
        self.footers.has_all()
    }

    /// Adds the footer of a part. Has no effect if it is already there.
    pub fn add_footer(&self, part: usize, layout: PartLayout) -> Result<(), DatasetError> {
        if *self.stored != layout.columns {
            let problem = "its columns differ from those of the first part".to_owned();
            let part = self.manifest.parts[part].file.clone();
            return Err(DatasetError::Part { part, problem });
        }
        self.footers.add(part, layout.record_batches);
        Ok(())
    }

    /// The part of a sample.
    pub fn part_of(&self, sample: u64) -> Result<usize, DatasetError> {
        let samples = self.manifest.samples;
        if sample >= samples {
            return Err(DatasetError::OutOfRange { index: sample, samples });
        }
        Ok(self.footers.part_of(sample))
    }

    /// The samples of a part.
    pub fn samples_of_part(&self, part: usize) -> Range<u64> {
        self.footers.samples_of_part(part)
    }

    /// Caches entry points from now on, in at most `bytes_max` bytes of memory.
    ///
    /// By default none are cached: only recipes that decode regions use them.
    pub fn keep_entry_points(&self, bytes_max: u64) {
        self.entry_points_granted.fetch_max(bytes_max, Ordering::Relaxed);
    }

    /// Bytes of memory of the cached entry points.
    pub fn entry_points_bytes(&self) -> u64 {
        self.entry_points_kept.load(Ordering::Relaxed)
    }

    /// Number of record batches in all parts, whose footers must have been read.
    pub fn record_batches(&self) -> usize {
        self.footers.record_batches()
    }

    /// The columns of samples.
    pub fn columns(&self) -> &Arc<Columns> {
        &self.columns
    }

    /// The folder below which images are in separate files; `None` if they are in the parts.
    pub fn root(&self) -> Option<&str> {
        self.stored.root()
    }

    /// The record batch that contains a sample, and the sample's row in it.
    pub fn batch_of(&self, sample: u64) -> Result<(usize, usize), DatasetError> {
        let part = self.part_of(sample)?;
        let (_, own, row) = self.find_in_part(part, sample)?;
        Ok((self.footers.first_of(part) + own, row as usize))
    }

    /// The samples of the record batch that contains a sample.
    pub fn samples_beside(&self, sample: u64) -> Result<Range<u64>, DatasetError> {
        let (batch, _) = self.find_batch(sample)?;
        Ok(batch.samples())
    }

    /// The samples of a record batch.
    pub fn samples_of(&self, record_batch: usize) -> Range<u64> {
        self.footers.batch(record_batch).samples()
    }

    /// The part of a record batch and the byte range of all its images there; `None` if they are in
    /// other files, or if none of its samples was located yet.
    pub fn content_of(&self, record_batch: usize) -> Option<(usize, Range<u64>)> {
        let batch = self.footers.batch(record_batch);
        let table = batch.table.get().filter(|_| self.root().is_none())?;
        let (first, end) = (table.image_offsets.first()?, table.image_offsets.last()?);
        Some((batch.part, *first..*end))
    }

    /// The record batch of a sample: its part and its bytes there, and whether its table was read.
    pub fn extent_beside(&self, sample: u64) -> Result<(usize, Range<u64>, bool), DatasetError> {
        let (batch, _) = self.find_batch(sample)?;
        Ok((batch.part, batch.place.range(), batch.table.get().is_some()))
    }

    /// The samples that a range of bytes of a part belongs to. These are the samples of the record
    /// batches that it overlaps. Within a record batch whose table was read, a range of images
    /// narrows them to the samples of these images. All samples of the part if its footer was not
    /// read.
    pub fn samples_of_bytes(&self, part: usize, bytes: &Range<u64>) -> Range<u64> {
        self.footers.samples_of_bytes(part, bytes)
    }

    /// The further columns of a record batch, all or those of a projection in its order. Only
    /// their bytes are read, each compared with its checksum.
    pub fn extra(
        &self,
        record_batch: usize,
        projection: Option<&[usize]>,
        parts: &dyn PartBytes,
    ) -> Result<RecordBatch, DatasetError> {
        self.extra_of(self.footers.batch(record_batch), projection, parts)
    }

    /// As [`Self::extra`], of the record batch that contains a sample.
    pub fn extra_beside(
        &self,
        sample: u64,
        projection: Option<&[usize]>,
        parts: &dyn PartBytes,
    ) -> Result<RecordBatch, DatasetError> {
        self.extra_of(self.find_batch(sample)?.0, projection, parts)
    }

    fn extra_of(
        &self,
        batch: &Batch,
        projection: Option<&[usize]>,
        parts: &dyn PartBytes,
    ) -> Result<RecordBatch, DatasetError> {
        let fields = self.columns.extra.fields();
        let all: Vec<usize> = (0..fields.len()).collect();
        let wanted = projection.unwrap_or(&all);
        if let Some(column) = wanted.iter().find(|column| **column >= fields.len()) {
            let problem = format!("column {column} of {} further columns", fields.len());
            return Err(DatasetError::Columns { problem });
        }
        let schema = self.columns.extra.project(wanted).expect("columns were checked above");
        self.reader(batch, parts).extra(wanted, Arc::new(schema))
    }

    /// The keys and entry points of a record batch's rows.
    pub fn keyed_rows(
        &self,
        record_batch: usize,
        parts: &dyn PartBytes,
    ) -> Result<KeyedRows, DatasetError> {
        let batch = self.footers.batch(record_batch);
        let reader = self.reader(batch, parts);
        let metadata = reader.metadata()?;
        let keys = reader.keys(&metadata)?;
        let entry_points = reader.entry_points(&metadata)?;
        Ok(KeyedRows { first_sample: batch.first_sample, keys, entry_points })
    }

    /// The keys of a record batch's rows.
    pub fn keys(
        &self,
        record_batch: usize,
        parts: &dyn PartBytes,
    ) -> Result<Vec<String>, DatasetError> {
        let reader = self.reader(self.footers.batch(record_batch), parts);
        reader.keys(&reader.metadata()?)
    }

    /// As [`Self::keys`], of the record batch that contains a sample.
    pub fn keys_beside(
        &self,
        sample: u64,
        parts: &dyn PartBytes,
    ) -> Result<Vec<String>, DatasetError> {
        let reader = self.reader(self.find_batch(sample)?.0, parts);
        reader.keys(&reader.metadata()?)
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The location of a sample.
    pub fn locate(
        &self,
        sample: u64,
        parts: &dyn PartBytes,
    ) -> Result<SampleLocation, DatasetError> {
        let (batch, row) = self.find_batch(sample)?;
        let granted = self.entry_points_granted.load(Ordering::Relaxed);
        if batch.table.get().is_none() || granted > 0 && batch.entry_points.get().is_none() {
            let reader = self.reader(batch, parts);
            let metadata = reader.metadata()?;
            // Two threads may have read the same table. A thread that finds the table must also
            // find the locations, so they are set first.
            if self.stored.has_extra() && batch.extra.get().is_none() {
                reader.keep_extra(&metadata)?;
            }
            if self.root().is_some() && batch.places.get().is_none() {
                let places = reader.places()?;
                batch.places.get_or_init(|| places);
            }
            if batch.table.get().is_none() {
                let table = reader.table(&metadata)?;
                batch.table.get_or_init(|| table);
            }
            if granted > 0 {
                self.keep(batch, reader.entry_points(&metadata)?, granted);
            }
        }
        let table = batch.table.get().expect("it was read above or before");
        let row_index = row as usize;
        let offset = table.image_offsets[row_index];
        let bytes = table.image_offsets[row_index + 1] - offset;
        let (file, offset, bytes) = match batch.places.get().map(|places| places.row(row_index)) {
            Some(place) => (Some(place.file), place.offset, place.bytes),
            None => (None, offset, bytes),
        };
        let entry_points = batch.entry_points.get().and_then(Option::as_ref);
        Ok(SampleLocation {
            part: batch.part,
            row: batch.first_row + u64::from(row),
            offset,
            bytes,
            crc32c: table.crc32c[row_index],
            label: table.labels[row_index],
            entry_points: entry_points.and_then(|table| table.row(row_index)),
            file,
        })
    }

    /// Caches the entry points of a record batch if they fit.
    fn keep(&self, batch: &Batch, table: Option<EntryPointTable>, granted: u64) {
        batch.entry_points.get_or_init(|| {
            let bytes = table.as_ref()?.memory_bytes();
            let add = |kept: u64| kept.checked_add(bytes).filter(|kept| *kept <= granted);
            let kept = &self.entry_points_kept;
            let has_room = kept.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
            table.filter(|_| has_room)
        });
    }

    /// A sample's key.
    pub fn key(&self, sample: u64, parts: &dyn PartBytes) -> Result<String, DatasetError> {
        let (batch, row) = self.find_batch(sample)?;
        let reader = self.reader(batch, parts);
        reader.key(&reader.metadata()?, row).map(str::to_owned)
    }

    /// The sample with a key, by scanning the keys.
    pub fn find(&self, key: &str, parts: &dyn PartBytes) -> Result<Option<u64>, DatasetError> {
        for batch in self.footers.batches() {
            let reader = self.reader(batch, parts);
            let metadata = reader.metadata()?;
            for row in 0..batch.place.rows {
                if reader.key(&metadata, row)? == key {
                    return Ok(Some(batch.first_sample + u64::from(row)));
                }
            }
        }
        Ok(None)
    }

    /// The record batch of a sample, and the sample's row in it.
    fn find_batch(&self, sample: u64) -> Result<(&Batch, u32), DatasetError> {
        let (batches, own, row) = self.find_in_part(self.part_of(sample)?, sample)?;
        Ok((&batches[own], row))
    }

    /// The record batches of a sample's part, the index of the sample's own among them, and the
    /// sample's row in it.
    fn find_in_part(
        &self,
        part: usize,
        sample: u64,
    ) -> Result<(&[Batch], usize, u32), DatasetError> {
        let batches = self.footers.of_part(part).ok_or_else(|| DatasetError::Part {
            part: self.manifest.parts[part].file.clone(),
            problem: "its footer was not read".to_owned(),
        })?;
        let (own, row) = find_row(batches, sample)
            .ok_or(DatasetError::OutOfRange { index: sample, samples: self.manifest.samples })?;
        Ok((batches, own, row))
    }

    /// A reader of a record batch.
    fn reader<'a>(&'a self, batch: &'a Batch, parts: &'a dyn PartBytes) -> BatchReader<'a> {
        BatchReader { batch, manifest: &self.manifest, stored: &self.stored, parts }
    }
}
