//! Columns of a batch: their declarations, selection and layout.
//!
//! A batch is a table. Host and device derive the same columns from the same dataset, recipe and
//! names, and lay them out in the same way, so the bytes of a batch do not depend on its preparer.
//!
//! In reading order: [`ElementType`], `limits`, [`Collate`] (pictures of
//! different sizes), [`ColumnNames`], [`Column`] and [`BatchColumns`]
//! (declarations), [`ColumnError`] (columns that cannot be selected), `select` (from names and the
//! schema of a dataset), `target` (those that are transformed with the picture), [`BatchLayout`]
//! (the position of each column in a payload), [`ColumnBytes`] (the values of a column, and the
//! checks of bytes that another process wrote), `encode` (from Arrow arrays),
//! [`files_of`] (byte strings of a list).

mod collate;
mod declaration;
mod element;
#[cfg(feature = "dataset")]
mod encode;
mod error;
mod files;
mod layout;
mod limits;
#[cfg(feature = "dataset")]
mod select;
#[cfg(feature = "dataset")]
mod target;
#[cfg(test)]
mod tests;
mod view;

pub use collate::{COLLATE_SIDE_MAX, Collate, CollateError, List, Pad};
pub use declaration::{BatchColumns, Column, ColumnKind, ColumnNames, ColumnSource};
pub use element::ElementType;
#[cfg(feature = "dataset")]
pub use encode::{NullValue, append_files, append_value, value_bytes_max};
pub use error::ColumnError;
pub use files::files_of;
pub use layout::{BatchLayout, COLUMN_ALIGNMENT, Extent};
pub use limits::{AXES_MAX, COLUMNS_MAX, VARIES};
#[cfg(feature = "dataset")]
pub use target::TargetColumn;
pub use view::{ColumnBytes, ContentError};
