//! The columns of the current batch other than images: values are staged as samples arrive, and
//! written after the images when the batch is complete.

use super::collated::Collated;
use crate::{BatchMemory, Dataset, Error};
use meetpoint_format::column::{
    AXES_MAX, BatchColumns, BatchLayout, COLUMN_ALIGNMENT, Collate, Column, ColumnKind,
    ColumnSource, TargetColumn, append_files, append_value,
};
use meetpoint_format::dataset::SampleLocation;
use meetpoint_format::recipe::{Recipe, SoftLabels, TargetKind, TensorSpec};
use meetpoint_kernels::{BatchMixer, SamplePreparer};
use std::ops::Range;
use std::sync::Arc;

/// The columns of the batch in progress.
#[derive(Debug)]
pub(super) struct Table {
    columns: Arc<BatchColumns>,
    targets: Vec<Target>,
    /// The conversion of labels to rows, if the recipe has one.
    soft_labels: Option<SoftLabels>,
    /// Where pictures may have different sizes.
    collated: Option<Collated>,
    /// Values of the columns that are read from the dataset, by column.
    staged: Vec<Staged>,
    /// The sample at each position; `None` for a skipped one.
    held_at: Vec<Option<BatchSample>>,
}

/// A column that moves with the images.
#[derive(Debug)]
struct Target {
    /// The column as the dataset holds it.
    stored: Column,
    /// Whether that is a file for each object.
    is_file_per_object: bool,
    /// Index among the further columns of the dataset.
    further: usize,
    /// Index of its column of the batch, if it is one.
    own: Option<usize>,
    /// Columns of the batch from which the rows of dropped boxes are removed.
    filtered: Vec<usize>,
    /// The stored value of the current sample.
    value: Vec<u8>,
}

/// A sample that a batch holds.
#[derive(Debug, Clone, Copy)]
struct BatchSample {
    sample: u64,
    label: Option<i32>,
}

/// Values of one column, in the order in which samples arrived.
#[derive(Debug, Default)]
struct Staged {
    bytes: Vec<u8>,
    /// By position in the batch.
    ranges: Vec<Range<usize>>,
}

impl Staged {
    /// Keeps some rows of the value of a position, which was taken last. Returns how many rows it
    /// has, where these are not as many as expected.
    fn filter(&mut self, position: usize, row_bytes: usize, kept: &[bool]) -> Result<(), usize> {
        let range = self.ranges[position].clone();
        let rows = range.len() / row_bytes;
        if rows != kept.len() {
            return Err(rows);
        }
        let mut end = range.start;
        for (row, _) in kept.iter().enumerate().filter(|(_, is_kept)| **is_kept) {
            let from = range.start + row * row_bytes;
            self.bytes.copy_within(from..from + row_bytes, end);
            end += row_bytes;
        }
        self.bytes.truncate(end);
        self.ranges[position] = range.start..end;
        Ok(())
    }
}

impl Table {
    /// A table of these columns, some of which need these targets; what labels become; and how
    /// pictures of different sizes of a recipe become one batch.
    pub(super) fn new(
        columns: Arc<BatchColumns>,
        (targets, soft_labels): (Vec<TargetColumn>, Option<SoftLabels>),
        collated: Option<(Collate, &Recipe)>,
    ) -> Self {
        let named = targets.iter().map(|it| (it.name.clone(), it.target.clone()));
        let named: Vec<(String, TargetKind)> = named.collect();
        let collated = collated.map(|how| Collated::new(&columns, &named, how));
        let targets = targets.into_iter().map(|target| {
            let TargetColumn { name, further, stored: kind, is_file_per_object, filtered, .. } =
                target;
            let own = columns.position_of(ColumnSource::Target(further));
            let stored = Column { name, kind, source: ColumnSource::Further(further) };
            Target { stored, is_file_per_object, further, own, filtered, value: Vec::new() }
        });
        let targets = targets.collect();
        let staged = columns.as_slice().iter().map(|_| Staged::default()).collect();
        Self { columns, targets, soft_labels, collated, staged, held_at: Vec::new() }
    }

    pub(super) fn columns(&self) -> &Arc<BatchColumns> {
        &self.columns
    }

    /// Whether batches have images.
    pub(super) fn has_images(&self) -> bool {
        self.columns.pictures().next().is_some()
    }

    /// Whether batches have targets that move with the image.
    pub(super) fn has_targets(&self) -> bool {
        !self.targets.is_empty()
    }

    /// Begins a batch with a given number of positions.
    pub(super) fn begin(&mut self, positions: usize) {
        self.held_at.clear();
        self.held_at.resize(positions, None);
        for staged in &mut self.staged {
            staged.bytes.clear();
            staged.ranges.clear();
            staged.ranges.resize(positions, 0..0);
        }
        if let Some(collated) = &mut self.collated {
            collated.begin(positions);
        }
    }

    /// The memory to which pictures of different sizes are appended, by column with pictures;
    /// `None` if all have the same. It is to be given back by [`Self::put_pictures`].
    pub(super) fn take_pictures(&mut self) -> Option<Vec<Vec<u8>>> {
        self.collated.as_ref()?;
        let staged = &mut self.staged;
        Some(self.columns.pictures().map(|it| std::mem::take(&mut staged[it].bytes)).collect())
    }

    /// Takes the memory back, and the pictures of a position that were appended to it, if they
    /// were.
    pub(super) fn put_pictures(
        &mut self,
        position: usize,
        memory: Vec<Vec<u8>>,
        pictures: Option<&[Vec<TensorSpec>]>,
    ) {
        for (at, (column, bytes)) in self.columns.pictures().zip(memory).enumerate() {
            let end = bytes.len();
            self.staged[column].bytes = bytes;
            if let Some(specs) = pictures.map(|it| &it[at]) {
                let appended: usize = specs.iter().map(TensorSpec::bytes).sum();
                self.staged[column].ranges[position] = end - appended..end;
            }
        }
        if let (Some(specs), Some(collated)) = (pictures, &mut self.collated) {
            collated.set(position, specs);
        }
    }

    /// Refuses a batch as soon as it is known that its memory cannot hold it.
    pub(super) fn check_room(&self, memory: &mut dyn BatchMemory) -> Result<(), Error> {
        if self.collated.is_none() || memory.may_grow() {
            return Ok(());
        }
        let got = memory.bytes_mut().len();
        // Without padding, offsets and other columns.
        let ranges =
            self.columns.pictures().flat_map(|it| held_ranges(&self.staged[it], &self.held_at));
        let needed = ranges.map(Range::len).sum();
        if needed > got { Err(Error::BatchTooLarge { needed, got }) } else { Ok(()) }
    }

    /// Reads the stored values of the targets of a sample.
    pub(super) fn read_targets(
        &mut self,
        sample: (u64, &SampleLocation),
        dataset: &Dataset,
    ) -> Result<(), Error> {
        for Target { stored, is_file_per_object, further, value, .. } in &mut self.targets {
            value.clear();
            let stored = (&*stored, *is_file_per_object);
            read_further(stored, *further, sample, dataset, value)?;
        }
        Ok(())
    }

    /// The stored values of the targets of the sample that was read last, in the order of the
    /// targets.
    pub(super) fn stored_targets(&self) -> Vec<&[u8]> {
        self.targets.iter().map(|target| &target.value[..]).collect()
    }

    /// Takes the targets of a sample for a position whose other values were taken last, and removes
    /// the rows of boxes that are left out.
    pub(super) fn take_targets(
        &mut self,
        position: usize,
        (sample, location): (u64, &SampleLocation),
        dataset: &Dataset,
        preparer: &SamplePreparer,
    ) -> Result<(), Error> {
        for (index, target) in self.targets.iter().enumerate() {
            let Some(own) = target.own else { continue };
            let staged = &mut self.staged[own];
            let start = staged.bytes.len();
            staged.bytes.extend_from_slice(preparer.target(index));
            staged.ranges[position] = start..staged.bytes.len();
        }
        for (index, target) in self.targets.iter().enumerate() {
            let Some(kept) = preparer.retained(index) else { continue };
            for &filtered in &target.filtered {
                let column = &self.columns.as_slice()[filtered];
                let row_bytes = match &self.collated {
                    Some(collated) => collated.row_bytes((filtered, column), position),
                    None => {
                        let bytes = column.kind.row_bytes().expect("columns were checked");
                        usize::try_from(bytes).expect("its rows are in memory")
                    }
                };
                if let Err(rows) = self.staged[filtered].filter(position, row_bytes, kept) {
                    let (_, row, key) = dataset.location_in_words(sample, location);
                    let part = dataset.part_path(location.part).display().to_string();
                    let (column, boxes) = (column.name.clone(), target.stored.name.clone());
                    let count = kept.len();
                    return Err(Error::RowsOfBoxes { part, row, key, column, boxes, rows, count });
                }
            }
        }
        Ok(())
    }

    /// Takes the values of a sample for a position, but for its targets.
    pub(super) fn take(
        &mut self,
        position: usize,
        (sample, location): (u64, &SampleLocation),
        dataset: &Dataset,
    ) -> Result<(), Error> {
        for (column, staged) in self.columns.as_slice().iter().zip(&mut self.staged) {
            let start = staged.bytes.len();
            match column.source {
                ColumnSource::Key => {
                    staged.bytes.extend_from_slice(dataset.key(sample)?.as_bytes());
                }
                ColumnSource::Further(index) => {
                    let place = (sample, location);
                    read_further((column, false), index, place, dataset, &mut staged.bytes)
                        .inspect_err(|_| staged.bytes.truncate(start))?;
                }
                ColumnSource::Label => {
                    self.soft_labels.map_or(Ok(()), |labels| {
                        check_label(labels, (sample, location), dataset)
                    })?;
                    continue;
                }
                ColumnSource::Image
                | ColumnSource::View(_)
                | ColumnSource::Sample
                | ColumnSource::Target(_)
                | ColumnSource::ImageSize(_)
                | ColumnSource::PaddingMask(_) => continue,
            }
            staged.ranges[position] = start..staged.bytes.len();
        }
        self.held_at[position] = Some(BatchSample { sample, label: location.label });
        Ok(())
    }

    /// A position holds no sample.
    pub(super) fn leave_out(&mut self, position: usize) {
        self.held_at[position] = None;
    }

    /// Writes the columns beside the images, which lie closed up where they belong in `memory`, and
    /// pictures of different sizes. Returns where they lie, and the samples that they are of.
    pub(super) fn finish(
        &self,
        memory: &mut dyn BatchMemory,
    ) -> Result<(BatchLayout, Vec<u64>), Error> {
        let samples: Vec<u64> = self.held_at.iter().flatten().map(|held| held.sample).collect();
        let held: Vec<usize> = self.held().collect();
        let sizes = self.collated.as_ref().map(|it| it.batch_sizes(&held)).unwrap_or_default();
        let layout = self.layout(samples.len(), &sizes);
        let got = memory.bytes_mut().len();
        let too_small = |needed| match &self.collated {
            Some(_) => Error::BatchTooLarge { needed, got },
            None => Error::OutputTooSmall { got, needed },
        };
        let layout = layout.ok_or(too_small(usize::MAX))?;
        let needed = usize::try_from(layout.bytes()).unwrap_or(usize::MAX);
        if needed > got && !(self.collated.is_some() && memory.grow(needed)) {
            return Err(too_small(needed));
        }
        let out = memory.bytes_mut().get_mut(..needed).ok_or(too_small(needed))?;
        for (index, column) in self.columns.as_slice().iter().enumerate() {
            let extent = layout.extent(index);
            let start = usize::try_from(extent.offset).expect("inside the memory");
            let end = start + usize::try_from(extent.bytes).expect("inside the memory");
            // What lies between two columns is part of no column, and never left as it was found.
            let padded = end.next_multiple_of(COLUMN_ALIGNMENT as usize).min(needed);
            out[end..padded].fill(0);
            self.write((index, column), &sizes, &mut out[start..end]);
        }
        Ok((layout, samples))
    }

    /// The positions that hold a sample.
    fn held(&self) -> impl Iterator<Item = usize> {
        let positions = self.held_at.iter().enumerate();
        positions.filter(|(_, held)| held.is_some()).map(|(position, _)| position)
    }

    /// Where the columns of a batch lie whose columns with pictures have these heights and widths.
    fn layout(&self, samples: usize, sizes: &[(u32, u32)]) -> Option<BatchLayout> {
        let count = u32::try_from(samples).expect("a batch has less than 2^32 samples");
        let rows = |index: usize| {
            let (column, staged) = (&self.columns.as_slice()[index], &self.staged[index]);
            let rows = self.held().map(|position| self.rows((index, column), staged, position));
            rows.sum::<u64>()
        };
        let axes = |index: usize| match &self.collated {
            Some(collated) => collated.lengths((index, &self.columns.as_slice()[index]), sizes),
            None => [0; AXES_MAX],
        };
        BatchLayout::with_axes(&self.columns, count, rows, axes)
    }

    /// Rows of the value of a position, in the unit of the offsets of its column.
    fn rows(&self, (index, column): (usize, &Column), staged: &Staged, position: usize) -> u64 {
        let row_bytes = match (&column.kind, &self.collated) {
            (ColumnKind::PaddedRagged { .. }, Some(collated)) => {
                collated.row_bytes((index, column), position) as u64
            }
            _ => column.kind.row_bytes().expect("columns were checked"),
        };
        staged.ranges[position].len() as u64 / row_bytes.max(1)
    }

    /// Writes a column of a batch with these heights and widths; pictures of one size lie there
    /// already.
    fn write(&self, (index, column): (usize, &Column), sizes: &[(u32, u32)], into: &mut [u8]) {
        let (staged, held) = (&self.staged[index], self.held_at.iter().flatten());
        match (column.source, &self.collated) {
            (ColumnSource::Image | ColumnSource::View(_), None) => {}
            (ColumnSource::Label, _) => {
                let labels = held.map(|held| held.label);
                match self.soft_labels {
                    Some(soft) => soft_rows(into, soft, labels.flatten()),
                    None => numbers(into, labels.map(|label| label.map_or(-1, i64::from))),
                }
            }
            (ColumnSource::Sample, _) => numbers(into, held.map(|it| it.sample.cast_signed())),
            (ColumnSource::ImageSize(_), Some(collated)) => {
                let bytes = 2 * OFFSET_BYTES * collated.count(index);
                let own = self.held().zip(into.chunks_exact_mut(bytes));
                own.for_each(|(position, into)| collated.write_sizes(index, position, into));
            }
            (ColumnSource::PaddingMask(_), Some(collated)) => {
                let bytes = into.len() / self.held().count().max(1);
                let own = self.held().zip(into.chunks_exact_mut(bytes.max(1)));
                own.for_each(|(position, into)| {
                    collated.mark_padding(index, position, sizes, into);
                });
            }
            (
                ColumnSource::Image
                | ColumnSource::View(_)
                | ColumnSource::Key
                | ColumnSource::Further(_)
                | ColumnSource::Target(_)
                | ColumnSource::ImageSize(_)
                | ColumnSource::PaddingMask(_),
                _,
            ) => self.write_staged((index, column), staged, sizes, into),
        }
    }

    /// Writes values one after another, behind their offsets and shapes.
    fn write_staged(
        &self,
        (index, column): (usize, &Column),
        staged: &Staged,
        sizes: &[(u32, u32)],
        into: &mut [u8],
    ) {
        let count = self.held().count();
        let offsets = if column.kind.has_offsets() { OFFSET_BYTES * (count + 1) } else { 0 };
        let (offsets, into) = into.split_at_mut(offsets);
        let rank = column.kind.rank_of_shapes();
        let (shapes, values) = into.split_at_mut(OFFSET_BYTES * rank * count);
        if column.kind.has_offsets() {
            let mut rows = 0;
            let after = self.held().map(|position| {
                rows += self.rows((index, column), staged, position).cast_signed();
                rows
            });
            numbers(offsets, std::iter::once(0).chain(after));
        }
        if let Some(collated) = self.collated.as_ref().filter(|_| rank > 0) {
            let shapes = self.held().zip(shapes.chunks_exact_mut(OFFSET_BYTES * rank));
            for (position, into) in shapes {
                let bytes = staged.ranges[position].len();
                let shape = collated.shape((index, column), position, bytes);
                numbers(into, shape.into_iter().map(i64::from));
            }
        }
        let mut end = 0;
        for position in self.held() {
            let value = &staged.bytes[staged.ranges[position].clone()];
            let Some(collated) = self.collated.as_ref().filter(|_| column.kind.is_padded()) else {
                values[end..end + value.len()].copy_from_slice(value);
                end += value.len();
                continue;
            };
            let bytes = collated.padded_bytes((index, column), position, sizes, value.len());
            let into = &mut values[end..end + bytes];
            collated.pad((index, column), position, sizes, (value, into));
            end += bytes;
        }
    }
}

/// Bytes of an offset, and of a length in a shape (int64).
const OFFSET_BYTES: usize = 8;

/// The ranges of the positions that hold a sample.
fn held_ranges<'a>(
    staged: &'a Staged,
    held_at: &'a [Option<BatchSample>],
) -> impl Iterator<Item = &'a Range<usize>> {
    let pairs = staged.ranges.iter().zip(held_at);
    pairs.filter_map(|(range, held)| held.map(|_| range))
}

fn numbers(into: &mut [u8], numbers: impl Iterator<Item = i64>) {
    for (into, number) in into.chunks_exact_mut(8).zip(numbers) {
        into.copy_from_slice(&number.to_le_bytes());
    }
}

/// Refuses a label that is not one of the classes.
fn check_label(
    SoftLabels { classes, .. }: SoftLabels,
    (sample, location): (u64, &SampleLocation),
    dataset: &Dataset,
) -> Result<(), Error> {
    let label = location.label;
    if label.and_then(|label| u32::try_from(label).ok()).is_some_and(|label| label < classes) {
        return Ok(());
    }
    let (part, row, key) = dataset.location_in_words(sample, location);
    Err(Error::Label { part, row, key, label, classes })
}

/// Writes the rows of labels, which have been checked.
fn soft_rows(into: &mut [u8], soft: SoftLabels, labels: impl Iterator<Item = i32>) {
    for (row, label) in into.chunks_exact_mut(4 * soft.classes as usize).zip(labels) {
        BatchMixer::write_label(soft, label.cast_unsigned(), row);
    }
}

fn read_further(
    (column, is_file_per_object): (&Column, bool),
    index: usize,
    (sample, location): (u64, &SampleLocation),
    dataset: &Dataset,
    into: &mut Vec<u8>,
) -> Result<(), Error> {
    let place = || {
        let (_, row, key) = dataset.location_in_words(sample, location);
        // Columns lie in the part, wherever the content does.
        (dataset.part_path(location.part).display().to_string(), row, key, column.name.clone())
    };
    let (array, row) = dataset.further(sample, index).map_err(|source| {
        let (part, row, key, column) = place();
        Error::Column { part, row, key, column, source: Box::new(source) }
    })?;
    let appended = match is_file_per_object {
        true => append_files(&array, row, into),
        false => append_value(column, &array, row, into),
    };
    appended.map_err(|_| {
        let (part, row, key, column) = place();
        Error::NullValue { part, row, key, column }
    })
}
