//! Sources that are tables: the common part of Parquet, Arrow, TFRecord, MDS, datadings and FFCV.
//!
//! A [`Table`] yields record batches; [`RowSource`] turns their rows into samples. In reading
//! order: [`table`] (the trait), [`hugging_face`] (the metadata of that library), [`roles`] (which
//! column is key, content and label), [`plain`] (column types that a dataset stores), [`files`]
//! (several files of one schema), [`paths`] (whether paths can be keys), [`row_source`] (rows to
//! samples), [`shards`] (files of a folder and their splits), [`value`] and [`build`] (columns from
//! values whose types the file does not declare), [`records`] (tables of record-based formats),
//! [`picture`] (pixels to a picture file).

pub(crate) mod build;
pub(crate) mod files;
pub(crate) mod hugging_face;
pub(crate) mod paths;
pub(crate) mod picture;
pub(crate) mod plain;
pub(crate) mod records;
pub(crate) mod roles;
pub(crate) mod row_source;
pub(crate) mod shards;
pub(crate) mod table;
mod unfolded;
pub(crate) mod value;

pub(crate) use super::malformed::malformed;
pub(crate) use row_source::RowSource;
pub(crate) use table::{ContentColumn, Table};
