//! Finds where a sample's bytes lie by reading as little as possible.
//!
//! Opening reads the footer of each part; the table of a record batch is read when one of its
//! samples is first asked for, and kept (16 bytes a sample and 8 for its label).

use super::{DatasetError, Manifest, PartLayout, RecordBatchMetadata, RecordBatchPlace, RowTable};
use std::sync::OnceLock;

/// Random access to the bytes of the parts: the one thing that an [`Index`] asks of its caller.
pub trait PartBytes {
    /// Length of a part in bytes.
    fn part_bytes(&self, part: usize) -> std::io::Result<u64>;
    /// Fills `into` from `offset`, whole or not at all.
    fn read_exact_at(&self, part: usize, offset: u64, into: &mut [u8]) -> std::io::Result<()>;
}

/// Where one sample lies, and what is known of it without reading the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleLocation {
    /// Index of the part in the manifest.
    pub part: usize,
    /// Row in the part.
    pub row: u64,
    /// First byte of the image in the part's file.
    pub offset: u64,
    /// Bytes of the image.
    pub bytes: u64,
    /// CRC-32C of the image's bytes.
    pub crc32c: u32,
    /// Index into the labels.
    pub label: Option<i32>,
}

/// A record batch with its place among all samples.
#[derive(Debug)]
struct Batch {
    part: usize,
    /// Its first row's index in the dataset.
    first_sample: u64,
    /// Its first row's index in the part.
    first_row: u64,
    place: RecordBatchPlace,
    table: OnceLock<RowTable>,
}

/// The index of a dataset. Shareable among threads.
#[derive(Debug)]
pub struct Index {
    manifest: Manifest,
    /// Ascending by `first_sample`.
    batches: Vec<Batch>,
}

impl Index {
    /// Reads the footers and holds them against the manifest (sizes, row counts, schema).
    pub fn open(manifest: Manifest, parts: &dyn PartBytes) -> Result<Self, DatasetError> {
        let mut batches = Vec::new();
        let mut first_sample = 0;
        for (part, entry) in manifest.parts.iter().enumerate() {
            let layout = PartLayout::read(part, entry, parts)?;
            let mut first_row = 0;
            for place in layout.record_batches {
                let rows = u64::from(place.rows);
                let table = OnceLock::new();
                batches.push(Batch { part, first_sample, first_row, place, table });
                first_sample += rows;
                first_row += rows;
            }
        }
        Ok(Self { manifest, batches })
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where a sample lies.
    pub fn locate(
        &self,
        sample: u64,
        parts: &dyn PartBytes,
    ) -> Result<SampleLocation, DatasetError> {
        let (batch, row) = self.batch_of(sample)?;
        let table = match batch.table.get() {
            Some(table) => table,
            None => {
                let table = self.read_table(batch, &self.read_metadata(batch, parts)?)?;
                // Two threads may have read it; both tables are the same.
                batch.table.get_or_init(|| table)
            }
        };
        let row_index = row as usize;
        let offset = table.image_offsets[row_index];
        Ok(SampleLocation {
            part: batch.part,
            row: batch.first_row + u64::from(row),
            offset,
            bytes: table.image_offsets[row_index + 1] - offset,
            crc32c: table.crc32c[row_index],
            label: table.labels[row_index],
        })
    }

    /// A sample's key.
    pub fn key(&self, sample: u64, parts: &dyn PartBytes) -> Result<String, DatasetError> {
        let (batch, row) = self.batch_of(sample)?;
        let metadata = self.read_metadata(batch, parts)?;
        match metadata.key(row) {
            Ok(key) => Ok(key.to_owned()),
            Err(problem) => Err(self.broken(batch, &problem)),
        }
    }

    /// The sample with a key, by scanning the keys.
    pub fn find(&self, key: &str, parts: &dyn PartBytes) -> Result<Option<u64>, DatasetError> {
        for batch in &self.batches {
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

    fn batch_of(&self, sample: u64) -> Result<(&Batch, u32), DatasetError> {
        let after = self.batches.partition_point(|batch| batch.first_sample <= sample);
        let found = after.checked_sub(1).map(|index| &self.batches[index]);
        found
            .and_then(|batch| {
                let row = u32::try_from(sample - batch.first_sample).ok()?;
                (row < batch.place.rows).then_some((batch, row))
            })
            .ok_or(DatasetError::OutOfRange { index: sample, samples: self.manifest.samples })
    }

    /// Reads a batch without its images and checks that it is what was written.
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
                 {expected:#010x}; `meetpoint verify` tells where"
            );
            return Err(self.broken(batch, &problem));
        }
        Ok(metadata)
    }

    /// Reads a batch's table and holds it against the manifest.
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
