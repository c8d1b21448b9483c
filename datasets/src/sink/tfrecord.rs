//! Shards of `tf.train.Example` records.
//!
//! A record is its length (64 bits, little-endian), the masked CRC-32C of the length, the example
//! as protobuf, and its masked CRC-32C (TensorFlow, `core/lib/io/record_writer.h`).

use super::files::{Output, write_labels};
use super::{Closed, KEY, LABEL, OutSample, Refusal, Shards, Sink, SinkKind, Tally, Value};
use super::{unheld, value};
use crate::Error;
use arrow_schema::{DataType, SchemaRef};
use crc_fast::{CrcAlgorithm, checksum};
use prost::Message;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Default bytes of a shard: TensorFlow recommends 100 to 200 MB.
const SHARD_BYTES: u64 = 128 << 20;
/// Added to a rotated checksum.
const MASK: u32 = 0xa282_ead8;

/// `tensorflow/core/example/example.proto`.
#[derive(Clone, PartialEq, Message)]
struct Example {
    #[prost(message, optional, tag = "1")]
    features: Option<Features>,
}

#[derive(Clone, PartialEq, Message)]
struct Features {
    #[prost(btree_map = "string, message", tag = "1")]
    feature: BTreeMap<String, Feature>,
}

#[derive(Clone, PartialEq, Message)]
struct Feature {
    #[prost(oneof = "Kind", tags = "1, 2, 3")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Kind {
    #[prost(message, tag = "1")]
    Bytes(BytesList),
    #[prost(message, tag = "2")]
    Floats(FloatList),
    #[prost(message, tag = "3")]
    Ints(Int64List),
}

#[derive(Clone, PartialEq, Message)]
struct BytesList {
    #[prost(bytes = "vec", repeated, tag = "1")]
    value: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct FloatList {
    #[prost(float, repeated, tag = "1")]
    value: Vec<f32>,
}

#[derive(Clone, PartialEq, Message)]
struct Int64List {
    #[prost(int64, repeated, tag = "1")]
    value: Vec<i64>,
}

/// Writes `data-NNNNN.tfrecord`.
pub(super) struct TfRecord {
    folder: PathBuf,
    content: String,
    shards: Shards,
    /// The current shard, and its number of samples.
    open: Option<(Output, u64)>,
    begun: usize,
    tally: Tally,
    notes: Vec<String>,
}

impl TfRecord {
    pub(super) fn create(
        folder: PathBuf,
        content: &str,
        extra: &SchemaRef,
        shards: Shards,
    ) -> Result<Self, Error> {
        let mut notes = Vec::new();
        for field in extra.fields() {
            let data_type = field.data_type();
            let conversion = conversion_of(data_type);
            if conversion == FeatureConversion::Json && value::has_bytes(data_type) {
                let reason = "it contains bytes, which JSON cannot store";
                return Err(unheld(SinkKind::TfRecord, field.name(), reason));
            }
            if let Some(words) = conversion.words() {
                notes.push(format!("column `{}` ({data_type}) {words}", field.name()));
            }
        }
        Ok(Self {
            folder,
            content: content.to_owned(),
            shards,
            open: None,
            begun: 0,
            tally: Tally::default(),
            notes,
        })
    }

    fn example(&self, sample: &OutSample<'_>) -> Result<Vec<u8>, Refusal> {
        let bytes = |bytes: &[u8]| Kind::Bytes(BytesList { value: vec![bytes.to_vec()] });
        let mut features = BTreeMap::new();
        let mut add = |name: &str, kind: Kind| {
            features.insert(name.to_owned(), Feature { kind: Some(kind) });
        };
        add(KEY, bytes(sample.key.as_bytes()));
        if !self.content.is_empty() {
            add(&self.content, bytes(sample.file));
        }
        if let Some(label) = sample.label {
            add(LABEL, Kind::Ints(Int64List { value: vec![label.into()] }));
        }
        for (name, value) in sample.values() {
            let kind = kind_of(value).map_err(|problem| Refusal::of_column(name, problem))?;
            if let Some(kind) = kind {
                add(name, kind);
            }
        }
        Ok(Example { features: Some(Features { feature: features }) }.encode_to_vec())
    }

    /// The shard to which the next `more` bytes are written.
    fn shard(&mut self, more: u64) -> Result<&mut (Output, u64), Error> {
        let is_full = self.open.as_ref().is_some_and(|(shard, samples)| {
            self.shards.is_full(shard.bytes(), *samples, more, SHARD_BYTES)
        });
        if is_full {
            self.close()?;
        }
        if self.open.is_none() {
            let path = self.folder.join(SinkKind::TfRecord.shard_name(self.begun));
            self.begun += 1;
            self.open = Some((Output::create(path)?, 0));
        }
        Ok(self.open.as_mut().expect("it was opened just now"))
    }

    fn close(&mut self) -> Result<(), Error> {
        match self.open.take() {
            Some((shard, _)) => shard.finish(&mut self.tally),
            None => Ok(()),
        }
    }
}

/// How values of a type are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FeatureConversion {
    /// Unchanged.
    Exactly,
    /// Integers, text and floats of other widths, whose type is not recorded.
    Widened,
    /// 64-bit floats, rounded to 32 bits.
    Rounded,
    /// JSON text.
    Json,
    /// Text.
    Text,
}

impl FeatureConversion {
    fn words(self) -> Option<&'static str> {
        match self {
            Self::Exactly => None,
            Self::Widened => {
                Some("is written as a TensorFlow feature, which does not record its type")
            }
            Self::Rounded => Some("is rounded to 32 bits, as TensorFlow features have"),
            Self::Json => Some("is written as a text of JSON"),
            Self::Text => Some("is written as text"),
        }
    }
}

fn conversion_of(data_type: &DataType) -> FeatureConversion {
    match data_type {
        DataType::Int64 | DataType::Float32 | DataType::Binary => FeatureConversion::Exactly,
        DataType::Float64 => FeatureConversion::Rounded,
        DataType::List(child) | DataType::LargeList(child) | DataType::FixedSizeList(child, _) => {
            match conversion_of(child.data_type()) {
                FeatureConversion::Exactly if matches!(data_type, DataType::List(_)) => {
                    FeatureConversion::Exactly
                }
                FeatureConversion::Exactly | FeatureConversion::Widened => {
                    FeatureConversion::Widened
                }
                other if is_nested(child.data_type()) => {
                    if other == FeatureConversion::Text {
                        FeatureConversion::Text
                    } else {
                        FeatureConversion::Json
                    }
                }
                other => other,
            }
        }
        DataType::Struct(_) => FeatureConversion::Json,
        plain if value::is_plain(plain) => FeatureConversion::Widened,
        _ => FeatureConversion::Text,
    }
}

fn is_nested(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::Struct(_)
    )
}

/// The feature of a value; `None` for a null, whose feature is omitted.
fn kind_of(value: Value) -> Result<Option<Kind>, String> {
    let bytes = |bytes: Vec<u8>| Kind::Bytes(BytesList { value: vec![bytes] });
    Ok(Some(match value {
        Value::Null => return Ok(None),
        Value::Bool(value) => Kind::Ints(Int64List { value: vec![value.into()] }),
        Value::Int(value) => Kind::Ints(Int64List { value: vec![value] }),
        Value::UInt(value) => {
            let value = i64::try_from(value)
                .map_err(|_| format!("is {value}, more than a TensorFlow feature can hold"))?;
            Kind::Ints(Int64List { value: vec![value] })
        }
        Value::Float(value) => Kind::Floats(FloatList { value: vec![value as f32] }),
        Value::Text(text) => bytes(text.into_bytes()),
        Value::Bytes(value) => bytes(value),
        Value::List(values) => list(values)?,
        map @ Value::Map(_) => {
            let json = value::json(map)?;
            bytes(serde_json::to_vec(&json).expect("plain values serialise"))
        }
    }))
}

/// A list with elements of one type as a feature; other lists as JSON.
fn list(values: Vec<Value>) -> Result<Kind, String> {
    let is_nested = |value: &Value| matches!(value, Value::List(_) | Value::Map(_));
    if values.iter().any(is_nested) {
        let json = value::json(Value::List(values))?;
        let text = serde_json::to_vec(&json).expect("plain values serialise");
        return Ok(Kind::Bytes(BytesList { value: vec![text] }));
    }
    let (mut ints, mut floats, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for value in values {
        match kind_of(value)? {
            Some(Kind::Ints(list)) => ints.extend(list.value),
            Some(Kind::Floats(list)) => floats.extend(list.value),
            Some(Kind::Bytes(list)) => texts.extend(list.value),
            None => return Err("has a null in a list, which a feature cannot hold".to_owned()),
        }
    }
    Ok(if !floats.is_empty() {
        Kind::Floats(FloatList { value: floats })
    } else if !texts.is_empty() {
        Kind::Bytes(BytesList { value: texts })
    } else {
        Kind::Ints(Int64List { value: ints })
    })
}

/// The masked checksum of a piece of a record.
fn masked_crc(bytes: &[u8]) -> [u8; 4] {
    // The algorithm returns 32 bits in a u64.
    let crc = checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32;
    crc.rotate_right(15).wrapping_add(MASK).to_le_bytes()
}

impl Sink for TfRecord {
    fn root(&self) -> Option<Arc<super::Root>> {
        None
    }

    fn put(&mut self, sample: &OutSample<'_>, is_kept: bool) -> Result<(), Refusal> {
        let example = self.example(sample)?;
        if !is_kept {
            return Ok(());
        }
        let length = (example.len() as u64).to_le_bytes();
        let (shard, samples) = self.shard(example.len() as u64 + 16)?;
        *samples += 1;
        shard.append(&length)?;
        shard.append(&masked_crc(&length))?;
        shard.append(&example)?;
        shard.append(&masked_crc(&example))?;
        Ok(())
    }

    fn finish(mut self: Box<Self>, labels: &[String]) -> Result<Closed, Error> {
        self.close()?;
        if write_labels(&self.folder, labels, &mut self.tally)? {
            let note = "the names of the labels are in labels.json, since features hold numbers";
            self.notes.push(note.to_owned());
        }
        Ok(Closed { tally: self.tally, notes: self.notes })
    }
}
