//! The positions of the pictures of a sample in the memory of a batch: one column, or one for each
//! view.

use crate::Tensors;
use meetpoint_format::column::{BatchColumns, BatchLayout, ColumnSource};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// The columns of a batch with pictures of one shape, which lie before all others. None where
/// pictures may have different sizes.
#[derive(Debug)]
pub(super) struct Pictures {
    columns: Arc<BatchColumns>,
    /// Index and bytes of a sample, in the order of the columns.
    held: Vec<(usize, usize)>,
    /// The places of a batch of a number of samples, which every sample of a batch asks for.
    laid_out: (usize, Vec<(usize, usize)>),
}

impl Pictures {
    pub(super) fn new(columns: Arc<BatchColumns>) -> Self {
        let bytes = |index: usize| {
            let bytes = columns.as_slice()[index].kind.row_bytes().expect("columns were checked");
            (index, usize::try_from(bytes).expect("a sample is in memory"))
        };
        let is_fixed = |index: &usize| !columns.as_slice()[*index].kind.is_variable();
        let held = columns.pictures().filter(is_fixed).map(bytes).collect();
        Self { columns, held, laid_out: (0, Vec::new()) }
    }

    /// Begins a batch of a given number of samples.
    pub(super) fn begin(&mut self, samples: usize) {
        if self.laid_out.0 != samples || self.laid_out.1.len() != self.held.len() {
            self.laid_out = (samples, self.places(samples).into_owned());
        }
    }

    /// The indices in `Recipe::images` of the columns with pictures, in the order of the columns.
    pub(super) fn of_recipe(columns: &BatchColumns) -> Vec<usize> {
        let image = |index: usize| match columns.as_slice()[index].source {
            ColumnSource::View(view) => Some(view),
            ColumnSource::Image => Some(0),
            ColumnSource::Label
            | ColumnSource::Key
            | ColumnSource::Sample
            | ColumnSource::Further(_)
            | ColumnSource::Target(_)
            | ColumnSource::ImageSize(_)
            | ColumnSource::PaddingMask(_) => None,
        };
        columns.pictures().filter_map(image).collect()
    }

    /// Where each column begins, and the bytes of a sample, in a batch of a given number of
    /// samples.
    fn places(&self, samples: usize) -> Cow<'_, [(usize, usize)]> {
        if self.laid_out.0 == samples && self.laid_out.1.len() == self.held.len() {
            return Cow::Borrowed(&self.laid_out.1);
        }
        let samples = u32::try_from(samples).expect("a batch has less than 2^32 samples");
        // Columns of variable length lie behind the pictures.
        let layout = BatchLayout::new(&self.columns, samples, |_| 0);
        let layout = layout.expect("a loader has checked that batches fit in memory");
        let place = |(index, bytes): &(usize, usize)| {
            let offset = layout.extent(*index).offset;
            (usize::try_from(offset).expect("it lies in memory"), *bytes)
        };
        self.held.iter().map(place).collect()
    }

    /// Where the last of them ends in a batch of a given number of samples.
    pub(super) fn end(&self, samples: usize) -> usize {
        self.places(samples).last().map_or(0, |&(start, bytes)| start + samples * bytes)
    }

    /// Whether the pictures of each column of the batch have one shape.
    pub(super) fn are_fixed(&self) -> bool {
        self.held.len() == self.columns.pictures().count()
    }

    /// The memory of all samples of a batch, for each column.
    pub(super) fn tensors<'a>(&self, samples: usize, out: &'a mut [u8]) -> Vec<Tensors<'a>> {
        let places = self.places(samples);
        let mut columns = Vec::with_capacity(places.len());
        let (mut rest, mut passed) = (out, 0);
        for &(start, each) in &*places {
            let (_, behind) = std::mem::take(&mut rest).split_at_mut(start - passed);
            let (bytes, behind) = behind.split_at_mut(samples * each);
            columns.push(Tensors { bytes, each });
            (rest, passed) = (behind, start + samples * each);
        }
        columns
    }

    /// The memory of the sample at a position of a batch of a given number, for each column.
    pub(super) fn of<'a>(
        &self,
        position: usize,
        samples: usize,
        out: &'a mut [u8],
    ) -> Vec<&'a mut [u8]> {
        let (mut rest, mut passed) = (out, 0);
        let mut found = Vec::with_capacity(self.held.len());
        for &(start, bytes) in &*self.places(samples) {
            let from = start + position * bytes;
            let (_, behind) = std::mem::take(&mut rest).split_at_mut(from - passed);
            let (own, behind) = behind.split_at_mut(bytes);
            found.push(own);
            (rest, passed) = (behind, from + bytes);
        }
        found
    }

    /// Moves the samples at positions of a batch of `samples` up, so that they are those of a batch
    /// of `kept`, which are at most as many.
    pub(super) fn close_up(&self, samples: usize, kept: &[usize], out: &mut [u8]) {
        // Nothing is moved behind where it was, so that each is read before it is written over.
        let places = (self.places(samples), self.places(kept.len()));
        for (&(from, bytes), &(to, _)) in places.0.iter().zip(&*places.1) {
            for (position, source) in kept.iter().enumerate() {
                let source: Range<usize> = from + source * bytes..from + (source + 1) * bytes;
                out.copy_within(source, to + position * bytes);
            }
        }
    }
}
