//! MosaicML streaming datasets (MDS): a folder with `index.json` and its shards, plain or
//! compressed (br, gz, snappy, zstd); a folder of such folders holds splits.
//!
//! A shard is `samples: u32`, `samples + 1` offsets as u32, the columns as JSON, then the samples;
//! a sample is the sizes (u32) of its columns of variable size, then the values. All little-endian.
//! Checksums in the index are verified before a shard is read.

mod encoding;
mod hash;
mod index;
mod shard;

use super::arrow::chosen_split;
use super::budget::{MemoryBudget, Reservation};
use super::rows::hugging_face::Features;
use super::rows::records::{Record, RecordTable, Records};
use super::rows::row_source::TABLE_OPTIONS;
use super::rows::value::Kind;
use super::rows::{RowSource, malformed};
use super::{Source, SourceOptions};
use crate::store::StorePath;
use crate::{Error, natural_order};
use index::Index;
use meetpoint_diagnose::Setting;
use shard::Shard;
use std::sync::Arc;

/// Name of the list of shards.
const INDEX_NAME: &str = "index.json";

/// Returns the evidence that `path` is an MDS dataset.
pub fn recognise(path: &StorePath) -> Result<Option<String>, Error> {
    if !path.is_dir() {
        return Ok(None);
    }
    let folder = match splits(path)? {
        _ if path.join(INDEX_NAME).is_file() => path.clone(),
        splits if splits.is_empty() => return Ok(None),
        splits => path.join(&splits[0]),
    };
    // Other datasets have an `index.json` too.
    let index = super::arrow::json(&folder.join(INDEX_NAME));
    let is_mds = index.is_ok_and(|index| index["shards"][0]["format"].as_str() == Some("mds"));
    Ok(is_mds.then(|| format!("it holds {INDEX_NAME} of MDS shards")))
}

/// Opens an MDS dataset.
pub fn open(path: &StorePath, options: &SourceOptions) -> Result<Box<dyn Source>, Error> {
    let known = TABLE_OPTIONS.iter().copied().chain([Setting::Split]).collect::<Vec<_>>();
    options.allow_only("an MDS dataset", &known)?;
    let folder = if path.join(INDEX_NAME).is_file() && options.split.is_none() {
        path.clone()
    } else {
        let splits = splits(path)?;
        if splits.is_empty() && options.split.is_none() {
            let problem = format!("holds no {INDEX_NAME}, nor does a folder in it");
            return Err(malformed(path, None, problem));
        }
        path.join(chosen_split(path, &splits, options.split.as_deref())?)
    };
    let samples = Samples::open(&folder, MemoryBudget::of(options))?;
    let table = RecordTable::open(samples, options.columns.is_some())?;
    Ok(Box::new(RowSource::open(table, options, &path.display().to_string())?))
}

/// Sub-folders with an index.
fn splits(path: &StorePath) -> Result<Vec<String>, Error> {
    let unreadable = |source| Error::Source { path: path.to_path_buf(), source };
    let mut splits = Vec::new();
    for entry in path.list().map_err(unreadable)? {
        let (folder, _) = entry.map_err(unreadable)?;
        let name = folder.file_name().and_then(|name| name.to_str());
        if let (Some(name), true) = (name, folder.join(INDEX_NAME).is_file()) {
            splits.push(name.to_owned());
        }
    }
    splits.sort_by(|left, right| natural_order(left, right));
    Ok(splits)
}

/// The samples of all shards.
struct Samples {
    folder: StorePath,
    index: Index,
    next_shard: usize,
    current: Option<Shard>,
    budget: MemoryBudget,
}

impl Samples {
    fn open(folder: &StorePath, budget: MemoryBudget) -> Result<Self, Error> {
        let index = Index::read(&folder.join(INDEX_NAME))?;
        Ok(Self { folder: folder.clone(), index, next_shard: 0, current: None, budget })
    }
}

impl Records for Samples {
    fn next(&mut self) -> Result<Option<Record>, Error> {
        loop {
            let shard = match &mut self.current {
                Some(shard) => shard,
                None => {
                    let Some(entry) = self.index.shards.get(self.next_shard) else {
                        return Ok(None);
                    };
                    self.next_shard += 1;
                    self.current.insert(Shard::open(&self.folder, entry, &self.budget)?)
                }
            };
            let Some((number, at, bytes)) = shard.next()? else {
                self.current = None;
                continue;
            };
            let fields = encoding::sample(&self.index.columns, &bytes, at).map_err(|text| {
                malformed(
                    &shard.path,
                    shard.is_plain().then_some(at),
                    format!("sample {number}: {text}"),
                )
            })?;
            return Ok(Some(Record {
                file_name: Arc::clone(&shard.name),
                file: shard.ranges(),
                number,
                fields,
                bytes: bytes.len(),
                _held: Reservation::default(),
            }));
        }
    }

    fn declared(&self) -> Vec<(String, Kind)> {
        self.index.columns.iter().map(|column| (column.name.clone(), column.kind())).collect()
    }

    fn features(&self) -> Features {
        let images = self.index.columns.iter().filter(|column| column.is_image());
        Features {
            images: images.map(|column| column.name.clone()).collect(),
            ..Features::default()
        }
    }

    fn noun(&self) -> &'static str {
        "sample"
    }

    fn rows(&self) -> Option<u64> {
        let samples = self.index.shards.iter().map(|shard| shard.samples);
        Some(samples.fold(0, u64::saturating_add))
    }

    fn bytes(&self) -> Option<u64> {
        let bytes = self.index.shards.iter().map(|shard| shard.raw.bytes);
        Some(bytes.fold(0, u64::saturating_add))
    }
}
