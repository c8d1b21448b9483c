//! The type of a column, inferred from its values.

use crate::source::json::non_finite;
use crate::source::{ContentKind, UnusedLabel};
use arrow_schema::{DataType, Field, Fields};
use meetpoint_format::dataset::schema::KIND_KEY;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum nesting depth of lists and objects; readers of Arrow files have limits too.
const DEPTH_MAX: usize = 16;
/// Maximum number of fields of an object.
const FIELDS_MAX: usize = 1024;

/// The type of a column, inferred from its values.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::source) enum Shape {
    /// No value so far.
    Null,
    Bool,
    Int,
    /// Integers, none negative, at least one above 2^63 - 1.
    Unsigned,
    Float,
    Text,
    Binary(ContentKind),
    List(Box<Shape>, Length),
    /// Fields in order of first appearance.
    Struct(Vec<(String, Shape)>),
}

/// The number of items of the lists of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source) enum Length {
    /// No list so far.
    Unknown,
    /// All lists have this number of items.
    Same(usize),
    Different,
}

impl Shape {
    /// Widens the type to include `value`; the error is why it cannot.
    pub(in crate::source) fn absorb(&mut self, value: &Value) -> Result<(), String> {
        self.absorb_at(value, 0)
    }

    fn absorb_at(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!("values are nested more than {DEPTH_MAX} deep"));
        }
        let found = match value {
            Value::Null => return Ok(()),
            Value::Bool(_) => Self::Bool,
            Value::Number(number) if number.is_i64() => Self::Int,
            Value::Number(number) if number.is_u64() => Self::Unsigned,
            Value::Number(_) => Self::Float,
            Value::String(_) if non_finite(value).is_some() => Self::Float,
            Value::String(_) => Self::Text,
            Value::Array(items) => return self.absorb_list(items, depth),
            Value::Object(fields) => return self.absorb_fields(fields, depth),
        };
        *self = match (&*self, found) {
            (Self::Null, found) => found,
            (shape, found) if *shape == found => return Ok(()),
            (Self::Int, Self::Unsigned) | (Self::Unsigned, Self::Int) => Self::Unsigned,
            (Self::Int | Self::Unsigned, Self::Float)
            | (Self::Float, Self::Int | Self::Unsigned) => Self::Float,
            (shape, found) => return Err(differs(shape, &found)),
        };
        Ok(())
    }

    fn absorb_list(&mut self, items: &[Value], depth: usize) -> Result<(), String> {
        if *self == Self::Null {
            *self = Self::a_list();
        }
        let Self::List(item, length) = self else {
            return Err(differs(self, &Self::a_list()));
        };
        *length = match *length {
            Length::Unknown => Length::Same(items.len()),
            Length::Same(same) if same == items.len() => Length::Same(same),
            Length::Same(_) | Length::Different => Length::Different,
        };
        items.iter().try_for_each(|value| {
            item.absorb_at(value, depth + 1).map_err(|problem| format!("in a list: {problem}"))
        })
    }

    fn absorb_fields(
        &mut self,
        fields: &serde_json::Map<String, Value>,
        depth: usize,
    ) -> Result<(), String> {
        if *self == Self::Null {
            *self = Self::Struct(Vec::new());
        }
        let Self::Struct(known) = self else {
            return Err(differs(self, &Self::Struct(Vec::new())));
        };
        for (name, value) in fields {
            let index = known.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                known.push((name.clone(), Self::Null));
                known.len() - 1
            });
            if known.len() > FIELDS_MAX {
                return Err(format!("objects have more than {FIELDS_MAX} different fields"));
            }
            let shape = &mut known[index].1;
            shape
                .absorb_at(value, depth + 1)
                .map_err(|problem| format!("field {name}: {problem}"))?;
        }
        Ok(())
    }

    /// The type as text.
    pub(in crate::source) fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a truth value",
            Self::Int => "an integer",
            Self::Unsigned => "an integer over 2^63 - 1",
            Self::Float => "a number",
            Self::Text => "a text",
            Self::Binary(_) => "bytes",
            Self::List(..) => "a list",
            Self::Struct(_) => "an object",
        }
    }

    fn a_list() -> Self {
        Self::List(Box::new(Self::Null), Length::Unknown)
    }

    /// The common number of items if this is a list of lists of numbers of one length, such as
    /// boxes, which have a fixed shape in a batch.
    pub(super) fn row_length(&self) -> Option<i32> {
        let Self::List(item, Length::Same(length @ 1..)) = self else { return None };
        let is_number = matches!(**item, Self::Bool | Self::Int | Self::Unsigned | Self::Float);
        let is_row = is_number || item.row_length().is_some();
        i32::try_from(*length).ok().filter(|_| is_row)
    }

    /// Its Arrow type as a list item.
    pub(super) fn item_type(&self) -> DataType {
        match (self, self.row_length()) {
            (Self::List(item, _), Some(length)) => {
                DataType::FixedSizeList(item_field(item), length)
            }
            _ => self.data_type(),
        }
    }

    /// Its Arrow type. A column or item without a value has the type text.
    pub(in crate::source) fn data_type(&self) -> DataType {
        match self {
            Self::Null | Self::Text => DataType::Utf8,
            Self::Bool => DataType::Boolean,
            Self::Int => DataType::Int64,
            Self::Unsigned => DataType::UInt64,
            Self::Float => DataType::Float64,
            Self::Binary(_) => DataType::Binary,
            Self::List(item, _) => DataType::List(item_field(item)),
            Self::Struct(fields) if fields.is_empty() => DataType::Null,
            Self::Struct(fields) => DataType::Struct(struct_fields(fields)),
        }
    }

    /// This column as an unused label; a column without a value has no type.
    pub(in crate::source) fn unused_label(
        &self,
        column: &str,
        class_label: Option<String>,
    ) -> UnusedLabel {
        let data_type = match self {
            Self::Null => DataType::Null,
            shape => shape.data_type(),
        };
        UnusedLabel::new(column, &data_type, class_label)
    }

    /// A field of that type, with the kind of its bytes.
    pub(in crate::source) fn field(&self, name: &str) -> Field {
        let field = Field::new(name, self.data_type(), true);
        match self {
            Self::Binary(kind @ (ContentKind::Image | ContentKind::Audio)) => {
                let name = if *kind == ContentKind::Image { "image" } else { "audio" };
                let kind = (KIND_KEY.to_owned(), name.to_owned());
                field.with_metadata(HashMap::from([kind]))
            }
            _ => field,
        }
    }
}

pub(super) fn differs(expected: &Shape, found: &Shape) -> String {
    format!("{}, where others have {}", found.name(), expected.name())
}

pub(super) fn item_field(item: &Shape) -> Arc<Field> {
    Arc::new(Field::new("item", item.item_type(), true))
}

pub(super) fn struct_fields(fields: &[(String, Shape)]) -> Fields {
    fields.iter().map(|(name, shape)| Field::new(name, shape.data_type(), true)).collect()
}
