//! The data that samplers read from a dataset: the values of its columns, and the samples that pass
//! a filter.

use super::column_type::ColumnType;
use super::error::SamplerError;
use super::expression::Expression;

/// The samples of a dataset, as samplers see them.
pub trait SampleColumns {
    /// Why a column cannot be read.
    type Error: From<SamplerError>;

    /// Number of samples.
    fn samples(&self) -> u64;

    /// Number of samples of each dataset, if several are served as one; otherwise of the only one.
    fn datasets(&self) -> Vec<u64>;

    /// Names and types of the columns, including those that samplers cannot use.
    fn columns(&self) -> Vec<(String, ColumnType)>;

    /// Values of a column of whole numbers; `None` if a sample has none.
    fn whole_numbers(&self, column: &str) -> Result<Vec<Option<i64>>, Self::Error>;

    /// Values of a column of numbers, whole or not; `None` if a sample has none.
    fn numbers(&self, column: &str) -> Result<Vec<Option<f64>>, Self::Error>;

    /// Height and width of the picture of each sample as stored in its file; `None` if the file
    /// does not state them.
    fn picture_sizes(&self) -> Result<Vec<Option<(u32, u32)>>, Self::Error>;

    /// The samples for which a checked expression is true, in ascending order.
    fn select(&self, expression: &Expression) -> Result<Vec<u64>, Self::Error>;
}

/// The type of a column that an option names.
pub(super) fn column_type<C: SampleColumns>(
    columns: &C,
    option: &'static str,
    column: &str,
) -> Result<ColumnType, SamplerError> {
    let all = columns.columns();
    match all.iter().find(|(name, _)| name == column) {
        Some((_, found)) => Ok(found.clone()),
        None => {
            let known = all.into_iter().map(|(name, _)| name).collect();
            let column = column.to_owned();
            Err(SamplerError::UnknownColumn { option, column, at: None, known })
        }
    }
}
