//! A recipe with other values of some keys: `num_classes=10`, or `resize.size=288`.

use crate::recipe::declaration::Declaration;
use crate::recipe::error::RecipeError;
use crate::recipe::operations::DECLARATIONS;
use meetpoint_diagnose::{Diagnose, Remedy, known};
use std::str::FromStr;
use toml::{Table, Value};

/// An operation's name, and the value of a key.
type Found = (&'static str, Option<Value>);

/// A key and its value: in all operations that have the key, or in those of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Name of the operation; `None`: all that have the key.
    operation: Option<String>,
    key: String,
    value: Value,
}

/// Why a recipe cannot be changed so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The text is not `KEY=VALUE`.
    #[error("{0:?} is not KEY=VALUE or OPERATION.KEY=VALUE")]
    NotAChange(String),
    /// No operation of the recipe has the key.
    #[error("no operation of the recipe has the key `{key}`")]
    NoSuchKey {
        /// With the operation, where one was named.
        key: String,
        /// Keys that there are.
        known: Vec<String>,
    },
    /// Operations of different names have the key, with different values.
    #[error("several operations have the key `{key}`: {}", .operations.join(", "))]
    Ambiguous {
        /// The key.
        key: String,
        /// Their names.
        operations: Vec<&'static str>,
    },
    /// The recipe is not valid with these values.
    #[error("the changed recipe is refused: {}", .0.located())]
    Refused(RecipeError),
}

impl Diagnose for ChangeError {
    fn cause(&self) -> &'static str {
        match self {
            Self::NotAChange(_) => "not_a_change",
            Self::NoSuchKey { .. } => "no_such_key",
            Self::Ambiguous { .. } => "ambiguous_key",
            Self::Refused(error) => error.cause(),
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::NotAChange(_) => Some("write it as num_classes=10".to_owned().into()),
            Self::NoSuchKey { key, known: keys } => {
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                Some(known(key, &keys).into())
            }
            Self::Ambiguous { key, operations } => {
                let name = operations.first().unwrap_or(&"");
                Some(format!("name the operation, such as {name}.{key}").into())
            }
            Self::Refused(error) => error.remedy(),
        }
    }
}

/// `num_classes=10`; what is not a value of TOML is a text.
impl FromStr for Change {
    type Err = ChangeError;

    fn from_str(text: &str) -> Result<Self, ChangeError> {
        let wrong = || ChangeError::NotAChange(text.to_owned());
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let (operation, key) = match key.trim().split_once('.') {
            Some((operation, key)) => (Some(operation.to_owned()), key),
            None => (None, key.trim()),
        };
        if key.is_empty() || operation.as_deref() == Some("") {
            return Err(wrong());
        }
        let parsed = format!("value = {value}").parse::<Table>();
        let parsed = parsed.ok().and_then(|mut table| table.remove("value"));
        let value = parsed.unwrap_or_else(|| Value::String(value.trim().to_owned()));
        Ok(Self { operation, key: key.to_owned(), value })
    }
}

/// The text of a recipe, every default spelled out, with other values of some keys.
pub(super) fn apply(text: &str, changes: &[Change]) -> Result<String, ChangeError> {
    let mut document = Value::Table(text.parse().expect("a recipe writes TOML"));
    for change in changes {
        let (mut found, mut keys) = (Vec::new(), Vec::new());
        change.find(&document, &mut found, &mut keys);
        let Some((first, value)) = found.first() else {
            let key = match &change.operation {
                Some(operation) => format!("{operation}.{}", change.key),
                None => change.key.clone(),
            };
            keys.sort_unstable();
            keys.dedup();
            return Err(ChangeError::NoSuchKey { key, known: keys });
        };
        let is_other = |(name, its): &Found| name != first && its != value;
        if found.iter().any(is_other) {
            let mut operations: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
            operations.dedup();
            return Err(ChangeError::Ambiguous { key: change.key.clone(), operations });
        }
        change.set(&mut document);
    }
    Ok(toml::to_string(&document).expect("it was read as TOML"))
}

/// The declaration of the operation that a table is; `None`: the table is something else.
fn declaration(table: &Table) -> Option<&'static Declaration> {
    let name = table.get("name")?.as_str()?;
    DECLARATIONS.iter().find(|it| it.name == name).copied()
}

impl Change {
    /// Whether it is about this operation.
    fn is_about(&self, operation: &Declaration) -> bool {
        self.operation.as_deref().is_none_or(|wanted| wanted == operation.name)
            && operation.keys.iter().any(|key| key.name == self.key)
    }

    /// Names and present values of all operations that it is about, and all keys there are.
    fn find(&self, value: &Value, found: &mut Vec<Found>, keys: &mut Vec<String>) {
        match value {
            Value::Table(table) => {
                if let Some(operation) = declaration(table) {
                    keys.extend(operation.keys.iter().map(|key| match self.operation {
                        Some(_) => format!("{}.{}", operation.name, key.name),
                        None => key.name.to_owned(),
                    }));
                    if self.is_about(operation) {
                        found.push((operation.name, table.get(&self.key).cloned()));
                    }
                }
                table.values().for_each(|inner| self.find(inner, found, keys));
            }
            Value::Array(array) => array.iter().for_each(|inner| self.find(inner, found, keys)),
            _ => {}
        }
    }

    /// Sets the value in all operations that it is about.
    fn set(&self, value: &mut Value) {
        match value {
            Value::Table(table) => {
                if declaration(table).is_some_and(|operation| self.is_about(operation)) {
                    table.insert(self.key.clone(), self.value.clone());
                }
                table.iter_mut().for_each(|(_, inner)| self.set(inner));
            }
            Value::Array(array) => array.iter_mut().for_each(|inner| self.set(inner)),
            _ => {}
        }
    }
}
