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

use super::in_place::LocationTable;
use super::{
    Columns, ContentFile, DatasetError, EntryPointTable, EntryPoints, ExtraBytes, ExtraTable,
    Manifest, PartBytes, PartLayout, RecordBatchExtent, RecordBatchMetadata, RowTable,
};
use crate::checksum::crc32c;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

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

/// A record batch with its position among all samples.
#[derive(Debug)]
struct Batch {
    part: usize,
    /// Its first row's index in the dataset.
    first_sample: u64,
    /// Its first row's index in the part.
    first_row: u64,
    place: RecordBatchExtent,
    table: OnceLock<RowTable>,
    /// Set when the table was read while entry points were cached; contains `None` if there are
    /// none or no space was left.
    entry_points: OnceLock<Option<EntryPointTable>>,
    /// The locations of its images in other files; set when the table was read, in a dataset in
    /// place.
    places: OnceLock<LocationTable>,
    /// The positions of its further columns; set when its message was read, in a dataset that has
    /// some.
    extra: OnceLock<ExtraTable>,
}

/// The record batches of a part.
#[derive(Debug)]
struct PartIndex {
    /// Its first row's index in the dataset.
    first_sample: u64,
    /// Set when the footer was read.
    batches: OnceLock<Vec<Batch>>,
}

/// The index of a dataset. It can be shared between threads.
#[derive(Debug)]
pub struct Index {
    manifest: Manifest,
    /// The columns, without the one that locates images in other files.
    columns: Arc<Columns>,
    /// The columns in the files.
    stored: Arc<Columns>,
    parts: Vec<PartIndex>,
    /// Number of footers that were read.
    footers: AtomicUsize,
    /// Number of the first record batch of each part, then the number of record batches in all
    /// parts; set once the footers of all parts are read.
    numbers: OnceLock<Vec<usize>>,
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

/// The rows of a record batch that a range of bytes belongs to; all of them if it meets something
/// other than images, or if the table is unknown.
fn rows_of_bytes(batch: &Batch, bytes: &Range<u64>) -> Range<u64> {
    let all = 0..u64::from(batch.place.rows);
    let (Some(table), None) = (batch.table.get(), batch.places.get()) else { return all };
    let offsets = &table.image_offsets;
    let (Some(first), Some(end)) = (offsets.first(), offsets.last()) else { return all };
    if bytes.start < *first || bytes.end > *end {
        return all;
    }
    let start = offsets.partition_point(|offset| *offset <= bytes.start).saturating_sub(1);
    let end = offsets.partition_point(|offset| *offset < bytes.end).min(offsets.len() - 1);
    start as u64..end as u64
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
        let mut first_sample = 0;
        let parts = manifest.parts.iter().map(|entry| {
            let part = PartIndex { first_sample, batches: OnceLock::new() };
            first_sample += entry.samples;
            part
        });
        let parts = parts.collect();
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
        let (footers, numbers) = Default::default();
        let (entry_points_granted, entry_points_kept) = Default::default();
        let index = Self {
            manifest,
            columns,
            stored,
            parts,
            footers,
            numbers,
            entry_points_granted,
            entry_points_kept,
        };
        match first {
            Some(layout) => index.add_footer(0, layout)?,
            None => index.number(),
        }
        Ok(index)
    }

    /// Whether the footer of a part was read.
    pub fn has_footer(&self, part: usize) -> bool {
        self.parts[part].batches.get().is_some()
    }

    /// Whether the footers of all parts were read.
    pub fn has_all_footers(&self) -> bool {
        self.numbers.get().is_some()
    }

    /// Adds the footer of a part. Has no effect if it is already there.
    pub fn add_footer(&self, part: usize, layout: PartLayout) -> Result<(), DatasetError> {
        if *self.stored != layout.columns {
            let problem = "its columns differ from those of the first part".to_owned();
            let part = self.manifest.parts[part].file.clone();
            return Err(DatasetError::Part { part, problem });
        }
        let PartIndex { first_sample, batches } = &self.parts[part];
        batches.get_or_init(|| {
            self.footers.fetch_add(1, Ordering::SeqCst);
            let mut first_row = 0;
            let batch = |place: RecordBatchExtent| {
                let rows = u64::from(place.rows);
                let (table, entry_points, extra, places) = Default::default();
                let batch = Batch {
                    part,
                    first_sample: first_sample + first_row,
                    first_row,
                    place,
                    table,
                    entry_points,
                    places,
                    extra,
                };
                first_row += rows;
                batch
            };
            layout.record_batches.into_iter().map(batch).collect()
        });
        if self.footers.load(Ordering::SeqCst) == self.parts.len() {
            self.number();
        }
        Ok(())
    }

    /// Numbers the record batches, if the footers of all parts are there.
    fn number(&self) {
        let mut numbers = vec![0];
        let mut next = 0;
        for part in &self.parts {
            let Some(batches) = part.batches.get() else { return };
            next += batches.len();
            numbers.push(next);
        }
        self.numbers.get_or_init(|| numbers);
    }

    /// The numbers of record batches.
    fn numbers(&self) -> &[usize] {
        let numbers = self.numbers.get();
        numbers.expect("the footers of all parts are read before record batches are numbered")
    }

    /// A record batch by its number.
    fn batch(&self, record_batch: usize) -> &Batch {
        let numbers = self.numbers();
        let part = numbers.partition_point(|first| *first <= record_batch) - 1;
        let batches = self.parts[part].batches.get().expect("the footers of all parts are read");
        &batches[record_batch - numbers[part]]
    }

    /// All record batches in order.
    fn batches(&self) -> impl Iterator<Item = &Batch> {
        self.parts.iter().flat_map(|part| part.batches.get().into_iter().flatten())
    }

    /// The part of a sample.
    pub fn part_of(&self, sample: u64) -> Result<usize, DatasetError> {
        let samples = self.manifest.samples;
        if sample >= samples {
            return Err(DatasetError::OutOfRange { index: sample, samples });
        }
        // A part without samples begins where the next one does.
        Ok(self.parts.partition_point(|part| part.first_sample <= sample) - 1)
    }

    /// The samples of a part.
    pub fn samples_of_part(&self, part: usize) -> Range<u64> {
        let first = self.parts[part].first_sample;
        first..first + self.manifest.parts[part].samples
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
        self.numbers().last().copied().unwrap_or(0)
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
        Ok((self.numbers()[part] + own, row as usize))
    }

    /// The samples of the record batch that contains a sample.
    pub fn samples_beside(&self, sample: u64) -> Result<Range<u64>, DatasetError> {
        let (batch, _) = self.find_batch(sample)?;
        Ok(batch.first_sample..batch.first_sample + u64::from(batch.place.rows))
    }

    /// The samples of a record batch.
    pub fn samples_of(&self, record_batch: usize) -> Range<u64> {
        let batch = self.batch(record_batch);
        batch.first_sample..batch.first_sample + u64::from(batch.place.rows)
    }

    /// The part of a record batch and the byte range of all its images there; `None` if they are in
    /// other files, or if none of its samples was located yet.
    pub fn content_of(&self, record_batch: usize) -> Option<(usize, Range<u64>)> {
        let batch = self.batch(record_batch);
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
        let Some(batches) = self.parts[part].batches.get() else {
            return self.samples_of_part(part);
        };
        let first = batches.partition_point(|batch| batch.place.range().end <= bytes.start);
        let met = batches[first..].iter().take_while(|batch| batch.place.offset < bytes.end);
        let mut samples: Option<Range<u64>> = None;
        for batch in met {
            let rows = rows_of_bytes(batch, bytes);
            let start = batch.first_sample + rows.start;
            let end = batch.first_sample + rows.end;
            samples = Some(samples.map_or(start..end, |it| it.start.min(start)..end));
        }
        samples.unwrap_or(0..0)
    }

    /// The further columns of a record batch, all or those of a projection in its order. Only
    /// their bytes are read, each compared with its checksum.
    pub fn extra(
        &self,
        record_batch: usize,
        projection: Option<&[usize]>,
        parts: &dyn PartBytes,
    ) -> Result<RecordBatch, DatasetError> {
        self.extra_of(self.batch(record_batch), projection, parts)
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
        if !wanted.is_empty() && batch.extra.get().is_none() {
            let metadata = self.read_metadata(batch, parts)?;
            self.keep_extra(batch, &metadata)?;
        }
        let columns = wanted
            .iter()
            .map(|column| self.extra_column(batch, *column, parts))
            .collect::<Result<Vec<_>, _>>()?;
        let rows = usize::try_from(batch.place.rows).expect("at most 65,536");
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = self.columns.extra.project(wanted).expect("columns were checked above");
        RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)
            .map_err(|error| self.broken(batch, &format!("{error}; pack again")))
    }

    /// Reads, checks and decodes a further column of a record batch whose positions are known.
    fn extra_column(
        &self,
        batch: &Batch,
        column: usize,
        parts: &dyn PartBytes,
    ) -> Result<ArrayRef, DatasetError> {
        let table = batch.extra.get().expect("it was read before");
        let part = &self.manifest.parts[batch.part].file;
        let field = &self.stored.extra.fields()[column];
        let broken = |problem: String| DatasetError::Extra {
            part: part.clone(),
            first_row: batch.first_row,
            last_row: batch.first_row + u64::from(batch.place.rows) - 1,
            column: field.name().clone(),
            problem: format!("{problem}; restore the part or pack again"),
        };
        let range = table.range(column).map_err(broken)?;
        let length = usize::try_from(range.end - range.start).expect("it has a limit");
        let mut bytes = ExtraBytes::zeroed(length);
        parts
            .read_exact_at(batch.part, range.start, bytes.as_mut_slice())
            .map_err(|source| DatasetError::Io { part: part.clone(), source })?;
        let (got, expected) = (crc32c(bytes.as_slice()), batch.place.extra_crc32c[column]);
        if got != expected {
            return Err(broken(format!(
                "checksum is {got:#010x}, the footer says {expected:#010x}"
            )));
        }
        table.decode(column, field, bytes).map_err(broken)
    }

    /// Caches the positions of the further columns of a record batch.
    fn keep_extra(
        &self,
        batch: &Batch,
        metadata: &RecordBatchMetadata,
    ) -> Result<(), DatasetError> {
        let table = metadata.extra(&self.stored).map_err(|problem| self.broken(batch, &problem))?;
        batch.extra.get_or_init(|| table);
        Ok(())
    }

    /// The keys and entry points of a record batch's rows.
    pub fn keyed_rows(
        &self,
        record_batch: usize,
        parts: &dyn PartBytes,
    ) -> Result<KeyedRows, DatasetError> {
        let batch = self.batch(record_batch);
        let metadata = self.read_metadata(batch, parts)?;
        let keys = self.keys_of(batch, &metadata)?;
        let entry_points =
            metadata.entry_points().map_err(|problem| self.broken(batch, &problem))?;
        Ok(KeyedRows { first_sample: batch.first_sample, keys, entry_points })
    }

    /// The keys of a record batch's rows.
    pub fn keys(
        &self,
        record_batch: usize,
        parts: &dyn PartBytes,
    ) -> Result<Vec<String>, DatasetError> {
        let batch = self.batch(record_batch);
        self.keys_of(batch, &self.read_metadata(batch, parts)?)
    }

    /// As [`Self::keys`], of the record batch that contains a sample.
    pub fn keys_beside(
        &self,
        sample: u64,
        parts: &dyn PartBytes,
    ) -> Result<Vec<String>, DatasetError> {
        let (batch, _) = self.find_batch(sample)?;
        self.keys_of(batch, &self.read_metadata(batch, parts)?)
    }

    fn keys_of(
        &self,
        batch: &Batch,
        metadata: &RecordBatchMetadata,
    ) -> Result<Vec<String>, DatasetError> {
        (0..batch.place.rows)
            .map(|row| metadata.key(row).map(str::to_owned))
            .collect::<Result<_, _>>()
            .map_err(|problem| self.broken(batch, &problem))
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
            let metadata = self.read_metadata(batch, parts)?;
            // Two threads may have read the same table. A thread that finds the table must also
            // find the locations, so they are set first.
            if self.stored.has_extra() && batch.extra.get().is_none() {
                self.keep_extra(batch, &metadata)?;
            }
            if self.root().is_some() && batch.places.get().is_none() {
                let places = self.read_places(batch, parts)?;
                batch.places.get_or_init(|| places);
            }
            if batch.table.get().is_none() {
                let table = self.read_table(batch, &metadata)?;
                batch.table.get_or_init(|| table);
            }
            if granted > 0 {
                self.keep(batch, &metadata, granted)?;
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

    /// Reads the locations of the images of a record batch in other files.
    fn read_places(
        &self,
        batch: &Batch,
        parts: &dyn PartBytes,
    ) -> Result<LocationTable, DatasetError> {
        let last = self.stored.extra.fields().len() - 1;
        let column = self.extra_column(batch, last, parts)?;
        LocationTable::parse(&column, self.manifest.image_bytes_max)
            .map_err(|problem| self.broken(batch, &problem))
    }

    /// Caches the entry points of a record batch if they fit.
    fn keep(
        &self,
        batch: &Batch,
        metadata: &RecordBatchMetadata,
        granted: u64,
    ) -> Result<(), DatasetError> {
        let table = metadata.entry_points().map_err(|problem| self.broken(batch, &problem))?;
        batch.entry_points.get_or_init(|| {
            let bytes = table.as_ref()?.memory_bytes();
            let add = |kept: u64| kept.checked_add(bytes).filter(|kept| *kept <= granted);
            let kept = &self.entry_points_kept;
            let has_room = kept.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
            table.filter(|_| has_room)
        });
        Ok(())
    }

    /// A sample's key.
    pub fn key(&self, sample: u64, parts: &dyn PartBytes) -> Result<String, DatasetError> {
        let (batch, row) = self.find_batch(sample)?;
        let metadata = self.read_metadata(batch, parts)?;
        match metadata.key(row) {
            Ok(key) => Ok(key.to_owned()),
            Err(problem) => Err(self.broken(batch, &problem)),
        }
    }

    /// The sample with a key, by scanning the keys.
    pub fn find(&self, key: &str, parts: &dyn PartBytes) -> Result<Option<u64>, DatasetError> {
        for batch in self.batches() {
            let metadata = self.read_metadata(batch, parts)?;
            for row in 0..batch.place.rows {
                let found = metadata.key(row).map_err(|problem| self.broken(batch, &problem))?;
                if found == key {
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
        let out_of_range =
            || DatasetError::OutOfRange { index: sample, samples: self.manifest.samples };
        let batches = self.parts[part].batches.get().ok_or_else(|| DatasetError::Part {
            part: self.manifest.parts[part].file.clone(),
            problem: "its footer was not read".to_owned(),
        })?;
        let after = batches.partition_point(|batch| batch.first_sample <= sample);
        let own = after.checked_sub(1).ok_or_else(out_of_range)?;
        let row = u32::try_from(sample - batches[own].first_sample).ok();
        let row = row.filter(|row| *row < batches[own].place.rows).ok_or_else(out_of_range)?;
        Ok((batches, own, row))
    }

    /// Reads a record batch without its images and verifies its checksum.
    fn read_metadata(
        &self,
        batch: &Batch,
        parts: &dyn PartBytes,
    ) -> Result<RecordBatchMetadata, DatasetError> {
        let name = &self.manifest.parts[batch.part].file;
        let metadata = RecordBatchMetadata::read(batch.part, name, &batch.place, parts)?;
        let (got, expected) = (metadata.crc32c(), batch.place.rest_crc32c);
        if got != expected {
            let problem = format!(
                "keys, labels or offsets have checksum {got:#010x}, the footer says \
                 {expected:#010x}"
            );
            return Err(self.broken(batch, &problem));
        }
        Ok(metadata)
    }

    /// Reads the table of a record batch and checks it against the manifest.
    fn read_table(
        &self,
        batch: &Batch,
        metadata: &RecordBatchMetadata,
    ) -> Result<RowTable, DatasetError> {
        let table = metadata.rows().map_err(|problem| self.broken(batch, &problem))?;
        let longest = self.manifest.image_bytes_max;
        if let Some(pair) = table.image_offsets.windows(2).find(|pair| pair[1] - pair[0] > longest)
        {
            let bytes = pair[1] - pair[0];
            let problem = format!("an image of {bytes} bytes, dataset.json says at most {longest}");
            return Err(self.broken(batch, &problem));
        }
        let labels = self.manifest.labels.len();
        let known = |label: &i32| usize::try_from(*label).is_ok_and(|label| label < labels);
        if let Some(label) = table.labels.iter().flatten().find(|label| !known(label)) {
            let problem = format!("label {label}, dataset.json names {labels} labels");
            return Err(self.broken(batch, &problem));
        }
        Ok(table)
    }

    fn broken(&self, batch: &Batch, problem: &str) -> DatasetError {
        let rows = batch.first_row..batch.first_row + u64::from(batch.place.rows);
        DatasetError::Part {
            part: self.manifest.parts[batch.part].file.clone(),
            problem: format!("rows {} to {}: {problem}", rows.start, rows.end - 1),
        }
    }
}
