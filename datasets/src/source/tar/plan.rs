//! The roles of the parts of a sample: content, label, columns.

use super::survey::{PartSeen, Role, Survey, are_classes};
use crate::message::Message;
use crate::natural_order;
use crate::source::columns::Shape;
use crate::source::unused_label::{LABEL_NAME, UnusedLabel};
use crate::source::{ContentKind, SourceOptions};
use meetpoint_diagnose::Setting;
use std::collections::{BTreeSet, HashMap};

/// Field of a sample's JSON with its whole key, if the name of its members cannot represent it.
pub(crate) const WHOLE_KEY: &str = "meetpoint.key";
/// Columns that every dataset has.
const RESERVED: [&str; 4] = ["key", "label", "crc32c", "entry_points"];

/// The source of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ColumnOrigin {
    Part(String),
    /// A field of the JSON in that part.
    Field(String, String),
}

/// A further column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) from: ColumnOrigin,
    pub(super) role: Role,
    pub(super) shape: Shape,
}

/// The role of each part.
#[derive(Debug)]
pub(super) struct ShardPlan {
    /// Parts that can be the content; a sample has one of them.
    pub(super) content: Vec<String>,
    pub(super) kind: ContentKind,
    pub(super) name: String,
    /// A field of the JSON that is the key, if samples have it.
    pub(super) key: Option<ColumnOrigin>,
    pub(super) label: Option<ColumnOrigin>,
    /// Index of each class by its name; empty if labels are integers.
    pub(super) classes: HashMap<String, i32>,
    /// Names of the classes by index.
    pub(super) labels: Vec<String>,
    pub(super) unused_labels: Vec<UnusedLabel>,
    pub(super) columns: Vec<Column>,
}

impl ShardPlan {
    /// Plans the roles from a survey; the error is a message.
    pub(super) fn of(survey: &Survey, options: &SourceOptions) -> Result<Self, Message> {
        let content = content_of(survey, options.content.as_deref())?;
        let kind = options.kind.unwrap_or_else(|| {
            match content.first().map(|name| (name, Role::of(name))) {
                None => ContentKind::None,
                Some((_, Role::Binary(kind))) => kind,
                Some((_, Role::Text)) => ContentKind::Text,
                Some((_, Role::Json | Role::Word)) => ContentKind::Bytes,
            }
        });
        let name = match (kind, content.first()) {
            (ContentKind::Image, _) => "image".to_owned(),
            (ContentKind::Audio, _) => "audio".to_owned(),
            (ContentKind::Text, _) => "text".to_owned(),
            (ContentKind::Bytes, Some(part)) => part.clone(),
            (ContentKind::Bytes | ContentKind::None, _) => String::new(),
        };
        let (label, names) = label_of(survey, options.label.as_deref(), &content)?;
        let mut labels: Vec<String> = names.into_iter().collect();
        labels.sort_by(|left, right| natural_order(left, right));
        let index = |(index, name): (usize, &String)| {
            (name.clone(), i32::try_from(index).expect("at most 2^20 classes"))
        };
        let classes = labels.iter().enumerate().map(index).collect();
        let unused_labels = unused_labels(survey, label.as_ref(), &content);
        let key = key_of(survey);
        let columns = columns_of(survey, &content, &[label.as_ref(), key.as_ref()], &name)?;
        let columns = chosen(columns, options.columns.as_deref())?;
        Ok(Self { content, kind, name, key, label, classes, labels, unused_labels, columns })
    }
}

fn content_of(survey: &Survey, asked: Option<&str>) -> Result<Vec<String>, Message> {
    if let Some(asked) = asked {
        return match survey.part(asked) {
            Some(part) => Ok(vec![part.name.clone()]),
            None => Err(absent(asked, Setting::Content, survey)),
        };
    }
    let of_kind = |kind: ContentKind, may_have_dots: bool| -> Vec<&PartSeen> {
        let is_kind = |part: &&PartSeen| match kind {
            ContentKind::Text => part.role == Role::Text,
            kind => part.role == Role::Binary(kind),
        };
        let parts = survey.parts.iter().filter(is_kind);
        parts.filter(|part| may_have_dots || !part.name.contains('.')).collect()
    };
    let pictures = of_kind(ContentKind::Image, false);
    if !pictures.is_empty() && !survey.has_pictures_together {
        return Ok(pictures.into_iter().map(|part| part.name.clone()).collect());
    }
    let kinds = [ContentKind::Image, ContentKind::Audio, ContentKind::Text, ContentKind::Bytes];
    for kind in kinds {
        for may_have_dots in [false, true] {
            let parts = of_kind(kind, may_have_dots);
            // The most frequent part; ties go to the first.
            let best = parts.iter().rev().max_by_key(|part| part.samples);
            if let Some(best) = best {
                return Ok(vec![best.name.clone()]);
            }
        }
    }
    Ok(Vec::new())
}

/// The label, and the names of its classes if it has names.
fn label_of(
    survey: &Survey,
    asked: Option<&str>,
    content: &[String],
) -> Result<(Option<ColumnOrigin>, BTreeSet<String>), Message> {
    let none = BTreeSet::new();
    let too_many = |name: &str| -> Message {
        format!("{name} has too many different texts to be a label").into()
    };
    if let Some(part) = survey.part(asked.unwrap_or("cls")) {
        if content.contains(&part.name) {
            return match asked {
                Some(asked) => Err(format!("{asked} cannot be content and label").into()),
                None => Ok((None, none)),
            };
        }
        return match (part.role, &part.shape) {
            (Role::Word, Shape::Text) => {
                let words = part.words().ok_or_else(|| too_many(&part.name))?;
                Ok((Some(ColumnOrigin::Part(part.name.clone())), words.clone()))
            }
            (Role::Word, _) => Ok((Some(ColumnOrigin::Part(part.name.clone())), none)),
            _ => Err(Message::from(format!("{} is not a label", part.name))
                .remedy("name a column of integers or names")),
        };
    }
    for part in
        survey.parts.iter().filter(|part| is_flat_json(part) && !content.contains(&part.name))
    {
        let Shape::Struct(fields) = &part.shape else {
            continue;
        };
        let Some((name, shape)) = fields.iter().find(|(name, _)| *name == survey.json_label) else {
            continue;
        };
        let from = Some(ColumnOrigin::Field(part.name.clone(), name.clone()));
        match (shape, asked) {
            (Shape::Int, _) => return Ok((from, none)),
            (Shape::Float, _) if !survey.has_json_fraction => return Ok((from, none)),
            (Shape::Text, _) if are_classes(&survey.json_labels) => {
                return Ok((from, survey.json_labels.clone()));
            }
            (Shape::Text, Some(asked)) => return Err(too_many(asked)),
            (shape, Some(asked)) => {
                let shape = shape.name();
                return Err(Message::from(format!("{asked} is {shape}"))
                    .remedy("name a column of integers or names"));
            }
            (_, None) => {}
        }
    }
    match asked {
        Some(asked) => Err(absent(asked, Setting::Label, survey)),
        None => Ok((None, none)),
    }
}

/// Fields of the JSON that are named like a label but are not the label.
fn unused_labels(
    survey: &Survey,
    label: Option<&ColumnOrigin>,
    content: &[String],
) -> Vec<UnusedLabel> {
    let class_label = label.map(|from| match from {
        ColumnOrigin::Part(name) | ColumnOrigin::Field(_, name) => name.clone(),
    });
    let parts = survey.parts.iter().filter(|part| is_flat_json(part));
    let unused = parts.filter_map(|part| {
        let Shape::Struct(fields) = &part.shape else { return None };
        let (name, shape) = fields.iter().find(|(name, _)| name == LABEL_NAME)?;
        let from = ColumnOrigin::Field(part.name.clone(), name.clone());
        let is_taken = label == Some(&from) || content.contains(&part.name);
        (!is_taken).then(|| shape.unused_label(name, class_label.clone()))
    });
    unused.collect()
}

/// Whether the fields of its JSON become separate columns.
fn is_flat_json(part: &PartSeen) -> bool {
    part.role == Role::Json && !part.name.contains('.')
}

/// The field `meetpoint.key` of a sample's JSON, for keys that cannot be names of members because
/// they contain dots or an extension.
fn key_of(survey: &Survey) -> Option<ColumnOrigin> {
    let parts = survey.parts.iter().filter(|part| is_flat_json(part));
    let mut with_key = parts.filter(|part| match &part.shape {
        Shape::Struct(fields) => {
            fields.iter().any(|(field, shape)| field == WHOLE_KEY && *shape == Shape::Text)
        }
        _ => false,
    });
    with_key.next().map(|part| ColumnOrigin::Field(part.name.clone(), WHOLE_KEY.to_owned()))
}

fn columns_of(
    survey: &Survey,
    content: &[String],
    used: &[Option<&ColumnOrigin>],
    content_name: &str,
) -> Result<Vec<Column>, Message> {
    let mut taken: BTreeSet<String> = RESERVED.iter().map(|name| (*name).to_owned()).collect();
    taken.insert(content_name.to_owned());
    taken.extend(survey.parts.iter().map(|part| part.name.clone()));
    let mut columns = Vec::new();
    for part in survey.parts.iter().filter(|part| !content.contains(&part.name)) {
        match &part.shape {
            Shape::Struct(fields) if is_flat_json(part) => {
                for (field, shape) in fields {
                    let from = ColumnOrigin::Field(part.name.clone(), field.clone());
                    if used.contains(&Some(&from)) {
                        continue;
                    }
                    let is_free = !field.is_empty() && taken.insert(field.clone());
                    let name = if is_free { field.clone() } else { format!("json.{field}") };
                    columns.push(Column { name, from, role: Role::Json, shape: shape.clone() });
                }
            }
            shape => {
                let from = ColumnOrigin::Part(part.name.clone());
                if used.contains(&Some(&from)) {
                    continue;
                }
                let shape = match part.role {
                    Role::Binary(kind) => Shape::Binary(kind),
                    Role::Text => Shape::Text,
                    Role::Json | Role::Word => shape.clone(),
                };
                let is_reserved = RESERVED.contains(&part.name.as_str());
                let is_reserved = is_reserved || part.name == content_name;
                let name = match is_reserved {
                    true => format!("member.{}", part.name),
                    false => part.name.clone(),
                };
                columns.push(Column { name, from, role: part.role, shape });
            }
        }
    }
    let mut once = BTreeSet::new();
    match columns.iter().find(|column| !once.insert(column.name.as_str())) {
        Some(twice) => Err(Message::from(format!("two columns would be named {}", twice.name))
            .remedy("rename one")),
        None => Ok(columns),
    }
}

/// The requested columns, in that order.
fn chosen(columns: Vec<Column>, asked: Option<&[String]>) -> Result<Vec<Column>, Message> {
    let Some(asked) = asked else {
        return Ok(columns);
    };
    let find = |name: &String| {
        columns.iter().find(|column| column.name == *name).cloned().ok_or_else(|| {
            let known: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            Message::from(format!("there is no column {name} ("))
                + Setting::Columns
                + Message::from(")").remedy(format!("choose columns of {}", known.join(", ")))
        })
    };
    asked.iter().map(find).collect()
}

/// The message that no sample has the part in an option.
fn absent(asked: &str, option: Setting, survey: &Survey) -> Message {
    Message::from(format!("no sample has {asked} ("))
        + option
        + Message::from(")").remedy(format!("choose one of {}", names(survey)))
}

fn names(survey: &Survey) -> String {
    let names: Vec<&str> = survey.parts.iter().map(|part| part.name.as_str()).collect();
    names.join(", ")
}
