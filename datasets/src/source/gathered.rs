//! A source that takes in one sample after another and gathers record batches of their columns.

use super::columns::Gather;
use super::{Entry, Finished, Size, Source, SourceSchema};
use crate::Error;

/// What is gone through, sample by sample.
pub(super) trait Advance: Send {
    /// The columns of its samples.
    fn schema(&self) -> &SourceSchema;

    /// How much there is.
    fn size(&self) -> Size;

    /// Puts what comes next into `to`; `false` at the end. After an error it is not asked again.
    fn advance(&mut self, to: &mut Gather) -> Result<bool, Error>;

    /// The error where a value is of another type than the first look at the source found.
    fn changed(&self, problem: &str) -> Error;

    /// What is known at the end.
    fn finish(&mut self) -> Finished;
}

/// It as a source.
pub(super) struct Gathered<A> {
    from: A,
    gather: Gather,
    /// Comes after the samples before it.
    failed: Option<Error>,
}

impl<A: Advance> Gathered<A> {
    /// Begins at the front; `gather` has the columns of [`Advance::schema`].
    pub(super) fn new(from: A, gather: Gather) -> Self {
        Self { from, gather, failed: None }
    }
}

impl<A: Advance> Source for Gathered<A> {
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
}
