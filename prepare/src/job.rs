//! What fixes the content of every batch.

use crate::{Dataset, Error, OnError};
use meetpoint_format::batching::Batching;
use meetpoint_format::column::{BatchColumns, ColumnNames};
use meetpoint_format::recipe::Recipe;
use meetpoint_kernels::Interrupt;
use std::sync::Arc;

/// What fixes the content of every batch.
#[derive(Debug, Clone)]
pub struct Job {
    /// Dataset.
    pub dataset: Arc<Dataset>,
    /// Recipe.
    pub recipe: Arc<Recipe>,
    /// How it is cut into batches.
    pub batching: Batching,
    /// What is done about samples that cannot be read or decoded.
    pub on_error: OnError,
    /// The columns of a batch.
    pub columns: ColumnNames,
}

impl Job {
    /// What each column of a batch is.
    pub fn batch_columns(&self) -> Result<BatchColumns, Error> {
        self.dataset.select(&self.columns, &self.recipe)
    }

    /// Bytes of the longest value of each of these columns, those of padding included, as
    /// [`Dataset::value_bytes_max`] finds them.
    pub fn value_bytes_max(
        &self,
        columns: &BatchColumns,
        interrupt: &Interrupt,
    ) -> Result<Vec<u64>, Error> {
        let collate = self.columns.collate();
        let limits = match collate.takes_sizes() {
            true => self.dataset.picture_limits(&self.recipe, collate, interrupt)?,
            false => Vec::new(),
        };
        self.dataset.value_bytes_max(columns, (&self.recipe, &limits), interrupt)
    }
}
