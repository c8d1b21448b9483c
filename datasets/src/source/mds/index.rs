//! `index.json`: the shards and their columns.

use super::encoding::Column;
use crate::Error;
use crate::message::Message;
use crate::source::arrow::{json, plain_name};
use crate::source::rows::malformed;
use crate::source::rows::value::FIELDS_MAX;
use crate::store::StorePath;
use serde_json::Value;

/// Longest shard: its offsets have 32 bits.
const SHARD_BYTES_MAX: u64 = u32::MAX as u64;

/// Maximum number of samples of a shard, since each has an offset.
const SAMPLES_MAX: u64 = SHARD_BYTES_MAX / 4;

/// The list of shards.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) columns: Vec<Column>,
    pub(super) shards: Vec<ShardEntry>,
}

/// A shard as the index describes it.
#[derive(Debug)]
pub(super) struct ShardEntry {
    pub(super) samples: u64,
    /// `gz`, `zstd:7`, …
    pub(super) compression: Option<String>,
    pub(super) raw: FileEntry,
    pub(super) folded: Option<FileEntry>,
}

/// A file of a shard.
#[derive(Debug)]
pub(super) struct FileEntry {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// Checksums by the name of their algorithm.
    pub(super) hashes: Vec<(String, String)>,
}

impl Index {
    /// Reads and checks the index.
    pub(super) fn read(path: &StorePath) -> Result<Self, Error> {
        let index = json(path)?;
        let fault = |problem: String| malformed(path, None, problem);
        let list = index["shards"].as_array();
        let list = list.ok_or_else(|| fault("has no list of shards".to_owned()))?;
        let mut columns: Option<Vec<Column>> = None;
        let mut shards = Vec::new();
        for (number, shard) in list.iter().enumerate() {
            let fault = |problem: String| fault(format!("shard {number}: {problem}"));
            if shard["format"].as_str() != Some("mds") || shard["version"].as_u64() != Some(2) {
                return Err(fault(format!(
                    "format {} version {}; only mds version 2 is supported",
                    shard["format"], shard["version"]
                )));
            }
            let here = columns_of(shard).map_err(|problem| {
                malformed(path, None, Message::from(format!("shard {number}: ")) + problem)
            })?;
            match &columns {
                None => columns = Some(here),
                Some(first) if *first == here => {}
                Some(_) => {
                    return Err(fault("other columns than the first shard has".to_owned()));
                }
            }
            let samples = shard["samples"].as_u64();
            let samples = samples.ok_or_else(|| fault("no number of samples".to_owned()))?;
            if samples > SAMPLES_MAX {
                return Err(fault(format!("{samples} samples, the limit is {SAMPLES_MAX}")));
            }
            let raw = file_of(path, &shard["raw_data"])?
                .ok_or_else(|| fault("no file, `raw_data`".to_owned()))?;
            if raw.bytes > SHARD_BYTES_MAX {
                return Err(fault(format!("{} bytes, the limit is {SHARD_BYTES_MAX}", raw.bytes)));
            }
            let compression = shard["compression"].as_str().map(str::to_owned);
            let folded = file_of(path, &shard["zip_data"])?;
            shards.push(ShardEntry { samples, compression, raw, folded });
        }
        let columns = columns.ok_or_else(|| fault("lists no shards".to_owned()))?;
        Ok(Self { columns, shards })
    }
}

fn columns_of(shard: &Value) -> Result<Vec<Column>, Message> {
    let list =
        |name: &str| shard[name].as_array().ok_or_else(|| format!("no list `{name}`")).cloned();
    let (names, encodings) = (list("column_names")?, list("column_encodings")?);
    let sizes = list("column_sizes")?;
    if names.len() != encodings.len() || names.len() != sizes.len() {
        return Err("lists of columns of different lengths".into());
    }
    if names.len() > FIELDS_MAX {
        return Err(format!("{} columns, the limit is {FIELDS_MAX}", names.len()).into());
    }
    let mut columns: Vec<Column> = Vec::new();
    for ((name, encoding), size) in names.iter().zip(&encodings).zip(&sizes) {
        let (Some(name), Some(encoding)) = (name.as_str(), encoding.as_str()) else {
            return Err("a column without name or encoding".into());
        };
        if columns.iter().any(|column| column.name == name) {
            return Err(format!("two columns {name:?}").into());
        }
        // Python's writer uses a size of 0 for none.
        let size = size.as_u64().filter(|size| *size > 0);
        columns.push(Column::new(name, encoding, size)?);
    }
    Ok(columns)
}

fn file_of(index: &StorePath, entry: &Value) -> Result<Option<FileEntry>, Error> {
    let Some(name) = entry["basename"].as_str() else { return Ok(None) };
    let name = plain_name(index, name)?.to_owned();
    let bytes = entry["bytes"].as_u64();
    let bytes = bytes.ok_or_else(|| malformed(index, None, format!("no length of {name}")))?;
    let hashes = entry["hashes"].as_object().into_iter().flatten();
    let hashes = hashes.filter_map(|(name, hash)| Some((name.clone(), hash.as_str()?.to_owned())));
    Ok(Some(FileEntry { name, bytes, hashes: hashes.collect() }))
}
