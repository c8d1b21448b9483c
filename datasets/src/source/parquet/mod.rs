//! Parquet: one file, a folder of them, or a dataset as the Hugging Face Hub lays them out
//! (`data/train-00000-of-00002.parquet`).
//!
//! Row groups are read page by page: memory is one page per column and a batch of about 8 MiB.
//! Pages may be compressed with Snappy, gzip, LZ4, Brotli or Zstandard.

mod pages;
mod table;
mod value_ranges;

use super::rows::RowSource;
use super::rows::row_source::TABLE_OPTIONS;
use super::rows::shards;
use super::{Source, SourceOptions};
use crate::Error;
use crate::source::budget::MemoryBudget;
use crate::store::StorePath;
use meetpoint_diagnose::Setting;
use std::io::Read;
use table::ParquetTable;

/// Returns the evidence that `path` is a Parquet file or a folder of them.
pub fn recognise(path: &StorePath) -> Result<Option<String>, Error> {
    if path.is_dir() {
        let found = shards::has_one(path, is_member);
        return Ok(found.then(|| "it holds Parquet files".to_owned()));
    }
    let mut first = Vec::new();
    let unreadable = |source| Error::Source { path: path.to_path_buf(), source };
    let file = path.open().map_err(unreadable)?;
    file.take(4).read_to_end(&mut first).map_err(unreadable)?;
    Ok((first == b"PAR1").then(|| "it begins as a Parquet file".to_owned()))
}

/// Opens a Parquet file or a folder of them.
pub fn open(path: &StorePath, options: &SourceOptions) -> Result<Box<dyn Source>, Error> {
    let known = TABLE_OPTIONS.iter().copied().chain([Setting::Split]).collect::<Vec<_>>();
    options.allow_only("Parquet", &known)?;
    let files = shards::choose(path, "Parquet files", is_member, options.split.as_deref())?;
    let table = ParquetTable::open(files, MemoryBudget::of(options))?;
    Ok(Box::new(RowSource::open(table, options, &path.display().to_string())?))
}

fn is_member(name: &str) -> bool {
    name.ends_with(".parquet")
}
