//! The first pass over tar shards: the parts of samples and their types.
//!
//! A full pass is needed, because a part is a column even if only the last sample has it, and the
//! type of a column depends on all its values. JSON and labels are read, pictures are skipped.

use super::samples::{ArchiveItem, Group, ReadLimits, Samples};
use crate::Error;
use crate::message::Message;
use crate::source::budget::{MemoryBudget, Reservation};
use crate::source::columns::Shape;
use crate::source::json::has_fraction;
use crate::source::names::{SeenKeys, TableName, kind_of};
use crate::source::{ContentKind, OverBudget, SampleOrigin};
use crate::store::StorePath;
use meetpoint_format::dataset::schema::IMAGE_BYTES_MAX;
use serde_json::Value;
use std::collections::BTreeSet;

/// Maximum bytes of text or JSON of a sample.
const TEXT_BYTES_MAX: u64 = 16 << 20;
/// Maximum bytes of the number or name of a class.
const WORD_BYTES_MAX: u64 = 4096;
/// Memory per byte of JSON: a list element takes two bytes in JSON, and 32 as a value.
const JSON_MEMORY_PER_BYTE: u64 = 16;
/// Memory for the name of a class in addition to its text.
const NAME_BYTES: u64 = 64;
/// Maximum number of different parts of samples.
const PARTS_MAX: usize = 256;
/// Maximum number of names of classes.
const CLASSES_MAX: usize = 1 << 20;

/// How a part is decoded, determined by its name as in the webdataset library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Json,
    /// An integer, or text if a sample has another value.
    Word,
    Text,
    Binary(ContentKind),
}

impl Role {
    /// The role of a part with this name.
    pub(super) fn of(part: &str) -> Self {
        match part.rsplit('.').next().unwrap_or(part) {
            "json" | "jsn" => Self::Json,
            "cls" | "cls2" | "class" | "count" | "index" | "inx" | "id" => Self::Word,
            _ => match kind_of(part) {
                ContentKind::Text => Self::Text,
                kind => Self::Binary(kind),
            },
        }
    }
}

impl Role {
    /// The limits for reading such a part.
    pub(super) fn limits(self) -> ReadLimits {
        let (bytes_max, memory_per_byte) = match self {
            Self::Json => (TEXT_BYTES_MAX, JSON_MEMORY_PER_BYTE),
            Self::Word => (WORD_BYTES_MAX, 1),
            Self::Text => (TEXT_BYTES_MAX, 1),
            Self::Binary(_) => (IMAGE_BYTES_MAX, 1),
        };
        ReadLimits { bytes_max, memory_per_byte }
    }
}

/// A part that samples have.
#[derive(Debug)]
pub(super) struct PartSeen {
    pub(super) name: String,
    pub(super) role: Role,
    /// Samples that have it.
    pub(super) samples: u64,
    /// Type of its values in JSON, or of its words.
    pub(super) shape: Shape,
    /// Distinct words; only for words that are not integers or could be names.
    words: BTreeSet<String>,
}

/// The result of the first pass over the shards.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// In order of first appearance.
    pub(super) parts: Vec<PartSeen>,
    /// Whether a sample has two pictures whose part names have no dots.
    pub(super) has_pictures_together: bool,
    /// Whether samples of two shards share a key.
    pub(super) shares_keys: bool,
    pub(super) samples: u64,
    /// Distinct values of the JSON field that may be the label.
    pub(super) json_labels: BTreeSet<String>,
    /// Whether a number in that field has a fraction.
    pub(super) has_json_fraction: bool,
    /// Name of that field.
    pub(super) json_label: String,
    /// Bytes of the shards.
    pub(super) bytes: u64,
    /// Members that are tables and no parts of samples: the first named `metadata.*`, and the first
    /// of another name.
    tables: [Option<LoneTable>; 2],
}

/// A member that is named like a table, and the only one with its key.
#[derive(Debug)]
struct LoneTable {
    part: String,
    origin: SampleOrigin,
}

impl Survey {
    /// Reads all shards.
    pub(super) fn of(
        shards: &[StorePath],
        label: Option<&str>,
        budget: &MemoryBudget,
    ) -> Result<Self, Error> {
        let json_label = label.unwrap_or("label").to_owned();
        let mut survey = Self { json_label, ..Self::default() };
        let mut names = budget.hold(0).expect("nothing is within any limit");
        let mut seen = SeenKeys::default();
        for shard in shards {
            let mut samples = Samples::open(shard, budget)?;
            survey.bytes += samples.members().input().file_bytes();
            while let Some(yielded) = samples.next(&limits_of)? {
                if let ArchiveItem::Group(group) = yielded {
                    survey.shares_keys |= !seen.insert(&group.key);
                    survey.note_table(&group);
                    survey.add(&group, &mut names)?;
                }
            }
        }
        Ok(survey)
    }

    /// Adds a sample; memory for names of classes is reserved in `names`.
    fn add(&mut self, group: &Group, names: &mut Reservation) -> Result<(), Error> {
        self.samples += 1;
        let simple = |name: &str| !name.contains('.') && kind_of(name) == ContentKind::Image;
        let pictures = group.parts.iter().filter(|part| simple(&part.name)).count();
        self.has_pictures_together |= pictures > 1;
        for part in &group.parts {
            let index = self.index_of(&part.name, &group.origin)?;
            let seen = &mut self.parts[index];
            seen.samples += 1;
            let Some(Ok(bytes)) = &part.bytes else {
                continue;
            };
            let widened = match seen.role {
                // Errors are left to the second pass, which reports them.
                Role::Json => match serde_json::from_slice::<Value>(bytes.as_ref()) {
                    Ok(value) => {
                        let label = value.get(&self.json_label);
                        self.has_json_fraction |= label.is_some_and(has_fraction);
                        if let Some(Value::String(label)) = label {
                            note(&mut self.json_labels, label, names)
                                .map_err(|over| too_much(&group.origin, over))?;
                        }
                        seen.shape.absorb(&value)
                    }
                    Err(_) => Ok(()),
                },
                Role::Word => {
                    seen.absorb_word(bytes.as_ref(), names)
                        .map_err(|over| too_much(&group.origin, over))?;
                    Ok(())
                }
                Role::Text | Role::Binary(_) => Ok(()),
            };
            widened.map_err(|problem| Error::Malformed {
                origin: Box::new(group.origin.clone()),
                problem: Message::from(format!("{}.{}: {problem}", group.key, part.name))
                    .remedy("make the type the same in all samples"),
            })?;
        }
        Ok(())
    }

    fn index_of(&mut self, name: &str, origin: &SampleOrigin) -> Result<usize, Error> {
        if let Some(index) = self.parts.iter().position(|part| part.name == name) {
            return Ok(index);
        }
        if self.parts.len() == PARTS_MAX {
            return Err(Error::Malformed {
                origin: Box::new(origin.clone()),
                problem: Message::from(format!(
                    "samples have more than {PARTS_MAX} different parts, the last one {name}"
                ))
                .remedy("rename members with dots in their key, which ends at the first dot"),
            });
        }
        self.parts.push(PartSeen {
            name: name.to_owned(),
            role: Role::of(name),
            samples: 0,
            shape: Shape::Null,
            words: BTreeSet::new(),
        });
        Ok(self.parts.len() - 1)
    }

    /// Records a sample that consists of a table.
    fn note_table(&mut self, group: &Group) {
        let [part] = group.parts.as_slice() else { return };
        let key = group.key.rsplit('/').next().unwrap_or(&group.key);
        let Some(name) = TableName::of(&format!("{key}.{}", part.name)) else { return };
        let table = &mut self.tables[usize::from(!name.is_metadata)];
        table.get_or_insert_with(|| LoneTable {
            part: part.name.clone(),
            origin: group.origin.clone(),
        });
    }

    /// The location of a table that may contain the labels of the samples, whose content these
    /// parts are.
    pub(super) fn unread_table(&self, content: &[String]) -> Option<&SampleOrigin> {
        let [metadata, other] = &self.tables;
        // If other samples have such a part too, this one lacks its content.
        let is_alone =
            |table: &&LoneTable| self.part(&table.part).is_some_and(|part| part.samples == 1);
        let table = metadata.as_ref().or_else(|| other.as_ref().filter(is_alone))?;
        (!content.contains(&table.part)).then_some(&table.origin)
    }

    /// The part of that name.
    pub(super) fn part(&self, name: &str) -> Option<&PartSeen> {
        self.parts.iter().find(|part| part.name == name)
    }
}

impl PartSeen {
    fn absorb_word(&mut self, bytes: &[u8], names: &mut Reservation) -> Result<(), OverBudget> {
        let Ok(word) = std::str::from_utf8(bytes) else {
            return Ok(());
        };
        let word = word.trim();
        if word.is_empty() {
            return Ok(());
        }
        note(&mut self.words, word, names)?;
        let is_integer = word.parse::<i64>().is_ok();
        self.shape = match (&self.shape, is_integer) {
            (Shape::Null | Shape::Int, true) => Shape::Int,
            _ => Shape::Text,
        };
        Ok(())
    }

    /// The distinct words; `None` if there are too many to be names of classes.
    pub(super) fn words(&self) -> Option<&BTreeSet<String>> {
        (self.words.len() <= CLASSES_MAX).then_some(&self.words)
    }
}

/// Records a word, up to one more than the maximum.
fn note(
    words: &mut BTreeSet<String>,
    word: &str,
    names: &mut Reservation,
) -> Result<(), OverBudget> {
    if words.len() <= CLASSES_MAX && !words.contains(word) {
        names.grow(word.len() as u64 + NAME_BYTES)?;
        words.insert(word.to_owned());
    }
    Ok(())
}

fn too_much(origin: &SampleOrigin, over: OverBudget) -> Error {
    Error::OverBudget { origin: Box::new(origin.clone()), over }
}

/// The limits for reading a part in the first pass.
fn limits_of(part: &str) -> Option<ReadLimits> {
    match Role::of(part) {
        role @ (Role::Json | Role::Word) => Some(role.limits()),
        Role::Text | Role::Binary(_) => None,
    }
}

/// Whether the words are few enough to be names of classes.
pub(super) fn are_classes(words: &BTreeSet<String>) -> bool {
    words.len() <= CLASSES_MAX
}
