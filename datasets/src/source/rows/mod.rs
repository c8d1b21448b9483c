//! Sources that are tables: what is the same for Parquet, Arrow, TFRecord, MDS, datadings and FFCV.
//!
//! A [`Table`] yields record batches; [`RowSource`] makes samples of their rows. In reading order:
//! [`table`] (the trait), [`hugging_face`] (what the metadata of that library say about columns),
//! [`roles`] (which column is key, content and label), [`plain`] (column types that a dataset
//! holds), [`files`] (several files of one schema), [`paths`] (whether paths can be keys),
//! [`row_source`] (rows to samples), [`shards`] (files of a folder and their splits), [`value`] and
//! [`build`] (columns from values whose types the file does not declare), [`records`] (tables of
//! formats that go sample by sample), [`picture`] (pixels to a picture file).

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

pub(crate) use row_source::RowSource;
pub(crate) use table::{ContentColumn, Table, malformed};
