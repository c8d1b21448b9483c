//! The inputs that determine the content of every batch.

use crate::{Dataset, Error, OnError};
use meetpoint_format::batching::Batching;
use meetpoint_format::column::{BatchColumns, ColumnNames};
use meetpoint_format::recipe::Recipe;
use meetpoint_kernels::Interrupt;
use std::sync::Arc;

/// The inputs that determine the content of every batch.
#[derive(Debug, Clone)]
pub struct Job {
    /// Dataset.
    pub dataset: Arc<Dataset>,
    /// Recipe.
    pub recipe: Arc<Recipe>,
    /// How its epochs are divided into batches.
    pub batching: Batching,
    /// How samples that cannot be read or decoded are handled.
    pub on_error: OnError,
    /// The columns of a batch.
    pub columns: ColumnNames,
}

impl Job {
    /// The columns of a batch.
    pub fn batch_columns(&self) -> Result<BatchColumns, Error> {
        self.dataset.select(&self.columns, &self.recipe)
    }

    /// Bytes of the longest value of each of these columns, including padding, as
    /// [`Dataset::value_bytes_max`] computes them.
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
