//! The footers of parts that were read: the record batches of each part, by sample and by number.
//!
//! Footers are added in any order, by several threads. A record batch has a number only when the
//! footers of all parts are there.

use super::in_place::LocationTable;
use super::{EntryPointTable, ExtraTable, RecordBatchExtent, RowTable};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A record batch with its position among all samples, and what was read of it.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) part: usize,
    /// Its first row's index in the dataset.
    pub(super) first_sample: u64,
    /// Its first row's index in the part.
    pub(super) first_row: u64,
    pub(super) place: RecordBatchExtent,
    pub(super) table: OnceLock<RowTable>,
    /// Set when the table was read while entry points were cached; contains `None` if there are
    /// none or no space was left.
    pub(super) entry_points: OnceLock<Option<EntryPointTable>>,
    /// The locations of its images in other files; set when the table was read, in a dataset in
    /// place.
    pub(super) places: OnceLock<LocationTable>,
    /// The positions of its further columns; set when its message was read, in a dataset that has
    /// some.
    pub(super) extra: OnceLock<ExtraTable>,
}

impl Batch {
    /// A record batch of which nothing was read.
    fn new(part: usize, first_sample: u64, first_row: u64, place: RecordBatchExtent) -> Self {
        let (table, entry_points, places, extra) = Default::default();
        Self { part, first_sample, first_row, place, table, entry_points, places, extra }
    }

    /// Its samples in the dataset.
    pub(super) fn samples(&self) -> Range<u64> {
        self.first_sample..self.first_sample + u64::from(self.place.rows)
    }

    /// Its rows in the part.
    pub(super) fn rows(&self) -> Range<u64> {
        self.first_row..self.first_row + u64::from(self.place.rows)
    }

    /// The samples that a range of bytes of the part belongs to; all of them if it meets something
    /// other than images, or if the table is unknown.
    fn samples_of_bytes(&self, bytes: &Range<u64>) -> Range<u64> {
        let all = self.samples();
        let (Some(table), None) = (self.table.get(), self.places.get()) else { return all };
        let offsets = &table.image_offsets;
        let (Some(first), Some(end)) = (offsets.first(), offsets.last()) else { return all };
        if bytes.start < *first || bytes.end > *end {
            return all;
        }
        let start = offsets.partition_point(|offset| *offset <= bytes.start).saturating_sub(1);
        let end = offsets.partition_point(|offset| *offset < bytes.end).min(offsets.len() - 1);
        self.first_sample + start as u64..self.first_sample + end as u64
    }
}

/// A part.
#[derive(Debug)]
struct Part {
    /// Its samples in the dataset.
    samples: Range<u64>,
    /// Set when the footer was read.
    batches: OnceLock<Vec<Batch>>,
}

/// The footers of a dataset's parts, as far as they were read.
#[derive(Debug)]
pub(super) struct Footers {
    parts: Vec<Part>,
    /// Number of footers that were read.
    read: AtomicUsize,
    /// Number of the first record batch of each part, then the number of record batches in all
    /// parts; set once the footers of all parts are read.
    numbers: OnceLock<Vec<usize>>,
}

impl Footers {
    /// None of the footers of parts with these numbers of samples.
    pub(super) fn unread(samples: impl Iterator<Item = u64>) -> Self {
        let mut first_sample = 0;
        let parts = samples.map(|samples| {
            let samples = first_sample..first_sample + samples;
            first_sample = samples.end;
            Part { samples, batches: OnceLock::new() }
        });
        let (parts, read, numbers) = (parts.collect(), AtomicUsize::new(0), OnceLock::new());
        let footers = Self { parts, read, numbers };
        footers.number_if_complete();
        footers
    }

    /// Whether the footer of a part was read.
    pub(super) fn has(&self, part: usize) -> bool {
        self.parts[part].batches.get().is_some()
    }

    /// Whether the footers of all parts were read.
    pub(super) fn has_all(&self) -> bool {
        self.numbers.get().is_some()
    }

    /// Adds the record batches of a part. Has no effect if they are already there.
    pub(super) fn add(&self, part: usize, record_batches: Vec<RecordBatchExtent>) {
        let Part { samples, batches } = &self.parts[part];
        batches.get_or_init(|| {
            self.read.fetch_add(1, Ordering::SeqCst);
            let mut first_row = 0;
            let batch = |place: RecordBatchExtent| {
                let batch = Batch::new(part, samples.start + first_row, first_row, place);
                first_row = batch.rows().end;
                batch
            };
            record_batches.into_iter().map(batch).collect()
        });
        self.number_if_complete();
    }

    /// Numbers the record batches, if the footers of all parts are there.
    fn number_if_complete(&self) {
        if self.read.load(Ordering::SeqCst) < self.parts.len() {
            return;
        }
        let mut numbers = vec![0];
        let mut next = 0;
        for part in &self.parts {
            // Another thread has counted it, and numbers the record batches once it is there.
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

    /// Number of record batches in all parts.
    pub(super) fn record_batches(&self) -> usize {
        self.numbers().last().copied().unwrap_or(0)
    }

    /// Number of the first record batch of a part.
    pub(super) fn first_of(&self, part: usize) -> usize {
        self.numbers()[part]
    }

    /// A record batch by its number.
    pub(super) fn batch(&self, record_batch: usize) -> &Batch {
        let numbers = self.numbers();
        let part = numbers.partition_point(|first| *first <= record_batch) - 1;
        let batches = self.parts[part].batches.get().expect("the footers of all parts are read");
        &batches[record_batch - numbers[part]]
    }

    /// The record batches that are known, in order.
    pub(super) fn batches(&self) -> impl Iterator<Item = &Batch> {
        self.parts.iter().flat_map(|part| part.batches.get().into_iter().flatten())
    }

    /// The record batches of a part; `None` if its footer was not read.
    pub(super) fn of_part(&self, part: usize) -> Option<&[Batch]> {
        self.parts[part].batches.get().map(Vec::as_slice)
    }

    /// The part of a sample of the dataset.
    pub(super) fn part_of(&self, sample: u64) -> usize {
        // A part without samples begins where the next one does.
        self.parts.partition_point(|part| part.samples.start <= sample) - 1
    }

    /// The samples of a part.
    pub(super) fn samples_of_part(&self, part: usize) -> Range<u64> {
        self.parts[part].samples.clone()
    }

    /// The samples that a range of bytes of a part belongs to.
    pub(super) fn samples_of_bytes(&self, part: usize, bytes: &Range<u64>) -> Range<u64> {
        let Some(batches) = self.of_part(part) else { return self.samples_of_part(part) };
        let first = batches.partition_point(|batch| batch.place.range().end <= bytes.start);
        let met = batches[first..].iter().take_while(|batch| batch.place.offset < bytes.end);
        let mut samples: Option<Range<u64>> = None;
        for batch in met {
            let Range { start, end } = batch.samples_of_bytes(bytes);
            samples = Some(samples.map_or(start..end, |it| it.start.min(start)..end));
        }
        samples.unwrap_or(0..0)
    }
}

/// The index of a sample's record batch among those of its part, and the sample's row in it.
pub(super) fn find_row(batches: &[Batch], sample: u64) -> Option<(usize, u32)> {
    let own = batches.partition_point(|batch| batch.first_sample <= sample).checked_sub(1)?;
    let row = u32::try_from(sample - batches[own].first_sample).ok()?;
    (row < batches[own].place.rows).then_some((own, row))
}
