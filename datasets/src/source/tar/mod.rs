//! WebDataset: shards of samples in tar files, plain or compressed with gzip or zstd.
//!
//! In reading order: `shards` (the files), `members` (of one file), `samples` (members that belong
//! together), `survey` (a first pass: the parts and their types), `plan` (their roles in a sample).
//! Members of plain shards are returned as ranges of the file. Memory: 32 bytes per sample for its
//! key, the names of the classes, and one record batch of samples.

pub(super) mod members;
mod plan;
mod samples;
mod shards;
mod survey;

use super::budget::MemoryBudget;
use super::columns::{Cell, Gather, Shape};
use super::input::{Input, read_up_to};
use super::json::whole_number;
use super::names::SeenKeys;
use super::reader_source::{ReaderSource, SampleReader};
use super::{
    Content, Entry, Finished, Item, SampleOrigin, Size, Source, SourceOptions, SourceSchema,
    UnreadTable,
};
use crate::message::Message;
use crate::store::{FileKind, StorePath};
use crate::{Error, LeftOut};
use meetpoint_diagnose::Setting;
use meetpoint_format::dataset::schema::{IMAGE_BYTES_MAX, KEY_BYTES_MAX};
pub(crate) use plan::WHOLE_KEY;
use plan::{ColumnOrigin, ShardPlan};
use samples::{ArchiveItem, Group, Part, ReadLimits, Samples};
use serde_json::Value;
pub(super) use shards::has_tar_name;
use survey::{Role, Survey};

/// Description for errors and help.
pub const WORDS: &str = "WebDataset tar shards";

/// Returns the evidence that `path` is a tar file (by content), a folder of tar files (by name),
/// or a pattern of names such as `train-{000..099}.tar`.
pub fn recognise(path: &StorePath) -> Result<Option<String>, Error> {
    Ok(match path.metadata() {
        Ok(metadata) if metadata.kind == FileKind::Folder => {
            shards::first_in(path).map(|shard| format!("it holds the tar file {shard}"))
        }
        Ok(metadata) if metadata.kind == FileKind::File && begins_as_tar(path)? => {
            Some("it begins as a tar file does".to_owned())
        }
        Ok(_) => None,
        Err(_) => {
            let is_pattern = path.path().to_str().is_some_and(|text| text.contains('{'));
            (is_pattern && shards::has_tar_name(path.path()))
                .then(|| "it is a pattern of names of tar files".to_owned())
        }
    })
}

/// Whether the first decompressed block is the header of a member, or the end mark of an empty
/// archive with a tar name.
pub(super) fn begins_as_tar(path: &StorePath) -> Result<bool, Error> {
    let mut input = Input::open(path)?;
    let mut block = [0; 512];
    Ok(match read_up_to(&mut input, &mut block) {
        Ok(512) => {
            members::has_checksum(&block)
                || shards::has_tar_name(path.path()) && block.iter().all(|byte| *byte == 0)
        }
        _ => false,
    })
}

/// Opens the shards that `path` names. They are read once before this returns, and again for the
/// samples.
///
/// Options: `content` and `label` name parts (`jpg`, `cls`; the label may be a field of the JSON),
/// `kind`, `columns`.
pub fn open(path: &StorePath, options: &SourceOptions) -> Result<Box<dyn Source>, Error> {
    options
        .allow_only(WORDS, &[Setting::Content, Setting::Kind, Setting::Label, Setting::Columns])?;
    let shards = shards::shards_of(path)?;
    let budget = MemoryBudget::of(options);
    let survey = Survey::of(&shards, options.label.as_deref(), &budget)?;
    let malformed = |problem: Message| Error::Malformed {
        origin: Box::new(SampleOrigin {
            file: path.display().to_string(),
            ..SampleOrigin::default()
        }),
        problem,
    };
    if survey.samples == 0 {
        return Err(malformed("no samples in it; expected members such as 0001.jpg".into()));
    }
    let plan = ShardPlan::of(&survey, options).map_err(malformed)?;
    if survey.shares_keys {
        check_names_differ(&shards)?;
    }
    let unread_table = survey.unread_table(&plan.content).cloned().map(UnreadTable::in_archive);
    let columns: Vec<(String, Shape)> =
        plan.columns.iter().map(|column| (column.name.clone(), column.shape.clone())).collect();
    let gather = Gather::new(&columns);
    let schema = SourceSchema {
        kind: plan.kind,
        name: plan.name.clone(),
        extra: gather.schema().clone(),
        prepared: None,
    };
    Ok(Box::new(ReaderSource::new(
        TarSource {
            schema,
            size: Size { samples: Some(survey.samples), bytes: Some(survey.bytes) },
            shares_keys: survey.shares_keys,
            plan,
            shards,
            next_shard: 0,
            open: None,
            budget,
            unread_table,
        },
        gather,
    )))
}

/// If samples of two shards share a key, all keys start with the name of the shard.
fn check_names_differ(shards: &[StorePath]) -> Result<(), Error> {
    let mut seen = SeenKeys::default();
    match shards.iter().find(|shard| !seen.insert(&stem(shard))) {
        None => Ok(()),
        Some(shard) => Err(Error::Malformed {
            origin: Box::new(SampleOrigin {
                file: shard.display().to_string(),
                ..SampleOrigin::default()
            }),
            problem: Message::from(
                "another shard has the same name, and samples have the same keys",
            )
            .remedy("rename one of the shards"),
        }),
    }
}

/// The name of a shard without its tar extensions.
fn stem(shard: &StorePath) -> String {
    let name = shard.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let end = name.to_ascii_lowercase().rfind(".t").unwrap_or(name.len());
    name[..end].to_owned()
}

struct TarSource {
    schema: SourceSchema,
    size: Size,
    shares_keys: bool,
    plan: ShardPlan,
    shards: Vec<StorePath>,
    next_shard: usize,
    open: Option<Samples>,
    budget: MemoryBudget,
    unread_table: Option<UnreadTable>,
}

impl SampleReader for TarSource {
    fn schema(&self) -> &SourceSchema {
        &self.schema
    }

    fn size(&self) -> Size {
        self.size
    }

    fn advance(&mut self, to: &mut Gather) -> Result<bool, Error> {
        let samples = match &mut self.open {
            Some(samples) => samples,
            None => {
                let Some(shard) = self.shards.get(self.next_shard) else {
                    return Ok(false);
                };
                self.next_shard += 1;
                self.open.insert(Samples::open(shard, &self.budget)?)
            }
        };
        let is_plain = samples.members().is_plain();
        let plan = &self.plan;
        match samples.next(&|part| limits_of(plan, part, is_plain))? {
            None => self.open = None,
            Some(ArchiveItem::Other(entry)) => to.note(entry),
            Some(ArchiveItem::Group(group)) => self.add(group, to)?,
        }
        Ok(true)
    }

    fn changed(&self, problem: &str) -> Error {
        let shard = &self.shards[self.next_shard.saturating_sub(1)];
        Error::Malformed {
            origin: Box::new(SampleOrigin {
                file: shard.display().to_string(),
                ..SampleOrigin::default()
            }),
            problem: Message::from(problem).remedy("pack again when no program writes to it"),
        }
    }

    fn finish(&mut self) -> Finished {
        let ShardPlan { labels, unused_labels, .. } = &self.plan;
        Finished { labels: labels.clone(), unused_labels: unused_labels.clone() }
    }

    fn unread_table(&self) -> Option<&UnreadTable> {
        self.unread_table.as_ref()
    }
}

impl TarSource {
    fn add(&mut self, group: Group, to: &mut Gather) -> Result<(), Error> {
        let path = format!("{} in {}", group.key, group.origin.file);
        match self.item(group) {
            Ok((item, cells)) => to.push(item, cells).map_err(|problem| self.changed(&problem)),
            Err(reason) => {
                to.note(Entry::Unreadable(LeftOut { path, reason }));
                Ok(())
            }
        }
    }

    /// Builds a sample from its members; the error is why it cannot be read.
    fn item(&self, mut group: Group) -> Result<(Item, Vec<Cell>), Message> {
        if let Some(broken) = group.broken {
            return Err(broken);
        }
        let content = self.content(&mut group)?;
        let json = parse_json(&group)?;
        let label = self.label(&group, &json)?;
        let cells = self.plan.columns.iter().map(|column| match &column.from {
            ColumnOrigin::Field(part, field) => Ok(field_of(&json, part, field)),
            ColumnOrigin::Part(name) => match column.role {
                Role::Json => Ok(value_of(&json, name).cloned().map_or(Cell::Null, cell_of)),
                role => cell(&mut group.parts, name, role, &column.shape),
            },
        });
        let cells = cells.collect::<Result<Vec<_>, String>>()?;
        let given = match &self.plan.key {
            Some(ColumnOrigin::Field(part, field)) => match field_of(&json, part, field) {
                Cell::Json(Value::String(key)) if !key.is_empty() => Some(key),
                _ => None,
            },
            _ => None,
        };
        let key = match (self.shares_keys, self.next_shard.checked_sub(1)) {
            _ if given.is_some() => given.unwrap_or_default(),
            (true, Some(shard)) => format!("{}/{}", stem(&self.shards[shard]), group.key),
            _ => group.key,
        };
        if key.len() > KEY_BYTES_MAX {
            let bytes = key.len();
            return Err(format!("its key has {bytes} bytes, the limit is {KEY_BYTES_MAX}").into());
        }
        Ok((Item { key, origin: group.origin, content, label, extra: None }, cells))
    }

    fn content(&self, group: &mut Group) -> Result<Content, String> {
        if self.plan.content.is_empty() {
            return Ok(Content::Bytes(Vec::new()));
        }
        let is_content = |part: &&mut Part| self.plan.content.contains(&part.name);
        let Some(part) = group.parts.iter_mut().find(is_content) else {
            return Err(format!(
                "it has no {}, unlike other samples",
                self.plan.content.join(" or ")
            ));
        };
        if part.member.bytes > IMAGE_BYTES_MAX {
            let bytes = part.member.bytes;
            return Err(format!("{bytes} bytes, the limit is {IMAGE_BYTES_MAX}"));
        }
        let samples = self.open.as_ref().expect("a sample is read from an open shard");
        if samples.members().is_plain() {
            let file = samples.members().input().file().clone();
            return Ok(Content::Range {
                file,
                offset: part.member.offset,
                bytes: part.member.bytes,
            });
        }
        part.bytes
            .take()
            .expect("the content of a compressed shard is read")
            .map(|held| Content::Bytes(held.into_bytes()))
    }

    fn label(&self, group: &Group, json: &[(String, Value)]) -> Result<Option<i32>, String> {
        let value = match &self.plan.label {
            None => return Ok(None),
            Some(ColumnOrigin::Part(name)) => {
                match group.parts.iter().find(|part| part.name == *name) {
                    None => return Ok(None),
                    Some(part) => Value::String(word_of(part)?.to_owned()),
                }
            }
            Some(ColumnOrigin::Field(part, field)) => match field_of(json, part, field) {
                Cell::Json(value) => value,
                _ => return Ok(None),
            },
        };
        let text = match &value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        if !self.plan.classes.is_empty() {
            let class = self.plan.classes.get(&text);
            return class.copied().map(Some).ok_or_else(|| format!("no label: {text:?}"));
        }
        let label = whole_number(&text);
        label.map(Some).ok_or_else(|| format!("{text:?} is not a label: expected a 32-bit integer"))
    }
}

/// The limits for reading a part in the second pass; `None` if it is not read.
fn limits_of(plan: &ShardPlan, part: &str, is_plain: bool) -> Option<ReadLimits> {
    if plan.content.iter().any(|name| name == part) {
        let limits = ReadLimits { bytes_max: IMAGE_BYTES_MAX, memory_per_byte: 1 };
        return (!is_plain).then_some(limits);
    }
    let is_of = |from: &ColumnOrigin| match from {
        ColumnOrigin::Part(name) | ColumnOrigin::Field(name, _) => name == part,
    };
    let is_used = plan.label.as_ref().is_some_and(is_of)
        || plan.key.as_ref().is_some_and(is_of)
        || plan.columns.iter().any(|column| is_of(&column.from));
    is_used.then(|| Role::of(part).limits())
}

fn parse_json(group: &Group) -> Result<Vec<(String, Value)>, String> {
    let mut parsed = Vec::new();
    for part in group.parts.iter().filter(|part| Role::of(&part.name) == Role::Json) {
        let Some(bytes) = &part.bytes else {
            continue;
        };
        let bytes = bytes.as_ref().map_err(|problem| format!(".{}: {problem}", part.name))?;
        let value = serde_json::from_slice(bytes.as_ref())
            .map_err(|error| format!(".{}: invalid JSON: {error}", part.name))?;
        parsed.push((part.name.clone(), value));
    }
    Ok(parsed)
}

fn value_of<'a>(json: &'a [(String, Value)], part: &str) -> Option<&'a Value> {
    json.iter().find(|(name, _)| name == part).map(|(_, value)| value)
}

fn field_of(json: &[(String, Value)], part: &str, field: &str) -> Cell {
    let value = value_of(json, part).and_then(|value| value.get(field));
    value.cloned().map_or(Cell::Null, cell_of)
}

fn cell_of(value: Value) -> Cell {
    if value.is_null() { Cell::Null } else { Cell::Json(value) }
}

/// A part that is an integer or a name, without surrounding white space.
fn word_of(part: &Part) -> Result<&str, String> {
    let name = &part.name;
    let bytes = match &part.bytes {
        Some(Ok(bytes)) => bytes,
        Some(Err(problem)) => return Err(format!(".{name}: {problem}")),
        None => return Err(format!(".{name} was not read")),
    };
    let word = std::str::from_utf8(bytes.as_ref()).map_err(|_| format!(".{name} is not UTF-8"))?;
    Ok(word.trim())
}

/// The value of a column that is a member.
fn cell(parts: &mut [Part], name: &str, role: Role, shape: &Shape) -> Result<Cell, String> {
    let Some(part) = parts.iter_mut().find(|part| part.name == name) else {
        return Ok(Cell::Null);
    };
    if role == Role::Word {
        let word = word_of(part)?;
        return Ok(match (shape, word.parse::<i64>()) {
            _ if word.is_empty() => Cell::Null,
            (Shape::Int, Ok(number)) => Cell::Json(number.into()),
            _ => Cell::Json(Value::String(word.to_owned())),
        });
    }
    let bytes = match part.bytes.take() {
        Some(Ok(held)) => held.into_bytes(),
        Some(Err(problem)) => return Err(format!(".{name}: {problem}")),
        None => return Err(format!(".{name} was not read")),
    };
    if role != Role::Text {
        return Ok(Cell::Bytes(bytes));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!(".{name} is not UTF-8"))?;
    Ok(Cell::Json(Value::String(text)))
}
