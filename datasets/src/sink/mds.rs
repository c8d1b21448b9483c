//! MosaicML streaming shards (MDS version 2), as `streaming.MDSWriter` writes them.
//!
//! A shard is the number of samples, their offsets (both 32 bits, little-endian), the settings as
//! JSON, then the samples: the lengths of the columns of variable length, then the columns, by
//! name. A shard is built in memory, since the offsets precede the samples. `index.json` lists the
//! shards.

use super::files::{write_labels, write_whole};
use super::{Closed, KEY, LABEL, OutSample, Refusal, Shards, Sink, SinkKind, Tally, Value};
use super::{content_name, is_null, unheld, value};
use crate::Error;
use crate::source::{ContentKind, SourceSchema};
use arrow_array::types::{ArrowPrimitiveType, Float16Type};
use arrow_schema::DataType;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the list of shards.
pub(super) const INDEX_NAME: &str = "index.json";
/// What it begins with, before the shards.
const INDEX_HEAD: &str = "{\"shards\": [";
/// What it ends with.
const INDEX_TAIL: &str = "], \"version\": 2}";
/// Bytes of a shard where nothing else is said: what `MDSWriter` takes.
const SHARD_BYTES: u64 = 1 << 26;

/// The source of a column's values.
#[derive(Debug, Clone, PartialEq, Eq)]
enum From {
    Key,
    Content,
    Label,
    Extra(usize),
}

/// A column of an MDS dataset.
#[derive(Debug, Clone)]
struct Column {
    name: String,
    from: From,
    /// The encoding, such as `int32` or `ndarray:float32:4`.
    encoding: String,
    /// Bytes of each value, if fixed.
    size: Option<u64>,
}

/// Writes `shard.NNNNN.mds`.
pub(super) struct Mds {
    folder: PathBuf,
    shards: Shards,
    /// Sorted by name. Whether there is a label column is determined by the first sample.
    columns: Vec<Column>,
    /// Whether samples have labels; `None` before the first sample.
    has_labels: Option<bool>,
    /// The samples of the current shard, concatenated, and the end of each.
    samples: Vec<u8>,
    ends: Vec<u64>,
    /// Bytes of the current shard.
    shard_bytes: u64,
    /// Index entries of the finished shards.
    listed: Vec<String>,
    tally: Tally,
    notes: Vec<String>,
}

impl Mds {
    pub(super) fn create(
        folder: PathBuf,
        schema: &SourceSchema,
        shards: Shards,
    ) -> Result<Self, Error> {
        let fixed = |name: &str, from, encoding: &str, size| Column {
            name: name.to_owned(),
            from,
            encoding: encoding.to_owned(),
            size,
        };
        let mut columns = vec![
            fixed(KEY, From::Key, "str", None),
            // Like Python's integers.
            fixed(LABEL, From::Label, "int", Some(8)),
        ];
        if schema.kind != ContentKind::None {
            let encoding = if schema.kind == ContentKind::Text { "str" } else { "bytes" };
            columns.push(fixed(content_name(schema), From::Content, encoding, None));
        }
        let mut notes = Vec::new();
        for (index, field) in schema.extra.fields().iter().enumerate() {
            let (encoding, size) = encoding_of(field.data_type());
            if encoding == "json" && value::has_bytes(field.data_type()) {
                let reason = "it contains bytes, which the encoding `json` cannot store";
                return Err(unheld(SinkKind::Mds, field.name(), reason));
            }
            let is_kept = match encoding.as_str() {
                "json" => value::is_determined_by_its_values(field.data_type()),
                "str" => matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8),
                _ => true,
            };
            if !is_kept {
                let data_type = field.data_type();
                notes.push(format!(
                    "column `{}` ({data_type}) is written as {encoding}, which does not record its \
                     type",
                    field.name()
                ));
            }
            columns.push(Column {
                name: field.name().clone(),
                from: From::Extra(index),
                encoding,
                size,
            });
        }
        columns.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(Self {
            folder,
            shards,
            columns,
            has_labels: None,
            samples: Vec::new(),
            ends: Vec::new(),
            shard_bytes: 0,
            listed: Vec::new(),
            tally: Tally::default(),
            notes,
        })
    }

    /// The settings in each shard, and in the index: members of a JSON object in the order of
    /// their names, as Python sorts and spaces them.
    fn settings(&self) -> [String; 2] {
        let list = |of: &dyn Fn(&Column) -> String| {
            self.columns.iter().map(of).collect::<Vec<_>>().join(", ")
        };
        let size_limit = self.shards.bytes.unwrap_or(SHARD_BYTES);
        let columns = format!(
            "\"column_encodings\": [{}], \"column_names\": [{}], \"column_sizes\": [{}], \
             \"compression\": null, \"format\": \"mds\", \"hashes\": []",
            list(&|column| python_string(&column.encoding)),
            list(&|column| python_string(&column.name)),
            list(&|column| column.size.map_or("null".to_owned(), |size| size.to_string())),
        );
        [columns, format!("\"size_limit\": {size_limit}, \"version\": 2")]
    }

    /// The settings of a shard as one object.
    fn config(&self) -> String {
        let [columns, rest] = self.settings();
        format!("{{{columns}, {rest}}}")
    }

    /// Bytes of an empty shard, as `MDSWriter` counts them.
    fn bytes_empty(&self) -> u64 {
        8 + self.config().len() as u64
    }

    /// Writes the current shard.
    fn close(&mut self) -> Result<(), Error> {
        if self.ends.is_empty() {
            return Ok(());
        }
        let config = self.config();
        let first = 4 * (self.ends.len() as u64 + 2) + config.len() as u64;
        let mut bytes = Vec::with_capacity(self.samples.len() + first as usize);
        let word = |number: u64| {
            u32::try_from(number).expect("shards are kept below 2^32 bytes").to_le_bytes()
        };
        bytes.extend(word(self.ends.len() as u64));
        bytes.extend(word(first));
        self.ends.iter().for_each(|end| bytes.extend(word(first + end)));
        bytes.extend(config.as_bytes());
        bytes.append(&mut self.samples);
        let name = SinkKind::Mds.shard_name(self.listed.len());
        let [columns, rest] = self.settings();
        self.listed.push(format!(
            "{{{columns}, \"raw_data\": {{\"basename\": \"{name}\", \"bytes\": {}, \"hashes\": \
             {{}}}}, \"samples\": {}, {rest}, \"zip_data\": null}}",
            bytes.len(),
            self.ends.len()
        ));
        write_whole(self.folder.join(name), &bytes, &mut self.tally)?;
        self.ends.clear();
        self.shard_bytes = self.bytes_empty();
        Ok(())
    }

    /// A sample in the encoding of MDS.
    fn encode(&self, sample: &OutSample<'_>) -> Result<Vec<u8>, Refusal> {
        let mut lengths = Vec::new();
        let mut values = Vec::new();
        for column in &self.columns {
            let begin = values.len();
            match column.from {
                From::Key => values.extend(sample.key.as_bytes()),
                From::Content => values.extend(sample.file),
                From::Label => {
                    let label = sample.label.expect("it was checked that there is one");
                    values.extend(i64::from(label).to_le_bytes());
                }
                From::Extra(index) => extra(column, index, sample, &mut values)?,
            }
            if column.size.is_none() {
                let length = u32::try_from(values.len() - begin)
                    .map_err(|_| Refusal::of_column(&column.name, "has 2^32 bytes"))?;
                lengths.extend(length.to_le_bytes());
            }
        }
        lengths.append(&mut values);
        Ok(lengths)
    }
}

/// Writes one index of the shards that several indexes list, numbered in order.
pub(super) fn join_indexes(indexes: &[PathBuf], to: &Path) -> Result<(), Error> {
    let (mut listed, mut shards) = (Vec::new(), 0);
    for path in indexes {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::Source { path: path.clone(), source })?;
        let inner = text.strip_prefix(INDEX_HEAD).and_then(|rest| rest.strip_suffix(INDEX_TAIL));
        let mut inner = inner.unwrap_or_default().to_owned();
        if inner.is_empty() {
            continue;
        }
        let named = |index| format!("\"basename\": \"{}\"", SinkKind::Mds.shard_name(index));
        let count = (0..).take_while(|index| inner.contains(&named(*index))).count();
        // From the last one on, so that a new name is not taken for an old one.
        for index in (0..count).rev() {
            inner = inner.replace(&named(index), &named(shards + index));
        }
        shards += count;
        listed.push(inner);
    }
    let index = format!("{INDEX_HEAD}{}{INDEX_TAIL}", listed.join(", "));
    write_whole(to.to_path_buf(), index.as_bytes(), &mut Tally::default())
}

/// Appends a further column's value.
fn extra(
    column: &Column,
    index: usize,
    sample: &OutSample<'_>,
    to: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let refused = |problem: &str| Refusal::of_column(&column.name, problem);
    let (batch, row) = sample.extra.ok_or_else(|| refused("is missing"))?;
    if column.encoding != "json" && is_null(batch, index, row) {
        return Err(refused("is null, which MDS cannot store"));
    }
    let array = batch.column(index);
    match (value::cell(array, row), column.encoding.as_str()) {
        (value, "json") => {
            let json = value::json(value).map_err(|problem| refused(&problem))?;
            to.extend(serde_json::to_vec(&json).expect("plain values serialise"));
        }
        (Value::Text(text), _) => to.extend(text.as_bytes()),
        (Value::Bytes(bytes), _) => to.extend(bytes),
        (value, _) => numbers(array.data_type(), &value, to)
            .ok_or_else(|| refused("has a null inside, which MDS cannot store"))?,
    }
    Ok(())
}

/// Appends numbers in the width of their type; `None` if one is null.
fn numbers(data_type: &DataType, value: &Value, to: &mut Vec<u8>) -> Option<()> {
    // The casts reverse the widening of a cell.
    match (data_type, value) {
        (DataType::FixedSizeList(child, _), Value::List(values)) => {
            return values.iter().try_for_each(|value| numbers(child.data_type(), value, to));
        }
        (DataType::Int8 | DataType::UInt8, Value::Int(number)) => to.push(*number as u8),
        (DataType::Int16 | DataType::UInt16, Value::Int(number)) => {
            to.extend((*number as u16).to_le_bytes());
        }
        (DataType::Int32 | DataType::UInt32, Value::Int(number)) => {
            to.extend((*number as u32).to_le_bytes());
        }
        (DataType::Int64, Value::Int(number)) => to.extend(number.to_le_bytes()),
        (DataType::UInt64, Value::UInt(number)) => to.extend(number.to_le_bytes()),
        (DataType::Float16, Value::Float(number)) => {
            let half = <Float16Type as ArrowPrimitiveType>::Native::from_f64(*number);
            to.extend(half.to_le_bytes());
        }
        (DataType::Float32, Value::Float(number)) => to.extend((*number as f32).to_le_bytes()),
        (DataType::Float64, Value::Float(number)) => to.extend(number.to_le_bytes()),
        _ => return None,
    }
    Some(())
}

/// MDS's name of a number type, and its width in bytes.
fn number(data_type: &DataType) -> Option<(&'static str, u64)> {
    Some(match data_type {
        DataType::Int8 => ("int8", 1),
        DataType::Int16 => ("int16", 2),
        DataType::Int32 => ("int32", 4),
        DataType::Int64 => ("int64", 8),
        DataType::UInt8 => ("uint8", 1),
        DataType::UInt16 => ("uint16", 2),
        DataType::UInt32 => ("uint32", 4),
        DataType::UInt64 => ("uint64", 8),
        DataType::Float16 => ("float16", 2),
        DataType::Float32 => ("float32", 4),
        DataType::Float64 => ("float64", 8),
        _ => return None,
    })
}

/// The encoding of a column type, and the bytes of a value if fixed.
fn encoding_of(data_type: &DataType) -> (String, Option<u64>) {
    if let Some((name, bytes)) = number(data_type) {
        return (name.to_owned(), Some(bytes));
    }
    let mut shape = Vec::new();
    let mut inner = data_type;
    while let DataType::FixedSizeList(child, length) = inner {
        shape.push(u64::try_from(*length).unwrap_or(0));
        inner = child.data_type();
    }
    if let Some((name, bytes)) = number(inner)
        && shape.iter().all(|length| *length > 0)
    {
        let lengths: Vec<String> = shape.iter().map(u64::to_string).collect();
        let size = shape.iter().product::<u64>() * bytes;
        return (format!("ndarray:{name}:{}", lengths.join(",")), Some(size));
    }
    let encoding = match data_type {
        DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_) => "bytes",
        DataType::Utf8 | DataType::LargeUtf8 => "str",
        plain if value::is_plain(plain) => "json",
        _ => "str",
    };
    (encoding.to_owned(), None)
}

/// A string as Python's `json` writes it: with everything outside ASCII escaped.
fn python_string(text: &str) -> String {
    let quoted = serde_json::to_string(text).expect("a string serialises");
    let mut escaped = String::with_capacity(quoted.len());
    for character in quoted.chars() {
        if character.is_ascii() {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped
}

impl Sink for Mds {
    fn root(&self) -> Option<Arc<super::Root>> {
        None
    }

    fn put(&mut self, sample: &OutSample<'_>, is_kept: bool) -> Result<(), Refusal> {
        let has_label = sample.label.is_some();
        let is_first = self.has_labels.is_none();
        if *self.has_labels.get_or_insert(has_label) != has_label {
            let problem = if has_label {
                "it has a label, but earlier samples have none: in MDS, all samples have a label \
                 or none has"
            } else {
                "it has no label, but earlier samples have one: in MDS, all samples have a label \
                 or none has"
            };
            return Err(Refusal::Sample(problem.to_owned()));
        }
        if is_first && !has_label {
            self.columns.retain(|column| column.from != From::Label);
        }
        if is_first {
            self.shard_bytes = self.bytes_empty();
        }
        let encoded = self.encode(sample)?;
        let more = encoded.len() as u64 + 4;
        if !is_kept {
            return Ok(());
        }
        let samples = self.ends.len() as u64;
        let limit = SHARD_BYTES;
        // Offsets have 32 bits.
        let is_over = self.shard_bytes + more > u64::from(u32::MAX) && samples > 0;
        if is_over || self.shards.is_full(self.shard_bytes, samples, more, limit) {
            self.close()?;
        }
        if self.shard_bytes + more > u64::from(u32::MAX) {
            return Err(Refusal::Sample("it has 2^32 bytes, more than MDS can hold".to_owned()));
        }
        self.samples.extend(encoded);
        self.ends.push(self.samples.len() as u64);
        self.shard_bytes += more;
        Ok(())
    }

    fn finish(mut self: Box<Self>, labels: &[String]) -> Result<Closed, Error> {
        self.close()?;
        let index = format!("{INDEX_HEAD}{}{INDEX_TAIL}", self.listed.join(", "));
        write_whole(self.folder.join(INDEX_NAME), index.as_bytes(), &mut self.tally)?;
        if write_labels(&self.folder, labels, &mut self.tally)? {
            let note = "the names of the labels are in labels.json, since MDS holds numbers";
            self.notes.push(note.to_owned());
        }
        Ok(Closed { tally: self.tally, notes: self.notes })
    }
}
