//! A source that reads samples one by one and builds record batches of their columns.

use super::columns::Gather;
use super::{Entry, Finished, Size, Source, SourceSchema, UnreadTable};
use crate::Error;

/// A reader of samples, one by one.
pub(super) trait SampleReader: Send {
    /// The columns of its samples.
    fn schema(&self) -> &SourceSchema;

    /// The size, as far as it is known.
    fn size(&self) -> Size;

    /// Adds the next entry to `to`; `false` at the end. Not called again after an error.
    fn advance(&mut self, to: &mut Gather) -> Result<bool, Error>;

    /// The error for a value whose type differs from that found in the first pass.
    fn changed(&self, problem: &str) -> Error;

    /// The totals at the end.
    fn finish(&mut self) -> Finished;

    /// See [`Source::unread_table`].
    fn unread_table(&self) -> Option<&UnreadTable> {
        None
    }
}

/// An [`SampleReader`] as a source.
pub(super) struct ReaderSource<A> {
    from: A,
    gather: Gather,
    /// An error that is returned after the samples before it.
    failed: Option<Error>,
}

impl<A: SampleReader> ReaderSource<A> {
    /// Starts at the first sample; `gather` has the columns of [`SampleReader::schema`].
    pub(super) fn new(from: A, gather: Gather) -> Self {
        Self { from, gather, failed: None }
    }
}

impl<A: SampleReader> Source for ReaderSource<A> {
    fn schema(&self) -> &SourceSchema {
        self.from.schema()
    }

    fn size(&self) -> Size {
        self.from.size()
    }

    fn next(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            if let Some(entry) = self.gather.pop() {
                return Ok(Some(entry));
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            let went_on = self.from.advance(&mut self.gather);
            if !matches!(went_on, Ok(true)) {
                self.gather.flush().map_err(|problem| self.from.changed(&problem))?;
            }
            match went_on {
                Ok(true) => {}
                Ok(false) => return Ok(self.gather.pop()),
                Err(error) => self.failed = Some(error),
            }
        }
    }

    fn finish(&mut self) -> Result<Finished, Error> {
        Ok(self.from.finish())
    }

    fn unread_table(&self) -> Option<&UnreadTable> {
        self.from.unread_table()
    }
}
