//! TFRecord files of `tf.train.Example`: one file, or a folder of them (names with `tfrec`),
//! plain or gzip.
//!
//! Features become columns: single values if the feature has one value in each of the examined
//! records (the first 1,024 of the first file, or 32 MiB), otherwise lists. Bytes are text if the
//! name of the feature indicates it (`image/class/text`, `image/filename`, …). In a plain file the
//! content is a range.

mod example;
mod framing;

use super::budget::MemoryBudget;
use super::rows::records::{Record, RecordTable, Records};
use super::rows::row_source::TABLE_OPTIONS;
use super::rows::table::too_large;
use super::rows::value::FIELDS_MAX;
use super::rows::value::{Kind, Value};
use super::rows::{RowSource, malformed, shards};
use super::{Source, SourceOptions};
use crate::Error;
use crate::store::StorePath;
use example::{Fault, Feature};
use framing::{Frame, Frames};
use meetpoint_diagnose::Setting;
use std::sync::Arc;

/// Maximum number of records examined for the types of features.
const LOOK_RECORDS: usize = 1024;
/// Maximum bytes of these records.
const LOOK_BYTES: usize = 32 << 20;
/// Last components of names of text features.
const TEXT_NAMES: [&str; 16] = [
    "text",
    "filename",
    "file_name",
    "format",
    "colorspace",
    "sha256",
    "source_id",
    "synset",
    "name",
    "label",
    "id",
    "key",
    "__key__",
    "path",
    "caption",
    "url",
];

/// Returns the evidence that `path` is a TFRecord file or a folder of them.
pub fn recognise(path: &StorePath) -> Result<Option<String>, Error> {
    if path.is_dir() {
        let found = shards::has_one(path, is_member);
        return Ok(found.then(|| "it holds TFRecord files".to_owned()));
    }
    if framing::begins_as_one(path)? {
        return Ok(Some("it begins with the length and checksum of a record".to_owned()));
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_compressed = is_member(name) && framing::is_gzip(path)?;
    Ok(is_compressed.then(|| "it is gzip and named as TFRecord files are".to_owned()))
}

/// Opens a TFRecord file or a folder of them.
pub fn open(path: &StorePath, options: &SourceOptions) -> Result<Box<dyn Source>, Error> {
    let known = TABLE_OPTIONS.iter().copied().chain([Setting::Split]).collect::<Vec<_>>();
    options.allow_only("TFRecord files", &known)?;
    let split = options.split.as_deref();
    let files = shards::choose(path, "TFRecord files", is_member, split)?;
    let examples = Examples::open(files, MemoryBudget::of(options))?;
    let table = RecordTable::open(examples, options.columns.is_some())?;
    Ok(Box::new(RowSource::open(table, options, &path.display().to_string())?))
}

fn is_member(name: &str) -> bool {
    name.to_ascii_lowercase().contains(".tfrec")
}

/// The examples of some files.
struct Examples {
    files: Vec<StorePath>,
    bytes: u64,
    columns: Vec<(String, Kind)>,
    next_file: usize,
    current: Option<Frames>,
    budget: MemoryBudget,
}

impl Examples {
    fn open(files: Vec<StorePath>, budget: MemoryBudget) -> Result<Self, Error> {
        let mut bytes = 0;
        for path in &files {
            let metadata = path.metadata();
            let metadata =
                metadata.map_err(|source| Error::Source { path: path.to_path_buf(), source })?;
            bytes += metadata.bytes;
        }
        let columns = columns_of(&files, &budget)?;
        Ok(Self { files, bytes, columns, next_file: 0, current: None, budget })
    }
}

/// The features of the first records and their types.
fn columns_of(files: &[StorePath], budget: &MemoryBudget) -> Result<Vec<(String, Kind)>, Error> {
    let mut columns: Vec<(String, Feature, bool)> = Vec::new();
    let (mut seen, mut bytes) = (0, 0);
    for path in files {
        let mut frames = Frames::open(path, budget)?;
        while let Some(mut frame) = frames.next()? {
            let features = parse(path, &mut frame)?;
            for (name, feature) in features {
                let is_single = feature.len() == 1;
                let is_full = columns.len() == FIELDS_MAX;
                match columns.iter_mut().find(|(known, _, _)| *known == name) {
                    None if feature.len() == 0 => {}
                    None if is_full => {
                        let problem = format!("more than {FIELDS_MAX} features up to here");
                        return Err(malformed(path, Some(frame.offset), problem));
                    }
                    None => columns.push((name, feature, is_single)),
                    Some((_, first, single)) => {
                        if feature.len() > 0 && !first.is_like(&feature) {
                            let problem = format!(
                                "feature {name:?} is {}, where earlier records have {}",
                                feature.words(),
                                first.words()
                            );
                            return Err(malformed(path, Some(frame.offset), problem));
                        }
                        *single = *single && feature.len() <= 1;
                    }
                }
            }
            seen += 1;
            bytes += frame.bytes.len();
            if seen >= LOOK_RECORDS || bytes >= LOOK_BYTES {
                return Ok(kinds(columns));
            }
        }
    }
    Ok(kinds(columns))
}

/// The features of a record.
fn parse(path: &StorePath, frame: &mut Frame) -> Result<Vec<(String, Feature)>, Error> {
    example::parse(&frame.bytes, &mut frame.held).map_err(|fault| match fault {
        Fault::Malformed(problem) => malformed(path, Some(frame.offset), problem),
        Fault::OverBudget(over) => {
            let record = Some(format!("record {}", frame.number));
            too_large(path, record, frame.at.map(|_| frame.offset), over)
        }
    })
}

/// Sorts the columns by name, since the order of a map on the wire is arbitrary.
fn kinds(mut columns: Vec<(String, Feature, bool)>) -> Vec<(String, Kind)> {
    columns.sort_by(|(left, _, _), (right, _, _)| left.cmp(right));
    let kinds = columns.into_iter().map(|(name, feature, is_single)| {
        let kind = feature.kind(is_single, is_text(&name));
        (name, kind)
    });
    kinds.collect()
}

fn is_text(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    TEXT_NAMES.contains(&last)
}

impl Records for Examples {
    fn next(&mut self) -> Result<Option<Record>, Error> {
        loop {
            let frames = match &mut self.current {
                Some(frames) => frames,
                None => {
                    let Some(path) = self.files.get(self.next_file) else { return Ok(None) };
                    self.next_file += 1;
                    self.current.insert(Frames::open(path, &self.budget)?)
                }
            };
            let Some(mut frame) = frames.next()? else {
                self.current = None;
                continue;
            };
            let parsed = parse(&frames.path, &mut frame)?;
            let fault = |problem: String| malformed(&frames.path, Some(frame.offset), problem);
            let mut fields = Vec::with_capacity(parsed.len());
            for (name, feature) in parsed {
                let kind = self.columns.iter().find(|(known, _)| *known == name);
                let value = match kind {
                    Some((_, kind)) => feature
                        .value(kind, &frame.bytes, frame.at)
                        .map_err(|text| fault(format!("feature {name:?}: {text}")))?,
                    None if feature.len() == 0 => continue,
                    // The table reports it as a feature without a column.
                    None => Value::Null,
                };
                fields.push((name, value));
            }
            return Ok(Some(Record {
                file_name: Arc::clone(&frames.name),
                file: frames.ranges(),
                number: frame.number,
                fields,
                bytes: frame.bytes.len(),
                _held: frame.held,
            }));
        }
    }

    fn declared(&self) -> Vec<(String, Kind)> {
        self.columns.clone()
    }

    fn noun(&self) -> &'static str {
        "record"
    }

    fn rows(&self) -> Option<u64> {
        None
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }
}
