//! Parses `tf.train.Example` in the wire format of protocol buffers, without copying values.
//!
//! `Example { Features features = 1 }`, `Features { map<string, Feature> feature = 1 }`,
//! `Feature { oneof { BytesList 1, FloatList 2, Int64List 3 } }`, and each list is
//! `{ repeated … value = 1 }`:
//! <https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/example/feature.proto>.

use crate::message::Message;
use crate::source::OverBudget;
use crate::source::budget::Reservation;
use crate::source::rows::value::FIELDS_MAX;
use crate::source::rows::value::{Kind, Value};
use arrow_schema::DataType;
use meetpoint_diagnose::{Change, Remedy, Setting};
use std::ops::Range;

/// Memory of a byte string: its range, then its value.
const STRING_BYTES: u64 = (size_of::<Range<usize>>() + size_of::<Value>()) as u64;
/// Memory of an integer: in a list, then in the bytes of a column.
const INT_BYTES: u64 = 16;

/// A list of values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Feature {
    /// None of the three.
    Empty,
    /// Byte strings, as ranges of the record.
    Bytes(Vec<Range<usize>>),
    /// 32-bit floats, little-endian.
    Floats(Vec<u8>),
    /// 64-bit integers.
    Ints(Vec<i64>),
}

impl Feature {
    /// Number of values.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Bytes(values) => values.len(),
            Self::Floats(bytes) => bytes.len() / 4,
            Self::Ints(values) => values.len(),
        }
    }

    /// Whether both have the same kind of list.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Its description in an error.
    pub(super) fn words(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Bytes(_) => "bytes",
            Self::Floats(_) => "floats",
            Self::Ints(_) => "integers",
        }
    }

    /// The type of a column of such lists.
    pub(super) fn kind(&self, is_single: bool, is_text: bool) -> Kind {
        let bytes = if is_text { Kind::Text } else { Kind::Bytes };
        match (self, is_single) {
            (Self::Empty, _) => Kind::Null,
            (Self::Bytes(_), true) => bytes,
            (Self::Bytes(_), false) => Kind::List(Box::new(bytes)),
            (Self::Floats(_), true) => Kind::Number(DataType::Float32),
            (Self::Floats(_), false) => Kind::Numbers(DataType::Float32),
            (Self::Ints(_), true) => Kind::Number(DataType::Int64),
            (Self::Ints(_), false) => Kind::Numbers(DataType::Int64),
        }
    }

    /// The value for a column of a kind; `record` contains the bytes and starts at offset `at` of
    /// its file.
    pub(super) fn value(
        self,
        kind: &Kind,
        record: &[u8],
        at: Option<u64>,
    ) -> Result<Value, Message> {
        let is_list = matches!(kind, Kind::List(_) | Kind::Numbers(_));
        if !is_list && self.len() > 1 {
            return Err(Message::from(format!(
                "{} values, where the first records have one each",
                self.len()
            ))
            .remedy(Remedy::by("leave it out", Setting::Columns, Change::Other)));
        }
        let is_text = match kind {
            Kind::Text => true,
            Kind::List(item) => **item == Kind::Text,
            _ => false,
        };
        let string = |range: Range<usize>| {
            let bytes = &record[range.clone()];
            if is_text {
                let text = std::str::from_utf8(bytes);
                let text = text.map_err(|_| "a text that is not UTF-8".to_owned())?;
                return Ok(Value::Text(text.to_owned()));
            }
            let at = at.map(|at| at + range.start as u64);
            Ok(Value::Bytes { bytes: bytes.to_vec(), at })
        };
        let first = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).ok().map(f32::from_le_bytes);
        Ok(match (self, is_list) {
            (Self::Bytes(values), true) => {
                Value::List(values.into_iter().map(string).collect::<Result<_, String>>()?)
            }
            (Self::Bytes(values), false) => {
                values.into_iter().next().map_or(Ok(Value::Null), string)?
            }
            (Self::Floats(bytes), true) => Value::Numbers { dtype: DataType::Float32, bytes },
            (Self::Floats(bytes), false) => {
                first(&bytes).map_or(Value::Null, |number| Value::Float(f64::from(number)))
            }
            (Self::Ints(values), true) => Value::Numbers {
                dtype: DataType::Int64,
                bytes: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            },
            (Self::Ints(values), false) => values.first().map_or(Value::Null, |v| Value::Int(*v)),
            (Self::Empty, true) => Value::List(Vec::new()),
            (Self::Empty, false) => Value::Null,
        })
    }
}

/// Why a record cannot be parsed.
#[derive(Debug)]
pub(super) enum Fault {
    /// It is malformed; the text says how.
    Malformed(String),
    /// It exceeds the memory budget of the source.
    OverBudget(OverBudget),
}

impl From<String> for Fault {
    fn from(problem: String) -> Self {
        Self::Malformed(problem)
    }
}

impl From<OverBudget> for Fault {
    fn from(over: OverBudget) -> Self {
        Self::OverBudget(over)
    }
}

/// The features of an example by name; memory for their lists is added to `held`.
pub(super) fn parse(
    record: &[u8],
    held: &mut Reservation,
) -> Result<Vec<(String, Feature)>, Fault> {
    let mut features: Vec<(String, Feature)> = Vec::new();
    let parsed = each(record, 0..record.len(), |number, field| {
        let (1, Wire::Bytes(all)) = (number, field) else { return Ok(()) };
        each(record, all, |number, field| {
            let (1, Wire::Bytes(entry)) = (number, field) else { return Ok(()) };
            let (name, feature) = map_entry(record, entry, held)?;
            // The last of equal keys takes precedence.
            let is_full = features.len() == FIELDS_MAX;
            match features.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = feature,
                None if is_full => {
                    return Err(format!("more than {FIELDS_MAX} features").into());
                }
                None => features.push((name, feature)),
            }
            Ok(())
        })
    });
    match parsed {
        Ok(()) => Ok(features),
        Err(Fault::Malformed(text)) => Err(format!("is not a tf.train.Example: {text}").into()),
        Err(over) => Err(over),
    }
}

fn map_entry(
    record: &[u8],
    entry: Range<usize>,
    held: &mut Reservation,
) -> Result<(String, Feature), Fault> {
    let mut name = String::new();
    let mut feature = Feature::Empty;
    each(record, entry, |number, field| {
        match (number, field) {
            (1, Wire::Bytes(range)) => {
                let text = std::str::from_utf8(&record[range]);
                name = text.map_err(|_| "a name that is not UTF-8".to_owned())?.to_owned();
            }
            (2, Wire::Bytes(range)) => feature = one_of(record, range, held)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok((name, feature))
}

fn one_of(record: &[u8], range: Range<usize>, held: &mut Reservation) -> Result<Feature, Fault> {
    let mut feature = Feature::Empty;
    each(record, range, |number, field| {
        let Wire::Bytes(range) = field else { return Ok(()) };
        feature = match number {
            1 => {
                let mut values = Vec::new();
                each(record, range, |number, field| {
                    if let (1, Wire::Bytes(value)) = (number, field) {
                        held.grow(STRING_BYTES)?;
                        values.push(value);
                    }
                    Ok(())
                })?;
                Feature::Bytes(values)
            }
            2 => Feature::Floats(floats(record, range, held)?),
            3 => Feature::Ints(ints(record, range, held)?),
            _ => return Ok(()),
        };
        Ok(())
    })?;
    Ok(feature)
}

fn floats(record: &[u8], range: Range<usize>, held: &mut Reservation) -> Result<Vec<u8>, Fault> {
    held.grow(range.len() as u64)?;
    let mut bytes = Vec::new();
    each(record, range, |number, field| {
        match (number, field) {
            (1, Wire::Bytes(packed)) if packed.len() % 4 == 0 => {
                bytes.extend_from_slice(&record[packed]);
            }
            (1, Wire::Fixed32(value)) => bytes.extend_from_slice(&value.to_le_bytes()),
            (1, _) => return Err("a list of floats of odd length".to_owned().into()),
            _ => {}
        }
        Ok(())
    })?;
    Ok(bytes)
}

fn ints(record: &[u8], range: Range<usize>, held: &mut Reservation) -> Result<Vec<i64>, Fault> {
    let mut values = Vec::new();
    each(record, range, |number, field| {
        match (number, field) {
            (1, Wire::Bytes(packed)) => {
                // The last byte of each number has a clear highest bit.
                let count = record[packed.clone()].iter().filter(|byte| **byte < 0x80).count();
                held.grow(INT_BYTES * count as u64)?;
                values.reserve_exact(count);
                let mut next = packed.start;
                while next < packed.end {
                    values.push(varint(&record[..packed.end], &mut next)?.cast_signed());
                }
            }
            (1, Wire::Varint(value)) => {
                held.grow(INT_BYTES)?;
                values.push(value.cast_signed());
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(values)
}

/// A field on the wire: <https://protobuf.dev/programming-guides/encoding/>.
enum Wire {
    Varint(u64),
    Fixed64,
    Bytes(Range<usize>),
    Fixed32(u32),
}

/// Calls `take` with each field of a message.
fn each(
    record: &[u8],
    range: Range<usize>,
    mut take: impl FnMut(u64, Wire) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let message = &record[..range.end];
    let mut next = range.start;
    let cut = || "it ends within a field".to_owned();
    while next < range.end {
        let tag = varint(message, &mut next)?;
        let start = next;
        let field = match tag & 7 {
            0 => Wire::Varint(varint(message, &mut next)?),
            1 => {
                next = start.checked_add(8).filter(|end| *end <= range.end).ok_or_else(cut)?;
                Wire::Fixed64
            }
            2 => {
                let length = varint(message, &mut next)?;
                let length = usize::try_from(length).map_err(|_| cut())?;
                let start = next;
                next = start.checked_add(length).filter(|end| *end <= range.end).ok_or_else(cut)?;
                Wire::Bytes(start..next)
            }
            5 => {
                next = start.checked_add(4).filter(|end| *end <= range.end).ok_or_else(cut)?;
                let bytes = message[start..next].try_into().expect("four bytes were counted");
                Wire::Fixed32(u32::from_le_bytes(bytes))
            }
            other => return Err(format!("a field of wire type {other}").into()),
        };
        take(tag >> 3, field)?;
    }
    Ok(())
}

fn varint(message: &[u8], next: &mut usize) -> Result<u64, String> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let byte = *message.get(*next).ok_or("it ends within a number")?;
        *next += 1;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number of more than ten bytes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceOptions;
    use crate::source::budget::MemoryBudget;
    use proptest::prelude::*;
    use prost::Message;
    use std::collections::BTreeMap;

    /// The same messages with derives of `prost`, an independent encoder.
    #[derive(Clone, PartialEq, Message)]
    struct Example {
        #[prost(message, optional, tag = "1")]
        features: Option<Features>,
    }
    #[derive(Clone, PartialEq, Message)]
    struct Features {
        #[prost(btree_map = "string, message", tag = "1")]
        feature: BTreeMap<String, Oneof>,
    }
    #[derive(Clone, PartialEq, Message)]
    struct Oneof {
        #[prost(message, optional, tag = "1")]
        bytes: Option<BytesList>,
        #[prost(message, optional, tag = "2")]
        floats: Option<FloatList>,
        #[prost(message, optional, tag = "3")]
        ints: Option<IntList>,
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
    struct IntList {
        #[prost(int64, repeated, tag = "1")]
        value: Vec<i64>,
    }

    proptest! {
        #[test]
        fn records_of_another_encoder_are_read(
            bytes in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 0..4),
            floats in proptest::collection::vec(-1e9f32..1e9, 0..4),
            ints in proptest::collection::vec(any::<i64>(), 0..4),
        ) {
            let empty = Oneof::default();
            let texts = Some(BytesList { value: bytes.clone() });
            let reals = Some(FloatList { value: floats.clone() });
            let wholes = Some(IntList { value: ints.clone() });
            let feature = BTreeMap::from([
                ("b".to_owned(), Oneof { bytes: texts, ..empty.clone() }),
                ("f".to_owned(), Oneof { floats: reals, ..empty.clone() }),
                ("i".to_owned(), Oneof { ints: wholes, ..empty }),
            ]);
            let record = Example { features: Some(Features { feature }) }.encode_to_vec();
            let parsed = parse(&record, &mut Reservation::default()).unwrap();
            let parsed: BTreeMap<String, Feature> = parsed.into_iter().collect();
            let Feature::Bytes(ranges) = &parsed["b"] else { panic!("{parsed:?}") };
            let got: Vec<&[u8]> = ranges.iter().map(|range| &record[range.clone()]).collect();
            prop_assert_eq!(got, bytes);
            let wanted: Vec<u8> = floats.iter().flat_map(|float| float.to_le_bytes()).collect();
            prop_assert_eq!(&parsed["f"], &Feature::Floats(wanted));
            prop_assert_eq!(&parsed["i"], &Feature::Ints(ints));
        }

        #[test]
        fn any_bytes_are_refused_or_parsed(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = parse(&bytes, &mut Reservation::default());
        }
    }

    fn message(number: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2];
        prost::encode_length_delimiter(content.len(), &mut bytes).unwrap();
        bytes.extend_from_slice(content);
        bytes
    }

    #[test]
    fn numbers_that_take_more_memory_than_there_is_are_refused() {
        let record = |count: usize| {
            let list = message(3, &message(1, &vec![0; count]));
            message(1, &message(1, &[message(1, b"a"), message(2, &list)].concat()))
        };
        let budget = MemoryBudget::of(&SourceOptions {
            memory_bytes_max: Some(100_000),
            ..SourceOptions::default()
        });
        let hold = || budget.hold(0).unwrap();
        assert_eq!(parse(&record(1000), &mut hold()).unwrap()[0].1.len(), 1000);
        let fault = parse(&record(10_000), &mut hold());
        assert!(matches!(fault, Err(Fault::OverBudget(OverBudget::Memory { .. }))), "{fault:?}");
    }

    #[test]
    fn more_features_than_a_record_may_have_are_refused() {
        let record = |count: usize| {
            let names = (0..count).map(|number| message(1, number.to_string().as_bytes()));
            message(1, &names.flat_map(|name| message(1, &name)).collect::<Vec<u8>>())
        };
        assert_eq!(
            parse(&record(FIELDS_MAX), &mut Reservation::default()).unwrap().len(),
            FIELDS_MAX
        );
        let fault = parse(&record(FIELDS_MAX + 1), &mut Reservation::default());
        assert!(matches!(fault, Err(Fault::Malformed(_))), "{fault:?}");
    }
}
